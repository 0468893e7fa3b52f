"""The second path: every certificate again, slowly, from its definition, in Python's own integers and fractions.

`fedquorum verify` compares it with what was claimed. It shares no code and no arrays' arithmetic with the fast path: votes
are counted one by one, the bound on p_y is searched as the paper defines it (no table, no threshold per level, no float),
and Theorem 1 is evaluated as it is printed.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache, lru_cache
from math import comb
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
    def level(most: int, second: int) -> int:
        return level_of_counts(most, second, votes.n, votes.k, votes.N, votes.design, failure)

    labels, levels = [], []
    for column in votes.votes.T:
        counts = Counter(column.tolist())
        label = min(counts, key=lambda each: (-counts[each], each))
        most = counts.pop(label)
        level_here = level(most, max(counts.values(), default=0))
        labels.append(label if level_here >= 0 else -1)
        levels.append(level_here)
    return labels, levels


def level_of_counts(most: int, second: int, n: int, k: int, N: int, design: str | None, failure: Fraction) -> int:  # noqa: N803
    """The level for `most` of N votes against `second`, with failure probability `failure` for this input; or -1.

    >>> level_of_counts(400, 100, 1000, 10, 500, "independent", Fraction(1, 10**7))
    21
    """
    every = comb(n, k)
    if design == "distinct" and N == every:
        return _theorem(most, second, n, k)
    if design == "distinct" and most < 2:
        return -1
    lower = lower_bound(most, N, every, design, failure)
    # Algorithm 2's p_lower > 1/2; of an odd number of models, `distinct` draws know no half.
    half = every if design == "independent" else every - every % 2
    if not _rare(most, N, half, 2 * every, design, failure):
        return -1
    return _theorem(lower, every - lower, n, k)


@lru_cache(maxsize=100_000)
def lower_bound(most: int, N: int, every: int, design: str | None, failure: Fraction) -> int:  # noqa: N803
    """ceil(p_lower M): the smallest number of models, of all `every`, that explains `most` votes with at least `failure`.

    >>> lower_bound(3, 3, 10, "distinct", Fraction(1, 100))
    4
    """
    low, high = 0, every
    while low < high:
        middle = (low + high) // 2
        if _rare(most, N, 2 * middle, 2 * every, design, failure):
            low = middle + 1
        else:
            high = middle
    return low


def _theorem(lower: int, upper: int, n: int, k: int) -> int:
    """Theorem 1: the largest m, 0 <= m <= n - k, with lower/M - upper/M > 2 - 2 C(n-m,k)/M; -1 if there is none."""
    every = comb(n, k)
    level = -1
    while level + 1 <= n - k and Fraction(lower - upper, every) > 2 - 2 * Fraction(comb(n - level - 1, k), every):
        level += 1
    return level


def _rare(most: int, N: int, twice: int, twice_every: int, design: str | None, failure: Fraction) -> bool:  # noqa: N803
    """Whether a label of twice/twice_every of all models (half models may be) gets `most` of N votes with less than `failure`."""
    if design == "independent":
        share, rest = twice, twice_every - twice
        # Horner's rule in rest/share, from N votes down to `most`.
        total, choose, power = 0, 1, 1
        for votes in range(N, most - 1, -1):
            total = total * share + choose * power
            choose = choose * votes // (N - votes + 1)
            power *= rest
        ways, of = total * share**most, twice_every**N
    else:
        models, others = twice // 2, (twice_every - twice) // 2
        least = max(most, N - others)
        way = comb(models, least) * comb(others, N - least)
        ways, of = way, comb(models + others, N)
        for votes in range(least, min(N, models)):
            way = way * (models - votes) * (N - votes) // ((votes + 1) * (others - N + votes + 1))
            ways += way
    return ways * failure.denominator < failure.numerator * of
