"""The published data itself, where this machine has it: the paper's numbers hold."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fedquorum.datasets import Dataset, load, partition

PLACES = [os.environ.get("FEDQUORUM_DATA"), Path(__file__).resolve().parents[3] / "shared" / "data"]
PLACE = next((Path(place).expanduser() for place in PLACES if place and Path(place).expanduser().is_dir()), None)


def real(name: str, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    if PLACE is None or not (PLACE / name).is_dir():
        pytest.skip(f"{name} is not on this machine (FEDQUORUM_DATA)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDQUORUM_CACHE", str(tmp_path_factory.mktemp("cache")))
        return load(name, PLACE)


@pytest.fixture(scope="module")
def mnist(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return real("mnist", tmp_path_factory)


@pytest.fixture(scope="module")
def har(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return real("har", tmp_path_factory)


def test_mnist_is_mnist(mnist: Dataset) -> None:
    assert mnist.x.shape == (60_000, 28, 28) and mnist.test_x.shape == (10_000, 28, 28) and mnist.x.dtype == np.uint8
    assert mnist.y[:8].tolist() == [5, 0, 4, 1, 9, 2, 1, 3]
    assert np.bincount(mnist.y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


def test_mnist_over_a_thousand_clients_leaves_none_empty(mnist: Dataset) -> None:
    client, clients = partition(mnist, "q", count=1000, q=0.5, seed=1)
    assert len(clients) == 1000 and np.bincount(client).min() > 20
    assert np.mean(client // 100 == mnist.y) == pytest.approx(0.5, abs=0.01)


def test_har_is_split_as_in_the_paper(har: Dataset) -> None:
    assert har.test_y is not None and har.client is not None
    assert (len(har.x), len(har.test_x)) == (7723, 2576)
    assert har.x.shape[1] == 561 and har.x.dtype == np.float32 and np.abs(har.x).max() <= 1
    assert har.clients == tuple(range(1, 31)) and set(har.client.tolist()) == set(har.clients)
    total = np.bincount(har.y) + np.bincount(har.test_y)
    assert total.tolist() == [1722, 1544, 1406, 1777, 1906, 1944]
