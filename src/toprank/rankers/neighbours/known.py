"""`KnownCases`: the training cases of each class as points, and how far a row is from either class.

Algorithm 2.1 flags a row if at least k/2 of its k nearest cases are positive, after the distances to the positives are
multiplied by gamma. With j = ceil(k/2), that is so if the j-th nearest positive comes before the (k - j + 1)-th nearest
negative. Two distances per row therefore decide for every gamma at once: the row is flagged if

    distance to the (k - j + 1)-th negative / distance to the j-th positive > gamma.

For k = 1 that is the rule of section 2.4.3. A case of weight w counts as w cases at the same place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from toprank._core.threads import Threads
from toprank.errors import InputError
from toprank.rankers.neighbours.gpu import check_gpu
from toprank.rankers.neighbours.search import Neighbours, PointSet, algorithm_for, mapped
from toprank.rankers.neighbours.space import FARTHEST

ENOUGH = 1 - 1e-9
"""Ten cases of weight 0.1 are one case, although their sum is a bit less."""


class DecidingCounts(NamedTuple):
    """The cases that decide a vote: it is positive if the j-th positive is nearer than the (k - j + 1)-th negative."""

    positives: int
    negatives: int

    @classmethod
    def from_k(cls, k: int) -> Self:
        """Return the votes of the k nearest cases; half of an even k is enough for a positive.

        Examples
        --------
        >>> DecidingCounts.from_k(1), DecidingCounts.from_k(4)
        (DecidingCounts(positives=1, negatives=1), DecidingCounts(positives=2, negatives=3))
        """
        positives = -(-k // 2)
        return cls(positives, k - positives + 1)


@dataclass(eq=False)
class CaseSet:
    """Known cases of one class: points to search, how many cases each stands for, and their rows in training."""

    points: PointSet  # to search: the places of the cases, after the linear map of a learned metric
    places: np.ndarray  # float64 (m, n_dims): the cases as points of the space
    weight: np.ndarray | None  # float64 (m,); None for one case each
    rows: np.ndarray  # int64 (m,): row of each case in the training table

    @classmethod
    def learn(
        cls, points: np.ndarray, is_own: np.ndarray, weight: np.ndarray | None, rows: np.ndarray, *,
        metric: str = "euclidean", algorithm: str = "auto", components: np.ndarray | None = None, seed: int = 0,
    ) -> Self:  # fmt: skip
        """Return the training points of one class, which `is_own` marks; points of weight 0 are left out.

        `rows` are the rows of the points in the training table, increasing; `components`, float64 (p, n_dims), a linear
        map before distances are measured.
        """
        is_known = np.ones(len(points), bool) if weight is None else weight > 0
        own = is_own & is_known
        has_weight = weight is not None and bool(np.any(weight[is_known] != 1.0))
        places = points[own]
        if algorithm == "gpu":
            check_gpu(metric)
        found = PointSet(mapped(places, components), metric=metric, algorithm=algorithm, seed=seed)
        return cls(found, places, weight[own] if has_weight and weight is not None else None, rows[own])

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total(self) -> float:
        """Number of cases."""
        return float(len(self)) if self.weight is None else float(self.weight.sum())

    @property
    def weights(self) -> np.ndarray:
        """How many cases each point stands for, float64 (m,)."""
        return np.ones(len(self)) if self.weight is None else self.weight

    def positions(self, rows: np.ndarray | None) -> np.ndarray | None:
        """Return the position of each training row among the cases, -1 if it is none of them; None without rows."""
        return None if rows is None else positions_of(rows, self.rows)

    def at_count(
        self,
        queries: np.ndarray,
        counts: np.ndarray,
        threads: Threads,
        own: np.ndarray | None = None,
        *,
        is_bounded: bool = True,
    ) -> np.ndarray:
        """Return the distances within which each query has that many cases, float64 (n, n_counts).

        `counts` are increasing. `own` is the row of each query in the training table: one case there is left out. If
        there are fewer cases in all, the distance of the farthest; infinite if not `is_bounded`.
        """
        own = self.positions(own)
        if self.weight is None:
            return self._at_rank(queries, counts, threads, own, is_bounded)
        out, counts = np.full((len(queries), len(counts)), np.inf), np.asarray(counts) * ENOUGH
        depth, open_rows = min(int(np.ceil(counts[-1])) + 1, len(self)), np.arange(len(queries))
        while len(open_rows):
            mine = None if own is None else own[open_rows]
            found = self.points.nearest(queries[open_rows], depth, threads)
            count = self._counted(found, mine)
            is_all = depth >= len(self)
            reached = np.cumsum(count, axis=1)
            enough = (
                np.minimum(counts, reached[:, -1:]) if is_all else np.broadcast_to(counts, (len(reached), len(counts)))
            )
            done = is_all | (reached[:, -1] >= counts[-1])
            for c in range(len(counts)):
                # A case of count 0 was left out, so that the first place that reaches a count above 0 is a case.
                place = np.argmax(reached >= enough[:, c : c + 1], axis=1)
                distance = np.take_along_axis(found.distance, place[:, None], axis=1)[:, 0]
                is_there = reached[:, -1] >= (np.finfo(float).tiny if is_bounded else counts[c])
                out[open_rows[done], c] = np.where(is_there, distance, np.inf)[done]
            open_rows, depth = open_rows[~done], min(2 * depth, len(self))
        return out

    def n_within(self, found: Neighbours, counts: np.ndarray) -> np.ndarray:
        """Return how many of the nearest points make up a number of cases per query, int64 (n,); at least 1."""
        reached = np.cumsum(np.where(found.position >= 0, self.weights[found.position], 0.0), axis=1)
        return (reached < counts[:, None] * ENOUGH).sum(axis=1) + 1

    def _at_rank(
        self, queries: np.ndarray, counts: np.ndarray, threads: Threads, own: np.ndarray | None, is_bounded: bool
    ) -> np.ndarray:
        """The same with one case per point: the distances of the counts-th nearest."""
        found = self.points.nearest(queries, int(counts[-1]), threads, own)
        n_found = (found.position >= 0).sum(axis=1)
        most = n_found[:, None] if is_bounded else found.position.shape[1]
        place = np.minimum(np.asarray(counts)[None, :], most) - 1
        distance = np.take_along_axis(found.distance, np.maximum(place, 0), axis=1)
        return np.where(place < 0, np.inf, distance)

    def _counted(self, found: Neighbours, own: np.ndarray | None) -> np.ndarray:
        """Return how many cases each neighbour counts for, float64 (n, k): one less for the query itself."""
        assert self.weight is not None
        count = np.where(found.position >= 0, self.weight[found.position], 0.0)
        if own is not None:
            is_own = (found.position == own[:, None]) & (own >= 0)[:, None]
            count[is_own] = np.maximum(count[is_own] - 1.0, 0.0)
        return count

    # --- files --------------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the set for a file."""
        graph = np.zeros((0, 0), np.int32) if self.points.graph is None else self.points.graph
        weight = np.zeros(0) if self.weight is None else self.weight
        return {"places": self.places, "weight": weight, "rows": self.rows, "graph": graph}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], n_dims: int, components: np.ndarray | None, metric: str, algorithm: str
    ) -> Self:
        """Return the set of a file, checked before a kernel sees it."""
        places, weight, rows, graph = (arrays[name] for name in ("places", "weight", "rows", "graph"))
        m = len(places)
        is_valid = (
            places.dtype == weight.dtype == np.float64
            and places.shape == (m, n_dims)
            and m > 0
            and bool(np.all(np.abs(places) <= FARTHEST))
            and weight.shape in ((0,), (m,))
            and bool(np.all(np.isfinite(weight) & (weight > 0)))
            and rows.dtype == np.int64
            and rows.shape == (m,)
            and bool(np.all(rows >= -1))
            and bool(np.all(np.diff(rows) >= 0))
            and graph.dtype == np.int32
            and (graph.shape == (0, 0) or (graph.ndim == 2 and len(graph) == m and graph.shape[1] > 0))
            and bool(np.all((graph >= -1) & (graph < m)))
        )
        if not is_valid:
            raise InputError("The model's known cases do not fit together.")
        if (algorithm_for(places.shape, algorithm) == "approximate") != (graph.size > 0):
            raise InputError("The model's known cases and their graph do not fit together.")
        known = PointSet(
            mapped(places, components), metric=metric, algorithm=algorithm, graph=graph if graph.size else None
        )
        return cls(known, places, weight if weight.size else None, rows)


@dataclass(eq=False)
class KnownCases:
    """Positives and negatives of the training data, as points of a space."""

    positives: CaseSet
    negatives: CaseSet
    # float64 (p, n_dims), linear map of a learned metric: distances to positives are measured after it, those to
    # negatives before it
    components: np.ndarray | None = None
    synthetic: CaseSet | None = None  # positives that a sampler made up

    @classmethod
    def learn(
        cls, points: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None, *, metric: str = "euclidean",
        algorithm: str = "auto", components: np.ndarray | None = None, seed: int = 0,
        rows: np.ndarray | None = None,
    ) -> Self:  # fmt: skip
        """Return the known cases of training points; points of weight 0 are left out.

        `rows` are their rows in the training table, None for their positions; the rest is as in `PointSet`.
        """
        rows = np.arange(len(points)) if rows is None else rows
        positives, negatives = (
            CaseSet.learn(
                points, of_class, weight, rows, metric=metric, algorithm=algorithm, components=image, seed=seed
            )
            for of_class, image in ((is_positive, components), (~is_positive, None))
        )
        return cls(positives, negatives, components)

    def with_synthetic(self, places: np.ndarray, metric: str) -> Self:
        """Return the same cases, and positives at places that a sampler made up, float64 (m, n_dims)."""
        found = PointSet(mapped(places, self.components), metric=metric)
        synthetic = CaseSet(found, places, None, np.full(len(places), -1))
        return replace(self, synthetic=synthetic)

    @property
    def totals(self) -> tuple[float, float]:
        """Number of positives and of negatives, without synthetic positives."""
        return self.positives.total, self.negatives.total

    def distances(
        self, points: np.ndarray, votes: DecidingCounts, threads: Threads, own: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the distances to the deciding positive and to the deciding negative, both float64 (n,).

        `own` is the row of each point in the training table: it is left out of the search (leave-one-out).
        """
        image = mapped(points, self.components)
        positive = self.positives.at_count(image, np.array([votes.positives]), threads, own)[:, 0]
        return positive, self.negatives.at_count(points, np.array([votes.negatives]), threads, own)[:, 0]

    def distances_apart(
        self, points: np.ndarray, votes: DecidingCounts, threads: Threads, own: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the distances to the nearest real and synthetic positives, (n, j) each, and to the deciding negative.

        j is the number of positives that decide the vote; parameters as in `distances`.
        """
        assert self.synthetic is not None
        image = mapped(points, self.components)
        negative = self.negatives.at_count(points, np.array([votes.negatives]), threads, own)[:, 0]
        real = self.positives.points.nearest(image, votes.positives, threads, self.positives.positions(own)).distance
        if len(self.synthetic) == 0:
            return real, np.full(real.shape, np.inf), negative
        return real, self.synthetic.points.nearest(image, votes.positives, threads).distance, negative


def most_neighbours(n_cases: Iterable[float]) -> float:
    """Return the largest k that is of use with so many cases of each class.

    With one more case of each class than the vote asks for, rows that are left out can still win or lose it.
    """
    return float(2 * np.floor(min(n_cases)) - 3)


def positions_of(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the position of each row number in an increasing array of row numbers, -1 if it is not in it."""
    if len(known) == 0:
        return np.full(len(rows), -1)
    place = np.minimum(np.searchsorted(known, rows), len(known) - 1)
    return np.where(known[place] == rows, place, -1)


def ratios(positive: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """Return negative / positive: a row is flagged by every gamma below it, float64 (n,), from 0 to infinity.

    Rows at distance 0 from both classes, and rows that have no case of either class left, are as near to one as to
    the other: 1.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        out = negative / positive
    return np.where(np.isnan(out), 1.0, out)


def shares(ratio: np.ndarray) -> np.ndarray:
    """Return eta-hat of section 2.4.3, d- / (d+ + d-), from 0 to 1: flagged if it exceeds gamma / (1 + gamma)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(ratio > 1, 1.0 / (1.0 + 1.0 / ratio), ratio / (1.0 + ratio))
