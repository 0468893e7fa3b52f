"""How the cost of training grows, as one JSON object: seconds per model with k, n and the model's width, by the DNN in
one process, and seconds for a whole `fq.train` with N models on one worker and on two, starting them included."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jobs import DNN, Job, examples

import fedquorum as fq

QUICK = {"k": (1, 2, 4), "n": (30, 300), "width": (128, 256, 512), "N": (2, 8)}
FULL = {"k": (1, 2, 4, 8, 16), "n": (30, 300, 3000), "width": (64, 128, 256, 512, 1024), "N": (2, 8, 32)}


def federation(job: Job) -> fq.Federation:
    x, y = examples(job)
    client = np.repeat(np.arange(job.clients), job.rows)
    return fq.Federation(x.reshape(-1, *job.shape), y.reshape(-1), client, test_x=x[0, :32], classes=job.classes)


def fedavg(job: Job, width: int = 256, rounds: int = 100) -> fq.FedAvg:
    model = fq.models.dnn(classes=job.classes, hidden=(width, width))
    return fq.FedAvg(model, rounds=rounds, local_steps=job.local_steps, batch_size=job.batch_size)


def seconds(work: Callable[[], object], repeats: int) -> float:
    """The fastest of some repeats, after one that is not counted: the machine can only ever add to it."""
    times = []
    for _ in range(1 + repeats):
        start = time.monotonic()
        work()
        times.append(time.monotonic() - start)
    return min(times[1:])


def model_time(job: Job, width: int = 256) -> float:
    train = fedavg(job, width).trainer(federation(job))
    subsample = fq.draw(job.clients, job.k, 1, seed=0)[[0]]
    return seconds(lambda: list(train(subsample, [1])), repeats=5)


def run_time(count: int, workers: int) -> float:
    """From the call of fq.train to the votes."""
    start = time.monotonic()
    fq.train(federation(DNN), fedavg(DNN, rounds=300), fq.draw(DNN.clients, DNN.k, count, seed=0), workers=workers)
    return time.monotonic() - start


def main() -> None:
    points = QUICK if "--quick" in sys.argv else FULL
    few = replace(DNN, rows=20)  # so that 3,000 clients fit anywhere
    grown = {
        "k": {k: model_time(replace(DNN, k=k)) for k in points["k"]},
        "n": {n: model_time(replace(few, clients=n)) for n in points["n"]},
        "width": {width: model_time(DNN, width) for width in points["width"]},
        "N, 1 worker": {N: run_time(N, 1) for N in points["N"]},
        "N, 2 workers": {N: run_time(N, 2) for N in points["N"]},
    }
    print(json.dumps({axis: {str(at): round(value, 4) for at, value in line.items()} for axis, line in grown.items()}))


if __name__ == "__main__":
    main()
