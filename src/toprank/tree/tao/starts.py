"""Trees that alternating optimisation starts from: a finished one, or a random one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toprank._core.dtypes import CATEGORY, NUMERIC, OBLIQUE
from toprank.errors import InputError
from toprank.tree.structure import Tree
from toprank.tree.tao.alternating_tree import AlternatingTree
from toprank.tree.tao.problem import CostProblem
from toprank.tree.tao.splits import Split, sum_split


def tree_of(tree: Tree, problem: CostProblem) -> AlternatingTree:
    """An improvable copy of a finished tree: its shape and its conditions.

    Raises ValueError if a node has several parents, or if a sum uses a column as the wrong kind.
    """
    inner = np.flatnonzero(~tree.is_leaf)
    children = np.concatenate((tree.left[inner], tree.right[inner]))
    if len(np.unique(children)) < len(children):
        raise InputError(
            "An initial tree must have one parent per node, but a node of this one has several. "
            "Hint: start from a TAOTree or a RankingTree."
        )
    is_odd = (tree.oblique_code >= 0) != (problem.rows.is_categorical[tree.oblique_feature] == 1)
    if is_odd.any():
        words = ["categories", "numbers"][:: 1 if tree.oblique_code[is_odd][0] >= 0 else -1]
        raise InputError(
            f"An initial tree must use each column as what it is, but a sum of this one uses column "
            f"{tree.oblique_feature[is_odd][0]} as {words[0]}, and it holds {words[1]}. "
            "Hint: fit both on the same columns."
        )
    splits: list[Split | None] = [None] * len(tree)
    for node in inner.tolist():
        splits[node] = _split_of(tree, node, problem)
    return AlternatingTree(np.where(tree.is_leaf, -1, tree.left), np.where(tree.is_leaf, -1, tree.right), splits)


def _split_of(tree: Tree, node: int, problem: CostProblem) -> Split:
    """Condition of a finished tree; the norm of a weighted sum is computed on standardised columns."""
    feature, missing_left = int(tree.feature[node]), bool(tree.missing_left[node])
    if tree.kind[node] == NUMERIC:
        return Split(NUMERIC, 1.0, feature, float(tree.threshold[node]), missing_left)
    if tree.kind[node] == CATEGORY:
        categories = np.zeros(256, bool)
        categories[tree.categories_left(node)] = True
        return Split(CATEGORY, 1.0, feature, missing_left=missing_left, categories=categories)
    own = slice(tree.oblique_at[node], tree.oblique_at[node + 1])
    columns, codes, weights = tree.oblique_feature[own], tree.oblique_code[own], tree.oblique_weight[own]
    usable, code, spread, _ = problem.rows.standard
    scale = problem.rows.is_categorical.astype(np.float64)
    scale[usable[code < 0]] = spread[code < 0]
    norm, threshold = float(np.abs(weights * scale[columns]).sum()), float(tree.threshold[node])
    terms = {"columns": columns, "codes": codes, "weights": weights, "fill": tree.oblique_fill[own]}
    return Split(OBLIQUE, norm, feature, threshold, missing_left, **terms)


def random_tree(problem: CostProblem, depth: int, random: np.random.Generator) -> AlternatingTree:
    """A complete tree of random conditions.

    Weights on standardised columns and the intercept are drawn from a standard normal distribution (section H.1.1),
    the weights then scaled to norm 1, which changes no side. Without columns to add up, and in trees with conditions on
    single columns, a random column and one of its values are drawn.
    """
    n_inner = 2**depth - 1
    node = np.arange(2 * n_inner + 1)
    left = np.where(node < n_inner, 2 * node + 1, -1)
    draw = _random_sum if problem.is_oblique and problem.rows.standard.can_add_up else _random_column
    splits = [draw(problem, random) for _ in range(n_inner)]
    return AlternatingTree(left, np.where(left < 0, -1, left + 1), [*splits, *[None] * (n_inner + 1)])


def _random_sum(problem: CostProblem, random: np.random.Generator) -> Split:
    standard = problem.rows.standard.values
    n_terms = standard.shape[1]
    weight, intercept = random.standard_normal((n_terms,)), float(random.standard_normal())
    split = sum_split(problem, np.arange(n_terms), weight)
    assert split.columns is not None
    assert split.codes is not None
    assert split.weights is not None
    assert split.fill is not None
    # The row whose sum is nearest to the drawn boundary defines it in original units.
    sums = standard[problem.rows.sample] @ weight + intercept
    nearest = problem.rows.sample[[int(np.argmin(np.abs(sums)))]]
    boundary = float(problem.rows.sums(nearest, split.columns, split.codes, split.weights, split.fill)[0])
    return replace(split, norm=1.0, threshold=0.0 if np.isnan(boundary) else boundary)


def _random_column(problem: CostProblem, random: np.random.Generator) -> Split:
    rows = problem.rows
    feature = int(random.integers(rows.X.shape[1]))
    if rows.is_categorical[feature]:
        goes_left = random.random(256) < 0.5
        goes_left[rows.n_codes[feature] :] = goes_left[rows.n_codes[feature]]
        missing_left = bool(goes_left[rows.n_codes[feature]])
        return Split(CATEGORY, 1.0, feature, missing_left=missing_left, categories=goes_left)
    value = rows.X[random.integers(len(rows)), feature]
    return Split(NUMERIC, 1.0, feature, 0.0 if np.isnan(value) else float(value), bool(random.random() < 0.5))
