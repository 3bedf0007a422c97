"""Small problems and trees for alternating optimisation, and slow, obvious versions of what it computes."""

from dataclasses import dataclass

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from tables import tables
from toprank._core.dtypes import CATEGORY, NUMERIC
from toprank.tree.splitters import Presorted
from toprank.tree.tao.alternating_tree import random_tree
from toprank.tree.tao.problem import CostProblem, DistinctRows
from toprank.tree.weights import integer_weights

COSTS = st.sampled_from([0.1, 0.5, 1.0, 2.0, 7.0])


@dataclass(frozen=True)
class TaoCase:
    """A problem, a tree to improve, and the generator that both came from."""

    problem: CostProblem
    tree: object
    random: np.random.Generator


def make_problem(X, label, costs, alpha=0.5, is_oblique=True, weight=None, n_categories=None):
    """A problem over a table; every distinct value may be cut."""
    n_categories = np.zeros(X.shape[1], np.int32) if n_categories is None else n_categories
    presorted = Presorted(X, n_categories)
    weights = integer_weights(np.zeros(len(X), bool), weight)
    is_categorical = (n_categories > 0).astype(np.uint8)
    rows = DistinctRows.from_rows(
        X, label, weights, is_categorical, lambda f: (presorted.codes[f], int(presorted.n_codes[f]))
    )
    return CostProblem.from_costs(rows, np.asarray(costs, float), alpha, is_oblique)


@st.composite
def tao_cases(draw, max_depth=3, max_rows=24):
    """Awkward tables (ties, missing values, categories, huge values), two or three classes, any cost matrix."""
    table = draw(tables(max_rows=max_rows, max_columns=3, weights=("none", "whole", "quarters")))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.sampled_from([2, 2, 3]))
    label = random.integers(0, n_classes, len(table.X)) if n_classes > 2 else table.is_positive.astype(int)
    costs = np.array([[0.0 if i == j else draw(COSTS) for j in range(n_classes)] for i in range(n_classes)])
    assume(table.weights.total.any())
    alpha, is_oblique = draw(st.sampled_from([0.0, 0.1, 0.5])), draw(st.booleans())
    problem = make_problem(table.X, label, costs, alpha, is_oblique, table.sample_weight, table.n_categories)
    return TaoCase(problem, random_tree(problem, draw(st.integers(1, max_depth)), random), random)


def blobs(n=120, seed=0, n_classes=2):
    """Overlapping clouds of points in three columns."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % n_classes
    return rng.normal(size=(n, 3)) + 1.5 * label[:, None] * [1.0, -0.5, 0.0], label


def goes_left(split, x):
    """Whether one row satisfies a condition, in plain Python."""
    if split.kind == CATEGORY:
        value = x[split.feature]
        return bool(split.missing_left if np.isnan(value) else split.categories[int(value)])
    if split.kind == NUMERIC:
        value = x[split.feature]
    else:
        value = 0.0
        for feature, code, weight, fill in zip(split.columns, split.codes, split.weights, split.fill, strict=True):
            if code >= 0:
                value += weight * (1.0 if x[feature] == code else 0.0)
            else:
                value += weight * (fill if np.isnan(x[feature]) else x[feature])
    return bool(split.missing_left) if np.isnan(value) else bool(value <= split.threshold)


def label_of(tree, x, node=0):
    """Label of one row that enters the tree at a node."""
    while tree.left[node] >= 0:
        node = int(tree.left[node] if goes_left(tree.splits[node], x) else tree.right[node])
    return int(tree.label[node])


def total_cost(tree, problem):
    """Cost of the labels of all rows, one row after the other."""
    return sum(int(problem.cost[i, label_of(tree, x)]) for i, x in enumerate(problem.rows.X))


def same_trees(one, other):
    """Whether two alternating trees have the same conditions, children and labels."""

    def parts(split):
        arrays = split.categories, split.columns, split.codes, split.weights, split.fill
        lists = [None if part is None else part.tolist() for part in arrays]
        return repr((split.kind, split.norm, split.feature, split.threshold, bool(split.missing_left), lists))

    return (
        np.array_equal(one.left, other.left)
        and np.array_equal(one.right, other.right)
        and np.array_equal(one.label[one.left < 0], other.label[other.left < 0])
        and all(a is b is None or parts(a) == parts(b) for a, b in zip(one.splits, other.splits, strict=True))
    )
