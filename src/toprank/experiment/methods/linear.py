"""Logistic regression: L1, L2, with balanced classes, and on splines of the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import SplineTransformer

from toprank.experiment.methods.sizes import coefficients
from toprank.experiment.registry import Method, register

INVERSE_PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
SPARSE_PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
MAX_ITERATIONS = 10_000
"""Far more than scaled columns need, so that no fit stops early."""

N_KNOTS = 5


def make_l2(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> LogisticRegression:
    """L2-penalised regression; always single-threaded."""
    return LogisticRegression(**{"random_state": random_state, "max_iter": MAX_ITERATIONS} | setting)


def make_balanced(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> LogisticRegression:
    """L2-penalised regression with equal weight of both classes."""
    return make_l2(random_state, n_jobs, **({"class_weight": "balanced"} | setting))


def make_l1(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> LogisticRegression:
    """L1-penalised regression through liblinear, which penalises the intercept too, less so the larger its scale."""
    sparse = {"l1_ratio": 1.0, "solver": "liblinear", "intercept_scaling": 10.0}
    return make_l2(random_state, n_jobs, **(sparse | setting))


def make_splines(random_state: Any = 0, n_jobs: int | None = 1, n_knots: int = N_KNOTS, **setting: Any) -> Pipeline:
    """L2-penalised regression on cubic splines; columns with few values are not expanded."""
    splines = SplineTransformer(n_knots=n_knots, knots="quantile", extrapolation="linear", include_bias=False)
    bend = ColumnTransformer([("splines", splines, ColumnsOfManyValues(n_knots))], remainder="passthrough")
    return Pipeline([("splines", bend), ("regression", make_l2(random_state, n_jobs, **setting))])


@dataclass(frozen=True)
class ColumnsOfManyValues:
    """Selects the columns whose quantiles all differ, so that a spline can have knots there."""

    n_knots: int

    def __call__(self, X: np.ndarray) -> list[int]:
        """Positions of the columns."""
        knots = np.percentile(X, np.linspace(0, 100, self.n_knots), axis=0)
        return np.flatnonzero((np.diff(knots, axis=0) > 0).all(axis=0)).tolist()


register(
    Method("logistic-l1", "Logistic L1", "linear", make_l1, {"C": SPARSE_PENALTIES}, "scaled", is_readable=True,
           size=coefficients, summary="Sparse logistic regression.")
)  # fmt: skip
register(
    Method("logistic-l2", "Logistic L2", "linear", make_l2, {"C": INVERSE_PENALTIES}, "scaled", is_readable=True,
           size=coefficients, summary="Logistic regression.")
)  # fmt: skip
register(
    Method("logistic-balanced", "Logistic balanced", "linear", make_balanced, {"C": INVERSE_PENALTIES}, "scaled",
           is_readable=True, size=coefficients, summary="Logistic regression with classes of equal weight.")
)  # fmt: skip
register(
    Method("logistic-splines", "Logistic splines", "linear", make_splines, {"C": INVERSE_PENALTIES}, "scaled",
           size=coefficients, summary="Logistic regression on cubic splines of the columns: additive and smooth.")
)  # fmt: skip
