"""`PointSet`: the nearest of a set of points, exact or approximate, with or without the query itself.

Whatever finds the neighbours, `_core/distances.py` computes their distances: all searches that find the same
neighbours return the same bits, for one query and for many. Exact searches are a KD-tree where there are few
dimensions and blocked brute force otherwise, on a GPU if asked for. The approximate search follows a graph of near
neighbours that pynndescent builds once; the graph is plain integers, so a model file keeps it, and every search starts
at the same points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from sklearn.neighbors import KDTree
from threadpoolctl import ThreadpoolController

from toprank._core.distances import (
    along_graph,
    brute_force,
    count_within,
    map_rows,
    nearest_candidates,
    pair_distances,
    screen,
)
from toprank._core.threads import Threads, cut_evenly
from toprank.errors import InputError
from toprank.rankers.neighbours.gpu import GROUPS, QUERIES, Screen, cupy_or_why, relative_error

METRICS = {"euclidean": 2, "manhattan": 1}
"""Powers of the differences that distances add up, by name of the metric."""

ALGORITHMS = ("auto", "kd_tree", "brute", "gpu", "approximate")

KD_POINTS = 400
"""A KD-tree is faster than brute force from about this many points times 2 ** dimensions on (measured)."""

EXACT_POINTS = 20_000
"""Sets of at most this many points are always searched exactly."""

GRAPH_DEGREE = 24
"""Near neighbours per point in the graph of the approximate search."""

N_ENTRIES, N_STARTS = 1_024, 16
"""Points that a search along the graph compares a query with first, and how many of these it starts from."""

WIDTH = 64
"""Nearest points that a search along the graph keeps while it looks for nearer ones."""

CHUNK = 256
"""Fewest queries per thread."""

SCREEN_SIZE, SCREEN_K = 20_000, 64
"""Fewest numbers in a set of points, and most neighbours, at which brute force screens with a matrix product."""

SCREEN_QUERIES, SCREEN_POINTS = 256, 2_048
"""Queries and points per matrix product."""

SCREEN_ROOM = 60
"""Candidates kept per query, besides four per neighbour."""

LARGEST = 1e30
"""Squared norm, in units of the largest point, up to which products in single precision cannot overflow."""

SCREEN_RANGE = 1e-200, 1e200
"""Squared norms of the largest point at which double precision is far from its ends, so that screening is exact."""

RECALL_QUERIES = 500
"""Queries on which the recall of an approximate search is measured."""


@cache
def linear_algebra() -> ThreadpoolController:
    """Return the controller of the threads of linear algebra: more than one slow down small matrices, and ours."""
    return ThreadpoolController()


@dataclass(frozen=True)
class Neighbours:
    """The nearest points of each query, nearest first."""

    distance: np.ndarray  # float64 (n, k): infinite where there are fewer than k points
    position: np.ndarray  # int64 (n, k): position in the set of points; -1 where there are fewer


class PointSet:
    """Points of one class, float64 (m, d), and how to search them.

    algorithm="auto" is exact: a KD-tree where it is faster, or else brute force. "gpu" is brute force on a GPU, or
    without one where there is none. "approximate" still searches sets of at most 20,000 points exactly; its graph,
    int32 (m, g), is built with `seed`, unless one is given, for example that of a model file.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank._core.threads import Threads
    >>> points = PointSet(np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]]))
    >>> found = points.nearest(np.array([[0.0, 0.0]]), 2, Threads(1))
    >>> found.distance.tolist(), found.position.tolist()
    ([[0.0, 5.0]], [[0, 1]])
    >>> points.nearest(np.array([[0.0, 0.0]]), 2, Threads(1), left_out=np.array([0])).distance.tolist()
    [[5.0, 10.0]]
    """

    def __init__(
        self,
        points: np.ndarray,
        *,
        metric: str = "euclidean",
        algorithm: str = "auto",
        seed: int = 0,
        graph: np.ndarray | None = None,
    ):
        self.points = np.ascontiguousarray(points, np.float64)
        self.metric, self.power = metric, METRICS[metric]
        self.algorithm = algorithm_for(self.points.shape, algorithm)
        self.graph: np.ndarray | None = None
        if self.algorithm == "kd_tree":
            self._tree = KDTree(self.points, metric=metric)
        elif self.algorithm == "approximate":
            self.graph = near_graph(self.points, metric, seed) if graph is None else graph
            self._entries = np.linspace(0, len(points) - 1, N_ENTRIES).astype(np.int64)
        else:
            self._by_feature = np.ascontiguousarray(self.points.T)

    def __len__(self) -> int:
        return len(self.points)

    def __getstate__(self) -> dict[str, Any]:
        # The machine that reads it may have no GPU.
        return {name: value for name, value in vars(self).items() if name != "_on_gpu"}

    def nearest(self, queries: np.ndarray, k: int, threads: Threads, left_out: np.ndarray | None = None) -> Neighbours:
        """Return the k nearest points of each query, the same for any number of threads.

        `left_out` is the position of a point that each query must not find, usually itself; -1 for none.
        """
        n = len(queries)
        queries = np.ascontiguousarray(queries, np.float64)
        left_out = np.full(n, -1) if left_out is None else left_out.astype(np.int64)
        distance, position = np.empty((n, k)), np.empty((n, k), np.int64)
        search = {
            "kd_tree": self._by_tree, "brute": self._by_brute_force, "gpu": self._by_brute_force,
            "approximate": self._by_graph,
        }[self.algorithm]  # fmt: skip
        n_parts = threads.n_threads if self._screen_for(k) is None else 1

        def run(part: slice) -> None:
            search(queries[part], left_out[part], distance[part], position[part])

        with linear_algebra().limit(limits=1, user_api="blas"):  # the threads are ours
            threads.run(run, cut_evenly(n, n_parts, CHUNK))
        return Neighbours(np.sqrt(distance) if self.power == 2 else distance, position)

    def count_within(
        self, queries: np.ndarray, radius: np.ndarray, weight: np.ndarray, threads: Threads, *, is_open: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of the points within a radius of each query, and the distance of the nearest one beyond.

        `weight` is that of the points, float64 (m,). With `is_open`, points exactly at the radius are beyond it.
        """
        by_feature = np.ascontiguousarray(self.points.T)
        queries, n = np.ascontiguousarray(queries, np.float64), len(queries)
        count, beyond = np.empty(n), np.empty(n)

        def run(part: slice) -> None:
            count_within(
                queries[part], by_feature, weight, radius[part], is_open, self.power, count[part], beyond[part]
            )

        threads.run(run, cut_evenly(n, threads.n_threads, CHUNK))
        return count, beyond

    def recall(self, queries: np.ndarray, k: int, threads: Threads, left_out: np.ndarray | None = None) -> float:
        """Return the share of the k nearest points that the search finds, measured on at most 500 of the queries."""
        if self.algorithm != "approximate":
            return 1.0
        some = np.linspace(0, len(queries) - 1, min(len(queries), RECALL_QUERIES)).astype(np.int64)
        left_out = None if left_out is None else left_out[some]
        found = self.nearest(queries[some], k, threads, left_out).distance
        exact = PointSet(self.points, metric=self.metric, algorithm="brute")
        farthest = exact.nearest(queries[some], k, threads, left_out).distance[:, -1:]
        return float(np.mean(found <= farthest))

    def _by_brute_force(
        self, queries: np.ndarray, left_out: np.ndarray, distance: np.ndarray, position: np.ndarray
    ) -> None:
        k = distance.shape[1]
        on_gpu = self._screen_for(k) is not None
        if queries.size and (on_gpu or (k <= SCREEN_K and self._can_be_screened)):
            size = QUERIES if on_gpu else SCREEN_QUERIES
            for start in range(0, len(queries), size):
                part = slice(start, start + size)
                self._by_screening(queries[part], left_out[part], distance[part], position[part])
        else:
            brute_force(queries, self._by_feature, left_out, self.power, distance, position)

    @cached_property
    def _largest(self) -> float:
        """Largest squared norm of the points."""
        return float(np.einsum("ij,ij->i", self.points, self.points).max())

    @property
    def _can_be_screened(self) -> bool:
        is_large = self.power == 2 and self.points.size >= SCREEN_SIZE
        return is_large and SCREEN_RANGE[0] < self._largest < SCREEN_RANGE[1]

    @cached_property
    def _unit(self) -> float:
        """A power of 2, so that no digit is lost, by which the points get norms of at most 1."""
        return float(np.ldexp(1.0, -int(np.frexp(np.sqrt(self._largest))[1])))

    @cached_property
    def _single(self) -> np.ndarray:
        """The scaled points in single precision, transposed."""
        return np.ascontiguousarray((self.points * self._unit).T, np.float32)

    @cached_property
    def _squares(self) -> np.ndarray:
        """Squared norms of the scaled points."""
        scaled = self.points * self._unit
        return np.einsum("ij,ij->i", scaled, scaled)

    def _screen_for(self, k: int) -> Screen | None:
        """The points on a GPU, if that is where k neighbours are searched."""
        return self._on_gpu if self.algorithm == "gpu" and k <= GROUPS and self._can_be_screened else None

    @cached_property
    def _on_gpu(self) -> Screen | None:
        xp = cupy_or_why()[0]
        return None if xp is None else Screen(self._single, self._squares, xp)

    def _by_screening(
        self, queries: np.ndarray, left_out: np.ndarray, distance: np.ndarray, position: np.ndarray
    ) -> None:
        """Brute force in two steps, with the same result: a rounded matrix product leaves few candidates per query."""
        (n, k), d, single_precision = distance.shape, queries.shape[1], np.finfo(np.float32)
        with np.errstate(over="ignore"):
            scaled = queries * self._unit
            square = np.einsum("ij,ij->i", scaled, scaled)
        is_large = ~(square < LARGEST)  # its product would overflow
        square = np.where(is_large, 0.0, square)
        single = np.where(is_large[:, None], 0.0, scaled).astype(np.float32)
        floor = 4 * d * float(single_precision.tiny) * (1 + np.sqrt(square))
        upper, room = np.full((n, k), np.inf), 4 * k + SCREEN_ROOM
        on_gpu = self._screen_for(k)
        if on_gpu is not None:
            candidate, n_candidates = on_gpu.candidates(single, square, floor, left_out, k, room)
            n_candidates[is_large] = room + 1
            low = np.zeros((n, room))
        else:
            low, candidate = np.empty((n, room)), np.empty((n, room), np.int64)
            n_candidates = np.where(is_large, room + 1, 0)
            slack = relative_error(d)
            for start in range(0, len(self.points), SCREEN_POINTS):
                product = single @ self._single[:, start : start + SCREEN_POINTS]
                screen(
                    product, square, self._squares, slack, floor, left_out, start, upper, low, candidate, n_candidates
                )
        nearest_candidates(queries, self.points, low, candidate, n_candidates, upper, distance, position)
        for i in np.flatnonzero(n_candidates > room):
            one = slice(i, i + 1)
            brute_force(queries[one], self._by_feature, left_out[one], self.power, distance[one], position[one])

    def _by_tree(self, queries: np.ndarray, left_out: np.ndarray, distance: np.ndarray, position: np.ndarray) -> None:
        k = distance.shape[1]
        n_found = min(k + 1, len(self.points))
        found = self._tree.query(queries, n_found, return_distance=False).astype(np.int64)
        length = np.empty(found.shape)
        pair_distances(queries, self.points, found, self.power, length)
        length[found == left_out[:, None]] = np.inf  # sorts last, and is cut off
        order = np.lexsort((found, length), axis=1)[:, :k]
        distance[:, order.shape[1] :], position[:, order.shape[1] :] = np.inf, -1
        distance[:, : order.shape[1]] = np.take_along_axis(length, order, axis=1)
        position[:, : order.shape[1]] = np.take_along_axis(found, order, axis=1)
        position[np.isinf(distance)] = -1

    def _by_graph(self, queries: np.ndarray, left_out: np.ndarray, distance: np.ndarray, position: np.ndarray) -> None:
        width = max(WIDTH, 2 * distance.shape[1])
        along_graph(
            queries, self.points, self.graph, self._entries, N_STARTS, width, left_out, self.power, distance, position
        )


def algorithm_for(shape: tuple[int, ...], wanted: str) -> str:
    """Return the search for points of a shape (m, d): "kd_tree", "brute", "gpu" or "approximate"."""
    m, d = shape
    if wanted == "approximate" and m > EXACT_POINTS:
        return "approximate"
    if wanted in ("kd_tree", "brute", "gpu"):
        return wanted if d and m else "brute"
    return "kd_tree" if d > 0 and m >= KD_POINTS * 2.0**d else "brute"


def near_graph(points: np.ndarray, metric: str, seed: int) -> np.ndarray:
    """Return a graph of near neighbours, int32 (m, degree): near points of each point, -1 where there are fewer.

    pynndescent finds the near neighbours; each point also gets some of the points whose near neighbour it is, so that a
    search can leave a dense region as it came. One thread builds it: the graph of pynndescent depends on their number.
    """
    try:
        from pynndescent import NNDescent
    except ImportError:
        raise InputError(
            "algorithm='approximate' needs the package pynndescent, which is not installed. "
            "Hint: pip install 'toprank[neighbours]', or use algorithm='auto'."
        ) from None
    built: Any = NNDescent(
        points.astype(np.float32), metric=metric, n_neighbors=GRAPH_DEGREE, random_state=seed, n_jobs=1
    )
    near = built.neighbor_graph[0].astype(np.int32)
    near[near == np.arange(len(points), dtype=np.int32)[:, None]] = -1
    return np.hstack((near, _reversed(near, GRAPH_DEGREE // 2)))


def _reversed(near: np.ndarray, degree: int) -> np.ndarray:
    """Return up to `degree` points that have each point as a near neighbour, the nearest pairs first; -1 for none."""
    m, g = near.shape
    to, rank = near.T.ravel(), np.repeat(np.arange(g), m)
    origin = np.tile(np.arange(m, dtype=np.int32), g)
    is_edge = to >= 0
    to, rank, origin = to[is_edge], rank[is_edge], origin[is_edge]
    order = np.lexsort((origin, rank, to))
    to, origin = to[order], origin[order]
    first = np.searchsorted(to, np.arange(m))
    place = np.arange(len(to)) - first[to]
    out = np.full((m, degree), -1, np.int32)
    is_kept = place < degree
    out[to[is_kept], place[is_kept]] = origin[is_kept]
    return out


def mapped(points: np.ndarray, components: np.ndarray | None) -> np.ndarray:
    """Return points after a linear map L of shape (p, d), each the same alone and in a batch; None keeps them."""
    if components is None:
        return points
    out = np.empty((len(points), len(components)))
    map_rows(np.ascontiguousarray(points), np.ascontiguousarray(components, np.float64), out)
    return out
