"""The fast path equals the slow exact one, on every design and in every corner."""

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedquorum.certificates import certify, certify_counts
from fedquorum.certificates.oracle import lower_bound, recompute
from fedquorum.errors import InputError
from fedquorum.votes import Votes

FROM_COUNTS = ("paper", "ideal", "served")


@st.composite
def tables(draw):
    n = draw(st.integers(1, 9))
    k = draw(st.integers(1, n))
    design = draw(st.sampled_from(["independent", "distinct"]))
    subsamples = list(combinations(range(n), k))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    most = 40 if design == "independent" else len(subsamples)
    models = draw(st.one_of(st.integers(1, most), st.just(most)))
    rows = rng.choice(len(subsamples), models, replace=design == "independent")
    classes = draw(st.integers(2, 5))
    # From nearly unanimous to nearly even.
    share = rng.dirichlet(np.full(classes, draw(st.sampled_from([0.05, 0.3, 3.0]))), size=4)
    votes = np.stack([rng.choice(classes, models, p=p) for p in share], axis=1)
    stated = draw(st.sampled_from([classes, None]))
    return Votes(votes, np.array(subsamples)[rows], clients=n, classes=stated, design=design)


# Powers of two are tails of halves: the risk is hit exactly.
RISKS = st.one_of(
    st.sampled_from(["0.001", 0.05, Fraction(1, 3), "0.999", Fraction(1, 10**300)]),
    st.integers(1, 45).map(lambda j: Fraction(1, 2**j)),
    st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999, 1000)),
)


@given(tables(), RISKS, RISKS, st.sampled_from(FROM_COUNTS))
@settings(max_examples=400, deadline=None)
def test_fast_equals_slow(votes, alpha, delta, name):
    certificate = certify(votes, name, alpha=alpha, delta=delta)
    assert recompute(votes, name, alpha=alpha, delta=delta) == (certificate.label.tolist(), certificate.level.tolist())


@pytest.mark.parametrize("name", FROM_COUNTS)
@pytest.mark.parametrize("design", ["independent", "distinct"])
@pytest.mark.parametrize(
    ("n", "k", "N"), [(1, 1, 1), (5, 5, 1), (3, 1, 2), (3, 2, 2), (5, 4, 4), (12, 6, 90), (1000, 10, 60)]
)
def test_every_count_in_the_corners(n, k, N, design, name):
    rng = np.random.default_rng(n + k + N)
    subsamples = np.array([rng.choice(n, k, replace=False) for _ in range(N)])
    if design == "distinct" and comb(n, k) < 1000:
        subsamples = np.array(list(combinations(range(n), k)))[:N]
    votes = Votes(
        (np.arange(N)[:, None] < np.arange(N + 1)).astype(int), subsamples, clients=n, classes=2, design=design
    )
    for alpha, delta in [("0.001", "0.99"), ("0.5", "0.001"), ("0.99", "0.5")]:
        certificate = certify(votes, name, alpha=alpha, delta=delta)
        again = recompute(votes, name, alpha=alpha, delta=delta)
        assert again == (certificate.label.tolist(), certificate.level.tolist())


@pytest.mark.parametrize("design", ["independent", "distinct"])
def test_served_where_delta_is_an_exact_tie(design):
    # P(H > h) = delta is enough, and a delta that is smaller by a part in 10^30 is not
    n, k, N = 8, 4, 12
    every, subsamples = comb(n, k), np.array(list(combinations(range(n), k)))[::5][:N]
    votes = Votes(
        (np.arange(N)[:, None] < np.arange(N + 1)).astype(int), subsamples, clients=n, classes=2, design=design
    )
    for m, h in [(1, 2), (1, 4), (1, 5), (2, 3), (2, 5)]:
        struck = every - comb(n - m, k)
        if design == "independent":
            ways = sum(comb(N, i) * struck**i * (every - struck) ** (N - i) for i in range(h + 1, N + 1))
            delta = Fraction(ways, every**N)
        else:
            ways = sum(comb(struck, i) * comb(every - struck, N - i) for i in range(h + 1, N + 1))
            delta = Fraction(ways, comb(every, N))
        certified = []
        for risk in (delta, delta * (1 - Fraction(1, 10**30))):
            certificate = certify(votes, "served", delta=risk)
            assert recompute(votes, "served", delta=risk) == (certificate.label.tolist(), certificate.level.tolist())
            certified.append((certificate.level >= m).sum())
        assert certified[0] > certified[1]


def test_slow_lower_bound_is_clopper_and_pearson():
    from scipy.special import betaincinv

    every = comb(100, 5)
    for votes in (1, 40, 77, 100):
        p_lower = betaincinv(votes, 100 - votes + 1, 0.001)
        assert lower_bound(votes, 100, every, "independent", Fraction(1, 1000)) == pytest.approx(
            p_lower * every, abs=1, rel=1e-9
        )


def test_slow_path_refuses_what_it_cannot_recompute():
    votes = Votes([[0], [1]], [[0], [1]], clients=2, design="disjoint")
    with pytest.raises(InputError, match="cannot be recomputed"):
        recompute(votes, "ideal")


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_laws(data):
    """More votes never cost a level; a smaller alpha, more inputs, and `ideal` for `paper` never gain one."""
    n = data.draw(st.integers(1, 200))
    k = data.draw(st.integers(1, n))
    design = data.draw(st.sampled_from(["independent", "distinct"]))
    N = data.draw(st.integers(1, min(60, comb(n, k)) if design == "distinct" else 60))
    alpha = data.draw(st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(1, 2)))
    counts = [[votes, N - votes] for votes in range((N + 1) // 2, N + 1)]

    def levels(name="ideal", alpha=alpha, d=100):
        return certify_counts(counts, n, k, N, design, name, alpha, d=d).level

    assert (np.diff(levels()) >= 0).all()
    assert (levels(alpha=alpha / 3) <= levels()).all()
    assert (levels(d=1000) <= levels()).all()
    # With the votes of all but two labels on one rival, only the gate's price is left.
    assert (levels() <= levels("paper", alpha=alpha)).all()
