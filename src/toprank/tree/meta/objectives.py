"""Objectives of meta-trees: how inner trees grow, how their cells are ordered and cut, and what a leaf adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from toprank._core.dtypes import AP, AUC


@dataclass(frozen=True)
class Objective:
    """The differences between the papers: MetaAP = `AVERAGE_PRECISION`, TreeRank = `ROC_AREA`.

    `slope(positive, total)` is the sort key of each cell, smallest first; `value(positive, total, all_positive,
    all_total)` the value of a cut with these weights on the left; `share(positive, total, before_positive,
    before_total, all_positive, all_total)` what a cell adds to the measure of a whole ranking, given the weights before
    it.

    A cut is worthwhile only if its value exceeds `floor`. Ties go to the first cut, or with `takes_larger` to the last
    one, which has the larger left part.
    """

    name: str
    criterion: int
    slope: Callable[[np.ndarray, np.ndarray], np.ndarray]
    value: Callable[[np.ndarray, np.ndarray, float, float], np.ndarray]
    share: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, float], np.ndarray]
    floor: float = -np.inf
    takes_larger: bool = False

    def order(self, positive: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Cells from best to worst; ties go to more positives, then to the given order."""
        return np.lexsort((-positive, self.slope(positive, total)))

    def cut(self, positive: np.ndarray, total: np.ndarray) -> int:
        """Number of ordered cells, of two or more, in the left part; all of them if no cut is worthwhile.

        Examples
        --------
        >>> import numpy as np
        >>> from toprank.tree.meta.objectives import ROC_AREA
        >>> ROC_AREA.cut(np.array([3, 1, 0]), np.array([4, 2, 2]))  # the second cell adds as much as it costs
        2
        >>> ROC_AREA.cut(np.array([1, 2]), np.array([2, 4]))  # both cells have the rate of the whole
        2
        """
        left_positive, left_total = np.cumsum(positive)[:-1], np.cumsum(total)[:-1]
        value = self.value(left_positive, left_total, positive.sum(), total.sum())
        if not value.max() > self.floor:
            return len(positive)
        best = np.flatnonzero(value == value.max())
        return int(best[-1 if self.takes_larger else 0]) + 1


def precision_recall_slope(positive: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Slope of the tangent to the (1 - precision)-recall curve at 0: (1 - precision) / recall; last if no positives."""
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
    """Beta - alpha of the left part, scaled to n_l+ n- - n_l- n+: Lambda of section IV-A of TreeRank.

    Integer weights give exact whole numbers, so that ties between cuts are exact.
    """
    all_negative = all_total - all_positive
    if positive.dtype.kind == "i" and int(all_positive) * int(all_negative) >= 2**63:  # Python's do not overflow
        positive, total = positive.astype(object), total.astype(object)
        all_positive, all_negative = int(all_positive), int(all_negative)
    return positive * all_negative - (total - positive) * all_positive


def average_precision_share(
    positive: np.ndarray,
    total: np.ndarray,
    before_positive: np.ndarray,
    before_total: np.ndarray,
    all_positive: float,
    all_total: float,
) -> np.ndarray:
    """What a leaf adds to AP: its share of the positives times the precision at its end."""
    precision = (before_positive + positive) / (before_total + total)
    return positive / all_positive * precision


def roc_area_share(
    positive: np.ndarray,
    total: np.ndarray,
    before_positive: np.ndarray,
    before_total: np.ndarray,
    all_positive: float,
    all_total: float,
) -> np.ndarray:
    """What a leaf adds to the area under the ROC curve: the trapezoid between the knots at its two ends."""
    all_negative = max(all_total - all_positive, 1)  # without negatives there is no area
    return (total - positive) / all_negative * ((before_positive + positive / 2) / all_positive)


AVERAGE_PRECISION = Objective("ap", AP, precision_recall_slope, average_precision_left, average_precision_share)
ROC_AREA = Objective("auc", AUC, roc_slope, roc_excess, roc_area_share, floor=0, takes_larger=True)
"""Remark 10 of the TreeRank paper: ties go to the larger subset; a node stays whole if no cut adds area."""
