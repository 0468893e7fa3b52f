"""Data sets: found, checked, parsed once and cached; and who holds which example."""

from fedquorum.datasets.dataset import Dataset
from fedquorum.datasets.loading import NAMES, fetch, load
from fedquorum.datasets.partitions import PARTITIONS, partition

__all__ = ["NAMES", "PARTITIONS", "Dataset", "fetch", "load", "partition"]
