"""Boosting on several workers at once: each grows the same trees on its rows, sums go through XGBoost's collective.

The fit runs in one task per worker. Tasks wait for one another in every round, so they all end together: after the last
round, when the user interrupts, or when one of them fails or its worker is gone.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Thread
from typing import Any

import numpy as np

from toprank.distributed.partitions import Part, PartitionedCases, import_dask
from toprank.errors import InputError
from toprank.rankers.boosting.losses import THIS_PROCESS, RowSums
from toprank.rankers.boosting.rounds import Rounds, Rows, Settings, import_xgboost, single_precision

CELLS = 2**24
"""Values that are sent to a worker at once."""

LOOK_EVERY = 0.2
"""Seconds between two looks at the tasks."""

COUNT_EVERY = 1.0
"""Seconds between two looks at the workers."""

MOST_ROWS = 2**30
"""Rows whose exponentials one worker can sum without overflow (`toprank._core.surrogates.UNIT`)."""

START_SECONDS = 300
"""Longest time for all tasks to find one another."""

END_SECONDS = 30
"""Longest time to wait for the tasks of a failed or interrupted fit."""


class Workers(RowSums):
    """Sums over the rows of all workers, by XGBoost's collective.

    `numbers` are those of the rows of this worker in the whole table.
    """

    has_all_rows = False

    def __init__(self, numbers: np.ndarray):
        super().__init__()
        self._numbers = numbers

    def total(self, values: np.ndarray) -> np.ndarray:
        """The sum of an array over all workers, element by element; of integers as float64, as they may be large."""
        if values.dtype != np.int64:
            return self._reduce(values, "SUM")
        high, low = self._reduce(np.array([values >> 32, values & 0xFFFFFFFF]), "SUM")
        return high * 2.0**32 + low

    def largest(self, values: np.ndarray) -> np.ndarray:
        """The maximum of an array over all workers, element by element."""
        return self._reduce(values, "MAX")

    def _reduce(self, values: np.ndarray, operation: str) -> np.ndarray:
        from xgboost import collective

        return collective.allreduce(values, collective.Op[operation]).reshape(values.shape)

    def gather(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values of all rows, in the order of the table, and the numbers of the own rows."""
        n_rows = int(self.total(np.array([len(self._numbers)]))[0])
        whole = np.zeros((n_rows, values.shape[1]))
        whole[self._numbers] = values
        return self.total(whole), self._numbers  # all but one worker add 0


@dataclass(frozen=True)
class Task:
    """What all workers need to know: the unique name of the fit, and what it is made of.

    `types` are XGBoost's types of the columns, `reference` is a table with the bins of the whole one.
    """

    name: str
    settings: Settings
    n_rounds: int
    types: list[str]
    reference: np.ndarray


# --- on a worker ------------------------------------------------------------------------------------------------

DONE: dict[str, int] = {}
"""Rounds done, by fit."""

STOPPED: set[str] = set()
"""Fits that are to end after the current round."""

TRACKERS: dict[str, Any] = {}


def grow(task: Task, parts: list[Part], first_numbers: list[int], rank: int, meeting: dict[str, Any]) -> bytes | None:
    """Grow the booster on the rows of this worker, together with the others; the first worker returns its JSON.

    `first_numbers` has the number of the first row of each part, `meeting` says where the workers meet; empty if there
    is only one. None without a round.
    """
    DONE[task.name] = 0
    try:
        rows, numbers = _rows_of(parts, first_numbers, task)
        with _collective(rank, meeting):
            all_rows = Workers(numbers) if meeting else THIS_PROCESS
            rounds = Rounds(rows, task.settings, all_rows=all_rows)
            for _ in range(task.n_rounds):
                if all_rows.largest(np.array([int(task.name in STOPPED)]))[0]:
                    break
                rounds.step()
                DONE[task.name] = rounds.n_rounds
            return rounds.to_json() if rank == 0 and rounds.n_rounds else None
    finally:
        DONE.pop(task.name, None)
        STOPPED.discard(task.name)


def _rows_of(parts: list[Part], first_numbers: list[int], task: Task) -> tuple[Rows, np.ndarray]:
    """The rows with weight of all parts, and their numbers."""
    kept = [part.kept for part in parts]
    own = [np.ones(len(part.X)) if part.weight is None else part.weight.astype(np.float64) for part in parts]
    runs = [(first, len(rows)) for first, rows in zip(first_numbers, kept, strict=True)]
    reference = Rows(task.reference, np.zeros(0, bool), np.zeros(0), task.types)
    rows = Rows(
        np.concatenate([part.X[rows] for part, rows in zip(parts, kept, strict=True)]),
        np.concatenate([part.is_positive[rows] for part, rows in zip(parts, kept, strict=True)]),
        np.concatenate([weight[rows] for weight, rows in zip(own, kept, strict=True)]),
        task.types, runs, reference.to_xgboost(task.settings.parameters),
    )  # fmt: skip
    return rows, np.concatenate([first + np.arange(size) for first, size in runs])


def _collective(rank: int, meeting: dict[str, Any]) -> contextlib.AbstractContextManager[Any]:
    """The context in which this worker is joined with the others, if there are any."""
    if not meeting:
        return contextlib.nullcontext()
    from xgboost import collective

    return collective.CommunicatorContext(**meeting, dmlc_task_id=f"{rank:06}")


def start_tracker(name: str, n_workers: int, address: str) -> dict[str, Any]:
    """Start the meeting point of a fit on this worker; return how to find it."""
    from distributed.comm.addressing import get_address_host
    from xgboost.tracker import RabitTracker

    host = "127.0.0.1" if address.startswith("inproc") else get_address_host(address)
    tracker = RabitTracker(n_workers=n_workers, host_ip=host, sortby="task", timeout=START_SECONDS)
    tracker.start()
    TRACKERS[name] = tracker
    return tracker.worker_args()


def end_fit(name: str) -> None:
    """Close the meeting point of a fit that is over."""
    if name not in DONE:
        STOPPED.discard(name)
    tracker = TRACKERS.pop(name, None)
    if tracker is not None:  # closing it may wait for a worker that is gone
        Thread(target=_close, args=(tracker,), daemon=True).start()


def _close(tracker: Any) -> None:
    with contextlib.suppress(import_xgboost().core.XGBoostError):  # tasks that still wait to meet get an error
        tracker.free()


def stop_fit(name: str) -> None:
    """End a fit after the current round."""
    STOPPED.add(name)


def rounds_done(name: str) -> int:
    """Number of rounds of a fit so far."""
    return DONE.get(name, 0)


# --- on the client ----------------------------------------------------------------------------------------------


class WorkerLostError(RuntimeError):
    """A worker left the cluster during a fit."""


class Fit:
    """One fit on the workers that hold the rows; parts without rows have no share in it."""

    def __init__(self, data: PartitionedCases):
        self._client, self.name = data.parts.client, f"toprank-{uuid.uuid4().hex}"
        self._has = _by_worker(data)
        self._addresses = sorted(self._has)
        self._futures: list[Any] = []

    def run(self, settings: Settings, n_rounds: int, types: list[str], reference: np.ndarray,
            show: Callable[[int], None]) -> bytes | None:  # fmt: skip
        """Grow the booster; return its JSON, None if it was interrupted before the first round.

        Ctrl-C ends it after the current round: then KeyboardInterrupt has the JSON, or None, as its argument.
        """
        task = Task(self.name, settings, n_rounds, types, reference)
        with import_dask().MultiLock(self._addresses, client=self._client):  # two concurrent fits would deadlock
            try:
                self._start(task)
                self._wait(show)
                return self._futures[0].result()
            except KeyboardInterrupt:
                self._on_those_present(stop_fit)
                self._wait(show)
                raise KeyboardInterrupt(self._futures[0].result()) from None
            except BaseException:
                self._on_those_present(stop_fit)
                raise
            finally:  # leave nothing of the fit on the cluster; tasks that still wait for a lost worker give up
                self._client.cancel(self._futures, force=True)
                self._futures = []
                self._on_those_present(end_fit)

    def _start(self, task: Task) -> None:
        threads = self._client.nthreads(self._addresses)
        gone = [address for address in self._addresses if address not in threads]
        if gone:
            raise _lost(gone)
        meeting: dict[str, Any] = {}
        if len(self._addresses) > 1:
            first = self._addresses[0]
            try:
                found = self._client.run(start_tracker, self.name, len(self._addresses), first, workers=[first])
            except OSError:
                raise _lost([first]) from None
            meeting = found[first]
        for rank, address in enumerate(self._addresses):
            parts, first_numbers = zip(*self._has[address], strict=True)
            parameters = task.settings.parameters | {"nthread": int(threads[address])}
            for_worker = replace(task, settings=replace(task.settings, parameters=parameters))
            future = self._client.submit(
                grow, for_worker, list(parts), list(first_numbers), rank, meeting, workers=[address], pure=False,
                allow_other_workers=False, key=f"{self.name}-{rank}",
            )  # fmt: skip
            self._futures.append(future)

    def _wait(self, show: Callable[[int], None]) -> None:
        """Wait until all tasks are done; raise an error if one of them failed, or its worker is gone."""
        last = time.monotonic()
        while any(future.status == "pending" for future in self._futures):
            if any(future.status in ("error", "cancelled", "lost") for future in self._futures):
                break
            time.sleep(LOOK_EVERY)
            if time.monotonic() - last >= COUNT_EVERY:
                last = time.monotonic()
                self._check_workers()
                done = self._client.run(rounds_done, self.name, workers=self._addresses[:1], on_error="ignore")
                show(max(done.values(), default=0))
        self._check_failures()

    def _check_workers(self) -> None:
        """Raise WorkerLostError if a worker is gone."""
        present = self._client.nthreads()
        gone = [address for address, future in zip(self._addresses, self._futures, strict=True)
                if address not in present and future.status != "finished"]  # fmt: skip
        if gone:
            raise _lost(gone)

    def _check_failures(self) -> None:
        """Raise the error of a task; one that its own rows caused before those of tasks that lost contact with it."""
        if all(future.status == "finished" for future in self._futures):
            return
        self._await_ends()
        errors = [future.exception() for future in self._futures if future.status == "error"]
        out_of_touch = (import_xgboost().core.XGBoostError, import_dask().KilledWorker, OSError)
        for error in errors:
            if not isinstance(error, out_of_touch):
                raise error
        self._check_workers()
        time.sleep(COUNT_EVERY)  # the scheduler may hear of a lost worker a little later than its partners
        self._check_workers()
        what = str(errors[0]).strip().splitlines()[-1] if errors else "a task was cancelled"
        raise RuntimeError(
            f"Fitting on {len(self._addresses)} workers failed: {what}. "
            "Hint: look into the logs of the workers; a worker without memory or network is the usual cause."
        )

    def _await_ends(self) -> None:
        """Give all tasks some time to end."""
        end = time.monotonic() + END_SECONDS
        while time.monotonic() < end and any(future.status == "pending" for future in self._futures):
            time.sleep(LOOK_EVERY)
            if set(self._addresses) - set(self._client.nthreads()):
                return

    def _on_those_present(self, function: Callable[[str], None]) -> None:
        present = self._client.nthreads()
        addresses = [address for address in self._addresses if address in present]
        if addresses:
            self._client.run(function, self.name, workers=addresses, on_error="ignore")


def _by_worker(data: PartitionedCases) -> dict[str, list[tuple[Any, int]]]:
    """Parts with rows by the address of a worker that has them, each with the number of its first row with weight."""
    parts = data.parts.futures
    import_dask().wait(parts)  # those of a worker that was lost meanwhile are computed again
    places = data.parts.client.who_has(parts)
    out: dict[str, list[tuple[Any, int]]] = {}
    rows: dict[str, int] = {}
    for part, first, size in zip(parts, data.first_numbers, data.sizes.tolist(), strict=True):
        if size:
            addresses = sorted(places.get(part.key, ()))
            if not addresses:
                raise _lost([])
            address = min(addresses, key=lambda each: (len(out.get(each, ())), each))
            out.setdefault(address, []).append((part, first))
            rows[address] = rows.get(address, 0) + size
            if rows[address] > MOST_ROWS:
                raise InputError(
                    f"Worker {address} holds more than {MOST_ROWS:,} rows, the most that one worker can sum exactly. "
                    "Hint: use more workers, or client.rebalance()."
                )
    return out


def _lost(addresses: list[str]) -> WorkerLostError:
    who = f"Worker {', '.join(addresses)}" if addresses else "A worker"
    return WorkerLostError(
        f"{who} left the cluster during the fit, which needs all of its rows. "
        "Hint: fit again; if it happens again, look for lack of memory in the worker's log."
    )


# --- bins -------------------------------------------------------------------------------------------------------
#
# XGBoost's own sketch over workers gives other bins than on one machine. Here each column is sent as a whole to one
# worker, a few columns at a time, and XGBoost finds its cuts there. All workers then bin their rows like a small table
# whose distinct values are the cuts: the same bins that XGBoost finds when it has all rows.


def reference_rows(data: PartitionedCases, types: list[str], max_bin: int) -> np.ndarray:
    """A small table in which XGBoost finds the bins of the whole one: float32 (n_rows, n_features)."""
    client, n_features = data.parts.client, len(types)
    step = max(1, CELLS // max(len(data.is_positive), 1))
    found = []
    for start in range(0, n_features, step):
        columns = slice(start, min(start + step, n_features))
        pieces = data.parts.map(lambda part, own: single_precision(part.X[part.kept, own]), own=columns).futures
        found.append(client.submit(cut_values, pieces, types[columns], max_bin, pure=False))
    values = [each for some in client.gather(found) for each in some]
    reference = np.full((max([len(each) for each in values] + [1]), n_features), np.nan, np.float32)
    for f, each in enumerate(values):
        reference[:, f] = np.resize(each, len(reference)) if len(each) else np.nan
    return reference


def cut_values(pieces: list[np.ndarray], types: list[str], max_bin: int) -> list[np.ndarray]:
    """Values, of each column, in which XGBoost finds the same bins: float32 arrays, empty for one without values.

    The cuts of a column are all of its values but the smallest or, of more than max_bin, some of them; XGBoost adds one
    above the largest. So the smallest, the cuts between and the largest are enough.
    """
    X = np.concatenate(pieces)
    table = import_xgboost().QuantileDMatrix(
        X, feature_types=types, enable_categorical=True, max_bin=max_bin, nthread=1
    )
    starts, cuts = table.get_quantile_cut()
    out = []
    for f, kind in enumerate(types):
        known = X[:, f][~np.isnan(X[:, f])]
        if len(known) == 0 or kind == "c":
            out.append(np.unique(known))
        else:
            between = cuts[int(starts[f]) + 1 : int(starts[f + 1]) - 1]
            out.append(np.unique(np.concatenate((between, [known.min(), known.max()])).astype(np.float32)))
    return out
