import numpy as np
import pytest
from scipy import stats

from reference_metrics import tied_table
from toprank.metrics import (
    BeforeAfter,
    average_precision,
    corrected_resampled_t_test,
    paired_bootstrap_test,
    roc_auc,
    wilcoxon_test,
)


def test_paired_bootstrap_finds_a_difference_and_its_sign():
    y, score, _ = tied_table()
    noise = np.random.default_rng(1).random(len(y))
    better = paired_bootstrap_test(roc_auc, y, score, noise, n_resamples=199, random_state=0)
    assert better.difference == pytest.approx(roc_auc(y, score) - roc_auc(y, noise))
    assert better.p_value == pytest.approx(2 / 200)
    assert 0 < better.interval.low < better.difference < better.interval.high
    assert better.statistic > 2
    worse = paired_bootstrap_test(roc_auc, y, noise, score, n_resamples=199, random_state=0)
    assert worse.difference == pytest.approx(-better.difference)
    assert worse.p_value == better.p_value
    assert worse.statistic < -2


def test_paired_bootstrap_of_equal_scores_finds_nothing():
    y, score, _ = tied_table()
    same = paired_bootstrap_test(average_precision, y, score, score, n_resamples=50, random_state=0, ties="expected")
    assert (same.statistic, same.p_value, same.difference) == (0.0, 1.0, 0.0)
    assert (same.interval.low, same.interval.high) == (0.0, 0.0)


def test_paired_bootstrap_rejects_as_often_as_it_says():
    """Two equally good scores: p < 0.2 in about a fifth of 60 draws (3..24 are almost certain)."""
    generator = np.random.default_rng(0)
    y = np.arange(120) < 40
    n_rejected = sum(
        paired_bootstrap_test(
            roc_auc,
            y,
            y + generator.normal(size=120),
            y + generator.normal(size=120),
            n_resamples=60,
            random_state=seed,
        ).p_value
        < 0.2
        for seed in range(60)
    )
    assert 3 <= n_rejected <= 24


def test_paired_bootstrap_uses_the_same_rows_for_both():
    y, score, _ = tied_table(n=60)
    seen = []

    def spy(y_true, score):
        seen.append(score)
        return float(score.mean())

    result = paired_bootstrap_test(spy, y, score, score + 1, n_resamples=20, random_state=0)
    assert result.difference == pytest.approx(-1)
    assert (result.interval.low, result.interval.high) == pytest.approx((-1, -1))
    assert all(np.allclose(b - a, 1) for a, b in zip(seen[::2], seen[1::2], strict=True))


def test_paired_bootstrap_takes_rows_of_weight_zero_as_no_rows():
    y, score, noise, weight = [1, 1, 0, 0], [4, 1, 3, 2], [1, 2, 4, 3], [1, 0, 1, 1]
    for options in ({"stratified": True}, {"stratified": False}):
        found = paired_bootstrap_test(
            roc_auc, y, score, noise, n_resamples=20, random_state=0, sample_weight=weight, **options
        )
        assert (found.difference, found.interval.low, found.interval.high) == (1.0, 1.0, 1.0)


def test_wilcoxon_equals_scipy_and_signs_the_difference():
    generator = np.random.default_rng(0)
    a, b = generator.random(28) + 0.1, generator.random(28)
    result, theirs = wilcoxon_test(a, b), stats.wilcoxon(a, b)
    assert (result.statistic, result.p_value) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert result.difference == pytest.approx((a - b).mean())
    assert result.interval is None
    assert wilcoxon_test(b, a).p_value == pytest.approx(result.p_value)


def test_wilcoxon_without_differences():
    result = wilcoxon_test([0.5, 0.6], [0.5, 0.6])
    assert (result.statistic, result.p_value, result.difference) == (0.0, 1.0, 0.0)


def test_wilcoxon_leaves_out_data_sets_without_a_difference():
    a, b = [1, 2, 3, 4, 5, 6, 9, 9], [0, 0, 0, 0, 0, 0, 9, 9]
    assert wilcoxon_test(a, b).p_value == pytest.approx(2 / 2**6)
    assert wilcoxon_test(a, b).difference == pytest.approx(21 / 8)


def test_corrected_t_test_is_the_formula():
    differences = np.array([0.03, 0.01, -0.01, 0.04, 0.02])
    result = corrected_resampled_t_test(differences, 700, 300, level=0.9)
    error = np.sqrt((1 / 5 + 300 / 700) * differences.var(ddof=1))
    t = differences.mean() / error
    assert result.statistic == pytest.approx(t)
    assert result.p_value == pytest.approx(2 * stats.t.sf(t, 4))
    assert (result.interval.low, result.interval.high) == pytest.approx(stats.t.interval(0.9, 4, 0.018, error))


def test_corrected_t_test_tends_to_the_plain_one_with_tiny_test_sets():
    differences = np.array([0.03, 0.01, -0.01, 0.04, 0.02])
    plain = stats.ttest_1samp(differences, 0)
    result = corrected_resampled_t_test(differences, 1e12, 1)
    assert (result.statistic, result.p_value) == pytest.approx((plain.statistic, plain.pvalue))
    assert corrected_resampled_t_test(differences, 2, 1).p_value > result.p_value


@pytest.mark.parametrize(("value", "statistic", "p_value"), [(0.0, 0, 1), (0.1, np.inf, 0), (-0.1, -np.inf, 0)])
def test_corrected_t_test_of_equal_differences(value, statistic, p_value):
    result = corrected_resampled_t_test([value] * 7, 2, 1)
    assert (result.statistic, result.p_value) == (statistic, p_value)
    assert result.difference == pytest.approx(value)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match=r"wilcoxon_test needs as many values_a as values_b.* Got 2 and 1\. Hint"):
        wilcoxon_test([1, 2], [1])
    with pytest.raises(ValueError, match=r"'values_b' of wilcoxon_test must be a list of at least 1 finite numbers"):
        wilcoxon_test([1, 2], [1, np.nan])
    with pytest.raises(ValueError, match=r"'differences' of corrected_resampled_t_test must be a list of at least 2"):
        corrected_resampled_t_test([0.1], 2, 1)
    with pytest.raises(
        ValueError, match=r"'n_train' parameter of corrected_resampled_t_test .* range \(0, inf\)\. Got 0 "
    ):
        corrected_resampled_t_test([0.1, 0.2], 0, 1)
    with pytest.raises(ValueError, match=r"'score' of paired_bootstrap_test must have one value per row"):
        paired_bootstrap_test(roc_auc, [0, 1], [0, 1], [0, 1, 2])


# --- before and after -----------------------------------------------------------------------------------------------


def test_two_scores_of_the_same_cases_are_compared_pair_by_pair():
    y, score, _ = tied_table()
    noise = np.random.default_rng(1).random(len(y))
    found = BeforeAfter.from_scores(y, noise, score, k=10)
    test = paired_bootstrap_test(average_precision, y, score, noise, n_resamples=400, random_state=0)
    assert found.difference == (test.difference, test.interval.low, test.interval.high)
    assert (found.before, found.after) == (average_precision(y, noise), average_precision(y, score))
    first = [np.argsort(-each, kind="stable")[:10] for each in (noise, score)]
    assert [found.hits_before, found.hits_after] == [np.asarray(y)[rows].sum() for rows in first]


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [
        ((0.1, 0.02, 0.2), "better"),
        ((-0.1, -0.2, -0.01), "worse"),
        ((0.1, -0.02, 0.2), "no clear difference"),
        ((0.0, 0.0, 0.0), "no difference"),
    ],
)
def test_the_verdict_follows_the_interval(difference, verdict):
    assert BeforeAfter(0.5, 0.6, difference, 1, 0, 1).verdict == verdict
