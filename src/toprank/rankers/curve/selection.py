"""The choice of a point of a cost-optimal curve: for a budget, a limit on false alarms, a recall, a cost, a size.

A budget of 50 alerts may lie between two trees. `TopLabels` keeps the rows at the top of the ranking and the label of
each by every model of the curve, to count and judge the first 50 alerts of a larger tree without the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from toprank.budget import cases_of_budget
from toprank.errors import InputError
from toprank.metrics import Interval, OperatingPoints, proportion_interval
from toprank.metrics.checks import is_int, is_real
from toprank.rankers.cost.tao_tree import TAOTree
from toprank.rankers.curve.path import CurvePoint
from toprank.words.numbers import percent_text

if TYPE_CHECKING:
    from toprank.rankers.curve.curve_ranker import CurveRanker

LEVEL = 0.95
FIGURES = ("false_positive_rate", "recall", "precision", "alerts", "cost")
TARGETS = ("max_fpr", "k", "cost_ratio", "min_recall")
AS_GOOD = 0.98
"""A cut with at least this share of the hits of the best cut counts as equally good."""

ROWS_KEPT = 10_000
"""Rows at the top of the ranking to keep, also in files; larger budgets use whole trees only."""

ROUNDING = 1e-9
"""Relative tolerance for sums of weights, which may be off in the last bits."""


@dataclass(frozen=True, eq=False)
class TopLabels:
    """The first rows of a ranking, best first, and their labels by each model of a curve."""

    score: np.ndarray  # float64 (n_rows,), descending
    is_flagged: np.ndarray  # bool (n_points, n_rows)
    is_positive: np.ndarray  # bool (n_rows,)
    weight: np.ndarray  # float64 (n_rows,)
    total: float  # weight of all rows, including those further down that are not kept

    @classmethod
    def from_labels(
        cls, score: np.ndarray, is_flagged: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None
    ) -> Self:
        """Keep the first of these rows; rows without weight are ignored."""
        all_weights = np.ones(len(score)) if weight is None else np.asarray(weight, np.float64)
        rows = np.flatnonzero(all_weights > 0)
        rows = rows[np.argsort(-score[rows], kind="stable")[:ROWS_KEPT]]
        return cls(score[rows], is_flagged[:, rows], is_positive[rows], all_weights[rows], float(all_weights.sum()))

    def first_alerts(self, position: int, k: float) -> tuple[float, float] | None:
        """Return the weight of the first k alerts of a model, fewer if it has fewer, and of the positives among them.

        If the cut splits tied rows, the positives are those to expect in random order. None if the cut lies below the
        kept rows.
        """
        alerts, hits, _ = self._by_score(position)
        if k > alerts[-1] * (1 + ROUNDING) and not self._is_whole:
            return None
        n_alerts = min(k, float(alerts[-1]))
        return n_alerts, float(np.interp(n_alerts, alerts, hits))

    def threshold(self, position: int, k: float) -> float:
        """Return the lowest score that leaves at most k alerts of a model.

        NaN if even its first alerts do not fit, or if the cut lies below the kept rows.
        """
        alerts, _, score = self._by_score(position)
        n_fitting = int(np.searchsorted(alerts, k * (1 + ROUNDING), side="right")) - 1
        is_below = n_fitting == len(score) and not self._is_whole
        return float("nan") if n_fitting == 0 or is_below else float(score[n_fitting - 1])

    @property
    def _is_whole(self) -> bool:
        """True if all rows are kept."""
        return len(self.score) < ROWS_KEPT

    def _by_score(self, position: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the weight of the alerts and of the hits down to each score, both from 0, and the scores."""
        rows = np.flatnonzero(self.is_flagged[position])
        score, weight = self.score[rows], self.weight[rows]
        last = np.flatnonzero(np.append(np.diff(score) != 0, True)) if len(rows) else np.zeros(0, np.int64)
        alerts, hits = np.cumsum(weight)[last], np.cumsum(weight * self.is_positive[rows])[last]
        return np.append(0.0, alerts), np.append(0.0, hits), score[last]

    # --- files --------------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the rows as arrays for a file."""
        return {"score": self.score, "called": np.packbits(self.is_flagged, axis=1), "is_positive": self.is_positive,
                "weight": self.weight, "total": np.array(self.total)}  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], n_points: int) -> Self:
        """Return the rows of a file, checked."""
        score, is_positive, weight = (arrays[name] for name in ("score", "is_positive", "weight"))
        n, packed, total = len(score), arrays["called"], float(arrays["total"])
        is_sound = (
            score.shape == is_positive.shape == weight.shape == (n,)
            and score.dtype == weight.dtype == np.float64
            and is_positive.dtype == bool
            and packed.dtype == np.uint8
            and packed.shape == (n_points, -(-n // 8))
            and np.isfinite(score).all()
            and (np.diff(score) <= 0).all()
            and (weight > 0).all()
            and np.isfinite(total)
            and weight.sum() <= total * (1 + ROUNDING)
        )
        if not is_sound:
            raise InputError("The model's points and the rows at the top of its ranking do not fit together.")
        is_flagged = np.unpackbits(packed, axis=1, count=n).astype(bool)
        return cls(score, is_flagged, is_positive, weight, total)


@dataclass(frozen=True)
class Cut:
    """Where to end the alerts of a tree that has more of them than the budget.

    Attributes
    ----------
    threshold : float
        The tree's alerts with at least this score of the curve are taken.
    n_alerts : float
        All alerts of the tree, per as many cases as in training, as the budget counts them.
    hits : float
        Positives expected among the first alerts, per as many cases as in training.
    whole_hits : float
        The same for the best tree that fits the budget whole; NaN if none does.
    """

    threshold: float
    n_alerts: float
    hits: float
    whole_hits: float

    def text(self, n_taken: float) -> str:
        """Return which alerts of the tree are taken, in words, and what that gains; `n_taken` says how many are."""
        instead = (
            "no tree has that few"
            if math.isnan(self.whole_hits)
            else f"{self.hits:,.0f} hits expected, {self.whole_hits:,.0f} from the best whole tree that fits"
        )
        return f"the top {n_taken:,.0f} of its {self.n_alerts:,.0f} alerts, as ranked by the curve: {instead}"


@dataclass(frozen=True, eq=False)
class Selection:
    """A point of a cost-optimal curve, why it was chosen, and what to expect of it.

    Intervals treat weights as counts: a case of weight 3 is three equal cases. Weights of another kind, such as
    amounts, make them too narrow or too wide.

    Attributes
    ----------
    position : int
        Position in `path_`.
    point : CurvePoint
    target : str
        The target, in words.
    judged_by : str
        The data behind all figures: "validation data", "cross-validation" or "training data".
    false_positive_rate, recall, precision : Interval
        Shares of negatives flagged, of positives found, and of positives among the flagged (NaN if there are none),
        with Wilson intervals.
    alerts : Interval
        Cases flagged, per as many cases as in training; at most k if k was given.
    cost : Interval
        Cost per case, in units of a false negative, at the given cost ratio, else at that of the point: for a tree
        between two costs, a number between them.
    cut : Cut or None
        Where the alerts end, if only the first alerts of the tree are taken; None: all are.
    """

    position: int
    point: CurvePoint
    target: str
    judged_by: str
    false_positive_rate: Interval
    recall: Interval
    precision: Interval
    alerts: Interval
    cost: Interval
    cut: Cut | None = None

    @property
    def tree(self) -> TAOTree:
        """The tree of the point."""
        return self.point.tree

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the choice as arrays for a file."""
        figures = [getattr(self, name) for name in FIGURES]
        arrays = {"selection": np.array([self.position, *(end for f in figures for end in (f.value, f.low, f.high))]),
                  "selection_target": np.array(self.target)}  # fmt: skip
        return arrays if self.cut is None else arrays | {"selection_cut": np.array(astuple(self.cut), np.float64)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], path: Sequence[CurvePoint], judged_by: str) -> Selection | None:
        """Return the choice of a file; None if it has none."""
        if "selection" not in arrays:
            return None
        position, *ends = arrays["selection"].tolist()
        if position not in range(len(path)):
            raise InputError("The model's choice is not one of its points.")
        figures = [Interval(ends[i], ends[i + 1], ends[i + 2], LEVEL) for i in range(0, len(ends), 3)]
        cut = None
        if "selection_cut" in arrays:
            values = arrays["selection_cut"].tolist()
            if len(values) != len(fields(Cut)) or not math.isfinite(values[0]):
                raise InputError("The model's choice has an invalid cut of its alerts.")
            cut = Cut(*values)
        named: dict[str, Any] = dict(zip(FIGURES, figures, strict=True))
        return cls(int(position), path[int(position)], str(arrays["selection_target"]), judged_by, cut=cut, **named)

    def __str__(self) -> str:
        n_leaves = self.tree.n_leaves_
        trained = f"trained with a false positive at {self.point.cost_ratio:.3g} false negatives"
        if self.point.moved is not None:
            trained = str(self.point.moved)
        return "\n".join([
            f"{self.target}: point {self.position}, {n_leaves} {'leaf' if n_leaves == 1 else 'leaves'}, {trained}",
            *([] if self.cut is None else [self.cut.text(self.alerts.value)]),
            f"by {self.judged_by}: {_in_words(self.recall)} of the positives found, "
            f"{_in_words(self.false_positive_rate)} of the negatives flagged",
            f"about {self.alerts.value:,.0f} alerts ({self.alerts.low:,.0f} to {self.alerts.high:,.0f}) among as many "
            f"cases as in training, {_in_words(self.precision)} of them positive",
        ])  # fmt: skip

    def __repr__(self) -> str:
        return f"<Selection of point {self.position}: {self.target}>"


def _in_words(share: Interval) -> str:
    if math.isnan(share.value):
        return "no share"
    return f"{percent_text(share.value)} ({percent_text(share.low)} to {percent_text(share.high)})"


def choose(curve: CurveRanker, max_leaves: int | None, **targets: Any) -> Selection:
    """Return the best point of a curve for a target, by the mistakes in `judged_points_`.

    A budget k is met by a tree with at most k alerts, or by the first k alerts of a larger one in the order of the
    curve, whichever is expected to find more. Ties go to whole trees; without `_judged_top`, only these are considered.

    One of the targets max_fpr, k, cost_ratio, min_recall is given, or none if max_leaves is: then the cost ratio is
    that of the base point.
    """
    owner, of, n_cases = f"{type(curve).__name__}.select", curve._what_a_point_is, curve.n_cases_
    path, points, alerts = curve.path_, curve.judged_points_, curve._alerts
    has_alerts = curve.points_.alerts > 0  # on training cases
    asked = {name: value for name, value in targets.items() if value is not None}
    if len(asked) > 1 or not (asked or max_leaves is not None):
        got = f"Got {', '.join(asked)}" if asked else "None was given"
        raise InputError(
            f"{owner} needs one of {', '.join(TARGETS)}; max_leaves can be combined with any of them, or be given "
            f"alone. {got}. Hint: select(max_fpr=0.05), select(k=200), select(cost_ratio=0.1, max_leaves=4)."
        )
    name, value = next(iter(asked.items()), ("cost_ratio", path[curve.base_point_].cost_ratio))
    whole = found = _Offers.from_points(points, n_cases)
    if name == "k":
        k = _check_budget(owner, value, n_cases)
        target = f"at most {'1 alert' if k == 1 else f'{k:,.0f} alerts'} among {n_cases:,.0f} cases"
        found = whole.within(k, n_cases, alerts, curve._seen_top or curve._judged_top, curve._judged_top)
        is_fine, worth = found.is_fine, found.hits
    else:
        target, is_fine, worth = _judge(owner, name, value, points)
    if "cost_ratio" not in asked:  # a tree without alerts is no use to a user who wants alerts
        is_fine = is_fine & has_alerts
    size = np.array([point.tree.n_leaves_ for point in path])
    if max_leaves is not None:
        if not is_int(max_leaves) or max_leaves < 1:
            raise InputError(
                f"{owner} needs an int of 1 or more as max_leaves, got {max_leaves!r}. Hint: max_leaves=4."
            )
        most = int(max_leaves)
        small = f"at most {most} {'leaf' if most == 1 else 'leaves'}"
        _refuse_none(of, size <= max_leaves, small, f"the smallest {of} has {size.min()}")
        is_fine = is_fine & (size <= max_leaves)
        target = f"{target}, {small}" if asked else small
    among = has_alerts if max_leaves is None else has_alerts & (size <= max_leaves)
    _refuse_none(of, is_fine, target, _nearest(name, points, alerts, among))
    best_whole, is_better = found.cuts_worth_taking(is_fine)
    if is_better.any():  # among cuts that find about as much, prefer the tree whose alerts nearly fit the budget
        is_fine, worth = is_better, -whole.alerts
    else:
        is_fine = is_fine & ~found.is_cut
    # Ties go to the smallest tree, then to the fewest false alarms, then to a tree of a cost.
    is_between = np.array([point.is_between for point in path])
    order = np.lexsort((is_between, found.alerts - found.hits, size, -worth, ~is_fine))
    at = int(order[0])
    ratio = float(value) if name == "cost_ratio" else path[at].cost_ratio
    cut = None
    if found.is_cut[at]:
        cut = Cut(float(found.threshold[at]), float(alerts[at]), float(found.hits[at]), best_whole)
    figures = _figures(points, float(found.alerts[at]), float(found.hits[at]), n_cases, ratio)
    named: dict[str, Any] = dict(zip(FIGURES, figures, strict=True))
    return Selection(at, path[at], target, curve.held_out_by_, cut=cut, **named)


@dataclass(frozen=True, eq=False)
class _Offers:
    """What each tree of a path can be taken for: its alerts, and the hits among them, of so many cases."""

    alerts: np.ndarray  # float64 (n_points,): per as many cases as in training, all on the data to judge on
    hits: np.ndarray  # float64 (n_points,)
    is_fine: np.ndarray  # bool (n_points,): whether it fits the budget
    is_cut: np.ndarray  # bool (n_points,): whether only its first alerts are taken
    threshold: np.ndarray  # float64 (n_points,): score at which the alerts end; NaN for whole trees

    @classmethod
    def from_points(cls, points: OperatingPoints, n_cases: float) -> _Offers:
        """All trees, whole."""
        scale = n_cases / (points.positives + points.negatives)
        hits = scale * (points.positives - points.false_negatives)
        n = len(hits)
        return cls(hits + scale * points.false_positives, hits, np.ones(n, bool), np.zeros(n, bool), np.full(n, np.nan))

    def within(
        self, k: float, n_cases: float, own: np.ndarray, counted: TopLabels | None, judged: TopLabels | None
    ) -> _Offers:
        """Trees with at most k alerts of their own, and the first k of those with more."""
        alerts, hits, threshold = self.alerts.copy(), self.hits.copy(), self.threshold.copy()
        is_whole = own <= k * (1 + ROUNDING)
        if counted is not None and judged is not None:
            scale = n_cases / judged.total
            for i in range(len(own)):
                first = judged.first_alerts(i, k / scale) if alerts[i] > k else None
                if first is not None:
                    alerts[i], hits[i] = scale * first[0], scale * first[1]
                if not is_whole[i] and (first is not None or alerts[i] <= k):
                    threshold[i] = counted.threshold(i, k * counted.total / n_cases)
        is_cut = ~is_whole & np.isfinite(threshold)
        return _Offers(alerts, hits, is_whole | is_cut, is_cut, threshold)

    def cuts_worth_taking(self, is_fine: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the hits of the best whole tree, NaN without one, and the cuts with more hits that match the best cut.

        Which of many nearly equal cuts has the most hits is chance, so slightly fewer hits count as equal.
        """
        is_cut, is_whole = is_fine & self.is_cut, is_fine & ~self.is_cut
        best_whole = float(self.hits[is_whole].max()) if is_whole.any() else math.nan
        if not is_cut.any():
            return best_whole, is_cut
        least = AS_GOOD * self.hits[is_cut].max()
        is_more = np.ones(len(self.hits), bool) if math.isnan(best_whole) else self.hits > best_whole
        return best_whole, is_cut & is_more & (self.hits >= least)


def _check_budget(owner: str, value: Any, n_cases: float) -> float:
    try:
        return cases_of_budget(value, n_cases, 0.0)
    except (TypeError, ValueError):
        raise InputError(
            f"k of {owner} must be an int (number of alerts) or a share between 0 and 1, got {value!r}."
        ) from None


def _judge(owner: str, name: str, value: Any, points: OperatingPoints) -> tuple[str, np.ndarray, np.ndarray]:
    """Return a target in words, which points meet it, and the value of each."""
    fpr, recall = points.false_positive_rate, points.true_positive_rate
    if name == "max_fpr":
        limit = _check_number(owner, name, value, 0, 1)
        return f"at most {percent_text(limit)} of the negatives flagged", fpr <= limit, recall
    if name == "min_recall":
        limit = _check_number(owner, name, value, 0, 1)
        return f"at least {percent_text(limit)} of the positives found", recall >= limit, -fpr
    ratio = _check_number(owner, name, value, 0, np.inf)
    target = f"a false positive costs {ratio:.3g} false negative{'' if ratio == 1 else 's'}"
    return target, np.ones(len(points), bool), -points.cost(ratio)


def _check_number(owner: str, name: str, value: Any, low: float, high: float) -> float:
    if not is_real(value) or not low <= value <= high:
        between = f"of {low:g} or more" if high == np.inf else f"from {low:g} to {high:g}"
        raise InputError(f"{owner} needs a number {between} as {name}, got {value!r}.")
    return float(value)


def _nearest(name: str, points: OperatingPoints, alerts: np.ndarray, among: np.ndarray) -> str:
    """Return how close the curve comes to a target, in words; `among` excludes points without alerts."""
    if not among.any():
        return "no tree that small flags any case"
    if name == "max_fpr":
        return f"the lowest share, where there are alerts, is {percent_text(points.false_positive_rate[among].min())}"
    if name == "min_recall":
        return f"the highest share is {percent_text(points.true_positive_rate[among].max())}"
    return f"the fewest alerts, where there are any, are {alerts[among].min():,.0f}"


def _refuse_none(of: str, is_fine: np.ndarray, target: str, nearest: str) -> None:
    if not is_fine.any():
        raise InputError(
            f"No {of} meets the target ({target}): {nearest}. Hint: change the target, or list cases with "
            "top_k, which cuts the ranking anywhere."
        )


def _figures(points: OperatingPoints, alerts: float, hits: float, n_cases: float, ratio: float) -> tuple[Interval, ...]:
    """Return false positive rate, recall, precision, alerts and cost per case, with intervals.

    `alerts` and the `hits` among them are per n_cases; the width of intervals depends on the cases judged on.
    """
    positives, negatives = points.positives, points.negatives
    total = positives + negatives
    hits, fp = hits * total / n_cases, (alerts - hits) * total / n_cases
    fn = positives - hits
    share = _share(fp + hits, total)
    scaled = Interval(share.value * n_cases, share.low * n_cases, share.high * n_cases, LEVEL)
    # Mistakes on either class are independent binomial counts.
    variance = fn * (1 - fn / positives) + ratio**2 * fp * (1 - fp / negatives)
    half, value = NormalDist().inv_cdf((1 + LEVEL) / 2) * math.sqrt(max(variance, 0.0)), fn + ratio * fp
    cost = Interval(value / total, max(value - half, 0.0) / total, (value + half) / total, LEVEL)
    return _share(fp, negatives), _share(hits, positives), _share(hits, fp + hits), scaled, cost


def _share(part: float, whole: float) -> Interval:
    part = min(max(part, 0.0), whole)  # sums of weights may be off in the last bit
    low, high = proportion_interval(part, whole, LEVEL)
    return Interval(part / whole if whole > 0 else float("nan"), float(low), float(high), LEVEL)
