"""Measures of a ranking as the commands show them."""

from __future__ import annotations

from typing import Any

import numpy as np

DEPTHS = (0.01, 0.02, 0.05, 0.10)
MAX_RESAMPLES, MIN_RESAMPLES, ROWS_RESAMPLED = 1000, 100, 20_000_000
"""Bootstrap resamples: fewer where the table is long, so that an interval takes seconds."""


def precision_interval(is_positive: np.ndarray, score: np.ndarray) -> Any:
    """Return the average precision with a bootstrap interval that is the same every time."""
    from toprank.metrics import average_precision, bootstrap_interval

    n_resamples = min(max(ROWS_RESAMPLED // len(score), MIN_RESAMPLES), MAX_RESAMPLES)
    return bootstrap_interval(average_precision, is_positive, score, n_resamples=n_resamples, random_state=0)


def gains(
    is_positive: np.ndarray, score: np.ndarray, amount: np.ndarray | None, depths: Any = DEPTHS
) -> dict[str, Any]:
    """Return the gains table at shares of the cases; those that round up to the same number count once."""
    from toprank.metrics import gains_table
    from toprank.metrics.at_k import cases_of_share

    cases = sorted({int(cases_of_share(share, len(score))) for share in depths})
    return gains_table(is_positive, score, depths=cases, amount=amount)


def figures_at(is_positive: np.ndarray, score: np.ndarray, k: int) -> dict[str, float]:
    """Return precision, recall and lift of the first k cases, with the bounds that ties leave open."""
    from toprank.metrics import lift_at_k, precision_at_k, recall_at_k

    out: dict[str, float] = {"k": k}
    for name, measure in (("precision", precision_at_k), ("recall", recall_at_k), ("lift", lift_at_k)):
        for ties, ending in (("expected", ""), ("worst", "_worst"), ("best", "_best")):
            out[name + ending] = measure(is_positive, score, k, ties=ties)
    return out


def default_k(info: dict[str, Any], n_rows: int) -> int:
    """Return the alerts that a model's budget means for a table: cases as they are, or a share of the rows."""
    from toprank.budget import Cutoff, alerts_of_budget

    cutoff = Cutoff.from_dict(info["cutoff"])
    return alerts_of_budget(info["parameters"].get("budget"), cutoff, info["figures"]["n_cases"], n_rows)
