"""`ideal` as a whole: its failure probability summed exactly over every outcome of a draw, and by simulation."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import stats

from fedquorum.certificates import betting, ideal
from fedquorum.certificates.theorem import hit
from tests.certificates.test_soundness import theorem_radius

TIES = ("a tie of two", "a tie of three", "up to ten labels tie")


def evenly(models, labels):
    return [models // labels + (i < models % labels) for i in range(labels)]


def shapes(n, k):
    """How the M models may vote, in exact integers, by name; the first label leads.

    What does not fit so few models (a tie of two that would be one of three) or says the same again is left out: what is left for
    M = 3 and M = 5 is every way in which so few can vote.
    """
    every = comb(n, k)
    half, third = (every - 1) // 2 if every % 2 else every // 2, every // 3
    ten = evenly(every, 10)
    if every % 10 == 1:  # one more for a second label, one less for the last
        ten[1], ten[9] = ten[1] + 1, ten[9] - 1
    first, second = every * 3 // 10 + 1, every * 28 // 100
    hits = [hit(n, k, m) for m in range(n - k + 1)]
    lead = max(hits[1], *(models for models in hits if 2 * models <= every * 6 // 10))
    ways = [  # name, models of each label, how many labels lead
        ("unanimous", [every], 1),
        ("a tie of two", [half, half, every - 2 * half], 2),
        ("a tie of three", [third, third, third, every - 3 * third], 3),
        ("just above one half", [every // 2 + 1, every - every // 2 - 1], 1),
        ("a tie once some are malicious", [half + lead, half - lead, every - 2 * half], 1),
        ("many small labels", [first, second, *evenly(every - first - second, 8)], 1),
        ("up to ten labels tie", ten, max(2, ten.count(ten[0]))),
        ("two labels, a clear lead", [every * 8 // 10, every - every * 8 // 10], 1),
        ("ten labels, a clear lead", [every * 7 // 10, *evenly(every - every * 7 // 10, 9)], 1),
    ]
    fit: dict[str, list[int]] = {}
    for name, row, leaders in ways:
        K = [models for models in row if models > 0]
        if min(row) >= 0 and K[0] == max(K) and K.count(K[0]) == leaders and K not in fit.values():
            fit[name] = K
    return {name: K if len(K) > 1 else [*K, 0] for name, K in fit.items()}


def test_shapes_are_what_they_are_called():
    for n, k in [(3, 1), (5, 1), (8, 4), (30, 2), (1000, 10)]:
        every = comb(n, k)
        for name, K in shapes(n, k).items():
            largest = sorted(K, reverse=True)
            assert sum(K) == every
            assert (largest[0] == largest[1]) == (name in TIES)
    assert sorted(shapes(3, 1).values()) == [[1, 1, 1], [2, 1], [3, 0]]
    assert sorted(shapes(5, 1).values()) == [
        [1, 1, 1, 1, 1],
        [2, 1, 1, 1],
        [2, 2, 1],
        [3, 1, 1],
        [3, 2],
        [4, 1],
        [5, 0],
    ]
    assert all(len(shapes(n, k)) >= 8 for n, k in [(8, 4), (30, 2), (1000, 10)])
    assert shapes(30, 2)["a tie of two"] == [217, 217, 1]
    assert shapes(30, 2)["just above one half"] == [218, 217]
    # four clients are in 110 models: the lead of 220 is one too few for level 4
    assert shapes(30, 2)["a tie once some are malicious"] == [327, 107, 1]
    assert theorem_radius([327, 107, 1], 30, 2)[0] == theorem_radius([328, 107, 0], 30, 2)[0] - 1 == 3


def alone(counts, n, k, N, design, alpha):
    """The real certificate of every row, each as if it were the only input (`certify_counts` shares alpha among its rows)."""
    return ideal.certify(np.asarray(counts), n, k, N, 1, design, alpha, np.shape(counts)[1])


def outcomes(N, classes):
    """All vectors of `classes` counts that add up to N."""
    if classes == 1:
        return np.array([[N]])
    return np.concatenate([np.insert(outcomes(N - a, classes - 1), 0, a, axis=1) for a in range(N + 1)])


def chances(counts, K, N, design):
    if design == "independent":
        return stats.multinomial.pmf(counts, N, [value / sum(K) for value in K])
    return stats.multivariate_hypergeom.pmf(counts, K, N)


CASES = [
    *[
        (n, k, N, "independent", c)
        for n, k in [(3, 1), (5, 1), (8, 4), (30, 2), (1000, 10)]
        for N, c in [(9, 2), (40, 3), (16, 4)]
    ],
    *[
        (n, k, N, "distinct", c)
        for n, k, N in [(3, 1, 2), (5, 1, 3), (8, 4, 12), (8, 4, 60), (30, 2, 40)]
        for c in (2, 3)
    ],
    (30, 2, 434, "distinct", 2),
    (30, 2, 300, "distinct", 2),
    (7, 2, 19, "distinct", 4),
]


def splits(n, k, classes):
    """How the M models may vote where a mistake is likeliest: ties of two and more, leads of one, a lead that a level needs."""
    every = comb(n, k)
    half, third = every // 2, every // 3
    rows = [
        *shapes(n, k).values(),
        [half, every - half],
        [every // 4 * 3, every - every // 4 * 3],
        [every * 9 // 10, every - every * 9 // 10],
    ]
    if classes > 2:
        rows += [
            [third + 1, third, every - 2 * third - 1],
            [half, half // 2, every - half - half // 2],
        ]
        rows += [[every * 8 // 10, every // 10, every - every * 8 // 10 - every // 10]]
    if classes > 3:
        rows += [[every // 4] * 3 + [every - 3 * (every // 4)]]
    return [row + [0] * (classes - len(row)) for row in rows if min(row) >= 0 and len(row) <= classes]


@pytest.mark.parametrize("alpha", [Fraction(1, 20), Fraction(1, 2)])
@pytest.mark.parametrize(("n", "k", "N", "design", "classes"), CASES)
def test_failure_summed_over_all_outcomes(n, k, N, design, classes, alpha):
    counts = outcomes(N, classes)
    certificate = alone(counts, n, k, N, design, alpha)
    for K in splits(n, k, classes):
        radius = np.array(theorem_radius(K, n, k))
        chance = chances(counts, K, N, design)
        assert chance.sum() == pytest.approx(1, abs=1e-6)
        assert chance[certificate.level > radius[certificate.label]].sum() <= float(alpha) * (1 + 1e-9)


DRAWS = [
    (3, 1, 500, "independent"),
    (5, 1, 500, "independent"),
    (8, 4, 60, "distinct"),
    (30, 2, 100, "independent"),
    (30, 2, 100, "distinct"),
    (30, 2, 300, "distinct"),
    (1000, 10, 100, "independent"),
    (1000, 10, 500, "independent"),
    (1000, 10, 500, "distinct"),
]


@pytest.mark.parametrize(
    ("n", "k", "N", "design", "shape"), [(*case, shape) for case in DRAWS for shape in shapes(*case[:2])]
)
def test_failure_by_simulation(n, k, N, design, shape):
    """The truth is integers, and certifying a tie at any level is a failure; floats only draw the votes.

    500 of 2.6e23 models drawn without and with replacement differ with probability 500^2 / (2 M) < 1e-18.
    """
    repetitions, alpha = 100_000, Fraction(1, 20)
    every, K = comb(n, k), shapes(n, k)[shape]
    largest = sorted(K, reverse=True)
    radius = np.array(theorem_radius(K, n, k))
    assert (largest[0] == largest[1]) == (shape in TIES) == (radius.max() == -1)
    rng = np.random.default_rng(5)
    if design == "independent" or every > 10**20:
        counts = rng.multinomial(N, [models / every for models in K], repetitions)
    else:
        counts = rng.multivariate_hypergeometric(K, N, repetitions)
    certificate = alone(counts, n, k, N, design, alpha)
    failures = (certificate.level > radius[certificate.label]).mean()
    assert failures <= float(alpha) + 4 * np.sqrt(float(alpha * (1 - alpha)) / repetitions)


def test_a_smaller_lead_or_fewer_votes_never_earn_more():
    most, second = (grid.ravel() for grid in np.meshgrid(np.arange(101), np.arange(101), indexing="ij"))
    fits = (most >= second) & (most + second <= 100)
    risk = Fraction(1, 10**5)
    for design, n, k in [("independent", 1000, 10), ("distinct", 1000, 10), ("distinct", 16, 2)]:
        level = np.full((101, 101), -2)
        level[most[fits], second[fits]] = ideal.level_of_pairs(most[fits], second[fits], n, k, 100, design, 10, risk)
        for i in range(101):
            for j in range(min(i, 100 - i) + 1):
                if j > 0:
                    assert level[i, j] <= level[i, j - 1]
                if i > j and i - 1 + j <= 100 and level[i - 1, j] != -2:
                    assert level[i - 1, j] <= level[i, j]


def test_bets_near_the_threshold_are_settled_in_integers(monkeypatch):
    n, k, N = 30, 2, 60
    most, second = np.array([40, 50, 55, 60]), np.array([5, 5, 2, 0])
    asked = []
    exactly = betting.exactly_denied
    monkeypatch.setattr(betting, "exactly_denied", lambda *case: asked.append(case) or exactly(*case))
    factors, whole = betting.factors_of(n, k, 1)
    capital = Fraction(
        sum(win**50 * other**5 * loss**5 for win, other, loss in factors), len(betting.STAKES) * whole**N
    )
    at, above = 1 / capital, 1 / capital * (1 - Fraction(1, 10**12))
    huge = Fraction(999, 1000)
    denied = [betting.levels_by_betting(n, k, N, most, second, huge, gamma)[1] >= 1 for gamma in (at, above)]
    assert denied == [True, False]  # E = 1/gamma is enough, and a part in 10^12 less is not
    assert len(asked) >= 2
    # and a float that is off by 1e-12 changes nothing
    honest = betting.levels_by_betting(n, k, N, most, second, huge, at).tolist()
    clean = betting._evidence
    for poison in (1 + 1e-12, 1 - 1e-12):
        monkeypatch.setattr(betting, "_evidence", lambda *case, by=poison: clean(*case) * by)
        assert betting.levels_by_betting(n, k, N, most, second, huge, at).tolist() == honest
