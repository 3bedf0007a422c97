"""What a meta-tree optimises: how it grows inner trees, orders their cells, and where it cuts that order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from toprank._core.dtypes import AP, AUC


@dataclass(frozen=True)
class Objective:
    """One line of the table: MetaAP = `AVERAGE_PRECISION`, TreeRank = `ROC_AREA`.

    `slope(positive, total)` gives each cell's key, smallest first; `value(positive, total, all_positive, all_total)`
    the worth of a cut that leaves that much on the left.
    """

    name: str
    criterion: int
    slope: Callable[[np.ndarray, np.ndarray], np.ndarray]
    value: Callable[[np.ndarray, np.ndarray, float, float], np.ndarray]

    def order(self, positive: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Cells from best to worst; ties: more positives first, then the given order."""
        return np.lexsort((-positive, self.slope(positive, total)))

    def cut(self, positive: np.ndarray, total: np.ndarray) -> int:
        """Number of cells, taken in order, that form the left part; at least 1, at most all but one."""
        left_positive, left_total = np.cumsum(positive)[:-1], np.cumsum(total)[:-1]
        return int(np.argmax(self.value(left_positive, left_total, positive.sum(), total.sum()))) + 1


def precision_recall_slope(positive: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Slope of the tangent to the (1 - precision)-recall curve at 0: (1 - precision) / recall; no positive: last."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (1.0 - positive / total) / (positive / max(positive.sum(), 1))
    return np.where(positive > 0, slope, np.inf)


def average_precision_left(
    positive: np.ndarray, total: np.ndarray, all_positive: float, all_total: float
) -> np.ndarray:
    """AP_left of section 4 of the MetaAP paper: n_l+^2 / (n+ n_l) + n_r+ / n."""
    return positive**2.0 / (all_positive * total.astype(float)) + (all_positive - positive) / all_total


def roc_slope(positive: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Minus the slope beta / alpha of the ROC curve at 0, so that the steepest cell comes first."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.where(total > positive, positive / (total - positive), np.inf)


def roc_excess(positive: np.ndarray, total: np.ndarray, all_positive: float, all_total: float) -> np.ndarray:
    """True positive rate minus false positive rate of the left part: beta - alpha."""
    return positive / all_positive - (total - positive) / (all_total - all_positive)


AVERAGE_PRECISION = Objective("ap", AP, precision_recall_slope, average_precision_left)
ROC_AREA = Objective("auc", AUC, roc_slope, roc_excess)
