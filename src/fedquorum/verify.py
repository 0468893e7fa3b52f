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

from fedquorum.certificates import Certificate, certify, membership, membership_oracle, names_for, oracle
from fedquorum.config import Config, check_config
from fedquorum.errors import InputError
from fedquorum.experiment import base_algorithm, commitment, resolve, seed_number
from fedquorum.federation import Federation
from fedquorum.report.outputs import csv_of, of_run, summarise, table_of, vote_accuracies
from fedquorum.runs import (
    Run,
    ShardDamaged,
    Task,
    clients_csv,
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

# Other machines round otherwise, and training amplifies it; a model of which fewer votes agree is another model.
LEAST_AGREEMENT = 0.9


class Damaged(Exception):
    """A certificate's file that does not hold a label and a level for every input."""


@dataclass(frozen=True)
class Finding:
    """One thing that was checked: right, wrong, or (`None`) not possible to check here."""

    good: bool | None
    text: str


def verify(path: Path, retrain: int = 0, workers: int | None = None) -> Iterator[Finding]:
    """Check everything in a run folder, one finding after the other."""
    run = load_run(path)
    try:
        yield _draw_again(run)
        shards = list(_shards(run))
        yield from shards
        if any(finding.good is False for finding in shards):
            return
        votes, failures = votes_of(run)
        notes = notes_of(run, failures)
    except InputError as error:
        yield Finding(False, str(error))
        return
    yield from _certify_again(run, votes, notes)
    found, findings = _data_again(run)
    yield from findings
    if retrain and found is not None:
        yield from _train_again(run, *found, min(retrain, votes.N), workers)
    elif retrain:
        raise InputError(f"{retrain} models were not trained again: that needs the run's own data and code")


def _draw_again(run: Run) -> Finding:
    section = run.record["subsamples"]
    members = subsamples_of(run)
    try:
        seed = seed_number(section["seed"])
        again = draw(int(run.record["run"]["clients"]), section["size"], section["count"], section["design"], seed)
    except ValueError as error:  # InputError is one
        return Finding(False, f"run.toml: no subsamples can be drawn by it: {error}")
    if run.record["made_by"]["draw_commitment"] != commitment(seed):
        return Finding(False, "the seed in run.toml is not the one that was committed to")
    if not np.array_equal(again.members, members):
        return Finding(False, "subsamples.npy is not what the seed draws")
    committed = f"; compare its commitment with the one published at enrolment: {commitment(seed)}"
    return Finding(
        True,
        f"the seed draws the {len(members)} subsamples again ({section['design']})"
        + (committed if isinstance(section["seed"], str) else ", but it was no secret"),
    )


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
        summary = json.loads((run.path / "summary.json").read_text(encoding="utf-8"), object_pairs_hook=_no_key_twice)
        entries = {str(name): dict(entry) for name, entry in summary.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        yield Finding(False, f"summary.json cannot be read ({error})")
        return
    if not entries:
        yield Finding(False, "summary.json claims nothing; certify the run")
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
    try:
        label, level = _read(run, name)
    except Damaged as problem:
        yield Finding(False, f"certificate {name}: {problem}")
        return
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
    if wrong := int(np.any(bad, axis=0).sum()):
        yield Finding(False, f"certificate {name}: the label or level of {wrong} inputs is not what the votes give")
        return
    claim = summarise(expected, votes.labels) | vote_accuracies(votes) | dict(notes)
    lies = [key for key in {**claim, **entry} if _told(entry, key) != _told(claim, key)]
    if lies:
        yield Finding(False, f"certificate {name}: {', '.join(lies)} in summary.json is not what the votes give")
    elif not _same_files(run, expected):
        yield Finding(False, f"certificate {name}: its CSV or Parquet file says something else, or more")
    elif name != "membership":
        yield Finding(True, f"certificate {name}: {votes.d} labels and levels computed again, all equal")
    elif unsettled:
        text = f"certificate membership: {unsettled} of {votes.d} levels were not settled by the second path"
        yield Finding(None, text + ("; the others hold" if unsettled < votes.d else ""))
    else:
        text = f"certificate membership: {votes.d} labels and levels proved again by a second path"
        yield Finding(True, text + " (that they hold, not that none could be higher)")


def _told(entry: Mapping[str, Any], key: str) -> str | None:
    return json.dumps(entry[key]) if key in entry else None


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a key that stands twice, one reader takes the first and another the last."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key stands in it twice")
    return dict(pairs)


def _read(run: Run, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Labels and levels of a certificate's CSV file."""
    path = run.path / "certificates" / f"{name}.csv"
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        index, label, level = (np.array([int(row[c]) for row in rows]) for c in ("index", "label", "level"))
        if max(abs(int(values.max(initial=0))) for values in (label, level)) >= 2**31:
            raise OverflowError
    except (OSError, ValueError, KeyError, TypeError, OverflowError, csv.Error) as error:
        raise Damaged(f"{path} cannot be read ({type(error).__name__})") from None
    inputs = int(run.record["run"]["inputs"])
    if not np.array_equal(index, np.arange(inputs)):
        raise Damaged(f"{path} does not list the inputs 0 to {inputs - 1} in order")
    return label, level


def _same_files(run: Run, certificate: Certificate) -> bool:
    """Whether the two files of a certificate hold it, all of it and nothing besides."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = run.path / "certificates"
    try:
        table = pq.read_table(folder / f"{certificate.name}.parquet")
        return bool(
            (folder / f"{certificate.name}.csv").read_bytes() == csv_of(certificate)
            and table.equals(table_of(certificate), check_metadata=True)
        )
    except (OSError, ValueError, pa.ArrowException):
        return False


def _data_again(run: Run) -> tuple[tuple[Config, Federation, np.ndarray] | None, list[Finding]]:
    """Whether data and code are those of the run; what to train by and on, if they are. No code of theirs is run."""
    sections = ("data", "clients", "subsamples", "algorithm", "certify", "output")
    config = check_config({name: run.record[name] for name in sections}, str(run.path / "run.toml"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # isolated clients were named when the run was made
            federation, record, subsamples = resolve(config, _folder(run), run.record)
    except InputError as error:
        return None, [Finding(None, f"the data's fingerprint: {error}")]
    for name, text in (("fingerprint", "the data are"), ("code", "the user's own code is")):
        if record["run"][name] != run.record["run"][name]:
            return None, [Finding(False, f"{text} not what this run learnt from (another SHA-256)")]
    if run_key(record) != run.key:
        return None, [Finding(False, "run.toml states a configuration that does not resolve to itself")]
    findings = [Finding(True, f"the data's fingerprint is the run's ({federation.fingerprint[:16]}...)")]
    labels, truth = labels_of(run.path), federation.test_y
    if not (labels is truth is None or (labels is not None and truth is not None and np.array_equal(labels, truth))):
        findings.append(Finding(False, "labels.npy does not hold the data's test labels"))
    if (run.path / "clients.csv").read_bytes() != clients_csv(federation):
        findings.append(Finding(False, "clients.csv does not say who holds how many of the data"))
    return (config, federation, subsamples.members), findings


def _folder(run: Run) -> Path:
    """Where the run's relative paths begin: as it was when the run was made, else here."""
    there = Path(str(run.record["made_by"].get("folder", "")))
    return there if there.is_absolute() and there.is_dir() else Path.cwd()


def _train_again(
    run: Run, config: Config, federation: Federation, members: np.ndarray, count: int, workers: int | None
) -> Iterator[Finding]:
    from fedquorum.engines.job import Job, platform_name
    from fedquorum.engines.local import run_local

    algorithm = base_algorithm(config.algorithm, _folder(run), int(federation.classes or 0))
    per_shard = int(run.record["output"]["models_per_shard"])
    # nobody who prepares a folder knows which models will be asked for
    chosen = sorted(secrets.SystemRandom().sample(range(len(members)), count))
    equal, agreement = 0, []
    with tempfile.TemporaryDirectory(prefix="fedquorum-") as folder:
        again = open_run(Path(folder), run.record)
        tasks = [
            Task(number, tuple(model for model in chosen if model // per_shard == number))
            for number in sorted({model // per_shard for model in chosen})
        ]
        seed = int(run.record["algorithm"]["seed"])
        with locked(Path(folder)):
            run_local(Job(federation, algorithm, members, seed, again), tasks, workers=workers)
        for task in tasks:
            old, new = read_shard(run, task.shard), read_shard(again, task.shard)
            assert old is not None and new is not None
            keep = bool(run.record["output"]["keep_models"])
            old_parameters = read_parameters(run, task.shard, old) if keep else []
            new_parameters = read_parameters(again, task.shard, new) if keep else []
            for position, model in enumerate(task.models):
                there = old.models.tolist().index(model)
                agree = float((old.votes[there] == new.votes[position]).mean())
                # whether it failed, not in which words: these may hold addresses or paths
                same = agree == 1 and bool(old.failures[there]) == bool(new.failures[position])
                if keep:
                    same = same and _same_bytes(old_parameters[there], new_parameters[position])
                if same:
                    equal += 1
                elif old.platform == platform_name() or agree < LEAST_AGREEMENT:
                    differing = int((old.votes[there] != new.votes[position]).sum())
                    yield Finding(False, f"model {model}, trained again, differs ({differing} votes)")
                else:
                    agreement.append(agree)
    if equal:
        yield Finding(True, f"{equal} models trained again, equal to the byte")
    if agreement:
        text = f"{len(agreement)} models of another class of platform trained again: {np.mean(agreement):.4f} of votes agree"
        yield Finding(
            None, text + f", {min(agreement):.4f} at the least; bytes can only be compared on their own class"
        )


def _same_bytes(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)
