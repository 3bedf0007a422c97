"""`Explanation`: why one row stands where it stands, to read and as data."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from toprank.explain.conditions import Condition
from toprank.explain.contributions import rows_by_path
from toprank.explain.rules import leaf_table
from toprank.explain.values import Originals, original_values, value_of, value_text
from toprank.tree.columns import Category, Column
from toprank.tree.scoring import feature_points
from toprank.tree.structure import Tree
from toprank.tree.wording import lift_text, number_text, percent_text

WIDTH = 100
POINTS_SHOWN = 5
"""Features of the scorecard that an explanation lists."""


@dataclass(frozen=True)
class Step:
    """One condition, or one feature of the scorecard, and what it did for the row.

    Attributes
    ----------
    feature : str
        Name of the feature; of a weighted sum, its formula.
    value : str, number or None
        The row's value; a category by name; None = missing.
    contribution : float
        Change of the log-odds on the path, or points of the scorecard.
    text : str
    """

    feature: str
    value: Category | None
    contribution: float
    text: str


@dataclass(frozen=True)
class Explanation:
    """Why one row stands where it stands.

    Attributes
    ----------
    leaf, n_leaves : int
        Rank of the row's leaf, 1 = top, and the number of leaves.
    n, positives : float
        Training weight in the leaf.
    hit_rate, hit_rate_low, hit_rate_high, lift, rate : float
        Raw hit rate with Wilson's interval, its ratio to that of all cases, and the smoothed rate.
    level : float
        Confidence level of the interval.
    score : float
        The row's own score.
    steps : tuple of Step
        Conditions on the row's path, merged by feature, by how much they raised the log-odds.
    inside : tuple of Step
        Features that weigh most inside the leaf, where a scorecard orders it.
    """

    leaf: int
    n_leaves: int
    n: float
    positives: float
    hit_rate: float
    hit_rate_low: float
    hit_rate_high: float
    lift: float
    rate: float
    level: float
    score: float
    steps: tuple[Step, ...]
    inside: tuple[Step, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; what is not a number is None."""

        def plain(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: plain(entry) for key, entry in value.items()}
            if isinstance(value, list | tuple):
                return [plain(entry) for entry in value]
            return None if isinstance(value, float) and not math.isfinite(value) else value

        return plain(asdict(self))

    def __str__(self) -> str:
        lines = [f"leaf {self.leaf:,} of {self.n_leaves:,}, score {number_text(self.score, 6)}"]
        if self.n > 0:
            interval = f"{percent_text(self.hit_rate_low)} to {percent_text(self.hit_rate_high)}"
            known = (
                f"{number_text(self.positives)} of {number_text(self.n)} training cases in this leaf were "
                f"positive: {percent_text(self.hit_rate)} (interval {interval})"
            )
            lift = f", {lift_text(self.lift)} times the rate of all cases" if math.isfinite(self.lift) else ""
            lines += textwrap.wrap(f"{known}{lift}.", WIDTH)
        lines.append("conditions met, and what each adds to the log-odds of a positive:")
        lines += step_lines(self.steps) or ["  none: all cases share this leaf"]
        if self.inside:
            lines += ["what orders the cases inside the leaf, in points:", *step_lines(self.inside)]
        return "\n".join(lines)


def step_lines(steps: Sequence[Step]) -> list[str]:
    """One line a step, wrapped."""
    lines: list[str] = []
    for step in steps:
        start = f"  {step.contribution:+6.2f}  "
        lines += textwrap.wrap(
            start + step.text,
            WIDTH,
            subsequent_indent=" " * len(start),
            drop_whitespace=True,
            break_on_hyphens=False,
        )
    return lines


def explain_rows(
    tree: Tree, columns: Sequence[Column], X: np.ndarray, level: float = 0.95, *, originals: Originals | None = None
) -> list[Explanation]:
    """Why each row of X stands where it stands.

    Parameters
    ----------
    tree : Tree
    columns : sequence of Column, one a feature of the tree
    X : float array of shape (n, n_features)
        As the tree reads it: category columns hold codes, NaN = missing.
    level : float, default=0.95
        Confidence level of the interval of the hit rate.
    originals : callable or None
        Categories as the caller wrote them; see `toprank.explain.values.Originals`.

    Returns
    -------
    list of n Explanation
    """
    if len(X) == 0:
        return []
    table = leaf_table(tree, level)
    figures = [dict(zip(table, row, strict=True)) for row in zip(*(v.tolist() for v in table.values()), strict=True)]
    leaf, score = tree.leaf[tree.apply(X)], tree.decision_function(X)
    steps: dict[int, tuple[Step, ...]] = {}
    named = original_values(columns, X, np.ones(X.shape, bool), originals)
    for rows, conditions in rows_by_path(tree, columns, X):
        values = [condition.values(X[rows]).tolist() for condition, _ in conditions]
        for i, row in enumerate(rows.tolist()):
            steps[row] = tuple(
                _step(
                    condition,
                    contribution,
                    values[place][i],
                    named[condition.feature][row] if condition.feature in named else None,
                )
                for place, (condition, contribution) in enumerate(conditions)
            )
    inside = _scorecard_steps(tree, columns, X, originals)
    return [
        Explanation(
            **figures[leaf[row]] | {"score": float(score[row])},
            n_leaves=tree.n_leaves,
            level=level,
            steps=steps[row],
            inside=inside[row],
        )
        for row in range(len(X))
    ]


def _step(condition: Condition, contribution: float, value: float, original: Any = None) -> Step:
    column = condition.column
    is_named = condition.codes is not None and original is not None
    text = value_text(column, value, original, with_usual=False) if is_named else condition.text(value)
    return Step(column.name, value_of(column, value, original), contribution, text)


def value_step(column: Column, value: float, contribution: float, original: Any = None) -> Step:
    """Return what a value did for its row, without a condition."""
    shown = value_of(column, value, original)
    return Step(column.name, shown, float(contribution), value_text(column, float(value), original, with_usual=False))


def _scorecard_steps(
    tree: Tree, columns: Sequence[Column], X: np.ndarray, originals: Originals | None
) -> list[tuple[Step, ...]]:
    """For each row the features with the most points, for or against; nothing without a scorecard."""
    points = feature_points(tree.scoring, X)
    if not points.any():
        return [()] * len(X)
    order = np.argsort(-np.abs(points), axis=1, kind="stable")[:, :POINTS_SHOWN]
    named = original_values(columns, X, points != 0, originals)
    return [
        tuple(
            value_step(columns[f], X[row, f], points[row, f], named[f][row] if f in named else None)
            for f in sorted(order[row].tolist(), key=lambda f: -points[row, f])
            if points[row, f] != 0
        )
        for row in range(len(X))
    ]
