"""Tests of held-out rows: every way to a p-value against all choices of the new rows, or against scipy."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact, hypergeom, mannwhitneyu, rankdata

from toprank.drift.homogeneity import (
    CELL_SHARE,
    HeldOutGroups,
    combined_p_value,
    fisher_by_count,
    homogeneity_test,
    union_bound,
)
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


# --- scores and cells together ------------------------------------------------------------------------------


def slow_statistic(score, leaf, is_new, n_leaves):
    """The smaller of both looks over their shares, by scipy and from the rows themselves."""
    n_new = is_new.sum()
    of_cells = [
        fisher_exact([[k, n_new - k], [size - k, len(leaf) - n_new - (size - k)]]).pvalue
        for k, size in ((is_new[leaf == i].sum(), np.sum(leaf == i)) for i in range(n_leaves))
    ]
    of_scores = np.inf  # equal scores tell nothing
    if len(np.unique(score)) > 1:
        of_scores = mannwhitneyu(score[is_new], score[~is_new], alternative="greater", method="asymptotic").pvalue
    return min(of_scores / (1 - CELL_SHARE), n_leaves * min(of_cells) / CELL_SHARE)


def all_choices(n, n_new):
    return np.array([np.isin(np.arange(n), chosen) for chosen in combinations(range(n), n_new)])


def all_choices_p_value_of_both(score, leaf, is_new, n_leaves):
    """Share of all choices of the new rows that are at least as extreme."""
    groups = HeldOutGroups(score, leaf, n_leaves, int(is_new.sum()))
    counts = np.concatenate([groups.count(choice) for choice in all_choices(len(score), int(is_new.sum()))])
    return np.mean(groups.statistic(counts) <= groups.statistic(groups.count(is_new)) * (1 + 1e-9))


@st.composite
def held_out_rows(draw, max_rows=10):
    """Rows of two leaves or more, with scores that are constant in the leaves or are not."""
    n = draw(st.integers(4, max_rows))
    leaf = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), np.int32)
    inside = np.array(draw(st.lists(st.sampled_from([0.0, 0.25, 0.5]), min_size=n, max_size=n)))
    score = -leaf + draw(st.sampled_from([0.0, 1.0])) * inside
    n_new = draw(st.integers(1, n - 1))
    return score, leaf, np.array(draw(st.permutations([True] * n_new + [False] * (n - n_new))))


@given(held_out_rows())
def test_the_statistic_is_that_of_the_rows(rows):
    score, leaf, is_new = rows
    groups = HeldOutGroups(score, leaf, 5, int(is_new.sum()))  # the last leaf has no rows
    counts = groups.count(is_new)
    assert counts.sum() == is_new.sum()
    assert (counts <= groups.size).all()
    assert groups.statistic(counts)[0] == pytest.approx(slow_statistic(score, leaf, is_new, 5))


@given(held_out_rows(max_rows=8))
def test_draws_agree_with_all_choices(rows):
    score, leaf, is_new = rows
    exact = all_choices_p_value_of_both(score, leaf, is_new, 4)
    drawn = combined_p_value(score, leaf, is_new, n_leaves=4, bound=1.0, n_permutations=4000)
    # Five standard errors, and what the observed choice adds to the draws.
    assert drawn == pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / 4000) + 1 / 4000)


@pytest.mark.parametrize("is_constant", [True, False], ids=["constant in leaves", "any scores"])
@pytest.mark.parametrize("sizes", [(3, 4, 5), (2, 2, 2, 6)], ids=str)
def test_draws_agree_with_all_choices_for_every_table_of_the_same_margins(sizes, is_constant):
    leaf = np.repeat(np.arange(len(sizes)), sizes)
    score = -leaf - (0.0 if is_constant else np.linspace(0, 0.9, len(leaf)))
    choices = all_choices(len(leaf), 6)
    groups = HeldOutGroups(score, leaf, len(sizes), 6)
    statistic = groups.statistic(np.concatenate([groups.count(choice) for choice in choices]))
    first = np.unique(statistic.round(9), return_index=True)[1]  # one choice for each value
    exact = np.array([np.mean(statistic <= statistic[i] * (1 + 1e-9)) for i in first])
    drawn = np.array([combined_p_value(score, leaf, choices[i], n_leaves=len(sizes), bound=1.0) for i in first[:80]])
    np.testing.assert_allclose(drawn, exact[:80], atol=5 * 0.5 / np.sqrt(9999))


def test_the_p_value_of_draws_is_uniform_under_the_null_hypothesis():
    rng, n = np.random.default_rng(4), 2000
    leaf = np.repeat(np.arange(8), [10, 20, 15, 30, 25, 40, 30, 30])
    p_value = np.array([
        combined_p_value(-leaf.astype(float), leaf, rng.permutation(200) < 100, n_leaves=8, bound=1.0,
                         n_permutations=199, random_state=i)
        for i in range(n)
    ])  # fmt: skip
    for level in (0.05, 0.2, 0.5, 0.8):
        assert np.mean(p_value <= level) == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / n))


def test_drawing_by_group_and_by_row_agree(monkeypatch):
    rng = np.random.default_rng(5)
    leaf, is_new = rng.integers(0, 6, 400), rng.random(400) < 0.4
    is_new |= (leaf == 0) & (rng.random(400) < 0.1)
    monkeypatch.setattr("toprank.drift.homogeneity.CELLS_DRAWN", 5000)  # several draws of each
    p_value = []
    for rows_per_group in (0, 1000):
        monkeypatch.setattr("toprank.drift.homogeneity.ROWS_PER_GROUP", rows_per_group)
        p_value.append(combined_p_value(-leaf * 1.0, leaf, is_new, n_leaves=6, bound=1.0))
    assert 0.01 < p_value[0] < 0.5
    assert p_value[0] != p_value[1]
    assert p_value[0] == pytest.approx(p_value[1], abs=5 * np.sqrt(2 * p_value[0] / 9999))


def test_beyond_the_draws_the_bound_is_taken_and_only_there():
    leaf = np.repeat([0, 1], 100)
    score, is_new = -leaf.astype(float), leaf == 0
    keywords = {"n_leaves": 2, "n_permutations": 99}
    assert combined_p_value(score, leaf, is_new, bound=1e-12, **keywords) == 1e-12
    assert combined_p_value(score, leaf, is_new, bound=0.5, **keywords) == 1 / 100
    is_new = np.arange(200) % 2 == 0
    assert combined_p_value(score, leaf, is_new, bound=1e-12, **keywords) > 0.5  # some draws are as extreme


def test_one_leaf_tells_nothing():
    leaf = np.zeros(50, int)
    assert combined_p_value(np.ones(50), leaf, np.arange(50) < 20, n_leaves=1, bound=1.0) == 1.0


def test_the_same_seed_gives_the_same_p_value():
    rng = np.random.default_rng(0)
    leaf, is_new = rng.integers(0, 5, 300), rng.random(300) < 0.4
    p_values = [combined_p_value(-leaf * 1.0, leaf, is_new, n_leaves=5, bound=1.0, random_state=s) for s in (3, 3, 4)]
    assert p_values[0] == p_values[1] != p_values[2]


def test_the_level_is_shared_by_the_scores_and_the_cells():
    assert union_bound(0.018, 0.8) == pytest.approx(0.02)
    assert union_bound(0.9, 0.003) == pytest.approx(0.03)
    assert union_bound(0.95, 0.8) == 1.0


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_p_values_of_all_counts_are_those_of_scipy(size, others, n_new):
    n = size + others
    n_new = min(n_new, n)
    p_value = fisher_by_count(size, n, n_new)
    assert len(p_value) == min(size, n_new) + 1
    for k, value in enumerate(p_value):
        table = [[k, n_new - k], [size - k, others - (n_new - k)]]
        assert value == pytest.approx(fisher_exact(table).pvalue if np.min(table) >= 0 else 1.0)


def test_p_values_of_large_cells():
    p_value = fisher_by_count(90_000, 200_000, 100_000)
    for k in (44_000, 44_800, 45_000, 45_300, 46_000):
        expected = fisher_exact([[k, 100_000 - k], [90_000 - k, 10_000 + k]]).pvalue
        assert p_value[k] == pytest.approx(expected, rel=1e-6)
