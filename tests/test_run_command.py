"""`fedquorum run` as people and machines treat it: killed, interrupted, resumed, extended, given nonsense."""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedquorum import FedAvg, Federation, draw, models
from fedquorum.engines.job import Job
from fedquorum.engines.local import run_local
from fedquorum.runs import load_run, missing, open_run, read_parameters, read_shard, votes_of
from tests.conftest import CommandResult, refused

Command = Callable[..., CommandResult]
Project = Callable[..., Path]
Start = Callable[..., subprocess.Popen[str]]

FEDAVG = 'model = "linear"\nlocal_steps = 2\nbatch_size = 4'


def hashes(run: Path, *folders: str) -> dict[str, str]:
    """Everything that must be equal to the byte between two runs of one configuration."""
    return {
        str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in folders or ("shards", "certificates")
        for path in sorted((run / folder).iterdir())
    }


def finished(run: Path) -> int:
    return len(list((run / "shards").glob("*.npz")))


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def workers_of(parent: int) -> list[int]:
    children = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(pid) for pid in children.read_text().split()] if children.exists() else []


def test_a_run_writes_what_the_contract_says(command: Command, project: Project, tmp_path: Path) -> None:
    code, out, _ = command("run", project(), "--out", tmp_path / "run", "--workers", 1)
    assert code == 0
    assert "Certified accuracy" in out
    run = tmp_path / "run"
    assert np.load(run / "subsamples.npy").shape == (30, 3)
    lines = (run / "certificates" / "ideal.csv").read_text().splitlines()
    assert lines[0] == "index,label,level"
    assert len(lines) == 41
    entry = json.loads((run / "summary.json").read_text())["ideal"]
    assert (entry["n"], entry["k"], entry["N"], entry["design"]) == (12, 3, 30, "independent")
    assert len(entry["certified_accuracy"]) == 13
    assert {"abstained", "alpha", "statement"} <= entry.keys()
    assert (run / "figures" / "certified_accuracy.svg").exists()


def test_the_same_bytes_whoever_trains_and_however_often_it_is_killed(
    project: Project, start: Start, tmp_path: Path
) -> None:
    config = project("fedavg", FEDAVG)
    plain = ("run", config, "--set", "subsamples.count=60", "--set", "algorithm.rounds=20")
    for workers in (1, 2):
        process = start(*plain, "--out", tmp_path / f"with{workers}", "--workers", workers)
        assert process.wait() == 0, process.stderr and process.stderr.read()
    killed = tmp_path / "killed"
    chance = random.Random(1)
    for round_number in range(5):
        process = start(*plain, "--out", killed, "--workers", 2)
        goal = min(finished(killed) if killed.exists() else 0, 11)
        wait_for(lambda goal=goal, process=process: process.poll() is not None or finished(killed) > goal)
        time.sleep(chance.random() * 0.05)
        victims = workers_of(process.pid)
        if round_number % 2:
            process.kill()
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.wait()
    assert start(*plain, "--out", killed, "--workers", 2).wait() == 0
    assert hashes(tmp_path / "with1") == hashes(tmp_path / "with2") == hashes(killed)


def test_ctrl_c_keeps_what_is_finished_and_leaves_no_worker(project: Project, start: Start, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start("run", project("mine.py:slow"), "--out", run, "--workers", 2)
    wait_for(lambda: (run / "shards").exists() and finished(run) >= 2)
    workers = workers_of(process.pid)
    assert len(workers) == 2
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors.startswith("fedquorum: interrupted")
    assert "Traceback" not in errors
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    kept = hashes(run, "shards")
    assert len(kept) >= 2
    assert not list((run / "shards").glob(".*"))
    again = start("run", project("mine.py:slow"), "--out", run, "--workers", 2)
    out, _ = again.communicate()
    assert again.returncode == 0
    assert f"{5 * len(kept)} finished" in out
    assert kept.items() <= hashes(run, "shards").items()


def test_termination_is_an_interruption_too(project: Project, start: Start, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start("run", project("mine.py:slow"), "--out", run)
    wait_for(lambda: (run / "shards").exists() and finished(run) >= 1)
    process.terminate()
    assert process.wait(timeout=30) == 130


def test_a_larger_count_extends_a_run_and_a_prefix_is_the_smaller_run(
    command: Command, project: Project, tmp_path: Path
) -> None:
    config = project()
    grown, whole = tmp_path / "grown", tmp_path / "whole"
    for count in (7, 23, 30):  # 7 and 23 end within a shard of 5
        code, out, _ = command("run", config, "--out", grown, "--set", f"subsamples.count={count}", "--workers", 1)
        assert code == 0
    assert "23 finished, 7 to learn" in out
    assert "certified at N = 23 before: alpha and delta hold for one N" in out
    assert command("run", config, "--out", whole, "--workers", 1)[0] == 0
    assert hashes(grown) == hashes(whole)
    assert command("run", config, "--out", grown, "--set", "subsamples.count=7")[0] == 0
    small, _ = votes_of(load_run(grown))
    large, _ = votes_of(load_run(whole))
    assert small.N == 7
    assert np.array_equal(small.votes, large.votes[:7])


def test_damaged_shards_are_learnt_again_with_a_warning(command: Command, project: Project, tmp_path: Path) -> None:
    config, run = project(), tmp_path / "run"
    command("run", config, "--out", run)
    before = hashes(run)
    path = run / "shards" / "00002.npz"
    path.write_bytes(path.read_bytes()[:-40])
    other = run / "shards" / "00004.npz"
    other.write_bytes((run / "shards" / "00003.npz").read_bytes())
    code, out, _ = command("run", config, "--out", run)
    assert code == 0
    assert "00002.npz cannot be read" in out
    assert hashes(run)["shards/00002.npz"] == before["shards/00002.npz"]


def test_another_configuration_is_refused_and_nothing_is_touched(
    command: Command, project: Project, tmp_path: Path
) -> None:
    config, run = project(), tmp_path / "run"
    command("run", config, "--out", run)
    before = hashes(run)
    result = command("run", config, "--out", run, "--set", "algorithm.rounds=4", "--set", "subsamples.size=2")
    refused(result, "algorithm.rounds: 3 there, 4 here", "subsamples.size: 3 there, 2 here")
    assert hashes(run) == before
    (tmp_path / "mine.py").write_text((tmp_path / "mine.py").read_text() + "\n# changed\n")
    refused(command("run", config, "--out", run), "run.code")


def test_a_worker_that_dies_is_replaced(command: Command, project: Project, tmp_path: Path) -> None:
    code, out, _ = command("run", project("mine.py:killed_once"), "--out", tmp_path / "run", "--workers", 1)
    assert code == 0
    assert "a worker died on shard 0 (killed by SIGKILL)" in out


def test_three_deaths_on_a_shard_end_the_run_and_name_it(command: Command, project: Project, tmp_path: Path) -> None:
    run = tmp_path / "run"
    result = command("run", project("mine.py:killed_always"), "--out", run, "--workers", 1)
    refused(result, "shard", "died 3 times", "killed by SIGKILL", code=3)
    number = int(result[2].split("shard ")[1].split()[0])
    assert not (run / "shards" / f"{number:05d}.npz").exists()
    assert finished(run) == number  # those before it are kept


def test_an_exception_stays_inside_its_model(command: Command, project: Project, tmp_path: Path) -> None:
    code, out, _ = command("run", project("mine.py:raises"), "--out", tmp_path / "run", "--workers", 1)
    assert code == 0
    assert "30 models could not be learnt" in out
    votes, failures = votes_of(load_run(tmp_path / "run"))
    assert (votes.votes == 0).all()
    assert len(failures) == 30
    assert set(failures.values()) == {"RuntimeError: no luck", "ValueError: odd"}
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["ideal"]["failed_models"] == 30


def test_a_reason_that_no_file_can_hold_damages_no_shard(command: Command, project: Project, tmp_path: Path) -> None:
    arguments = ("run", project("mine.py:zero"), "--out", tmp_path / "run", "--workers", 1)
    assert command(*arguments)[0] == 0
    assert "0 to learn" in command(*arguments)[1]


def test_out_of_memory_is_tried_again_as_a_death(command: Command, project: Project, tmp_path: Path) -> None:
    result = command("run", project("mine.py:greedy"), "--out", tmp_path / "run", "--workers", 1)
    refused(result, "its worker died 3 times", "MemoryError", code=3)


def test_names_are_no_markup(command: Command, project: Project, tmp_path: Path) -> None:
    config = project()
    with np.load(config.parent / "points.npz") as file:
        content = dict(file)
    content["client"] = np.array([f"[/{i}]" for i in content["client"]])
    content["x"][0, 0] = np.nan
    np.savez(config.parent / "points.npz", **content)
    code, out, _ = command("run", config, "--out", tmp_path / "[bold]", "--workers", 1)
    assert code == 0
    assert "client '[/0]'" in out
    assert f"written to {tmp_path / '[bold]'}" in out


@pytest.mark.parametrize(
    ("algorithm", "change"),
    [
        ("fedavg", "algorithm.model=cnn"),
        ("fedavg", "algorithm.rounds=99999999999999999999"),
        ("fedavg", "certify.alpha=1e-400"),
        ("mine.py:locked", "subsamples.count=3"),
    ],
)
def test_what_only_training_finds_out_leaves_nothing_behind(
    command: Command, project: Project, tmp_path: Path, algorithm: str, change: str
) -> None:
    out = tmp_path / "run"
    refused(command("run", project(algorithm), "--out", out, "--workers", 1, "--set", change))
    assert not out.exists()


def test_code_that_ends_the_process_when_it_is_loaded_is_an_error(
    command: Command, project: Project, tmp_path: Path
) -> None:
    config = project()
    (config.parent / "mine.py").write_text("import sys; sys.exit(0)")
    refused(command("run", config, "--out", tmp_path / "run"), "mine.py fails to load: SystemExit")


def test_parameters_that_were_lost_are_learnt_again(command: Command, project: Project, tmp_path: Path) -> None:
    config = project("fedavg", FEDAVG + "\n[output]\nkeep_models = true\n")
    arguments = ("run", config, "--out", tmp_path / "run", "--workers", 1)
    assert command(*arguments)[0] == 0
    honest = hashes(tmp_path / "run")
    (tmp_path / "run" / "shards" / "00001.safetensors").unlink()
    path = tmp_path / "run" / "shards" / "00002.safetensors"
    path.write_bytes(path.read_bytes()[:-1])  # as if killed between the two renames
    assert command(*arguments)[0] == 0
    assert hashes(tmp_path / "run") == honest


def test_a_full_disk_ends_the_run_and_is_survived(project: Project, start: Start, tmp_path: Path) -> None:
    run = tmp_path / "run"
    config = project("mine.py:noise", "[output]\nmodels_per_shard = 60", tests=8000)
    limit = 70_000  # the test inputs fit below it, a shard of 60 x 8,000 random labels does not
    wanted = ("run", config, "--out", run, "--set", "subsamples.count=60")

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    process = start(*wanted, preexec_fn=small_files)
    _, errors = process.communicate()
    refused((process.returncode, "", errors), "00000.npz cannot be written: File too large", code=3)
    assert list((run / "shards").iterdir()) == []
    assert start(*wanted).wait() == 0


def test_a_client_with_bad_data_is_named_and_does_not_stop_the_run(
    command: Command, project: Project, tmp_path: Path
) -> None:
    config = project()
    with np.load(tmp_path / "points.npz") as file:
        content = dict(file)
    content["x"][content["client"] == 4, 0] = np.nan
    np.savez(tmp_path / "points.npz", **content)
    code, out, _ = command("run", config, "--out", tmp_path / "run", "--workers", 1)
    assert code == 0
    assert "isolated" in out
    assert "client 4" in out
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["ideal"]["isolated_clients"] == ["4"]


def test_a_secret_seed_is_kept_for_resuming(command: Command, project: Project, tmp_path: Path) -> None:
    config, run = project(), tmp_path / "run"
    for _ in range(2):
        assert command("run", config, "--out", run, "--set", "subsamples.seed=secret", "--workers", 1)[0] == 0
    seed = load_run(run).record["subsamples"]["seed"]
    assert seed.startswith("0x")
    assert np.array_equal(draw(12, 3, 30, seed=int(seed, 16)), np.load(run / "subsamples.npy"))
    refused(
        command("run", config, "--out", run, "--set", f"subsamples.seed={int(seed, 16) % 2**60}"), "subsamples.seed"
    )


def test_what_one_run_compiles_the_next_one_loads_and_learns_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(40, 5)).astype(np.float32), generator.integers(0, 3, 40)
    federation = Federation(x, y, np.repeat(np.arange(8), 5), x[:4], classes=3)
    algorithm = FedAvg(models.dnn(classes=3, hidden=(16,)), rounds=2, local_steps=2, batch_size=8)
    subsamples = draw(8, 3, 2, seed=2)
    compiled, learnt = [], []
    for number in range(2):
        run = open_run(tmp_path / str(number), {"output": {"keep_models": True, "models_per_shard": 2}})
        run_local(Job(federation, algorithm, subsamples.members, 1, run), missing(run, 2)[0], workers=1)
        learnt.append(run.parameters_path(0).read_bytes())
        files = (Path(os.environ["FEDQUORUM_CACHE"]) / "compiled").rglob("jit_learn-*-cache")
        compiled.append({path.name: path.stat().st_mtime_ns for path in files})
    assert len(compiled[0]) == 1
    assert compiled[0] == compiled[1]
    assert learnt[0] == learnt[1]


def test_no_model_depends_on_a_client_outside_its_subsample(tmp_path: Path) -> None:
    """Care 5, to the byte: one client is changed in every way it can be; models without it must not notice."""
    generator = np.random.default_rng(0)
    n, altered = 8, 3
    client = np.array([f"c{i}" for i in range(n) for _ in range(6 + i)])
    x = generator.normal(size=(len(client), 5)).astype(np.float32)
    y = generator.integers(0, 3, len(client))
    test_x = generator.normal(size=(20, 5)).astype(np.float32)
    subsamples = draw(n, 3, 24, seed=2)
    algorithm = FedAvg(models.dnn(classes=3, hidden=(16,)), rounds=4, local_steps=2, batch_size=8)
    enrolment = [f"c{i}" for i in range(n)]
    own = np.nonzero(client == f"c{altered}")[0]
    fewer = np.delete(np.arange(len(client)), own[2:])
    reversed_rows = np.arange(len(client))
    reversed_rows[own] = own[::-1]
    moved = np.concatenate([own, np.delete(np.arange(len(client)), own)])
    flipped = y.copy()
    flipped[own] = 2 - flipped[own]
    renamed = np.where(client == f"c{altered}", "ZZZ", client)
    poisoned = x.copy()
    poisoned[own[0], 0] = np.nan
    same = [enrolment] * 5
    variants = {
        "as it is": (x, y, client, enrolment),
        "size": (x[fewer], y[fewer], client[fewer], same[0]),
        "labels": (x, flipped, client, same[1]),
        "row order": (x[reversed_rows], y[reversed_rows], client[reversed_rows], same[2]),
        "place in the file": (x[moved], y[moved], client[moved], same[3]),
        "spelling": (x, y, renamed, [("ZZZ" if name == f"c{altered}" else name) for name in enrolment]),
        "values": (poisoned, y, client, same[4]),
    }
    learnt = {}
    for name, (xs, ys, clients, ids) in variants.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            federation = Federation(xs, ys, clients, test_x, classes=3, clients=tuple(ids))
        run = open_run(tmp_path / name, {"output": {"keep_models": True, "models_per_shard": 24}})
        run_local(Job(federation, algorithm, subsamples.members, 1, run), missing(run, 24)[0], workers=1)
        shard = read_shard(run, 0)
        assert shard is not None
        parameters = read_parameters(run, 0, shard)
        learnt[name] = [
            (votes.tobytes(), *(tree[key].tobytes() for key in sorted(tree)))
            for votes, tree in zip(shard.votes, parameters, strict=True)
        ]
    without = [i for i, row in enumerate(subsamples) if altered not in row]
    within = [i for i, row in enumerate(subsamples) if altered in row]
    assert len(without) > 5
    for name, models_learnt in learnt.items():
        assert [models_learnt[i] for i in without] == [learnt["as it is"][i] for i in without], name
        if name not in ("as it is", "spelling", "place in the file"):
            assert all(models_learnt[i] != learnt["as it is"][i] for i in within), name
