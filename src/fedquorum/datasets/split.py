"""A test set out of every client's own rows, where a data set brings none."""

from __future__ import annotations

import numpy as np

from fedquorum.datasets.streams import stream


def three_quarters(client: np.ndarray, seed: int) -> np.ndarray:
    """For each row, whether it is for training: of a client's r rows, round(3r / 4), drawn at random.

    A half is rounded to the even number, which gives HAR's 30 users the paper's 7,723 training rows. Each client
    has its own random stream: no client's rows change the split of another's.

    >>> three_quarters(np.array([7, 7, 7, 7, 3]), seed=1).sum()
    np.int64(4)
    """
    train = np.zeros(len(client), dtype=bool)
    order = np.argsort(client, kind="stable")
    ids, first = np.unique(client[order], return_index=True)
    for identity, rows in zip(ids.tolist(), np.split(order, first[1:]), strict=True):
        chosen = stream("split", seed, identity).permutation(len(rows))[: round(3 * len(rows) / 4)]
        train[rows[chosen]] = True
    return train
