"""Threads: the thin shell that runs serial kernels side by side.

Work is cut into contiguous chunks of rows; each thread takes a contiguous run of chunks. What the threads write is
either disjoint or a sum of integers, so the result does not depend on how many threads there are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Condition, Thread
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


class Batch:
    """Calls of one function that any thread may make, each of them once; counted by whoever holds the lock."""

    def __init__(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]):
        self.function, self.calls = function, calls
        self.results: list[Any] = [None] * len(calls)
        self.n_begun = self.n_ended = 0
        self.error: BaseException | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a call to begin; none is after an error."""
        return self.error is None and self.n_begun < len(self.calls)

    @property
    def is_over(self) -> bool:
        """Whether no call is left, and none is being made."""
        return not self.is_open and self.n_ended == self.n_begun


class Threads:
    """A pool of threads that costs nothing when there is one; use it as a context manager.

    A call may itself share out work. At no time are more than `n_threads` calls being made: who waits for others takes
    a call of theirs meanwhile, so nobody is idle while there is something to do.
    """

    def __init__(self, n_threads: int = 1):
        self.n_threads = n_threads
        self._is_entered = False
        self._helpers: list[Thread] = []
        self._batches: list[Batch] = []
        self._changed = Condition()

    def __enter__(self) -> Self:
        self._is_entered = self.n_threads > 1
        return self

    def __exit__(self, *exception: object) -> None:
        with self._changed:
            self._is_entered = False
            self._changed.notify_all()
        for helper in self._helpers:
            helper.join()
        self._helpers.clear()

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        """Results of long calls, one by one and in order; the calls run in any order."""
        if not self._is_entered:
            yield from map(function, *arguments)
            return
        with ThreadPoolExecutor(self.n_threads) as pool:
            yield from pool.map(function, *arguments)

    def run(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Results of short calls, all at once and in order; the calling thread takes its part of them."""
        calls = list(zip(*arguments, strict=True))
        if not self._is_entered or len(calls) < 2:
            return [function(*call) for call in calls]
        batch = Batch(function, calls)
        with self._changed:
            self._batches.append(batch)
            while len(self._helpers) < min(self.n_threads, len(calls)) - 1:
                self._helpers.append(Thread(target=self._help, daemon=True))
                self._helpers[-1].start()
            self._changed.notify(len(calls) - 1)
            try:
                self._work_until(lambda: batch.is_over, batch)
            finally:
                self._batches.remove(batch)
        if batch.error is not None:
            raise batch.error
        return batch.results

    def _help(self) -> None:
        """What a helper does: any call that is open, until the pool is left."""
        with self._changed:
            self._work_until(lambda: not self._is_entered)

    def _work_until(self, is_over: Callable[[], bool], own: Batch | None = None) -> None:
        """Make calls, one's own first, then those that have waited longest; the lock is held but during calls."""
        while not is_over():
            batch = own if own is not None and own.is_open else next((b for b in self._batches if b.is_open), None)
            if batch is None:
                self._changed.wait()
                continue
            at = batch.n_begun
            batch.n_begun += 1
            self._changed.release()
            try:
                batch.results[at] = batch.function(*batch.calls[at])
            except BaseException as error:  # it belongs to the thread that waits for the batch
                batch.error = batch.error or error
            finally:
                self._changed.acquire()
            batch.n_ended += 1
            if batch.is_over:
                self._changed.notify_all()


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
