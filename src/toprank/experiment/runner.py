"""`run`: the missing trials of a store, in processes, threads or on a Dask cluster; each is saved when it is finished.

One level of parallelism: trials run in parallel, each fit on one thread. Processes are watched from outside, so a fit
that takes too long is stopped, memory is limited, and a process that dies is replaced; threads and Dask workers can
only check the time between two fits. Workers know nothing of the store.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from threadpoolctl import threadpool_limits

from toprank.errors import InputError
from toprank.experiment.plan import Protocol, Trial
from toprank.experiment.store import Store
from toprank.experiment.trial import Outcome, TimeLimitError, memory_cap, run_trial
from toprank.metrics.checks import check_count

BACKENDS = ("processes", "threads", "dask")
Finished = Iterator[tuple[Trial, Outcome]]
FIT_BEGINS = "a fit begins"
DEATHS_BY_MEMORY = (-6, -9)
"""Exit codes of processes that abort, as C++ does when out of memory, or that the system kills."""

LONGEST_LOOK = 5.0
"""Maximum seconds between two checks of a process."""


@dataclass
class Progress:
    """Progress of a run."""

    n_trials: int
    n_before: int
    started: float = field(default_factory=time.monotonic)
    statuses: Counter = field(default_factory=Counter)
    trial: Trial | None = None
    outcome: Outcome | None = None
    deadline: float = float("inf")

    @property
    def n_run(self) -> int:
        """Trials finished in this run."""
        return self.statuses.total()

    @property
    def n_done(self) -> int:
        """Trials finished in this run and before it."""
        return self.n_before + self.n_run

    @property
    def seconds_left(self) -> float:
        """Estimated seconds left at the present speed, or until the deadline; infinite before any trial is done."""
        if not self.n_run:
            return float("inf")
        now = time.monotonic()
        return min((now - self.started) / self.n_run * (self.n_trials - self.n_done), max(self.deadline - now, 0.0))


def default_workers() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(
    store: Store,
    *,
    n_workers: int | None = None,
    backend: str = "processes",
    client: Any = None,
    retry: bool = False,
    trials: Sequence[Trial] | None = None,
    seconds: float | None = None,
) -> Iterator[Progress]:
    """Run the missing trials of a store; yields after every trial, once it is on disk.

    Parameters
    ----------
    store : Store
        Holds the plan and the finished trials.
    n_workers : int or None
        Parallel trials; None = one per processor.
    backend : {"processes", "threads", "dask"}
    client : distributed.Client or None
        For "dask".
    retry : bool
        Rerun trials that failed or took too long.
    trials : sequence of Trial or None
        Run these instead of all that is missing.
    seconds : float or None
        Stop after this time; processes abandon their current trial, threads and Dask finish it.

    Yields
    ------
    Progress
        The same object each time, updated; first before any trial is finished.
    """
    if backend not in BACKENDS:
        raise InputError(f"The backend must be one of {BACKENDS}, found {backend!r}.")
    if backend == "dask" and client is None:
        raise InputError("The backend 'dask' needs a client. Hint: pass client=distributed.Client(...).")
    n_workers = default_workers() if n_workers is None else check_count(n_workers, "n_workers", caller="run")
    store.drop_damaged()
    trials = store.missing(retry=retry) if trials is None else trials
    n_all = len(store.plan.trials())
    progress = Progress(n_all, n_all - len(store.missing(retry=retry)))
    deadline = float("inf") if seconds is None else time.monotonic() + seconds
    yield progress
    if backend == "dask":
        finished = run_on_dask(trials, store.folder, client, deadline)
    elif backend == "threads":
        finished = run_in_threads(trials, store.folder, n_workers, deadline)
    else:
        finished = run_in_processes(trials, store.folder, n_workers, deadline)
    for trial, outcome in finished:
        store.keep(trial, outcome)
        progress.statuses[outcome["status"]] += 1
        progress.trial, progress.outcome = trial, outcome
        yield progress


# --- workers ------------------------------------------------------------------------------------------------------


def run_in_processes(trials: Sequence[Trial], folder: str | None, n_workers: int, deadline: float) -> Finished:
    """Run trials in processes until a deadline; no process is left behind, even after an error."""
    waiting = list(reversed(trials))
    workers = [_Worker(folder) for _ in range(min(n_workers, len(trials)))]
    try:
        while time.monotonic() < deadline:
            for i, worker in enumerate(workers):
                if worker.trial is None and waiting:
                    if not worker.process.is_alive():
                        workers[i] = worker = _Worker(folder)
                    worker.begin(waiting.pop())
            busy = [worker for worker in workers if worker.trial is not None]
            if not busy:
                return
            longest = min(deadline - time.monotonic(), *(worker.seconds_left for worker in busy))
            wait([worker.connection for worker in busy], timeout=max(0.0, longest))
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
    """A process that runs one trial after the other, and its current trial."""

    def __init__(self, folder: str | None):
        # Forked from a server that has everything imported, if the system has one.
        has_server = "forkserver" in multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("forkserver" if has_server else "spawn")
        if has_server:
            names = ["toprank.experiment.runner", "toprank.experiment.methods", "pandas", "polars"]
            context.set_forkserver_preload(names)
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, folder), daemon=True)
        self.process.start()
        theirs.close()
        self.trial: Trial | None = None
        self.spent = self.spent_in_all = self.looked = 0.0

    def begin(self, trial: Trial) -> None:
        """Send a trial; the time limit of fits starts with its first fit."""
        self.trial, self.spent, self.spent_in_all, self.looked = trial, -float("inf"), 0.0, time.monotonic()
        try:
            self.connection.send(trial)
        except OSError:  # it has just died: `look` will notice
            self.connection.close()

    @property
    def seconds_left(self) -> float:
        """Seconds until the next check: a few, or fewer if the current fit or trial is near its limit."""
        left = [limit - spent for limit, spent, _ in self._limits()]
        return min([LONGEST_LOOK, *(max(0.0, seconds) for seconds in left)])

    def _limits(self) -> list[tuple[float, float, str]]:
        """Seconds allowed, seconds spent, and the reason to give when time is up: for the fit and for the trial."""
        if self.trial is None:
            return []
        fit, minutes = self.trial.protocol.time_limit, self.trial.protocol.trial_minutes
        limits = [] if fit is None else [(fit, self.spent, _fit_too_long(fit))]
        return limits + ([] if minutes is None else [(60 * minutes, self.spent_in_all, _trial_too_long(minutes))])

    def look(self) -> Outcome | None:
        """The outcome of the current trial, or None while it runs."""
        # Time without checks, such as that of a suspended run, does not count towards the limit.
        now = time.monotonic()
        passed = min(now - self.looked, 2 * LONGEST_LOOK)
        self.spent, self.spent_in_all, self.looked = self.spent + passed, self.spent_in_all + passed, now
        try:
            while self.connection.poll():
                message = self.connection.recv()
                if message != FIT_BEGINS:
                    return message
                self.spent = 0.0
        except (EOFError, OSError):
            self.end()
            code = self.process.exitcode
            why = ", perhaps for lack of memory" if code in DEATHS_BY_MEMORY else ""
            return {"status": "failed", "error": f"the process died (exit code {code}{why})"}
        for limit, spent, reason in self._limits():
            if spent > limit:
                self.end()
                return {"status": "timeout", "error": reason}
        return None

    def end(self) -> None:
        """End the process, whatever it is doing."""
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.connection.close()


def _work(connection: Connection, folder: str | None) -> None:
    """Run incoming trials until the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    threading.Thread(target=_follow, daemon=True).start()
    with threadpool_limits(1):
        while True:
            try:
                trial = connection.recv()
            except EOFError:
                return
            with memory_cap(trial.protocol.trial_memory):
                outcome = run_trial(trial, folder, before_fit=lambda: connection.send(FIT_BEGINS))
            connection.send(outcome)


def _follow() -> None:
    """End this process when its parent has ended, even in the middle of a fit."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def run_in_threads(trials: Sequence[Trial], folder: str | None, n_workers: int, deadline: float) -> Finished:
    """Run trials in threads, with one worker in the calling thread; none starts after the deadline."""
    if n_workers == 1:
        for trial in trials:
            if time.monotonic() < deadline:
                outcome = _run_by_the_clock(trial, folder)
                assert outcome is not None
                yield trial, outcome
        return
    with ThreadPoolExecutor(n_workers) as pool:
        futures = {pool.submit(_run_by_the_clock, trial, folder, deadline, is_alone=False): trial for trial in trials}
        try:
            for future in as_completed(futures):
                outcome = future.result()
                if outcome is not None:
                    yield futures[future], outcome
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def run_on_dask(trials: Sequence[Trial], folder: str | None, client: Any, deadline: float) -> Finished:
    """Run trials on the workers of a Dask client, which must be able to read the folder of the tables."""
    from distributed import as_completed

    futures = client.map(_run_by_the_clock, trials, [folder] * len(trials), pure=False, is_alone=False)
    by_key = {future.key: trial for future, trial in zip(futures, trials, strict=True)}
    try:
        for future in as_completed(futures):
            error = future.exception()
            failed = {"status": "failed", "error": f"{type(error).__name__}: {error}"}
            yield by_key[future.key], future.result() if error is None else failed
            if time.monotonic() > deadline:
                return
    finally:
        client.cancel(futures)


def _run_by_the_clock(
    trial: Trial, folder: str | None, deadline: float = float("inf"), *, is_alone: bool = True
) -> Outcome | None:
    """Outcome of a trial that checks the time itself, before each fit; None if it was too late to start."""
    if time.monotonic() > deadline:
        return None
    with threadpool_limits(1):
        return run_trial(trial, folder, before_fit=_clock(trial.protocol), is_alone=is_alone)


def _clock(protocol: Protocol) -> Callable[[], None]:
    """A function that raises TimeLimitError if the fit since its last call, or the whole trial, took too long."""
    limit, minutes = protocol.time_limit, protocol.trial_minutes
    begun, last = time.monotonic(), [float("inf")]

    def before_fit() -> None:
        now = time.monotonic()
        if limit is not None and now - last[0] > limit:
            raise TimeLimitError(_fit_too_long(limit))
        if minutes is not None and now - begun > 60 * minutes:
            raise TimeLimitError(_trial_too_long(minutes))
        last[0] = now

    return before_fit


def _fit_too_long(seconds: float) -> str:
    return f"a fit took more than {seconds:g} s"


def _trial_too_long(minutes: float) -> str:
    return f"the trial took more than {minutes:g} min"
