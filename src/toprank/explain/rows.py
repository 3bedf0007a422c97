"""Why a row has its score, as text and as data: `Explanation` of a tree, `VoteExplanation` of an ensemble."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from toprank.explain.conditions import Condition
from toprank.explain.contributions import rows_by_path
from toprank.explain.reasons import mean_contributions
from toprank.explain.rules import leaf_table
from toprank.explain.values import Originals, originals_by_feature, value_of, value_text
from toprank.metrics.hit_rates import HitRates
from toprank.tree.columns import Category, Column
from toprank.tree.structure import Tree
from toprank.words.counts import plural
from toprank.words.numbers import expected_rate_text, number_text
from toprank.words.plain import plain

WIDTH = 100
POINTS_SHOWN = 5
"""Most scorecard features that an explanation lists."""

LEAST_SHOWN = 0.005
"""Smaller contributions to a sum are shown in one line."""


@dataclass(frozen=True)
class Step:
    """One condition, or one feature of the scorecard, and its contribution to the row.

    Attributes
    ----------
    feature : str
        Name of the feature, or formula of a weighted sum.
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


@dataclass(frozen=True, kw_only=True)
class ScoreExplanation:
    """Base of explanations: the score of a row, and the hits to expect with it.

    Attributes
    ----------
    score : float
    rate : float
        Hit rate of cases with that score; of new cases if `is_for_new_cases`, else of training.
    lift : float
        That rate over the share of positives in training.
    is_for_new_cases : bool
    """

    score: float
    rate: float
    lift: float
    is_for_new_cases: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; non-finite numbers become None."""
        return plain(asdict(self))

    @property
    def rate_text(self) -> str:
        """The rate and the lift in words."""
        return expected_rate_text(self.rate, self.lift, is_for_new_cases=self.is_for_new_cases)


def figures_of(score: np.ndarray, rates: HitRates, base_rate: float) -> list[dict[str, Any]]:
    """Return the values of `ScoreExplanation` for each row."""
    rate = rates.at(score)
    columns = score.tolist(), rate.tolist(), (rate / base_rate).tolist()
    names = "score", "rate", "lift", "is_for_new_cases"
    return [dict(zip(names, (*row, rates.is_for_new_cases), strict=True)) for row in zip(*columns, strict=True)]


@dataclass(frozen=True)
class Explanation(ScoreExplanation):
    """Why one row has its score.

    Attributes
    ----------
    score, rate, lift : float
        As in all explanations; `is_for_new_cases` says which rate it is.
    leaf, n_leaves : int
        Rank of the row's leaf, 1 = top, and the number of leaves.
    n, positives : float
        Training weight in the leaf.
    steps : tuple of Step
        Conditions on the row's path, merged by feature, ordered by contribution to the log-odds.
    inside : tuple of Step
        Features with the most points, if a scorecard orders the leaf.
    """

    leaf: int
    n_leaves: int
    n: float
    positives: float
    steps: tuple[Step, ...]
    inside: tuple[Step, ...] = ()

    def __str__(self) -> str:
        lines = [f"leaf {self.leaf:,} of {self.n_leaves:,}, score {number_text(self.score, 6)}"]
        known = "no training case reached this leaf"
        if self.n > 0:
            known = (
                f"in training {number_text(self.positives)} of {number_text(self.n)} cases of this leaf were positive"
            )
        if math.isfinite(self.rate):
            known = f"{self.rate_text}; {known}"
        lines += textwrap.wrap(f"{known}.", WIDTH)
        lines.append("conditions met, and what each adds to the log-odds of a positive:")
        lines += step_lines(self.steps) or ["  none: all cases share this leaf"]
        if self.inside:
            lines += ["what orders the cases inside the leaf, in points:", *step_lines(self.inside)]
        return "\n".join(lines)


def step_lines(steps: Sequence[Step]) -> list[str]:
    r"""Return one line per step, wrapped; whole points have no decimals.

    Examples
    --------
    >>> print(*step_lines([Step("age", 3, 15.0, "age = 3"), Step("sector", "bar", -2.0, "sector = bar")]), sep="\n")
         +15  age = 3
          -2  sector = bar
    """
    lines: list[str] = []
    decimals = 0 if all(float(step.contribution).is_integer() for step in steps) else 2
    for step in steps:
        start = f"  {step.contribution:+6.{decimals}f}  "
        lines += textwrap.wrap(
            start + step.text,
            WIDTH,
            subsequent_indent=" " * len(start),
            drop_whitespace=True,
            break_on_hyphens=False,
        )
    return lines


def explain_rows(
    tree: Tree,
    columns: Sequence[Column],
    X: np.ndarray,
    rates: HitRates | None = None,
    *,
    originals: Originals | None = None,
) -> list[Explanation]:
    """Explain the score of each row of X, which is as the tree reads it: category columns hold codes, NaN = missing.

    `rates` has the hit rate by score; without it, a row's rate is the training rate of its leaf. `originals` gives
    categories as the caller wrote them.
    """
    if len(X) == 0:
        return []
    score, node = tree.scores_and_leaves(X)
    table, leaf = leaf_table(tree), tree.leaf[node]
    rate = table["training_rate"][leaf] if rates is None else rates.at(score)
    base = tree.positive[0] / max(tree.positive[0] + tree.negative[0], np.finfo(float).tiny)
    lift = np.divide(rate, base, out=np.full(len(X), np.nan), where=base > 0)
    steps: dict[int, tuple[Step, ...]] = {}
    named = originals_by_feature(columns, X, np.ones(X.shape, bool), originals)
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
            leaf=int(leaf[row]) + 1,
            n_leaves=tree.n_leaves,
            n=float(table["n"][leaf[row]]),
            positives=float(table["positives"][leaf[row]]),
            score=float(score[row]),
            rate=float(rate[row]),
            lift=float(lift[row]),
            is_for_new_cases=rates is not None and rates.is_for_new_cases,
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


def value_steps(
    contributions: np.ndarray, columns: Sequence[Column], X: np.ndarray, originals: Originals | None
) -> list[tuple[Step, ...]]:
    """Return per row the values that contribute, by their contribution; float64 (n, n_features) each."""
    named = originals_by_feature(columns, X, contributions != 0, originals)
    out = []
    for i, row in enumerate(contributions):
        steps = []
        for f in np.argsort(-row, kind="stable").tolist():
            if row[f] == 0:
                continue
            column, value, given = columns[f], X[i, f], named[f][i] if f in named else None
            text = value_text(column, float(value), given, with_usual=False)
            steps.append(Step(column.name, value_of(column, value, given), float(row[f]), text))
        out.append(tuple(steps))
    return out


def _scorecard_steps(
    tree: Tree, columns: Sequence[Column], X: np.ndarray, originals: Originals | None
) -> list[tuple[Step, ...]]:
    """Return per row the features with the most points, for or against; nothing without a scorecard."""
    points = tree.scoring.points(X)
    top = np.argsort(-np.abs(points), axis=1, kind="stable")[:, :POINTS_SHOWN]
    shown = np.zeros_like(points)
    np.put_along_axis(shown, top, np.take_along_axis(points, top, axis=1), axis=1)
    return value_steps(shown, columns, X, originals)


# --- ensembles ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VoteExplanation(ScoreExplanation):
    """Why an ensemble gives a row its score.

    Attributes
    ----------
    score, rate, lift : float
        As in all explanations; `is_for_new_cases` says which rate it is.
    n_trees : int
    steps : tuple of Step
        Columns by their contribution to the score (of votes: to the log-odds), without those that contribute nothing.
    how : str
        How the trees make the score, in words: mean of 3 trees.
    base : float or None
        Score of the mean case: base and contributions add up to the score. None if they do not.
    """

    n_trees: int
    steps: tuple[Step, ...]
    how: str
    base: float | None = None

    def __str__(self) -> str:
        head = f"score {number_text(self.score, 6)}, {self.how}"
        lines = [f"{head}; {self.rate_text}"]
        if self.base is None:
            lines.append("columns, and what each adds to the log-odds of a positive, on average over the trees:")
            return "\n".join(lines + step_lines(self.steps))
        lines.append(f"{self.score:.2f} = {self.base:.2f} (mean case) + what each column adds:")
        of = "held-out" if self.is_for_new_cases else "training"
        last = f"the score is not the log-odds of the rate, which is that of {of} cases with such scores"
        return "\n".join([*lines, *step_lines(_with_the_rest(self.steps)), last])


def _with_the_rest(steps: Sequence[Step]) -> list[Step]:
    """Return the steps that show digits, and one for all others, in which contributions keep their sum."""
    shown = [step for step in steps if abs(step.contribution) >= LEAST_SHOWN]
    rest = [step.contribution for step in steps if abs(step.contribution) < LEAST_SHOWN]
    total = sum(rest) if abs(sum(rest)) >= LEAST_SHOWN else 0.0  # no "-0.00"
    return [*shown, Step("", None, total, plural(len(rest), "other column"))] if rest else shown


def explain_votes(
    trees: Sequence[Tree],
    columns: Sequence[Column],
    X: np.ndarray,
    score: np.ndarray,
    rates: HitRates,
    base_rate: float,
    weights: np.ndarray | None = None,
    how: str = "mean of {}",
    originals: Originals | None = None,
) -> list[VoteExplanation]:
    """Explain the score of each row in an ensemble.

    `weights` and `how` say how the trees vote; {} in `how` stands for their number.
    """
    contributions = mean_contributions(trees, columns, X, weights)
    figures, steps = figures_of(score, rates, base_rate), value_steps(contributions, columns, X, originals)
    how = how.format(plural(len(trees), "tree"))
    return [VoteExplanation(len(trees), own, how, **known) for own, known in zip(steps, figures, strict=True)]


def explain_sums(
    contributions: np.ndarray,
    columns: Sequence[Column],
    X: np.ndarray,
    score: np.ndarray,
    rates: HitRates,
    base_rate: float,
    n_trees: int,
    originals: Originals | None = None,
) -> list[VoteExplanation]:
    """Explain scores that are a base plus what each value of the row contributes, float64 (n, n_features)."""
    base = (score - contributions.sum(axis=1)).tolist()
    figures, steps = figures_of(score, rates, base_rate), value_steps(contributions, columns, X, originals)
    how = f"sum of {plural(n_trees, 'tree')}"
    return [
        VoteExplanation(n_trees, own, how, start, **known)
        for own, start, known in zip(steps, base, figures, strict=True)
    ]
