"""Parsed once, whole or not at all, whoever else writes at the same time."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedquorum.datasets import fetch, load, loading
from fedquorum.datasets.cache import arrays, store
from fedquorum.errors import InputError, MachineError

Files = dict[str, bytes]


def test_the_second_time_needs_neither_the_files_nor_a_parser(
    published: dict[str, Files], tmp_path: Path, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(tmp_path / "source", published["har"])
    first = load("har", source)

    def parse(*_: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr(loading, "parse_har", parse)
    load("har", source)
    for file in source.rglob("*.txt"):
        file.unlink()
    second = load("har")
    assert np.array_equal(first.x, second.x) and np.array_equal(first.test_y, second.test_y)


def test_fetch_returns_the_folder_with_the_arrays(
    published: dict[str, Files], tmp_path: Path, write: Callable[..., Path]
) -> None:
    folder = fetch("mnist", write(tmp_path / "source", published["mnist"]))
    assert folder == tmp_path / "cache" / "mnist"
    assert sorted(file.name for file in folder.iterdir()) == ["test_x.npy", "test_y.npy", "x.npy", "y.npy"]


def test_nothing_is_left_of_a_parse_that_failed(tmp_path: Path) -> None:
    def parse() -> dict[str, np.ndarray]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store(tmp_path / "set", ("x", "y"), parse)
    assert list(tmp_path.iterdir()) == []


def test_two_writers_at_once_both_end_with_the_whole_set(tmp_path: Path) -> None:
    both_parsing = threading.Barrier(2, timeout=20)
    failures: list[BaseException] = []

    def parse() -> dict[str, np.ndarray]:
        both_parsing.wait()
        return {"x": np.arange(5), "y": np.ones(3)}

    def write() -> None:
        try:
            store(tmp_path / "set", ("x", "y"), parse)
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    assert sorted(file.name for file in (tmp_path / "set").iterdir()) == ["x.npy", "y.npy"]
    assert arrays(tmp_path / "set", ["x", "y"])["x"].tolist() == [0, 1, 2, 3, 4]


def test_a_damaged_cache_says_which_folder_to_delete(tmp_path: Path) -> None:
    store(tmp_path / "set", ["x"], lambda: {"x": np.arange(1000)})
    file = tmp_path / "set" / "x.npy"
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(InputError, match=f"{tmp_path / 'set'}: damaged .*; delete its .npy files"):
        arrays(tmp_path / "set", ["x"])


def test_a_cache_that_cannot_be_written_is_the_users_to_move(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="set FEDQUORUM_CACHE"):
        store(tmp_path / "file" / "set", ["x"], dict)


def test_a_full_disk_is_the_machines_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(MachineError, match="disk is full"):
        store(tmp_path / "set", ["x"], lambda: {"x": np.arange(3)})
    assert list((tmp_path / "set").iterdir()) == []


def test_what_was_taken_out_of_the_cache_is_made_again_and_nothing_else_is_touched(tmp_path: Path) -> None:
    def parse() -> dict[str, np.ndarray]:
        return {"x": np.arange(3), "y": np.ones(2)}

    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train-images-idx3-ubyte").write_text("somebody keeps these here")
    for _ in range(2):
        store(tmp_path / "set", ["x", "y"], parse)
        assert arrays(tmp_path / "set", ["x", "y"])["y"].tolist() == [1, 1]
        (tmp_path / "set" / "y.npy").unlink()
    assert (tmp_path / "set" / "train-images-idx3-ubyte").exists()


def test_importing_the_room_is_light() -> None:
    heavy = "{'jax', 'sklearn', 'scipy', 'pooch', 'requests', 'pyarrow', 'rich'}"
    code = f"import sys, fedquorum.datasets; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
