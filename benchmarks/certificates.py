"""How long certificates take, without the imports: seconds, and how many times the plain second path would take.

The votes are drawn, not trained: what a certificate costs depends on how many inputs and models there are, and for
`membership` on how many inputs have the same votes (here: none) and how much their votes scatter.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np

from fedquorum.certificates import certify, certify_counts, membership, membership_oracle, oracle
from fedquorum.engines.local import worker_count
from fedquorum.subsamples import draw
from fedquorum.votes import Votes

SAMPLE = 20  # inputs for the second path, which would take hours for all


def votes_like_ours(n: int, k: int, count: int, inputs: int, classes: int, design: str) -> Votes:
    """Votes as ensembles give them: most inputs nearly unanimous, some disputed, each model with a mind of its own."""
    generator = np.random.default_rng(0)
    ease = generator.beta(4, 0.7, inputs)
    truth = generator.integers(0, classes, inputs)
    skill = generator.uniform(0.9, 1.0, count)
    votes = np.where(
        generator.random((count, inputs)) < skill[:, None] * ease,
        truth,
        generator.integers(0, classes, (count, inputs)),
    )
    return Votes(votes.astype(np.uint8), np.asarray(draw(n, k, count, design, seed=1)), n, truth, classes, design)


def seconds(work: Callable[[], Any]) -> float:
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def second_path(votes: Votes, name: str) -> float:
    """Seconds for all inputs, from a sample of them."""
    few = Votes(votes.votes[:, :SAMPLE], votes.subsamples, votes.n, None, votes.classes, votes.design)
    if name == "membership":
        level = membership.certify(few, exact=False).level.tolist()
        label = few.counts().argmax(axis=1).tolist()
        taken = seconds(lambda: membership_oracle.check(few, label, level))
    else:
        taken = seconds(lambda: oracle.recompute(few, name))
    return taken * votes.d / SAMPLE


def main() -> None:
    mnist = votes_like_ours(1000, 10, 500, 10_000, 10, "independent")
    har = votes_like_ours(30, 2, comb(30, 2), 2576, 6, "distinct")
    certify(mnist, "ideal")  # SciPy and NumPy are loaded
    rows = [
        (f"{name}, 10,000 inputs x 500 models", seconds(lambda name=name: certify(mnist, name)), mnist, name)
        for name in ("paper", "ideal", "served")
    ]
    rows.append(
        ("membership, fast, the same", seconds(lambda: membership.certify(mnist, exact=False)), mnist, "membership")
    )
    cores = worker_count(None)
    exact = seconds(lambda: membership.certify(har, exact=True, workers=cores))
    rows.append((f"membership, exact, 2,576 x 435, n = 30, {cores} processes", exact, har, "membership"))
    print(f"| certificate | seconds | the second path, from {SAMPLE} inputs, over it |\n|---|---|---|")
    for text, taken, votes, name in rows:
        # that the levels hold, not that they are the largest, which is most of the work of finding these
        other = "" if votes is har else f"{second_path(votes, name) / taken:,.1f} x"
        print(f"| {text} | {taken:.2f} | {other} |", flush=True)
    top = np.random.default_rng(0).integers(250, 501, 10_000_000)
    counts = np.zeros((len(top), 10), dtype=np.int32)
    counts[:, 0], counts[:, 1] = top, 500 - top
    for name in ("paper", "ideal", "served"):
        taken = seconds(lambda name=name: certify_counts(counts, 1000, 10, 500, "independent", name))
        print(f"| {name}, 10 million inputs, from their counts | {taken:.2f} | |", flush=True)


if __name__ == "__main__":
    main()
