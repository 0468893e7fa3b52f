"""The examples do what they say, run as a user runs them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_small(name: str) -> list[float]:
    """Run the example's main with 100 models in a process of its own; the accuracies that it prints."""
    code = f"import runpy; runpy.run_path({str(EXAMPLES / name)!r} + '.py')['main'](100)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=False)
    assert result.returncode == 0, result.stderr
    return [float(line.split("=")[1]) for line in result.stdout.splitlines() if line.startswith("CA@")]


@pytest.mark.parametrize("name", ["scikit_learn", "pytorch_loop"])
def test_an_example_certifies_most_of_the_digits(name: str) -> None:
    if name == "pytorch_loop":
        pytest.importorskip("torch")
    accuracies = run_small(name)
    assert len(accuracies) == 12
    assert accuracies[0] > 0.75
    assert accuracies[3] > 0.5
    assert accuracies == sorted(accuracies, reverse=True)


@pytest.mark.parametrize("name", ["scikit_learn", "pytorch_loop"])
def test_the_same_seed_learns_the_same_model(name: str) -> None:
    if name == "pytorch_loop":
        pytest.importorskip("torch")
    import numpy as np

    generator = np.random.default_rng(0)
    clients = [(generator.random((20, 64), dtype=np.float32), generator.integers(0, 10, 20)) for _ in range(3)]
    x = generator.random((50, 64), dtype=np.float32)
    fit = example(name).fit
    assert np.array_equal(fit(clients, 5)(x), fit(clients, 5)(x))
