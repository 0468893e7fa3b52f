"""The certified-accuracy curve in the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

ROWS = 26  # at most: a screenful
BAR = 24


def down(value: float, digits: int = 3) -> str:
    """A guarantee rounds down: a figure that is shown is never more than what is certified.

    >>> down(0.88999), down(0.83), down(1.0)
    ('0.889', '0.830', '1.000')
    """
    # a value such as 0.83 is the nearest float to its decimal; without the nudge it would be shown as 0.829
    return f"{math.floor(value * 10**digits + 1e-9) / 10**digits:.{digits}f}"


def print_curve(console: Console, summary: Mapping[str, Mapping[str, Any]]) -> None:
    """CA@m of every certificate side by side, with a bar for `ideal`; then what each of them claims."""
    curves = {name: entry["certified_accuracy"] for name, entry in summary.items() if "certified_accuracy" in entry}
    if curves:
        table = Table(title="Certified accuracy: inputs labelled rightly, certified against m malicious clients")
        table.add_column("m", justify="right")
        for name in curves:
            table.add_column(name, justify="right")
        shares = next(iter(summary.values())).get("largest_clients_share")
        if shares:
            table.add_column("largest m hold", justify="right")
        first = "ideal" if "ideal" in curves else next(iter(curves))
        table.add_column(Text(first, style="dim"), min_width=BAR)
        for m in rows_shown(max(entry["highest_level"] for entry in summary.values())):
            bar = Text("█" * round(curves[first][m] * BAR), style="green")
            data = [f"{math.ceil(1000 * shares[m] - 1e-9) / 10:.1f} %"] if shares else []  # against us is up
            table.add_row(str(m), *(down(curve[m]) for curve in curves.values()), *data, bar)
        console.print(table)
        if shares:
            console.print(
                "m counts clients, not data: the last column but one is the data of the m largest", highlight=False
            )
    for name, entry in summary.items():
        abstained = f"; abstained on {entry['abstained']} of {entry['d']} inputs" if entry["abstained"] else ""
        level = "no input" if entry["highest_level"] < 0 else f"up to m = {entry['highest_level']}"
        risks = "".join(f", {risk} = {entry[risk]}" for risk in ("alpha", "delta") if entry[risk] is not None)
        facts = (
            f"n = {entry['n']}, k = {entry['k']}, N = {entry['N']}, d = {entry['d']}, design {entry['design']}{risks}"
        )
        console.print(
            Text.assemble((name, "bold"), f" ({level}{abstained}; {facts}): {entry['statement']}"), soft_wrap=True
        )


def rows_shown(highest: int) -> list[int]:
    """Which m to print: every one, or every 2nd, 5th, 10th ..., and the first at which nothing is left.

    >>> rows_shown(3), rows_shown(60)[:4], rows_shown(60)[-2:]
    ([0, 1, 2, 3, 4], [0, 5, 10, 15], [60, 61])
    """
    last = max(highest, -1) + 1
    steps = (step * 10**power for power in range(20) for step in (1, 2, 5))
    step = next(step for step in steps if last / step < ROWS - 1)
    return sorted({*range(0, last + 1, step), last})
