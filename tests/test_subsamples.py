"""Draws: uniform where they must be, balanced where they must be, and the same for ever."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from fedquorum import InputError, draw
from fedquorum.subsamples import DESIGNS, _Stream, _subset_of_rank


@st.composite
def sizes(draw_: st.DrawFn) -> tuple[int, int, int]:
    n = draw_(st.integers(1, 12))
    return n, draw_(st.integers(1, n)), draw_(st.integers(0, 2**70))


@given(sizes(), st.sampled_from(DESIGNS), st.integers(1, 40))
def test_every_subsample_is_k_different_clients_in_order(size: tuple[int, int, int], design: str, count: int) -> None:
    n, k, seed = size
    count = min(count, {"distinct": math.comb(n, k), "disjoint": n // k}.get(design, count))
    members = draw(n, k, count, design, seed).members
    assert members.shape == (count, k)
    assert members.min() >= 0
    assert members.max() < n
    assert (np.diff(members, axis=1) > 0).all()
    if design == "distinct":
        assert len(np.unique(members, axis=0)) == count
    if design == "disjoint":
        assert len(np.unique(members)) == members.size
    if design == "balanced":
        assert np.ptp(np.bincount(members.ravel(), minlength=n)) <= 1


@given(sizes(), st.sampled_from(["independent", "distinct", "balanced", "disjoint"]), st.integers(1, 30))
def test_a_larger_count_extends_the_draw(size: tuple[int, int, int], design: str, count: int) -> None:
    n, k, seed = size
    count = min(count, {"distinct": math.comb(n, k), "disjoint": n // k}.get(design, count))
    shorter = max(1, count // 2)
    assert (draw(n, k, count, design, seed).members[:shorter] == draw(n, k, shorter, design, seed).members).all()


def test_the_draw_never_changes() -> None:
    # An auditor draws again, years later: these values are part of the format.
    assert draw(20, 3, 3, "independent", seed=1).members.tolist() == [[0, 10, 17], [3, 6, 18], [5, 6, 16]]
    assert draw(20, 3, 3, "distinct", seed=1).members.tolist() == [[2, 4, 10], [0, 6, 11], [1, 11, 17]]
    assert draw(7, 3, 3, "balanced", seed=1).members.tolist() == [[3, 5, 6], [1, 2, 4], [0, 4, 6]]
    assert draw(7, 3, 2, "disjoint", seed=1).members.tolist() == [[1, 2, 5], [0, 3, 4]]


@pytest.mark.parametrize("design", ["independent", "distinct"])
@pytest.mark.parametrize(("n", "k"), [(6, 2), (7, 3), (5, 4)])
def test_every_subset_is_as_likely_as_every_other(design: str, n: int, k: int) -> None:
    # For `distinct` the first two of each draw: the second must be as uniform as the first.
    every = {subset: i for i, subset in enumerate(combinations(range(n), k))}
    if design == "independent":
        drawn = draw(n, k, 6000, design, seed=11).members
    else:
        drawn = np.concatenate([draw(n, k, 2, design, seed=seed).members[1:] for seed in range(6000)])
    counts = np.bincount([every[tuple(row)] for row in drawn.tolist()], minlength=len(every))
    assert chisquare(counts).pvalue > 1e-4


def test_independent_subsamples_are_independent() -> None:
    # Pairs of neighbouring subsamples hit all 10 x 10 combinations alike.
    drawn = draw(5, 2, 20_000, "independent", seed=3).members
    code = {subset: i for i, subset in enumerate(combinations(range(5), 2))}
    one = np.array([code[tuple(row)] for row in drawn.tolist()])
    assert chisquare(np.bincount(one[:-1:2] * 10 + one[1::2], minlength=100)).pvalue > 1e-4


def test_balanced_draws_give_each_client_the_same_chance_everywhere() -> None:
    # The first subsample that straddles two packs must not prefer anybody.
    counts = np.zeros(5)
    for seed in range(3000):
        counts[draw(5, 3, 2, "balanced", seed).members[1]] += 1
    assert chisquare(counts).pvalue > 1e-4


def test_distinct_works_without_enumerating_and_when_it_takes_all() -> None:
    members = draw(1000, 10, 500, "distinct", seed=5).members  # C(1000,10) is about 2.6 * 10^23
    assert len(np.unique(members, axis=0)) == 500
    assert {tuple(row) for row in draw(9, 4, "all", "distinct", seed=5).members.tolist()} == set(
        combinations(range(9), 4)
    )
    assert len(draw(30, 2, 435, "distinct", seed=5)) == 435


@given(st.integers(1, 400), st.data())
def test_ranks_and_subsets_are_one_to_one(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, n))
    rank = data.draw(st.integers(0, math.comb(n, k) - 1))
    subset = _subset_of_rank(rank, n, k)
    assert sum(math.comb(c, k - i) for i, c in enumerate(subset)) == rank
    assert sorted(set(subset), reverse=True) == subset
    assert subset[0] < n


@pytest.mark.parametrize("bound", [2, 3, 7, 64, 2**64 - 1, 2**64, 2**64 + 1, 10**23])
def test_integers_below_a_bound_are_uniform(bound: int) -> None:
    stream = _Stream("test", bound)
    values = [stream.below(bound) for _ in range(4000)]
    assert min(values) >= 0
    assert max(values) < bound
    bins = min(bound, 16)
    counts = np.bincount([value * bins // bound for value in values], minlength=bins)
    exact = [(-(-(i + 1) * bound // bins) - -(-i * bound // bins)) / bound * 4000 for i in range(bins)]
    assert chisquare(counts, exact).pvalue > 1e-4


def test_without_a_seed_nobody_can_foresee_the_draw() -> None:
    one, other = draw(1000, 10, 5), draw(1000, 10, 5)
    assert one.seed != other.seed
    assert not np.array_equal(one, other)
    assert np.array_equal(draw(1000, 10, 5, seed=one.seed), one)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((5, 6, 1), "k=6 is more than the n=5"),
        ((5, 0, 1), "k=0"),
        ((5, -1, 1), "k=-1"),
        ((0, 1, 1), "n=0"),
        ((5, 2, 0), "count=0"),
        ((5, 2, 11, "distinct"), "only C(5,2) = 10"),
        ((5, 2, 3, "disjoint"), "at most 2"),
        ((5, 2, 3, "random"), "unknown design 'random'"),
        ((5, 2, "all"), "distinct"),
        ((1000, 10, "all", "distinct"), "too many"),
        ((5, 2.5, 1), "k is 2.5"),
        ((5, True, 1), "k is True"),
        ((5, 2, 1, "independent", -1), "seed=-1"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_line(arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(InputError) as error:
        draw(*arguments)  # type: ignore[arg-type]
    assert words in str(error.value)
