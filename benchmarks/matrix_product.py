"""The machine's own rate: the largest float32 matrix product that one thread of XLA can do. Its work is operations."""

from __future__ import annotations

import time
from collections.abc import Callable

from contestant import Unit, serve, timed

SIZES = (1024, 2048, 4096)


def prepare() -> tuple[int, Callable[[float], list[Unit]]]:
    import jax
    import jax.numpy as jnp

    product = jax.jit(jnp.dot)
    squares = {n: jax.random.normal(jax.random.key(0), (n, n), jnp.float32) for n in SIZES}

    def unit(n: int) -> float:
        product(squares[n], squares[n]).block_until_ready()
        return 2.0 * n**3

    def rate(n: int) -> float:
        unit(n)
        start = time.monotonic()
        return unit(n) / (time.monotonic() - start)

    best = max(SIZES, key=rate)
    return 0, lambda seconds: timed(lambda: unit(best), seconds)


if __name__ == "__main__":
    serve(prepare)
