"""Growing: greedy trees from a splitter, level by level or best first, from many roots at once.

All roots of a meta-level grow together, so the number of passes over the data is the depth, not the number of nodes.
`FeatureSampler` draws the columns that nodes may use.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from toprank._core.dtypes import ERROR, NODE
from toprank.tree.categories import PLAIN, Rules
from toprank.tree.splitters import Batch, Splits, Splitter

UNLIMITED = 2**31 - 1

ROUNDING = 2.0**-40
"""Tolerance of `stop_at_ap_loss` as a share of a node's weight: more than rounding errors, so that equal counts never
stop a node, and too small to be visible in an AP."""


@dataclass(frozen=True)
class Limits:
    """Stopping rules; weights in integer units, gain in units of the criterion.

    `stop_at_ap_loss`, for the criterion "ap", rejects conditions with less AP than the condition above gave their side.
    `categories` says how conditions on categories are searched (`CategorySearch.rules`), `direction` in which direction
    rates may go along each number (int8, None: in any).
    """

    criterion: int
    max_depth: int = UNLIMITED
    min_leaf: int = 1
    min_split: int = 2
    min_gain: float = -np.inf
    max_leaf_nodes: int = UNLIMITED
    sample_features: FeatureSampler | None = None
    stop_at_ap_loss: bool = False
    categories: Rules = PLAIN
    direction: np.ndarray | None = None

    def may_split(self, batch: Batch, depth: np.ndarray) -> np.ndarray:
        """Nodes worth searching: impure, heavy enough and not too deep."""
        impure = (batch.positive > 0) & (batch.positive < batch.total)
        heavy = batch.total >= max(self.min_split, 2 * self.min_leaf)
        return impure & heavy & (depth < self.max_depth)

    def accept(self, batch: Batch, gain: np.ndarray, side_gain: np.ndarray) -> np.ndarray:
        """Nodes whose best condition gains enough; `side_gain` is the gain of their side of the condition above."""
        enough = gain >= self.min_gain
        return enough & (gain >= side_gain - ROUNDING * batch.total) if self.stop_at_ap_loss else enough


@dataclass(frozen=True)
class GrownTrees:
    """Nodes of one or several greedy trees; a child's index is larger than its parent's.

    `root` is the tree that a node belongs to; node i < number of roots is root i. `segment` holds each node's rows and
    weights. feature = -1 at leaves. `goes_left` (n_nodes, 256) is used for categories.
    """

    root: np.ndarray
    depth: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray
    goes_left: np.ndarray
    left: np.ndarray
    right: np.ndarray
    gain: np.ndarray
    segment: Batch

    @property
    def is_leaf(self) -> np.ndarray:
        """Nodes without a condition."""
        return self.feature < 0

    @property
    def areas(self) -> np.ndarray:
        """Gain of each condition by the "auc" criterion, whatever criterion was used to find it; 0 at leaves."""
        out = np.zeros(len(self.root))
        inner = np.flatnonzero(~self.is_leaf)
        whole, part = self.segment.take(inner), self.segment.take(self.left[inner])
        positive, total, positive_left, total_left = (
            weight.astype(np.float64) for weight in (whole.positive, whole.total, part.positive, part.total)
        )
        out[inner] = np.abs(positive_left * (total - positive) - (total_left - positive_left) * positive)
        return out


class _Table:
    """The nodes so far, in lists of arrays; `freeze` concatenates them."""

    def __init__(self, roots: Batch):
        n = len(roots)
        self.n_nodes = n
        self.roots = roots
        self.root, self.depth = np.arange(n, dtype=NODE), np.zeros(n, NODE)
        self.segments = [(roots.start, roots.stop, roots.positive, roots.total)]
        self.conditions: list[tuple[np.ndarray, Splits, np.ndarray, np.ndarray]] = []

    def add(self, node: np.ndarray, splits: Splits, threshold: np.ndarray, children: Batch) -> np.ndarray:
        """Give the nodes their conditions and children; return the children's indices, left and right alternating."""
        child = np.arange(self.n_nodes, self.n_nodes + len(children), dtype=NODE)
        self.n_nodes += len(children)
        self.root = np.append(self.root, np.repeat(self.root[node], 2))
        self.depth = np.append(self.depth, np.repeat(self.depth[node] + 1, 2))
        self.segments.append((children.start, children.stop, children.positive, children.total))
        self.conditions.append((node, splits, threshold, child))
        return child

    def freeze(self) -> GrownTrees:
        n = self.n_nodes
        feature, left, right = (np.full(n, -1, NODE) for _ in range(3))
        threshold, gain = np.full(n, np.nan), np.zeros(n)
        missing_left, goes_left = np.zeros(n, np.uint8), np.zeros((n, 256), np.uint8)
        for node, splits, cut, child in self.conditions:
            feature[node], gain[node] = splits.record["feature"], splits.record["gain"]
            missing_left[node], goes_left[node] = splits.record["missing_left"], splits.goes_left
            threshold[node], left[node], right[node] = cut, child[::2], child[1::2]
        segment = Batch(*(np.concatenate(part) for part in zip(*self.segments, strict=True)))
        return GrownTrees(
            self.root, self.depth, feature, threshold, missing_left, goes_left, left, right, gain, segment
        )


def single_split(root: Batch, splits: Splits, threshold: np.ndarray, children: Batch) -> GrownTrees:
    """A tree with one given condition."""
    table = _Table(root)
    table.add(np.zeros(1, NODE), splits, threshold, children)
    return table.freeze()


@dataclass
class _Candidates:
    """Nodes that can be split, each with its best condition."""

    node: np.ndarray
    batch: Batch
    splits: Splits

    def take(self, index: np.ndarray) -> _Candidates:
        return _Candidates(self.node[index], self.batch.take(index), self.splits.take(index))


def grow(splitter: Splitter, roots: Batch, limits: Limits) -> GrownTrees:
    """Greedy trees from the given roots, one per root.

    Reorders the rows of `splitter`: the rows of a leaf are contiguous afterwards.
    """
    table = _Table(roots)
    if limits.sample_features is not None:
        limits.sample_features.begin(len(roots))
    worth = np.flatnonzero(limits.may_split(roots, table.depth))
    candidates = _evaluate(splitter, table, roots.take(worth), worth, np.zeros(len(worth)), limits)
    if limits.max_leaf_nodes == UNLIMITED:
        while len(candidates.node):
            candidates = _split_all(splitter, table, candidates, limits)
    else:
        for i in range(len(candidates.node)):
            _grow_best_first(splitter, table, candidates.take(np.array([i])), limits)
    return table.freeze()


def _grow_best_first(splitter: Splitter, table: _Table, root: _Candidates, limits: Limits) -> None:
    """Split the candidate with the largest gain until one root has its number of leaves; ties go to the older node."""
    heap = [(-root.splits.record["gain"][0], int(root.node[0]), root)]
    n_leaves = 1
    while heap and n_leaves < limits.max_leaf_nodes:
        candidates = _split_all(splitter, table, heapq.heappop(heap)[2], limits)
        n_leaves += 1
        for i in range(len(candidates.node)):
            one = candidates.take(np.array([i]))
            heapq.heappush(heap, (-one.splits.record["gain"][0], int(one.node[0]), one))


def _split_all(splitter: Splitter, table: _Table, candidates: _Candidates, limits: Limits) -> _Candidates:
    """Split every candidate; return the children that can be split again."""
    children = splitter.split(candidates.batch, candidates.splits)
    child = table.add(candidates.node, candidates.splits, splitter.thresholds(candidates.splits), children)
    needed = limits.may_split(children, table.depth[child])
    batch = splitter.with_statistics(candidates.batch, children, needed)
    return _evaluate(splitter, table, batch, child[needed], _side_gains(candidates.batch, children)[needed], limits)


def _side_gains(parents: Batch, children: Batch) -> np.ndarray:
    """Gain of each side of a condition, in the units of the gain by "ap"; float64 (n_children,).

    With child weights n+ and n, and parent weights m+ and m, the gain is n AP_side - n+ = (m+ - n+)(n/m - n+/m+),
    where AP_side = n+^2 / (m+ n) + (m+ - n+) / m (section 4 of the MetaAP paper). A root has AP n+/n, so 0.
    """
    positive, total = np.repeat(parents.positive, 2), np.repeat(parents.total, 2)
    return (positive - children.positive) * (children.total / total - children.positive / positive)


def _evaluate(
    splitter: Splitter, table: _Table, batch: Batch, node: np.ndarray, side_gain: np.ndarray, limits: Limits
) -> _Candidates:
    """Best condition of each node; drops nodes without one that the limits accept."""
    if len(batch) == 0:
        return _Candidates(node, batch, Splits(0))
    allowed = None if limits.sample_features is None else limits.sample_features.draw(table.root[node])
    roots = table.roots.take(table.root[node]) if limits.criterion == ERROR else None
    splits = splitter.best_splits(
        batch, limits.criterion, limits.min_leaf, allowed, roots, limits.categories, limits.direction
    )
    good = (splits.record["feature"] >= 0) & limits.accept(batch, splits.record["gain"], side_gain)
    found = _Candidates(node, batch, splits)
    return found if good.all() else found.take(np.flatnonzero(good))


# --- random columns -----------------------------------------------------------------------------------------------


class FeatureSampler:
    """Draws the columns that each node of a level may use.

    The grower announces new roots, each the root of an inner tree, and asks for the columns of nodes by their roots, in
    an order that does not depend on threads, so the draws are the same for any number of threads. `n_per_split` columns
    are redrawn for each condition, from `n_per_tree` that are drawn once per root; None = all.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.tree.grower import FeatureSampler
    >>> sampler = FeatureSampler(5, 1, 2, np.random.default_rng(0))
    >>> sampler.begin(1)
    >>> drawn = sampler.draw(np.zeros(100, int))  # a hundred conditions in the tree of root 0
    >>> int(drawn.sum(axis=1).max()), int(drawn.any(axis=0).sum())
    (1, 2)
    """

    def __init__(self, n_features: int, n_per_split: int | None, n_per_tree: int | None, rng: np.random.Generator):
        self.n_features, self.n_per_split, self.n_per_tree, self.rng = n_features, n_per_split, n_per_tree, rng
        self._of_root: np.ndarray | None = None

    def begin(self, n_roots: int) -> None:
        """Draw the columns of this many new roots."""
        if self.n_per_tree is not None:
            self._of_root = _smallest(self.rng.random((n_roots, self.n_features)), self.n_per_tree)

    def draw(self, root: np.ndarray) -> np.ndarray:
        """Columns that each node may use, uint8 (n_nodes, n_features), given the root of each node."""
        confined = None if self._of_root is None else self._of_root[root]
        if self.n_per_split is None:
            return np.ones((len(root), self.n_features), np.uint8) if confined is None else confined
        key = self.rng.random((len(root), self.n_features))
        if confined is None:
            return _smallest(key, self.n_per_split)
        key[confined == 0] = 1.0  # above every draw, so they come last; if taken, the next line drops them
        return _smallest(key, self.n_per_split) & confined


def _smallest(key: np.ndarray, count: int) -> np.ndarray:
    """Mark the `count` smallest keys of each row: uint8, the shape of `key`."""
    chosen = np.argsort(key, axis=1)[:, :count]
    marked = np.zeros(key.shape, np.uint8)
    np.put_along_axis(marked, chosen, 1, axis=1)
    return marked


def columns_wanted(wanted: str | int | float | None, n_features: int) -> int | None:
    """Number of columns for "sqrt", "log2", a number or a share; None stays None.

    Examples
    --------
    >>> from toprank.tree.grower import columns_wanted
    >>> [columns_wanted(wanted, 30) for wanted in ("sqrt", 0.5, 99, None)]
    [5, 15, 30, None]
    """
    if wanted is None:
        return None
    if isinstance(wanted, str):
        wanted = float({"sqrt": np.sqrt, "log2": np.log2}[wanted](n_features))
    elif not isinstance(wanted, int | np.integer):
        wanted = wanted * n_features
    return max(1, min(int(wanted), n_features))
