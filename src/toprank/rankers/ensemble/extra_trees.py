"""`ExtraTrees`: a forest of trees with random thresholds, whose score is a sum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.tree import ExtraTreeClassifier

from toprank._compat import Interval
from toprank._core.dtypes import CATEGORY, LEAF, NUMERIC
from toprank._core.threads import Threads
from toprank.data.cases import Cases, sample_cases
from toprank.rankers.additive_ranker import AdditiveRanker
from toprank.rankers.base import RANKER_CONSTRAINTS
from toprank.rankers.ensemble.forest import COLUMNS_DRAWN
from toprank.rankers.growth import FOLD_CONSTRAINTS
from toprank.rankers.progress import progress
from toprank.rankers.seeds import seed_of
from toprank.rankers.unseen import FOLD_ROWS
from toprank.tree.additive import AdditiveTrees, least_cover
from toprank.tree.columns import Column
from toprank.tree.grower import columns_wanted
from toprank.tree.rows import row_hashes
from toprank.tree.weights import integer_weights, weight_unit
from toprank.words.counts import plural

MOST_CASES, MOST_PER_POSITIVE = 10_000, 50
"""Most cases of a class, and most negatives per positive, that a tree is grown on, drawn anew for each tree. On 19
development tables the mean AP was .463 with all negatives, .462 with 20 per positive, .455 with 10 and .444 with 2."""

MOST_KNOTS = 255
"""Most distinct values, or quantiles, between which the ranks of a number column are interpolated."""

PRIOR_CASES = 5.0
"""Each leaf is smoothed towards the overall rate, as if it held this many more cases. On the development tables 1, 5
and 20 ranked alike."""

MOST_DEPTH = 30
"""Most conditions on a path that may be asked for."""

MOST_CATEGORIES = 256
"""Codes that a set of categories has room for."""


@dataclass(kw_only=True, eq=False, repr=False)
class ExtraTrees(AdditiveRanker):
    """Extremely randomised trees: one threshold is drawn at random per column, and the best of these is used.

    The score is the mean of the log-odds of the leaves that a case reaches. Averaging many trees that barely fit noise
    works well where positives are few. Thresholds are drawn evenly over the ranks of a column's values, so that its
    scale does not matter; categories are split into two random sets.

    Parameters
    ----------
    n_estimators : int, default 100
    max_depth : int, default 15
        Most conditions on a path.
    min_samples_leaf : int, default 5
        Least number of cases in a leaf, while conditions are drawn.
    max_features : int, float, "sqrt", "log2" or None, default None
        Columns that compete for a condition, drawn at random for each: a number, a share, or all (None).
    cv : int, splitter or iterable, default 5
        Folds to estimate hit rates of new cases; 0 turns them off.
    budget, pos_label, categorical_features, keep_columns, n_jobs, random_state, verbose
        As in `MetaAPForest`.

    Attributes
    ----------
    trees_ : AdditiveTrees
        Their leaves hold log-odds, divided by the number of trees.
    rates_, cutoff_, columns_, classes_
        As in all rankers.

    Notes
    -----
    scikit-learn draws the conditions. A tree is grown on at most 10,000 cases of each class and 50 negatives per
    positive, drawn anew for each tree; the rates in its leaves are those of all cases, or of 100,000 if there are more.

    References
    ----------
    .. [1] Geurts, Ernst, Wehenkel. Extremely randomized trees. Machine Learning 63, 2006.

    Examples
    --------
    >>> from toprank import ExtraTrees
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(2000, random_state=0)
    >>> model = ExtraTrees(n_estimators=30, cv=0, budget=20).fit(data.X, data.y)
    >>> len(model.top_k(data.X)), len(model.trees_)
    (20, 30)
    """

    _cutoff_rows = FOLD_ROWS
    _parameter_constraints = {
        **RANKER_CONSTRAINTS,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_depth": [Interval(Integral, 1, MOST_DEPTH, closed="both")],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "max_features": COLUMNS_DRAWN,
        **FOLD_CONSTRAINTS,
        "verbose": ["verbose"],
    }

    n_estimators: int = 100
    max_depth: int = 15
    min_samples_leaf: int = 5
    max_features: int | float | str | None = None
    cv: Any = 5
    budget: int | float | None = None
    pos_label: Any = None
    categorical_features: Any = None
    keep_columns: Any = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def _fit_model(self, data: Cases, threads: Threads) -> None:
        rows, weight = sample_cases(data.is_positive, data.weight, FOLD_ROWS)
        rows = rows[np.argsort(row_hashes(np.column_stack((data.X[rows], data.is_positive[rows])), 0), kind="stable")]
        X, is_positive, weight = data.X[rows], data.is_positive[rows], weight[rows] * weight_unit(data.weight)
        scale = RankScale.from_rows(X, weight, data.columns)
        grow = partial(self._grow, scale, scale.ranks(X), is_positive, weight, seed_of(self.random_state))
        grown = threads.map(grow, range(self.n_estimators))
        parts = [*progress(grown, self.n_estimators, type(self).__name__, self.verbose > 0)]
        trees = AdditiveTrees.from_parts(parts, X.shape[1])
        n, positives = (trees.node_weights(X, of_rows, threads) for of_rows in (weight, weight * is_positive))
        rate = (positives + PRIOR_CASES * weight[is_positive].sum() / weight.sum()) / (n + PRIOR_CASES)
        value = np.where(trees.is_leaf, logit(rate) / len(trees), 0.0)
        self.trees_ = replace(trees, value=value, cover=n + least_cover(weight))

    def _grow(
        self, scale: RankScale, ranks: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, seed: int, number: int
    ) -> dict[str, np.ndarray]:
        """Draw the conditions of one tree; return its arrays."""
        rng = np.random.default_rng([seed, number])
        ranks, is_positive, weight = draw_cases(ranks, is_positive, weight, rng)
        places = scale.draw_places(rng)
        least = (self.min_samples_leaf - 1e-6) / weight.sum()  # as a share of all cases
        tree = ExtraTreeClassifier(
            max_depth=self.max_depth, max_features=columns_wanted(self.max_features, ranks.shape[1]),
            min_weight_fraction_leaf=min(0.5, least), min_samples_split=2 if least <= 0.5 else len(ranks) + 1,
            random_state=int(rng.integers(2**31 - 1)),
        )  # fmt: skip
        units = integer_weights(is_positive, weight).total  # no sum of them depends on the order of the rows
        return scale.conditions(tree.fit(places.ranks_of(ranks), is_positive, units).tree_, places)

    def _size_in_words(self) -> str:
        return f"{plural(len(self.trees_), 'randomised tree')}, {plural(self.trees_.n_leaves, 'leaf', 'leaves')} in all"


def draw_cases(
    ranks: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A random part of the rows, in order, with the class and the weight of each; drawn rows stand for the others."""
    kept, factor = [], np.ones(len(weight))
    most = MOST_CASES
    for rows in (np.flatnonzero(is_positive), np.flatnonzero(~is_positive)):
        some = rng.choice(rows, most, replace=False) if len(rows) > most else rows
        factor[some] = len(rows) / max(len(some), 1)
        kept.append(some)
        most = min(MOST_CASES, MOST_PER_POSITIVE * len(some))
    rows = np.sort(np.concatenate(kept))
    return ranks[rows], is_positive[rows], (weight * factor)[rows]


@dataclass(frozen=True, eq=False)
class RankScale:
    """The columns of a table on the scale on which thresholds are drawn.

    Numbers, dates and bands become ranks, interpolated between `knots`. Missing values lie below or above all others,
    as far away as their share among the cases asks for. Categories become places in a random order; the missing value
    is one of them, and categories without a case stand with it.
    """

    knots: list[np.ndarray]  # increasing values of each column; empty for categories, and for columns without values
    gap: np.ndarray  # float64 (n_features,): between missing values and the others, in ranks
    codes: dict[int, np.ndarray]  # for the columns of categories, the codes that cases have

    @classmethod
    def from_rows(cls, X: np.ndarray, weight: np.ndarray, columns: list[Column]) -> RankScale:
        """Learn the scale from rows with weight, float arrays (n, n_features) and (n,)."""
        knots, gap, codes = [], [], {}
        for feature, (values, column) in enumerate(zip(X.T, columns, strict=True)):
            is_known = ~np.isnan(values)
            is_set = column.is_categorical and not column.is_ordered
            if is_set and is_known.any():
                codes[feature] = np.unique(values[is_known]).astype(np.int64)
            knots.append(np.zeros(0) if is_set else knots_of(values[is_known], weight[is_known]))
            known, missing = weight[is_known].sum(), weight[~is_known].sum()
            gap.append(np.clip(len(knots[-1]) * missing / known, 1.0, MOST_KNOTS) if known > 0 else 1.0)
        return cls(knots, np.array(gap), codes)

    def ranks(self, X: np.ndarray) -> np.ndarray:
        """Rows with numbers as ranks, categories as codes and missing values as NaN: float32 (n, n_features)."""
        out = np.full(X.shape, np.nan, np.float32)
        for feature, (values, knots) in enumerate(zip(X.T, self.knots, strict=True)):
            is_known = ~np.isnan(values)
            known = values[is_known]
            if len(known):
                is_set = feature in self.codes
                out[is_known, feature] = known if is_set else np.interp(known, knots, np.arange(len(knots)))
        return out

    def draw_places(self, rng: np.random.Generator) -> Places:
        """Draw where missing values and categories lie for one tree."""
        last = np.array([len(knots) for knots in self.knots]) - 1.0
        is_below = rng.random(len(last)) < 0.5
        missing, orders = np.where(is_below, -self.gap, last + self.gap), {}
        for feature, codes in self.codes.items():
            drawn = rng.permutation(len(codes) + 1)
            missing[feature] = drawn[-1]
            orders[feature] = np.full(MOST_CATEGORIES, drawn[-1])
            orders[feature][codes] = drawn[:-1]
        return Places(missing.astype(np.float32), orders)

    def conditions(self, tree: Any, places: Places) -> dict[str, np.ndarray]:
        """Arrays of a tree of scikit-learn, nodes numbered from 0, with conditions on values in place of ranks."""
        is_leaf = tree.children_left == -1
        feature = np.where(is_leaf, 0, tree.feature)
        of_set = ~is_leaf & np.isin(feature, [*places.orders])
        of_number = ~is_leaf & ~of_set
        threshold, category_at = np.zeros(len(feature)), np.full(len(feature), -1)
        threshold[of_number] = self._values(feature[of_number], tree.threshold[of_number])
        category_at[of_set] = np.arange(of_set.sum())
        bits = np.zeros((of_set.sum(), MOST_CATEGORIES), np.uint8)
        for own, column, place in zip(bits, feature[of_set].tolist(), tree.threshold[of_set], strict=True):
            own[:] = places.orders[column] <= place
        weight = tree.weighted_n_node_samples
        impurity = weight * tree.impurity
        gain = impurity - impurity[tree.children_left] - impurity[tree.children_right]
        return {
            "kind": np.where(is_leaf, LEAF, np.where(of_set, CATEGORY, NUMERIC)), "feature": feature,
            "threshold": threshold, "left": tree.children_left, "right": tree.children_right,
            "missing_left": ~is_leaf & (places.missing[feature] <= tree.threshold), "category_at": category_at,
            "category_bits": np.packbits(bits, axis=1, bitorder="little").view(np.uint64).reshape(-1, 4),
            "value": np.zeros(len(feature)), "cover": weight, "gain": np.where(is_leaf, 0.0, np.maximum(gain, 0.0)),
        }  # fmt: skip

    def _values(self, feature: np.ndarray, rank: np.ndarray) -> np.ndarray:
        """The values whose ranks are given, between two knots; infinite between the known and the missing ones."""
        sizes = np.array([len(knots) for knots in self.knots])
        start, last = np.cumsum(sizes) - sizes, sizes[feature] - 1
        knots = np.concatenate(self.knots)
        below = np.clip(np.floor(rank), 0, np.maximum(last - 1, 0)).astype(np.int64)
        share, at = np.clip(rank - below, 0.0, 1.0), start[feature] + below
        upper = knots[np.minimum(at + 1, len(knots) - 1)]
        between = np.minimum(knots[at] * (1.0 - share) + upper * share, np.nextafter(upper, -np.inf))
        return np.where(rank < 0, -np.inf, np.where(rank >= last, np.inf, between))


@dataclass(frozen=True, eq=False)
class Places:
    """Where missing values and categories lie among the ranks of one tree."""

    missing: np.ndarray  # float32 (n_features,)
    orders: dict[int, np.ndarray]  # int (256,): for the columns of categories, the place of every code

    def ranks_of(self, ranks: np.ndarray) -> np.ndarray:
        """Rows without missing values and codes, float32 (n, n_features)."""
        out = np.where(np.isnan(ranks), self.missing, ranks)
        for feature, order in self.orders.items():
            is_known = ~np.isnan(ranks[:, feature])
            out[is_known, feature] = order[ranks[is_known, feature].astype(np.int64)]
        return out


def knots_of(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """All distinct values, or about 255 quantiles if there are more; increasing.

    Examples
    --------
    >>> knots_of(np.array([3.0, 1.0, 3.0]), np.ones(3)).tolist()
    [1.0, 3.0]
    >>> len(knots_of(np.arange(10_000.0), np.ones(10_000)))
    255
    """
    distinct, which = np.unique(values, return_inverse=True)
    if len(distinct) <= MOST_KNOTS:
        return distinct
    total = np.cumsum(np.bincount(which, weight))
    inner = np.searchsorted(total, np.arange(1, MOST_KNOTS - 1) / (MOST_KNOTS - 1) * total[-1])
    return distinct[np.unique(np.concatenate(([0], inner, [len(distinct) - 1])))]
