"""From votes to certificates: check what was given, then ask the certificate by its name."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from fedquorum.certificates import ideal, membership, paper, served
from fedquorum.certificates.certificate import Certificate
from fedquorum.errors import InputError
from fedquorum.federation import MAX_CLASSES
from fedquorum.subsamples import DESIGNS
from fedquorum.votes import Votes

NAMES = ("paper", "ideal", "served", "membership")
# Only a uniform draw says anything about the subsamples not drawn, or about how many models a client is in.
UNIFORM = ("independent", "distinct")


def valid_names(votes: Votes) -> tuple[str, ...]:
    """The certificates that may be claimed for these votes, given how their subsamples were drawn.

    >>> valid_names(Votes([[0], [0]], [[0], [1]], clients=3, design="distinct"))
    ('paper', 'ideal', 'served', 'membership')
    """
    return names_for(votes.design)


def certify(
    votes: Votes,
    name: str = "ideal",
    *,
    alpha: str | float | Fraction = "0.001",
    delta: str | float | Fraction = "0.001",
) -> Certificate:
    """The certificate `name` of every input, at failure probability `alpha` (or `delta`, where it is used) over all inputs.

    >>> votes = Votes([[0, 0, 0], [0, 0, 1], [0, 1, 2]], [[0], [1], [2]], clients=3, design="distinct")
    >>> c = certify(votes)
    >>> c.label.tolist(), c.level.tolist(), c.exact
    ([0, 0, -1], [1, 0, -1], True)
    """
    check_name(name, votes.design)
    if name == "membership":
        return membership.certify(votes)
    # Labels counted in the votes depend on the draw; where nobody stated them beforehand, there could be as many as fit.
    classes = votes.classes if votes.classes_stated else MAX_CLASSES
    return certify_counts(votes.counts(), votes.n, votes.k, votes.N, votes.design, name, alpha, delta, classes=classes)


def certify_counts(
    counts: Any,
    n: int,
    k: int,
    N: int,
    design: str | None,
    name: str = "ideal",
    alpha: str | float | Fraction = "0.001",
    delta: str | float | Fraction = "0.001",
    d: int | None = None,
    classes: int | None = None,
) -> Certificate:
    """`certify` from the counts alone: counts[t, l] of N models give input t the label l.

    `d` is the number of inputs that share alpha, at least the rows given (the default); `classes` the number of labels that
    there could be, at least the columns given (the default).

    >>> certify_counts([[500, 0], [400, 100]], n=1000, k=10, N=500, design="independent", d=10_000).level.tolist()
    [60, 21]
    """
    check_name(name, design)
    if name == "membership":
        raise InputError("certificate 'membership' needs the votes themselves and their subsamples; use certify")
    alpha, delta = probability("alpha", alpha), probability("delta", delta)
    n, k, N = _integer("n", n), _integer("k", k), _integer("N", N)
    if not 1 <= k <= n:
        raise InputError(f"'k' is {k}; with {n} clients a subsample holds 1 to {n} of them")
    if N < 1:
        raise InputError(f"'N' is {N}; at least one model is needed")
    if design == "distinct" and comb(n, k) < N:
        raise InputError(f"'N' is {N}, but there are only {comb(n, k)} distinct subsamples of {k} of {n} clients")
    counts = np.asarray(counts)
    if counts.ndim != 2 or counts.shape[0] < 1 or counts.shape[1] < 2 or not np.issubdtype(counts.dtype, np.integer):
        raise InputError(
            f"'counts' has shape {counts.shape} and type {counts.dtype}; integers, inputs x classes, are needed"
        )
    wrong = (counts.min(axis=1) < 0) | (counts.max(axis=1) > N) | (counts.sum(axis=1) != N)
    if wrong.any():
        raise InputError(f"'counts' row {int(wrong.argmax())} is not a count of {N} votes; every row must add up to N")
    d = len(counts) if d is None else _integer("d", d)
    if d < len(counts):
        raise InputError(f"'d' is {d}, but {len(counts)} inputs are certified; alpha must be shared by all of them")
    classes = counts.shape[1] if classes is None else _integer("classes", classes)
    if classes < counts.shape[1]:
        raise InputError(f"'classes' is {classes}, but 'counts' has a column for each of {counts.shape[1]} labels")
    if counts.dtype.kind == "u":
        counts = counts.astype(np.int64)
    assert design is not None
    if name == "served":
        return served.certify(counts, n, k, N, d, design, delta)
    if name == "paper":
        return paper.certify(counts, n, k, N, d, design, alpha)
    return ideal.certify(counts, n, k, N, d, design, alpha, classes)


def names_for(design: str | None) -> tuple[str, ...]:
    """The certificates that may be claimed for subsamples of this design.

    >>> names_for("distinct") == NAMES
    True
    """
    return NAMES if design in UNIFORM else ("membership",)


def check_name(name: str, design: str | None) -> None:
    """Refuse a certificate that there is not, or that does not hold for this design."""
    if name not in NAMES:
        raise InputError(f"there is no certificate {name!r}; choose from {', '.join(NAMES)}")
    if design is not None and design not in DESIGNS:
        raise InputError(f"'design' is {design!r}; it must be one of {', '.join(DESIGNS)}")
    if name not in names_for(design):
        fitting = " or ".join(UNIFORM)
        stated = "not stated" if design is None else repr(design)
        raise InputError(
            f"certificate {name!r} holds for subsamples of design {fitting}; the design of these votes is {stated}"
        )


def probability(name: str, value: str | float | Fraction) -> Fraction:
    """Read as a decimal: 0.001 is 1/1000 and not the binary float next to it."""
    text = str(value).strip()
    try:
        # float() first: Fraction("1e-999999999") would never come back.
        inside = "/" in text or 0 < float(text) < 1
        number = Fraction(text) if inside else Fraction(0)
    except (ValueError, ZeroDivisionError):
        number = Fraction(0)
    if not (0 < number < 1 and float(number) > 0):
        raise InputError(f"'{name}' is {text}; it must be a number between 0 and 1, both excluded")
    return number


def _integer(name: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise InputError(f"'{name}' is {value!r}; it must be an integer") from None
    if number != value:
        raise InputError(f"'{name}' is {value!r}; it must be an integer")
    return number
