"""Handwritten digits of 8 x 8 pixels, which scikit-learn brings along: nothing to download."""

from __future__ import annotations

import numpy as np

from fedquorum.datasets.dataset import Dataset
from fedquorum.datasets.streams import stream

TEST_ROWS = 360  # of 1,797: a fifth


def digits() -> Dataset:
    """1,437 training and 360 test images as 64 numbers in 0 ... 1, always the same split.

    >>> data = digits()
    >>> data.x.shape, data.test_x.shape, data.classes
    ((1437, 64), (360, 64), 10)
    """
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    x = (pixels / 16).astype(np.float32)
    y = labels.astype(np.int32)
    order = stream("digits", 0).permutation(len(x))
    test, train = np.sort(order[:TEST_ROWS]), np.sort(order[TEST_ROWS:])
    return Dataset("digits", x[train], y[train], x[test], y[test], classes=10)
