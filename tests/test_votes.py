"""Votes: what is accepted, what is refused and in which words, and that counting counts."""

import dataclasses
import zipfile

import numpy as np
import pytest

from fedquorum.errors import InputError
from fedquorum.votes import Votes, load_votes, save_votes

GOOD = {"votes": [[0, 1], [2, 1], [0, 0]], "subsamples": [[0, 1], [2, 1], [3, 4]], "clients": 5}


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.uint32])
@pytest.mark.parametrize("classes", [2, 5, 32, 33, 400])
def test_counts_are_those_of_a_plain_loop(classes, kind):
    # More inputs than a block, more models than a byte counts, a label that nobody votes for, nearly unanimous columns.
    rng = np.random.default_rng(classes)
    N, d = 600, 4100
    votes = rng.integers(0, min(classes - 1, 255), (N, d))
    votes[:, ::7] = 0
    given = Votes(votes.astype(kind), np.arange(N)[:, None] % 9, clients=9, classes=classes)
    counts = given.counts()
    assert counts.shape == (d, classes)
    for t in (0, 1, 7, 4095, 4096, d - 1):
        assert counts[t].tolist() == [int((votes[:, t] == label).sum()) for label in range(classes)]
    assert (counts.sum(axis=1) == N).all()


def test_one_model_one_input():
    assert Votes([[1]], [[0]], clients=1).counts().tolist() == [[0, 1]]


def test_subsamples_are_kept_in_order_and_votes_as_they_came():
    votes = Votes(**GOOD)
    assert votes.subsamples.tolist() == [[0, 1], [1, 2], [3, 4]]
    assert votes.votes.tolist() == GOOD["votes"]


def test_classes_come_from_votes_and_labels_unless_given():
    assert Votes(**GOOD).classes == 3
    assert Votes(**GOOD, labels=[0, 6]).classes == 7
    assert Votes(**GOOD, classes=12).classes == 12
    assert Votes([[0]], [[0]], clients=1).classes == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"votes": [[0.0, 1.0]] * 3}, "'votes' holds values of type float64; they must be integers"),
        ({"votes": [[True, False]] * 3}, "type bool"),
        ({"votes": [0, 1, 2]}, "'votes' has 1 dimensions, but 2 are needed"),
        ({"votes": [[0, 1], [0], [1, 1]]}, "'votes' is ragged"),
        ({"votes": np.zeros((3, 0), int)}, "at least one model and one input"),
        ({"votes": np.zeros((0, 2), int), "subsamples": np.zeros((0, 2), int)}, "at least one model and one input"),
        ({"votes": [[0, 1]]}, "'votes' has 1 rows but 'subsamples' has 3"),
        ({"votes": [[0, -1]] * 3}, "'votes' holds a label outside the classes 0 to"),
        ({"classes": 2}, "'votes' holds a label outside the classes 0 to 1"),
        ({"classes": 1}, "'classes' is 1; it must be an integer of at least 2"),
        ({"classes": 2.5}, "'classes' is 2.5"),
        ({"votes": [[10**9, 0]] * 3}, "1000000001 classes; number the labels 0, 1, 2"),
        ({"labels": [0, 1, 2]}, "'labels' has 3 entries but 'votes' has 2 columns"),
        ({"labels": [0.0, 1.0]}, "'labels' holds values of type float64"),
        ({"labels": [0, 4], "classes": 3}, "'labels' holds a label outside the classes 0 to 2"),
        ({"labels": [-1, 0]}, "'labels' holds a label outside"),
        ({"subsamples": [[0, 1], [2, 2], [3, 4]]}, "'subsamples' row 1 holds a client twice"),
        (
            {"subsamples": [[0, 1], [2, 1], [3, 5]]},
            "'subsamples' row 2 names an unknown client; client numbers run from 0 to 4",
        ),
        ({"subsamples": [[-1, 1], [2, 1], [3, 4]]}, "'subsamples' row 0 names an unknown client"),
        ({"subsamples": [[0.0, 1.0]] * 3}, "'subsamples' holds values of type float64"),
        ({"subsamples": np.zeros((3, 0), int)}, "'subsamples' has 0 columns"),
        ({"clients": 1}, "'subsamples' has 2 columns (k); with 1 clients"),
        ({"clients": 0}, "'clients' is 0; it must be an integer of at least 1"),
        ({"clients": "five"}, "'clients' is 'five'"),
        ({"clients": 4.5}, "'clients' is 4.5"),
        ({"clients": float("nan")}, "'clients' is nan"),
        ({"clients": None}, "'clients' is None"),
        ({"clients": np.zeros((40, 40))}, "'clients' is array("),
        ({"design": "random"}, "'design' is 'random'; it must be one of independent, distinct, balanced, disjoint"),
        ({"design": "disjoint"}, "'design' is 'disjoint', but a client is in two subsamples"),
        ({"design": "balanced"}, "'design' is 'balanced'"),
        ({"design": "distinct", "subsamples": [[0, 1], [1, 0], [3, 4]]}, "'distinct', but a subsample occurs twice"),
    ],
)
def test_wrong_input_is_refused_in_one_line(change, said):
    changed = GOOD | change
    if changed.get("design") == "balanced":
        changed["subsamples"] = [[0, 1], [0, 1], [0, 1]]
    with pytest.raises(InputError) as error:
        Votes(**changed)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_keeps_everything(tmp_path):
    votes = Votes(**GOOD, labels=[0, 1], classes=4, design="independent")
    save_votes(votes, tmp_path / "votes.npz")
    again = load_votes(tmp_path / "votes.npz")
    for name in ("votes", "subsamples", "labels"):
        assert getattr(again, name).tolist() == getattr(votes, name).tolist()
    assert (again.clients, again.classes, again.design) == (5, 4, "independent")


def test_a_file_of_the_bare_minimum(tmp_path):
    np.savez(tmp_path / "votes.npz", **{name: np.array(value) for name, value in GOOD.items()})
    votes = load_votes(tmp_path / "votes.npz")
    assert (votes.design, votes.labels, votes.classes) == (None, None, 3)


def test_files_of_other_languages_may_hold_floats_for_clients_and_bytes_for_the_design(tmp_path):
    np.savez(tmp_path / "votes.npz", **GOOD | {"clients": [[5.0]], "design": np.array([b"independent"])})
    votes = load_votes(tmp_path / "votes.npz")
    assert (votes.clients, votes.design) == (5, "independent")


@pytest.mark.parametrize("missing", ["votes", "subsamples", "clients"])
def test_a_missing_array_is_named(tmp_path, missing):
    np.savez(tmp_path / "votes.npz", **{name: value for name, value in GOOD.items() if name != missing})
    with pytest.raises(InputError, match=f"votes.npz: the array '{missing}' is missing"):
        load_votes(tmp_path / "votes.npz")


def test_what_is_wrong_inside_a_file_is_said_with_its_path(tmp_path):
    np.savez(tmp_path / "votes.npz", **GOOD | {"votes": [[0.5, 1.0]] * 3})
    with pytest.raises(InputError, match=r"votes\.npz: 'votes' holds values of type float64"):
        load_votes(tmp_path / "votes.npz")


def test_no_such_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        load_votes(tmp_path / "votes.npz")


def unreadable(path, kind):
    if kind == "text":
        path.write_text("not a zip\n")
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "one array":
        with path.open("wb") as file:
            np.save(file, np.zeros((2, 2), int))
    elif kind == "pickled":
        np.savez(path, votes=np.array([{"a": 1}, None], dtype=object))
    elif kind == "a directory":
        path.mkdir()
    elif kind == "no arrays":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("readme.txt", "hello")
    else:
        np.savez_compressed(path, **GOOD | {"votes": np.random.default_rng(0).integers(0, 9, (3, 5000))})
        content = path.read_bytes()
        if kind == "truncated":
            path.write_bytes(content[: len(content) // 2])
        else:  # a flipped stretch in the middle
            middle = len(content) // 3
            path.write_bytes(
                content[:middle] + bytes(255 - b for b in content[middle : middle + 50]) + content[middle + 50 :]
            )


@pytest.mark.parametrize(
    "kind", ["text", "empty", "one array", "pickled", "a directory", "no arrays", "truncated", "altered"]
)
def test_an_unreadable_file_is_refused_in_one_line(tmp_path, kind):
    path = tmp_path / "votes.npz"
    unreadable(path, kind)
    with pytest.raises(InputError) as error:
        load_votes(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_classes_that_nobody_stated_are_not_written_as_if_somebody_had(tmp_path):
    for classes in (None, 3):
        save_votes(Votes([[0, 2]], [[0]], clients=2, classes=classes), tmp_path / "votes.npz")
        loaded = load_votes(tmp_path / "votes.npz")
        assert (loaded.classes, loaded.classes_stated) == (3, classes is not None)


def test_classes_that_were_counted_stay_counted() -> None:
    counted = Votes([[0, 1], [1, 2]], [[0], [1]], clients=3)
    assert not counted.classes_stated
    assert not dataclasses.replace(counted, design="distinct").classes_stated
    assert dataclasses.replace(counted, classes=3, classes_stated=True).classes_stated
