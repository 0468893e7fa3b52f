"""The two ways in which fedquorum gives up, each with one line for a person to read."""

from __future__ import annotations

import lzma
import zipfile
import zlib

# What NumPy and zipfile raise for .npz files that are damaged, encrypted, or claim to hold more than fits the memory.
UNREADABLE = (
    *(OSError, ValueError, EOFError, TypeError, AttributeError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)


class InputError(ValueError):
    """The user's input is wrong. The message says what, where and what to do; the command exits with 2."""


class MachineError(RuntimeError):
    """fedquorum, a worker or the machine failed (a full disk, a worker that keeps dying); exit code 3."""
