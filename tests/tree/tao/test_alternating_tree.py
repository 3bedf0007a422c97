from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranker_cases import fewer
from tables import Table, limits, meta_tree, plain_tree, ranked, tables
from tao_cases import blobs, make_problem, same_trees, tao_cases
from toprank._core.dtypes import CATEGORY, CRITERIA, NUMERIC, OBLIQUE
from toprank.tree.grower import Limits
from toprank.tree.tao.alternating_tree import AlternatingTree, pruned, random_tree, to_tree, tree_of
from toprank.tree.tao.alternation import Alternation
from toprank.tree.tao.splits import Split


def optimised(case, n_iter=4):
    Alternation(case.problem, case.tree).run(n_iter)
    return case.tree, pruned(case.tree, case.problem)


@fewer(3)
@given(tao_cases())
def test_pruning_keeps_every_label_and_never_raises_the_objective(case):
    whole, small = optimised(case)
    rows = np.arange(len(case.problem))
    assert np.array_equal(small.labels(case.problem, rows), whole.labels(case.problem, rows))
    assert len(small) <= len(whole)
    assert small.cost(case.problem) == whole.cost(case.problem)
    assert small.objective(case.problem) <= whole.objective(case.problem)


@fewer(3)
@given(tao_cases())
def test_a_pruned_tree_has_rows_in_every_node_and_different_labels_below_every_condition(case):
    small = optimised(case)[1]
    assert all(len(rows) for rows in small.reduced_sets(case.problem))

    def labels(node):
        if small.left[node] < 0:
            return {int(small.label[node])}
        return labels(int(small.left[node])) | labels(int(small.right[node]))

    inner = np.flatnonzero(small.left >= 0)
    assert all(len(labels(int(node))) > 1 for node in inner)
    assert np.all(small.left[inner] == inner + 1)  # parents first
    again = pruned(small, case.problem)
    assert np.array_equal(again.left, small.left)


@fewer(3)
@given(tao_cases())
def test_the_finished_tree_is_valid_and_sends_rows_to_the_same_labels(case):
    small = optimised(case)[1]
    tree = ranked(to_tree(small, case.problem)).check()
    rows = case.problem.rows
    assert np.array_equal(small.label[tree.apply(rows.X)], small.labels(case.problem, np.arange(len(rows))))
    assert tree.positive[0] + tree.negative[0] == rows.weight.sum() * rows.unit
    inner = np.flatnonzero(~tree.is_leaf)
    for side in (tree.positive, tree.negative):
        assert np.array_equal(side[inner], side[tree.left[inner]] + side[tree.right[inner]])
    assert np.all(tree.gain >= 0)
    assert np.all(tree.gain[tree.is_leaf] == 0)


@fewer(4)
@given(tao_cases())
def test_what_a_condition_gains_is_what_the_tree_costs_more_without_it(case):
    small = optimised(case)[1]
    tree = to_tree(small, case.problem)
    for node in np.flatnonzero(small.left >= 0):
        without = []
        for goes_left in (True, False):
            changed = small.copy()
            changed.splits[node] = Split.one_way(goes_left)
            without.append(changed.cost(case.problem))
        assert tree.gain[node] == max(min(without) - small.cost(case.problem), 0) * case.problem.unit


def test_a_branch_that_no_row_takes_and_a_condition_that_changes_no_label_disappear():
    X = np.arange(6.0).reshape(-1, 1)
    label = np.array([0, 0, 0, 1, 1, 1])
    problem = make_problem(X, label, [[0.0, 1.0], [1.0, 0.0]])
    cuts = [Split(NUMERIC, 1.0, 0, value) for value in (2.5, 1.0, 9.0)]
    tree = AlternatingTree(
        np.array([1, 3, 5, -1, -1, -1, -1]), np.array([2, 4, 6, -1, -1, -1, -1]), [*cuts, *[None] * 4]
    )
    Alternation(problem, tree)
    small = pruned(tree, problem)
    assert [split and split.threshold for split in small.splits] == [2.5, None, None]
    assert small.label.tolist()[1:] == [0, 1]
    assert (tree.norm, small.norm) == (3.0, 1.0)


def test_a_tree_that_says_the_same_everywhere_is_one_leaf():
    problem = make_problem(np.arange(4.0).reshape(-1, 1), np.array([0, 0, 0, 1]), [[0.0, 9.0], [1.0, 0.0]])
    tree = AlternatingTree(np.array([1, -1, -1]), np.array([2, -1, -1]), [Split(NUMERIC, 1.0, 0, 0.5), None, None])
    Alternation(problem, tree)
    small = pruned(tree, problem)
    assert len(small) == 1
    assert to_tree(small, problem).positive.tolist() == [1.0]


BINARY = [[0.0, 1.0], [1.0, 0.0]]


@fewer(2)
@given(tables(), limits())
def test_a_greedy_tree_starts_with_the_rows_where_it_has_them(table, limits):
    if not table.weights.total.any():
        return
    grown = plain_tree(table, limits)
    problem = make_problem(table.X, table.is_positive, BINARY, 0.5, True, table.sample_weight, table.n_categories)
    start = tree_of(grown, problem)
    start.label[:] = np.arange(len(start))
    assert np.array_equal(start.labels(problem, np.arange(len(problem))), grown.apply(problem.rows.X))
    assert start.norm == (~grown.is_leaf).sum()


@fewer(2)
@given(tao_cases())
def test_a_finished_tree_starts_where_it_ended(case):
    alternation = Alternation(case.problem, case.tree)
    alternation.run(3)
    small = pruned(alternation.tree, case.problem)
    again = tree_of(to_tree(small, case.problem), case.problem)
    assert np.array_equal(again.left, small.left)
    restarted = Alternation(case.problem, again)
    assert again.cost(case.problem) <= small.cost(case.problem)
    rows = np.arange(len(case.problem))
    for node in np.flatnonzero(small.left >= 0):
        assert np.array_equal(again.goes_left(case.problem, node, rows), small.goes_left(case.problem, node, rows))
    assert restarted.objective_path[0] >= 0


def test_the_norm_of_a_finished_sum_is_that_of_standard_deviations():
    X, label = blobs()
    problem = make_problem(X * [1.0, 100.0, 1.0], label, BINARY, 0.01)
    alternation = Alternation(problem, random_tree(problem, 1, np.random.default_rng(0)))
    tree = to_tree(alternation.tree, problem)
    split = tree_of(tree, problem).splits[0]
    spread = X.std(axis=0) * [1.0, 100.0, 1.0]
    assert split.kind == OBLIQUE
    assert split.norm == pytest.approx(np.abs(tree.oblique_weight * spread[tree.oblique_feature]).sum())


def test_categories_in_sums_start_with_their_norm_and_where_they_were():
    X, label = blobs()
    X = np.column_stack((X, np.arange(len(X)) % 3))
    problem = make_problem(X, label, BINARY, 0.01, n_categories=np.array([0, 0, 0, 3], np.int32))
    first = Alternation(problem, random_tree(problem, 1, np.random.default_rng(0)))
    tree = to_tree(first.tree, problem)
    assert sorted(tree.oblique_code.tolist()) == [-1, -1, -1, 0, 1, 2]
    split = tree_of(tree, problem).splits[0]
    spread = np.where(tree.oblique_code < 0, X.std(axis=0)[tree.oblique_feature], 1.0)
    assert split.norm == pytest.approx(np.abs(tree.oblique_weight * spread).sum())
    assert np.array_equal(split.codes, tree.oblique_code)
    rows = np.arange(len(problem))
    again = tree_of(tree, problem)
    assert np.array_equal(again.goes_left(problem, 0, rows), first.tree.goes_left(problem, 0, rows))
    with pytest.raises(ValueError, match="uses column 3 as categories, and it holds numbers"):
        tree_of(tree, make_problem(X, label, BINARY))
    numbers = to_tree(random_tree(make_problem(X, label, BINARY), 1, np.random.default_rng(0)), problem)
    with pytest.raises(ValueError, match="uses column 3 as numbers, and it holds categories"):
        tree_of(numbers, problem)


def test_a_tree_with_several_ways_to_a_node_is_refused():
    X = np.random.default_rng(0).normal(size=(60, 3))
    table = Table(X, np.zeros(3, np.int32), np.sin(3 * X[:, 0]) + X[:, 1] > 0.5, None)
    tree = meta_tree(table, Limits(CRITERIA["ap"], max_depth=3), depth=3)
    with pytest.raises(ValueError, match="one parent per node"):
        tree_of(tree, make_problem(table.X, table.is_positive, BINARY))


@pytest.mark.parametrize(("is_oblique", "kind"), [(True, OBLIQUE), (False, NUMERIC)])
def test_a_random_tree_is_complete_and_the_same_for_the_same_seed(is_oblique, kind):
    X, label = blobs()
    problem = make_problem(X, label, BINARY, 0.5, is_oblique)
    one, two, other = (random_tree(problem, 3, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert same_trees(one, two)
    assert not same_trees(one, other)
    assert [split is None for split in one.splits] == [False] * 7 + [True] * 8
    assert {split.kind for split in one.splits[:7]} == {kind}
    assert one.depth.tolist() == [0, 1, 1, 2, 2, 2, 2] + [3] * 8
    assert one.norm == 7


@given(st.integers(0, 2**32 - 1))
def test_random_sums_cut_at_a_value_that_the_rows_have(seed):
    X, label = blobs(40)
    X[::7, 1] = np.nan
    problem = make_problem(X, label, BINARY)
    split = random_tree(problem, 1, np.random.default_rng(seed)).splits[0]
    sums = problem.rows.sums(np.arange(len(problem)), split.columns, split.codes, split.weights, split.fill)
    assert split.threshold in (*sums.tolist(), 0.0)
    assert np.nanstd(sums) == pytest.approx(1.0)
    influence = np.abs(split.weights) * np.nanstd(X, axis=0)[split.columns]
    assert (np.diff(influence) <= 1e-12).all()


def test_random_conditions_on_categories_send_codes_that_no_row_had_like_missing_values():
    X = np.array([[0.0], [1.0], [np.nan]])
    problem = make_problem(X, np.array([0, 1, 1]), BINARY, n_categories=np.array([3], np.int32))
    for seed in range(5):
        split = random_tree(problem, 1, np.random.default_rng(seed)).splits[0]
        assert split.kind == CATEGORY
        assert set(split.categories[3:].tolist()) == {split.missing_left}


def test_a_start_from_a_copy_leaves_the_first_tree_alone():
    X, label = blobs()
    problem = make_problem(X, label, BINARY, 0.1)
    tree = random_tree(problem, 2, np.random.default_rng(0))
    before = tree.copy()
    Alternation(problem, tree.copy()).run(5)
    assert same_trees(tree, before)
    Alternation(replace(problem, alpha=0.2), tree).run(5)
    assert not same_trees(tree, before)
