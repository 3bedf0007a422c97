"""Scorecards of this library as methods."""

from __future__ import annotations

from typing import Any

from toprank.experiment.methods.own import bins_of
from toprank.experiment.registry import Method, register
from toprank.rankers.points.scorecard import Scorecard
from toprank.rankers.points.scorecard_tree import ScorecardTree


def make_scorecard(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> Scorecard:
    """A scorecard with its defaults."""
    return Scorecard(random_state=random_state, n_jobs=n_jobs, **setting)


def make_scorecard_tree(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> ScorecardTree:
    """A scorecard with corrections in leaves, with its defaults."""
    return ScorecardTree(random_state=random_state, n_jobs=n_jobs, **setting)


def size_of_scorecard(ranker: Any) -> tuple[int, str]:
    """What a person has to read: bins of the card, and conditions and corrections of its tree, if it has one."""
    tree = getattr(ranker, "card_tree_", None)
    n_conditions = 0 if tree is None else int((tree.feature >= 0).sum())
    bins = bins_of(ranker.card_) + (0 if tree is None else sum(map(bins_of, tree.corrections)))
    return n_conditions + bins, "conditions and bins" if n_conditions else "bins"


register(Method(
    "scorecard", "Scorecard", "toprank", make_scorecard, {}, is_readable=True, size=size_of_scorecard,
    summary="Points per column that add up, with the defaults of Scorecard().",
))  # fmt: skip
register(Method(
    "scorecard-tree", "Scorecard tree", "toprank", make_scorecard_tree, {}, is_readable=True, size=size_of_scorecard,
    summary="Points per column, corrected in the leaves of a shallow tree, with the defaults of ScorecardTree().",
))  # fmt: skip
