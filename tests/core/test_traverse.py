import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from tables import blocks, trees
from toprank._core.dtypes import CATEGORY, CONDITION, NUMERIC
from toprank._core.traverse import confusion_scores, scorecard_points, walk
from toprank.tree.scoring import LeafScorecard


def walked(tree, block, scale=None, path=False):
    """Leaf, margin, length and path of each row; the last three only where they are asked for."""
    leaf, margin = np.empty(len(block), np.int32), np.empty(0 if scale is None else len(block))
    length = np.empty(len(block) if path else 0, np.int32)
    nodes = np.full((len(length), tree.depth + 1), -1, np.int32)
    scale = np.empty(0) if scale is None else scale
    with np.errstate(invalid="ignore"):
        walk(block, *tree.conditions, scale, leaf, margin, length, nodes)
    return leaf, margin, length, nodes


@given(trees(), blocks())
def test_rows_reach_the_leaves_of_the_reference(tree, block):
    leaf, _, _, _ = walked(tree, block)
    assert leaf.tolist() == [reference.path(tree, row)[-1] for row in block]


@given(trees(), blocks())
def test_paths_are_those_of_the_reference(tree, block):
    leaf, _, length, out = walked(tree, block, path=True)
    assert leaf.tolist() == [reference.path(tree, row)[-1] for row in block]
    for i, row in enumerate(block):
        assert out[i, : length[i]].tolist() == reference.path(tree, row)
        assert (out[i, length[i] :] == -1).all()


@given(trees(), blocks())
def test_margins_are_those_of_the_reference(tree, block):
    scale = np.array([1.0, 0.5, 3.0])
    leaf, margin, _, _ = walked(tree, block, scale)
    assert leaf.tolist() == [reference.path(tree, row)[-1] for row in block]
    assert margin.tolist() == [reference.margin(tree, row, scale) for row in block]


@given(trees(kinds=(NUMERIC, CATEGORY), shared=False), blocks(), st.sampled_from([0.0, 0.3, 1.0]))
def test_confusion_scores_are_those_of_the_reference(tree, block, confusion):
    out = np.empty(len(block))
    confusion_scores(block, *tree.conditions, tree.rate, confusion, out)
    assert out == pytest.approx([reference.confusion_score(tree, row, confusion) for row in block])


def test_confusion_score_of_one_split():
    """Rates 0.9 (satisfied) and 0.1 (one broken condition, weight 0.5): (0.9 + 0.05) / 1.5."""
    nodes = np.zeros(3, CONDITION)
    nodes["kind"], nodes["threshold"], nodes["left"], nodes["right"] = [1, 0, 0], 1.0, 1, 2
    bits, at, feature, weight = np.zeros((0, 4), np.uint64), np.zeros(4, np.int32), np.zeros(0, np.int32), np.zeros(0)
    out = np.empty(1)
    rate = np.array([np.nan, 0.9, 0.1])
    confusion_scores(np.zeros((1, 1)), nodes, bits, at, feature, feature, weight, weight, rate, 0.5, out)
    assert out[0] == pytest.approx(0.95 / 1.5)


@given(blocks())
def test_scorecard_points_are_those_of_the_reference(block):
    scoring = LeafScorecard(
        center=np.array([0.5, 0.0, 0.1]),
        weight=np.array([2.0, 0.0, -0.7]),
        missing=np.array([0.25, -1.0, 3.0]),
        points_at=np.array([0, 0, 3, 3]),
        category_points=np.array([0.1, -0.2, 0.3]),
    )
    out = np.empty(len(block))
    scorecard_points(block, *scoring.arrays, out)
    assert out.tolist() == [reference.scorecard(row, scoring) for row in block]
