"""Scores on the scale of log-odds: a curve learned from held-out cases, and the logistic regression behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toprank.errors import InputError
from toprank.metrics.hit_rates import fit_hit_rates

LEAST_SLOPE = 1e-3
"""Least weight of log(place) in the log-odds: a better place in the list always counts, so that scores do not tie."""

LARGEST = 1e300
"""Bound inside the logarithm beyond the known scores."""


@dataclass(frozen=True, eq=False)
class LogOddsMap:
    """Log-odds of a positive by score: strictly increasing, linear between the knots.

    Beyond the known scores it goes on with the slope at the end, which then falls off, as a logarithm: far outside
    nothing is known, but a higher score is still higher.
    """

    score: np.ndarray  # float64 (m,), increasing
    log_odds: np.ndarray  # float64 (m,), increasing

    def at(self, score: np.ndarray) -> np.ndarray:
        """Log-odds at these scores, float64; those of a score do not depend on the others.

        Examples
        --------
        >>> import numpy as np
        >>> from toprank.rankers.log_odds import LogOddsMap
        >>> LogOddsMap(np.array([0.0, 1.0]), np.array([-2.0, 2.0])).at(np.array([0.25, 1.0, 1.5])).round(3).tolist()
        [-1.0, 2.0, 3.099]
        """
        with np.errstate(over="ignore"):  # scores may be as large as floats are
            if len(self.score) == 1:
                return self.log_odds[0] + _flattened(score - self.score[0])
            # Halves of large scores do not overflow when they are subtracted.
            unit = 0.5 if max(abs(self.score[0]), abs(self.score[-1])) > LARGEST else 1.0
            knots, score = self.score * unit, score * unit
            low = np.clip(np.searchsorted(knots, score, side="right") - 1, 0, len(knots) - 2)
            share = (score - knots[low]) / (knots[low + 1] - knots[low])
        start, end = self.log_odds[low], self.log_odds[low + 1]
        inside = start + (end - start) * np.clip(share, 0.0, 1.0)
        beyond = np.clip(np.where(share > 1.0, share - 1.0, np.minimum(share, 0.0)), -LARGEST, LARGEST)
        return inside + _flattened((end - start) * beyond)

    def check(self) -> LogOddsMap:
        """Return the map; raise InputError if it is not strictly increasing or not finite."""
        parts = (self.score, self.log_odds)
        is_sound = all(part.dtype == np.float64 and part.ndim == 1 and np.isfinite(part).all() for part in parts)
        if not is_sound or not len(self.score) == len(self.log_odds) > 0:
            raise InputError("The maps of its members do not have a log-odds for every score.")
        if not all(np.all(np.diff(part) > 0) for part in parts):
            raise InputError("The maps of its members do not increase.")
        return self


def _flattened(rise: np.ndarray) -> np.ndarray:
    """Rises that grow as logarithms, with slope 1 at 0."""
    return np.sign(rise) * np.log1p(np.minimum(np.abs(rise), LARGEST))


def fit_log_odds_map(score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> LogOddsMap:
    """Log-odds by score, from held-out cases of both classes, with weights above 0.

    The mean of two curves: the log-odds of the hit rates (`fit_hit_rates`: bins shrunk towards a smooth curve, flat in
    places), and c - a log(place) + b log(1 - place), which rises everywhere.
    """
    distinct, which = np.unique(score, return_inverse=True)
    total, positive = np.bincount(which, weight), np.bincount(which, weight * is_positive)
    merged = distinct.repeat(2), np.tile([False, True], len(distinct)), np.column_stack((total - positive, positive))
    score, is_positive, weight = (part.reshape(-1)[merged[2].reshape(-1) > 0] for part in merged)
    rates = fit_hit_rates(score, is_positive, weight, None, distinct, "held out", knot_weight=total)
    n = total.sum()
    place = (np.cumsum(total[::-1])[::-1] - total / 2) / n
    features = np.column_stack((-np.log(place), np.log1p(-np.minimum(place, 1.0 - 1e-9))))
    lowest = np.array([LEAST_SLOPE, 0.0])
    slopes, constant = fit_logistic(features, positive, total, lowest, pull=1e-3, towards=lowest)
    smooth = np.interp(rates.score, distinct, add_up(features, slopes) + constant)
    least = 0.5 / max(n, len(which))  # half a case; weights below 1 may add up to less than that
    rate = np.clip(rates.rate, least, 1.0 - least)
    value = (np.log(rate / (1.0 - rate)) + smooth) / 2
    rises = np.append(True, np.diff(np.maximum.accumulate(value)) > 0)  # but for the last bit
    return with_gentle_ends(LogOddsMap(rates.score[rises], value[rises]))


def with_gentle_ends(found: LogOddsMap) -> LogOddsMap:
    """The same map, which goes on beyond an end with no more than the slope over the last tenth of the scores.

    Two knots may be as close as floats are, so that the slope between them says nothing. Where it is too steep, a knot
    is added a tenth of the scores beyond the end; old files keep their scores.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.rankers.log_odds import LogOddsMap, with_gentle_ends
    >>> found = with_gentle_ends(LogOddsMap(np.array([0.0, 1.0 - 1e-12, 1.0]), np.array([-4.0, 0.0, 0.5])))
    >>> found.score.round(3).tolist(), found.log_odds.round(3).tolist()
    ([0.0, 1.0, 1.0, 1.1], [-4.0, 0.0, 0.5, 1.4])
    """
    if len(found.score) < 3:
        return found
    ends = []
    for side in (-1.0, 1.0):  # the map turned round has its first end last
        score, value = (side * part[:: int(side)] for part in (found.score, found.log_odds))
        tenth = score[-1] / 10.0 - score[0] / 10.0
        rise = value[-1] - np.interp(score[-1] - tenth, score, value)
        new = np.array([[score[-1] + tenth], [value[-1] + rise]])
        is_steep = score[-1] - score[-2] < tenth and value[-1] - value[-2] > (score[-1] - score[-2]) / tenth * rise
        is_new = np.isfinite(new).all() and new[0, 0] > score[-1] and new[1, 0] > value[-1]
        ends.append(side * new if is_steep and is_new else np.zeros((2, 0)))
    score, value = np.concatenate((ends[0], np.array([found.score, found.log_odds]), ends[1]), axis=1)
    return LogOddsMap(score, value)


def fit_logistic(
    features: np.ndarray,
    positive: np.ndarray,
    total: np.ndarray,
    lowest: np.ndarray,
    pull: float,
    towards: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Coefficients, bounded below, and intercept of a logistic regression with a ridge penalty.

    Minimises sum(total log(1 + exp(t)) - positive t) + pull / 2 |b - towards|^2 over b >= lowest and c, where
    t = features b + c; `positive` and `total` are the weights of the positives and of all cases with these features.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    n, m = float(total.sum()), features.shape[1]

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        slopes, away = parameters[:m], parameters[:m] - towards
        t = add_up(features, slopes) + parameters[m]
        excess = total * expit(t) - positive
        value = np.sum(total * np.logaddexp(0.0, t) - positive * t) + pull / 2 * np.sum(away**2)
        slope = np.append([np.sum(excess * column) for column in features.T] + pull * away, excess.sum())
        return value / n, slope / n

    rate = positive.sum() / n
    start = np.append(np.maximum(towards, lowest), np.log(rate / (1.0 - rate)))
    bounds = [*((low, None) for low in lowest), (None, None)]
    # Members are alike, so the loss is flat: the usual tolerance ends far from the optimum.
    options = {"ftol": 1e-14, "gtol": 1e-9, "maxiter": 1000}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return found.x[:m], float(found.x[m])


def add_up(features: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """`features @ slopes`, added up in the order of the columns: the same for a row alone and in a batch."""
    total = np.zeros(len(features))
    for slope, column in zip(slopes, features.T, strict=True):
        total += slope * column
    return total
