"""`membership`: about the N models served, against any m clients, even if they choose after seeing the draw; certain."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from fedquorum.certificates.certificate import Certificate
from fedquorum.certificates.cover import Cover, cover_of
from fedquorum.certificates.membership_level import exact_level, fast_level, label_of, unanimous_prices
from fedquorum.certificates.membership_many import Settled, Solve, solve_all
from fedquorum.certificates.membership_search import table_size
from fedquorum.errors import InputError
from fedquorum.votes import Votes

# Work for one pattern of votes (entries of the search's table), and for all of them: up to here exact levels take seconds,
# at most a minute or two.
SMALL_PATTERN = 2**20
SMALL_JOB = 2**31
LEAST_PATTERN = 10**5


# How sharp a statement may say that its levels are.
ALL_LARGEST = "every level is the largest possible"
ALL_BOUNDS = "the levels are proved lower bounds"
SOME_BOUNDS = "are proved lower bounds, the others the largest possible"


def certify(
    votes: Votes,
    *,
    exact: bool | None = None,
    time_limit: float = 60.0,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    folder: Path | None = None,
) -> Certificate:
    """The vote's label with the largest m such that no m clients, doing anything in the models they are in, change it.

    `exact=True` asks for the largest m, `exact=False` for a quick lower bound, `None` for the first where that is quick too.
    An input that the solver has not settled within `time_limit` seconds gets the level that is proved by then. Inputs with
    the same votes are worked out once, by `workers` processes; `progress(done, total)` counts these; exact levels that are
    settled are kept in `folder`, so that the same call resumes; they are believed, so it must be a folder of your own.

    >>> votes = Votes([[1, 0], [1, 0], [1, 1]], [[0, 1], [2, 3], [4, 5]], clients=6)
    >>> certificate = certify(votes)
    >>> certificate.label.tolist(), certificate.level.tolist()
    ([1, 0], [1, 0])
    """
    if not time_limit >= 0:
        raise InputError(f"'time_limit' is {time_limit}; it must be 0 or more seconds")
    if workers < 1:
        raise InputError(f"'workers' is {workers}; it must be at least 1")
    assert votes.classes is not None
    cover = cover_of(votes.subsamples)
    patterns, pattern_of = distinct_patterns(votes.votes)
    solve: Solve
    if is_small(cover, len(patterns)) if exact is None else exact:
        solve = partial(exact_level, cover, classes=votes.classes, seconds=time_limit)
    else:
        solve = partial(fast_level, cover, classes=votes.classes, start=unanimous_prices(cover))
        folder = None
    answers = solve_all(solve, patterns, Settled(folder, cover, votes.classes), workers, progress or _silent)
    level, settled = (np.array(each)[pattern_of] for each in zip(*answers, strict=True))
    return _certificate(
        votes, np.array([label_of(pattern) for pattern in patterns])[pattern_of], level, _how_sharp(settled)
    )


def claim(votes: Votes, label: np.ndarray, level: np.ndarray, statement: str) -> Certificate:
    """The certificate that somebody claims, from its labels, its levels and how sharp its statement says that they are.

    A statement that is none of those that `certify` makes becomes the most modest one.
    """
    how = statement[statement.rfind("(") + 1 :].removesuffix(").")
    counted = re.fullmatch(rf"([0-9]{{1,9}}) of the {votes.d} levels {SOME_BOUNDS}", how)
    honest = how in (ALL_LARGEST, ALL_BOUNDS) or (counted and 0 < int(counted[1]) < votes.d)
    return _certificate(votes, label, level, how if honest else ALL_BOUNDS)


def _certificate(votes: Votes, label: np.ndarray, level: np.ndarray, how_sharp: str) -> Certificate:
    return Certificate(
        name="membership",
        label=label,
        level=level,
        n=votes.n,
        k=votes.k,
        N=votes.N,
        d=votes.d,
        design=votes.design or "not stated",
        alpha=None,
        delta=None,
        exact=True,
        statement=(
            f"Certain, for every input: the vote of the {votes.N} models that are served, each from {votes.k} of the "
            f"{votes.n} clients, gives the stated label, and gives it still when any clients, as many as the stated level, are "
            f"malicious, even if they were chosen after seeing the draw ({how_sharp})."
        ),
    )


def is_small(cover: Cover, patterns: int) -> bool:
    """Whether exact levels for so many patterns of votes are a matter of a minute or two.

    >>> is_small(cover_of(np.array([[i, j] for j in range(30) for i in range(j)])), 2576)
    True
    """
    work = table_size(cover)
    return work <= SMALL_PATTERN and patterns * max(work, LEAST_PATTERN) <= SMALL_JOB


def distinct_patterns(votes: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """The distinct columns of the votes, in order of appearance, and for each input which of them is its own.

    >>> distinct_patterns(np.array([[3, 1, 3], [0, 2, 0]]))[1].tolist()
    [0, 1, 0]
    """
    columns = np.ascontiguousarray(votes.T, dtype=np.uint16)
    number: dict[bytes, int] = {}
    pattern_of = np.array([number.setdefault(column.tobytes(), len(number)) for column in columns])
    return [np.frombuffer(column, dtype=np.uint16) for column in number], pattern_of


def _how_sharp(settled: np.ndarray) -> str:
    if settled.all():
        return ALL_LARGEST
    return f"{int((~settled).sum())} of the {len(settled)} levels {SOME_BOUNDS}" if settled.any() else ALL_BOUNDS


def _silent(done: int, total: int) -> None:
    pass
