"""Who holds which training example: from nature, or dealt out to a number of clients."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from fedquorum.datasets.dataset import Dataset
from fedquorum.datasets.streams import stream
from fedquorum.errors import InputError
from fedquorum.federation import MAX_CLIENTS

PARTITIONS = ("natural", "q", "iid", "dirichlet", "shards")


def partition(
    dataset: Dataset,
    kind: str,
    *,
    count: int | None = None,
    q: float | None = None,
    concentration: float = 0.5,
    shards: int = 2,
    seed: int = 1,
) -> tuple[np.ndarray, tuple[Hashable, ...]]:
    """The client of each training row, and the clients in the order of their enrolment.

    `natural` takes the owners that the data set names. The others deal the rows out to `count` clients:

    - `q`: by the degree of non-IID q (the paper's; 0.5 if not given), see `by_degree`
    - `iid`: at random, in equal parts
    - `dirichlet`: each label's rows in proportions ~ Dirichlet(concentration), see `by_dirichlet`
    - `shards`: the rows sorted by label and cut, `shards` pieces for each client

    >>> from fedquorum.datasets import load
    >>> client, clients = partition(load("digits"), "iid", count=100)
    >>> len(client), len(clients), np.bincount(client).min(), np.bincount(client).max()
    (1437, 100, np.int64(14), np.int64(15))
    """
    if kind not in PARTITIONS:
        raise InputError(f"unknown partition {kind!r}; use one of {', '.join(PARTITIONS)}")
    if kind == "natural":
        return _natural(dataset, count)
    if count is None:
        raise InputError(f"partition {kind!r} needs a count, the number of clients")
    if count < 2:
        raise InputError(f"partition {kind!r} has count {count}; a federation needs at least 2 clients")
    if count > MAX_CLIENTS:
        raise InputError(f"partition {kind!r} has count {count}; at most {MAX_CLIENTS} clients can be certified")
    if kind == "q":
        client = by_degree(dataset.y, dataset.classes, count, 0.5 if q is None else q, seed)
        remedy = "take fewer clients or a q nearer to 1 / classes"
    elif kind == "iid":
        client = evenly(len(dataset.y), count, seed)
        remedy = "take fewer clients"
    elif kind == "dirichlet":
        client = by_dirichlet(dataset.y, dataset.classes, count, concentration, seed)
        remedy = "take fewer clients or a larger concentration"
    else:
        client = by_shards(dataset.y, count, shards, seed)
        remedy = "take fewer clients or fewer shards"
    empty = count - len(np.unique(client))
    if empty:
        raise InputError(
            f"partition {kind!r} leaves {empty} of {count} clients without an example ({len(client)} rows); {remedy}"
        )
    return client, tuple(range(count))


def by_degree(y: np.ndarray, classes: int, count: int, q: float, seed: int) -> np.ndarray:
    """The paper's non-IID split: clients in as many groups as classes, a row of label l goes to group l with
    probability q and to each other group with probability (1 - q) / (classes - 1), then to any client of its group.

    Clients 0, 1, ... fill the groups in order, equally (to within one client). What happens to a row depends on its
    place and label alone, so a change to one row moves no other.

    >>> by_degree(np.array([0, 1, 1, 0]), classes=2, count=2, q=1.0, seed=1).tolist()
    [0, 1, 1, 0]
    """
    if not 0 <= q <= 1:
        raise InputError(f"q is {q}; the degree of non-IID is a probability, 0 to 1")
    if count < classes:
        raise InputError(
            f"partition 'q' with {classes} classes needs at least {classes} clients, one per group; not {count}"
        )
    u = stream("partition q", seed).random((len(y), 3))
    other = (u[:, 1] * (classes - 1)).astype(np.int64)
    other += other >= y
    group = np.where(u[:, 0] < q, y, other)
    first = np.arange(classes + 1) * count // classes
    place: np.ndarray = first[group] + (u[:, 2] * np.diff(first)[group]).astype(np.int64)
    return place


def evenly(rows: int, count: int, seed: int) -> np.ndarray:
    """Independent of the labels: a random order, dealt round, so that sizes differ by at most one.

    >>> np.bincount(evenly(10, 4, seed=1)).tolist()
    [3, 3, 2, 2]
    """
    client = np.empty(rows, dtype=np.int64)
    client[stream("partition iid", seed).permutation(rows)] = np.arange(rows) % count
    return client


def by_dirichlet(y: np.ndarray, classes: int, count: int, concentration: float, seed: int) -> np.ndarray:
    """For each label l, p_l ~ Dirichlet(concentration, ..., concentration) over the clients; a row of label l goes to
    client i with probability p_l[i]. A small concentration gives each label to few clients.

    As in `by_degree`, a change to one row moves no other.

    >>> len(np.unique(by_dirichlet(np.zeros(100, int), classes=2, count=50, concentration=0.01, seed=1))) < 10
    True
    """
    if not (concentration > 0 and np.isfinite(concentration)):
        raise InputError(f"concentration is {concentration}; partition 'dirichlet' needs a number above 0")
    u = stream("partition dirichlet", seed).random(len(y))
    client = np.empty(len(y), dtype=np.int64)
    for label in range(classes):
        p = stream("partition dirichlet", seed, label).dirichlet(np.full(count, float(concentration)))
        rows = y == label
        # The sum of p may fall short of 1 by a rounding; the last client takes what is left.
        client[rows] = np.minimum(np.searchsorted(np.cumsum(p), u[rows], side="right"), count - 1)
    return client


def by_shards(y: np.ndarray, count: int, shards: int, seed: int) -> np.ndarray:
    """Rows sorted by label, cut into count * shards pieces of equal size (to within one row); each client gets `shards`
    pieces at random, and so sees few labels.

    >>> by_shards(np.array([1, 0, 1, 0]), count=2, shards=1, seed=1).tolist() in ([0, 1, 0, 1], [1, 0, 1, 0])
    True
    """
    if shards < 1:
        raise InputError(f"shards is {shards}; partition 'shards' gives each client at least 1")
    pieces = count * shards
    if pieces > len(y):
        raise InputError(
            f"partition 'shards' cuts {len(y)} rows into {count} x {shards} pieces; take fewer clients or fewer shards"
        )
    owner = stream("partition shards", seed).permutation(np.repeat(np.arange(count), shards))
    client = np.empty(len(y), dtype=np.int64)
    client[np.argsort(y, kind="stable")] = owner[np.arange(len(y)) * pieces // len(y)]
    return client


def _natural(dataset: Dataset, count: int | None) -> tuple[np.ndarray, tuple[Hashable, ...]]:
    if dataset.client is None or dataset.clients is None:
        raise InputError(
            f"{dataset.name} has no natural clients; partition it by one of {', '.join(PARTITIONS[1:])}, with a count"
        )
    if count is not None and count != len(dataset.clients):
        raise InputError(f"{dataset.name} has {len(dataset.clients)} natural clients, not {count}; leave the count out")
    return dataset.client, dataset.clients
