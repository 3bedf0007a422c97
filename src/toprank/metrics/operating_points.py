"""`OperatingPoints`: classifiers as points in the plane of their two errors.

One frame for anything that labels cases positive: trees of a cost-optimal curve, models fitted at several costs or
sampling ratios, the thresholds of a score, exact optima. It stores weights of cases; rates are derived from them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError, InputTypeError
from toprank.metrics.checks import (
    as_vector,
    check_both_classes_weigh,
    check_rows,
    check_weight,
    choose_pos_label,
    is_real,
    read_only,
    shown,
    two_classes,
)
from toprank.metrics.roc import RocCurve
from toprank.metrics.ties import class_sums
from toprank.words.counts import count, plural

Floats = NDArray[np.float64]
ROUNDING = 1e-9
"""Share of a class's weight that counts as rounding of sums."""


@dataclass(frozen=True, eq=False)
class OperatingPoints:
    """Classifiers and the weight of their mistakes.

    Parameters
    ----------
    cost_ratio : array-like of shape (m,) or None
        Cost of a false positive relative to a false negative (lambda of the paper), at which each classifier was
        fitted; NaN, or None for all of them, if unknown.
    false_positives, false_negatives : array-like of shape (m,)
        Weight of the negative cases labelled positive, and of the positive cases labelled negative.
    positives, negatives : float
        Weight of either class.

    References
    ----------
    Gabidolla, Zharmagambetov, Carreira-Perpiñán. Beyond the ROC curve: classification trees using cost-optimal curves,
    with application to imbalanced datasets. ICML 2024. Section 3.

    Examples
    --------
    >>> points = OperatingPoints([4, 1, 0.5], [0, 2, 3], [3, 1, 1], positives=4, negatives=10)
    >>> points.true_positive_rate.tolist(), points.is_dominated.tolist()
    ([0.25, 0.75, 0.75], [False, False, True])
    >>> points.cost(1.0).tolist(), points.cheapest(1.0)
    ([3.0, 3.0, 4.0], 0)
    """

    cost_ratio: Any
    false_positives: Any
    false_negatives: Any
    positives: float
    negatives: float

    def __post_init__(self) -> None:
        for name in ("positives", "negatives"):
            value: Any = getattr(self, name)
            if not is_real(value) or not 0 < value < np.inf:
                raise InputError(
                    f"'{name}' of OperatingPoints must be the weight of a class, a float in the range (0, inf). "
                    f"Got {value!r} instead. Hint: rates need cases of both classes."
                )
            object.__setattr__(self, name, float(value))
        for name, most in (("false_positives", self.negatives), ("false_negatives", self.positives)):
            object.__setattr__(self, name, _errors(getattr(self, name), name, most))
        if self.cost_ratio is None:
            object.__setattr__(self, "cost_ratio", np.full(len(self.false_positives), np.nan))
        ratios = read_only(self.cost_ratio)
        if ratios.ndim != 1 or not (np.isnan(ratios) | ((ratios >= 0) & (ratios < np.inf))).all():
            raise InputError(
                "'cost_ratio' of OperatingPoints must be a list of finite numbers, none below 0. "
                f"Got {shown(self.cost_ratio)} instead. Hint: use NaN for an unknown one."
            )
        object.__setattr__(self, "cost_ratio", ratios)
        lengths = [len(self.cost_ratio), len(self.false_positives), len(self.false_negatives)]
        if len(set(lengths)) > 1:
            raise InputError(
                "OperatingPoints needs a cost ratio, false positives and false negatives for every point. Got "
                f"{lengths[0]:,}, {lengths[1]:,} and {lengths[2]:,} values. Hint: an unknown cost ratio is NaN."
            )

    @classmethod
    def from_labels(
        cls,
        y: ArrayLike,
        labels: ArrayLike,
        *,
        cost_ratio: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
    ) -> OperatingPoints:
        """Points of classifiers given by their labels of each case.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels of two values.
        labels : array-like of shape (m, n) or (n,)
            Predicted labels of m classifiers, or of one: values of y, or booleans, True = positive.
        cost_ratio : array-like of shape (m,), optional
        sample_weight : array-like of shape (n,), optional
        pos_label : optional
            The positive label; by default that of a usual pair, such as yes of yes/no, else the larger.

        Examples
        --------
        >>> OperatingPoints.from_labels([0, 0, 1, 1], [[0, 0, 0, 1], [0, 1, 1, 1]]).false_positives.tolist()
        [0.0, 1.0]
        """
        caller = "OperatingPoints.from_labels"
        truth = as_vector(y, "y_true", caller=caller)
        low, high = two_classes(truth, caller=caller)
        chosen = choose_pos_label(pos_label, low, high, caller=caller)
        called = _called_positive(labels, truth, low, high, chosen, caller)
        positive, weight = truth == chosen, check_weight(sample_weight, len(truth), caller=caller)
        check_both_classes_weigh(positive[weight > 0], caller)
        return cls(
            cost_ratio,
            [weight[row & ~positive].sum() for row in called],
            [weight[positive & ~row].sum() for row in called],
            float(weight[positive].sum()),
            float(weight[~positive].sum()),
        )

    @classmethod
    def from_scores(
        cls, y: ArrayLike, score: ArrayLike, *, sample_weight: ArrayLike | None = None, pos_label: Any = None
    ) -> OperatingPoints:
        """Points of all thresholds of a score, from no case labelled positive to all.

        Parameters
        ----------
        y, sample_weight, pos_label
            As in `from_labels`.
        score : array-like of shape (n,)
            Larger is more suspicious.

        Examples
        --------
        >>> points = OperatingPoints.from_scores([1, 0, 0, 1], [0.9, 0.5, 0.4, 0.5])
        >>> points.false_positives.tolist(), points.false_negatives.tolist()
        ([0.0, 0.0, 1.0, 2.0], [2.0, 1.0, 0.0, 0.0])
        """
        rows = check_rows(
            y, score, sample_weight=sample_weight, pos_label=pos_label, caller="OperatingPoints.from_scores"
        )
        false_positives, found = (np.append(0.0, through) for through in class_sums(rows))
        return cls(None, false_positives, found[-1] - found, found[-1], false_positives[-1])

    def __len__(self) -> int:
        return len(self.false_positives)

    @property
    def false_positive_rate(self) -> Floats:
        """Share of the negative cases labelled positive, (m,)."""
        return self.false_positives / self.negatives

    @property
    def true_positive_rate(self) -> Floats:
        """Share of the positive cases labelled positive, (m,)."""
        return 1.0 - self.false_negatives / self.positives

    @property
    def alerts(self) -> Floats:
        """Weight of the cases labelled positive, (m,)."""
        return self.false_positives + (self.positives - self.false_negatives)

    @property
    def is_dominated(self) -> NDArray[np.bool_]:
        """Whether another point has at most as many of both errors and fewer of one, (m,)."""
        order = np.lexsort((self.false_negatives, self.false_positives))
        values, start, size = np.unique(self.false_positives[order], return_index=True, return_counts=True)
        least = self.false_negatives[order][start]  # per number of false positives,
        before = np.append(np.inf, np.minimum.accumulate(least))[: len(values)]  # and over all smaller numbers
        missed = self.false_negatives[order]
        dominated = np.empty(len(self), bool)
        dominated[order] = (np.repeat(before, size) <= missed) | (np.repeat(least, size) < missed)
        return dominated

    def cost(self, cost_ratio: float) -> Floats:
        """False negatives + cost_ratio * false positives, eq. (2), (m,)."""
        return self.false_negatives + check_cost_ratio(cost_ratio, "OperatingPoints.cost") * self.false_positives

    def cheapest(self, cost_ratio: float) -> int:
        """Position of the cheapest point; ties go to the fewest false positives, then to the first."""
        if not len(self):
            raise InputError("OperatingPoints.cheapest needs at least one point, but it is empty. Hint: check select.")
        return int(np.lexsort((self.false_positives, self.cost(cost_ratio)))[0])

    def curve(self) -> RocCurve:
        """ROC curve through the undominated points and the corners (0, 0) and (1, 1).

        A straight piece corresponds to tossing a coin between two classifiers.

        Examples
        --------
        >>> points = OperatingPoints(None, [0, 2, 3], [3, 1, 1], positives=4, negatives=10)
        >>> points.curve().to_dict()
        {'alpha': [0.0, 0.0, 0.2, 1.0], 'beta': [0.0, 0.25, 0.75, 1.0]}
        """
        kept = np.flatnonzero(~self.is_dominated)
        kept = kept[np.argsort(self.false_positives[kept], kind="stable")]
        alpha, beta = self.false_positive_rate[kept], self.true_positive_rate[kept]
        return RocCurve(np.concatenate(([0.0], alpha, [1.0])), np.concatenate(([0.0], beta, [1.0])))

    def hull(self) -> RocCurve:
        """Concave hull of the points and the corners (0, 0) and (1, 1)."""
        return self.curve().hull()

    @property
    def hull_area(self) -> float:
        """Area under the hull."""
        return self.hull().area

    def dominates(self, other: OperatingPoints) -> bool:
        """Whether every point of `other` is matched by one of these with at most as many of both errors.

        Both must use the same cases. Differences below 1e-9 of a class's weight are rounding.

        Examples
        --------
        >>> y = [0, 0, 1, 1]
        >>> found = OperatingPoints.from_labels(y, [0, 0, 1, 1])
        >>> found.dominates(OperatingPoints.from_scores(y, [1, 3, 2, 4]))
        True
        """
        if not isinstance(other, OperatingPoints):
            raise InputTypeError(
                f"OperatingPoints.dominates needs other OperatingPoints. Got {type(other).__name__} instead. "
                "Hint: use OperatingPoints.from_scores to make them from a score."
            )
        mine, theirs = (self.positives, self.negatives), (other.positives, other.negatives)
        if not np.allclose(mine, theirs, rtol=ROUNDING, atol=0):
            raise InputError(
                f"OperatingPoints.dominates compares points of the same cases, but one side has "
                f"{plural(mine[0], 'positive')} and {plural(mine[1], 'negative')}, the other {count(theirs[0])} and "
                f"{count(theirs[1])}. Hint: compare hull_area."
            )
        order = np.argsort(self.false_positives, kind="stable")
        least = np.append(np.inf, np.minimum.accumulate(self.false_negatives[order]))
        allowed = other.false_positives + ROUNDING * self.negatives
        at = np.searchsorted(self.false_positives[order], allowed, side="right")
        return bool((least[at] <= other.false_negatives + ROUNDING * self.positives).all())

    def select(self, which: ArrayLike) -> OperatingPoints:
        """Some of the points, by a mask or by their positions."""
        chosen = np.atleast_1d(np.asarray(which))
        if chosen.size == 0:
            chosen = chosen.astype(np.intp)
        names = ("cost_ratio", "false_positives", "false_negatives")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain lists and numbers; ``OperatingPoints(**fields)`` restores the points."""
        lists = {name: getattr(self, name).tolist() for name in ("cost_ratio", "false_positives", "false_negatives")}
        return lists | {"positives": self.positives, "negatives": self.negatives}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OperatingPoints):
            return NotImplemented
        return (
            (self.positives, self.negatives) == (other.positives, other.negatives)
            and np.array_equal(self.cost_ratio, other.cost_ratio, equal_nan=True)
            and np.array_equal(self.false_positives, other.false_positives)
            and np.array_equal(self.false_negatives, other.false_negatives)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        classes = f"{plural(self.positives, 'positive')} and {plural(self.negatives, 'negative')}"
        return f"<OperatingPoints: {plural(len(self), 'classifier')} of {classes}>"


def check_cost_ratio(value: Any, caller: str, name: str = "cost_ratio") -> float:
    """Return the cost of a mistake as a finite float, at least 0."""
    if not is_real(value) or not 0 <= value < np.inf:
        hint = "the cost of a false positive if a false negative costs 1" if name == "cost_ratio" else "the cost of one"
        raise InputError(
            f"The '{name}' parameter of {caller} must be a float in the range [0, inf). Got {value!r} instead. "
            f"Hint: it is {hint}."
        )
    return float(value)


def _called_positive(labels: ArrayLike, truth: Any, low: Any, high: Any, chosen: Any, caller: str) -> Any:
    """True where a classifier labels a case positive, (m, n)."""
    array = np.asarray(labels)
    rows = array[np.newaxis] if array.ndim == 1 else array
    if rows.ndim != 2 or rows.shape[1] != len(truth):
        raise InputError(
            f"'labels' of {caller} must have one row per classifier and one column for each of the {len(truth):,} "
            f"cases. Got an array of shape {array.shape}. Hint: np.array([model.predict(X) for model in models])."
        )
    if rows.dtype.kind == "b" and truth.dtype.kind != "b":
        return rows
    is_strange = ~((rows == low) | (rows == high))
    if is_strange.any():
        raise InputError(
            f"'labels' of {caller} must be values of y, {low!r} or {high!r}, or booleans. "
            f"Got {rows[is_strange][0].item()!r} among them. Hint: pass labels == the positive label."
        )
    return rows == chosen


def _errors(values: Any, name: str, most: float) -> Floats:
    """A read-only copy of weights between 0 and the weight of the class."""
    array = np.array(values, dtype=np.float64)
    if array.ndim != 1 or not ((array >= -ROUNDING * most) & (array <= most * (1 + ROUNDING))).all():
        raise InputError(
            f"'{name}' of OperatingPoints must be weights between 0 and {most:g}, the weight of the class. "
            f"Got {shown(values)} instead. Hint: they are weights of cases, not rates."
        )
    return read_only(np.clip(array, 0.0, most))
