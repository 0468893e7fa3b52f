"""The same FedAvg in FedJAX: its own algorithm, its compiled backend, models in Haiku as its users write them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count

import fedjax
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from contestant import Unit, serve, timed
from jobs import JOBS, LOGISTIC, LOGISTIC_ROUNDS, Job, examples

# FedJAX 0.0.17 calls this by a name that JAX has dropped since; nothing else stands between the two.
if not hasattr(jax, "tree_map"):
    jax.tree_map = jax.tree.map

ROUNDS = {"dnn": 50, "cnn": 2, "logistic": LOGISTIC_ROUNDS}


def network(job: Job, batch: dict[str, jax.Array]) -> jax.Array:
    x = batch["x"]
    if x.dtype == jnp.uint8:
        x = x[..., None].astype(jnp.float32) / 255
    layers = {
        "dnn": [hk.Linear(256), jax.nn.relu, hk.Linear(256), jax.nn.relu, hk.Linear(job.classes)],
        "cnn": [
            hk.Conv2D(20, 5, padding="VALID"),
            jax.nn.relu,
            hk.MaxPool(2, 2, "VALID"),
            hk.Conv2D(50, 5, padding="VALID"),
            jax.nn.relu,
            hk.MaxPool(2, 2, "VALID"),
            hk.Flatten(),
            hk.Linear(512),
            jax.nn.relu,
            hk.Linear(job.classes),
        ],
        "logistic": [hk.Flatten(), hk.Linear(job.classes)],
    }
    return hk.Sequential(layers[job.name])(x)


def prepare(job: Job) -> tuple[int, Callable[[float], list[Unit]]]:
    x, y = examples(job)
    model = fedjax.create_model_from_haiku(
        hk.transform(lambda batch: network(job, batch)),
        {"x": x[0, :1], "y": y[0, :1]},
        train_loss=lambda batch, logits: fedjax.metrics.unreduced_cross_entropy_loss(batch["y"], logits),
    )
    algorithm = fedjax.algorithms.fed_avg.federated_averaging(
        fedjax.model_grad(model),
        client_optimizer=fedjax.optimizers.sgd(job.learning_rate),
        server_optimizer=fedjax.optimizers.sgd(1.0),
        client_batch_hparams=fedjax.ShuffleRepeatBatchHParams(
            batch_size=job.batch_size, num_epochs=None, num_steps=job.local_steps
        ),
    )
    datasets = [fedjax.ClientDataset({"x": x[i], "y": y[i]}) for i in range(job.clients)]
    start = algorithm.init(model.init(jax.random.key(0)))
    generator, numbers, rounds = np.random.default_rng(1), count(), ROUNDS[job.name]

    def cohort() -> list[int]:
        return generator.choice(job.clients, job.k, replace=False).tolist()

    def unit() -> float:
        state, members = start, cohort()
        for _ in range(rounds):
            if job is LOGISTIC:
                members = cohort()
            keys = jax.random.split(jax.random.key(next(numbers)), job.k)
            clients = [(i, datasets[i], key) for i, key in zip(members, keys, strict=True)]
            state, _ = algorithm.apply(state, clients)
        jax.block_until_ready(state.params)
        return rounds * job.k * job.local_steps

    unit()
    return sum(leaf.size for leaf in jax.tree.leaves(start.params)), lambda seconds: timed(unit, seconds)


if __name__ == "__main__":
    serve(lambda: prepare(JOBS[sys.argv[1]]))
