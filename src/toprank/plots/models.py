"""Fitted models in the plane of their two error rates: operating points, or a ROC curve.

The only part of the displays that reads models.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from toprank.errors import InputError, InputTypeError
from toprank.metrics.operating_points import OperatingPoints
from toprank.metrics.roc import RocCurve, roc_curve
from toprank.tree.structure import Tree


def check_test_cases(curve: Any, X: Any, y: Any, caller: str) -> None:
    """Raise unless `curve` is a fitted cost-optimal curve and the test cases have outcomes."""
    if not hasattr(curve, "path_") or not hasattr(curve, "points_"):
        raise InputTypeError(
            f"{caller} needs a fitted CostOptimalCurve. Got {type(curve).__name__} instead. "
            "Hint: call fit first; from_points draws any other points."
        )
    if (X is None) != (y is None):
        given, lacking = ("X", "y") if y is None else ("y", "X")
        raise InputError(f"{caller} got {given} but no {lacking}. Hint: pass both, or neither.")


def with_costs(curve: Any, points: OperatingPoints) -> OperatingPoints:
    """The points of a curve; those between two costs have no cost to write beside them."""
    is_between = np.array([point.is_between for point in curve.path_])
    return replace(points, cost_ratio=np.where(is_between, np.nan, points.cost_ratio))


def judged(model: Any, name: str, X: Any, y: Any, sample_weight: Any, positive: Any, caller: str) -> Any:
    """Points of a model with several classifiers, else the ROC curve of its score, on test cases.

    Parameters
    ----------
    model : OperatingPoints, RocCurve or fitted model
    name : str
    X, y, sample_weight
        The test cases, None if there are none.
    positive : label
    caller : str
    """
    if isinstance(model, OperatingPoints | RocCurve):
        return model
    is_scorer = hasattr(model, "decision_function") or hasattr(model, "predict_proba")
    if not is_scorer and not hasattr(model, "points"):
        raise InputTypeError(
            f"'others[{name!r}]' of {caller} must be OperatingPoints, a RocCurve or a fitted model. "
            f"Got {type(model).__name__} instead."
        )
    if X is None:
        raise InputError(f"'others[{name!r}]' of {caller} is a model, which needs test cases. Hint: pass X and y.")
    if hasattr(model, "points"):
        return model.points(X, y, sample_weight)
    return roc_of_scores(_scores(model, X, positive), y, sample_weight, positive)


def roc_of_scores(score: Any, y: Any, sample_weight: Any, positive: Any) -> RocCurve:
    """ROC curve of a score, with the positive label given."""
    return roc_curve(y, score, sample_weight=sample_weight, pos_label=positive)


def roc_of_leaves(tree: Tree) -> RocCurve:
    """ROC curve of a tree on its training cases: a threshold on the rate of a leaf (section 3.1 of the paper)."""
    ends = np.flatnonzero(tree.is_leaf)
    positive, negative = (np.bincount(tree.leaf[ends], part[ends]) for part in (tree.positive, tree.negative))
    return RocCurve.of_cells(positive, negative)


def _scores(model: Any, X: Any, positive: Any) -> np.ndarray:
    """A score that is larger for cases more likely to have the positive label."""
    from toprank.rankers.cost.cost_path import last_step

    classes = list(getattr(model, "classes_", []))
    if not hasattr(model, "decision_function"):
        return np.asarray(model.predict_proba(X))[:, classes.index(positive) if positive in classes else -1]
    score = np.asarray(model.decision_function(X))
    # scikit-learn's classifiers score the larger label; the rankers of this package score their positive label.
    is_ranker = hasattr(last_step(model)[1], "positive_index_")
    is_turned = not is_ranker and len(classes) == 2 and classes[0] == positive
    return -score if is_turned else score
