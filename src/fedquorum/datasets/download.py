"""Published files from the network, with a progress bar."""

from __future__ import annotations

import logging
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fedquorum.datasets.published import PUBLISHED
from fedquorum.errors import InputError

SECONDS = 30  # without a byte from the server


def download(url: str, folder: Path) -> None:
    """Bring the file at `url` into `folder`, under its own name; OSError if that fails."""
    import pooch
    import requests

    # pooch would print the digest and advise to check it; the decompressed content is checked instead.
    pooch.get_logger().setLevel(logging.WARNING)
    name = file_name(url)
    bar = _Bar(name)
    try:
        fetcher = pooch.HTTPDownloader(progressbar=bar, timeout=SECONDS)
        pooch.retrieve(url, known_hash=None, fname=name, path=folder, downloader=fetcher)
    except requests.ConnectionError:
        raise OSError(f"no connection to {urlsplit(url).hostname}") from None
    finally:
        bar.close()


def file_name(url: str) -> str:
    """
    >>> file_name("https://example.org/UCI%20HAR%20Dataset.zip")
    'UCI HAR Dataset.zip'
    """
    return unquote(url.rsplit("/", 1)[1])


def not_found(name: str, cause: str) -> InputError:
    """The one error for a data set that is neither here nor to be had."""
    published = PUBLISHED[name]
    urls = published.mirrors[0]
    files = ", ".join(file_name(url) for url in urls)
    return InputError(
        f"{name} is not on this machine and could not be downloaded ({cause}): get {files} from"
        f" {urls[0].rsplit('/', 1)[0]}/ and name their folder with --from or data.path,"
        f" or put them into the folder that FEDQUORUM_DATA names"
    )


class _Bar:
    """What pooch wants of a progress bar (total, update, reset, close), drawn by rich on standard error."""

    def __init__(self, name: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        self.progress = Progress(
            TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn(), console=Console(stderr=True)
        )
        self.task = self.progress.add_task(name, total=None)

    @property
    def total(self) -> float | None:
        return self.progress.tasks[self.task].total

    @total.setter
    def total(self, size: int) -> None:
        # pooch sets this once the server has answered; before that there is nothing to draw.
        self.progress.update(self.task, total=size or None)
        self.progress.start()

    def update(self, size: int) -> None:
        self.progress.advance(self.task, size)

    def reset(self) -> None:
        self.progress.reset(self.task, total=self.total)

    def close(self) -> None:
        self.progress.stop()
