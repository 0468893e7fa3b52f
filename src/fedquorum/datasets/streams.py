"""Random streams by name: what one stream gives never depends on how much another was used."""

from __future__ import annotations

import hashlib

import numpy as np


def stream(purpose: str, seed: int, *parts: object) -> np.random.Generator:
    """The generator whose seed is SHA-256(purpose, seed, parts).

    Seeds are small numbers that people reuse (data, draw and training may all have seed 1). The purpose keeps
    their random numbers unrelated.

    >>> stream("a", 1).integers(100) == stream("a", 1).integers(100)
    np.True_
    >>> stream("a", 1).random() == stream("b", 1).random()
    False
    """
    name = repr(("fedquorum", purpose, int(seed), *parts))
    return np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest(), "big"))
