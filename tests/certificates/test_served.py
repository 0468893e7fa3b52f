"""`served`: the figures of the specification, the least h, and how often it fails against clients fixed before the draw."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import stats

from fedquorum.certificates import certify_counts, served
from fedquorum.certificates.theorem import hit
from tests.certificates.test_ideal import ROWS, SHAPES, spread

ATLEAST = [54, 46, 49, 39, 45, 26, 36, 15, 29, 22]


@pytest.mark.parametrize("design", ["independent", "distinct"])
def test_levels_of_the_specification(design):
    certificate = certify_counts([spread(*row) for row in ROWS], 1000, 10, 500, design, "served", delta="0.001")
    assert (certificate.level >= ATLEAST).all()
    assert certificate.level.tolist() == [54, 46, 50, 39, 45, 27, 36, 16, 29, 22]
    # the same votes for label 9: a rival with a smaller number wins ties
    turned = [spread(*row)[::-1] for row in ROWS]
    later = certify_counts(turned, 1000, 10, 500, design, "served", delta="0.001").level
    assert set((certificate.level - later).tolist()) == {0, 1}


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


@pytest.mark.parametrize(("n", "k", "N", "design"), [
    (3, 1, 500, "independent"), (5, 1, 500, "independent"), (30, 2, 100, "independent"), (30, 2, 300, "distinct"),
    (1000, 10, 500, "independent"), (1000, 10, 500, "distinct"),
])  # fmt: skip
@pytest.mark.parametrize("shape", SHAPES)
def test_failure_by_simulation(n, k, N, design, shape):
    """m clients, fixed; the models they will hit are those that would all have voted y, which is where it hurts most."""
    repetitions, delta = 100_000, Fraction(1, 20)
    rng = np.random.default_rng(6)
    p = np.array(SHAPES[shape], dtype=float)
    for m in sorted({1, n // 20 + 1, n // 8 + 1}):
        if m > n - k:
            continue
        struck, every = hit(n, k, m), comb(n, k)
        if design == "independent" or every > 10**9:  # so few of so many are drawn: the two laws agree
            models_hit = rng.binomial(N, struck / every, repetitions)
        else:
            models_hit = rng.hypergeometric(struck, every - struck, N, repetitions)
        counts = rng.multinomial(N - models_hit, p / p.sum())
        counts[:, 0] += models_hit
        gap = served.gaps(counts)
        own = counts.argmax(axis=1) == 0
        levels = np.array([served.level_of_gap(n, k, N, design, delta, g) for g in range(int(gap.max()) + 1)])
        broken = own & (levels[gap] >= m) & (2 * models_hit > gap)
        assert broken.mean() <= float(delta) + 4 * np.sqrt(float(delta) / repetitions)


def test_the_bound_is_nearly_reached():
    # Unanimous votes: all 500 models say label 1, and the certificate of level m fails whenever more than h(m) are hit.
    rng = np.random.default_rng(7)
    level = int(certify_counts([[0, 500]], 1000, 10, 500, "independent", "served", delta="0.05").level[0])
    models_hit = rng.binomial(500, hit(1000, 10, level) / comb(1000, 10), 100_000)
    failed = (2 * models_hit > 499).mean()
    assert 0.01 < failed <= 0.05
