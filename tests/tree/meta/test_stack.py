from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables import Table, check_same_tree, limits, make_splitter, tables
from toprank._core.dtypes import AP
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.tree.columns import Column
from toprank.tree.flatten import flatten_meta_tree
from toprank.tree.grower import Limits
from toprank.tree.meta.meta_tree import grow_meta_tree
from toprank.tree.meta.objectives import AVERAGE_PRECISION, ROC_AREA
from toprank.tree.meta.stack import RootMemory, StackLimits, grow_meta_trees

MODES = ["histogram", "exact"]


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
