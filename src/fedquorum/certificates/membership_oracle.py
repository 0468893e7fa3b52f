"""`membership` again, slowly, in Python's own integers: can m clients change the label of an input, yes or no?

Shares no code with the fast path, which it is there to check. Sets of models are the bits of an integer, and a coalition is
judged by the votes that it leaves: every model that it hits votes for the rival, the rest as they did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from fedquorum.votes import Votes

PRICE = 10_000
DESCENT = 300
BRIEF = 50
# More clients than this share too few models for pairs to tell much.
FEW = 64


@dataclass(frozen=True)
class Contest:
    """One input's label against one rival: the models that vote for each, and the models that each client is in."""

    first: int
    rival: int
    wins_ties: bool
    clients: tuple[int, ...]

    def lead(self, hit: int) -> int:
        """By how many votes the label leads when the models `hit` all vote for the rival; the label is lost below zero."""
        return (self.first & ~hit).bit_count() - (self.rival | hit).bit_count() - self.wins_ties


def check(votes: Votes, labels: list[int], levels: list[int], effort: int = 20_000) -> list[bool | None]:
    """For every input: is it true that its vote gives the label, and that so many clients cannot change it?

    None if `effort` partial coalitions did not tell.

    >>> votes = Votes([[0, 0], [0, 0], [0, 1]], [[0], [1], [2]], clients=3)
    >>> check(votes, [0, 0], [1, 1])
    [True, False]
    """
    members = _members(votes)

    @cache
    def judged(column: tuple[int, ...], label: int, level: int) -> bool | None:
        if label != _winner(column) or level < 0:
            return False
        answer = changeable(votes, members, column, level, effort)
        return None if answer is None else not answer

    columns = map(tuple, votes.votes.T.tolist())
    return [judged(*each) for each in zip(columns, map(int, labels), map(int, levels), strict=True)]


def recompute(votes: Votes) -> tuple[list[int], list[int]]:
    """Label and largest level of every input, without a limit on the effort: for few clients.

    >>> votes = Votes([[0, 0], [0, 0], [0, 1]], [[0], [1], [2]], clients=3)
    >>> recompute(votes)
    ([0, 0], [1, 0])
    """
    members = _members(votes)

    @cache
    def level(column: tuple[int, ...]) -> int:
        return next(m for m in range(votes.n) if changeable(votes, members, column, m + 1, None))

    columns = [tuple(column) for column in votes.votes.T.tolist()]
    return [_winner(column) for column in columns], [level(column) for column in columns]


def changeable(
    votes: Votes, members: tuple[int, ...], column: tuple[int, ...], m: int, effort: int | None
) -> bool | None:
    """Whether some m clients can take the label from an input with these votes; None if `effort` was too little to tell."""
    verdict: bool | None = False
    for contest in _contests(votes, members, column):
        if _loads_refute(contest, m):
            continue
        answer = _search(contest, m, BRIEF) if len(members) <= FEW else None
        if answer is None:
            answer = False if _prices_refute(contest, m) else _search(contest, m, effort)
        if answer:
            return True
        verdict = None if answer is None else verdict
    return verdict


def _winner(column: tuple[int, ...]) -> int:
    counts = Counter(column)
    return min(counts, key=lambda label: (-counts[label], label))


def _members(votes: Votes) -> tuple[int, ...]:
    """For each client the models that it is in, as bits; a client adds nothing to another who is in the same ones."""
    models = [0] * votes.n
    for model, row in enumerate(votes.subsamples.tolist()):
        for client in row:
            models[client] |= 1 << model
    return tuple(dict.fromkeys(models))


def _contests(votes: Votes, members: tuple[int, ...], column: tuple[int, ...]) -> Iterator[Contest]:
    winner = _winner(column)
    voters: Counter[int] = Counter()
    for model, label in enumerate(column):
        voters[label] |= 1 << model
    silent = [label for label in range(votes.classes or 0) if label not in voters]
    # labels without a vote differ in their number only, and the smallest is the likeliest to win a tie
    for label in [*(set(voters) - {winner}), *silent[:1]]:
        yield Contest(voters[winner], voters[label], label < winner, members)


def _loads_refute(contest: Contest, m: int) -> bool:
    """No m clients take the label, as the losses that they cause one by one do not add up to the lead."""
    lead = contest.lead(0)
    losses = sorted((lead - contest.lead(models) for models in contest.clients), reverse=True)
    return sum(losses[:m]) <= lead


def _prices_refute(contest: Contest, m: int) -> bool:
    """No m clients take the label, as prices show: what is not priced counts in full, what is, once per client who hits it.

    Whatever the prices, between nothing and the vote's worth, the conclusion holds; they move a smaller way each time.
    """
    inside = [list(_bits(models)) for models in contest.clients]
    count = 1 + max(i for own in inside for i in own)
    lead = contest.lead(0)
    worth = [lead - contest.lead(1 << i) for i in range(count)]
    loss = lead + 1
    if 1 not in worth:
        loss += loss % 2  # losses come in twos
    worth = [PRICE * each for each in worth]
    price = list(worth)
    for turn in range(DESCENT):
        load = [sum(price[i] for i in own) for own in inside]
        dearest = sorted(range(len(load)), key=load.__getitem__, reverse=True)[:m]
        if sum(worth) - sum(price) + sum(load[j] for j in dearest) < PRICE * loss:
            return True
        times = Counter(i for j in dearest for i in inside[j])
        step = PRICE // (2 + turn // 4)
        price = [min(max(price[i] - step * (times[i] - 1), 0), worth[i]) for i in range(count)]
    return False


def _search(contest: Contest, m: int, effort: int | None) -> bool | None:
    """Try coalitions one after the other, leaving out what cannot succeed; `effort` is how many partial ones to try."""
    if _greed_succeeds(contest, m):
        return True
    spent = 0
    largest = max(Counter(i for models in contest.clients for i in _bits(models)).values())

    def explore(hit: int, candidates: list[int], short: int) -> bool | None:
        nonlocal spent
        spent += 1
        lead = contest.lead(hit)
        if lead < 0:
            return True
        if short == 0 or not candidates:
            return False
        if effort is not None and spent > effort:
            return None
        losses = {models: lead - contest.lead(hit | models) for models in candidates}
        candidates = sorted(candidates, key=losses.__getitem__, reverse=True)
        # Pairs: a vote that t of `short` clients hit is lost once and counted t times, and t - 1 >= C(t,2) * 2 / most.
        most = min(short, largest)
        if sum(losses[models] for models in candidates[:short]) <= lead:
            return False
        if short > 1 and len(candidates) <= FEW:
            worth = []
            for one in candidates:
                common = sorted(
                    lead - contest.lead((hit | one) & (hit | other)) for other in candidates if other != one
                )
                worth.append(most * losses[one] - sum(common[: short - 1]))
            if sum(sorted(worth, reverse=True)[:short]) <= most * lead:
                return False
        verdict: bool | None = False
        for place, models in enumerate(candidates):
            answer = explore(hit | models, candidates[place + 1 :], short - 1)
            if answer:
                return True
            verdict = None if answer is None else verdict
        return verdict

    try:
        return explore(0, list(contest.clients), m)
    except RecursionError:  # coalitions of a thousand: not told
        return None


def _greed_succeeds(contest: Contest, m: int) -> bool:
    """Whether the client who costs the label most, taken m times, takes it: the quick end of many searches."""
    hit = 0
    for _ in range(min(m, len(contest.clients))):
        hit = min((hit | models for models in contest.clients), key=contest.lead)
        if contest.lead(hit) < 0:
            return True
    return False


def _bits(number: int) -> Iterator[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low
