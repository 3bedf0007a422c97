import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from tables import Table, limits, make_splitter, ranked, rows_of, tables
from toprank._core.dtypes import AP, CATEGORY, GINI, NUMERIC
from toprank.tree.flatten import flatten_meta_tree, flatten_tree
from toprank.tree.grower import Limits, grow
from toprank.tree.meta.meta_tree import grow_meta_tree
from toprank.tree.meta.objectives import AVERAGE_PRECISION, ROC_AREA


@given(tables(), limits())
def test_a_greedy_tree_keeps_its_nodes_and_weights(table, rule):
    splitter = make_splitter(table)
    trees = grow(splitter, splitter.root(), rule)
    unit = table.weights.unit
    tree = flatten_tree(trees, unit, table.is_categorical)
    for name in ("feature", "left", "right"):
        assert getattr(tree, name).tolist() == getattr(trees, name).tolist()
    assert np.array_equal(tree.threshold, trees.threshold, equal_nan=True)
    assert np.array_equal(tree.positive, trees.segment.positive * unit)
    assert np.array_equal(tree.positive + tree.negative, trees.segment.total * unit)
    for node in np.flatnonzero(~tree.is_leaf):
        categorical = table.is_categorical[tree.feature[node]]
        assert tree.kind[node] == (CATEGORY if categorical else NUMERIC)
        assert tree.missing_left[node] == trees.missing_left[node]
        if categorical:
            assert tree.categories_left(node).tolist() == np.flatnonzero(trees.goes_left[node]).tolist()
    ranked(tree).check()
    leaves = tree.apply(table.X)
    for node in np.flatnonzero(tree.is_leaf):
        assert (leaves[rows_of(splitter, trees.segment, node)] == node).all()


@given(tables(), limits(), st.integers(0, 3), st.sampled_from([AVERAGE_PRECISION, ROC_AREA]))
def test_a_flattened_meta_tree_sends_every_row_where_the_inner_trees_send_it(table, rule, depth, objective):
    meta = grow_meta_tree(make_splitter(table), objective, depth, rule)
    tree = ranked(flatten_meta_tree(meta, table.weights.unit, table.is_categorical)[0]).check()
    rows, leaves = reference.meta_members(meta, table), tree.apply(table.X)
    for position, leaf in enumerate(meta.leaves()):
        assert (tree.leaf[leaves[rows[leaf]]] == position).all()
    assert tree.is_leaf.sum() == tree.n_leaves == len(meta.leaves()), "one node a meta-leaf, however many edges"
    assert (tree.left[~tree.is_leaf] != tree.right[~tree.is_leaf]).all(), "every condition decides something"


@given(tables(), limits(), st.integers(0, 3))
def test_node_weights_are_those_of_traversal(table, rule, depth):
    meta = grow_meta_tree(make_splitter(table), AVERAGE_PRECISION, depth, rule)
    tree = ranked(flatten_meta_tree(meta, table.weights.unit, table.is_categorical)[0])
    weights = table.weights
    nodes, length = tree.paths(table.X[table.rows])
    for node in range(len(tree)):
        own = np.array(table.rows)[[node in path[:n] for path, n in zip(nodes.tolist(), length, strict=True)]]
        assert tree.positive[node] == weights.positive[own].sum() * weights.unit
        assert tree.positive[node] + tree.negative[node] == weights.total[own].sum() * weights.unit


def test_cells_on_one_side_share_a_node_and_useless_conditions_disappear():
    """Positives at both ends: two cells make one leaf; so does the middle, however often it was cut."""
    X = np.arange(12.0)[:, None]
    labels = np.isin(np.arange(12), [0, 1, 10, 11])
    table = Table(X, np.zeros(1, np.int32), labels, None)
    meta = grow_meta_tree(make_splitter(table), AVERAGE_PRECISION, 1, Limits(AP, max_depth=3))
    tree = flatten_meta_tree(meta, 1.0, table.is_categorical)[0]
    assert len(meta.inner[0].index) >= 5
    assert tree.kind.tolist() == [1, 1, 0, 0]
    assert sorted(tree.threshold[:2]) == [1.0, 9.0]
    edges = np.concatenate((tree.left[:2], tree.right[:2])).tolist()
    assert sorted(edges) == [1, 2, 2, 3], "the left meta-child has two parents"
    assert tree.leaf.tolist() == [-1, -1, 0, 1]
    assert (tree.positive[2], tree.negative[2]) == (4, 0)


@pytest.mark.parametrize("unit", [1.0, 0.25])
def test_weights_are_in_cases_not_in_units(unit):
    table = Table(np.array([[1.0], [2.0]]), np.zeros(1, np.int32), np.array([True, False]), None)
    splitter = make_splitter(table)
    tree = flatten_tree(grow(splitter, splitter.root(), Limits(GINI)), unit, table.is_categorical)
    assert tree.positive.tolist() == [unit, unit, 0]
    assert tree.negative.tolist() == [unit, 0, unit]
