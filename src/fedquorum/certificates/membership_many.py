"""Many patterns of votes: in several processes, with what is settled kept in a cache, so that an interrupted job resumes."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from fedquorum.certificates.cover import Cover
from fedquorum.errors import MachineError

SECONDS_BETWEEN_SAVES = 5.0
# Part of every problem's key: a new number, and levels that an older method found are not believed.
METHOD = 1

# From a pattern of votes to its level, and whether that is settled: known to be the largest possible.
Solve = Callable[[np.ndarray], tuple[int, bool]]


class Settled:
    """Levels that are settled, kept in a file of a folder, one per problem, by SHA-256 of the problem and the pattern.

    A settled level is the largest possible: no time limit or number of workers makes it another. It is believed when it is
    read again, so the folder must be this user's own, never one that came from somebody else.
    """

    def __init__(self, folder: Path | None, cover: Cover, classes: int) -> None:
        self._problem = hashlib.sha256(f"membership {METHOD} {cover.models} {cover.clients} {classes} ".encode())
        for part in (cover.members.indptr, cover.members.indices):
            self._problem.update(part.astype("<i8").tobytes())
        self._path = None if folder is None else Path(folder) / f"{self._problem.hexdigest()[:32]}.json"
        self._levels: dict[str, int] = {}
        self._saved = time.monotonic()
        if self._path is not None:
            # a file that cannot be read is made again: everything in it can be
            with suppress(OSError, ValueError, TypeError, AttributeError):
                content = json.loads(self._path.read_text(encoding="utf-8"))
                self._levels = {str(key): int(level) for key, level in content.items() if 0 <= level < cover.clients}

    def level(self, pattern: np.ndarray) -> int | None:
        """The level of this pattern, if it is settled."""
        return self._levels.get(self._key(pattern))

    def add(self, pattern: np.ndarray, level: int) -> None:
        """Keep a level, in the folder too every few seconds."""
        self._levels[self._key(pattern)] = level
        if time.monotonic() - self._saved > SECONDS_BETWEEN_SAVES:
            self.save()

    def save(self) -> None:
        """Write the file whole or not at all; a cache that cannot be written costs nothing but time."""
        self._saved = time.monotonic()
        if self._path is None or not self._levels:
            return
        temporary = self._path.with_suffix(f".{os.getpid()}.tmp")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with open(temporary, "w", encoding="utf-8") as file:
                json.dump(self._levels, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            self._path = None

    def _key(self, pattern: np.ndarray) -> str:
        key = self._problem.copy()
        key.update(pattern.astype("<u2").tobytes())
        return key.hexdigest()


def solve_all(
    solve: Solve, patterns: list[np.ndarray], settled: Settled, workers: int, progress: Callable[[int, int], None]
) -> list[tuple[int, bool]]:
    """`solve` for every pattern that is not settled yet, and all the answers in order; `progress(done, total)` as they come."""
    known = {i: level for i, pattern in enumerate(patterns) if (level := settled.level(pattern)) is not None}
    answers = {i: (level, True) for i, level in known.items()}
    missing = [i for i in range(len(patterns)) if i not in known]
    progress(len(answers), len(patterns))
    results = _solved(solve, [patterns[i] for i in missing], min(workers, len(missing)))
    try:
        for i, (level, is_settled) in zip(missing, results, strict=True):
            answers[i] = level, is_settled
            if is_settled:
                settled.add(patterns[i], level)
            progress(len(answers), len(patterns))
    finally:
        results.close()
        settled.save()
    return [answers[i] for i in range(len(patterns))]


def _solved(solve: Solve, patterns: list[np.ndarray], workers: int) -> Generator[tuple[int, bool], None, None]:
    if workers <= 1:
        yield from map(solve, patterns)
        return
    # Fresh processes and not forks, which the threads of JAX in this one might not survive.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_keep, initargs=(solve,))
    try:
        yield from pool.map(_solve_kept, patterns, chunksize=4)
    except BrokenProcessPool:
        raise MachineError(
            "a process that worked out membership levels died; try fewer workers, or exact=False"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_kept: list[Solve] = []


def _keep(solve: Solve) -> None:
    """Give a process the cover problem once, and not with every pattern."""
    _kept[:] = [solve]


def _solve_kept(pattern: np.ndarray) -> tuple[int, bool]:
    return _kept[0](pattern)
