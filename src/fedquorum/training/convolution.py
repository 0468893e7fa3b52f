"""A convolution, its ReLU and its pooling in one function, arranged for the cache of a CPU core.

The images are (height, channels, width, batch), so that every pass runs along contiguous memory and the rows under
one row of the result are one piece of it. A row of the result is then one matrix product, whose operand, the row's
patches, fits into the L2 cache; the patches of all rows would not.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fedquorum.training.products import laid_out, product

KERNEL = 5  # rows and columns

Saved = tuple[jax.Array, jax.Array, jax.Array, jax.Array, list[jax.Array]]


@jax.custom_vjp
def convolve(h: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
    """relu(maximum over 2x2 blocks of (h * w + b)): (H, C, W, N) to ((H-4)//2, outputs, (W-4)//2, N), nothing padded.

    The weights w are (25 C, outputs), by row, column and channel. Of equal values in a block the first is its maximum;
    a last row or column without a neighbour is dropped.

    >>> h, w = jnp.ones((7, 1, 6, 1)), jnp.ones((25, 2))
    >>> convolve(h, w, jnp.array([-5.0, -30.0])).squeeze().tolist()
    [20.0, 0.0]
    """
    return _forward(h, w, b)[0]


def _forward(h: jax.Array, w: jax.Array, b: jax.Array) -> tuple[jax.Array, Saved]:
    columns = _columns(h)
    rows, winners = [], []
    for y in range(0, len(h) - KERNEL, 2):
        upper, lower = (_halves(product(w.T, _patches(columns, y + dy)), h.shape[-1]) for dy in (0, 1))
        highest = jnp.maximum(jnp.maximum(*upper), jnp.maximum(*lower))
        first = jnp.where(upper[0] >= upper[1], 0, 1), jnp.where(lower[0] >= lower[1], 2, 3)
        above = jnp.maximum(*upper) >= jnp.maximum(*lower)
        row = highest + b[:, None, None]
        rows.append(jnp.maximum(row, 0))
        winners.append(jnp.where(above, *first))
    out = jnp.stack(rows)
    return out, (h, columns, w, out, winners)


def _backward(saved: Saved, g: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    h, columns, w, out, winners = saved
    g = jnp.where(out > 0, g, 0)
    channels, width, batch = h.shape[1:]
    wide = columns.shape[3]
    # Measured: for one channel (25, outputs) is quicker to form than (outputs, 25), for more the other way round.
    thin = channels == 1
    for_h, for_w = jnp.zeros_like(h), jnp.zeros_like(w if thin else w.T)
    for y in range(0, 2 * len(g), 2):
        for dy in (0, 1):
            sides = [jnp.where(winners[y // 2] == 2 * dy + dx, g[y // 2], 0) for dx in (0, 1)]
            for_row = laid_out(jnp.stack(sides, axis=2)).reshape(w.shape[1], -1)
            seen = _patches(columns, y + dy)
            for_w += seen @ for_row.T if thin else for_row @ seen.T
            patches = product(w, for_row).reshape(KERNEL, KERNEL, channels, wide, batch)
            # the sum of what a place gave to its patches: over the columns here, over the rows in for_h
            parts = [jnp.pad(patches[:, x], ((0, 0), (0, 0), (x, width - wide - x), (0, 0))) for x in range(KERNEL)]
            total = for_h[y + dy : y + dy + KERNEL] + sum(parts[1:], start=parts[0])
            for_h = jax.lax.dynamic_update_slice_in_dim(for_h, total, y + dy, axis=0)
    for_b = g.sum(axis=(0, 2, 3))
    return for_h, for_w if thin else for_w.T, for_b


convolve.defvjp(_forward, _backward)


def _columns(h: jax.Array) -> jax.Array:
    """(height, kernel column, channels, places, batch): each row of images, shifted by 0 to 4 columns.

    Written part by part, which takes half the time of XLA's concatenation.
    """
    height, channels, width, batch = h.shape
    wide = (width - KERNEL + 1) // 2 * 2
    columns = jnp.zeros((height, KERNEL, channels, wide, batch), h.dtype)
    for x in range(KERNEL):
        columns = jax.lax.dynamic_update_slice_in_dim(columns, h[:, None, :, x : x + wide], x, axis=1)
    return columns


def _patches(columns: jax.Array, y: int) -> jax.Array:
    """(25 channels, places x batch): what the kernel sees along row y of the result."""
    return columns[y : y + KERNEL].reshape(-1, columns.shape[3] * columns.shape[4])


def _halves(row: jax.Array, batch: int) -> tuple[jax.Array, jax.Array]:
    """The left and the right place of each block: twice (outputs, blocks, batch)."""
    blocks = row.reshape(len(row), -1, 2, batch)
    return blocks[:, :, 0], blocks[:, :, 1]
