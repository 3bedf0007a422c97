"""`Start`: the log-odds that another model gives each row, which boosting starts from; `InitFits` fits it."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from toprank._core.threads import Threads
from toprank.data.cases import Cases
from toprank.errors import InputError, InputTypeError
from toprank.files.model_file import model_from_arrays, model_to_arrays, with_prefix, without_prefix
from toprank.rankers.additive_ranker import AdditiveRanker
from toprank.rankers.base import Ranker
from toprank.rankers.log_odds import fit_logistic
from toprank.rankers.seeds import seed_of
from toprank.rankers.unseen import Fold, has_both, held_out_folds, is_partition
from toprank.rankers.validation import check_shares_table
from toprank.register import BY_NAME
from toprank.tree.columns import Column, Usual, with_usual

INNER_FOLDS = 5
"""Folds that give out-of-fold scores where those of the booster do not fit."""


@dataclass(frozen=True, eq=False)
class Start:
    """A fitted model whose score, on the scale of log-odds, is what boosting starts from."""

    model: Any  # a ranker of this library, or an estimator with decision_function or predict_proba
    slope: float  # log-odds = slope * score + intercept, slope >= 0: Platt's scaling, learned from out-of-fold scores
    intercept: float
    # Above 0: the scores are rates. They are clipped to [least, 1 - least], and their log-odds take the place of the
    # score. 0: the scores are used as they are.
    least: float
    mean: float = 0.0  # mean log-odds of training rows, which explanations compare with
    # Median, 10 % and 90 % quantile of the score of training rows, weighted
    usual: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @classmethod
    def from_held_out(cls, model: Any, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> Start:
        """Learn the scaling from scores of rows by models that did not see them; float64 (n,) each."""
        positives, negatives = weight[is_positive].sum(), weight[~is_positive].sum()
        is_rate = len(score) > 0 and score.min() >= 0 and score.max() <= 1 and not isinstance(model, AdditiveRanker)
        least = 0.5 / (positives + negatives + 1) if is_rate else 0.0
        value = _scaled(score, least)
        center = float(np.average(value, weights=weight)) if len(score) else 0.0
        width = float(np.sqrt(np.average((value - center) ** 2, weights=weight))) if len(score) else 0.0
        if not 0 < width < math.inf:  # nothing to learn from: all rows start alike
            return cls(model, 0.0, math.log((positives + 1) / (negatives + 1)), least)
        # Platt (1999): targets a little inside 0 and 1 keep the slope finite where scores separate the classes.
        target = np.where(is_positive, (positives + 1) / (positives + 2), 1 / (negatives + 2))
        unit, none = ((value - center) / width)[:, None], np.zeros(1)
        slopes, level = fit_logistic(unit, weight * target, weight, lowest=none, pull=0.0, towards=none)
        slope = float(slopes[0]) / width
        return cls(model, slope, level - slope * center, least)

    def with_usual(self, X: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, threads: Threads) -> Start:
        """The same with mean and usual scores of these rows."""
        score = self.score(X, threads)
        usual = with_usual([Column("score")], score[:, None], is_positive, weight)[0].usual
        assert usual is not None  # scores are finite
        mean = float(np.average(self.log_odds(score), weights=weight))
        return replace(self, mean=mean, usual=(usual.value, usual.low, usual.high))

    @property
    def name(self) -> str:
        """Name of the model's class."""
        return type(self.model).__name__

    @property
    def is_sum(self) -> bool:
        """Whether the log-odds are a sum of trees, so that each column has a share in them."""
        return isinstance(self.model, AdditiveRanker) and self.least == 0

    @property
    def column(self) -> Column:
        """The score of the model as a column, for explanations."""
        return Column(f"score of {self.name}", usual=Usual(*self.usual, share=0.0, missing=0.0))

    def score(self, X: np.ndarray, threads: Threads) -> np.ndarray:
        """Scores of encoded rows by the model itself, float64 (n,)."""
        return score_rows(self.model, X, threads)

    def log_odds(self, score: np.ndarray) -> np.ndarray:
        """Log-odds of scores of the model, float64 (n,)."""
        return self.slope * _scaled(score, self.least) + self.intercept

    def margin(self, X: np.ndarray, threads: Threads) -> np.ndarray:
        """Log-odds of encoded rows, float64 (n,)."""
        return self.log_odds(self.score(X, threads))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Arrays for a file; raises InputTypeError if the model is not one of this library."""
        if self.name not in BY_NAME or not isinstance(self.model, Ranker):
            raise InputTypeError(
                f"Boosting starts from a {self.name}, which model files cannot hold, expected a ranker of toprank. "
                "Hint: set init to one, such as MetaAPForest(), or pickle the model."
            )
        numbers = np.array([self.slope, self.intercept, self.least, self.mean, *self.usual])
        return {"scale": numbers} | with_prefix(model_to_arrays(self.model), "of_")

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], columns: list[Column]) -> Start:
        """The start that `to_arrays` wrote; checked. `columns` are those of the booster."""
        numbers = arrays["scale"]
        is_sound = numbers.shape == (7,) and numbers.dtype == np.float64 and np.isfinite(numbers).all()
        if not is_sound or numbers[0] < 0 or not 0 <= numbers[2] <= 0.5 or not numbers[5] <= numbers[4] <= numbers[6]:
            raise InputError("The scale of the model that boosting starts from is damaged.")
        slope, intercept, least, mean, *usual = numbers.tolist()
        model = model_from_arrays(without_prefix(arrays, "of_"))
        if not isinstance(model, Ranker) or model.columns_ != columns:
            raise InputError("The model that boosting starts from is not a ranker of the same columns.")
        return cls(model, slope, intercept, least, mean, (usual[0], usual[1], usual[2]))


def _scaled(score: np.ndarray, least: float) -> np.ndarray:
    """Rates as log-odds; other scores as they are (least = 0)."""
    return logit(np.clip(score, least, 1.0 - least)) if least > 0 else score


def score_rows(model: Any, X: np.ndarray, threads: Threads) -> np.ndarray:
    """Scores of encoded rows by a fitted model, float64 (n,): higher is more suspicious."""
    if isinstance(model, Ranker):
        return model._score_rows(X, threads)
    score = model.decision_function(X) if hasattr(model, "decision_function") else model.predict_proba(X)[:, 1]
    score = np.asarray(score, np.float64)
    if score.shape != (len(X),) or not np.isfinite(score).all():
        raise InputError(
            f"The init {type(model).__name__} gave scores of shape {score.shape}, expected one finite score per row "
            f"({len(X):,}). Hint: init must be a classifier or a ranker of two classes."
        )
    return score


class InitFits:
    """Fits of `init` on parts of one table; the same part is fitted once.

    With 5 folds there are 16 fits in place of 36: leaving out folds 1 and 2 is the same as leaving out 2 and 1.
    """

    def __init__(self, owner: Ranker, init: Any, data: Cases, threads: Threads):
        self._owner, self._data, self._threads = owner, data, threads
        self._init = unfitted(init, owner)
        self._cases = data
        if isinstance(self._init, Ranker):
            check_shares_table(self._init, "the init", owner, type(owner).__name__)
            self._init._know_table(owner)
            self._cases = self._init._remake_cases(data, threads)
        elif not any(hasattr(self._init, name) for name in ("decision_function", "predict_proba")):
            raise InputTypeError(
                f"The init of {type(owner).__name__} is a {type(self._init).__name__}, expected an estimator with "
                "decision_function or predict_proba. Hint: init=LogisticBoost() or a classifier of scikit-learn."
            )
        self._fitted: dict[bytes, Any] = {}
        self.folds: list[Fold] = []  # of the booster; their held-out rows are also the parts to score out of fold

    def start(self, rows: np.ndarray, weight: np.ndarray) -> tuple[Start, np.ndarray]:
        """`init` fitted on some rows, and the log-odds of these rows by models that did not see them.

        `weight`, float64 (n,), is that of all rows of the table.
        """
        inside = np.zeros_like(weight)
        inside[rows] = weight[rows]
        score = np.full(len(weight), np.nan)
        for part in self._parts(inside):
            score[part] = score_rows(self.fit(_without(inside, part)), self._data.X[part], self._threads)
        known = rows[np.isfinite(score[rows])]
        start = Start.from_held_out(self.fit(inside), score[known], self._data.is_positive[known], weight[known])
        # Without two distinct rows of a class there are no folds, and all rows start alike.
        return start, np.where(np.isfinite(score[rows]), start.log_odds(score[rows]), start.intercept)

    def fit(self, weight: np.ndarray) -> Any:
        """`init` fitted on the rows with weight."""
        part = hashlib.blake2b(weight.tobytes(), digest_size=16).digest()
        if part not in self._fitted:
            self._fitted[part] = self._fit(weight)
        return self._fitted[part]

    def _fit(self, weight: np.ndarray) -> Any:
        model, rows = clone(self._init), np.flatnonzero(weight)
        if isinstance(model, Ranker):
            return model._fit_prepared(self._cases.with_weight(weight), self._owner, self._threads)
        given = {}
        if np.ptp(weight[rows]) > 0:
            if not has_fit_parameter(model, "sample_weight"):
                raise InputTypeError(
                    f"The init {type(model).__name__} takes no sample_weight, but cases have different weights "
                    "(those of folds do with more than 100,000 rows). Hint: use an init that takes weights."
                )
            given = {"sample_weight": weight[rows]}
        return model.fit(self._data.X[rows], self._data.is_positive[rows].astype(np.int64), **given)

    def _parts(self, weight: np.ndarray) -> list[np.ndarray]:
        """Rows with weight in parts to hold out, each row once: the folds of the booster, if they do that."""
        is_positive = self._data.is_positive
        parts = [fold.held_out[weight[fold.held_out] > 0] for fold in self.folds]
        parts = [part for part in parts if len(part)]
        left = [is_positive[_without(weight, part) > 0] for part in parts]
        if is_partition(parts, np.flatnonzero(weight > 0)) and all(map(has_both, left)):
            return parts
        folds = held_out_folds(
            self._data.with_weight(weight), INNER_FOLDS, self._owner.random_state, n_rows=len(weight)
        )
        return [fold.held_out for fold in folds]


def _without(weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Weights with some rows left out."""
    out = weight.copy()
    out[rows] = 0.0
    return out


def unfitted(init: Any, owner: Any) -> Any:
    """An unfitted copy of the `init` of a booster, with the booster's threads and seed where it names none."""
    init = clone(init)
    given = init.get_params()
    seed = seed_of(owner.random_state)
    missing = {name: seed for name, value in given.items() if name.split("__")[-1] == "random_state" and value is None}
    if isinstance(init, Ranker):
        missing |= {"n_jobs": owner.n_jobs} if given.get("n_jobs") is None else {}
        missing |= {"verbose": 0} if "verbose" in given else {}
    return init.set_params(**missing)
