"""Agg: how the server turns the k clients' model updates into one."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def mean(so_far: jax.Array, update: jax.Array, weight: jax.Array) -> jax.Array:
    """FedAvg's own, client by client: sum_i weight_i * update_i, added to `so_far` as the updates come.

    So the server keeps one array and not k of them, whose way through the cache would cost more than the sum. A client
    of weight 0 is left out, whatever its update holds.

    >>> w = jnp.array([1.0, 1.0])
    >>> for update, weight in [([1.0, 2.0], 0.5), ([3.0, 6.0], 0.5), ([jnp.nan, 0.0], 0.0)]:
    ...     w = mean(w, jnp.array(update), jnp.array(weight))
    >>> w.tolist()
    [3.0, 5.0]
    """
    return so_far + jnp.where(weight > 0, weight * update, 0)
