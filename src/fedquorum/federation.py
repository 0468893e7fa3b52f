"""Who holds which examples, and the test set that the models will vote on."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fedquorum.errors import InputError

# More labels than this are a mistake (an id or a pixel read as a label), and counting them would fill the memory.
MAX_CLASSES = 2**16
# Levels take time and memory in proportion to n.
MAX_CLIENTS = 10**6


def not_too_many(classes: int) -> int:
    """The number of classes, if it is one that can be meant.

    >>> not_too_many(10)
    10
    """
    if classes > MAX_CLASSES:
        raise InputError(f"there would be {classes} classes; number the labels 0, 1, 2, ... (at most {MAX_CLASSES})")
    return classes


@dataclass(frozen=True, eq=False)
class Federation:
    """n clients with their training examples, and d test inputs.

    `x[i]` and `y[i]` are an example and its label, `client[i]` the id of the client that holds it (any hashable
    value). Clients are numbered by their *enrolment*: the order of `clients` where it is given; otherwise
    integer ids in ascending order, and other ids in the order in which they first appear. The enrolment and the
    number of `classes` are part of a run's configuration: where clients are not trusted, give both, so that no
    client can shift another's number or widen the class list by what it sends.

    After construction the rows are sorted by client number: client i holds rows `offsets[i]` to `offsets[i+1]`,
    in the order in which they came. A client with a NaN or an infinite value is isolated: it keeps its number and its
    place in subsamples, its rows are zeroed, and no model learns from it.

    >>> f = Federation(x=[[1.0], [2.0], [3.0]], y=[0, 1, 1], client=["north", "south", "north"], test_x=[[2.5]])
    >>> f.n, f.clients, f.sizes.tolist()
    (2, ('north', 'south'), [2, 1])
    >>> f.examples(0)[0].ravel().tolist()
    [1.0, 3.0]
    """

    x: np.ndarray
    y: np.ndarray
    client: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray | None = None
    classes: int | None = None
    clients: tuple[Hashable, ...] | None = None
    offsets: np.ndarray = field(init=False)
    isolated: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        x = _inputs("x", self.x)
        test_x = _inputs("test_x", self.test_x)
        y = _labels("y", self.y)
        test_y = None if self.test_y is None else _labels("test_y", self.test_y)
        numbers, ids = _enrol(self.client, self.clients)
        if not len(x) == len(y) == len(numbers):
            raise InputError(
                f"x has {len(x)} rows, y has {len(y)} and client has {len(numbers)}; each example needs one of each"
            )
        if test_y is not None and len(test_x) != len(test_y):
            raise InputError(f"test_x has {len(test_x)} rows but test_y has {len(test_y)}")
        if len(test_x) == 0:
            raise InputError("test_x has no rows; there is nothing to vote on")
        if x.shape[1:] != test_x.shape[1:]:
            raise InputError(f"an example in x has shape {x.shape[1:]}, in test_x {test_x.shape[1:]}; they must agree")
        if x.dtype != test_x.dtype:
            raise InputError(f"x holds {x.dtype} but test_x holds {test_x.dtype}; they must agree")
        if not _finite_rows(test_x).all():
            raise InputError(f"test_x row {int(np.argmin(_finite_rows(test_x)))} has a NaN or an infinite value")
        if len(ids) < 2:
            raise InputError("there is one client only; a federation needs at least two")
        classes = _classes(self.classes, y, test_y)

        sizes = np.bincount(numbers, minlength=len(ids))
        if (sizes == 0).any():
            empty = [ids[i] for i in np.nonzero(sizes == 0)[0]]
            raise InputError(f"client {empty[0]!r} is enrolled but has no examples ({len(empty)} such in all)")
        if (numbers[1:] < numbers[:-1]).any():
            order = np.argsort(numbers, kind="stable")
            x, y, numbers = x[order], y[order], numbers[order]
        isolated = np.zeros(len(ids), dtype=bool)
        finite = _finite_rows(x)
        if not finite.all():
            isolated[np.unique(numbers[~finite])] = True
            x = x.copy()
            x[isolated[numbers]] = 0
            names = ", ".join(repr(ids[i]) for i in np.nonzero(isolated)[0])
            warnings.warn(f"isolated, for a NaN or an infinite value in its data: client {names}", stacklevel=3)

        for name, value in (
            ("x", x),
            ("y", y),
            ("client", numbers),
            ("test_x", test_x),
            ("test_y", test_y),
            ("classes", classes),
            ("clients", ids),
            ("offsets", np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)),
            ("isolated", isolated),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def from_arrays(
        cls,
        x: Any,
        y: Any,
        client: Any,
        *,
        test_x: Any,
        test_y: Any = None,
        classes: int | None = None,
        clients: Sequence[Hashable] | None = None,
    ) -> Federation:
        """The same federation, from anything NumPy can turn into arrays, and copied: later changes do not reach it.

        >>> Federation.from_arrays([[0.0], [1.0]], [0, 1], [7, 3], test_x=[[0.5]]).clients
        (3, 7)
        """
        return cls(
            np.array(x),
            np.array(y),
            list(client),  # type: ignore[arg-type]
            np.array(test_x),
            None if test_y is None else np.array(test_y),
            classes,
            None if clients is None else tuple(clients),
        )

    @property
    def n(self) -> int:
        """The number of clients."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> np.ndarray:
        """How many examples each client holds."""
        return np.diff(self.offsets)

    @property
    def isolated_clients(self) -> tuple[Hashable, ...]:
        """The ids of the clients whose data had a NaN or an infinite value."""
        assert self.clients is not None
        return tuple(self.clients[i] for i in np.nonzero(self.isolated)[0])

    def examples(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """The inputs and labels that client number i holds."""
        rows = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
        return self.x[rows], self.y[rows]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all that this federation is: arrays, client ids in enrolment order, classes.

        >>> a = Federation([[0.0], [1.0]], [0, 1], ["a", "b"], test_x=[[0.5]])
        >>> b = Federation([[1.0], [0.0]], [1, 0], ["b", "a"], test_x=[[0.5]], clients=("a", "b"))
        >>> a.fingerprint == b.fingerprint
        True
        """
        digest = hashlib.sha256(b"fedquorum federation 1\n")
        header = {"classes": self.classes, "clients": [repr(i) for i in self.clients or ()]}
        digest.update(json.dumps(header).encode())
        for array in (self.x, self.y, self.offsets, self.isolated, self.test_x, self.test_y):
            if array is None:
                digest.update(b"none\n")
            else:
                digest.update(f"{array.dtype.str} {array.shape}\n".encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def _inputs(name: str, values: Any) -> np.ndarray:
    """Images stay bytes (a quarter of the memory); every other number becomes float32."""
    array = np.asarray(values)
    if array.ndim < 2:
        raise InputError(f"{name} has {array.ndim} dimensions; it needs one row per example (at least 2)")
    if array.size == 0 and len(array):
        raise InputError(f"an example in {name} has no values (its shape is {array.shape[1:]})")
    if array.dtype == np.uint8 or array.dtype == np.float32:
        return array
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == bool) or np.iscomplexobj(array):
        raise InputError(f"{name} holds values of type {array.dtype}; it needs real numbers")
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _labels(name: str, values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{name} has {array.ndim} dimensions; it needs one label per example (1)")
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} holds labels of type {array.dtype}; labels must be integers from 0 (use astype(int))")
    return array


def _classes(classes: int | None, y: np.ndarray, test_y: np.ndarray | None) -> int:
    found = [("y", y)] + ([] if test_y is None else [("test_y", test_y)])
    if classes is None:
        classes = max(2, *(int(values.max(initial=0)) + 1 for _, values in found))
    if not isinstance(classes, (int, np.integer)) or classes < 2:
        raise InputError(f"classes is {classes!r}; it must be an integer of at least 2")
    not_too_many(int(classes))
    for name, values in found:
        outside = (values < 0) | (values >= classes)
        if outside.any():
            row = int(np.argmax(outside))
            raise InputError(f"{name} row {row} has label {values[row]}, outside the classes 0 to {classes - 1}")
    return int(classes)


def _enrol(client: Any, clients: Iterable[Hashable] | None) -> tuple[np.ndarray, tuple[Hashable, ...]]:
    """Each row's client number, and the ids in the order of their numbers."""
    if isinstance(client, np.ndarray):
        if client.ndim != 1:
            raise InputError(f"client has {client.ndim} dimensions; it needs one client id per example (1)")
        client = client.tolist()
    rows: list[Any] = [_plain(i) for i in client]
    try:
        distinct = dict.fromkeys(rows)
        if clients is not None:
            ids = tuple(_plain(i) for i in clients)
        elif all(isinstance(i, int) for i in distinct):
            ids = tuple(sorted(distinct))
        else:
            ids = tuple(distinct)
        number = {i: position for position, i in enumerate(ids)}
    except TypeError as error:
        raise InputError(
            f"a client id cannot be used ({error}); ids must be hashable, such as strings or integers"
        ) from None
    if len(number) != len(ids):
        raise InputError("clients lists a client twice; the enrolment needs each client once")
    unknown = next((i for i in distinct if i not in number), None)
    if unknown is not None:
        raise InputError(f"client {unknown!r} has examples but is not in clients, the enrolment")
    return np.fromiter((number[i] for i in rows), dtype=np.int64, count=len(rows)), ids


def _plain(identity: Any) -> Any:
    return identity.item() if isinstance(identity, np.generic) else identity


def _finite_rows(x: np.ndarray) -> np.ndarray:
    if x.dtype == np.uint8:
        return np.ones(len(x), dtype=bool)
    finite: np.ndarray = np.isfinite(x).reshape(len(x), -1).all(axis=1)
    return finite
