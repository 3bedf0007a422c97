"""Training and test rows of a split, and the inner folds of the training rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from toprank.errors import InputError
from toprank.experiment.data import Cases
from toprank.experiment.plan import Protocol


class Split(NamedTuple):
    """Row positions: training and test rows, and (inside, held out) positions among the training rows."""

    train: np.ndarray
    test: np.ndarray
    folds: list[tuple[np.ndarray, np.ndarray]]


def make_split(protocol: Protocol, cases: Cases, seed: int, fold: int) -> Split:
    """Rows of one split of a protocol; the same every time."""
    rows, y = np.arange(len(cases.y)), cases.y
    random: Any = seed
    if protocol.kind == "published":  # one generator for the holdout and the folds, as in the paper's code
        random = np.random.RandomState(seed)
    if protocol.kind in ("holdout", "published"):
        train, test = train_test_split(rows, test_size=protocol.test_size, stratify=y, random_state=random)
    elif protocol.kind == "kfold":
        outer = StratifiedKFold(protocol.n_splits, shuffle=True, random_state=seed)
        train, test = list(outer.split(rows.reshape(-1, 1), y))[fold - 1]
    elif protocol.kind == "given":
        train, test = rows[: -protocol.test], rows[-protocol.test :]
        if len(train) == 0:
            raise InputError(f"The table has {len(rows):,} rows, all of them in the test part of {protocol.test:,}.")
    else:
        train, test = _window(protocol, cases, fold)
    n_folds = min(protocol.inner_splits, int(np.bincount(y[train], minlength=2).min()))
    if n_folds < 2:
        raise InputError(
            f"The training part has {int(y[train].sum())} positives and {int((1 - y[train]).sum())} negatives, "
            "expected at least 2 of each for cross-validation. Hint: use a smaller test part."
        )
    inner = StratifiedKFold(n_folds, shuffle=True, random_state=random)
    return Split(train, test, list(inner.split(train.reshape(-1, 1), y[train])))


def _window(protocol: Protocol, cases: Cases, fold: int) -> tuple[np.ndarray, np.ndarray]:
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
