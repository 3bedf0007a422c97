"""The scorings inside leaves that `leaf_score` names, fitted on training rows; for trees and forests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from toprank.data.binned_cases import BinnedCases
from toprank.rankers.linear import STEPS_TRIED, fit_linear_scoring
from toprank.tree.categories import CategorySearch
from toprank.tree.scoring import TIES, Margin, Scoring

Fit = Callable[[BinnedCases, np.ndarray | None, float, CategorySearch], Scoring]
"""Fits a scoring on the rows that have weight, with an inverse penalty and a way to treat categories."""

LEAF_SCORES: dict[str, Fit] = {
    "constant": lambda data, weight, C, categories: TIES,
    "margin": lambda data, weight, C, categories: Margin(data.column_scales()),
    "linear": lambda data, weight, C, categories: fit_linear_scoring(data, weight, C, 0, categories),
    "additive": lambda data, weight, C, categories: fit_linear_scoring(data, weight, C, STEPS_TRIED, categories),
}
"""Names of `leaf_score` for meta-trees."""


def fit_leaf_score(
    name: str, data: BinnedCases, weight: np.ndarray | None, C: float, categories: CategorySearch
) -> Scoring:
    """Return the scoring inside leaves; fitted once for all fits on the same data with their own weights."""
    if weight is not data.weight:
        return LEAF_SCORES[name](data, weight, C, categories)
    return data.once(("leaf score", name, C, categories), lambda: LEAF_SCORES[name](data, weight, C, categories))
