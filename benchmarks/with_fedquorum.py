"""fedquorum's FedAvg, through the trainer that its worker processes call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count

import numpy as np
from contestant import Unit, serve, timed
from jobs import JOBS, Job, examples

ROUNDS = {"dnn": 300, "cnn": 4}  # about half a second for a model


def prepare(job: Job) -> tuple[int, Callable[[float], list[Unit]]]:
    import fedquorum as fq

    x, y = examples(job)
    federation = fq.Federation(
        x.reshape(-1, *job.shape),
        y.reshape(-1),
        np.repeat(np.arange(job.clients), job.rows),
        test_x=x[0, :32],
        classes=job.classes,
    )
    model = {"dnn": fq.models.dnn, "cnn": fq.models.cnn}[job.name](classes=job.classes)
    rounds = ROUNDS[job.name]
    train = fq.FedAvg(
        model,
        rounds=rounds,
        local_steps=job.local_steps,
        batch_size=job.batch_size,
        learning_rate=job.learning_rate,
    ).trainer(federation)
    subsamples = fq.draw(job.clients, job.k, 1000, seed=0)
    number = count()

    def learn() -> dict[str, np.ndarray]:
        i = next(number)
        (learned,) = train(subsamples[[i % len(subsamples)]], [i])
        assert learned.failure is None and learned.parameters is not None
        return dict(learned.parameters)

    def unit() -> float:
        learn()
        return rounds * job.k * job.local_steps

    return sum(leaf.size for leaf in learn().values()), lambda seconds: timed(unit, seconds)


if __name__ == "__main__":
    serve(lambda: prepare(JOBS[sys.argv[1]]))
