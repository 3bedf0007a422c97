"""Additive logistic regression on binned columns, one column after the other, with penalties learned from the data.

Minimises the logistic loss of a sum of terms plus penalty * coefficient^2 / 2 over all coefficients. A step replaces
the coefficients of one term by the minimum of a quadratic model of the loss (block Newton); histograms of slopes and
curvatures are all it needs from the rows. After each step the penalties of the term are set to their most likely value
given its coefficients (evidence, as in MacKay 1992 and in generalised additive models fitted by marginal likelihood),
separately for each kind of coefficient: a column that does not help is shrunk to nothing, and so are the steps of a
smooth one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from toprank._core.backfit import add_by_bin, given_slopes_by_bin, move_term, slopes_by_bin, take_step
from toprank.data.binned_cases import BinnedCases
from toprank.data.cases import sample_cases
from toprank.rankers.boosting.losses import Blend, SigmoidAP
from toprank.rankers.points.card import Card
from toprank.rankers.points.terms import KINDS, Term, dot, make_term, stepped_term
from toprank.tree.rows import find_equal_rows
from toprank.tree.weights import integer_weights

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
    """Distinct binned rows of each class, in an order that does not depend on that of the table.

    Attributes
    ----------
    codes : uint8 array of shape (n_features, m)
    target : float64 array of shape (m,)
        1 for positives, 0 for others.
    weight : float64 array of shape (m,), above 0
    which : int64 array of shape (n,)
        Distinct row of each row of the table; -1 for rows that are not used.
    """

    codes: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    which: np.ndarray

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
        return self.reweighted(total)

    def reweighted(self, weight: np.ndarray) -> Rows:
        """The rows with these weights, float64 (m,), without rows of weight 0."""
        kept = np.flatnonzero(weight > 0)
        place = np.full(len(weight) + 1, -1)
        place[kept] = np.arange(len(kept))
        return Rows(np.ascontiguousarray(self.codes[:, kept]), self.target[kept], weight[kept], place[self.which])

    def mass(self, feature: int, n_codes: int) -> np.ndarray:
        """Weight of each code of a column, float64 (n_codes,)."""
        return np.bincount(self.codes[feature], self.weight, n_codes)


def make_terms(data: BinnedCases, rows: Rows, directions: np.ndarray | None = None) -> list[Term]:
    """The terms of all columns with more than one value."""
    terms = []
    for f in range(data.X.shape[1]):
        mass = rows.mass(f, data.codes(f)[1] + 1)
        term = make_term(data, f, mass, 0 if directions is None else int(directions[f]))
        if term is not None:
            terms.append(term)
    return terms


@dataclass(eq=False)
class AdditiveModel:
    """A sum of terms while it is fitted.

    Attributes
    ----------
    terms : list of Term
    rows : Rows
    alpha : float
        Penalty before the data are seen.
    base : float
    coefficients, penalties : lists of float64 arrays, one per term
    z : float64 array of shape (m,)
        Log-odds of the rows.
    """

    terms: list[Term]
    rows: Rows
    alpha: float
    offset: np.ndarray | None = None
    base: float = 0.0
    coefficients: list[np.ndarray] = field(default_factory=list)
    penalties: list[np.ndarray] = field(default_factory=list)
    z: np.ndarray = field(default_factory=lambda: np.zeros(0))

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
            largest = abs(self._move_base())
            for place in range(len(self.terms)):
                largest = max(largest, self._move(place, learn=sweep > 0))
            if largest < TOLERANCE:
                break
        return self

    def _move_base(self) -> float:
        rows, sums = self.rows, np.zeros((1, 2))
        slopes_by_bin(np.zeros(len(self.z), np.uint8), self.z, rows.target, rows.weight, sums)
        change = float(np.clip(sums[0, 0] / max(sums[0, 1], 1e-9), -LARGEST_STEP, LARGEST_STEP))
        self.base += change
        self.z += change
        return change

    def _move(self, place: int, learn: bool) -> float:
        """One step of a term; returns the largest change of a value's log-odds."""
        term, own, penalty = self.terms[place], self.coefficients[place], self.penalties[place]
        variance = np.empty(len(own))
        largest: float = move_term(
            self.rows.codes[term.feature], self.z, self.rows.target, self.rows.weight, term.design, term.lowest,
            penalty, own, variance, LARGEST_STEP,
        )  # fmt: skip
        if learn:
            self._learn_penalties(term, own, variance, penalty)
        return largest

    def tuned(self) -> AdditiveModel:
        """The model after some sweeps on `TOP_LOSS`, with the same penalties: the order at the top counts more."""
        own = [each.copy() for each in self.coefficients]
        model = AdditiveModel(self.terms, self.rows, self.alpha, self.offset, coefficients=own)
        model.z += self.base - model.base
        model.base = self.base
        for _ in range(TUNING_SWEEPS):
            if (
                max((model._move_to_top(place, self.penalties[place]) for place in range(len(own))), default=0.0)
                < TOLERANCE
            ):
                break
        return model

    def _move_to_top(self, place: int, penalty: np.ndarray) -> float:
        """One step of a term on `TOP_LOSS`; returns the largest change of a value's log-odds."""
        term, own, rows = self.terms[place], self.coefficients[place], self.rows
        slopes = TOP_LOSS.slopes(self.z, rows.target > 0, rows.weight)
        codes, sums = rows.codes[term.feature], np.zeros((len(term.design), 2))
        given_slopes_by_bin(codes, slopes.gradient, slopes.curvature, sums)
        largest: float = take_step(
            sums, codes, self.z, term.design, term.lowest, penalty, own, np.empty(len(own)), LARGEST_STEP
        )
        return largest

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

    Parameters
    ----------
    rows : Rows
    terms : sequence of Term
    alpha : float
        Penalty before the data are seen: the expected square of a coefficient is 1 / alpha.
    max_features : int or None
    start : AdditiveModel, optional
        A model of some of the same terms to start from.
    """
    known = {} if start is None else dict(zip((t.feature for t in start.terms), start.coefficients, strict=True))
    coefficients = [known[t.feature].copy() if t.feature in known else np.zeros(t.n_coefficients) for t in terms]
    model = AdditiveModel(list(terms), rows, alpha, None, coefficients=coefficients).fit()
    spread = model.spreads()
    order = np.argsort(-spread, kind="stable")[:max_features]
    kept = sorted(order[spread[order] >= LEAST_SPREAD].tolist())
    if len(kept) == len(model.terms):
        return model
    own = [model.coefficients[i] for i in kept]
    return AdditiveModel([model.terms[i] for i in kept], rows, alpha, None, coefficients=own).fit()
