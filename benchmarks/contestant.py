"""A contestant's side: a process that is made ready once, then trains for a while whenever it is told to.

It writes one line of JSON when it is ready and one per window; it reads a number of seconds per window and stops when
its input ends. Waiting for a line costs no processor time, so many contestants can be ready at once and take turns.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

# What was done, and when by the system's clock, which all processes share: (work, start, end).
Unit = tuple[float, float, float]


def timed(unit: Callable[[], float], seconds: float) -> list[Unit]:
    """Do `unit`, which returns the work that it did, until the time is over."""
    units: list[Unit] = []
    begin = time.monotonic()
    while not units or units[-1][2] - begin < seconds:
        start = time.monotonic()
        work = unit()
        units.append((work, start, time.monotonic()))
    return units


def serve(prepare: Callable[[], tuple[int, Callable[[float], list[Unit]]]]) -> None:
    """`prepare` returns how many parameters the model has (0 where there is none) and the function for a window."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints goes to the log
    parameters, window = prepare()
    print(json.dumps({"parameters": parameters}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(window(float(line))), file=answers, flush=True)
