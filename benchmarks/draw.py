"""The results as one figure: who trains how fast above, how the cost grows below."""

from __future__ import annotations

from pathlib import Path
from typing import Any

OURS, OTHERS, MACHINE = "#1f5fa8", "#9aa5b1", "#d1701f"
AXES = {"k": "k, clients of a model", "n": "n, clients in all", "width": "width of the hidden layers"}


def figure(results: dict[str, Any], stem: Path) -> None:
    """Write STEM.svg and STEM.png."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    drawing: Any = Figure(figsize=(11, 7), layout="constrained")
    upper, lower = drawing.subfigures(2, 1, height_ratios=(1.2, 1))
    jobs = [results[name] for name in ("dnn", "cnn") if name in results]
    for axes, job in zip(upper.subplots(1, len(jobs), squeeze=False)[0] if jobs else (), jobs, strict=True):
        speeds(axes, job)
    grown = results.get("growth", {})
    if grown:
        left, middle, right, last = lower.subplots(1, 4)
        for axes, axis in ((left, "k"), (middle, "n"), (right, "width")):
            line(axes, grown[axis], "")
            axes.set(title="a model of 100 rounds", xlabel=AXES[axis], ylabel="seconds")
        line(last, grown["N, 1 worker"], "1 worker")
        line(last, grown["N, 2 workers"], "2 workers")
        last.set(title="fq.train, 300 rounds", xlabel="N, models", ylabel="seconds")
        last.legend(frameon=False)
    with rc_context({"svg.hashsalt": "fedquorum"}):
        drawing.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
        drawing.savefig(stem.with_suffix(".png"), dpi=110, metadata={"Software": None})


def speeds(axes: Any, job: dict[str, Any]) -> None:
    """Local steps per second with one process per core, and how many times that fedquorum does."""
    found = {name: modes["one per core"] for name, modes in job["steps_per_second"].items()}
    order = sorted(found, key=lambda name: found[name]["median"])
    for i, name in enumerate(order):
        rate = found[name]
        color = {"fedquorum": OURS, "matmul": MACHINE}.get(name, OTHERS)
        axes.plot([rate["low"], rate["high"]], [i, i], color=color, linewidth=2)
        axes.plot(rate["median"], i, marker="o", markersize=9, color=color)
        text = f"{rate['median']:,.0f}"
        if name in job["ratios"]:
            text += f"  (fedquorum: {job['ratios'][name]['one per core']['median']:.2g} times it)"
        axes.annotate(text, (rate["median"], i), (0, 8), textcoords="offset points", ha="center", fontsize=8)
    labels = {"matmul": "the matrix product's rate"}
    axes.set_yticks(range(len(order)), [labels.get(name, name) for name in order])
    axes.set_ylim(-0.5, len(order) - 0.2)
    axes.set_xscale("log")
    axes.margins(x=0.25)
    axes.grid(axis="x", alpha=0.3)
    axes.set(title=job["title"], xlabel="local SGD steps per second, one process per core")
    axes.spines[["top", "right"]].set_visible(False)


def line(axes: Any, points: dict[str, float], label: str) -> None:
    """Seconds over one quantity, from zero: what is proportional looks so."""
    axes.plot([int(at) for at in points], list(points.values()), marker="o", markersize=4, label=label)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
