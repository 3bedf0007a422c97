"""Nearest neighbours that vote by several rules, also in a learned metric (LMNN, ITML)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from toprank.errors import InputError
from toprank.experiment.methods.sizes import last_step
from toprank.experiment.registry import Method, Sweep, register
from toprank.rankers.neighbours.knn import KNN

NEIGHBOURS = (1, 3, 5, 9, 15, 25, 41, 65, 101)
AS_GIVEN: dict[str, Any] = {"scaling": None, "keep_columns": "all"}


class MetricTransformer(TransformerMixin, BaseEstimator):
    """Rows in a metric learned by metric-learn.

    Parameters
    ----------
    algorithm : {"lmnn", "itml"}
        Large margin nearest neighbours (Weinberger and Saul, 2009), or information-theoretic metric learning (Davis et
        al., 2007).
    max_rows : int or None, default 2000
        Maximum number of rows to learn the metric from, as the cost is quadratic: those of the rarer class, up to half
        of it, and others at random.
    random_state : int or None

    Attributes
    ----------
    components_ : float64 array of shape (n_features, n_features)
        The linear map; Euclidean distances after it are the learned distances.
    """

    def __init__(self, algorithm: str = "lmnn", max_rows: int | None = 2000, random_state: Any = None):
        self.algorithm = algorithm
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> MetricTransformer:
        """Learn the metric."""
        X, y = validate_data(self, X, y)
        label = np.unique(y, return_inverse=True)[1]
        if np.bincount(label).min() < 2:
            raise InputError(
                f"{self.algorithm.upper()} compares rows of one class, and needs two of each, but one class has a "
                "single row. Hint: use a table with more positives."
            )
        rows = self._choose_rows(label)
        learner = (_make_lmnn if self.algorithm == "lmnn" else _make_itml)(label[rows], self.random_state)
        self.components_ = learner.fit(X[rows], label[rows]).components_
        return self

    def _choose_rows(self, label: np.ndarray) -> np.ndarray:
        if self.max_rows is None or len(label) <= self.max_rows:
            return np.arange(len(label))
        rng = np.random.default_rng(self.random_state)
        rare, common = sorted((rng.permutation(np.flatnonzero(label == side)) for side in (0, 1)), key=len)
        rare = rare[: self.max_rows // 2]
        return np.sort(np.concatenate((rare, common[: self.max_rows - len(rare)])))

    def transform(self, X: Any) -> np.ndarray:
        """Rows after the linear map."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False) @ self.components_.T


def _make_lmnn(label: np.ndarray, random_state: Any) -> Any:
    """LMNN with 3 target neighbours, or as many as the smaller class has; the first step shrinks until it fits."""
    from metric_learn import LMNN

    n_neighbors = min(3, int(np.bincount(label).min()) - 1)
    return _without_checks(LMNN)(
        init="identity", n_neighbors=n_neighbors, learn_rate=1e-3, max_iter=200, random_state=random_state
    )


def _make_itml(label: np.ndarray, random_state: Any) -> Any:
    """ITML on 200 pairs within a class and 200 across classes, or as many as a small table has."""
    from metric_learn import ITML_Supervised

    n_pairs = min(200, int(np.prod(np.bincount(label))) // 2)
    return _without_checks(ITML_Supervised)(n_constraints=n_pairs, max_iter=200, random_state=random_state)


def _without_checks(learner: type) -> type:
    """A class of metric-learn without its input checks.

    They call scikit-learn with force_all_finite, an argument removed in scikit-learn 1.8 (metric-learn 0.7.0). The rows
    were checked before. Pairs of equal rows are left out too: ITML divides by their distance.
    """

    class Learner(learner):
        def _prepare_inputs(self, X: np.ndarray, y: Any = None, type_of_inputs: str = "classic", **_: Any) -> Any:
            self.preprocessor_ = None
            if type_of_inputs == "tuples":
                is_apart = (X[:, 0] != X[:, 1]).any(axis=1)
                return X[is_apart], y[is_apart]
            return X, y

    return Learner


def make_neighbours(rule: str) -> Callable[..., KNN]:
    """`make` of nearest neighbours that vote by a rule, on numbers that are scaled already."""

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> KNN:
        return KNN(**AS_GIVEN | {"rule": rule, "random_state": random_state, "n_jobs": n_jobs} | setting)

    return make


def make_learned(algorithm: str) -> Callable[..., Pipeline]:
    """`make` of nearest neighbours in a learned metric."""

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> Pipeline:
        metric = MetricTransformer(algorithm, random_state=random_state)
        return Pipeline([("metric", metric), ("neighbours", KNN(**AS_GIVEN | {"n_jobs": n_jobs} | setting))])

    return make


def rows_kept(model: Any) -> tuple[int, str]:
    """Training rows that the model keeps."""
    known = last_step(model)._known
    return len(known.positives) + len(known.negatives), "rows"


def scores_by_neighbours(model: Any, X: Any, values: Sequence[int]) -> np.ndarray:
    """Scores with each number of neighbours, float64 (n_values, n), from one search."""
    before = model[:-1].transform(X) if isinstance(model, Pipeline) else X
    return last_step(model)._scores_by_k(before, values)


SWEEP = Sweep("n_neighbors", scores_by_neighbours)
"""One search gives the scores for all numbers of neighbours."""


def register_neighbours(name: str, title: str, make: Callable[..., Any], **others: Any) -> None:
    """Register a method that tries several numbers of neighbours."""
    register(
        Method(name, title, "neighbours", make, {"n_neighbors": NEIGHBOURS}, "scaled", size=rows_kept, sweep=SWEEP,
               **others)
    )  # fmt: skip


register_neighbours("knn", "kNN", make_neighbours("plain"), summary="Share of positives among the nearest rows.")
register_neighbours(
    "knn-weighted", "kNN by distance", make_neighbours("weighted"), summary="The same; nearer rows count more."
)
register_neighbours(
    "knn-class-weighted", "Class-weighted kNN", make_neighbours("class_weighted"),
    summary="The same; distances shrink with the size of the class.",
)  # fmt: skip
register_neighbours(
    "knn-duplicated", "Duplicated kNN", make_neighbours("duplicated"),
    summary="The same; positives count as often as there are negatives per positive.",
)  # fmt: skip
register_neighbours(
    "krnn", "kRNN", make_neighbours("krnn"), summary="Share of positives around the k nearest positives (Zhang et al.)."
)
register_neighbours(
    "lmnn", "LMNN", make_learned("lmnn"), packages=("metric_learn",),
    summary="Nearest rows in the metric of large margin nearest neighbours (metric-learn).",
)  # fmt: skip
register_neighbours(
    "itml", "ITML", make_learned("itml"), packages=("metric_learn",),
    summary="Nearest rows in the metric of information-theoretic metric learning (metric-learn).",
)  # fmt: skip
