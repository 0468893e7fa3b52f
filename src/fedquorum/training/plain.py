"""The second way in: any Python callable that learns from a list of clients."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedquorum.errors import InputError
from fedquorum.training.algorithm import Learned, Trainer, failed

if TYPE_CHECKING:
    from fedquorum.federation import Federation

Client = tuple[np.ndarray, np.ndarray]
Predict = Callable[[np.ndarray], Any]
Fit = Callable[[list[Client], int], Predict]


@dataclass(frozen=True)
class Plain:
    """A base algorithm from `fit(clients, seed) -> predict`, with `predict(test_x) -> labels`.

    `clients` lists the subsample's (x, y) pairs by ascending client number, isolated clients left out; they are
    copies, so that nothing done to them reaches another model. `seed` fits in 32 bits, which every library takes;
    Python's and NumPy's global generators are seeded with it too (a framework's own must be seeded in `fit`).
    Whatever goes wrong inside stays inside: the model then votes label 0 and says why. So does a hang: a model may take
    `time_limit` seconds (code that never comes back to Python's interpreter cannot be stopped so).

    >>> def majority(clients, seed):
    ...     label = np.bincount(np.concatenate([y for _, y in clients])).argmax()
    ...     return lambda x: np.full(len(x), label)
    >>> from fedquorum.federation import Federation
    >>> f = Federation(x=np.zeros((4, 1)), y=[1, 1, 0, 1], client=[0, 0, 1, 2], test_x=np.zeros((2, 1)))
    >>> [model.labels.tolist() for model in Plain(majority).trainer(f)(np.array([[0, 1], [1, 2]]), [7, 8])]
    [[1, 1], [0, 0]]
    """

    fit: Fit
    time_limit: float = 3600.0

    def __post_init__(self) -> None:
        if not callable(self.fit):
            raise InputError(f"fit is {self.fit!r}; it must be a callable fit(clients, seed) that returns predict(x)")
        if not self.time_limit > 0:
            raise InputError(f"time_limit is {self.time_limit!r}; it must be a positive number of seconds")

    def trainer(self, federation: Federation) -> Trainer:
        """Nothing to prepare: each model is one call of `fit` and one of its `predict`."""

        def train(subsamples: np.ndarray, seeds: Sequence[int]) -> Iterator[Learned]:
            for subsample, seed in zip(subsamples, seeds, strict=True):
                yield self._learn(federation, np.sort(subsample), int(seed) % 2**32)

        return train

    def _learn(self, federation: Federation, subsample: np.ndarray, seed: int) -> Learned:
        clients = [
            tuple(part.copy() for part in federation.examples(int(i))) for i in subsample if not federation.isolated[i]
        ]
        if not clients:
            return failed(federation, "every client of the subsample is isolated")
        try:
            with _global_generators(seed), _alarm(self.time_limit):
                predict = self.fit(clients, seed)  # type: ignore[arg-type]
                labels = np.asarray(predict(federation.test_x.copy()))
        except MemoryError:  # the machine's failure, not the model's: another worker may well succeed
            raise
        except _TooLong as error:
            return failed(federation, str(error))
        except (Exception, SystemExit) as error:  # a user's code may raise anything, and no model may take the run down
            return failed(federation, _said(error))
        d, classes = len(federation.test_x), int(federation.classes or 0)
        if labels.shape != (d,):
            return failed(federation, f"predict returned shape {labels.shape}; {(d,)} is needed")
        if labels.dtype.kind not in "iu":
            return failed(
                federation,
                f"predict returned labels of type {labels.dtype}; they must be integers",
            )
        if labels.min() < 0 or labels.max() >= classes:
            return failed(
                federation,
                f"predict returned a label outside the classes 0 to {classes - 1}",
            )
        return Learned(labels.astype(np.int32))


class _TooLong(BaseException):
    """No Exception, which code that tries again and again would catch."""


def _said(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # not even its text can be had
        return type(error).__name__


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise `_TooLong` in here after so long, and each second from then on, in case that something catches it."""

    def ring(number: int, frame: Any) -> None:
        raise _TooLong(f"it took longer than {seconds:g} seconds")

    # signals are for the main thread, which is where a worker learns
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, min(seconds, 1e8), 1.0)  # the system takes no infinity
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _global_generators(seed: int) -> Iterator[None]:
    """Many libraries draw from the global generators when not told otherwise; no two models may share one."""
    state, legacy = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(legacy)
