"""The command line: wrong input is one line and exit code 2, and votes of any origin can be certified."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import CommandResult, refused

Command = Callable[..., CommandResult]
Project = Callable[..., Path]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["subsamples.size=13"], "k=13 is more than the n=12 clients"),
        (["subsamples.size=0"], "'subsamples.size' = 0: "),
        (["subsamples.count=0"], "'subsamples.count' = 0"),
        (["subsamples.count=-5"], "'subsamples.count' = -5"),
        (["subsamples.count=some"], "'subsamples.count' = some"),
        (["subsamples.count=221", "subsamples.design=distinct"], "only C(12,3) = 220"),
        (["subsamples.design=random"], "'subsamples.design' = random"),
        (["subsamples.seed=-1"], "'subsamples.seed' = -1"),
        (["subsamples.seed=hidden"], "'subsamples.seed' = hidden"),
        (["certify.alpha=0"], "'certify.alpha' = 0"),
        (["certify.alpha=1"], "'certify.alpha' = 1"),
        (["certify.alpha=1.5"], "'certify.alpha' = 1.5"),
        (["certify.alpha=nan"], "'certify.alpha' = NaN"),
        (["certify.delta=-0.1"], "'certify.delta' = -0.1"),
        (['certify.certificates=["best"]'], "'best' is not a certificate"),
        (["certify.certificates=[]"], "at least one certificate"),
        (["algorithm.rounds=0"], "'algorithm.rounds' = 0"),
        (["algorithm.rounds=2.5"], "'algorithm.rounds' = 2.5"),
        (["algorithm.rounds=true"], "'algorithm.rounds' = True"),
        (["algorithm.learning_rate=0"], "'algorithm.learning_rate' = 0"),
        (["algorithm.learningrate=0.1"], "unknown key 'algorithm.learningrate'; known here: name, model, rounds"),
        (["training.rounds=3"], "unknown key 'training'"),
        (["rounds=3"], "write SECTION.KEY=VALUE"),
        (["algorithm.rounds"], "write SECTION.KEY=VALUE"),
        (["algorithm.name=fedprox"], "'algorithm.name' = fedprox: unknown"),
        (["algorithm.name=other.py:fit"], "other.py cannot be read"),
        (["algorithm.name=mine.py:nobody"], "has no 'nobody'"),
        (["algorithm.name=fedavg", "algorithm.model=resnet"], "'algorithm.model' = resnet: unknown"),
        (["algorithm.name=fedavg", "algorithm.aggregation=guess"], "aggregation is 'guess'"),
        (["clients.partition=q", "clients.q=1.5"], "'clients.q' = 1.5"),
        (["clients.partition=cities"], "'clients.partition' = cities"),
        (["data.name=nowhere.npz"], "nowhere.npz"),
        (["output.models_per_shard=0"], "'output.models_per_shard' = 0"),
    ],
)
def test_a_wrong_configuration_is_one_line(
    command: Command, project: Project, tmp_path: Path, changes: list[str], words: str
) -> None:
    options = [part for change in changes for part in ("--set", change)]
    refused(command("run", project(), "--out", tmp_path / "run", *options), words)
    assert not (tmp_path / "run" / "run.toml").exists()  # nothing half-made


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "mnits"], "unknown preset 'mnits'; there are digits"),
        (["run", "missing.toml"], "missing.toml cannot be read: No such file"),
        (["run"], "Missing argument"),
        (["run", "digits", "--workers", "0"], "workers=0"),
        (["run", "digits", "--workers", "two"], "--workers"),
        (["run", "digits", "--engine", "abacus"], "unknown engine; there is local"),
        (["run", "digits", "--device", "abacus"], "unknown; there are cpu, gpu, tpu"),
        (["run", "digits", "--device", "tpu"], "JAX finds none on this machine"),
        (["run", "digits", "--fast"], "No such option"),
        (["train"], "No such command"),
        (["certify", "nothing.npz"], "nothing.npz: no such file"),
        (["verify", "."], "not a run folder"),
        (["verify", "nowhere"], "not a run folder"),
    ],
)
def test_wrong_usage_is_one_line(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(command(*arguments), words)


@pytest.mark.parametrize("content", ["", "[data", "data = 3", "[subsamples]\nsize = 2", "[data]\nname = 3"])
def test_a_file_that_is_no_configuration_is_one_line(command: Command, tmp_path: Path, content: str) -> None:
    (tmp_path / "bad.toml").write_text(content)
    refused(command("run", tmp_path / "bad.toml", "--out", tmp_path / "run"), "bad.toml")


def test_labels_of_float_type_are_refused(command: Command, project: Project, tmp_path: Path) -> None:
    config = project()
    with np.load(tmp_path / "points.npz") as file:
        content = dict(file)
    content["y"] = content["y"].astype(float)
    np.savez(tmp_path / "points.npz", **content)
    refused(command("run", config, "--out", tmp_path / "run"), "labels", "float")


def test_an_output_folder_that_cannot_be_written_is_refused(command: Command, project: Project, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused(command("run", project(), "--out", tmp_path / "file" / "run"), "cannot be written", "--out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    refused(command("run", project(), "--out", tmp_path / "full"), "not a run folder", "--out")


def votes(**changes: Any) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    return {
        "votes": np.where(generator.random((20, 8)) < 0.9, 1, 0),
        "subsamples": np.stack([generator.permutation(30)[:2] for _ in range(20)]),
        "clients": 30,
        "labels": np.ones(8, dtype=int),
        "classes": 2,
        "design": "independent",
    } | changes


def write(path: Path, content: dict[str, Any]) -> Path:
    np.savez(path, **{name: value for name, value in content.items() if value is not None})
    return path


def test_votes_of_any_origin_are_certified_beside_them(command: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "clinic.votes.npz", votes())
    code, out, _ = command("certify", path)
    assert code == 0
    folder = tmp_path / "clinic.votes.certified"
    summary = json.loads((folder / "summary.json").read_text())
    assert len(summary) >= 2
    for name in summary:
        assert (folder / "certificates" / f"{name}.csv").exists()
        assert (folder / "certificates" / f"{name}.parquet").exists()
        assert name in out


def test_only_what_was_asked_for_is_computed(command: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "votes.npz", votes())
    options = ("--certificate", "ideal", "--alpha", "0.05", "--out", tmp_path / "here")
    assert command("certify", path, *options)[0] == 0
    summary = json.loads((tmp_path / "here" / "summary.json").read_text())
    assert list(summary) == ["ideal"]
    assert summary["ideal"]["alpha"] == 0.05
    assert not (tmp_path / "votes.certified").exists()


def test_votes_without_labels_have_levels_but_no_accuracy(command: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "votes.npz", votes(labels=None))
    assert command("certify", path)[0] == 0
    entry = json.loads((tmp_path / "votes.certified" / "summary.json").read_text())["ideal"]
    assert "certified_accuracy" not in entry
    assert entry["highest_level"] >= 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"votes": None}, "'votes' is missing"),
        ({"subsamples": None}, "'subsamples' is missing"),
        ({"clients": None}, "'clients' is missing"),
        ({"votes": np.full((20, 8), 2)}, "outside the classes 0 to 1"),
        ({"votes": np.full((20, 8), -1)}, "outside the classes"),
        ({"votes": np.zeros((20, 8))}, "must be integers"),
        ({"votes": np.zeros((19, 8), dtype=int)}, "19 rows but 'subsamples' has 20"),
        ({"votes": np.zeros(20, dtype=int)}, "dimensions"),
        ({"subsamples": np.zeros((20, 2), dtype=int)}, "holds a client twice"),
        ({"subsamples": np.tile([0, 30], (20, 1))}, "unknown client"),
        ({"subsamples": np.tile([-1, 3], (20, 1))}, "unknown client"),
        ({"clients": 1}, "columns"),
        ({"labels": np.zeros(7, dtype=int)}, "7 entries"),
        ({"labels": np.full(8, 5)}, "'labels' holds a label outside"),
        ({"labels": np.zeros(8)}, "must be integers"),
        ({"design": "lucky"}, "'lucky'"),
        ({"design": "distinct", "subsamples": np.tile([0, 3], (20, 1))}, "occurs twice"),
        ({"design": "disjoint"}, "'disjoint'"),
    ],
)
def test_a_wrong_votes_file_is_one_line(command: Command, tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    refused(command("certify", write(tmp_path / "votes.npz", votes(**changes))), "votes.npz", words)
    assert not (tmp_path / "votes.certified").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not really", b"text"])
def test_a_votes_file_that_is_none_is_one_line(command: Command, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "votes.npz").write_bytes(content)
    refused(command("certify", tmp_path / "votes.npz"), "votes.npz")


@pytest.mark.parametrize("alpha", ["0", "1", "-0.1", "1.0", "nan", "inf", "much"])
def test_alpha_must_be_a_probability(command: Command, tmp_path: Path, alpha: str) -> None:
    path = write(tmp_path / "votes.npz", votes())
    refused(command("certify", path, f"--alpha={alpha}"), "alpha")


def test_a_certificate_must_fit_the_design(command: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "votes.npz", votes(design=None))
    refused(command("certify", path, "--certificate", "ideal"), "ideal", "not stated")
    refused(command("certify", path, "--certificate", "best"), "best")


def test_help_is_the_manual_and_quick_to_say() -> None:
    code = "import sys; sys.argv = ['fedquorum', '--help']; from fedquorum import cli\ntry: cli.main()\nfinally: "
    code += "print([name for name in ('numpy', 'jax', 'rich') if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0
    for name in ("run", "certify", "verify"):
        assert name in result.stdout
    assert result.stdout.strip().endswith("[]")


def test_a_run_is_itself_however_it_is_spelled(command: Command, project: Project, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert command("run", project(), "--out", run, "--workers", 1)[0] == 0
    (tmp_path / "link").symlink_to(run)
    assert command("certify", run, "--out", tmp_path / "link")[0] == 0


def test_certify_writes_into_no_folder_of_others(command: Command, project: Project, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert command("run", project(), "--out", tmp_path / name, "--workers", 1)[0] == 0
    before = (tmp_path / "two" / "summary.json").read_bytes()
    refused(command("certify", tmp_path / "one", "--out", tmp_path / "two"), "is a run folder")
    assert (tmp_path / "two" / "summary.json").read_bytes() == before
    (tmp_path / "home" / "certificates").mkdir(parents=True)
    (tmp_path / "home" / "certificates" / "ideal.csv").write_text("mine")
    refused(command("certify", tmp_path / "one", "--out", tmp_path / "home"), "holds other files")
    assert (tmp_path / "home" / "certificates" / "ideal.csv").read_text() == "mine"
