"""The published files, wherever a person has put them: gzipped or plain, in a folder, a zip, or a zip within a zip."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from fedquorum.datasets.published import PUBLISHED
from fedquorum.errors import InputError

UNPACKED = "UCI HAR Dataset"  # the folder inside UCI's zip


class Elsewhere(InputError):
    """A zip that cannot be read, in a folder where nothing tells that it has to do with the data set."""


class Found(NamedTuple):
    """One file's decompressed content, and where it was (for messages)."""

    where: str
    content: bytes


def find(name: str, place: Path) -> dict[str, Found]:
    """The files of data set `name` at `place`, a folder (they may be in its subfolder `name`) or a zip: checked.

    Empty if none of the files is there. InputError if some are missing, or one does not hold what was published.
    """
    wanted = PUBLISHED[name].files
    try:
        found = _in_zip(place, wanted) if place.is_file() else _in_folder(name, place, wanted)
    except OSError as error:
        raise InputError(f"{error.filename or place}: cannot be read ({error.strerror or error})") from None
    if not found:
        return {}
    missing = [file for file in wanted if file not in found]
    if missing:
        raise InputError(
            f"{place}: {name} also needs {', '.join(missing)} (gzipped or plain); put it beside the others"
        )
    for file, (where, content) in found.items():
        _check(name, file, where, content)
    return found


def _in_folder(name: str, place: Path, wanted: Iterable[str]) -> dict[str, Found]:
    folders = [place / name / UNPACKED, place / name, place / UNPACKED, place]
    for folder in folders:
        present = {}
        for file in wanted:
            for candidate in (folder / file, folder / f"{file}.gz"):
                if candidate.is_file():
                    present[file] = Found(str(candidate), _decompressed(str(candidate), candidate.read_bytes()))
                    break
        if present:
            return present
    broken: InputError | None = None
    for folder in folders:
        for archive in sorted(folder.glob("*.zip")):
            try:
                if present := _in_zip(archive, wanted):
                    return present
            except InputError as error:
                # A broken zip is an error only if the files are in no other.
                broken = error
    if broken:
        raise Elsewhere(f"{broken} (no other file of {name} is in {place})")
    return {}


def _in_zip(place: Path, wanted: Iterable[str]) -> dict[str, Found]:
    try:
        with zipfile.ZipFile(place) as archive:
            return _members(str(place), archive, wanted, nested=True)
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        if any(place.name.removesuffix(".gz") == Path(file).name for file in wanted):
            raise InputError(f"{place}: this is one file of several; name the folder that they are in") from None
        raise InputError(f"{place}: truncated, damaged or not a zip file ({error}); get it again") from None


def _members(where: str, archive: zipfile.ZipFile, wanted: Iterable[str], nested: bool) -> dict[str, Found]:
    names = archive.namelist()
    present = {}
    for file in wanted:
        for name in names:
            # "/" before both, so that train/X_train.txt is found at any depth but never as old-train/X_train.txt.
            if f"/{name}".endswith((f"/{file}", f"/{file}.gz")):
                inside = f"{where}:{name}"
                present[file] = Found(inside, _decompressed(inside, archive.read(name)))
                break
    if present or not nested:
        return present
    for name in names:
        if name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(archive.read(name))) as inner:
                if present := _members(f"{where}:{name}", inner, wanted, nested=False):
                    return present
    return {}


def _decompressed(where: str, content: bytes) -> bytes:
    """By the content, not the name: some servers unpack a `.gz` while sending it."""
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{where}: truncated or damaged gzip file ({error}); get it again") from None


def _check(name: str, file: str, where: str, content: bytes) -> None:
    expected = PUBLISHED[name].files[file]
    digest = hashlib.sha256(content).hexdigest()
    if digest == expected.sha256:
        return
    for other, published in PUBLISHED.items():
        for other_file, other_content in published.files.items():
            if other_content.sha256 == digest:
                raise InputError(
                    f"{where}: this is {other_file} of {other}, not {file} of {name}; put the right file there"
                )
    if len(content) != expected.size:
        raise InputError(
            f"{where}: {len(content)} bytes, but {file} of {name} has {expected.size}:"
            f" truncated or another file; get it again"
        )
    raise InputError(
        f"{where}: not the published {file} of {name}: its SHA-256 is {digest}, not {expected.sha256}; get it again"
    )
