"""Many patterns at once: each solved once, by any number of processes, and again only if it was not settled."""

import json
import os
from functools import partial

import numpy as np
import pytest

from fedquorum.certificates import membership
from fedquorum.certificates.cover import cover_of
from fedquorum.certificates.membership_many import Settled, solve_all
from fedquorum.errors import MachineError
from fedquorum.subsamples import draw
from fedquorum.votes import Votes


@pytest.fixture
def votes():
    subsamples = np.asarray(draw(10, 3, 40, "independent", seed=1))
    columns = np.random.default_rng(0).choice(4, (40, 12), p=[0.7, 0.1, 0.1, 0.1])
    return Votes(np.column_stack([columns, columns]), subsamples, clients=10, classes=4, design="independent")


def quiet(done, total):
    pass


def solves(monkeypatch):
    """Count the patterns that are really worked out."""
    count = []
    honest = membership.exact_level

    def counted(cover, column, classes, seconds):
        count.append(1)
        return honest(cover, column, classes, seconds)

    monkeypatch.setattr(membership, "exact_level", counted)
    return count


def test_equal_columns_are_worked_out_once(votes, monkeypatch):
    count, seen = solves(monkeypatch), []
    level = membership.certify(votes, exact=True, progress=lambda done, total: seen.append((done, total))).level
    assert len(count) == 12
    assert level[:12].tolist() == level[12:].tolist()
    assert seen == [(done, 12) for done in range(13)]


@pytest.mark.parametrize("exact", [True, False])
def test_two_processes_give_what_one_gives(votes, exact):
    one = membership.certify(votes, exact=exact)
    two = membership.certify(votes, exact=exact, workers=2)
    assert one.level.tolist() == two.level.tolist()
    assert one.statement == two.statement


def test_an_interrupted_job_resumes_where_it_was(votes, monkeypatch, tmp_path):
    def interrupt(done, total):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        membership.certify(votes, exact=True, folder=tmp_path, progress=interrupt)
    count = solves(monkeypatch)
    resumed = membership.certify(votes, exact=True, folder=tmp_path)
    assert len(count) == 12 - 5
    assert resumed.level.tolist() == membership.certify(votes, exact=True).level.tolist()
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", '{"a": "x"}', "\udcff"])
def test_a_file_that_cannot_be_read_is_made_again(votes, tmp_path, content):
    membership.certify(votes, exact=True, folder=tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    certificate = membership.certify(votes, exact=True, folder=tmp_path)
    assert certificate.level.tolist() == membership.certify(votes, exact=True).level.tolist()
    assert len(json.loads(path.read_text())) == 12


def test_levels_that_cannot_be_are_not_believed(votes, tmp_path):
    honest = membership.certify(votes, exact=True, folder=tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(json.dumps({key: level for key in json.loads(path.read_text()) for level in (-5, 10)}))
    assert membership.certify(votes, exact=True, folder=tmp_path).level.tolist() == honest.level.tolist()


def test_levels_of_another_problem_are_not_taken(votes, tmp_path, monkeypatch):
    membership.certify(votes, exact=True, folder=tmp_path)
    count = solves(monkeypatch)
    other = np.asarray(draw(10, 3, 40, "independent", seed=2))
    membership.certify(Votes(votes.votes, other, clients=10, classes=4), exact=True, folder=tmp_path)
    membership.certify(Votes(votes.votes, votes.subsamples, clients=10, classes=5), exact=True, folder=tmp_path)
    assert len(count) == 24


def test_what_is_not_settled_is_counted_in_the_claim_and_tried_again(votes, monkeypatch, tmp_path):
    honest = membership.exact_level

    def hasty(cover, column, classes, seconds):
        level, _ = honest(cover, column, classes, seconds)
        return level, int(column[0]) != 0

    monkeypatch.setattr(membership, "exact_level", hasty)
    certificate = membership.certify(votes, exact=True, folder=tmp_path)
    bounds = int((votes.votes[0] == 0).sum())
    assert 0 < bounds < 24
    assert (
        f"{bounds} of the 24 levels are proved lower bounds, the others the largest possible" in certificate.statement
    )
    monkeypatch.setattr(membership, "exact_level", honest)
    count = solves(monkeypatch)
    again = membership.certify(votes, exact=True, folder=tmp_path)
    assert len(count) == bounds // 2
    assert "every level is the largest possible" in again.statement


def test_fast_levels_are_called_bounds_and_never_kept(votes, tmp_path):
    assert "the levels are proved lower bounds" in membership.certify(votes, exact=False, folder=tmp_path).statement
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_dies_is_an_error_that_says_so(votes):
    cover = cover_of(votes.subsamples)
    patterns, _ = membership.distinct_patterns(votes.votes)
    with pytest.raises(MachineError, match="died"):
        solve_all(partial(die, 1), patterns, Settled(None, cover, 4), 2, quiet)


def die(code, column):
    os._exit(code)


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(votes, tmp_path):
    (tmp_path / "file").write_text("")
    certificate = membership.certify(votes, exact=True, folder=tmp_path / "file")
    assert certificate.level.tolist() == membership.certify(votes, exact=True).level.tolist()
