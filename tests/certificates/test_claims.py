"""What may be claimed, how it is asked for, and what the answer says."""

from fractions import Fraction

import numpy as np
import pytest

from fedquorum.certificates import ABSTAIN, Certificate, certify, certify_counts, valid_names
from fedquorum.errors import InputError
from fedquorum.votes import Votes


def small_votes(design):
    return Votes([[0, 1], [0, 1], [0, 0]], [[0], [1], [2]], clients=4, design=design)


@pytest.mark.parametrize("design", ["independent", "distinct"])
def test_a_uniform_draw_may_claim_something_about_the_ideal_ensemble(design):
    assert {"paper", "ideal", "served"} <= set(valid_names(small_votes(design)))


@pytest.mark.parametrize(
    ("design", "said"), [("balanced", "'balanced'"), ("disjoint", "'disjoint'"), (None, "not stated")]
)
@pytest.mark.parametrize("name", ["paper", "ideal", "served"])
def test_other_designs_may_not(design, said, name):
    assert name not in valid_names(small_votes(design))
    with pytest.raises(InputError, match=f"holds for subsamples of design independent or distinct; .* {said}"):
        certify(small_votes(design), name)


@pytest.mark.parametrize("name", ["Ideal", "", "nonsense"])
def test_an_unknown_name_is_answered_with_the_known_ones(name):
    with pytest.raises(InputError, match="choose from paper, ideal"):
        certify(small_votes("distinct"), name)


@pytest.mark.parametrize(
    "value",
    [
        0,
        1,
        -0.1,
        1.5,
        "nan",
        "inf",
        "many",
        "",
        None,
        "1/0",
        "5/4",
        "1e-999999999",
        "1e999999999",
        Fraction(1, 10**400),
    ],
)
@pytest.mark.parametrize("which", ["alpha", "delta"])
def test_a_failure_probability_lies_between_0_and_1(which, value):
    with pytest.raises(InputError, match=f"^'{which}' is .* between 0 and 1, both excluded$"):
        certify(small_votes("distinct"), **{which: value})


@pytest.mark.parametrize(
    "alpha", ["0.001", 0.001, np.float64(0.001), np.float32(0.001), "1e-3", Fraction(1, 1000), "1/1000"]
)
def test_alpha_is_read_as_a_decimal(alpha):
    assert certify(small_votes("distinct"), alpha=alpha).alpha == Fraction(1, 1000)


def test_alpha_as_a_decimal_decides_a_tie():
    # P(Bin(3, 1/2) >= 3) = 1/8 is not below 0.125, and is below the next decimal.
    def level(alpha):
        return certify_counts([[3, 0]], 4, 2, 3, "independent", "paper", alpha).level[0]

    assert level(0.125) == ABSTAIN
    assert level("0.12500000000000000000000000000001") == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"k": 0}, "'k' is 0"),
        ({"k": 5}, "'k' is 5"),
        ({"N": 0}, "'N' is 0"),
        ({"N": 2.5}, "'N' is 2.5"),
        ({"n": "four"}, "'n' is 'four'"),
        ({"N": 7, "design": "distinct"}, "only 6 distinct subsamples"),
        ({"design": "random"}, "'design' is 'random'"),
        ({"counts": [[3, 0], [2, 0]]}, "row 1 is not a count of 3 votes"),
        ({"counts": [[4, -1]]}, "row 0 is not a count of 3 votes"),
        ({"counts": [[3.0, 0.0]]}, "type float64"),
        ({"counts": [3, 0]}, "shape (2,)"),
        ({"counts": [[3]]}, "shape (1, 1)"),
        ({"counts": np.zeros((0, 2), int)}, "shape (0, 2)"),
        ({"counts": [[3, 0], [3, 0]], "d": 1}, "'d' is 1, but 2 inputs"),
    ],
)
def test_counts_that_make_no_sense(change, said):
    case = {"counts": [[3, 0]], "n": 4, "k": 2, "N": 3, "design": "independent"} | change
    with pytest.raises(InputError) as error:
        certify_counts(**case)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_counts_are_enough_and_any_integer_type_does():
    votes = small_votes("distinct")
    for kind in (np.uint8, np.int16, np.uint64, np.int64):
        again = certify_counts(votes.counts().astype(kind), 4, 1, 3, "distinct")
        assert again.level.tolist() == certify(votes).level.tolist()
    all_models = Votes([[0], [0], [1]], [[0], [1], [2]], clients=3, design="distinct")
    exact = certify_counts(all_models.counts().astype(np.uint8), 3, 1, 3, "distinct")
    assert exact.level.tolist() == certify(all_models).level.tolist() == [0]


def test_a_served_tie_has_no_certificate_and_ties_of_labels_do_not_matter_below():
    certificate = certify_counts([[2, 0, 2, 0], [0, 2, 1, 1]], 4, 1, 4, "distinct")
    assert certificate.label.tolist() == [ABSTAIN, 1]
    assert certificate.level.tolist() == [ABSTAIN, 0]


def test_what_a_certificate_carries():
    votes = Votes([[0, 1]] * 60, [[i % 5] for i in range(60)], clients=5, design="independent")
    for name in ("paper", "ideal", "served"):
        c = certify(votes, name, alpha="0.01", delta="0.01")
        assert (c.name, c.n, c.k, c.N, c.d, c.design, c.exact) == (name, 5, 1, 60, 2, "independent", False)
        spent = (None, Fraction(1, 100)) if name == "served" else (Fraction(1, 100), None)
        assert (c.alpha, c.delta, c.abstained) == (*spent, 0)
        assert "0.01" in c.statement and "5 clients" in c.statement and "\n" not in c.statement
    assert "1 - 0.01" in certify(votes, "ideal", alpha="0.01").statement
    assert "0.02" in certify(votes, "paper", alpha="0.01").statement


def test_the_exact_mode_needs_no_alpha():
    votes = Votes([[0], [0], [1]], [[0], [1], [2]], clients=3, design="distinct")
    for name in ("paper", "ideal"):
        c = certify(votes, name)
        assert (c.exact, c.alpha, c.delta) == (True, None, None)
        assert c.statement.startswith("Certain")


def test_certified_accuracy_is_that_of_a_plain_loop():
    rng = np.random.default_rng(3)
    level = rng.integers(-1, 8, 500)
    label = np.where(level == ABSTAIN, ABSTAIN, rng.integers(0, 3, 500))
    truth = rng.integers(0, 3, 500)
    c = Certificate("ideal", label, level, 9, 2, 36, 500, "distinct", None, None, True, "")
    for m, share in enumerate(c.accuracy(truth)):
        assert share == sum(int(a == b and v >= m) for a, b, v in zip(label, truth, level, strict=True)) / 500
    assert len(c.accuracy(truth)) == 10


@pytest.mark.parametrize("labels", [[0, 1], [[0, 1, 2]], [0.0, 1.0, 2.0]])
def test_accuracy_needs_one_integer_label_per_input(labels):
    c = Certificate("ideal", np.zeros(3, int), np.zeros(3, int), 9, 2, 36, 3, "distinct", None, None, True, "")
    with pytest.raises(InputError, match="3 integers are needed"):
        c.accuracy(labels)


def test_an_abstention_is_never_right():
    # Not even if somebody marks unknown labels by -1.
    c = Certificate("ideal", np.array([-1, 0]), np.array([-1, 0]), 2, 1, 2, 2, "distinct", None, None, True, "")
    assert c.accuracy([-1, 0]).tolist() == [0.5, 0.0, 0.0]


def test_labels_that_nobody_stated_cost_ideal_its_gate_and_no_level_above_it():
    rng = np.random.default_rng(3)
    subsamples = np.array([rng.choice(50, 2, replace=False) for _ in range(200)])
    supports = np.repeat([[200], [190], [150], [128], [124]], 1, axis=1).ravel()
    column = np.array([np.where(np.arange(200) < support, 1, 0) for support in supports]).T
    stated = certify(Votes(column, subsamples, clients=50, classes=2, design="independent"))
    counted = certify(Votes(column, subsamples, clients=50, design="independent"))
    assert (counted.level <= stated.level).all()
    assert (counted.level == stated.level)[counted.level > 0].all()
    as_many_as_fit = certify_counts(
        np.stack([200 - supports, supports], axis=1), 50, 2, 200, "independent", classes=2**16
    )
    assert counted.level.tolist() == as_many_as_fit.level.tolist()


def test_fewer_classes_than_columns_are_refused():
    with pytest.raises(InputError, match="'classes' is 2, but 'counts' has a column for each of 3 labels"):
        certify_counts([[3, 0, 0]], 5, 1, 3, "independent", classes=2)


def test_counts_that_overflow_are_refused():
    with pytest.raises(InputError, match="row 0 is not a count of 3 votes"):
        certify_counts(np.array([[2**63 - 1, 2**63 - 1, 5]]), 5, 1, 3, "independent")


def test_a_statement_gives_the_risk_exactly_and_no_probability_above_1():
    votes = Votes([[0]] * 30, [[i] for i in range(30)], clients=60, classes=2, design="distinct")
    assert "at least 1 - 1/3 over" in certify(votes, alpha="1/3").statement
    assert certify(votes, "paper", alpha="0.9").statement.endswith("failure probability is 1.0.")
