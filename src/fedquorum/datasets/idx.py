"""MNIST's file format, idx, which Fashion-MNIST shares."""

from __future__ import annotations

import numpy as np

from fedquorum.datasets.dataset import Dataset
from fedquorum.datasets.finding import Found
from fedquorum.datasets.published import IDX_FILES


def parse_idx(content: bytes) -> np.ndarray:
    """Bytes 0, 0, 8 (uint8) and the number of dimensions; each dimension in four bytes, big end first; the data.

    >>> parse_idx(bytes([0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 3, 7, 8, 9])).tolist()
    [[7, 8, 9]]
    """
    dimensions = content[3]
    shape = np.frombuffer(content, ">u4", count=dimensions, offset=4).astype(int)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def parse_images(files: dict[str, Found]) -> dict[str, np.ndarray]:
    """The four arrays: images stay bytes (N, 28, 28), labels become int32."""
    x, y, test_x, test_y = (parse_idx(files[name].content) for name in IDX_FILES)
    return {"x": x, "y": y.astype(np.int32), "test_x": test_x, "test_y": test_y.astype(np.int32)}


def images(name: str, a: dict[str, np.ndarray]) -> Dataset:
    """MNIST or Fashion-MNIST: 60,000 and 10,000 images of ten classes, with no natural clients."""
    return Dataset(name, a["x"], a["y"], a["test_x"], a["test_y"], classes=10)
