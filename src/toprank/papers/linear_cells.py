"""The best hyperplane for signed costs: branch and bound over directions, then mixed-integer programs.

A direction is scaled so that its largest weight is 1 or -1: it is on one of the 2 d faces of a cube. A cell is a box of
such directions. In a small cell most cases are on a known side of any useful threshold: one sort bounds the cost, and
the program that solves the cell has few binaries and tight big-M constants. Over all directions at once that program
takes minutes for a hundred cases, because its relaxation is useless.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

FEW_CASES = 16
"""Number of undecided cases below which a cell goes to the solver; above, bisecting is cheaper."""
MAX_CELLS = 4096
"""Cells per round of bisection; with many columns bisecting gains little, and the solver takes over."""
GAP = 1e-9
"""Smallest gap between two projections that a threshold may use, on columns scaled to [-1, 1]."""
SLACK = 1e-12
"""Rounding error of a projection, on the same scale."""
NEGLIGIBLE = 1e-9
"""Share of all costs by which a classifier must be cheaper to count as cheaper."""


@dataclass(frozen=True)
class LinearProblem:
    """Distinct points with a signed cost: above 0 for labelling a point negative, below 0 for labelling it positive."""

    points: np.ndarray  # (k, d): columns that vary, scaled to [-1, 1]; without points whose labels cost the same
    cost: np.ndarray  # (k,)
    floor: float  # cost that no classifier avoids, from equal rows with different labels
    margin: float
    columns: np.ndarray  # int (d,)
    n_features: int
    center: np.ndarray  # (d,)
    scale: np.ndarray  # (d,)

    @classmethod
    def from_rows(cls, X: np.ndarray, cost: np.ndarray, margin: float) -> LinearProblem:
        """Problem of rows with signed costs."""
        low, high = X.min(axis=0), X.max(axis=0)
        columns = np.flatnonzero(high > low)
        if len(columns) == 0:
            columns = np.array([0])  # one point: every classifier is constant
        center, scale = (low / 2 + high / 2)[columns], (high / 2 - low / 2)[columns]
        scale[scale == 0] = 1.0
        points, which = np.unique((X[:, columns] - center) / scale, axis=0, return_inverse=True)
        to_negative = np.bincount(which, np.maximum(cost, 0.0))
        to_positive = np.bincount(which, np.maximum(-cost, 0.0))
        kept = to_negative != to_positive
        return cls(
            points[kept],
            (to_negative - to_positive)[kept],
            float(np.minimum(to_negative, to_positive).sum()),
            margin,
            columns,
            X.shape[1],
            center,
            scale,
        )

    @property
    def tolerance(self) -> float:
        """Difference of costs that counts as zero."""
        return NEGLIGIBLE * float(np.abs(self.cost).sum())

    def cut_costs(self, keys: np.ndarray, gap: float) -> tuple[np.ndarray, np.ndarray]:
        """Sorted keys (c, k), and the cost (c, k + 1) of labelling all but the first 0, 1, ... k points positive.

        Infinite if the keys on both sides are at most `gap` apart.
        """
        order = np.argsort(keys, axis=1, kind="stable")
        ordered = np.take_along_axis(keys, order, axis=1)
        costs = np.zeros((len(keys), keys.shape[1] + 1))
        np.cumsum(self.cost[order], axis=1, out=costs[:, 1:])
        costs += self.floor - self.cost[self.cost < 0].sum()
        costs[:, 1:-1][np.diff(ordered, axis=1) <= gap] = np.inf
        return ordered, costs

    def threshold(self, weight: np.ndarray) -> float:
        """The cheapest threshold along a direction, for the original columns; in the middle of its gap."""
        projected = (self.points @ weight)[np.newaxis]
        ordered, costs = self.cut_costs(projected, GAP)
        ends = np.concatenate(([-len(weight) - 1.0], ordered[0], [len(weight) + 1.0]))
        best = int(np.argmin(costs[0]))
        return float((ends[best] + ends[best + 1]) / 2 + self.center @ (weight / self.scale))


@dataclass(frozen=True)
class Cells:
    """Boxes of directions, and bounds for the classifiers in them that cost less than a cutoff."""

    low: np.ndarray  # (c, d)
    high: np.ndarray
    bound: np.ndarray  # (c,): no classifier in the box costs less
    first: np.ndarray  # (c,): thresholds of the cheaper classifiers are between first and last
    last: np.ndarray
    is_wrong: np.ndarray  # bool (c, k): points that all cheaper classifiers get wrong
    is_open: np.ndarray  # bool (c, k): points that some of them may get wrong
    smallest: np.ndarray  # (c, k): ends of the projections of the points
    largest: np.ndarray

    @classmethod
    def below(cls, cutoff: float, problem: LinearProblem, low: np.ndarray, high: np.ndarray) -> Cells:
        """The boxes whose bound is below the cutoff."""
        upward, downward = np.maximum(problem.points, 0.0).T, np.minimum(problem.points, 0.0).T
        smallest = low @ upward + high @ downward - SLACK
        largest = high @ upward + low @ downward + SLACK
        margin, is_positive = problem.margin, problem.cost > 0
        # The best case: each point where its own label is easiest.
        ordered, costs = problem.cut_costs(np.where(is_positive, largest - margin, smallest + margin), 0.0)
        bound = costs.min(axis=1)
        kept = bound < cutoff
        is_cheap = costs[kept] < cutoff
        reach = np.full((len(is_cheap), 1), low.shape[1] + 1.0)
        ends = np.hstack((-reach, ordered[kept], reach))
        rows = np.arange(len(is_cheap))
        first = ends[rows, np.argmax(is_cheap, axis=1)][:, np.newaxis]
        last = ends[rows, ends.shape[1] - 1 - np.argmax(is_cheap[:, ::-1], axis=1)][:, np.newaxis]
        smallest, largest = smallest[kept], largest[kept]
        is_wrong = np.where(is_positive, largest < first + margin, smallest > last - margin)
        is_right = np.where(is_positive, smallest >= last + margin, largest <= first - margin)
        return cls(
            low[kept],
            high[kept],
            bound[kept],
            first[:, 0],
            last[:, 0],
            is_wrong,
            ~is_wrong & ~is_right,
            smallest,
            largest,
        )

    def __len__(self) -> int:
        return len(self.low)

    def halves(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corners of some of the boxes, bisected across their widest edge."""
        low, high = self.low[which], self.high[which]
        rows, widest = np.arange(len(low)), np.argmax(high - low, axis=1)
        middle = (low + high)[rows, widest] / 2
        upper_low, lower_high = low.copy(), high.copy()
        upper_low[rows, widest] = lower_high[rows, widest] = middle
        return np.vstack((low, upper_low)), np.vstack((lower_high, high))


class _Search:
    """The cheapest direction so far, and whether cheaper ones are ruled out."""

    def __init__(self, problem: LinearProblem, deadline: float):
        self.problem = problem
        self.deadline = deadline
        self.weight = np.eye(problem.points.shape[1])[0]
        self.cost = np.inf
        self.open_bounds: list[float] = []

    @property
    def cutoff(self) -> float:
        """Cost below which a classifier is an improvement."""
        return self.cost - self.problem.tolerance

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def try_directions(self, weights: np.ndarray) -> None:
        """Keep the cheapest of some directions (c, d), each with its best threshold."""
        weights = weights[np.abs(weights).max(axis=1) > 0]
        if len(weights) == 0:
            return
        weights = weights / np.abs(weights).max(axis=1, keepdims=True)
        _, costs = self.problem.cut_costs(weights @ self.problem.points.T, GAP)
        least = costs.min(axis=1)
        best = int(np.argmin(least))
        if least[best] < self.cutoff:
            self.cost, self.weight = float(least[best]), weights[best]

    def bisect(self) -> tuple[np.ndarray, np.ndarray]:
        """Bisect the faces of the cube until few cases are open in each cell; return the corners of the cells left."""
        d = self.problem.points.shape[1]
        low, high = -np.ones((2 * d, d)), np.ones((2 * d, d))
        for j in range(d):
            high[j, j], low[d + j, j] = -1.0, 1.0
        settled: list[tuple[np.ndarray, np.ndarray]] = []
        while len(low):
            self.try_directions((low + high) / 2)
            cells = Cells.below(self.cutoff, self.problem, low, high)
            is_small = cells.is_open.sum(axis=1) <= FEW_CASES
            if 2 * np.count_nonzero(~is_small) > MAX_CELLS or self.seconds_left <= 0:
                is_small[:] = True
            settled.append((cells.low[is_small], cells.high[is_small]))
            low, high = cells.halves(~is_small)
        return np.vstack([low for low, _ in settled]), np.vstack([high for _, high in settled])

    def settle(self, low: np.ndarray, high: np.ndarray) -> None:
        """Solve the remaining cells, lowest bound first."""
        cells = Cells.below(self.cutoff, self.problem, low, high)
        for i in np.argsort(cells.bound, kind="stable"):
            now = Cells.below(self.cutoff, self.problem, cells.low[[i]], cells.high[[i]])
            if len(now):
                self._solve(now)

    def _solve(self, cell: Cells) -> None:
        """Find the cheapest classifier of one cell, or prove that none is below the cutoff."""
        if self.seconds_left <= 0:
            self.open_bounds.append(float(cell.bound[0]))
            return
        problem, rows, d = self.problem, np.flatnonzero(cell.is_open[0]), cell.low.shape[1]
        cost, points, margin = np.abs(problem.cost[rows]), problem.points[rows], problem.margin
        sign = np.sign(problem.cost[rows])
        sunk = problem.floor + float(np.abs(problem.cost[cell.is_wrong[0]]).sum())
        unit = float(np.abs(problem.cost).max())
        # sign * (w x - t) >= margin, unless the point is given up: M is the largest violation of this in the cell.
        reach = np.where(sign > 0, cell.last[0] - cell.smallest[0, rows], cell.largest[0, rows] - cell.first[0])
        separate = np.hstack((sign[:, np.newaxis] * points, -sign[:, np.newaxis], np.diag(reach + margin)))
        price = np.concatenate((np.zeros(d + 1), cost / unit))
        found = milp(
            price,
            integrality=np.append(np.zeros(d + 1), np.ones(len(rows))),
            bounds=Bounds(
                np.concatenate((cell.low[0], cell.first, np.zeros(len(rows)))),
                np.concatenate((cell.high[0], cell.last, np.ones(len(rows)))),
            ),
            constraints=[
                LinearConstraint(separate, margin, np.inf),
                LinearConstraint(price[np.newaxis], -np.inf, (self.cutoff - sunk) / unit),
            ],
            options={"time_limit": max(self.seconds_left, 0.01), "mip_rel_gap": 0.0},
        )
        if found.status == 2:  # none below the cutoff
            return
        bound = cell.bound[0] if found.mip_dual_bound is None else sunk + unit * found.mip_dual_bound
        if found.x is not None:
            self.try_directions(found.x[np.newaxis, :d])
        # Not solved in time, or the solver's tolerance put a point on both sides of the boundary.
        if found.status != 0 or self.cost > sunk + unit * found.fun + max(problem.tolerance, 1e-6 * unit):
            self.open_bounds.append(max(float(bound), float(cell.bound[0])))


def search_directions(
    problem: LinearProblem, starts: list[np.ndarray], time_limit: float
) -> tuple[np.ndarray, float, float]:
    """Direction and threshold of the cheapest classifier found, and a lower bound of the cost of all with the margin.

    `starts` are directions to try first, of shape (n_features,); `time_limit` is in seconds.
    """
    search = _Search(problem, time.monotonic() + time_limit)
    if starts:
        search.try_directions(np.array(starts)[:, problem.columns] * problem.scale)
    search.settle(*search.bisect())
    lower_bound = min([search.cost, *search.open_bounds])
    direction = np.zeros(problem.n_features)  # for the original columns
    direction[problem.columns] = search.weight / problem.scale
    return direction, problem.threshold(search.weight), lower_bound
