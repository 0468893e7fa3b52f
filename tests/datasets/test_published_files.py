"""Published files are found in every form they come in, and nothing else is taken for them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedquorum.datasets import fetch, load
from fedquorum.errors import InputError

Files = dict[str, bytes]
Write = Callable[..., Path]
Pack = Callable[[Files], bytes]


def one_line(error: pytest.ExceptionInfo[InputError]) -> str:
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("gz", [True, False])
@pytest.mark.parametrize("sub", ["", "mnist"])
def test_images_come_gzipped_or_plain_from_the_folder_or_its_subfolder(
    published: dict[str, Files], tmp_path: Path, write: Write, gz: bool, sub: str
) -> None:
    write(tmp_path / "data" / sub, published["mnist"], gz=gz)
    data = load("mnist", tmp_path / "data")
    assert (data.x.shape, data.x.dtype, data.y.dtype) == ((40, 28, 28), np.uint8, np.int32)
    assert (data.test_x.shape, data.classes, data.client) == ((12, 28, 28), 10, None)
    assert data.x.tobytes() == published["mnist"]["train-images-idx3-ubyte"][16:]
    assert data.y.astype(np.uint8).tobytes() == published["mnist"]["train-labels-idx1-ubyte"][8:]


def har_places(tmp_path: Path, files: Files, write: Write, pack: Pack) -> dict[str, Path]:
    top = {f"UCI HAR Dataset/{name}": content for name, content in files.items()}
    inner = pack(top | {f"__MACOSX/UCI HAR Dataset/{name}": b"resource fork" for name in ("train/._X_train.txt",)})
    return {
        "unpacked": write(tmp_path / "unpacked", files),
        "unpacked one level down": write(tmp_path / "level", top),
        "zip": write(tmp_path / "zip", {"any name.zip": pack(top)}),
        "the zip itself": write(tmp_path / "itself", {"UCI.zip": pack(top)}) / "UCI.zip",
        "zip within a zip": write(
            tmp_path / "nested", {"har/har.zip": pack({"names": b"", "UCI HAR Dataset.zip": inner})}
        ),
        "beside a broken zip": write(tmp_path / "beside", {"a.zip": b"PK broken", "b.zip": pack(top)}),
    }


@pytest.mark.parametrize(
    "form", ["unpacked", "unpacked one level down", "zip", "the zip itself", "zip within a zip", "beside a broken zip"]
)
def test_har_comes_unpacked_zipped_or_twice_zipped(
    published: dict[str, Files], tmp_path: Path, write: Write, pack: Pack, form: str
) -> None:
    data = load("har", har_places(tmp_path, published["har"], write, pack)[form])
    assert data.clients == (1, 2, 3, 4, 30)
    assert (len(data.x), len(data.test_x), data.classes, data.x.dtype) == (40, 10, 6, np.float32)


def test_har_rows_keep_their_features_label_and_user(published: dict[str, Files], tmp_path: Path, write: Write) -> None:
    data = load("har", write(tmp_path, published["har"]))
    assert data.client is not None and data.test_y is not None
    files = {name: np.array(content.split(), float) for name, content in published["har"].items()}
    expected = set()
    for part in ("train", "test"):
        x = files[f"{part}/X_{part}.txt"].astype(np.float32).reshape(-1, 5)
        y, user = files[f"{part}/y_{part}.txt"], files[f"{part}/subject_{part}.txt"]
        expected |= {(*x[i], int(y[i]) - 1, int(user[i])) for i in range(len(y))}
    train = {(*x, int(y), int(c)) for x, y, c in zip(data.x, data.y, data.client, strict=True)}
    test = {(*x, int(y)) for x, y in zip(data.test_x, data.test_y, strict=True)}
    assert train < expected
    assert {row[:-1] for row in expected - train} == test


def test_a_truncated_gzip_file_is_named(published: dict[str, Files], tmp_path: Path, write: Write) -> None:
    folder = write(tmp_path, published["mnist"], gz=True)
    file = folder / "train-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(InputError) as error:
        load("mnist", folder)
    assert str(file) in one_line(error) and "truncated" in str(error.value)


def test_a_truncated_plain_file_is_named_with_its_size(
    published: dict[str, Files], tmp_path: Path, write: Write
) -> None:
    folder = write(tmp_path, published["mnist"] | {"t10k-labels-idx1-ubyte": b"\0\0\x08\x01\0"})
    with pytest.raises(InputError, match=r"t10k-labels-idx1-ubyte: 5 bytes, but .* has 20: truncated"):
        load("mnist", folder)


def test_two_files_swapped_are_named(published: dict[str, Files], tmp_path: Path, write: Write) -> None:
    files = dict(published["mnist"])
    files["train-labels-idx1-ubyte"], files["t10k-labels-idx1-ubyte"] = (
        files["t10k-labels-idx1-ubyte"],
        files["train-labels-idx1-ubyte"],
    )
    with pytest.raises(InputError, match="this is t10k-labels-idx1-ubyte of mnist, not train-labels-idx1-ubyte"):
        load("mnist", write(tmp_path, files, gz=True))


def test_another_data_sets_files_are_named(published: dict[str, Files], tmp_path: Path, write: Write) -> None:
    with pytest.raises(InputError, match="of fashion-mnist, not train-images-idx3-ubyte of mnist"):
        load("mnist", write(tmp_path, published["fashion-mnist"]))


def test_one_changed_byte_is_noticed_after_recompression(
    published: dict[str, Files], tmp_path: Path, write: Write
) -> None:
    changed = bytearray(published["mnist"]["t10k-images-idx3-ubyte"])
    changed[5000] ^= 1
    folder = write(tmp_path, published["mnist"] | {"t10k-images-idx3-ubyte": bytes(changed)}, gz=True)
    with pytest.raises(InputError, match=r"t10k-images-idx3-ubyte\.gz: not the published"):
        load("mnist", folder)


def test_the_same_content_compressed_otherwise_is_accepted(
    published: dict[str, Files], tmp_path: Path, write: Write
) -> None:
    for name, content in published["mnist"].items():
        write(tmp_path, {f"{name}.gz": gzip.compress(content, compresslevel=1, mtime=12345)})
    assert len(load("mnist", tmp_path).x) == 40


def test_a_missing_file_is_named(published: dict[str, Files], tmp_path: Path, write: Write) -> None:
    files = dict(published["har"])
    del files["test/y_test.txt"]
    with pytest.raises(InputError) as error:
        load("har", write(tmp_path, files))
    assert "test/y_test.txt" in one_line(error) and "X_train" not in str(error.value)


@pytest.mark.parametrize("cut", [100, 0.5, -100])
def test_a_truncated_zip_is_named(
    published: dict[str, Files], tmp_path: Path, write: Write, pack: Pack, cut: float
) -> None:
    whole = pack(published["har"])
    keep = int(cut * len(whole)) if isinstance(cut, float) else cut
    folder = write(tmp_path, {"UCI-HAR-Dataset.zip": whole[:keep]})
    with pytest.raises(InputError) as error:
        load("har", folder)
    assert "UCI-HAR-Dataset.zip" in one_line(error) and "truncated" in str(error.value)


def test_a_damaged_member_of_a_zip_is_an_input_error(
    published: dict[str, Files], tmp_path: Path, write: Write, pack: Pack
) -> None:
    whole = bytearray(pack(published["har"]))
    whole[200] ^= 0xFF
    with pytest.raises(InputError, match="damaged"):
        load("har", write(tmp_path, {"UCI.zip": bytes(whole)}))


def test_a_path_without_the_files_is_an_error_that_names_them(published: dict[str, Files], tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        load("mnist", tmp_path)
    assert all(file in one_line(error) for file in published["mnist"])
    with pytest.raises(InputError, match="no such folder"):
        load("mnist", tmp_path / "nowhere")


def test_the_environment_names_one_folder_for_all_data_sets(
    published: dict[str, Files], tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, files in published.items():
        write(tmp_path / "all" / name, files)
    monkeypatch.setenv("FEDQUORUM_DATA", str(tmp_path / "all"))
    assert load("mnist").x.tobytes() != load("fashion-mnist").x.tobytes()
    assert len(load("har").x) == 40


def test_a_path_is_preferred_to_the_environment_and_the_cache(
    published: dict[str, Files], tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEDQUORUM_DATA", str(write(tmp_path / "good", published["mnist"])))
    load("mnist")
    with pytest.raises(InputError, match=r"this is .* of fashion-mnist"):
        load("mnist", write(tmp_path / "bad", published["fashion-mnist"]))


def test_an_environment_that_names_no_folder_is_an_error(
    published: dict[str, Files], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEDQUORUM_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="FEDQUORUM_DATA"):
        load("mnist")


def test_offline_and_not_found_is_one_line_that_says_what_to_get_and_where_to_put_it(
    published: dict[str, Files],
) -> None:
    with pytest.raises(InputError) as error:
        fetch("mnist")
    message = one_line(error)
    assert all(words in message for words in ("nothing.gz", "--from", "data.path", "FEDQUORUM_DATA", "no connection"))


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"'mnits'; use one of digits, mnist, har, fashion-mnist, or the path"):
        load("mnits")
