"""The exact mode: every subsample was trained, so the votes are the ideal ensemble itself and nothing is estimated."""

from __future__ import annotations

import numpy as np

from fedquorum.certificates.certificate import ABSTAIN, Certificate
from fedquorum.certificates.theorem import level_of_gap


def certify(name: str, counts: np.ndarray, n: int, k: int, N: int, d: int) -> Certificate:
    """Theorem 1 with the true counts, lower = N_y and upper = N_z: m is certified iff N_y - N_z > 2 hit(m).

    A tie of the two largest has no label. No alpha is needed, and `paper` and `ideal` are the same here.

    >>> certify("ideal", np.array([[435, 0], [218, 217]]), 30, 2, 435, 2).level.tolist()
    [8, 0]
    """
    rows = np.arange(len(counts))
    label = counts.argmax(axis=1)
    first = counts[rows, label].astype(np.int64)
    others = counts.copy()
    others[rows, label] = -1
    level = level_of_gap(n, k, first - others.max(axis=1))
    return Certificate(
        name=name,
        label=np.where(level == ABSTAIN, ABSTAIN, label),
        level=level,
        n=n,
        k=k,
        N=N,
        d=d,
        design="distinct",
        alpha=None,
        delta=None,
        exact=True,
        statement=(
            f"Certain, for every input: the ensemble of the models of all {N} subsamples of {k} of the {n} clients gives "
            "the stated label, and gives it still when any clients, as many as the stated level, are malicious."
        ),
    )
