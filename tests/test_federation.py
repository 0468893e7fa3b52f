"""What a federation accepts, refuses, and isolates; how clients get their numbers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from fedquorum import Federation, InputError


def small(**changes: Any) -> dict[str, Any]:
    return {
        "x": np.arange(12, dtype=np.float32).reshape(6, 2),
        "y": np.array([0, 1, 2, 0, 1, 2]),
        "client": ["b", "a", "b", "c", "a", "b"],
        "test_x": np.zeros((2, 2), dtype=np.float32),
        "test_y": np.array([0, 2]),
    } | changes


def test_rows_are_sorted_by_client_and_keep_their_order_within_one() -> None:
    f = Federation(**small())
    assert f.clients == ("b", "a", "c")
    assert f.sizes.tolist() == [3, 2, 1]
    assert f.examples(0)[0].tolist() == [[0, 1], [4, 5], [10, 11]]
    assert f.examples(0)[1].tolist() == [0, 2, 2]
    assert f.examples(2)[1].tolist() == [0]
    assert f.classes == 3


def test_integer_ids_are_numbered_ascending_whatever_the_row_order() -> None:
    assert Federation(**small(client=[7, 3, 7, 5, 3, 7])).clients == (3, 5, 7)


@pytest.mark.parametrize("ids", [[("x", 1), ("y", 2)], [1.5, "mixed"], [None, frozenset({1})]])
def test_any_hashable_id_is_kept(ids: list[Any]) -> None:
    f = Federation(**small(client=[ids[0]] * 3 + [ids[1]] * 3))
    assert f.clients == tuple(ids)


def test_the_enrolment_decides_the_numbers() -> None:
    f = Federation(**small(clients=("c", "b", "a")))
    assert f.clients == ("c", "b", "a")
    assert f.sizes.tolist() == [1, 3, 2]


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, 1e300])
def test_a_client_with_a_value_that_is_no_number_is_named_and_isolated(poison: float) -> None:
    x = np.arange(12, dtype=np.float64).reshape(6, 2)
    x[1, 0] = poison  # client "a"
    with pytest.warns(UserWarning, match="isolated.*'a'"):
        f = Federation(**small(x=x))
    assert f.isolated_clients == ("a",)
    assert f.isolated.tolist() == [False, True, False]
    assert (f.examples(1)[0] == 0).all()
    assert (f.examples(0)[0] == Federation(**small()).examples(0)[0]).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": np.zeros(6)}, "x has 1 dimensions"),
        ({"x": np.zeros((5, 2))}, "x has 5 rows, y has 6"),
        ({"x": np.zeros((6, 0))}, "no values"),
        ({"x": np.full((6, 2), "a")}, "real numbers"),
        ({"x": np.zeros((6, 2), dtype=complex)}, "real numbers"),
        ({"x": np.zeros((6, 2), dtype=np.uint8)}, "x holds uint8 but test_x holds float32"),
        ({"x": np.zeros((6, 3))}, "they must agree"),
        ({"y": np.zeros(6)}, "labels of type float64"),
        ({"y": np.zeros((6, 1), dtype=int)}, "one label per example"),
        ({"y": [0, 1, 2, 0, 1, 3], "classes": 3}, "y row 5 has label 3, outside the classes 0 to 2"),
        ({"y": [0, 1, 2, 0, 1, -1]}, "y row 5 has label -1"),
        ({"test_y": [0, 9], "classes": 3}, "test_y row 1 has label 9"),
        ({"test_y": [0.0, 1.0]}, "test_y holds labels of type float64"),
        ({"test_y": [0]}, "test_x has 2 rows but test_y has 1"),
        ({"test_x": np.zeros((0, 2), dtype=np.float32), "test_y": None}, "nothing to vote on"),
        ({"test_x": np.array([[0, 0], [0, np.nan]])}, "test_x row 1 has a NaN"),
        ({"client": ["a"] * 6}, "one client only"),
        ({"client": ["a", "b"]}, "client has 2"),
        ({"client": [["a"]] * 6}, "hashable"),
        ({"client": np.zeros((6, 1))}, "client has 2 dimensions"),
        ({"clients": ("a", "b", "c", "d")}, "client 'd' is enrolled but has no examples"),
        ({"clients": ("a", "b")}, "client 'c' has examples but is not in clients"),
        ({"clients": ("a", "b", "c", "a")}, "twice"),
        ({"classes": 1}, "classes is 1"),
    ],
)
def test_wrong_input_is_refused_in_one_line(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as error:
        Federation(**small(**changes))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_from_arrays_copies() -> None:
    arguments = small()
    f = Federation.from_arrays(**arguments)
    arguments["x"][:] = 99
    assert f.x.max() == 11


def test_the_fingerprint_sees_every_part() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bad = np.arange(12, dtype=np.float32).reshape(6, 2)
        bad[0, 0] = np.nan
        variants = [
            {},
            {"x": np.arange(12, dtype=np.float32).reshape(6, 2) + 1e-6},
            {"y": [0, 1, 2, 0, 1, 1]},
            {"client": ["b", "a", "b", "c", "a", "a"]},
            {"client": ["B", "a", "B", "c", "a", "B"]},
            {"test_x": np.ones((2, 2), dtype=np.float32)},
            {"test_y": [0, 1]},
            {"test_y": None},
            {"classes": 4},
            {"clients": ("a", "b", "c")},
            {"x": bad},
        ]
        assert len({Federation(**small(**change)).fingerprint for change in variants}) == len(variants)
    assert Federation(**small()).fingerprint == Federation(**small()).fingerprint
