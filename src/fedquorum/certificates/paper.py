"""`paper`: Algorithm 2 of the paper as it stands, for comparison; its true failure probability can be almost 2 alpha."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np

from fedquorum.certificates import exact
from fedquorum.certificates.certificate import ABSTAIN, Certificate, exactly
from fedquorum.certificates.clopper_pearson import level_of_votes


def certify(counts: np.ndarray, n: int, k: int, N: int, d: int, design: str, alpha: Fraction) -> Certificate:
    """The most-voted label y with the level that `level_of_votes` gives N_y votes at alpha/d."""
    if design == "distinct" and comb(n, k) == N:
        return exact.certify("paper", counts, n, k, N, d)
    level = level_of_votes(n, k, N, design, alpha / d)[counts.max(axis=1)]
    return Certificate(
        name="paper",
        label=np.where(level == ABSTAIN, ABSTAIN, counts.argmax(axis=1)),
        level=level,
        n=n,
        k=k,
        N=N,
        d=d,
        design=design,
        alpha=alpha,
        delta=None,
        exact=False,
        statement=(
            f"As the paper's Algorithm 2 with alpha = {exactly(alpha)} over all {d} inputs together: the ideal ensemble over "
            f"all subsamples of {k} of the {n} clients gives the stated label, and gives it still when any clients, as many "
            "as the stated level, are malicious; the label is chosen from the same votes, so the proved failure probability "
            f"is {exactly(min(2 * alpha, Fraction(1)))}."
        ),
    )
