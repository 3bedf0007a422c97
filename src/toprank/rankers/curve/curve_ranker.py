"""`CurveRanker`: a model for every trade-off of false alarms and missed positives, and the choice of one.

What curves of trees and of bagged trees share: validation data, the mistakes of all points, the choice of one, and
files. A subclass fits the models and labels rows with them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self, TypeGuard

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from toprank._core.threads import Threads, resolve_n_jobs
from toprank.budget import Cutoff, cases_of_budget, curve_text
from toprank.data.binned_cases import BinnedCases
from toprank.data.frames import make_frame
from toprank.errors import InputError
from toprank.files.model_file import with_prefix, without_prefix
from toprank.metrics import OperatingPoints
from toprank.rankers.base import Ranker
from toprank.rankers.cost.tao_tree import TAOTree
from toprank.rankers.curve.path import CurvePoint, ThresholdMove, path_table, points_of_path
from toprank.rankers.curve.selection import Selection, TopLabels, choose
from toprank.rankers.ensemble.ensemble import Ensemble
from toprank.rankers.unseen import HeldOut, Unseen
from toprank.rankers.validation import positives_of

OF_TRAINING, OF_VALIDATION = "training data", "validation data"
"""Sources of the figures of points that all curve rankers have."""


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels that the models of a curve give cases of known class."""

    is_positive: np.ndarray  # bool (n,)
    weight: np.ndarray | None  # float64 (n,) or None
    is_flagged: np.ndarray  # bool (n_points, n): whether each model flags each case
    score: np.ndarray  # float64 (n,)

    def points(self, ratios: np.ndarray) -> OperatingPoints:
        """Return the mistakes of the models, which were fitted at these costs."""
        return OperatingPoints.from_labels(
            self.is_positive, self.is_flagged, cost_ratio=ratios, sample_weight=self.weight, pos_label=True
        )

    def top(self) -> TopLabels:
        """Return the cases at the top of the ranking."""
        return TopLabels.from_labels(self.score, self.is_flagged, self.is_positive, self.weight)


class CurveRanker(Ensemble):
    """Base of the rankers with a model for every cost of a false positive.

    A subclass fits the models in `_fit_model` and passes them to `_judge`; `_labels_and_scores` and `_labels_at` label
    rows with them.
    """

    base: TAOTree | None
    random_state: Any
    path_: list[CurvePoint]
    base_point_: int
    points_: OperatingPoints
    held_out_points_: OperatingPoints | None
    held_out_by_: str
    selected_: Selection | None  # the choice stored by `with_choice`
    # Held-out scores of the training rows, on the scale of `decision_function`.
    oof_decision_function_: np.ndarray | None
    oof_fold_: np.ndarray | None  # fold in which each row was held out, -1 for none
    _what_a_point_is: str = "tree of the curve"  # in error messages
    _validation: tuple[Any, Any] | None = None  # of the fit under way
    _judged_top: TopLabels | None  # of the rows behind the figures
    _seen_top: TopLabels | None  # of the training rows, if alerts are counted on these

    # --- what the base says -------------------------------------------------------------------------------------

    @property
    def _base(self) -> TAOTree:
        return TAOTree() if self.base is None else self.base

    @property
    def _binning(self) -> TAOTree:
        return self._base

    # --- what a subclass says -----------------------------------------------------------------------------------

    @abstractmethod
    def _labels_and_scores(self, matrix: np.ndarray, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
        """Return whether each model flags each row, bool (n_points, n), and the score of each row, float64 (n,)."""

    @abstractmethod
    def _labels_at(self, position: int, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        """Return whether the model of one point flags each row, bool (n,)."""

    # --- fitting ------------------------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fit to past cases.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
        y : array of shape (n,)
        sample_weight, groups : array of shape (n,), optional
            As in the other rankers.
        X_val, y_val : optional
            Validation data, such as a later year; `select` then uses them.
        """
        if (X_val is None) != (y_val is None):
            given, lacking = ("X_val", "y_val") if y_val is None else ("y_val", "X_val")
            raise InputError(
                f"{type(self).__name__}.fit got {given} but no {lacking}. Hint: validation data are cases and outcomes."
            )
        self._validation = None if X_val is None else (X_val, y_val)
        try:
            return super().fit(X, y, sample_weight, groups)
        finally:
            del self._validation

    def _plain_base(self) -> TAOTree:
        """Return a copy of the base with the random state and the table settings of this model."""
        base = clone(self._base)
        for name in ("pos_label", "categorical_features", "keep_columns"):
            if getattr(base, name) is not None:
                raise InputError(
                    f"The base of a {type(self).__name__} sets {name}, expected None. "
                    f"Hint: give {name} to the {type(self).__name__}."
                )
        if self.random_state is not None:
            base.set_params(random_state=self.random_state)
        return base.set_params(budget=None)

    def _read_validation(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the encoded validation data and which rows are positive; None if `fit` got none."""
        if self._validation is None:
            return None
        matrix = self._encode(self._validation[0])
        is_positive = positives_of(
            self, self._validation[1], len(matrix), f"{type(self).__name__}.fit (y_val)", need_both=False
        )
        if is_positive.all() or not is_positive.any():
            raise InputError(
                f"{type(self).__name__}.fit needs validation data of both classes, but all {len(is_positive):,} "
                f"outcomes in y_val are {'positive' if is_positive[0] else 'negative'}. Hint: use more cases."
            )
        return matrix, is_positive

    def _judge(
        self,
        ratios: np.ndarray,
        models: Sequence[Any],
        seen: Labels,
        unseen: Labels | None,
        source: str,
        moved: Sequence[ThresholdMove | None] | None = None,
    ) -> None:
        """Set the mistakes of the models on the training data and on held-out cases.

        `source` says in words what the held-out cases are, `moved` how models between two costs come from neighbours.
        """
        self.points_ = seen.points(ratios)
        self.held_out_points_ = None if unseen is None else unseen.points(ratios)
        self.held_out_by_ = OF_TRAINING if unseen is None else source
        self._judged_top = (seen if unseen is None else unseen).top()
        self._seen_top = seen.top() if self._counts_own_alerts else None
        self.path_ = points_of_path(models, self.points_, self.held_out_points_, moved or [None] * len(models))
        self.selected_ = None

    # --- scoring ------------------------------------------------------------------------------------------------

    def _cross_validate(self, data: BinnedCases, threads: Threads) -> None:
        """Return nothing: a curve is judged out of fold during the fit or not at all."""

    def _unseen(self, labels: Labels | None, sizes: Sequence[int] = ()) -> Unseen | None:
        """Return the held-out cases that the models were judged on; `sizes` are those of the folds in order."""
        if labels is None:
            return None
        weight = np.ones(len(labels.score)) if labels.weight is None else labels.weight
        ends = np.cumsum(sizes)[:-1]
        parts = [np.split(values, ends) for values in (labels.score, labels.is_positive, weight)]
        return Unseen([HeldOut(*each) for each in zip(*parts, strict=True)], self.held_out_by_)

    def _score_rows(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        return self._labels_and_scores(matrix, threads)[1]

    def _how(self) -> str:
        return "which orders cases by how many votes of {} flag them, ties by the mean score"

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row: its label at the base point; with a `budget`, positive above its cutoff.

        After `with_choice`, always the label of the chosen point. If only the first alerts of a tree were chosen
        (`selected_.cut`), rows that the curve scores lower are negative.
        """
        check_is_fitted(self)
        if self.selected_ is None and self.budget_ is not None:
            return super().predict(X)
        position, cut = self.base_point_, None
        if self.selected_ is not None:
            position, cut = self.selected_.position, self.selected_.cut
        matrix = self._encode(X)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            is_positive = self._labels_at(position, matrix, threads)
            if cut is not None and is_positive.any():
                rows = np.flatnonzero(is_positive)
                is_positive[rows] = self._score_rows(matrix[rows], threads) >= cut.threshold
        return self.classes_[np.where(is_positive, self.positive_index_, 1 - self.positive_index_)]

    def _line_in_words(self) -> str:
        if self.selected_ is None and self.budget_ is not None:
            return super()._line_in_words()
        return curve_text(is_chosen=self.selected_ is not None)

    @property
    def judged_points_(self) -> OperatingPoints:
        """Mistakes that the choice of a point goes by: on held-out cases if there are any."""
        return self.points_ if self.held_out_points_ is None else self.held_out_points_

    # --- choosing -----------------------------------------------------------------------------------------------

    def points(self, X: Any, y: Any, sample_weight: Any = None) -> OperatingPoints:
        """Return the mistakes of every point of the curve on other data."""
        matrix = self._encode(X)
        is_positive = positives_of(self, y, len(matrix), f"{type(self).__name__}.points", need_both=False)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            labels = Labels(is_positive, sample_weight, *self._labels_and_scores(matrix, threads))
        return labels.points(self.points_.cost_ratio)

    def select(
        self,
        *,
        max_fpr: float | None = None,
        k: int | float | None = None,
        cost_ratio: float | None = None,
        min_recall: float | None = None,
        max_leaves: int | None = None,
    ) -> Selection:
        """Return the best point of the curve for a target, with what to expect of it; the curve does not change.

        `at` returns the ranker of that point, `with_choice` a curve that keeps the choice.

        All figures come from the data that `held_out_by_` names: the validation data if `fit` got any. The exception:
        with cross-validation, whether a tree fits a budget depends on the training cases that it flags itself, as the
        trees of folds are different ones. Ties go to the point with the fewest leaves.

        Parameters
        ----------
        max_fpr : float from 0 to 1
            At most this share of the negatives is flagged; as many positives as possible are found.
        k : int or float
            At most this many alerts per as many cases as in training; a float is a share of them. As many positives as
            possible are found, either by all alerts of a tree or, if that finds more, by the first k alerts of a larger
            tree in the order of the curve: `cut` of the selection says where they end.
        cost_ratio : float
            Cost of a false positive in false negatives; the total cost is as low as possible.
        min_recall : float from 0 to 1
            At least this share of the positives is found, with as few false positives as possible.
        max_leaves : int
            Points with more leaves (in a forest, in all trees of a bag) are left out; can be combined with any of the
            others. Alone: the best at the base cost.
        """
        check_is_fitted(self)
        return choose(self, max_leaves, max_fpr=max_fpr, k=k, cost_ratio=cost_ratio, min_recall=min_recall)

    def at(
        self,
        *,
        max_fpr: float | None = None,
        k: int | float | None = None,
        cost_ratio: float | None = None,
        min_recall: float | None = None,
        max_leaves: int | None = None,
    ) -> Ranker:
        """Return the fitted ranker of the point that `select` finds for the same arguments; the curve does not change.

        For a curve of trees it is the tree, which ranks by its own leaves: `predict` returns their labels. If a budget
        `k` takes only the first alerts of the tree (`cut` of the selection), `k` is its `budget`, and `predict` takes
        the first by the tree's score instead of the curve's. Its rates are training rates: `select` says what to expect
        of new cases. For a forest it is the forest `with_choice`.

        Parameters are those of `select`. The ranker is a copy: `top_k`, `rules`, `explain` and `save` work as after a
        fit.

        Examples
        --------
        >>> from toprank import CostOptimalCurve
        >>> from toprank.datasets import make_audit
        >>> data = make_audit(2000, random_state=0)
        >>> curve = CostOptimalCurve(depths=[2], alphas=[3], cv=0).fit(data.X, data.y)
        >>> int(curve.at(k=60).predict(data.X).sum()) <= 60
        True
        """
        selection = self.select(
            max_fpr=max_fpr, k=k, cost_ratio=cost_ratio, min_recall=min_recall, max_leaves=max_leaves
        )
        return self._ranker_of(selection, k)

    def _ranker_of(self, selection: Selection, k: int | float | None) -> Ranker:
        """Return the ranker of a chosen point; `k` is the given budget, if any."""
        return self.with_choice(selection)

    def with_choice(self, selection: Selection | None) -> Self:
        """Return a copy of the curve that keeps a choice, in model files too; this curve does not change.

        The copy predicts what the chosen point does, `rules`, `to_text` and displays show that point, and
        `toprank topk --chosen` lists its alerts. `selection` is a result of `select` of this curve; None: no choice.
        """
        check_is_fitted(self)
        if selection is not None and not self._has_selected(selection):
            raise InputError(
                f"{type(self).__name__}.with_choice needs a result of select of the same curve, or None, "
                f"got {selection!r}. Hint: curve.with_choice(curve.select(k=200))."
            )
        other = copy(self)
        other.selected_ = selection
        return other

    def _has_selected(self, selection: Any) -> TypeGuard[Selection]:
        """Whether this is a result of `select` of the same curve."""
        return (
            isinstance(selection, Selection)
            and 0 <= selection.position < len(self.path_)
            and selection.point is self.path_[selection.position]
        )

    def with_budget(self, budget: int | float) -> Self:
        """Return a copy of the curve with another budget, in model files too; this curve does not change.

        `top_k` of the copy lists as many cases. The cutoff of `predict` lies at one of the scores that are kept for the
        hit rates, so it flags about as many training cases, not exactly those of a new fit. The budget is a number of
        cases, or a share of them.
        """
        check_is_fitted(self)
        k, rates = cases_of_budget(budget, self.n_cases_, self.n_positives_), self.rates_
        at = np.flatnonzero(np.diff(rates.share, append=0.0) < 0)  # scores that training cases have
        above = rates.share[at] * self.n_cases_
        best = int(np.argmin(np.abs(above - k)))
        threshold, n_above, tied = float(rates.score[at[best]]), float(above[best]), -np.diff(above, append=0.0)
        rate = float(np.average(rates.rate[at[best:]], weights=tied[best:]))
        training_rate, top = rate, self._seen_top or self._judged_top
        if top is not None and top.score[0] >= threshold >= top.score[-1]:  # else not all of these rows were kept
            first = top.score >= threshold
            training_rate = float(np.average(top.is_positive[first], weights=top.weight[first]))
        cutoff = Cutoff(k, n_above, threshold, training_rate, n_tied=float(tied[best]))
        if rates.is_for_new_cases:
            low, high = rates.interval(rate, float(rates.above[at[best]]), n_above)
            cutoff = replace(cutoff, hit_rate=rate, hit_rate_low=low, hit_rate_high=high)
        other = copy(self)
        other.budget = other.budget_ = budget
        other.cutoff_ = cutoff
        return other

    @property
    def _counts_own_alerts(self) -> bool:
        """Whether a budget limits the alerts on the training cases, not those on held-out cases."""
        return False

    @property
    def _alerts(self) -> np.ndarray:
        """Return the cases that each model flags, per as many cases as in training: float64 (n_points,)."""
        if self._counts_own_alerts:
            return self.points_.alerts
        counted = self.judged_points_
        return counted.alerts / (counted.positives + counted.negatives) * self.n_cases_

    def frame(self) -> Any:
        """Return the path as a frame, as in fit: one row per point, with cost ratio, leaves, mistakes and shares.

        `is_between`: whether a tree lies between those of two costs.

        Columns that begin with `held_out_` come from the data that `held_out_by_` names, and are left out if nothing
        was held out; the others come from the training data. So `is_dominated` and `held_out_is_dominated` may differ.
        """
        check_is_fitted(self)
        return make_frame(path_table(self.path_, self.points_, self.held_out_points_), self._backend)

    # --- files --------------------------------------------------------------------------------------------------

    def _judged_to_arrays(self) -> dict[str, np.ndarray]:
        """Return the mistakes of the points, and the choice among them."""
        arrays = {"held_out_by": np.array(self.held_out_by_), "base_point": np.array(self.base_point_)}
        for prefix, points in (("points_", self.points_), ("held_out_points_", self.held_out_points_)):
            if points is not None:
                arrays |= {f"{prefix}{name}": np.array(value) for name, value in points.to_dict().items()}
        arrays["moved"] = np.array([(np.nan,) * 3 if point.moved is None else point.moved for point in self.path_])
        for prefix, top in (("judged_top_", self._judged_top), ("seen_top_", self._seen_top)):
            if top is not None:
                arrays |= with_prefix(top.to_arrays(), prefix)
        return arrays | ({} if self.selected_ is None else self.selected_.to_arrays())

    def _judged_from_arrays(
        self, arrays: dict[str, np.ndarray], n_points: int, model_at: Callable[[int, OperatingPoints], Any]
    ) -> None:
        """Restore these from the arrays of a file; `model_at` returns a point's model, by position and all mistakes."""
        self.held_out_by_, self.base_point_ = str(arrays["held_out_by"]), int(arrays["base_point"])
        if not 0 <= self.base_point_ < n_points:
            raise InputError("The model's base point is not one of its points.")
        self.points_ = _points_of(without_prefix(arrays, "points_"), n_points)
        held_out = without_prefix(arrays, "held_out_points_")
        self.held_out_points_ = _points_of(held_out, n_points) if held_out else None
        models = [model_at(i, self.points_) for i in range(n_points)]
        moved = [None if np.isnan(row[0]) else ThresholdMove(int(row[0]), *row[1:]) for row in arrays["moved"].tolist()]
        origins = [each.point for each in moved if each is not None]
        is_whole = len(moved) == n_points and all(0 <= point < n_points for point in origins)
        if not is_whole or any(moved[point] is not None for point in (self.base_point_, *origins)):
            raise InputError("The model's points and those that they come from do not fit together.")
        self.path_ = points_of_path(models, self.points_, self.held_out_points_, moved)
        self._judged_top, self._seen_top = (
            TopLabels.from_arrays(found, n_points) if (found := without_prefix(arrays, prefix)) else None
            for prefix in ("judged_top_", "seen_top_")
        )
        self.selected_ = Selection.from_arrays(arrays, self.path_, self.held_out_by_)
        self.oof_decision_function_ = self.oof_fold_ = None  # of the training rows, which files do not hold


def _points_of(arrays: dict[str, np.ndarray], n_points: int) -> OperatingPoints:
    values: dict[str, Any] = {name: array if array.ndim else float(array) for name, array in arrays.items()}
    points = OperatingPoints(**values)
    if len(points) != n_points or n_points == 0:
        raise InputError("The model's points and their mistakes do not fit together.")
    return points
