"""Objectives of meta-trees: how inner trees grow, how their cells are ordered and cut, and what a leaf adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from toprank._core.dtypes import AP, AUC

Weights = tuple[np.ndarray, np.ndarray]
Totals = tuple[float, float]
"""Positive and total weight: of several cells, and of a whole ranking."""


@dataclass(frozen=True)
class Objective:
    """The differences between the papers: MetaAP = `AVERAGE_PRECISION`, TreeRank = `ROC_AREA`.

    `slope(positive, total)` is the sort key of each cell, smallest first; `value(positive, total, all_positive,
    all_total)` the value of a cut with these weights on the left; `share(own, before, whole)` what a cell adds to the
    measure of a whole ranking, given the positive and total weights of the cell, of all before it, and of the ranking.

    A cut is worthwhile only if its value exceeds `floor`. Ties go to the first cut, or with `takes_larger` to the last
    one, which has the larger left part.
    """

    name: str
    criterion: int
    slope: Callable[[np.ndarray, np.ndarray], np.ndarray]
    value: Callable[[np.ndarray, np.ndarray, float, float], np.ndarray]
    share: Callable[[Weights, Weights, Totals], np.ndarray]
    floor: float = -np.inf
    takes_larger: bool = False

    @property
    def depth(self) -> float:
        """Share of the cases, from the top of the ranking, that counts."""
        return 1.0

    def order(self, positive: np.ndarray, total: np.ndarray, room: float = np.inf) -> np.ndarray:
        """Cells from best to worst; ties go to more positives, then to the given order.

        `room` is the weight of the cases that still count, from the first cell on.
        """
        return np.lexsort((-positive, self.slope(positive, total)))

    def _values(self, positive: np.ndarray, total: np.ndarray, room: float) -> np.ndarray:
        """Value of each cut of ordered cells."""
        left_positive, left_total = np.cumsum(positive)[:-1], np.cumsum(total)[:-1]
        return self.value(left_positive, left_total, positive.sum(), total.sum())

    def cut(self, positive: np.ndarray, total: np.ndarray, room: float = np.inf) -> int:
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
        value = self._values(positive, total, room)
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


def average_precision_share(own: Weights, before: Weights, whole: Totals) -> np.ndarray:
    """What a leaf adds to AP: its share of the positives times the precision at its end."""
    precision = (before[0] + own[0]) / (before[1] + own[1])
    return own[0] / whole[0] * precision


def roc_area_share(own: Weights, before: Weights, whole: Totals) -> np.ndarray:
    """What a leaf adds to the area under the ROC curve: the trapezoid between the knots at its two ends."""
    (positive, total), (all_positive, all_total) = own, whole
    all_negative = max(all_total - all_positive, 1)  # without negatives there is no area
    return (total - positive) / all_negative * ((before[0] + positive / 2) / all_positive)


AVERAGE_PRECISION = Objective("ap", AP, precision_recall_slope, average_precision_left, average_precision_share)
ROC_AREA = Objective("auc", AUC, roc_slope, roc_excess, roc_area_share, floor=0, takes_larger=True)
"""Remark 10 of the TreeRank paper: ties go to the larger subset; a node stays whole if no cut adds area."""


@dataclass(frozen=True)
class TopShare:
    """What a leaf adds to AP@k: `average_precision_share` of the part of the leaf that is within the first k cases.

    k is the share `depth` of all cases. With f the share of the leaf within k, its part adds f n_l+ / min(n+, k) times
    the precision at the end of the part. So AP@k is 1 if no negative is within the first min(n+, k) cases.
    """

    depth: float

    def __call__(self, own: Weights, before: Weights, whole: Totals) -> np.ndarray:
        """Return the shares of leaves; parameters as `Objective.share`."""
        (positive, total), (before_positive, before_total), (all_positive, all_total) = own, before, whole
        k = self.depth * all_total
        counted = np.clip(k - before_total, 0.0, total)  # f n_l
        found = positive * (counted / np.where(total > 0, total, 1.0))  # f n_l+
        precision = (before_positive + found) / np.maximum(before_total + counted, 1e-300)
        return found / min(all_positive, k) * np.where(counted > 0, precision, 0.0)


@dataclass(frozen=True)
class TopPrecision(Objective):
    """AP@k: average precision of which only positives within the first k cases count.

    A node of a meta-tree has room for k minus the weight that ranks before it; without room it is not split. Its cells
    are ordered by (1 - precision) / recall, where the recall of a cell is that of its part that fits into the room, and
    cut where the AP@room of the two parts is largest.
    """

    @classmethod
    def from_share(cls, depth: float) -> TopPrecision:
        """Objective for the share `depth` of all cases."""
        return cls("ap@k", AP, precision_recall_slope, average_precision_left, TopShare(depth))

    @property
    def depth(self) -> float:
        """Share of the cases, from the top of the ranking, that counts."""
        assert isinstance(self.share, TopShare)
        return self.share.depth

    def order(self, positive: np.ndarray, total: np.ndarray, room: float = np.inf) -> np.ndarray:
        """Cells from best to worst; ties go to more positives, then to the given order."""
        fits = np.minimum(total, room) / total
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = self.slope(positive, total) / fits
        return np.lexsort((-positive, slope))

    def _values(self, positive: np.ndarray, total: np.ndarray, room: float) -> np.ndarray:
        """AP@room, times a constant, of each cut of ordered cells into two parts."""
        whole = float(positive.sum()), float(total.sum())
        part = TopShare(min(room / whole[1], 1.0))
        left = np.cumsum(positive)[:-1].astype(float), np.cumsum(total)[:-1].astype(float)
        right, none = (whole[0] - left[0], whole[1] - left[1]), np.zeros(len(left[0]))
        return part(left, (none, none), whole) + part(right, left, whole)


def top_precision(is_positive: np.ndarray, score: np.ndarray, weight: np.ndarray, depth: float) -> float:
    """AP@k of scores, where k is the share `depth` of the weight; tied cases share a place, as those of a leaf do.

    Examples
    --------
    >>> import numpy as np
    >>> top_precision(np.array([True, False, True, False]), np.array([4.0, 3.0, 2.0, 1.0]), np.ones(4), 0.5)
    0.5
    """
    which = np.unique(-score, return_inverse=True)[1]
    total, positive = np.bincount(which, weight), np.bincount(which, weight * is_positive)
    before = np.cumsum(positive) - positive, np.cumsum(total) - total
    return float(TopShare(depth)((positive, total), before, (positive.sum(), total.sum())).sum())
