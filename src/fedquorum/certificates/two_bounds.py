"""The gap between a label and its runner-up from two Clopper-Pearson bounds, for `distinct` draws of a good part of all models.

For such draws the counts of the models that were not drawn are bounded by their number, which betting cannot see. With
L(a) the smallest K that explains a votes with probability gamma at least, and U(a) the largest (by symmetry
U(a) = M - L(N - a)), Theorem 1 asks for L(N_y) - U(N_z) > 2 hit(m).
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from functools import cache
from math import comb

import numpy as np

from fedquorum.certificates.tails import votes_needed
from fedquorum.certificates.theorem import level_of_gap


def levels_by_two_bounds(
    n: int, k: int, N: int, most: np.ndarray, second: np.ndarray, gate: Fraction, gamma: Fraction
) -> np.ndarray:
    """The level of `most` votes against `second` (arrays) in a `distinct` draw; -1 (ABSTAIN) where the gate stays shut.

    Level 0 needs both bounds at failure probability `gate`, the others at `gamma`.

    >>> gate, gamma = Fraction(1, 10**9), Fraction(1, 10**7)
    >>> levels_by_two_bounds(30, 2, 430, np.array([430, 300, 215]), np.array([0, 100, 215]), gate, gamma).tolist()
    [8, 3, -1]
    """
    open_ = level_of_gap(n, k, _gaps(n, k, N, most, second, gate)) >= 0
    return np.where(open_, level_of_gap(n, k, _gaps(n, k, N, most, second, gamma)), -1)


def _gaps(n: int, k: int, N: int, most: np.ndarray, second: np.ndarray, gamma: Fraction) -> np.ndarray:
    every = comb(n, k)

    @cache
    def needed(K: int) -> int:
        return votes_needed(K, every, N, "distinct", gamma)

    @cache
    def lower(votes: int) -> int:
        # L > K iff P(X >= votes | K) < gamma, and K cannot be below the votes that were seen
        return bisect_left(range(every + 1), True, lo=votes, key=lambda K: votes < needed(K))

    return np.array(
        [lower(y) - (every - lower(N - z)) for y, z in zip(most.tolist(), second.tolist(), strict=True)], dtype=np.int64
    ).reshape(len(most))
