"""The run folder: everything that a run learnt, in files that can be copied, resumed and checked again.

    run.toml             the resolved configuration, and what the run depends on besides it
    subsamples.npy       N x k
    shards/00017.npz     the votes of some models (with `keep_models`, 00017.safetensors their parameters)

A shard is written whole (temporary file, fsync, rename) or not at all.
"""

from __future__ import annotations

import csv
import errno
import fcntl
import hashlib
import io
import json
import os
import shutil
import tomllib
import uuid
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from fedquorum.errors import InputError, MachineError
from fedquorum.federation import MAX_CLASSES, Federation
from fedquorum.votes import Votes

# What models depend on. Not the number of models, and not where the data were found: their fingerprint is in [run].
IDENTITY = ("clients", "subsamples", "algorithm", "output", "run")
FREE = {("subsamples", "count")}
# What reading a run folder needs of its run.toml.
RECORDED: dict[str, dict[str, type | tuple[type, ...]]] = {
    "data": {},
    "clients": {},
    "subsamples": {"size": int, "count": int, "design": str, "seed": (int, str)},
    "algorithm": {"seed": int},
    "certify": {"alpha": Decimal, "delta": Decimal},
    "output": {"keep_models": bool, "models_per_shard": int},
    "run": {"clients": int, "inputs": int, "classes": int, "fingerprint": str, "code": str},
    "made_by": {"draw_commitment": str},
}
COUNTS = ("size", "count", "models_per_shard", "clients", "inputs", "classes")


class ShardDamaged(Exception):
    """A shard that is truncated, altered or of another run."""


@dataclass(frozen=True, eq=False)
class Shard:
    """Some models' votes: `votes[i]` are the labels that model number `models[i]` gives the d test inputs.

    `failures[i]` is the one-line reason why model i could not be learnt (its votes are then all 0), else empty.
    """

    models: np.ndarray
    votes: np.ndarray
    failures: tuple[str, ...]
    platform: str
    parameters: str = ""  # SHA-256 of the parameters' file, where they are kept


@dataclass(frozen=True)
class Run:
    """An open run folder; `key` is the hash of all that its models depend on."""

    path: Path
    record: dict[str, Any]
    key: str

    def shard_path(self, number: int) -> Path:
        """Where shard number `number` is kept."""
        return self.path / "shards" / f"{number:05d}.npz"

    def parameters_path(self, number: int) -> Path:
        """Where the parameters of shard number `number` are kept, if they are."""
        return self.path / "shards" / f"{number:05d}.safetensors"


def identity(record: Mapping[str, Any]) -> dict[str, str]:
    """What a run's models depend on, as flat names and values.

    >>> identity({"algorithm": {"rounds": 60}, "certify": {"alpha": 0.1}, "subsamples": {"count": 5, "size": 2}})
    {'subsamples.size': '2', 'algorithm.rounds': '60'}
    """
    return {
        # a number is one number, however it is spelled: 5e-05 comes back from run.toml as the decimal 0.00005
        f"{section}.{name}": str(float(value) if isinstance(value, Decimal) else value)
        for section in IDENTITY
        for name, value in record.get(section, {}).items()
        if (section, name) not in FREE and value is not None
    }


def run_key(record: Mapping[str, Any]) -> str:
    """The hash of a run's identity, which every shard carries."""
    return hashlib.sha256(json.dumps(identity(record), sort_keys=True).encode()).hexdigest()


def read_record(path: Path) -> dict[str, Any]:
    """run.toml of a run folder; its numbers with a point are decimals, exactly as written."""
    try:
        record = tomllib.loads((path / "run.toml").read_text(encoding="utf-8"), parse_float=Decimal)
    except FileNotFoundError:
        raise InputError(f"{path} is not a run folder (it has no run.toml)") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path / 'run.toml'} cannot be read: {error}") from None
    for section, names in RECORDED.items():
        for name, kind in names.items():
            value: Any = record[section].get(name) if isinstance(record.get(section), dict) else None
            possible = isinstance(value, kind) and (
                name not in COUNTS or (isinstance(value, int) and 0 < value < 2**31)
            )
            if not possible:
                raise InputError(f"{path / 'run.toml'} is damaged: '{section}.{name}' is missing or cannot be")
    return record


def load_run(path: Path) -> Run:
    """Open a run folder to read it."""
    record = read_record(path)
    return Run(path, record, run_key(record))


def open_run(path: Path, record: Mapping[str, Any]) -> Run:
    """Create a run folder, or open the one that is there if it was made under the same configuration."""
    import tomli_w

    record = {name: {k: v for k, v in table.items() if v is not None} for name, table in record.items()}
    make_folder(path / "shards")
    learnt = any((path / "shards").iterdir())
    if (path / "run.toml").exists():
        old, new = identity(read_record(path)), identity(record)
        differences = _differences(old, new)
        # where nothing was learnt, nothing is lost, but clients may know the commitment to a secret seed already
        seed = old.get("subsamples.seed", "")
        broken = seed.startswith("0x") and seed != new.get("subsamples.seed")
        if differences and (learnt or broken):
            raise InputError(
                f"{path} was made under another configuration ({'; '.join(differences)}); "
                "choose another --out, or use the old configuration"
            )
    elif learnt:
        raise InputError(f"{path} holds shards but no run.toml, so nobody knows of which run; choose another --out")
    write_whole(path / "run.toml", tomli_w.dumps(record).encode())
    return Run(path, record, run_key(record))


def _differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return [
        f"{name}: {old.get(name, 'nothing')} there, {new.get(name, 'nothing')} here"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def make_folder(path: Path) -> None:
    """Create a folder that can be written, or say in one line why not."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".probe-{uuid.uuid4().hex}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise MachineError(f"{path} cannot be written: {error.strerror}") from None
        raise InputError(f"{path} cannot be written: {error.strerror}; choose another --out") from None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep every other writer out of a run folder; the system lets go of the lock however this process ends."""
    make_folder(path)
    with open(path / ".lock", "a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"{path} is in use by another fedquorum process; wait for it, or choose another --out"
            ) from None
        yield


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is either the old one or the new one, never half of either."""
    temporary = path.parent / f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise MachineError(
            f"{path} cannot be written: {error.strerror}; nothing finished is lost, make room and run the same again"
        ) from None


def remove_leftovers(run: Run) -> None:
    """Delete the temporary files of writers and the job folders of engines that were killed."""
    for folder in (run.path, run.path / "shards"):
        for path in folder.glob(".*.tmp"):
            with suppress(FileNotFoundError):
                path.unlink()
    for folder in run.path.glob(".job-*"):
        shutil.rmtree(folder, ignore_errors=True)


def write_shard(
    run: Run, number: int, shard: Shard, parameters: Sequence[Mapping[str, np.ndarray]] | None = None
) -> None:
    """Write a shard; its bytes depend on its content alone. Parameters go first: the votes are what counts as done."""
    if parameters is not None:
        from safetensors.numpy import save

        named = {
            f"{model:05d}/{name}": np.ascontiguousarray(value)
            for model, tree in zip(shard.models, parameters, strict=True)
            for name, value in tree.items()
        }
        packed = save(named)
        write_whole(run.parameters_path(number), packed)
        shard = replace(shard, parameters=hashlib.sha256(packed).hexdigest())
    content = io.BytesIO()
    np.savez_compressed(
        content,
        models=shard.models,
        votes=shard.votes,
        failures=np.array(shard.failures, dtype=np.str_),
        platform=np.array(shard.platform),
        parameters=np.array(shard.parameters),
        sha256=np.array(_digest(run.key, shard)),
    )
    write_whole(run.shard_path(number), content.getvalue())


def read_shard(run: Run, number: int) -> Shard | None:
    """A shard of this run, or `None` where there is none; `ShardDamaged` if it is not what was written."""
    path = run.shard_path(number)
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            failures = tuple(str(reason) for reason in file["failures"])
            shard = Shard(file["models"], file["votes"], failures, str(file["platform"]), str(file["parameters"]))
            digest = str(file["sha256"])
    except Exception as error:  # a damaged zip file fails in a dozen ways, none of which tells more than this
        raise ShardDamaged(f"{path} cannot be read ({type(error).__name__})") from None
    if digest != _digest(run.key, shard):
        raise ShardDamaged(f"{path} is not what was written (its SHA-256 differs)")
    if not _is_sound(run, number, shard):
        raise ShardDamaged(f"{path} does not hold what shard {number} may hold: votes of models of its own, each once")
    return shard


def _is_sound(run: Run, number: int, shard: Shard) -> bool:
    """Anybody can compute a SHA-256, so a shard's content is looked at too: a model has one row, in one shard."""
    per_shard = int(run.record["output"]["models_per_shard"])
    models, votes = shard.models, shard.votes
    if not (models.ndim == 1 and models.dtype.kind == "i" and votes.ndim == 2 and votes.dtype.kind in "iu"):
        return False
    facts = run.record.get("run", {})  # of a run that is no folder's, nothing is known
    return bool(
        len(models) == len(votes) == len(shard.failures) > 0
        and votes.shape[1] == facts.get("inputs", votes.shape[1])
        and votes.min(initial=0) >= 0
        and votes.max(initial=0) < facts.get("classes", MAX_CLASSES)
        and (np.diff(models) > 0).all()
        and number * per_shard <= models[0]
        and models[-1] < (number + 1) * per_shard
    )


def _digest(key: str, shard: Shard) -> str:
    digest = hashlib.sha256(key.encode())
    for array in (shard.models, shard.votes):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(json.dumps([shard.failures, shard.platform, shard.parameters]).encode())
    return digest.hexdigest()


def read_parameters(run: Run, number: int, shard: Shard) -> list[dict[str, np.ndarray]]:
    """The kept parameters of a shard's models, in their order; `ShardDamaged` if they are not what was written."""
    from safetensors.numpy import load

    path = run.parameters_path(number)
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise ShardDamaged(f"{path} cannot be read ({error.strerror})") from None
    if hashlib.sha256(packed).hexdigest() != shard.parameters:
        raise ShardDamaged(f"{path} is not what was written (its SHA-256 differs)")
    trees: dict[int, dict[str, np.ndarray]] = {int(model): {} for model in shard.models}
    for name, value in load(packed).items():
        model, _, rest = name.partition("/")
        trees[int(model)][rest] = value
    return list(trees.values())


@dataclass(frozen=True)
class Task:
    """A shard to write: the models to learn now, and those that it already holds."""

    shard: int
    models: tuple[int, ...]


def missing(run: Run, count: int) -> tuple[list[Task], list[str]]:
    """What is still to do for N = count, and what was found damaged on the way."""
    per_shard = int(run.record["output"]["models_per_shard"])
    keep_models = bool(run.record["output"]["keep_models"])
    tasks, damage = [], []
    for number in range(-(-count // per_shard)):
        wanted = range(number * per_shard, min(count, (number + 1) * per_shard))
        try:
            shard = read_shard(run, number)
            if shard is not None and keep_models:
                read_parameters(run, number, shard)
            held = set() if shard is None else set(shard.models.tolist())
        except ShardDamaged as problem:
            damage.append(str(problem))
            held = set()
        to_do = tuple(model for model in wanted if model not in held)
        if to_do:
            tasks.append(Task(number, to_do))
    return tasks, damage


def missing_models(run: Run, count: int) -> list[int]:
    """Which of the models 0 ... count-1 no readable shard holds."""
    return sorted(model for task in missing(run, count)[0] for model in task.models)


def votes_of(run: Run) -> tuple[Votes, dict[int, str]]:
    """The votes of a finished run, and which of its models could not be learnt, with the reason."""
    members = subsamples_of(run)
    votes: np.ndarray | None = None
    failures: dict[int, str] = {}
    done = np.zeros(len(members), dtype=bool)
    for number in range(-(-len(members) // int(run.record["output"]["models_per_shard"]))):
        try:
            shard = read_shard(run, number)
        except ShardDamaged as problem:
            raise InputError(f"{problem}; run the same 'fedquorum run' again to learn it anew") from None
        if shard is None:
            continue
        if votes is None:
            votes = np.zeros((len(members), shard.votes.shape[1]), dtype=shard.votes.dtype)
        for model, row, failure in zip(shard.models.tolist(), shard.votes, shard.failures, strict=True):
            if model < len(members):
                votes[model], done[model] = row, True
                if failure:
                    failures[model] = failure
    if votes is None or not done.all():
        raise InputError(
            f"{run.path}: {int(done.sum())} of {len(members)} models are finished; "
            "run the same 'fedquorum run' again to go on"
        )
    facts = run.record["run"]
    design = run.record["subsamples"]["design"]
    return Votes(votes, members, facts["clients"], labels_of(run.path), facts["classes"], design), failures


def clients_csv(federation: Federation) -> bytes:
    """The content of clients.csv: who is client number what, how many examples each holds, and who is isolated."""
    content = io.StringIO()
    rows = csv.writer(content, lineterminator="\n")
    rows.writerow(["client", "id", "examples", "isolated"])
    for number, (identity, size, bad) in enumerate(
        zip(federation.clients or (), federation.sizes.tolist(), federation.isolated.tolist(), strict=True)
    ):
        rows.writerow([number, identity, size, int(bad)])
    return content.getvalue().encode(errors="backslashreplace")


def notes_of(run: Run, failures: Mapping[int, str]) -> dict[str, Any]:
    """What must be said beside every claim of a run: who and what is not listened to, and how much data m clients may hold.

    `largest_clients_share[m]` is the part of all examples that the m largest clients hold, rounded up: a level counts
    clients, not data.
    """
    try:
        with open(run.path / "clients.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        sizes = sorted((int(row["examples"]) for row in rows), reverse=True)
        isolated = [row["id"] for row in rows if row["isolated"] == "1"]
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise InputError(f"{run.path / 'clients.csv'} cannot be read ({type(error).__name__})") from None
    held = np.concatenate([[0], np.cumsum(sizes)])
    shares = np.ceil(held * 10_000 / max(held[-1], 1)) / 10_000
    return {"isolated_clients": isolated, "failed_models": len(failures), "largest_clients_share": shares.tolist()}


def labels_of(path: Path) -> np.ndarray | None:
    """The true labels of the test inputs that a run folder keeps beside its votes, if it has any."""
    if not (path / "labels.npy").exists():
        return None
    return _read_array(path / "labels.npy")


def subsamples_of(run: Run) -> np.ndarray:
    """The N x k array of the run's subsamples."""
    members = _read_array(run.path / "subsamples.npy")
    wanted = tuple(run.record["subsamples"][name] for name in ("count", "size"))
    if members.shape != wanted or members.dtype.kind not in "iu":
        raise InputError(f"{run.path / 'subsamples.npy'} is not an array of {wanted[0]} x {wanted[1]} client numbers")
    return members


def _read_array(path: Path) -> np.ndarray:
    try:
        array: np.ndarray = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path} is not a .npy file")
    return array


def write_array(path: Path, array: np.ndarray) -> None:
    """Write a .npy file, whole or not at all."""
    content = io.BytesIO()
    np.save(content, array)
    write_whole(path, content.getvalue())
