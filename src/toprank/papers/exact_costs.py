"""Exact optima of the weighted 0/1 loss, for families of classifiers small enough to search through.

Decision stumps for every cost at once by enumeration, linear classifiers for one cost at a time by mixed-integer
programming. Cost-optimal curves are measured against them; the search itself is in `linear_cells`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array

from toprank.data.frames import backend_of
from toprank.data.table import is_missing, read_table
from toprank.errors import InputError
from toprank.metrics.operating_points import OperatingPoints, check_cost_ratio
from toprank.papers.linear_cells import LinearProblem, search_directions
from toprank.rankers.validation import check_classes, check_labels, check_weights
from toprank.tree.bin_mapper import between
from toprank.tree.tao.moves import undominated
from toprank.tree.weights import integer_weights

MIN_MARGIN = 2e-6
"""Twice the solver's tolerance of a constraint."""


@dataclass(frozen=True)
class Stump:
    """A classifier on one column; a threshold of -inf or inf gives all cases the same label."""

    feature: int
    threshold: float
    positive_above: bool

    def is_positive(self, X: Any) -> np.ndarray:
        """Whether each row is labelled positive, bool (n,)."""
        return (check_array(X, dtype=np.float64)[:, self.feature] > self.threshold) == self.positive_above


@dataclass(frozen=True, eq=False)
class ExactCurve:
    """The best classifiers of a family for every cost at once, eq. (8).

    Attributes
    ----------
    points : OperatingPoints
        The optima, from cheap to expensive false positives: point i is the best from its `cost_ratio` to the next
        one's. They are the corners of the lower convex hull of all classifiers of the family.
    breakpoints : float64 array of shape (len(points) - 1,)
        Cost ratios at which the optimum changes, ascending. There both neighbours have the same cost.
    stumps : tuple of Stump
        The classifiers of `points`.
    frontier : OperatingPoints
        All undominated points of the family, by decreasing false positives. Between the corners of the hull are
        solutions of the constrained problem, eq. (1), that are optimal at no cost ratio.
    classes : array of shape (2,)
        The negative and the positive label.
    """

    points: OperatingPoints
    breakpoints: np.ndarray
    stumps: tuple[Stump, ...]
    frontier: OperatingPoints
    classes: np.ndarray

    def minimum(self, cost_ratio: Any) -> Any:
        """Minimum cost C(lambda), eq. (8): false negatives + cost_ratio * false positives, at one or several ratios."""
        ratios = np.asarray(cost_ratio, np.float64)
        for ratio in ratios.ravel().tolist():
            check_cost_ratio(ratio, "ExactCurve.minimum")
        least = (self.points.false_negatives + ratios[..., np.newaxis] * self.points.false_positives).min(axis=-1)
        return float(least) if ratios.ndim == 0 else least

    def constrained(self, max_false_positives: float) -> float:
        """Fewest false negatives with at most this many false positives, eq. (1)."""
        allowed = self.frontier.false_positives <= max_false_positives
        if not allowed.any():
            raise InputError(
                f"max_false_positives must be at least 0, the number without any alert, got {max_false_positives!r}. "
                "Hint: it is a weight of cases, not a rate."
            )
        return float(self.frontier.false_negatives[allowed].min())

    def predict(self, X: Any, cost_ratio: float) -> np.ndarray:
        """Labels by the best classifier at a cost ratio, (n,)."""
        stump = self.stumps[self.points.cheapest(cost_ratio)]
        return self.classes[stump.is_positive(X).astype(np.intp)]


def exact_stumps(X: Any, y: Any, *, sample_weight: Any = None, pos_label: Any = None) -> ExactCurve:
    """The decision stumps that minimise the weighted 0/1 loss, for all costs.

    Tries every column, threshold and side, and both constant classifiers. Cost: one sort per column.

    Parameters
    ----------
    X : array of shape (n, n_features)
        Numbers, none missing.
    y : array of shape (n,)
        Labels of two values.
    sample_weight : array of shape (n,), optional
        Weight 2 is the row twice, weight 0 leaves it out.
    pos_label : optional
        The positive label; by default that of a usual pair, such as yes of yes/no, else the larger.

    Returns
    -------
    ExactCurve

    References
    ----------
    .. [1] Gabidolla, Zharmagambetov, Carreira-Perpiñán. Beyond the ROC curve: classification trees using cost-optimal
       curves, with application to imbalanced datasets. ICML 2024. Section 5.1, appendix B.

    Examples
    --------
    >>> from toprank.papers import exact_stumps
    >>> curve = exact_stumps([[1], [2], [3], [4], [5]], [1, 0, 1, 1, 0])
    >>> curve.points.false_positives.tolist(), curve.points.false_negatives.tolist()
    ([1.0, 0.0], [0.0, 2.0])
    >>> curve.breakpoints.tolist(), curve.stumps[0], curve.minimum(1.0)
    ([2.0], Stump(feature=0, threshold=4.5, positive_above=False), 1.0)
    """
    X, is_positive, weight, classes = _check_cases(X, y, sample_weight, pos_label, "exact_stumps")
    weights = integer_weights(is_positive, weight)
    negative = weights.total - weights.positive
    kept = weights.total > 0
    feature, threshold, positive_above, false_positives, false_negatives = (
        np.concatenate(parts)
        for parts in zip(*_all_stumps(X[kept], weights.positive[kept], negative[kept]), strict=True)
    )
    order = undominated(false_positives, false_negatives)[::-1]
    frontier = np.column_stack((false_positives, false_negatives))[order]
    corners = lower_hull(frontier.tolist())
    fell, rose = np.abs(np.diff(frontier[corners], axis=0)).T
    breakpoints = rose / fell
    n_positive, n_negative = float(weights.positive.sum() * weights.unit), float(negative.sum() * weights.unit)
    reached, missed = frontier.T * weights.unit
    return ExactCurve(
        OperatingPoints(np.append(0.0, breakpoints), reached[corners], missed[corners], n_positive, n_negative),
        breakpoints,
        tuple(Stump(int(feature[i]), float(threshold[i]), bool(positive_above[i])) for i in order[corners]),
        OperatingPoints(None, reached, missed, n_positive, n_negative),
        classes,
    )


def lower_hull(points: Sequence[Sequence[int]]) -> list[int]:
    """Positions of the corners of the lower left hull of points with decreasing first and increasing second number.

    In integers of any size: a point on the line between two others is not a corner.
    """
    corners: list[int] = []
    for i, (x, y) in enumerate(points):
        while len(corners) > 1:
            (x0, y0), (x1, y1) = points[corners[-2]], points[corners[-1]]
            if (y1 - y0) * (x1 - x) < (y - y1) * (x0 - x1):  # the line is steeper from here on
                break
            corners.pop()
        corners.append(i)
    return corners


@dataclass(frozen=True, eq=False)
class LinearOptimum:
    """A linear classifier: positive where X @ weight + intercept > 0.

    Attributes
    ----------
    weight : float64 array of shape (n_features,)
    intercept : float
    false_positives, false_negatives : float
        Weight of its mistakes on the training cases.
    cost : float
        Cost of these mistakes.
    lower_bound : float
        No linear classifier with the given margin costs less.
    is_optimal : bool
        Whether that bound was reached.
    """

    weight: np.ndarray
    intercept: float
    false_positives: float
    false_negatives: float
    cost: float
    lower_bound: float
    is_optimal: bool

    def decision_function(self, X: Any) -> np.ndarray:
        """X @ weight + intercept, float64 (n,); above 0 is positive."""
        return check_array(X, dtype=np.float64) @ self.weight + self.intercept


def exact_linear(
    X: Any,
    y: Any,
    fp_cost: float,
    fn_cost: float = 1.0,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    margin: float = 1e-5,
    time_limit: float = 60.0,
) -> LinearOptimum:
    """The linear classifier that minimises the weighted 0/1 loss, by mixed-integer programming.

    For a hundred cases in two columns, or a few dozen in a few columns: the problem is NP-hard.

    Parameters
    ----------
    X, y, sample_weight, pos_label
        As in `exact_stumps`.
    fp_cost, fn_cost : float
        Cost of a false positive and of a false negative.
    margin : float, default 1e-5
        Smallest distance of the boundary from every case, on columns scaled to [-1, 1] with a largest weight of 1. A
        floating-point solver cannot distinguish smaller ones from zero.
    time_limit : float, default 60
        Seconds after which the best classifier found so far is returned, with `is_optimal` False.

    Returns
    -------
    LinearOptimum

    References
    ----------
    .. [1] Gabidolla, Zharmagambetov, Carreira-Perpiñán. Beyond the ROC curve: classification trees using cost-optimal
       curves, with application to imbalanced datasets. ICML 2024. Section 5.1.

    Examples
    --------
    >>> from toprank.papers import exact_linear
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> best = exact_linear(X, y, fp_cost=2.0)
    >>> best.false_positives, best.false_negatives, best.is_optimal
    (0.0, 1.0, True)
    """
    X, is_positive, weight, _ = _check_cases(X, y, sample_weight, pos_label, "exact_linear")
    costs = check_cost_ratio(fp_cost, "exact_linear", "fp_cost"), check_cost_ratio(fn_cost, "exact_linear", "fn_cost")
    weight = np.ones(len(X)) if weight is None else weight
    return _solve_linear(X, is_positive, weight, costs, margin, time_limit, [])


def exact_linear_curve(
    X: Any,
    y: Any,
    cost_ratios: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    margin: float = 1e-5,
    time_limit: float = 60.0,
) -> OperatingPoints:
    """Points of the best linear classifiers at several cost ratios.

    Parameters
    ----------
    X, y, sample_weight, pos_label, margin
        As in `exact_linear`.
    cost_ratios : array of shape (m,)
        Cost of a false positive if a false negative costs 1.
    time_limit : float, default 60
        Seconds per ratio. A warning says at how many of them the optimum was not proved.

    Returns
    -------
    OperatingPoints

    Examples
    --------
    >>> from toprank.papers import exact_linear_curve
    >>> exact_linear_curve([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0], [0.5, 2.0]).false_positives.tolist()
    [1.0, 0.0]
    """
    X, is_positive, weight, _ = _check_cases(X, y, sample_weight, pos_label, "exact_linear_curve")
    weight = np.ones(len(X)) if weight is None else weight
    ratios = [check_cost_ratio(ratio, "exact_linear_curve") for ratio in np.asarray(cost_ratios, np.float64).tolist()]
    found: list[LinearOptimum] = []
    for ratio in ratios:
        starts = [optimum.weight for optimum in found]
        found.append(_solve_linear(X, is_positive, weight, (ratio, 1.0), margin, time_limit, starts))
    n_open = sum(not optimum.is_optimal for optimum in found)
    if n_open:
        warnings.warn(
            f"exact_linear_curve could not prove the optimum at {n_open} of {len(ratios)} cost ratios within "
            f"{time_limit:g} s each. Hint: raise time_limit, or use fewer cases or columns.",
            UserWarning,
            stacklevel=2,
        )
    return OperatingPoints(
        ratios,
        [optimum.false_positives for optimum in found],
        [optimum.false_negatives for optimum in found],
        float(weight[is_positive].sum()),
        float(weight[~is_positive].sum()),
    )


def _check_cases(
    X: Any, y: Any, sample_weight: Any, pos_label: Any, owner: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
    """Matrix, whether each row is positive, weights (None = 1 each), and the negative and the positive label."""
    X = _check_numbers(X, owner)
    labels = check_labels(y, len(X), owner)
    classes, position = check_classes(labels, pos_label, owner)
    is_positive = labels == classes[position]
    return X, is_positive, check_weights(sample_weight, is_positive, owner), classes[[1 - position, position]]


def _check_numbers(X: Any, owner: str) -> np.ndarray:
    """Matrix of finite numbers, float64 (n, n_features)."""
    try:
        numbers = check_array(X, dtype=np.float64, ensure_all_finite=False)
    except (TypeError, ValueError):
        _refuse_text(X, owner)
        raise  # not about text: scikit-learn's messages on shapes are clear
    names = read_table(X).names if backend_of(X) else [f"x{i}" for i in range(numbers.shape[1])]
    for name, column in zip(names, numbers.T, strict=True):
        for is_bad, words, remedy in (
            (np.isnan(column), "missing (NaN)", "fill them first, for example with SimpleImputer"),
            (np.isinf(column), "infinite", "replace them first"),
        ):
            if is_bad.any():
                raise InputError(
                    f"{owner} needs a finite number in every row, but of {len(column):,} values of column {name!r} "
                    f"{int(is_bad.sum()):,} {'are' if is_bad.sum() > 1 else 'is'} {words}. "
                    f"Hint: {remedy}, or drop these rows."
                )
    return numbers


def _refuse_text(X: Any, owner: str) -> None:
    """Raise ValueError at the first column that is not numeric."""
    table = read_table(X if backend_of(X) else check_array(X, dtype=None, ensure_all_finite=False))
    for i, name in enumerate(table.names):
        for value in () if table.is_numeric(i) else table.values(i):
            try:
                float(0 if is_missing(value) else value)
            except (TypeError, ValueError):
                raise InputError(
                    f"{owner} needs columns of numbers, but column {name!r} holds {value!r}. "
                    "Hint: encode text and categories first, for example with OneHotEncoder."
                ) from None


def _all_stumps(X: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Feature, threshold, side, false positives and false negatives of all stumps, one column and side at a time."""
    n_positive, n_negative = positive.sum(), negative.sum()
    both = np.zeros(2, np.intp), np.array([-np.inf, np.inf]), np.ones(2, bool)
    yield *both, np.array([n_negative, 0]), np.array([0, n_positive])
    for feature, column in enumerate(X.T):
        order = np.argsort(column, kind="stable")
        value = column[order]
        ends = np.flatnonzero(value[1:] > value[:-1])  # the last row at or below each threshold
        threshold = between(value[ends], value[ends + 1])
        positive_below, negative_below = np.cumsum(positive[order])[ends], np.cumsum(negative[order])[ends]
        index = np.full(len(ends), feature)
        yield index, threshold, np.ones(len(ends), bool), n_negative - negative_below, positive_below
        yield index, threshold, np.zeros(len(ends), bool), negative_below, n_positive - positive_below


def _solve_linear(
    X: np.ndarray,
    is_positive: np.ndarray,
    weight: np.ndarray,
    costs: tuple[float, float],
    margin: Any,
    time_limit: float,
    starts: list[np.ndarray],
) -> LinearOptimum:
    """Best linear classifier for checked cases, false positive and false negative costs."""
    if not (isinstance(margin, int | float) and MIN_MARGIN <= margin < 1):
        raise InputError(
            f"The 'margin' parameter must be a float in the range [{MIN_MARGIN:g}, 1). Got {margin!r} instead. "
            "Hint: smaller margins are within the solver's tolerance."
        )
    problem = LinearProblem.from_rows(X, np.where(is_positive, costs[1], -costs[0]) * weight, margin)
    direction, threshold, lower_bound = search_directions(problem, starts, time_limit)
    called = X @ direction > threshold
    false_positives = float(weight[called & ~is_positive].sum())
    false_negatives = float(weight[is_positive & ~called].sum())
    cost = costs[0] * false_positives + costs[1] * false_negatives
    is_optimal = cost <= lower_bound + problem.tolerance
    lower_bound = cost if is_optimal else lower_bound  # they differ by rounding
    return LinearOptimum(direction, -threshold, false_positives, false_negatives, cost, lower_bound, is_optimal)
