"""`RocCurve`: a ROC curve as a piecewise linear function, and the curve of a score.

The x-axis is the false positive rate alpha, the y-axis the true positive rate beta. A tied group of rows, or a cell of
a partition, is one straight piece: the mean over all orders of its rows. Bands around a curve are in `roc_bands`, the
interval of the area is in `auc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError, InputTypeError
from toprank.metrics._ties import last_of_group
from toprank.metrics._validation import check_choice, check_rows

Floats = NDArray[np.float64]
NORMS = ("l1", "sup")


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
    def of_cells(cls, positive: ArrayLike, negative: ArrayLike) -> RocCurve:
        """Curve of a partition into cells, such as the leaves of a tree.

        Parameters
        ----------
        positive, negative : array-like of shape (n_cells,)
            Weight of each class in the cells, highest score first. Cells without weight are dropped.

        Examples
        --------
        >>> RocCurve.of_cells([3, 0, 1], [1, 0, 3]).to_dict()
        {'alpha': [0.0, 0.25, 1.0], 'beta': [0.0, 0.75, 1.0]}
        """
        cells = {"positive": _cell_weights(positive, "positive"), "negative": _cell_weights(negative, "negative")}
        if len(cells["positive"]) != len(cells["negative"]):
            raise InputError(
                "RocCurve.of_cells needs the weights of both classes in every cell. Got "
                f"{len(cells['positive']):,} positive and {len(cells['negative']):,} negative ones. "
                "Hint: a cell without cases of a class has weight 0."
            )
        kept = (cells["positive"] > 0) | (cells["negative"] > 0)
        return cls(_cumulative_shares(cells["negative"][kept]), _cumulative_shares(cells["positive"][kept]))

    def __call__(self, alpha: ArrayLike) -> Floats:
        """True positive rate at each alpha in [0, 1]; the upper end of vertical pieces."""
        return upper_value(self.alpha, self.beta, _check_positions(alpha))

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
        The positive label; the larger of the two by default.

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
    order = np.argsort(rows.score, kind="stable")[::-1]
    last = last_of_group(rows.score[order])
    weight, positive = rows.weight[order], rows.positive[order]
    # One sum per class: their difference could decrease by a rounding error.
    alpha = _cumulative_shares(np.where(positive, 0.0, weight), last)
    return RocCurve(alpha, _cumulative_shares(np.where(positive, weight, 0.0), last))


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
    array = np.array(values, dtype=np.float64)
    if array.ndim != 1 or len(array) < 2 or array[0] != 0 or array[-1] != 1 or not (np.diff(array) >= 0).all():
        raise InputError(
            f"'{name}' of RocCurve must be non-decreasing rates from 0 to 1. Got {_shown(values)} instead. "
            "Hint: use RocCurve.of_cells for weights of cells, roc_curve for scores."
        )
    array.flags.writeable = False
    return array


def _cell_weights(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not (np.isfinite(array) & (array >= 0)).all() or not array.any():
        raise InputError(
            f"'{name}' of RocCurve.of_cells must be non-negative weights of cells, not all 0. "
            f"Got {_shown(values)} instead. Hint: the curve needs cases of both classes."
        )
    return array


def _cumulative_shares(weight: Floats, last: Any = slice(None)) -> Floats:
    """0 and the share of the weight up to each of the rows `last`; the final one is exactly 1."""
    through = np.cumsum(weight)
    return np.append(0.0, through[last] / through[-1])


def _check_positions(alpha: ArrayLike) -> Floats:
    at = np.asarray(alpha, dtype=np.float64)
    if not ((at >= 0) & (at <= 1)).all():  # NaN fails here too
        raise InputError(f"A RocCurve is defined for alpha in [0, 1]. Got {_shown(alpha)} instead. Hint: 5 % is 0.05.")
    return at


def _shown(values: Any) -> str:
    text = repr(values)
    return text if len(text) <= 60 else text[:57] + "..."
