"""Threads: a thin layer that runs serial kernels in parallel.

Work is cut into contiguous chunks of rows or columns. Threads write disjoint results, sums of integers, or sums of
floats over chunks that depend only on the data: no result depends on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from itertools import pairwise
from threading import Lock, RLock, Thread, local
from typing import Any, Self

import numpy as np

from toprank.errors import InputError

CHUNK_ROWS = 8_192
"""Rows per chunk: large enough to hide the overhead of a call, small enough to balance the load."""


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Number of threads for scikit-learn's `n_jobs`: None means 1, -1 all processors, -2 all but one."""
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise InputError("n_jobs must not be 0. Hint: use 1 for one thread, -1 for all processors.")
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return n_jobs if n_jobs > 0 else max(1, available + 1 + n_jobs)


class SharedCalls:
    """Calls of one function that any thread may make, each once; the counters are guarded by the pool's lock.

    `parent` are the calls one of which started these.
    """

    def __init__(self, function: Callable[..., Any], calls: list[tuple[Any, ...]], parent: SharedCalls | None):
        self.function, self.calls, self.parent = function, calls, parent
        self.results: list[Any] = [None] * len(calls)
        self.has_ended = [False] * len(calls)
        self.n_begun = self.n_ended = 0
        self.error: BaseException | None = None

    @property
    def is_open(self) -> bool:
        """Whether a call is left to start; false after an error."""
        return self.error is None and self.n_begun < len(self.calls)

    @property
    def is_over(self) -> bool:
        """Whether no call is left or running."""
        return not self.is_open and self.n_ended == self.n_begun

    def belong_to(self, other: SharedCalls | None) -> bool:
        """Whether these calls are `other`, or were started by one of them; always true for None."""
        return other is None or self is other or (self.parent is not None and self.parent.belong_to(other))


class Threads:
    """A pool of threads that costs nothing with one thread; use it as a context manager.

    Calls may start further calls. At most `n_threads` calls run at once: a thread that waits for other calls runs calls
    that these start. An interrupted thread leaves at once; helpers finish the calls they are running.
    """

    def __init__(self, n_threads: int = 1):
        self.n_threads = n_threads
        self._is_shared = False
        self._helpers: list[Thread] = []
        self._open: list[SharedCalls] = []
        # No Condition: Ctrl-C in one of its methods may leave it locked for good. An RLock, as the collector of garbage
        # may close an iterator of `map` at any moment.
        self._lock = RLock()
        self._asleep: list[Any] = []  # a lock for each waiting thread, which `_wake` releases
        self._mine = local()  # the calls this thread is working on

    def __enter__(self) -> Self:
        self._is_shared = self.n_threads > 1
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        with self._lock:
            self._is_shared = False
            self._wake()
        if kind is None or issubclass(kind, Exception):
            for helper in self._helpers:
                if helper.ident is not None:  # an interrupt may keep one from starting
                    helper.join()
        self._helpers.clear()

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        """Results of calls, one by one and in order; the calling thread helps while it waits for the next."""
        calls = list(zip(*arguments, strict=True))
        if not self._is_shared or len(calls) < 2:
            return (function(*call) for call in calls)
        return self._in_order(SharedCalls(function, calls, getattr(self._mine, "calls", None)))

    def run(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Results of calls, all at once and in order; the calling thread helps."""
        calls = list(zip(*arguments, strict=True))
        if not self._is_shared or len(calls) < 2:
            return [function(*call) for call in calls]
        shared = SharedCalls(function, calls, getattr(self._mine, "calls", None))
        try:
            self._offer(shared)
            self._work_until(lambda: shared.is_over, shared)
        finally:
            self._close(shared)
        if shared.error is not None:
            raise shared.error
        if not shared.is_over:
            raise CancelledError("The thread pool was closed before its work was done.")
        return shared.results

    def _in_order(self, shared: SharedCalls) -> Iterator[Any]:
        try:
            self._offer(shared)
            for at in range(len(shared.calls)):
                self._work_until(lambda at=at: shared.has_ended[at] or shared.error is not None, shared)  # type: ignore[misc]
                if shared.error is not None:
                    raise shared.error
                if not shared.has_ended[at]:
                    raise CancelledError("The thread pool was closed before its work was done.")
                yield shared.results[at]
        finally:
            self._close(shared)

    def _offer(self, shared: SharedCalls) -> None:
        """Offer calls to helpers, starting more helpers if needed."""
        n_helpers = min(self.n_threads, len(shared.calls)) - 1
        with self._lock:
            while len(self._helpers) < n_helpers:
                helper = Thread(target=self._work_until, args=(lambda: False,), daemon=True)
                self._helpers.append(helper)
                helper.start()
            self._open.append(shared)
            self._wake()

    def _close(self, shared: SharedCalls) -> None:
        with self._lock:
            if shared in self._open:
                self._open.remove(shared)

    def _work_until(self, is_over: Callable[[], bool], own: SharedCalls | None = None) -> None:
        """Run calls, oldest first, until is_over() is true or the pool is closed.

        A thread that waits for its `own` calls runs only these and the calls they start: others might take longer.
        """
        while True:
            with self._lock:
                if not self._is_shared or is_over():
                    return
                chosen = self._next_open(own)
                if chosen is None:
                    bed = Lock()
                    bed.acquire()
                    self._asleep.append(bed)
                else:
                    at = chosen.n_begun
                    chosen.n_begun += 1
            if chosen is None:
                self._wait(bed)  # without the lock, so that an interrupt does not keep it
            else:
                self._make_call(chosen, at)

    def _next_open(self, own: SharedCalls | None) -> SharedCalls | None:
        """The oldest calls of which one is left. No generator: Ctrl-C while one is closed would be lost."""
        for each in self._open:
            if each.is_open and each.belong_to(own):
                return each
        return None

    def _wait(self, bed: Any) -> None:
        """Sleep until `_wake` releases this lock."""
        bed.acquire()

    def _wake(self) -> None:
        """Wake all waiting threads; the caller has the lock. An interrupt at any point leaves none asleep for good."""
        while self._asleep:
            if self._asleep[-1].locked():
                self._asleep[-1].release()
            self._asleep.pop()

    def _make_call(self, shared: SharedCalls, at: int) -> None:
        before, self._mine.calls = getattr(self._mine, "calls", None), shared
        error: BaseException | None = None
        try:
            shared.results[at] = shared.function(*shared.calls[at])
        except BaseException as raised:  # raised in the thread that waits for these calls
            error = raised
        self._mine.calls = before
        with self._lock:
            shared.n_ended += 1
            shared.has_ended[at] = error is None
            shared.error = shared.error or error
            self._wake()
        if error is not None and not isinstance(error, Exception):  # Ctrl-C: do not wait
            raise error


def cut_evenly(n: int, n_threads: int, least: int = CHUNK_ROWS) -> list[slice]:
    """Contiguous slices of n items, at most one per thread, none smaller than `least` except a single or the last one.

    Examples
    --------
    >>> cut_evenly(10, 2, least=3), cut_evenly(10, 2), cut_evenly(0, 2)
    ([slice(0, 5, None), slice(5, 10, None)], [slice(0, 10, None)], [])
    """
    size = max(least, -(-n // n_threads))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def cut_into_chunks(start: np.ndarray, stop: np.ndarray, chunk: int = CHUNK_ROWS) -> np.ndarray:
    """Rows (segment, start, stop) that cover the segments in order, each at most `chunk` long; int64, shape (m, 3)."""
    length = np.maximum(stop - start, 0)
    count = -(-length // chunk)
    segment = np.repeat(np.arange(len(start)), count)
    first = np.cumsum(count) - count
    begin = start[segment] + (np.arange(len(segment)) - first[segment]) * chunk
    return np.column_stack((segment, begin, np.minimum(begin + chunk, stop[segment]))).astype(np.int64)


def share_out(work: np.ndarray, n_threads: int) -> list[slice]:
    """Contiguous slices of about equal total `work`, at most one per thread, none empty."""
    if len(work) == 0:
        return []
    if n_threads == 1:
        return [slice(0, len(work))]
    done = np.cumsum(work)
    targets = done[-1] * np.arange(1, n_threads) / n_threads
    bounds = np.unique(np.concatenate(([0], np.searchsorted(done, targets, side="left") + 1, [len(work)])))
    return [slice(int(a), int(b)) for a, b in pairwise(bounds)]
