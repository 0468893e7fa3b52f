"""A job: all that a process needs to learn any of a run's models, as files that processes share and do not copy."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np

from fedquorum.errors import InputError, one_line
from fedquorum.federation import Federation
from fedquorum.platform_class import platform_class
from fedquorum.runs import Run, Shard, ShardDamaged, Task, read_parameters, read_shard, write_shard
from fedquorum.training.algorithm import BaseAlgorithm, model_seed

ARRAYS = ("x", "y", "offsets", "isolated", "test_x")


@dataclass(frozen=True, eq=False)
class Job:
    """The models of one run: model i is learnt by `algorithm` from the clients `subsamples[i]` and the seed."""

    federation: Federation
    algorithm: BaseAlgorithm
    subsamples: np.ndarray
    seed: int
    run: Run
    device: str = "cpu"


def save_job(job: Job, folder: Path) -> None:
    """Write a job for worker processes: the arrays as they are, the rest by cloudpickle."""
    for name in ARRAYS:
        np.save(folder / f"{name}.npy", getattr(job.federation, name))
    rest = (
        job.federation.classes,
        job.federation.clients,
        job.algorithm,
        job.subsamples,
        job.seed,
        job.run,
        job.device,
    )
    try:
        packed = cloudpickle.dumps(rest)
    except Exception as error:  # a lock, an open file, a generator: each fails in its own way
        raise InputError(
            f"the algorithm cannot be sent to worker processes ({type(error).__name__}: {error}); make what it holds inside it"
        ) from None
    (folder / "job.pkl").write_bytes(packed)


def load_job(folder: Path) -> Job:
    """Read a job; the arrays are mapped into memory, so all workers of a machine share one copy."""
    classes, clients, algorithm, subsamples, seed, run, device = cloudpickle.loads((folder / "job.pkl").read_bytes())
    federation = object.__new__(Federation)  # its checks were made when the job was written
    fields: dict[str, Any] = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS}
    numbers = np.repeat(np.arange(len(fields["offsets"]) - 1), np.diff(fields["offsets"]))
    fields |= {"test_y": None, "classes": classes, "clients": clients, "client": numbers}  # labels are not for training
    for name, value in fields.items():
        object.__setattr__(federation, name, value)
    return Job(federation, algorithm, subsamples, seed, run, device)


def platform_name(device: str = "cpu") -> str:
    """This machine's platform class as one string."""
    return json.dumps(platform_class(device), sort_keys=True)


def prepare(job: Job) -> Callable[[Task, Callable[[int], None]], int]:
    """Compile once; return the function that learns a task's models, writes their shard and counts the failures."""
    _find(job.device)
    train = job.algorithm.trainer(job.federation)
    platform = platform_name(job.device)
    assert job.federation.classes is not None
    dtype = np.uint8 if job.federation.classes <= 256 else np.int32
    keep = bool(job.run.record["output"]["keep_models"])

    def do(task: Task, learnt: Callable[[int], None]) -> int:
        votes, failures, parameters = [], [], []
        rows = job.subsamples[list(task.models)]
        seeds = [model_seed(job.seed, row) for row in rows]
        for model, result in zip(task.models, train(rows, seeds), strict=True):
            votes.append(result.labels.astype(dtype))
            failures.append(one_line(result.failure or "")[:500])  # NumPy would drop a zero at its end
            parameters.append(dict(result.parameters or {}))
            learnt(model)
        shard = Shard(np.array(task.models, dtype=np.int64), np.stack(votes), tuple(failures), platform)
        held, kept = _held(job.run, task.shard, keep)
        if held is not None:
            shard = _merged(held, shard)
            if keep:
                both = dict(zip(held.models.tolist(), kept, strict=True))
                both |= dict(zip(task.models, parameters, strict=True))
                parameters = [both[model] for model in shard.models.tolist()]
        write_shard(job.run, task.shard, shard, parameters if keep else None)
        return sum(1 for reason in failures if reason)

    return do


def _find(device: str) -> None:
    if device == "cpu":
        return  # there is one, and an algorithm without JAX need not load it
    import jax

    try:
        jax.devices()
    except Exception:  # a missing plug-in, driver or device each fail in their own way
        raise InputError(
            f"--device {device}: JAX finds none on this machine; install its driver and fedquorum[cuda], or use --device cpu"
        ) from None


def _held(run: Run, number: int, keep: bool) -> tuple[Shard | None, list[dict[str, np.ndarray]]]:
    """What the shard holds already; nothing where `runs.missing` found it damaged, or its parameters."""
    try:
        shard = read_shard(run, number)
        return shard, read_parameters(run, number, shard) if shard is not None and keep else []
    except ShardDamaged:
        return None, []


def _merged(held: Shard, new: Shard) -> Shard:
    """A larger N extends the last shard of a smaller one; what it holds is not learnt again."""
    keep = ~np.isin(held.models, new.models)
    models = np.concatenate([held.models[keep], new.models])
    order = np.argsort(models)
    failures = [reason for reason, kept in zip(held.failures, keep, strict=True) if kept] + list(new.failures)
    votes = np.concatenate([held.votes[keep], new.votes])[order]
    return Shard(models[order], votes, tuple(failures[i] for i in order), new.platform)
