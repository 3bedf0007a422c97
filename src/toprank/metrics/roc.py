"""`RocCurve`: a ROC curve as a piecewise linear function, the curve of a score, and bands around it.

The x-axis is the false positive rate alpha, the y-axis the true positive rate beta. A tied group of rows, or a cell of
a partition, is one straight piece: the mean over all orders of its rows. The interval of the
area is in `auc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError, InputTypeError
from toprank.metrics.checks import (
    CheckedRows,
    check_choice,
    check_count,
    check_level,
    check_rows,
    is_int,
    read_only,
    shown,
)
from toprank.metrics.intervals import proportion_interval
from toprank.metrics.ties import class_sums
from toprank.words.counts import plural

Floats = NDArray[np.float64]
NORMS = ("l1", "sup")
METHODS = ("bootstrap", "dkw")


@dataclass(frozen=True, eq=False)
class RocCurve:
    """A ROC curve: straight lines between knots, from (0, 0) to (1, 1).

    Parameters
    ----------
    alpha, beta : array-like of shape (n_knots,)
        False and true positive rates of the knots, both non-decreasing. Knots may repeat an alpha (a vertical piece), a
        beta (a horizontal one) or both (an empty cell).

    References
    ----------
    S. Clémençon, N. Vayatis, "Tree-based ranking methods", IEEE Transactions on Information Theory 55, 2009,
    section IV-A, step 3 of the algorithm.

    Examples
    --------
    >>> curve = RocCurve([0, 0.1, 0.4, 1], [0, 0.6, 0.8, 1])
    >>> curve.area, curve.is_concave(), float(curve(0.25))
    (0.78, True, 0.7)
    """

    alpha: Any
    beta: Any

    def __post_init__(self) -> None:
        for name in ("alpha", "beta"):
            object.__setattr__(self, name, _rates(getattr(self, name), name))
        if len(self.alpha) != len(self.beta):
            raise InputError(
                f"RocCurve needs as many values of alpha as of beta, one pair per knot. Got {len(self.alpha):,} and "
                f"{len(self.beta):,}. Hint: both start with 0 and end with 1."
            )

    @classmethod
    def from_cells(cls, positive: ArrayLike, negative: ArrayLike) -> RocCurve:
        """Curve of a partition into cells, such as the leaves of a tree.

        Parameters
        ----------
        positive, negative : array-like of shape (n_cells,)
            Weight of each class in the cells, highest score first. Cells without weight are dropped.

        Examples
        --------
        >>> RocCurve.from_cells([3, 0, 1], [1, 0, 3]).to_dict()
        {'alpha': [0.0, 0.25, 1.0], 'beta': [0.0, 0.75, 1.0]}
        """
        cells = {"positive": _cell_weights(positive, "positive"), "negative": _cell_weights(negative, "negative")}
        if len(cells["positive"]) != len(cells["negative"]):
            raise InputError(
                "RocCurve.from_cells needs the weights of both classes in every cell. Got "
                f"{len(cells['positive']):,} positive and {len(cells['negative']):,} negative ones. "
                "Hint: a cell without cases of a class has weight 0."
            )
        kept = (cells["positive"] > 0) | (cells["negative"] > 0)
        through = [np.cumsum(cells[name][kept]) for name in ("negative", "positive")]
        return cls(*(np.append(0.0, each / each[-1]) for each in through))

    def __call__(self, alpha: ArrayLike) -> Floats:
        """True positive rate at each alpha in [0, 1]; the upper end of vertical pieces."""
        at = np.asarray(alpha, dtype=np.float64)
        if not ((at >= 0) & (at <= 1)).all():  # NaN fails here too
            raise InputError(
                f"A RocCurve is defined for alpha in [0, 1]. Got {shown(alpha)} instead. Hint: 5 % is 0.05."
            )
        return upper_value(self.alpha, self.beta, at)

    @property
    def area(self) -> float:
        """Area under the curve, by trapezoids: ties count one half.

        The paper's sum of (alpha_{k+1} - alpha_{k-1}) beta_k / 2 over the inner knots stops one term early: the last
        knot, beta = 1, adds (1 - alpha of the knot before it) / 2.
        """
        gaps = np.diff(self.alpha)
        # Each knot has half of the gaps on both sides; the first has beta = 0.
        spans = gaps + np.append(gaps[1:], 0.0)
        return float(np.clip(spans @ self.beta[1:] / 2, 0.0, 1.0))

    def is_concave(self, tolerance: float = 1e-12) -> bool:
        """Whether the slope never increases from one piece to the next.

        `tolerance` is the largest cross product of two neighbouring pieces that counts as zero: vertical pieces have no
        slope to compare.
        """
        run, rise = self._pieces()
        return bool((run[:-1] * rise[1:] - rise[:-1] * run[1:] <= tolerance).all())

    def hull(self) -> RocCurve:
        """The least concave majorant of this curve; its knots are knots of this one.

        Examples
        --------
        >>> RocCurve([0, 0.2, 0.5, 1], [0, 0.6, 0.6, 1]).hull().to_dict()
        {'alpha': [0.0, 0.2, 1.0], 'beta': [0.0, 0.6, 1.0]}
        """
        from scipy.optimize import isotonic_regression  # slow to import

        run, rise = self._pieces()
        # Sheared to (alpha + beta, beta), the curve has slopes in [0, 1] and the same hull; pooling neighbours with
        # increasing slopes yields it in linear time.
        blocks = isotonic_regression(rise / (run + rise), weights=run + rise, increasing=False).blocks
        moved = np.append(True, (np.diff(self.alpha) > 0) | (np.diff(self.beta) > 0))
        return RocCurve(self.alpha[moved][blocks], self.beta[moved][blocks])

    def distance(self, other: RocCurve, norm: str = "l1") -> float:
        """Exact distance of two curves.

        Parameters
        ----------
        other : RocCurve
        norm : {"l1", "sup"}
            The area between the curves, or the largest vertical gap. For a curve nowhere above the optimal one, the
            area is the loss of AUC.

        Examples
        --------
        >>> chance, perfect = RocCurve([0, 1], [0, 1]), RocCurve([0, 0, 1], [0, 1, 1])
        >>> chance.distance(perfect), chance.distance(perfect, norm="sup")
        (0.5, 1.0)
        """
        check_choice(norm, "norm", NORMS, caller="RocCurve.distance")
        if not isinstance(other, RocCurve):
            raise InputTypeError(f"RocCurve.distance needs another RocCurve. Got {type(other).__name__} instead.")
        grid = np.union1d(self.alpha, other.alpha)
        # Between two adjacent knots of either curve both are straight: from the upper end on the left to the lower end
        # on the right.
        start = (self(grid) - other(grid))[:-1]
        stop = (lower_value(self.alpha, self.beta, grid) - lower_value(other.alpha, other.beta, grid))[1:]
        if norm == "sup":
            return float(max(np.abs(start).max(), np.abs(stop).max()))
        size = np.abs(start) + np.abs(stop)
        crosses = start * stop < 0
        # Two triangles if the difference changes sign, else a trapezoid.
        mean = np.where(crosses, (start**2 + stop**2) / np.where(crosses, size, 1.0), size) / 2
        return float(mean @ np.diff(grid))

    def to_dict(self) -> dict[str, list[float]]:
        """The knots as plain lists, by the name of the axis; ``RocCurve(**knots)`` restores the curve."""
        return {"alpha": self.alpha.tolist(), "beta": self.beta.tolist()}

    def _pieces(self) -> tuple[Floats, Floats]:
        """Width and height of the pieces of the curve, without empty ones."""
        run, rise = np.diff(self.alpha), np.diff(self.beta)
        moves = (run > 0) | (rise > 0)
        return run[moves], rise[moves]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RocCurve):
            return NotImplemented
        return np.array_equal(self.alpha, other.alpha) and np.array_equal(self.beta, other.beta)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<RocCurve of {len(self.alpha):,} knots, area {self.area:.4g}>"


def roc_curve(
    y_true: ArrayLike, score: ArrayLike, *, sample_weight: ArrayLike | None = None, pos_label: Any = None
) -> RocCurve:
    """ROC curve of a score; rows with equal scores form one straight piece.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two values.
    score : array-like of shape (n,)
        Larger is more suspicious.
    sample_weight : array-like of shape (n,), optional
    pos_label : optional
        The positive label; by default that of a usual pair, such as yes of yes/no, else the larger.

    Returns
    -------
    RocCurve
        With the knots of ``sklearn.metrics.roc_curve(..., drop_intermediate=False)``; its area is `roc_auc`.

    Examples
    --------
    >>> curve = roc_curve([1, 0, 0, 1], [0.9, 0.5, 0.4, 0.5])
    >>> curve.to_dict(), curve.area
    ({'alpha': [0.0, 0.0, 0.5, 1.0], 'beta': [0.0, 0.5, 1.0, 1.0]}, 0.875)
    """
    rows = check_rows(y_true, score, sample_weight=sample_weight, pos_label=pos_label, caller="roc_curve")
    return RocCurve(*(np.append(0.0, through / through[-1]) for through in class_sums(rows)))


def upper_value(alpha: Floats, beta: Floats, at: Floats) -> Floats:
    """Height of a piecewise linear curve at each place in [0, 1]; the upper end of vertical pieces."""
    left = np.searchsorted(alpha, at, side="right") - 1  # the last knot not to the right
    right = np.minimum(left + 1, len(alpha) - 1)
    return _between(alpha, beta, left, right, at)


def lower_value(alpha: Floats, beta: Floats, at: Floats) -> Floats:
    """Height of a piecewise linear curve at each place in [0, 1]; the lower end of vertical pieces."""
    right = np.searchsorted(alpha, at, side="left")  # the first knot not to the left
    left = np.maximum(right - 1, 0)
    return _between(alpha, beta, left, right, at)


def _between(alpha: Floats, beta: Floats, left: Any, right: Any, at: Floats) -> Floats:
    run, start = alpha[right] - alpha[left], beta[left]
    # A share of 0 keeps the left knot; with zero width both knots are the same.
    share = np.divide(at - alpha[left], run, out=np.zeros_like(at), where=run > 0)
    return np.minimum(start + share * (beta[right] - start), beta[right])  # guards against rounding


def _rates(values: Any, name: str) -> Floats:
    """A read-only copy of non-decreasing rates from 0 to 1."""
    array = read_only(values)
    if array.ndim != 1 or len(array) < 2 or array[0] != 0 or array[-1] != 1 or not (np.diff(array) >= 0).all():
        raise InputError(
            f"'{name}' of RocCurve must be non-decreasing rates from 0 to 1. Got {shown(values)} instead. "
            "Hint: use RocCurve.from_cells for weights of cells, roc_curve for scores."
        )
    return array


def _cell_weights(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not (np.isfinite(array) & (array >= 0)).all() or not array.any():
        raise InputError(
            f"'{name}' of RocCurve.from_cells must be non-negative weights of cells, not all 0. "
            f"Got {shown(values)} instead. Hint: the curve needs cases of both classes."
        )
    return array


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
            object.__setattr__(self, name, read_only(getattr(self, name)))

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
    y_true, score, pos_label
        As in `roc_curve`.
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
        shares = np.zeros((2, len(distinct) + 1))  # of a class down to each group of equal scores
        for groups, share in zip(strata, shares, strict=True):
            chosen = groups[generator.integers(0, len(groups), len(groups))]
            share[1:] = np.cumsum(np.bincount(chosen, minlength=len(distinct))) / len(groups)
        drawn[row] = upper_value(shares[0], shares[1], alpha)
    return drawn


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
