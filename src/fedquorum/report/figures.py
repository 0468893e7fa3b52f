"""The certified-accuracy curve as a figure (SVG and PNG)."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedquorum.runs import make_folder, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Told apart in grey too: by dashes as well as by colour.
STYLES = {
    "paper": {"color": "#7f7f7f", "linestyle": ":"},
    "ideal": {"color": "#1f5fa8", "linestyle": "-"},
    "served": {"color": "#d1701f", "linestyle": "--"},
    "membership": {"color": "#2b8a3e", "linestyle": "-."},
}


def write_curve(folder: Path, summary: Mapping[str, Mapping[str, Any]], title: str) -> list[Path]:
    """Draw CA@m against m for every certificate into `figures/certified_accuracy.{svg,png}`."""
    curves = {name: entry["certified_accuracy"] for name, entry in summary.items() if "certified_accuracy" in entry}
    if not curves:
        return []
    from matplotlib.figure import Figure

    last = max(entry["highest_level"] for entry in summary.values()) + 1
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.add_subplot()
    for name, curve in curves.items():
        axes.step(range(last + 1), curve[: last + 1], where="post", label=name, linewidth=1.8, **STYLES[name])  # type: ignore[arg-type]
    axes.set(
        title=title,
        xlabel="m, the number of malicious clients",
        ylabel="certified accuracy CA@m",
        ylim=(0, 1),
        xlim=(0, max(last, 1)),
    )
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return save_figure(figure, folder / "figures", "certified_accuracy")


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name.svg` and `name.png`; the same figure gives the same bytes."""
    import matplotlib

    make_folder(folder)
    paths = []
    with matplotlib.rc_context({"svg.hashsalt": "fedquorum"}):
        for kind, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            content = io.BytesIO()
            figure.savefig(content, format=kind, dpi=150, metadata=metadata)
            paths.append(folder / f"{name}.{kind}")
            write_whole(paths[-1], content.getvalue())
    return paths
