"""What several tests need: the command, small data, and base algorithms simple enough to reason about."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

CommandResult = tuple[int, str, str]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a test computes comes from the test alone, and nothing of it stays in the user's cache."""
    if "FEDQUORUM_CACHE" not in os.environ:
        monkeypatch.setenv("FEDQUORUM_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., CommandResult]:
    """Run `fedquorum ARGS` in this process: exit code, standard output, standard error."""
    from fedquorum import cli

    def run(*arguments: object) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["fedquorum", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        output = capfd.readouterr()
        return int(end.value.code or 0), output.out, output.err

    return run


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[str]]:
    """Start `fedquorum ARGS` as a process of its own, as a shell would."""

    def run(*arguments: object, **options: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "fedquorum.cli", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"COLUMNS": "200"},
            **options,  # type: ignore[call-overload]
        )

    return run


def refused(result: CommandResult, *words: str, code: int = 2) -> None:
    """A person's error: its exit code, one line on standard error that has the words, nothing of Python's insides."""
    assert result[0] == code, result
    assert result[2].startswith("fedquorum: ")
    assert result[2].count("\n") == 1
    assert "Traceback" not in result[2]
    for word in words:
        assert word in result[2]


# Two clusters of points per class that any learner separates; clients of unequal size.
def write_points(path: Path, clients: int = 12, tests: int = 40, seed: int = 0) -> Path:
    generator = np.random.default_rng(seed)
    sizes = generator.integers(6, 15, clients)
    client = np.repeat(np.arange(clients), sizes)
    y = generator.integers(0, 3, len(client))
    test_y = generator.integers(0, 3, tests)
    centres = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    np.savez(
        path,
        x=(centres[y] + generator.normal(size=(len(y), 2))).astype(np.float32),
        y=y,
        client=client,
        test_x=(centres[test_y] + generator.normal(size=(tests, 2))).astype(np.float32),
        test_y=test_y,
        classes=3,
    )
    return path


# A base algorithm without JAX, so that workers start at once: the nearest class mean, with a little noise from the seed.
NEAREST = """
import os, signal, threading, time
from pathlib import Path
import numpy as np

def nearest(clients, seed):
    x = np.concatenate([x for x, _ in clients]); y = np.concatenate([y for _, y in clients])
    noise = np.random.default_rng(seed).normal(size=(3, x.shape[1]))
    means = np.array([x[y == label].mean(axis=0) if (y == label).any() else np.full(x.shape[1], 9.0) for label in range(3)])
    means = means + 0.5 * noise
    return lambda q: ((q[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)

def slow(clients, seed):
    time.sleep(0.1)
    return nearest(clients, seed)

def killed_once(clients, seed):
    mark = Path(__file__).parent / "died"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return nearest(clients, seed)

def killed_always(clients, seed):
    if len(clients[0][0]) == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    return nearest(clients, seed)

def noise(clients, seed):
    return lambda q: np.random.default_rng(seed).integers(0, 3, len(q))

def raises(clients, seed):
    raise RuntimeError("no\\nluck") if seed % 2 else ValueError("odd")

def fails(clients, seed):
    raise ValueError(f"{os.getpid()} {time.time()}")

def zero(clients, seed):
    raise ValueError("a\\0")

def greedy(clients, seed):
    raise MemoryError

class Locked:
    def __init__(self):
        self.lock = threading.Lock()
    def __call__(self, clients, seed):
        return nearest(clients, seed)

locked = Locked()
"""


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """A folder with points.npz, mine.py and run.toml for one of the base algorithms above; returns run.toml."""

    def make(algorithm: str = "mine.py:nearest", more: str = "", clients: int = 12, tests: int = 40) -> Path:
        write_points(tmp_path / "points.npz", clients, tests)
        (tmp_path / "mine.py").write_text(NEAREST)
        (tmp_path / "run.toml").write_text(
            f"""
            [data]
            name = "points.npz"
            [subsamples]
            size = 3
            count = 30
            seed = 7
            [algorithm]
            name = "{algorithm}"
            rounds = 3
            {more}
            """
        )
        return tmp_path / "run.toml"

    return make
