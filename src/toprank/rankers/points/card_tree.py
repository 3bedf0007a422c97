"""`CardTree`: a card, and a shallow tree whose leaves correct it; how it is grown, applied, stored and checked.

A split is worth what simple corrections on both sides would gain: for each other column, the best step on that side
(the loss of its quadratic model, as in gradient boosting). So a split is found where the effect of other columns
differs, which a card cannot say. The corrections themselves are additive models of few columns with the card as offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import expit

from toprank._core.backfit import pair_sums
from toprank._core.threads import Threads
from toprank.errors import InputError, Invariant, check_invariants
from toprank.explain.conditions import Condition, merged
from toprank.files.model_file import numbered_parts, with_prefix
from toprank.rankers.points.additive import KINDS, AdditiveModel, Rows, Term, dot
from toprank.rankers.points.card import Card, Shape
from toprank.tree.columns import Column

CORRECTING = tuple(KINDS.index(kind) for kind in ("line", "rank", "step", "category", "missing"))
"""Kinds of coefficients in a correction: simpler than a card's."""

CORRECTION_ALPHA = 3.0
CORRECTION_SWEEPS = 15
LEAST_CORRECTION = 0.05
"""Corrections of a column with a smaller standard deviation, in log-odds, are dropped."""

MOST_COLUMNS = 40
"""Columns with the largest spread of points that may split or correct."""

COARSE_BINS = 17
"""Bins of a column in the search for splits: up to 16 of values, and one for missing values."""

RIDGE = 1.0
STEP_COST = 2.0
"""What a step must gain in log-likelihood to count."""

LEAST_GAIN = 4.0
"""What a split must gain in log-likelihood, by the estimate of the search."""

DTYPES: dict[str, Any] = {"feature": np.int32, "threshold": np.float64, "code": np.int32, "left": np.int32}
DAMAGED = "Not a valid tree of cards: it breaks the rule that {}. Hint: the data may be damaged."


@dataclass(frozen=True, eq=False)
class CardTree:
    """A card, and a tree whose leaves have cards that are added to it.

    Attributes
    ----------
    card : Card
    feature : int32 array of shape (n_nodes,)
        Column of each condition; -1 at leaves. Node 0 is the root.
    threshold : float64 array of shape (n_nodes,)
        Numbers up to it go left; missing values go right.
    code : int32 array of shape (n_nodes,)
        The category that goes left; -1 for numbers.
    left : int32 array of shape (n_nodes,)
        Left child; the right child is the next node. 0 at leaves.
    corrections : tuple of Card
        One per leaf, in the order of the nodes.
    """

    card: Card
    feature: np.ndarray
    threshold: np.ndarray
    code: np.ndarray
    left: np.ndarray
    corrections: tuple[Card, ...]

    def __post_init__(self) -> None:
        for name, dtype in DTYPES.items():
            array = np.array(getattr(self, name), dtype)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(self, "corrections", tuple(self.corrections))

    @classmethod
    def from_card(cls, card: Card) -> Self:
        """A tree without conditions."""
        return cls(card, np.array([-1]), np.zeros(1), np.array([-1]), np.zeros(1), (Card((), 0.0, card.scale),))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CardTree):
            return NotImplemented
        same = all(np.array_equal(getattr(self, name), getattr(other, name)) for name in DTYPES)
        return same and self.card == other.card and self.corrections == other.corrections

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def leaves(self) -> np.ndarray:
        """Nodes without a condition, int64 (n_leaves,)."""
        return np.flatnonzero(self.left == 0)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.leaves)

    @property
    def depth(self) -> int:
        """Most conditions on a path."""
        depth = np.zeros(len(self.left), np.int64)
        for node in np.flatnonzero(self.left).tolist():
            depth[self.left[node] : self.left[node] + 2] = depth[node] + 1
        return int(depth.max())

    # --- scoring ------------------------------------------------------------------------------------------------

    def apply(self, matrix: np.ndarray) -> np.ndarray:
        """Position of each row's leaf among the leaves, int64 (n,)."""
        node = np.zeros(len(matrix), np.int64)
        for split in np.flatnonzero(self.left).tolist():
            here = np.flatnonzero(node == split)
            value = matrix[here, self.feature[split]]
            goes_left = value == self.code[split] if self.code[split] >= 0 else value <= self.threshold[split]
            node[here] = np.where(goes_left, self.left[split], self.left[split] + 1)
        return np.searchsorted(self.leaves, node)

    def decision_function(self, matrix: np.ndarray, threads: Threads | None = None) -> np.ndarray:
        """Score of each encoded row, float64 (n,): the card, and the correction of its leaf."""
        out = self.card.decision_function(matrix, threads)
        if self.n_leaves > 1:
            leaf = self.apply(matrix)
            for place, correction in enumerate(self.corrections):
                rows = np.flatnonzero(leaf == place)
                out[rows] += correction.decision_function(matrix[rows], threads)
        return out

    def points(self, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Score that each row starts from, float64 (n,), and the points of its values, float64 (n, n_features)."""
        of_leaf, corrections = self.correction_points(matrix)
        return self.card.base + of_leaf, self.card.contributions(matrix) + corrections

    def correction_points(self, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the leaf of each row adds to both parts of `points`: float64 (n,) and (n, n_features)."""
        base, points = np.zeros(len(matrix)), np.zeros(matrix.shape)
        leaf = self.apply(matrix)
        for place, correction in enumerate(self.corrections):
            rows = np.flatnonzero(leaf == place)
            points[rows], base[rows] = correction.contributions(matrix[rows]), correction.base
        return base, points

    def conditions(self, leaf: int, columns: Sequence[Column]) -> list[Condition]:
        """The conditions of a leaf, by its position among the leaves, merged by column."""
        node, found = int(self.leaves[leaf]), []
        while node:
            parent = int(np.flatnonzero((self.left == node) | ((self.left > 0) & (self.left + 1 == node)))[0])
            found.append(self._side(parent, columns, node == self.left[parent]))
            node = parent
        return merged(found[::-1])

    def _side(self, node: int, columns: Sequence[Column], left: bool) -> Condition:
        feature, code = int(self.feature[node]), int(self.code[node])
        column, threshold = columns[feature], float(self.threshold[node])
        if code >= 0:
            codes = (code,) if left else tuple(c for c in range(len(column.categories or ())) if c != code)
            return Condition(feature, column, missing=not left, codes=codes)
        if left:
            return Condition(feature, column, high=threshold, missing=False)
        return Condition(feature, column, low=threshold)

    # --- files --------------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Arrays for a file, without the card itself; `from_arrays` returns an equal tree."""
        arrays = {name: np.asarray(getattr(self, name)) for name in DTYPES}
        for place, correction in enumerate(self.corrections):
            arrays |= with_prefix(correction.to_arrays(), f"leaf{place}_")
        return arrays

    @classmethod
    def from_arrays(cls, card: Card, arrays: dict[str, np.ndarray], columns: Sequence[Column]) -> CardTree:
        """The tree in the arrays of a file, checked; ValueError if it is damaged."""
        for name, dtype in DTYPES.items():
            if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1:
                raise InputError(DAMAGED.format(f"{name!r} is a list of {np.dtype(dtype)}"))
        n_leaves = int((arrays["left"] == 0).sum())
        parts = numbered_parts(arrays, "leaf", n_leaves)
        corrections = tuple(Card.from_arrays(part, columns) for part in parts)
        tree = cls(card, corrections=corrections, **{name: arrays[name] for name in DTYPES})
        check_invariants(tree._invariants(columns), DAMAGED)
        return tree

    def _invariants(self, columns: Sequence[Column]) -> Iterator[Invariant]:
        n = len(self.left)
        yield n > 0 and all(len(getattr(self, name)) == n for name in DTYPES), "all lists have one entry per node"
        inner = np.flatnonzero(self.left)
        children = self.left[inner]
        yield np.all((children > inner) & (children + 1 < n)), "children come after their parents"
        both = np.sort(np.concatenate((children, children + 1)))
        yield np.array_equal(both, np.arange(1, n)), "every node but the root has one parent"
        feature, code = self.feature[inner], self.code[inner]
        yield np.all((feature >= 0) & (feature < len(columns))), "conditions are on columns"
        n_categories = np.array([len(columns[f].categories or ()) for f in feature.tolist()], np.int64)
        yield np.all(np.where(n_categories > 0, (code >= 0) & (code < n_categories), code == -1)), "categories exist"
        yield np.isfinite(self.threshold).all(), "thresholds are finite"
        yield len(self.corrections) == self.n_leaves, "every leaf has a card"
        yield all(each.scale == self.card.scale for each in self.corrections), "all cards have the same scale"
        most = self.card.most + max(each.most for each in self.corrections)
        yield bool(np.isfinite(most)), "points add up to a finite score"


# --- growing ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Grown:
    """A node while a tree grows: the correction of its rows, and its split."""

    correction: AdditiveModel | None
    feature: int = -1
    threshold: float = 0.0
    code: int = -1
    sides: tuple[Grown, ...] = ()

    def tree(self, card: Card, depth: int, finish: Callable[[Card], Card]) -> CardTree:
        """The tree down to a depth; a leaf's correction is the sum of those on its path, on the scale of points.

        `finish` turns a card in log-odds into one of points.
        """
        nodes: list[tuple[Grown, int, list[AdditiveModel]]] = [(self, 0, [])]
        arrays: dict[str, list[Any]] = {name: [] for name in DTYPES}
        corrections = []
        for node, level, above in nodes:  # grows while it is read: parents before children
            path = above if node.correction is None else [*above, node.correction]
            splits = bool(node.sides) and level < depth
            arrays["left"].append(len(nodes) if splits else 0)
            arrays["feature"].append(node.feature if splits else -1)
            arrays["threshold"].append(node.threshold if splits else 0.0)
            arrays["code"].append(node.code if splits else -1)
            if splits:
                nodes += [(side, level + 1, path) for side in node.sides]
            else:
                corrections.append(finish(added([each.card() for each in path])))
        return CardTree(card, corrections=tuple(corrections), **{name: np.array(arrays[name]) for name in DTYPES})


def added(cards: Sequence[Card]) -> Card:
    """The sum of cards in log-odds; the shapes of a column have the same edges in all of them."""
    shapes: dict[int, Shape] = {}
    for card in cards:
        for shape in card.shapes:
            other = shapes.get(shape.feature)
            shapes[shape.feature] = shape if other is None else replace(
                shape, points=other.points + shape.points, ends=other.ends + shape.ends,
                missing=other.missing + shape.missing,
            )  # fmt: skip
    return Card(tuple(shapes[f] for f in sorted(shapes)), float(sum(card.base for card in cards)))


class Grower:
    """Grows a tree of corrections of a fitted additive model, each of at most `max_terms` columns.

    Of the terms, monotone ones neither split nor correct, as corrections could break their order. A leaf has at least
    weight `min_class` of each class.
    """

    def __init__(self, model: AdditiveModel, terms: Sequence[Term], max_terms: int, min_class: float):
        spread = dict(zip((t.feature for t in model.terms), model.spreads().tolist(), strict=True))
        free = sorted((t for t in terms if not t.is_bounded), key=lambda t: (-spread.get(t.feature, 0.0), t.feature))
        chosen = sorted(free[:MOST_COLUMNS], key=lambda t: t.feature)
        fitted = dict(zip((t.feature for t in model.terms), model.coefficients, strict=True))
        self._coarse = {t.feature: coarse_bins(t, fitted.get(t.feature)) for t in chosen}
        self._terms = [simple_term(t) for t in chosen]
        self._max_terms, self._min_class = max_terms, min_class

    def grow(self, rows: Rows, z: np.ndarray, depth: int, correction: AdditiveModel | None = None) -> Grown:
        """Split rows with these log-odds, and the sides again, as long as it pays."""
        found = self._best_split(rows, z) if depth else None
        if found is None:
            return Grown(correction)
        term, cut = found
        codes = rows.codes[term.feature]
        goes_left = codes == cut if term.is_categorical else (self._coarse[term.feature][codes] <= cut)
        sides = []
        for own in (goes_left, ~goes_left):
            part = Rows(
                np.ascontiguousarray(rows.codes[:, own]), rows.target[own], rows.weight[own], np.zeros(0, np.int64)
            )
            corrected = self._fit_correction(part, z[own])
            sides.append(self.grow(part, corrected.z, depth - 1, corrected))
        if term.is_categorical:
            return Grown(correction, term.feature, 0.0, cut, tuple(sides))
        return Grown(correction, term.feature, float(term.edges[cut]), -1, tuple(sides))

    def _fit_correction(self, rows: Rows, offset: np.ndarray) -> AdditiveModel:
        """An additive model of few columns on top of the scores so far."""
        varies = [t for t in self._terms if t.n_coefficients and np.ptp(rows.codes[t.feature]) > 0]
        model = AdditiveModel(varies, rows, CORRECTION_ALPHA, offset).fit(CORRECTION_SWEEPS)
        kept = model.strongest(self._max_terms, LEAST_CORRECTION)
        own = [model.coefficients[i] for i in kept]
        few = AdditiveModel([varies[i] for i in kept], rows, CORRECTION_ALPHA, offset, own)
        return few.fit(CORRECTION_SWEEPS)

    def _best_split(self, rows: Rows, z: np.ndarray) -> tuple[Term, int] | None:
        """The column and coarse bin, or category, with the largest gain; None if none pays."""
        p = expit(z)
        slope, curvature = rows.weight * (rows.target - p), rows.weight * p * (1.0 - p)
        positive = rows.weight * rows.target
        others = np.empty((len(z), len(self._terms)), np.uint8)
        for place, term in enumerate(self._terms):
            others[:, place] = self._coarse[term.feature][rows.codes[term.feature]]
        best, found = LEAST_GAIN, None
        for place, term in enumerate(self._terms):
            codes = rows.codes[term.feature] if term.is_categorical else np.ascontiguousarray(others[:, place])
            n_bins = len(term.design) if term.is_categorical else COARSE_BINS
            sums = np.zeros((n_bins, len(self._terms), COARSE_BINS, 2))
            pair_sums(codes, others, slope, curvature, sums)
            counts = np.column_stack((np.bincount(codes, positive, n_bins), np.bincount(codes, rows.weight, n_bins)))
            counts[:, 1] -= counts[:, 0]
            n_cuts = n_bins - 1 if term.is_categorical else len(term.edges)
            left, n_left = sums[:n_cuts], counts[:n_cuts]
            if not term.is_categorical:
                left, n_left = np.cumsum(left, axis=0), np.cumsum(n_left, axis=0)
            is_allowed = (np.minimum(n_left, counts.sum(axis=0) - n_left) >= self._min_class).all(axis=1)
            if not is_allowed.any():
                continue
            left, allowed = left[is_allowed], np.flatnonzero(is_allowed)
            gain = side_gain(left, self._max_terms) + side_gain(sums.sum(axis=0) - left, self._max_terms)
            if gain.max() > best:
                best, found = float(gain.max()), (term, int(allowed[gain.argmax()]))
        return found


def simple_term(term: Term) -> Term:
    """The term without its values at knots."""
    kept = np.isin(term.kind, CORRECTING)
    return replace(
        term, points=term.points[:, kept], ends=term.ends[:, kept], missing=term.missing[kept],
        design=np.ascontiguousarray(term.design[:, kept]), kind=term.kind[kept], lowest=term.lowest[kept],
    )  # fmt: skip


def coarse_bins(term: Term, coefficients: np.ndarray | None) -> np.ndarray:
    """The coarse bin of each bin of a column, uint8: between knots; categories in the order of their points."""
    n_bins, last = len(term.design) - 1, COARSE_BINS - 1
    if term.is_categorical:
        points = dot(term.design[:-1], coefficients) if coefficients is not None else np.zeros(n_bins)
        place = np.argsort(np.argsort(points, kind="stable"), kind="stable") * last // max(n_bins, 1)
    else:
        steps = term.design[:-1, term.kind == KINDS.index("step")]
        place = steps.sum(axis=1).astype(np.int64)  # knots below the bin
    return np.append(np.minimum(place, last - 1), last).astype(np.uint8)


def side_gain(sums: np.ndarray, max_terms: int) -> np.ndarray:
    """What a side gains by a constant and by the best step of each of its best columns, float64 (n_cuts,).

    `sums` are slopes and curvatures of the side's rows, float64 (n_cuts, n_columns, n_bins, 2).
    """
    below = np.cumsum(sums, axis=2)
    total = below[:, :, -1:, :]
    constant = _gain(total)[:, :, 0]
    steps = (_gain(below) + _gain(total - below)).max(axis=2) - constant - STEP_COST
    best = np.sort(np.maximum(steps, 0.0), axis=1)[:, ::-1][:, :max_terms]
    return constant[:, 0] + best.sum(axis=1)


def _gain(sums: np.ndarray) -> np.ndarray:
    """Decrease of the quadratic model of the loss: slope^2 / (curvature + ridge) / 2."""
    return 0.5 * sums[..., 0] ** 2 / (sums[..., 1] + RIDGE)
