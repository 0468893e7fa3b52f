"""The same FedAvg in PyTorch, eagerly: a plain loop over rounds and clients in one process, on one thread."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import torch
from contestant import Unit, serve, timed
from jobs import JOBS, Job
from pytorch_training import client

ROUNDS = {"dnn": 50, "cnn": 2}


def prepare(job: Job, memory_format: str) -> tuple[int, Callable[[float], list[Unit]]]:
    model, train = client(job.name, memory_format)
    rounds = ROUNDS[job.name]
    generator = np.random.default_rng(1)

    def unit() -> float:
        w = [parameter.detach().clone() for parameter in model.parameters()]
        members = generator.choice(job.clients, job.k, replace=False).tolist()
        for _ in range(rounds):
            total = [torch.zeros_like(parameter) for parameter in w]
            for number in members:
                torch._foreach_add_(total, train(number, w), alpha=1 / job.k)
            w = total
        return rounds * job.k * job.local_steps

    unit()
    return sum(parameter.numel() for parameter in model.parameters()), lambda seconds: timed(unit, seconds)


if __name__ == "__main__":
    serve(lambda: prepare(JOBS[sys.argv[1]], sys.argv[2]))
