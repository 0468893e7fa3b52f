"""Algorithm 2's step from votes to levels: a one-sided Clopper-Pearson bound on the label, the rest for the runner-up."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from functools import cache
from math import comb

import numpy as np

from fedquorum.certificates.certificate import ABSTAIN
from fedquorum.certificates.tails import votes_needed
from fedquorum.certificates.theorem import hit


def level_of_votes(n: int, k: int, N: int, design: str, alpha: Fraction, gate: Fraction | None = None) -> np.ndarray:
    """The level that N_y votes certify, for every N_y = 0 ... N at once; -1 (ABSTAIN) where they certify none.

    Where a `gate` is given, level 0 must be earned at failure probability `gate` instead of `alpha`, before any other is.

    With `lower` the integer bound on p_y M and `upper = M - lower`, Theorem 1 asks for lower > M//2 + hit(m) =: K, and
    that holds iff P(X >= N_y | K of M models vote y) < alpha. So a level costs a number of votes that depends on m only.

    >>> level_of_votes(1000, 10, 500, "independent", Fraction(1, 10**7))[[308, 309, 400, 500]].tolist()
    [-1, 0, 21, 60]
    """
    every = comb(n, k)

    @cache
    def needed(m: int, risk: Fraction = alpha) -> int:
        majority = every // 2 + hit(n, k, m)
        if design == "independent":
            # Algorithm 2 also asks for p_lower > 1/2, which is more than `lower > M//2` when M is odd: halves of models.
            return votes_needed(max(2 * majority, every), 2 * every, N, design, risk)
        return votes_needed(majority, every, N, design, risk)

    levels = np.array([bisect_right(range(n - k + 1), votes, key=needed) - 1 for votes in range(N + 1)], dtype=np.int64)
    if design == "distinct":
        # Without this a single vote could certify each of three labels that have a third of an odd M.
        levels[:2] = ABSTAIN
    if gate is not None:
        levels[: needed(0, gate)] = ABSTAIN
    return levels
