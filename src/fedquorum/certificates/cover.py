"""The worst coalition as a cover problem: which m clients hit models of the greatest total weight?

A coalition T hits the models whose subsample meets T. With a weight w_i >= 0 for each model, everything here is about

    W(T) = sum of w_i over the models i that T hits

and decided in integers. The proofs are in
docs/explanation/membership.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# Prices are integers: this many units make a weight of 1.
UNITS = 1024


@dataclass(frozen=True, eq=False)
class Cover:
    """Who is in which model: `members` (models x clients) and `models_of` (clients x models), sparse, of ones.

    Clients are renumbered: those in no model are left out, and those in the same models count as one, because a coalition
    gains nothing from a second of them.
    """

    members: Any
    models_of: Any

    @property
    def models(self) -> int:
        """The number of models."""
        return int(self.members.shape[0])

    @property
    def clients(self) -> int:
        """The number of clients who differ."""
        return int(self.members.shape[1])


def cover_of(subsamples: np.ndarray) -> Cover:
    """The cover problem of N x k subsamples.

    >>> cover = cover_of(np.array([[0, 1, 2], [1, 2, 7]]))
    >>> cover.clients, loads(cover, np.array([1, 5])).tolist()
    (3, [1, 6, 5])
    """
    from scipy.sparse import csr_array

    count, k = subsamples.shape
    _, client = np.unique(subsamples, return_inverse=True)
    client = client.ravel()
    order = np.argsort(client, kind="stable")
    starts = np.searchsorted(client[order], np.arange(1, client.max() + 1))
    distinct = list({own.tobytes(): own for own in np.split(order // k, starts)}.values())
    model = np.concatenate(distinct)
    starts = np.cumsum([0, *map(len, distinct)])
    models_of = csr_array((np.ones(len(model), dtype=np.int64), model, starts), shape=(len(distinct), count))
    return Cover(models_of.T.tocsr(), models_of)


def loads(cover: Cover, weights: np.ndarray) -> np.ndarray:
    """What each client alone hits: the sum of the weights of its models."""
    return np.asarray(cover.models_of @ weights)


def weight_of(cover: Cover, weights: np.ndarray, coalition: np.ndarray) -> int:
    """W(T).

    >>> cover = cover_of(np.array([[0, 1], [1, 2], [2, 3]]))
    >>> weight_of(cover, np.array([1, 10, 100]), np.array([0, 1]))
    11
    """
    return int(weights[_times_hit(cover, coalition) > 0].sum())


def size_by_loads(cover: Cover, weights: np.ndarray, need: int) -> int:
    """The fewest clients whose loads add up to `need`: no smaller coalition has W(T) >= need, as W(T) <= sum of loads.

    >>> size_by_loads(cover_of(np.array([[0, 1], [1, 2], [2, 3]])), np.array([1, 10, 100]), 111)
    2
    """
    heaviest = np.sort(loads(cover, weights))[::-1]
    return int(np.searchsorted(np.cumsum(heaviest), need)) + 1


def size_by_prices(
    cover: Cover, weights: np.ndarray, need: int, size: int, limit: int, steps: int, start: np.ndarray | None = None
) -> tuple[int, np.ndarray]:
    """A coalition with W(T) >= need has at least so many clients, as far as prices show it; at most `limit`. And the prices.

    For any prices 0 <= u_i <= w_i and |T| = m:  W(T) <= sum_i (w_i - u_i) + the m largest of sum_{i of client j} u_i.
    With u = w this is the bound by loads, with the best prices it is that of the linear program. From m = `size` and
    u = w (or `start` units for each unit of w), a model that the m dearest clients hit t times becomes cheaper by (t - 1)
    times a step of Polyak's length; when m is refuted, m + 1 is next; `steps` in vain are the end. Ties go to the first
    client and all is in integers, so that every machine finds the same prices.

    >>> triangle = cover_of(np.array([[0, 1], [1, 2], [0, 2]]))
    >>> size_by_prices(triangle, np.array([2, 2, 2]), need=7, size=2, limit=3, steps=5)[0]
    3
    """
    whole = weights * UNITS
    price = whole if start is None else weights * start
    first_wins = np.arange(cover.clients)[::-1]
    left = steps
    while size < limit:
        load = loads(cover, price)
        rank = np.argpartition(load * cover.clients + first_wins, cover.clients - size)
        dearest = rank[cover.clients - size :]
        beyond = int((whole - price).sum() + load[dearest].sum()) - UNITS * need
        if beyond < 0:
            size, left = size + 1, steps
            continue
        slope = _times_hit(cover, dearest) - 1
        slope[(slope > 0) & (price == 0)] = 0
        slope[(slope < 0) & (price == whole)] = 0
        square = int((slope * slope).sum())
        if square == 0 or left == 0:
            break
        # aim a fifth of a weight below what must be undercut
        price = np.clip(price - (beyond + UNITS // 5) * slope // square, 0, whole)
        left -= 1
    return size, price


def greedy(cover: Cover, weights: np.ndarray, need: int) -> np.ndarray:
    """A coalition with W(T) >= need: the client who adds most, again and again; then exchanges that save a client.

    >>> greedy(cover_of(np.array([[0, 1], [1, 2], [2, 3]])), np.array([1, 10, 100]), 111).tolist()
    [2, 0]
    """
    left = weights.copy()
    coalition: list[int] = []
    while int(weights.sum() - left.sum()) < need:
        coalition.append(int(loads(cover, left).argmax()))
        left[_times_hit(cover, np.array(coalition[-1:])) > 0] = 0
    best = np.array(coalition)
    while len(best) > 1 and (better := _exchanged(cover, weights, need, best[:-1])) is not None:
        best = better
    return best


def _exchanged(cover: Cover, weights: np.ndarray, need: int, coalition: np.ndarray) -> np.ndarray | None:
    """Exchange one client for another as long as W(T) grows; the coalition once it reaches `need`, else None."""
    coalition = coalition.copy()
    times = _times_hit(cover, coalition)
    reached = int(weights[times > 0].sum())
    stuck = 0
    while reached < need and stuck < len(coalition):
        without = times - _times_hit(cover, coalition[stuck : stuck + 1])
        gain = loads(cover, np.where(without > 0, 0, weights))
        newcomer = int(gain.argmax())
        now = int(weights[without > 0].sum() + gain[newcomer])
        if now > reached:
            coalition[stuck], reached, stuck = newcomer, now, 0
            times = _times_hit(cover, coalition)
        else:
            stuck += 1
    return coalition if reached >= need else None


def _times_hit(cover: Cover, coalition: np.ndarray) -> np.ndarray:
    """How many of the coalition are in each model."""
    chosen = np.zeros(cover.clients, dtype=np.int64)
    chosen[coalition] = 1
    return np.asarray(cover.members @ chosen)
