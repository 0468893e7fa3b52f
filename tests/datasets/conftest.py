"""Small stand-ins for the published data sets: same formats, own digests, a cache of their own, no network."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedquorum.datasets.published import IDX_FILES, PUBLISHED, Content, Published

Files = dict[str, bytes]


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def image_files(seed: int) -> Files:
    rng = np.random.default_rng(seed)
    arrays = [
        rng.integers(256, size=(40, 28, 28), dtype=np.uint8),
        rng.integers(10, size=40, dtype=np.uint8),
        rng.integers(256, size=(12, 28, 28), dtype=np.uint8),
        rng.integers(10, size=12, dtype=np.uint8),
    ]
    return {name: idx(array) for name, array in zip(IDX_FILES, arrays, strict=True)}


def har_files() -> Files:
    """UCI's way of writing: two blanks before a positive number, an exponent of three digits."""
    rng = np.random.default_rng(3)
    files = {}
    for part, users in (("train", [1, 3, 30]), ("test", [2, 4])):
        user = np.repeat(users, 10)
        rows = [
            "".join(f"{v:16.7e}"[:-2] + f"0{f'{v:16.7e}'[-2:]}" for v in row) for row in rng.normal(size=(len(user), 5))
        ]
        files[f"{part}/X_{part}.txt"] = "\n".join(rows).encode() + b"\n"
        files[f"{part}/y_{part}.txt"] = "\n".join(str(v) for v in rng.integers(1, 7, len(user))).encode() + b"\n"
        files[f"{part}/subject_{part}.txt"] = "\n".join(str(v) for v in user).encode() + b"\n"
    return files


def zipped(files: Files) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def put(folder: Path, files: Files, *, gz: bool = False) -> Path:
    for name, content in files.items():
        target = folder / (f"{name}.gz" if gz else name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(gzip.compress(content) if gz else content)
    return folder


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Files]:
    """What the files of each data set hold; PUBLISHED says so, and its only mirror refuses connections."""
    monkeypatch.setenv("FEDQUORUM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FEDQUORUM_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    everything = {"mnist": image_files(1), "fashion-mnist": image_files(2), "har": har_files()}
    for name, files in everything.items():
        contents = {file: Content(len(c), hashlib.sha256(c).hexdigest()) for file, c in files.items()}
        monkeypatch.setitem(PUBLISHED, name, Published(contents, (("http://127.0.0.1:9/nothing.gz",),)))
    return everything


@pytest.fixture
def write() -> Callable[..., Path]:
    return put


@pytest.fixture
def pack() -> Callable[[Files], bytes]:
    return zipped
