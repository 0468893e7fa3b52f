"""What is on no disk comes from the first mirror that has the published content."""

from __future__ import annotations

import dataclasses
import gzip
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fedquorum.datasets import load
from fedquorum.datasets.published import IDX_FILES, PUBLISHED
from fedquorum.errors import InputError

Files = dict[str, bytes]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Its address, and the folder that it serves."""
    root = tmp_path / "www"
    root.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root))) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}", root
        http.shutdown()
        thread.join()


def mirrors(monkeypatch: pytest.MonkeyPatch, name: str, *urls: tuple[str, ...]) -> None:
    monkeypatch.setitem(PUBLISHED, name, dataclasses.replace(PUBLISHED[name], mirrors=urls))


def test_the_first_mirror_with_the_published_content_is_used_and_then_cached(
    published: dict[str, Files],
    tmp_path: Path,
    server: tuple[str, Path],
    write: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    address, root = server
    write(root / "wrong", published["fashion-mnist"], gz=True)
    write(root / "right", published["mnist"], gz=True)
    folders = ("http://127.0.0.1:9", f"{address}/missing", f"{address}/wrong", f"{address}/right")
    mirrors(monkeypatch, "mnist", *(tuple(f"{folder}/{file}.gz" for file in IDX_FILES) for folder in folders))
    first = load("mnist")
    assert len(first.x) == 40
    shown = capfd.readouterr()
    assert shown.out == "" and "train-images-idx3-ubyte.gz" in shown.err and "SHA256" not in shown.err
    for file in (root / "right").iterdir():
        file.unlink()
    assert load("mnist").x.tobytes() == first.x.tobytes()
    assert [folder.name for folder in (tmp_path / "cache").iterdir()] == ["mnist"]


def test_a_server_that_unpacks_gzip_on_the_way_is_understood(
    published: dict[str, Files],
    server: tuple[str, Path],
    write: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, root = server
    write(root, {f"{name}.gz": content for name, content in published["mnist"].items()})
    mirrors(monkeypatch, "mnist", tuple(f"{address}/{file}.gz" for file in IDX_FILES))
    assert len(load("mnist").x) == 40


def test_uci_serves_a_zip_within_a_zip_under_a_name_with_plus_signs(
    published: dict[str, Files],
    server: tuple[str, Path],
    write: Callable[..., Path],
    pack: Callable[[Files], bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, root = server
    inner = pack({f"UCI HAR Dataset/{name}": content for name, content in published["har"].items()})
    write(root, {"human+activity.zip": pack({"UCI HAR Dataset.zip": inner})})
    mirrors(monkeypatch, "har", (f"{address}/human+activity.zip",))
    assert len(load("har").x) == 40


def test_mirrors_that_bring_something_else_are_all_named_in_one_line(
    published: dict[str, Files],
    tmp_path: Path,
    server: tuple[str, Path],
    write: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, root = server
    write(root, {"a.gz": b"<html>please log in</html>", "train-images-idx3-ubyte.gz": gzip.compress(b"short")})
    mirrors(monkeypatch, "mnist", (f"{address}/a.gz",), (f"{address}/train-images-idx3-ubyte.gz",))
    with pytest.raises(InputError) as error:
        load("mnist")
    message = str(error.value)
    assert "a.gz brought something else" in message and "mnist also needs" in message and "\n" not in message
    assert not (tmp_path / "cache" / "mnist").exists()
