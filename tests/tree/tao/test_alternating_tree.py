import numpy as np
from hypothesis import given

from ranker_cases import fewer
from tables import ranked
from tao_cases import make_problem, tao_cases
from toprank._core.dtypes import NUMERIC
from toprank.tree.tao.alternating_tree import AlternatingTree, pruned, to_tree
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
