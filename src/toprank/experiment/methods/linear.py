"""Models that add up: logistic regression, L1, L2, balanced or on splines, and the explainable boosting machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import SplineTransformer

from toprank.experiment.registry import Method, recipe
from toprank.rankers.cost.cost_path import last_step

PENALTIES = {"C": (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)}
REGRESSION: dict[str, Any] = {"words": ("random_state", None), "max_iter": 10_000}
"""One thread, and far more iterations than scaled columns need, so that no fit stops early."""

N_KNOTS = 5

make_l2 = recipe(LogisticRegression, **REGRESSION)


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


def coefficients(model: Any) -> tuple[int, str]:
    """Non-zero coefficients of a linear model, or of the one at the end of a pipeline."""
    return int(np.count_nonzero(last_step(model)[1].coef_)), "coefficients"


METHODS = [
    # liblinear penalises the intercept too, less so the larger its scale.
    Method("logistic-l1", "Logistic L1", "linear",
           recipe(LogisticRegression, **REGRESSION, l1_ratio=1.0, solver="liblinear", intercept_scaling=10.0),
           {"C": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)}, "scaled", is_readable=True, size=coefficients,
           summary="Sparse logistic regression."),
    Method("logistic-l2", "Logistic L2", "linear", make_l2, PENALTIES, "scaled", is_readable=True, size=coefficients,
           summary="Logistic regression."),
    Method("logistic-balanced", "Logistic balanced", "linear",
           recipe(LogisticRegression, **REGRESSION, class_weight="balanced"), PENALTIES, "scaled", is_readable=True,
           size=coefficients, summary="Logistic regression with classes of equal weight."),
    Method("logistic-splines", "Logistic splines", "linear", make_splines, PENALTIES, "scaled", size=coefficients,
           summary="Logistic regression on cubic splines of the columns: additive and smooth."),
    Method("ebm", "EBM", "additive",  # 8 outer bags instead of 14, for time
           recipe("interpret.glassbox:ExplainableBoostingClassifier", outer_bags=8), {"interactions": (0, 10)},
           "numbers", ("interpret",), is_readable=True, size=lambda model: (len(model.term_names_), "curves"),
           summary="Explainable boosting machine: one curve per column, and up to 10 pairs."),
]  # fmt: skip
