"""The plan: what it says before the training is what the certificates say after it, and never more."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedquorum.certificates import certify, certify_counts
from fedquorum.errors import InputError
from fedquorum.plan import advice, as_json, make_plan, share
from fedquorum.plan.advice import best
from fedquorum.plan.table import SHARES, draws, hopeless
from fedquorum.plan.votes import Draw, Terms, fewest_votes, highest_level, worst_hits
from fedquorum.plan_command import plan_command
from fedquorum.subsamples import draw as draw_subsamples
from fedquorum.votes import Votes

TERMS = Terms(Fraction(1, 1000), Fraction(1, 1000), inputs=10_000, classes=10)


def certified(name: str, drawn: Draw, terms: Terms) -> np.ndarray:
    """The level that the certificate gives to every number of votes for the last label, against which every tie goes."""
    counts = np.zeros((drawn.N + 1, terms.classes), dtype=np.int64)
    counts[:, -1] = np.arange(drawn.N + 1)
    for votes in range(drawn.N + 1):
        for i in range(drawn.N - votes):
            counts[votes, i % (terms.classes - 1) if terms.spread else 0] += 1
    asked = (terms.alpha, terms.delta, terms.inputs)
    certificate = certify_counts(counts, drawn.n, drawn.k, drawn.N, drawn.design, name, *asked)
    return np.where(certificate.label == terms.classes - 1, certificate.level, -1)


def test_highest_levels_of_the_running_example() -> None:
    rows = {row.draw.design: row for row in make_plan(1000, models=500, size=10).rows}
    highest = {name: answer.highest for name, answer in rows["independent"].answers.items() if answer.promised}
    assert highest == {"paper": 60, "ideal": 60, "served": 54}
    assert rows["balanced"].answers["membership"].highest == 49
    assert rows["disjoint"].draw.N == 100
    assert rows["disjoint"].answers["membership"].highest == 49


def test_all_435_subsamples_of_thirty_users_tolerate_eight_in_every_sense() -> None:
    row = make_plan(30, models=435, size=2).rows[0]
    assert row.draw.every_subsample
    assert {name: answer.highest for name, answer in row.answers.items()} == dict.fromkeys(
        ("paper", "ideal", "served", "membership"), 8
    )


@pytest.mark.parametrize("spread", [False, True], ids=["one rival", "spread"])
@pytest.mark.parametrize("design", ["independent", "distinct"])
def test_the_plan_is_the_certificate_read_backwards(design: str, spread: bool) -> None:
    for n, k, N, classes in product((5, 12), (1, 2, 3), (1, 7, 40), (2, 4)):
        drawn = Draw(n, k, min(N, comb(n, k)) if design == "distinct" else N, design)
        # so large an alpha that every rule of the certificates decides somewhere
        terms = Terms(Fraction(9, 10), Fraction(1, 10), inputs=drawn.N + 1, classes=classes, spread=spread)
        for name in ("paper", "ideal", "served"):
            levels = certified(name, drawn, terms)
            for m in range(n - k + 1):
                enough = np.flatnonzero(levels >= m)
                fewest = enough[0] if len(enough) else drawn.N + 1
                assert fewest_votes(name, drawn, m, terms) == fewest, (drawn, classes, name, m)
            assert [highest_level(name, drawn, terms, votes) for votes in range(drawn.N + 1)] == levels.tolist()


def test_the_plan_is_the_certificate_read_backwards_at_full_size() -> None:
    for name, spread in product(("ideal", "served"), (False, True)):
        terms = Terms(TERMS.alpha, TERMS.delta, TERMS.inputs, TERMS.classes, spread)
        drawn = Draw(10_000, 10, 500, "independent")
        levels = certified(name, drawn, terms)
        for m in (0, 1, 20, 400):
            assert fewest_votes(name, drawn, m, terms) == np.flatnonzero(levels >= m)[0]


@pytest.mark.parametrize("design", ["balanced", "disjoint", "distinct"])
@pytest.mark.parametrize("seed", range(4))
def test_membership_is_never_promised_a_level_too_many(design: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    n, k = 12, 2
    N = {"balanced": 20, "disjoint": 6, "distinct": comb(n, k)}[design]
    subsamples = draw_subsamples(n, k, N, design, seed=seed)
    for chance in (0.0, 0.1, 0.3):
        column = np.where(generator.random(N) < chance, 0, 1)
        certificate = certify(Votes(column[:, None], subsamples.members, n, classes=2, design=design), "membership")
        planned = highest_level("membership", Draw(n, k, N, design), TERMS, int(column.sum()))
        if certificate.label[0] == 1:
            assert planned <= certificate.level[0]
        if design == "disjoint" and chance == 0:
            assert planned == certificate.level[0] == (N - 1) // 2


@pytest.mark.parametrize("design", ["independent", "distinct"])
def test_what_is_typical_of_a_draw_is_what_draws_are_like(design: str) -> None:
    n, k, N, m = 200, 5, 300, 10
    hits = []
    for seed in range(30):
        degrees = np.bincount(draw_subsamples(n, k, N, design, seed=seed).members.ravel(), minlength=n)
        hits.append(np.sort(degrees)[-m:].sum())
    typical = worst_hits(Draw(n, k, N, design), m)
    assert np.mean(hits) <= typical <= 1.03 * np.mean(hits)


def test_only_what_is_known_before_the_draw_is_promised() -> None:
    promised = {
        (row.draw.design, name): answer.promised
        for row in make_plan(100, models=50, size=5).rows
        for name, answer in row.answers.items()
    }
    assert [key for key, sure in promised.items() if not sure] == [("independent", "membership")]
    assert all(answer.promised for row in make_plan(20, models=190, size=2).rows for answer in row.answers.values())


# The table


@pytest.mark.parametrize(("n", "models"), [(1, 1), (7, 3), (20, 200), (30, 435), (1000, 500), (10**6, 500)])
def test_every_draw_of_the_table_can_be_made(n: int, models: int) -> None:
    for row in make_plan(n, models=models).rows:
        n, k, N, design = row.draw.n, row.draw.k, row.draw.N, row.draw.design
        assert 1 <= k <= n
        assert 1 <= N <= models
        assert design != "distinct" or comb(n, k) >= N
        assert design != "disjoint" or k * N <= n


def test_all_subsamples_have_their_row_as_soon_as_the_budget_allows() -> None:
    assert draws(30, 2, 435)[0].every_subsample
    assert not any(drawn.every_subsample for drawn in draws(30, 2, 434))


@pytest.mark.parametrize(("n", "k"), [(9, 1), (9, 3), (30, 2)])
def test_hopeless_sizes_are_hopeless_and_others_are_not(n: int, k: int) -> None:
    last = max(m for m in range(n) if not hopeless(n, k, m))
    many = [Draw(n, k, 3000, "independent"), Draw(n, k, comb(n, k), "distinct")]
    reached = [highest_level(name, drawn, TERMS, drawn.N) for drawn in many for name in ("ideal", "served")]
    assert max(reached) == last


def test_shares_are_rounded_up_and_enough() -> None:
    for row in as_json(make_plan(1000, tolerate=20, models=499))["rows"]:
        for entry in row["certificates"].values():
            if entry["share"] is not None:
                assert entry["votes"] <= entry["share"] * row["models"] < entry["votes"] + 0.001 * row["models"] + 1e-9
    assert share(2, 3) == "0.667"


def test_a_share_buys_the_level_that_needs_it() -> None:
    plan = make_plan(1000, tolerate=21, models=500, size=10)
    row = plan.rows[0]
    levels = dict(zip(SHARES, plan.levels("ideal", row.draw), strict=True))
    assert row.answers["ideal"].votes == 400
    assert levels[Fraction(80, 100)] == 21
    assert levels[Fraction(75, 100)] < 21


# Advice


def test_the_recommended_draw_needs_the_smallest_share_of_those_that_promise() -> None:
    plan = make_plan(1000, tolerate=20, models=500)
    for name in ("ideal", "served", "membership"):
        choice = best(plan, name, plan.sizes, plan.models)
        assert choice is not None
        shares = [
            Fraction(answer.votes, row.draw.N)
            for row in plan.rows
            if (answer := row.answers.get(name)) and answer.promised and answer.votes is not None
        ]
        assert Fraction(choice.votes, choice.draw.N) == min(shares)


def test_what_would_do_is_named_and_does() -> None:
    plan = make_plan(1000, tolerate=60, models=500, size=10)
    served = advice(plan)[1]
    assert served == (
        "served: nothing here promises level 60; the highest is 54. "
        "What would: k=9, 500 independent subsamples; or k=10, 1,765 independent subsamples."
    )
    assert best(plan, "served", [10], 500) is None
    assert best(plan, "served", [9], 500)
    assert best(plan, "served", [10], 1765)


def test_half_of_the_clients_can_never_be_tolerated() -> None:
    assert advice(make_plan(20, tolerate=10)) == [
        "Nothing can tolerate 10 of 20 clients, with any k, N or design: they are half of all or more."
    ]
    assert all("from 1.000 of the votes" in line for line in advice(make_plan(20, tolerate=9)))


# The command


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"clients": 0}, "'clients' is 0; it must be 1 to 1000000"),
        ({"models": 0}, "'models' is 0; it must be 1 to 1000000"),
        ({"tolerate": 20}, "'tolerate' is 20; of 20 clients 0 to 19"),
        ({"tolerate": -1}, "'tolerate' is -1"),
        ({"size": 0}, "'size' is 0; with 20 clients"),
        ({"size": 21}, "'size' is 21; with 20 clients"),
        ({"alpha": "1.5"}, "'alpha' is 1.5"),
        ({"delta": "0"}, "'delta' is 0"),
        ({"inputs": 0}, "'inputs' is 0"),
        ({"classes": 1}, "'classes' is 1; it must be 2 to 65536"),
    ],
)
def test_wrong_input_is_one_line(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        plan_command(**({"clients": 20} | wrong))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_figure_is_shortened_on_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    plan_command(10**6, tolerate=20, models=500)
    text = capsys.readouterr().out
    assert "466,732" in text
    assert "…" not in text


def test_with_two_classes_there_is_only_one_rival(capsys: pytest.CaptureFixture[str]) -> None:
    plan_command(20, tolerate=3, models=200, size=2, classes=2)
    two = capsys.readouterr().out
    plan_command(20, tolerate=3, models=200, size=2, classes=3)
    three = capsys.readouterr().out
    assert "spread" not in two
    assert "5 / 5" not in two
    assert "spread over 3 classes" in three
    assert "5 / 5" in three


def test_json_is_all_there_is_on_standard_output(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan_command(20, tolerate=3, models=200, print_json=True, out=tmp_path / "plan")
    text = capsys.readouterr().out
    content = json.loads(text)
    assert (tmp_path / "plan" / "plan.json").read_text() == text
    assert content["rows"][0]["certificates"]["ideal"]["votes"] == 14
    assert len(content["advice"]) == 4


@pytest.mark.parametrize("size", [None, 2])
def test_the_same_plan_draws_the_same_picture(size: int | None, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        plan_command(20, tolerate=3, models=200, size=size, out=tmp_path / folder)
    for name in ("plan.svg", "plan.png"):
        first = (tmp_path / "one" / "figures" / name).read_bytes()
        assert first
        assert first == (tmp_path / "two" / "figures" / name).read_bytes()


def test_a_plan_without_any_level_has_a_picture_too(tmp_path: Path) -> None:
    plan_command(1, models=1, out=tmp_path)
    assert (tmp_path / "figures" / "plan.png").exists()
