"""The table: what each certificate makes of each draw that a budget of trainings allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, comb, perm
from typing import Any

from fedquorum.certificates import names_for, probability
from fedquorum.errors import InputError
from fedquorum.federation import MAX_CLASSES, MAX_CLIENTS
from fedquorum.plan.votes import Draw, Terms, fewest_votes, highest_level

SIZES = (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
# `distinct` is listed from this part of all subsamples on; with a smaller part it differs from `independent` by about a vote.
LARGE_PART = Fraction(1, 100)
SHARES = tuple(Fraction(percent, 100) for percent in (100, 99, 98, 95, 90, 85, 80, 75, 70, 65, 60, 55, 50, 40, 30, 20))


@dataclass(frozen=True)
class Answer:
    """One certificate for one draw: the highest level, and the fewest votes for the level wanted (None: no number does).

    `votes` are needed if all other votes are on one rival, `votes_if_spread` if they are spread evenly over the other labels.
    `promised` is False where the figures are only typical of a draw: `membership` of a random draw that is not made yet.
    """

    highest: int
    votes: int | None
    votes_if_spread: int | None
    promised: bool


@dataclass(frozen=True)
class Row:
    """A draw, and what each certificate that fits its design makes of it."""

    draw: Draw
    answers: Mapping[str, Answer]


@dataclass(frozen=True)
class Plan:
    """What was asked, and the table that answers it.

    >>> plan = make_plan(30, tolerate=5, models=435)
    >>> [(row.draw.k, row.draw.design, row.draw.N, row.answers["ideal"].highest) for row in plan.rows if "ideal" in row.answers]
    [(1, 'distinct', 30, 14), (2, 'distinct', 435, 8), (3, 'independent', 435, 5), (3, 'distinct', 435, 5)]
    """

    clients: int
    tolerate: int | None
    models: int
    size: int | None
    terms: Terms

    @cached_property
    def rows(self) -> list[Row]:
        """The table: all draws of all sizes."""
        return [self.row(draw) for k in self.sizes for draw in draws(self.clients, k, self.models)]

    @property
    def sizes(self) -> list[int]:
        """The size asked for; else those with which enough models could reach the level wanted, and 1 in any case."""
        if self.size is not None:
            return [self.size]
        wanted = max(self.tolerate or 0, 1)
        return [1, *(k for k in SIZES if k <= self.clients and not hopeless(self.clients, k, wanted))]

    def row(self, draw: Draw) -> Row:
        """A row of the table."""
        return Row(draw, {name: self.answer(name, draw) for name in names_for(draw.design)})

    def answer(self, name: str, draw: Draw) -> Answer:
        """What one certificate makes of a draw."""
        highest = highest_level(name, draw, self.terms, draw.N)
        return Answer(highest, self.needed(name, draw), self.needed(name, draw, spread=True), promised(name, draw))

    def needed(self, name: str, draw: Draw, *, spread: bool = False) -> int | None:
        """The fewest votes for the level wanted; None if no number does."""
        if self.tolerate is None or self.tolerate > draw.n - draw.k:
            return None
        votes = fewest_votes(name, draw, self.tolerate, replace(self.terms, spread=spread))
        return votes if votes <= draw.N else None

    def levels(self, name: str, draw: Draw, *, spread: bool = False) -> list[int]:
        """The level at each of SHARES; a share that is no whole number of votes counts as the votes below it.

        >>> plan = make_plan(1000, models=500, size=10)
        >>> plan.levels("ideal", plan.rows[0].draw)[:6]
        [60, 56, 53, 46, 36, 28]
        """
        terms = replace(self.terms, spread=spread)
        return [highest_level(name, draw, terms, int(share * draw.N)) for share in SHARES]


def make_plan(
    clients: int,
    tolerate: int | None = None,
    models: int = 500,
    size: int | None = None,
    *,
    alpha: Any = "0.001",
    delta: Any = "0.001",
    inputs: int = 10_000,
    classes: int = 10,
) -> Plan:
    """Plan for n clients, m = `tolerate` of them malicious, at most N = `models` trainings, each on k = `size` clients.

    Without a size, several are compared. `alpha` is shared by so many `inputs`; votes are spread over so many `classes`.

    >>> plan = make_plan(1000, tolerate=20, size=10)
    >>> [(row.draw.design, name, answer.highest, answer.votes) for row in plan.rows for name, answer in row.answers.items()]
    [('independent', 'paper', 60, 395), ('independent', 'ideal', 60, 396), ('independent', 'served', 54, 370),
     ('independent', 'membership', 22, 473), ('balanced', 'membership', 49, 351), ('disjoint', 'membership', 49, 71)]
    """
    for name, value, least, most in (
        ("clients", clients, 1, MAX_CLIENTS),
        ("models", models, 1, 10**6),
        ("inputs", inputs, 1, 10**12),
        ("classes", classes, 2, MAX_CLASSES),
    ):
        if not least <= value <= most:
            raise InputError(f"'{name}' is {value}; it must be {least} to {most}")
    if tolerate is not None and not 0 <= tolerate < clients:
        raise InputError(f"'tolerate' is {tolerate}; of {clients} clients 0 to {clients - 1} can be malicious")
    if size is not None and not 1 <= size <= clients:
        raise InputError(f"'size' is {size}; with {clients} clients a subsample holds 1 to {clients} of them")
    terms = Terms(probability("alpha", alpha), probability("delta", delta), inputs, classes)
    return Plan(clients, tolerate, models, size, terms)


def draws(n: int, k: int, models: int) -> list[Draw]:
    """The draws of at most `models` subsamples of k of n clients that are worth a look.

    All C(n,k) subsamples, if there are no more, leave nothing to chance, and no other draw of so many or more does better.
    `balanced` subsamples that hold no client twice are `disjoint`.

    >>> [(draw.design, draw.N) for draw in draws(1000, 10, 500)]
    [('independent', 500), ('balanced', 500), ('disjoint', 100)]
    >>> [(draw.design, draw.N) for draw in draws(30, 2, 500)]
    [('distinct', 435), ('disjoint', 15)]
    """
    every = comb(n, k)
    groups = min(models, n // k)
    disjoint = [Draw(n, k, groups, "disjoint")] if groups < every else []
    if every <= models:
        return [Draw(n, k, every, "distinct"), *disjoint]
    distinct = [Draw(n, k, models, "distinct")] if models >= LARGE_PART * every else []
    balanced = [Draw(n, k, models, "balanced")] if groups < models else []
    return [Draw(n, k, models, "independent"), *distinct, *balanced, *disjoint]


def promised(name: str, draw: Draw) -> bool:
    """Whether what a certificate will make of a draw is known before it: who is in how many models, for `membership`."""
    return draw.membership_is_known if name == "membership" else name in names_for(draw.design)


def hopeless(n: int, k: int, m: int) -> bool:
    """Whether m clients are in half of all subsamples of k or more: then no certificate reaches level m with any N.

    >>> hopeless(30, 2, 8), hopeless(30, 2, 9)
    (False, True)
    """
    # C(n-m,k) / C(n,k), written with as few factors as there are
    few, many = sorted((k, m))
    return 2 * perm(n - many, few) <= perm(n, few)


def share(votes: int, N: int) -> str:
    """The share of N votes that is needed, rounded up, so that what is shown is enough.

    >>> share(396, 499), share(499, 499)
    ('0.794', '1.000')
    """
    return f"{ceil(Fraction(1000 * votes, N)) / 1000:.3f}"


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain values; shares needed are rounded up, a level of -1 is an abstention, None means never.

    >>> content = as_json(make_plan(30, tolerate=5, models=435, size=2))
    >>> content["rows"][0]["certificates"]["served"]
    {'highest_level': 8, 'promised': True, 'votes': 353, 'share': 0.812, 'votes_if_spread': 288, 'share_if_spread': 0.663,
     'levels': [8, 8, 8, 7, 6, 5, 4, 3, 3, 2, 1, 0, -1, -1, -1, -1],
     'levels_if_spread': [8, 8, 8, 8, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 1, 0]}
    """
    terms = plan.terms
    asked: dict[str, Any] = {
        "clients": plan.clients,
        "tolerate": plan.tolerate,
        "models": plan.models,
        "size": plan.size,
        "alpha": float(terms.alpha),
        "delta": float(terms.delta),
        "inputs": terms.inputs,
        "classes": terms.classes,
    }
    if plan.size is not None:
        asked["levels_are_at_shares"] = [float(each) for each in SHARES]
    return asked | {"rows": [_row_as_json(plan, row) for row in plan.rows]}


def _row_as_json(plan: Plan, row: Row) -> dict[str, Any]:
    draw = row.draw
    content: dict[str, Any] = {
        "size": draw.k,
        "design": draw.design,
        "models": draw.N,
        "all_subsamples": draw.every_subsample,
        "client_updates_per_round": draw.client_updates,
        "certificates": {},
    }
    for name, answer in row.answers.items():
        entry: dict[str, Any] = {"highest_level": answer.highest, "promised": answer.promised}
        if plan.tolerate is not None:
            for key, votes in (("", answer.votes), ("_if_spread", answer.votes_if_spread)):
                entry |= {f"votes{key}": votes, f"share{key}": None if votes is None else float(share(votes, draw.N))}
        if plan.size is not None:
            entry["levels"] = plan.levels(name, draw)
            entry["levels_if_spread"] = plan.levels(name, draw, spread=True)
        content["certificates"][name] = entry
    return content
