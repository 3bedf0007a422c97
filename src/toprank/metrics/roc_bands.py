"""`roc_band`: a band around the ROC curve of a score, for one false positive rate or for all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError
from toprank.metrics._validation import CheckedRows, check_choice, check_count, check_level, check_rows, is_int
from toprank.metrics.intervals import proportion_interval
from toprank.metrics.roc import Floats, RocCurve, lower_value, roc_curve, upper_value
from toprank.words.counts import plural

METHODS = ("bootstrap", "dkw")


@dataclass(frozen=True, eq=False)
class RocBand:
    """A band around a ROC curve.

    Attributes
    ----------
    alpha : ndarray of shape (n_points,)
        False positive rates, increasing.
    value, low, high : ndarray of shape (n_points,)
        True positive rates there: of the curve on the original data, and the ends of the band. All are non-decreasing.
    level : float
        The confidence level, 0.95 for 95 %.
    method : str
        "bootstrap" or "dkw".
    is_simultaneous : bool
        True if the level is the probability that the whole curve is inside, False if it is that of each point.
    """

    alpha: Any
    value: Any
    low: Any
    high: Any
    level: float
    method: str
    is_simultaneous: bool

    def __post_init__(self) -> None:
        for name in ("alpha", "value", "low", "high"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def contains(self, curve: RocCurve) -> bool:
        """Whether a curve is inside the band at all of its points."""
        beta = curve(self.alpha)
        slack = 1e-12  # for rounding
        return bool(((self.low - slack <= beta) & (beta <= self.high + slack)).all())

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        arrays = {name: getattr(self, name).tolist() for name in ("alpha", "value", "low", "high")}
        return arrays | {"level": self.level, "method": self.method, "is_simultaneous": self.is_simultaneous}

    def __repr__(self) -> str:
        of = "the whole curve" if self.is_simultaneous else "each point"
        return f"<RocBand at {plural(len(self.alpha), 'point')}, {self.method}, {100 * self.level:.4g} % for {of}>"


def roc_band(
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    level: float = 0.95,
    method: str = "bootstrap",
    simultaneous: bool = True,
    n_resamples: int = 1000,
    grid: int | ArrayLike = 101,
    pos_label: Any = None,
    random_state: Any = None,
) -> RocBand:
    r"""Band around the ROC curve of a score: where the true curve of the population is.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two values.
    score : array-like of shape (n,)
        Larger is more suspicious.
    level : float, default=0.95
    method : {"bootstrap", "dkw"}
        "dkw" makes no assumptions and is valid for any number of cases, but wide. "bootstrap" is narrower and valid for
        many cases.
    simultaneous : bool, default=True
        Whether the band holds for the whole curve, or for each point separately. "dkw" supports only the former.
    n_resamples : int, default=1000
        Number of bootstrap resamples.
    grid : int or array-like, default=101
        The number of false positive rates, evenly spaced over [0, 1], or the rates themselves.
    pos_label : optional
        The positive label; the larger of the two by default.
    random_state : int, numpy.random.Generator or None
        An int gives the same bootstrap every time.

    Returns
    -------
    RocBand

    Notes
    -----
    "dkw": with probability `level` both class-conditional distributions of the score are within
    :math:`\epsilon = \sqrt{\log(2 / (1 - \sqrt{level})) / 2 n}` of the empirical ones, n the cases of the class
    (Dvoretzky, Kiefer and Wolfowitz with Massart's constant [1]_). Then the curve at alpha is between
    :math:`\hat\beta(\alpha - \epsilon_-) - \epsilon_+` and :math:`\hat\beta(\alpha + \epsilon_-) + \epsilon_+`.

    "bootstrap": positives are drawn from positives and negatives from negatives. Pointwise, the ends are percentiles
    of the drawn curves. Simultaneous, the band is c standard errors wide on either side, c the quantile of the largest
    studentised deviation of a drawn curve, all on the scale of arcsin(sqrt(beta)), where the error of a share does not
    depend on the share [2]_. Where the curve is flat, all drawn curves are equal and would leave no band, so a true
    positive rate is never treated as known better than with a fixed threshold. And where alpha is so small that by
    chance no negative may be above its threshold, the lower end is 0.

    References
    ----------
    .. [1] P. Massart, "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality", Annals of Probability 18,
       1990.
    .. [2] F. J. Anscombe, "The transformation of Poisson, binomial and negative-binomial data", Biometrika 35, 1948.

    Examples
    --------
    >>> y, score = [0, 0, 1, 0, 1, 1] * 20, [1, 2, 3, 4, 5, 6] * 20
    >>> band = roc_band(y, score, grid=[0, 0.5, 1], random_state=0)
    >>> band.value.round(2).tolist(), band.is_simultaneous
    ([0.67, 1.0, 1.0], True)
    >>> bool((band.low <= band.value).all() and (band.value <= band.high).all())
    True
    """
    caller = "roc_band"
    check_choice(method, "method", METHODS, caller=caller)
    level = check_level(level, caller=caller)
    alpha = _check_grid(grid, caller)
    if method == "dkw" and not simultaneous:
        raise InputError(
            f"The 'simultaneous' parameter of {caller} must be True with method='dkw', whose band holds for the whole "
            "curve. Hint: method='bootstrap' also offers a pointwise band."
        )
    rows = check_rows(y_true, score, pos_label=pos_label, caller=caller)
    curve = roc_curve(rows.positive, rows.score)
    n_positive = int(rows.total_positive)
    n_negative = len(rows.positive) - n_positive
    if method == "dkw":
        low, high = _dkw(curve, alpha, level, n_positive, n_negative)
    else:
        n_resamples = check_count(n_resamples, "n_resamples", caller=caller, low=2)
        drawn = _drawn_curves(rows, alpha, n_resamples, np.random.default_rng(random_state))
        ends = _simultaneous_ends if simultaneous else _pointwise_ends
        low, high = ends(curve(alpha), drawn, level, n_positive)
        low, high = _open_ends(alpha, low, high, level, n_negative)
    return RocBand(alpha, curve(alpha), low, high, level, method, bool(simultaneous))


def _dkw(curve: RocCurve, alpha: Floats, level: float, n_positive: int, n_negative: int) -> tuple[Floats, Floats]:
    """Ends of the distribution-free band.

    Proof of coverage. A point of the true curve is (H(t), G(t)), the probabilities of a negative and a positive above
    t, or for tied scores a mixture of (H(t), G(t)) and (H(t-), G(t-)); the same t and mixture give a point (h, g) of
    the empirical curve. If both distributions are within epsilon, |h - H| <= eps_neg and |g - G| <= eps_pos, also
    of mixtures. The empirical curve is non-decreasing, so g is at most its upper end at h, hence at H + eps_neg, and at
    least its lower end at H - eps_neg: the outer end of a vertical piece on either side.
    """
    # The samples of the two classes are independent: each bound holds with sqrt(level), both with level.
    tail = np.log(2 / (1 - np.sqrt(level))) / 2
    eps_positive, eps_negative = np.sqrt(tail / n_positive), np.sqrt(tail / n_negative)
    left, right = np.maximum(alpha - eps_negative, 0.0), np.minimum(alpha + eps_negative, 1.0)
    low = lower_value(curve.alpha, curve.beta, left) - eps_positive
    high = upper_value(curve.alpha, curve.beta, right) + eps_positive
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _drawn_curves(
    rows: CheckedRows, alpha: Floats, n_resamples: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Heights at alpha of the curves of stratified resamples, shape (n_resamples, n_points)."""
    distinct, group = np.unique(rows.score, return_inverse=True)
    group = len(distinct) - 1 - group  # the highest score first
    strata = [group[~rows.positive], group[rows.positive]]
    drawn = np.empty((n_resamples, len(alpha)))
    for row in range(n_resamples):
        knots = [_drawn_shares(groups, len(distinct), generator) for groups in strata]
        drawn[row] = upper_value(knots[0], knots[1], alpha)
    return drawn


def _drawn_shares(groups: NDArray[np.intp], n_groups: int, generator: np.random.Generator) -> Floats:
    """Share of a class down to each group of equal scores in a bootstrap sample of its cases."""
    counts = np.bincount(groups[generator.integers(0, len(groups), len(groups))], minlength=n_groups)
    shares = np.zeros(n_groups + 1)
    np.cumsum(counts, out=shares[1:])
    return shares / len(groups)


def _pointwise_ends(value: Floats, drawn: Floats, level: float, n_positive: int) -> tuple[Floats, Floats]:
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    share_low, share_high = proportion_interval(value * n_positive, n_positive, level)
    return np.minimum(low, share_low), np.maximum(high, share_high)


def _simultaneous_ends(value: Floats, drawn: Floats, level: float, n_positive: int) -> tuple[Floats, Floats]:
    centre, moved = _stabilised(value, n_positive), _stabilised(drawn, n_positive)
    error = np.maximum(moved.std(axis=0), 1 / (2 * np.sqrt(n_positive)))
    largest = np.sort((np.abs(moved - centre) / error).max(axis=1))
    # The data count as one more draw: of these n + 1 the band leaves out a share of at most 1 - level.
    half = largest[min(int(np.ceil((len(largest) + 1) * level)), len(largest)) - 1] * error
    low, high = _destabilised(centre - half, n_positive), _destabilised(centre + half, n_positive)
    return np.minimum(low, value), np.maximum(high, value)


def _stabilised(share: Floats, n: int) -> Floats:
    """A share of n on a scale where its standard error is 1 / (2 sqrt(n)), whatever the share."""
    return np.arcsin(np.sqrt((share * n + 3 / 8) / (n + 3 / 4)))


def _destabilised(angle: Floats, n: int) -> Floats:
    """Inverse of `_stabilised`: the share, in [0, 1], of an angle."""
    share = np.sin(np.clip(angle, 0.0, np.pi / 2)) ** 2
    return np.clip((share * (n + 3 / 4) - 3 / 8) / n, 0.0, 1.0)


def _open_ends(alpha: Floats, low: Floats, high: Floats, level: float, n_negative: int) -> tuple[Floats, Floats]:
    """Widen the band where the data say nothing; both ends are non-decreasing.

    A resample never has a negative above the highest one in the data, so it cannot show how far up negatives go. All n
    of them are below the threshold of alpha with probability (1 - alpha)^n. While that is likely, the data give no
    lower bound of the curve there, and likewise no upper bound at 1 - alpha.
    """
    unseen = 1 - ((1 - level) / 2) ** (1 / n_negative)
    low = np.where(alpha < unseen, 0.0, low)
    high = np.where(alpha > 1 - unseen, 1.0, high)
    # The true curve is non-decreasing: a lower bound at one alpha also holds further right.
    return np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]


def _check_grid(grid: Any, caller: str) -> Floats:
    if is_int(grid):
        return np.linspace(0.0, 1.0, check_count(grid, "grid", caller=caller, low=2))
    alpha = np.asarray(grid, dtype=np.float64)
    inside = alpha.ndim == 1 and len(alpha) > 0 and bool(((alpha >= 0) & (alpha <= 1)).all())
    if not inside or not (np.diff(alpha) > 0).all():
        raise InputError(
            f"The 'grid' parameter of {caller} must be a number of points, or increasing false positive rates within "
            f"[0, 1]. Got {grid!r} instead. Hint: 5 % is 0.05."
        )
    return alpha
