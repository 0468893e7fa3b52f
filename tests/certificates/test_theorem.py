"""Theorem 1 in integers against Theorem 1 in fractions, and against floats where they go wrong."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedquorum.certificates import certify_counts
from fedquorum.certificates.theorem import hit, level_of_gap


def in_fractions(p_y, p_z, n, k):
    certified = [m for m in range(n - k + 1) if p_y - p_z > 2 - 2 * Fraction(comb(n - m, k), comb(n, k))]
    return max(certified, default=-1)


@given(st.data())
def test_exact_mode_is_theorem_1_in_fractions(data):
    n = data.draw(st.integers(1, 12))
    k = data.draw(st.integers(1, n))
    every = comb(n, k)
    first = data.draw(st.integers(0, every))
    second = data.draw(st.integers(0, every - first))
    counts = [first, second, every - first - second]
    largest = sorted(counts)
    expected = in_fractions(Fraction(largest[2], every), Fraction(largest[1], every), n, k)
    for name in ("paper", "ideal"):
        assert certify_counts([counts], n, k, every, "distinct", name).level.tolist() == [expected]


def test_exact_ties_that_floats_accept_are_refused():
    every, ties, floats_accept = 435, 0, 0
    for m in range(29):
        for first in range(every + 1):
            second = first - 2 * hit(30, 2, m)
            if second < 0 or first + second > every:
                continue
            ties += 1
            floats_accept += first / every - second / every > 2 - 2 * comb(30 - m, 2) / every
            assert level_of_gap(30, 2, np.array([first - second]))[0] < m
    assert (ties, floats_accept) == (1002, 235)


@pytest.mark.parametrize("design", ["independent", "distinct"])
def test_a_level_is_a_number_of_clients_outside_some_subsample(design):
    for n in range(1, 9):
        for k in range(1, n + 1):
            models = comb(n, k) if design == "distinct" else 300
            level = certify_counts([[models, 0]], n, k, models, design, "paper", alpha=0.5).level[0]
            assert 0 <= level <= n - k
