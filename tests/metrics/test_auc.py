from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_metrics import ranked_cases, repeat_rows, tied_table, weighted_cases
from toprank.metrics import auc_interval, delong_test, roc_auc
from toprank.metrics.auc import components
from toprank.metrics.checks import check_rows


def error_over_pairs(y, *scores):
    """DeLong's standard error of an area, or of a difference of two, from the table of all pairs."""
    positive, negative = np.flatnonzero(np.array(y) == 1), np.flatnonzero(np.array(y) == 0)
    table = np.zeros((len(positive), len(negative)))
    for sign, score in zip((1, -1), scores, strict=False):
        for (i, a), (j, b) in product(enumerate(positive), enumerate(negative)):
            table[i, j] += sign * ((score[a] > score[b]) + 0.5 * (score[a] == score[b]))
    of_positive, of_negative = table.mean(axis=1), table.mean(axis=0)
    return np.sqrt(of_positive.var(ddof=1) / len(positive) + of_negative.var(ddof=1) / len(negative))


def parts_of(y, score, weight=None):
    return components(check_rows(y, score, sample_weight=weight, caller="test"))


def has_two_of_each(case):
    return 2 <= sum(case[0]) <= len(case[0]) - 2


def normal_scores(generator, n_positive, n_negative, shift):
    y = np.arange(n_positive + n_negative) < n_positive
    return y, generator.normal(size=len(y)) + shift * y


# --- the components -----------------------------------------------------------------------------------------


@given(ranked_cases(max_size=14, n_scores=6).filter(has_two_of_each))
def test_the_error_is_that_of_the_definition(case):
    y, score = case
    parts = parts_of(y, score)
    assert parts.area == pytest.approx(roc_auc(y, score), abs=1e-12)
    assert parts.error == pytest.approx(error_over_pairs(y, score), abs=1e-12)
    smaller, larger = sorted((sum(y), len(y) - sum(y)))
    if parts.error > 0:
        assert smaller - 1 - 1e-9 <= parts.freedom <= smaller + larger - 2 + 1e-9


@given(ranked_cases(max_size=14, n_scores=6).filter(has_two_of_each), st.data())
def test_the_error_of_a_difference_is_that_of_the_definition(case, data):
    y, score = case
    other = data.draw(st.lists(st.integers(0, 5), min_size=len(y), max_size=len(y)))
    gap = parts_of(y, score).minus(parts_of(y, other))
    assert gap.error == pytest.approx(error_over_pairs(y, score, other), abs=1e-12)


@given(weighted_cases())
def test_weight_two_is_the_row_twice(case):
    y, score, weight = case
    y_rows, score_rows = repeat_rows(weight, y, score)
    found, expected = auc_interval(y, score, sample_weight=weight), auc_interval(y_rows, score_rows)
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))
    other, other_rows = score[::-1], np.repeat(score[::-1], weight)
    found_test = delong_test(y, score, other, sample_weight=weight)
    expected_test = delong_test(y_rows, score_rows, other_rows)
    assert found_test.p_value == pytest.approx(expected_test.p_value)
    assert found_test.difference == pytest.approx(expected_test.difference, abs=1e-12)


# --- the interval -------------------------------------------------------------------------------------------


@given(ranked_cases(max_size=20, n_scores=6))
def test_ends_are_in_order_and_turn_with_the_score(case):
    y, score = case
    interval = auc_interval(y, score)
    assert 0 <= interval.low <= interval.value <= interval.high <= 1
    assert interval.low < interval.high
    turned = auc_interval(y, -np.array(score))
    assert (turned.low, turned.high) == pytest.approx((1 - interval.high, 1 - interval.low), abs=1e-9)
    wider = auc_interval(y, score, level=0.99)
    assert wider.low <= interval.low
    assert interval.high <= wider.high


@pytest.mark.parametrize(("n_positive", "n_negative", "shift"), [(60, 300, 1.0), (10, 200, 1.0), (40, 40, 2.0)])
def test_the_interval_covers_the_true_area(n_positive, n_negative, shift):
    """Normal scores: the area is known."""
    generator = np.random.default_rng(0)
    area = NormalDist().cdf(shift / np.sqrt(2))
    intervals = [auc_interval(*normal_scores(generator, n_positive, n_negative, shift)) for _ in range(2000)]
    assert 0.93 <= np.mean([interval.low <= area <= interval.high for interval in intervals]) <= 0.97


def test_with_many_cases_it_is_the_normal_interval():
    y, score = normal_scores(np.random.default_rng(1), 5000, 5000, 0.3)
    interval, error = auc_interval(y, score), parts_of(y, score).error
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * error, rel=1e-3)


@pytest.mark.parametrize("m", [1, 2, 10, 100])
def test_a_perfect_ranking_has_the_exact_bound(m):
    """With the true area at the lower end, m pairs without a case in common are all won with chance 2.5 %."""
    y = np.arange(3 * m) < m
    interval = auc_interval(y, y)
    assert interval.value == interval.high == 1
    assert interval.low**m == pytest.approx(0.025)
    assert auc_interval(y, ~y).high == pytest.approx(1 - interval.low)


def test_one_case_of_a_class_and_equal_scores_leave_wide_intervals():
    one = auc_interval([1, 0, 0, 0], [2.5, 1, 2, 3])
    assert one.value == pytest.approx(2 / 3)
    assert one.low < 0.1
    assert one.high > 0.95
    flat = auc_interval([0, 1] * 50, np.zeros(100))
    assert flat.value == 0.5
    assert (flat.low, flat.high) == pytest.approx((0.355, 0.645), abs=1e-3)


# --- the test -----------------------------------------------------------------------------------------------


def test_equal_areas_are_told_apart_as_often_as_the_level_says():
    generator = np.random.default_rng(0)
    found = []
    for _ in range(400):
        y, score = normal_scores(generator, 15, 150, 1.0)
        noise = generator.normal(size=(2, len(y)))
        found.append(delong_test(y, score + noise[0], score + noise[1]).p_value < 0.05)
    assert 0.02 <= np.mean(found) <= 0.08


def test_the_interval_of_the_difference_covers_it():
    generator = np.random.default_rng(2)
    true = NormalDist().cdf(1 / np.sqrt(2)) - NormalDist().cdf(1 / np.sqrt(4))
    covered = []
    for _ in range(300):
        y, score = normal_scores(generator, 30, 150, 1.0)
        interval = delong_test(y, score, score + generator.normal(size=len(y))).interval
        covered.append(interval.low <= true <= interval.high)
    assert 0.91 <= np.mean(covered) <= 0.99


@given(ranked_cases(max_size=14, n_scores=6), st.data())
def test_the_sides_are_symmetric(case, data):
    y, a = case
    b = data.draw(st.lists(st.integers(0, 5), min_size=len(y), max_size=len(y)))
    one, other = delong_test(y, a, b), delong_test(y, b, a)
    assert one.difference == pytest.approx(roc_auc(y, a) - roc_auc(y, b), abs=1e-12)
    assert (one.difference, one.statistic, one.p_value) == pytest.approx(
        (-other.difference, -other.statistic, other.p_value), abs=1e-12
    )
    assert 0 <= one.p_value <= 1
    assert -1 <= one.interval.low <= one.difference <= one.interval.high <= 1


def test_scores_in_one_order_do_not_differ():
    y, score, _ = tied_table(n=100)
    result = delong_test(y, score, np.exp(score))
    assert (result.p_value, result.difference, result.interval.low, result.interval.high) == (1, 0, 0, 0)


def test_without_a_variance_it_is_hoeffdings_inequality():
    y = np.arange(40) < 20
    perfect = y + np.linspace(0, 0.5, 40)
    both = delong_test(y, perfect, y - np.linspace(0, 0.5, 40))
    assert (both.difference, both.p_value) == (0, 1)
    assert both.interval.high == pytest.approx(np.sqrt(2 * np.log(40) / 20))
    opposite = delong_test(y, y, ~y)
    assert opposite.statistic == np.inf
    assert opposite.p_value == pytest.approx(2 * np.exp(-10))
    assert opposite.interval.high == 1
    assert delong_test([1, 0, 0], [2, 1, 3], [3, 1, 2]).p_value == 1


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: auc_interval([0, 1], [0, 1], level=95), "'level' parameter of auc_interval"),
        (lambda: auc_interval([1, 1], [0, 1]), "auc_interval needs both classes in y_true"),
        (lambda: delong_test([0, 1], [0, 1], [0]), "'score_b' of delong_test must have one value per row"),
        (lambda: delong_test([0, 1], [0, 1], [0, np.nan]), "'score_b' of delong_test must be free of NaN"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(build, sentence):
    with pytest.raises(ValueError, match=sentence):
        build()
