"""Trials in processes, in threads or on a Dask cluster: (trial, outcome) pairs as they finish.

One level of parallelism: trials run side by side, each fit on one thread. Processes are watched from outside, so a fit
that takes too long is ended and a process that dies is replaced; threads and Dask workers can only look at the clock
between two fits.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection, wait
from typing import Any

from toprank.experiment.plan import Trial
from toprank.experiment.trial import Outcome, TimeLimitError, run_trial

Finished = Iterator[tuple[Trial, Outcome]]
FIT_BEGINS = "a fit begins"


def run_in_processes(trials: Sequence[Trial], folder: str | None, n_workers: int) -> Finished:
    """Run trials in processes; on the way out, also by an error, no process is left."""
    waiting = list(reversed(trials))
    workers = [_Worker(folder) for _ in range(min(n_workers, len(trials)))]
    try:
        while True:
            for i, worker in enumerate(workers):
                if worker.trial is None and waiting:
                    if not worker.process.is_alive():
                        workers[i] = worker = _Worker(folder)
                    worker.begin(waiting.pop())
            busy = [worker for worker in workers if worker.trial is not None]
            if not busy:
                return
            wait([worker.connection for worker in busy], timeout=min(worker.seconds_left for worker in busy))
            for worker in busy:
                outcome = worker.look()
                if outcome is not None:
                    trial, worker.trial = worker.trial, None
                    assert trial is not None
                    yield trial, outcome
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process that runs one trial after the other, and what it is at."""

    def __init__(self, folder: str | None):
        context = _context()
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, folder), daemon=True)
        self.process.start()
        theirs.close()
        self.trial: Trial | None = None
        self.since = 0.0

    def begin(self, trial: Trial) -> None:
        """Hand over a trial; its clock starts with its first fit."""
        self.trial, self.since = trial, float("inf")
        self.connection.send(trial)

    @property
    def seconds_left(self) -> float:
        """Seconds until the present fit is over its limit; a few where there is none, to look after the process."""
        limit = self.trial.protocol.time_limit if self.trial else None
        return 5.0 if limit is None or self.since == float("inf") else max(0.0, self.since + limit - time.monotonic())

    def look(self) -> Outcome | None:
        """The outcome of the present trial, or None while it runs."""
        try:
            while self.connection.poll():
                message = self.connection.recv()
                if message != FIT_BEGINS:
                    return message
                self.since = time.monotonic()
        except (EOFError, OSError):
            self.end()
            return {"status": "failed", "error": f"the process died (exit code {self.process.exitcode})"}
        if self.trial is not None and self.trial.protocol.time_limit is not None and self.seconds_left <= 0:
            self.end()
            return {"status": "timeout", "error": f"a fit took more than {self.trial.protocol.time_limit:g} s"}
        return None

    def end(self) -> None:
        """End the process, whatever it is at."""
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.connection.close()


def _context() -> Any:
    """How processes begin: forked from a server that has everything imported, where there is such a thing."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["toprank.experiment.workers", "toprank.experiment.methods", "pandas", "polars"])
    return context


def _work(connection: Connection, folder: str | None) -> None:
    """Run the trials that come, until the parent goes away."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    threading.Thread(target=_follow, daemon=True).start()
    with threadpool_limits(1):
        while True:
            try:
                trial = connection.recv()
            except EOFError:
                return
            connection.send(run_trial(trial, folder, before_fit=lambda: connection.send(FIT_BEGINS)))


def _follow() -> None:
    """End this process when its parent has ended, even in the middle of a fit."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def run_in_threads(trials: Sequence[Trial], folder: str | None, n_workers: int) -> Finished:
    """Run trials in threads; with one worker in the calling thread."""
    if n_workers == 1:
        yield from ((trial, _run_by_the_clock(trial, folder)) for trial in trials)
        return
    with ThreadPoolExecutor(n_workers) as pool:
        try:
            yield from zip(trials, pool.map(_run_by_the_clock, trials, [folder] * len(trials)), strict=True)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def run_on_dask(trials: Sequence[Trial], folder: str | None, client: Any) -> Finished:
    """Run trials on the workers of a Dask client, which must see the folder of the tables."""
    from distributed import as_completed

    futures = client.map(_run_by_the_clock, trials, [folder] * len(trials), pure=False)
    by_key = {future.key: trial for future, trial in zip(futures, trials, strict=True)}
    try:
        for future in as_completed(futures):
            error = future.exception()
            outcome = (
                future.result() if error is None else {"status": "failed", "error": f"{type(error).__name__}: {error}"}
            )
            yield by_key[future.key], outcome
    finally:
        client.cancel(futures)


def _run_by_the_clock(trial: Trial, folder: str | None) -> Outcome:
    """Outcome of a trial that looks at the clock itself, before each fit."""
    return run_trial(trial, folder, before_fit=_clock(trial.protocol.time_limit))


def _clock(limit: float | None) -> Callable[[], None]:
    """A function that raises TimeLimitError where the fit since its last call took too long."""
    last = [float("inf")]

    def before_fit() -> None:
        now = time.monotonic()
        if limit is not None and now - last[0] > limit:
            raise TimeLimitError(f"a fit took more than {limit:g} s")
        last[0] = now

    return before_fit
