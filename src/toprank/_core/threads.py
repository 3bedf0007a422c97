"""Threads: the thin shell that runs serial kernels side by side.

Work is cut into contiguous chunks of rows; each thread takes a contiguous run of chunks. What the threads write is
either disjoint or a sum of integers, so the result does not depend on how many threads there are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import count, pairwise
from typing import Any, Self

import numpy as np

CHUNK_ROWS = 8_192
"""Rows of one piece of work: large enough to hide the cost of handing it over, small enough to balance."""


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Number of threads for scikit-learn's `n_jobs`: None means 1, -1 all processors, -2 all but one."""
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0. Hint: use 1 for one thread, -1 for all processors.")
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return n_jobs if n_jobs > 0 else max(1, available + 1 + n_jobs)


class Threads:
    """A pool of threads that costs nothing when there is one; use it as a context manager."""

    def __init__(self, n_threads: int = 1):
        self.n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self.n_threads > 1:
            self._pool = ThreadPoolExecutor(self.n_threads)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        """Results of long calls, one by one and in order; the calls run in any order."""
        if self._pool is None:
            return map(function, *arguments)
        return self._pool.map(function, *arguments)

    def run(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Results of short calls, all at once and in order; the calling thread takes its part of them."""
        calls = list(zip(*arguments, strict=True))
        if self._pool is None or len(calls) < 2:
            return [function(*call) for call in calls]
        results: list[Any] = [None] * len(calls)
        turn = count()

        def work() -> None:
            while (i := next(turn)) < len(calls):
                results[i] = function(*calls[i])

        helpers = [self._pool.submit(work) for _ in range(min(self.n_threads, len(calls)) - 1)]
        try:
            work()
        except BaseException:
            calls.clear()  # nobody begins another call
            wait(helpers)
            raise
        for helper in helpers:
            if not helper.cancel():  # else it had not begun, and nothing is left for it
                helper.result()
        return results


def cut_into_chunks(start: np.ndarray, stop: np.ndarray, chunk: int = CHUNK_ROWS) -> np.ndarray:
    """Rows (segment, start, stop) that cover the segments in order, each at most `chunk` long; int64, shape (m, 3)."""
    length = np.maximum(stop - start, 0)
    count = -(-length // chunk)
    segment = np.repeat(np.arange(len(start)), count)
    first = np.cumsum(count) - count
    begin = start[segment] + (np.arange(len(segment)) - first[segment]) * chunk
    return np.column_stack((segment, begin, np.minimum(begin + chunk, stop[segment]))).astype(np.int64)


def share_out(work: np.ndarray, n_threads: int) -> list[slice]:
    """Contiguous slices of about equal total `work`, at most one a thread and none of them empty."""
    if len(work) == 0:
        return []
    if n_threads == 1:
        return [slice(0, len(work))]
    done = np.cumsum(work)
    targets = done[-1] * np.arange(1, n_threads) / n_threads
    bounds = np.unique(np.concatenate(([0], np.searchsorted(done, targets, side="left") + 1, [len(work)])))
    return [slice(int(a), int(b)) for a, b in pairwise(bounds)]
