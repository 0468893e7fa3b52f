"""The parts of `membership`: each bound and each search against the plain truth, and a solver that is not to be trusted."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from fedquorum.certificates import membership_level, membership_oracle
from fedquorum.certificates.cover import cover_of, greedy, size_by_loads, size_by_prices, weight_of
from fedquorum.certificates.membership_level import exact_level
from fedquorum.certificates.membership_search import LARGEST, reachable, table_size
from fedquorum.certificates.membership_solver import smallest
from fedquorum.subsamples import draw
from fedquorum.votes import Votes


@st.composite
def problems(draw_one):
    n = draw_one(st.integers(1, 8))
    k = draw_one(st.integers(1, n))
    count = draw_one(st.integers(1, 15))
    subsamples = [sorted(draw_one(st.permutations(range(n)))[:k]) for _ in range(count)]
    weights = draw_one(st.lists(st.integers(0, 2), min_size=count, max_size=count).filter(any))
    return np.array(subsamples), np.array(weights)


def heaviest(subsamples, weights):
    """Entry m: the greatest weight that m clients hit, by trying them all."""
    clients = np.unique(subsamples)
    best = [0]
    for m in range(1, len(clients) + 1):
        best.append(max(int(weights[np.isin(subsamples, t).any(axis=1)].sum()) for t in combinations(clients, m)))
    return best


@settings(max_examples=120, deadline=None)
@given(problems(), st.data())
def test_every_bound_and_search_against_all_coalitions(problem, data):
    subsamples, weights = problem
    cover = cover_of(subsamples)
    best = heaviest(subsamples, weights)
    need = data.draw(st.integers(1, best[-1]))
    size = next(m for m, weight in enumerate(best) if weight >= need)

    low = size_by_loads(cover, weights, need)
    assert low <= size
    assert low <= size_by_prices(cover, weights, need, low, cover.clients, steps=30)[0] <= size
    start = data.draw(st.lists(st.integers(0, 1024), min_size=len(weights), max_size=len(weights)))
    assert size_by_prices(cover, weights, need, low, cover.clients, 2, np.array(start))[0] <= size
    coalition = greedy(cover, weights, need)
    assert len(coalition) >= size
    assert weight_of(cover, weights, coalition) >= need
    for m in range(1, cover.clients + 1):
        assert reachable(cover, weights, need, m, nodes=10**6) is (best[m] >= need)
    bound, found = smallest(cover, weights, need, seconds=10)
    assert bound == size
    assert found is not None and len(found) == size


def test_twins_and_clients_in_no_model_are_left_out():
    cover = cover_of(np.array([[0, 1, 9], [0, 1, 5]]))
    assert (cover.models, cover.clients) == (2, 3)


def test_prices_prove_more_than_loads_and_always_the_same():
    cover = cover_of(np.asarray(draw(1000, 10, 500, "independent", seed=1)))
    weights = np.full(500, 2)
    assert size_by_loads(cover, weights, 502) == 24
    (size, prices), (again, same) = (size_by_prices(cover, weights, 502, 24, 994, 40) for _ in range(2))
    assert size == again == 27
    assert (prices == same).all()
    assert prices.dtype.kind == "i"


def test_a_search_that_may_not_finish_says_so():
    cover = cover_of(np.asarray(draw(30, 3, 300, "independent", seed=1)))
    weights = np.random.default_rng(1).integers(0, 3, 300)
    need = int(weights.sum()) * 6 // 10
    assert reachable(cover, weights, need, 6, nodes=1) is None
    assert reachable(cover, weights, need, 6, nodes=10**6) is not None


def test_a_search_over_too_many_clients_is_left_to_the_solver():
    cover = cover_of(np.asarray(draw(1000, 10, 500, "independent", seed=1)))
    assert table_size(cover) > LARGEST
    assert reachable(cover, np.full(500, 2), 502, 27, nodes=10) is None


SQUARE = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])


def answer(monkeypatch, **result):
    """Let the solver give this answer, whatever it is asked."""
    fields = {"x": None, "mip_dual_bound": None, "status": 1} | result
    monkeypatch.setattr(optimize, "milp", lambda *arguments, **options: SimpleNamespace(**fields))


@pytest.mark.parametrize(
    ("float_bound", "bound"),
    [
        (50.00000000000001, 50),
        (50.0000001, 50),
        (49.99999999999999, 50),
        (49.3, 50),
        (50.0, 50),
        (0.0, 0),
        (-1e-9, 0),
        (None, 0),
        (float("nan"), 0),
        (float("-inf"), 0),
        (float("inf"), 0),
    ],
)
def test_a_solvers_50_00000000000001_is_never_a_level_too_many(monkeypatch, float_bound, bound):
    answer(monkeypatch, mip_dual_bound=float_bound)
    assert smallest(cover_of(SQUARE), np.full(4, 2), 8, seconds=1) == (bound, None)


def test_a_solvers_coalition_counts_only_if_it_really_breaks(monkeypatch):
    cover, weights = cover_of(SQUARE), np.full(4, 2)
    answer(monkeypatch, x=np.array([1.0, 0, 0, 0, 1, 1, 1, 1]), mip_dual_bound=1.0, fun=1.0, status=0)
    assert smallest(cover, weights, 8, seconds=1)[1] is None
    answer(monkeypatch, x=np.array([0.9999999, 0, 1.0000001, 1e-7, 1, 1, 1, 1]), mip_dual_bound=2.0, status=0)
    coalition = smallest(cover, weights, 8, seconds=1)[1]
    assert coalition is not None and coalition.tolist() == [0, 2]


def hard_case():
    """Votes that greed and prices do not settle: pairs of clients, all of them, where the linear program is weak."""
    subsamples = np.asarray(draw(14, 2, "all", "distinct", seed=1))
    return cover_of(subsamples), np.random.default_rng(3).choice(3, 91, p=[0.85, 0.1, 0.05])


@pytest.fixture
def no_search(monkeypatch):
    monkeypatch.setattr(membership_level, "NODES", 0)


@pytest.mark.usefixtures("no_search")
def test_the_solver_settles_what_the_search_does_not(monkeypatch):
    cover, column = hard_case()
    solved = exact_level(cover, column, 3, seconds=60)
    monkeypatch.setattr(membership_level, "NODES", 10**6)
    assert solved == exact_level(cover, column, 3, seconds=0)
    assert solved[1]


@pytest.mark.usefixtures("no_search")
def test_no_time_for_the_solver_leaves_a_sound_level_that_is_not_settled(monkeypatch):
    cover, column = hard_case()
    proved = exact_level(cover, column, 3, seconds=0)
    answer(monkeypatch)
    assert exact_level(cover, column, 3, seconds=60) == proved
    monkeypatch.undo()
    level, settled = exact_level(cover, column, 3, seconds=60)
    assert settled
    assert not proved[1]
    assert proved[0] <= level


@pytest.mark.usefixtures("no_search")
def test_a_solver_a_hair_above_the_truth_gives_the_same_levels(monkeypatch):
    cover, column = hard_case()
    truth = exact_level(cover, column, 3, seconds=60)
    honest, asked = optimize.milp, []

    def poisoned(*arguments, **options):
        result = honest(*arguments, **options)
        asked.append(result.mip_dual_bound)
        result.mip_dual_bound = result.mip_dual_bound * (1 + 1e-12) + 1e-12
        return result

    monkeypatch.setattr(optimize, "milp", poisoned)
    assert exact_level(cover, column, 3, seconds=60) == truth
    assert asked


def test_the_second_path_refutes_a_level_of_more_than_a_thousand_clients():
    votes = Votes(np.zeros((2500, 1), dtype=int), np.arange(2500)[:, None], clients=2500, design="disjoint")
    assert membership_oracle.check(votes, [0], [1250]) == [True]
    assert membership_oracle.check(votes, [0], [1251]) == [False]
