"""Reasons of an ensemble: the contribution of each column to a row, averaged over the trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from toprank.explain.reasons import Reason, row_contributions, strongest
from toprank.explain.rows import Step, step_lines, value_step
from toprank.explain.values import Originals, originals_by_feature
from toprank.tree.columns import Column
from toprank.tree.structure import Tree
from toprank.words.counts import plural
from toprank.words.numbers import hit_rate_text, number_text
from toprank.words.plain import plain

SUM = "sum"
"""How boosted trees make a score."""

MOST_STRETCHED = 10.0
"""Contributions to a score are stretched to match the hit rate, but by no more than this factor."""


@dataclass(frozen=True)
class VoteExplanation:
    """Why an ensemble gives a row its score.

    Attributes
    ----------
    score, rate, lift : float
        Score of the ensemble, hit rate of past cases with such scores, and its ratio to the rate of all cases.
    n_trees : int
    steps : tuple of Step
        Columns by their mean contribution to the log-odds, without those that contribute nothing.
    how : str
        How the trees make the score, in words.
    """

    score: float
    rate: float
    lift: float
    n_trees: int
    steps: tuple[Step, ...]
    how: str = "mean"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; non-finite numbers become None."""
        return plain(asdict(self))

    def __str__(self) -> str:
        lines = [
            f"score {number_text(self.score, 6)}, {self.how} of {plural(self.n_trees, 'tree')}; hit rate of such "
            f"past cases {hit_rate_text(self.rate)}, {number_text(self.lift, 3)} times the rate of all cases",
            "columns, and what each adds to the log-odds of a positive, on average over the trees:"
            if self.how != SUM
            else "columns, and what each adds to the score of the mean case:",
        ]
        return "\n".join(lines + step_lines(self.steps))


def mean_contributions(
    trees: Sequence[Tree], columns: Sequence[Column], X: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return how much each value raised the log-odds of its row, averaged over the trees: float64 (n, n_features).

    `weights` are those of the trees, non-negative; None = all equal.
    """
    total = np.zeros(X.shape)
    if weights is None:
        for tree in trees:
            total += row_contributions(tree, columns, X)
        return total / len(trees)
    for tree, weight in zip(trees, weights, strict=True):
        total += weight * row_contributions(tree, columns, X)
    return total / weights.sum() if weights.any() else total


def vote_reasons(
    trees: Sequence[Tree],
    columns: Sequence[Column],
    X: np.ndarray,
    n_reasons: int,
    weights: np.ndarray | None = None,
    *,
    originals: Originals | None = None,
    gain: np.ndarray | None = None,
) -> list[list[Reason]]:
    """Return the values that speak most for each row, strongest first; `weights` as in `mean_contributions`.

    The other parameters are those of `toprank.explain.reasons`.
    """
    contributions = mean_contributions(trees, columns, X, weights)
    return strongest(contributions, columns, X, n_reasons, originals, gain)


def explain_votes(
    trees: Sequence[Tree],
    columns: Sequence[Column],
    X: np.ndarray,
    score: np.ndarray,
    rate: np.ndarray,
    base_rate: float,
    weights: np.ndarray | None = None,
    how: str = "mean",
    originals: Originals | None = None,
) -> list[VoteExplanation]:
    """Explain the score of each row in an ensemble; `weights` and `how` say how the trees vote."""
    contributions = mean_contributions(trees, columns, X, weights)
    return explain_sums(contributions, columns, X, score, rate, base_rate, len(trees), how, originals)


def explain_sums(
    contributions: np.ndarray,
    columns: Sequence[Column],
    X: np.ndarray,
    score: np.ndarray,
    rate: np.ndarray,
    base_rate: float,
    n_trees: int,
    how: str,
    originals: Originals | None = None,
) -> list[VoteExplanation]:
    """Explain the score of each row by what each of its values contributes, float64 (n, n_features)."""
    named = originals_by_feature(columns, X, contributions != 0, originals)
    out = []
    for i in range(len(X)):
        order = np.argsort(-contributions[i], kind="stable").tolist()
        steps = tuple(
            value_step(columns[f], X[i, f], contributions[i, f], named[f][i] if f in named else None)
            for f in order
            if contributions[i, f] != 0
        )
        lift = float(rate[i] / base_rate)
        out.append(VoteExplanation(float(score[i]), float(rate[i]), lift, n_trees, steps, how))
    return out


def sum_reasons(
    contributions: np.ndarray,
    columns: Sequence[Column],
    X: np.ndarray,
    n_reasons: int,
    originals: Originals | None = None,
    gain: np.ndarray | None = None,
) -> list[list[Reason]]:
    """Return the values that speak most for each row, of a score that is not in log-odds, strongest first.

    A row's contributions are multiplied by one factor so that they add up to its gain in log-odds; without gains they
    stay as they are. The other parameters are those of `toprank.explain.reasons`.
    """
    if gain is not None:
        total = contributions.sum(axis=1)
        factor = np.where((total > 0) & (gain > total), gain / np.where(total > 0, total, 1.0), 1.0)
        contributions = contributions * np.minimum(factor, MOST_STRETCHED)[:, None]
    return strongest(contributions, columns, X, n_reasons, originals, gain)
