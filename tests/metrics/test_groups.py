import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_metrics import depth_of_share, found_in_order, over_tie_orders, ranked_cases
from toprank.metrics import (
    average_precision,
    bootstrap_interval,
    distinct_entity_precision_at_k,
    gain_at_k,
    lift_at_k,
    per_entity,
    per_period,
    precision_at_k,
    recall_at_k,
    roc_auc,
    values_per_period,
)

TIES = ("expected", "best", "worst")


def entities_one_by_one(y, score, entities):
    """Labels and highest scores of the entities, sorted by name."""
    rows = {name: [row for row, owner in enumerate(entities) if owner == name] for name in sorted(set(entities))}
    return [max(y[row] for row in part) for part in rows.values()], [
        max(score[row] for row in part) for part in rows.values()
    ]


@st.composite
def owned_cases(draw, max_size=8, n_scores=3):
    y, score = draw(ranked_cases(max_size=max_size, n_scores=n_scores))
    return y, score, draw(st.lists(st.sampled_from("abcde"), min_size=len(y), max_size=len(y)))


@given(owned_cases(), st.sampled_from(TIES), st.data())
@settings(max_examples=100)
def test_precision_is_that_over_all_orders_of_tied_entities(case, ties, data):
    y_entity, score_entity = entities_one_by_one(*case)
    k = data.draw(st.integers(1, len(y_entity)))
    found = over_tie_orders(lambda order: found_in_order(y_entity, order, k), score_entity, ties)
    assert distinct_entity_precision_at_k(*case, k, ties=ties) == pytest.approx(found / k)


@given(st.permutations(range(12)), st.integers(1, 2**12 - 2), st.data())
def test_without_ties_it_walks_down_the_rows_and_meets_k_new_entities(score, bits, data):
    y = [bits >> row & 1 for row in range(12)]
    entities = data.draw(st.lists(st.integers(0, 5), min_size=12, max_size=12))
    k = data.draw(st.integers(1, len(set(entities))))
    alerts: list[int] = []
    for row in sorted(range(12), key=lambda row: -score[row]):
        if entities[row] not in alerts and len(alerts) < k:
            alerts.append(entities[row])
    hits = {entity for entity, label in zip(entities, y, strict=True) if label}
    expected = sum(entity in hits for entity in alerts) / k
    assert distinct_entity_precision_at_k(y, score, entities, k) == pytest.approx(expected)


@given(owned_cases(max_size=20))
def test_alerts_are_distinct_and_every_entity_is_there(case):
    y, score, entities = case
    cases = per_entity(y, score, entities)
    assert cases.entities.tolist() == list(dict.fromkeys(entities))
    expected = dict(zip(sorted(set(entities)), zip(*entities_one_by_one(*case), strict=True), strict=True))
    for entity, label, highest in zip(*cases, strict=True):
        assert (label, highest) == expected[entity]


@given(owned_cases(max_size=20), st.data())
def test_the_order_of_the_rows_changes_nothing(case, data):
    order = data.draw(st.permutations(range(len(case[0]))))
    shuffled = [[column[row] for row in order] for column in case]
    for k in (1, 0.5, 1.0):
        assert distinct_entity_precision_at_k(*shuffled, k) == pytest.approx(distinct_entity_precision_at_k(*case, k))


@given(ranked_cases(max_size=15), st.sampled_from(TIES), st.data())
def test_one_row_per_entity_is_precision_at_k(case, ties, data):
    y, score = case
    k = data.draw(st.one_of(st.integers(1, len(y)), st.sampled_from([0.3, 0.5, 1.0])))
    of = data.draw(st.sampled_from(["positives", "cases"]))
    value = distinct_entity_precision_at_k(y, score, np.arange(len(y)), k, of=of, ties=ties)
    assert value == pytest.approx(precision_at_k(y, score, k, of=of, ties=ties))


def test_an_entity_is_a_hit_though_its_positive_row_scores_low():
    assert distinct_entity_precision_at_k([0, 1, 0], [0.9, 0.1, 0.5], ["a", "a", "b"], 1) == 1.0


def test_entities_may_all_be_positive():
    assert distinct_entity_precision_at_k([0, 1, 1], [1, 2, 3], ["a", "a", "b"], 2) == 1.0


def test_a_share_counts_positive_entities_not_rows():
    y, score, entities = [1, 1, 1, 0, 0, 0], [6, 5, 4, 3, 2, 1], [1, 1, 1, 2, 3, 4]
    assert distinct_entity_precision_at_k(y, score, entities, 1.0) == 1.0
    assert distinct_entity_precision_at_k(y, score, entities, 0.5, of="cases") == 0.5


@pytest.mark.parametrize(
    "entities",
    [
        pd.Series(["x", "y", "x"]),
        pd.Series(["x", "y", "x"], dtype="category"),
        pl.Series(["x", "y", "x"]),
        np.array(["x", "y", "x"], dtype=object),
        [(1, "a"), (2, "b"), (1, "a")],
        np.array(["2024-01-01", "2024-01-02", "2024-01-01"], dtype="datetime64[D]"),
        [7.5, 8.5, 7.5],
    ],
    ids=lambda entities: type(entities).__name__,
)
def test_identifiers_of_all_kinds(entities):
    if isinstance(entities[0], tuple):
        values = np.empty(3, dtype=object)
        values[:] = entities
        entities = values
    cases = per_entity([0, 0, 1], [1, 3, 2], entities)
    assert cases.y_true.tolist() == [True, False]
    assert cases.score.tolist() == [2, 3]


def test_measures_and_intervals_take_the_cases():
    generator = np.random.default_rng(0)
    entities = generator.integers(0, 60, 300)
    y = (generator.random(300) < 0.05).astype(int)
    cases = per_entity(y, generator.random(300) + y, entities)
    interval = bootstrap_interval(precision_at_k, cases.y_true, cases.score, k=10, n_resamples=50, random_state=0)
    assert interval.low <= interval.value <= interval.high
    assert interval.value == distinct_entity_precision_at_k(cases.y_true, cases.score, cases.entities, 10)
    assert average_precision(cases.y_true, cases.score) > 0.5


def test_the_positive_label_can_be_chosen():
    y = ["fraud", "ok", "ok"]
    assert distinct_entity_precision_at_k(y, [3, 2, 1], [1, 2, 3], 1) == 0.0
    assert distinct_entity_precision_at_k(y, [3, 2, 1], [1, 2, 3], 1, pos_label="fraud") == 1.0


@pytest.mark.parametrize("entities", [[1.0, np.nan, 2.0], ["a", None, "b"], pd.Series(["a", None, "b"])])
def test_missing_entities_are_a_sentence(entities):
    sentence = (
        "'entities' of per_entity must have a value for every row, but 1 of 3 are missing (the first in row 1). Hint"
    )
    with pytest.raises(ValueError, match=re.escape(sentence)):
        per_entity([0, 1, 0], [1, 2, 3], entities)


def test_bad_input_is_a_sentence():
    name = "distinct_entity_precision_at_k"
    with pytest.raises(
        ValueError, match=rf"'k' parameter of {name} must be at most the number of distinct entities \(2"
    ):
        distinct_entity_precision_at_k([0, 1, 0], [1, 2, 3], ["a", "a", "b"], 3)
    with pytest.raises(ValueError, match=rf"'entities' of {name} must have one value per row of y_true \(3 rows\)"):
        distinct_entity_precision_at_k([0, 1, 0], [1, 2, 3], ["a", "a"], 1)
    with pytest.raises(ValueError, match=rf"'ties' parameter of {name} must be one of"):
        distinct_entity_precision_at_k([0, 1, 0], [1, 2, 3], [1, 2, 3], 1, ties="grouped")
    with pytest.raises(ValueError, match=rf"'of' parameter of {name} must be one of"):
        distinct_entity_precision_at_k([0, 1, 0], [1, 2, 3], [1, 2, 3], 1.0, of="entities")
    with pytest.raises(TypeError, match=rf"'k' parameter of {name} must be an int"):
        distinct_entity_precision_at_k([0, 1, 0], [1, 2, 3], [1, 2, 3], "3")
    with pytest.raises(ValueError, match=rf"{name} needs both classes in y_true, but all 3 labels equal 0"):
        distinct_entity_precision_at_k([0, 0, 0], [1, 2, 3], [1, 2, 3], 1)
    unhashable = np.empty(2, dtype=object)
    unhashable[:] = [["a"], ["b"]]
    with pytest.raises(TypeError, match=r"'entities' of per_entity must be numbers, strings or other hashable values"):
        per_entity([0, 1], [1, 2], unhashable)


# --- periods ------------------------------------------------------------------------------------------------


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
def test_the_order_of_the_rows_changes_nothing_per_period(case, data):
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
    assert per_period(precision_at_k, y, score, day, sample_weight=[1, 1, 1, 1, 0.5], k=3) == pytest.approx(
        (1 / 3 + 1 / 1.5) / 2
    )


@pytest.mark.parametrize("k", [1, 2])
def test_a_day_with_less_weight_than_checks_is_checked_whole(k):
    y, score, day, weight = [1, 0, 1, 1], [4, 3, 2, 1], [1, 1, 2, 2], [0.3, 0.6, 0.5, 0.25]
    found = values_per_period(precision_at_k, y, score, day, k=k, sample_weight=weight)
    assert found.values == pytest.approx([1 / 3, 1.0])


def test_a_metric_of_ones_own_gets_whole_checks():
    def checks(y_true, score, *, k, sample_weight):
        return k

    found = values_per_period(checks, [1, 0, 1, 0], [4, 3, 2, 1], [1, 1, 2, 2], k=3, sample_weight=[0.3, 0.6, 2, 2.5])
    assert found.values.tolist() == [1, 3]


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


def test_bad_input_of_periods_is_a_sentence():
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
