"""What a data set is, before anybody has decided which client holds what."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training examples `x`, `y` and test examples `test_x`, `test_y`, with labels 0 ... classes-1.

    `client[i]` is the natural client of training row i and `clients` the order in which the natural clients are
    enrolled; both are `None` where the examples come without owners (MNIST).

    >>> data = Dataset("mine", np.zeros((3, 2)), np.array([0, 1, 1]), np.zeros((1, 2)), test_y=None, classes=2)
    >>> data.client is None
    True
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray | None
    classes: int
    client: np.ndarray | None = None
    clients: tuple[Hashable, ...] | None = None
