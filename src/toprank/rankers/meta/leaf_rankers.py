"""Leaf rankers, which split one meta-node: inner trees, conditions, weighted sums, classifiers; and growing by them.

`toprank.tree.meta.meta_tree` grows the inner trees of a whole meta-level together. What stands here looks at one
meta-node at a time, because it fits a model on its rows or needs to know the other cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state

from toprank._core.dtypes import AUC, NODE, WEIGHT
from toprank._core.splitting import split_gain
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.errors import InputError
from toprank.rankers.growth import GrowthSettings
from toprank.rankers.leaf_scores import fit_linear_direction
from toprank.tree.bin_mapper import SAMPLE_ROWS, between, center_and_spread, distinct_values
from toprank.tree.categories import PLAIN
from toprank.tree.flatten import flatten_tree
from toprank.tree.grower import UNLIMITED, FeatureSampler, GrownTrees, Limits, grow, single_split
from toprank.tree.meta.meta_tree import InnerTree, MetaTable, MetaTree, ObliqueCut
from toprank.tree.meta.objectives import ROC_AREA
from toprank.tree.meta.shake import intercalation_gain
from toprank.tree.splitters import Batch, Splits, Splitter
from toprank.tree.weights import RowWeights

Worth = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Area gained by a split that puts this positive and total weight on one side."""

Rank = tuple[float, int]
"""What a cut is worth, and the weight of its richer side: ties go to the larger (remark 10)."""


@dataclass(frozen=True)
class Found:
    """How a node is split: the rule, the rows on its left, richer side, and the area gained."""

    rule: Any
    is_left: np.ndarray
    value: float


@dataclass(frozen=True)
class LeafRanker(ABC):
    """Finds the best way to split the rows of a node; nodes come one after the other, so columns are drawn in order."""

    data: BinnedCases
    weights: RowWeights
    limits: Limits

    @abstractmethod
    def split(self, rows: np.ndarray, worth: Worth) -> Found | None:
        """The best cut; None if no cut gains anything."""

    def _sums(self, rows: np.ndarray) -> tuple[int, int]:
        """Positive and total weight of a node."""
        return int(self.weights.positive[rows].sum()), int(self.weights.total[rows].sum())


def area_unit(weights: RowWeights) -> float:
    """Area under the ROC curve that a Lambda of 1, in integer weights, adds: 1 / (2 n+ n-)."""
    return 0.5 / (weights.sum_of_positive * float(weights.sum_of_total - weights.sum_of_positive))


def _best_of(
    positive: np.ndarray, total: np.ndarray, worth: Worth, all_positive: int, all_total: int, min_leaf: int
) -> tuple[int, Rank, bool] | None:
    """Best of several ways to cut a node, given the weight on the lower side of each; None where none is worth it.

    Returns its place, its rank, and whether the lower side is the richer.
    """
    allowed = (total >= min_leaf) & (all_total - total >= min_leaf)
    if not allowed.any():
        return None
    value = np.where(allowed, worth(positive, total), 0.0)
    if not value.max() > 0:
        return None
    is_low = positive * float(all_total) > total * float(all_positive)
    richer = np.where(is_low, total, all_total - total)
    best = np.flatnonzero(value == value.max())
    chosen = int(best[np.argmax(richer[best])])
    return chosen, (float(value[chosen]), int(richer[chosen])), bool(is_low[chosen])


@dataclass(frozen=True)
class InnerTreeLeafRanker(LeafRanker):
    """A greedy inner tree whose cells, richest first, are cut where that is worth most."""

    def split(self, rows: np.ndarray, worth: Worth) -> Found | None:
        """The best cut of the cells of an inner tree."""
        splitter = self.data.splitter(_only(self.weights, rows), Threads())
        trees = grow(splitter, splitter.root(), self.limits)
        cells = np.flatnonzero(trees.is_leaf)
        positive, total = trees.segment.positive[cells], trees.segment.total[cells]
        order = ROC_AREA.order(positive, total)
        lower = np.cumsum(positive[order])[:-1], np.cumsum(total[order])[:-1]
        best = _best_of(*lower, worth, *self._sums(rows), 1)
        if best is None:
            return None
        is_left = np.zeros(len(trees.root), bool)
        is_left[cells[order[: best[0] + 1]]] = True
        trees = replace(trees, gain=trees.gain * area_unit(self.weights))
        return _found_tree(self.data, trees, is_left, rows, best[1][0])


@dataclass(frozen=True)
class StumpLeafRanker(LeafRanker):
    """The best condition on one column, of all columns and thresholds."""

    def split(self, rows: np.ndarray, worth: Worth) -> Found | None:
        """The best condition; ties go to the larger richer side, then to the first column."""
        return self.cut_by(np.flatnonzero(drawn_columns(self.data, self.limits)), rows, worth)

    def cut_by(self, features: np.ndarray, rows: np.ndarray, worth: Worth) -> Found | None:
        """The best condition on some of the columns."""
        positive, total = self.weights.positive[rows], self.weights.total[rows]
        everything = self._sums(rows)
        splitter = self.data.splitter(_only(self.weights, rows), Threads())
        root = splitter.root()
        best: tuple[Rank, Splits, bool] | None = None
        for feature in features.tolist():
            codes, n_codes = self.data.codes(feature)
            if self.data.is_categorical[feature] and self.limits.categories != PLAIN:
                found = _honest_condition(splitter, root, feature, worth, self.limits)
            else:
                found = _best_condition(codes[rows], n_codes, bool(self.data.is_categorical[feature]), positive, total,
                                        everything, worth, self.limits.min_leaf)  # fmt: skip
            if found is not None and (best is None or found[0] > best[0]):
                best = found
                best[1].record["feature"] = feature
        if best is None:
            return None
        (value, _), splits, is_low = best
        trees = single_split(root, splits, splitter.thresholds(splits), splitter.split(root, splits))
        return _found_tree(self.data, trees, np.array([False, is_low, not is_low]), rows, value)


def _honest_condition(
    splitter: Splitter, root: Batch, feature: int, worth: Worth, limits: Limits
) -> tuple[Rank, Splits, bool] | None:
    """The condition on a category that growers take for the area, its worth reduced as much as its honest gain is."""
    allowed = np.zeros((1, splitter.n_features), np.uint8)
    allowed[0, feature] = 1
    splits = splitter.best_splits(root, AUC, limits.min_leaf, allowed, None, limits.categories)
    record = splits.record[0]
    if record["feature"] < 0:
        return None
    left, whole = (float(record["positive_left"]), float(record["total_left"])), (root.positive[0], root.total[0])
    plain = split_gain(AUC, *left, *map(float, whole), *map(float, whole))
    value = float(worth(record["positive_left"][None], record["total_left"][None])[0])
    if not value > 0 or not plain > 0:
        return None
    record["gain"] = value * record["gain"] / plain
    is_left = bool(left[0] * whole[1] > left[1] * whole[0])
    return (float(record["gain"]), int(record["richer"])), splits, is_left


def _best_condition(
    codes: np.ndarray, n_codes: int, is_categorical: bool, positive: np.ndarray, total: np.ndarray,
    everything: tuple[int, int], worth: Worth, min_leaf: int,
) -> tuple[Rank, Splits, bool] | None:  # fmt: skip
    """Rank of the best condition on one column, the condition, and whether its left side is the richer."""
    sums = [np.bincount(codes, values, n_codes + 1).astype(WEIGHT) for values in (positive, total)]
    present = np.flatnonzero(sums[1])
    if is_categorical:  # a missing category is one more category
        present = present[ROC_AREA.order(sums[0][present], sums[1][present])]
    known = present if is_categorical else present[present < n_codes]
    missing = present[:0] if is_categorical else present[present == n_codes]
    best: tuple[Rank, Splits, bool] | None = None
    for missing_left in (False, True)[: 1 + len(missing)]:
        cumulated = [np.cumsum(values[known]) + missing_left * values[missing].sum() for values in sums]
        found = _best_of(cumulated[0], cumulated[1], worth, *everything, min_leaf)
        if found is None or (best is not None and found[1] <= best[0]):
            continue
        at, rank, is_low = found
        splits = Splits(1)
        record = splits.record[0]
        record["gain"] = rank[0]
        record["positive_left"], record["total_left"] = (values[at] for values in cumulated)
        record["last_left"], record["first_right"] = known[at], known[at + 1] if at + 1 < len(known) else -1
        left_is_heavier = 2 * int(record["total_left"]) >= everything[1]
        record["missing_left"] = missing_left if len(missing) else left_is_heavier
        splits.goes_left[0] = np.arange(256) <= known[at]
        splits.goes_left[0, n_codes:] = record["missing_left"]
        if is_categorical:  # categories that this node never saw go with the heavier child
            splits.goes_left[0] = left_is_heavier
            splits.goes_left[0, known] = np.arange(len(known)) <= at
            record["missing_left"] = splits.goes_left[0, n_codes]
        best = rank, splits, is_low
    return best


@dataclass(frozen=True)
class ObliqueLeafRanker(StumpLeafRanker):
    """A sparse weighted sum of the numeric columns, or a condition on one column where that is worth as much."""

    logistic_C: float

    def split(self, rows: np.ndarray, worth: Worth) -> Found | None:
        """The better of a weighted sum and a condition on one column."""
        drawn = drawn_columns(self.data, self.limits)
        single = self.cut_by(np.flatnonzero(drawn), rows, worth)
        weight = np.zeros(len(self.data.X))
        weight[rows] = self.weights.total[rows] * self.weights.unit
        slope = fit_linear_direction(self.data, weight, self.logistic_C, drawn)
        feature = np.flatnonzero(slope)
        if len(feature) < 2:  # a sum of one column is a condition on one column
            return single
        # The column that moves rows most comes first, whatever its units: so the sum is read, and cut off, in words.
        influence = [abs(slope[f]) * self._spread(np.array([f]), np.ones(1)) for f in feature]
        feature = feature[np.argsort(-np.array(influence), kind="stable")]
        found = self._along(rows, feature, slope[feature] / self._spread(feature, slope[feature]), worth)
        return single if found is None or (single is not None and found.value <= single.value) else found

    def _spread(self, feature: np.ndarray, weight: np.ndarray) -> float:
        """Standard deviation of a weighted sum over the training rows: its unit, so that margins are comparable."""
        rows = self.data.sample(SAMPLE_ROWS)
        value = weighted_sums(self.data.X[rows], feature, weight, self._means[feature])
        spread = center_and_spread(*distinct_values(value, self.weights.total[rows]))[1]
        return float(spread) if spread > 0 else 1.0

    @cached_property
    def _means(self) -> np.ndarray:
        """Mean of each column over the training rows that have it, 0 where none has."""
        rows = self.data.sample(SAMPLE_ROWS)
        weight = self.weights.total[rows]
        return np.array([center_and_spread(*distinct_values(column, weight))[0] for column in self.data.X[rows].T])

    def _along(self, rows: np.ndarray, feature: np.ndarray, weight: np.ndarray, worth: Worth) -> Found | None:
        """The best threshold on a weighted sum; missing values count as means, or their rows go to one side.

        Whichever gains more; ties go to the means.
        """
        found = [self._filled(rows, feature, weight, self._means[feature], worth)]
        if np.isnan(self.data.X[rows][:, feature]).any():
            found.append(self._filled(rows, feature, weight, np.full(len(feature), np.nan), worth))
        return max((each for each in found if each is not None), key=lambda each: each.value, default=None)

    def _filled(
        self, rows: np.ndarray, feature: np.ndarray, weight: np.ndarray, fill: np.ndarray, worth: Worth
    ) -> Found | None:
        """The best threshold with missing values counted as `fill`; if NaN, they go to the better side. One sort."""
        value = weighted_sums(self.data.X[rows], feature, weight, fill)
        positive, total = self.weights.positive[rows], self.weights.total[rows]
        is_missing = np.isnan(value)
        distinct, which = np.unique(value[~is_missing], return_inverse=True)
        sums = [np.bincount(which, part[~is_missing], len(distinct)) for part in (positive, total)]
        gaps = [int(part[is_missing].sum()) for part in (positive, total)]
        best: tuple[Rank, float, bool, bool] | None = None
        for missing_low in (False, True)[: 1 + (gaps[1] > 0)]:
            shift = [missing_low * gap for gap in gaps]
            cumulated = [(np.cumsum(part) + plus)[:-1] for part, plus in zip(sums, shift, strict=True)]
            found = _best_of(cumulated[0], cumulated[1], worth, *self._sums(rows), self.limits.min_leaf)
            if found is not None and (best is None or found[1] > best[0]):
                at, rank, is_low = found
                threshold = float(between(distinct[at], distinct[at + 1]))
                best = rank, threshold, is_low, missing_low if gaps[1] else not is_low
        if best is None:
            return None
        (gain, _), threshold, is_low, missing_low = best
        rule = ObliqueCut(feature.astype(NODE), weight, fill, threshold, missing_low, is_low, gain)
        low = np.where(is_missing, missing_low, value <= threshold)
        return Found(rule, low == is_low, gain)


@dataclass(frozen=True)
class ClassifierRule:
    """A fitted classifier between a meta-node and its two children; `turned` where its negatives are the richer."""

    model: Any
    turned: bool

    def is_left(self, X: np.ndarray) -> np.ndarray:
        """Rows that go to the left, richer, side."""
        return (np.asarray(self.model.predict(X)) == 1) != self.turned


@dataclass(frozen=True)
class ClassifierLeafRanker(LeafRanker):
    """Any scikit-learn classifier that takes weights.

    Both classes weigh the same in a node, so that the weighted error is what Lambda measures.
    """

    estimator: Any
    random: np.random.RandomState

    def split(self, rows: np.ndarray, worth: Worth) -> Found | None:
        """The side that the classifier flags against the other."""
        X, weight = self.data.X[rows], equal_class_weights(self.weights, rows)
        model = seeded(self.estimator, self.random)
        model.fit(X, self.data.is_positive[rows].astype(np.int64), **{weight_keyword(model): weight})
        is_flagged = np.asarray(model.predict(X)) == 1
        positive, total = self.weights.positive[rows], self.weights.total[rows]
        one = np.array([positive[is_flagged].sum()]), np.array([total[is_flagged].sum()])
        best = _best_of(*one, worth, *self._sums(rows), self.limits.min_leaf)
        if best is None:
            return None
        return Found(ClassifierRule(model, turned=not best[2]), is_flagged == best[2], best[1][0])


def seeded(estimator: Any, random: np.random.RandomState) -> Any:
    """A fresh copy of an estimator; what is random in it and has no seed of its own gets one."""
    model = clone(estimator)
    open_seeds = [name for name, value in model.get_params(deep=True).items()
                  if value is None and (name == "random_state" or name.endswith("__random_state"))]  # fmt: skip
    return model.set_params(**{name: random.randint(np.iinfo(np.int32).max) for name in sorted(open_seeds)})


def drawn_columns(data: BinnedCases, limits: Limits) -> np.ndarray:
    """Columns that one meta-node may use: uint8 (n_features,)."""
    if limits.sample_features is None:
        return np.ones(data.X.shape[1], np.uint8)
    limits.sample_features.begin(1)
    return limits.sample_features.draw(np.zeros(1, np.int64))[0]


def weight_keyword(estimator: Any) -> str:
    """Name under which `fit` of a classifier takes the weights of rows; that of a pipeline's last step."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    prefix, last = "", estimator
    while isinstance(last, Pipeline):
        name, last = last.steps[-1]
        prefix += f"{name}__"
    if not (is_classifier(last) and has_fit_parameter(last, "sample_weight")):
        raise InputError(
            f"leaf_ranker must be 'tree', 'stump', 'oblique' or a classifier whose fit takes sample_weight, got "
            f"{estimator!r}. Hint: try LogisticRegression() or DecisionTreeClassifier(max_depth=3)."
        )
    return f"{prefix}sample_weight"


def equal_class_weights(weights: RowWeights, rows: np.ndarray) -> np.ndarray:
    """Weights of a node's rows such that both classes weigh half of the node."""
    positive, total = weights.positive[rows] * weights.unit, weights.total[rows] * weights.unit
    negative = total - positive
    half = total.sum() / 2
    return positive * (half / positive.sum()) + negative * (half / negative.sum())


def weighted_sums(X: np.ndarray, feature: np.ndarray, weight: np.ndarray, fill: np.ndarray) -> np.ndarray:
    """Weighted sum of columns for each row, missing values as `fill`, added up in the order in which trees do."""
    total = np.zeros(len(X))
    with np.errstate(over="ignore", invalid="ignore"):  # sums that overflow both ways count as missing
        for f, w, instead in zip(feature, weight, fill, strict=True):
            value = X[:, f].astype(np.float64)
            total += w * np.where(np.isnan(value), instead, value)
    return total


def _only(weights: RowWeights, rows: np.ndarray) -> RowWeights:
    """The weights of some rows, nothing elsewhere."""
    positive, total = np.zeros_like(weights.positive), np.zeros_like(weights.total)
    positive[rows], total[rows] = weights.positive[rows], weights.total[rows]
    return replace(weights, positive=positive, total=total)


def _found_tree(data: BinnedCases, trees: GrownTrees, is_left: np.ndarray, rows: np.ndarray, value: float) -> Found:
    """An inner tree as a rule, and the side of each row."""
    leaf = flatten_tree(trees, 1.0, data.is_categorical).apply(data.X[rows])
    return Found(InnerTree(trees, np.arange(len(trees.root)), is_left), is_left[leaf], value)


# --- growing node by node ---------------------------------------------------------------------------------------


def is_grown_by_level(leaf_ranker: Any, intercalates: bool = False) -> bool:
    """True where `grow_meta` grows the same meta-tree as `grow_node_by_node`, and faster."""
    return not intercalates and leaf_ranker in ("tree", "stump")


def _leaf_ranker(
    kind: Any, logistic_C: float, random_state: Any, data: BinnedCases, weights: RowWeights, limits: Limits
) -> LeafRanker:
    if kind == "tree":
        return InnerTreeLeafRanker(data, weights, limits)
    if kind == "stump":
        return StumpLeafRanker(data, weights, limits)
    if kind == "oblique":
        return ObliqueLeafRanker(data, weights, limits, logistic_C)
    weight_keyword(kind)  # raises before anything is fitted
    random = check_random_state(0 if random_state is None else random_state)
    return ClassifierLeafRanker(data, weights, limits, kind, random)


def grow_node_by_node(
    settings: GrowthSettings, data: BinnedCases, weight: np.ndarray | None, leaf_ranker: Any, logistic_C: float,
    *, intercalates: bool = False, random_state: Any = None, sampler: FeatureSampler | None = None,
) -> tuple[MetaTree, float]:  # fmt: skip
    """Grow a meta-tree on the rows that have weight, its gains in units of area; return it and the unit of its weights.

    If it `intercalates`, a cut is worth the area that the whole partition gains when both children may stand anywhere
    among the other cells, as section V-B of the TreeRank paper suggests; otherwise what they add in their parent's
    place (Lambda of section IV-A). `logistic_C` is the inverse penalty of weighted sums, `random_state` seeds
    classifiers, the same each time for None.
    """
    weights = data.row_weights(weight)
    limits = settings.limits(weights, sampler)
    ranker = _leaf_ranker(leaf_ranker, logistic_C, random_state, data, weights, limits)
    unit, root = area_unit(weights), (weights.sum_of_positive, weights.sum_of_total)
    table, cells, level = MetaTable(_batch(root)), {0: root}, [(0, np.flatnonzero(weights.total))]
    for _ in range(settings.max_depth or UNLIMITED):
        if not level:
            break
        below: list[tuple[int, np.ndarray]] = []
        for node, rows in level:
            if not limits.may_split(_batch(cells[node]), np.zeros(1))[0]:
                continue
            worth = _worth_among(cells, node) if intercalates else _worth_alone(cells[node], unit)
            found = ranker.split(rows, worth)
            if found is not None and found.value >= limits.min_gain * unit:
                sides = [rows[found.is_left], rows[~found.is_left]]
                sums = [(int(weights.positive[side].sum()), int(weights.total[side].sum())) for side in sides]
                children = table.add(np.array([node]), [found.rule], _batch(*sums)).tolist()
                del cells[node]
                cells.update(zip(children, sums, strict=True))
                below += zip(children, sides, strict=True)
        level = below
    return table.freeze()[0], weights.unit


def _batch(*sums: tuple[int, int]) -> Batch:
    """Nodes of which only the weights, positive and total, matter."""
    nowhere, (positive, total) = np.zeros(len(sums), np.int64), np.array(sums, WEIGHT).T
    return Batch(nowhere, nowhere, positive, total)


def _worth_alone(cell: tuple[int, int], unit: float) -> Worth:
    """Area that the two parts add in the place of the cell, whichever of them is the richer."""
    return lambda positive, total: np.abs(ROC_AREA.value(positive, total, *cell)).astype(np.float64) * unit


def _worth_among(cells: dict[int, tuple[int, int]], node: int) -> Worth:
    """Area that all cells gain, optimally ordered."""
    positive, total = cells[node]
    others = np.array([pair for other, pair in cells.items() if other != node], np.float64).reshape(-1, 2)

    def worth(left_positive: np.ndarray, left_total: np.ndarray) -> np.ndarray:
        gain = intercalation_gain(
            left_positive,
            left_total - left_positive,
            positive,
            total - positive,
            others[:, 0],
            others[:, 1] - others[:, 0],
        )
        return np.where(gain > 1e-12, gain, 0.0)

    return worth
