"""`ideal` as a whole: its failure probability summed exactly over every outcome of a draw, and by simulation."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import stats

from fedquorum.certificates import betting, certify_counts, ideal
from tests.certificates.test_soundness import theorem_radius

ROWS = [(500, 0), (475, 25), (475, 5), (450, 50), (450, 10), (400, 100), (400, 25), (350, 150), (350, 30), (300, 40)]
ATLEAST = [60, 46, 50, 36, 43, 21, 31, 8, 23, 15]


def spread(first, second, N=500, classes=10):
    """first and second, and the rest of N spread evenly over the other labels."""
    rest = N - first - second
    return [first, second] + [rest // (classes - 2) + (i < rest % (classes - 2)) for i in range(classes - 2)]


@pytest.mark.parametrize("design", ["independent", "distinct"])
def test_levels_with_a_runner_up(design):
    counts = [spread(*row) for row in ROWS]
    level = certify_counts(counts, 1000, 10, 500, design, "ideal", d=10_000).level
    assert (level >= ATLEAST).all()
    assert level.tolist() == [60, 46, 51, 36, 45, 21, 33, 8, 25, 17]


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


def splits(every, classes):
    """How the M models may vote where a mistake is likeliest: ties of two and more, leads of one, a lead that a level needs."""
    half, third = every // 2, every // 3
    rows = [
        [half, every - half],
        [half + 1, every - half - 1],
        [every],
        [every // 4 * 3, every - every // 4 * 3],
        [every * 9 // 10, every - every * 9 // 10],
    ]
    if classes > 2:
        rows += [
            [third, third, every - 2 * third],
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
    # d inputs share alpha in certify_counts; here each outcome stands for one input, alone
    risk = alpha * len(counts)
    if risk >= 1:
        level = ideal.level_of_pairs(*ideal.leaders(counts), n, k, N, design, classes, alpha)
    else:
        level = certify_counts(counts, n, k, N, design, "ideal", risk, d=len(counts)).level
    label = counts.argmax(axis=1)
    for K in splits(comb(n, k), classes):
        radius = np.array(theorem_radius(K, n, k))
        chance = chances(counts, K, N, design)
        assert chance.sum() == pytest.approx(1, abs=1e-6)
        assert chance[level > radius[label]].sum() <= float(alpha) * (1 + 1e-9)


SHAPES = {
    "a tie of two": [1, 1],
    "a tie of three": [1, 1, 1],
    "just above one half": [0.505, 0.495],
    "many small labels": [0.3, 0.28] + [0.0525] * 8,
    "two labels, a clear lead": [0.8, 0.2],
    "ten labels, a clear lead": [0.7] + [0.3 / 9] * 9,
    "ten labels tie": [1] * 10,
}


@pytest.mark.parametrize(("n", "k", "N", "design"), [
    (3, 1, 500, "independent"), (5, 1, 500, "independent"), (30, 2, 100, "independent"), (30, 2, 100, "distinct"),
    (30, 2, 300, "distinct"), (1000, 10, 500, "independent"), (1000, 10, 100, "independent"),
])  # fmt: skip
@pytest.mark.parametrize("shape", SHAPES)
def test_failure_by_simulation(n, k, N, design, shape):
    repetitions, alpha = 100_000, Fraction(1, 20)
    every = comb(n, k)
    weights = np.array(SHAPES[shape], dtype=float)
    K = [int(w * every) for w in weights / weights.sum()]
    K[-1] += every - sum(K)
    rng = np.random.default_rng(5)
    p = np.array([value / every for value in K])
    counts = (
        rng.multinomial(N, p, repetitions)
        if design == "independent"
        else rng.multivariate_hypergeometric(K, N, repetitions)
    )
    if counts.shape[1] == 1:
        return
    most, second = ideal.leaders(counts)
    pairs, which = np.unique(most * (N + 1) + second, return_inverse=True)
    level = ideal.level_of_pairs(pairs // (N + 1), pairs % (N + 1), n, k, N, design, counts.shape[1], alpha)[which]
    radius = np.array(theorem_radius(K, n, k))
    failures = (level > radius[counts.argmax(axis=1)]).mean()
    assert failures <= float(alpha) + 4 * np.sqrt(float(alpha) / repetitions)


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
