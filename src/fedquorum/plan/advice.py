"""In sentences: which draw to take for the level wanted; or that none will do, and what would."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction

from fedquorum.plan.table import SIZES, Plan, draws, hopeless, promised, share
from fedquorum.plan.votes import Draw

# `paper` is there for comparison; nobody should choose it.
RECOMMENDED = ("ideal", "served", "membership")
# How far to look for what would do.
MOST_MODELS = 10_000


@dataclass(frozen=True)
class Choice:
    """A draw that promises the level wanted, and the votes that this takes.

    >>> str(Choice(Draw(30, 2, 435, "distinct"), 353)), Choice(Draw(30, 2, 435, "distinct"), 353).share
    ('k=2, all 435 subsamples', '0.812')
    """

    draw: Draw
    votes: int

    @property
    def share(self) -> str:
        """The share of the votes, rounded up."""
        return share(self.votes, self.draw.N)

    def __str__(self) -> str:
        number = f"all {self.draw.N:,}" if self.draw.every_subsample else f"{self.draw.N:,} {self.draw.design}"
        return f"k={self.draw.k}, {number} subsamples" if self.draw.N > 1 else f"k={self.draw.k}, one subsample"


def best(plan: Plan, name: str, sizes: list[int], models: int) -> Choice | None:
    """The choice that needs the smallest share of the votes, of equals the cheapest; None if no draw reaches the level.

    >>> from fedquorum.plan.table import make_plan
    >>> str(best(make_plan(1000, tolerate=20), "membership", [10], models=500))
    'k=10, 500 balanced subsamples'
    """
    choices = [
        Choice(draw, votes)
        for k in sizes
        for draw in draws(plan.clients, k, models)
        if promised(name, draw) and (votes := plan.needed(name, draw)) is not None
    ]
    return min(choices, key=lambda each: (Fraction(each.votes, each.draw.N), each.draw.client_updates), default=None)


def advice(plan: Plan) -> list[str]:
    """For the level wanted, a sentence or two per certificate.

    >>> from fedquorum.plan.table import make_plan
    >>> for line in advice(make_plan(1000, tolerate=54, models=500, size=10)):
    ...     print(line)
    ideal: k=10, 500 independent subsamples: level 54 from 0.982 of the votes.
    served: k=10, 500 independent subsamples: level 54 from 0.998 of the votes.
    membership: nothing here promises level 54; the highest is 49. What would: k=9, 111 disjoint subsamples.
    """
    m, n = plan.tolerate, plan.clients
    if m is None:
        return []
    if 2 * m >= n:
        return [f"Nothing can tolerate {m} of {n} clients, with any k, N or design: they are half of all or more."]
    choices = {name: best(plan, name, plan.sizes, plan.models) for name in RECOMMENDED}
    lines = [
        _missed(plan, name) if choice is None else _reached(plan, name, choice) for name, choice in choices.items()
    ]
    if any("; up to" in line for line in lines):
        lines.append(
            "A larger k asks for a larger share of the votes, but gives models that have learnt from more clients."
        )
    return lines


def _reached(plan: Plan, name: str, choice: Choice) -> str:
    text = f"{name}: {choice}: level {plan.tolerate} from {choice.share} of the votes"
    if plan.size is None and (largest := _largest(plan, name, SIZES[-1])) and largest.draw.k > choice.draw.k:
        text += f"; up to {largest}: {largest.share}"
    return f"{text}."


def _missed(plan: Plan, name: str) -> str:
    reached = [answer.highest for row in plan.rows if (answer := row.answers.get(name)) and answer.promised]
    highest = f"the highest is {max(reached)}" if max(reached) >= 0 else "there is none at all"
    k = plan.size or 1
    ways = [_largest(plan, name, k - 1), _enough_models(plan, name, k)]
    if not any(ways):
        ways.append(_enough_models(plan, name, 1))
    shown = "; or ".join(str(choice) for choice in ways if choice)
    would = f"What would: {shown}." if shown else f"{max(plan.models, MOST_MODELS):,} models would not do either."
    return f"{name}: nothing here promises level {plan.tolerate}; {highest}. {would}"


def _largest(plan: Plan, name: str, limit: int) -> Choice | None:
    """The choice of the largest size, up to a limit, found by halving: larger subsamples are hit more often."""
    sizes = range(1, min(limit, plan.clients) + 1)
    end = bisect_left(sizes, True, key=lambda k: hopeless(plan.clients, k, plan.tolerate or 0))
    end = bisect_left(sizes, True, hi=end, key=lambda k: best(plan, name, [k], plan.models) is None)
    return best(plan, name, [end], plan.models) if end else None


def _enough_models(plan: Plan, name: str, k: int) -> Choice | None:
    """A choice with more models than planned, to within a hundredth the fewest; None if MOST_MODELS do not do."""
    if hopeless(plan.clients, k, plan.tolerate or 0):
        return None
    low = high = plan.models
    choice = None
    while choice is None:
        if high >= MOST_MODELS:
            return None
        low, high = high, min(2 * high, MOST_MODELS)
        choice = best(plan, name, [k], high)
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        fewer = best(plan, name, [k], middle)
        low, high, choice = (middle, high, choice) if fewer is None else (low, middle, fewer)
    return choice
