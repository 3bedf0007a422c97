"""The area under the ROC curve with DeLong's variance: an interval for one score, a test of two.

Owns the structural components of the area: how each case compares with the other class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.metrics.checks import CheckedRows, check_level, check_rows, check_score, check_weight
from toprank.metrics.comparison import Comparison
from toprank.metrics.intervals import Interval

Floats = NDArray[np.float64]


def auc_interval(
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> Interval:
    """Interval of the area under the ROC curve, without resampling.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two values.
    score : array-like of shape (n,)
        Larger is more suspicious.
    level : float, default=0.95
    sample_weight : array-like of shape (n,), optional
        Copies of a row: weight 2 is the row twice.
    pos_label : optional
        The positive label; by default that of a usual pair, such as yes of yes/no, else the larger.

    Returns
    -------
    Interval
        Its value is `roc_auc`; its ends are in [0, 1].

    Notes
    -----
    The standard error is DeLong's [1]_, ties counting one half, in the time of one sort [2]_; the interval is symmetric
    on the scale of log(area / (1 - area)). The error is itself an estimate, from few cases of the rare class, so the
    quantile is that of Student's t with the degrees of freedom of Welch and Satterthwaite, not the normal one.
    With five positives or fewer the coverage is still too low: in simulations 0.88 to 0.94 for a level of 0.95.

    If the variance is zero or unknown, as for a perfect ranking, for scores that are all equal or for a single case of
    a class, the interval is that of Clopper and Pearson for a share in m independent pairs, with m the cases of the
    smaller class. That many disjoint pairs of a positive and a negative exist, and the area never varies more than
    their mean. For a perfect ranking the lower end is ((1 - level) / 2) ** (1 / m), an exact bound.

    References
    ----------
    .. [1] E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson, "Comparing the areas under two or more correlated
       receiver operating characteristic curves", Biometrics 44, 1988.
    .. [2] X. Sun, W. Xu, "Fast implementation of DeLong's algorithm", IEEE Signal Processing Letters 21, 2014.

    Examples
    --------
    >>> print(auc_interval([0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6]))
    0.8889 [0.08804, 0.9985]
    >>> print(auc_interval([0] * 30 + [1] * 30, range(60)))
    1 [0.8843, 1]
    """
    caller = "auc_interval"
    level = check_level(level, caller=caller)
    rows = check_rows(y_true, score, sample_weight=sample_weight, pos_label=pos_label, caller=caller)
    parts = components(rows)
    area, error = parts.area, parts.error
    if error > 0 and 0 < area < 1:
        from scipy.special import expit, logit, stdtrit

        half = stdtrit(parts.freedom, (1 + level) / 2) * error / (area * (1 - area))
        low, high = expit(logit(area) - half), expit(logit(area) + half)
    else:
        from scipy.special import betaincinv

        found, n, tail = area * parts.n_pairs, parts.n_pairs, (1 - level) / 2
        low = 0.0 if area == 0 else betaincinv(found, n - found + 1, tail)
        high = 1.0 if area == 1 else betaincinv(found + 1, n - found, 1 - tail)
    return Interval(area, float(min(low, area)), float(max(high, area)), level)


def delong_test(
    y_true: ArrayLike,
    score_a: ArrayLike,
    score_b: ArrayLike,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> Comparison:
    """DeLong's test of the areas under the ROC curves of two scores of the same cases.

    Parameters
    ----------
    y_true, sample_weight, pos_label
        As in `auc_interval`.
    score_a, score_b : array-like of shape (n,)
        The two scores of each case; larger is more suspicious.
    level : float, default=0.95
        Level of the interval around the difference.

    Returns
    -------
    Comparison
        The statistic is the difference of the areas over its standard error, compared with Student's t as in
        `auc_interval`. If that error is 0 or unknown, as for two perfect rankings or for a single case of a class,
        p-value and interval are those of Hoeffding's inequality for m disjoint pairs, with m the cases of the smaller
        class: valid for any scores, but wide. Two scores with the same order of cases have no difference, with
        certainty.

    References
    ----------
    E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson, Biometrics 44, 1988; W. Hoeffding, "Probability inequalities for
    sums of bounded random variables", JASA 58, 1963, section 5b.

    Examples
    --------
    >>> y, a, b = [0, 0, 0, 0, 1, 1, 1, 1], [1, 2, 3, 5, 4, 6, 7, 8], [8, 2, 5, 3, 4, 1, 6, 7]
    >>> result = delong_test(y, a, b)
    >>> round(result.difference, 3), round(result.statistic, 2), round(result.p_value, 3)
    (0.438, 1.54, 0.175)
    """
    from scipy.special import stdtr, stdtrit

    caller = "delong_test"
    level = check_level(level, caller=caller)
    first = check_rows(y_true, score_a, sample_weight=sample_weight, pos_label=pos_label, caller=caller)
    n = len(np.asarray(y_true))
    kept = check_weight(sample_weight, n, caller=caller) > 0
    second = check_score(score_b, "score_b", n, caller=caller)[kept]
    parts_a = components(first)
    parts_b = components(replace(first, score=second))
    if np.array_equal(parts_a.place, parts_b.place):
        return Comparison(0.0, 1.0, 0.0, Interval(0.0, 0.0, 0.0, level))
    gap = parts_a.minus(parts_b)
    difference = parts_a.area - parts_b.area
    if gap.error > 0:
        statistic = difference / gap.error
        p_value = 2 * float(stdtr(gap.freedom, -abs(statistic)))
        half = float(stdtrit(gap.freedom, (1 + level) / 2)) * gap.error
    else:
        statistic = 0.0 if difference == 0 else float(np.copysign(np.inf, difference))
        p_value = min(1.0, 2 * float(np.exp(-gap.n_pairs * difference**2 / 2)))
        half = float(np.sqrt(2 * np.log(2 / (1 - level)) / gap.n_pairs))
    ends = max(difference - half, -1.0), min(difference + half, 1.0)
    return Comparison(statistic, p_value, difference, Interval(difference, *ends, level))


@dataclass(frozen=True)
class Components:
    """Structural components of an area: the share of the other class that each case is ranked correctly against.

    Ties count one half. The weighted mean of the components of either class is the area, or, for the components of a
    difference, the difference.
    """

    place: NDArray[np.int64]  # (n,): rank of each case's score among the distinct scores
    of_positive: Floats
    of_negative: Floats
    positive_weight: Floats  # copies of each case
    negative_weight: Floats

    @property
    def area(self) -> float:
        """The weighted mean of the components."""
        return float(np.average(self.of_positive, weights=self.positive_weight))

    @property
    def error(self) -> float:
        """DeLong's standard error of the area; 0 if a class has too few cases."""
        return float(np.sqrt(sum(self._variances())))

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the error, by Welch and Satterthwaite; needs an error above 0."""
        variances = np.array(self._variances())
        sizes = np.array([self.positive_weight.sum(), self.negative_weight.sum()])
        return float(variances.sum() ** 2 / (variances**2 / (sizes - 1)).sum())

    def _variances(self) -> list[float]:
        """Of the mean of the components of either class; exactly 0 if they differ only by rounding."""
        variances = []
        for values, weight in (self.of_positive, self.positive_weight), (self.of_negative, self.negative_weight):
            total, deviation = weight.sum(), values - np.average(values, weights=weight)
            is_zero = self.n_pairs <= 1 or np.ptp(values) <= 1e-12
            variances.append(0.0 if is_zero else float(weight @ deviation**2 / (total - 1) / total))
        return variances

    @property
    def n_pairs(self) -> float:
        """Cases of the smaller class, counting copies: the number of disjoint pairs."""
        return float(min(self.positive_weight.sum(), self.negative_weight.sum()))

    def minus(self, other: Components) -> Components:
        """Components of the difference of two areas over the same cases."""
        of_positive, of_negative = self.of_positive - other.of_positive, self.of_negative - other.of_negative
        return replace(self, of_positive=of_positive, of_negative=of_negative)


def components(rows: CheckedRows) -> Components:
    """Structural components of the area of a score. Cost: one sort."""
    distinct, place = np.unique(rows.score, return_inverse=True)
    positive, negative = rows.positive, ~rows.positive
    n_groups = len(distinct)
    won = np.bincount(place[positive], rows.weight[positive], n_groups)
    lost = np.bincount(place[negative], rows.weight[negative], n_groups)
    # From the same sums as the total, so that a perfect ranking gives exactly 1 with any weights.
    lost_through, won_from = np.cumsum(lost), np.cumsum(won[::-1])[::-1]
    below = np.append(0.0, lost_through[:-1])
    above = np.append(won_from[1:], 0.0)
    return Components(
        place=place,
        of_positive=((below + lost_through) / 2 / lost_through[-1])[place[positive]],
        of_negative=((above + won_from) / 2 / won_from[0])[place[negative]],
        positive_weight=rows.weight[positive],
        negative_weight=rows.weight[negative],
    )
