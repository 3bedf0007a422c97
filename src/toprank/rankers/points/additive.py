"""Additive logistic regression on binned columns, one column after the other, with penalties learned from the data.

Minimises the logistic loss of a sum of terms plus penalty * coefficient^2 / 2 over all coefficients. A step replaces
the coefficients of one term by the minimum of a quadratic model of the loss (block Newton); histograms of slopes and
curvatures are all it needs from the rows. After each step the penalties of the term are set to their most likely value
given its coefficients (evidence, as in MacKay 1992 and in generalised additive models fitted by marginal likelihood),
separately for each kind of coefficient: a column that does not help is shrunk to nothing, and so are the steps of a
smooth one.

A term, what one column may add to a score, has more coefficients than shapes: the slope of the values, the slope of
their ranks, the value at each knot and a step at each knot, or a level per category. Each kind has a penalty of its
own, so that a curve is as simple as its column allows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from toprank._core.backfit import add_by_bin, slopes_by_bin, take_step
from toprank._core.shapes import cut_into_groups
from toprank.data.binned_cases import BinnedCases
from toprank.data.cases import sample_cases
from toprank.rankers.boosting.losses import Blend, SigmoidAP
from toprank.rankers.points.card import Card, Shape, scale_of
from toprank.tree.rows import find_equal_rows
from toprank.tree.weights import integer_weights

TAILS = (0.02, 0.05)
N_QUANTILES = 10
KNOTS = np.array([0.0, *TAILS, *(np.arange(1, N_QUANTILES) / N_QUANTILES), *(1.0 - np.array(TAILS[::-1])), 1.0])
"""Quantiles of a number at which its curve may bend or jump: closer together in the tails, where rare cases are."""

PENALTIES = {"line": 1.0, "rank": 0.1, "knot": 0.3, "step": 1.0, "category": 1.0, "missing": 1.0}
"""Penalty of each kind of coefficient, as a multiple of alpha; a mean over development tables chose them."""

KINDS = tuple(PENALTIES)
RANK_SCALE = np.sqrt(12.0)
"""Makes the standard deviation of ranks 1."""

FIT_ROWS = 100_000
"""Most rows to fit on: all positives that fit into half of it, and random negatives with larger weights."""

MAX_SWEEPS = 30
TOLERANCE = 1e-2
"""Largest change of a value's log-odds in a sweep over all terms that ends a fit."""

LARGEST_STEP = 2.0
"""Limit of the change of a value's log-odds in one step: a quadratic model is right nearby only."""

PRIOR_CASES = 1.0
"""Weight of the penalty at the start, in coefficients, when penalties are learned."""

WIDEST_PRIOR, STRONGEST = 0.1, 1e5
"""Learned penalties stay between this multiple of the one at the start, and this number."""

TOP_LOSS = Blend(SigmoidAP(alpha=2.0), share=0.5)
"""Loss of fine-tuning: half of the curvature is that of the logistic loss, half that of a surrogate of 1 - AP."""

TUNING_SWEEPS = 8

LEAST_SPREAD = 0.02
"""Terms whose points have a smaller standard deviation, in log-odds, are dropped."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct binned rows of each class, in an order that does not depend on that of the table."""

    codes: np.ndarray  # uint8 (n_features, m)
    target: np.ndarray  # float64 (m,): 1 for positives, 0 for others
    weight: np.ndarray  # float64 (m,), above 0
    which: np.ndarray  # int64 (n,): distinct row of each row of the table; -1 for rows that are not used

    @classmethod
    def from_cases(cls, data: BinnedCases) -> Self:
        """The rows of a binned table with weight, or a sample of them."""
        weights = integer_weights(data.is_positive, data.weight)
        rows, row_weight = sample_cases(data.is_positive, weights.total, FIT_ROWS)
        codes = np.column_stack([data.is_positive[rows], *(data.codes(f)[0][rows] for f in range(data.X.shape[1]))])
        first, of_row = find_equal_rows(codes.astype(np.float64, order="C"))
        which = np.full(len(data.X), -1)
        which[rows] = of_row
        distinct = np.ascontiguousarray(codes[first, 1:].T.astype(np.uint8))
        weight = np.bincount(of_row, row_weight[rows]) * weights.unit
        return cls(distinct, codes[first, 0].astype(np.float64), weight, which)

    def with_weight(self, data: BinnedCases, weight: np.ndarray) -> Rows:
        """The rows with other weights, those of a fold, without rows of weight 0."""
        weights = integer_weights(data.is_positive, weight)
        used = self.which >= 0
        total = np.bincount(self.which[used], weights.total[used], len(self.weight)) * weights.unit
        kept = np.flatnonzero(total > 0)
        place = np.full(len(total) + 1, -1)
        place[kept] = np.arange(len(kept))
        return Rows(np.ascontiguousarray(self.codes[:, kept]), self.target[kept], total[kept], place[self.which])

    def mass(self, feature: int, n_codes: int) -> np.ndarray:
        """Weight of each code of a column, float64 (n_codes,)."""
        return np.bincount(self.codes[feature], self.weight, n_codes)


# --- terms --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Term:
    """The function of one column as a linear map from coefficients to points."""

    feature: int
    edges: np.ndarray  # float64 (n_edges,): knots; empty for categories
    is_categorical: bool
    # float64 (n_edges + 1 or n_categories, n_coefficients): points of each bin at its lower and upper end, per unit of
    # each coefficient
    points: np.ndarray
    ends: np.ndarray  # float64 (n_edges + 1 or n_categories, n_coefficients)
    missing: np.ndarray  # float64 (n_coefficients,)
    # float64 (n_bins + 1, n_coefficients): the function at the bins of the training table; the last row is that of
    # missing values
    design: np.ndarray
    kind: np.ndarray  # int64 (n_coefficients,): position in `KINDS`
    # float64 (n_coefficients,): lower bound of each coefficient: 0 in a monotone term, -inf for missing values and free
    # terms
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

    `mass` is the training weight of each bin, missing values last. Direction 1: points must not fall as the column
    rises; -1: not rise; 0: free.
    """
    n_bins, is_categorical = len(mass) - 1, bool(data.is_categorical[feature])
    if np.count_nonzero(mass) < 2:
        return None
    if is_categorical:
        edges, at, share = np.zeros(0), np.arange(n_bins), np.zeros(n_bins)
        points = ends = np.eye(n_bins)[:, mass[:n_bins] > 0]  # one level per category that training has
        kinds = ["category"] * points.shape[1]
    else:
        knots = knot_bins(mass[:n_bins]) if n_bins > 1 else np.zeros(0, np.int64)
        edges = data.mapper.edges[feature, knots]
        at = np.searchsorted(knots, np.arange(n_bins))
        middle = 0.5 * data.mapper.lower[feature, :n_bins] + 0.5 * data.mapper.upper[feature, :n_bins]
        share = _share_of_bin(middle, edges, at)
        points, ends, kinds = _number_part(edges, at, share, mass[:n_bins], direction)
    has_missing = bool(mass[n_bins] > 0)
    if not kinds and not has_missing:
        return None
    design = (1.0 - share)[:, None] * points[at] + share[:, None] * ends[at]
    return _term(feature, edges, is_categorical, points, ends, design, kinds, has_missing, direction != 0)


def _term(
    feature: int, edges: np.ndarray, is_categorical: bool, points: np.ndarray, ends: np.ndarray, design: np.ndarray,
    kinds: list[str], has_missing: bool, is_bounded: bool,
) -> Term:  # fmt: skip
    """A term with a coefficient for missing values, if there are any, beside those of values."""
    if has_missing:
        kinds = [*kinds, "missing"]
        points, ends, design = (np.column_stack((each, np.zeros(len(each)))) for each in (points, ends, design))
    kind = np.array([KINDS.index(each) for each in kinds], np.int64)
    missing = (kind == KINDS.index("missing")).astype(np.float64)
    lowest = np.where(is_bounded & (missing == 0), 0.0, -np.inf)
    design = np.ascontiguousarray(np.vstack((design, missing)))
    return Term(feature, edges, is_categorical, points, ends, missing, design, kind, lowest)


def stepped_term(data: BinnedCases, term: Term, value: np.ndarray, mass: np.ndarray, most: int) -> Term:
    """A term of flat bins, at most `most` of them, where they follow a curve best; categories stay as they are.

    `value` and `mass` are the curve and the training weight of each bin, missing values last.
    """
    if term.is_categorical:
        return term
    n_bins = len(mass) - 1
    group = np.zeros(n_bins, np.int64)
    cut_into_groups(value[:n_bins], mass[:n_bins], most, group)
    edges = data.mapper.edges[term.feature, : max(n_bins - 1, 0)][np.diff(group) > 0]
    sign = -1.0 if term.is_bounded and term.points[-1].sum() < 0 else 1.0  # coefficients of a falling term fall
    points = sign * np.tri(len(edges) + 1, len(edges), -1)
    kinds, has_missing = ["step"] * len(edges), bool(mass[n_bins] > 0)
    return _term(term.feature, edges, False, points, points, points[group], kinds, has_missing, term.is_bounded)


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


def _number_part(
    edges: np.ndarray, at: np.ndarray, share: np.ndarray, mass: np.ndarray, direction: int
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Points and ends per coefficient, and their kinds: slopes, values at the knots and steps.

    With a direction, ramps between the knots and steps.
    """
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
    return np.reshape(points, shape).T, np.reshape(ends, shape).T, kinds


def _standardised(knots: np.ndarray, at: np.ndarray, share: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Values at the knots such that those of the training rows have mean 0 and standard deviation 1."""
    low, high = np.append(knots[0], knots)[at], np.append(knots, knots[-1])[at]
    values = low + share * (high - low)
    mean = (mass * values).sum() / mass.sum()
    spread = np.sqrt((mass * (values - mean) ** 2).sum() / mass.sum())
    return (knots - mean) / spread if spread > 0 else np.zeros(len(knots))


def make_terms(data: BinnedCases, rows: Rows, directions: np.ndarray | None = None) -> list[Term]:
    """The terms of all columns with more than one value."""
    terms = []
    for f in range(data.X.shape[1]):
        mass = rows.mass(f, data.codes(f)[1] + 1)
        term = make_term(data, f, mass, 0 if directions is None else int(directions[f]))
        if term is not None:
            terms.append(term)
    return terms


# --- models -------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class AdditiveModel:
    """A sum of terms while it is fitted."""

    terms: list[Term]
    rows: Rows
    alpha: float  # penalty before the data are seen
    offset: np.ndarray | None = None  # float64 (m,) or None: log-odds that the terms are added to; None fits a base
    coefficients: list[np.ndarray] = field(default_factory=list)  # float64, one array per term
    base: float = field(init=False, default=0.0)
    penalties: list[np.ndarray] = field(init=False)  # float64, one array per term
    z: np.ndarray = field(init=False)  # float64 (m,): log-odds of the rows

    def __post_init__(self) -> None:
        positive, total = float(self.rows.weight @ self.rows.target), float(self.rows.weight.sum())
        if self.offset is None:
            self.base = math.log((positive + 0.5) / (total - positive + 0.5))
        self.z = np.full(len(self.rows.weight), self.base)
        if self.offset is not None:
            self.z += self.offset
        if not self.coefficients:
            self.coefficients = [np.zeros(term.n_coefficients) for term in self.terms]
        for term, own in zip(self.terms, self.coefficients, strict=True):
            if own.any():
                add_by_bin(self.rows.codes[term.feature], dot(term.design, own), self.z)
        self.penalties = [term.penalties(self.alpha) for term in self.terms]

    def fit(self, max_sweeps: int = MAX_SWEEPS) -> Self:
        """Sweep over the terms until nothing changes much."""
        for sweep in range(max_sweeps):
            rows, sums = self.rows, np.zeros((1, 2))
            slopes_by_bin(np.zeros(len(self.z), np.uint8), self.z, rows.target, rows.weight, sums)
            change = float(np.clip(sums[0, 0] / max(sums[0, 1], 1e-9), -LARGEST_STEP, LARGEST_STEP))
            self.base += change
            self.z += change
            largest = abs(change)
            for place in range(len(self.terms)):
                largest = max(largest, self._move(place, learn=sweep > 0))
            if largest < TOLERANCE:
                break
        return self

    def _move(self, place: int, learn: bool) -> float:
        """One step of a term; returns the largest change of a value's log-odds."""
        term, own, penalty, rows = self.terms[place], self.coefficients[place], self.penalties[place], self.rows
        variance, sums = np.empty(len(own)), np.empty((len(term.design), 2))
        slopes_by_bin(rows.codes[term.feature], self.z, rows.target, rows.weight, sums)
        largest = self._take_step(place, sums, penalty, variance)
        if learn:
            self._learn_penalties(term, own, variance, penalty)
        return largest

    def _take_step(self, place: int, sums: np.ndarray, penalty: np.ndarray, variance: np.ndarray) -> float:
        term = self.terms[place]
        largest: float = take_step(
            sums, self.rows.codes[term.feature], self.z, term.design, term.lowest, penalty, self.coefficients[place],
            variance, LARGEST_STEP,
        )  # fmt: skip
        return largest

    def tuned(self) -> AdditiveModel:
        """The model after some sweeps on `TOP_LOSS`, with the same penalties: the order at the top counts more."""
        own = [each.copy() for each in self.coefficients]
        model = AdditiveModel(self.terms, self.rows, self.alpha, self.offset, own)
        model.z += self.base - model.base
        model.base = self.base
        for _ in range(TUNING_SWEEPS):
            changes = [model._move_to_top(place, penalty) for place, penalty in enumerate(self.penalties)]
            if max(changes, default=0.0) < TOLERANCE:
                break
        return model

    def _move_to_top(self, place: int, penalty: np.ndarray) -> float:
        """One step of a term on `TOP_LOSS`; returns the largest change of a value's log-odds."""
        term, rows = self.terms[place], self.rows
        slopes = TOP_LOSS.slopes(self.z, rows.target > 0, rows.weight)
        sums = [np.bincount(rows.codes[term.feature], each, len(term.design))
                for each in (-slopes.gradient, slopes.curvature)]  # fmt: skip
        return self._take_step(place, np.column_stack(sums), penalty, np.empty(term.n_coefficients))

    def _learn_penalties(self, term: Term, own: np.ndarray, variance: np.ndarray, penalty: np.ndarray) -> None:
        """Set the penalty of each kind of coefficient to 1 / (their mean expected square), shrunk to that at the start.

        One step of expectation maximisation, where `variance` is that of the coefficients given the other terms.
        """
        start = term.penalties(self.alpha)
        square = np.bincount(term.kind, own**2 + variance, len(KINDS))[term.kind] + PRIOR_CASES / start
        count = np.bincount(term.kind, minlength=len(KINDS))[term.kind] + PRIOR_CASES
        penalty[:] = np.clip(count / np.maximum(square, 1e-12), WIDEST_PRIOR * start, STRONGEST)

    # --- result -------------------------------------------------------------------------------------------------

    def spreads(self) -> np.ndarray:
        """Standard deviation of the points of each term over the rows, float64 (n_terms,)."""
        out = np.zeros(len(self.terms))
        for place, (term, own) in enumerate(zip(self.terms, self.coefficients, strict=True)):
            mass, value = self.rows.mass(term.feature, len(term.design)), dot(term.design, own)
            mean = (mass * value).sum() / mass.sum()
            out[place] = math.sqrt((mass * (value - mean) ** 2).sum() / mass.sum())
        return out

    def strongest(self, most: int | None, least: float) -> list[int]:
        """Places of the terms with the largest spread, at most `most` of them and none below `least`, ascending."""
        spread = self.spreads()
        order = np.argsort(-spread, kind="stable")[:most]
        return sorted(order[spread[order] >= least].tolist())

    def card(self) -> Card:
        """The card of the terms in log-odds; the mean points of each column are 0."""
        shapes, base = [], self.base
        for term, own, spread in zip(self.terms, self.coefficients, self.spreads().tolist(), strict=True):
            shape, mean = term.shape(own, self.rows.mass(term.feature, len(term.design)))
            if spread >= LEAST_SPREAD:
                shapes.append(shape)
            base += mean
        return Card(tuple(shapes), base)

    def with_few_bins(self, data: BinnedCases, most: int) -> AdditiveModel:
        """The model with at most `most` flat bins per number, fitted again."""
        terms = []
        for term, own in zip(self.terms, self.coefficients, strict=True):
            mass = self.rows.mass(term.feature, len(term.design))
            terms.append(stepped_term(data, term, dot(term.design, own), mass, most))
        return AdditiveModel([term for term in terms if term.n_coefficients], self.rows, self.alpha).fit()


def fit_additive(
    rows: Rows,
    terms: Sequence[Term],
    alpha: float,
    max_features: int | None = None,
    start: AdditiveModel | None = None,
) -> AdditiveModel:
    """Fit an additive model, without the terms that hardly matter and with at most `max_features` of them.

    Before the data are seen, the expected square of a coefficient is 1 / alpha. `start` is a model of some of the same
    terms to start from.
    """
    known = {} if start is None else dict(zip((t.feature for t in start.terms), start.coefficients, strict=True))
    coefficients = [known[t.feature].copy() if t.feature in known else np.zeros(t.n_coefficients) for t in terms]
    model = AdditiveModel(list(terms), rows, alpha, None, coefficients).fit()
    kept = model.strongest(max_features, LEAST_SPREAD)
    if len(kept) == len(model.terms):
        return model
    own = [model.coefficients[i] for i in kept]
    return AdditiveModel([model.terms[i] for i in kept], rows, alpha, None, own).fit()
