"""One trial from start to end: read, split, tune, fit, measure. The test rows are used once, at the end."""

from __future__ import annotations

import contextlib
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from toprank.data.shared_table import SharedTable
from toprank.experiment.data import load_cases
from toprank.experiment.encoding import make_encoder
from toprank.experiment.measures import figures_of, score_of
from toprank.experiment.memory import out_of_memory
from toprank.experiment.plan import Trial
from toprank.experiment.protocol import make_split
from toprank.experiment.registry import find_method
from toprank.experiment.search import Tuner, rows_of, scores_of

Outcome = dict[str, Any]
"""The stored result of a trial: plain values only."""


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

    Parameters
    ----------
    trial : Trial
    folder : where to find tables by name
    before_fit : called before every fit; it may raise TimeLimitError
    is_alone : bool
        False if other trials run in parallel threads: warnings, which all threads share, are then left alone.
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
        return {"status": "failed", "error": out_of_memory(trial.protocol.trial_memory)}
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
    X, y = rows_of(cases.X, split.train), cases.y[split.train]
    tuner = Tuner.from_use(trial.use, trial.protocol, trial.seed, before_fit)
    start = time.perf_counter()
    tuning = tuner.tune(X, y, split.folds)
    tuned = time.perf_counter()
    encoder = make_encoder(tuner.reads).fit(X)
    known = SharedTable(encoder.transform(X))
    model = tuner.fit(tuning.setting, known, y)
    fitted = time.perf_counter()
    new, y_test = SharedTable(encoder.transform(rows_of(cases.X, split.test))), cases.y[split.test]
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
