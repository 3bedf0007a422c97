"""Intervals: the percentile bootstrap for any measure, Wilson's for a share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError
from toprank.metrics.checks import (
    as_vector,
    check_both_classes_weigh,
    check_count,
    check_level,
    check_weight,
    mark_positives,
)

ROW_KEYWORDS = ("sample_weight", "amount")


@dataclass(frozen=True)
class Interval:
    """A figure with the interval around it.

    Attributes
    ----------
    value : float
        The figure on the original data.
    low, high : float
        The ends of the interval.
    level : float
        The confidence level, 0.95 for 95 %.
    """

    value: float
    low: float
    high: float
    level: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def bootstrap_interval(
    metric: Callable[..., float],
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    stratified: bool = True,
    random_state: Any = None,
    **metric_kwargs: Any,
) -> Interval:
    """Percentile bootstrap interval of a measure: how much it varies with the sample of test cases.

    Parameters
    ----------
    metric : callable
        Called as ``metric(y_true, score, **metric_kwargs)``; any measure of this folder or of
        ``sklearn.metrics``.
    y_true : array-like of shape (n,)
        Labels of two values.
    score : array-like of shape (n,)
        What `metric` takes as its second argument: scores, or predicted labels.
    level : float, default=0.95
    n_resamples : int, default=1000
    stratified : bool, default=True
        Draw positives from positives and negatives from negatives, so that every resample has as many of each as the
        data. Otherwise the number of positives varies too; resamples with a single class are redrawn.
    random_state : int, numpy.random.Generator or None
        An int gives the same interval every time.
    **metric_kwargs
        Passed to `metric`; `sample_weight` and `amount` are resampled with their rows, the rest is unchanged.

    Returns
    -------
    Interval

    Notes
    -----
    The rows are sorted by score once and resampled in that order, so that measures get sorted rows. The interval
    describes the sampling of test cases, not of training cases. With few positives the average precision of a resample
    is slightly biased upwards, because repeated positives support each other.

    Examples
    --------
    >>> from toprank.metrics import roc_auc
    >>> interval = bootstrap_interval(roc_auc, [0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6], random_state=0)
    >>> round(interval.value, 3), interval.low <= interval.value <= interval.high
    (0.889, True)
    """
    caller = "bootstrap_interval"
    level = check_level(level, caller=caller)
    rows = ResampledRows(y_true, [score], metric_kwargs, caller=caller)
    value = rows.measure(metric, slice(None))[0]
    drawn = rows.measure_resamples(metric, n_resamples, stratified, random_state, caller=caller)
    low, high = percentile_ends(drawn[:, 0], level)
    return Interval(value, low, high, level)


def percentile_ends(draws: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Return the quantiles that leave (1 - level) / 2 of the draws on either side."""
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


class ResampledRows:
    """Rows for repeated measurement, with one or more columns of scores at once."""

    def __init__(
        self, y_true: ArrayLike, scores: list[ArrayLike], metric_kwargs: dict[str, Any], *, caller: str
    ) -> None:
        positive = mark_positives(y_true, pos_label=metric_kwargs.get("pos_label"), caller=caller)
        n = len(positive)
        columns = [as_vector(score, "score", caller=caller, n=n) for score in scores]
        per_row = {
            name: as_vector(metric_kwargs[name], name, caller=caller, n=n)
            for name in ROW_KEYWORDS
            if metric_kwargs.get(name) is not None
        }
        order = np.argsort(columns[0], kind="stable") if columns[0].dtype.kind in "biuf" else np.arange(n)
        if "sample_weight" in per_row:
            weighs = check_weight(per_row["sample_weight"], n, caller=caller) > 0
            check_both_classes_weigh(positive[weighs], caller)
            order = order[weighs[order]]  # weight 0 is no row
        self._positive = positive[order]
        self._y_true = np.asarray(y_true)[order]
        self._columns = [column[order] for column in columns]
        self._per_row = {name: values[order] for name, values in per_row.items()}
        self._constant = {name: value for name, value in metric_kwargs.items() if name not in per_row}

    def measure(self, metric: Callable[..., float], indices: Any) -> list[float]:
        """Return the measure of every column of scores on the rows `indices`."""
        y_true = self._y_true[indices]
        keywords = {name: values[indices] for name, values in self._per_row.items()} | self._constant
        return [float(metric(y_true, column[indices], **keywords)) for column in self._columns]

    def measure_resamples(self, metric: Callable[..., float], *options: Any, caller: str) -> NDArray[np.float64]:
        """Return the measure of every column of scores on every resample; options as in `resamples`."""
        return np.array([self.measure(metric, indices) for indices in self.resamples(*options, caller=caller)])

    def resamples(
        self, n_resamples: int, stratified: bool, random_state: Any, *, caller: str
    ) -> Iterator[NDArray[np.intp]]:
        """Yield `n_resamples` arrays of n row indices, increasing, each with both classes."""
        n_resamples = check_count(n_resamples, "n_resamples", caller=caller)
        generator = np.random.default_rng(random_state)
        n = len(self._positive)
        strata = [np.flatnonzero(self._positive), np.flatnonzero(~self._positive)] if stratified else [np.arange(n)]
        done = 0
        while done < n_resamples:
            drawn = np.concatenate([rows[generator.integers(0, len(rows), len(rows))] for rows in strata])
            indices = np.repeat(np.arange(n), np.bincount(drawn, minlength=n))  # sorts in linear time
            if stratified or 0 < np.count_nonzero(self._positive[indices]) < n:
                done += 1
                yield indices


def proportion_interval(
    positives: ArrayLike, n: ArrayLike, level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson score interval of a share, such as the hit rate of a leaf.

    Parameters
    ----------
    positives : array-like
        Number of positives; may be a sum of weights, so a float.
    n : array-like
        Number of cases, in the same shape or broadcast to it. If it is 0, the interval is [0, 1].
    level : float, default=0.95

    Returns
    -------
    low, high : ndarray of float64
        The ends, in the broadcast shape; always inside [0, 1], unlike the interval value +- 1.96 standard
        errors.

    References
    ----------
    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927.

    Examples
    --------
    >>> low, high = proportion_interval([0, 5, 50], [10, 10, 100])
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.237, 0.404], [0.278, 0.763, 0.596])
    """
    level = check_level(level, caller="proportion_interval")
    found, total = np.broadcast_arrays(np.asarray(positives, dtype=np.float64), np.asarray(n, dtype=np.float64))
    if not (np.isfinite(total) & (found >= 0) & (found <= total)).all():
        raise InputError(
            "proportion_interval needs 0 <= positives <= n, finite, for every share. "
            f"Got positives={positives!r} and n={n!r}. Hint: positives comes first."
        )
    z = NormalDist().inv_cdf((1 + level) / 2)
    has_cases = total > 0
    safe_total = np.where(has_cases, total, 1.0)
    share = found / safe_total
    centre = (found + z**2 / 2) / (total + z**2)
    half = z * np.sqrt(total * share * (1 - share) + z**2 / 4) / (total + z**2)
    # Exactly 0 and 1 at the ends, without rounding errors such as 1e-17.
    low = np.where(found == 0, 0.0, np.clip(centre - half, 0.0, share))
    high = np.where(found == total, 1.0, np.clip(centre + half, share, 1.0))
    return low, high
