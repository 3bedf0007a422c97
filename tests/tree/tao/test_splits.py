from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from ranker_cases import fewer
from tao_cases import blobs, goes_left, make_problem, tao_cases
from toprank._core.dtypes import CATEGORY, NUMERIC, OBLIQUE
from toprank._core.splitting import FEW_LEVELS
from toprank.tree.categories import CategorySearch
from toprank.tree.tao import splits as tao_splits
from toprank.tree.tao.splits import (
    ReducedProblem,
    Split,
    best_axis,
    best_threshold,
    choose_levels,
    fitted_sum,
    numeric_candidate,
)

VALUES = st.sampled_from([-np.inf, -1.0, 0.0, np.nextafter(0.0, 1.0), 2.5, 1e308, np.nan])


def best_by_hand(value, saving):
    """The most that any threshold saves, with missing values on either side."""
    known = value[~np.isnan(value)]
    best = None
    for threshold in np.unique(known)[:-1]:
        for low_left, missing_left in product((True, False), repeat=2):
            is_left = np.where(np.isnan(value), missing_left, (value <= threshold) == low_left)
            saved = int(saving[is_left].sum())
            best = saved if best is None else max(best, saved)
    return best


@given(st.lists(st.tuples(VALUES, st.integers(-5, 5)), min_size=1, max_size=12))
@example([(0.0, 1), (np.nextafter(0.0, 1.0), -1)])
@example([(-np.inf, 1), (1e308, -1)])
def test_the_threshold_is_the_best_of_all(pairs):
    value, saving = np.array([v for v, _ in pairs]), np.array([s for _, s in pairs])
    found = best_threshold(value, saving)
    assert (found[0] if found else None) == best_by_hand(value, saving)
    if found:
        saved, threshold, low_left, missing_left = found
        is_left = np.where(np.isnan(value), missing_left, (value <= threshold) == low_left)
        assert saving[is_left].sum() == saved


def test_of_equal_thresholds_the_widest_gap_is_taken():
    saving = np.array([1, -1, 1, -1])
    assert best_threshold(np.array([0.0, 1.0, 2.0, 6.0]), saving)[1] == 4.0
    assert best_threshold(np.array([0.0, 5.0, 6.0, 7.0]), saving)[1] == 2.5


def best_axis_by_hand(problem, reduced):
    """The most that any condition on one column saves."""
    best = None
    for feature in range(problem.rows.X.shape[1]):
        value = problem.rows.X[reduced.rows, feature]
        if problem.rows.is_categorical[feature]:
            kinds = [reduced.saving[value == code].sum() for code in range(5)] + [reduced.saving[np.isnan(value)].sum()]
            saved = sum(max(int(kind), 0) for kind in kinds)
        else:
            # a missing value is the largest or the smallest one: so it may stand on either side, and alone
            columns = [np.nan_to_num(value, nan=end) for end in (-np.inf, np.inf)]
            found = [best_by_hand(column, reduced.saving) for column in columns]
            saved = max((s for s in found if s is not None), default=None)
        if saved is not None:
            best = saved if best is None else max(best, saved)
    return best


@st.composite
def care_points(draw):
    """Some rows of a problem, each with something to save."""
    case = draw(tao_cases(max_depth=1))
    rows = np.flatnonzero(case.random.random(len(case.problem)) < 0.8)
    assume(len(rows))
    saving = case.random.choice([-5, -2, -1, 1, 3], len(rows))
    return case.problem, ReducedProblem(rows, saving)


def label_or_other(problem):
    """The problem of a node whose left child says 0 and whose right child says 1."""
    return ReducedProblem(np.arange(len(problem)), problem.cost[:, 1] - problem.cost[:, 0])


def actually_saved(problem, reduced, candidate):
    """What a candidate saves, row by row; its sides are those of the children after they changed places."""
    is_left = np.array([goes_left(candidate.split, x) for x in problem.rows.X[reduced.rows]])
    return int(reduced.saving[is_left != candidate.swaps].sum())


@fewer(2)
@given(care_points())
def test_the_condition_on_one_column_is_the_best_of_all(pair):
    problem, reduced = pair
    candidate, expected = best_axis(problem, reduced), best_axis_by_hand(problem, reduced)
    assert (candidate is None) == (expected is None)
    if candidate is not None:
        # What saves less than sending all rows one way is never taken, and need not be the best of its kind.
        one_way = reduced.one_way[0]
        assert max(candidate.saved, one_way) == max(expected, one_way)
        assert actually_saved(problem, reduced, candidate) == candidate.saved
        assert candidate.split.norm == 1.0


@fewer(2)
@given(care_points())
def test_all_rows_one_way_saves_what_the_better_child_saves(pair):
    problem, reduced = pair
    saved, split = reduced.one_way
    is_left = [goes_left(split, x) for x in problem.rows.X[reduced.rows]]
    assert len(set(is_left)) == 1
    assert saved == max(int(reduced.saving.sum()), 0) == (int(reduced.saving.sum()) if is_left[0] else 0)
    assert split.norm == 0


@fewer(2)
@given(care_points())
def test_a_fitted_sum_saves_what_it_says_and_has_its_norm_on_standardised_columns(pair):
    problem, reduced = pair
    fitted = fitted_sum(problem, reduced, None)
    if fitted is None:
        return
    split, fit = fitted
    if split is None:  # a column of categories: its best condition is at hand
        used = np.unique(problem.rows.standard.feature[fit.weight != 0])
        assert problem.rows.is_categorical[used].any()
        return
    candidate = numeric_candidate(problem, reduced, split)
    if candidate is not None:
        assert actually_saved(problem, reduced, candidate) == candidate.saved
    if split.kind == OBLIQUE:
        assert 0 < split.norm <= np.abs(fit.weight).sum() * (1 + 1e-12)
        assert len(split.columns) == np.count_nonzero(split.weights) > 1
        assert np.array_equal(split.codes >= 0, problem.rows.is_categorical[split.columns] == 1)
        assert not split.fill[split.codes >= 0].any()
    else:
        assert (split.kind, split.norm) == (NUMERIC, 1.0)


def test_a_sum_in_other_units_is_the_same_sum():
    X, label = blobs()
    splits = []
    for factor, shift in ((1.0, 0.0), (1024.0, 4096.0)):
        problem = make_problem(X * factor + shift, label, [[0, 1.0], [1.0, 0]])
        splits.append(fitted_sum(problem, label_or_other(problem), None)[0])
    assert splits[0].norm == pytest.approx(splits[1].norm, rel=1e-3)
    assert np.allclose(splits[0].weights, 1024.0 * splits[1].weights, rtol=1e-3)


def test_the_terms_of_a_sum_come_by_what_they_move_whatever_their_units():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    label = (X @ [0.5, 1.0, 4.0, 3.0, 0.7, 2.0] > 0).astype(np.int64)
    problem = make_problem(X * [1e-3, 1.0, 1e6, 1.0, 1e3, 1.0], label, [[0, 1.0], [1.0, 0]])
    split, fit = fitted_sum(problem, label_or_other(problem), None)
    assert split.columns.tolist() == np.argsort(-np.abs(fit.weight)).tolist()
    assert split.columns[:3].tolist() == [2, 3, 5]
    assert abs(split.weights[0]) == np.abs(split.weights).min()
    influence = np.abs(split.weights) * problem.rows.X.std(axis=0)[split.columns]
    assert (np.diff(influence) <= 0).all()


def additive_categories(n=400, seed=0):
    """Two columns of four categories whose effects add up, and a number that has none."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (n, 2))
    effect = np.array([[-2.0, -0.5, 0.5, 2.0], [1.5, -1.5, 0.6, -0.6]])
    label = (effect[0][codes[:, 0]] + effect[1][codes[:, 1]] > 0.2).astype(np.int64)
    return np.column_stack((codes, rng.normal(size=n))).astype(float), label


def test_a_sum_weighs_categories_where_they_add_up():
    X, label = additive_categories()
    problem = make_problem(X, label, [[0, 1.0], [1.0, 0]], n_categories=np.array([4, 4, 0], np.int32))
    reduced = label_or_other(problem)
    split, _ = fitted_sum(problem, reduced, None)
    assert split.kind == OBLIQUE
    assert set(split.columns[split.codes >= 0].tolist()) == {0, 1}
    candidate = numeric_candidate(problem, reduced, split)
    best = int(np.maximum(reduced.saving, 0).sum())
    assert candidate.saved > 0.97 * best > best_axis(problem, reduced).saved
    X[::9, 0] = np.nan  # a missing category leaves no sum missing
    X[::7, 2] = np.nan
    problem = make_problem(X, label, [[0, 1.0], [1.0, 0]], n_categories=np.array([4, 4, 0], np.int32))
    reduced = label_or_other(problem)
    split = numeric_candidate(problem, reduced, fitted_sum(problem, reduced, None)[0]).split
    assert np.array_equal(np.isnan(split.fill), np.isnan(split.fill) & (split.codes < 0))
    assert not split.fill[split.codes >= 0].any()


def test_a_sum_over_one_column_of_categories_is_left_to_conditions_on_it():
    X, label = additive_categories()
    label = np.isin(X[:, 0], [1.0, 3.0]).astype(np.int64)
    problem = make_problem(X, label, [[0, 1.0], [1.0, 0]], 20.0, n_categories=np.array([4, 4, 0], np.int32))
    reduced = label_or_other(problem)
    split, fit = fitted_sum(problem, reduced, None)
    assert split is None
    assert np.count_nonzero(fit.weight)
    assert best_axis(problem, reduced).saved == int(np.maximum(reduced.saving, 0).sum())


def test_a_sample_of_many_care_points_gives_nearly_the_same_direction(monkeypatch):
    X, label = blobs(2000)
    problem = make_problem(X, label, [[0, 1.0], [1.0, 0]])
    reduced = label_or_other(problem)
    whole = fitted_sum(problem, reduced, None)[1]
    monkeypatch.setattr(tao_splits, "FIT_ROWS", 1000)
    sampled = fitted_sum(problem, reduced, None)[1]
    assert not np.array_equal(whole.weight, sampled.weight)
    cosine = whole.weight @ sampled.weight / np.linalg.norm(whole.weight) / np.linalg.norm(sampled.weight)
    assert cosine > 0.97


def test_categories_that_no_care_point_has_go_with_the_heavier_side():
    X = np.array([[0.0], [1.0], [2.0], [np.nan]])
    problem = make_problem(X, np.array([0, 1, 0, 1]), [[0, 1.0], [1.0, 0]], n_categories=np.array([5], np.int32))
    rows = np.flatnonzero(~np.isnan(problem.rows.X[:, 0]))
    saving = np.where(problem.rows.X[rows, 0] == 1, -5, 1)
    split = best_axis(problem, ReducedProblem(rows, saving)).split
    assert split.kind == CATEGORY
    assert split.categories[:5].tolist() == [True, False, True, False, False]
    assert not split.missing_left


def test_a_condition_that_sends_everything_one_way_says_so():
    assert goes_left(Split.one_way(True), [np.nan])
    assert not goes_left(Split.one_way(False), [1e308])


# Categories


def levels_problem(n_levels, rate, n=3000, search=None, seed=0):
    """One column of categories, whose cases are positive at these rates."""
    random = np.random.default_rng(seed)
    code = random.integers(0, n_levels, n)
    label = (random.random(n) < np.broadcast_to(rate, n_levels)[code]).astype(np.int64)
    X = np.column_stack((code.astype(float), random.random(n)))  # distinct rows
    problem = make_problem(X, label, [[0, 1.0], [1.0, 0]], n_categories=np.array([n_levels, 0], np.int32))
    return replace(problem, categories=search or CategorySearch(0.0)), label


@pytest.mark.parametrize("n_levels", [2, 6, 40])
def test_without_smoothing_and_limits_each_level_goes_where_it_saves(n_levels):
    problem, _ = levels_problem(n_levels, np.random.default_rng(1).random(n_levels))
    reduced = label_or_other(problem)
    chosen, plain = (
        choose_levels(problem, reduced, 0),
        best_axis(replace(problem, categories=CategorySearch()), reduced),
    )
    assert plain.split.feature == 0
    assert chosen.saved == plain.saved
    assert np.array_equal(chosen.split.categories, plain.split.categories)
    assert chosen.honest <= chosen.saved
    assert chosen.honest == chosen.saved or n_levels > FEW_LEVELS


def test_noise_saves_nothing_on_other_cases_and_a_real_category_nearly_all():
    search = CategorySearch(10.0, 5)
    noise, label = levels_problem(200, 0.5, search=search)
    found, all_cases = choose_levels(noise, label_or_other(noise), 0), len(label)
    one_way = label_or_other(noise).one_way[0]
    unit = np.abs(label_or_other(noise).saving).sum() / all_cases
    assert found.saved - one_way > 0.08 * all_cases * unit
    assert abs(found.honest - one_way) < 0.03 * all_cases * unit
    real, _ = levels_problem(60, np.where(np.arange(60) % 2, 0.9, 0.1), search=search)
    found = choose_levels(real, label_or_other(real), 0)
    assert found.honest > 0.97 * found.saved
    assert best_axis(real, label_or_other(real)).honest == found.honest


def test_rare_levels_go_together_and_a_side_has_few_names():
    rate = np.where(np.arange(30) < 12, 0.9, 0.1)
    problem, _ = levels_problem(30, rate, search=CategorySearch(1.0, 1, 4))
    split = choose_levels(problem, label_or_other(problem), 0).split
    n_left = int(split.categories[:30].sum())
    assert min(n_left, 30 - n_left) == 4
    assert split.categories[200] == (n_left > 4)  # levels that nobody names
    pooled, _ = levels_problem(30, rate, n=200, search=CategorySearch(1.0, 50))
    split = choose_levels(pooled, label_or_other(pooled), 0).split
    assert len(np.unique(split.categories[:30])) == 1
