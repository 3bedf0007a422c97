"""Stages: the scores of a tree stopped after 1, 2, ... levels, from a single traversal.

A tree grown level by level contains every smaller one: it ends earlier. The parts between two levels are the nodes of a
plain tree or the meta-nodes of a meta-tree. Scores depend only on the part a row is in after each level, and on its
distance to the nearest threshold so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

import numpy as np

from toprank._core.dtypes import NODE
from toprank._core.threads import Threads
from toprank._core.traverse import walk_stages
from toprank.errors import InputError
from toprank.tree.bin_mapper import as_block, row_blocks
from toprank.tree.flatten import part_of_tree
from toprank.tree.scoring import squash
from toprank.tree.structure import Tree

MAX_STAGES = 100_000
"""Largest number of stages in a file."""


@dataclass(frozen=True, eq=False)
class Stages:
    """Parts of a tree and their order in the ranking, wherever the tree ends.

    Attributes
    ----------
    node : int32 array of shape (n_parts,)
        First node of each part in the tree; that of the first part is the root.
    depth : int32 array of shape (n_parts,)
        Stage after which a row can be in the part.
    key : int32 array of shape (n_parts,)
        Sort key of the parts in which a stage ends, smallest first; equal keys share a position.
    n_stages : int
    rate : float64 array of shape (n_parts,) or empty
        Smoothed positive rate of each part, if scores depend on it.
    """

    node: np.ndarray
    depth: np.ndarray
    key: np.ndarray
    n_stages: int
    rate: np.ndarray

    @classmethod
    def from_nodes(
        cls, node: np.ndarray, depth: np.ndarray, key: np.ndarray, max_depth: int | None, rate: np.ndarray | None = None
    ) -> Stages:
        """Stages up to a limit; None: as many as the tree has levels, at least one."""
        n_stages = max_depth or max(int(depth.max()), 1)
        rate = np.zeros(0) if rate is None else rate
        return cls(node.astype(NODE), depth.astype(NODE), key.astype(NODE), n_stages, rate)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Arrays by name, for a file; `from_arrays` returns equal stages."""
        return {name: np.array(value) for name, value in vars(self).items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], tree: Tree) -> Stages:
        """Stages from arrays made by `to_arrays`, for their tree; ValueError if they do not match it."""
        if set(arrays) != {f.name for f in fields(cls)} or not all(_invariants(arrays, tree)):
            raise InputError("The model's stages do not fit its tree.")
        node, depth, key, rate = (arrays[name] for name in ("node", "depth", "key", "rate"))
        return cls(node, depth, key, int(arrays["n_stages"]), rate)

    @property
    def n_distinct(self) -> int:
        """Number of stages up to the deepest part; later ones repeat the last of them."""
        return min(self.n_stages, max(int(self.depth.max()), 1))

    def scores(self, tree: Tree, X: np.ndarray, threads: Threads | None = None) -> Iterator[np.ndarray]:
        """Score of each row of X after each stage: n_stages arrays, float64 (n,).

        `tree` is the whole tree, with any scoring except "votes". All rows are routed down it before the first score is
        computed.
        """
        scoring = tree.scoring
        reached, margin = self._walk(tree, X, threads or Threads())
        has_margin = len(scoring.margin_units) > 0
        sign = tree.margin_sign[self.node] if has_margin else np.empty(0)
        room = scoring.room(X)
        score, n_leaves = self._positions(tree)

        def finish(stage: int) -> np.ndarray:
            part = reached[stage]
            below = 1.0 - squash(margin[stage] * sign[part]) if has_margin else room
            return score[stage, part] - below / n_leaves[stage]

        n_distinct = self.n_distinct
        return (finish(min(stage, n_distinct - 1)) for stage in range(self.n_stages))

    def _walk(self, tree: Tree, X: np.ndarray, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
        """Part and margin of each row after each stage, (n_distinct, n); no margins if the scoring has none."""
        units = tree.scoring.margin_units
        part_at = np.full(len(tree), -1, NODE)
        part_at[self.node] = np.arange(len(self.node))
        reached = np.empty((len(X), self.n_distinct), NODE)
        margin = np.empty((len(X) if len(units) else 0, self.n_distinct))
        threads.run(
            lambda rows: walk_stages(as_block(X, rows), *tree.conditions, units, part_at, reached[rows], margin[rows]),
            row_blocks(*X.shape),
        )
        return reached.T, margin.T

    def _positions(self, tree: Tree) -> tuple[np.ndarray, np.ndarray]:
        """Upper end of each part's score range after each stage, (n_distinct, n_parts), and the number of positions.

        Only parts in which a stage ends have a score after it.
        """
        last = np.arange(1, self.n_distinct + 1)[:, None]
        is_end = (self.depth == last) | ((self.depth < last) & tree.is_leaf[self.node])
        is_taken = np.zeros((len(last), int(self.key.max()) + 1), bool)
        stage, part = np.nonzero(is_end)
        is_taken[stage, self.key[part]] = True
        position = np.cumsum(is_taken, axis=1) - 1
        n_leaves = position[:, -1:] + 1
        return (n_leaves - position[:, self.key]) / n_leaves, n_leaves[:, 0]


def _invariants(arrays: Mapping[str, np.ndarray], tree: Tree) -> Iterator[bool | np.bool]:
    """Whether each invariant of stages in a file holds; one may rely on those before it."""
    node, depth, key, rate, n_stages = (arrays[name] for name in ("node", "depth", "key", "rate", "n_stages"))
    yield n_stages.shape == () and n_stages.dtype.kind in "iu" and 1 <= int(n_stages) <= MAX_STAGES
    yield all(array.dtype == NODE and array.shape == node.shape for array in (node, depth, key))
    yield node.ndim == 1 and 0 < len(node) <= len(tree) and node.min() >= 0 and node.max() < len(tree)
    yield len(np.unique(node)) == len(node) and node[0] == 0 == depth[0]
    yield depth.min() >= 0 and depth.max() <= tree.depth and key.min() >= 0 and key.max() <= len(tree)
    yield rate.dtype == np.float64 and rate.shape in ((0,), node.shape) and np.all((rate >= 0) & (rate <= 1))


def node_depths(tree: Tree) -> np.ndarray:
    """Number of conditions above each node of a plain tree, int32 (n_nodes,)."""
    depth = np.zeros(len(tree), NODE)
    level, steps = np.flatnonzero(~tree.is_leaf[:1]), 0
    while len(level):
        steps += 1
        below = np.concatenate((tree.left[level], tree.right[level]))
        depth[below] = steps
        level = below[~tree.is_leaf[below]]
    return depth


def truncated_tree(tree: Tree, depth: np.ndarray, max_depth: int) -> Tree:
    """The plain tree that would have been grown with this depth, without its order of leaves."""
    return part_of_tree(tree, 0, np.flatnonzero(depth == max_depth))[0]
