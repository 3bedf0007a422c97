"""Soft targets: outcomes mixed with what a teacher, a model of any kind, predicts for cases that it has not seen.

A case without a finding that looks like fraud is then not quite a negative, and an accident not quite a positive: rules
follow what holds in general. No case is predicted by a model that saw its outcome. When hit rates are estimated by
folds, neither is any case of a fold by a model that saw the fold held out: with one model for every two folds left out,
each model serves two folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from toprank._core.threads import Threads
from toprank.errors import InputError
from toprank.rankers.points.learning import Lesson
from toprank.rankers.unseen import Fold, held_out_folds, is_partition, predict_left_out

TEACHER_SHARE = 0.5
"""Share of the teacher in a soft target; the rest is the outcome."""

TEACHER_FOLDS = 5
"""Folds for the teacher where the ranker has none of its own."""


class Teacher:
    """A model that predicts rates of encoded rows; `estimator` None means gradient boosting with fixed settings."""

    def __init__(self, estimator: Any, is_categorical: np.ndarray):
        self._estimator, self._is_categorical = estimator, is_categorical

    def predictions(
        self, lesson: Lesson, tasks: Sequence[tuple[np.ndarray, list[np.ndarray]]], threads: Threads
    ) -> list[list[np.ndarray]]:
        """For each task fit on some rows and predict others; return the rates of each set of rows."""
        with threadpool_limits(1, "blas"):  # once for all threads: each would restore what it found
            return threads.run(lambda task: self._predict(lesson, *task), list(tasks))

    def _predict(self, lesson: Lesson, inside: np.ndarray, others: list[np.ndarray]) -> list[np.ndarray]:
        is_positive, weight = lesson.is_positive[inside], lesson.weight[inside]
        if is_positive.all() or not is_positive.any():
            return [np.full(len(rows), float(is_positive[0])) for rows in others]
        X = lesson.X[inside]
        is_empty = np.isnan(X).all(axis=0)
        X[:, is_empty] = 0.0
        model = self._new_model()
        is_weighted = not np.all(weight == weight[0])
        if is_weighted and not has_fit_parameter(model, "sample_weight"):
            raise InputError(
                f"The teacher {type(model).__name__} must accept sample_weight: equal cases are merged and weighted. "
                "Hint: use HistGradientBoostingClassifier, which also reads missing values."
            )
        with threadpool_limits(1, "openmp"):  # sums in parallel depend on the number of threads
            model.fit(X, is_positive.astype(np.int8), **({"sample_weight": weight} if is_weighted else {}))
            found = []
            for rows in others:
                asked = lesson.X[rows]
                asked[:, is_empty] = 0.0
                found.append(_positive_rates(model, asked))
        return found

    def _new_model(self) -> Any:
        if self._estimator is not None:
            return clone(self._estimator)
        return HistGradientBoostingClassifier(
            learning_rate=0.08, max_iter=100, max_leaf_nodes=15, min_samples_leaf=10, l2_regularization=1.0,
            categorical_features=self._is_categorical > 0, early_stopping=False, random_state=0,
        )  # fmt: skip


def _positive_rates(model: Any, X: np.ndarray) -> np.ndarray:
    """Rates of positives, checked."""
    rates = np.asarray(model.predict_proba(X), np.float64)
    if rates.shape != (len(X), 2) or not np.all((rates >= 0) & (rates <= 1)):
        raise InputError(
            f"The teacher {type(model).__name__} must give one rate from 0 to 1 per class and row, but its "
            f"predict_proba gave an array of shape {rates.shape}. Hint: use a classifier with calibrated rates."
        )
    return rates[:, 1]


def soft_targets(
    lesson: Lesson, teacher: Teacher, folds: Sequence[Fold], random_state: Any, threads: Threads
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Soft targets for the model of all cases, and for the model of each fold.

    Parameters
    ----------
    lesson : Lesson
    teacher : Teacher
    folds : sequence of Fold
        Of the rows of the lesson; may be empty.
    random_state : int, RandomState or None
    threads : Threads

    Returns
    -------
    of_all : float64 array of shape (n,)
    of_folds : list of float64 arrays of shape (n,)
        Those of a fold's held-out rows are unused: NaN.
    """
    own = [fold.held_out for fold in folds]
    if len(own) > 2 and is_partition(own, np.arange(len(lesson))):
        of_all, of_folds = predict_left_out(own, len(lesson), lambda tasks: teacher.predictions(lesson, tasks, threads))
        return _mixed(lesson, of_all), [_mixed(lesson, rate) for rate in of_folds]
    of_folds = []
    for fold in folds:
        target = np.full(len(lesson), np.nan)
        target[fold.inside] = _alone(lesson.take(fold.inside), teacher, random_state, threads)
        of_folds.append(target)
    return _alone(lesson, teacher, random_state, threads), of_folds


def _alone(lesson: Lesson, teacher: Teacher, random_state: Any, threads: Threads) -> np.ndarray:
    """Soft targets by folds of their own; the outcomes if a class is too small for folds."""
    folds = held_out_folds(lesson.cases(), TEACHER_FOLDS, random_state, len(lesson))
    rate = np.full(len(lesson), np.nan)
    tasks = [(fold.inside, [fold.held_out]) for fold in folds]
    for fold, found in zip(folds, teacher.predictions(lesson, tasks, threads), strict=True):
        rate[fold.held_out] = found[0]
    return _mixed(lesson, rate)


def _mixed(lesson: Lesson, rate: np.ndarray) -> np.ndarray:
    """Outcomes mixed with a teacher's rates where there are any."""
    own = lesson.is_positive.astype(np.float64)
    return np.where(np.isnan(rate), own, own + TEACHER_SHARE * (rate - own))
