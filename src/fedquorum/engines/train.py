"""`fq.train`: votes from a federation, a base algorithm and subsamples, in one call."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fedquorum.engines.job import Job
from fedquorum.engines.local import Progress, run_local
from fedquorum.errors import InputError
from fedquorum.federation import Federation
from fedquorum.runs import missing, open_run, read_shard
from fedquorum.subsamples import Subsamples
from fedquorum.training.algorithm import BaseAlgorithm
from fedquorum.training.plain import Fit, Plain
from fedquorum.votes import Votes, ordered_subsamples


def train(
    federation: Federation,
    algorithm: BaseAlgorithm | Fit,
    subsamples: Subsamples | Any,
    *,
    seed: int = 1,
    workers: int | None = None,
    watch: Callable[[Progress], None] = lambda _: None,
) -> Votes:
    """Learn a model from each subsample and let it vote on the test set: `votes[i, t]` is g_i(x_t).

    `algorithm` is a `FedAvg`, any other base algorithm, or a plain callable `fit(clients, seed) -> predict`.
    Models are learnt in worker processes, one per core; each is a function of its subsample and `seed` alone.
    Votes from subsamples of a plain array have no known design, so only `membership` can be certified.

    For a run that is kept and can be resumed, use `fedquorum run`.
    """
    design = subsamples.design if isinstance(subsamples, Subsamples) else None
    members = ordered_subsamples(subsamples, federation.n)
    if isinstance(subsamples, Subsamples) and subsamples.n != federation.n:
        raise InputError(
            f"the subsamples were drawn from n={subsamples.n} clients, but the federation has {federation.n}"
        )
    base = algorithm if hasattr(algorithm, "trainer") else Plain(algorithm)
    with tempfile.TemporaryDirectory(prefix="fedquorum-") as folder:
        run = open_run(Path(folder), {"output": {"keep_models": False, "models_per_shard": 1}})
        tasks, _ = missing(run, len(members))
        run_local(Job(federation, base, members, seed, run), tasks, workers=workers, watch=watch)
        rows = [shard.votes for number in range(len(members)) if (shard := read_shard(run, number)) is not None]
    return Votes(
        np.concatenate(rows),
        members,
        federation.n,
        labels=federation.test_y,
        classes=federation.classes,
        design=design,
    )
