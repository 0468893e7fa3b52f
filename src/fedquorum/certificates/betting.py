"""The gap between a label and its runner-up, tested by betting: exact for any N, any other labels, both uniform designs.

To deny that K_y - K_z <= 2 hit(m) =: D, bet on the models one after the other, starting with capital 1. With x = 1 if the
model votes y, -1 if it votes z and 0 otherwise, the capital is multiplied by 1 + l (x - D/M), l = a / (1 + D/M), a < 1:

    E_a = win^N_y * other^(N - N_y - N_z) * loss^N_z
    win = 1 + a (M-D)/(M+D),   other = 1 - a D/(M+D),   loss = 1 - a

If the claim to be denied is true, a factor is at most 1 in expectation, so is E_a for `independent` draws; for `distinct` draws
E_a is an elementary symmetric mean, at most the N-th power of the arithmetic mean (Maclaurin's inequality). So is the
mean E of E_a over STAKES, and by Markov's inequality P(E >= 1/gamma) <= gamma.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, log

import numpy as np

from fedquorum.certificates.theorem import hit

# The best a for votes from near-unanimous to nearly tied lies between 0.3 and 1; four of them cost a factor of four.
STAKES = (4, 6, 8, 9)
TENTHS = 10
MARGIN = 1e-9


def levels_by_betting(
    n: int, k: int, N: int, most: np.ndarray, second: np.ndarray, gate: Fraction, gamma: Fraction
) -> np.ndarray:
    """The level of `most` votes against `second` (arrays): the largest m such that every gap up to 2 hit(m) is denied.

    Level 0 needs E >= 1/gate, the others E >= 1/gamma; -1 (ABSTAIN) where the gate stays shut.

    >>> gate, gamma = Fraction(1, 10**9), Fraction(1, 10**7)
    >>> levels_by_betting(1000, 10, 500, np.array([475, 400, 300, 250]), np.array([5, 25, 40, 250]), gate, gamma).tolist()
    [51, 33, 18, -1]
    """
    every = comb(n, k)
    levels = np.full(len(most), -1, dtype=np.int64)
    alive = np.arange(len(most))
    for m in range(n - k + 1):
        if 2 * hit(n, k, m) >= every:
            break  # no gap is larger than M
        alive = alive[denied(n, k, N, m, most[alive], second[alive], gamma if m else gate)]
        if not len(alive):
            break
        levels[alive] = m
    return levels


def denied(n: int, k: int, N: int, m: int, most: np.ndarray, second: np.ndarray, gamma: Fraction) -> np.ndarray:
    """Whether E >= 1/gamma for level m, for each pair: by logarithms where these are clear, by integers where they are not.

    >>> denied(1000, 10, 500, 33, np.array([400, 380]), np.array([25, 45]), Fraction(45, 10**9)).tolist()
    [True, False]
    """
    factors, whole = factors_of(n, k, m)
    logs = np.array([[log(factor) - log(whole) for factor in each] for each in factors])
    evidence = _evidence(logs, most, N - most - second, second)
    target = log(gamma.denominator) - log(gamma.numerator)
    found: np.ndarray = evidence > target
    # A difference of logarithms is off by a few units in the last place of log M, 1e-14, and stands N times in the sum.
    for i in np.nonzero(np.abs(evidence - target) <= MARGIN * (N + target))[0]:
        found[i] = exactly_denied(n, k, N, m, int(most[i]), int(second[i]), gamma)
    return found


def _evidence(logs: np.ndarray, most: np.ndarray, others: np.ndarray, second: np.ndarray) -> np.ndarray:
    """log E in floats."""
    capital = logs[:, 0, None] * most + logs[:, 1, None] * others + logs[:, 2, None] * second
    evidence: np.ndarray = np.logaddexp.reduce(capital, axis=0) - log(len(STAKES))
    return evidence


def factors_of(n: int, k: int, m: int) -> tuple[list[tuple[int, int, int]], int]:
    """(win, other, loss) for every stake, as integers over one common denominator.

    >>> factors_of(5, 1, 1)
    ([(82, 62, 42), (88, 58, 28), (94, 54, 14), (97, 52, 7)], 70)
    """
    every, gap = comb(n, k), 2 * hit(n, k, m)
    whole = TENTHS * (every + gap)
    return [(whole + a * (every - gap), whole - a * gap, (TENTHS - a) * (every + gap)) for a in STAKES], whole


def exactly_denied(n: int, k: int, N: int, m: int, most: int, second: int, gamma: Fraction) -> bool:
    """Whether E >= 1/gamma, in integers."""
    factors, whole = factors_of(n, k, m)
    capital = sum(win**most * other ** (N - most - second) * loss**second for win, other, loss in factors)
    wins: bool = capital * gamma.numerator >= len(STAKES) * gamma.denominator * whole**N
    return wins
