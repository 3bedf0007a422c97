"""Reasons of an ensemble: what each column did for a row, averaged over the trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from toprank.explain.contributions import feature_contributions
from toprank.explain.reasons import value_text
from toprank.explain.rows import Step, step_lines, value_of
from toprank.tree.columns import Column
from toprank.tree.counts import plural
from toprank.tree.structure import Tree
from toprank.tree.wording import number_text, percent_text


@dataclass(frozen=True)
class VoteExplanation:
    """Why an ensemble puts one row where it does.

    Attributes
    ----------
    score, rate, lift : float
        Score of the ensemble, hit rate of past cases with such scores, and its ratio to the rate of all cases.
    n_trees : int
    steps : tuple of Step
        Columns by their mean contribution to the log-odds, those that did nothing left out.
    how : str
        What of the trees the score is, in words.
    """

    score: float
    rate: float
    lift: float
    n_trees: int
    steps: tuple[Step, ...]
    how: str = "mean"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"steps": [asdict(step) for step in self.steps]}

    def __str__(self) -> str:
        lines = [
            f"score {number_text(self.score, 6)}, {self.how} of {plural(self.n_trees, 'tree')}; hit rate of such "
            f"past cases {percent_text(self.rate)}, {number_text(self.lift, 3)} times the rate of all cases",
            "columns, and what each adds to the log-odds of a positive, on average over the trees:",
        ]
        return "\n".join(lines + step_lines(self.steps))


def mean_contributions(trees: Sequence[Tree], X: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """How much each feature raised the log-odds of each row, on average over the trees: float64 (n, n_features).

    `weights` are those of the trees, not negative; None = all alike.
    """
    total = np.zeros(X.shape)
    if weights is None:
        for tree in trees:
            total += feature_contributions(tree, X)[0]
        return total / len(trees)
    for tree, weight in zip(trees, weights, strict=True):
        total += weight * feature_contributions(tree, X)[0]
    return total / weights.sum() if weights.any() else total


def vote_reasons(
    trees: Sequence[Tree],
    columns: Sequence[Column],
    X: np.ndarray,
    n_reasons: int,
    weights: np.ndarray | None = None,
) -> list[list[str]]:
    """For each row the values that speak most for it, in words; padded with "" where fewer columns do."""
    contributions = mean_contributions(trees, X, weights)
    order = np.argsort(-contributions, axis=1, kind="stable")[:, :n_reasons]
    texts = [
        [value_text(columns[f], int(f), float(X[i, f])) for f in order[i] if contributions[i, f] > 0]
        for i in range(len(X))
    ]
    return [row + [""] * (n_reasons - len(row)) for row in texts]


def explain_votes(
    trees: Sequence[Tree],
    columns: Sequence[Column],
    X: np.ndarray,
    score: np.ndarray,
    rate: np.ndarray,
    base_rate: float,
    weights: np.ndarray | None = None,
    how: str = "mean",
) -> list[VoteExplanation]:
    """Why each row stands where it stands in an ensemble; `weights` and `how` as the trees vote."""
    contributions = mean_contributions(trees, X, weights)
    out = []
    for i, row in enumerate(X):
        order = np.argsort(-contributions[i], kind="stable")
        steps = tuple(
            Step(columns[f].name, value_of(columns[f], row[f]), float(contributions[i, f]),
                 value_text(columns[f], int(f), float(row[f])))
            for f in order if contributions[i, f] != 0
        )  # fmt: skip
        lift = float(rate[i] / base_rate)
        out.append(VoteExplanation(float(score[i]), float(rate[i]), lift, len(trees), steps, how))
    return out
