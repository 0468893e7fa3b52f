"""Check a run folder against itself and, where the data are at hand, against the world.

Certificates are computed again by `certificates.oracle`, which shares no code with what made them.
"""

from __future__ import annotations

import csv
import json
import secrets
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedquorum.certificates import certify, membership, membership_oracle, names_for, oracle
from fedquorum.config import check_config
from fedquorum.errors import InputError
from fedquorum.experiment import Experiment, commitment, prepare, seed_number
from fedquorum.report.outputs import of_run, summarise, vote_accuracies
from fedquorum.runs import (
    Run,
    ShardDamaged,
    Task,
    labels_of,
    load_run,
    locked,
    missing_models,
    notes_of,
    open_run,
    read_parameters,
    read_shard,
    run_key,
    subsamples_of,
    votes_of,
)
from fedquorum.subsamples import draw
from fedquorum.votes import Votes


@dataclass(frozen=True)
class Finding:
    """One thing that was checked: right, wrong, or (`None`) not possible to check here."""

    good: bool | None
    text: str


def verify(path: Path, retrain: int = 0, workers: int | None = None) -> Iterator[Finding]:
    """Check everything in a run folder, one finding after the other."""
    run = load_run(path)
    yield _draw_again(run)
    shards = list(_shards(run))
    yield from shards
    if any(finding.good is False for finding in shards):
        return
    votes, failures = votes_of(run)
    yield from _certify_again(run, votes, notes_of(run, failures))
    experiment, finding = _data_again(run)
    yield finding
    if retrain and experiment is not None:
        yield from _train_again(run, experiment, min(retrain, votes.N), workers)
    elif retrain:
        yield Finding(None, f"{retrain} models were not trained again: that needs the data")


def _draw_again(run: Run) -> Finding:
    section = run.record["subsamples"]
    members = subsamples_of(run)
    seed = seed_number(section["seed"])
    again = draw(int(run.record["run"]["clients"]), section["size"], section["count"], section["design"], seed)
    if run.record["made_by"]["draw_commitment"] != commitment(seed):
        return Finding(False, "the seed in run.toml is not the one that was committed to")
    if not np.array_equal(again.members, members):
        return Finding(False, "subsamples.npy is not what the seed draws")
    return Finding(True, f"the seed draws the {len(members)} subsamples again ({section['design']})")


def _shards(run: Run) -> Iterator[Finding]:
    total = len(subsamples_of(run))
    per_shard = int(run.record["output"]["models_per_shard"])
    bad = 0
    for number in range(-(-total // per_shard)):
        try:
            shard = read_shard(run, number)
            if shard is None:
                bad += 1
                yield Finding(False, f"{run.shard_path(number)} is missing")
            elif run.record["output"]["keep_models"]:
                read_parameters(run, number, shard)
        except ShardDamaged as problem:
            bad += 1
            yield Finding(False, str(problem))
    lacking = missing_models(run, total) if not bad else []
    if lacking:
        yield Finding(False, f"the shards lack {len(lacking)} models, the first of them {lacking[0]}")
    elif not bad:
        yield Finding(True, f"all {-(-total // per_shard)} shards are whole and of this run")


def _certify_again(run: Run, votes: Votes, notes: Mapping[str, Any]) -> Iterator[Finding]:
    try:
        summary = json.loads((run.path / "summary.json").read_text(encoding="utf-8"))
        entries = {str(name): dict(entry) for name, entry in summary.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        yield Finding(False, f"summary.json cannot be read ({type(error).__name__})")
        return
    files = {path.stem for path in (run.path / "certificates").glob("*") if path.suffix in (".csv", ".parquet")}
    for name in sorted(files - entries.keys()):
        yield Finding(False, f"certificate {name}: its levels are there, but summary.json does not say what they claim")
    for name, entry in entries.items():
        if name not in names_for(votes.design):
            yield Finding(False, f"certificate {name}: there is none for votes of design {votes.design}")
        else:
            yield from _one_again(run, votes, name, entry, notes)


def _one_again(run: Run, votes: Votes, name: str, entry: dict[str, Any], notes: Mapping[str, Any]) -> Iterator[Finding]:
    """One certificate: its labels and levels by the second path, and all that summary.json says of them."""
    (label, level, _), (*parquet, stated) = (_read(run, name, kind) for kind in ("csv", "parquet"))
    unsettled = 0
    if name == "membership":
        judged = membership_oracle.check(votes, label.tolist(), level.tolist())
        unsettled = judged.count(None)
        bad = [np.array([good is False for good in judged], dtype=bool)]
        expected = membership.claim(votes, label, level, str(entry.get("statement")))
    else:
        risks = {key: str(entry.get(key)) for key in ("alpha", "delta") if entry.get(key) is not None}
        try:
            expected = of_run(run, certify(votes, name, **risks))
        except InputError as error:
            yield Finding(False, f"certificate {name}: summary.json cannot be right: {error}")
            return
        again = map(np.asarray, oracle.recompute(votes, name, **risks))
        bad = [one != other for one, other in zip((label, level), again, strict=True)]
        expected = replace(expected, label=label, level=level)
    bad += [one != other for one, other in zip((label, level), parquet, strict=True)]
    if wrong := int(np.any(bad, axis=0).sum()):
        yield Finding(False, f"certificate {name}: the label or level of {wrong} inputs is not what the votes give")
        return
    claim = summarise(expected, votes.labels) | vote_accuracies(votes) | dict(notes)
    lies = [key for key in {**claim, **entry} if entry.get(key, "absent") != claim.get(key, "absent")]
    if lies:
        yield Finding(False, f"certificate {name}: {', '.join(lies)} in summary.json is not what the votes give")
    elif stated != expected.statement:
        yield Finding(False, f"certificate {name}: the statement in its Parquet file is not the one in summary.json")
    elif name == "membership":
        yield Finding(
            True, f"certificate membership: of {votes.d} levels, {votes.d - unsettled} proved again by a second path"
        )
        if unsettled:
            yield Finding(None, f"certificate membership: {unsettled} levels, which the second path did not settle")
    else:
        yield Finding(True, f"certificate {name}: {votes.d} labels and levels computed again, all equal")


def _read(run: Run, name: str, kind: str) -> tuple[np.ndarray, np.ndarray, str | None]:
    """Labels and levels of a certificate's file, and the statement where the file holds it."""
    statement = None
    path = run.path / "certificates" / f"{name}.{kind}"
    try:
        if kind == "csv":
            with open(path, encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            columns: dict[str, list[Any]] = {c: [int(row[c]) for row in rows] for c in ("index", "label", "level")}
        else:
            import pyarrow.parquet as pq

            table = pq.read_table(path)
            columns = table.to_pydict()
            statement = (table.schema.metadata or {}).get(b"statement", b"").decode()
        index, label, level = (np.array(columns[c], dtype=np.int64) for c in ("index", "label", "level"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} cannot be read ({type(error).__name__}); certify the run again") from None
    inputs = int(run.record["run"]["inputs"])
    if not np.array_equal(index, np.arange(inputs)):
        raise InputError(f"{path} does not list the inputs 0 to {inputs - 1} in order; certify the run again")
    return label, level, statement


def _data_again(run: Run) -> tuple[Experiment | None, Finding]:
    sections = ("data", "clients", "subsamples", "algorithm", "certify", "output")
    config = check_config({name: run.record[name] for name in sections}, str(run.path / "run.toml"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # isolated clients were named when the run was made
            experiment = prepare(config, Path.cwd(), run.record)
    except InputError as error:
        return None, Finding(None, f"the data's fingerprint: {error}")
    for name, text in (("fingerprint", "the data are"), ("code", "the user's own code is")):
        if experiment.record["run"][name] != run.record["run"][name]:
            return None, Finding(False, f"{text} not what this run learnt from (another SHA-256)")
    labels, truth = labels_of(run.path), experiment.federation.test_y
    if not (labels is truth is None or (labels is not None and truth is not None and np.array_equal(labels, truth))):
        return None, Finding(False, "labels.npy does not hold the data's test labels")
    if run_key(experiment.record) != run.key:
        return None, Finding(False, "run.toml states a configuration that does not resolve to itself")
    return experiment, Finding(
        True, f"the data's fingerprint is the run's ({experiment.federation.fingerprint[:16]}...)"
    )


def _train_again(run: Run, experiment: Experiment, count: int, workers: int | None) -> Iterator[Finding]:
    from fedquorum.engines.job import Job, platform_name
    from fedquorum.engines.local import run_local

    per_shard = int(run.record["output"]["models_per_shard"])
    # nobody who prepares a folder knows which models will be asked for
    chosen = sorted(secrets.SystemRandom().sample(range(len(experiment.subsamples)), count))
    equal, elsewhere, agreement = 0, 0, []
    with tempfile.TemporaryDirectory(prefix="fedquorum-") as folder:
        again = open_run(Path(folder), run.record)
        tasks = [
            Task(number, tuple(model for model in chosen if model // per_shard == number))
            for number in sorted({model // per_shard for model in chosen})
        ]
        members = experiment.subsamples.members
        seed = int(run.record["algorithm"]["seed"])
        with locked(Path(folder)):
            run_local(Job(experiment.federation, experiment.algorithm, members, seed, again), tasks, workers=workers)
        for task in tasks:
            old, new = read_shard(run, task.shard), read_shard(again, task.shard)
            assert old is not None and new is not None
            keep = bool(run.record["output"]["keep_models"])
            old_parameters = read_parameters(run, task.shard, old) if keep else []
            new_parameters = read_parameters(again, task.shard, new) if keep else []
            for position, model in enumerate(task.models):
                there = old.models.tolist().index(model)
                same = np.array_equal(old.votes[there], new.votes[position])
                if keep:
                    same = same and _same_bytes(old_parameters[there], new_parameters[position])
                if old.platform != platform_name():
                    elsewhere += 1
                    agreement.append(float((old.votes[there] == new.votes[position]).mean()))
                elif same:
                    equal += 1
                else:
                    differing = int((old.votes[there] != new.votes[position]).sum())
                    yield Finding(False, f"model {model}, trained again, differs ({differing} votes)")
    if equal:
        yield Finding(True, f"{equal} models trained again, equal to the byte")
    if elsewhere:
        text = f"{elsewhere} models of another class of platform trained again: {np.mean(agreement):.4f} of votes agree"
        yield Finding(None, text + f", {min(agreement):.4f} at the least")


def _same_bytes(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)
