"""`fedquorum verify` finds what was changed after the fact, whatever it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedquorum.runs import Shard, load_run, read_shard, write_shard
from tests.conftest import CommandResult, refused

Command = Callable[..., CommandResult]


@pytest.fixture
def run(command: Command, project: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert command("run", project(), "--out", tmp_path / "run", "--workers", 1)[0] == 0
    return tmp_path / "run"


def found(result: CommandResult, *words: str) -> None:
    assert result[0] == 1, result
    wrong = [line for line in result[1].splitlines() if line.startswith("MISMATCH")]
    assert len(wrong) == 1
    for word in words:
        assert word in wrong[0]


def test_an_honest_run_passes(command: Command, run: Path) -> None:
    code, out, _ = command("verify", run, "--retrain", 4)
    assert code == 0
    assert "4 models trained again, equal to the byte" in out
    assert "MISMATCH" not in out
    assert "not checked" not in out


def test_a_level_raised_by_one_is_found(command: Command, run: Path) -> None:
    path = run / "certificates" / "ideal.csv"
    lines = path.read_text().splitlines()
    index, label, level = lines[1].split(",")
    path.write_text("\n".join([lines[0], f"{index},{label},{int(level) + 1}", *lines[2:]]) + "\n")
    found(command("verify", run), "certificate ideal", "of 1 inputs is not")


def test_a_changed_parquet_is_found(command: Command, run: Path) -> None:
    path = run / "certificates" / "ideal.parquet"
    columns = pq.read_table(path).to_pydict()
    columns["label"][3] = (columns["label"][3] + 1) % 3
    pq.write_table(pa.table(columns), path)
    found(command("verify", run), "certificate ideal")


def test_a_prettier_accuracy_is_found(command: Command, run: Path) -> None:
    path = run / "summary.json"
    summary = json.loads(path.read_text())
    summary["ideal"]["certified_accuracy"][0] = 0.99
    path.write_text(json.dumps(summary))
    found(command("verify", run), "ideal", "certified_accuracy")


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("ideal", "n", 1000),
        ("ideal", "alpha", None),
        ("ideal", "alpha", 1e-9),
        ("ideal", "exact", True),
        ("ideal", "highest_level", 99),
        ("ideal", "abstained", 0),
        ("ideal", "statement", "Certain, for every input, whatever anybody does."),
        ("served", "delta", None),
        ("served", "isolated_clients", ["nobody"]),
        ("membership", "statement", "Certain, for every input (and more)."),
        ("membership", "alpha", 0.1),
        ("membership", "praise", "the best"),
    ],
)
def test_another_claim_in_the_summary_is_found(command: Command, run: Path, name: str, key: str, value: object) -> None:
    path = run / "summary.json"
    summary = json.loads(path.read_text())
    assert summary[name].get(key, "absent") != value
    summary[name][key] = value
    path.write_text(json.dumps(summary))
    found(command("verify", run), name)


def test_a_claim_that_is_gone_while_its_levels_stay_is_found(command: Command, run: Path) -> None:
    path = run / "summary.json"
    summary = json.loads(path.read_text())
    del summary["served"]
    path.write_text(json.dumps(summary))
    found(command("verify", run), "served", "does not say what they claim")


def test_another_statement_in_the_parquet_file_is_found(command: Command, run: Path) -> None:
    path = run / "certificates" / "served.parquet"
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"statement": "Certain."}), path)
    found(command("verify", run), "served", "something else")


def test_a_risk_that_no_float_holds_is_verified_as_it_was_spent(command: Command, run: Path) -> None:
    assert command("certify", run, "--alpha", "0.12500000000000000000000000000001", "--delta", "1/3")[0] == 0
    assert json.loads((run / "summary.json").read_text())["served"]["delta"] == "1/3"
    assert command("verify", run)[0] == 0


def test_certifying_anew_leaves_no_levels_that_nobody_claims(command: Command, run: Path) -> None:
    assert command("certify", run, "--certificate", "paper")[0] == 0
    assert {path.stem for path in (run / "certificates").iterdir()} == {"paper"}
    assert command("verify", run)[0] == 0


def test_subsamples_that_the_seed_does_not_draw_are_found(command: Command, run: Path) -> None:
    members = np.load(run / "subsamples.npy")
    members[5] = [0, 1, 2] if members[5].tolist() != [0, 1, 2] else [0, 1, 3]
    np.save(run / "subsamples.npy", members)
    assert command("verify", run)[0] == 1


def test_a_seed_that_was_shopped_for_is_found(command: Command, run: Path) -> None:
    path = run / "run.toml"
    path.write_text(path.read_text().replace("seed = 7", "seed = 8"))
    code, out, _ = command("verify", run)
    assert code == 1
    assert "not the one that was committed to" in out


def test_a_missing_and_a_truncated_shard_are_found(command: Command, run: Path) -> None:
    (run / "shards" / "00001.npz").unlink()
    path = run / "shards" / "00003.npz"
    path.write_bytes(path.read_bytes()[:100])
    code, out, _ = command("verify", run)
    assert code == 1
    assert "00001.npz is missing" in out
    assert "00003.npz cannot be read" in out


def test_votes_that_no_training_gives_are_found_by_training_again(command: Command, run: Path) -> None:
    # The forger did it well: the shard is whole, and certificates were computed from the forged votes.
    opened = load_run(run)
    shard = read_shard(opened, 2)
    assert shard is not None
    votes = shard.votes.copy()
    votes[1, :3] = (votes[1, :3] + 1) % 3
    write_shard(opened, 2, Shard(shard.models, votes, shard.failures, shard.platform))
    assert command("certify", run)[0] == 0
    assert command("verify", run)[0] == 0
    found(command("verify", run, "--retrain", 30), f"model {shard.models[1]}", "differs (3 votes)")


@pytest.mark.parametrize(
    ("differing", "words"),
    [
        (0, "30 models trained again, equal to the byte"),
        (4, "30 models of another class of platform trained again: 0.9000 of votes agree, 0.9000 at the least"),
        (5, "trained again, differs (5 votes)"),
    ],
)
def test_models_of_another_platform_may_differ_a_little(
    command: Command, run: Path, differing: int, words: str
) -> None:
    opened = load_run(run)
    for number in range(6):
        shard = read_shard(opened, number)
        assert shard is not None
        votes = shard.votes.copy()
        votes[:, :differing] = (votes[:, :differing] + 1) % 3
        write_shard(opened, number, Shard(shard.models, votes, shard.failures, "another machine"))
    assert command("certify", run)[0] == 0
    code, out, _ = command("verify", run, "--retrain", 30)
    assert code == (differing > 4)
    assert words in out


def test_other_data_are_found_and_missing_data_are_said(command: Command, run: Path, tmp_path: Path) -> None:
    with np.load(tmp_path / "points.npz") as file:
        content = dict(file)
    content["x"][0, 0] += 1
    np.savez(tmp_path / "points.npz", **content)
    found(command("verify", run), "not what this run learnt from")
    (tmp_path / "points.npz").unlink()
    code, out, _ = command("verify", run)
    assert code == 0
    assert out.count("not checked") == 1
    refused(command("verify", run, "--retrain", 2), "2 models were not trained again")


def test_a_certificate_that_is_gone_is_found(command: Command, run: Path) -> None:
    (run / "certificates" / "ideal.csv").unlink()
    found(command("verify", run), "ideal.csv cannot be read")


def test_fewer_than_no_models_is_refused(command: Command, run: Path) -> None:
    refused(command("verify", run, "--retrain", -1), "--retrain -1")


def test_a_column_that_another_reader_would_take_is_found(command: Command, run: Path) -> None:
    path = run / "certificates" / "ideal.csv"
    _, *lines = path.read_text().splitlines()
    twice = [",".join([*line.split(",")[:2], "99", line.split(",")[2]]) for line in lines]
    path.write_text("\n".join(["index,label,level,level", *twice]) + "\n")
    found(command("verify", run), "ideal", "something else, or more")


def test_a_column_too_many_in_the_parquet_file_is_found(command: Command, run: Path) -> None:
    path = run / "certificates" / "membership.parquet"
    table = pq.read_table(path)
    pq.write_table(table.append_column("certified_level", pa.array([99] * len(table))), path)
    found(command("verify", run), "membership", "something else, or more")


def test_a_claim_that_stands_twice_is_found(command: Command, run: Path) -> None:
    path = run / "summary.json"
    path.write_text(path.read_text().replace('{\n  "ideal"', '{\n  "ideal": {"statement": "lies"},\n  "ideal"'))
    found(command("verify", run), "a key stands in it twice")


def test_a_run_that_claims_nothing_is_found(command: Command, run: Path) -> None:
    (run / "summary.json").write_text("{}")
    for path in (run / "certificates").iterdir():
        path.unlink()
    found(command("verify", run), "claims nothing")


def test_a_second_row_for_a_model_is_found(command: Command, run: Path) -> None:
    # Of two rows, one would count and the other be compared with what training gives.
    opened = load_run(run)
    first, second = read_shard(opened, 0), read_shard(opened, 1)
    assert first is not None
    assert second is not None
    models = np.concatenate([first.models, second.models])
    votes = np.concatenate([1 - np.minimum(first.votes, 1), second.votes])
    write_shard(opened, 1, Shard(models, votes, first.failures + second.failures, second.platform))
    found(command("verify", run), "00001.npz does not hold what shard 1 may hold")


def test_clients_who_hold_other_shares_are_found(command: Command, run: Path) -> None:
    path = run / "clients.csv"
    lines = path.read_text().splitlines()
    number, name, examples, isolated = lines[1].split(",")
    path.write_text("\n".join([lines[0], f"{number},{name},{int(examples) + 90},{isolated}", *lines[2:]]) + "\n")
    assert command("certify", run)[0] == 0
    found(command("verify", run), "clients.csv")


def test_code_of_the_folder_is_not_run_unless_it_must_be(
    command: Command, project: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = project()
    assert command("run", config, "--out", tmp_path / "run", "--workers", 1)[0] == 0
    (mine,) = tmp_path.glob("*.py")
    mine.write_text(mine.read_text() + f"\nopen({str(tmp_path / 'was-here')!r}, 'w')\n")
    for arguments in ((), ("--retrain", 1)):
        assert command("verify", tmp_path / "run", *arguments)[0] != 0
        assert not (tmp_path / "was-here").exists()


def test_a_forgery_is_a_finding_though_nothing_can_be_trained_again(
    command: Command, run: Path, tmp_path: Path
) -> None:
    (tmp_path / "points.npz").unlink()
    path = run / "summary.json"
    path.write_text(path.read_text().replace('"n": 12', '"n": 13'))
    code, out, _ = command("verify", run, "--retrain", 1)
    assert code == 1
    assert "1 models were not trained again" in out


def test_what_the_folder_says_makes_no_line_of_its_own(command: Command, run: Path) -> None:
    path = run / "run.toml"
    path.write_text(path.read_text().replace('name = "points.npz"', 'name = "x\\nok       all is well\\u001b[2K.npz"'))
    _, out, _ = command("verify", run)
    assert "\nok       all is well" not in out
    assert "\x1b" not in out


def test_the_words_of_a_failure_may_differ(
    command: Command, project: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("run", project("mine.py:fails"), "--out", tmp_path / "run", "--workers", 1)[0] == 0
    code, out, _ = command("verify", tmp_path / "run", "--retrain", 2)
    assert code == 0
    assert "2 models trained again, equal to the byte" in out


def test_labels_that_are_none_and_subsamples_of_another_shape_are_found(command: Command, run: Path) -> None:
    opened = load_run(run)
    shard = read_shard(opened, 2)
    assert shard is not None
    write_shard(opened, 2, Shard(shard.models, shard.votes + 90, shard.failures, shard.platform))
    found(command("verify", run), "may hold")
    np.save(run / "subsamples.npy", np.zeros((2, 2), int))
    found(command("verify", run), "subsamples.npy")
