from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from reference_metrics import tied_table, wilson
from toprank.metrics import (
    Interval,
    average_precision,
    bootstrap_interval,
    f_beta,
    gain_at_k,
    precision_at_k,
    proportion_interval,
    roc_auc,
)
from toprank.metrics.intervals import ResampledRows


def test_interval_holds_the_value_and_repeats_with_a_seed():
    y, score, _ = tied_table()
    first = bootstrap_interval(average_precision, y, score, n_resamples=200, random_state=0)
    assert first.value == pytest.approx(average_precision(y, score))
    assert first.low < first.value < first.high
    assert first == bootstrap_interval(average_precision, y, score, n_resamples=200, random_state=0)
    assert first != bootstrap_interval(average_precision, y, score, n_resamples=200, random_state=1)
    narrow = bootstrap_interval(average_precision, y, score, n_resamples=200, random_state=0, level=0.5)
    assert first.low < narrow.low < narrow.high < first.high


def test_interval_has_the_width_of_the_known_standard_error():
    """The share of positives found by a fixed cut is binomial: +- 1.96 standard errors."""
    n_positive, n = 400, 2000
    y = np.arange(n) < n_positive
    predicted = y & (np.arange(n) % 2 == 0)

    def recall(y_true, called):
        return (y_true & called).sum() / y_true.sum()

    interval = bootstrap_interval(recall, y, predicted, n_resamples=2000, random_state=0)
    half = 1.96 * np.sqrt(0.25 / n_positive)
    assert interval.value == 0.5
    assert (interval.low, interval.high) == pytest.approx((0.5 - half, 0.5 + half), abs=0.1 * half)


def test_keywords_reach_the_metric_and_row_keywords_follow_their_rows():
    y, score, weight = tied_table(n=80)
    seen = []

    def spy(y_true, score, *, sample_weight, amount, k):
        seen.append((y_true, score, sample_weight, amount, k))
        return 0.0

    bootstrap_interval(spy, y, score, n_resamples=3, random_state=0, sample_weight=weight, amount=np.arange(80), k=0.5)
    assert len(seen) == 4
    for y_drawn, score_drawn, weight_drawn, row, k in seen:
        assert k == 0.5
        assert y_drawn.tolist() == y[row].tolist()
        assert score_drawn.tolist() == score[row].tolist()
        assert weight_drawn.tolist() == weight[row].tolist()
    assert any(len(set(row.tolist())) < 80 for _, _, _, row, _ in seen)


@pytest.mark.parametrize("stratified", [True, False])
def test_rows_of_weight_zero_are_no_rows(stratified):
    y, score, weight = [1, 1, 0, 0, 0, 1], [6, 5, 4, 3, 2, 1], [1, 0, 2, 1, 0, 0]
    kept = np.flatnonzero(weight)
    options = {"stratified": stratified, "n_resamples": 20, "random_state": 0}
    found = bootstrap_interval(average_precision, y, score, sample_weight=weight, **options)
    y, score, weight = (np.take(values, kept) for values in (y, score, weight))
    assert found == bootstrap_interval(average_precision, y, score, sample_weight=weight, **options)
    with pytest.raises(ValueError, match=r"bootstrap_interval .* every positive row has sample_weight 0"):
        bootstrap_interval(roc_auc, [1, 0], [1, 2], sample_weight=[0, 1])


def test_it_works_with_the_other_measures():
    y, score, weight = tied_table(n=80)
    for metric, keywords in [
        (precision_at_k, {"k": 5, "ties": "best"}),
        (gain_at_k, {"k": 0.5, "amount": score}),
        (roc_auc, {"sample_weight": weight, "pos_label": 1}),
        (average_precision_score, {}),
    ]:
        interval = bootstrap_interval(metric, y, score, n_resamples=20, random_state=0, **keywords)
        assert interval.value == pytest.approx(metric(y, score, **keywords))
        assert interval.low <= interval.high
    names = np.where(y == 1, "yes", "no")
    assert bootstrap_interval(f_beta, names, names, n_resamples=3, random_state=0).low == 1.0


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_resamples_hold_both_classes_and_strata_keep_their_size(seed, stratified):
    y = np.array([0, 1, 0, 0, 0])
    rows = ResampledRows(y, [np.array([3, 1, 2, 5, 4])], {}, caller="test")
    for indices in rows.resamples(5, stratified, seed, caller="test"):
        drawn = rows._y_true[indices]
        assert len(drawn) == 5
        assert (np.diff(indices) >= 0).all()
        assert 0 < drawn.sum() < 5
        assert not stratified or drawn.sum() == 1


def test_without_strata_the_number_of_positives_varies():
    y, score, _ = tied_table(n=100)
    counts = {True: set(), False: set()}
    for stratified, found in counts.items():
        rows = ResampledRows(y, [score], {}, caller="test")
        found.update(int(rows._positive[i].sum()) for i in rows.resamples(20, stratified, 0, caller="test"))
    assert counts[True] == {int(y.sum())}
    assert len(counts[False]) > 3


def test_an_interval_is_frozen_and_reads_well():
    interval = Interval(0.5, 0.25, 0.75, 0.95)
    assert str(interval) == "0.5 [0.25, 0.75]"
    with pytest.raises(FrozenInstanceError):
        interval.low = 0.0


@pytest.mark.parametrize("level", [0, 1, 95, "0.95", True, float("nan")])
def test_a_bad_level_is_refused(level):
    with pytest.raises(
        ValueError, match=r"'level' parameter of bootstrap_interval must be a float in the range \(0, 1\)"
    ):
        bootstrap_interval(roc_auc, [0, 1], [0, 1], level=level)
    with pytest.raises(
        ValueError, match=r"'level' parameter of proportion_interval must be a float in the range \(0, 1\)"
    ):
        proportion_interval(1, 2, level)


def test_other_bad_input_is_refused():
    with pytest.raises(
        ValueError, match=r"'n_resamples' parameter of bootstrap_interval .* \[1, inf\)\. Got 0 instead"
    ):
        bootstrap_interval(roc_auc, [0, 1], [0, 1], n_resamples=0)
    with pytest.raises(ValueError, match=r"bootstrap_interval needs both classes in y_true, but all 2 labels equal 0"):
        bootstrap_interval(roc_auc, [0, 0], [0, 1])
    with pytest.raises(ValueError, match=r"'amount' of bootstrap_interval must have one value per row"):
        bootstrap_interval(gain_at_k, [0, 1], [0, 1], amount=[1])


@given(st.integers(1, 500), st.data())
def test_wilson_solves_its_quadratic(n, data):
    positives = data.draw(st.floats(0, n))
    low, high = proportion_interval(positives, n)
    assert (float(low), float(high)) == pytest.approx(wilson(positives, n, 1.959963984540054), abs=1e-7)
    assert 0 <= low <= positives / n <= high <= 1


def test_wilson_is_vectorised_and_exact_at_the_ends():
    low, high = proportion_interval([[0, 5, 10]], [[10], [20]], 0.9)
    assert low.shape == high.shape == (2, 3)
    assert low[0, 0] == 0.0
    assert high[0, 2] == 1.0
    assert (low < high).all()
    assert (high[1] - low[1])[1] < (high[0] - low[0])[1]


def test_wilson_of_no_cases_is_everything():
    low, high = proportion_interval(0, 0)
    assert (float(low), float(high)) == (0.0, 1.0)


@pytest.mark.parametrize(("positives", "n"), [(3, 2), (-1, 2), (np.nan, 2), (1, np.inf)])
def test_impossible_shares_are_refused(positives, n):
    with pytest.raises(ValueError, match=r"proportion_interval needs 0 <= positives <= n, finite"):
        proportion_interval(positives, n)
