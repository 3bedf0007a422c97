from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from tables import blocks, check_same_tree, limits, make_splitter, plain_tree, tables, trees
from toprank._core.dtypes import AP, CATEGORY, NUMERIC
from toprank._core.threads import Threads
from toprank._core.traverse import walk_stages
from toprank.tree import bin_mapper
from toprank.tree.flatten import flatten_meta_tree
from toprank.tree.meta.meta_tree import grow_meta_tree
from toprank.tree.meta.objectives import AVERAGE_PRECISION
from toprank.tree.meta.stages import Stages, node_depths, truncated_tree
from toprank.tree.scoring import Margin
from toprank.tree.structure import Tree

SCALE = np.array([1.0, 0.5, 3.0])


def walked(tree, block, part_at, n_stages, scale):
    """Part and margin of each row after each stage."""
    reached = np.full((len(block), n_stages), -9, np.int32)
    margin = np.full((len(block) if len(scale) else 0, n_stages), -9.0)
    with np.errstate(invalid="ignore"):
        walk_stages(block, *tree.conditions, scale, part_at, reached, margin)
    return reached, margin


@given(trees(), blocks(), st.integers(1, 6), st.data())
def test_parts_and_margins_are_those_of_the_reference(tree, block, n_stages, data):
    begins = data.draw(st.lists(st.booleans(), min_size=len(tree), max_size=len(tree)).map(np.array))
    begins = begins | tree.is_leaf | (np.arange(len(tree)) == 0)
    part_at = np.where(begins, np.cumsum(begins) - 1, -1).astype(np.int32)
    reached, margin = walked(tree, block, part_at, n_stages, SCALE)
    for i, row in enumerate(block):
        parts, margins = reference.stages(tree, row, part_at, n_stages, SCALE)
        assert reached[i].tolist() == parts
        assert margin[i].tolist() == margins
    assert np.array_equal(walked(tree, block, part_at, n_stages, np.empty(0))[0], reached)


@given(trees(kinds=(NUMERIC, CATEGORY)), blocks())
def test_the_last_stage_is_the_whole_walk(tree, block):
    """Every node begins a part, and there are more stages than levels."""
    reached, margin = walked(tree, block, np.arange(len(tree), dtype=np.int32), len(tree), SCALE)
    assert reached[:, -1].tolist() == tree.apply(block).tolist()
    assert margin[:, -1].tolist() == [reference.margin(tree, row, SCALE) for row in block]


@pytest.mark.parametrize("mode", ["histogram", "exact"])
@given(table=tables(), rule=limits(), depth=st.integers(0, 4))
def test_a_row_is_after_each_stage_in_the_meta_node_that_holds_it(mode, table, rule, depth):
    meta = grow_meta_tree(make_splitter(table, mode), AVERAGE_PRECISION, depth, replace(rule, criterion=AP))
    tree, entry = flatten_meta_tree(meta, table.weights.unit, table.is_categorical)
    assert entry[0] == 0
    assert entry[meta.preorder()].tolist() == sorted(entry)
    assert np.array_equal(tree.is_leaf[entry], meta.is_leaf)
    part_at = np.full(len(tree), -1, np.int32)
    part_at[entry] = np.arange(len(entry))
    reached, _ = walked(tree, table.X, part_at, 4, np.empty(0))
    members = reference.meta_members(meta, table)
    for stage in range(1, 5):
        cut = meta.depth == stage
        ends = np.flatnonzero(cut | (meta.is_leaf & (meta.depth < stage)))
        for node in ends:
            rows = np.array(members[int(node)], int)
            assert (reached[rows, stage - 1] == node).all()


@pytest.mark.parametrize("mode", ["histogram", "exact"])
@given(table=tables(), rule=limits(), depth=st.integers(1, 5))
def test_a_truncated_tree_is_the_one_grown_to_that_depth(mode, table, rule, depth):
    deep = plain_tree(table, rule, mode=mode)
    shallow = plain_tree(table, replace(rule, max_depth=min(depth, rule.max_depth)), mode=mode)
    ranking = ("leaf", "score", "rate")
    cut = truncated_tree(deep, node_depths(deep), depth)
    check_same_tree(cut, shallow, ignore=(*ranking, "category_bits"))
    assert np.array_equal(cut.category_bits[: len(shallow.category_bits)], shallow.category_bits)
    assert node_depths(deep).max() == deep.depth


def stages_of(tree, n_stages, key=None):
    depth = node_depths(tree)
    key = np.zeros(len(tree)) if key is None else key
    return Stages.from_nodes(np.arange(len(tree)), depth, key, n_stages)


def two_levels():
    """x <= 0, then x <= -1 on the left: three leaves."""
    base = {"positive": [4, 4, 0, 3, 1], "negative": [6, 1, 5, 0, 1], "leaf": [-1, -1, 2, 0, 1]}
    nan = np.nan
    return Tree(
        kind=[1, 1, 0, 0, 0], feature=[0, 0, -1, -1, -1], threshold=[0, -1, nan, nan, nan], left=[1, 3, -1, -1, -1],
        right=[2, 4, -1, -1, -1], missing_left=[0] * 5, score=[nan, nan, 1 / 3, 1, 2 / 3],
        rate=[nan, nan, 0, 1, 0.5], category_at=[-1] * 5, gain=[1, 1, 0, 0, 0], n_features=1, **base,
    )  # fmt: skip


def test_scores_of_two_levels_by_hand():
    """Keys 0 < 1 < 2 < 3: after one stage two positions, after two stages three; the third stage repeats the second."""
    tree, X = two_levels(), np.array([[-3.0], [-0.5], [2.0], [np.nan]])
    stages = stages_of(tree, 3, key=np.array([4, 1, 3, 0, 2]))
    assert [score.tolist() for score in stages.scores(tree, X)] == [
        [1, 1, 0.5, 0.5],
        [1, 2 / 3, 1 / 3, 1 / 3],
        [1, 2 / 3, 1 / 3, 1 / 3],
    ]
    tied = stages_of(tree, 2, key=np.array([0, 0, 1, 0, 0]))
    assert [score.tolist() for score in tied.scores(tree, X)] == [[1, 1, 0.5, 0.5]] * 2
    margins = replace(tree, scoring=Margin(np.array([2.0])))
    first, second = stages_of(tree, 2, key=np.array([4, 1, 3, 0, 2])).scores(margins, X)

    def within(upper, place, n_leaves):
        return upper - (1 - (0.5 + 0.499 * place / (1 + abs(place)))) / n_leaves

    assert first == pytest.approx([within(1, 1.5, 2), within(1, 0.25, 2), within(0.5, -1, 2), within(0.5, 0, 2)])
    assert second == pytest.approx([within(1, 1, 3), within(2 / 3, 0.25, 3), within(1 / 3, -1, 3), within(1 / 3, 0, 3)])


def test_each_stage_is_an_array_of_its_own():
    tree = two_levels()
    first, *others = stages_of(tree, 4, key=np.arange(5)).scores(tree, np.zeros((3, 1)))
    first[:] = 7
    others[1][:] = 8
    assert [other.max() <= 1 for other in (others[0], others[2])] == [True, True]


@given(table=tables(), rule=limits(), seed=st.integers(0, 9))
def test_blocks_and_threads_change_nothing(table, rule, seed):
    tree = plain_tree(table, rule)
    key = np.random.default_rng(seed).permutation(len(tree))
    scale = np.ones(table.X.shape[1])
    tree = replace(tree, scoring=Margin(scale))
    stages = stages_of(tree, None, key)
    assert stages.n_stages == max(tree.depth, 1)
    expected = list(stages.scores(tree, table.X))
    with pytest.MonkeyPatch.context() as patch, Threads(2) as threads:
        patch.setattr(bin_mapper, "BLOCK_CELLS", 1)
        repeated = np.tile(table.X, (70, 1))
        for one, other in zip(expected, stages.scores(tree, repeated, threads), strict=True):
            assert np.array_equal(np.tile(one, 70), other)


def test_a_tree_of_one_leaf_has_one_stage():
    tree = truncated_tree(two_levels(), node_depths(two_levels()), 0)
    tree = replace(tree, leaf=[0], score=[1.0], rate=[0.4])
    assert [score.tolist() for score in stages_of(tree, None).scores(tree, np.zeros((2, 1)))] == [[1, 1]]
    margins = replace(tree, scoring=Margin(np.ones(1)))
    assert [score.tolist() for score in stages_of(tree, 2).scores(margins, np.zeros((2, 1)))] == [[0.5, 0.5]] * 2
