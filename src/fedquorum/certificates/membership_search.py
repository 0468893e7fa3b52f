"""A complete search for a coalition of m clients, pruned by what pairs of clients share; the quick way where clients are few.

The proof of the bound is in docs/explanation/membership.md.
"""

from __future__ import annotations

import numpy as np

from fedquorum.certificates.cover import Cover, loads

BLOCK = 64
# Entries of the table of pairs (models x clients x clients): beyond this the solver is quicker than the search.
LARGEST = 2**22


def reachable(cover: Cover, weights: np.ndarray, need: int, m: int, nodes: int) -> bool | None:
    """Whether some m clients have W(T) >= need; None if `nodes` partial coalitions were not enough to tell.

    Clients are taken in one order, heaviest first. A partial coalition T, r clients short, can add clients R among those
    after its last. A model holds at most q of them, q the smaller of r and the largest subsample, and for 0 <= t <= q
    [t >= 1] <= t - (2/q) C(t, 2). Hence, with all weights of models that T has not hit,

        W(T + R) <= W(T) + sum_{j in R} (load_j - (1/q) sum_{l in R, l != j} shared_jl)

    and at most r times: the r largest of q load_j - the r - 1 smallest shared_jl, over the clients that may be added.

    >>> from fedquorum.certificates.cover import cover_of
    >>> square = cover_of(np.array([[0, 1], [1, 2], [2, 3], [0, 3]]))
    >>> [reachable(square, np.array([2, 2, 2, 2]), 8, m, nodes=100) for m in (1, 2)]
    [False, True]
    """
    n = cover.clients
    if m >= n:
        return int(weights.sum()) >= need
    if table_size(cover) > LARGEST:
        return None
    from scipy.sparse import csr_array

    order = np.argsort(-loads(cover, weights), kind="stable")
    inside = cover.members.toarray()[:, order]
    largest = int(inside.sum(axis=1).max())
    pairs = csr_array((inside[:, :, None] * inside[:, None, :]).reshape(cover.models, n * n))
    members = csr_array(inside)
    beyond_all = int(2 * weights.sum() + 1)
    place = np.arange(n)

    # A block of partial coalitions of one size: what they left unhit, W(T), the last client taken.
    stack = [(weights[None, :], np.zeros(1, dtype=np.int64), np.array([-1]), m)]
    visited = 0
    while stack:
        unhit, reached, last, short = stack.pop()
        if len(last) > BLOCK:
            stack.append((unhit[BLOCK:], reached[BLOCK:], last[BLOCK:], short))
            unhit, reached, last = unhit[:BLOCK], reached[:BLOCK], last[:BLOCK]
        visited += len(last)
        if visited > nodes:
            return None
        load = unhit @ members
        free = place > last[:, None]
        q = min(short, largest)
        worth = q * load
        if short > 1 and q > 1:
            shared = (unhit @ pairs).reshape(-1, n, n)
            shared[:, place, place] = beyond_all
            shared = np.where(free[:, None, :], shared, beyond_all)
            worth -= np.partition(shared, short - 2, axis=2)[:, :, : short - 1].sum(axis=2)
        worth[~free] = -beyond_all * n * q
        best = np.partition(worth, n - short, axis=1)[:, n - short :].sum(axis=1)
        hopeful = q * reached + best >= q * need
        parent, child = np.nonzero(free & hopeful[:, None])
        total = reached[parent] + load[parent, child]
        if (total >= need).any():
            return True
        if short == 1 or len(parent) == 0:
            continue
        # best first: the head of a block is looked into before its rest
        first = np.argsort(-total, kind="stable")
        parent, child, total = parent[first], child[first], total[first]
        stack.append((unhit[parent] * (1 - inside.T[child]), total, child, short - 1))
    return False


def table_size(cover: Cover) -> int:
    """Entries of the table of pairs that a search needs.

    >>> from fedquorum.certificates.cover import cover_of
    >>> table_size(cover_of(np.array([[0, 1], [1, 2], [2, 3], [0, 3]])))
    64
    """
    return cover.models * cover.clients**2
