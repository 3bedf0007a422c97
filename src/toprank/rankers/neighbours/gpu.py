"""Brute force on a GPU: which points may be among the nearest of each query.

Two passes of matrix products in single precision, with the error bounds of `_core/distances.py`, leave a few candidates
per query. Their distances are computed where all others are, so a search on a GPU returns the same bits as any other.

1. Points are dealt into groups. The k-th smallest of the groups' smallest upper bounds is at least the distance of the
   k-th nearest point: k groups have a point within it.
2. Points whose lower bound is within it are candidates.

CuPy has the functions of NumPy, so any module with these can do the work.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from toprank.errors import InputError

QUERIES, POINTS = 1_024, 32_768
"""Queries and points per matrix product, 128 MiB."""

GROUPS = 1_024
"""Groups of points, and so most neighbours that can be asked for."""

TF32 = 2.0**-10
"""Precision of products in TensorFloat-32, which CuPy and CUDA can be told to use in place of single precision."""


@cache
def cupy_or_why() -> tuple[Any, str]:
    """Return CuPy and "", or None and why it cannot be used."""
    try:
        import cupy

        if cupy.cuda.runtime.getDeviceCount() > 0:
            return cupy, ""
    except ImportError:
        return None, "the package cupy is not installed"
    except Exception as error:  # whatever a missing or old driver raises
        return None, f"CUDA says: {error}"
    return None, "CUDA finds no GPU"


def check_gpu(metric: str) -> None:
    """Raise InputError if distances of a metric cannot be searched on a GPU here."""
    _, why = cupy_or_why()
    if why:
        raise InputError(
            f"algorithm='gpu' needs an NVIDIA GPU and the package cupy, but {why}. "
            "Hint: pip install cupy-cuda12x (cupy-cuda13x for CUDA 13), or use algorithm='auto', with the same result."
        )
    if metric != "euclidean":
        raise InputError(
            f"algorithm='gpu' searches by Euclidean distances, but metric is {metric!r}. Hint: use algorithm='auto'."
        )


def relative_error(d: int) -> float:
    """Bound of the relative error of squared distances in d dimensions, by products in single precision."""
    return (d + 16) * float(np.finfo(np.float32).eps)


class Screen:
    """Points on a GPU, in single precision: float32 (d, m), with norms of at most 1.

    `square` are the squared norms before they were rounded, `xp` is CuPy or another module with the functions of NumPy.
    """

    def __init__(self, points: np.ndarray, square: np.ndarray, xp: Any):
        self._xp, (self._d, self._m) = xp, points.shape
        self._points, self._square = xp.asarray(points), xp.asarray(square.astype(np.float32))

    def candidates(
        self, queries: np.ndarray, square: np.ndarray, floor: np.ndarray, left_out: np.ndarray, k: int, room: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the points that may be among the k nearest, int64 (n, room), and how many, int64 (n,).

        They are in increasing order; a query that has more than fit counts room + 1. About `QUERIES` queries, float32
        (n, d), are on the GPU at once; `square` and `floor` are their squared norms and bounds of the absolute error,
        `left_out` is a point that each must not find, -1 for none; k is at most `GROUPS`.
        """
        xp, n = self._xp, len(queries)
        position, count = np.full((n, room), -1, np.int64), np.zeros(n, np.int64)
        block = xp.asarray(queries), xp.asarray(square.astype(np.float32))[:, None], left_out
        slack = self._relative_error(n)
        most = self._within(block, k, 1.0 + slack) + 2.0 * xp.asarray(floor.astype(np.float32))
        most = xp.minimum(most, np.finfo(np.float32).max)[:, None]  # points left out are infinitely far
        for start in range(0, self._m, POINTS):
            is_near = self._bounds(block, start, 1.0 - slack) <= most
            found = count + _on_host(is_near.sum(axis=1))
            is_near &= xp.asarray(found <= room)[:, None]  # what has too many is not worth a list
            row, at = (_on_host(each) for each in xp.nonzero(is_near))
            place = count[row] + np.arange(len(row)) - np.searchsorted(row, row)
            position[row, place] = at + start
            count = np.where(found > room, room + 1, found)
        return position, count

    def _within(self, block: tuple[Any, Any, np.ndarray], k: int, factor: float) -> Any:
        """Return the k-th smallest of the groups' smallest upper bounds, by query."""
        xp, n = self._xp, len(block[0])
        smallest = xp.full((n, GROUPS), np.inf, np.float32)
        for start in range(0, self._m, POINTS):
            bound = self._bounds(block, start, factor)
            n_whole = bound.shape[1] // GROUPS * GROUPS
            if n_whole:
                grouped = bound[:, :n_whole].reshape(n, -1, GROUPS).min(axis=1)
                smallest = xp.minimum(smallest, grouped)
            rest = bound.shape[1] - n_whole
            smallest[:, :rest] = xp.minimum(smallest[:, :rest], bound[:, n_whole:])
        return xp.partition(smallest, k - 1, axis=1)[:, k - 1]

    def _relative_error(self, n: int) -> float:
        """Return a bound for products with n queries; wider where a known product shows that they are rounded more."""
        xp, shape = self._xp, (self._d, min(self._m, POINTS))
        known = self._product(xp.full((n, self._d), 1.0 + TF32 / 4, np.float32), xp.ones(shape, np.float32))
        is_rounded = bool((known < self._d * (1.0 + TF32 / 8)).any())
        return relative_error(self._d) + (4 * TF32 if is_rounded else 0.0)

    def _product(self, queries: Any, points: Any) -> Any:
        return queries @ points

    def _bounds(self, block: tuple[Any, Any, np.ndarray], start: int, factor: float) -> Any:
        """Return (|x|^2 + |p|^2) * factor - 2 x . p for queries x and points p from `start` on."""
        queries, square, left_out = block
        bound = self._product(queries, self._points[:, start : start + POINTS])
        bound *= -2.0
        bound += (square + self._square[start : start + POINTS]) * np.float32(factor)
        row = np.flatnonzero((left_out >= start) & (left_out < start + bound.shape[1]))
        bound[self._xp.asarray(row), self._xp.asarray(left_out[row] - start)] = np.inf
        return bound


def _on_host(array: Any) -> np.ndarray:
    """Return an array of NumPy."""
    return array.get() if hasattr(array, "get") else array
