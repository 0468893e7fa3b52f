"""What a certificate is: per input a label and a level, and one sentence that says what they claim."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fedquorum.errors import InputError

ABSTAIN = -1


def exactly(risk: Fraction) -> str:
    """A failure probability as text that loses nothing: a decimal where a short one is exact, a fraction elsewhere.

    >>> exactly(Fraction("0.001")), exactly(Fraction(1, 3))
    ('0.001', '1/3')
    """
    text = str(float(risk))
    return text if Fraction(text) == risk else str(risk)


@dataclass(frozen=True, eq=False)
class Certificate:
    """The certified label and level of every input; both are `ABSTAIN` (-1) where nothing can be claimed.

    `n`, `k`, `N`, `d` and `design` are those of the votes; `alpha` and `delta` are the allowed failure probabilities,
    `None` where they play no part; `exact` says that the claim is certain; `statement` is the claim in one sentence.

    >>> c = Certificate("ideal", np.array([1, 0, -1]), np.array([2, 0, -1]), n=5, k=1, N=5, d=3, design="distinct",
    ...                 alpha=None, delta=None, exact=True, statement="...")
    >>> c.abstained
    1
    >>> c.accuracy([1, 1, 0]).round(3).tolist()
    [0.333, 0.333, 0.333, 0.0, 0.0, 0.0]
    """

    name: str
    label: np.ndarray
    level: np.ndarray
    n: int
    k: int
    N: int
    d: int
    design: str
    alpha: Fraction | None
    delta: Fraction | None
    exact: bool
    statement: str

    @property
    def abstained(self) -> int:
        """How many inputs have no certificate."""
        return int((self.level == ABSTAIN).sum())

    def accuracy(self, labels: Any) -> np.ndarray:
        """Certified accuracy: entry m is CA@m = #{t : label_t = labels_t and level_t >= m} / #inputs, m = 0 ... n."""
        truth = np.asarray(labels)
        if truth.shape != self.label.shape or not np.issubdtype(truth.dtype, np.integer):
            raise InputError(
                f"'labels' has shape {truth.shape} and type {truth.dtype}; {len(self.label)} integers are needed, one per input"
            )
        right = self.level[(truth == self.label) & (self.level != ABSTAIN)]
        at_level = np.bincount(right, minlength=self.n + 1)
        return np.cumsum(at_level[::-1])[::-1] / len(self.label)
