"""`ideal`: about the ideal ensemble over all M subsamples, against any m clients, with probability 1 - alpha, proved.

Each input may fail with probability alpha/d. Two ways to a level share it, so that the better of the two may be taken for each
input: the votes of the label alone, and the label against its runner-up. In each way level 0 has to be earned at a
small failure probability of its own, the gate. A label that is not the ideal ensemble's can do harm only by passing the gate;
so the price of choosing the label from the same votes is paid there, and all other levels cost no more than for a label fixed
beforehand (the proof is in docs/explanation/certificates.md).
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np

from fedquorum.certificates import exact
from fedquorum.certificates.betting import levels_by_betting
from fedquorum.certificates.certificate import ABSTAIN, Certificate, exactly
from fedquorum.certificates.clopper_pearson import level_of_votes
from fedquorum.certificates.two_bounds import levels_by_two_bounds

# How alpha/d is shared out; the four add up to 1.
VOTES, VOTES_GATE = Fraction(45, 100), Fraction(6, 100)
RUNNER_UP, RUNNER_UP_GATE = Fraction(45, 100), Fraction(4, 100)
# From this part of all models on, a `distinct` draw says more by its two bounds than by betting.
LARGE_PART = Fraction(1, 4)


def certify(
    counts: np.ndarray, n: int, k: int, N: int, d: int, design: str, alpha: Fraction, classes: int
) -> Certificate:
    """The most-voted label y with the better of the level of its votes and the level of its lead over the runner-up.

    `classes` is how many labels there could be, known before the votes: each might pass the gate by mistake.
    """
    every = comb(n, k)
    if design == "distinct" and every == N:
        return exact.certify("ideal", counts, n, k, N, d)
    most, second = leaders(counts)
    pairs, which = np.unique(most.astype(np.int64) * (N + 1) + second, return_inverse=True)
    level = level_of_pairs(pairs // (N + 1), pairs % (N + 1), n, k, N, design, classes, alpha / d)[which]
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
            f"With probability at least 1 - {exactly(alpha)} over the draw of the {N} subsamples, for all {d} inputs together, "
            f"chosen without looking at the draw or the models: the ideal ensemble over all subsamples of {k} of the {n} "
            "clients gives the stated label, and gives it still when any clients, as many as the stated level, are malicious."
        ),
    )


def leaders(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest and the second largest count of each input.

    >>> [column.tolist() for column in leaders(np.array([[3, 5, 2], [4, 4, 2]]))]
    [[5, 4], [3, 4]]
    """
    top = np.partition(counts, counts.shape[1] - 2, axis=1)
    return top[:, -1], top[:, -2]


def level_of_pairs(
    most: np.ndarray, second: np.ndarray, n: int, k: int, N: int, design: str, classes: int, risk: Fraction
) -> np.ndarray:
    """The level of `most` votes against `second`, when a certificate may be wrong with probability `risk` per input.

    >>> risk = Fraction(1, 10**7)
    >>> level_of_pairs(np.array([500, 400, 400]), np.array([0, 100, 25]), 1000, 10, 500, "independent", 10, risk).tolist()
    [60, 21, 33]
    """
    alone = level_of_votes(n, k, N, design, VOTES * risk, gate=VOTES_GATE * risk / 2)[most]
    by = levels_by_two_bounds if by_two_bounds(n, k, N, design) else levels_by_betting
    ahead = by(n, k, N, most, second, *lead_risks(n, k, N, design, classes, risk))
    better: np.ndarray = np.maximum(alone, ahead)
    return better


def by_two_bounds(n: int, k: int, N: int, design: str) -> bool:
    """Whether the lead is judged by two bounds, not by betting: for `distinct` draws of a good part of all models.

    >>> by_two_bounds(30, 2, 300, "distinct"), by_two_bounds(30, 2, 300, "independent")
    (True, False)
    """
    return design == "distinct" and LARGE_PART * comb(n, k) <= N


def lead_risks(n: int, k: int, N: int, design: str, classes: int, risk: Fraction) -> tuple[Fraction, Fraction]:
    """The failure probabilities of the gate and of the other levels, for each single test of the lead.

    >>> lead_risks(1000, 10, 500, "independent", 10, Fraction(1, 10**7)) == (Fraction(4, 10**10), Fraction(45, 10**9))
    True
    """
    if by_two_bounds(n, k, N, design):
        # two bounds can be wrong for the label, and at the gate one for each label and two for the leader
        return RUNNER_UP_GATE * risk / (classes + 2), RUNNER_UP * risk / 2
    return RUNNER_UP_GATE * risk / classes, RUNNER_UP * risk
