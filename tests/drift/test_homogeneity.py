"""Tests of held-out scores: every way to a p-value against all choices of the new rows, or against scipy."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom, mannwhitneyu, rankdata

from toprank.drift.homogeneity import homogeneity_test
from toprank.metrics import roc_auc


def all_choices_p_value(score, is_new):
    """Share of all choices of the new rows with at least as large a sum of midranks."""
    doubled = (2 * rankdata(score)).astype(int)
    observed = doubled[is_new].sum()
    sums = [sum(choice) for choice in combinations(doubled.tolist(), int(is_new.sum()))]
    return np.mean([total >= observed for total in sums])


@st.composite
def scored_rows(draw, max_rows=12):
    n = draw(st.integers(2, max_rows))
    score = np.array(draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0]), min_size=n, max_size=n)))
    n_new = draw(st.integers(1, n - 1))
    return score, np.array(draw(st.permutations([True] * n_new + [False] * (n - n_new))))


@given(scored_rows())
def test_small_samples_count_every_choice(rows):
    score, is_new = rows
    outcome = homogeneity_test(score, is_new)
    assert outcome.method == "exact"
    assert outcome.p_value == pytest.approx(all_choices_p_value(score, is_new), abs=1e-12)
    assert outcome.auc == pytest.approx(roc_auc(is_new, score), abs=1e-12)


@given(scored_rows())
def test_the_order_of_the_rows_and_the_scale_of_the_scores_change_nothing(rows):
    score, is_new = rows
    order = np.argsort(is_new, kind="stable")[::-1]
    assert homogeneity_test(score, is_new) == homogeneity_test(7 * score[order] - 3, is_new[order])


@pytest.mark.parametrize("n_values", [4, 30, 10_000])
def test_large_samples_agree_with_scipy(n_values):
    rng = np.random.default_rng(n_values)
    score, is_new = rng.integers(0, n_values, 300).astype(float), np.arange(300) < 120
    score[is_new] += 0.1 * n_values
    outcome = homogeneity_test(score, is_new)
    expected = mannwhitneyu(score[is_new], score[~is_new], alternative="greater", method="asymptotic")
    assert outcome.method == "normal"
    assert outcome.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert outcome.auc == pytest.approx(expected.statistic / (120 * 180), abs=1e-12)


def test_the_three_distributions_agree():
    rng = np.random.default_rng(3)
    score, is_new = rng.integers(0, 6, 60).astype(float), np.arange(60) < 25
    score[is_new] += 1
    exact = homogeneity_test(score, is_new)
    drawn = homogeneity_test(score, is_new, test="permutation", n_permutations=20_000)
    twice = homogeneity_test(np.tile(score, 2), np.tile(is_new, 2))
    assert (exact.method, drawn.method, twice.method) == ("exact", "permutation", "normal")
    assert drawn.p_value == pytest.approx(exact.p_value, abs=4 * np.sqrt(exact.p_value / 20_000))
    assert twice.p_value < exact.p_value < 0.5
    assert exact.auc == drawn.auc == pytest.approx(twice.auc)


@pytest.mark.parametrize("n_values", [5, 1000])
def test_drawing_groups_and_drawing_rows_both_have_the_right_distribution(n_values, monkeypatch):
    monkeypatch.setattr("toprank.drift.homogeneity.CELLS_DRAWN", 5000)  # several draws of each
    rng = np.random.default_rng(n_values)
    score, is_new = rng.integers(0, n_values, 200).astype(float), np.arange(200) < 80
    score[is_new] += 0.08 * n_values
    drawn = homogeneity_test(score, is_new, test="permutation", n_permutations=4000)
    expected = homogeneity_test(score, is_new).p_value
    assert 0.001 < expected < 0.2
    assert drawn.p_value == pytest.approx(expected, abs=5 * np.sqrt(expected / 4000))


def test_samples_too_uneven_for_a_normal_are_drawn():
    score, is_new = np.arange(200.0), np.arange(200) >= 195
    assert homogeneity_test(score, is_new).method == "permutation"
    assert homogeneity_test(score, is_new, n_permutations=99).p_value == 1 / 100
    score = np.where(np.arange(200) < 196, 0.0, 1.0)  # all but four rows in one leaf
    assert homogeneity_test(score, np.arange(200) % 2 == 1).method == "permutation"


def test_a_leaf_where_hardly_a_new_row_is_expected_is_drawn():
    """Two of ten new rows among the top fifty of ten thousand: one in a thousand by chance, but 8.7 standard errors."""
    score, is_new = np.where(np.arange(10_000) < 50, 1.0, 0.0), np.isin(np.arange(10_000), [0, 1, *range(60, 68)])
    outcome = homogeneity_test(score, is_new)
    assert outcome.method == "permutation"
    assert outcome.p_value == pytest.approx(hypergeom.sf(1, 10_000, 50, 10), abs=0.001)


def test_equal_scores_tell_nothing():
    for test in ("rank-sum", "permutation"):
        outcome = homogeneity_test(np.ones(500), np.arange(500) < 100, test=test)
        assert (outcome.auc, outcome.p_value) == (0.5, 1.0)


def test_lower_scores_of_new_rows_are_no_evidence():
    score = np.arange(100.0)
    assert homogeneity_test(score, score < 50).p_value > 0.999
    assert homogeneity_test(score, score >= 50).p_value < 1e-15
