"""Measures of yes/no decisions as formulas of the four counts of the confusion matrix, for numbers or whole arrays.

`confusion` counts; rankers that are tuned for a measure have the counts of many decisions at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64] | float
"""True positives (tp), false positives (fp), false negatives (fn) or true negatives (tn), of one or many decisions."""


def f_beta(tp: Counts, fp: Counts, fn: Counts, tn: Counts, *, beta: float = 1.0) -> NDArray[np.float64]:
    """F-measure: harmonic mean of precision and recall, with recall beta times as important."""
    found = (1 + beta**2) * tp
    return _ratio(found, found + fp + beta**2 * fn)


def g_measure(tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> NDArray[np.float64]:
    """G-measure: geometric mean of precision and recall."""
    return np.sqrt(_ratio(tp, tp + fp) * _ratio(tp, tp + fn))


def g_mean(tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> NDArray[np.float64]:
    """G-mean: geometric mean of the true positive and the true negative rate."""
    return np.sqrt(_ratio(tp, tp + fn) * _ratio(tn, tn + fp))


def balanced_accuracy(tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> NDArray[np.float64]:
    """Balanced accuracy: mean of the true positive and the true negative rate."""
    return (_ratio(tp, tp + fn) + _ratio(tn, tn + fp)) / 2


def recall(tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> NDArray[np.float64]:
    """Recall: the true positive rate."""
    return _ratio(tp, tp + fn)


def average_precision(tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> NDArray[np.float64]:
    """Average precision of the decisions: of the ranking that has the flagged cases first, in ties."""
    found = recall(tp, fp, fn, tn)
    return found * _ratio(tp, tp + fp) + (1 - found) * _ratio(tp + fn, tp + fp + fn + tn)


def _ratio(part: Counts, whole: Counts) -> NDArray[np.float64]:
    """Return part / whole, 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) > 0)
