"""P(X >= a), where X counts one label among N drawn models: floats where they are clear, integers where they are not.

The label has K of all M models. `independent` draws make X binomial, `distinct` ones hypergeometric:

    P(X = i) = C(N,i) K^i (M-K)^(N-i) / M^N        or        C(K,i) C(M-K,N-i) / C(M,N)

M may be 10^23 and more, so everything goes by the ratio of neighbouring terms, a fraction of two exact integers.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from math import comb

import numpy as np

# A float tail is off by less than 1e-15 N relative (see `tails`); within this margin of alpha integers decide instead.
MARGIN = 1e-9
# Below this, tails may underflow, and integers always decide.
TINY = Fraction(1, 10**250)


def votes_needed(K: int, M: int, N: int, design: str, alpha: Fraction, *, or_equal: bool = False) -> int:
    """The smallest a with P(X >= a) < alpha (with `or_equal`: <= alpha); N + 1 if only that many would do.

    >>> votes_needed(1, 2, 100, "independent", Fraction(5, 100))
    59
    >>> votes_needed(1, 2, 3, "independent", Fraction(1, 8)), votes_needed(1, 2, 3, "independent", Fraction(1, 8), or_equal=True)
    (4, 3)
    """
    if K >= M:
        return N + 1
    if K <= 0:
        return 1
    tail = tails(K, M, N, design)
    target = float(alpha)
    margin = target * max(MARGIN, 1e-14 * N)

    def below(a: int) -> bool:
        if alpha > TINY and abs(tail[a] - target) > margin:
            return bool(tail[a] < target)
        return exactly_below(a, K, M, N, design, alpha, or_equal=or_equal)

    return bisect_left(range(N + 1), True, key=below)


def tails(K: int, M: int, N: int, design: str) -> np.ndarray:
    """P(X >= a) in floats for a = 0 ... N, with 0 < K < M.

    Terms are built outwards from the mode, where they are 1, so each ratio is at most 1 and nothing overflows. A term is
    off by at most 2N roundings, a sum of positive terms by N more, a quotient of two such sums by 6N: below 1e-15 N.

    >>> tails(1, 2, 3, "independent").round(9).tolist()
    [1.0, 0.875, 0.5, 0.125]
    """
    mode = (N + 1) * K // M if design == "independent" else (N + 1) * (K + 1) // (M + 2)
    steps = [_ratio(i, K, M, N, design) for i in range(1, N + 1)]
    down = np.cumprod([below / above for above, below in reversed(steps[:mode])])
    up = np.cumprod([above / below for above, below in steps[mode:]])
    terms: np.ndarray = np.concatenate([down[::-1], [1.0], up])
    sums: np.ndarray = np.cumsum(terms[::-1])[::-1]
    shares: np.ndarray = sums / sums[0]
    return shares


def exactly_below(a: int, K: int, M: int, N: int, design: str, alpha: Fraction, *, or_equal: bool = False) -> bool:
    """Whether P(X >= a) < alpha (with `or_equal`: <= alpha), in integers, with 0 < K < M.

    >>> exactly_below(3, 1, 2, 3, "independent", Fraction(1, 8)), exactly_below(3, 1, 2, 3, "independent", Fraction(2, 8))
    (False, True)
    """
    top: int
    term: int
    whole: int
    if design == "independent":
        top, term, whole = N, K**N, M**N
    else:
        top = min(N, K)
        term, whole = comb(K, top) * comb(M - K, N - top), comb(M, N)
    total = 0
    for i in range(top, a - 1, -1):
        total += term
        if i > 0:
            above, below = _ratio(i, K, M, N, design)
            term = term * below // above
    share, allowed = total * alpha.denominator, alpha.numerator * whole
    return share < allowed or (or_equal and share == allowed)


def _ratio(i: int, K: int, M: int, N: int, design: str) -> tuple[int, int]:
    """P(X = i) / P(X = i - 1) as numerator and denominator; a zero of either ends the range of possible counts."""
    if design == "independent":
        return (N - i + 1) * K, i * (M - K)
    return (N - i + 1) * max(K - i + 1, 0), i * max(M - K - N + i, 0)
