"""The `membership` level of one input: how many clients may be malicious, whoever they are, for the votes at hand.

A coalition hits the models that it is in. It takes label y from the input iff for some label z the hit weight exceeds

    g_z = N_y - N_z - [z < y],    with weight 2 for a model that voted y, 0 for one that voted z, 1 for any other,

and the level is the size of the smallest such coalition, less one. The proofs are in docs/explanation/membership.md.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from fedquorum.certificates.cover import Cover, greedy, loads, size_by_loads, size_by_prices
from fedquorum.certificates.membership_search import reachable
from fedquorum.certificates.membership_solver import smallest

FEW_STEPS = 3
MANY_STEPS = 40
# Partial coalitions of a search, before the solver is asked instead.
NODES = 20_000


def label_of(column: np.ndarray) -> int:
    """The label with most votes, the smaller one if they tie.

    >>> label_of(np.array([2, 1, 2, 1]))
    1
    """
    return int(np.bincount(column).argmax())


def fast_level(cover: Cover, column: np.ndarray, classes: int, start: np.ndarray) -> tuple[int, bool]:
    """A lower bound on the level, by loads and a few steps of prices from `start` (of `unanimous_prices`); and False.

    >>> from fedquorum.certificates.cover import cover_of
    >>> cover = cover_of(np.arange(100)[:, None])
    >>> fast_level(cover, np.repeat([0, 1], [80, 20]), 2, unanimous_prices(cover))
    (30, False)
    """
    size = cover.clients
    most = _most(cover, column)
    for weights, need in _rivals(cover, column, classes):
        if most[size - 1] < need:
            continue
        own = size_by_loads(cover, weights, need)
        size, _ = size_by_prices(cover, weights, need, min(own, size), size, FEW_STEPS, start)
    return size - 1, False


def exact_level(cover: Cover, column: np.ndarray, classes: int, seconds: float) -> tuple[int, bool]:
    """The level, and True: it is settled; or, where `seconds` were too few for the solver, a lower bound and False.

    For each rival label: a coalition found greedily is an upper bound on the smallest, prices give a lower one, and where
    they do not meet a complete search decides, or the solver. A coalition counts once its weight is added up in integers.

    >>> from fedquorum.certificates.cover import cover_of
    >>> exact_level(cover_of(np.array([[0, 1], [1, 2], [2, 3]])), np.array([1, 1, 1]), 2, seconds=10)
    (0, True)
    """
    end = time.monotonic() + seconds
    best = cover.clients
    most = _most(cover, column)
    undecided = []
    for weights, need in _rivals(cover, column, classes):
        low = size_by_loads(cover, weights, need)
        if most[best - 1] < need or low >= best:
            continue
        best = min(best, len(greedy(cover, weights, need)))
        low, _ = size_by_prices(cover, weights, need, min(low, best), best, MANY_STEPS)
        while low < best:
            found = reachable(cover, weights, need, best - 1, NODES)
            if found:
                best -= 1
            elif found is False:
                low = best
            else:
                left = end - time.monotonic()
                bound, coalition = smallest(cover, weights, need, left) if left > 0 else (0, None)
                best = best if coalition is None else min(best, len(coalition))
                low = max(low, bound)
                break
        undecided.append(low)
    size = min([best, *undecided])
    return size - 1, size == best


def unanimous_prices(cover: Cover) -> np.ndarray:
    """Good prices for a unanimous vote, in units per unit of weight: where a few steps for other votes begin."""
    ones = np.ones(cover.models, dtype=np.int64)
    need = cover.models // 2 + 1
    size = size_by_loads(cover, ones, need)
    return size_by_prices(cover, ones, need, size, cover.clients, MANY_STEPS)[1]


def _rivals(cover: Cover, column: np.ndarray, classes: int) -> Iterator[tuple[np.ndarray, int]]:
    """The weights against each rival label z and the weight that breaks y, the nearest rival first.

    Of the labels without a vote the smallest stands for all: their weights are equal and its gap is the least.
    """
    counts = np.bincount(column, minlength=classes)
    label = int(counts.argmax())
    rivals = [int(z) for z in np.flatnonzero(counts) if z != label]
    rivals += [int(z) for z in np.flatnonzero(counts == 0)[:1]]
    gap = {z: int(counts[label] - counts[z]) - (z < label) for z in rivals}
    for z in sorted(rivals, key=lambda z: (gap[z], z)):
        need = gap[z] + 1
        if counts[label] + counts[z] == cover.models:
            need += need % 2  # all weights are even
        yield 1 + (column == label).astype(np.int64) - (column == z), need


def _most(cover: Cover, column: np.ndarray) -> np.ndarray:
    """Entry m: a weight that m clients cannot exceed, whoever the rival is, as no weight exceeds 1 + [vote = y]."""
    load = loads(cover, 1 + (column == label_of(column)).astype(np.int64))
    return np.concatenate([[0], np.cumsum(np.sort(load)[::-1])])
