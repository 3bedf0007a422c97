"""How large a fitted scikit-learn model is: conditions or leaves of trees, coefficients of linear models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.tree import BaseDecisionTree


def leaves(model: Any) -> tuple[int, str]:
    """Leaves of a tree, or of all trees of an ensemble, also of ensembles in pipelines."""
    return _count_leaves(model), "leaves"


def conditions(model: Any) -> tuple[int, str]:
    """Conditions of one tree: what a person reads."""
    return _count_leaves(model) - 1, "conditions"


def coefficients(model: Any) -> tuple[int, str]:
    """Non-zero coefficients of a linear model, or of the one at the end of a pipeline."""
    return int(np.count_nonzero(last_step(model).coef_)), "coefficients"


def last_step(model: Any) -> Any:
    """The estimator at the end of a pipeline; any other model is its own last step."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def _count_leaves(model: Any) -> int:
    model = last_step(model)
    if isinstance(model, BaseDecisionTree):
        return int(model.get_n_leaves())
    return sum(map(_count_leaves, model.estimators_))
