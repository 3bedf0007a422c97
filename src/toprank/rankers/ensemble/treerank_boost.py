"""`TreeRankBoost`: small TreeRank trees, each fitted to the pairs that the earlier ones order wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank._compat import Interval, StrOptions
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.binned_cases import BinnedCases
from toprank.errors import InputError
from toprank.explain import count_paths
from toprank.rankers.ensemble.ensemble import PATH_ROWS, Ensemble, negatives_above
from toprank.rankers.ensemble.pairs import PLACE, STEP_UNIT, PairRule, PairWeights, best_step, discordant_pairs
from toprank.rankers.growth import DEPTH, FOLD_CONSTRAINTS, GROWTH_CONSTRAINTS, GrowthSettings, grow_meta
from toprank.rankers.meta.ordering import finish_meta
from toprank.rankers.progress import progress
from toprank.tree.meta.objectives import ROC_AREA
from toprank.tree.scoring import TIES
from toprank.tree.structure import Tree
from toprank.tree.weights import integer_weights

PAIR_LIMIT = 2**18
"""Largest product of distinct negatives and trees for which output="auto" compares each case with all negatives:
about a tenth of a millisecond per distinct case."""

SMALLEST_STEP = 1e-9
"""Weight of a tree at or below which boosting ends."""

FIGURES_A_ROUND = ("weights", "errors", "strict_errors", "criterion")
"""Figures per round: the names in files and, with an underscore, of attributes."""

BLOCK_ROWS = 65_536
"""Rows whose places in all trees are in memory at a time."""


@dataclass(kw_only=True, eq=False, repr=False)
class TreeRankBoost(Ensemble):
    """Small TreeRank trees that vote on which of two cases ranks higher, boosted on pairs.

    Each round grows a TreeRank tree on weighted cases, takes as its value s_m(x) the mean of its rule r_m(x, X') over
    the weighted negatives X', chooses the step a_m that lowers the exponential criterion of pairs most, and gives more
    weight to positives that rank low and negatives that rank high. The criterion

        J = mean over pairs of exp(-(S(positive) - S(negative))),  S = a_1 s_1 + a_2 s_2 + ...

    never rises. This needs a change to the weights of section V-D of the paper: as printed, positives and negatives
    move the same way, by L_m instead of a_m. See "How TreeRankBoost works" in the documentation.

    Expected hit rates come from three further models, each fitted without a third of the cases: boosting
    orders almost all training pairs correctly, so its training scores say nothing about new cases. They take three
    quarters of the fitting time, and depend on the order of the rows.

    Parameters
    ----------
    n_estimators : int, default 50
        Most rounds.
    max_depth : int from 1 to 14, default 2
        Levels of a meta-tree.
    leaf_depth : int or None, default 3
        Depth of the inner trees; None = max_depth.
    learning_rate : float in (0, 1], default 1.0
        Share of the best step to take.
    output : {"auto", "pairs", "additive"}, default "auto"
        What a case scores. pairs: the mean over the training negatives of the sign of the vote, as published, ties
        counting 0; exact. additive: S(x). auto: pairs if the distinct negatives times the trees are at most 2 ** 18,
        else additive.
    leaf_order : {"meta", "rate", "training"}, default "meta"
        Order of a tree's cells: from left to right in the meta-tree, as published; by positive rate, shrunk along the
        meta-tree; or by the unshrunk positive rate.
    min_samples_leaf, min_samples_split, min_gain, max_leaf_nodes, smoothing, smoothing_strength, splitter, max_bins
        As in `TreeRank`; weights count as cases.
    categorical_features, cat_smooth, min_data_per_group
        As in `TreeRank`.
    max_cat_threshold, keep_columns, budget, pos_label
        As in `MetaAPForest`.
    n_jobs : int or None
        Threads; the results do not depend on it.
    cv : int, splitter or iterable of splits, default 3
        Folds for the hit rates of new cases; 0 = training rates only.
    random_state : int, RandomState or None
        Seed of the folds, fixed for None; nothing else is random.
    verbose : int, default 0
        1 shows progress on standard error.

    Attributes
    ----------
    trees_ : list of Tree
        The case weights in each are those of its round.
    weights_ : float64 array of shape (n_trees,)
        a_m. Boosting ends early if no step helps; if the first does not, one tree of weight 0 is kept.
    errors_ : float64 array of shape (n_trees,)
        Weighted rate of pairs in the wrong order at each round, ties counting one half: 1 - AUC of the round.
    strict_errors_ : float64 array of shape (n_trees,)
        L_m as printed: ties do not count.
    criterion_ : float64 array of shape (n_trees,)
        J after each round; it never rises, and is 1 before the first.
    output_ : {"pairs", "additive"}
        What cases score.
    feature_importances_ : float64 array of shape (n_features,)
        Share of each column in the gain, weighted by the trees' steps.

    References
    ----------
    .. [1] Clémençon, Vayatis. Tree-based ranking methods. 2008.
       Section V-D.
    .. [2] Freund, Iyer, Schapire, Singer. An efficient boosting algorithm for combining preferences. JMLR 4, 2003.

    Examples
    --------
    >>> from toprank import TreeRankBoost
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(4000, random_state=0)
    >>> model = TreeRankBoost(n_estimators=10).fit(data.X, data.y)
    >>> len(model.trees_), bool((model.criterion_[1:] < model.criterion_[:-1]).all()), model.output_
    (10, True, 'pairs')
    """

    _cutoff_rows = 20_000

    _parameter_constraints = {
        **GROWTH_CONSTRAINTS,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_depth": [Interval(Integral, 1, 14, closed="both")],
        "leaf_depth": DEPTH,
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
        "output": [StrOptions({"auto", "pairs", "additive"})],
        "leaf_order": [StrOptions({"rate", "meta", "training"})],
        **FOLD_CONSTRAINTS,
        "verbose": ["verbose"],
    }

    n_estimators: int = 50
    max_depth: int = 2
    leaf_depth: int | None = 3
    learning_rate: float = 1.0
    output: str = "auto"
    leaf_order: str = "meta"
    min_samples_leaf: int = 20
    min_samples_split: int = 2
    min_gain: float = 0.0
    max_leaf_nodes: int | None = None
    smoothing: str | None = "hierarchical"
    smoothing_strength: float = 10.0
    splitter: str = "hist"
    max_bins: int = 255
    categorical_features: Any = None
    cat_smooth: float | None = 10.0
    min_data_per_group: int = 10
    max_cat_threshold: int | None = 32
    keep_columns: Any = None
    budget: int | float | None = None
    pos_label: Any = None
    n_jobs: int | None = None
    cv: Any = 3
    random_state: Any = None
    verbose: int = 0

    # --- fitting ------------------------------------------------------------------------------------------------

    def _fit_model(self, data: BinnedCases, threads: Threads) -> None:
        self.trees_, self._path_counts = [], []
        is_negative = ~data.is_positive if data.weight is None else ~data.is_positive & (data.weight > 0)
        negatives, places, rounds = np.flatnonzero(is_negative), [], []
        sampled = data.sample(PATH_ROWS)
        sample, sample_weight = data.X[sampled], None if data.weight is None else data.weight[sampled]
        found = self._rounds(data, threads)
        for tree, place, *figures in progress(found, self.n_estimators, type(self).__name__, bool(self.verbose)):
            self.trees_.append(tree)
            self._path_counts.append(count_paths(tree, sample, sample_weight))
            places.append(place[negatives].astype(PLACE))
            rounds.append(figures)
        self.weights_, self.errors_, self.strict_errors_, self.criterion_ = np.array(rounds).T.copy()
        self._values = [values_of_places(tree) for tree in self.trees_]
        self._rule: PairRule | None = None  # the negatives to compare cases with, if output is "pairs"
        if self.output != "additive":
            count = integer_weights(data.is_positive, data.weight).total[negatives]
            rule = PairRule.from_places(self.weights_, np.column_stack(places), count)
            self._rule = rule if self.output == "pairs" or rule.places.size <= PAIR_LIMIT else None

    def _rounds(self, data: BinnedCases, threads: Threads) -> Iterator[tuple[Tree, np.ndarray, *tuple[float, ...]]]:
        """Yield tree, places of the rows, step, error, strict error and criterion of each round.

        Stops if no step lowers the criterion, or once it is so low that no pair can be in the wrong order.
        """
        leaf_depth = self.leaf_depth or self.max_depth
        settings = GrowthSettings.from_estimator(self, ROC_AREA.criterion, leaf_depth, objective=ROC_AREA)
        weights = PairWeights(data.is_positive, data.weight)
        for i in range(self.n_estimators):
            meta, unit = grow_meta(settings, data, weights.for_growing(), threads)
            tree = finish_meta(settings, meta, unit, data.is_categorical, TIES)[0]
            place, value = tree.leaf[tree.apply(data.X, threads)], values_of_places(tree)
            positive, negative = weights.by_place(place, tree.n_leaves)
            strict, tied = discordant_pairs(positive, negative)
            step = self.learning_rate * best_step(value, positive, negative)
            step = np.floor(step / STEP_UNIT) * STEP_UNIT  # a shorter step never hurts: log Z is convex
            moved = weights.moved(step * value[place])
            is_better = step > SMALLEST_STEP and moved.criterion < weights.criterion
            if not is_better and i > 0:
                return
            weights = moved if is_better else weights
            yield tree, place, step if is_better else 0.0, strict + tied / 2, strict, weights.criterion
            if not is_better or weights.criterion < weights.smallest_pair:
                return

    # --- scoring ------------------------------------------------------------------------------------------------

    @property
    def output_(self) -> str:
        """Return what cases score: "pairs" or "additive"."""
        check_is_fitted(self)
        return "additive" if self._rule is None else "pairs"

    def _score_rows(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        out = np.empty(len(matrix))
        for start in range(0, len(matrix), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            places = self._places(matrix[rows], threads)
            out[rows] = self._sums(places) if self._rule is None else self._rule.scores(places, threads)
        return out

    def _places(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        """Return the place of each row in each tree, int16 (n, n_trees)."""
        return np.column_stack([tree.leaf[tree.apply(matrix, threads)].astype(PLACE) for tree in self.trees_])

    def _sums(self, places: np.ndarray) -> np.ndarray:
        """Return S of rows from their places in the first trees."""
        total = np.zeros(len(places))
        for weight, value, place in zip(self.weights_, self._values, places.T, strict=False):
            total += weight * value[place]
        return total

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the scores after 1, 2, ... rounds, float64 (n,) each.

        They are those of models with so many rounds and the same `output_`.
        """
        matrix = self._encode(X)
        return self._stages(matrix)

    def _stages(self, matrix: np.ndarray) -> Iterator[np.ndarray]:
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            places = self._places(matrix, threads)
            for n_trees in range(1, len(self.trees_) + 1):
                first = places[:, :n_trees]
                yield self._sums(first) if self._rule is None else self._rule.first(n_trees).scores(first, threads)

    def _tree_weights(self) -> np.ndarray:
        return self.weights_

    def _how(self) -> str:
        return "vote of {}" if self.output_ == "pairs" else "weighted sum of {}"

    # --- reading and files --------------------------------------------------------------------------------------

    def _tree_shares(self) -> np.ndarray:
        return super()._tree_shares() * self.weights_[:, None]

    def _figures(self) -> dict[str, Any]:
        return super()._figures() | {"criterion": float(self.criterion_[-1]), "output": self.output_}

    def _size_in_words(self) -> str:
        return f"{super()._size_in_words()}; score: {self.output_}; pair criterion {self.criterion_[-1]:.3g}"

    def _to_arrays(self) -> dict[str, np.ndarray]:
        arrays = super()._to_arrays() | {name: getattr(self, f"{name}_") for name in FIGURES_A_ROUND}
        if self._rule is not None:
            arrays |= {"pair_places": self._rule.places, "pair_count": self._rule.count}
        return arrays

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        for name in FIGURES_A_ROUND:
            is_whole = arrays[name].shape == (len(self.trees_),) and arrays[name].dtype == np.float64
            if not is_whole or not np.isfinite(arrays[name]).all():
                raise InputError(f"The model's {name} and its trees do not fit together.")
            setattr(self, f"{name}_", arrays[name])
        if np.any(self.weights_ < 0):
            raise InputError("The model's weights are not those of boosting: some are negative.")
        self._values = [values_of_places(tree) for tree in self.trees_]
        self._rule = None
        if "pair_places" in arrays:
            places, count = arrays["pair_places"], arrays["pair_count"]
            n_places = np.array([tree.n_leaves for tree in self.trees_])
            fits = places.dtype == PLACE and count.dtype == np.int64 and places.shape == (len(count), len(n_places))
            if not (
                fits
                and len(count)
                and np.all(count > 0)
                and float(count.astype(np.float64).sum()) < 2.0**62  # the most that a vote can count
                and np.all((places >= 0) & (places < n_places))
            ):
                raise InputError("The model's negatives are not those of pairs.")
            self._rule = PairRule(self.weights_, places, count)


def values_of_places(tree: Tree) -> np.ndarray:
    """Return the mean of a tree's rule over its weighted negatives at each place, float64 (n_places,) in [-1, 1].

    At place k the negatives below it count 1, those above it -1, those level with it 0: with alpha_k the share above,
    (1 - alpha_{k+1}) - alpha_k.
    """
    above = negatives_above(tree)
    return 1.0 - above[1:] - above[:-1]
