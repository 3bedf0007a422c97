import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_metrics import ranked_cases
from toprank.metrics import (
    average_precision,
    distinct_entity_precision_at_k,
    gain_at_k,
    per_period,
    precision_at_k,
    recall_at_k,
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
    y[period == 0] = 0  # one of the two periods has no positive, the other both classes or none
    y[1] = 1
    if y[period == 1].all():
        y = np.append(y, [0, 0])
        score, period = np.append(score, [0, 0]), np.append(period, [0, 1])
    order = data.draw(st.permutations(range(len(y))))
    value = per_period(precision_at_k, y, score, period, k=1)
    assert per_period(precision_at_k, y[order], score[order], period[order], k=1) == pytest.approx(value)


def test_periods_without_a_positive_count_as_zero_or_not_at_all():
    y, score, day = [1, 0, 0, 0], [4, 3, 2, 1], ["a", "a", "b", "b"]
    assert per_period(precision_at_k, y, score, day, k=1) == 0.5
    assert per_period(precision_at_k, y, score, day, k=1, empty=None) == 1.0
    assert per_period(recall_at_k, y, score, day, k=1, empty=1.0) == 1.0


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
    with pytest.raises(ValueError, match=r"but the 2 of period 7 are all positive\. Hint: use longer periods"):
        per_period(precision_at_k, [1, 1, 0], [1, 2, 3], [7, 7, 8], k=1)
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
