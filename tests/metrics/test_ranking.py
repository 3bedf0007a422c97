import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from reference_metrics import (
    auc_over_pairs,
    average_precision_of_order,
    grouped_average_precision,
    over_tie_orders,
    pos_at_top_of,
    ranked_cases,
    repeat_rows,
    tied_table,
    weighted_cases,
)
from toprank.metrics import average_precision, pos_at_top, roc_auc
from toprank.metrics.ranking import harmonic_difference

TIES = ("expected", "best", "worst")
ALL_TIES = ("grouped", *TIES)


@given(ranked_cases(), st.sampled_from(TIES))
@example(([1, 0], [0, 0]), "expected")
@example(([0, 1, 1, 1, 0, 1], [2, 1, 1, 1, 1, 1]), "expected")
@settings(max_examples=60)
def test_average_precision_is_that_over_all_tie_orders(case, ties):
    y, score = case
    expected = over_tie_orders(lambda order: average_precision_of_order(y, order), score, ties)
    assert average_precision(y, score, ties=ties) == pytest.approx(expected, abs=1e-12)


@given(weighted_cases(weights=st.sampled_from([0, 0.5, 1, 2.25])))
@settings(max_examples=60)
def test_grouped_average_precision_and_auc_are_their_definitions(case):
    y, score, weight = case
    assert average_precision(y, score, sample_weight=weight) == pytest.approx(
        grouped_average_precision(y, score, weight), abs=1e-12
    )
    assert roc_auc(y, score, sample_weight=weight) == pytest.approx(auc_over_pairs(y, score, weight), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_equal_to_scikit_learn_with_ties_and_weights(seed):
    y, score, weight = tied_table(seed=seed)
    for sample_weight in (None, weight):
        assert average_precision(y, score, sample_weight=sample_weight) == pytest.approx(
            average_precision_score(y, score, sample_weight=sample_weight), abs=1e-12
        )
        assert roc_auc(y, score, sample_weight=sample_weight) == pytest.approx(
            roc_auc_score(y, score, sample_weight=sample_weight), abs=1e-12
        )


@given(ranked_cases(max_size=30, n_scores=5))
def test_best_expected_and_worst_are_ordered(case):
    worst, expected, best = (average_precision(*case, ties=ties) for ties in ("worst", "expected", "best"))
    assert worst <= expected + 1e-12
    assert expected <= best + 1e-12
    assert worst <= average_precision(*case) + 1e-12


@given(st.permutations(range(12)), st.integers(1, 2**12 - 2))
def test_without_ties_every_choice_is_the_same(score, bits):
    y = [bits >> row & 1 for row in range(12)]
    values = [average_precision(y, score, ties=ties) for ties in ALL_TIES]
    assert values == pytest.approx([average_precision_score(y, score)] * 4, abs=1e-12)


@given(weighted_cases(), st.sampled_from(ALL_TIES))
@settings(max_examples=60)
def test_weight_two_is_the_row_twice(case, ties):
    y, score, weight = case
    y_rows, score_rows = repeat_rows(weight, y, score)
    assert average_precision(y, score, sample_weight=weight, ties=ties) == pytest.approx(
        average_precision(y_rows, score_rows, ties=ties), abs=1e-12
    )
    assert roc_auc(y, score, sample_weight=weight) == pytest.approx(roc_auc(y_rows, score_rows), abs=1e-12)
    assert pos_at_top(y, score, sample_weight=weight) == pytest.approx(pos_at_top(y_rows, score_rows), abs=1e-12)


@given(ranked_cases(max_size=15, n_scores=6))
def test_pos_at_top_is_the_share_above_the_best_negative(case):
    assert pos_at_top(*case) == pytest.approx(pos_at_top_of(*case))


def test_pos_at_top_does_not_count_a_tie_with_the_first_negative():
    assert pos_at_top([1, 1, 0], [3, 2, 2]) == 0.5
    assert pos_at_top([1, 1, 0], [2, 2, 2]) == 0.0
    assert pos_at_top([1, 1, 0], [3, 2, 1]) == 1.0


@given(ranked_cases(max_size=10), st.randoms(use_true_random=False))
def test_row_order_changes_nothing(case, random):
    y, score = case
    rows = list(range(len(y)))
    random.shuffle(rows)
    for ties in ALL_TIES:
        assert average_precision(np.take(y, rows), np.take(score, rows), ties=ties) == average_precision(
            y, score, ties=ties
        )


@pytest.mark.parametrize("start", [0, 1, 5, 31, 32, 33, 1_000, 10**6, 10**9])
@pytest.mark.parametrize("n", [0, 1, 2, 30, 40, 1_000])
def test_harmonic_difference_keeps_its_digits(start, n):
    exact = float(np.sum(1 / np.arange(start + 1, start + n + 1, dtype=np.longdouble)))
    assert harmonic_difference(np.array([float(start)]), np.array([float(n)]))[0] == pytest.approx(exact, rel=1e-14)


def test_large_tied_groups_match_the_sum_over_positions():
    n, n_positive = 200_000, 3_000
    y = np.arange(n) < n_positive
    j = np.arange(1, n + 1)
    expected = np.sum((1 + (j - 1) * (n_positive - 1) / (n - 1)) / j) / n
    assert average_precision(y, np.zeros(n), ties="expected") == pytest.approx(expected, rel=1e-11)


def test_a_perfect_ranking_is_exactly_one():
    y = np.array([1, 1, 1, 0, 0])
    weight = [0.1, 0.7, 0.3, 0.2, 0.1]
    assert average_precision(y, y, sample_weight=weight) == 1.0
    assert roc_auc(y, y, sample_weight=weight) == 1.0
    assert roc_auc(y, -y, sample_weight=weight) == 0.0


def test_scores_keep_their_dtype():
    """Neighbouring large ints, unsigned ints and infinities are ranked as they are."""
    large = 2**60
    assert average_precision([0, 1], np.array([large, large + 1])) == 1.0
    assert average_precision([0, 0, 1], np.array([0, 1, 2], dtype=np.uint8), ties="expected") == 1.0
    assert average_precision([0, 1, 0], [-np.inf, np.inf, 0.0]) == 1.0
    assert average_precision([0, 1], np.array([False, True])) == 1.0


def test_weights_that_are_not_whole_are_refused_unless_ties_are_grouped():
    with pytest.raises(ValueError, match=r"must be whole numbers .* with ties='expected'\. Got 0\.5 instead\. Hint"):
        average_precision([0, 1], [0, 1], sample_weight=[1, 0.5], ties="expected")


def test_unknown_ties_are_refused():
    with pytest.raises(ValueError, match=r"'ties' parameter of average_precision must be one of 'grouped', .*'random'"):
        average_precision([0, 1], [0, 1], ties="random")
