"""A budget to a cutoff: how many cases can be checked, and the score from which on they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SAMPLE_ROWS = 10_000
"""Scores from which the top of the list is guessed."""


@dataclass(frozen=True)
class Cutoff:
    """Where the alerts end.

    Attributes
    ----------
    k : float
        Cases of the training data that the budget allows.
    n_above : float
        Cases of the training data above the cutoff: near k, as ties are not torn apart.
    threshold : float
        Rows with a score of at least this are alerts.
    hit_rate : float
        Share of positives among the training rows above it.
    """

    k: float
    n_above: float
    threshold: float
    hit_rate: float


def cases_of_budget(budget: Any, n_cases: float, n_positives: float) -> float:
    """Number of training cases that a budget stands for: an int as it is, a float as a share, None = the positives."""
    if budget is None:
        return n_positives
    if isinstance(budget, bool | np.bool_) or not isinstance(budget, int | float | np.integer | np.floating):
        raise TypeError(f"budget must be an int (cases), a float (share of cases) or None, got {budget!r}.")
    if isinstance(budget, int | np.integer):
        if budget < 1:
            raise ValueError(f"budget must be at least 1 case, got {budget}. Hint: a share is a float, such as 0.02.")
        return float(min(budget, n_cases))
    if not 0.0 < budget < 1.0:
        raise ValueError(
            f"A budget that is a float is a share between 0 and 1, got {budget}. Hint: use an int for cases."
        )
    return float(budget * n_cases)


def find_cutoff(
    k: float, n_cases: float, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None
) -> Cutoff:
    """Cutoff that lets about k of n_cases through, judged on (a sample of) the training rows.

    Ties are not torn apart: of the two scores around the k-th case, the one whose number of cases is nearer to k wins.
    """
    total = float(len(score)) if weight is None else float(weight.sum())
    wanted = k / n_cases * total
    if weight is None:  # only the top of the list has to be sorted
        near = _rows_near_top(score, min(len(score), int(1.5 * wanted) + 1000))
        score, is_positive = score[near], is_positive[near]
    order = np.argsort(-score, kind="stable")
    sorted_weight = np.ones(len(score)) if weight is None else weight[order]
    sorted_score, cumulated = score[order], np.cumsum(sorted_weight)
    last_of_tie = np.append(np.flatnonzero(np.diff(sorted_score)), len(score) - 1)
    best = last_of_tie[np.argmin(np.abs(cumulated[last_of_tie] - wanted))]
    hits = np.cumsum(sorted_weight * is_positive[order])[best] / cumulated[best]
    n_above = float(cumulated[best] / total * n_cases)
    return Cutoff(float(k), n_above, float(sorted_score[best]), float(hits))


def _rows_near_top(score: np.ndarray, size: int) -> np.ndarray:
    """Positions of the highest scores, `size` of them or more, without tearing ties apart."""
    sample = np.sort(score[:: max(1, len(score) // SAMPLE_ROWS)])
    place = len(sample) - 100 - int(1.5 * size / len(score) * len(sample))
    near = np.flatnonzero(score >= sample[max(place, 0)])
    return near if len(near) >= size else np.arange(len(score))
