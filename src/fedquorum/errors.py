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


def one_line(text: str) -> str:
    """Text that others may have chosen, as it can be shown: no line of its own, no control of the terminal.

    >>> one_line("two\\nlines\\x1b[2K")
    'two lines [2K'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


class InputError(ValueError):
    """The user's input is wrong. The message says what, where and what to do; the command exits with 2."""


class MachineError(RuntimeError):
    """fedquorum, a worker or the machine failed (a full disk, a worker that keeps dying); exit code 3."""
