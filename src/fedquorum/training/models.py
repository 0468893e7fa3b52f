"""Models as pairs of pure functions: the paper's CNN and DNN, and the linear one.

Any object with `init(key, x) -> parameters` and `apply(parameters, x) -> logits` serves as a model; x is a batch of
inputs, (N, *shape), and the logits are (N, classes).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from fedquorum.errors import InputError

Parameters = Mapping[str, Mapping[str, jax.Array]]


@dataclass(frozen=True)
class Model:
    """A named `init` / `apply` pair."""

    name: str
    init: Callable[[jax.Array, jax.Array], Any]
    apply: Callable[[Any, jax.Array], jax.Array]


def linear(classes: int) -> Model:
    """Multinomial logistic regression: logits = x W + b.

    >>> model = linear(classes=3)
    >>> x = jnp.zeros((2, 4))
    >>> model.apply(model.init(jax.random.key(0), x), x).shape
    (2, 3)
    """
    return dnn(classes, hidden=())


def dnn(classes: int, hidden: Sequence[int] = (256, 256)) -> Model:
    """Fully connected layers with ReLU between them: the paper's network for HAR with its 561 inputs and 6 classes.

    >>> parameters = dnn(classes=6).init(jax.random.key(0), jnp.zeros((1, 561)))
    >>> sum(leaf.size for leaf in jax.tree.leaves(parameters))
    211206
    """
    widths = (*(_size("hidden", width) for width in hidden), _size("classes", classes))
    name = "-".join(["dnn", *map(str, widths)]) if hidden else f"linear-{classes}"
    return Model(name, partial(_dnn_init, widths), partial(_dnn_apply, len(widths)))


def cnn(classes: int) -> Model:
    """The paper's Table 2: two rounds of 5x5 convolution (20, then 50 channels), ReLU and 2x2 pooling, then 512 ReLU.

    The images are (N, H, W) or (N, H, W, channels); nothing is padded. Inside, the batch is the last axis: every
    elementwise pass then runs along contiguous memory, and a convolution is one matrix product with the
    matrix of image patches.

    >>> parameters = cnn(classes=10).init(jax.random.key(0), jnp.zeros((1, 28, 28, 1)))
    >>> sum(leaf.size for leaf in jax.tree.leaves(parameters))
    440812
    """
    return Model(f"cnn-{_size('classes', classes)}", partial(_cnn_init, classes), _cnn_apply)


def _size(what: str, value: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{what} is {value!r}; a model needs a whole number of at least 1 there")
    return value


def _layer(key: jax.Array, inputs: int, outputs: int) -> dict[str, jax.Array]:
    """Weights uniform in +-sqrt(6 / (inputs + outputs)) (Glorot and Bengio), biases zero."""
    limit = math.sqrt(6 / (inputs + outputs))
    return {
        "w": jax.random.uniform(key, (inputs, outputs), jnp.float32, -limit, limit),
        "b": jnp.zeros(outputs),
    }


def _dnn_init(widths: Sequence[int], key: jax.Array, x: jax.Array) -> Parameters:
    inputs = (math.prod(x.shape[1:]), *widths[:-1])
    keys = jax.random.split(key, len(widths))
    return {f"dense{i}": _layer(keys[i], inputs[i], widths[i]) for i in range(len(widths))}


def _dnn_apply(depth: int, parameters: Parameters, x: jax.Array) -> jax.Array:
    h = x.reshape(len(x), -1)
    for i in range(depth):
        layer = parameters[f"dense{i}"]
        h = _times(h, layer["w"]) + layer["b"]
        if i < depth - 1:
            h = jax.nn.relu(h)
    return h


@jax.custom_vjp
def _times(h: jax.Array, w: jax.Array) -> jax.Array:
    """h @ w, with gradients whose products stay fast on CPUs."""
    return h @ w


def _times_forward(h: jax.Array, w: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return h @ w, (h, w)


def _times_backward(saved: tuple[jax.Array, jax.Array], g: jax.Array) -> tuple[jax.Array, jax.Array]:
    """g @ w.T and h.T @ g, by transposing the smaller matrices."""
    h, w = saved
    for_w = _product(g.T, h).T if g.size + w.size < h.size else _product(h.T, g)
    return _product(w, g.T).T, for_w


_times.defvjp(_times_forward, _times_backward)


def _product(a: jax.Array, b: jax.Array) -> jax.Array:
    """a @ b as two matrices that lie row by row in memory.

    Left to itself, XLA folds a transpose into the product, and its CPU kernels then run at 40 to 80 % of their speed;
    the barriers make the transpose happen, which costs little where it is done to the smaller matrices.
    """
    return jax.lax.optimization_barrier(jnp.matmul(*jax.lax.optimization_barrier((a, b))))


CHANNELS, HIDDEN, KERNEL = (20, 50), 512, 5


def _cnn_init(classes: int, key: jax.Array, x: jax.Array) -> Parameters:
    height, width, channels = *x.shape[1:3], x.shape[3] if x.ndim == 4 else 1
    keys = jax.random.split(key, 4)
    parameters = {}
    for i, outputs in enumerate(CHANNELS):
        height, width = (height - KERNEL + 1) // 2, (width - KERNEL + 1) // 2
        if min(height, width) < 1:
            raise InputError(f"the cnn needs images of at least 16x16; these are {x.shape[1]}x{x.shape[2]}")
        parameters[f"conv{i}"] = _layer(keys[i], KERNEL * KERNEL * channels, outputs)
        channels = outputs
    parameters["dense0"] = _layer(keys[2], channels * height * width, HIDDEN)
    parameters["dense1"] = _layer(keys[3], HIDDEN, classes)
    return parameters


def _cnn_apply(parameters: Parameters, x: jax.Array) -> jax.Array:
    h = x.reshape(*x.shape[:3], -1).transpose(3, 1, 2, 0)  # (channels, height, width, batch)
    for i in range(len(CHANNELS)):
        # max and ReLU commute, and pooling first leaves a quarter of the ReLUs
        h = jax.nn.relu(_pool(_convolve(parameters[f"conv{i}"], h)))
    h = h.reshape(-1, h.shape[-1])
    h = jax.nn.relu(_dense(parameters["dense0"], h))
    return _dense(parameters["dense1"], h).T


def _dense(layer: Mapping[str, jax.Array], h: jax.Array) -> jax.Array:
    return jnp.einsum("io,in->on", layer["w"], h) + layer["b"][:, None]


def _convolve(layer: Mapping[str, jax.Array], h: jax.Array) -> jax.Array:
    _, height, width, batch = h.shape
    out = _dense(layer, _columns(h))
    return out.reshape(-1, height - KERNEL + 1, width - KERNEL + 1, batch)


def _pool(h: jax.Array) -> jax.Array:
    """The maximum of each 2x2 block; an odd last row or column is dropped."""
    channels, height, width, batch = h.shape
    h = h[:, : height // 2 * 2, : width // 2 * 2]
    return h.reshape(channels, height // 2, 2, width // 2, 2, batch).max(axis=(2, 4))


@jax.custom_vjp
def _columns(h: jax.Array) -> jax.Array:
    """The patches of (channels, height, width, batch): a row per kernel position and channel, a column per place."""
    channels, height, width, batch = h.shape
    rows, cols = height - KERNEL + 1, width - KERNEL + 1
    patches = [h[:, i : i + rows, j : j + cols] for i in range(KERNEL) for j in range(KERNEL)]
    return jnp.concatenate(patches).reshape(KERNEL * KERNEL * channels, rows * cols * batch)


def _columns_forward(h: jax.Array) -> tuple[jax.Array, tuple[int, ...]]:
    return _columns(h), h.shape


def _columns_backward(shape: tuple[int, ...], g: jax.Array) -> tuple[jax.Array]:
    """Each patch's gradient is added in place where it came from; left to itself, XLA would add 25 padded copies."""
    channels, height, width, batch = shape
    rows, cols = height - KERNEL + 1, width - KERNEL + 1
    patches = g.reshape(KERNEL, KERNEL, channels, rows, cols, batch)
    h = jnp.zeros(shape, g.dtype)
    for i in range(KERNEL):
        for j in range(KERNEL):
            h = h.at[:, i : i + rows, j : j + cols].add(patches[i, j])
    return (h,)


_columns.defvjp(_columns_forward, _columns_backward)
