"""Which k clients each model learns from.

All randomness is SHA-256 of the seed and the model's number, so that a draw can be repeated by anybody, in any
language, for ever, and so that part of a secret draw tells nothing about the rest of it.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fedquorum.errors import InputError

Design = Literal["independent", "distinct", "balanced", "disjoint"]
MOST = 10_000_000
DESIGNS: tuple[Design, ...] = ("independent", "distinct", "balanced", "disjoint")


@dataclass(frozen=True, eq=False)
class Subsamples:
    """N subsamples of k clients each: `members[i]` holds model i's client numbers, ascending.

    It can be used as the N x k array that it holds (`len`, indexing, `numpy.asarray`).
    """

    members: np.ndarray
    n: int
    design: str | None
    seed: int

    @property
    def k(self) -> int:
        """The number of clients in each subsample."""
        return int(self.members.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """(N, k)"""
        return len(self.members), self.k

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.members)

    def __getitem__(self, index: Any) -> np.ndarray:
        return np.asarray(self.members[index])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.members, dtype=dtype) if copy else np.asarray(self.members, dtype=dtype)


def draw(
    n: int, k: int, count: int | Literal["all"], design: str = "independent", seed: int | None = None
) -> Subsamples:
    """Draw `count` subsamples of k of the n clients.

    - `independent`: each uniform among all C(n,k), with no regard to the others (the paper's Monte Carlo);
    - `distinct`: uniform without replacement, no subsample twice; `count="all"` draws all C(n,k);
    - `balanced`: no client in more than one subsample more than another;
    - `disjoint`: no client in two subsamples.

    A larger count extends the draw of a smaller one. Without a seed, 128 bits come from the operating system.

    >>> draw(5, 2, 3, "disjoint", seed=1)
    Traceback (most recent call last):
    fedquorum.errors.InputError: 3 disjoint subsamples of k=2 need 6 clients, but n=5; at most 2 can be drawn
    >>> draw(5, 2, "all", "distinct", seed=1).members.tolist() != draw(5, 2, "all", "distinct", seed=2).members.tolist()
    True
    >>> sorted(draw(4, 3, "all", "distinct", seed=1).members.tolist())
    [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]
    """
    n, k = _integer("n", n), _integer("k", k)
    if n < 1:
        raise InputError(f"n={n}: there must be at least 1 client")
    if k < 1:
        raise InputError(f"k={k}: a subsample must hold at least 1 client")
    if k > n:
        raise InputError(f"k={k} is more than the n={n} clients there are")
    if design not in DESIGNS:
        raise InputError(f"unknown design {design!r}; it must be one of {', '.join(DESIGNS)}")
    if count == "all":
        if design != "distinct":
            raise InputError(f'count="all" draws every subsample once, which is design "distinct", not {design!r}')
        count = math.comb(n, k)
    count = _integer("count", count)
    if count < 1:
        raise InputError(f"count={count}: at least 1 subsample must be drawn")
    if count > MOST:
        raise InputError(f"there are too many subsamples to train: more than {MOST}")
    seed = secrets.randbits(128) if seed is None else _integer("seed", seed)
    if seed < 0:
        raise InputError(f"seed={seed}: a seed must not be negative")
    rows = {"independent": _independent, "distinct": _distinct, "balanced": _balanced, "disjoint": _disjoint}[design]
    members = np.sort(np.array(rows(n, k, count, seed), dtype=np.int64).reshape(count, k), axis=1)
    return Subsamples(members, n, design, seed)


def _integer(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{name} is {value!r}; it must be an integer")
    return int(value)


class _Stream:
    """An endless stream of fair bits from SHA-256, for one purpose of one seed."""

    def __init__(self, *purpose: object) -> None:
        self._prefix = " ".join(map(str, ("fedquorum", *purpose))).encode() + b" "
        self._block = 0
        self._words: list[int] = []

    def _word(self) -> int:
        if not self._words:
            digest = hashlib.sha256(self._prefix + str(self._block).encode()).digest()
            self._words = [int.from_bytes(digest[i : i + 8], "big") for i in (24, 16, 8, 0)]
            self._block += 1
        return self._words.pop()

    def below(self, bound: int) -> int:
        """A uniform integer in 0 ... bound-1, without any modulo bias: a draw that does not fit is thrown away."""
        bits = (bound - 1).bit_length()
        while True:
            value = 0
            for _ in range((bits + 63) // 64):
                value = value << 64 | self._word()
            value >>= -bits % 64
            if value < bound:
                return value

    def permutation(self, n: int) -> list[int]:
        """Fisher and Yates' shuffle of 0 ... n-1."""
        order = list(range(n))
        for i in range(n - 1):
            j = i + self.below(n - i)
            order[i], order[j] = order[j], order[i]
        return order


def _independent(n: int, k: int, count: int, seed: int) -> list[list[int]]:
    """Floyd's algorithm: k draws give a uniform k-subset of n, however large n is."""
    rows = []
    for i in range(count):
        stream = _Stream("independent", n, k, seed, i)
        chosen: set[int] = set()
        for last in range(n - k, n):
            candidate = stream.below(last + 1)
            chosen.add(last if candidate in chosen else candidate)
        rows.append(list(chosen))
    return rows


def _distinct(n: int, k: int, count: int, seed: int) -> list[list[int]]:
    """The first steps of a shuffle of all M = C(n,k) subsamples, of which only the entries that moved are kept.

    So no enumeration is needed when M is 10^23, and none is missed when count = M.
    """
    total = math.comb(n, k)
    if count > total:
        raise InputError(f"{count} distinct subsamples were asked for, but there are only C({n},{k}) = {total}")
    moved: dict[int, int] = {}
    rows = []
    for i in range(count):
        j = i + _Stream("distinct", n, k, seed, i).below(total - i)
        rank = moved.get(j, j)
        moved[j] = moved.pop(i, i)
        rows.append(_subset_of_rank(rank, n, k))
    return rows


def _subset_of_rank(rank: int, n: int, k: int) -> list[int]:
    """The k-subset c_1 < ... < c_k of 0 ... n-1 with rank C(c_1,1) + ... + C(c_k,k): each rank below C(n,k) is one.

    >>> [_subset_of_rank(rank, 4, 2) for rank in range(6)]
    [[1, 0], [2, 0], [2, 1], [3, 0], [3, 1], [3, 2]]
    """
    members = []
    high = n
    for size in range(k, 0, -1):
        # the largest c below `high` with C(c, size) <= rank: by steps of one where c is near, else by bisection
        if high <= 100 * size:
            low, ways = high - 1, math.comb(high - 1, size)
            while ways > rank:
                ways = ways * (low - size) // low
                low -= 1
        else:
            low, beyond = size - 1, high
            while beyond - low > 1:
                middle = (low + beyond) // 2
                low, beyond = (middle, beyond) if math.comb(middle, size) <= rank else (low, middle)
            ways = math.comb(low, size)
        members.append(low)
        rank -= ways
        high = low
    return members


def _balanced(n: int, k: int, count: int, seed: int) -> list[list[int]]:
    """Deal shuffled packs of all the clients, k at a time.

    Where a subsample begins in one pack and ends in the next, the clients that it already holds are passed over
    and stay first in the new pack. Every client is dealt once from each pack, so degrees differ by at most one.
    """
    rows: list[list[int]] = []
    pack: list[int] = []
    packs = 0
    while len(rows) < count:
        row, pack = pack[:k], pack[k:]
        if len(row) < k:
            held = set(row)
            pack = _Stream("balanced", n, k, seed, packs).permutation(n)
            packs += 1
            new = [client for client in pack if client not in held][: k - len(row)]
            taken = set(new)
            row += new
            pack = [client for client in pack if client not in taken]
        rows.append(row)
    return rows


def _disjoint(n: int, k: int, count: int, seed: int) -> list[list[int]]:
    if count * k > n:
        raise InputError(
            f"{count} disjoint subsamples of k={k} need {count * k} clients, but n={n}; at most {n // k} can be drawn"
        )
    order = _Stream("disjoint", n, k, seed).permutation(n)
    return [order[i * k : (i + 1) * k] for i in range(count)]
