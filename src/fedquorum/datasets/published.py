"""What the published data sets consist of: each file's size and SHA-256 after decompression, and where to get it.

MNIST's and HAR's digests were computed from the published files. Fashion-MNIST's were taken from several independent
public projects that agree on them (and give for MNIST the digests computed here); they have not been computed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Content:
    """The size in bytes and the SHA-256 of one file, decompressed."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Published:
    """`files`: what each file must contain. `mirrors`: for each mirror the URLs that bring all files."""

    files: Mapping[str, Content]
    mirrors: tuple[tuple[str, ...], ...]


IDX_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
IDX_SIZES = (47040016, 60008, 7840016, 10008)


def _idx(digests: tuple[str, ...], folders: tuple[str, ...]) -> Published:
    return Published(
        files={f: Content(size, digest) for f, size, digest in zip(IDX_FILES, IDX_SIZES, digests, strict=True)},
        mirrors=tuple(tuple(f"{folder}/{file}.gz" for file in IDX_FILES) for folder in folders),
    )


PUBLISHED = {
    "mnist": _idx(
        (
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
        ("https://ossci-datasets.s3.amazonaws.com/mnist", "https://storage.googleapis.com/cvdf-datasets/mnist"),
    ),
    "fashion-mnist": _idx(
        (
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
        (
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        ),
    ),
    "har": Published(
        files={
            "train/X_train.txt": Content(66006256, "9c1246099c8d5463779eec5a3845cc3898df9d8c715441ab2a1232d4421fc42f"),
            "train/y_train.txt": Content(14704, "415b3357e2e2d5e70a45c781947c6bdd80e0410a579d862eedcd6bbce3c694ef"),
            "train/subject_train.txt": Content(
                20152, "66e1e2fbe9b396fa5155f531dc3348c803f503be663e2318772d49947db9153a"
            ),
            "test/X_test.txt": Content(26458166, "99035209add50d17650e847d8a4658d784a5707466ebb7c2deb97c28e5250a78"),
            "test/y_test.txt": Content(5894, "2a94cb53ca46b956c1b2aebd4a09a72badd8a8e9ea9cdfe9f31b3306a08666bb"),
            "test/subject_test.txt": Content(7934, "63b8c577f4a85431c06bd87f6384608c90a9f72f05c7956dd21255dc63515c07"),
        },
        mirrors=(
            ("https://archive.ics.uci.edu/static/public/240/human+activity+recognition+using+smartphones.zip",),
            ("https://d396qusza40orc.cloudfront.net/getdata/projectfiles/UCI%20HAR%20Dataset.zip",),
        ),
    ),
}
