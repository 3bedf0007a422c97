from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from tables import Table, check_same_tree, limits, make_splitter, meta_tree, ranked, tables
from toprank._core.dtypes import AP
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.tree import splitters
from toprank.tree.columns import Column
from toprank.tree.flatten import flatten_meta_tree
from toprank.tree.grower import Limits
from toprank.tree.meta.meta_tree import RootMemory, StackLimits, grow_meta_tree, grow_meta_trees
from toprank.tree.meta.objectives import AVERAGE_PRECISION, ROC_AREA

MODES = ["histogram", "exact"]
objectives = st.sampled_from([AVERAGE_PRECISION, ROC_AREA])


def finished(meta, table):
    return ranked(flatten_meta_tree(meta, table.weights.unit, table.is_categorical)[0])


@pytest.mark.parametrize("mode", MODES)
@given(table=tables(), rule=limits(), depth=st.integers(0, 3))
def test_cells_are_in_slope_order_and_the_cut_has_the_largest_average_precision(mode, table, rule, depth):
    rule = replace(rule, criterion=AP)
    meta = grow_meta_tree(make_splitter(table, mode), AVERAGE_PRECISION, depth, rule)
    positive, total = table.weights.positive, table.weights.total
    rows = reference.meta_members(meta, table)
    for node in meta.preorder():
        own = rows[node]
        assert (meta.positive[node], meta.total[node]) == (positive[own].sum(), total[own].sum())
        assert meta.depth[node] <= depth
        if meta.left[node] < 0:
            continue
        cells = reference.meta_cells(meta, table, node, own)
        ordered = reference.meta_order(list(cells.values()), positive, total)
        _, best = reference.meta_cut(ordered, positive, total)
        left = rows[meta.left[node]]
        found = reference.two_leaf_average_precision(
            *(reference.weight_of(part, w) for part in (left, own) for w in (positive, total))
        )
        assert float(found) == pytest.approx(float(best)), (left, ordered)
        lefts, rights = (
            [cell for i, cell in cells.items() if meta.inner[node].is_left[i] == side] for side in (True, False)
        )
        assert slope(lefts, own, max, table) <= slope(rights, own, min, table) * (1 + 1e-12)


def slope(cells, rows, choose, table):
    """Largest or smallest (1 - precision) / recall of some cells; infinite without positives."""
    positive, total = table.weights.positive, table.weights.total
    slopes = []
    for cell in cells:
        found, n = positive[cell].sum(), total[cell].sum()
        slopes.append((1 - found / n) / (found / positive[rows].sum()) if found else np.inf)
    return choose(slopes)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("inner_depth", [1, 2, 3])
def test_the_meta_tree_is_the_one_of_the_reference(mode, seed, inner_depth):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(40, 3)), 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.integers(10**3, 10**4, 40).astype(float)
    table = Table(X, np.zeros(3, np.int32), rng.random(40) < 0.3, weight)
    meta = grow_meta_tree(make_splitter(table, mode), AVERAGE_PRECISION, 3, Limits(AP, max_depth=inner_depth))
    rows = reference.meta_members(meta, table)
    expected = reference.meta_leaves(table.for_reference, table.rows, 3, inner_depth)
    assert [rows[leaf] for leaf in meta.leaves()] == expected


@given(tables(), limits(), objectives, st.randoms())
def test_row_order_changes_nothing(table, rule, objective, random):
    shuffled = table.take(np.array(random.sample(range(len(table.X)), len(table.X))))
    one, other = (
        meta_tree(t, replace(rule, criterion=objective.criterion), objective=objective) for t in (table, shuffled)
    )
    check_same_tree(one, other)


@given(tables(weights=("whole",)), limits(), objectives)
def test_a_weight_is_a_number_of_rows(table, rule, objective):
    repeated = replace(
        table.take(np.repeat(np.arange(len(table.X)), table.sample_weight.astype(int))), sample_weight=None
    )
    check_same_tree(*(meta_tree(t, rule, objective=objective) for t in (table, repeated)))


@given(tables(), limits(), objectives)
def test_exact_and_histogram_meta_trees_are_equal_where_bins_suffice(table, rule, objective):
    check_same_tree(*(meta_tree(table, rule, objective=objective, mode=mode) for mode in MODES))


@pytest.mark.parametrize("mode", MODES)
@given(table=tables(), rule=limits(), chunk=st.integers(1, 9), memory=st.sampled_from([0, 1000, 2**29]))
def test_threads_chunks_and_memory_change_nothing(mode, table, rule, chunk, memory):
    expected = meta_tree(table, rule, mode=mode)
    with pytest.MonkeyPatch.context() as patch, Threads(2) as threads:
        patch.setattr(splitters, "CHUNK_ROWS", chunk)
        patch.setattr(splitters, "HISTOGRAM_MEMORY", memory)
        check_same_tree(meta_tree(table, rule, mode=mode, threads=threads), expected)


@given(tables(), limits(), st.sampled_from([None, 3]), st.integers(0, 3))
def test_a_meta_tree_collapsed_at_a_depth_is_the_one_grown_to_that_depth(table, rule, max_leaf_nodes, depth):
    if max_leaf_nodes:
        rule = replace(rule, max_leaf_nodes=max_leaf_nodes)
    deep = grow_meta_tree(make_splitter(table), AVERAGE_PRECISION, 3, rule)
    shallow = grow_meta_tree(make_splitter(table), AVERAGE_PRECISION, depth, rule)
    cut = deep.collapsed(np.flatnonzero(deep.depth == depth))
    for name in ("left", "right", "depth", "positive", "total"):
        assert getattr(cut, name).tolist() == getattr(shallow, name).tolist(), name
    check_same_tree(finished(cut, table), finished(shallow, table))


@given(tables(), limits(), st.data())
def test_a_collapsed_meta_tree_is_valid_and_its_leaves_are_unions(table, rule, data):
    meta = grow_meta_tree(make_splitter(table), AVERAGE_PRECISION, 3, rule)
    nodes = data.draw(st.lists(st.integers(0, len(meta.left) - 1), unique=True))
    smaller = meta.collapsed(np.array(nodes, int))
    tree = finished(smaller, table).check()
    kept, stack = [], [0]
    while stack:  # the meta-leaves that are left: nodes that were leaves or are now
        node = stack.pop()
        if meta.left[node] < 0 or node in nodes:
            kept.append(node)
        else:
            stack += [int(meta.right[node]), int(meta.left[node])]
    old, new = reference.meta_members(meta, table), reference.meta_members(smaller, table)
    assert [new[leaf] for leaf in smaller.leaves()] == [old[leaf] for leaf in kept]
    assert tree.n_leaves == len(kept)
    for node in smaller.preorder():
        own = new[node]
        assert smaller.total[node] == table.weights.total[own].sum()


def test_collapsing_nothing_or_the_root():
    rng = np.random.default_rng(0)
    table = Table(rng.normal(size=(50, 2)), np.zeros(2, np.int32), rng.random(50) < 0.3, None)
    meta = grow_meta_tree(make_splitter(table), AVERAGE_PRECISION, 3, Limits(AP, max_depth=2))
    assert len(meta.leaves()) > 3
    check_same_tree(finished(meta.collapsed(np.array([], int)), table), finished(meta, table))
    assert meta.collapsed(np.array([0])).is_leaf.tolist() == [True]


@given(tables(), limits())
def test_the_roc_objective_cuts_where_the_excess_is_largest(table, rule):
    meta = grow_meta_tree(make_splitter(table), ROC_AREA, 2, replace(rule, criterion=ROC_AREA.criterion))
    rows, positive, total = reference.meta_members(meta, table), table.weights.positive, table.weights.total
    for node in np.flatnonzero(~meta.is_leaf):
        own, cells = rows[int(node)], reference.meta_cells(meta, table, node, rows[int(node)])

        def excess(part, own=own):
            found, n = positive[own].sum(), total[own].sum()
            return positive[part].sum() / found - (total[part].sum() - positive[part].sum()) / (n - found)

        best = sum(max(excess(cell), 0.0) for cell in cells.values())  # beta - alpha adds up over cells
        assert excess(rows[int(meta.left[node])]) == pytest.approx(best, abs=1e-9)


@given(tables(), limits(), st.integers(0, 3))
def test_every_cut_of_the_roc_objective_adds_area(table, rule, depth):
    """Remark 10: where no cut of the cells adds area, the meta-node is a leaf."""
    meta = grow_meta_tree(make_splitter(table), ROC_AREA, depth, replace(rule, criterion=ROC_AREA.criterion))
    positive, negative = meta.positive, meta.total - meta.positive
    for node in np.flatnonzero(~meta.is_leaf):
        left, right = meta.left[node], meta.right[node]
        assert int(positive[left]) * int(negative[right]) > int(positive[right]) * int(negative[left])


@pytest.mark.parametrize("mode", MODES)
def test_a_meta_node_whose_cells_are_alike_is_a_leaf_and_the_one_beside_it_grows(mode):
    """Left of x1 = 5 every cell has the same rate; right of it the second column tells."""
    X = np.array([[0, 0], [0, 0], [0, 1], [0, 1], [9, 1], [9, 1], [9, 2], [9, 2]], float)
    labels = np.array([True, False, True, False, True, False, False, False])
    table = Table(X, np.zeros(2, np.int32), labels, np.array([3, 1, 3, 1, 1, 3, 1, 3.0]))
    rule = Limits(ROC_AREA.criterion, max_depth=1)
    meta = grow_meta_tree(make_splitter(table, mode), ROC_AREA, 3, rule)
    rows = reference.meta_members(meta, table)
    assert [rows[leaf] for leaf in meta.leaves()] == [[0, 1, 2, 3], [4, 5], [6, 7]]
    alike = table.take(np.arange(4))
    assert grow_meta_tree(make_splitter(alike, mode), ROC_AREA, 3, rule).is_leaf.tolist() == [True]
    by_precision = grow_meta_tree(make_splitter(alike, mode), AVERAGE_PRECISION, 3, replace(rule, criterion=AP))
    assert len(by_precision.leaves()) == 2, "average precision has no such floor"


@pytest.mark.parametrize("mode", MODES)
def test_a_table_without_a_condition_is_one_leaf(mode):
    table = Table(np.ones((4, 2)), np.zeros(2, np.int32), np.array([True, False, False, True]), None)
    meta = grow_meta_tree(make_splitter(table, mode), AVERAGE_PRECISION, 3, Limits(AP))
    assert meta.is_leaf.tolist() == [True]
    assert meta.leaves() == [0]


@pytest.mark.parametrize("mode", MODES)
def test_meta_nodes_beside_one_without_a_condition_still_grow(mode):
    """One of two meta-nodes of a level is constant: only the other is parted."""
    X = np.array([[0, 5], [0, 5], [0, 5], [9, 1], [9, 2], [9, 3], [9, 4]], float)
    labels = np.array([True, True, False, False, True, False, False])
    table = Table(X, np.zeros(2, np.int32), labels, np.array([5, 5, 1, 10, 1, 10, 10.0]))
    meta = grow_meta_tree(make_splitter(table, mode), AVERAGE_PRECISION, 2, Limits(AP, max_depth=1))
    rows = reference.meta_members(meta, table)
    assert rows[1] == [0, 1, 2]
    assert meta.is_leaf.tolist() == [False, True, False, True, True]
    assert rows[meta.leaves()[0]] == [0, 1, 2]


def stacked(table, n_copies, mode, threads=None):
    """Splitter over copies of the table, and a root for each."""
    columns = [Column(f"x{i}", tuple("abcde") if n else None) for i, n in enumerate(table.n_categories)]
    splitter = {"histogram": "hist", "exact": "exact"}[mode]
    data = BinnedCases(table.X, table.is_positive, table.sample_weight, columns, splitter=splitter)
    return data.stacked_splitter(table.weights, threads or Threads(), n_copies)


def grow_stack(table, rule, depths, mode, objective=AVERAGE_PRECISION, threads=None):
    splitter, roots = stacked(table, len(depths), mode, threads)
    rule = replace(rule, max_depth=max(depths))
    return grow_meta_trees(
        splitter, roots, objective, 3, StackLimits(**vars(rule), depths=depths, n_rows=roots.stop[0])
    )


def check_same_meta_tree(one, other, table):
    for name in ("left", "right", "depth", "positive", "total"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
        assert getattr(one, name).dtype == getattr(other, name).dtype, name
    check_same_tree(*(flatten_meta_tree(meta, 1.0, table.is_categorical)[0] for meta in (one, other)))


@pytest.mark.parametrize("mode", MODES)
@given(
    table=tables(),
    rule=limits(),
    objective=st.sampled_from([AVERAGE_PRECISION, ROC_AREA]),
    best_first=st.sampled_from([None, 3]),
    stop_at_ap_loss=st.booleans(),
    depths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
)
def test_each_copy_gives_the_meta_tree_that_it_would_give_alone(
    mode, table, rule, objective, best_first, stop_at_ap_loss, depths
):
    rule = replace(
        rule, criterion=objective.criterion, stop_at_ap_loss=stop_at_ap_loss and objective is AVERAGE_PRECISION
    )
    if best_first:
        rule = replace(rule, max_leaf_nodes=best_first)
    together = grow_stack(table, rule, tuple(depths), mode, objective)
    for depth, meta in zip(depths, together, strict=True):
        alone = grow_meta_tree(make_splitter(table, mode), objective, 3, replace(rule, max_depth=depth))
        check_same_meta_tree(meta, alone, table)


@pytest.mark.parametrize("stop_at_ap_loss", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_threads_change_nothing_on_a_table_of_many_nodes(mode, stop_at_ap_loss):
    rng = np.random.default_rng(0)
    table = Table(rng.normal(size=(400, 3)), np.zeros(3, np.int32), rng.random(400) < 0.3, None)
    rule = Limits(AP, min_leaf=2, stop_at_ap_loss=stop_at_ap_loss)
    with Threads(2) as threads:
        together = grow_stack(table, rule, (1, 2, 4), mode, threads=threads)
    assert len({len(meta.left) for meta in together}) > 1
    for depth, meta in zip((1, 2, 4), together, strict=True):
        check_same_meta_tree(
            meta,
            grow_meta_tree(make_splitter(table, mode), AVERAGE_PRECISION, 3, replace(rule, max_depth=depth)),
            table,
        )


class Searched:
    """A splitter that counts the nodes whose conditions are searched before rows are regrouped for the first time."""

    def __init__(self, splitter):
        self.splitter, self.n_nodes, self.is_first = splitter, 0, True

    def __getattr__(self, name):
        return getattr(self.splitter, name)

    def best_splits(self, batch, *rest):
        self.n_nodes += len(batch) * self.is_first
        return self.splitter.best_splits(batch, *rest)

    def regroup(self, *arguments):
        self.is_first = False
        return self.splitter.regroup(*arguments)


@pytest.mark.parametrize("mode", MODES)
@given(table=tables(), rule=limits(), depths=st.lists(st.integers(1, 5), min_size=2, max_size=4))
def test_trees_that_remember_the_first_conditions_are_those_that_search_them(mode, table, rule, depths):
    known, deepest = [], 0
    for depth in depths:
        splitter = Searched(make_splitter(table, mode))
        rule = replace(rule, max_depth=depth)
        meta = grow_meta_tree(RootMemory(splitter, known), AVERAGE_PRECISION, 3, rule)
        check_same_meta_tree(meta, grow_meta_tree(make_splitter(table, mode), AVERAGE_PRECISION, 3, rule), table)
        assert depth > deepest or splitter.n_nodes == 0, "a shallower tree finds all it needs"
        deepest = max(depth, deepest)
    assert all(batch.histograms is None for batch, _ in known)


def test_only_levels_that_nobody_has_searched_are_searched():
    rng = np.random.default_rng(0)
    table = Table(rng.normal(size=(200, 3)), np.zeros(3, np.int32), rng.random(200) < 0.3, None)
    known, searched = [], []
    for depth in (2, 4, 3, 4):
        splitter = Searched(make_splitter(table))
        grow_meta_tree(RootMemory(splitter, known), AVERAGE_PRECISION, 2, Limits(AP, max_depth=depth))
        searched.append(splitter.n_nodes)
    assert searched == [len(known[0][0]) + len(known[1][0]), len(known[2][0]) + len(known[3][0]), 0, 0]
    assert len(known) == 4
