"""Tests of whether one ranking is better than another.

Which one: `paired_bootstrap_test` for two rankings of the same test cases; `corrected_resampled_t_test` for
repeated splits of one data set; `wilcoxon_test` for one figure per data set over many data sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError
from toprank.metrics.checks import check_level, is_real, mark_positives
from toprank.metrics.intervals import Interval, ResampledRows, percentile_ends
from toprank.metrics.ranking import average_precision

MAX_RESAMPLES, MIN_RESAMPLES, ROWS_RESAMPLED = 400, 100, 4_000_000
"""Bootstrap samples behind `precision_gain`: fewer for long tables, so that it takes seconds."""


@dataclass(frozen=True)
class Comparison:
    """The outcome of a paired test of a against b.

    Attributes
    ----------
    statistic : float
        Test statistic; the docstring of the test defines it.
    p_value : float
        Two-sided.
    difference : float
        a minus b: positive if a is better.
    interval : Interval or None
        Interval of the difference, if the test has one.
    """

    statistic: float
    p_value: float
    difference: float
    interval: Interval | None = None


def paired_bootstrap_test(
    metric: Callable[..., float],
    y_true: ArrayLike,
    score_a: ArrayLike,
    score_b: ArrayLike,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    stratified: bool = True,
    random_state: Any = None,
    **metric_kwargs: Any,
) -> Comparison:
    """Bootstrap test of two rankings of the same cases, both measured on every resample.

    Parameters
    ----------
    metric : callable
        Called as ``metric(y_true, score, **metric_kwargs)``; larger is better.
    y_true : array-like of shape (n,)
        Labels of two values.
    score_a, score_b : array-like of shape (n,)
        The two scores of each case; larger is more suspicious.
    level, n_resamples, stratified, random_state, **metric_kwargs
        As in `bootstrap_interval`.

    Returns
    -------
    Comparison
        With the percentile interval of the difference. The p-value is twice the smaller share of resamples
        with a difference on either side of 0, both counts raised by one so that it is never 0; it is at least
        2 / (n_resamples + 1). The statistic is the difference over its bootstrap standard error (0 if both
        are 0).

    Examples
    --------
    >>> from toprank.metrics import roc_auc
    >>> y, a, b = [0, 0, 0, 1, 1, 1], [1, 2, 3, 4, 5, 6], [6, 2, 5, 4, 1, 3]
    >>> result = paired_bootstrap_test(roc_auc, y, a, b, random_state=0)
    >>> round(result.difference, 3), result.p_value < 0.05
    (0.778, True)
    """
    caller = "paired_bootstrap_test"
    level = check_level(level, caller=caller)
    rows = ResampledRows(y_true, [score_a, score_b], metric_kwargs, caller=caller)
    value_a, value_b = rows.measure(metric, slice(None))
    drawn = rows.measure_resamples(metric, n_resamples, stratified, random_state, caller=caller)
    differences = drawn[:, 0] - drawn[:, 1]
    difference = value_a - value_b
    n_beyond = int(min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0)))
    p_value = min(1.0, 2 * (n_beyond + 1) / (len(differences) + 1))
    low, high = percentile_ends(differences, level)
    return Comparison(
        statistic=_ratio(difference, float(differences.std())),
        p_value=p_value,
        difference=difference,
        interval=Interval(difference, low, high, level),
    )


def precision_gain(
    is_positive: NDArray[np.bool_], before: ArrayLike, after: ArrayLike, sample_weight: ArrayLike | None = None
) -> Interval:
    """Average precision after - before, with its 95 % interval: a bootstrap of the cases, the same every time."""
    n_resamples = min(max(ROWS_RESAMPLED // len(is_positive), MIN_RESAMPLES), MAX_RESAMPLES)
    weights: dict[str, Any] = {} if sample_weight is None else {"sample_weight": sample_weight}
    test = paired_bootstrap_test(
        average_precision, is_positive, after, before, n_resamples=n_resamples, random_state=0, **weights
    )
    assert test.interval is not None
    return test.interval


@dataclass(frozen=True, eq=False)
class BeforeAfter:
    """Two scores of the same cases with known outcomes: what a change gains or costs.

    Attributes
    ----------
    before, after : float
        Average precision of both scores.
    difference : tuple of three floats
        after - before, and both ends of its 95 % interval: a bootstrap of the cases, the same for both scores.
    k : int
        Number of cases that can be checked.
    hits_before, hits_after : int
        Positives among the k cases with the highest scores; ties are broken by row order.

    Examples
    --------
    >>> y, old, new = [0, 1, 0, 0, 1, 0], [6, 5, 4, 3, 2, 1], [2, 6, 4, 3, 5, 1]
    >>> print(BeforeAfter.from_scores(y, old, new, k=2))
    average precision 0.450 before, 1.000 after: +0.550 (+0.000 to +0.667)
    hits in the top 2 cases: 1 before, 2 after
    """

    before: float
    after: float
    difference: tuple[float, float, float]
    k: int
    hits_before: int
    hits_after: int

    @classmethod
    def from_scores(cls, y_true: ArrayLike, before: ArrayLike, after: ArrayLike, k: int) -> BeforeAfter:
        """Compare two scores of the same cases; the interval is the same every time."""
        is_positive = mark_positives(y_true, caller="BeforeAfter.from_scores")
        old, new = np.asarray(before, np.float64), np.asarray(after, np.float64)
        gain = precision_gain(is_positive, old, new)
        hits = [int(is_positive[np.argsort(-score, kind="stable")[:k]].sum()) for score in (old, new)]
        return cls(
            before=average_precision(is_positive, old),
            after=average_precision(is_positive, new),
            difference=(gain.value, gain.low, gain.high),
            k=k,
            hits_before=hits[0],
            hits_after=hits[1],
        )

    @property
    def verdict(self) -> str:
        """What the interval says: "better", "worse", "no difference" or, if it includes 0, "no clear difference"."""
        value, low, high = self.difference
        if value == low == high == 0:
            return "no difference"
        return "better" if low > 0 else "worse" if high < 0 else "no clear difference"

    @property
    def precision_text(self) -> str:
        """Both average precisions and their difference with its interval, in words."""
        value, low, high = self.difference
        return f"{self.before:.3f} before, {self.after:.3f} after: {value:+.3f} ({low:+.3f} to {high:+.3f})"

    def __str__(self) -> str:
        first = "top case" if self.k == 1 else f"top {self.k:,} cases"
        return (
            f"average precision {self.precision_text}\n"
            f"hits in the {first}: {self.hits_before:,} before, {self.hits_after:,} after"
        )


def wilcoxon_test(values_a: ArrayLike, values_b: ArrayLike) -> Comparison:
    """Wilcoxon's signed-rank test over data sets, one pair of figures per data set.

    Parameters
    ----------
    values_a, values_b : array-like of shape (n_datasets,)
        The figure of either method on every data set, such as its mean average precision.

    Returns
    -------
    Comparison
        The statistic is the smaller of the two rank sums, the difference the mean of a - b. Data sets without
        a difference are left out of the ranks; if there is no difference at all, the p-value is 1.

    References
    ----------
    J. Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006, section 3.1.3.

    Examples
    --------
    >>> result = wilcoxon_test([0.8, 0.7, 0.9, 0.6, 0.5, 0.4], [0.7, 0.5, 0.6, 0.2, 0.0, -0.2])
    >>> result.statistic, result.p_value, round(result.difference, 2)
    (0.0, 0.03125, 0.35)
    """
    caller = "wilcoxon_test"
    first, second = _figures(values_a, "values_a", caller), _figures(values_b, "values_b", caller)
    if len(first) != len(second):
        raise InputError(
            f"{caller} needs as many values_a as values_b, one pair per data set. Got {len(first):,} and "
            f"{len(second):,}. Hint: leave out data sets that one method did not finish."
        )
    differences = first - second
    if not differences.any():
        return Comparison(statistic=0.0, p_value=1.0, difference=0.0)
    from scipy.stats import wilcoxon  # takes half a second to import

    outcome = wilcoxon(differences[differences != 0])
    return Comparison(float(outcome.statistic), float(outcome.pvalue), float(differences.mean()))


def corrected_resampled_t_test(
    differences: ArrayLike, n_train: float, n_test: float, *, level: float = 0.95
) -> Comparison:
    """Corrected t-test over repeated splits of one data set, whose training sets overlap.

    The plain t-test treats the splits as independent and finds differences that do not exist. Nadeau and
    Bengio replace the variance factor 1 / J by 1 / J + n_test / n_train.

    Parameters
    ----------
    differences : array-like of shape (J,)
        a minus b on every split; at least two splits.
    n_train, n_test : float
        Number of training and test cases of a split; only their ratio matters.
    level : float, default=0.95
        Level of the interval around the mean difference.

    Returns
    -------
    Comparison
        The statistic is Student's t with J - 1 degrees of freedom, the difference the mean. If all
        differences are equal the p-value is 1 if they are 0, and 0 otherwise.

    References
    ----------
    C. Nadeau, Y. Bengio, "Inference for the generalization error", Machine Learning 52, 2003.

    Examples
    --------
    >>> result = corrected_resampled_t_test([0.02, 0.01, 0.03, 0.02], n_train=700, n_test=300)
    >>> round(result.statistic, 3), round(result.p_value, 3)
    (2.974, 0.059)
    """
    from scipy.special import stdtr, stdtrit  # scipy.stats takes far longer to import

    caller = "corrected_resampled_t_test"
    level = check_level(level, caller=caller)
    values = _figures(differences, "differences", caller, at_least=2)
    ratio = _size(n_test, "n_test", caller) / _size(n_train, "n_train", caller)
    mean, freedom = float(values.mean()), len(values) - 1
    variance = 0.0 if np.ptp(values) == 0 else float(values.var(ddof=1))
    error = float(np.sqrt((1 / len(values) + ratio) * variance))
    statistic = _ratio(mean, error)
    half = float(stdtrit(freedom, (1 + level) / 2)) * error
    return Comparison(
        statistic=statistic,
        p_value=float(2 * stdtr(freedom, -abs(statistic))),
        difference=mean,
        interval=Interval(mean, mean - half, mean + half, level),
    )


def _ratio(difference: float, error: float) -> float:
    """Difference over error; 0 without a difference, infinite without an error."""
    if difference == 0:
        return 0.0
    return difference / error if error > 0 else float(np.copysign(np.inf, difference))


def _figures(values: ArrayLike, name: str, caller: str, at_least: int = 1) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) < at_least or not np.isfinite(array).all():
        raise InputError(
            f"'{name}' of {caller} must be a list of at least {at_least} finite numbers. Got {values!r} "
            f"instead. Hint: leave out failed runs."
        )
    return array


def _size(value: Any, name: str, caller: str) -> float:
    if not is_real(value) or not 0 < value < np.inf:
        raise InputError(
            f"The '{name}' parameter of {caller} must be a number in the range (0, inf). Got {value!r} instead."
        )
    return float(value)


def holm(p_values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """p-values adjusted for their number by Holm's step-down procedure, in the order given.

    Demšar 2006, section 3.2.2 (Holm 1979): the i-th smallest of m times m - i + 1, non-decreasing, at most 1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)), 1.0)
    return adjusted
