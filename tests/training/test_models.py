"""The paper's networks: their sizes, and the CNN against the textbook convolution."""

from __future__ import annotations

import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedquorum.errors import InputError
from fedquorum.training.models import cnn, dnn, linear
from fedquorum.training.rounds import loss


def parameter_count(parameters: Any) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(parameters))


def test_har_s_network_is_561_256_256_6() -> None:
    parameters = dnn(classes=6).init(jax.random.key(0), jnp.zeros((1, 561)))
    shapes = [parameters[f"dense{i}"]["w"].shape for i in range(3)]
    assert shapes == [(561, 256), (256, 256), (256, 6)]
    assert parameter_count(parameters) == (561 + 1) * 256 + (256 + 1) * 256 + (256 + 1) * 6


def test_mnist_s_network_is_the_papers_table_2() -> None:
    parameters = cnn(classes=10).init(jax.random.key(0), jnp.zeros((1, 28, 28)))
    assert parameter_count(parameters) == (25 + 1) * 20 + (25 * 20 + 1) * 50 + (4 * 4 * 50 + 1) * 512 + (512 + 1) * 10


def test_the_linear_model_is_a_matrix_and_a_bias() -> None:
    assert parameter_count(linear(10).init(jax.random.key(0), jnp.zeros((1, 28, 28)))) == 7850


def textbook(parameters: Any, x: jax.Array) -> jax.Array:
    """Table 2 in the library's own words: convolution, ReLU, pooling, on (N, H, W, C)."""
    h = x
    for name in ("conv0", "conv1"):
        kernel = parameters[name]["w"].reshape(5, 5, h.shape[-1], -1)
        h = jax.lax.conv_general_dilated(h, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        h = jax.nn.relu(h + parameters[name]["b"])
        h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    h = h.transpose(0, 1, 3, 2).reshape(len(x), -1)
    h = jax.nn.relu(h @ parameters["dense0"]["w"] + parameters["dense0"]["b"])
    return h @ parameters["dense1"]["w"] + parameters["dense1"]["b"]


@pytest.mark.parametrize("shape", [(28, 28, 1), (19, 22, 3)])
def test_the_cnn_and_its_gradient_are_the_textbooks(shape: tuple[int, ...]) -> None:
    x = jax.random.uniform(jax.random.key(1), (6, *shape))
    y = jnp.arange(6) % 5
    model = cnn(classes=5)
    parameters = jax.jit(model.init)(jax.random.key(2), x)

    def logits_and_gradient(apply: Any) -> Any:
        def objective(w: Any) -> Any:
            logits = apply(w, x)
            return loss(logits, y), logits

        gradient, logits = jax.jit(jax.grad(objective, has_aux=True))(parameters)
        return logits, gradient

    ours, theirs = logits_and_gradient(model.apply), logits_and_gradient(textbook)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-4),
        ours,
        theirs,
    )


def test_a_black_image_does_not_multiply_the_gradient() -> None:
    """Where all four pooled values tie, as on MNIST's margins, their gradients must still sum to one."""
    model = cnn(classes=2)
    x = jnp.zeros((4, 28, 28))
    parameters = model.init(jax.random.key(0), x)
    parameters["conv0"]["b"] = parameters["conv0"]["b"] + 0.5

    @jax.jit
    def along(t: float) -> jax.Array:
        moved = parameters | {"conv0": parameters["conv0"] | {"b": parameters["conv0"]["b"] + t}}
        return loss(model.apply(moved, x), jnp.zeros(4, jnp.int32))

    slope = (along(1e-2) - along(-1e-2)) / 2e-2
    np.testing.assert_allclose(jax.grad(along)(0.0), slope, rtol=1e-2)


def test_images_may_come_with_or_without_their_channel_axis() -> None:
    x = jax.random.uniform(jax.random.key(1), (3, 28, 28))
    model = cnn(classes=10)
    parameters, apply = jax.jit(model.init)(jax.random.key(2), x), jax.jit(model.apply)
    assert np.array_equal(apply(parameters, x), apply(parameters, x[..., None]))


def test_models_survive_pickling_as_they_must_to_reach_the_workers() -> None:
    model = pickle.loads(pickle.dumps(dnn(6, (8,))))
    assert model.name == "dnn-8-6" and model.init(jax.random.key(0), jnp.zeros((1, 3)))["dense0"]["w"].shape == (3, 8)


@pytest.mark.parametrize("build", [lambda: linear(0), lambda: dnn(3, (8, 0)), lambda: cnn(2.0)])  # type: ignore[arg-type]
def test_a_size_that_is_none_is_refused(build: Any) -> None:
    with pytest.raises(InputError, match="at least 1"):
        build()


def test_an_image_too_small_for_the_cnn_is_refused() -> None:
    with pytest.raises(InputError, match="16x16"):
        cnn(2).init(jax.random.key(0), jnp.zeros((1, 8, 8)))
