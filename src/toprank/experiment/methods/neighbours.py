"""Nearest neighbours: plain, weighted by distance, and in a learned metric (LMNN, ITML)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from toprank.errors import InputError
from toprank.experiment.methods.sizes import last_step
from toprank.experiment.methods.threads import limited_threads
from toprank.experiment.registry import Method, Sweep, register

NEIGHBOURS = (1, 3, 5, 9, 15, 25, 41, 65, 101)


class NeighbourRanker(ClassifierMixin, BaseEstimator):
    """Rank by the share of positives among the nearest training rows.

    Parameters
    ----------
    n_neighbors : int, default 5
        All rows if there are fewer.
    weights : {"uniform", "distance"}, default "uniform"
        distance: a neighbour has weight 1 / distance; if some are at distance 0, only they count.
    n_jobs : int or None

    Attributes
    ----------
    classes_ : array of shape (2,)
    search_ : NearestNeighbors
    is_positive_ : float64 array of shape (n_train,)
    """

    def __init__(self, n_neighbors: int = 5, weights: str = "uniform", n_jobs: int | None = None):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> NeighbourRanker:
        """Store the rows."""
        X, y = validate_data(self, X, y)
        self.classes_, position = np.unique(y, return_inverse=True)
        self.is_positive_ = (position == len(self.classes_) - 1).astype(np.float64)
        self.search_ = NearestNeighbors(n_jobs=self.n_jobs).fit(X)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Share of positives among the neighbours, float64 (n,)."""
        return self.scores(X, [self.n_neighbors])[0]

    def scores(self, X: Any, values: Sequence[int]) -> np.ndarray:
        """Scores with each number of neighbours from one search, float64 (n_values, n)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        counts = np.minimum(values, len(self.is_positive_))
        with limited_threads(self.n_jobs):  # otherwise a brute-force search uses all cores
            distance, neighbour = self.search_.kneighbors(X, int(counts.max()))
        weight = np.ones_like(distance) if self.weights == "uniform" else _inverse(distance)
        positive = np.cumsum(weight * self.is_positive_[neighbour], axis=1)
        return (positive / np.cumsum(weight, axis=1))[:, counts - 1].T

    def predict(self, X: Any) -> np.ndarray:
        """The second class if it has more than half of the weight."""
        is_second = self.decision_function(X) > 0.5
        return self.classes_[np.where(is_second, len(self.classes_) - 1, 0)]


def _inverse(distance: np.ndarray) -> np.ndarray:
    """1 / distance; in rows with neighbours at distance 0: 1 for these and 0 for the others."""
    is_here = distance == 0
    weight = 1 / np.where(is_here, 1.0, distance)
    return np.where(is_here.any(axis=1, keepdims=True), is_here, weight)


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


def make_neighbours(weights: str) -> Callable[..., NeighbourRanker]:
    """`make` of nearest neighbours with given weights; nothing in them is random."""

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> NeighbourRanker:
        return NeighbourRanker(**{"weights": weights, "n_jobs": n_jobs} | setting)

    return make


def make_learned(algorithm: str) -> Callable[..., Pipeline]:
    """`make` of nearest neighbours in a learned metric."""

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> Pipeline:
        metric = MetricTransformer(algorithm, random_state=random_state)
        return Pipeline([("metric", metric), ("neighbours", NeighbourRanker(**{"n_jobs": n_jobs} | setting))])

    return make


def rows_kept(model: Any) -> tuple[int, str]:
    """Training rows that the model keeps."""
    return len(last_step(model).is_positive_), "rows"


def scores_by_neighbours(model: Any, X: Any, values: Sequence[int]) -> np.ndarray:
    """Scores with each number of neighbours, float64 (n_values, n), from one search."""
    before = model[:-1].transform(X) if isinstance(model, Pipeline) else X
    return last_step(model).scores(before, values)


def register_neighbours(name: str, title: str, make: Callable[..., Any], **others: Any) -> None:
    """Register a method; one search gives the scores for all numbers of neighbours."""
    sweep = Sweep("n_neighbors", scores_by_neighbours)
    register(
        Method(name, title, "neighbours", make, {"n_neighbors": NEIGHBOURS}, "scaled", size=rows_kept, sweep=sweep,
               **others)
    )  # fmt: skip


register_neighbours("knn", "kNN", make_neighbours("uniform"), summary="Share of positives among the nearest rows.")
register_neighbours(
    "knn-weighted", "kNN by distance", make_neighbours("distance"), summary="The same; nearer rows count more."
)
register_neighbours(
    "lmnn", "LMNN", make_learned("lmnn"), packages=("metric_learn",),
    summary="Nearest rows in the metric of large margin nearest neighbours (metric-learn).",
)  # fmt: skip
register_neighbours(
    "itml", "ITML", make_learned("itml"), packages=("metric_learn",),
    summary="Nearest rows in the metric of information-theoretic metric learning (metric-learn).",
)  # fmt: skip
