"""`run`: run the missing trials of a store and save each as soon as it is finished."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from toprank.errors import InputError
from toprank.experiment.plan import Trial
from toprank.experiment.store import Store
from toprank.experiment.trial import Outcome
from toprank.experiment.workers import run_in_processes, run_in_threads, run_on_dask

BACKENDS = ("processes", "threads", "dask")


@dataclass
class Progress:
    """Progress of a run."""

    n_trials: int
    n_before: int
    started: float = field(default_factory=time.monotonic)
    statuses: Counter = field(default_factory=Counter)
    trial: Trial | None = None
    outcome: Outcome | None = None

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
        """Estimated seconds left at the present speed; infinite before the first trial is finished."""
        if not self.n_run:
            return float("inf")
        return (time.monotonic() - self.started) / self.n_run * (self.n_trials - self.n_done)


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
    n_workers = default_workers() if n_workers is None else n_workers
    if n_workers < 1:
        raise InputError(f"n_workers must be an int of at least 1, found {n_workers!r}.")
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
