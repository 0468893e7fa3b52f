"""The run folder: what is written is whole, what is damaged is noticed, what is another run's is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedquorum import InputError, MachineError
from fedquorum.runs import (
    Run,
    Shard,
    ShardDamaged,
    Task,
    load_run,
    locked,
    missing,
    open_run,
    read_parameters,
    read_shard,
    write_shard,
    write_whole,
)

RECORD: dict[str, Any] = {
    "data": {"name": "mine.npz"},
    "clients": {"partition": "natural"},
    "subsamples": {"size": 2, "count": 10, "design": "independent", "seed": 1},
    "algorithm": {"rounds": 3, "learning_rate": 0.1, "seed": 1},
    "certify": {"alpha": 0.001, "delta": 0.001},
    "output": {"keep_models": False, "models_per_shard": 4},
    "run": {"clients": 5, "inputs": 6, "classes": 24, "fingerprint": "abc", "code": ""},
    "made_by": {"draw_commitment": "abc"},
}


def changed(section: str, **values: Any) -> dict[str, Any]:
    return RECORD | {section: RECORD[section] | values}


def shard(*models: int) -> Shard:
    votes = np.arange(len(models) * 6, dtype=np.uint8).reshape(len(models), 6)
    return Shard(np.array(models), votes, ("",) * len(models), "here")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return open_run(tmp_path / "run", RECORD)


def test_a_shard_comes_back_as_it_was_written(run: Run) -> None:
    write_shard(run, 2, Shard(np.array([8, 9]), np.eye(2, 6, dtype=np.uint8), ("", "ValueError: no"), "here"))
    back = read_shard(run, 2)
    assert back is not None
    assert back.models.tolist() == [8, 9]
    assert back.votes.tolist() == np.eye(2, 6).tolist()
    assert back.failures == ("", "ValueError: no")
    assert read_shard(run, 3) is None


def test_the_same_shard_has_the_same_bytes(run: Run, tmp_path: Path) -> None:
    other = open_run(tmp_path / "other", RECORD)
    for each in (run, other):
        write_shard(each, 0, shard(0, 1))
    assert run.shard_path(0).read_bytes() == other.shard_path(0).read_bytes()


@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.9, 0.999])
def test_a_truncated_shard_is_noticed(run: Run, part: float) -> None:
    write_shard(run, 0, shard(0, 1, 2, 3))
    content = run.shard_path(0).read_bytes()
    run.shard_path(0).write_bytes(content[: int(part * len(content))])
    with pytest.raises(ShardDamaged, match="00000"):
        read_shard(run, 0)
    tasks, damage = missing(run, 10)
    assert tasks[0] == Task(0, (0, 1, 2, 3))
    assert len(damage) == 1


def test_any_flipped_byte_is_noticed_or_harmless(run: Run) -> None:
    write_shard(run, 0, shard(0, 1, 2, 3))
    content = bytearray(run.shard_path(0).read_bytes())
    for position in range(len(content)):
        flipped = bytes([*content[:position], content[position] ^ 0x10, *content[position + 1 :]])
        run.shard_path(0).write_bytes(flipped)
        try:
            back = read_shard(run, 0)
        except ShardDamaged:
            continue
        assert back is not None  # a byte of the zip's own book-keeping (a date, say) that nobody reads
        assert back.votes.tolist() == shard(0, 1, 2, 3).votes.tolist()


def test_votes_that_were_exchanged_are_noticed(run: Run) -> None:
    write_shard(run, 0, shard(0, 1))
    with np.load(run.shard_path(0)) as file:
        content = dict(file)
    content["votes"] = content["votes"][::-1]
    np.savez_compressed(run.shard_path(0), **content)
    with pytest.raises(ShardDamaged, match="SHA-256"):
        read_shard(run, 0)


def test_a_shard_of_another_run_is_noticed(run: Run, tmp_path: Path) -> None:
    other = open_run(tmp_path / "other", changed("algorithm", rounds=4))
    write_shard(other, 0, shard(0, 1))
    run.shard_path(0).write_bytes(other.shard_path(0).read_bytes())
    with pytest.raises(ShardDamaged):
        read_shard(run, 0)


@pytest.mark.parametrize(
    "models",
    [[0, 1, 4], [3, 4], [1, 0], [1, 1], []],
    ids=["another shard's too", "another shard's", "not in order", "twice", "none"],
)
def test_a_shard_holds_each_of_its_own_models_once(run: Run, models: list[int]) -> None:
    # its digest is right: whoever can write files can compute that
    write_shard(run, 0, Shard(np.array(models, dtype=int), np.zeros((len(models), 6), int), ("",) * len(models), ""))
    with pytest.raises(ShardDamaged, match="does not hold what shard 0 may hold"):
        read_shard(run, 0)


@pytest.mark.parametrize("votes", [np.zeros((2, 5), int), np.zeros((2, 1), int), np.zeros((2, 6)), np.zeros(6, int)])
def test_a_shard_holds_a_label_for_every_input(run: Run, votes: np.ndarray) -> None:
    write_shard(run, 0, Shard(np.arange(2), votes, ("", ""), ""))
    with pytest.raises(ShardDamaged, match="may hold"):
        read_shard(run, 0)


@pytest.mark.parametrize("rate", [5e-05, 1e-5, 0.1, 1.0, 123456789.125])
def test_a_number_is_the_same_however_it_is_spelled(tmp_path: Path, rate: float) -> None:
    run = open_run(tmp_path / "run", changed("algorithm", learning_rate=rate))
    write_shard(run, 0, shard(0, 1))
    again = load_run(run.path)
    assert again.key == run.key == open_run(run.path, again.record).key
    assert read_shard(again, 0) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("models_per_shard = 4", "models_per_shard = 0"),
        ("[made_by]", "[made_for]"),
        ("size = 2", 'size = "2"'),
        ("inputs = 6", "inputs = -6"),
    ],
)
def test_a_damaged_record_is_refused(run: Run, old: str, new: str) -> None:
    path = run.path / "run.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=r"run.toml is damaged: '\w+.\w+'"):
        load_run(run.path)


def test_a_folder_in_which_nothing_was_learnt_yet_takes_another_configuration(run: Run) -> None:
    assert open_run(run.path, changed("algorithm", rounds=4)).key == load_run(run.path).key != run.key


def test_parameters_are_kept_and_checked(tmp_path: Path) -> None:
    run = open_run(tmp_path / "run", changed("output", keep_models=True))
    trees = [{"dense/w": np.full((2, 3), i, dtype=np.float32), "b": np.zeros(1, np.float32)} for i in range(2)]
    write_shard(run, 0, shard(0, 1), trees)
    back = read_shard(run, 0)
    assert back is not None
    kept = read_parameters(run, 0, back)
    assert kept[1]["dense/w"].tolist() == trees[1]["dense/w"].tolist()
    assert missing(run, 2)[0] == []
    content = bytearray(run.parameters_path(0).read_bytes())
    content[-1] ^= 1
    run.parameters_path(0).write_bytes(content)
    with pytest.raises(ShardDamaged, match="safetensors"):
        read_parameters(run, 0, back)
    assert missing(run, 2)[0] == [Task(0, (0, 1))]


def test_only_what_is_missing_is_to_do(run: Run) -> None:
    write_shard(run, 0, shard(0, 1, 2, 3))
    write_shard(run, 1, shard(4, 5))
    assert missing(run, 6) == ([], [])
    assert missing(run, 10)[0] == [Task(1, (6, 7)), Task(2, (8, 9))]


@pytest.mark.parametrize(
    ("section", "key", "value", "allowed"),
    [
        ("subsamples", "count", 20, True),
        ("certify", "alpha", 0.01, True),
        ("subsamples", "size", 3, False),
        ("subsamples", "seed", 2, False),
        ("algorithm", "rounds", 4, False),
        ("algorithm", "learning_rate", 0.2, False),
        ("output", "models_per_shard", 5, False),
    ],
)
def test_a_folder_serves_one_configuration(run: Run, section: str, key: str, value: Any, allowed: bool) -> None:
    record = changed(section, **{key: value})
    write_shard(run, 0, shard(0, 1))
    if allowed:
        assert open_run(run.path, record).key == run.key
        assert load_run(run.path).key == run.key
    else:
        with pytest.raises(InputError, match=rf"{section}.{key}: {RECORD[section][key]} there, {value} here"):
            open_run(run.path, record)
        assert load_run(run.path).record["algorithm"]["rounds"] == 3  # nothing was overwritten


def test_two_writers_cannot_share_a_folder(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from fedquorum.runs import locked
with locked(Path({str(tmp_path)!r})):
    print("mine", flush=True)
    input()
"""
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "mine\n"
    with pytest.raises(InputError, match="in use by another"), locked(tmp_path):
        pass
    other.kill()  # even so, the lock does not stay behind
    other.wait()
    with locked(tmp_path):
        pass


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_whole(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(MachineError, match="No space left"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot be written.*--out"):
        open_run(tmp_path / "file" / "run", RECORD)
