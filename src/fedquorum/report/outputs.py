"""Certificates as files: CSV and Parquet per certificate, and summary.json for all."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from fedquorum.certificates import NAMES, Certificate, exactly
from fedquorum.runs import Run, make_folder, write_whole
from fedquorum.votes import Votes


def write_certificates(
    folder: Path, certificates: Sequence[Certificate], labels: np.ndarray | None, notes: Mapping[str, Any]
) -> dict[str, Any]:
    """Write `certificates/NAME.csv`, `certificates/NAME.parquet` and `summary.json`; return the summary.

    `notes` are facts about the run that each certificate's entry repeats, such as isolated clients.
    """
    make_folder(folder / "certificates")
    # left by another call, perhaps of other votes; summary.json no longer says what they claim
    for name in set(NAMES) - {certificate.name for certificate in certificates}:
        for ending in ("csv", "parquet"):
            (folder / "certificates" / f"{name}.{ending}").unlink(missing_ok=True)
    summary = {certificate.name: summarise(certificate, labels) | dict(notes) for certificate in certificates}
    for certificate in certificates:
        write_whole(folder / "certificates" / f"{certificate.name}.csv", csv_of(certificate))
        write_whole(folder / "certificates" / f"{certificate.name}.parquet", parquet_of(certificate))
    write_whole(folder / "summary.json", readable_json(summary).encode())
    return summary


def of_run(run: Run, certificate: Certificate) -> Certificate:
    """The certificate, saying too that the draw's seed was no secret, where the claim needs that it was one."""
    if certificate.name != "served" or isinstance(run.record["subsamples"]["seed"], str):
        return certificate
    note = " The seed of this draw was fixed beforehand: the claim holds against clients that did not know it."
    return replace(certificate, statement=certificate.statement + note)


def summarise(certificate: Certificate, labels: np.ndarray | None) -> dict[str, Any]:
    """One certificate's entry in summary.json; `certified_accuracy[m]` is CA@m, for every m from 0 to n."""
    entry: dict[str, Any] = {
        "statement": certificate.statement,
        "n": certificate.n,
        "k": certificate.k,
        "N": certificate.N,
        "d": certificate.d,
        "design": certificate.design,
        "alpha": _number(certificate.alpha),
        "delta": _number(certificate.delta),
        "exact": certificate.exact,
        "abstained": certificate.abstained,
        "highest_level": int(certificate.level.max()),
    }
    if labels is not None:
        entry["certified_accuracy"] = [float(value) for value in certificate.accuracy(labels)]
    return entry


def _number(risk: Fraction | None) -> float | str | None:
    """A number where it says exactly what is meant, else the fraction as text."""
    if risk is None:
        return None
    text = exactly(risk)
    return text if "/" in text else float(text)


def vote_accuracies(votes: Votes) -> dict[str, float]:
    """How often a single model is right on average, and how often the most-voted label is (nothing certified).

    >>> from fedquorum.votes import Votes
    >>> vote_accuracies(Votes([[0, 1], [0, 0], [0, 0]], [[0], [1], [2]], clients=3, labels=[0, 1]))
    {'single_models_accuracy': 0.6666666666666666, 'vote_accuracy': 0.5}
    """
    if votes.labels is None:
        return {}
    return {
        "single_models_accuracy": float((votes.votes == votes.labels).mean()),
        "vote_accuracy": float((votes.counts().argmax(axis=1) == votes.labels).mean()),
    }


def readable_json(content: Any) -> str:
    """JSON for people: one line per entry, and a list of numbers on one line.

    >>> print(readable_json({"a": {"b": [0.5, 0.25]}}), end="")
    {
      "a": {
        "b": [0.5, 0.25]
      }
    }
    """

    def lines(value: Any, indent: str) -> str:
        if isinstance(value, dict) and value:
            inner = ",\n".join(f"{indent}  {json.dumps(k)}: {lines(v, indent + '  ')}" for k, v in value.items())
            return f"{{\n{inner}\n{indent}}}"
        return json.dumps(value)

    return lines(content, "") + "\n"


def csv_of(certificate: Certificate) -> bytes:
    """The content of a certificate's CSV file: a line per input."""
    rows = zip(range(certificate.d), certificate.label.tolist(), certificate.level.tolist(), strict=True)
    return ("index,label,level\n" + "".join(f"{i},{label},{level}\n" for i, label, level in rows)).encode()


def parquet_of(certificate: Certificate) -> bytes:
    """The content of a certificate's Parquet file: the same, with the statement."""
    import pyarrow.parquet as pq

    content = io.BytesIO()
    pq.write_table(table_of(certificate), content)
    return content.getvalue()


def table_of(certificate: Certificate) -> Any:
    """Labels and levels as an Arrow table, whose metadata say what they claim."""
    import pyarrow as pa

    return pa.table(
        {
            "index": pa.array(np.arange(certificate.d, dtype=np.int64)),
            "label": pa.array(certificate.label.astype(np.int32)),
            "level": pa.array(certificate.level.astype(np.int32)),
        }
    ).replace_schema_metadata({"certificate": certificate.name, "statement": certificate.statement})
