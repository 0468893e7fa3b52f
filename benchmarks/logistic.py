"""The yardstick from fedquorum's parts: ten random clients in each of 100 rounds, one epoch of batches of ten."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
from contestant import Unit, serve, timed
from jobs import LOGISTIC as JOB
from jobs import LOGISTIC_ROUNDS, examples

from fedquorum import models
from fedquorum.training import aggregation
from fedquorum.training.rounds import inputs, loss

MODEL = models.linear(JOB.classes)


def client_update(w: Any, x: jax.Array, y: jax.Array, client: jax.Array, key: jax.Array) -> Any:
    """g_i = w_i - w after one epoch over the client's examples, in a random order."""

    def objective(w_i: Any, rows: jax.Array) -> jax.Array:
        return loss(MODEL.apply(w_i, inputs(x[client, rows])), y[client, rows])

    def step(w_i: Any, rows: jax.Array) -> tuple[Any, None]:
        gradient = jax.grad(objective)(w_i, rows)
        return jax.tree.map(lambda w, g: w - JOB.learning_rate * g, w_i, gradient), None

    order = jax.random.permutation(key, JOB.rows).reshape(JOB.local_steps, JOB.batch_size)
    w_i, _ = jax.lax.scan(step, w, order)
    return jax.tree.map(jnp.subtract, w_i, w)


@jax.jit
def learn(x: jax.Array, y: jax.Array, seed: jax.Array) -> Any:
    """The global model after all rounds."""

    def one_round(w: Any, key: jax.Array) -> tuple[Any, None]:
        members = jax.random.choice(key, JOB.clients, (JOB.k,), replace=False)
        keys = jax.random.split(jax.random.fold_in(key, 1), JOB.k)
        g = jax.lax.map(lambda client: client_update(w, x, y, *client), (members, keys))

        def add(so_far: Any, update: Any) -> tuple[Any, None]:
            return jax.tree.map(lambda s, u: aggregation.mean(s, u, jnp.float32(1 / JOB.k)), so_far, update), None

        return jax.lax.scan(add, w, g)[0], None

    key = jax.random.key(seed)
    w = MODEL.init(key, jnp.zeros((1, *JOB.shape)))
    w, _ = jax.lax.scan(one_round, w, jax.random.split(key, LOGISTIC_ROUNDS))
    return w


def prepare() -> tuple[int, Callable[[float], list[Unit]]]:
    x, y = (jnp.asarray(part) for part in examples(JOB))
    number = count()

    def unit() -> float:
        jax.block_until_ready(learn(x, y, jnp.uint32(next(number))))  # type: ignore[no-untyped-call]
        return LOGISTIC_ROUNDS * JOB.k * JOB.local_steps

    unit()
    w = learn(x, y, jnp.uint32(0))
    return sum(leaf.size for leaf in jax.tree.leaves(w)), lambda seconds: timed(unit, seconds)


if __name__ == "__main__":
    serve(prepare)
