"""A plan as a figure (SVG and PNG): the highest level and the share of the votes against k; or levels against the share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedquorum.plan.table import SHARES, Plan, Row
from fedquorum.report.figures import STYLES, save_figure

# Label, certificate, mark, its size and filling, and designs of each line. Certificates have the colours and dashes of the other
# figures. Later marks are smaller, so that those of lines that coincide are all seen.
LINES = (
    ("paper", "paper", "D", 11, "none", ("independent", "distinct")),
    ("ideal", "ideal", "o", 9, "none", ("independent", "distinct")),
    ("served", "served", "s", 7, "full", ("independent", "distinct")),
    ("membership, balanced or all", "membership", "^", 4.5, "full", ("balanced",)),
    ("membership, disjoint", "membership", "v", 7, "none", ("disjoint",)),
)
# More than so many clients, and levels span too many powers of ten for an even scale.
MANY = 100


def write_plan_figure(folder: Path, plan: Plan) -> list[Path]:
    """Draw a plan into `figures/plan.{svg,png}`."""
    from matplotlib.figure import Figure

    panels = [_highest] if plan.size is None else [_levels]
    if plan.size is None and plan.tolerate is not None:
        panels.append(_needed)
    figure = Figure(figsize=(6.4 * len(panels), 4.4), layout="constrained")
    figure.suptitle(f"{plan.clients:,} clients, at most {plan.models:,} models")
    for place, panel in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), place)
        panel(axes, plan)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
    return save_figure(figure, folder / "figures", "plan")


def _lines(plan: Plan) -> Iterator[tuple[str, dict[str, Any], list[Row]]]:
    """A certificate's name, the look of its line, and the line's rows by k: of a uniform draw the best that there is."""
    for label, name, mark, size, filling, designs in LINES:
        # all subsamples are as balanced as can be; `distinct` comes after `independent` and takes its place
        rows = {
            row.draw.k: row
            for row in plan.rows
            if row.draw.design in designs or (name == "membership" and row.draw.every_subsample)
        }
        look = {"label": label, "marker": mark, "markersize": size, "fillstyle": filling, "linewidth": 1.5}
        yield name, look | STYLES[name], list(rows.values())


def _highest(axes: Any, plan: Plan) -> None:
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    for name, look, rows in _lines(plan):
        points = [(row.draw.k, level) for row in rows if (level := row.answers[name].highest) >= 1]
        if points:
            axes.plot(*zip(*points, strict=True), **look)
    _mark_wanted(axes, plan)
    axes.set(ylabel="highest level, when all models agree")
    if plan.clients > MANY:
        axes.set_yscale("log", subs=[])
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    _mark_sizes(axes, plan)


def _needed(axes: Any, plan: Plan) -> None:
    for name, look, rows in _lines(plan):
        points = [(row.draw.k, votes / row.draw.N) for row in rows if (votes := row.answers[name].votes) is not None]
        if points:
            axes.plot(*zip(*points, strict=True), **look)
    axes.set(ylabel=f"share of the votes for level {plan.tolerate},\nif the others are on one rival", ylim=(0.5, 1.01))
    _mark_sizes(axes, plan)


def _levels(axes: Any, plan: Plan) -> None:
    for name, look, rows in _lines(plan):
        for row in rows:
            levels = plan.levels(name, row.draw)
            points = [(float(share), level) for share, level in zip(SHARES, levels, strict=True) if level >= 0]
            if points:
                axes.plot(*zip(*points, strict=True), **look)
    _mark_wanted(axes, plan)
    axes.set(
        xlabel="share of the votes, if the others are on one rival",
        ylabel=f"level, with models of k = {plan.size} clients",
        xlim=(0.5, 1.01),
    )


def _mark_wanted(axes: Any, plan: Plan) -> None:
    if plan.tolerate:
        axes.axhline(plan.tolerate, color="black", linewidth=0.8)
        place = (0.01, plan.tolerate)
        axes.annotate(f"level {plan.tolerate}", place, xycoords=axes.get_yaxis_transform(), va="bottom")


def _mark_sizes(axes: Any, plan: Plan) -> None:
    axes.set(xlabel="k, the clients that each model learns from", xscale="log")
    axes.minorticks_off()
    axes.set_xticks(plan.sizes, [str(k) for k in plan.sizes])
