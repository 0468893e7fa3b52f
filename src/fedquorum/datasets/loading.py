"""The one way to a data set by its name."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import numpy as np

from fedquorum.datasets.cache import arrays, cache_folder, store
from fedquorum.datasets.dataset import Dataset
from fedquorum.datasets.digits import digits
from fedquorum.datasets.download import download, not_found
from fedquorum.datasets.finding import Elsewhere, Found, find
from fedquorum.datasets.har import har, parse_har
from fedquorum.datasets.idx import images, parse_images
from fedquorum.datasets.own import ENDINGS, own
from fedquorum.datasets.published import PUBLISHED
from fedquorum.errors import InputError

NAMES = ("digits", "mnist", "har", "fashion-mnist")
# What the cache holds of each.
IMAGES = ("x", "y", "test_x", "test_y")
ARRAYS = {"mnist": IMAGES, "fashion-mnist": IMAGES, "har": ("x", "y", "user")}


def load(name: str, path: Path | None = None, *, seed: int = 1) -> Dataset:
    """The data set `name`: one of NAMES, or a file of the user's own (`.npz`, `.csv`, `.parquet`).

    `path` is the folder (or zip) with its files. `seed` decides which rows become the test set where the
    data set brings none: HAR's, and a table's without a `test` column.

    >>> load("digits").x.shape
    (1437, 64)
    """
    if name == "digits":
        return digits()
    if name not in PUBLISHED:
        return own(_own_file(name, path), seed)
    content = arrays(fetch(name, path), ARRAYS[name])
    return har(content, seed) if name == "har" else images(name, content)


def fetch(name: str, path: Path | None = None) -> Path:
    """Find the files of a data set, check them, parse them into the cache, and return the folder with the arrays.

    Of the user's own file and of `digits`, which need no parsing, the place where they are.

    Looked for at `path` (where they must be), at FEDQUORUM_DATA, in the cache, and then on the network.
    """
    if name == "digits":
        if path is not None:
            raise InputError("digits comes with scikit-learn; it has no files of its own to look for")
        import sklearn.datasets

        return Path(sklearn.datasets.__file__).parent / "data"
    if name not in PUBLISHED:
        file = _own_file(name, path)
        own(file, seed=1)
        return file
    folder = cache_folder() / name
    files = _on_this_machine(name, path)
    if files:
        store(folder, ARRAYS[name], lambda: _parse(name, files))
    else:
        store(folder, ARRAYS[name], lambda: _parse(name, _from_network(name)))
    return folder


def _on_this_machine(name: str, path: Path | None) -> dict[str, Found]:
    if path is not None:
        place = Path(path).expanduser()
        if not place.exists():
            raise InputError(f"{place}: no such folder or file; it should hold the files of {name}")
        files = find(name, place)
        if not files:
            raise InputError(f"{place}: holds no file of {name}; wanted: {', '.join(PUBLISHED[name].files)}")
        return files
    if given := os.environ.get("FEDQUORUM_DATA"):
        place = Path(given).expanduser()
        if not place.exists():
            raise InputError(f"FEDQUORUM_DATA is {given}, but there is no such folder; correct or unset it")
        try:
            return find(name, place)
        except Elsewhere:
            pass  # other people's files in a folder that is not for this data set alone
    return {}


def _from_network(name: str) -> dict[str, Found]:
    causes = []
    for mirror in PUBLISHED[name].mirrors:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                for url in mirror:
                    download(url, Path(scratch))
                if files := find(name, Path(scratch)):
                    return files
                causes.append(f"{mirror[0]} brought something else")
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                    raise
                # InputError is a ValueError: a mirror with wrong content is passed over like one that is down.
                causes.append(" ".join(str(error).split()))
    raise not_found(name, "; ".join(causes))


def _parse(name: str, files: dict[str, Found]) -> dict[str, np.ndarray]:
    return parse_har(files) if name == "har" else parse_images(files)


def _own_file(name: str, path: Path | None) -> Path:
    file = Path(name).expanduser() if path is None else Path(path).expanduser() / name
    if file.suffix.lower() not in ENDINGS:
        raise InputError(
            f"unknown data set {name!r}; use one of {', '.join(NAMES)}, or the path of a {', '.join(ENDINGS)} file"
        )
    return file
