"""Parsed data sets as .npy files, one folder each."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from fedquorum.errors import InputError, MachineError


def cache_folder() -> Path:
    """Where parsed data sets are kept: FEDQUORUM_CACHE, or the platform's folder for caches."""
    if given := os.environ.get("FEDQUORUM_CACHE"):
        return Path(given).expanduser()
    import pooch

    return Path(pooch.os_cache("fedquorum"))


def is_whole(folder: Path, names: Iterable[str]) -> bool:
    """Whether all of these arrays are there; a person or a cleaner may have deleted some."""
    return all((folder / f"{name}.npy").is_file() for name in names)


def store(folder: Path, names: Iterable[str], parse: Callable[[], Mapping[str, np.ndarray]]) -> None:
    """Write what `parse` returns to `folder` as NAME.npy, unless all of it is there already.

    Each file is written whole or not at all, and nothing else in the folder is touched. Two processes that do this at once
    have both parsed the same checked content.
    """
    if is_whole(folder, names):
        return
    try:
        parsed = parse()
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in parsed.items():
            temporary = folder / f".{name}-{uuid.uuid4().hex}.tmp"
            try:
                with temporary.open("wb") as file:
                    np.save(file, array)
                temporary.replace(folder / f"{name}.npy")
            finally:
                temporary.unlink(missing_ok=True)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise MachineError(f"{folder}: the disk is full; free some space or set FEDQUORUM_CACHE") from None
        raise InputError(
            f"{folder}: cannot be written ({error.strerror or error}); set FEDQUORUM_CACHE to a folder that can"
        ) from None


def arrays(folder: Path, names: Iterable[str]) -> dict[str, np.ndarray]:
    """The arrays that `store` wrote."""
    try:
        return {name: np.load(folder / f"{name}.npy", allow_pickle=False) for name in names}
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            f"{folder}: damaged ({' '.join(str(error).split())}); delete its .npy files and try again"
        ) from None
