"""The driver's side of the contestants: take turns, often, so that what the machine does meanwhile hits all alike."""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from contestant import Unit

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Contestant:
    """A script that serves windows. `alone` ones use all cores from one process; the others run once per core."""

    name: str
    python: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    alone: bool = False
    stretch: float = 1.0  # its windows, as a multiple of the others'


@dataclass(frozen=True)
class Process:
    """A contestant that is ready."""

    popen: subprocess.Popen[str]
    log: IO[str]

    def ask(self) -> Any:
        """Its next line, once there is one."""
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        if not line:
            self.log.seek(0)
            words = [text.strip() for text in self.log.read().splitlines() if text.strip()] or ["it said nothing"]
            errors = [text for text in words if "Error" in text]
            raise ChildProcessError((errors or words)[-1].replace(f"{HERE.parent}/", ""))
        return json.loads(line)

    def begin(self, seconds: float) -> None:
        """A window starts now."""
        assert self.popen.stdin is not None
        self.popen.stdin.write(f"{seconds}\n")
        self.popen.stdin.flush()


def start(contestant: Contestant) -> Process:
    """Start a process; it makes itself ready on its own."""
    log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115, it is closed by `stop`
    popen = subprocess.Popen(
        [contestant.python, *contestant.arguments],
        cwd=HERE,
        env=contestant.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    return Process(popen, log)


def stop(process: Process) -> None:
    """End it; with its input at an end, it goes by itself."""
    assert process.popen.stdin is not None and process.popen.stdout is not None
    process.popen.stdin.close()
    try:
        process.popen.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.popen.kill()
        process.popen.wait()
    process.popen.stdout.close()
    process.log.close()


Ready = list[tuple[Contestant, list[Process]]]


@contextmanager
def ready(field: Sequence[Contestant], cores: int, parameters: int) -> Iterator[tuple[Ready, dict[str, str]]]:
    """The contestants that can take part, with their processes, and why each of the others cannot."""
    started: list[Process] = []
    taking_part: Ready = []
    absent: dict[str, str] = {}
    try:
        for contestant in field:  # one after another, so that none prepares what it measures while others compile
            processes = [start(contestant) for _ in range(1 if contestant.alone else cores)]
            started += processes
            try:
                found = {process.ask()["parameters"] for process in processes}
            except ChildProcessError as error:
                if contestant.name == "fedquorum":  # without which there is nothing to compare
                    raise SystemExit(f"fedquorum does not start: {error}") from None
                absent[contestant.name] = str(error)
                continue
            if not found <= {parameters, 0}:
                raise AssertionError(f"{contestant.name} trains {found} parameters, and the job has {parameters}")
            taking_part.append((contestant, processes))
        yield taking_part, absent
    finally:
        for process in started:
            stop(process)


def together(windows: Sequence[Sequence[Unit]]) -> float:
    """Work per second of processes side by side, over the time in which all of them were at work.

    A unit that began before or ended after that time counts with the part of it that lies within.
    """
    begin = max(units[0][1] for units in windows)
    end = min(units[-1][2] for units in windows)
    work = 0.0
    for units in windows:
        for amount, first, last in units:
            work += amount * max(0.0, min(last, end) - max(first, begin)) / (last - first)
    return work / (end - begin)


def best(windows: Sequence[Sequence[Unit]]) -> float:
    """Work per second of each process's fastest unit, added up."""
    return sum(max(amount / (last - first) for amount, first, last in units) for units in windows)


def windows(processes: Sequence[Process], seconds: float) -> list[list[Unit]]:
    """Let these work at the same time for so long."""
    for process in processes:
        process.begin(seconds)
    return [process.ask() for process in processes]


def summary(values: Sequence[float], digits: int = 4) -> dict[str, float]:
    """The median, and the lowest and highest of the repeats."""
    return {
        name: float(f"{function(values):.{digits}g}")
        for name, function in (("median", statistics.median), ("low", min), ("high", max))
    }
