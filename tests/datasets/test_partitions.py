"""Each partition does what it promises, and what it does to one row depends on no other where that can be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedquorum.datasets import PARTITIONS, Dataset, load, partition
from fedquorum.datasets.partitions import by_degree, by_dirichlet, by_shards, evenly
from fedquorum.datasets.split import three_quarters
from fedquorum.errors import InputError
from fedquorum.federation import Federation

LABELS = np.random.default_rng(5).integers(10, size=60_000)


def dataset(y: np.ndarray, classes: int = 10, client: np.ndarray | None = None) -> Dataset:
    x = np.zeros((len(y), 1), np.float32)
    clients = None if client is None else tuple(np.unique(client).tolist())
    return Dataset("small", x, y, x[:1], y[:1], classes, client, clients)


def within(observed: np.ndarray, expected: np.ndarray, sigmas: float = 5) -> bool:
    """Counts of a binomial or near-binomial kind, at five standard deviations."""
    return bool((np.abs(observed - expected) <= sigmas * np.sqrt(np.maximum(expected, 1))).all())


@pytest.mark.parametrize("q", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_q_is_the_probability_of_the_labels_own_group_and_the_rest_is_even(q: float) -> None:
    client = by_degree(LABELS, classes=10, count=1000, q=q, seed=1)
    table = np.zeros((10, 10))
    np.add.at(table, (LABELS, client // 100), 1)
    p = np.full((10, 10), (1 - q) / 9)
    np.fill_diagonal(p, q)
    assert within(table, table.sum(axis=1, keepdims=True) * p)


def test_q_spreads_a_group_evenly_over_its_clients() -> None:
    client = by_degree(LABELS, classes=10, count=1000, q=0.5, seed=2)
    size = np.bincount(client, minlength=1000)
    expected = np.bincount(client // 100).repeat(100) / 100
    chi_square = ((size - expected) ** 2 / expected).sum()
    # 990 degrees of freedom, standard deviation 44.5.
    assert abs(chi_square - 990) < 5 * 44.5


def test_q_groups_are_equal_to_within_one_client_when_the_count_does_not_divide() -> None:
    client = by_degree(np.repeat(np.arange(3), 400), classes=3, count=8, q=1.0, seed=1)
    assert [sorted(set(client[i : i + 400].tolist())) for i in (0, 400, 800)] == [[0, 1], [2, 3, 4], [5, 6, 7]]


@pytest.mark.parametrize("split", [by_degree, by_dirichlet])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_q_and_dirichlet_move_no_row_because_another_changed_or_went(split, data: st.DataObject) -> None:  # type: ignore[no-untyped-def]
    y = np.array(data.draw(st.lists(st.integers(0, 3), min_size=2, max_size=40)))
    seed = data.draw(st.integers(0, 2**40))
    before = split(y, 4, 6, 0.5, seed)
    row = data.draw(st.integers(0, len(y) - 1))
    changed = y.copy()
    changed[row] = (y[row] + 1) % 4
    after = split(changed, 4, 6, 0.5, seed)
    assert np.array_equal(np.delete(before, row), np.delete(after, row))
    assert np.array_equal(split(y[:row], 4, 6, 0.5, seed), before[:row])


def test_iid_is_even_in_size_and_blind_to_labels() -> None:
    client = evenly(len(LABELS), 7, seed=1)
    assert np.ptp(np.bincount(client)) <= 1
    table = np.zeros((10, 7))
    np.add.at(table, (LABELS, client), 1)
    assert within(table, np.outer(np.bincount(LABELS), np.bincount(client)) / len(LABELS))


@pytest.mark.parametrize("concentration", [0.1, 1.0, 100.0])
def test_dirichlet_shares_have_the_variance_of_their_concentration(concentration: float) -> None:
    """A share's variance is (1/n)(1 - 1/n) / (n a + 1); over 200 labels its estimate is good to a third."""
    n, y = 10, np.repeat(np.arange(200), 2000)
    client = by_dirichlet(y, 200, n, concentration, seed=1)
    share = np.zeros((200, n))
    np.add.at(share, (y, client), 1 / 2000)
    sampling = (1 / n) * (1 - 1 / n) / 2000
    expected = (1 / n) * (1 - 1 / n) / (n * concentration + 1)
    assert abs(share.mean(axis=0) - 1 / n).max() < 0.1
    assert share.var() - sampling == pytest.approx(expected, rel=0.33)


@given(
    rows=st.integers(1, 60),
    count=st.integers(2, 10),
    shards=st.integers(1, 4),
    classes=st.integers(2, 6),
    seed=st.integers(0, 99),
)
def test_shards_are_runs_of_the_sorted_rows_and_leave_no_client_empty(
    rows: int, count: int, shards: int, classes: int, seed: int
) -> None:
    y = np.random.default_rng(seed).integers(classes, size=rows)
    if count * shards > rows:
        with pytest.raises(InputError, match="fewer clients or fewer shards"):
            by_shards(y, count, shards, seed)
        return
    client = by_shards(y, count, shards, seed)
    in_order = client[np.argsort(y, kind="stable")]
    runs = 1 + np.count_nonzero(np.diff(in_order))
    assert runs <= count * shards
    size = np.bincount(client, minlength=count)
    piece = rows // (count * shards)
    assert size.min() >= shards * piece >= 1 and size.max() <= shards * (piece + 1)


@pytest.mark.parametrize("kind", ["q", "iid", "dirichlet", "shards"])
def test_the_seed_decides_and_nothing_else(kind: str) -> None:
    data = dataset(LABELS[:2000])
    first, clients = partition(data, kind, count=20, seed=1)
    again, _ = partition(data, kind, count=20, seed=1)
    other, _ = partition(data, kind, count=20, seed=2)
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert clients == tuple(range(20))


@pytest.mark.parametrize("kind", ["q", "iid", "dirichlet", "shards"])
def test_a_partition_makes_a_federation(kind: str) -> None:
    data = load("digits")
    client, clients = partition(data, kind, count=20)
    federation = Federation(data.x, data.y, client, data.test_x, data.test_y, classes=data.classes, clients=clients)
    assert federation.n == 20 and federation.sizes.sum() == 1437


@pytest.mark.parametrize(("kind", "count"), [("iid", 51), ("dirichlet", 60), ("q", 70)])
def test_clients_left_empty_are_counted(kind: str, count: int) -> None:
    with pytest.raises(InputError, match=rf"leaves \d+ of {count} clients without an example \(50 rows\); take fewer"):
        partition(dataset(LABELS[:50]), kind, count=count)


def test_natural_is_what_the_data_set_says() -> None:
    owner = np.array([30, 4, 30])
    client, clients = partition(dataset(np.array([0, 1, 0]), client=owner), "natural")
    assert client.tolist() == [30, 4, 30] and clients == (4, 30)


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("even", {}, "unknown partition 'even'; use one of " + ", ".join(PARTITIONS)),
        ("natural", {}, "no natural clients"),
        ("iid", {}, "needs a count"),
        ("iid", {"count": 1}, "at least 2"),
        ("q", {"count": 20, "q": 1.1}, "q is 1.1"),
        ("q", {"count": 20, "q": float("nan")}, "q is nan"),
        ("q", {"count": 5}, "at least 10 clients"),
        ("dirichlet", {"count": 5, "concentration": 0.0}, "above 0"),
        ("shards", {"count": 5, "shards": 0}, "at least 1"),
    ],
)
def test_wrong_settings_say_what_is_wrong(kind: str, options: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        partition(dataset(LABELS[:100]), kind, **options)  # type: ignore[arg-type]


def test_a_count_that_contradicts_nature_is_an_error() -> None:
    with pytest.raises(InputError, match="has 2 natural clients, not 5"):
        partition(dataset(np.array([0, 1]), client=np.array([1, 2])), "natural", count=5)


@given(sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6), seed=st.integers(0, 2**40))
def test_each_client_trains_on_three_quarters_of_its_rows(sizes: list[int], seed: int) -> None:
    client = np.repeat(np.arange(len(sizes)), sizes)
    train = three_quarters(client, seed)
    assert np.bincount(client[train], minlength=len(sizes)).tolist() == [round(0.75 * r) for r in sizes]


@given(
    sizes=st.lists(st.integers(1, 12), min_size=2, max_size=6), seed=st.integers(0, 2**40), shuffle=st.integers(0, 99)
)
def test_a_clients_split_depends_on_its_own_rows_only(sizes: list[int], seed: int, shuffle: int) -> None:
    client = np.random.default_rng(shuffle).permutation(np.repeat(np.arange(len(sizes)), sizes))
    train = three_quarters(client, seed)
    for one in range(len(sizes)):
        assert np.array_equal(train[client == one], three_quarters(np.full(sizes[one], one), seed))
