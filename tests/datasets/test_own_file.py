"""A user's own file: read as its columns say, refused in one line that names the column where it cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from fedquorum.datasets import fetch, load, partition
from fedquorum.errors import InputError

ROWS = {
    "client": ["north", "south", "north", "east", "south", "east"],
    "label": [0, 1, 1, 0, 1, 0],
    "size": [1, 2, 3, 4, 5, 6],
    "weight": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5],
    "test": [0, 0, 0, 0, 1, 1],
}


def table(path: Path, **columns: Any) -> str:
    """ROWS with columns replaced, or left out where None, written by the path's ending."""
    content = {name: values for name, values in (ROWS | columns).items() if values is not None}
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.table(content), path)
    else:
        lines = [",".join(content)] + [",".join(str(v) for v in row) for row in zip(*content.values(), strict=True)]
        path.write_text("\n".join(lines) + "\n")
    return str(path)


def arrays(path: Path, **changes: Any) -> str:
    content = {
        "x": np.arange(12.0).reshape(4, 3),
        "y": np.array([0, 1, 2, 0]),
        "client": np.array([7, 3, 7, 3]),
        "test_x": np.ones((2, 3)),
        "test_y": np.array([1, 2]),
    } | changes
    np.savez(path, **{name: values for name, values in content.items() if values is not None})
    return str(path)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_gives_features_in_their_order_and_owners_by_first_row(tmp_path: Path, ending: str) -> None:
    data = load(table(tmp_path / f"mine.{ending}"))
    assert data.x.tolist() == [[1, 0.5], [2, 1.5], [3, 2.5], [4, 3.5]] and data.x.dtype == np.float32
    assert data.y.tolist() == [0, 1, 1, 0] and data.y.dtype == np.int32
    assert data.test_x.tolist() == [[5, 4.5], [6, 5.5]] and data.test_y is not None and data.test_y.tolist() == [1, 0]
    client, clients = partition(data, "natural")
    assert client.tolist() == ["north", "south", "north", "east"] and clients == ("north", "south", "east")
    assert (data.classes, data.name) == (2, f"mine.{ending}")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_boolean_columns_may_mark_the_test_rows_and_be_features(tmp_path: Path, ending: str) -> None:
    flags = [False, True, False, True, False, True]
    text = ["false", "true"] * 3
    data = load(
        table(
            tmp_path / f"b.{ending}",
            test=text if ending == "csv" else flags,
            size=[0, 1] * 3 if ending == "csv" else flags,
        )
    )
    assert data.x[:, 0].tolist() == [0, 0, 0] and data.test_x[:, 0].tolist() == [1, 1, 1]


def test_integer_owners_are_enrolled_in_ascending_order(tmp_path: Path) -> None:
    data = load(table(tmp_path / "t.csv", client=[30, 4, 30, 11, 4, 11]))
    assert data.clients == (4, 11, 30)


def test_without_a_test_column_three_quarters_of_each_client_are_for_training(tmp_path: Path) -> None:
    many: dict[str, Any] = {name: values * 4 for name, values in ROWS.items()} | {"test": None}
    file = table(tmp_path / "t.csv", **many)
    data = load(file, seed=3)
    assert data.client is not None
    assert np.unique(data.client, return_counts=True)[1].tolist() == [6, 6, 6] and len(data.test_x) == 6
    assert np.array_equal(load(file, seed=3).x, data.x)
    assert not np.array_equal(load(file, seed=4).x, data.x)


def test_a_missing_feature_becomes_nan_so_that_its_client_can_be_isolated(tmp_path: Path) -> None:
    data = load(table(tmp_path / "t.csv", weight=["", 1.5, 2.5, 3.5, 4.5, 5.5]))
    assert np.isnan(data.x[0, 1]) and np.isfinite(data.x[1:]).all()
    data = load(table(tmp_path / "t.parquet", size=[None, 2, 3, 4, 5, 6]))
    assert np.isnan(data.x[0, 0]) and np.isfinite(data.x[1:]).all()


def test_a_column_may_start_with_whole_numbers_and_go_on_with_others(tmp_path: Path) -> None:
    """pyarrow guesses a column's type from its first megabyte unless told otherwise."""
    rows = 200_000
    lines = ["client,label,a,test"] + [f"{i % 3},0,1,0" for i in range(rows)] + ["x7,1,0.5,1"]
    (tmp_path / "long.csv").write_text("\n".join(lines))
    data = load(str(tmp_path / "long.csv"))
    assert data.test_x.tolist() == [[0.5]] and data.clients == ("0", "1", "2")


def test_arrays_are_taken_as_they_are(tmp_path: Path) -> None:
    data = load(
        arrays(tmp_path / "a.npz", x=np.zeros((4, 2, 2), np.uint8), test_x=np.zeros((2, 2, 2), np.uint8), classes=5)
    )
    assert (data.x.dtype, data.x.shape, data.classes) == (np.uint8, (4, 2, 2), 5)
    assert data.clients == (3, 7)


def test_arrays_may_name_the_enrolment_and_leave_out_the_test_labels(tmp_path: Path) -> None:
    data = load(arrays(tmp_path / "a.npz", clients=[7, 1, 3], test_y=None))
    assert data.clients == (7, 1, 3) and data.test_y is None and data.classes == 3


def test_the_file_may_be_named_relative_to_path(tmp_path: Path) -> None:
    arrays(tmp_path / "a.npz")
    assert load("a.npz", tmp_path).name == "a.npz"
    assert fetch("a.npz", tmp_path) == tmp_path / "a.npz"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"client": None}, "column 'client' is missing"),
        ({"label": None}, "column 'label' is missing"),
        ({"label": [0.0, 1.5, 1.0, 0.0, 1.0, 0.0]}, "'label' holds values of type float64; labels must be integers"),
        ({"label": list("abcabc")}, "'label' holds text; labels must be integers"),
        ({"label": [0, 1, -1, 0, 1, 0]}, "'label' row 2 is -1"),
        ({"label": [0, 1, 2**40, 0, 1, 0]}, "'label' row 2 is"),
        ({"client": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]}, "'client' holds values of type float64; client ids"),
        ({"test": [0, 1, 2, 0, 1, 0]}, "'test' must hold true and false"),
        ({"test": list("yesyes")}, "'test' must hold true and false"),
        ({"test": [1] * 6}, "0 rows for training and 6 for testing"),
        ({"test": [0] * 6}, "6 rows for training and 0 for testing"),
        ({"size": None, "weight": None}, "at least one row and one feature"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_in_one_line(
    tmp_path: Path, ending: str, columns: dict[str, Any], words: str
) -> None:
    file = table(tmp_path / f"t.{ending}", **columns)
    with pytest.raises(InputError, match=words) as error:
        load(file)
    assert str(error.value).startswith(file) and "\n" not in str(error.value)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_feature_that_is_no_number_is_named_with_its_row(tmp_path: Path, ending: str) -> None:
    with pytest.raises(InputError, match=r"column 'size' holds 'big' in row 3 .*; features are numbers"):
        load(table(tmp_path / f"t.{ending}", size=["1", "2", "3", "big", "5", "6"]))


def test_a_feature_of_another_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"column 'size' holds date32.*, but features are numbers"):
        load(table(tmp_path / "t.csv", size=["2024-01-01"] * 6))


def test_an_owner_or_label_that_is_missing_is_named_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'client' has no value in row 3"):
        load(table(tmp_path / "t.parquet", client=["a", "b", "c", None, "e", "f"]))
    with pytest.raises(InputError, match="'label' has no value in row 1"):
        load(table(tmp_path / "t.csv", label=[0, "", 1, 0, 1, 0]))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "t.csv: "),
        (b"client,label,a\n", "at least one row"),
        (b"client,label,a,a\n1,0,2,3\n", "two columns are called 'a'"),
        (b"client,label,a\n1,0\n", "Expected 3 columns, got 2"),
        (b"client,label,a\n\xff\xfe,0,1\nb,1,2\n", "t.csv: "),
    ],
)
def test_a_broken_csv_is_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InputError, match=words) as error:
        load(str(tmp_path / "t.csv"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["t.npz", "t.csv", "t.parquet"])
def test_a_file_that_is_not_there_or_not_what_its_ending_says(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no such file"):
        load(str(tmp_path / name))
    (tmp_path / name).write_bytes(b"\x00PAR1\x00not this")
    with pytest.raises(InputError) as error:
        load(str(tmp_path / name))
    assert name in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": None}, "array 'x' is missing"),
        ({"client": None}, "array 'client' is missing"),
        ({"test_x": None}, "array 'test_x' is missing"),
        ({"y": np.array([0.0, 1, 2, 0])}, "'y' holds values of type float64; labels must be integers"),
        ({"test_y": np.array([0.0, 1])}, "'test_y' holds values of type float64"),
        ({"y": np.array([[0], [1], [2], [0]])}, "'y' holds an array of 2 dimensions"),
        ({"y": np.array([0, 1, 2])}, r"training arrays differ in length \(x has 4, y has 3, client has 4\)"),
        ({"test_y": np.array([1])}, r"test arrays differ in length \(test_x has 2, test_y has 1\)"),
        ({"client": np.array([0.5, 1, 2, 3])}, "client ids must be integers or text"),
        ({"classes": np.array(2)}, "there is a label 2, but the 2 classes are 0 to 1"),
        ({"classes": np.array(2.5)}, "'classes' must be one integer"),
        ({"clients": np.array([7, 1])}, "client 3 has rows but is not in 'clients'"),
        ({"client": np.array([{}, 1, 2, 3], object)}, "not a readable .npz file of plain arrays"),
    ],
)
def test_arrays_that_cannot_be_used_are_refused_in_one_line(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    file = arrays(tmp_path / "a.npz", **changes)
    with pytest.raises(InputError, match=words) as error:
        load(file)
    assert str(error.value).startswith(file) and "\n" not in str(error.value)
