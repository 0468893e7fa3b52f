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
from fedquorum.federation import MAX_CLASSES
from fedquorum.votes import Votes


def recompute(votes: Votes, name: str, *, alpha: Any = "0.001", delta: Any = "0.001") -> tuple[list[int], list[int]]:
    """Label and level of every input, -1 where the certificate abstains; equal counts are worked out once.

    >>> votes = Votes([[0, 0, 0], [0, 0, 1], [0, 1, 2]], [[0], [1], [2]], clients=3, design="distinct")
    >>> recompute(votes, "ideal")
    ([0, 0, -1], [1, 0, -1])
    """
    if name not in ("paper", "ideal", "served") or votes.design not in ("independent", "distinct"):
        raise InputError(f"certificate {name!r} cannot be recomputed for votes of design {votes.design!r}")
    n, k, N, design, c = votes.n, votes.k, votes.N, votes.design, int(votes.classes or 0)
    risk = Fraction(str(alpha)) / votes.d
    could_be = c if votes.classes_stated else MAX_CLASSES
    every_model = design == "distinct" and comb(n, k) == N

    @cache
    def level(most: int, second: int, lead: int) -> int:
        if name == "served":
            return served_level(lead, n, k, N, design, Fraction(str(delta)))
        if every_model:
            return _theorem(most - second, n, k)
        if name == "paper":
            return monte_carlo_level(most, n, k, N, design, risk)
        alone = _votes_alone(most, n, k, N, design, risk)
        return max(alone, lead_level(most, second, n, k, N, design, could_be, risk))

    labels, levels = [], []
    for column in votes.votes.T:
        counts = Counter(column.tolist())
        label = min(counts, key=lambda each: (-counts[each], each))
        most = counts.pop(label)
        lead = min(most - counts[z] - (z < label) for z in range(c) if z != label)
        levels.append(level(most, max(counts.values(), default=0), lead))
        labels.append(label if levels[-1] >= 0 else -1)
    return labels, levels


def _votes_alone(most: int, n: int, k: int, N: int, design: str | None, risk: Fraction) -> int:
    """`ideal` from the votes of the label: 45 % of the risk, behind a gate at 3 % (for two labels)."""
    if monte_carlo_level(most, n, k, N, design, risk * 3 / 100) < 0:
        return -1
    return monte_carlo_level(most, n, k, N, design, risk * 45 / 100)


def lead_level(most: int, second: int, n: int, k: int, N: int, design: str | None, c: int, risk: Fraction) -> int:
    """`ideal` from the label's lead over the runner-up: 45 % of the risk, behind a gate at 4 %.

    >>> lead_level(400, 25, 1000, 10, 500, "independent", 10, Fraction(1, 10**7))
    33
    """
    every = comb(n, k)
    if design == "distinct" and every <= 4 * N:

        def gap(failure: Fraction) -> int:
            return _at_least(most, N, every, failure) - (every - _at_least(N - second, N, every, failure))

        if gap(risk * 4 / 100 / (c + 2)) <= 0:
            return -1
        return _theorem(gap(risk * 45 / 100 / 2), n, k)
    level = -1
    while level + 1 <= n - k:
        m = level + 1
        if not _bet_wins(most, second, n, k, N, m, risk * 45 / 100 if m else risk * 4 / 100 / c):
            break
        level = m
    return level


def _at_least(votes: int, N: int, every: int, failure: Fraction) -> int:
    """The bound of `lower_bound`; what was seen is there in any case."""
    return max(votes, lower_bound(votes, N, every, "distinct", failure))


def _bet_wins(most: int, second: int, n: int, k: int, N: int, m: int, failure: Fraction) -> bool:
    """Bets at stakes 0.4, 0.6, 0.8, 0.9 against a lead of at most g = 2 - 2 C(n-m,k)/M: is their mean 1/failure or more?

    A bet a/(1+g) gains on a vote for the label (1 - g), loses g on one for others and (1 + g) on one for the runner-up.
    """
    every, left = comb(n, k), comb(n - m, k)
    if 2 * left <= every:  # a lead of more than everything
        return False
    # with g = 2 (M - left) / M, everything times 10 (M + gM) = 10 (3M - 2 left)
    whole = 10 * (3 * every - 2 * left)
    capital: int = 0
    for tenths in (4, 6, 8, 9):
        label = whole + tenths * (2 * left - every)
        other = whole - tenths * 2 * (every - left)
        runner_up = whole - tenths * (3 * every - 2 * left)
        capital += label**most * other ** (N - most - second) * runner_up**second
    wins: bool = capital * failure.numerator >= 4 * whole**N * failure.denominator
    return wins


def served_level(lead: int, n: int, k: int, N: int, design: str | None, failure: Fraction) -> int:
    """`served`: the largest m with lead >= 2 h, where more than h models are hit with probability `failure` at most.

    >>> served_level(499, 1000, 10, 500, "independent", Fraction(1, 1000))
    54
    """
    every = comb(n, k)
    level = -1
    while level + 1 <= n - k:
        struck = every - comb(n - level - 1, k)
        h = lead // 2
        most_hit = N if struck and design == "independent" else min(N, struck)
        if h < most_hit and not _rare_or_just(h + 1, N, struck, every, design, failure):
            break
        level += 1
    return level


def _rare_or_just(most: int, N: int, share: int, every: int, design: str | None, failure: Fraction) -> bool:
    """As `_rare` with <= for <: probabilities are multiples of 1/unit, so half a multiple more makes the difference."""
    unit = every**N if design == "independent" else comb(every, N)
    return _rare(most, N, share, every, design, failure + Fraction(1, 2 * unit * failure.denominator))


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
    rare: bool = ways * failure.denominator < failure.numerator * of
    return rare
