"""Networks of other libraries fit FedAvg as they are, or in two lines: what is asked for is `init` and `apply`."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from fedquorum import FedAvg, Federation
from fedquorum.training.models import Model


@pytest.fixture
def federation() -> Federation:
    """Three classes far apart, which any network learns in a few rounds."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    x = (np.eye(3)[y] * 4 + rng.normal(size=(120, 3))).astype(np.float32)
    return Federation(x[:90], y[:90], np.arange(90) // 15, x[90:], y[90:], 3)


def accuracy(model: Any, federation: Federation) -> float:
    (learned,) = FedAvg(model, rounds=20, learning_rate=0.2).trainer(federation)(np.array([[0, 2, 5]]), [1])
    assert learned.failure is None
    assert learned.parameters
    return float((learned.labels == federation.test_y).mean())


def test_a_flax_module_fits_as_it_is(federation: Federation) -> None:
    linen = pytest.importorskip("flax.linen")
    module = linen.Sequential([linen.Dense(16), linen.relu, linen.Dense(3)])
    assert accuracy(module, federation) > 0.9


def test_a_haiku_transform_fits_as_it_is(federation: Federation) -> None:
    haiku = pytest.importorskip("haiku")
    network = haiku.without_apply_rng(haiku.transform(lambda x: haiku.nets.MLP([16, 3])(x)))
    assert accuracy(network, federation) > 0.9


def test_an_equinox_module_is_its_own_parameters(federation: Federation) -> None:
    equinox = pytest.importorskip("equinox")

    def fresh(key: jax.Array) -> Any:
        return equinox.nn.MLP(3, 3, 16, 1, key=key)

    _, static = equinox.partition(fresh(jax.random.key(0)), equinox.is_array)
    network = Model(
        "mlp",
        init=lambda key, x: equinox.filter(fresh(key), equinox.is_array),
        apply=lambda arrays, x: jax.vmap(equinox.combine(arrays, static))(x),
    )
    assert accuracy(network, federation) > 0.9
