"""`fedquorum plan`: the table in the terminal, as JSON, and as a picture."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fedquorum.plan import Answer, Plan, Row, advice, as_json, make_plan, share
from fedquorum.plan.table import SHARES

NEVER = "-"
# Figures must not be shortened: on a narrower terminal lines are folded.
WIDTH = 120


def plan_command(
    clients: int,
    tolerate: int | None = None,
    models: int = 500,
    size: int | None = None,
    *,
    alpha: str = "0.001",
    delta: str = "0.001",
    inputs: int = 10_000,
    classes: int = 10,
    print_json: bool = False,
    out: Path | None = None,
) -> None:
    """`fedquorum plan`: what can be certified, printed as text or as JSON; with `out` also `plan.json` and figures there."""
    plan = make_plan(clients, tolerate, models, size, alpha=alpha, delta=delta, inputs=inputs, classes=classes)
    sentences = advice(plan)
    if print_json or out is not None:
        content = json.dumps(as_json(plan) | {"advice": sentences}, indent=2) + "\n"
    console = Console(stderr=print_json)
    console.width = max(console.width, WIDTH)
    if print_json:
        print(content, end="")
    else:
        print_plan(console, plan, sentences)
    if out is not None:
        from fedquorum.report.plan_figure import write_plan_figure
        from fedquorum.runs import make_folder, write_whole

        make_folder(out)
        write_whole(out / "plan.json", content.encode())
        write_plan_figure(out, plan)
        console.print(f"written to {out}", markup=False, highlight=False, soft_wrap=True)


def print_plan(console: Console, plan: Plan, sentences: list[str]) -> None:
    """The tables, what their marks mean, and the advice."""
    terms = plan.terms
    lines: list[str | Table] = [
        f"n={plan.clients:,} clients, at most N={plan.models:,} models of k clients each; "
        f"alpha={float(terms.alpha)} over {terms.inputs:,} inputs, delta={float(terms.delta)}",
        "",
        "[bold]The highest level, when all models agree; and the price of a round, in clients' updates",
        _highest(plan),
    ]
    if plan.tolerate is not None:
        others = "one rival" if terms.classes == 2 else f"one rival, or spread over {terms.classes} classes"
        lines += [
            f"[bold]The share of the votes that level {plan.tolerate} needs, if the others are on {others}",
            _needed(plan),
        ]
    if plan.size is not None:
        others = "one rival" if terms.classes == 2 else f"one rival / spread over {terms.classes} classes"
        lines += [f"[bold]The level that a share of the votes buys, if the others are on {others}", _levels(plan)]
    for line in [*lines, *_marks(plan), *sentences]:
        console.print(line, highlight=False, soft_wrap=True)


def _highest(plan: Plan) -> Table:
    table = _table("k", "design", "models", "updates", "x FedAvg", "ideal", "served", "membership", "paper")
    for row, first in _grouped(plan):
        draw = row.draw
        price = _up(Fraction(draw.client_updates, draw.n))
        levels = (_level(row.answers.get(name)) for name in ("ideal", "served", "membership", "paper"))
        table.add_row(first, _design(row), f"{draw.N:,}", f"{draw.client_updates:,}", price, *levels)
    return table


def _needed(plan: Plan) -> Table:
    names = ("ideal", "served", "membership")
    spreads = (False, True) if plan.terms.classes > 2 else (False,)
    columns = [(name, spread) for spread in spreads for name in names]
    headings = [
        f"{'spread:' if spread else 'rival:'}\n{name}" if name == "ideal" else f"\n{name}" for name, spread in columns
    ]
    table = _table("\nk", "\ndesign", *headings)
    for row, first in _grouped(plan):
        table.add_row(first, _design(row), *(_share(row, name, spread) for name, spread in columns))
    return table


def _levels(plan: Plan) -> Table:
    columns = [(row, name) for row in plan.rows for name in ("ideal", "served", "membership") if name in row.answers]
    table = _table("\nshare", *(f"{_design(row)}\n{name}" for row, name in columns))
    spreads = (False, True) if plan.terms.classes > 2 else (False,)
    levels = [[plan.levels(name, row.draw, spread=spread) for spread in spreads] for row, name in columns]
    for place, value in enumerate(SHARES):
        cells = (
            " / ".join(_marked(row.answers[name], each[place]) for each in kinds)
            for (row, name), kinds in zip(columns, levels, strict=True)
        )
        table.add_row(f"{float(value):.2f}", *cells)
    return table


def _table(*headings: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if "design" in heading else "right", no_wrap=True)
    return table


def _grouped(plan: Plan) -> Iterator[tuple[Row, str]]:
    """The rows, each with its k if that is not the k of the row above."""
    last = 0
    for row in plan.rows:
        yield row, "" if row.draw.k == last else f"{row.draw.k:,}"
        last = row.draw.k


def _design(row: Row) -> str:
    return "all" if row.draw.every_subsample else row.draw.design


def _marked(answer: Answer, level: int) -> str:
    if level < 0:
        return NEVER
    return f"{level:,}" if answer.promised else f"~{level:,}"


def _level(answer: Answer | None) -> str:
    return "" if answer is None else _marked(answer, answer.highest)


def _share(row: Row, name: str, spread: bool) -> str:
    answer = row.answers.get(name)
    if answer is None:
        return ""
    votes = answer.votes_if_spread if spread else answer.votes
    if votes is None:
        return NEVER
    return f"{'' if answer.promised else '~'}{share(votes, row.draw.N)}"


def _up(value: Fraction) -> str:
    """A price rounds up.

    >>> _up(Fraction(5000, 1000)), _up(Fraction(2, 3))
    ('5.0', '0.7')
    """
    return f"{math.ceil(value * 10) / 10:,.1f}"


def _marks(plan: Plan) -> list[str]:
    lines = []
    if any(row.draw.every_subsample for row in plan.rows):
        lines.append(
            "all: every subsample of k clients is trained, nothing is left to chance, and the certificates coincide."
        )
    if any(not answer.promised for row in plan.rows for answer in row.answers.values()):
        lines.append("~: typical of such a draw, no promise; membership is known once the subsamples are drawn.")
    return lines
