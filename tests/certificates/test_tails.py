"""Tails: the floats are as good as promised, and close to alpha they do not decide."""

from contextlib import contextmanager
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedquorum.certificates import served, tails
from fedquorum.certificates.clopper_pearson import level_of_votes
from fedquorum.certificates.theorem import hit
from fedquorum.certificates.two_bounds import levels_by_two_bounds

HUGE = comb(1000, 10)  # 2.6e23


def in_fractions(a, K, M, N, design):
    """P(X >= a) as in a textbook."""
    if design == "independent":
        return Fraction(sum(comb(N, i) * K**i * (M - K) ** (N - i) for i in range(a, N + 1)), M**N)
    return Fraction(sum(comb(K, i) * comb(M - K, N - i) for i in range(a, N + 1)), comb(M, N))


@st.composite
def cases(draw):
    """Small and huge M; with `distinct`, draws that exhaust the label or the rest as well."""
    design = draw(st.sampled_from(["independent", "distinct"]))
    M = draw(st.one_of(st.integers(2, 60), st.integers(2, HUGE), st.just(10**320)))
    K = draw(st.integers(1, M - 1))
    N = draw(st.integers(1, 30 if design == "independent" else min(30, M)))
    return K, M, N, design


@given(cases())
@settings(deadline=None)
def test_float_tails_equal_exact_ones(case):
    K, M, N, design = case
    floats = tails.tails(K, M, N, design)
    assert len(floats) == N + 1
    for a in range(N + 1):
        exact = in_fractions(a, K, M, N, design)
        if exact > tails.TINY:
            assert abs(Fraction(floats[a]) / exact - 1) < Fraction(1e-15) * N + Fraction(1e-15)
        else:
            assert floats[a] < 1e-249


@given(cases(), st.data())
@settings(deadline=None)
def test_alpha_equal_to_a_tail_is_decided_exactly(case, data):
    K, M, N, design = case
    a = data.draw(st.integers(1, N))
    tail = in_fractions(a, K, M, N, design)
    assume(0 < tail < 1)
    just_above = tail * (1 + Fraction(1, 10**40))
    assert not tails.exactly_below(a, K, M, N, design, tail)
    assert tails.votes_needed(K, M, N, design, tail) > a
    assert tails.votes_needed(K, M, N, design, just_above) <= a


@pytest.mark.parametrize("design", ["independent", "distinct"])
def test_tails_at_the_scale_of_use(design):
    # 500 models of 10 of 1,000 clients: a few tails around the ones that decide, to 1e-12 of the exact value.
    K = HUGE // 2 + HUGE // 7
    floats = tails.tails(K, HUGE, 500, design)
    for a in (330, 380, 420, 500):
        assert floats[a] == pytest.approx(float(in_fractions(a, K, HUGE, 500, design)), rel=1e-12)


@contextmanager
def poisoned(monkeypatch, by):
    clean, uses = tails.tails, []

    def off(*case):
        uses.append(case)
        return clean(*case) * (1 + by)

    with monkeypatch.context() as patch:
        patch.setattr(tails, "tails", off)
        yield
    assert uses  # no cache stood between


@pytest.mark.parametrize("by", [1e-12, -1e-12])
@pytest.mark.parametrize("design", ["independent", "distinct"])
def test_a_poisoned_float_changes_no_level(design, by, monkeypatch):
    # The alphas are exact tails, so every one of these tables has a decision where floats are worth nothing.
    n, k, N = 40, 3, 60
    every = comb(n, k)
    alphas = [in_fractions(a, every // 2 + h, every, N, design) for a, h in [(40, 0), (45, 741), (60, 741), (55, 2000)]]
    honest = [level_of_votes(n, k, N, design, alpha).tolist() for alpha in alphas]
    with poisoned(monkeypatch, by):
        assert [level_of_votes(n, k, N, design, alpha).tolist() for alpha in alphas] == honest


@pytest.mark.parametrize("by", [1e-12, -1e-12])
@pytest.mark.parametrize("design", ["independent", "distinct"])
def test_a_poisoned_float_changes_no_level_of_served(design, by, monkeypatch):
    # Every delta is P(H > h) exactly, for m clients: that is enough for m, and no float can tell.
    n, k, N = 40, 3, 60
    every, ties = comb(n, k), [(1, 7), (3, 20), (5, 25), (6, 29), (8, 29)]
    deltas = [in_fractions(h + 1, hit(n, k, m), every, N, design) for m, h in ties]
    monkeypatch.setattr(served, "models_hit", served.models_hit.__wrapped__)  # without its cache

    def levels():
        return [[served.level_of_gap(n, k, N, design, delta, gap) for gap in range(N + 1)] for delta in deltas]

    honest = levels()
    assert all(level[2 * h] >= m > level[2 * h - 1] for (m, h), level in zip(ties, honest, strict=True))
    with poisoned(monkeypatch, by):
        assert levels() == honest


@pytest.mark.parametrize("by", [1e-12, -1e-12])
def test_a_poisoned_float_changes_no_level_of_two_bounds(by, monkeypatch):
    # Every risk is P(X >= a) exactly for some number of models: a part in 10^30 more is another level for some votes.
    n, k, N = 40, 1, 25
    most, second = np.array([(a, b) for a in range(N + 1) for b in range(min(a, N - a) + 1)]).T
    risks = [in_fractions(a, K, n, N, "distinct") for a, K in [(20, 26), (17, 20), (23, 31), (14, 15), (15, 20)]]

    def levels(factor=1):
        return [levels_by_two_bounds(n, k, N, most, second, risk, risk * factor).tolist() for risk in risks]

    honest = levels()
    above = levels(1 + Fraction(1, 10**30))
    assert all(there != here for there, here in zip(above, honest, strict=True))
    with poisoned(monkeypatch, by):
        assert levels() == honest


@pytest.mark.parametrize("design", ["independent", "distinct"])
def test_integers_decide_within_the_margin_and_floats_outside(design, monkeypatch):
    asked = []
    exactly = tails.exactly_below
    monkeypatch.setattr(tails, "exactly_below", lambda a, *rest, **more: asked.append(a) or exactly(a, *rest, **more))
    K, M, N = HUGE // 2, HUGE, 100
    alpha = in_fractions(60, K, M, N, design)
    for factor, exact_decisions in [(1 + Fraction(1, 10**10), [60]), (1 + Fraction(1, 10**8), [])]:
        asked.clear()
        assert tails.votes_needed(K, M, N, design, alpha * factor) == 60
        assert asked == exact_decisions


def test_alpha_below_every_float_is_decided_in_integers():
    alpha = Fraction(1, 2**2000)
    assert tails.votes_needed(1, 2, 2001, "independent", alpha) == 2001
    assert tails.votes_needed(1, 2, 2000, "independent", alpha) == 2001


def test_certain_and_impossible_labels():
    assert tails.votes_needed(7, 7, 5, "independent", Fraction(1, 2)) == 6
    assert tails.votes_needed(0, 7, 5, "distinct", Fraction(1, 2)) == 1
    assert np.allclose(tails.tails(6, 7, 6, "distinct")[:6], 1)
