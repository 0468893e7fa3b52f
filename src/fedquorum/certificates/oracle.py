"""The second path: every certificate again, slowly, from its definition, in Python's own integers and fractions.

`fedquorum verify` compares it with what was claimed. It shares no code and no arrays' arithmetic with the fast path: votes
are counted one by one, the bound on p_y is searched as the paper defines it (no table, no threshold per level, no float),
and Theorem 1 is evaluated as it is printed.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache
from math import comb, perm
from typing import Any

from fedquorum.errors import InputError
from fedquorum.votes import Votes


def recompute(votes: Votes, name: str, *, alpha: Any = "0.001", delta: Any = "0.001") -> tuple[list[int], list[int]]:
    """Label and level of every input, -1 where the certificate abstains; equal counts are worked out once.

    >>> votes = Votes([[0, 0, 0], [0, 0, 1], [0, 1, 2]], [[0], [1], [2]], clients=3, design="distinct")
    >>> recompute(votes, "ideal")
    ([0, 0, -1], [1, 0, -1])
    """
    per_input = {"paper": Fraction(1), "ideal": Fraction(1, 2)}
    if name not in per_input or votes.design not in ("independent", "distinct"):
        raise InputError(f"certificate {name!r} cannot be recomputed for votes of design {votes.design!r}")
    failure = Fraction(str(alpha)) * per_input[name] / votes.d

    @cache
    def level_of_votes(most: int) -> int:
        return monte_carlo_level(most, votes.n, votes.k, votes.N, votes.design, failure)

    @cache
    def level_of_gap(gap: int) -> int:
        return _theorem(gap, votes.n, votes.k)

    every_model = votes.design == "distinct" and comb(votes.n, votes.k) == votes.N
    labels, levels = [], []
    for column in votes.votes.T:
        counts = Counter(column.tolist())
        label = min(counts, key=lambda each: (-counts[each], each))
        most = counts.pop(label)
        level = level_of_gap(most - max(counts.values(), default=0)) if every_model else level_of_votes(most)
        labels.append(label if level >= 0 else -1)
        levels.append(level)
    return labels, levels


def monte_carlo_level(most: int, n: int, k: int, N: int, design: str | None, failure: Fraction) -> int:
    """The level of `most` of N votes when the bound on p_y may be wrong with probability `failure`; -1 for none.

    >>> monte_carlo_level(400, 1000, 10, 500, "independent", Fraction(1, 10**7))
    21
    """
    every = comb(n, k)
    if design == "independent":
        majority = _rare(most, N, 1, 2, design, failure)
    else:
        majority = most >= 2 and _rare(most, N, every // 2, every, design, failure)
    if not majority:  # Algorithm 2's p_lower > 1/2
        return -1
    lower = lower_bound(most, N, every, design, failure)
    upper = every - lower
    return _theorem(lower - upper, n, k)


def lower_bound(most: int, N: int, every: int, design: str | None, failure: Fraction) -> int:
    """ceil(p_lower M): the smallest number of models, of all `every`, that explains `most` votes with at least `failure`.

    >>> lower_bound(3, 3, 10, "distinct", Fraction(1, 100))
    4
    """
    low, high = 0, every
    while low < high:
        middle = (low + high) // 2
        if _rare(most, N, middle, every, design, failure):
            low = middle + 1
        else:
            high = middle
    return low


def _theorem(gap: int, n: int, k: int) -> int:
    """Theorem 1 for gap = lower - upper: the largest m, 0 <= m <= n - k, with gap/M > 2 - 2 C(n-m,k)/M; -1 for none."""
    every = comb(n, k)
    level = -1
    while level + 1 <= n - k and Fraction(gap, every) > 2 - 2 * Fraction(comb(n - level - 1, k), every):
        level += 1
    return level


def _rare(most: int, N: int, share: int, every: int, design: str | None, failure: Fraction) -> bool:
    """Whether a label that has `share` of `every` model gets `most` or more of N votes with probability below `failure`.

    Of all sequences of N draws, with `independent` ones put back, the share that holds the label at least `most` times:
    sum over v of C(N,v) share^v rest^(N-v), by Horner's rule from v = N down (falling factorials instead of powers
    when models are not put back).
    """
    back = 0 if design == "independent" else 1
    total, choose, others = 0, 1, 1
    for v in range(N, most - 1, -1):
        total = total * (share - back * v) + choose * others
        choose = choose * v // (N - v + 1)
        others *= every - share - back * (N - v)
    ways: int
    of: int
    if design == "independent":
        ways, of = total * share**most, every**N
    else:
        ways, of = total * perm(share, most), perm(every, N)
    return ways * failure.denominator < failure.numerator * of
