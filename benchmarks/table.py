"""The results as Markdown, for the terminal and for whoever writes them down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MODES = ("one process", "one per core")


def markdown(results: dict[str, Any]) -> str:
    """Every table of a run, then its targets."""
    lines = []
    for name in ("dnn", "cnn"):
        if name in results:
            lines += [*race(results[name]), ""]
    if "logistic" in results:
        lines += [*yardstick(results["logistic"]), ""]
    if "growth" in results:
        lines += [*growth(results["growth"]), ""]
    lines += verdicts(results)
    return "\n".join(lines)


def race(job: dict[str, Any]) -> Iterator[str]:
    yield f"{job['title']}: {job['flops_per_step'] / 1e6:.1f} MFLOP a step; median (lowest to highest repeat)"
    yield ""
    yield "| | one process, steps/s | GFLOP/s | one per core, steps/s | GFLOP/s |"
    yield "|---|---|---|---|---|"
    for name, rates in job["steps_per_second"].items():
        cells = [name]
        for mode in MODES:
            gflops = f"{job['gflops'][name][mode]['median']:,.0f}" if mode in rates else ""
            cells += [spread(rates[mode], ",.0f") if mode in rates else "", gflops]
        yield row(cells)
    yield ""
    yield "| fedquorum over | one process each | one per core each | one of ours with all busy, over one product alone |"
    yield "|---|---|---|---|"
    for name, ratios in job["ratios"].items():
        yield row([name, *(spread(ratios[mode], ".3g") if mode in ratios else "" for mode in (*MODES, "busy"))])


def yardstick(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found['title']}; one process"
    yield ""
    yield "| | seconds |"
    yield "|---|---|"
    for name, seconds in found["seconds"].items():
        yield row([name, spread(seconds, ".3f")])


def growth(found: dict[str, dict[str, float]]) -> Iterator[str]:
    yield "| over | seconds |"
    yield "|---|---|"
    for axis, points in found.items():
        yield row([axis, ", ".join(f"{at}: {seconds:.3g}" for at, seconds in points.items())])


def verdicts(results: dict[str, Any]) -> Iterator[str]:
    for name in ("dnn", "cnn", "logistic"):
        part = results.get(name, {})
        for what, target in part.get("targets", {}).items():
            verdict = "met" if target["met"] else "MISSED"
            yield f"target {name}, {what}: {target['wanted']:g} wanted, {target['found']:.3g} found: {verdict}"
        for what, reason in part.get("absent", {}).items():
            yield f"not measured: {name}, {what}: {reason}"


def spread(found: dict[str, float], form: str) -> str:
    return f"{found['median']:{form}} ({found['low']:{form}} to {found['high']:{form}})"


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
