"""`served`: the least h, and how often it fails against clients fixed before the draw."""

from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, combinations
from math import comb

import numpy as np
import pytest
from scipy import stats

from fedquorum.certificates import certify_counts, served
from fedquorum.certificates.theorem import hit
from tests.certificates.test_ideal import shapes


def test_every_input_has_a_level_even_a_tie():
    certificate = certify_counts([[250, 250], [0, 500], [167, 333]], 1000, 10, 500, "independent", "served")
    assert certificate.label.tolist() == [0, 1, 1]
    assert certificate.level[0] == 0
    assert certificate.abstained == 0


@pytest.mark.parametrize("delta", [Fraction(1, 1000), Fraction(1, 20), Fraction(1, 2)])
@pytest.mark.parametrize(
    ("n", "k", "N", "design"),
    [(5, 1, 40, "independent"), (30, 2, 200, "independent"), (30, 2, 200, "distinct"), (8, 4, 70, "distinct")],
)
def test_h_is_the_least_that_keeps_delta(n, k, N, design, delta):
    for m in range(n - k + 1):
        struck, every = hit(n, k, m), comb(n, k)
        law = stats.binom(N, struck / every) if design == "independent" else stats.hypergeom(every, struck, N)
        h = served.models_hit(n, k, N, design, delta, m)
        assert law.sf(h) <= float(delta) * (1 + 1e-9)
        assert h == 0 or law.sf(h - 1) > float(delta) * (1 - 1e-9)


REPETITIONS = 100_000
DELTA = Fraction(1, 20)
# Sizes of the coalition: clients 0 ... m-1, fixed before the draw. Levels around these are what the shapes of votes earn.
SIZES = {3: (1,), 5: (1, 2), 30: (1, 3, 4, 5, 7, 8), 1000: (1, 2, 30, 34, 59, 60)}
SMALL = [
    (3, 1, 25, "independent"),
    (5, 1, 69, "independent"),
    (30, 2, 100, "independent"),
    (30, 2, 300, "distinct"),
]


@lru_cache(maxsize=1)
def draws(n, k, N, design):
    """How often each of the M subsamples (in the order of `combinations`) is in each of the repeated draws of N."""
    every, rng = comb(n, k), np.random.default_rng(6)
    times = np.zeros((REPETITIONS, every), dtype=np.uint16)
    for block in np.split(times, 10):
        if design == "independent":
            which = rng.integers(every, size=(len(block), N)) + every * np.arange(len(block))[:, None]
            block[:] = np.bincount(which.ravel(), minlength=block.size).reshape(block.shape)
        else:
            which = rng.random(block.shape).argpartition(N - 1, axis=1)[:, :N]
            np.put_along_axis(block, which, 1, axis=1)
    return times


def votes_in_draws(n, k, N, design, K):
    """Repetitions x groups x labels: votes in real draws, by the smallest of SIZES whose clients are in the model, if any.

    In the order of `combinations` the models of the clients 0, 1, ... come first; they vote y as far as K allows.
    """
    groups = np.array([bisect_right(SIZES[n], min(subsample)) for subsample in combinations(range(n), k)])
    cells = groups * len(K) + np.repeat(np.arange(len(K)), K)
    one_each = np.eye((len(SIZES[n]) + 1) * len(K), dtype=np.float32)[cells]
    votes = [block.astype(np.float32) @ one_each for block in np.split(draws(n, k, N, design), 10)]
    return np.concatenate(votes).astype(np.int64).reshape(REPETITIONS, -1, len(K))


def votes_by_law(n, k, N, K):
    """The same for M too large to list: the counts are multinomial, with the same models in each cell.

    500 of 2.6e23 models drawn without and with replacement differ with probability 500^2 / (2 M) < 1e-18.
    """
    every = comb(n, k)
    ends = [hit(n, k, m) for m in SIZES[n]] + [every]
    upto = list(accumulate(K))
    cells = [
        max(0, min(end, stop) - max(start, first))
        for start, end in zip([0, *ends], ends, strict=False)
        for first, stop in zip([0, *upto], upto, strict=False)
    ]
    assert sum(cells) == every
    votes = np.random.default_rng(6).multinomial(N, [cell / every for cell in cells], REPETITIONS)
    return votes.reshape(REPETITIONS, -1, len(K))


def failures(votes, n, k, N, design):
    """For every size m of a coalition, how often a label of level m or more changes when the hit models vote for one rival.

    Of the labels but y, the one with most votes not hit (of equals, the smallest) is the rival that needs fewest more.
    """
    certificate = certify_counts(votes.sum(axis=1), n, k, N, design, "served", delta=DELTA)
    rates = []
    for i, m in enumerate(SIZES[n], start=1):
        claimed = certificate.level >= m
        after, label = votes[claimed, i:].sum(axis=1), certificate.label[claimed]
        rows = np.arange(len(label))
        others = after.copy()
        others[rows, label] = -1
        after[rows, others.argmax(axis=1)] += votes[claimed, :i].sum(axis=(1, 2))
        rates.append((after.argmax(axis=1) != label).sum() / REPETITIONS)
    return np.array(rates)


ALLOWED = float(DELTA) + 4 * np.sqrt(float(DELTA * (1 - DELTA)) / REPETITIONS)


@pytest.mark.parametrize(
    ("n", "k", "N", "design", "shape"), [(*case, shape) for case in SMALL for shape in shapes(*case[:2])]
)
def test_failure_of_real_draws(n, k, N, design, shape):
    votes = votes_in_draws(n, k, N, design, shapes(n, k)[shape])
    assert (votes.sum(axis=(1, 2)) == N).all()
    assert (failures(votes, n, k, N, design) <= ALLOWED).all()  # y is label 0, which wins ties
    assert (failures(votes[:, :, ::-1], n, k, N, design) <= ALLOWED).all()  # y is the last label, which loses them


@pytest.mark.parametrize("design", ["independent", "distinct"])
@pytest.mark.parametrize("shape", shapes(1000, 10))
def test_failure_at_the_scale_of_use(shape, design):
    votes = votes_by_law(1000, 10, 500, shapes(1000, 10)[shape])
    assert (failures(votes, 1000, 10, 500, design) <= ALLOWED).all()
    assert (failures(votes[:, :, ::-1], 1000, 10, 500, design) <= ALLOWED).all()


def test_the_bound_is_nearly_reached():
    # 69 unanimous votes, M = 5: two clients are in more than half of the models in 4.7 % of the draws, of 5 % allowed.
    assert failures(votes_in_draws(5, 1, 69, "independent", [5, 0]), 5, 1, 69, "independent")[1] > 0.9 * float(DELTA)
