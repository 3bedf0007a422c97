import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_metrics import (
    depth_of_share,
    found_in_order,
    over_tie_orders,
    ranked_cases,
    repeat_rows,
    tied_table,
    weighted_cases,
)
from toprank.metrics import (
    gain_at_k,
    gain_at_k_curve,
    gains_table,
    lift_at_k,
    precision_at_k,
    precision_at_k_curve,
    recall_at_k,
    recall_at_k_curve,
)

TIES = ("expected", "best", "worst")


@given(ranked_cases(), st.sampled_from(TIES), st.data())
@settings(max_examples=80)
def test_at_k_is_that_over_all_tie_orders(case, ties, data):
    y, score = case
    k = data.draw(st.integers(1, len(y)))
    found = over_tie_orders(lambda order: found_in_order(y, order, k), score, ties)
    assert precision_at_k(y, score, k, ties=ties) == pytest.approx(found / k)
    assert recall_at_k(y, score, k, ties=ties) == pytest.approx(found / sum(y))
    assert lift_at_k(y, score, k, ties=ties) == pytest.approx((found / k) / (sum(y) / len(y)))


@given(ranked_cases(), st.sampled_from(TIES), st.data())
@settings(max_examples=80)
def test_gain_at_k_is_that_over_all_tie_orders(case, ties, data):
    y, score = case
    k = data.draw(st.integers(1, len(y)))
    amount = data.draw(st.lists(st.integers(0, 5), min_size=len(y), max_size=len(y)))
    found = over_tie_orders(lambda order: found_in_order(y, order, k, amount), score, ties)
    assert gain_at_k(y, score, amount, k, ties=ties) == pytest.approx(found)


@given(st.permutations(range(20)), st.integers(1, 2**20 - 2), st.integers(1, 20))
def test_without_ties_it_is_the_share_of_the_first_k(score, bits, k):
    y = np.array([bits >> row & 1 for row in range(20)])
    simple = y[np.argsort(score)[::-1][:k]].mean()
    assert [precision_at_k(y, score, k, ties=ties) for ties in TIES] == pytest.approx([simple] * 3)


@given(weighted_cases(), st.sampled_from(TIES), st.data())
@settings(max_examples=80)
def test_weight_two_is_the_row_twice(case, ties, data):
    y, score, weight = case
    amount = np.arange(len(y)) + 1.0
    y_rows, score_rows, amount_rows = repeat_rows(weight, y, score, amount)
    k = data.draw(st.one_of(st.integers(1, sum(weight)), st.sampled_from([0.1, 0.3, 0.5, 1.0])))
    for metric in (precision_at_k, recall_at_k, lift_at_k):
        assert metric(y, score, k, ties=ties, sample_weight=weight) == pytest.approx(
            metric(y_rows, score_rows, k, ties=ties)
        )
    assert gain_at_k(y, score, amount, k, ties=ties, sample_weight=weight) == pytest.approx(
        gain_at_k(y_rows, score_rows, amount_rows, k, ties=ties)
    )


@given(ranked_cases(max_size=30, n_scores=5), st.data())
def test_best_expected_and_worst_are_ordered(case, data):
    k = data.draw(st.integers(1, len(case[0])))
    worst, expected, best = (precision_at_k(*case, k, ties=ties) for ties in ("worst", "expected", "best"))
    assert worst <= expected + 1e-12
    assert expected <= best + 1e-12


@pytest.mark.parametrize("n_positive", [1, 3, 30, 50, 100])
def test_a_share_is_rounded_up_without_rounding_errors(n_positive):
    """In floats 0.07 * 100 is a little more than 7, and 0.29 * 100 a little less than 29."""
    y, score = np.arange(200) < n_positive, -np.arange(200)
    for percent in range(1, 101):
        depth = depth_of_share(percent, n_positive)
        assert recall_at_k(y, score, percent / 100) == pytest.approx(depth / n_positive)
        depth = min(depth_of_share(percent, 200), n_positive)
        assert recall_at_k(y, score, percent / 100, of="cases") == pytest.approx(depth / n_positive)


def test_one_and_one_point_zero_differ():
    y, score = [1, 1, 0, 0], [4, 1, 3, 2]
    assert precision_at_k(y, score, 1) == 1.0
    assert precision_at_k(y, score, 1.0) == precision_at_k(y, score) == 0.5
    assert precision_at_k(y, score, np.int64(1)) == 1.0
    assert precision_at_k(y, score, np.float32(1)) == 0.5


def test_at_as_many_cases_as_positives_precision_is_recall():
    y, score = [1, 0, 1, 0, 1], [5, 4, 4, 2, 2]
    assert precision_at_k(y, score) == recall_at_k(y, score)


def test_amounts_of_negatives_do_not_count():
    assert gain_at_k([1, 0, 1], [3, 2, 1], [10, 1000, 5], k=2) == 10
    assert gain_at_k(["no", "yes"], [1, 2], [7, 0], k=2, pos_label="no") == 7


@pytest.mark.parametrize("metric", [precision_at_k, recall_at_k, lift_at_k])
@pytest.mark.parametrize("k", [0, -1, 5, 0.0, 1.5, -0.1, float("nan")])
def test_k_out_of_range_is_a_sentence(metric, k):
    sentence = (
        f"The 'k' parameter of {metric.__name__} must be an int in the range [1, 4] (the number of cases) or "
        f"a float in the range (0, 1] (a share of the positives). Got {k!r} instead. Hint: k=1.0"
    )
    with pytest.raises(ValueError, match=re.escape(sentence)):
        metric([0, 1, 0, 1], [1, 2, 3, 4], k)


@pytest.mark.parametrize("k", ["3", None, True])
def test_k_of_another_type_is_a_sentence(k):
    with pytest.raises(TypeError, match=r"The 'k' parameter of precision_at_k must be an int in"):
        precision_at_k([0, 1], [1, 2], k)


def test_k_counts_weight_where_there_are_weights():
    assert precision_at_k([0, 1], [1, 2], 4, sample_weight=[1, 3]) == 0.75
    with pytest.raises(ValueError, match=r"range \[1, 4\] \(the sum of sample_weight\)"):
        precision_at_k([0, 1], [1, 2], 5, sample_weight=[1, 3])
    # A share of a total below one case is all there is.
    assert precision_at_k([0, 1], [1, 2], 1.0, sample_weight=[0.25, 0.25]) == 0.5


def test_unknown_choices_are_refused():
    with pytest.raises(
        ValueError, match=r"'of' parameter of recall_at_k must be one of 'positives', 'cases'\. Got 'all'"
    ):
        recall_at_k([0, 1], [1, 2], 1, of="all")
    with pytest.raises(ValueError, match=r"'ties' parameter of lift_at_k must be one of .* Got 'grouped' instead"):
        lift_at_k([0, 1], [1, 2], 1, ties="grouped")


@pytest.mark.parametrize("amount", [[1, -1], [1, np.nan], [np.inf, 1]])
def test_bad_amounts_are_refused(amount):
    with pytest.raises(
        ValueError, match=r"'amount' of gain_at_k must be finite and at least 0, but 1 of 2 values is not"
    ):
        gain_at_k([0, 1], [1, 2], amount, 1)


# --- at every k, and in a table -----------------------------------------------------------------------------


@given(ranked_cases(max_size=15), st.sampled_from(TIES))
@settings(max_examples=40)
def test_curves_hold_the_measure_at_every_k(case, ties):
    y, score = case
    amount = np.arange(len(y)) + 1.0
    k, precision = precision_at_k_curve(y, score, ties=ties)
    _, recall = recall_at_k_curve(y, score, ties=ties)
    _, gain = gain_at_k_curve(y, score, amount, ties=ties)
    assert k.tolist() == list(range(1, len(y) + 1))
    assert precision == pytest.approx([precision_at_k(y, score, int(i), ties=ties) for i in k])
    assert recall == pytest.approx([recall_at_k(y, score, int(i), ties=ties) for i in k])
    assert gain == pytest.approx([gain_at_k(y, score, amount, int(i), ties=ties) for i in k])


@pytest.mark.parametrize("ties", TIES)
def test_gains_table_agrees_with_the_measures_at_k(ties):
    y, score, _ = tied_table(n=203)
    amount = np.arange(203.0)
    table = gains_table(y, score, amount=amount, ties=ties)
    assert table["depth"].tolist() == [21, 41, 61, 82, 102, 122, 143, 163, 183, 203]
    for row, k in enumerate(table["depth"].tolist()):
        assert table["precision"][row] == pytest.approx(precision_at_k(y, score, k, ties=ties))
        assert table["recall"][row] == pytest.approx(recall_at_k(y, score, k, ties=ties))
        assert table["lift"][row] == pytest.approx(lift_at_k(y, score, k, ties=ties))
        assert table["cumulative_amount"][row] == pytest.approx(gain_at_k(y, score, amount, k, ties=ties))


def test_gains_table_slices_add_up():
    y, score, _ = tied_table(n=203)
    table = gains_table(y, score, n_groups=7, amount=np.ones(203))
    assert table["cases"].sum() == 203
    assert np.cumsum(table["cases"]).tolist() == table["depth"].tolist()
    assert np.cumsum(table["positives"]) == pytest.approx(table["cumulative_positives"])
    assert table["positives"] == pytest.approx(table["hit_rate"] * table["cases"])
    assert table["amount"] == pytest.approx(table["positives"])
    assert (table["recall"][-1], table["lift"][-1], table["amount_recall"][-1]) == pytest.approx((1, 1, 1))


def test_gains_table_takes_depths_as_cases_or_shares():
    y, score, _ = tied_table(n=200)
    by_cases = gains_table(y, score, depths=[2, 20, 200])
    by_shares = gains_table(y, score, depths=[0.01, 0.1, 1.0])
    assert by_cases["depth"].tolist() == by_shares["depth"].tolist() == [2, 20, 200]
    assert by_cases["depth"].dtype == np.int64
    assert "amount" not in by_cases
    assert by_cases["precision"].tolist() == by_shares["precision"].tolist()


@given(weighted_cases(max_size=8))
@settings(max_examples=30)
def test_weight_two_is_the_row_twice_in_gains_tables(case):
    y, score, weight = case
    y_rows, score_rows = repeat_rows(weight, y, score)
    weighted = gains_table(y, score, n_groups=2, sample_weight=weight)
    repeated = gains_table(y_rows, score_rows, n_groups=2)
    assert list(weighted) == list(repeated)
    for name, column in repeated.items():
        assert weighted[name] == pytest.approx(column), name


def test_nothing_to_find_is_no_division_by_zero():
    table = gains_table([0, 1, 0], [1, 2, 3], n_groups=3, amount=[5, 0, 5])
    assert table["amount_recall"].tolist() == [0, 0, 0]


@pytest.mark.parametrize("n_groups", [0, 4])
def test_groups_out_of_range_are_refused(n_groups):
    with pytest.raises(
        ValueError, match=rf"'n_groups' parameter of gains_table .* range \[1, 3\]\. Got {n_groups} instead"
    ):
        gains_table([0, 1, 0], [1, 2, 3], n_groups=n_groups)


def test_groups_of_another_type_are_refused():
    with pytest.raises(TypeError, match=r"'n_groups' parameter of gains_table must be an int"):
        gains_table([0, 1, 0], [1, 2, 3], n_groups=2.0)


@pytest.mark.parametrize("depths", [[2, 1], [1, 1], [0.1, 0.2]])
def test_depths_that_do_not_increase_are_refused(depths):
    with pytest.raises(ValueError, match=r"'depths' of gains_table must increase, each by at least one case\. Got \["):
        gains_table([0, 1, 0], [1, 2, 3], depths=depths)


@pytest.mark.parametrize("depths", [[], ["1"]])
def test_depths_that_are_not_numbers_are_refused(depths):
    with pytest.raises(ValueError, match=r"'depths' of gains_table must be a list of ints"):
        gains_table([0, 1, 0], [1, 2, 3], depths=depths)


def test_a_depth_beyond_the_table_is_refused():
    with pytest.raises(ValueError, match=r"'k' parameter of gains_table .* Got 4 instead"):
        gains_table([0, 1, 0], [1, 2, 3], depths=[1, 4])
