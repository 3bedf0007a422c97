"""The optimum: against its definition on small tables, and against rankings that try to beat it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from toprank.datasets import expected_average_precision, make_audit, optimal_average_precision, optimal_roc

probabilities = st.lists(st.sampled_from([0.0, 0.05, 0.3, 0.5, 0.9, 1.0]), min_size=1, max_size=6).filter(any)


def naive_expected_average_precision(probability, score):
    """Average over every label vector and every order of ties; mean number of positives below the line."""
    n, total = len(probability), 0.0
    orders = [
        order
        for order in itertools.permutations(range(n))
        if all(score[a] >= score[b] for a, b in itertools.pairwise(order))
    ]
    for labels in itertools.product([0, 1], repeat=n):
        weight = np.prod([p if y else 1.0 - p for p, y in zip(probability, labels, strict=True)])
        if weight == 0.0:
            continue
        for order in orders:
            ranked = np.array(labels)[list(order)]
            precision = np.cumsum(ranked) / np.arange(1, n + 1)
            total += weight * (precision * ranked).sum() / len(orders)
    return total / sum(probability)


@settings(deadline=None, max_examples=25)
@given(data=st.data(), probability=probabilities)
def test_expectation_equals_the_sum_over_all_labels(data, probability):
    n = len(probability)
    score = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    expected = naive_expected_average_precision(probability, score)
    assert expected_average_precision(probability, score) == pytest.approx(expected, rel=1e-9)


@settings(deadline=None, max_examples=200)
@given(data=st.data(), n=st.integers(1, 40), seed=st.integers(0, 10**6))
def test_no_ranking_has_a_larger_expectation(data, n, seed):
    probability = np.random.default_rng(seed).beta(0.3, 2.0, n)
    score = data.draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n))
    best = optimal_average_precision(probability)
    assert expected_average_precision(probability, score) <= best + 1e-12
    assert expected_average_precision(probability, np.log(probability + 1e-12)) == pytest.approx(best)


@settings(deadline=None, max_examples=50)
@given(probability=probabilities.filter(lambda values: min(values) < 1.0))
def test_roc_is_concave_from_corner_to_corner(probability):
    fpr, tpr = optimal_roc(probability)
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert (np.diff(fpr) >= 0.0).all()
    assert (np.diff(tpr) >= 0.0).all()
    turns = np.diff(tpr)[:-1] * np.diff(fpr)[1:] - np.diff(tpr)[1:] * np.diff(fpr)[:-1]
    assert (turns >= -1e-12).all()


def test_a_draw_of_labels_comes_near_the_optimum():
    data = make_audit(60_000, random_state=5)
    found = average_precision_score(data.y, data.probability)
    assert found == pytest.approx(optimal_average_precision(data.probability), abs=0.05)
    fpr, tpr = optimal_roc(data.probability)
    assert np.trapezoid(tpr, fpr) == pytest.approx(roc_auc_score(data.y, data.probability), abs=0.03)


def linear_scores(train, test):
    """Scores of a logistic regression on one-hot categories and standardised numbers, gaps filled with 0."""

    def table(data):
        columns = [
            np.where(np.equal(values, None), "missing", values)
            if values.dtype == object
            else np.nan_to_num(values).astype(object)
            for values in data.columns.values()
        ]
        return np.stack(columns, axis=1)

    names = list(train.columns)
    text = [names.index(name) for name in train.categorical_features]
    numbers = [i for i in range(len(names)) if i not in text]
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), text), (StandardScaler(), numbers)),
        LogisticRegression(max_iter=1000),
    )
    return model.fit(table(train), train.y).decision_function(table(test))


def test_optimum_is_far_above_linear_and_random_and_below_one():
    train, test = make_audit(30_000, drift=0.0, random_state=11).split()
    best = optimal_average_precision(test.probability)
    linear = expected_average_precision(test.probability, linear_scores(train, test))
    shuffled = np.random.default_rng(0).random(len(test))
    chance = expected_average_precision(test.probability, shuffled)
    assert 0.4 < best < 0.7
    assert 0.08 < linear < 0.6 * best
    assert chance < 0.05
    assert average_precision_score(test.y, test.probability) > average_precision_score(test.y, shuffled)


def test_more_mimicry_lowers_the_optimum():
    best = [optimal_average_precision(make_audit(20_000, mimicry=share).probability) for share in (0.0, 0.2, 0.5, 0.9)]
    assert best == sorted(best, reverse=True)
    assert best[0] > 0.7
    assert best[-1] < 0.1


@pytest.mark.parametrize("function", [optimal_average_precision, optimal_roc])
@pytest.mark.parametrize(
    ("probability", "sentence"),
    [
        ([], r"Got an array of shape \(0,\) instead"),
        ([[0.5]], r"Got an array of shape \(1, 1\) instead"),
        ([0.5, 1.5], "Got 1.5 in row 1 instead"),
        ([float("nan")], "Got nan in row 0 instead"),
        ([0.0, 0.0], "Got 2 zeros instead"),
    ],
)
def test_bad_probabilities_get_a_sentence(function, probability, sentence):
    with pytest.raises(ValueError, match=f"The 'probability' parameter of {function.__name__} .*{sentence}"):
        function(probability)


def test_bad_scores_and_no_negatives_get_a_sentence():
    with pytest.raises(ValueError, match="one score without NaN for each probability"):
        expected_average_precision([0.1, 0.2], [1.0])
    with pytest.raises(ValueError, match="1 of them NaN"):
        expected_average_precision([0.1, 0.2], [1.0, np.nan])
    with pytest.raises(ValueError, match="no negative case"):
        optimal_roc([1.0, 1.0])
