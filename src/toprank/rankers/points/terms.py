"""`Term`: what one column may add to a score: straight lines between knots, steps at them, a level per category.

A term has more coefficients than shapes: the slope of the values, the slope of their ranks, the value at each knot and
a step at each knot. Each kind has a penalty of its own, so that a curve is as simple as its column allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toprank._core.shapes import cut_into_groups
from toprank.data.binned_cases import BinnedCases
from toprank.rankers.points.card import Shape, scale_of

TAILS = (0.02, 0.05)
N_QUANTILES = 10
KNOTS = np.array([0.0, *TAILS, *(np.arange(1, N_QUANTILES) / N_QUANTILES), *(1.0 - np.array(TAILS[::-1])), 1.0])
"""Quantiles of a number at which its curve may bend or jump: closer together in the tails, where rare cases are."""

PENALTIES = {"line": 1.0, "rank": 0.1, "knot": 0.3, "step": 1.0, "category": 1.0, "missing": 1.0}
"""Penalty of each kind of coefficient, as a multiple of alpha; a mean over development tables chose them."""

KINDS = tuple(PENALTIES)
RANK_SCALE = np.sqrt(12.0)
"""Makes the standard deviation of ranks 1."""


@dataclass(frozen=True, eq=False)
class Term:
    """The function of one column as a linear map from coefficients to points.

    Attributes
    ----------
    feature : int
    edges : float64 array of shape (n_edges,)
        Knots; empty for categories.
    is_categorical : bool
    points, ends : float64 arrays of shape (n_edges + 1 or n_categories, n_coefficients)
        Points of each bin at its lower and upper end, per unit of each coefficient.
    missing : float64 array of shape (n_coefficients,)
    design : float64 array of shape (n_bins + 1, n_coefficients)
        The function at the bins of the training table; the last row is that of missing values.
    kind : int64 array of shape (n_coefficients,)
        Position in `KINDS`.
    lowest : float
        Lower bound of the coefficients that a monotone term may have: 0, else -inf.
    """

    feature: int
    edges: np.ndarray
    is_categorical: bool
    points: np.ndarray
    ends: np.ndarray
    missing: np.ndarray
    design: np.ndarray
    kind: np.ndarray
    lowest: np.ndarray

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients."""
        return len(self.kind)

    @property
    def is_bounded(self) -> bool:
        """Whether some coefficients have a lower bound."""
        return bool(np.isfinite(self.lowest).any())

    def penalties(self, alpha: float) -> np.ndarray:
        """The penalty of each coefficient before the data are seen, float64 (n_coefficients,)."""
        return alpha * np.array(list(PENALTIES.values()))[self.kind]

    def shape(self, coefficients: np.ndarray, mass: np.ndarray) -> tuple[Shape, float]:
        """Points of the column, 0 on average, and the average that was taken off.

        `mass` is the weight of each training bin, missing values last. Values that no row has, a missing one or a
        category, get the average: no points.
        """
        value = dot(self.design, coefficients)
        mean = float((mass * value).sum() / mass.sum())
        points, ends = dot(self.points, coefficients) - mean, dot(self.ends, coefficients) - mean
        if self.is_categorical:
            points[mass[:-1] == 0] = 0.0
            ends = points
        missing = float(value[-1]) - mean if mass[-1] > 0 else 0.0
        return Shape(self.feature, self.edges, points, missing, self.is_categorical, ends), mean


def dot(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """A product summed in the order of the columns: BLAS sums by the shape of the matrix."""
    out = np.zeros(len(matrix))
    for column, factor in zip(matrix.T, vector.tolist(), strict=True):
        out += column * factor
    return out


def make_term(data: BinnedCases, feature: int, mass: np.ndarray, direction: int = 0) -> Term | None:
    """The term of a column; None if it has one value only.

    Parameters
    ----------
    data : BinnedCases
    feature : int
    mass : float array of shape (n_bins + 1,)
        Training weight of each bin, missing values last.
    direction : {-1, 0, 1}
        1: points must not fall as the column rises; -1: not rise.
    """
    n_bins = len(mass) - 1
    if np.count_nonzero(mass) < 2:
        return None
    if data.is_categorical[feature]:
        parts = _category_part(mass[:n_bins])
        edges, at, share = np.zeros(0), np.arange(n_bins), np.zeros(n_bins)
    else:
        knots = knot_bins(mass[:n_bins]) if n_bins > 1 else np.zeros(0, np.int64)
        edges = data.mapper.edges[feature, knots]
        at = np.searchsorted(knots, np.arange(n_bins))
        middle = 0.5 * data.mapper.lower[feature, :n_bins] + 0.5 * data.mapper.upper[feature, :n_bins]
        share = _share_of_bin(middle, edges, at)
        parts = _number_part(edges, at, share, mass[:n_bins], direction)
    values, kinds, is_bounded = parts
    points, ends = values
    if mass[n_bins] > 0:
        kinds = [*kinds, "missing"]
        points, ends = (np.column_stack((each, np.zeros(len(each)))) for each in (points, ends))
    if not kinds:
        return None
    missing = np.zeros(len(kinds))
    missing[-1] = float(kinds[-1] == "missing")
    design = (1.0 - share)[:, None] * points[at] + share[:, None] * ends[at]
    kind = np.array([KINDS.index(each) for each in kinds])
    lowest = np.where(is_bounded & (kind != KINDS.index("missing")), 0.0, -np.inf)
    return Term(feature, edges, bool(data.is_categorical[feature]), points, ends, missing,
                np.ascontiguousarray(np.vstack((design, missing))), kind, lowest)  # fmt: skip


def stepped_term(data: BinnedCases, term: Term, value: np.ndarray, mass: np.ndarray, most: int) -> Term:
    """A term of flat bins, at most `most` of them, where they follow a curve best; categories stay as they are.

    Parameters
    ----------
    data : BinnedCases
    term : Term
    value, mass : float64 arrays of shape (n_bins + 1,)
        The curve and the training weight of each bin, missing values last.
    most : int
    """
    if term.is_categorical:
        return term
    n_bins = len(mass) - 1
    group = np.zeros(n_bins, np.int64)
    cut_into_groups(value[:n_bins], mass[:n_bins], most, group)
    edges = data.mapper.edges[term.feature, : max(n_bins - 1, 0)][np.diff(group) > 0]
    sign = -1.0 if term.is_bounded and term.points[-1].sum() < 0 else 1.0  # coefficients of a falling term fall
    points = sign * np.tri(len(edges) + 1, len(edges), -1)
    kinds = ["step"] * len(edges)
    if mass[n_bins] > 0:
        kinds.append("missing")
        points = np.column_stack((points, np.zeros(len(points))))
    kind = np.array([KINDS.index(each) for each in kinds], np.int64)
    missing = (kind == KINDS.index("missing")).astype(np.float64)
    lowest = np.where(term.is_bounded & (missing == 0), 0.0, -np.inf)
    design = np.ascontiguousarray(np.vstack((points[group], missing)))
    return Term(term.feature, edges, False, points, points, missing, design, kind, lowest)


def knot_bins(mass: np.ndarray) -> np.ndarray:
    """Bins at whose upper edges a curve may bend or jump, int64, ascending: those nearest to the quantiles `KNOTS`.

    Examples
    --------
    >>> knot_bins(np.ones(4)).tolist(), len(knot_bins(np.ones(255)))
    ([0, 1, 2], 15)
    """
    below = np.cumsum(mass)[:-1] / mass.sum()
    nearest = np.searchsorted(below, KNOTS - 1e-9)
    return np.unique(np.minimum(nearest, len(mass) - 2))


def _share_of_bin(middle: np.ndarray, edges: np.ndarray, at: np.ndarray) -> np.ndarray:
    """How far the middle of each training bin is between the two knots around it, 0 to 1; 0 outside of them."""
    share = np.zeros(len(middle))
    inner = np.flatnonzero((at > 0) & (at < len(edges)))
    factor = scale_of(edges)
    low, high = factor * edges[at[inner] - 1], factor * edges[at[inner]]
    share[inner] = np.clip((factor * middle[inner] - low) / (high - low), 0.0, 1.0)
    return share


Part = tuple[tuple[np.ndarray, np.ndarray], list[str], bool]
"""Points and ends per coefficient, the kind of each coefficient, and whether they must not be negative."""


def _category_part(mass: np.ndarray) -> Part:
    """One level per category that training has."""
    points = np.eye(len(mass))[:, mass > 0]
    return (points, points), ["category"] * points.shape[1], False


def _number_part(edges: np.ndarray, at: np.ndarray, share: np.ndarray, mass: np.ndarray, direction: int) -> Part:
    """Slopes, values at the knots and steps; with a direction, ramps between the knots and steps."""
    n = len(edges)
    steps = np.tri(n + 1, n, -1)  # bin k is above the first k knots
    curves: list[tuple[str, np.ndarray]] = []
    if n > 1 and direction:
        curves = [("knot", (np.arange(n) >= j).astype(float)) for j in range(1, n)]
    elif n > 1:
        scaled = np.ldexp(edges, -int(np.frexp(np.abs(edges).max())[1]))
        curves.append(("line", _standardised(scaled, at, share, mass)))
        rank = np.cumsum(mass)[np.searchsorted(at, np.arange(n), side="right") - 1] / mass.sum()
        curves.append(("rank", (rank - 0.5) * RANK_SCALE))
        if n > 2:
            curves += [("knot", row) for row in np.eye(n)]
    sign = float(direction or 1)
    points = [sign * np.append(value[0], value) for _, value in curves] + [sign * step for step in steps.T]
    ends = [sign * np.append(value, value[-1]) for _, value in curves] + [sign * step for step in steps.T]
    kinds = [kind for kind, _ in curves] + ["step"] * n
    shape = (len(kinds), n + 1)
    return (np.reshape(points, shape).T, np.reshape(ends, shape).T), kinds, direction != 0


def _standardised(knots: np.ndarray, at: np.ndarray, share: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Values at the knots such that those of the training rows have mean 0 and standard deviation 1."""
    low, high = np.append(knots[0], knots)[at], np.append(knots, knots[-1])[at]
    values = low + share * (high - low)
    mean = (mass * values).sum() / mass.sum()
    spread = np.sqrt((mass * (values - mean) ** 2).sum() / mass.sum())
    return (knots - mean) / spread if spread > 0 else np.zeros(len(knots))
