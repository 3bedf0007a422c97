"""`PathCounts`: the most common paths into each leaf, counted on training rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from toprank._core.dtypes import LEAF, NODE
from toprank._core.partition import count_rows, spread_rows
from toprank.errors import InputError, check_invariants
from toprank.explain.contributions import distinct_paths
from toprank.tree.scoring import rises
from toprank.tree.structure import Tree

PATHS_KEPT = 5
"""Most paths kept per leaf."""

DTYPES = {"leaf": NODE, "share": np.float64, "offset": NODE, "nodes": NODE, "n_paths": NODE}


@dataclass(frozen=True, eq=False)
class PathCounts:
    """The distinct paths that rows took, at most five per leaf position, heaviest first."""

    leaf: np.ndarray  # int32 (m,): leaf position of each path, ascending
    share: np.ndarray  # float64 (m,): share of the leaf's weight that took this path
    offset: np.ndarray  # int32 (m + 1,): path i owns nodes[offset[i]:offset[i + 1]]
    nodes: np.ndarray  # int32: of the paths, each from the root to its leaf
    n_paths: np.ndarray  # int32 (n_leaves,): distinct paths into each leaf position, including those not kept

    def __len__(self) -> int:
        return len(self.leaf)

    def into(self, leaf: int) -> Iterator[tuple[np.ndarray, float]]:
        """Return the paths into a leaf position with their shares, heaviest first."""
        for i in np.flatnonzero(self.leaf == leaf):
            yield self.nodes[self.offset[i] : self.offset[i + 1]], float(self.share[i])

    @classmethod
    def none(cls, tree: Tree) -> PathCounts:
        """Return no paths, for a tree without its training rows: rules then come from the tree alone."""
        nothing = np.zeros(0, NODE)
        return cls(nothing, np.zeros(0), np.zeros(1, NODE), nothing, np.zeros(tree.n_leaves, NODE))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return arrays by name, for a file; `from_arrays` restores the object."""
        return {name: getattr(self, name) for name in DTYPES}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], tree: Tree | None = None) -> PathCounts:
        """Restore paths from arrays made by `to_arrays`, checked, against the tree if one is given."""
        for name, dtype in DTYPES.items():
            if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1:
                raise InputError(f"Not valid paths: they lack an array {name!r} of {np.dtype(dtype)}.")
        counts = cls(**{name: arrays[name] for name in DTYPES})
        counts.check(tree)
        return counts

    def check(self, tree: Tree | None = None) -> None:
        """Raise ValueError at the first broken invariant."""
        m = len(self.leaf)
        consistent = (
            len(self.share) == m
            and len(self.offset) == m + 1
            and self.offset[0] == 0
            and self.offset[-1] == len(self.nodes)
            and bool(np.all(self.offset[1:] > self.offset[:-1]))  # a difference of int32 may wrap
        )
        invariants = [
            (consistent, "consistent in length"),
            (bool(np.all((self.share >= 0) & (self.share <= 1 + 1e-9))), "shares from 0 to 1"),
            (bool(np.all((self.leaf >= 0) & (self.leaf < len(self.n_paths)))), "ways into known leaves"),
            (bool(np.all(self.n_paths >= 0)), "counts of ways"),
            (rises(self.leaf), "in the order of the leaves"),
            (bool(np.all(self.leaf[PATHS_KEPT:] > self.leaf[:-PATHS_KEPT])), f"at most {PATHS_KEPT} ways into a leaf"),
            (tree is None or not consistent or self._fits(tree), "paths of this tree"),
        ]
        check_invariants(invariants, "Not valid paths: they are not {}. Hint: the data may be damaged.")

    def _fits(self, tree: Tree) -> bool:
        """Return True if every path runs from the root along children to a leaf of its position."""
        if len(self.n_paths) != tree.n_leaves:
            return False
        if len(self.nodes) and not 0 <= self.nodes.min() <= self.nodes.max() < len(tree):
            return False
        first, last = self.nodes[self.offset[:-1]], self.nodes[self.offset[1:] - 1]
        step = np.delete(np.arange(len(self.nodes)), self.offset[1:] - 1)
        child = self.nodes[step + 1]
        follows = (tree.left[self.nodes[step]] == child) | (tree.right[self.nodes[step]] == child)
        return bool(np.all(first == 0) and np.all(tree.leaf[last] == self.leaf) and np.all(follows))


def count_paths(
    tree: Tree,
    X: np.ndarray,
    weight: np.ndarray | None = None,
    max_rows: int = 20_000,
    leaf: np.ndarray | None = None,
) -> PathCounts:
    """Return the most common paths of the rows of X into each leaf position; rows of weight 0 do not count.

    From a table of more than `max_rows`, about that many rows are followed, the same number per leaf if it has them, as
    the leaves at the top are small but matter most. `leaf` is the leaf node of each row, if known already.
    """
    rows = np.arange(len(X)) if weight is None else np.flatnonzero(np.asarray(weight) > 0)
    if len(rows) > max_rows:
        reached = tree.apply(X) if leaf is None else leaf
        rows = rows_of_each_leaf(reached, rows, max(max_rows // int(tree.is_leaf.sum()), PATHS_KEPT))
    weights = np.ones(len(rows)) if weight is None else np.asarray(weight, np.float64)[rows]
    paths, which = distinct_paths(tree.paths(X[rows])[0])
    mass = np.bincount(which, weights, len(paths))
    place = tree.leaf[paths.max(axis=1, initial=0)]  # children come after their parents: the last node is the largest
    total = np.bincount(place, mass, tree.n_leaves)
    order = np.lexsort((np.arange(len(paths)), -mass, place))
    n_paths = np.bincount(place, minlength=tree.n_leaves)
    nth = np.arange(len(paths)) - np.repeat(np.cumsum(n_paths) - n_paths, n_paths)
    kept = order[nth < PATHS_KEPT]
    nodes = paths[kept]
    offset = np.append(0, np.cumsum((nodes >= 0).sum(axis=1)))
    return PathCounts(
        place[kept].astype(NODE),
        mass[kept] / total[place[kept]],
        offset.astype(NODE),
        nodes[nodes >= 0].astype(NODE),
        n_paths.astype(NODE),
    )


def rows_of_each_leaf(leaf: np.ndarray, rows: np.ndarray, quota: int) -> np.ndarray:
    """Return at most `quota` rows per leaf node, evenly spread over its rows; ascending."""
    size = count_rows(leaf, rows, int(leaf.max(initial=0)) + 1)
    out = np.empty(int(np.minimum(size, quota).sum()), rows.dtype)
    spread_rows(leaf, rows, size, quota, np.zeros(len(size), np.int64), out)
    return out


def ways_up(tree: Tree, leaf: int) -> Iterator[list[int]]:
    """Yield the paths from the root into a leaf position, from the tree alone, heavier parents first."""
    total = tree.positive + tree.negative
    parents: dict[int, list[int]] = {}
    for node in np.flatnonzero(tree.kind != LEAF).tolist():
        for child in {int(tree.left[node]), int(tree.right[node])}:
            parents.setdefault(child, []).append(node)
    for above in parents.values():
        above.sort(key=lambda node: total[node])  # the heaviest is popped first
    ends = np.flatnonzero(tree.leaf == leaf).tolist()
    stack = [[node] for node in sorted(ends, key=lambda node: total[node])]
    while stack:
        path = stack.pop()
        if path[0] == 0:
            yield path
        stack += [[parent, *path] for parent in parents.get(path[0], [])]
