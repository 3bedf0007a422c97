import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_metrics import found_in_order, over_tie_orders, ranked_cases
from toprank.metrics import (
    average_precision,
    bootstrap_interval,
    distinct_entity_precision_at_k,
    per_entity,
    precision_at_k,
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
