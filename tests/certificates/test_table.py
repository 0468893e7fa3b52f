"""The table of the specification: all four certificates for votes of a label and its runner-up, the rest spread evenly.

n = 1000, k = 10, N = 500, alpha = delta = 0.001, d = 10,000, ten labels; every test asserts its line of the table.
"""

import numpy as np
import pytest

from fedquorum.certificates import ABSTAIN, certify_counts, membership
from fedquorum.subsamples import draw
from fedquorum.votes import Votes

ROWS = [(500, 0), (475, 25), (475, 5), (450, 50), (450, 10), (400, 100), (400, 25), (350, 150), (350, 30), (300, 40)]


def spread(first, second):
    """first and second, and the rest of 500 spread evenly over the other eight labels."""
    rest = 500 - first - second
    return [first, second] + [rest // 8 + (i < rest % 8) for i in range(8)]


def levels(name, design, y=0):
    counts = [spread(*row) for row in ROWS] if y == 0 else [spread(*row)[::-1] for row in ROWS]
    certificate = certify_counts(counts, 1000, 10, 500, design, name, alpha="0.001", delta="0.001", d=10_000)
    assert certificate.label.tolist() == [y if level != ABSTAIN else ABSTAIN for level in certificate.level]
    return certificate.level


@pytest.mark.parametrize("design", ["independent", "distinct"])
def test_paper(design):
    assert levels("paper", design).tolist() == [60, 46, 46, 36, 36, 21, 21, 8, 8, ABSTAIN]


@pytest.mark.parametrize("y", [0, 9])
@pytest.mark.parametrize("design", ["independent", "distinct"])
def test_ideal(design, y):
    level = levels("ideal", design, y)
    assert (level >= [60, 46, 50, 36, 43, 21, 31, 8, 23, 15]).all()
    assert level.tolist() == [60, 46, 51, 36, 45, 21, 33, 8, 25, 17]


@pytest.mark.parametrize("design", ["independent", "distinct"])
def test_served(design):
    level = levels("served", design)
    assert (level >= [54, 46, 49, 39, 45, 26, 36, 15, 29, 22]).all()
    assert level.tolist() == [54, 46, 50, 39, 45, 27, 36, 16, 29, 22]


@pytest.mark.parametrize("design", ["independent", "distinct"])
def test_served_for_a_label_that_loses_ties(design):
    assert levels("served", design, y=9).tolist() == [54, 46, 49, 39, 45, 26, 36, 15, 29, 22]


@pytest.mark.parametrize(
    ("design", "fast"),
    [
        ("balanced", [50, 45, 47, 40, 44, 30, 37, 20, 32, 26]),
        ("independent", [26, 23, 24, 21, 23, 15, 19, 10, 17, 14]),
    ],
)
def test_membership_by_its_fast_bound(design, fast):
    subsamples = np.asarray(draw(1000, 10, 500, design, seed=1))
    # in any order: `balanced` deals clients out model after model, so sorted votes would tell a model's clients
    votes = np.random.default_rng(0).permuted(
        np.stack([np.repeat(np.arange(10), spread(*row)) for row in ROWS], axis=1), axis=0
    )
    certificate = membership.certify(Votes(votes, subsamples, clients=1000, classes=10, design=design), exact=False)
    assert certificate.label.tolist() == [0] * len(ROWS)
    assert certificate.level.tolist() == fast
