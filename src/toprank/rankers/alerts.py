"""A table of alerts: checks of k and reasons, its columns of reasons, and copied columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np

from toprank.data.frames import backend_of, names_of
from toprank.errors import InputError
from toprank.explain.reasons import MAX_REASONS, Reason
from toprank.metrics.at_k import cases_of_share
from toprank.metrics.checks import is_int, is_real
from toprank.words.counts import plural
from toprank.words.nearest import did_you_mean


def count_of_alerts(k: Any, n_rows: int) -> int:
    """Return the number of alerts for a count or a share of the rows; a share is rounded up."""
    if is_int(k) and 1 <= k <= n_rows:
        return int(k)
    if is_real(k) and 0 < k < 1:
        return int(cases_of_share(float(k), n_rows))
    raise InputError(
        f"k must be an int from 1 to the number of rows ({n_rows:,}) or a share of them between 0 and 1, got {k!r}. "
        "Hint: k is how many cases you can check; None means the model's budget."
    )


def check_reasons(reasons: Any) -> None:
    """Raise ValueError unless that many reasons per case are allowed."""
    if not is_int(reasons) or reasons < 0:
        raise InputError(
            f"reasons must be an int, 0 or more, got {reasons!r}. Hint: reasons is the number of reasons per case."
        )
    if reasons > MAX_REASONS:
        raise InputError(
            f"reasons must be at most {MAX_REASONS}, got {reasons:,}. Hint: `explain` lists everything that counts for "
            "or against a case."
        )


def reason_columns(why: list[list[Reason]], n_reasons: int) -> dict[str, list[Any]]:
    """Return the columns reason_1, strength_1, reason_2, ...; "" and None if a case has fewer reasons."""
    out: dict[str, list[Any]] = {}
    for i in range(n_reasons):
        out[f"reason_{i + 1}"] = [row[i].text if i < len(row) else "" for row in why]
        out[f"strength_{i + 1}"] = [float(f"{row[i].strength:.4g}") if i < len(row) else None for row in why]
    return out


def log_odds_gain(rate: np.ndarray, base_rate: float) -> np.ndarray:
    """Return the log-odds of hit rates minus those of all cases, infinite at 0 and 1.

    Strengths of reasons are shrunk to match the hit rate of new cases.
    """
    with np.errstate(divide="ignore"):
        return np.log(rate / base_rate) - np.log((1.0 - rate) / (1.0 - base_rate))


def carried_columns(X: Any, names: Any, parameter: str) -> list[str]:
    """Return one or several column names of X, each once; raise ValueError if X has no such column."""
    if names is None:
        return []
    wanted = [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    if backend_of(X) is None:
        raise InputError(
            f"{parameter} names columns of X, but X is an array without column names, expected a data frame. "
            "Hint: the column row of the alerts has the position of each case in X."
        )
    known, out = names_of(X), list(dict.fromkeys(str(name) for name in wanted))
    for name in out:
        if name not in known:
            raise InputError(
                f"{parameter} names the column {name!r}, but X has no such column ({plural(len(known), 'column')})."
                + did_you_mean(name, known)
            )
    return out


def beside_columns(alerts: Any, X: Any, rows: np.ndarray, first: list[str], last: list[str]) -> Any:
    """Return the alerts with columns of X before and after their own, and with the index of a pandas frame."""
    if backend_of(X) is None:
        return alerts
    table, listed = (nw.from_native(frame, eager_only=True) for frame in (X, alerts))
    taken = [name for name in (*first, *last) if name in listed.columns]
    if taken:
        raise InputError(
            f"Column {taken[0]!r} of X has the same name as a column of the alerts. Hint: rename it first."
        )
    if listed.implementation.is_pandas():  # before joining, as pandas matches rows by their index
        alerts.index = X.index[rows]
    position = {name: i for i, name in enumerate(names_of(X))}
    before, after = (
        [table[rows.tolist(), [position[name] for name in names]]] if names else []
        for names in (first, [name for name in last if name not in first])
    )
    return nw.concat([*before, listed, *after], how="horizontal").to_native() if before or after else alerts
