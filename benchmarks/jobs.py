"""The federated trainings that are timed, and how many floating-point operations a local step of each is.

Only NumPy is needed here: every contestant, whatever its environment, reads its job from this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Job:
    """FedAvg on `clients` clients of `rows` examples each, `k` of whom train in a round, `local_steps` batches each."""

    name: str
    title: str
    shape: tuple[int, ...]
    dtype: type
    classes: int
    clients: int
    rows: int
    k: int
    batch_size: int
    local_steps: int
    learning_rate: float
    parameters: int
    multiply_adds: tuple[int, ...]  # of each layer's matrix product or convolution, for one example

    @property
    def flops(self) -> int:
        """Operations of one local step: forward, weight gradients, and input gradients but for the first layer's.

        A multiplication and an addition are two. Nothing but matrix products and convolutions counts.
        """
        return 2 * self.batch_size * (3 * sum(self.multiply_adds) - self.multiply_adds[0])


# HAR's 30 users hold 257 training examples each, on average; the paper draws two of them for a model.
DNN = Job(
    name="dnn",
    title="HAR's DNN (561-256-256-6)",
    shape=(561,),
    dtype=np.float32,
    classes=6,
    clients=30,
    rows=257,
    k=2,
    batch_size=32,
    local_steps=5,
    learning_rate=0.001,
    parameters=211_206,
    multiply_adds=(561 * 256, 256 * 256, 256 * 6),
)

# Two valid 5x5 convolutions with 2x2 pooling: 28 -> 24 -> 12 -> 8 -> 4.
CNN = Job(
    name="cnn",
    title="MNIST's CNN (Table 2)",
    shape=(28, 28),
    dtype=np.uint8,
    classes=10,
    clients=1000,
    rows=60,
    k=10,
    batch_size=32,
    local_steps=5,
    learning_rate=0.001,
    parameters=440_812,
    multiply_adds=(24 * 24 * 25 * 20, 8 * 8 * 25 * 20 * 50, 4 * 4 * 50 * 512, 512 * 10),
)

# The yardstick: one global model, ten clients anew in each of 100 rounds, one epoch of their 60 examples.
LOGISTIC = Job(
    name="logistic",
    title="MNIST, logistic regression",
    shape=(28, 28),
    dtype=np.uint8,
    classes=10,
    clients=1000,
    rows=60,
    k=10,
    batch_size=10,
    local_steps=6,
    learning_rate=0.03,
    parameters=7_850,
    multiply_adds=(784 * 10,),
)
LOGISTIC_ROUNDS = 100

JOBS = {job.name: job for job in (DNN, CNN, LOGISTIC)}


def examples(job: Job) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (clients, rows, *shape) and labels (clients, rows): noise, which trains as fast as data does."""
    generator = np.random.default_rng(0)
    shape = (job.clients, job.rows, *job.shape)
    if job.dtype is np.uint8:
        x = np.frombuffer(generator.bytes(math.prod(shape)), np.uint8).reshape(shape).copy()
    else:
        x = generator.uniform(-1, 1, shape).astype(np.float32)
    return x, generator.integers(0, job.classes, shape[:2])
