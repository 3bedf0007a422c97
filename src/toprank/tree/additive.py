"""`AdditiveTrees`: trees whose leaves have values that are added up, as boosting makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from toprank._core.dtypes import CATEGORY, CONDITION, LEAF, NODE, NUMERIC
from toprank._core.threads import Threads
from toprank._core.traverse import add_covers, shapley_values, sum_trees
from toprank.errors import InputError, Invariant, check_invariants
from toprank.tree.bin_mapper import as_block, row_blocks
from toprank.tree.columns import Column
from toprank.tree.structure import parents_of

DTYPES: dict[str, Any] = {
    "kind": np.uint8, "feature": NODE, "threshold": np.float64, "left": NODE, "right": NODE, "missing_left": np.uint8,
    "category_at": NODE, "category_bits": np.uint64, "value": np.float32, "cover": np.float64, "gain": np.float64,
    "root": NODE,
}  # fmt: skip

MAX_DEPTH = 100
"""Most conditions on a path: the explanation of a row takes time in the square of it."""

MAX_NODES = 2**24
"""Most nodes of all trees."""

MAX_SCORE, MAX_SIZE = 1e38, 1e300
"""Values of all nodes add up to at most the first, as scores are in single precision; gains and weights, to at most the
second."""

NOT_VALID = "Not valid trees: they break the rule that {}. Hint: the data may be damaged."


@dataclass(frozen=True, eq=False)
class AdditiveTrees:
    """Trees in arrays with one entry per node, one tree after the other; conditions as in `Tree`.

    Attributes
    ----------
    kind, feature, threshold, left, right, missing_left, category_at, category_bits
        The conditions: `value <= threshold` or a category in a subset goes left.
    value : float32
        Leaves: what the leaf adds to the score; 0 inside.
    cover : float64
        Training weight that reached the node; of children it adds up to more than 0.
    gain : float64
        Gain of the condition; 0 at leaves.
    root : int32 (n_trees,)
        First node of each tree.
    n_features : int
    """

    kind: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    category_at: np.ndarray
    category_bits: np.ndarray
    value: np.ndarray
    cover: np.ndarray
    gain: np.ndarray
    root: np.ndarray
    n_features: int

    def __post_init__(self) -> None:
        for name, dtype in DTYPES.items():
            array = np.array(getattr(self, name), dtype, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.root)

    def __repr__(self) -> str:
        return f"AdditiveTrees({len(self):,} trees, {self.n_leaves:,} leaves, {self.n_features:,} features)"

    @property
    def is_leaf(self) -> np.ndarray:
        """Nodes without a condition."""
        return self.kind == LEAF

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return int(self.is_leaf.sum())

    @cached_property
    def conditions(self) -> np.ndarray:
        """The nodes as traversal kernels read them."""
        nodes = np.empty(len(self.kind), CONDITION)
        for name in CONDITION.names or ():
            nodes[name] = getattr(self, name)
        return nodes

    @cached_property
    def leaf_paths(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Leaves, and the nodes on the path to each: int32 (n_leaves,), starts int64 (n_leaves + 1,), nodes int32."""
        parent = parents_of(np.where(self.is_leaf, -1, self.left), self.right)
        leaves, paths = np.flatnonzero(self.is_leaf), []
        for leaf in leaves.tolist():
            path = [leaf]
            while parent[path[-1]] >= 0:
                path.append(int(parent[path[-1]]))
            paths.append(path[::-1])
        at = np.append(0, np.cumsum([len(path) for path in paths]))
        return leaves.astype(NODE), at.astype(np.int64), np.array([n for path in paths for n in path], NODE)

    @property
    def depth(self) -> int:
        """Largest number of conditions on a path; children come after their parents."""
        depth, left, right = [0] * len(self.kind), self.left.tolist(), self.right.tolist()
        for node in np.flatnonzero(~self.is_leaf).tolist():
            depth[left[node]] = depth[right[node]] = depth[node] + 1
        return max(depth)

    def first(self, n_trees: int) -> AdditiveTrees:
        """The first trees."""
        end = int(self.root[n_trees]) if n_trees < len(self) else len(self.kind)
        kept = {name: getattr(self, name) if name == "category_bits" else getattr(self, name)[:end] for name in DTYPES}
        return AdditiveTrees(**kept | {"root": self.root[:n_trees]}, n_features=self.n_features)

    def decision_function(self, X: np.ndarray, threads: Threads | None = None) -> np.ndarray:
        """Sum of the values of each row's leaves, float64 (n,); added in single precision, tree by tree."""
        self._check_width(X)
        total = np.zeros(len(X), np.float32)

        def add(rows: slice) -> None:
            block = as_block(X, rows)
            sum_trees(block, self.conditions, self.category_bits, self.root, self.value, total[rows])

        (threads or Threads()).run(add, row_blocks(*X.shape))
        return total.astype(np.float64)

    def staged(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the scores after the first tree, the first two, and so on; float64 (n,) each."""
        self._check_width(X)
        total, parts = np.zeros(len(X), np.float32), row_blocks(*X.shape)
        for tree in range(len(self)):
            for rows in parts:
                sum_trees(as_block(X, rows), self.conditions, self.category_bits, self.root[tree : tree + 1],
                          self.value, total[rows])  # fmt: skip
            yield total.astype(np.float64)

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Shapley values of each row's score, float64 (n, n_features): the score minus its mean, shared by feature.

        The mean is over the training rows that are behind `cover`; a feature that is left out of a coalition is
        averaged over the rows that reached the node.
        """
        self._check_width(X)
        leaves, starts, path = self.leaf_paths
        out, points = np.zeros(X.shape), quadrature((self.depth + 1) // 2)
        for rows in row_blocks(*X.shape):
            shapley_values(
                as_block(X, rows), self.conditions, self.category_bits, leaves, starts, path, self.value, self.cover,
                *points, out[rows],
            )  # fmt: skip
        return out

    @classmethod
    def from_parts(cls, parts: list[dict[str, np.ndarray]], n_features: int) -> AdditiveTrees:
        """Trees, each given by its arrays with nodes and sets of categories numbered from 0; checked."""
        sizes, sets = ([len(part[name]) for part in parts] for name in ("kind", "category_bits"))
        root = np.append(0, np.cumsum(sizes))
        arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        for name, start in (("left", root), ("right", root), ("category_at", np.append(0, np.cumsum(sets)))):
            arrays[name] = np.where(arrays[name] < 0, -1, arrays[name] + np.repeat(start[:-1], sizes))
        return cls(**arrays, root=root[:-1], n_features=n_features).check()

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The arrays of the trees by name, for a file."""
        return {name: getattr(self, name) for name in DTYPES}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], columns: list[Column]) -> AdditiveTrees:
        """The trees that `to_arrays` wrote, checked; raises InputError if they are damaged, or of other columns."""
        for name, dtype in DTYPES.items():
            if arrays[name].dtype != dtype or arrays[name].ndim != (2 if name == "category_bits" else 1):
                raise InputError(f"Its trees have an array {name} of another type.")
        trees = cls(**{name: arrays[name] for name in DTYPES}, n_features=len(columns)).check()
        is_category = np.array([column.is_categorical for column in columns], bool)
        has_order = np.array([column.is_ordered or not column.is_categorical for column in columns], bool)
        fit = is_category[trees.feature[trees.kind == CATEGORY]], has_order[trees.feature[trees.kind == NUMERIC]]
        check_invariants([(part.all(), "conditions are of the kinds of their columns") for part in fit], NOT_VALID)
        return trees

    def node_weights(self, X: np.ndarray, weight: np.ndarray, threads: Threads | None = None) -> np.ndarray:
        """Weight of the rows that pass each node, float64 (n_nodes,).

        Parameters
        ----------
        X : float array of shape (n, n_features)
        weight : float64 array of shape (n,)
        """
        self._check_width(X)

        def add(rows: slice) -> np.ndarray:
            out = np.zeros(len(self.kind))
            add_covers(as_block(X, rows), weight[rows], self.conditions, self.category_bits, self.root, out)
            return out

        parts = (threads or Threads()).run(add, row_blocks(*X.shape))
        return np.sum(parts, axis=0)

    def with_cover(self, X: np.ndarray, weight: np.ndarray) -> AdditiveTrees:
        """The same trees with the weights of these rows as cover; sides that no row reached share what is there.

        Parameters
        ----------
        X : float array of shape (n, n_features)
        weight : float64 array of shape (n,)
        """
        return self.with_given_cover(self.node_weights(X, weight) + least_cover(weight))

    def with_given_cover(self, cover: np.ndarray) -> AdditiveTrees:
        """The same trees with other weights of nodes."""
        return replace(self, cover=cover)

    def spread(self) -> float:
        """How far the trees spread cases apart: the standard deviation of each tree's values, added up."""
        weight = np.where(self.is_leaf, self.cover, 0.0)
        total = np.add.reduceat(weight, self.root)
        mean = np.add.reduceat(weight * self.value, self.root) / total
        square = np.add.reduceat(weight * self.value.astype(np.float64) ** 2, self.root) / total
        return float(np.sqrt(np.maximum(square - mean**2, 0.0)).sum())

    def importances(self) -> np.ndarray:
        """Share of each feature in the gain, float64 (n_features,); sums to 1, or is 0 without conditions."""
        inner = ~self.is_leaf
        gain = np.bincount(self.feature[inner], np.maximum(self.gain[inner], 0.0), self.n_features)
        return gain / gain.sum() if gain.sum() > 0 else gain

    def check(self) -> Self:
        """Verify every invariant; return self, or raise ValueError with an explanation."""
        check_invariants(self._invariants(), NOT_VALID)
        return self

    def _invariants(self) -> Iterator[Invariant]:
        n = len(self.kind)
        shapes = {getattr(self, name).shape for name in DTYPES if name not in ("category_bits", "root")}
        yield shapes == {(n,)} and n > 0 and self.root.ndim == 1, "all arrays have one entry per node"
        yield n <= MAX_NODES, f"there are at most {MAX_NODES:,} nodes"
        yield len(self.root) > 0 and self.root[0] == 0, "the first tree begins at the first node"
        ends = np.append(self.root[1:], n)
        yield np.all(self.root < ends) and np.all(ends <= n), "one tree follows the other"
        yield np.all(np.isin(self.kind, (LEAF, NUMERIC, CATEGORY))), "conditions are on numbers or categories"
        inner = np.flatnonzero(~self.is_leaf)
        owner_end = np.repeat(ends, ends - self.root)
        for child in (self.left[inner], self.right[inner]):
            yield np.all((child > inner) & (child < owner_end[inner])), "children come after their parents"
        children = np.concatenate((self.left[inner], self.right[inner]))
        yield len(np.unique(children)) == len(children) == n - len(self.root), "every node but a root has one parent"
        yield np.all((self.feature[inner] >= 0) & (self.feature[inner] < self.n_features)), "features are columns"
        of_category = self.kind == CATEGORY
        at = self.category_at[of_category]
        yield self.category_bits.ndim == 2 and self.category_bits.shape[1:] == (4,), "sets of categories have 256 bits"
        yield np.all((at >= 0) & (at < len(self.category_bits))), "sets of categories exist"
        yield len(self.category_bits) <= n, "there is at most one set of categories per node"
        yield np.all(self.missing_left <= 1), "missing values go to one side"
        yield not np.isnan(self.threshold[self.kind == NUMERIC]).any(), "thresholds are numbers"
        for sizes, most in ((self.value, MAX_SCORE), (self.gain, MAX_SIZE), (self.cover, MAX_SIZE)):
            yield np.all(np.abs(sizes.astype(np.float64)) <= most / n), "sums of values, gains and weights are finite"
        yield np.all(self.cover >= 0), "weights are not negative"
        both = self.cover[self.left[inner]] + self.cover[self.right[inner]]
        yield np.all(both > 0) and np.all(self.cover[self.root] > 0), "every condition was met by cases"
        yield self.depth <= MAX_DEPTH, f"paths have at most {MAX_DEPTH} conditions"

    def _check_width(self, X: np.ndarray) -> None:
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise InputError(
                f"The trees have {self.n_features} columns, got an array of shape {X.shape}. "
                "Hint: pass the encoded columns that they were grown on."
            )


def least_cover(weight: np.ndarray) -> float:
    """What is added to the weight of every node, so that explanations know a way to each: a thousandth of a case."""
    return 1e-3 * float(weight.sum()) / max(len(weight), 1)


def quadrature(most: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre points on [0, 1] and their weights: row i, of i points, integrates polynomials of degree 2 i - 1.

    Returns
    -------
    float64 arrays of shape (most + 1, most), at least one column

    Examples
    --------
    >>> at, weight = quadrature(2)
    >>> round(float(weight[2] @ at[2] ** 3), 12)
    0.25
    """
    at, weight = np.zeros((2, most + 1, max(most, 1)))
    for n in range(1, most + 1):
        points, weights = np.polynomial.legendre.leggauss(n)
        at[n, :n], weight[n, :n] = (points + 1.0) / 2.0, weights / 2.0
    return at, weight
