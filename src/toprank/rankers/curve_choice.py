"""The choice of a point of a cost-optimal curve: for a budget, a ceiling of false alarms, a recall, a cost, a size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from toprank.budget import cases_of_budget
from toprank.metrics import Interval, OperatingPoints, proportion_interval
from toprank.rankers.curve_path import CurvePoint
from toprank.rankers.tao_tree import TAOTree
from toprank.tree.wording import percent_text

LEVEL = 0.95
NUMBER = int | float | np.integer | np.floating
FIGURES = ("false_positive_rate", "recall", "precision", "alerts", "cost")
WISHES = ("max_fpr", "k", "cost_ratio", "min_recall")
TREE_OF = "tree of the curve"
"""What a point is in error messages, unless a ranker says something else."""


@dataclass(frozen=True, eq=False)
class Selection:
    """A point of a cost-optimal curve, why it was taken, and what to expect of it.

    Intervals take weights as counts of cases: a case of weight 3 is three cases that agree. Weights that say something
    else, such as amounts, make them too narrow or too wide.

    Attributes
    ----------
    position : int
        In `path_`.
    point : CurvePoint
    wish : str
        What was asked for, in words.
    judged_by : str
        The data behind the figures: "validation data", "cross-validation" (but see alerts) or "training data".
    false_positive_rate, recall, precision : Interval
        Shares of negatives called positive, of positives found, and of positives among those called positive (NaN
        where there are none), with Wilson's intervals.
    alerts : Interval
        Cases called positive, of as many as there are training cases. By cross-validation these are the training cases
        that the tree itself calls positive: to count them takes no outcomes, and trees of folds may call others.
    cost : Interval
        Cost a case, in units of a false negative, at the cost ratio asked for, else at that of the point: of a tree
        between two costs, a number between them.
    """

    position: int
    point: CurvePoint
    wish: str
    judged_by: str
    false_positive_rate: Interval
    recall: Interval
    precision: Interval
    alerts: Interval
    cost: Interval

    @property
    def tree(self) -> TAOTree:
        """The tree of the point."""
        return self.point.tree

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The choice for a file."""
        figures = [getattr(self, name) for name in FIGURES]
        return {"selection": np.array([self.position, *(end for f in figures for end in (f.value, f.low, f.high))]),
                "selection_wish": np.array(self.wish)}  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], path: Sequence[CurvePoint], judged_by: str) -> Selection | None:
        """The choice of a file; None where it has none."""
        if "selection" not in arrays:
            return None
        position, *ends = arrays["selection"].tolist()
        figures = [Interval(ends[i], ends[i + 1], ends[i + 2], LEVEL) for i in range(0, len(ends), 3)]
        return cls(int(position), path[int(position)], str(arrays["selection_wish"]), judged_by, *figures)

    def __str__(self) -> str:
        n_leaves = self.tree.n_leaves_
        trained = f"trained with a false positive at {self.point.cost_ratio:.3g} false negatives"
        if self.point.moved is not None:
            trained = str(self.point.moved)
        return "\n".join([
            f"{self.wish}: point {self.position}, {n_leaves} {'leaf' if n_leaves == 1 else 'leaves'}, {trained}",
            f"by {self.judged_by}: {_in_words(self.recall)} of the positives found, "
            f"{_in_words(self.false_positive_rate)} of the negatives called positive",
            f"about {self.alerts.value:,.0f} alerts ({self.alerts.low:,.0f} to {self.alerts.high:,.0f}) among as many "
            f"cases as in training, {_in_words(self.precision)} of them positive",
        ])  # fmt: skip

    def __repr__(self) -> str:
        return f"<Selection of point {self.position}: {self.wish}>"


def _in_words(share: Interval) -> str:
    if math.isnan(share.value):
        return "no share"
    return f"{percent_text(share.value)} ({percent_text(share.low)} to {percent_text(share.high)})"


def choose(
    owner: str,
    path: Sequence[CurvePoint],
    points: OperatingPoints,
    judged_by: str,
    n_cases: float,
    *,
    alerts: np.ndarray,
    has_alerts: np.ndarray,
    base_ratio: float,
    max_leaves: int | None = None,
    of: str = TREE_OF,
    **wishes: Any,
) -> Selection:
    """The point that a wish asks for, by the mistakes in `points`.

    Parameters
    ----------
    owner : str
        Method that is asked, for error messages.
    path : list of CurvePoint
    points : OperatingPoints
        Mistakes of the trees of the path on the data to judge by.
    judged_by : str
    n_cases : float
        Of the training data: alerts are counted for so many.
    alerts : float64 array of shape (n_points,)
        Cases that each tree calls positive, of n_cases.
    has_alerts : bool array of shape (n_points,)
        Whether a tree calls any training case positive.
    base_ratio : float
        Cost ratio that decides where only max_leaves is given.
    max_leaves : int, optional
    of : str
        What a point is, for error messages.
    **wishes
        max_fpr, k, cost_ratio, min_recall: one of them, or none where max_leaves is given.
    """
    asked = {name: value for name, value in wishes.items() if value is not None}
    if len(asked) > 1 or not (asked or max_leaves is not None):
        got = ", ".join(asked) or "nothing"
        raise ValueError(
            f"{owner} needs one of {', '.join(WISHES)}, or max_leaves, which goes with any of them; "
            f"got {got}. Hint: select(max_fpr=0.05), select(k=200), select(cost_ratio=0.1, max_leaves=4)."
        )
    name, value = next(iter(asked.items()), ("cost_ratio", base_ratio))
    wish, is_fine, worth = _judge(owner, name, value, points, alerts, n_cases)
    if "cost_ratio" not in asked:  # who asks for alerts is not served by a tree that has none
        is_fine = is_fine & has_alerts
    size = np.array([point.tree.n_leaves_ for point in path])
    if max_leaves is not None:
        most = _check_leaves(owner, max_leaves)
        small = f"at most {most} {'leaf' if most == 1 else 'leaves'}"
        _refuse_none(of, size <= max_leaves, small, f"the smallest {of} has {size.min()}")
        is_fine = is_fine & (size <= max_leaves)
        wish = f"{wish}, {small}" if asked else small
    among = has_alerts if max_leaves is None else has_alerts & (size <= max_leaves)
    _refuse_none(of, is_fine, wish, _nearest(name, points, alerts, among))
    # The best; of equals the smallest tree, then the one with fewest false positives, then one that belongs to a cost.
    is_between = np.array([point.is_between for point in path])
    order = np.lexsort((is_between, points.false_positives, size, -worth, ~is_fine))
    at = int(order[0])
    ratio = float(value) if name == "cost_ratio" else path[at].cost_ratio
    return Selection(at, path[at], wish, judged_by, *_figures(points, at, float(alerts[at]), n_cases, ratio))


def _judge(
    owner: str, name: str, value: Any, points: OperatingPoints, alerts: np.ndarray, n_cases: float
) -> tuple[str, np.ndarray, np.ndarray]:
    """A wish in words, which points fulfil it, and what each is worth."""
    fpr, recall = points.false_positive_rate, points.true_positive_rate
    if name == "max_fpr":
        limit = _check_number(owner, name, value, 0, 1)
        return f"at most {percent_text(limit)} of the negatives called positive", fpr <= limit, recall
    if name == "min_recall":
        limit = _check_number(owner, name, value, 0, 1)
        return f"at least {percent_text(limit)} of the positives found", recall >= limit, -fpr
    if name == "cost_ratio":
        ratio = _check_number(owner, name, value, 0, np.inf)
        wish = f"a false positive costs {ratio:.3g} false negative{'' if ratio == 1 else 's'}"
        return wish, np.ones(len(points), bool), -points.cost(ratio)
    try:
        k = cases_of_budget(value, n_cases, 0.0)
    except (TypeError, ValueError):
        raise ValueError(
            f"{owner} needs as k an int, the number of alerts, or a share between 0 and 1, got {value!r}."
        ) from None
    most = "1 alert" if k == 1 else f"{k:,.0f} alerts"
    return f"at most {most} among {n_cases:,.0f} cases", alerts <= k, recall


def _check_number(owner: str, name: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, NUMBER) or not low <= value <= high:
        between = f"of {low:g} or more" if high == np.inf else f"from {low:g} to {high:g}"
        raise ValueError(f"{owner} needs a number {between} as {name}, got {value!r}.")
    return float(value)


def _check_leaves(owner: str, value: Any) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{owner} needs an int of 1 or more as max_leaves, got {value!r}. Hint: max_leaves=4.")
    return int(value)


def _nearest(name: str, points: OperatingPoints, alerts: np.ndarray, among: np.ndarray) -> str:
    """How near the curve comes to a wish, in words; points without alerts are not `among` those that count."""
    if not among.any():
        return "those that small call no case positive"
    if name == "max_fpr":
        return f"the lowest share, where there are alerts, is {percent_text(points.false_positive_rate[among].min())}"
    if name == "min_recall":
        return f"the highest share is {percent_text(points.true_positive_rate[among].max())}"
    return f"the fewest alerts, where there are any, are {alerts[among].min():,.0f}"


def _refuse_none(of: str, is_fine: np.ndarray, wish: str, nearest: str) -> None:
    if not is_fine.any():
        raise ValueError(
            f"No {of} fulfils the wish ({wish}): {nearest}. Hint: change the wish, or list cases with "
            "top_k, which cuts the ranking anywhere."
        )


def _figures(points: OperatingPoints, at: int, n_alerts: float, n_cases: float, ratio: float) -> tuple[Interval, ...]:
    """False positive rate, recall, precision, alerts and cost a case of one point, with intervals."""
    fp, fn = float(points.false_positives[at]), float(points.false_negatives[at])
    positives, negatives = points.positives, points.negatives
    total = positives + negatives
    hits = positives - fn
    share = _share(n_alerts, n_cases)
    alerts = Interval(share.value * n_cases, share.low * n_cases, share.high * n_cases, LEVEL)
    # Mistakes on either class are independent binomial counts.
    variance = fn * (1 - fn / positives) + ratio**2 * fp * (1 - fp / negatives)
    half, value = NormalDist().inv_cdf((1 + LEVEL) / 2) * math.sqrt(max(variance, 0.0)), fn + ratio * fp
    cost = Interval(value / total, max(value - half, 0.0) / total, (value + half) / total, LEVEL)
    return _share(fp, negatives), _share(hits, positives), _share(hits, fp + hits), alerts, cost


def _share(part: float, whole: float) -> Interval:
    part = min(max(part, 0.0), whole)  # sums of weights may be off in the last bit
    low, high = proportion_interval(part, whole, LEVEL)
    return Interval(part / whole if whole > 0 else float("nan"), float(low), float(high), LEVEL)
