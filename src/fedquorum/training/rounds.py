"""Algorithm 1, compiled: the rounds of federated averaging over one subsample's clients, and the predictions after it.

Clients' data lie flat behind each other, so that clients of unequal size need no padding. Nothing here sees
a client outside the subsample: its rows are addressed by `starts` and `sizes`, its random numbers by its position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

# Enough rows to keep a matrix product busy, few enough that the activations of a CNN stay near the cache.
PREDICTION_CHUNK = 128

# Between steps that are written out the weights need not be copied, 4 % of the time of a small network, which stays in
# the cache; a larger one loses as much, because each step then has weights of its own.
SMALL_NETWORK = 1 << 18  # parameters
WRITTEN_OUT = 5


def inputs(rows: jax.Array) -> jax.Array:
    """Bytes are images: 0 ... 255 becomes 0 ... 1, in the compiled step, after the few rows were taken.

    >>> inputs(jnp.array([0, 255], dtype=jnp.uint8)).tolist()
    [0.0, 1.0]
    """
    return rows.astype(jnp.float32) / 255 if rows.dtype == jnp.uint8 else rows


def loss(logits: jax.Array, y: jax.Array) -> jax.Array:
    """Softmax cross entropy, the mean over the batch of log(sum_l exp z_l) - z_y.

    >>> float(loss(jnp.array([[0.0, 0.0]]), jnp.array([1])))  # log 2
    0.6931471824645996
    """
    # A comparison instead of an index: the gradient of taking an element is a scatter, which is slow on CPUs.
    chosen = y[:, None] == jnp.arange(logits.shape[1])
    return jnp.mean(jax.nn.logsumexp(logits, axis=1) - jnp.sum(jnp.where(chosen, logits, 0), axis=1))


def batches(
    key: jax.Array,
    round_number: jax.Array,
    sizes: jax.Array,
    local_steps: int,
    batch_size: int,
) -> jax.Array:
    """Row numbers (k, local_steps, batch_size) within each client: uniform with replacement, a whole round at once.

    32 random bits modulo the size: no row's probability is off by more than size / 2^32 of itself.

    >>> batches(jax.random.key(0), jnp.int32(3), jnp.array([5, 9]), local_steps=2, batch_size=4).shape
    (2, 2, 4)
    """
    shape = (len(sizes), local_steps, batch_size)
    bits = jax.random.bits(jax.random.fold_in(key, round_number), shape)
    return (bits % jnp.asarray(sizes, jnp.uint32)[:, None, None]).astype(jnp.int32)


def keys(seed: jax.Array) -> tuple[jax.Array, jax.Array]:
    """From the two 32-bit halves of a model's seed: the key of its initial weights, and that of its batches."""
    initial, rounds = jax.random.split(jax.random.wrap_key_data(seed, impl="threefry2x32"))
    return initial, rounds


def learn(
    config: Any,
    aggregate: Callable[[jax.Array, jax.Array, jax.Array], jax.Array],
    x: jax.Array,
    y: jax.Array,
    starts: jax.Array,
    sizes: jax.Array,
    weights: jax.Array,
    seed: jax.Array,
) -> Any:
    """The global model after all rounds of w <- w + server_rate * Agg(w_1 - w, ..., w_k - w).

    Client i of the subsample holds rows starts[i] ... starts[i] + sizes[i] - 1 and has weight weights[i].
    """
    model, optimizer = config.model, config.local_optimizer()
    initial, rounds = keys(seed)

    def objective(w: Any, rows: jax.Array) -> jax.Array:
        return loss(model.apply(w, inputs(x[rows])), y[rows])

    def client_update(w: Any, rows: jax.Array) -> Any:
        def step(state: tuple[Any, Any], rows: jax.Array) -> tuple[tuple[Any, Any], None]:
            w_i, memory = state
            updates, memory = optimizer.update(jax.grad(objective)(w_i, rows), memory, w_i)
            return (jax.tree.map(jnp.add, w_i, updates), memory), None

        (w_i, _), _ = jax.lax.scan(step, (w, optimizer.init(w)), rows, unroll=unroll)
        return jax.tree.map(jnp.subtract, w_i, w)

    def one_round(w: Any, round_number: jax.Array) -> tuple[Any, None]:
        rows = starts[:, None, None] + batches(rounds, round_number, sizes, config.local_steps, config.batch_size)

        def add(so_far: Any, client: tuple[Any, jax.Array]) -> tuple[Any, None]:
            g, weight = client
            return jax.tree.map(lambda s, g: aggregate(s, g, config.server_rate * weight), so_far, g), None

        def learn_and_add(so_far: Any, client: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
            rows, weight = client
            return add(so_far, (client_update(w, rows), weight))

        if config.lanes == 1:
            return jax.lax.scan(learn_and_add, w, (rows, weights))[0], None
        side_by_side = min(config.lanes, len(starts))
        g = jax.lax.map(lambda r: client_update(w, r), rows, batch_size=side_by_side)
        return jax.lax.scan(add, w, (g, weights))[0], None

    w = model.init(initial, jnp.zeros((1, *x.shape[1:]), jnp.float32))
    small = sum(leaf.size for leaf in jax.tree.leaves(w)) <= SMALL_NETWORK
    unroll = min(WRITTEN_OUT, config.local_steps) if small else 1
    w, _ = jax.lax.scan(one_round, w, jnp.arange(config.rounds))
    return w


def predict(model: Any, w: Any, x: jax.Array) -> jax.Array:
    """The most likely class of each input, 0 where the model has lost its way to a NaN; chunk by chunk.

    The last chunk reaches back into the one before it where x does not divide evenly, which costs a few inputs
    computed twice and saves a padded copy of x.
    """
    d = len(x)
    size = min(PREDICTION_CHUNK, d)

    def chunk(i: jax.Array, labels: jax.Array) -> jax.Array:
        start = jnp.minimum(i * size, d - size)
        logits = model.apply(w, inputs(jax.lax.dynamic_slice_in_dim(x, start, size)))
        lost = jnp.isnan(logits).any(axis=1)
        found = jnp.where(lost, 0, jnp.argmax(logits, axis=1)).astype(jnp.int32)
        return jax.lax.dynamic_update_slice_in_dim(labels, found, start, 0)

    labels: jax.Array = jax.lax.fori_loop(0, -(-d // size), chunk, jnp.zeros(d, jnp.int32))
    return labels
