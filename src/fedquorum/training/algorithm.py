"""What a base algorithm must offer: k clients and a seed in, the test inputs' labels out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fedquorum.errors import one_line

if TYPE_CHECKING:
    from fedquorum.federation import Federation


@dataclass(frozen=True, eq=False)
class Learned:
    """What one model says: a label for each of the d test inputs, and its parameters where it has arrays of them.

    A model that failed has the fixed label 0 everywhere, so that the failure is one vote and no more;
    `failure` says in one line what went wrong.

    >>> Learned(labels=np.array([3, 1])).failure is None
    True
    """

    labels: np.ndarray
    parameters: Mapping[str, np.ndarray] | None = None
    failure: str | None = None


def failed(federation: Federation, why: str, parameters: Mapping[str, np.ndarray] | None = None) -> Learned:
    """The vote of a model that could not be trained: label 0 for every input."""
    return Learned(np.zeros(len(federation.test_x), dtype=np.int32), parameters, one_line(why))


Trainer = Callable[[np.ndarray, Sequence[int]], Iterator[Learned]]


class BaseAlgorithm(Protocol):
    """The base federated algorithm A: f(C', x) is the label that A, run on the clients C' alone, gives x."""

    def trainer(self, federation: Federation) -> Trainer:
        """Prepare once per process; the result maps (subsamples (s, k), s model seeds) to s `Learned`, in order."""
        ...


def model_seed(seed: int, subsample: Iterable[int]) -> int:
    """The 64-bit seed of the model that learns from `subsample`, in a run whose algorithm seed is `seed`.

    It is the head of SHA-256(domain, seed, sorted subsample): it does not depend on when, where or in which
    order models are trained, and says nothing about another model's seed.

    >>> model_seed(1, [4, 2]) == model_seed(1, [2, 4])
    True
    >>> model_seed(1, [2, 4]) == model_seed(1, [24])
    False
    """
    members = ",".join(str(i) for i in sorted(int(i) for i in subsample))
    digest = hashlib.sha256(f"fedquorum model seed 1|{int(seed)}|{members}".encode()).digest()
    return int.from_bytes(digest[:8], "big")
