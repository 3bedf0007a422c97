"""Nearest neighbours that vote by several rules, also in learned metrics: LMNN and ITML of metric-learn, GMML, ImbML.

GMML and ImbML are those that the thesis compares MLFP with (section 3.5).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from toprank.errors import InputError
from toprank.experiment.methods.own import BY_NEIGHBOURS, rows_kept
from toprank.experiment.registry import Method, recipe
from toprank.rankers.neighbours.knn import KNN

RIDGE = 1e-3
"""What GMML adds to the diagonal of its scatter matrices, as a share of their mean diagonal entry."""


class LinearMetric(TransformerMixin, BaseEstimator, ABC):
    """Base of metrics that map rows linearly: Euclidean distances after `components_` are the learned distances."""

    def fit(self, X: Any, y: Any) -> LinearMetric:
        """Learn the metric."""
        X, y = validate_data(self, X, y)
        classes, label = np.unique(y, return_inverse=True)
        if len(classes) != 2 or np.bincount(label).min() < 2:
            raise InputError(
                f"{self._title} compares rows of one class, and needs two of each of two classes; the smaller class "
                f"has {np.bincount(label).min()}. Hint: use a table with more positives."
            )
        self.components_ = self._learn(np.asarray(X, np.float64), label == 1)
        return self

    @property
    def _title(self) -> str:
        return type(self).__name__

    @abstractmethod
    def _learn(self, X: np.ndarray, is_positive: np.ndarray) -> np.ndarray:
        """Return the linear map."""

    def transform(self, X: Any) -> np.ndarray:
        """Rows after the linear map."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False) @ self.components_.T


class GMML(LinearMetric):
    """Geometric mean metric learning (Zadeh, Hosseini and Sra, 2016), in closed form.

    M is the point at t, from 0 to 1, on the geodesic from the inverse of S to D, where S is the scatter of differences
    within a class and D that across classes: S^(-1/2) (S^(1/2) D S^(1/2))^t S^(-1/2). All pairs count, which the class
    means and covariances say without going through them; a small ridge keeps S invertible.
    """

    def __init__(self, t: float = 0.5):
        self.t = t

    def _learn(self, X: np.ndarray, is_positive: np.ndarray) -> np.ndarray:
        ridge, tiny = RIDGE * np.eye(X.shape[1]), np.finfo(float).tiny
        similar, dissimilar = (
            each + ridge * max(float(np.trace(each)) / len(each), tiny) for each in pair_scatters(X, is_positive)
        )
        root = _power(similar, 0.5)
        inverse = _power(similar, -0.5)
        metric = inverse @ _power(root @ dissimilar @ root, self.t) @ inverse
        return _power(metric, 0.5)


def pair_scatters(X: np.ndarray, is_positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of (x - x')(x - x')' over all pairs of different rows within a class, and over all pairs across classes."""
    sizes = np.array([is_positive.sum(), (~is_positive).sum()], np.float64)
    means = [X[side].mean(axis=0) for side in (is_positive, ~is_positive)]
    spreads = [
        (X[side] - mean).T @ (X[side] - mean) for side, mean in zip((is_positive, ~is_positive), means, strict=True)
    ]
    n_pairs = sizes * (sizes - 1)
    within = (2 * sizes[0] * spreads[0] + 2 * sizes[1] * spreads[1]) / n_pairs.sum()
    gap = means[0] - means[1]
    across = spreads[0] / sizes[0] + spreads[1] / sizes[1] + np.outer(gap, gap)
    return within, across


def _power(matrix: np.ndarray, power: float) -> np.ndarray:
    """Power of a positive definite matrix."""
    values, vectors = scipy.linalg.eigh((matrix + matrix.T) / 2)
    values = np.maximum(values, 1e-12 * max(float(values.max()), np.finfo(float).tiny))
    return (vectors * values**power) @ vectors.T


class ImbML(LinearMetric):
    """Metric learning from imbalanced data (Gautheron, Morvant, Habrard and Sebban, 2019).

    Pairs within a class should have a squared distance of at most 1, pairs across classes of at least 1 + margin. Pairs
    that start from a positive and pairs that start from a negative have a loss of their own, averaged over its pairs:

        a (mean of Sim+ + mean of Dis+) + (1 - a) (mean of Sim- + mean of Dis-) + penalty |M - I|^2

    Each row is paired with its `n_neighbors` nearest rows of both classes; `choose_rows` limits the rows to `max_rows`.
    L-BFGS finds L, with M = L'L, from the identity.
    """

    def __init__(
        self,
        margin: float = 1.0,
        penalty: float = 0.1,
        a: float = 0.5,
        n_neighbors: int = 3,
        max_rows: int | None = 2000,
        random_state: Any = None,
    ):
        self.margin = margin
        self.penalty = penalty
        self.a = a
        self.n_neighbors = n_neighbors
        self.max_rows = max_rows
        self.random_state = random_state

    def _learn(self, X: np.ndarray, is_positive: np.ndarray) -> np.ndarray:
        rows = choose_rows(is_positive, self.max_rows, self.random_state)
        difference, weight, is_similar = nearest_pairs(X[rows], is_positive[rows], self.n_neighbors, self.a)
        d = X.shape[1]
        sign = np.where(is_similar, 1.0, -1.0)
        offset = np.where(is_similar, -1.0, 1.0 + self.margin)

        def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
            components = flat.reshape(d, d)
            image = difference @ components.T
            loss = np.maximum(sign * np.square(image).sum(axis=1) + offset, 0.0)
            slope = weight * sign * (loss > 0)
            away = components.T @ components - np.eye(d)
            value = float(weight @ loss) + self.penalty * float(np.sum(away**2))
            gradient = 2 * (image * slope[:, None]).T @ difference + 4 * self.penalty * components @ away
            return value, gradient.ravel()

        found = scipy.optimize.minimize(
            objective, np.eye(d).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 200}
        )
        return np.asarray(found.x).reshape(d, d)


def choose_rows(label: np.ndarray, max_rows: int | None, random_state: Any) -> np.ndarray:
    """At most max_rows rows: those of the rarer class, up to half of it, and others at random."""
    if max_rows is None or len(label) <= max_rows:
        return np.arange(len(label))
    rng = np.random.default_rng(random_state)
    rare, common = sorted((rng.permutation(np.flatnonzero(label == side)) for side in (0, 1)), key=len)
    rare = rare[: max_rows // 2]
    return np.sort(np.concatenate((rare, common[: max_rows - len(rare)])))


def nearest_pairs(
    X: np.ndarray, is_positive: np.ndarray, n_neighbors: int, a: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Differences of each row to its nearest rows of both classes, their weights, and whether they are similar."""
    differences, weights, similar = [], [], []
    for start in (True, False):
        rows = np.flatnonzero(is_positive == start)
        for end in (True, False):
            others = np.flatnonzero(is_positive == end)
            k = min(n_neighbors, len(others) - (start == end))
            search = NearestNeighbors(n_neighbors=k).fit(X[others])
            near = search.kneighbors(None if start == end else X[rows], return_distance=False)
            differences.append((X[rows][:, None, :] - X[others][near]).reshape(-1, X.shape[1]))
            share = a if start else 1.0 - a
            weights.append(np.full(near.size, share / near.size))
            similar.append(np.full(near.size, start == end))
    return np.concatenate(differences), np.concatenate(weights), np.concatenate(similar)


class MetricTransformer(LinearMetric):
    """Rows in a metric learned by metric-learn.

    "lmnn" is large margin nearest neighbours (Weinberger and Saul, 2009), "itml" information-theoretic metric learning
    (Davis et al., 2007). The cost is quadratic in the rows, which `choose_rows` limits to `max_rows`.
    """

    def __init__(self, algorithm: str = "lmnn", max_rows: int | None = 2000, random_state: Any = None):
        self.algorithm = algorithm
        self.max_rows = max_rows
        self.random_state = random_state

    @property
    def _title(self) -> str:
        return self.algorithm.upper()

    def _learn(self, X: np.ndarray, is_positive: np.ndarray) -> np.ndarray:
        rows = choose_rows(is_positive, self.max_rows, self.random_state)
        label = is_positive[rows].astype(np.int64)
        how: dict[str, Any] = {"max_iter": 200, "random_state": self.random_state}
        if self.algorithm == "lmnn":
            # 3 target neighbours, or as many as the smaller class has; the first step shrinks until it fits.
            n_neighbors = min(3, int(np.bincount(label).min()) - 1)
            learner = _without_checks("LMNN")(init="identity", n_neighbors=n_neighbors, learn_rate=1e-3, **how)
        else:  # as many pairs within a class, and as many across classes, as a small table has
            n_pairs = min(200, int(np.prod(np.bincount(label))) // 2)
            learner = _without_checks("ITML_Supervised")(n_constraints=n_pairs, **how)
        return np.asarray(learner.fit(X[rows], label).components_)


def _without_checks(name: str) -> type:
    """A class of metric-learn without its input checks.

    They call scikit-learn with force_all_finite, an argument removed in scikit-learn 1.8 (metric-learn 0.7.0). The rows
    were checked before. Pairs of equal rows are left out too: ITML divides by their distance.
    """
    import metric_learn

    class Learner(getattr(metric_learn, name)):  # type: ignore[misc]
        def _prepare_inputs(self, X: np.ndarray, y: Any = None, type_of_inputs: str = "classic", **_: Any) -> Any:
            self.preprocessor_ = None
            if type_of_inputs == "tuples":
                is_apart = (X[:, 0] != X[:, 1]).any(axis=1)
                return X[is_apart], y[is_apart]
            return X, y

    return Learner


# --- methods ------------------------------------------------------------------------------------------------------

AS_GIVEN: dict[str, Any] = {"scaling": None, "keep_columns": "all"}  # the numbers are scaled already


def in_metric(make_metric: Callable[..., Any], *own: str) -> Callable[..., Pipeline]:
    """`make` of nearest neighbours in a learned metric, with the settings `own` of that metric."""

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> Pipeline:
        metric = make_metric(random_state, **{name: setting.pop(name) for name in own if name in setting})
        return Pipeline([("metric", metric), ("neighbours", KNN(**AS_GIVEN | {"n_jobs": n_jobs} | setting))])

    return make


def neighbours(name: str, title: str, make: Callable[..., Any] | str, summary: str, **others: Any) -> Method:
    """Nearest neighbours, several numbers of them from one search; `make` may be the rule of their vote."""
    made = recipe(KNN, **AS_GIVEN, rule=make) if isinstance(make, str) else make
    space = {"n_neighbors": (1, 3, 5, 9, 15, 25, 41, 65, 101)}
    return Method(name, title, "neighbours", made, space, "scaled", size=rows_kept, sweep=BY_NEIGHBOURS,
                  summary=summary, **others)  # fmt: skip


SEED = ("random_state", None)
METHODS = [
    neighbours("plain-knn", "Plain kNN", "plain", "Share of positives among the nearest of the standardised rows."),
    neighbours("knn-weighted", "kNN by distance", "weighted", "The same; nearer rows count more."),
    neighbours("knn-class-weighted", "Class-weighted kNN", "class_weighted",
               "The same; distances shrink with the size of the class."),
    neighbours("knn-duplicated", "Duplicated kNN", "duplicated",
               "The same; positives count as often as there are negatives per positive."),
    neighbours("krnn", "kRNN", "krnn", "Share of positives around the k nearest positives (Zhang et al.)."),
    neighbours("lmnn", "LMNN", in_metric(recipe(MetricTransformer, "lmnn", words=SEED)),
               "Nearest rows in the metric of large margin nearest neighbours (metric-learn).",
               packages=("metric_learn",)),
    neighbours("itml", "ITML", in_metric(recipe(MetricTransformer, "itml", words=SEED)),
               "Nearest rows in the metric of information-theoretic metric learning (metric-learn).",
               packages=("metric_learn",)),
    neighbours("gmml", "GMML", in_metric(recipe(GMML, words=(None, None)), "t"),
               "Nearest rows in the metric of geometric mean metric learning."),
    neighbours("imbml", "ImbML", in_metric(recipe(ImbML, words=SEED), "margin", "penalty", "a"),
               "Nearest rows in the metric of imbalanced metric learning."),
]  # fmt: skip
