"""The optimum: against its definition on small tables, and against rankings that try to beat it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from toprank.datasets import (
    BoxPopulation,
    approximate_roc,
    expected_average_precision,
    make_audit,
    make_checkerboard,
    make_gaussians,
    make_quadratic_gaussians,
    optimal_auc,
    optimal_average_precision,
    optimal_roc,
)
from toprank.metrics.roc import RocCurve

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


@pytest.mark.parametrize("function", [optimal_average_precision, optimal_roc, optimal_auc])
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
    for function in (optimal_roc, optimal_auc):
        with pytest.raises(ValueError, match=f"{function.__name__} needs .*no negative case"):
            function([1.0, 1.0])


# --- populations --------------------------------------------------------------------------------------------


SMOOTH = {
    "gaussians": make_gaussians(1, random_state=0).population,
    "rare": make_gaussians(1, positive_rate=0.02, distance=2.5, random_state=0).population,
    "quadratic": make_quadratic_gaussians(1, positive_rate=0.3, random_state=0).population,
}


@settings(max_examples=50)
@given(probability=probabilities.filter(lambda values: min(values) < 1.0))
def test_auc_of_rows_is_the_area_of_their_curve(probability):
    fpr, tpr = optimal_roc(probability)
    assert optimal_auc(probability) == pytest.approx(np.trapezoid(tpr, fpr))


def test_data_and_their_population_have_the_same_optimum():
    data = make_checkerboard(100, random_state=0)
    assert isinstance(optimal_roc(data), RocCurve)
    assert optimal_roc(data) == optimal_roc(data.population)
    assert optimal_auc(data) == optimal_auc(data.population) == pytest.approx(0.9)


def test_the_curve_of_many_rows_tends_to_that_of_their_population():
    data = make_gaussians(200_000, random_state=0)
    rows = RocCurve(*optimal_roc(data.probability))
    assert rows.distance(optimal_roc(data)) < 0.002


@pytest.mark.parametrize("name", SMOOTH)
def test_the_first_knot_is_where_eta_is_the_positive_rate(name):
    """Proposition 19; the slope there is 1, so that no other point is farther above the diagonal."""
    population = SMOOTH[name]
    diagonal, first = approximate_roc(population, 1)
    assert diagonal.to_dict() == {"alpha": [0.0, 1.0], "beta": [0.0, 1.0]}
    alpha, beta = population.rates_above(population.positive_rate)
    assert (first.alpha[1], first.beta[1]) == (pytest.approx(alpha), pytest.approx(beta))
    best = optimal_roc(population)
    assert first.beta[1] - first.alpha[1] >= (best.beta - best.alpha).max() - 1e-9


def naive_next_level(population, curve):
    """The best knot between each two neighbours by trying 200,000 thresholds: A_{N+1}(t) of section III-C."""
    alpha, beta = population.rates_above(expit(np.linspace(-15.0, 15.0, 200_001)))
    knots = [(0.0, 0.0)]
    for k in range(len(curve.alpha) - 1):
        inside = (alpha >= curve.alpha[k]) & (alpha <= curve.alpha[k + 1])
        gain = np.diff(curve.alpha)[k] * beta[inside] - np.diff(curve.beta)[k] * alpha[inside]
        knots += [(alpha[inside][gain.argmax()], beta[inside][gain.argmax()]), (curve.alpha[k + 1], curve.beta[k + 1])]
    return RocCurve(*np.array(knots).T)


@pytest.mark.parametrize("name", SMOOTH)
def test_every_level_takes_the_knots_that_add_most_to_the_area(name):
    curves = approximate_roc(SMOOTH[name], 4)
    for level in range(4):
        expected = naive_next_level(SMOOTH[name], curves[level])
        assert curves[level + 1].alpha == pytest.approx(expected.alpha, abs=2e-4)
        assert curves[level + 1].area == pytest.approx(expected.area, abs=1e-8)


@pytest.mark.parametrize("name", SMOOTH)
def test_levels_are_concave_nested_and_rise_to_the_optimum(name):
    population, best = SMOOTH[name], optimal_roc(SMOOTH[name])
    curves = approximate_roc(population, 8)
    assert [len(curve.alpha) for curve in curves] == [2**d + 1 for d in range(9)]
    for coarse, fine in itertools.pairwise(curves):
        assert np.array_equal(fine.alpha[::2], coarse.alpha)
        assert np.array_equal(fine.beta[::2], coarse.beta)
    for curve in curves:
        assert curve.is_concave()
        assert np.abs(best(curve.alpha[1:]) - curve.beta[1:]).max() < 3e-5


@pytest.mark.parametrize("name", SMOOTH)
def test_the_missing_area_falls_fourfold_from_level_to_level(name):
    """Proposition 15 with N = 2^D."""
    population = SMOOTH[name]
    missing = np.array([optimal_auc(population) - curve.area for curve in approximate_roc(population, 10)])
    assert (missing > 0.0).all()
    ratio = missing[1:] / missing[:-1]
    assert (ratio < 0.28).all()
    assert ratio[5:] == pytest.approx(0.25, abs=0.01)


@settings(max_examples=40)
@given(data=st.data(), n=st.integers(2, 9))
def test_a_broken_line_is_reached_and_then_left_alone(data, n):
    """With n values of eta no level cuts a piece of the curve, and n - 1 levels find all of them."""
    rates = data.draw(st.lists(st.sampled_from(np.arange(0.0, 1.01, 0.1).tolist()), min_size=n, max_size=n))
    if len(set(rates)) == 1 or not 0.0 < np.mean(rates) < 1.0:
        rates = [0.2, 0.7, *rates[2:]]
    edges = np.linspace(0.0, 1.0, n + 1)
    population = BoxPopulation(edges[:-1, None], edges[1:, None], rates, 0.5)
    best, curves = optimal_roc(population), approximate_roc(population, n)
    assert curves[-1] == curves[-2] == best
    assert all(curve.is_concave() for curve in curves)


def test_bad_populations_and_depths_get_a_sentence():
    with pytest.raises(TypeError, match=r"must be a Population or SimulatedData. Got list instead. Hint:"):
        approximate_roc([0.1, 0.9], 2)
    with pytest.raises(ValueError, match=r"'depth' parameter of approximate_roc .* \[0, 20\]. Got -1 instead"):
        approximate_roc(SMOOTH["gaussians"], -1)
    assert len(approximate_roc(SMOOTH["gaussians"], 0)) == 1
