"""`Ranker`: what all rankers share, from reading a table to listing alerts."""

from __future__ import annotations

import math
from abc import abstractmethod
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from toprank._compat import Interval, StrOptions
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.budget import alerts_of_budget, budget_text, cases_of_budget, find_cutoff
from toprank.data.cases import Cases
from toprank.data.encoding import original_values
from toprank.data.frames import backend_of, make_frame
from toprank.data.shared_table import SharedTable
from toprank.explain.dependence import Dependence, partial_dependence
from toprank.explain.reasons import Reason, strongest
from toprank.explain.values import Originals
from toprank.export import main_columns
from toprank.files.model_file import with_prefix, without_prefix
from toprank.metrics import HitRates, average_precision
from toprank.rankers.alerts import (
    beside_columns,
    carried_columns,
    check_reasons,
    count_of_alerts,
    log_odds_gain,
    reason_columns,
)
from toprank.rankers.reading import TableReader
from toprank.rankers.unseen import Fold, HeldOut, Unseen, by_folds, held_out_folds, rates_of_training
from toprank.rankers.validation import (
    check_classes,
    check_groups,
    check_labels,
    check_weights,
    positives_of,
    warn_of_common_text_label,
)
from toprank.tree.rows import row_hashes
from toprank.words.counts import plural
from toprank.words.numbers import percent_text

RANKER_CONSTRAINTS: dict[str, list[Any]] = {
    "categorical_features": ["array-like", None],
    "keep_columns": ["array-like", StrOptions({"all"}), None],
    "budget": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="neither"), None],
    "pos_label": [Real, str, bool, None],
    "n_jobs": [Integral, None],
}
"""scikit-learn's checks of the parameters that all rankers share."""

TABLE_FACTS = ("columns_", "left_out_", "classes_", "positive_index_", "n_features_in_", "feature_names_in_",
               "_backend", "_input_names")  # fmt: skip
"""What is known of a table, independent of the rows that a model is fitted on."""


RATE_ROWS = 100_000
"""Most training rows whose scores are kept to rank a score among them; spread evenly over the table."""


class Ranker(ClassifierMixin, TableReader):
    """Base of all rankers: higher scores are more suspicious, rank 1 is the top.

    It reads tables and labels, lets its subclass fit and score, finds the cutoff of the budget and the hit rates of new
    cases, lists alerts and saves. A subclass fits `Cases` in `_fit_model`, scores encoded rows in `_score_rows` and
    explains them in `_reasons`. See "How to add a ranker" in the design documentation.

    Attributes
    ----------
    rates_ : HitRates
        Hit rate by score, of new cases; with cv=0 of the training cases.
    cutoff_ : Cutoff
        The end of the alerts.
    budget_ : int, float or None
        `budget` at the fit, which `predict` and `top_k` follow: another one set later takes effect at the next fit.
    """

    budget_: Any = None
    cv: Any = 0  # a ranker without this parameter estimates rates itself, or has none for new cases
    random_state: Any = None
    _cutoff_rows = 10_000_000  # training rows on which the cutoff of the budget is found
    _fits_training_closely = False  # training cases score higher than new ones, so the cutoff is one of held-out cases
    _is_prepared = False  # part of another ranker, fitted on its table
    _table_counts: tuple[float, float] | None = None  # cases and positives of that table; a fold has fewer

    # --- fitting ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit to past cases.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features), or a SharedTable of it
            numpy, pandas, polars or pyarrow; categories and missing values as they are.
        y : array of shape (n,)
            The outcome: two values; `pos_label` is positive, or 1, True, yes and the like, or the larger one.
        sample_weight : array of shape (n,), optional
            Non-negative weights. Weight 2 is the row twice, except in models that draw rows at random (forests, and
            boosters with subsample < 1) and in boosters that have more values in a column than bins; weight 0 leaves a
            row out.
        groups : array of shape (n,), optional
            Who or what each row belongs to, such as a person or a company with several rows. Rows of one group are
            never on both sides of a fold or of a bootstrap sample, so that hit rates apply to people not seen in
            training. A row without a group (None, NaN) stands alone.
        """
        with self._fitting(), Threads(resolve_n_jobs(self.n_jobs)) as threads:
            data = self._read_training(X, y, sample_weight, threads, groups)
            self._set_cutoff(data, threads, self._fit_model(data, threads) or self._cross_validate(data, threads))
        return self

    def _read_training(self, X: Any, y: Any, sample_weight: Any, threads: Threads, groups: Any = None) -> Any:
        """Return the training data, and keep what is known of the table."""
        shared, given = X if isinstance(X, SharedTable) else None, (y, sample_weight, groups)
        found = shared.training.find(given, self._table_settings) if shared else None
        if found is not None:  # an earlier fit made them of the same objects
            data, facts = found
            for name, value in facts.items():
                setattr(self, name, copy(value))
            self._check_cases(data.weight)
            return data
        table = self._read(X, reset=True)
        is_positive, weight = self._read_labels(y, sample_weight, len(table))
        codes = check_groups(groups, len(table), f"{type(self).__name__}.fit")
        self._check_cases(weight)
        data = self._learn_table(table, is_positive, weight, threads)
        data.groups = None if codes is None else _with_lone_rows(codes, data.X)
        if shared:
            data.shared_depths = shared.leaf_depths
            facts = {name: copy(value) for name, value in vars(self).items() if name.endswith("_")}
            facts |= {"_backend": self._backend, "_input_names": self._input_names}
            shared.training.keep(given, self._table_settings, (data, facts))
        return data

    def _read_labels(self, y: Any, sample_weight: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return which rows are positive, and their weights."""
        owner = f"{type(self).__name__}.fit"
        labels = check_labels(y, n_rows, owner)
        self.classes_, self.positive_index_ = check_classes(labels, self.pos_label, owner)
        is_positive = labels == self.classes_[self.positive_index_]
        weight = check_weights(sample_weight, is_positive, owner)
        self.n_cases_, self.n_positives_ = _count(is_positive, weight)
        return is_positive, weight

    def _check_cases(self, weight: np.ndarray | None) -> None:
        """Check labels, weights and the budget before any work is done."""
        warn_of_common_text_label(self.classes_, self.positive_index_, self.pos_label, self.base_rate_)
        cases_of_budget(self.budget, self.n_cases_, self.n_positives_)

    @property
    def _table_settings(self) -> tuple[Any, ...]:
        """Return the parameters that training data depend on, in comparable form."""
        named = (self.categorical_features, self.keep_columns)
        chosen = [None if names is None else repr(list(names)) for names in named]
        return type(self)._make_cases, *chosen, repr(self.pos_label)

    # --- growing ------------------------------------------------------------------------------------------------

    @abstractmethod
    def _fit_model(self, data: Any, threads: Threads) -> Unseen | None:
        """Fit the model; return the held-out cases that it scored on the way, if any."""

    def _cross_validate(self, data: Any, threads: Threads) -> Unseen | None:
        """Return cases scored out of fold by models with the same settings; None with cv=0 or too few cases."""
        return self._score_in_folds(data, held_out_folds(data, self.cv, self.random_state), threads)

    def _score_in_folds(self, data: Any, folds: list[Fold], threads: Threads) -> Unseen | None:
        """Return the held-out cases of folds, scored by models with the same settings; None without folds."""
        parts = []
        for fold in folds:
            inside, part = data.with_weight(fold.inside_weight), self._unfitted_copy()
            part.n_cases_, part.n_positives_ = _count(data.is_positive, inside.weight)
            part._is_prepared = True
            part._fit_model(inside, threads)
            parts.append(HeldOut.from_fold(data, fold, partial(part._score_rows, threads=threads)))
        return Unseen(parts, by_folds(len(parts))) if parts else None

    def _unfitted_copy(self) -> Self:
        """Return an unfitted copy with the same settings that knows the table and shows no progress."""
        other = clone(self)
        if hasattr(other, "verbose"):
            other.set_params(verbose=0)
        other._know_table(self)
        return other

    def _has_trained_on(self, matrix: np.ndarray, is_positive: np.ndarray) -> bool:
        """Whether the model was trained on these encoded rows and outcomes, in this order and without weights."""
        columns = [replace(column, usual=None) for column in self.columns_]  # usual values are found afterwards
        return Cases(matrix, is_positive, None, columns).fingerprint() == self.data_hash_

    def _know_table(self, owner: Ranker) -> None:
        """Copy what another ranker knows of the table, independent of the rows it was fitted on."""
        for name in TABLE_FACTS:
            if hasattr(owner, name):
                setattr(self, name, copy(getattr(owner, name)))
        if hasattr(owner, "n_cases_"):
            self._table_counts = owner._table_counts or (owner.n_cases_, owner.n_positives_)

    def _remake_cases(self, data: Cases, threads: Threads) -> Any:
        """Return training data that another ranker has read in the form that this one is fitted on."""
        cases = self._make_cases(data.X, data.is_positive, data.weight, threads)
        cases.groups = data.groups
        return cases

    def _fit_prepared(self, data: Any, owner: Ranker, threads: Threads, *, with_rates: bool = False) -> Self:
        """Fit on all or some rows of a table that another ranker has read; rates of new cases only `with_rates`."""
        self._validate_params()
        self._know_table(owner)
        self.n_cases_, self.n_positives_ = _count(data.is_positive, data.weight)
        self.data_hash_ = data.once("fingerprint", data.fingerprint)
        self._is_prepared = True
        unseen = self._fit_model(data, threads)
        if with_rates:
            unseen = unseen or self._cross_validate(data, threads)
        self._set_cutoff(data, threads, unseen if with_rates else None)
        return self

    def _set_cutoff(self, data: Any, threads: Threads, unseen: Unseen | None) -> None:
        """Find the score that separates alerts from the rest, and the hit rates by score and of parts of the model."""
        k = cases_of_budget(self.budget, self.n_cases_, self.n_positives_)
        rows, all_scores = self._score_training_rows(data, threads)
        score, is_positive = all_scores, data.is_positive[rows]
        weight = None if data.weight is None else data.weight[rows]
        if weight is not None:
            score, is_positive, weight = score[weight > 0], is_positive[weight > 0], weight[weight > 0]
        weights = np.ones(len(score)) if weight is None else weight
        some = np.linspace(0, len(score) - 1, min(len(score), RATE_ROWS)).astype(np.int64)
        rates = None if unseen is None else unseen.hit_rates(score[some], weights[some])
        self.rates_ = rates or rates_of_training(score[some], is_positive[some], weights[some])
        if unseen is not None and rates is not None and self._fits_training_closely:
            score, is_positive, weight = unseen.on_scale(score[some], weights[some])
            weights = weight
        cutoff = find_cutoff(k, self.n_cases_, score, is_positive, weight)
        if self.rates_.is_for_new_cases:
            above = score >= cutoff.threshold
            scale = self.n_cases_ / weights.sum()
            rate, low, high = self.rates_.of_group(score[above], weights[above] * scale)
            cutoff = replace(cutoff, hit_rate=rate, hit_rate_low=low, hit_rate_high=high)
        self.cutoff_, self.budget_ = cutoff, self.budget
        self._rate_parts(data, rows, all_scores)

    def _rate_parts(self, data: Any, rows: slice | np.ndarray, score: np.ndarray) -> None:
        """Set the hit rates of leaves or rules from the scores of these training rows, once `rates_` is known."""

    def _score_training_rows(self, data: Any, threads: Threads) -> tuple[slice | np.ndarray, np.ndarray]:
        """Score the training rows, or a sample of them, with the final model; return which rows, and their scores."""
        rows = slice(None) if len(data.X) <= self._cutoff_rows else data.sample(self._cutoff_rows)
        return rows, self._score_rows(data.X[rows], threads)

    # --- scoring ------------------------------------------------------------------------------------------------

    @abstractmethod
    def _score_rows(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        """Return the scores of encoded rows."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of each row, float64 (n,): higher is more suspicious; depends only on row and model."""
        matrix = self._encode(X)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            return self._score_rows(matrix, threads)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the rates to expect of new cases with each row's score, float64 (n, 2), in the order of `classes_`.

        It rises with the score and comes from held-out cases (`rates_`); with cv=0, from the training cases.
        """
        score = self.decision_function(X)
        rate = self.rates_.at(score)
        out = np.column_stack((1.0 - rate, rate))
        return out if self.positive_index_ == 1 else out[:, ::-1]

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row: positive above the cutoff of `budget`."""
        is_alert = self.decision_function(X) >= self.cutoff_.threshold
        return self.classes_[np.where(is_alert, self.positive_index_, 1 - self.positive_index_)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the average precision on (X, y)."""
        score = self.decision_function(X)
        is_positive = positives_of(self, y, len(score), f"{type(self).__name__}.score")
        return average_precision(is_positive, score, sample_weight=sample_weight, pos_label=True)

    # --- alerts -------------------------------------------------------------------------------------------------

    def top_k(self, X: Any, k: int | float | None = None, *, reasons: int = 3, id: Any = None, keep: Any = None) -> Any:
        """Return the k cases most worth checking, best first, in the frame type of X.

        Ties are broken by row order, so there are always exactly k alerts.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
        k : int, float or None
            Number of cases from 1 to n, or a share of the n cases between 0 and 1, rounded up. None means
            `budget`: a count, or a share of these cases; without a budget, the share of positives in training.
        reasons : int
            Most reasons per case, strongest first.
        id, keep : name or list of names
            Columns of the data frame X to copy unchanged, before and after the others; they need not be in the model.

        Returns
        -------
        frame with rank, row (position in X), score, hit_rate, lift, leaf (tree rankers), reason_1, strength_1, ...
            It has the index of X if X is a pandas frame.
            A reason is a value that speaks for the case, next to what is usual; its strength is the factor by which it
            raises the odds of a positive. Both are empty if a case has fewer reasons.
            hit_rate is the rate of `predict_proba`, an estimate for new cases; with cv=0 the column is called
            training_rate, and fewer hits are to be expected.

        Examples
        --------
        >>> from toprank import MetaAP
        >>> from toprank.datasets import make_audit
        >>> data = make_audit(4000, random_state=0)
        >>> cases = data.X.assign(case=[f"case {i}" for i in range(4000)])
        >>> model = MetaAP(max_depth=2, budget=20, cv=0).fit(data.X, data.y)
        >>> model.top_k(cases, id="case", reasons=0).columns[:4].tolist()
        ['case', 'rank', 'row', 'score']
        >>> len(model.top_k(cases)), len(model.top_k(cases, 0.01))
        (20, 40)
        """
        matrix = self._encode(X)
        check_reasons(reasons)
        if k is None:
            k = self._budget_in(len(matrix))
        k = count_of_alerts(k, len(matrix))
        first, last = carried_columns(X, id, "id"), carried_columns(X, keep, "keep")
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            score = self._score_rows(matrix, threads)
        rows = np.argsort(-score, kind="stable")[:k]
        rate = self.rates_.at(score[rows])
        rate_name = "hit_rate" if self.rates_.is_for_new_cases else "training_rate"
        columns: dict[str, Any] = {"rank": np.arange(1, k + 1), "row": rows, "score": score[rows], rate_name: rate,
                                   "lift": rate / self.base_rate_} | self._leaf_column(matrix[rows])  # fmt: skip
        if reasons:
            gain = log_odds_gain(rate, self.base_rate_) if self.rates_.is_for_new_cases else None
            originals = original_values(X, self._input_names, rows)
            columns |= reason_columns(self._reasons(matrix[rows], reasons, originals, gain), reasons)
        alerts = make_frame(columns, backend_of(X), [name for name in columns if name.startswith("strength_")])
        return beside_columns(alerts, X, rows, first, last)

    def dependence(self, X: Any, features: Any, *, n_values: int = 20, max_rows: int = 500) -> Dependence:
        """Return the mean score of the rows of X with one or two columns set to given values (partial dependence).

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
        features : column, or list of one or two
            Names or positions.
        n_values : int, default 20
            Most values to try of a number column; categories are all tried.
        max_rows : int, default 500
            Most rows to average over, drawn at random with a fixed seed.

        `toprank.plots.DependenceDisplay` draws the result.

        Examples
        --------
        >>> from toprank import TreeRank
        >>> from toprank.datasets import make_audit
        >>> data = make_audit(4000, random_state=0)
        >>> model = TreeRank(max_depth=2).fit(data.X, data.y)
        >>> model.dependence(data.X, list(data.X.columns[:2]), n_values=5).mean.ndim
        2
        """
        matrix = self._encode(X)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            return partial_dependence(
                lambda rows: self._score_rows(rows, threads), matrix, self.columns_, features, n_values=n_values,
                max_rows=max_rows,
            )  # fmt: skip

    @property
    def base_rate_(self) -> float:
        """Share of positives in the training data."""
        return self.n_positives_ / self.n_cases_

    def _leaf_column(self, matrix: np.ndarray) -> dict[str, np.ndarray]:
        return {}

    def _budget_in(self, n_rows: int) -> int:
        """Number of alerts that the budget allows in a table of so many rows."""
        return alerts_of_budget(self.budget_, self.cutoff_, self.n_cases_, n_rows)

    def _reasons(self, matrix: np.ndarray, n_reasons: int, originals: Originals, gain: Any) -> list[list[Reason]]:
        """Return the reasons of each encoded row; `originals` and `gain` as in `toprank.explain.reasons`.

        By default from `_contributions`; a ranker without them must override this.
        """
        found: Any = self._contributions(matrix)
        return strongest(found, self.columns_, matrix, n_reasons, originals, gain)

    def _contributions(self, matrix: np.ndarray) -> np.ndarray | None:
        """Return what each value adds to its row's log-odds or score, float64 (n, n_features); None if unknown."""
        return None

    # --- files and text -----------------------------------------------------------------------------------------

    def summary(self) -> str:
        """Return a few lines about the fitted model: size, training figures, cutoff."""
        check_is_fitted(self)
        lines = [f"{type(self).__name__}: {self._size_in_words()}"]
        lines.append(
            f"trained on {plural(round(self.n_cases_), 'case')}, {self.n_positives_:,.0f} positive "
            f"({percent_text(self.base_rate_)}), {plural(len(self.columns_), 'column')} "
            f"({sum(c.is_categorical for c in self.columns_)} categorical)"
        )
        line = self._line_in_words()
        lines += [line] if line else []
        if hasattr(self, "feature_importances_"):
            names, importances = [c.name for c in self.columns_], self._importances().tolist()
            lines.append("main columns: " + (main_columns(names, importances, self._card_shares) or "none"))
        return "\n".join([*lines, *(f"{name}: {text}" for name, text in self._facts().items())])

    def _facts(self) -> dict[str, str]:
        """Return what else a person wants to know of the model, by name, in words; its file keeps it."""
        return {}

    def _line_in_words(self) -> str:
        """Return the cutoff of `predict` and its expected hits, in words; "" if `_facts` says what is flagged."""
        is_default = self.budget_ is None
        return budget_text(
            self.cutoff_, self.rates_, is_default=is_default, base_rate=self.base_rate_, n_cases=self.n_cases_
        )

    def _importances(self) -> np.ndarray:
        """Return the share of each column in the model, float64 (n_features,); all 0 without importances."""
        return getattr(self, "feature_importances_", np.zeros(len(self.columns_)))

    @property
    def _card_shares(self) -> list[float] | None:
        """Share of each column in a scorecard inside leaves; None without one."""
        return None

    def _params_of_file(self) -> dict[str, Any]:
        given = super()._params_of_file()
        return given | {"budget": self.budget_} if hasattr(self, "cutoff_") else given

    def _to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the fitted model for a file."""
        return with_prefix(self.rates_.to_arrays(), "hit_rates_")

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the fitted model from the arrays of a file."""
        self.rates_ = HitRates.from_arrays(without_prefix(arrays, "hit_rates_"))

    def to_plain(self) -> dict[str, Any]:
        """Return the model as plain values for other programs: class, columns, its parts. `save` keeps everything."""
        check_is_fitted(self)
        columns = [column.to_dict() for column in self.columns_]
        return {"class": type(self).__name__, "columns": columns, **self._plain_parts()}

    def _plain_parts(self) -> dict[str, Any]:
        """Return what the score is computed from as plain values: trees, points, known cases."""
        return {}

    def _figures(self) -> dict[str, Any]:
        """Return figures of the fitted model for its file, besides the number of cases."""
        return {}

    @abstractmethod
    def _size_in_words(self) -> str:
        """Return the size of the model in words: leaves and conditions, terms, neighbours."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _with_lone_rows(groups: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return groups in which a row without one (-1) is a group of its own, which it shares with equal rows only."""
    lone = groups < 0
    own = np.unique(row_hashes(X[lone], 0), return_inverse=True)[1]
    out = groups.copy()
    out[lone] = groups.max(initial=-1) + 1 + own
    return out


def _count(is_positive: np.ndarray, weight: np.ndarray | None) -> tuple[float, float]:
    """Return the weight of all cases and of the positives, the same for any row order."""
    if weight is None:
        return float(len(is_positive)), float(is_positive.sum())
    return math.fsum(weight), math.fsum(weight[is_positive])
