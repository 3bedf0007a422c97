"""One trial from start to end: read, split, tune, fit, measure. The test rows are used once, at the end.

Also owns the memory limit of a trial, and `check_plan`, which finds errors that would fail every trial before the
first one runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, train_test_split

from toprank._compat import take_rows
from toprank.data.shared_table import SharedTable
from toprank.errors import InputError
from toprank.experiment.measures import figures_of, score_of
from toprank.experiment.plan import MethodUse, Plan, PlanTable, Protocol, Trial
from toprank.experiment.registry import find_method
from toprank.experiment.search import Tuner, make_encoder, scores_of
from toprank.rankers.validation import check_split_groups
from toprank.words.counts import plural

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

Outcome = dict[str, Any]
"""The stored result of a trial: plain values only."""

GIGABYTE = 10**9
SHARE_OF_MACHINE = 0.9
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files that hold the memory limit of a container."""


class TimeLimitError(Exception):
    """A fit took longer than the plan allows."""


def run_trial(
    trial: Trial,
    folder: str | Path | None = None,
    before_fit: Callable[[], None] = lambda: None,
    *,
    is_alone: bool = True,
) -> Outcome:
    """Outcome of a trial. Raises only on interrupts: an error is an outcome too.

    Tables by name are in `folder`; `before_fit` may raise TimeLimitError. If other trials run in parallel threads
    (`is_alone=False`), warnings, which all threads share, are left alone.
    """
    try:
        missing = find_method(trial.use.method).missing_packages
        if trial.use.tuner == "optuna" and find_spec("optuna") is None:
            missing = [*missing, "optuna"]
        if missing:
            return {"status": "skipped", "error": f"needs the package {', '.join(missing)}"}
        with quiet() if is_alone else np.errstate(all="ignore"):
            return {"status": "done"} | _run(trial, folder, before_fit)
    except TimeLimitError as error:
        return {"status": "timeout", "error": str(error)}
    except MemoryError:
        cap = cap_in_bytes(trial.protocol.trial_memory)
        limit = "" if cap is None else f" (trial_memory: {cap / GIGABYTE:.3g} GB)"
        return {"status": "failed", "error": f"out of memory{limit}"}
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return {"status": "failed", "error": f"{type(error).__name__}: {' '.join(str(error).split())} ({place})"}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the warnings of many fits, and numpy's, off the terminal."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _run(trial: Trial, folder: str | Path | None, before_fit: Callable[[], None]) -> Outcome:
    cases = load_cases(trial.table, folder)
    split = make_split(trial.protocol, cases, trial.seed, trial.fold)
    if trial.protocol.time is not None:  # defines the windows; not a feature
        cases = cases._replace(X=cases.X.drop(columns=trial.protocol.time))
    X, y = take_rows(cases.X, split.train), cases.y[split.train]
    groups = None if cases.groups is None else cases.groups[split.train]
    tuner = Tuner(trial.use, trial.protocol, trial.seed, before_fit, groups)
    start = time.perf_counter()
    tuning = tuner.tune(X, y, split.folds)
    tuned = time.perf_counter()
    encoder = make_encoder(tuner.reads).fit(X)
    known = SharedTable(encoder.transform(X))
    model = tuner.fit(tuning.setting, known, y)
    fitted = time.perf_counter()
    new, y_test = SharedTable(encoder.transform(take_rows(cases.X, split.test))), cases.y[split.test]
    score = scores_of(model, new)
    scored = time.perf_counter()
    try:
        profile = _profile(trial, tuner, tuning.setting, known, y, new, y_test)
    except Exception:  # a value that cannot be fitted costs the plot its points, not the trial its figures
        profile = []
    measures = figures_of(trial.measures, y_test, score)
    train = score_of("average_precision", y, scores_of(model, known))
    size, unit = tuner.method.size(model) if tuner.method.size else (None, None)
    return {
        "n": len(cases.y), "n_positives": int(cases.y.sum()), "n_train": len(y), "n_test": len(y_test),
        "setting": tuning.setting, "tuning_score": tuning.score, "n_settings": max(1, len(tuning.tried)),
        "measures": measures | {"average_precision_train": train}, "size": None if size is None else float(size),
        "size_unit": unit, "is_readable": tuner.method.is_readable, "profile": profile,
        "seconds_tune": tuned - start, "seconds_fit": fitted - tuned, "seconds_score": scored - fitted,
    }  # fmt: skip


def _profile(
    trial: Trial, tuner: Tuner, setting: dict[str, Any], known: Any, y: np.ndarray, new: Any, y_test: np.ndarray
) -> list[dict[str, Any]]:
    """Test AP at each value of one parameter, with the others as tuned: for plots, never used to choose."""
    out: list[dict[str, Any]] = []
    for parameter, values in trial.use.profile.items():
        settings = [setting | {parameter: value} for value in values]
        for positions, scores in tuner.score_settings(settings, known, y, new):
            for position, score in zip(positions, scores, strict=True):
                ap = score_of("average_precision", y_test, score)
                out.append({"parameter": parameter, "value": values[position], "average_precision": ap})
    return out


# --- tables -------------------------------------------------------------------------------------------------------


class TableCases(NamedTuple):
    """Features and outcome of a table, and who each row belongs to, if a split must keep their rows together."""

    X: Any
    y: np.ndarray
    groups: np.ndarray | None = None


def load_cases(table: PlanTable, folder: str | Path | None = None) -> TableCases:
    """Cases of a table of a plan; the last few are remembered."""
    frozen = ((key, tuple(value) if isinstance(value, list) else value) for key, value in table.source.items())
    return _load(tuple(sorted(frozen)), str(folder or ""))


def content_of(table: PlanTable, folder: str | Path | None = None) -> str | None:
    """Hash of a table's file; None where there is none to be read."""
    from toprank.datasets.files import find_file

    if "openml" in table.source:
        return None
    try:
        path = find_file(table.source.get("path", table.source.get("name")), folder)
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=3)
def _load(entries: tuple[tuple[str, Any], ...], folder: str) -> TableCases:
    from toprank.datasets import load

    source: Mapping[str, Any] = dict(entries)
    if "openml" in source:
        cases = _from_openml(source)
    else:
        found = load(source.get("path", source.get("name")), label=source.get("label", "label"),
                     pos_label=source.get("positive"), folder=folder or None)  # fmt: skip
        cases = TableCases(found.X, found.y.astype(np.int64))
    drop = [source["drop"]] if isinstance(source.get("drop"), str) else list(source.get("drop", ()))
    split_by = [source["split_by"]] if "split_by" in source else []
    for names, what in ((drop, "dropped"), (split_by, "split by")):
        missing = [name for name in names if name not in cases.X.columns]
        if missing:
            raise InputError(
                f"The column {missing[0]!r} is to be {what}, but the table has {list(cases.X.columns)[:20]}."
            )
    groups = check_split_groups(cases.X[split_by[0]], len(cases.y), "A plan") if split_by else None
    return TableCases(cases.X.drop(columns=[*dict.fromkeys([*drop, *split_by])]), cases.y, groups)


def _from_openml(source: Mapping[str, Any]) -> TableCases:
    """Cases of an OpenML data set: the label column it names, or the default target; the rarer class is positive."""
    from sklearn.datasets import fetch_openml

    bunch = fetch_openml(data_id=int(source["openml"]), as_frame=True, parser="auto",
                         target_column=source.get("label", "default-target"))  # fmt: skip
    values = bunch.target.astype(str)
    counts = values.value_counts()
    if len(counts) != 2:
        raise InputError(
            f"The label of OpenML data set {source['openml']} has {len(counts)} values, expected two. "
            "Hint: name another label column."
        )
    positive = str(source.get("positive", counts.idxmin()))
    if positive not in counts.index:
        raise InputError(
            f"The label of OpenML data set {source['openml']} has no value {positive!r}: {list(counts.index)}."
        )
    return TableCases(bunch.data, (values == positive).to_numpy().astype(np.int64))


# --- splits -------------------------------------------------------------------------------------------------------


HOLDOUT_PARTS = 10
"""Parts that groups are dealt out to; a holdout takes as many as come nearest to its size."""


class Split(NamedTuple):
    """Row positions: training and test rows, and (inside, held out) positions among the training rows."""

    train: np.ndarray
    test: np.ndarray
    folds: list[tuple[np.ndarray, np.ndarray]]


def make_split(protocol: Protocol, cases: TableCases, seed: int, fold: int) -> Split:
    """Rows of one split of a protocol; the same every time.

    Rows of one group are on the same side, except with test rows that are given.
    """
    rows, y = np.arange(len(cases.y)), cases.y
    groups = cases.groups
    folds_of = StratifiedKFold if groups is None else StratifiedGroupKFold
    if groups is not None and protocol.kind not in ("holdout", "kfold", "given"):
        raise InputError(
            f"split_by keeps rows together, which the protocol {protocol.kind!r} does not do; expected holdout, "
            "kfold or given. Hint: leave split_by out."
        )
    random: Any = seed
    if protocol.kind == "published":  # one generator for the holdout and the folds, as in the paper's code
        random = np.random.RandomState(seed)
    if groups is not None:
        n_needed = {"holdout": HOLDOUT_PARTS, "kfold": protocol.n_splits}.get(protocol.kind, 2)
        n_groups = len(np.unique(groups))
        if n_groups < n_needed:
            raise InputError(
                f"The table has {plural(n_groups, 'group')} of rows that belong together, expected at least "
                f"{n_needed}. Hint: use fewer folds, or another column to split by."
            )
    if protocol.kind == "holdout" and groups is not None:
        parts = folds_of(HOLDOUT_PARTS, shuffle=True, random_state=seed).split(rows.reshape(-1, 1), y, groups)
        n_parts = min(max(round(protocol.test_size * HOLDOUT_PARTS), 1), HOLDOUT_PARTS - 1)
        test = np.sort(np.concatenate([held_out for _, held_out in itertools.islice(parts, n_parts)]))
        train = np.setdiff1d(rows, test)
    elif protocol.kind in ("holdout", "published"):
        train, test = train_test_split(rows, test_size=protocol.test_size, stratify=y, random_state=random)
    elif protocol.kind == "kfold":
        outer = folds_of(protocol.n_splits, shuffle=True, random_state=seed)
        train, test = list(outer.split(rows.reshape(-1, 1), y, groups))[fold - 1]
    elif protocol.kind == "given":
        train, test = rows[: -protocol.test], rows[-protocol.test :]
        if len(train) == 0:
            raise InputError(f"The table has {len(rows):,} rows, all of them in the test part of {protocol.test:,}.")
    else:
        train, test = _window(protocol, cases, fold)
    own = None if groups is None else groups[train]
    n_folds = min(protocol.inner_splits, int(np.bincount(y[train], minlength=2).min()))
    if own is not None:
        n_folds = min(n_folds, len(np.unique(own)))
    if n_folds < 2:
        raise InputError(
            f"The training part has {int(y[train].sum())} positives and {int((1 - y[train]).sum())} negatives, "
            "expected at least 2 of each for cross-validation. Hint: use a smaller test part."
        )
    inner = folds_of(n_folds, shuffle=True, random_state=random)
    return Split(train, test, list(inner.split(train.reshape(-1, 1), y[train], own)))


def _window(protocol: Protocol, cases: TableCases, fold: int) -> tuple[np.ndarray, np.ndarray]:
    import pandas as pd

    from toprank.experiment.prequential import PrequentialSplit

    if protocol.time not in cases.X.columns:
        found = ", ".join(map(str, cases.X.columns[:20]))
        raise InputError(f"'time' of the protocol names the column {protocol.time!r}, the table has {found}.")
    times = cases.X[protocol.time]
    if times.dtype.kind not in "iufM":  # dates come as text
        times = pd.to_datetime(times, format="ISO8601")
    splitter = PrequentialSplit(protocol.train, protocol.gap, protocol.test, times=times.to_numpy(),
                                n_splits=protocol.n_splits, label_delay=protocol.label_delay)  # fmt: skip
    windows = list(splitter.split(cases.X, cases.y))
    if fold > len(windows):
        raise InputError(f"Window {fold} was asked for, but the times give {len(windows)}. Hint: lower n_splits.")
    return windows[fold - 1]


# --- memory -------------------------------------------------------------------------------------------------------


def machine_memory() -> int | None:
    """Bytes of memory of this machine or container; None if unknown."""
    found = []
    with contextlib.suppress(AttributeError, ValueError, OSError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in CONTAINER_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # the word "max" = no limit
            found.append(int(Path(file).read_text(encoding="ascii")))
    return min(found, default=None)


def cap_in_bytes(limit: float | str | None) -> int | None:
    """Limit in bytes for `trial_memory` of a protocol; None = no limit."""
    if limit is None:
        return None
    if isinstance(limit, str):  # "auto"
        memory = machine_memory()
        return None if memory is None else int(SHARE_OF_MACHINE * memory)
    return int(limit * GIGABYTE)


@contextlib.contextmanager
def memory_cap(limit: float | str | None) -> Iterator[None]:
    """Limit the memory of this process inside the block; no effect if the system has no such limit.

    On Linux, RLIMIT_DATA counts all private memory that can be written to, wherever it was allocated.
    """
    cap = cap_in_bytes(limit)
    if resource is None or cap is None:
        yield
        return
    before, highest = resource.getrlimit(resource.RLIMIT_DATA)
    if highest != resource.RLIM_INFINITY:
        cap = min(cap, highest)
    resource.setrlimit(resource.RLIMIT_DATA, (cap, highest))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, highest))


# --- before the first trial ---------------------------------------------------------------------------------------


def check_plan(plan: Plan, folder: str | Path | None = None) -> None:
    """Raise ValueError if a table cannot be read or a method does not accept its parameters.

    Tables from OpenML are not fetched, and methods whose package is not installed are skipped.
    """
    for table in plan.tables:
        if "openml" not in table.source:
            try:
                load_cases(table, folder)
            except (ValueError, TypeError, OSError) as error:
                raise InputError(f"Table {table.name!r}: {error}") from None
    for use in plan.methods:
        if not find_method(use.method).missing_packages:
            with quiet():
                _check_parameters(use)


def _check_parameters(use: MethodUse) -> None:
    """Make an estimator with the first setting and the first value of each profiled parameter."""
    names = {*use.parameters, *use.space, *use.profile}
    first = {name: values["low"] if isinstance(values, dict) else values[0] for name, values in use.space.items()}
    first |= {name: values[0] for name, values in use.profile.items()}
    if "n_jobs" in names:
        raise InputError(
            f"Method {use.label!r}: a plan cannot set 'n_jobs', because every fit has one thread and trials run in "
            "parallel. Hint: set the number of parallel trials of the run (--jobs)."
        )
    try:
        find_method(use.method).make(n_jobs=1, **{"random_state": 0, **use.parameters, **first})
    except TypeError as error:
        word = str(error).split("'")[1] if "unexpected keyword argument" in str(error) else None
        if word not in names:
            raise
        raise InputError(
            f"Method {use.label!r}: {find_method(use.method).title} has no parameter {word!r}. "
            f"Hint: it is usually tuned by {', '.join(find_method(use.method).space) or 'nothing'}."
        ) from None
