"""`ideal`: about the ideal ensemble over all M subsamples, against any m clients, with probability 1 - alpha, proved."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np

from fedquorum.certificates import exact
from fedquorum.certificates.certificate import ABSTAIN, Certificate
from fedquorum.certificates.clopper_pearson import level_of_votes


def certify(counts: np.ndarray, n: int, k: int, N: int, d: int, design: str, alpha: Fraction) -> Certificate:
    """The most-voted label y with the level that `level_of_votes` gives N_y votes at alpha/(2d).

    The half pays for choosing the label from the same votes: two labels near 1/2 may both be over-estimated, and that is
    the worst case (the proof is in docs/explanation/certificates.md).
    """
    if design == "distinct" and comb(n, k) == N:
        return exact.certify("ideal", counts, n, k, N, d)
    level = level_of_votes(n, k, N, design, alpha / (2 * d))[counts.max(axis=1)]
    return Certificate(
        name="ideal",
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
            f"With probability at least 1 - {float(alpha)} over the draw of the {N} subsamples, for all {d} inputs together, "
            f"chosen without looking at the draw or the models: the ideal ensemble over all subsamples of {k} of the {n} "
            "clients gives the stated label, and gives it still when any clients, as many as the stated level, are malicious."
        ),
    )
