"""`served`: about the N models that are served, against m clients fixed before the secret draw, with probability 1 - delta.

m malicious clients hit H models, H ~ Bin(N, 1 - C(n-m,k)/M), hypergeometric for `distinct` draws. With h(m) the least h
such that P(H > h) <= delta, at most h(m) models change, each by one vote for y and one for another label z. So m is certified iff

    N_y - N_z - [z < y] >= 2 h(m)    for every z.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache
from math import comb

import numpy as np

from fedquorum.certificates.certificate import Certificate, exactly
from fedquorum.certificates.tails import votes_needed
from fedquorum.certificates.theorem import hit


def certify(counts: np.ndarray, n: int, k: int, N: int, d: int, design: str, delta: Fraction) -> Certificate:
    """The served label with its level; no input is abstained on, since nobody doubts what the served models say."""
    gap = gaps(counts)
    levels = np.array([level_of_gap(n, k, N, design, delta, each) for each in range(int(gap.max()) + 1)])
    return Certificate(
        name="served",
        label=counts.argmax(axis=1),
        level=levels[gap],
        n=n,
        k=k,
        N=N,
        d=d,
        design=design,
        alpha=None,
        delta=delta,
        exact=False,
        statement=(
            f"With probability at least 1 - {exactly(delta)} over the secret draw of the {N} subsamples, for all inputs and "
            f"levels together, inputs chosen later included: the vote of the {N} models that are served, each from {k} of "
            f"the {n} clients, gives the stated label, and gives it still when any clients, as many as the stated level, "
            "fixed before the draw, are malicious."
        ),
    )


def gaps(counts: np.ndarray) -> np.ndarray:
    """N_y - N_z - [z<y] for the strongest z, where y is the most-voted label, the smallest of equals.

    >>> gaps(np.array([[3, 5, 2], [5, 3, 2], [4, 4, 2], [0, 0, 7]])).tolist()
    [1, 2, 0, 6]
    """
    label = counts.argmax(axis=1)[:, None]
    classes = np.arange(counts.shape[1])
    rival = np.where(classes == label, -1, counts + (classes < label))
    closest: np.ndarray = counts.max(axis=1) - rival.max(axis=1)
    return closest


def level_of_gap(n: int, k: int, N: int, design: str, delta: Fraction, gap: int) -> int:
    """The largest m with 2 h(m) <= gap.

    >>> [level_of_gap(1000, 10, 500, "independent", Fraction(1, 1000), gap) for gap in (0, 299, 499)]
    [0, 26, 54]
    """
    return bisect_right(range(n - k + 1), gap, key=lambda m: 2 * models_hit(n, k, N, design, delta, m)) - 1


@lru_cache(maxsize=4096)
def models_hit(n: int, k: int, N: int, design: str, delta: Fraction, m: int) -> int:
    """h(m): the least h such that more than h of the N models are hit with probability at most delta.

    >>> models_hit(1000, 10, 500, "independent", Fraction(1, 1000), 54)
    248
    """
    # P(H > h) = P(H >= h + 1) <= delta
    return votes_needed(hit(n, k, m), comb(n, k), N, design, delta, or_equal=True) - 1
