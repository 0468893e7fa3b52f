"""Certificates against the truth: every coalition tried, every draw weighed.

A coalition turns each model whose subsample it meets into any vote. The true radius of an ideal ensemble (the votes of all
M models) is the largest m that no coalition of m clients breaks, a tie counting as broken; -1 if it has no label at all.
"""

from fractions import Fraction
from functools import cache
from itertools import combinations, permutations
from math import comb

import numpy as np
import pytest
from scipy import stats

from fedquorum.certificates import certify_counts
from fedquorum.certificates.clopper_pearson import level_of_votes
from fedquorum.certificates.oracle import lower_bound

SHAPES = [(n, k) for n in range(1, 10) for k in range(1, n + 1)]
TABLES = 2000


def random_tables(n, k, classes, tables, rng):
    """Votes of all M models: independent ones, ones that follow a client, nearly unanimous ones, exact ties."""
    every = comb(n, k)
    uniform = rng.integers(0, classes, (tables, every))
    share = rng.beta(1, 0.3, (tables, 1))
    skewed = np.where(rng.random((tables, every)) < share, 0, uniform)
    members = np.array([[client in subset for client in range(n)] for subset in combinations(range(n), k)])
    follow = rng.integers(0, n, (tables, 1))
    led = np.where(members[:, follow[:, 0]].T, skewed, rng.integers(0, classes, (tables, 1)))
    tied = np.arange(every) % 2 + np.zeros((tables, 1), dtype=int)
    return np.choose(rng.choice(4, (tables, 1), p=[0.2, 0.5, 0.2, 0.1]), [uniform, skewed, led, tied])


def true_radii(n, k, classes, tables):
    """counts (tables x classes) and, per label, the radius by brute force over all 2^n coalitions."""
    subsets = np.array([[client in subset for client in range(n)] for subset in combinations(range(n), k)])
    coalitions = np.array([[(code >> client) & 1 for client in range(n)] for code in range(2**n)], dtype=bool)
    met = (coalitions.astype(np.float32) @ subsets.T.astype(np.float32) > 0).astype(np.float32)  # coalitions x M
    votes = (tables[:, :, None] == np.arange(classes)).astype(np.float32)  # tables x M x classes
    counts = votes.sum(axis=1)
    lost = np.tensordot(met, votes, axes=(1, 1))  # coalitions x tables x classes: met models by their honest vote
    all_met = met.sum(axis=1)[:, None]
    radius = np.full(counts.shape, -1)
    for y in range(classes):
        safe = np.ones(lost.shape[:2], dtype=bool)
        for z in range(classes):
            if z != y:  # all met models vote z
                safe &= counts[:, y] - lost[:, :, y] > counts[:, z] + all_met - lost[:, :, z]
        size = coalitions.sum(axis=1)
        for m in range(n - k + 1):
            radius[safe[size <= m].all(axis=0), y] = m
    return counts.astype(int), radius


# What a label's votes alone certify, in three ways of spending alpha: as the paper does; half of it, for the two labels that
# may both be over-estimated; and as `ideal` does, with a gate that both must pass.
SPENT = {
    "paper": lambda alpha: (alpha, None),
    "half": lambda alpha: (alpha / 2, None),
    "gated": lambda alpha: (alpha * 88 / 100, alpha * 6 / 100),
}


@cache
def levels(way, n, k, N, design, alpha):
    """The level that a votes for the winner earn, a = 0 ... N, one input alone."""
    spent, gate = SPENT[way](alpha)
    return level_of_votes(n, k, N, design, spent, gate)


def law(K, M, N, design):
    """P(N_l = a) for a = 0 ... N."""
    a = np.arange(N + 1)
    return stats.binom.pmf(a, N, K / M) if design == "independent" else stats.hypergeom.pmf(a, M, K, N)


def failure(name, n, k, N, design, alpha, counts, radius):
    """The exact probability that this ideal ensemble is given a wrong certificate.

    More than half of the votes are needed, so at most one label can be certified and the labels' probabilities add up.
    """
    level = levels(name, n, k, N, design, alpha)
    assert (level[: N // 2 + 1] == -1).all()
    every = sum(counts)
    return sum(law(K, every, N, design)[level > r].sum() for K, r in zip(counts, radius, strict=True) if K > 0)


@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_no_certificate_exceeds_the_true_radius(n, k):
    every, classes = comb(n, k), 2 + (n + k) % 3
    tables = random_tables(n, k, classes, TABLES, np.random.default_rng([n, k]))
    counts, radius = true_radii(n, k, classes, tables)
    winner = counts.argmax(axis=1)
    for name in ("paper", "ideal"):
        exact = certify_counts(counts, n, k, every, "distinct", name, classes=classes)
        assert (exact.level <= radius[np.arange(len(counts)), winner]).all()
        assert ((exact.level == -1) == (np.sort(counts)[:, -1] == np.sort(counts)[:, -2])).all()
    # Whenever the bound on p_y is true, so is the level of the votes, for a label of every possible number of models.
    for risk in (Fraction(1, 20), Fraction(1, 40)):
        for design, models in [("independent", 60), ("distinct", max(1, every - 1 - every // 10))]:
            if design == "distinct" and models == every:
                continue
            level = level_of_votes(n, k, models, design, risk)
            bounds = np.array([lower_bound(a, models, every, design, risk) for a in range(models + 1)])
            best = np.array([max(level[bounds <= K], default=-1) for K in range(every + 1)])
            assert (best[counts] <= radius).all()


def worst_cases(every):
    """How M models may be split among labels where a wrong certificate is likeliest: ties, near ties, thirds, one and many."""
    half, third = every // 2, every // 3
    splits = [
        [every],
        [half, every - half],
        [half, half, every % 2],
        [third, third, every - 2 * third],
        [half + 1, every - half - 1],
    ]
    splits += [
        [half, half // 2, every - half - half // 2],
        [1] * every if every < 80 else [every // 10] * 9 + [every - 9 * (every // 10)],
    ]
    splits += [[K, every - K] for K in range(half, every, max(1, every // 12))]
    return [[K for K in split if K > 0] for split in splits if min(split) >= 0]


def theorem_radius(counts, n, k):
    """Theorem 1's level, the least that the true radius can be: the strictest judge of a wrong certificate."""
    every = sum(counts)
    ordered = [*sorted(counts, reverse=True), 0]
    gap = ordered[0] - ordered[1]
    level = max((m for m in range(n - k + 1) if gap > 2 * (every - comb(n - m, k))), default=-1)
    return [level if gap > 0 and ordered[0] == K else -1 for K in counts]


DRAWS = [
    *[(n, k, N, "independent") for n, k in [(3, 1), (5, 1), (4, 2), (6, 2), (8, 4), (30, 2)] for N in (1, 2, 7, 100)],
    *[(3, 1, N, "distinct") for N in (1, 2)],
    *[(n, k, N, "distinct") for n, k in [(5, 1), (7, 1), (4, 2), (8, 4), (30, 2)] for N in (1, 2, 3, 4)],
    *[(n, k, N, "distinct") for n, k, N in [(7, 1, 6), (8, 4, 60), (8, 4, 69), (30, 2, 200), (30, 2, 434)]],
]


@pytest.mark.parametrize("alpha", [Fraction(1, 20), Fraction(9, 20), Fraction(9, 10)])
@pytest.mark.parametrize(("n", "k", "N", "design"), DRAWS)
def test_half_of_alpha_or_a_gate_keep_alpha_and_the_paper_twice_alpha(n, k, N, design, alpha):
    every = comb(n, k)
    for counts in worst_cases(every):
        radius = theorem_radius(counts, n, k)
        for way in ("half", "gated"):
            assert failure(way, n, k, N, design, alpha, counts, radius) <= float(alpha) * (1 + 1e-9)
        if alpha < Fraction(1, 2):
            assert failure("paper", n, k, N, design, alpha, counts, radius) <= 2 * float(alpha) * (1 + 1e-9)


def levels_alone(name, counts, n, k, N, design):
    """The real certificate's level of each row, which may be wrong with probability 1/20: 19 inputs share 19/20."""
    blocks = [counts[i : i + 19] for i in range(0, len(counts), 19)]
    return np.concatenate(
        [certify_counts(block, n, k, N, design, name, Fraction(19, 20), d=19).level for block in blocks]
    )


def test_two_labels_near_one_half():
    """N = 100, alpha = 0.05, p = (1/2, 1/2): there is no right label; Algorithm 2 names one too often, `ideal` does not."""
    counts = np.stack([np.arange(101), 100 - np.arange(101)], axis=1)
    level = {name: levels_alone(name, counts, 4, 2, 100, "independent") for name in ("paper", "ideal")}
    chance = law(3, 6, 100, "independent")
    named = {name: chance[level[name] >= 0].sum() for name in level}
    assert named["paper"] == pytest.approx(0.0886, abs=5e-5)
    assert named["ideal"] == pytest.approx(0.0018, abs=5e-5)
    votes = np.random.default_rng(1).binomial(100, 0.5, size=100_000)
    for name, expected in named.items():
        failed = (level[name][votes] >= 0).mean()
        assert failed == pytest.approx(expected, abs=4 * np.sqrt(expected / 100_000))
        assert (failed > 0.05) == (name == "paper")


def test_one_model_more_than_half():
    """571 and 569 of 1,140 models (n = 20, k = 3): level 0 is right for the first label alone, and nothing for the second."""
    radius = theorem_radius([571, 569], 20, 3)
    assert radius == [0, -1]
    counts = np.stack([np.arange(101), 100 - np.arange(101)], axis=1)
    wrong = np.array(radius)[counts.argmax(axis=1)]
    chance = law(571, 1140, 100, "independent")
    for name, expected in [("paper", 0.0427), ("ideal", 0.0008)]:
        level = levels_alone(name, counts, 20, 3, 100, "independent")
        assert chance[level > wrong].sum() == pytest.approx(expected, abs=5e-5)


def test_thirds_of_three_models_need_the_majority_condition():
    """M = 3, a third of the votes each, N = 500: the integer rule alone certifies, which Algorithm 2's own `if` forbids."""
    tail = stats.binom.sf(np.arange(500) - 1, 500, 1 / 3)  # lower > M//2 = 1 iff P(Bin(N, 1/3) >= N_y) < alpha
    for per_input, at_least in [(0.05, 0.12), (0.025, 0.05)]:
        certified = np.flatnonzero(tail < per_input)
        assert 3 * stats.binom.pmf(certified, 500, 1 / 3).sum() > at_least
    # All outcomes up to the labels' names, but some of probability 1e-6 together.
    outcomes = np.array([(a, b, 500 - a - b) for a in range(501) for b in range(501 - a) if a >= b >= 500 - a - b])
    names = np.array([len(set(permutations(row))) for row in outcomes.tolist()])
    chance = names * stats.multinomial.pmf(outcomes, 500, [1 / 3] * 3)
    likely = chance > 1e-10
    assert chance.sum() == pytest.approx(1, abs=1e-9)
    assert chance[~likely].sum() < 1e-6
    for name in ("paper", "ideal"):
        level = levels_alone(name, outcomes[likely], 3, 1, 500, "independent")
        assert chance[likely][level >= 0].sum() < 1e-6


def test_one_vote_of_a_distinct_draw_certifies_nothing():
    """M = 3, one model drawn: each third would have P(X >= 1) = 1/3 < alpha/2, and the certificate would always be wrong."""
    for name in ("paper", "ideal"):
        assert certify_counts([[1, 0, 0]], 3, 1, 1, "distinct", name, alpha="0.9").abstained == 1
