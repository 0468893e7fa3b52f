"""What a level costs in votes, before anything is trained: the question that a certificate answers, asked backwards.

`certify` goes from votes to levels. Here the level m is given and the fewest votes N_y that reach it are wanted; each
certificate needs the tails of level m only, and not the levels of all numbers of votes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, comb

import numpy as np

from fedquorum.certificates import betting, ideal
from fedquorum.certificates.clopper_pearson import votes_for_level
from fedquorum.certificates.served import models_hit
from fedquorum.certificates.tails import tails
from fedquorum.certificates.theorem import hit
from fedquorum.certificates.two_bounds import levels_by_two_bounds


@dataclass(frozen=True)
class Draw:
    """N subsamples of k of the n clients, of one of the four designs.

    >>> Draw(30, 2, 435, "distinct").every_subsample, Draw(30, 2, 435, "distinct").client_updates
    (True, 870)
    """

    n: int
    k: int
    N: int
    design: str

    @property
    def every_subsample(self) -> bool:
        """Whether all C(n,k) subsamples are drawn: the exact mode."""
        return self.design == "distinct" and comb(self.n, self.k) == self.N

    @property
    def client_updates(self) -> int:
        """Local trainings in each round; a single global model needs n."""
        return self.N * self.k

    @property
    def membership_is_known(self) -> bool:
        """Whether the clients' numbers of models are known before the draw, so that `membership` can be promised."""
        return self.every_subsample or self.design in ("balanced", "disjoint")


@dataclass(frozen=True)
class Terms:
    """What the certificates allow themselves: alpha over all d inputs, delta; and the labels there are, c.

    `spread` says how the other votes fall: all on one rival (False), or as evenly as possible on the c - 1 others.
    """

    alpha: Fraction
    delta: Fraction
    inputs: int
    classes: int
    spread: bool = False


@lru_cache(maxsize=2**14)
def fewest_votes(name: str, draw: Draw, m: int, terms: Terms) -> int:
    """The fewest of the N votes with which an input gets level m from certificate `name`; N + 1 if no number does.

    Where a tie rule favours the smaller label, the label at hand is the larger one.

    >>> terms = Terms(Fraction(1, 1000), Fraction(1, 1000), inputs=10_000, classes=10)
    >>> [fewest_votes("ideal", Draw(1000, 10, 500, "independent"), m, terms) for m in (0, 21, 60, 61)]
    [316, 400, 500, 501]
    """
    if name == "paper" and not draw.every_subsample:
        return _alone(draw, m, terms.alpha / terms.inputs)
    if name == "ideal" and not draw.every_subsample:
        risk = terms.alpha / terms.inputs
        gated = max(_alone(draw, m, ideal.VOTES * risk), _alone(draw, 0, ideal.VOTES_GATE * risk / 2))
        enough = _ahead(draw, m, risk, terms)
        # one fewer is rarely enough, and to know that is cheaper than to look for the fewest
        return _first(gated, enough) if enough(gated - 1) else gated
    # What is left are the votes at hand, of which m clients change at most so many, each by one for y and one for z:
    # N_y - N_z > 2 h, strictly, as a tie goes to the other label.
    h = worst_hits(draw, m) if name == "membership" else _hits(draw, m, terms.delta)
    return _first(draw.N + 1, lambda votes: votes - _second(draw.N, votes, terms) > 2 * h)


def highest_level(name: str, draw: Draw, terms: Terms, votes: int) -> int:
    """The largest level m that `votes` of the N votes reach; -1 (ABSTAIN) if none.

    >>> terms = Terms(Fraction(1, 1000), Fraction(1, 1000), inputs=10_000, classes=10)
    >>> draws = Draw(1000, 10, 500, "independent"), Draw(1000, 10, 500, "balanced")
    >>> highest_level("served", draws[0], terms, votes=500), highest_level("membership", draws[1], terms, votes=500)
    (54, 49)
    """
    levels = range(draw.n - draw.k + 1)
    return bisect_right(levels, votes, key=lambda m: fewest_votes(name, draw, m, terms)) - 1


def worst_hits(draw: Draw, m: int) -> int:
    """At most so many of the N models hold one of m clients, whoever these are.

    No more than the m busiest clients' numbers of models together. With `disjoint` subsamples these are at most 1, with
    `balanced` ones Nk/n rounded up or down, and with all C(n,k) subsamples all coalitions of m hit the same number. For
    other draws they are only known afterwards; what is given is typical of a draw, and promises nothing:

        sum over t >= 1 of min(m, n P(D >= t)),    D the number of models of one client.

    >>> [worst_hits(Draw(1000, 10, 500, design), 24) for design in ("balanced", "independent")]
    [120, 262]
    """
    if draw.every_subsample:
        return hit(draw.n, draw.k, m)
    if draw.design == "disjoint":
        return min(m, draw.N)
    if draw.design == "balanced":
        each, one_more = divmod(draw.N * draw.k, draw.n)
        return min(m * each + min(m, one_more), draw.N)
    return min(ceil(float(np.minimum(m, _busy(draw)).sum())), draw.N)


@lru_cache(maxsize=64)
def _busy(draw: Draw) -> np.ndarray:
    """How many of the n clients are expected in at least t models, t = 1 ... N.

    The sum of the m largest numbers of models is the sum over t of min(m, how many have t at least). As this is concave, expected
    numbers in it give no less than what is expected of the sum.
    """
    if draw.k == draw.n:
        return np.full(draw.N, float(draw.n))
    if draw.design == "distinct":
        shares = tails(comb(draw.n - 1, draw.k - 1), comb(draw.n, draw.k), draw.N, "distinct")
    else:
        shares = tails(draw.k, draw.n, draw.N, "independent")
    busy: np.ndarray = draw.n * shares[1:]
    return busy


def _hits(draw: Draw, m: int, delta: Fraction) -> int:
    if draw.every_subsample:
        return hit(draw.n, draw.k, m)
    return models_hit(draw.n, draw.k, draw.N, draw.design, delta, m)


@lru_cache(maxsize=2**12)
def _alone(draw: Draw, m: int, risk: Fraction) -> int:
    return votes_for_level(draw.n, draw.k, draw.N, draw.design, m, risk)


def _ahead(draw: Draw, m: int, risk: Fraction, terms: Terms) -> Callable[[int], bool]:
    """Whether so many votes are enough for `ideal` to give level m by comparing the label with its runner-up."""
    n, k, N = draw.n, draw.k, draw.N
    every = comb(n, k)
    if 2 * hit(n, k, m) >= every:
        return lambda votes: False
    if ideal.by_two_bounds(n, k, N, draw.design):
        return lambda votes: _level_by_two_bounds(draw, votes, _second(N, votes, terms), risk, terms.classes) >= m
    most = np.arange(N + 1)
    second = np.array([_second(N, votes, terms) for votes in most.tolist()])
    gate, gamma = ideal.lead_risks(n, k, N, draw.design, terms.classes, risk)
    levels = {0: gate, m: gamma if m else gate}
    denied = [betting.denied(n, k, N, level, most, second, each) for level, each in levels.items()]
    enough = np.logical_and.reduce(denied)
    return lambda votes: bool(enough[votes])


@lru_cache(maxsize=4096)
def _level_by_two_bounds(draw: Draw, most: int, second: int, risk: Fraction, classes: int) -> int:
    gate, gamma = ideal.lead_risks(draw.n, draw.k, draw.N, draw.design, classes, risk)
    level = levels_by_two_bounds(draw.n, draw.k, draw.N, np.array([most]), np.array([second]), gate, gamma)
    return int(level[0])


def _second(N: int, votes: int, terms: Terms) -> int:
    """The runner-up's votes."""
    others = N - votes
    return -(-others // (terms.classes - 1)) if terms.spread else others


def _first(end: int, enough: Callable[[int], bool]) -> int:
    """The fewest votes below `end` that are enough, as all larger numbers then are; `end` if none."""
    return bisect_left(range(end), True, key=enough)
