"""The smallest breaking coalition by a mixed-integer solver (HiGHS, through SciPy).

A coalition that it finds is weighed again in integers. Its bound is taken a margin away from where it would round to one client
more; that the bound itself is right is the one thing taken on trust (docs/explanation/membership.md says when it matters).
"""

from __future__ import annotations

from math import ceil, isfinite
from typing import Any

import numpy as np

from fedquorum.certificates.cover import Cover, weight_of

# A solver's bound on a whole number may be 50.00000000000001 where 50 is meant; then 50 is what is proved, and not 51.
MARGIN = 1e-3


def smallest(cover: Cover, weights: np.ndarray, need: int, seconds: float) -> tuple[int, np.ndarray | None]:
    """A lower bound on the size of a coalition with W(T) >= need, and the best such coalition found, if any.

        minimise sum_j x_j   with   sum_i w_i h_i >= need - 1/2,   h_i <= sum_{j in model i} x_j,   x_j in {0, 1}, 0 <= h_i <= 1

    For whole x_j the best h_i is 0 or 1 by itself, so h needs no integrality; then the sum is an integer, and asking for
    half a unit less than `need` changes nothing but keeps true solutions half a unit away from every tolerance.

    >>> from fedquorum.certificates.cover import cover_of
    >>> bound, coalition = smallest(cover_of(np.array([[0, 1], [1, 2], [2, 3]])), np.array([2, 2, 2]), 6, seconds=10)
    >>> bound, len(coalition)
    (2, 2)
    """
    from scipy import optimize, sparse

    heavy = np.flatnonzero(weights)
    clients, models = cover.clients, len(heavy)
    hits = sparse.hstack([cover.members[heavy].astype(float), -sparse.eye_array(models)])
    enough = np.concatenate([np.zeros(clients), weights[heavy]])[None, :]
    result: Any = optimize.milp(
        np.concatenate([np.ones(clients), np.zeros(models)]),
        integrality=np.concatenate([np.ones(clients), np.zeros(models)]),
        bounds=optimize.Bounds(0, 1),
        constraints=[
            optimize.LinearConstraint(hits.tocsc(), 0, np.inf),
            optimize.LinearConstraint(sparse.csc_array(enough), need - 0.5, np.inf),
        ],
        options={"time_limit": max(seconds, 0.01), "mip_rel_gap": 0},
    )
    coalition = None
    if result.x is not None:
        chosen = np.flatnonzero(result.x[:clients] > 0.5)
        if weight_of(cover, weights, chosen) >= need:
            coalition = chosen
    bound = result.mip_dual_bound
    return (max(ceil(bound - MARGIN), 0) if bound is not None and isfinite(bound) else 0), coalition
