import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_metrics import depth_of_share, found_in_order, over_tie_orders, ranked_cases
from toprank.metrics import (
    average_precision,
    distinct_entity_precision_at_k,
    gain_at_k,
    lift_at_k,
    per_period,
    precision_at_k,
    recall_at_k,
    roc_auc,
    values_per_period,
)


def table(n_days=6, seed=0):
    """Days of 10 to 30 rows, both classes in each: (y, score, amount, entity, day), rows shuffled."""
    generator = np.random.default_rng(seed)
    day = generator.permutation(np.repeat(np.arange(n_days), generator.integers(10, 31, n_days)))
    y = (generator.random(len(day)) < 0.3).astype(int)
    for value in range(n_days):
        y[np.flatnonzero(day == value)[:2]] = 0, 1
    score = np.round(generator.random(len(day)) + 0.2 * y, 1)
    return y, score, generator.integers(1, 100, len(day)).astype(float), generator.integers(0, 12, len(day)), day


def test_it_is_the_mean_of_the_measure_of_each_day():
    y, score, amount, entity, day = table()
    days = [day == value for value in np.unique(day)]
    assert per_period(precision_at_k, y, score, day, k=5) == pytest.approx(
        np.mean([precision_at_k(y[part], score[part], 5) for part in days])
    )
    assert per_period(gain_at_k, y, score, day, amount=amount, k=3, ties="worst") == pytest.approx(
        np.mean([gain_at_k(y[part], score[part], amount[part], 3, ties="worst") for part in days])
    )
    assert per_period(distinct_entity_precision_at_k, y, score, day, entities=entity, k=4) == pytest.approx(
        np.mean([distinct_entity_precision_at_k(y[part], score[part], entity[part], 4) for part in days])
    )
    weight = np.arange(len(y)) % 3
    assert per_period(average_precision, y, score, day, sample_weight=weight) == pytest.approx(
        np.mean([average_precision(y[part], score[part], sample_weight=weight[part]) for part in days])
    )


@given(ranked_cases(max_size=20, n_scores=5))
def test_one_period_is_the_measure_itself(case):
    y, score = case
    assert per_period(average_precision, y, score, np.zeros(len(y))) == pytest.approx(average_precision(y, score))


@given(ranked_cases(max_size=20, n_scores=5), st.data())
def test_the_order_of_the_rows_changes_nothing(case, data):
    y, score = map(np.array, case)
    period = np.arange(len(y)) % 2
    y[period == 0] = 0  # one of the two periods has no positive, the other may have no negative
    y[1] = 1
    order = data.draw(st.permutations(range(len(y))))
    value = per_period(precision_at_k, y, score, period, k=1)
    assert per_period(precision_at_k, y[order], score[order], period[order], k=1) == pytest.approx(value)


def test_periods_without_a_positive_count_as_zero_or_not_at_all():
    y, score, day = [1, 0, 0, 0], [4, 3, 2, 1], ["a", "a", "b", "b"]
    assert per_period(precision_at_k, y, score, day, k=1) == 0.5
    assert per_period(precision_at_k, y, score, day, k=1, empty=None) == 1.0
    assert per_period(recall_at_k, y, score, day, k=1, empty=1.0) == 1.0


K = st.one_of(st.integers(1, 7), st.sampled_from([1, 20, 40, 50, 75, 100]).map(lambda percent: (percent,)))
SCORES = st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 2.0]), min_size=1, max_size=5)


@given(SCORES, K, st.sampled_from(["positives", "cases"]), st.sampled_from(["expected", "best", "worst"]), st.data())
def test_what_checks_find_where_all_are_positive(score, k, of, ties, data):
    n = len(score)
    depth = depth_of_share(k[0], n) if isinstance(k, tuple) else min(k, n)
    amount = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    options = {"k": k[0] / 100 if isinstance(k, tuple) else k, "of": of, "ties": ties, "pos_label": "bad"}
    rows = [["bad"] * n + ["good", "bad"], [*score, 1, 0], [1] * n + [2, 2]]

    def value(metric, **columns):
        return values_per_period(metric, *rows, **{**options, **columns}).values[0]

    money = over_tie_orders(lambda order: found_in_order([1] * n, order, depth, amount), score, ties)
    assert value(gain_at_k, amount=[*amount, 7, 7]) == pytest.approx(money)
    assert value(precision_at_k) == 1.0
    assert value(recall_at_k) == pytest.approx(depth / n)
    assert value(distinct_entity_precision_at_k, entities=[*("abcab"[:n]), "a", "b"]) == 1.0


@given(SCORES, st.one_of(st.integers(1, 7), st.sampled_from([0.2, 0.5, 1.0])), st.sampled_from(["positives", "cases"]))
def test_where_all_are_positive_weight_two_is_the_row_twice(score, k, of):
    n = len(score)
    weight, amount, day = 1 + np.arange(n) % 2, np.arange(1, n + 1), np.zeros(n)
    twice = np.repeat(np.arange(n), weight)
    for metric in (precision_at_k, recall_at_k):
        weighted = per_period(metric, np.ones(n), score, day, k=k, of=of, pos_label=1, sample_weight=weight)
        assert weighted == pytest.approx(
            per_period(metric, np.ones(len(twice)), np.array(score)[twice], day[twice], k=k, of=of, pos_label=1)
        )
    weighted = per_period(
        gain_at_k, np.ones(n), score, day, amount=amount, k=k, of=of, pos_label=1, sample_weight=weight
    )
    copies = {"amount": amount[twice], "k": k, "of": of, "pos_label": 1}
    assert weighted == pytest.approx(
        per_period(gain_at_k, np.ones(len(twice)), np.array(score)[twice], day[twice], **copies)
    )


def test_where_all_are_positive_a_share_ends_at_the_last_case():
    day, options = [1, 1], {"of": "cases", "pos_label": 1}
    assert per_period(precision_at_k, [1, 1], [2, 1], day, sample_weight=[1.0, 0.5], **options) == 1.0
    assert per_period(gain_at_k, [1, 1], [2, 1], day, amount=[4, 2], sample_weight=[1.0, 0.5], **options) == 5.0
    assert per_period(recall_at_k, [1, 1], [2, 1], day, **options) == 1.0
    assert per_period(gain_at_k, [1, 1], [2**53, 2**53 + 1], day, amount=[4, 2], k=1, pos_label=1) == 2.0


def test_with_the_positive_label_named_there_may_be_none():
    assert per_period(precision_at_k, [0, 0], [1, 2], [1, 2], k=1, pos_label=1) == 0.0
    with pytest.raises(ValueError, match=r"per_period needs a period with a positive case, but none of the 2 has one"):
        per_period(precision_at_k, [0, 0], [1, 2], [1, 2], k=1, pos_label=1, empty=None)
    with pytest.raises(ValueError, match=r"per_period needs both classes in y_true, but all 2 labels equal 0"):
        per_period(precision_at_k, [0, 0], [1, 2], [1, 2], k=1)


def test_a_quiet_day_has_fewer_checks():
    y, score, day = [1, 0, 0, 1, 0], [5, 4, 3, 2, 1], [1, 1, 1, 2, 2]
    assert per_period(precision_at_k, y, score, day, k=3) == pytest.approx((1 / 3 + 1 / 2) / 2)
    entity = [1, 1, 2, 3, 4]
    assert per_period(distinct_entity_precision_at_k, y, score, day, entities=entity, k=3) == 0.5
    assert per_period(precision_at_k, y, score, day, sample_weight=[1, 1, 1, 1, 0.5], k=3) == pytest.approx(2 / 3)


def test_a_share_is_one_of_each_period():
    y, score, day = [1, 1, 0, 1, 0, 0], [6, 5, 4, 1, 3, 2], [1, 1, 1, 2, 2, 2]
    assert per_period(precision_at_k, y, score, day, k=1.0) == pytest.approx((1 + 0) / 2)


def test_rows_of_weight_zero_are_no_rows():
    y, score, day, weight = [1, 0, 1, 0, 0], [5, 4, 3, 2, 1], [1, 1, 2, 2, 3], [1, 1, 0, 1, 0]
    found = values_per_period(precision_at_k, y, score, day, k=1, sample_weight=weight)
    assert found.periods.tolist() == [1, 2]
    assert found.values.tolist() == [1.0, 0.0]


def test_values_come_in_the_order_of_the_periods():
    day = pd.to_datetime(pd.Series(["2024-03-02", "2024-03-02", "2024-03-01", "2024-03-01"]))
    found = values_per_period(gain_at_k, [1, 0, 1, 0], [4, 3, 2, 1], day, amount=[10, 0, 20, 0], k=1)
    assert found.periods.astype("datetime64[D]").astype(str).tolist() == ["2024-03-01", "2024-03-02"]
    assert found.values.tolist() == [20.0, 10.0]
    mixed = np.array([2, "a", 2, "a"], dtype=object)
    assert values_per_period(gain_at_k, [1, 0, 0, 1], [4, 3, 2, 1], mixed, amount=[1] * 4, k=1).periods.tolist() == [
        2,
        "a",
    ]


def test_bad_input_is_a_sentence():
    for metric in (average_precision, roc_auc, lift_at_k):
        with pytest.raises(ValueError, match=r"but all 2 cases of period 7 are positive\. Hint: use longer periods"):
            per_period(metric, [1, 1, 0], [1, 2, 3], [7, 7, 8])
    with pytest.raises(ValueError, match=r"'score' of precision_at_k must be free of NaN, but 1 of 2 scores are NaN"):
        per_period(precision_at_k, [1, 1, 0], [1, np.nan, 3], [7, 7, 8], k=1)
    with pytest.raises(ValueError, match=r"'amount' of gain_at_k must be finite and at least 0, but 1 of 2 values is"):
        per_period(gain_at_k, [1, 1, 0], [1, 2, 3], [7, 7, 8], amount=[1, -1, 1], k=1)
    with pytest.raises(ValueError, match=r"'of' parameter of precision_at_k must be one of 'positives', 'cases'"):
        per_period(precision_at_k, [1, 1, 0], [1, 2, 3], [7, 7, 8], of="rows")
    with pytest.raises(ValueError, match=r"'periods' of per_period must have one value per row of y_true \(3 rows\)"):
        per_period(precision_at_k, [1, 1, 0], [1, 2, 3], [7, 7], k=1)
    with pytest.raises(ValueError, match=r"'periods' of per_period must have a value for every row, but 1 of 2 are"):
        per_period(precision_at_k, [1, 0], [1, 2], np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"), k=1)
    with pytest.raises(ValueError, match=r"'amount' of values_per_period must have one value per row"):
        values_per_period(gain_at_k, [1, 0], [1, 2], [1, 1], amount=[1], k=1)
    with pytest.raises(TypeError, match=r"'empty' parameter of per_period must be a number or None\. Got 'skip'"):
        per_period(precision_at_k, [1, 0], [1, 2], [1, 1], k=1, empty="skip")
    with pytest.raises(ValueError, match=r"'pos_label' parameter of per_period must be one of the labels"):
        per_period(precision_at_k, [1, 0], [1, 2], [1, 1], k=1, pos_label=2)
