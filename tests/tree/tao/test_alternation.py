"""The theorems of the TAO paper on random problems, at every step."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranker_cases import fewer
from tao_cases import blobs, label_of, make_problem, same_trees, tao_cases, total_cost
from toprank._core.threads import Threads
from toprank.tree.tao.alternating_tree import pruned, random_tree, to_tree, tree_of
from toprank.tree.tao.alternation import Alternation, best_candidate, cheapest_label, idle_label
from toprank.tree.tao.splits import Candidate

BINARY = np.array([[0.0, 0.3], [1.0, 0.0]])


def deepest_first(tree):
    return np.argsort(-tree.depth, kind="stable").tolist()


@fewer(3)
@given(tao_cases())
def test_the_objective_is_what_the_labels_cost_and_the_norms(case):
    Alternation(case.problem, case.tree)
    assert case.tree.cost(case.problem) == total_cost(case.tree, case.problem)
    norms = sum(split.norm for split in case.tree.splits if split is not None)
    expected = total_cost(case.tree, case.problem) * case.problem.unit + case.problem.alpha * norms
    assert case.tree.objective(case.problem) == pytest.approx(expected)


@fewer(3)
@given(tao_cases())
def test_rows_that_reach_a_node_are_those_that_its_path_sends_there(case):
    reached = case.tree.reduced_sets(case.problem)
    assert reached[0].tolist() == list(range(len(case.problem)))
    for node in np.flatnonzero(case.tree.left >= 0):
        parts = [reached[case.tree.left[node]], reached[case.tree.right[node]]]
        assert np.array_equal(np.sort(np.concatenate(parts)), reached[node])
    for leaf in np.flatnonzero(case.tree.left < 0):
        case.tree.label[leaf] = leaf
    for leaf in np.flatnonzero(case.tree.left < 0):
        assert all(label_of(case.tree, case.problem.rows.X[i]) == leaf for i in reached[leaf])


@fewer(3)
@given(tao_cases())
def test_a_node_changes_the_objective_by_what_its_care_points_say(case):
    """Theorem 4.1: with all else fixed, the objective is the reduced problem of the node and a constant."""
    problem, tree = case.problem, case.tree
    Alternation(problem, tree)
    other = random_tree(problem, 1, case.random).splits[0]
    before = total_cost(tree, problem)
    for node in np.flatnonzero(tree.left >= 0).tolist():
        reduced = tree.reduced_problem(problem, node, tree.reduced_sets(problem)[node])
        assert reduced.saving.all()
        saved = reduced.saving[tree.goes_left(problem, node, reduced.rows)].sum()
        changed = tree.copy()
        changed.replace(node, Candidate(other, 0))
        saved_then = reduced.saving[changed.goes_left(problem, node, reduced.rows)].sum()
        assert total_cost(changed, problem) - before == saved - saved_then
        assert changed.norm - tree.norm == pytest.approx(other.norm - tree.splits[node].norm)


@fewer(3)
@given(tao_cases())
def test_a_leaf_takes_the_label_that_costs_least(case):
    """Theorem 4.2; of equal labels the last, which of two is the positive one."""
    problem, tree = case.problem, case.tree
    Alternation(problem, tree)
    reached = tree.reduced_sets(problem)
    for leaf in np.flatnonzero(tree.left < 0):
        costs = [int(problem.cost[reached[leaf], k].sum()) for k in range(problem.n_classes)]
        if len(reached[leaf]):
            assert tree.label[leaf] == max(k for k, cost in enumerate(costs) if cost == min(costs))


def test_a_leaf_of_a_tie_is_positive_and_an_empty_one_keeps_its_label():
    problem = make_problem(np.array([[0.0], [1.0], [2.0]]), np.array([1, 0, 0]), [[0.0, 0.5], [1.0, 0.0]])
    assert cheapest_label(problem, np.arange(3), 0) == 1
    assert cheapest_label(problem, np.zeros(0, np.int64), 0) == 0


def test_a_tree_that_has_collapsed_comes_back():
    """A branch that no row takes may say anything: where it says something else, its parent has care points."""
    X, label = blobs()
    problem = make_problem(X, label, BINARY, 1e3)
    tree = random_tree(problem, 2, np.random.default_rng(0))
    Alternation(problem, tree).run(20)
    assert tree.norm == 0
    cheaper = make_problem(X, label, BINARY, 0.1)
    before = Alternation(cheaper, tree.copy()).objective_path[0]
    alternation = Alternation(cheaper, tree)
    alternation.run(20)
    assert alternation.objective_path[-1] < 0.7 * before


def test_the_label_of_an_idle_branch_is_the_cheapest_that_its_sibling_has_not():
    X, label = blobs(90, n_classes=3)
    costs = np.array([[0.0, 1.0, 1.0], [9.0, 0.0, 5.0], [1.0, 1.0, 0.0]])
    problem = make_problem(X, label, costs)
    assert [idle_label(problem, np.arange(len(problem)), taken) for taken in (0, 1, 2)] == [1, 2, 1]


@fewer(3)
@given(tao_cases())
def test_the_objective_never_rises_and_the_path_is_true_at_every_node(case):
    alternation = Alternation(case.problem, case.tree)
    for _ in range(3):
        reached = case.tree.reduced_sets(case.problem)
        for node in deepest_first(case.tree):
            before = len(alternation.objective_path)
            changed = alternation.improve_nodes([node], reached)
            path = alternation.objective_path
            assert len(path) - before == changed
            assert path[-1] == case.tree.objective(case.problem)
            assert path[-1] < path[-2] if changed and case.tree.left[node] >= 0 else path[-1] <= path[before - 1]
    alternation.improve()  # from the rows that reach the nodes now
    assert alternation.objective_path[-1] == case.tree.objective(case.problem)


@fewer(2)
@given(tao_cases(), st.data())
def test_nodes_of_one_level_do_not_depend_on_each_other(case, data):
    """Separability: one after the other in any order, or all at once, with one thread or with two."""
    one, two = case.tree, case.tree.copy()
    first, second = Alternation(case.problem, one), Alternation(case.problem, two)
    for _ in range(2):
        reached = one.reduced_sets(case.problem)
        for level in range(int(one.depth.max()), -1, -1):
            nodes = np.flatnonzero(one.depth == level).tolist()
            with Threads(2) as threads:
                first.problem = replace(case.problem, threads=threads)
                first.improve_nodes(nodes, reached)
            for node in data.draw(st.permutations(nodes)):
                second.improve_nodes([node], reached)
            assert same_trees(one, two)
            assert first.objective_path[-1] == second.objective_path[-1]


@fewer(3)
@given(tao_cases())
def test_passes_end_where_no_node_has_anything_better(case):
    alternation = Alternation(case.problem, case.tree)
    n_passes = alternation.run(50)
    assert n_passes < 50
    for node, rows in enumerate(case.tree.reduced_sets(case.problem)):
        if case.tree.left[node] >= 0 and len(rows):
            reduced, current = case.tree.reduced_problem(case.problem, node, rows), case.tree.splits[node]
            saved = int(reduced.saving[case.tree.goes_left(case.problem, node, reduced.rows)].sum())
            best = best_candidate(case.problem, reduced, current, case.tree.fits[node])[0]
            better = (best.saved - saved) * case.problem.unit - case.problem.alpha * (best.split.norm - current.norm)
            assert better <= 1e-3 * alternation.objective_path[-1]


@pytest.mark.parametrize("is_oblique", [True, False])
def test_three_classes_with_a_cost_matrix_end_below_the_best_single_label(is_oblique):
    X, label = blobs(n_classes=3)
    costs = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    problem = make_problem(X, label, costs, 0.1, is_oblique)
    alternation = Alternation(problem, random_tree(problem, 3, np.random.default_rng(0)))
    alternation.run(20)
    assert set(alternation.tree.labels(problem, np.arange(len(problem))).tolist()) == {0, 1, 2}
    assert alternation.objective_path[-1] < 0.8 * problem.cost.sum(axis=0).min() * problem.unit


def test_a_weighted_sum_is_found_where_classes_differ_along_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    label = (X[:, 0] - 2 * X[:, 1] > 0.3).astype(int)
    problem = make_problem(X, label, BINARY, 0.01)
    alternation = Alternation(problem, random_tree(problem, 1, rng))
    alternation.run(20)
    split = alternation.tree.splits[0]
    assert alternation.tree.cost(problem) * problem.unit < 0.02 * 200
    assert split.columns.tolist()[:2] == [1, 0]  # what moves the sum most comes first
    assert split.weights[0] / split.weights[1] == pytest.approx(-2, rel=0.2)
    sums = problem.rows.sums(np.arange(200), split.columns, split.codes, split.weights, split.fill)
    assert np.std(sums) == pytest.approx(1.0)


@fewer(3)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.05, 1.0]), st.booleans())
def test_the_objective_falls_where_sums_weigh_categories(seed, alpha, starts_at_random):
    """Additive categories, some missing, beside a number: every pass lowers the objective, which is what it says."""
    rng = np.random.default_rng(seed)
    X = np.column_stack((rng.integers(0, 4, (60, 2)), rng.normal(size=60))).astype(float)
    X[rng.random((60, 3)) < 0.1] = np.nan
    effect = rng.normal(size=(2, 4))
    total = np.where(np.isnan(X[:, 2]), 0.0, X[:, 2])
    for f in (0, 1):
        total += np.where(np.isnan(X[:, f]), 0.0, effect[f, np.nan_to_num(X[:, f]).astype(int)])
    label = (total + 0.3 * rng.normal(size=60) > 0.3).astype(int)
    problem = make_problem(X, label, BINARY, alpha, n_categories=np.array([4, 4, 0], np.int32))
    tree = random_tree(problem, 2, rng)
    if not starts_at_random:
        first = Alternation(problem, tree)
        first.improve()
        tree = tree_of(to_tree(pruned(first.tree, problem), problem), problem)
    alternation = Alternation(problem, tree)
    alternation.run(10)
    assert np.all(np.diff(alternation.objective_path) <= 0)
    assert tree.cost(problem) == total_cost(tree, problem)
    assert alternation.objective_path[-1] == pytest.approx(tree.objective(problem))


def test_a_large_penalty_leaves_no_condition():
    X, label = blobs()
    problem = make_problem(X, label, BINARY, 1e3)
    alternation = Alternation(problem, random_tree(problem, 3, np.random.default_rng(0)))
    alternation.run(20)
    assert alternation.tree.norm == 0
    assert alternation.objective_path[-1] == problem.cost.sum(axis=0).min() * problem.unit


def test_the_same_start_gives_the_same_tree():
    X, label = blobs()
    order = np.random.default_rng(1).permutation(len(X))
    ends = []
    for rows in (np.arange(len(X)), order):
        problem = make_problem(X[rows], label[rows], BINARY, 0.1)
        alternation = Alternation(problem, random_tree(problem, 3, np.random.default_rng(0)))
        alternation.run(20)
        ends.append(alternation.tree)
    assert same_trees(*ends)
