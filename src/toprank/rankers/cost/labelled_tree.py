"""`LabelledTree`: trees whose leaves have the label of lowest cost; what `TAOTree` and `CostTree` share."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from toprank._compat import Interval, StrOptions
from toprank._core.dtypes import GINI
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.budget import least_cost_text
from toprank.data.binned_cases import BinnedCases
from toprank.errors import InputError
from toprank.rankers.greedy.monotone import bounded_rates
from toprank.rankers.growth import GROWTH_CONSTRAINTS, category_search
from toprank.rankers.leaf_rates import finish_tree, node_rates, order_by_rate
from toprank.rankers.tree_ranker import TreeRanker
from toprank.tree.flatten import flatten_tree
from toprank.tree.grower import UNLIMITED, Limits, grow
from toprank.tree.scoring import TIES, Margin, Scoring
from toprank.tree.structure import Tree
from toprank.tree.tao.problem import integer_costs
from toprank.tree.weights import FIXED_POINT_BITS, RowWeights

BALANCED = "balanced"

LABELLED_CONSTRAINTS: dict[str, list[Any]] = {
    **{name: allowed for name, allowed in GROWTH_CONSTRAINTS.items()
       if name not in ("min_samples_split", "min_gain", "max_leaf_nodes")},
    "fp_cost": [Interval(Real, 0, None, closed="neither"), StrOptions({BALANCED})],
    "fn_cost": [Interval(Real, 0, None, closed="neither")],
    "leaf_score": [StrOptions({"margin", "constant"})],
}  # fmt: skip
"""scikit-learn's checks of the parameters that all labelled trees share."""


class LabelledTree(TreeRanker):
    """Base of the trees whose leaves have a label, chosen by the costs of false positives and false negatives.

    A subclass finds the tree and its labels in `_fit_model`, after `_set_costs`, and passes them to `_finish`.
    """

    fp_cost: float | str
    fn_cost: float
    leaf_score: str
    smoothing: str | None
    smoothing_strength: float
    objective_: float  # that of the subclass, for the final tree on the training data

    # --- costs --------------------------------------------------------------------------------------------------

    def _set_costs(self) -> np.ndarray:
        """Set the cost of a false positive; return the cost matrix, one row per class, one column per label."""
        if isinstance(self.fp_cost, str):  # the base cost of section H.1.1 gives both classes the same total cost
            self.fp_cost_ = self.fn_cost * self.n_positives_ / (self.n_cases_ - self.n_positives_)
        else:
            self.fp_cost_ = float(self.fp_cost)
        return np.array([[0.0, self.fp_cost_], [self.fn_cost, 0.0]])

    # --- growing ------------------------------------------------------------------------------------------------

    def _weigh_by_cost(self, data: BinnedCases, weights: RowWeights, costs: np.ndarray) -> RowWeights:
        """Return the cost of a mistake on each row, in integer units."""
        total, whole, unit = integer_costs(weights.total, costs, FIXED_POINT_BITS)
        total = total * np.where(data.is_positive, whole[1, 0], whole[0, 1])
        return RowWeights(np.where(data.is_positive, total, 0), total, unit * weights.unit, (costs[1, 0], costs[0, 1]))

    def _greedy_tree(
        self, data: BinnedCases, costly: RowWeights, max_depth: int | None, least: float, threads: Threads,
        direction: np.ndarray | None = None,
    ) -> Tree:  # fmt: skip
        """Grow a greedy tree by the Gini index, rows weighted by the cost of a mistake, leaves of `least` or more."""
        min_leaf = max(1, math.ceil(min(least, costly.sum_of_total)))
        splitter = data.splitter(costly, threads)
        categories = category_search(self).rules(costly)
        limits = Limits(GINI, max_depth or UNLIMITED, min_leaf, categories=categories, direction=direction)
        return flatten_tree(grow(splitter, splitter.root(), limits), costly.unit, data.is_categorical)

    def _finish(self, tree: Tree, label: np.ndarray, data: BinnedCases, direction: np.ndarray | None = None) -> None:
        """Set leaf order, rates and scores of a tree whose leaves have labels 0 and 1, and count its mistakes."""
        rates = bounded_rates(tree, node_rates(tree, self.smoothing, self.smoothing_strength), direction)
        scoring: Scoring = TIES
        if self.leaf_score == "margin":
            turn = self.fp_cost_ / (self.fp_cost_ + self.fn_cost)  # theorem 4.2: richer leaves are positive
            scoring = Margin(data.column_scales(), min(turn, 1 - 1e-9))
        self.tree_ = finish_tree(tree, *order_by_rate(tree, rates), scoring)
        self._label = np.where(tree.is_leaf, label, -1).astype(np.int8)
        self.n_fp_ = float(tree.negative[self._label == 1].sum())
        self.n_fn_ = float(tree.positive[self._label == 0].sum())

    # --- labels -------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row: the label of its leaf, of lowest cost at `fp_cost` and `fn_cost`.

        With a `budget`, positive above its cutoff instead, as in all rankers.
        """
        if self.budget_ is not None:
            return super().predict(X)
        matrix = self._encode(X)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            is_positive = self._label[self.tree_.apply(matrix, threads)] == 1
        return self.classes_[np.where(is_positive, self.positive_index_, 1 - self.positive_index_)]

    def _line_in_words(self) -> str:
        if self.budget_ is not None:
            return super()._line_in_words()
        return least_cost_text(self.n_positives_, self.n_fp_, self.n_fn_)

    # --- files --------------------------------------------------------------------------------------------------

    def _figures(self) -> dict[str, Any]:
        return super()._figures() | {"objective": self.objective_, "n_fp": self.n_fp_, "n_fn": self.n_fn_}

    def _to_arrays(self) -> dict[str, np.ndarray]:
        figures = np.array([self.fp_cost_, self.n_fp_, self.n_fn_, self.objective_], np.float64)
        return super()._to_arrays() | {"label": self._label, "label_figures": figures}

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self._label = arrays["label"]
        if (
            self._label.dtype != np.int8
            or self._label.shape != (len(self.tree_),)
            or not np.isin(self._label[self.tree_.is_leaf], (0, 1)).all()
        ):
            raise InputError("The model's leaves lack labels.")
        self.fp_cost_, self.n_fp_, self.n_fn_, self.objective_ = arrays["label_figures"].tolist()
        if not np.isfinite(arrays["label_figures"]).all() or min(self.n_fp_, self.n_fn_) < 0 or self.fp_cost_ < 0:
            raise InputError("The model's labels and their costs do not fit together.")
