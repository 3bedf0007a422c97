import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_metrics import ranked_cases, repeat_rows, tied_table, weighted_cases
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
def test_weight_two_is_the_row_twice(case):
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
