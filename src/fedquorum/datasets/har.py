"""Human Activity Recognition with smartphones (UCI): 30 users, 561 features, 6 activities."""

from __future__ import annotations

import numpy as np

from fedquorum.datasets.dataset import Dataset
from fedquorum.datasets.finding import Found
from fedquorum.datasets.split import three_quarters


def parse_har(files: dict[str, Found]) -> dict[str, np.ndarray]:
    """UCI's two parts pooled, training part first: features, labels 0 ... 5 (1 ... 6 in the files), users.

    The text is 5.8 million numbers between blanks, which `np.fromstring` reads in half a second.
    """
    x, y, user = (
        np.concatenate(
            [np.fromstring(files[f"{part}/{kind}_{part}.txt"].content, sep=" ") for part in ("train", "test")]
        )
        for kind in ("X", "y", "subject")
    )
    return {
        "x": x.reshape(len(y), -1).astype(np.float32),
        "y": y.astype(np.int32) - 1,
        "user": user.astype(np.int64),
    }


def har(a: dict[str, np.ndarray], seed: int) -> Dataset:
    """The paper's federation: each user is a client, three quarters of a user's rows are for training."""
    x, y, user = a["x"], a["y"], a["user"]
    train = three_quarters(user, seed)
    return Dataset(
        "har",
        x[train],
        y[train],
        x[~train],
        y[~train],
        classes=6,
        client=user[train],
        clients=tuple(np.unique(user).tolist()),
    )
