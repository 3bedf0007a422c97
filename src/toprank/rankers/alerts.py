"""A table of alerts: what may be asked for, and its columns of reasons."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.errors import InputError
from toprank.explain.reasons import MAX_REASONS, Reason


def check_alerts(k: Any, reasons: Any, n_rows: int) -> None:
    """Raise ValueError unless k alerts with that many reasons can be listed from so many rows."""
    if isinstance(k, bool | np.bool_) or not isinstance(k, int | np.integer) or not 1 <= k <= n_rows:
        raise InputError(
            f"k must be an int from 1 to the number of rows ({n_rows:,}), got {k!r}. "
            "Hint: k is how many cases you can check."
        )
    if isinstance(reasons, bool | np.bool_) or not isinstance(reasons, int | np.integer) or reasons < 0:
        raise InputError(
            f"reasons must be an int, 0 or more, got {reasons!r}. Hint: reasons is the number of reasons per case."
        )
    if reasons > MAX_REASONS:
        raise InputError(
            f"reasons must be at most {MAX_REASONS}, got {reasons:,}. Hint: `explain` lists everything that counts for "
            "or against a case."
        )


def reason_columns(why: list[list[Reason]], n_reasons: int) -> dict[str, list[Any]]:
    """Columns reason_1, strength_1, reason_2, ...; "" and None where a case has fewer reasons."""
    out: dict[str, list[Any]] = {}
    for i in range(n_reasons):
        out[f"reason_{i + 1}"] = [row[i].text if i < len(row) else "" for row in why]
        out[f"strength_{i + 1}"] = [float(f"{row[i].strength:.4g}") if i < len(row) else None for row in why]
    return out


def log_odds_gain(rate: np.ndarray, base_rate: float) -> np.ndarray:
    """Log-odds of hit rates, less those of all cases, infinite at 0 and 1.

    Strengths of reasons are shrunk to agree with a hit rate that new cases bear out.
    """
    with np.errstate(divide="ignore"):
        return np.log(rate / base_rate) - np.log((1.0 - rate) / (1.0 - base_rate))
