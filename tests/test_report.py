"""What people read: figures round against us, and every claim comes with its numbers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from fedquorum import Votes, certify
from fedquorum.report.curve import down, print_curve, rows_shown
from fedquorum.report.figures import write_curve
from fedquorum.report.outputs import summarise, write_certificates
from tests.conftest import CommandResult

Command = Callable[..., CommandResult]


@given(st.integers(0, 20_000), st.integers(1, 20_000))
def test_a_shown_guarantee_is_never_more_than_the_guarantee(right: int, inputs: int) -> None:
    share = min(right, inputs) / inputs
    assert float(down(share)) <= share + 1e-12
    assert float(down(share)) > share - 0.001 - 1e-12


def test_a_decimal_is_shown_as_it_is() -> None:
    assert [down(k / 1000) for k in range(1001)] == [f"{k / 1000:.3f}" for k in range(1001)]


@given(st.integers(-1, 5000))
def test_the_rows_shown_fit_a_screen_and_end_where_nothing_is_left(highest: int) -> None:
    rows = rows_shown(highest)
    assert rows[0] == 0
    assert rows[-1] == highest + 1
    assert len(rows) <= 28
    assert rows == sorted(set(rows))


def some_votes() -> Votes:
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 3, 50)
    votes = np.where(generator.random((90, 50)) < 0.95, truth, generator.integers(0, 3, (90, 50)))
    members = np.array([generator.permutation(20)[:2] for _ in range(90)])
    return Votes(votes, members, 20, truth, 3, "independent")


def test_csv_parquet_and_summary_agree(tmp_path: Path) -> None:
    votes = some_votes()
    certificate = certify(votes, "ideal")
    write_certificates(tmp_path, [certificate], votes.labels, {"isolated_clients": ["x"]})
    rows = list(csv.DictReader((tmp_path / "certificates" / "ideal.csv").open()))
    table = pq.read_table(tmp_path / "certificates" / "ideal.parquet")
    for name, array in (("index", np.arange(50)), ("label", certificate.label), ("level", certificate.level)):
        assert [int(row[name]) for row in rows] == array.tolist() == table[name].to_pylist()
    entry = json.loads((tmp_path / "summary.json").read_text())["ideal"]
    assert votes.labels is not None
    assert entry["certified_accuracy"] == certificate.accuracy(votes.labels).tolist()
    assert entry["isolated_clients"] == ["x"]
    assert table.schema.metadata[b"statement"].decode() == entry["statement"]


def test_the_terminal_says_every_number_of_the_claim() -> None:
    votes = some_votes()
    summary = {name: summarise(certify(votes, name), votes.labels) for name in ("ideal", "served")}
    summary["ideal"]["largest_clients_share"] = [0.0, 0.0701] + [1.0] * 19
    screen = io.StringIO()
    print_curve(Console(file=screen, width=200), summary)
    text = screen.getvalue()
    for words in ("n = 20", "k = 2", "N = 90", "d = 50", "independent", "alpha = 0.001", "delta = 0.001", "7.1 %"):
        assert words in text
    assert "m counts clients, not data" in text
    for entry in summary.values():
        assert str(entry["statement"]) in text


def test_a_figure_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    votes = some_votes()
    summary = {"ideal": summarise(certify(votes, "ideal"), votes.labels)}
    written = [[path.read_bytes() for path in write_curve(tmp_path / str(i), summary, "twice")] for i in range(2)]
    assert written[0] == written[1]
    assert len(written[0]) == 2


def test_a_run_says_whom_it_counts_and_that_its_seed_was_known(
    command: Command, project: Callable[..., Path], tmp_path: Path
) -> None:
    config = project()
    assert command("run", config, "--out", tmp_path / "run", "--workers", 1)[0] == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    rows = list(csv.DictReader((tmp_path / "run" / "clients.csv").open()))
    assert [row["client"] for row in rows] == [str(i) for i in range(12)]
    sizes = sorted((int(row["examples"]) for row in rows), reverse=True)
    shares = summary["ideal"]["largest_clients_share"]
    for m in range(13):
        exact = sum(sizes[:m]) / sum(sizes)
        assert exact <= shares[m] + 1e-12
        assert shares[m] < exact + 0.0001
    assert "did not know it" in summary["served"]["statement"]
    assert "did not know it" not in summary["ideal"]["statement"]
    options = ("--set", "subsamples.seed=secret", "--workers", 1)
    assert command("run", config, "--out", tmp_path / "secret", *options)[0] == 0
    assert "did not know it" not in (tmp_path / "secret" / "summary.json").read_text()
