"""Problem (3.1) of MLFP: its objective, gradient and constraint, for the three forms of the matrix, and the solver.

The solver is an accelerated projected gradient method all of whose points are feasible: gradients are taken at, and
steps lead to, convex combinations of projected points (Auslender and Teboulle, 2006). The hinge is smoothed for the
gradients only, less and less. A step that does not lower the smoothed objective is undone; the result is the iterate
with the least exact objective. The gradients also give a lower bound on the minimum, so the solver knows how far it is
from it. Where rounding hides what any step would gain, it stops at once and says so.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from toprank._core.threads import Threads
from toprank._core.triplets import add_squared_differences, pair_products, triplet_losses
from toprank.rankers.neighbours.search import linear_algebra
from toprank.rankers.neighbours.triplets import Triplets, block_of_all

CHUNK_ANCHORS = 512
"""Anchors per call of a kernel: sums over chunks do not depend on the number of threads."""

FIRST_WIDTH = 0.1
"""Width of the smoothing at the start, as a share of the mean loss at the identity."""

ROUNDING = 1e-12
"""Share of the objective that counts as rounding."""

STEEPEST = 1e300
"""Steps are not shortened any further."""

PATIENCE = 10
"""Iterations over which a form that is not convex must gain something."""

RISK_DISTANCES = 4_000_000
"""Distances held at once when all triplets are added up."""


class _Form(ABC):
    """What the matrix M may be, and how its entries are stored: `variable`; the rows are float64 (n, d)."""

    is_convex = True
    """Whether problem (3.1) is convex in the variable, so that a lower bound on its optimum is known."""

    def __init__(self, rows: np.ndarray, threads: Threads):
        self.rows, self.threads = rows, threads

    @abstractmethod
    def start(self) -> np.ndarray:
        """Return the variable of the identity, or of what is nearest to it."""

    def penalty(self, variable: np.ndarray) -> tuple[float, np.ndarray]:
        """Return |M - I|^2 and its gradient."""
        away = variable - self.start()
        return float(np.sum(away**2)), 2.0 * away


class DiagonalForm(_Form):
    """M = diag(variable); the projection clips to [0, 1]."""

    def start(self) -> np.ndarray:
        """Return the variable of the identity."""
        return np.ones(self.rows.shape[1])

    def project(self, variable: np.ndarray) -> np.ndarray:
        """Return the nearest feasible variable: all eigenvalues of its matrix are in [0, 1]."""
        return np.clip(variable, 0.0, 1.0)

    def map_rows(self, variable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays whose differences between two rows have M's squared distance as dot product."""
        return self.rows, self.rows * variable

    def gradient(self, variable: np.ndarray, triplets: Triplets, slope: np.ndarray) -> np.ndarray:
        """Return the gradient of the sum of slope times squared distance over all pairs."""
        chunks = chunks_of(len(triplets.anchor))
        parts = np.zeros((len(chunks), self.rows.shape[1]))
        self.threads.run(
            lambda i, chunk: add_squared_differences(
                self.rows, triplets.anchor, triplets.partner_start, triplets.partner, slope, *chunk, parts[i]
            ),
            range(len(chunks)),
            chunks,
        )
        return parts.sum(axis=0)

    def components(self, variable: np.ndarray) -> np.ndarray:
        """Return L, float64 (rank, d), with M = L'L."""
        return np.diag(np.sqrt(variable))

    def least_linear(self, gradient: np.ndarray) -> np.ndarray:
        """Return the feasible variable at which the dot product with `gradient` is least."""
        return (gradient < 0.0).astype(np.float64)


class FullForm(_Form):
    """M = variable, symmetric; the projection clips the eigenvalues to [0, 1]."""

    def start(self) -> np.ndarray:
        """Return the variable of the identity."""
        return np.eye(self.rows.shape[1])

    def project(self, variable: np.ndarray) -> np.ndarray:
        """Return the nearest feasible variable."""
        values, vectors = scipy.linalg.eigh((variable + variable.T) / 2)
        return (vectors * np.clip(values, 0.0, 1.0)) @ vectors.T

    def map_rows(self, variable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays whose differences have the squared distance as dot product."""
        return self.rows, np.ascontiguousarray(self.rows @ variable)

    def gradient(self, variable: np.ndarray, triplets: Triplets, slope: np.ndarray) -> np.ndarray:
        """Return the gradient of the sum of slope times squared distance."""
        return outer_products(self.rows, triplets, slope)

    def components(self, variable: np.ndarray) -> np.ndarray:
        """Return L with M = L'L."""
        values, vectors = scipy.linalg.eigh((variable + variable.T) / 2)
        root = np.sqrt(np.clip(values, 0.0, 1.0))[::-1, None] * vectors.T[::-1]
        return with_sign(root)

    def least_linear(self, gradient: np.ndarray) -> np.ndarray:
        """Return where the dot product with `gradient` is least."""
        values, vectors = scipy.linalg.eigh((gradient + gradient.T) / 2)
        return (vectors * (values < 0.0)) @ vectors.T


class LowRankForm(_Form):
    """M = variable' variable with few rows; the projection clips the singular values to 1. Not convex."""

    is_convex = False

    def __init__(self, rows: np.ndarray, threads: Threads, rank: int, weight: np.ndarray):
        super().__init__(rows, threads)
        self.rank, self.weight = rank, weight

    def start(self) -> np.ndarray:
        """Return the projection on the first principal components: the distances that change least."""
        centre = np.average(self.rows, axis=0, weights=self.weight)
        centred = (self.rows - centre) * np.sqrt(self.weight)[:, None]
        _, vectors = scipy.linalg.eigh(centred.T @ centred)
        first = vectors[:, ::-1][:, : self.rank].T
        return with_sign(first)

    def project(self, variable: np.ndarray) -> np.ndarray:
        """Return the nearest feasible variable."""
        left, values, right = scipy.linalg.svd(variable, full_matrices=False)
        return (left * np.minimum(values, 1.0)) @ right

    def map_rows(self, variable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays whose differences have the squared distance as dot product."""
        mapped = np.ascontiguousarray(self.rows @ variable.T)
        return mapped, mapped

    def gradient(self, variable: np.ndarray, triplets: Triplets, slope: np.ndarray) -> np.ndarray:
        """Return the gradient of the sum of slope times squared distance."""
        return 2.0 * variable @ outer_products(self.rows, triplets, slope)

    def penalty(self, variable: np.ndarray) -> tuple[float, np.ndarray]:
        """Return |M - I|^2 and its gradient."""
        inner = variable @ variable.T  # |L'L - I|^2 = |LL'|^2 - 2 tr LL' + d
        value = float(np.sum(inner**2) - 2.0 * np.trace(inner) + self.rows.shape[1])
        return value, 4.0 * (inner @ variable - variable)

    def components(self, variable: np.ndarray) -> np.ndarray:
        """Return L with M = L'L."""
        return variable


MatrixForm = DiagonalForm | FullForm | LowRankForm


def chunks_of(n_anchors: int) -> list[tuple[int, int]]:
    """Return (start, stop) of runs of anchors."""
    return [(s, min(s + CHUNK_ANCHORS, n_anchors)) for s in range(0, n_anchors, CHUNK_ANCHORS)]


def with_sign(vectors: np.ndarray) -> np.ndarray:
    """Return the rows with the sign that makes their largest entry positive: eigenvectors have any sign."""
    if vectors.size == 0:
        return vectors
    largest = vectors[np.arange(len(vectors)), np.abs(vectors).argmax(axis=1)]
    return vectors * np.where(largest < 0, -1.0, 1.0)[:, None]


def outer_products(rows: np.ndarray, triplets: Triplets, slope: np.ndarray) -> np.ndarray:
    """Return the sum of slope * (x_i - x_j)(x_i - x_j)' over all pairs, float64 (d, d)."""
    n = len(rows)
    one = np.repeat(triplets.anchor, np.diff(triplets.partner_start))
    used = slope != 0.0
    one, other, slope = one[used], triplets.partner[used], slope[used]
    degree = np.bincount(one, slope, n) + np.bincount(other, slope, n)
    laplacian = scipy.sparse.coo_array(
        (np.concatenate((-slope, -slope, degree)),
         (np.concatenate((one, other, np.arange(n))), np.concatenate((other, one, np.arange(n))))), (n, n),
    ).tocsr()  # fmt: skip
    out = rows.T @ (laplacian @ rows)
    return (out + out.T) / 2


@dataclass(frozen=True)
class Solution:
    """A solved problem."""

    variable: np.ndarray  # feasible
    # Least exact objective of the iterates so far, at the start and after every iteration; never rises
    objective: list[float]
    gap: float | None  # upper bound on how far the objective is above its minimum; None if the form is not convex
    n_iter: int
    has_converged: bool
    # Stopped because of rounding: no step lowers the objective any more, although the gap is not proved
    is_stuck: bool = False


class MetricProblem:
    """Minimise the losses of triplets + mu |M - I|^2 over matrices M with eigenvalues in [0, 1] (problem 3.1).

    The weights of the triplets hold alpha, 1 - alpha and the normalisation; the margin is 1 - c.
    """

    def __init__(self, triplets: Triplets, form: MatrixForm, margin: float, mu: float):
        self.triplets, self.form, self.margin, self.mu = triplets, form, margin, mu

    def losses(self, variable: np.ndarray, width: float) -> tuple[float, np.ndarray]:
        """Return the loss of all triplets, and its derivative by the learned distance of each pair."""
        t, threads = self.triplets, self.form.threads
        rows, mapped = self.form.map_rows(variable)
        learned, slope = np.empty(len(t.partner)), np.empty(len(t.partner))

        def work(start: int, stop: int) -> float:
            pair_products(rows, mapped, t.anchor, t.partner_start, t.partner, start, stop, learned)
            found: float = triplet_losses(
                t.side, t.anchor_weight, t.partner_start, t.partner_weight, learned, t.rival_start, t.rival,
                t.weight_before, t.sum_before, self.margin, width, start, stop, slope,
            )  # fmt: skip
            return found

        chunks = chunks_of(len(t.anchor))
        parts = threads.run(work, *zip(*chunks, strict=True)) if chunks else []
        return math.fsum(parts), slope

    def value(self, variable: np.ndarray, width: float = 0.0) -> float:
        """Return the objective, with a hinge smoothed over `width`; 0 is the hinge itself."""
        return self.losses(variable, width)[0] + self.mu * self.form.penalty(variable)[0]

    def value_and_gradient(self, variable: np.ndarray, width: float) -> tuple[float, np.ndarray]:
        """Return the smoothed objective and its gradient."""
        loss, slope = self.losses(variable, width)
        away, away_gradient = self.form.penalty(variable)
        gradient = self.form.gradient(variable, self.triplets, slope)
        return loss + self.mu * away, gradient + self.mu * away_gradient

    def least_of(self, model: LowerModel) -> float:
        """Return the least value that a lower model has in the feasible set: a lower bound on the minimum."""
        if isinstance(self.form, LowRankForm):
            return -math.inf
        if self.mu > 0.0:
            at = self.form.project(-model.slope / (2.0 * self.mu))
        else:
            at = self.form.least_linear(model.slope)
        return model.constant + float(np.sum(model.slope * at)) + self.mu * float(np.sum(at * at))


@dataclass(frozen=True)
class LowerModel:
    """constant + slope . v + mu |v|^2, nowhere above the objective.

    The smoothed objective is nowhere above the exact one, and strong convexity says F(v) >= F(y) + F'(y) . (v - y) +
    mu |v - y|^2. Averages of such models are such models.
    """

    constant: float
    slope: np.ndarray

    @classmethod
    def at(cls, y: np.ndarray, value: float, gradient: np.ndarray, mu: float) -> LowerModel:
        """Return the model at a point."""
        constant = value - float(np.sum(gradient * y)) + mu * float(np.sum(y * y))
        return cls(constant, gradient - 2.0 * mu * y)

    def blend(self, other: LowerModel, share: float) -> LowerModel:
        """Return (1 - share) * self + share * other."""
        return LowerModel(
            (1.0 - share) * self.constant + share * other.constant,
            (1.0 - share) * self.slope + share * other.slope,
        )


@dataclass
class _State:
    """Where the accelerated method is.

    x is the iterate and `smooth` its smoothed objective, z the point that gathers the steps, theta its weight, `model`
    the average of the lower models on the way; `best` is the iterate with the least exact objective so far.
    """

    x: np.ndarray
    smooth: float
    z: np.ndarray
    best: np.ndarray
    exact: float
    theta: float = 1.0
    steepness: float = 1.0
    model: LowerModel | None = None

    def restart(self) -> None:
        """Forget the momentum."""
        self.z, self.theta = self.x, 1.0


def solve(
    problem: MetricProblem, tol: float, max_iter: int, watch: Callable[[np.ndarray, float], Any] = lambda x, value: None
) -> Solution:
    """Minimise from the identity, until the gap is at most a share `tol` of the objective at the start.

    A form that is not convex stops when 10 iterations gain less than that. Both also stop as soon as rounding hides
    what a step without momentum gains. watch(iterate, exact objective of the best iterate) is called with the start and
    after every iteration.
    """
    with linear_algebra().limit(limits=1, user_api="blas"):
        return _solve(problem, tol, max_iter, watch)


def _solve(problem: MetricProblem, tol: float, max_iter: int, watch: Callable[[np.ndarray, float], Any]) -> Solution:
    x = problem.form.start()
    exact, total = problem.value(x), problem.triplets.total_weight
    watch(x, exact)
    objective = [exact]
    if exact == 0.0 or total == 0.0:  # no loss to lower, so that the penalty alone decides
        return Solution(x, [exact, exact], 0.0 if problem.form.is_convex else None, 1, True)
    enough, lower = tol * exact, -math.inf
    # Smoothing lowers the objective by at most width * total / 2: half of what may be left at the end.
    width, least_width = max(FIRST_WIDTH, tol) * exact / total, enough / total
    state = _State(x, problem.value(x, width), x, x, exact)
    has_converged = is_stuck = False
    while not (has_converged or is_stuck) and len(objective) <= max_iter:
        y = (1.0 - state.theta) * state.x + state.theta * state.z
        value, gradient = problem.value_and_gradient(y, width)
        here = LowerModel.at(y, value, gradient, problem.mu)
        state.model = here if state.model is None else state.model.blend(here, state.theta)
        lower = max(lower, problem.least_of(here), problem.least_of(state.model))
        can_move = _step(problem, state, y, value, gradient, width)
        objective.append(state.exact)
        watch(state.x, state.exact)
        if problem.form.is_convex:
            has_converged, is_smooth = state.exact - lower <= enough, state.smooth - lower > width * total / 2.0
        else:
            is_smooth = len(objective) <= PATIENCE or objective[-1 - PATIENCE] - state.exact > enough
            has_converged = not (is_smooth and can_move) and width <= least_width
        is_stuck = not (can_move or has_converged) and width <= least_width
        if not (is_smooth and can_move) and width > least_width:
            width = max(width / 4.0, least_width)
            state.smooth = problem.value(state.x, width)
            state.restart()
    gap = max(0.0, state.exact - lower) if problem.form.is_convex else None
    return Solution(state.best, objective, gap, len(objective) - 1, has_converged, is_stuck)


def _step(
    problem: MetricProblem, state: _State, y: np.ndarray, value: float, gradient: np.ndarray, width: float
) -> bool:
    """Make one accelerated step; one that does not lower the smoothed objective is undone and the momentum forgotten.

    Returns False if the step had no momentum: then the point is optimal, or rounding hides what can be gained.
    """
    theta = state.theta
    steepness = state.steepness / 1.5
    while True:
        z = problem.form.project(state.z - gradient / (theta * steepness))
        x = (1.0 - theta) * state.x + theta * z
        move = x - y
        smooth = problem.value(x, width)
        limit = value + float(np.sum(gradient * move)) + 0.5 * steepness * float(np.sum(move * move))
        if smooth <= limit + ROUNDING * abs(value) or steepness > STEEPEST:
            break
        steepness *= 2.0
    state.steepness = steepness
    if smooth >= state.smooth:
        state.restart()
        return theta < 1.0
    state.x, state.smooth, state.z = x, smooth, z
    state.theta = 2.0 / (1.0 + math.sqrt(1.0 + 4.0 / theta**2))
    exact = problem.value(x)
    if exact < state.exact:
        state.best, state.exact = x, exact
    return True


def risk_of_all(
    points: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, components: np.ndarray, margin: float
) -> float:
    """Return R_S of section 3.4: the losses of all triplets of training cases, divided by m^3.

    Anchors are taken a few at a time, so that memory stays small.
    """
    mapped = points @ components.T
    total = 0.0
    size = max(1, RISK_DISTANCES // len(points))
    for start in range(0, len(points), size):
        anchors = slice(start, min(start + size, len(points)))
        triplets, learned = block_of_all(points, mapped, is_positive, weight, anchors)
        slope = np.empty(len(learned))
        total += triplet_losses(
            triplets.side, triplets.anchor_weight, triplets.partner_start, triplets.partner_weight, learned,
            triplets.rival_start, triplets.rival, triplets.weight_before, triplets.sum_before, margin, 0.0, 0,
            len(triplets.anchor), slope,
        )  # fmt: skip
    return total
