"""The votes: which label each of the N models gives each of the d test inputs, and who taught each model.

This room needs NumPy only, so that votes of any origin can be certified.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedquorum.errors import UNREADABLE, InputError
from fedquorum.federation import MAX_CLIENTS, not_too_many
from fedquorum.subsamples import DESIGNS


def _integers(name: str, values: Any, dimensions: int) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"'{name}' is ragged; its rows must be equally long") from None
    if array.ndim != dimensions:
        raise InputError(f"'{name}' has {array.ndim} dimensions, but {dimensions} are needed")
    if array.dtype.kind not in "iu":
        raise InputError(f"'{name}' holds values of type {array.dtype}; they must be integers")
    return array


def _integer(name: str, value: Any, least: int) -> int:
    try:
        number = int(value)
        whole = bool(number == value)
    except (TypeError, ValueError, OverflowError):
        number, whole = 0, False
    if not whole or number < least:
        shown = " ".join(repr(value).split())
        raise InputError(f"'{name}' is {shown}; it must be an integer of at least {least}")
    return number


def ordered_subsamples(subsamples: Any, clients: int) -> np.ndarray:
    """The N x k array of client numbers, each row ascending, if every row holds k different ones of 0 ... clients-1.

    >>> ordered_subsamples([[2, 0], [1, 2]], clients=3).tolist()
    [[0, 2], [1, 2]]
    """
    subsamples = _integers("subsamples", subsamples, 2)
    if not len(subsamples):
        raise InputError("'subsamples' has no rows; at least one model is needed")
    if not 1 <= subsamples.shape[1] <= clients:
        raise InputError(
            f"'subsamples' has {subsamples.shape[1]} columns (k); with {clients} clients k is 1 to {clients}"
        )
    if subsamples.min() < 0 or subsamples.max() >= clients:
        row = int(np.nonzero(((subsamples < 0) | (subsamples >= clients)).any(axis=1))[0][0])
        raise InputError(f"'subsamples' row {row} names an unknown client; client numbers run from 0 to {clients - 1}")
    ordered = np.sort(subsamples.astype(np.int64), axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if twice.any():
        raise InputError(f"'subsamples' row {int(np.nonzero(twice)[0][0])} holds a client twice")
    return ordered


@dataclass(frozen=True, eq=False)
class Votes:
    """N models' labels for d inputs, with the subsample (k client numbers) behind each model.

    `votes[i, t]` is the label in 0 ... classes-1 that model i gives input t; `subsamples[i]` holds the
    k different clients, numbers in 0 ... clients-1, that model i learnt from. `design` says how the subsamples
    were drawn, `None` that nobody knows. Where `classes` is not stated, it is counted in the votes, which costs `ideal` a little.

    >>> v = Votes(votes=[[0, 1], [0, 1], [1, 1]], subsamples=[[0], [1], [2]], clients=3, design="distinct")
    >>> v.n, v.k, v.N, v.d, v.classes
    (3, 1, 3, 2, 2)
    >>> v.counts().tolist()
    [[2, 1], [0, 3]]
    """

    votes: np.ndarray
    subsamples: np.ndarray
    clients: int
    labels: np.ndarray | None = None
    classes: int | None = None
    design: str | None = None
    classes_stated: bool = True

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        votes = _integers("votes", self.votes, 2)
        subsamples = _integers("subsamples", self.subsamples, 2)
        clients = _integer("clients", self.clients, least=1)
        if clients > MAX_CLIENTS:
            raise InputError(f"'clients' is {clients}; at most {MAX_CLIENTS} can be certified")
        if votes.shape[0] < 1 or votes.shape[1] < 1:
            raise InputError(f"'votes' has shape {votes.shape}; at least one model and one input are needed")
        if votes.shape[0] != subsamples.shape[0]:
            raise InputError(
                f"'votes' has {votes.shape[0]} rows but 'subsamples' has {subsamples.shape[0]}; both need one row per model"
            )
        ordered = ordered_subsamples(subsamples, clients)
        labels = None
        if self.labels is not None:
            labels = _integers("labels", self.labels, 1)
            if len(labels) != votes.shape[1]:
                raise InputError(f"'labels' has {len(labels)} entries but 'votes' has {votes.shape[1]} columns")
        if self.classes is None:
            highest = int(votes.max()) if labels is None else max(int(votes.max()), int(labels.max()))
            classes = max(2, highest + 1)
        else:
            classes = _integer("classes", self.classes, least=2)
        not_too_many(classes)
        for name, array in (("votes", votes), ("labels", labels)):
            if array is not None and (array.min() < 0 or array.max() >= classes):
                raise InputError(f"'{name}' holds a label outside the classes 0 to {classes - 1}")
        stated = self.classes is not None and self.classes_stated
        design = None if self.design is None else str(self.design)
        if design is not None and design not in DESIGNS:
            raise InputError(f"'design' is {design!r}; it must be one of {', '.join(DESIGNS)}")
        if design == "distinct" and len(np.unique(ordered, axis=0)) != len(ordered):
            raise InputError("'design' is 'distinct', but a subsample occurs twice")
        if design == "disjoint" and len(np.unique(ordered)) != ordered.size:
            raise InputError("'design' is 'disjoint', but a client is in two subsamples")
        if design == "balanced" and np.ptp(np.bincount(ordered.ravel(), minlength=clients)) > 1:
            raise InputError("'design' is 'balanced', but some clients are in more subsamples than others")
        put("votes", votes)
        put("subsamples", ordered)
        put("clients", clients)
        put("labels", labels)
        put("classes", classes)
        put("classes_stated", stated)
        put("design", design)

    @property
    def n(self) -> int:
        """The number of clients."""
        return self.clients

    @property
    def k(self) -> int:
        """The number of clients in each subsample."""
        return int(self.subsamples.shape[1])

    @property
    def N(self) -> int:  # noqa: N802 - the paper's name
        """The number of models."""
        return int(self.votes.shape[0])

    @property
    def d(self) -> int:
        """The number of test inputs."""
        return int(self.votes.shape[1])

    def counts(self) -> np.ndarray:
        """N_l(x) as a d x c array of integers: how many models vote for label l on input x."""
        assert self.classes is not None
        counts = np.empty((self.d, self.classes), dtype=np.int32)
        tally = _tally_few if self.classes <= 32 else _tally_many
        for start in range(0, self.d, 4096):  # a block of columns fits the processor's cache
            tally(self.votes[:, start : start + 4096], counts[start : start + 4096])
        return counts


def _tally_few(block: np.ndarray, counts: np.ndarray) -> None:
    """Count by comparing with each label: the quickest while labels are few, as bytes are added many at a time."""
    for label in range(counts.shape[1]):
        equal = (block == label).view(np.uint8)
        counts[:, label] = 0
        for start in range(0, len(equal), 255):  # 255 ones still fit a byte
            counts[:, label] += np.add.reduce(equal[start : start + 255], axis=0, dtype=np.uint8)


def _tally_many(block: np.ndarray, counts: np.ndarray) -> None:
    """Count in one pass over the votes, whatever the number of labels."""
    place = block.astype(np.intp) + np.arange(len(counts)) * counts.shape[1]
    counts[:] = np.bincount(place.ravel(), minlength=counts.size).reshape(counts.shape)


def load_votes(path: str | Path) -> Votes:
    """Read a votes file (`.npz`): `votes`, `subsamples`, `clients`, and optionally `labels`, `classes`, `design`."""
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            content = {name: np.asarray(file[name]) for name in file.files}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UNREADABLE as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: not a readable .npz file of plain arrays ({reason})") from None
    for name in ("votes", "subsamples", "clients"):
        if name not in content:
            raise InputError(f"{path}: the array '{name}' is missing; a votes file needs votes, subsamples and clients")
    design = _scalar(content["design"]) if "design" in content else None
    try:
        return Votes(
            votes=content["votes"],
            subsamples=content["subsamples"],
            clients=_scalar(content["clients"]),
            labels=content.get("labels"),
            classes=_scalar(content["classes"]) if "classes" in content else None,
            design=design.decode("ascii", "replace") if isinstance(design, bytes) else design,
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def save_votes(votes: Votes, path: str | Path) -> None:
    """Write a votes file that `load_votes` and `fedquorum certify` read."""
    content: dict[str, Any] = {"votes": votes.votes, "subsamples": votes.subsamples, "clients": votes.clients}
    if votes.classes_stated:
        content["classes"] = votes.classes
    if votes.labels is not None:
        content["labels"] = votes.labels
    if votes.design is not None:
        content["design"] = votes.design
    np.savez_compressed(path, **content)


def _scalar(array: np.ndarray) -> Any:
    return array.item() if array.size == 1 else array
