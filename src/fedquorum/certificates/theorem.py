"""Theorem 1 of the paper, in integers: no float can turn a tie into a certificate."""

from __future__ import annotations

from math import comb

import numpy as np


def hit(n: int, k: int, m: int) -> int:
    """The number of subsamples that hold at least one of m clients: C(n,k) - C(n-m,k).

    >>> hit(30, 2, 8)
    204
    """
    return comb(n, k) - comb(n - m, k)


def level_of_gap(n: int, k: int, gap: np.ndarray) -> np.ndarray:
    """The largest m in 0 ... n-k with gap > 2 hit(m), where gap = lower - upper in models; -1 (ABSTAIN) if none.

    m clients can take hit(m) models from the label and give them to another: they close a gap of 2 hit(m). For votes of
    all M = C(n,k) models, so that 2M fits a machine integer.

    >>> level_of_gap(30, 2, np.array([435, 409, 408, 1, 0])).tolist()
    [8, 8, 7, 0, -1]
    """
    closed = np.array([2 * hit(n, k, m) for m in range(n - k + 1)], dtype=np.int64)
    return np.searchsorted(closed, gap, side="left") - 1
