"""The figures of the specification, through the same door that a user takes: votes in, certificate out."""

import numpy as np
import pytest

from fedquorum.certificates import ABSTAIN, certify, certify_counts
from fedquorum.certificates.oracle import recompute
from fedquorum.votes import Votes

FOR = [500, 475, 450, 400, 350, 309, 308]
PAPER = [60, 46, 36, 21, 8, 0, ABSTAIN]
IDEAL = [60, 46, 36, 21, 8, ABSTAIN, ABSTAIN]


def mnist_votes(design):
    """10,000 inputs, 500 models of 10 of 1,000 clients; input t has FOR[t % 7] votes for label 3, the rest for label 7."""
    rng = np.random.default_rng(0)
    votes = np.where(np.arange(500)[:, None] < np.array(FOR)[np.arange(10_000) % len(FOR)], 3, 7)
    subsamples = np.array([rng.choice(1000, 10, replace=False) for _ in range(500)])
    return Votes(votes=votes, subsamples=subsamples, clients=1000, classes=10, design=design)


@pytest.mark.parametrize("design", ["independent", "distinct"])
@pytest.mark.parametrize(("name", "levels"), [("paper", PAPER), ("ideal", IDEAL)])
def test_levels_of_the_specification(name, levels, design):
    votes = mnist_votes(design)
    certificate = certify(votes, name, alpha=0.001)
    assert certificate.level[: len(FOR)].tolist() == levels
    assert certificate.label[: len(FOR)].tolist() == [3 if level != ABSTAIN else ABSTAIN for level in levels]
    labels, again = recompute(votes, name, alpha=0.001)
    assert (labels, again) == (certificate.label.tolist(), certificate.level.tolist())


@pytest.mark.parametrize("design", ["independent", "distinct"])
@pytest.mark.parametrize("name", ["paper", "ideal"])
def test_more_models_cannot_pass_66(name, design):
    def level(models):
        return int(certify_counts([[models, 0]], 1000, 10, models, design, name, d=10_000).level[0])

    assert [level(500), level(2_000), level(10_000)] == [60, 65, 66]
    assert level(15_000) == 66


@pytest.mark.parametrize("name", ["paper", "ideal"])
def test_har_with_all_435_models(name):
    certificate = certify_counts([[435, 0, 0, 0, 0, 0], [0, 218, 217, 0, 0, 0]], 30, 2, 435, "distinct", name)
    assert certificate.level.tolist() == [8, 0]
    assert certificate.exact and certificate.alpha is None
