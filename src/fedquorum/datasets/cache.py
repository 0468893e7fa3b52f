"""Parsed data sets as .npy files, one folder each, written whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
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


def store(folder: Path, parse: Callable[[], Mapping[str, np.ndarray]]) -> None:
    """Write what `parse` returns to `folder` as NAME.npy, unless it is there already.

    The arrays are written into a folder beside it that is then renamed. Of two processes that do this at once, one
    renames first and the other keeps what it finds: both have parsed the same checked content.
    """
    if folder.is_dir():
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
            whole = Path(scratch) / folder.name
            whole.mkdir()
            for name, array in parse().items():
                np.save(whole / f"{name}.npy", array)
            try:
                whole.rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise MachineError(f"{folder}: the disk is full; free some space or set FEDQUORUM_CACHE") from None
        raise InputError(
            f"{folder}: cannot be written ({error.strerror or error}); set FEDQUORUM_CACHE to a folder that can"
        ) from None


def arrays(folder: Path) -> dict[str, np.ndarray]:
    """The arrays that `store` wrote."""
    try:
        return {file.stem: np.load(file, allow_pickle=False) for file in sorted(folder.glob("*.npy"))}
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            f"{folder}: damaged ({' '.join(str(error).split())}); delete this folder and try again"
        ) from None
