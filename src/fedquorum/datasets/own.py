"""A user's own file: `.npz` with arrays, or a table (`.csv`, `.parquet`) with a column per feature."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedquorum.datasets.dataset import Dataset
from fedquorum.datasets.split import three_quarters
from fedquorum.errors import UNREADABLE, InputError
from fedquorum.federation import not_too_many

if TYPE_CHECKING:
    import pyarrow

ENDINGS = (".npz", ".csv", ".parquet")


def own(file: Path, seed: int) -> Dataset:
    """Read `file` by its ending.

    `.npz`: `x`, `y`, `client`, `test_x`, and optionally `test_y`, `classes`, `clients` (the enrolment).
    A table: columns `client` and `label`, optionally `test` (true or 1 for a row of the test set), every other column
    a number. Without `test`, three quarters of each client's rows are for training (`seed` decides which).

    Where not given, the clients are enrolled in ascending order if their ids are integers, else in the order of
    their first rows, and the classes are 0 to the largest label present.
    """
    try:
        return _arrays(file) if file.suffix.lower() == ".npz" else _table(file, seed)
    except FileNotFoundError:
        raise InputError(f"{file}: no such file") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error})") from None


def _arrays(file: Path) -> Dataset:
    try:
        with np.load(file, allow_pickle=False) as content:
            a = {name: np.asarray(content[name]) for name in content.files}
    except FileNotFoundError:
        raise
    except UNREADABLE as error:
        raise InputError(f"{file}: not a readable .npz file of plain arrays ({error})") from None
    for name in ("x", "y", "client", "test_x"):
        if name not in a:
            raise InputError(f"{file}: the array '{name}' is missing; x, y, client and test_x are needed")
    for rows, names in (("training", ("x", "y", "client")), ("test", ("test_x", "test_y"))):
        lengths = {name: a[name].shape[0] if a[name].ndim else 0 for name in names if name in a}
        if len(set(lengths.values())) > 1:
            said = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise InputError(f"{file}: the {rows} arrays differ in length ({said})")
    y = _labels(file, "y", a["y"])
    test_y = _labels(file, "test_y", a["test_y"]) if "test_y" in a else None
    classes = None
    if "classes" in a:
        if a["classes"].size != 1 or a["classes"].dtype.kind not in "iu" or a["classes"].item() < 2:
            raise InputError(f"{file}: 'classes' must be one integer of at least 2, the number of classes")
        classes = int(a["classes"].item())
    client = _ids(file, "client", a["client"])
    clients = tuple(_ids(file, "clients", a["clients"]).tolist()) if "clients" in a else _enrolment(client)
    return _dataset(file, a["x"], y, client, a["test_x"], test_y, classes, clients)


def _table(file: Path, seed: int) -> Dataset:
    table = _read_table(file)
    names = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{file}: two columns are called '{twice[0]}'")
    for name in ("client", "label"):
        if name not in names:
            raise InputError(f"{file}: the column '{name}' is missing; a table needs 'client' and 'label'")
    features = [name for name in names if name not in ("client", "label", "test")]
    if not features or not len(table):
        raise InputError(f"{file}: a table needs at least one row and one feature column beside client, label and test")
    y = _labels(file, "label", _complete(file, "label", table))
    client = _ids(file, "client", _complete(file, "client", table))
    x = np.empty((len(table), len(features)), dtype=np.float32)
    for i, name in enumerate(features):
        x[:, i] = _feature(file, name, table[name])
    if "test" in names:
        test = _complete(file, "test", table)
        if not (test.dtype == bool or (test.dtype.kind in "iu" and np.isin(test, (0, 1)).all())):
            raise InputError(f"{file}: the column 'test' must hold true and false, or 1 and 0")
        train = ~test.astype(bool)
    else:
        # a row with a NaN is not for testing: its client is isolated for it, and the run goes on
        train = three_quarters(client, seed) | ~np.isfinite(x).all(axis=1)
    return _dataset(file, x[train], y[train], client[train], x[~train], y[~train], None, _enrolment(client[train]))


def _read_table(file: Path) -> pyarrow.Table:
    import pyarrow
    from pyarrow import csv, parquet

    try:
        if file.suffix.lower() == ".parquet":
            return parquet.read_table(file)
        # One block, so that a column's type is guessed from all of it: it may start with whole numbers and go on
        # with others.
        whole = csv.ReadOptions(block_size=min(file.stat().st_size + 1, 2**31 - 1))
        return csv.read_csv(file, read_options=whole)
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {' '.join(str(error).split())}") from None


def _complete(file: Path, name: str, table: pyarrow.Table) -> np.ndarray:
    column = table[name]
    if column.null_count:
        row = column.is_null().to_numpy().argmax()
        raise InputError(f"{file}: the column '{name}' has no value in row {row} (the first row is 0)")
    return np.array(column.to_pylist())


def _feature(file: Path, name: str, column: pyarrow.ChunkedArray) -> np.ndarray:
    """The column's numbers; a value that is missing becomes NaN (and isolates its client)."""
    from pyarrow import types

    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind):
        values = column.to_pylist()
        row = next((i for i, value in enumerate(values) if not _reads_as_number(value)), 0)
        raise InputError(
            f"{file}: the column '{name}' holds {values[row]!r} in row {row} (the first is 0); features are numbers"
        )
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise InputError(
            f"{file}: the column '{name}' holds {kind}, but features are numbers; encode it or leave it out"
        )
    values = column.to_numpy()
    return values.astype(np.float32) if values.dtype != object else np.array(values, dtype=np.float32)


def _reads_as_number(text: str | None) -> bool:
    try:
        float(text or "nan")
    except ValueError:
        return False
    return True


def _labels(file: Path, name: str, values: np.ndarray) -> np.ndarray:
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise InputError(f"{file}: '{name}' holds {_kind(values)}; labels must be integers 0, 1, 2, ...")
    outside = (values < 0) | (values > np.iinfo(np.int32).max)
    if outside.any():
        row = int(outside.argmax())
        raise InputError(f"{file}: '{name}' row {row} is {values[row]}; labels must be integers 0, 1, 2, ...")
    return values.astype(np.int32)


def _ids(file: Path, name: str, values: np.ndarray) -> np.ndarray:
    if values.ndim != 1 or values.dtype.kind not in "iuU":
        raise InputError(f"{file}: '{name}' holds {_kind(values)}; client ids must be integers or text")
    return values


def _kind(values: np.ndarray) -> str:
    if values.ndim != 1:
        return f"an array of {values.ndim} dimensions"
    return "text" if values.dtype.kind == "U" else f"values of type {values.dtype}"


def _enrolment(client: np.ndarray) -> tuple[Hashable, ...]:
    ids, first = np.unique(client, return_index=True)
    if ids.dtype.kind == "U":
        ids = ids[np.argsort(first)]
    return tuple(ids.tolist())


def _dataset(
    file: Path,
    x: Any,
    y: Any,
    client: Any,
    test_x: Any,
    test_y: Any,
    classes: int | None,
    clients: tuple[Hashable, ...],
) -> Dataset:
    if not len(y) or not len(test_x):
        raise InputError(f"{file}: there are {len(y)} rows for training and {len(test_x)} for testing; both need some")
    labels = [y] if test_y is None else [y, test_y]
    largest = max(int(values.max()) for values in labels)
    if classes is None:
        classes = max(2, largest + 1)
    try:
        not_too_many(classes)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    if largest >= classes:
        raise InputError(f"{file}: there is a label {largest}, but the {classes} classes are 0 to {classes - 1}")
    unknown = set(client.tolist()) - set(clients)
    if unknown:
        raise InputError(f"{file}: client {min(unknown)!r} has rows but is not in 'clients', the enrolment")
    return Dataset(file.name, x, y, test_x, test_y, classes, client, clients)
