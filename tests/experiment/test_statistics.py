import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from toprank.experiment.statistics import friedman_test, mean_ranks, nemenyi_difference
from toprank.metrics.comparison import holm

# Table 6 of Demšar 2006: AUC of C4.5 and of its variants with m, cf and both tuned, on 14 data sets. The last
# but one data set has 0.975 twice there, rounded: its ranks are 4, 1, 2 and 3.
DEMSAR = np.array([
    [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
    [1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.9751, 0.975], [0.957, 0.978, 0.946, 0.970],
])  # fmt: skip


def few(n_rows, n_columns):
    """Tables of few different figures, so that ties are common."""
    return arrays.arrays(float, (n_rows, n_columns), elements=st.sampled_from([0.0, 0.1, 0.2, 0.3]))


tables = st.tuples(st.integers(2, 6), st.integers(3, 5)).flatmap(lambda shape: few(*shape))


def slow_ranks(row):
    """Mean place of each figure over all orders of the row that are sorted."""
    orders = [order for order in itertools.permutations(range(len(row))) if list(row[list(order)]) == sorted(row)[::-1]]
    return np.mean([np.argsort(order) + 1 for order in orders], axis=0)


def test_mean_ranks_of_the_paper():
    assert mean_ranks(DEMSAR) == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)


@given(tables)
def test_mean_ranks_are_means_over_orders_of_ties(values):
    assert mean_ranks(values) == pytest.approx(np.mean([slow_ranks(row) for row in values], axis=0))


def test_friedman_of_the_paper():
    """The paper has 9.28 and 3.69 without a correction for ties; removing ours gives them back."""
    result = friedman_test(DEMSAR)
    n, k = DEMSAR.shape
    tied = sum(count**3 - count for row in DEMSAR for count in np.unique(row, return_counts=True)[1])
    plain = result.chi_square * (1 - tied / (n * k * (k**2 - 1)))
    assert plain == pytest.approx(9.28, abs=0.01)
    assert (n - 1) * plain / (n * (k - 1) - plain) == pytest.approx(3.69, abs=0.01)
    assert result.statistic > 3.69
    assert 0.01 < result.p_value < 0.05


@given(tables)
def test_friedman_equals_an_analysis_of_variance_of_ranks(values):
    """Iman and Davenport's F is the F of a two-way analysis of variance of the ranks."""
    result = friedman_test(values)
    n, k = values.shape
    ranks = np.array([slow_ranks(row) for row in values])
    between = n * ((ranks.mean(axis=0) - (k + 1) / 2) ** 2).sum()
    rest = ((ranks - ranks.mean(axis=0)) ** 2).sum()
    if rest < 1e-9:
        assert (result.statistic, result.p_value) == ((np.inf, 0.0) if between > 1e-9 else (0.0, 1.0))
        return
    expected = (between / (k - 1)) / (rest / ((k - 1) * (n - 1)))
    assert result.statistic == pytest.approx(expected, abs=1e-9)
    assert result.p_value == pytest.approx(stats.f.sf(expected, k - 1, (k - 1) * (n - 1)), abs=1e-9)


def test_friedman_without_any_difference():
    result = friedman_test(np.ones((4, 3)))
    assert (result.chi_square, result.statistic, result.p_value) == (0.0, 0.0, 1.0)


@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_data_sets_changes_nothing(values, random):
    shuffled = values[random.sample(range(len(values)), len(values))]
    assert friedman_test(shuffled).statistic == pytest.approx(friedman_test(values).statistic)
    assert mean_ranks(shuffled) == pytest.approx(mean_ranks(values))


@pytest.mark.parametrize(
    ("n_methods", "quantile", "quantile_10"),
    [(2, 1.960, 1.645), (3, 2.343, 2.052), (4, 2.569, 2.291), (6, 2.850, 2.589), (10, 3.164, 2.920)],
)
def test_critical_difference_of_the_paper(n_methods, quantile, quantile_10):
    """Table 5 (a) of Demšar 2006, last digit as printed there."""
    factor = np.sqrt(n_methods * (n_methods + 1) / (6 * 14))
    assert nemenyi_difference(n_methods, 14) / factor == pytest.approx(quantile, abs=1.1e-3)
    assert nemenyi_difference(n_methods, 14, 0.1) / factor == pytest.approx(quantile_10, abs=1.1e-3)


def test_critical_difference_shrinks_with_data_sets():
    assert nemenyi_difference(4, 56) == pytest.approx(nemenyi_difference(4, 14) / 2)


def test_holm_by_hand():
    assert holm([0.04, 0.01, 0.5, 0.02]) == pytest.approx([0.08, 0.04, 0.5, 0.06])
    assert holm([0.6, 0.7]) == pytest.approx([1.0, 1.0])
    assert holm([]).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.sampled_from([0.01, 0.05, 0.2]))
def test_holm_rejects_what_the_stepwise_procedure_rejects(p_values, level):
    rejected = set()
    for step, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[i] * (len(p_values) - step) > level:
            break
        rejected.add(i)
    assert {i for i, p in enumerate(holm(p_values)) if p <= level} == rejected
