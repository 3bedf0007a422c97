"""Scorecards of this library as methods."""

from __future__ import annotations

from typing import Any

from toprank.experiment.registry import Method, register
from toprank.rankers.points.scorecard import Scorecard
from toprank.rankers.points.scorecard_tree import ScorecardTree


def make_scorecard(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> Scorecard:
    """A scorecard with its defaults."""
    return Scorecard(random_state=random_state, n_jobs=n_jobs, **setting)


def make_scorecard_tree(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> ScorecardTree:
    """A scorecard with corrections in leaves, with its defaults."""
    return ScorecardTree(random_state=random_state, n_jobs=n_jobs, **setting)


def columns_of(ranker: Any) -> tuple[int, str]:
    """Columns with points."""
    return len(ranker.card_), "columns"


register(Method(
    "scorecard", "Scorecard", "toprank", make_scorecard, {}, is_readable=True, size=columns_of,
    summary="Points per column that add up, with the defaults of Scorecard().",
))  # fmt: skip
register(Method(
    "scorecard-tree", "Scorecard tree", "toprank", make_scorecard_tree, {}, is_readable=True, size=columns_of,
    summary="Points per column, corrected in the leaves of a shallow tree, with the defaults of ScorecardTree().",
))  # fmt: skip
