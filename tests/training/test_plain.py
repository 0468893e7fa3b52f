"""The second way in: callables of any kind, whose mishaps stay inside their model."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from fedquorum.errors import InputError
from fedquorum.federation import Federation
from fedquorum.training.plain import Plain


def federation(bad: bool = False) -> Federation:
    rng = np.random.default_rng(1)
    y = np.arange(60) % 3
    x = np.eye(3)[y] + 0.1 * rng.normal(size=(60, 3))
    if bad:
        x[0, 0] = np.inf
    return Federation(x, y, np.arange(60) // 10, test_x=np.eye(3))


def learn(fit: Any, subsamples: Any = ((0, 2), (3, 5)), data: Federation | None = None) -> list[Any]:
    return list(
        Plain(fit).trainer(data or federation())(np.array(subsamples), [2**40 + i for i in range(len(subsamples))])
    )


def test_a_scikit_learn_estimator_is_a_base_algorithm() -> None:
    def fit(clients: list[Any], seed: int) -> Callable[[np.ndarray], np.ndarray]:
        x, y = (np.concatenate(part) for part in zip(*clients, strict=True))
        return SGDClassifier(random_state=seed).fit(x, y).predict

    assert [model.labels.tolist() for model in learn(fit)] == [[0, 1, 2], [0, 1, 2]]


def test_clients_come_in_ascending_order_with_their_rows() -> None:
    data = federation()
    seen: list[Any] = []
    learn(
        lambda clients, seed: seen.append(clients) or (lambda x: np.zeros(3, int)),
        [(4, 1)],
        data,
    )
    for (x, y), i in zip(seen[0], (1, 4), strict=True):
        assert np.array_equal(x, data.examples(i)[0]) and np.array_equal(y, data.examples(i)[1])


def raises(clients: Any, seed: int) -> Any:
    raise ValueError("two\nlines")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def unspeakable(clients: Any, seed: int) -> Any:
    raise Unspeakable


@pytest.mark.parametrize(
    ("fit", "failure"),
    [
        (raises, "ValueError: two lines"),
        (
            lambda clients, seed: lambda x: [0, 1],
            "predict returned shape (2,); (3,) is needed",
        ),
        (
            lambda clients, seed: lambda x: [0, 1, 3],
            "predict returned a label outside the classes 0 to 2",
        ),
        (
            lambda clients, seed: lambda x: [0, -1, 2],
            "predict returned a label outside the classes 0 to 2",
        ),
        (
            lambda clients, seed: lambda x: [0.0, 1.0, 2.0],
            "predict returned labels of type float64; they must be integers",
        ),
        (lambda clients, seed: None, "TypeError: 'NoneType' object is not callable"),
        (
            lambda clients, seed: lambda x: np.zeros(3, "m8[s]"),
            "predict returned labels of type timedelta64[s]; they must be integers",
        ),
        (lambda clients, seed: sys.exit("enough"), "SystemExit: enough"),
        (unspeakable, "Unspeakable"),
    ],
)
def test_a_failure_is_one_vote_for_label_0_and_says_why(fit: Any, failure: str) -> None:
    def only_the_first(clients: list[Any], seed: int) -> Any:
        return fit(clients, seed) if seed % 2 == 0 else lambda x: np.array([2, 2, 2])

    lost, kept = learn(only_the_first)
    assert lost.labels.tolist() == [0, 0, 0] and lost.failure == failure
    assert kept.labels.tolist() == [2, 2, 2] and kept.failure is None


def test_a_hang_is_a_failure_too() -> None:
    def fit(clients: list[Any], seed: int) -> Any:
        while seed % 2 == 0:
            with contextlib.suppress(Exception):  # try again until it works, which it never will
                time.sleep(0.01)
        return lambda x: np.array([2, 2, 2])

    lost, kept = list(Plain(fit, time_limit=0.2).trainer(federation())(np.array([[0], [1]]), [2, 3]))
    assert lost.failure == "it took longer than 0.2 seconds"
    assert lost.labels.tolist() == [0, 0, 0]
    assert kept.failure is None


def test_an_exhausted_machine_is_not_a_vote() -> None:
    def fit(clients: list[Any], seed: int) -> Any:
        raise MemoryError

    with pytest.raises(MemoryError):
        learn(fit)


def test_an_isolated_client_is_left_out() -> None:
    with pytest.warns(UserWarning, match="isolated"):
        data = federation(bad=True)
    lost, kept = learn(lambda clients, seed: lambda x: np.full(3, len(clients)), [(0,), (1,)], data)
    assert lost.failure == "every client of the subsample is isolated" and lost.labels.tolist() == [0, 0, 0]
    assert kept.labels.tolist() == [1, 1, 1]
    assert learn(lambda clients, seed: lambda x: np.full(3, len(clients)), [(0, 1)], data)[0].labels.tolist() == [
        1,
        1,
        1,
    ]


def test_what_fit_does_to_its_data_reaches_no_other_model() -> None:
    data = federation()
    before = data.x.copy(), data.test_x.copy()

    def vandal(clients: list[Any], seed: int) -> Any:
        for x, y in clients:
            x[:], y[:] = 7, 0

        def predict(x: np.ndarray) -> np.ndarray:
            x[:] = 7
            return np.zeros(len(x), int)

        return predict

    learn(vandal, data=data)
    assert np.array_equal(data.x, before[0]) and np.array_equal(data.test_x, before[1])


def test_global_generators_belong_to_the_model_not_to_the_process() -> None:
    import random

    def fit(clients: list[Any], seed: int) -> Any:
        labels = np.random.randint(3, size=3) + 0 * random.randrange(3)
        return lambda x: (labels + random.randrange(3)) % 3

    first = [model.labels.tolist() for model in learn(fit, [(0, 1), (2, 3)])]
    np.random.seed(99)
    state = np.random.get_state()[1].copy()
    again = [model.labels.tolist() for model in learn(fit, [(0, 1), (2, 3)])]
    assert first == again and np.array_equal(np.random.get_state()[1], state)


def test_seeds_fit_in_32_bits() -> None:
    seeds: list[int] = []
    learn(lambda clients, seed: seeds.append(seed) or (lambda x: np.zeros(3, int)))
    assert seeds == [0, 1]  # of 2**40 and 2**40 + 1


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(InputError, match="callable"):
        Plain("mine.py")  # type: ignore[arg-type]
