"""`Tree`: the frozen structure that every ranker produces.

A node may have several parents: a meta-tree is flattened into one `Tree`, where each cell of an inner tree is an edge
into a meta-child. A node's index is always smaller than its children's, and the root is node 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from toprank._core.dtypes import CATEGORY, CONDITION, LEAF, NODE, NUMERIC, OBLIQUE
from toprank._core.threads import Threads
from toprank._core.traverse import walk
from toprank.errors import InputError, Invariant, check_invariants
from toprank.tree.bin_mapper import as_block, row_blocks
from toprank.tree.columns import Column
from toprank.tree.scoring import NO_MARGIN, Margin, Scoring, Ties, rises, scoring_from, squash

DTYPES: dict[str, Any] = {
    "kind": np.uint8, "feature": NODE, "threshold": np.float64, "left": NODE, "right": NODE, "missing_left": np.uint8,
    "positive": np.float64, "negative": np.float64, "leaf": NODE, "score": np.float64, "rate": np.float64,
    "category_at": NODE, "category_bits": np.uint64, "oblique_at": NODE, "oblique_feature": NODE,
    "oblique_code": NODE, "oblique_weight": np.float64, "oblique_fill": np.float64, "gain": np.float64,
}  # fmt: skip
"""Fixed-width type of every array of a tree."""

N_CODES = 256
"""Number of codes that a set of categories can hold."""

MAX_DEPTH = 1_000
"""Largest number of conditions on a path of a tree in a file."""


@dataclass(frozen=True, eq=False)
class Tree:
    """Conditions, leaves and weights in arrays with one entry per node.

    Attributes
    ----------
    kind : uint8
        0 leaf, 1 `value <= threshold`, 2 category in a subset, 3 weighted sum of features <= threshold.
    feature, threshold, left, right, missing_left
        The condition; rows that satisfy it go left, missing values go left if missing_left is 1.
    positive, negative : float64
        Training weight that reached the node.
    leaf : int32
        Position of a leaf in the ranking, 0 = top; -1 inside. Leaf nodes may share a position.
    score : float64
        Leaves: upper end of the leaf's range of scores. Ranges of different positions do not overlap.
    rate : float64
        Leaves: smoothed positive rate, non-increasing along the positions.
    category_at, category_bits : int32 (n_nodes,), uint64 (m, 4)
        Row of `category_bits` that lists the codes going left.
    oblique_at, oblique_feature, oblique_code, oblique_weight, oblique_fill
        Terms of oblique conditions: node i owns entries oblique_at[i]:oblique_at[i + 1]. A term with code -1 is a
        number: a missing value is replaced by the term's fill; if that is NaN, rows with a missing value go by
        missing_left. A term with code c >= 0 is 1 if the row has category c of the feature, else 0, also for a missing
        or unknown category; its fill is 0.
    gain : float64
        Gain of the condition by the criterion; 0 at leaves.
    n_features : int
    scoring : Scoring
        Order of the rows inside a leaf.
    """

    kind: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    positive: np.ndarray
    negative: np.ndarray
    leaf: np.ndarray
    score: np.ndarray
    rate: np.ndarray
    category_at: np.ndarray
    gain: np.ndarray
    n_features: int
    scoring: Scoring = field(default_factory=Ties)
    category_bits: np.ndarray = field(default_factory=lambda: np.zeros((0, 4), np.uint64))
    oblique_at: np.ndarray = field(default_factory=lambda: np.zeros(0, NODE))
    oblique_feature: np.ndarray = field(default_factory=lambda: np.zeros(0, NODE))
    oblique_code: np.ndarray = field(default_factory=lambda: np.zeros(0, NODE))
    oblique_weight: np.ndarray = field(default_factory=lambda: np.zeros(0))
    oblique_fill: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if len(self.oblique_at) == 0:
            object.__setattr__(self, "oblique_at", np.zeros(len(self.kind) + 1, NODE))
        if len(self.oblique_fill) == 0:
            object.__setattr__(self, "oblique_fill", np.full(len(self.oblique_weight), np.nan))
        if len(self.oblique_code) == 0:
            object.__setattr__(self, "oblique_code", np.full(len(self.oblique_weight), -1))
        for name, dtype in DTYPES.items():
            array = np.array(getattr(self, name), dtype, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.kind)

    def __repr__(self) -> str:
        n_leaves = int(self.leaf.max(initial=-1)) + 1
        sizes = ((len(self), "node", "nodes"), (n_leaves, "leaf", "leaves"), (self.n_features, "feature", "features"))
        return f"Tree({', '.join(f'{n:,} {one if n == 1 else many}' for n, one, many in sizes)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return (
            self.n_features == other.n_features
            and self.scoring == other.scoring
            and all(
                np.array_equal(getattr(self, name), getattr(other, name), equal_nan=DTYPES[name] is np.float64)
                for name in DTYPES
            )
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_leaf(self) -> np.ndarray:
        """Nodes without a condition."""
        return self.kind == LEAF

    @property
    def n_leaves(self) -> int:
        """Number of positions in the ranking."""
        return int(self.leaf.max()) + 1

    @property
    def depth(self) -> int:
        """Largest number of conditions on a path from the root to a leaf."""
        depth, left, right = [0] * len(self), self.left.tolist(), self.right.tolist()
        for node in np.flatnonzero(~self.is_leaf).tolist():
            below = depth[node] + 1
            for child in (left[node], right[node]):
                if depth[child] < below:
                    depth[child] = below
        return max(depth)

    @cached_property
    def conditions(self) -> tuple[np.ndarray, ...]:
        """The arrays for traversal kernels, in their order."""
        nodes = np.empty(len(self), CONDITION)
        for name in CONDITION.names or ():
            nodes[name] = getattr(self, name)
        terms = self.oblique_at, self.oblique_feature, self.oblique_code, self.oblique_weight, self.oblique_fill
        return nodes, self.category_bits, *terms

    def categories_left(self, node: int) -> np.ndarray:
        """Category codes that go left at a node."""
        bits = self.category_bits[self.category_at[node]]
        return np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))

    def apply(self, X: np.ndarray, threads: Threads | None = None) -> np.ndarray:
        """Leaf node of each row of X: int32 (n,)."""
        self._check_width(X)
        leaf = np.empty(len(X), NODE)
        (threads or Threads()).run(lambda rows: self._walk(as_block(X, rows), leaf[rows]), row_blocks(*X.shape))
        return leaf

    def _check_width(self, X: np.ndarray) -> None:
        """Raise ValueError unless X has one column per feature: kernels do not check bounds."""
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise InputError(
                f"The tree has {self.n_features} columns, got an array of shape {X.shape}. "
                "Hint: pass the encoded columns that it was grown on."
            )

    def paths(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nodes of each row's path, padded, int32 (n, longest), and the number of nodes in it, int32 (n,)."""
        self._check_width(X)
        path = np.full((len(X), self.depth + 1), -1, NODE)
        leaf, length = np.empty(len(X), NODE), np.empty(len(X), NODE)
        for rows in row_blocks(*X.shape):
            self._walk(as_block(X, rows), leaf[rows], length=length[rows], path=path[rows])
        return path, length

    def _walk(
        self,
        block: np.ndarray,
        leaf: np.ndarray,
        scale: np.ndarray = NO_MARGIN,
        margin: np.ndarray | None = None,
        length: np.ndarray | None = None,
        path: np.ndarray | None = None,
    ) -> None:
        """Route one block of rows down the tree; fill the arrays that are not empty."""
        margin = np.empty(0) if margin is None else margin
        length = np.empty(0, NODE) if length is None else length
        path = np.empty((0, 0), NODE) if path is None else path
        walk(block, *self.conditions, scale, leaf, margin, length, path)

    def decision_function(self, X: np.ndarray, threads: Threads | None = None) -> np.ndarray:
        """Score of each row of X, float64 (n,): first by leaf, then by position inside its range."""
        return self.scores_and_leaves(X, threads)[0]

    def scores_and_leaves(self, X: np.ndarray, threads: Threads | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Score, float64 (n,), and leaf node, int32 (n,), of each row of X, in one pass."""
        self._check_width(X)
        score, leaf = np.empty(len(X)), np.empty(len(X), NODE)
        (threads or Threads()).run(
            lambda rows: self._score(as_block(X, rows), leaf[rows], score[rows]), row_blocks(*X.shape)
        )
        return score, leaf

    def scores_with_points(self, leaf: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Scores of rows with known leaf nodes and points on the scorecard inside leaves, float64 (n,)."""
        return self.score[leaf] - (1.0 - squash(points)) / self.n_leaves

    def _score(self, block: np.ndarray, leaf: np.ndarray, out: np.ndarray) -> None:
        """Write the leaves and the scores of one block of rows."""
        self._walk(block, leaf, self.scoring.margin_units, out)
        self.scoring.finish(self, block, leaf, out)

    @cached_property
    def margin_sign(self) -> np.ndarray:
        """Sign of margins in each node, +1 or -1, for a tree that scores by margins."""
        assert isinstance(self.scoring, Margin)
        return self.scoring.sign(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers; `from_dict` returns an equal tree. NaN and infinities are strings."""

        def plain(value: Any) -> Any:
            if isinstance(value, list):
                return [plain(v) for v in value]
            return value if not isinstance(value, float) or np.isfinite(value) else repr(value)

        arrays = {name: plain(getattr(self, name).tolist()) for name in DTYPES}
        return {"n_features": self.n_features, "scoring": self.scoring.to_dict()} | arrays

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Tree:
        """Tree from a dictionary made by `to_dict`; checked."""

        def array(name: str) -> np.ndarray:
            values = [float(v) if isinstance(v, str) else v for v in data[name]]
            return np.array(values, DTYPES[name]).reshape((-1, 4) if name == "category_bits" else -1)

        try:
            arrays = {name: array(name) for name in DTYPES}
            tree = cls(**arrays, n_features=int(data["n_features"]), scoring=scoring_from(data["scoring"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"Not a valid tree: {error!r}. Hint: use a dictionary made by `to_dict`.") from error
        return tree.check()

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Arrays by name, for a file; `from_arrays` returns an equal tree."""
        scoring = {f"scoring_{name}": value for name, value in self.scoring.to_arrays().items()}
        return {name: getattr(self, name) for name in DTYPES} | {"n_features": np.array(self.n_features)} | scoring

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Tree:
        """Tree from arrays made by `to_arrays`; checked."""
        named = {name: arrays[name] for name in DTYPES if name in arrays}
        for name, dtype in DTYPES.items():
            if name not in named or named[name].dtype != dtype:
                raise InputError(f"Not a valid tree: it lacks an array {name!r} of {np.dtype(dtype)}.")
        scoring = {name.removeprefix("scoring_"): v for name, v in arrays.items() if name.startswith("scoring_")}
        tree = cls(**named, n_features=int(arrays["n_features"]), scoring=scoring_from(scoring)).check()
        check_depth(tree)
        return tree

    def check(self) -> Tree:
        """Verify every invariant; return the tree, or raise ValueError with an explanation."""
        check_invariants(
            _invariants(self), "Not a valid tree: it breaks the rule that a tree {}. Hint: the data may be damaged."
        )
        self.scoring.check(self.n_features)
        return self


def parents_of(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Parent of each node, -1 at the root; `left` is -1 at leaves."""
    parent = np.full(len(left), -1)
    inner = np.flatnonzero(left >= 0)
    parent[left[inner]] = parent[right[inner]] = inner
    return parent


def check_depth(tree: Tree) -> None:
    """Raise ValueError if a tree is too deep for a file: nobody reads its rules, and wording them takes minutes."""
    depth = tree.depth
    if depth > MAX_DEPTH:
        raise InputError(
            f"The tree is {depth:,} conditions deep, but model files allow {MAX_DEPTH:,} at most. "
            "Hint: set max_depth, or a larger min_samples_leaf."
        )


def check_columns(tree: Tree, columns: Sequence[Column]) -> None:
    """Raise ValueError if a tree does not match its columns: their number, kinds and categories."""
    message = "The model's tree and its list of columns do not fit together: the tree {}."
    check_invariants(_column_invariants(tree, columns), message)


def _column_invariants(tree: Tree, columns: Sequence[Column]) -> Iterator[Invariant]:
    """Whether each invariant about the columns of a checked tree holds, and the text of its breach."""
    yield len(columns) == tree.n_features, f"reads {tree.n_features:,} columns, not {len(columns):,}"
    n_categories = np.array([0 if column.categories is None else len(column.categories) for column in columns])
    yield np.all(n_categories <= N_CODES), f"has a column of more than {N_CODES} categories"
    asked = n_categories[tree.feature[tree.kind == CATEGORY]]
    yield not n_categories[tree.feature[tree.kind == NUMERIC]].any(), "compares a category with a number"
    yield np.all(asked > 0), "compares a number with categories"
    code, weighed = tree.oblique_code, n_categories[tree.oblique_feature]
    fits = np.where(code < 0, weighed == 0, code < weighed)
    yield bool(np.all(fits)), "weighs a category of a number, or one that its column lacks"
    yield from tree.scoring.column_invariants(n_categories)


def _invariants(tree: Tree) -> Iterator[Invariant]:
    """Whether each invariant holds, and its text; one may rely on those before it."""
    n = len(tree)
    yield all(getattr(tree, name).ndim == 1 for name in DTYPES if name != "category_bits"), "has arrays of one length"
    per_node = [name for name in DTYPES if not name.startswith("oblique") and name != "category_bits"]
    yield n > 0, "has at least one node"
    yield all(getattr(tree, name).shape == (n,) for name in per_node), "has arrays of one length"
    yield np.all(tree.kind <= OBLIQUE), "has only known kinds of conditions"
    yield np.all(tree.missing_left <= 1), "sends missing values left or right"

    inner, leaves = np.flatnonzero(tree.kind != LEAF), np.flatnonzero(tree.kind == LEAF)
    children = np.concatenate((tree.left[inner], tree.right[inner]))
    yield np.all(children > np.tile(inner, 2)) and np.all(children < n), "has children after their parents"
    yield len(np.unique(children)) == n - 1, "reaches every node"
    unused = np.concatenate((tree.left[leaves], tree.right[leaves]))
    yield np.all((unused >= -1) & (unused < n)), "has nothing below its leaves"

    asked = tree.feature[(tree.kind == NUMERIC) | (tree.kind == CATEGORY)]
    yield np.all((asked >= 0) & (asked < tree.n_features)), "uses columns that exist"
    yield np.all((tree.feature >= -1) & (tree.feature < max(tree.n_features, 1))), "uses columns that exist"
    cuts = tree.threshold[(tree.kind == NUMERIC) | (tree.kind == OBLIQUE)]
    yield not np.isnan(cuts).any(), "has a threshold in every numeric condition"
    subsets = tree.category_at[tree.kind == CATEGORY]
    yield tree.category_bits.ndim == 2 and tree.category_bits.shape[1] == 4, "has category sets of 256 bits"
    yield np.all((subsets >= 0) & (subsets < len(tree.category_bits))), "has a set for every category condition"
    yield (
        np.all((tree.category_at >= -1) & (tree.category_at <= len(tree.category_bits))),
        "has sets only for categories",
    )

    at, weighed = tree.oblique_at, tree.oblique_feature
    yield at.shape == (n + 1,) and at[0] == 0 and rises(at), "has consistent oblique weights"
    per_term = [weighed.shape, tree.oblique_code.shape, tree.oblique_weight.shape, tree.oblique_fill.shape]
    yield all(shape == (at[-1],) for shape in per_term), "has consistent oblique weights"
    yield np.all((weighed >= 0) & (weighed < tree.n_features)), "weighs columns that exist"
    code, is_named = tree.oblique_code, tree.oblique_code >= 0
    yield np.all((code >= -1) & (code < 256)), "weighs categories by their codes, 0 to 255"
    as_numbers = np.append(weighed[~is_named], tree.feature[tree.kind == NUMERIC])
    as_categories = np.append(weighed[is_named], tree.feature[tree.kind == CATEGORY])
    yield not np.isin(as_numbers, as_categories).any(), "treats a column as numbers or as categories, not as both"
    yield not tree.oblique_fill[is_named].any(), "has no fill for missing categories"
    yield np.isfinite(tree.oblique_weight).all(), "has finite oblique weights"
    yield not np.isinf(tree.oblique_fill).any(), "has finite fills for missing values"

    yield np.all(tree.leaf[tree.kind != LEAF] == -1), "gives positions in the ranking only to leaves"
    positions = np.unique(tree.leaf[leaves])
    yield positions[0] == 0 and positions[-1] == len(positions) - 1, "numbers its leaves from 0"
    weights = np.concatenate((tree.positive, tree.negative))
    yield np.all((weights >= 0) & np.isfinite(weights)), "has finite weights, all non-negative"
    yield np.isfinite(tree.gain).all(), "has finite gains"
    order = leaves[np.argsort(tree.leaf[leaves], kind="stable")]
    score, rate, is_next = tree.score[order], tree.rate[order], tree.leaf[order][1:] > tree.leaf[order][:-1]
    yield np.isfinite(score).all(), "has finite scores"
    yield np.all((rate >= 0) & (rate <= 1)), "has leaf rates from 0 to 1"
    yield rises(rate[::-1]), "has non-increasing rates along the leaf order"
    step = -np.diff(score)
    yield np.all(step[~is_next] == 0), "has one score per leaf position"
    room = 1.0 / len(positions) - 1e-9 if tree.scoring.stays_inside else 0.0
    yield np.all(step[is_next] > room), "has decreasing scores along the leaf order, with room inside leaves"
    is_tree = len(np.unique(children)) == len(children)
    yield is_tree or tree.scoring.vote_decay is None, "has one parent per node if all leaves vote"
