"""Measures of a yes/no decision, from the four counts of the confusion matrix.

They need a decision: `y_pred` holds labels, not scores.

Section 1.5.1 of R. Viola's thesis prints the true positive rate as TP / (TP + TN), in the balanced accuracy and in the
G-mean. That is a misprint: here it is TP / (TP + FN), as in equation (1) of the MetaAP paper.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from toprank.errors import InputError
from toprank.metrics import confusion_counts
from toprank.metrics.checks import (
    as_vector,
    check_both_classes_weigh,
    check_weight,
    choose_pos_label,
    is_real,
    two_classes,
)


def _count(
    y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None, pos_label: Any, caller: str
) -> tuple[float, float, float, float]:
    """Return the confusion matrix, in weights: true and false positives, false and true negatives."""
    labels = as_vector(y_true, "y_true", caller=caller)
    low, high = two_classes(labels, caller=caller)
    pos_label = choose_pos_label(pos_label, low, high, caller=caller)
    predicted = as_vector(y_pred, "y_pred", caller=caller, n=len(labels))
    is_foreign = ~((predicted == low) | (predicted == high))
    if is_foreign.any():
        row = int(np.argmax(is_foreign))
        raise InputError(
            f"'y_pred' of {caller} must hold the labels of y_true, {low!r} and {high!r}. Got "
            f"{predicted[row]!r} in row {row}. Hint: cut scores first, as in score >= threshold."
        )
    weight = check_weight(sample_weight, len(labels), caller=caller)
    is_true, is_called = labels == pos_label, predicted == pos_label
    check_both_classes_weigh(is_true[weight > 0], caller)
    masks = (is_true & is_called, ~is_true & is_called, is_true & ~is_called, ~is_true & ~is_called)
    tp, fp, fn, tn = (float(weight[mask].sum()) for mask in masks)
    return tp, fp, fn, tn


def f_beta(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    beta: float = 1.0,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """F-beta: the harmonic mean of precision and recall, with recall beta times as important.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two values.
    y_pred : array-like of shape (n,)
        Predicted labels, of the same two values.
    beta : float, default=1.0
        At least 0; 1 is the F1 measure, 0 the precision.
    sample_weight : array-like of shape (n,), optional
    pos_label : optional
        The positive label; by default that of a usual pair, such as yes of yes/no, else the larger.

    Returns
    -------
    float
        (1 + beta^2) TP / ((1 + beta^2) TP + beta^2 FN + FP), between 0 and 1; 0 if nothing is predicted
        positive.

    References
    ----------
    R. Viola's thesis, section 1.5.1.

    Examples
    --------
    >>> f_beta([1, 1, 0, 0], [1, 0, 1, 0]), round(f_beta([1, 1, 0, 0], [1, 0, 0, 0], beta=2), 4)
    (0.5, 0.5556)
    """
    if not is_real(beta) or not 0 <= beta < np.inf:
        raise InputError(f"The 'beta' parameter of f_beta must be a float in the range [0, inf). Got {beta!r} instead.")
    counts = _count(y_true, y_pred, sample_weight, pos_label, "f_beta")
    return float(confusion_counts.f_beta(*counts, beta=beta))


def g_mean(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None, pos_label: Any = None
) -> float:
    """G-mean: the geometric mean of the true positive and the true negative rate.

    Parameters
    ----------
    y_true, y_pred, sample_weight, pos_label
        As in `f_beta`; the positive label has no effect, because both classes count alike.

    Returns
    -------
    float
        sqrt(TP / (TP + FN) x TN / (TN + FP)), between 0 and 1.

    References
    ----------
    R. Viola's thesis, section 1.5.1, where the true positive rate is misprinted as TP / (TP + TN).

    Examples
    --------
    >>> g_mean([1, 1, 0, 0], [1, 0, 1, 0])
    0.5
    """
    return float(confusion_counts.g_mean(*_count(y_true, y_pred, sample_weight, pos_label, "g_mean")))


def g_measure(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None, pos_label: Any = None
) -> float:
    """G-measure: the geometric mean of precision and recall.

    Parameters
    ----------
    y_true, y_pred, sample_weight, pos_label
        As in `f_beta`.

    Returns
    -------
    float
        Between 0 and 1; 0 if nothing is predicted positive.

    References
    ----------
    R. Viola's thesis, section 1.5.1.

    Examples
    --------
    >>> g_measure([1, 1, 1, 1, 0], [1, 0, 0, 0, 0])
    0.5
    """
    return float(confusion_counts.g_measure(*_count(y_true, y_pred, sample_weight, pos_label, "g_measure")))


def balanced_accuracy(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None, pos_label: Any = None
) -> float:
    """Balanced accuracy: the mean of the true positive and the true negative rate.

    Parameters
    ----------
    y_true, y_pred, sample_weight, pos_label
        As in `f_beta`; the positive label has no effect, because both classes count alike.

    Returns
    -------
    float
        (TP / (TP + FN) + TN / (TN + FP)) / 2, between 0 and 1; 0.5 for a constant decision.

    References
    ----------
    R. Viola's thesis, section 1.5.1, where the true positive rate is misprinted as TP / (TP + TN).

    Examples
    --------
    >>> balanced_accuracy([1, 1, 0, 0], [1, 0, 0, 0])
    0.75
    """
    counts = _count(y_true, y_pred, sample_weight, pos_label, "balanced_accuracy")
    return float(confusion_counts.balanced_accuracy(*counts))
