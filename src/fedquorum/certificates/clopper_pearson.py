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

    @cache
    def needed(m: int) -> int:
        return votes_for_level(n, k, N, design, m, alpha)

    levels = np.array([bisect_right(range(n - k + 1), votes, key=needed) - 1 for votes in range(N + 1)], dtype=np.int64)
    if gate is not None:
        levels[: votes_for_level(n, k, N, design, 0, gate)] = ABSTAIN
    return levels


def votes_for_level(n: int, k: int, N: int, design: str, m: int, alpha: Fraction) -> int:
    """The fewest votes that level m costs; N + 1 if not even N votes buy it.

    >>> [votes_for_level(1000, 10, 500, "independent", m, Fraction(1, 10**7)) for m in (0, 21, 60, 61)]
    [309, 399, 500, 501]
    """
    every = comb(n, k)
    majority = every // 2 + hit(n, k, m)
    if design == "independent":
        # Algorithm 2 also asks for p_lower > 1/2, which is more than `lower > M//2` when M is odd: halves of models.
        return votes_needed(max(2 * majority, every), 2 * every, N, design, alpha)
    # Without the two a single vote could certify each of three labels that have a third of an odd M.
    return max(2, votes_needed(majority, every, N, design, alpha))
