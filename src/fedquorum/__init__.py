"""Ensemble federated learning whose predictions a bounded number of malicious clients provably cannot change.

import fedquorum as fq
federation = fq.Federation(x, y, client, test_x=..., test_y=...)
subsamples = fq.draw(federation.n, k=10, count=500, design="independent", seed=0)
votes = fq.train(federation, fq.FedAvg(fq.models.dnn(classes=10)), subsamples)
certificate = fq.certify(votes, "ideal", alpha=0.001)
certificate.label, certificate.level, certificate.accuracy(federation.test_y)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fedquorum._version import __version__

if TYPE_CHECKING:
    from fedquorum.certificates import Certificate, certify
    from fedquorum.engines.train import train
    from fedquorum.errors import InputError, MachineError
    from fedquorum.federation import Federation
    from fedquorum.subsamples import Subsamples, draw
    from fedquorum.training import models
    from fedquorum.training.fedavg import FedAvg
    from fedquorum.training.plain import Plain
    from fedquorum.votes import Votes, load_votes, save_votes

# Names are imported when they are first used: JAX takes a second to load, and votes can be certified without it.
_HOME = {
    "Certificate": "fedquorum.certificates",
    "certify": "fedquorum.certificates",
    "train": "fedquorum.engines.train",
    "InputError": "fedquorum.errors",
    "MachineError": "fedquorum.errors",
    "Federation": "fedquorum.federation",
    "Subsamples": "fedquorum.subsamples",
    "draw": "fedquorum.subsamples",
    "FedAvg": "fedquorum.training.fedavg",
    "Plain": "fedquorum.training.plain",
    "Votes": "fedquorum.votes",
    "load_votes": "fedquorum.votes",
    "save_votes": "fedquorum.votes",
}

__all__ = [
    "Certificate",
    "FedAvg",
    "Federation",
    "InputError",
    "MachineError",
    "Plain",
    "Subsamples",
    "Votes",
    "__version__",
    "certify",
    "draw",
    "load_votes",
    "models",
    "save_votes",
    "train",
]


def __getattr__(name: str) -> Any:
    if name == "models":
        return importlib.import_module("fedquorum.training.models")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fedquorum' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
