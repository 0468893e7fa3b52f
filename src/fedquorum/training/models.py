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
from fedquorum.training.convolution import KERNEL, convolve
from fedquorum.training.products import times

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

    The images are (N, H, W) or (N, H, W, channels); nothing is padded.

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
        h = times(h, layer["w"]) + layer["b"]
        if i < depth - 1:
            h = jax.nn.relu(h)
    return h


CHANNELS, HIDDEN = (20, 50), 512


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
    h = x.reshape(*x.shape[:3], -1).transpose(1, 3, 2, 0)  # (height, channels, width, batch)
    for i in range(len(CHANNELS)):
        layer = parameters[f"conv{i}"]
        h = convolve(h, layer["w"], layer["b"])
    return _dnn_apply(2, parameters, h.reshape(-1, len(x)).T)
