"""The benchmarks' own code still fits the project's: they are run by hand, so nothing else would tell."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest


def test_the_yardstick_learns_a_linear_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import logistic  # type: ignore[import-not-found]
    from jobs import LOGISTIC as JOB  # type: ignore[import-not-found]
    from jobs import examples

    x, y = (jnp.asarray(part) for part in examples(JOB))
    w = jax.eval_shape(logistic.learn, x, y, jnp.uint32(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(w)) == JOB.parameters
