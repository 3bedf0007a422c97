"""Sums of trees: scores, exact Shapley values against their definition, invariants."""

from dataclasses import replace
from itertools import combinations
from math import factorial

import numpy as np
import pytest

from toprank._core.dtypes import CATEGORY, LEAF, NUMERIC
from toprank.errors import InputError
from toprank.tree.additive import AdditiveTrees


def small_trees():
    """Two trees on three features, the last of them a category; feature 0 is asked twice on a path."""
    bits = np.zeros((1, 4), np.uint64)
    bits[0, 0] = 0b101
    return AdditiveTrees(
        kind=[NUMERIC, NUMERIC, LEAF, LEAF, NUMERIC, LEAF, LEAF, CATEGORY, LEAF, LEAF],
        feature=[0, 1, 0, 0, 0, 0, 0, 2, 0, 0],
        threshold=[1.0, 2.0, 0, 0, 3.0, 0, 0, 0, 0, 0],
        left=[1, 2, -1, -1, 5, -1, -1, 8, -1, -1],
        right=[4, 3, -1, -1, 6, -1, -1, 9, -1, -1],
        missing_left=[1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        category_at=[-1] * 7 + [0, -1, -1],
        category_bits=bits,
        value=[0, 0, 0.5, -1.0, 0, 2.0, 0.25, 0, 1.0, -0.5],
        cover=[10, 6, 2, 4, 4, 1, 3, 10, 7, 3],
        gain=[3, 1, 0, 0, 1, 0, 0, 5, 0, 0],
        root=[0, 7],
        n_features=3,
    ).check()  # fmt: skip


ROWS = np.array([[0.0, 1.0, 0.0], [0.5, 5.0, 1.0], [2.0, 0.0, 2.0], [9.0, 0.0, np.nan], [np.nan, np.nan, 7.0]])


def conditional_mean(trees, row, known, node):
    """The value expected of a tree where only some features of a row are known."""
    if trees.kind[node] == LEAF:
        return float(trees.value[node])
    left, right = int(trees.left[node]), int(trees.right[node])
    means = [conditional_mean(trees, row, known, child) for child in (left, right)]
    if trees.feature[node] in known:
        x, is_missing = row[trees.feature[node]], np.isnan(row[trees.feature[node]])
        if trees.kind[node] == NUMERIC:
            goes_left = trees.missing_left[node] == 1 if is_missing else x <= trees.threshold[node]
        else:
            goes_left = trees.missing_left[node] == 1 if is_missing else x in (0, 2)
        return means[0] if goes_left else means[1]
    both = trees.cover[left] + trees.cover[right]
    return (trees.cover[left] * means[0] + trees.cover[right] * means[1]) / both


def test_scores_are_the_sums_of_leaves():
    assert small_trees().decision_function(ROWS).tolist() == [1.5, -1.5, 3.0, -0.25, -1.5]


def test_contributions_are_shapley_values():
    trees = small_trees()
    found = trees.contributions(ROWS)
    for row, contributions in zip(ROWS, found, strict=True):
        for feature in range(3):
            others, value = [f for f in range(3) if f != feature], 0.0
            for size in range(3):
                for known in combinations(others, size):
                    weight = factorial(size) * factorial(2 - size) / factorial(3)
                    for root in trees.root:
                        with_it = conditional_mean(trees, row, {*known, feature}, root)
                        value += weight * (with_it - conditional_mean(trees, row, {*known}, root))
            assert contributions[feature] == pytest.approx(value)
    mean = sum(conditional_mean(trees, ROWS[0], set(), root) for root in trees.root)
    np.testing.assert_allclose(found.sum(axis=1) + mean, trees.decision_function(ROWS), atol=1e-6)


def test_cover_is_the_weight_of_rows():
    trees = small_trees().with_cover(ROWS, np.ones(len(ROWS)))
    np.testing.assert_allclose(trees.cover, [5, 3, 1, 2, 2, 1, 1, 5, 2, 3], atol=2e-3)


def test_the_first_trees():
    trees = small_trees()
    assert len(trees.first(1)) == 1
    assert trees.first(1).check().decision_function(ROWS).tolist() == [0.5, -1.0, 2.0, 0.25, -1.0]
    assert np.array_equal(trees.first(2).decision_function(ROWS), trees.decision_function(ROWS))


def test_importances_are_shares_of_the_gain():
    np.testing.assert_allclose(small_trees().importances(), [0.4, 0.1, 0.5])


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("left", [1, 2, -1, -1, 5, -1, -1, 0, -1, -1], "children come after"),
        ("left", [1, 8, -1, -1, 5, -1, -1, 8, -1, -1], "children come after"),
        ("right", [4, 2, -1, -1, 6, -1, -1, 9, -1, -1], "one parent"),
        ("feature", [0, 1, 0, 0, 3, 0, 0, 2, 0, 0], "features are columns"),
        ("category_at", [-1] * 7 + [1, -1, -1], "sets of categories exist"),
        ("value", [0, 0, np.nan, -1.0, 0, 2.0, 0.25, 0, 1.0, -0.5], "finite"),
        ("cover", [10, 6, 0, 0, 4, 1, 3, 10, 7, 3], "met by cases"),
        ("root", [0, 12], "follows the other"),
        ("threshold", [np.nan, 2.0, 0, 0, 3.0, 0, 0, 0, 0, 0], "thresholds"),
        ("kind", [3, 1, 0, 0, 1, 0, 0, 2, 0, 0], "numbers or categories"),
    ],
)
def test_broken_trees_are_refused(name, value, rule):
    with pytest.raises(InputError, match=rule):
        replace(small_trees(), **{name: np.array(value)}).check()


def test_rows_of_another_width_are_refused():
    for use in (small_trees().decision_function, small_trees().contributions):
        with pytest.raises(InputError, match="3 columns"):
            use(np.zeros((2, 4)))
