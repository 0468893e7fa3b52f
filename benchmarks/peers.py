"""The peers' own environment, in benchmarks/.peers, with the versions that peers.txt pins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fedquorum.engines.local import worker_environment

HERE = Path(__file__).parent
PINS = HERE / "peers.txt"
PYTHON = HERE / ".peers" / "bin" / "python"
# How far the environment has come: the pins that it was made from.
MADE = HERE / ".peers" / "made-from.txt"


def prepare() -> str:
    """Make the environment where it is missing or older than its pins; the reason if that fails, or nothing."""
    if MADE.exists() and MADE.read_text() == PINS.read_text():
        return ""
    print("making the peers' environment (about 1.5 GB) ...", file=sys.stderr, flush=True)
    install = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(PINS)]
    for command in ([sys.executable, "-m", "venv", "--clear", str(HERE / ".peers")], install):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "ERROR" in line] or ["the environment cannot be made"]
            return lines[-1]
    MADE.write_text(PINS.read_text())
    return ""


def core_environment() -> dict[str, str]:
    """What fedquorum's own workers run with: every pool at one thread."""
    return worker_environment()


def peer_environment() -> dict[str, str]:
    """The same, and nothing of the core's packages."""
    environment = worker_environment()
    del environment["PYTHONPATH"]
    environment["PATH"] = os.pathsep.join((str(PYTHON.parent), environment.get("PATH", "")))
    return environment
