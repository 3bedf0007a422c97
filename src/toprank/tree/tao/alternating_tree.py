"""`AlternatingTree`: a tree of fixed shape with changing conditions and labels, to and from `Tree`, or random."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from toprank._core.dtypes import CATEGORY, CONDITION, LEAF, NODE, NUMERIC, OBLIQUE, VALUE
from toprank._core.tao import labels_below, sides_at
from toprank.errors import InputError
from toprank.tree.structure import Tree
from toprank.tree.tao.logistic import LinearFit
from toprank.tree.tao.problem import CostProblem
from toprank.tree.tao.splits import Candidate, ReducedProblem, Split, sum_split


class AlternatingTree:
    """A tree of fixed shape whose conditions and labels may change.

    Attributes
    ----------
    left, right : int64 arrays of shape (n_nodes,)
        Children, -1 at leaves; the root is node 0. A node's children may be swapped.
    depth : int64 array of shape (n_nodes,)
    label : int64 array of shape (n_nodes,)
        Label of each leaf.
    splits : list of Split or None
        Condition of each inner node.
    fits : list of LinearFit or None
        Warm start of the next fit of a node's direction.
    """

    def __init__(self, left: np.ndarray, right: np.ndarray, splits: list[Split | None]):
        self.left, self.right = np.asarray(left, np.int64).copy(), np.asarray(right, np.int64).copy()
        self.depth = np.zeros(len(self.left), np.int64)
        for node in np.flatnonzero(self.left >= 0):
            self.depth[[self.left[node], self.right[node]]] = self.depth[node] + 1
        self.label = np.zeros(len(self.left), np.int64)
        self.splits = list(splits)
        self.fits: list[LinearFit | None] = [None] * len(self.left)
        self._arrays: tuple[np.ndarray, ...] | None = None

    def __len__(self) -> int:
        return len(self.left)

    def copy(self) -> AlternatingTree:
        """An independent copy."""
        other = AlternatingTree(self.left, self.right, self.splits)
        other.label, other.fits = self.label.copy(), list(self.fits)
        return other

    @property
    def norm(self) -> float:
        """Sum of the norms of all conditions."""
        return math.fsum(split.norm for split in self.splits if split is not None)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Conditions in the layout of the kernels."""
        if self._arrays is None:
            self._arrays = pack_conditions(self.left, self.right, self.splits)
        return self._arrays

    def replace(self, node: int, candidate: Candidate) -> None:
        """Give a node a new condition; swap its children if the candidate says so."""
        self.splits[node] = candidate.split
        if candidate.swaps:
            self.left[node], self.right[node] = self.right[node], self.left[node]
        self._arrays = None

    def leaves_below(self, node: int) -> list[int]:
        """Leaves of the subtree below a node."""
        leaves, stack = [], [node]
        while stack:
            node = stack.pop()
            if self.left[node] < 0:
                leaves.append(node)
            else:
                stack += [int(self.right[node]), int(self.left[node])]
        return leaves

    def goes_left(self, problem: CostProblem, node: int, rows: np.ndarray) -> np.ndarray:
        """Rows that go left at a node: bool."""
        out = np.empty(len(rows), np.bool_)
        sides_at(problem.rows.X, rows, node, *self.arrays, out)
        return out

    def labels(self, problem: CostProblem, rows: np.ndarray, start: int = 0) -> np.ndarray:
        """Label of each of the rows if it enters the tree at `start`: int64."""
        out = np.empty(len(rows), np.int64)
        labels_below(problem.rows.X, rows, start, *self.arrays, self.label, out)
        return out

    def labels_of(self, X: np.ndarray) -> np.ndarray:
        """Label of each row of another table: int64 (n,)."""
        out = np.empty(len(X), np.int64)
        labels_below(np.ascontiguousarray(X, VALUE), np.arange(len(X)), 0, *self.arrays, self.label, out)
        return out

    def reduced_sets(self, problem: CostProblem) -> list[np.ndarray]:
        """Rows that reach each node, ascending: R of the paper."""
        threads, _ = problem.threads, self.arrays  # computed once, before threads need them
        nothing = np.zeros(0, np.int64)
        reached = [nothing] * len(self)
        reached[0] = np.arange(len(problem))
        for node in np.argsort(self.depth, kind="stable").tolist():
            if self.left[node] >= 0:
                parts = np.array_split(reached[node], threads.n_threads)
                is_left = np.concatenate(threads.run(partial(self.goes_left, problem, node), parts))
                reached[self.left[node]], reached[self.right[node]] = reached[node][is_left], reached[node][~is_left]
        return reached

    def reduced_problem(self, problem: CostProblem, node: int, rows: np.ndarray) -> ReducedProblem:
        """The reduced problem of an inner node reached by these rows (theorem 4.1)."""
        children = int(self.left[node]), int(self.right[node])
        at_left, at_right = problem.threads.run(partial(self.labels, problem, rows), children)
        saving = problem.cost[rows, at_right] - problem.cost[rows, at_left]
        cares = saving != 0
        return ReducedProblem(rows[cares], saving[cares])

    def cost(self, problem: CostProblem) -> int:
        """Cost of the labels of all rows, in units of cost."""
        rows = np.arange(len(problem))
        return int(problem.cost[rows, self.labels(problem, rows)].sum())

    def objective(self, problem: CostProblem) -> float:
        """Eq. (3): cost of the labels plus alpha times the norms."""
        return self.cost(problem) * problem.unit + problem.alpha * self.norm


def pack_conditions(left: np.ndarray, right: np.ndarray, splits: list[Split | None]) -> tuple[np.ndarray, ...]:
    """Nodes, category sets and terms of weighted sums, in the layout of traversal kernels."""
    nodes = np.zeros(len(left), CONDITION)
    nodes["left"], nodes["right"] = left, right
    bits: list[np.ndarray] = []
    terms = np.zeros(len(left) + 1, NODE)
    for node, split in enumerate(splits):
        if split is None:
            nodes[node]["kind"] = LEAF
            continue
        values = {"kind": split.kind, "feature": split.feature, "threshold": split.threshold}
        for name, value in (values | {"missing_left": split.missing_left, "category_at": -1}).items():
            nodes[node][name] = value
        if split.categories is not None:
            nodes[node]["category_at"] = len(bits)
            bits.append(np.packbits(split.categories, bitorder="little").view(np.uint64))
        terms[node + 1] = 0 if split.columns is None else len(split.columns)
    sums = [split for split in splits if split is not None and split.columns is not None]
    columns, codes, weights, fill = (
        np.concatenate([np.zeros(0, dtype), *(getattr(split, name) for split in sums)]).astype(dtype)
        for name, dtype in (("columns", NODE), ("codes", NODE), ("weights", np.float64), ("fill", np.float64))
    )
    return nodes, np.array(bits, np.uint64).reshape(-1, 4), np.cumsum(terms, dtype=NODE), columns, codes, weights, fill


def pruned(tree: AlternatingTree, problem: CostProblem) -> AlternatingTree:
    """The tree without branches that no row takes and without redundant conditions, parents first.

    Every row keeps its label.
    """
    reached = tree.reduced_sets(problem)

    def kept(node: int) -> int:
        """The node that replaces a node."""
        while tree.left[node] >= 0:
            sides = [child for child in (int(tree.left[node]), int(tree.right[node])) if len(reached[child])]
            if len(sides) == 2:
                break
            node = sides[0]
        return node

    def labels(node: int) -> set[int]:
        if tree.left[node] < 0:
            return {int(tree.label[node])}
        return labels(kept(int(tree.left[node]))) | labels(kept(int(tree.right[node])))

    def preorder(node: int) -> Iterator[int]:
        yield node
        if len(labels(node)) > 1:
            yield from preorder(kept(int(tree.left[node])))
            yield from preorder(kept(int(tree.right[node])))

    order = list(preorder(kept(0)))
    place = {node: i for i, node in enumerate(order)}
    is_leaf = [len(labels(node)) == 1 for node in order]
    edges = [
        [-1 if leaf else place[kept(int(side[node]))] for node, leaf in zip(order, is_leaf, strict=True)]
        for side in (tree.left, tree.right)
    ]
    splits = [None if leaf else tree.splits[node] for node, leaf in zip(order, is_leaf, strict=True)]
    out = AlternatingTree(np.array(edges[0]), np.array(edges[1]), splits)
    for i, (node, leaf) in enumerate(zip(order, is_leaf, strict=True)):
        out.fits[i] = tree.fits[node]
        if leaf:
            out.label[i] = min(labels(node))
    return out


def to_tree(tree: AlternatingTree, problem: CostProblem) -> Tree:
    """`Tree` from a pruned tree; leaf positions, scores and rates are not set yet.

    The last label is the positive one. A condition's gain is what it saves over sending all rows to the better child.
    """
    nodes, bits, terms, columns, codes, weights, fill = tree.arrays
    reached = tree.reduced_sets(problem)
    mass = problem.rows.weight * problem.rows.unit
    is_positive = problem.rows.label == problem.n_classes - 1
    total = np.array([mass[rows].sum() for rows in reached])
    positive = np.array([mass[rows[is_positive[rows]]].sum() for rows in reached])
    gain = np.zeros(len(tree))
    for node in np.flatnonzero(tree.left >= 0).tolist():
        reduced = tree.reduced_problem(problem, node, reached[node])
        saved = int(reduced.saving[tree.goes_left(problem, node, reduced.rows)].sum())
        gain[node] = max(saved - reduced.one_way[0], 0) * problem.unit
    is_inner = nodes["kind"] != LEAF
    blank = np.full(len(tree), np.nan)
    return Tree(
        kind=nodes["kind"],
        feature=np.where(np.isin(nodes["kind"], (NUMERIC, CATEGORY)), nodes["feature"], -1),
        threshold=np.where(np.isin(nodes["kind"], (NUMERIC, OBLIQUE)), nodes["threshold"], np.nan),
        left=nodes["left"],
        right=nodes["right"],
        missing_left=nodes["missing_left"],
        positive=positive,
        negative=np.maximum(total - positive, 0.0),
        leaf=np.full(len(tree), -1),
        score=blank,
        rate=blank,
        category_at=np.where(is_inner, nodes["category_at"], -1),
        gain=gain,
        n_features=problem.rows.X.shape[1],
        category_bits=bits,
        oblique_at=terms,
        oblique_feature=columns,
        oblique_code=codes,
        oblique_weight=weights,
        oblique_fill=fill,
    )


# --- trees to start from ------------------------------------------------------------------------------------------


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
