"""The order of the rows by score, and the sums down that order.

Owns the two structures behind every ranking measure: the tied groups, and the curve of what is found by checking a
number of cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.metrics.checks import CheckedRows

TIES = ("expected", "best", "worst")


@dataclass(frozen=True)
class TieGroups:
    """Groups of equal score, best first; all arrays have the shape (n_groups,)."""

    positives: NDArray[np.float64]  # positive weight in the group, p
    cases: NDArray[np.float64]  # weight in the group, g
    positives_through: NDArray[np.float64]  # positive weight up to and including the group, A + p
    cases_through: NDArray[np.float64]  # weight up to and including the group, M + g


def tie_groups(rows: CheckedRows) -> TieGroups:
    """Return the tied groups of the rows. Cost: one sort."""
    order = np.argsort(rows.score, kind="stable")[::-1]
    weight = rows.weight[order]
    last = last_of_group(rows.score[order])
    cases_through = np.cumsum(weight)[last]
    positives_through = np.cumsum(np.where(rows.positive[order], weight, 0.0))[last]
    return TieGroups(
        positives=np.diff(positives_through, prepend=0.0),
        cases=np.diff(cases_through, prepend=0.0),
        positives_through=positives_through,
        cases_through=cases_through,
    )


def last_of_group(ordered_score: NDArray[Any]) -> NDArray[np.intp]:
    """Return the position of the last row of every run of equal scores."""
    changes = np.flatnonzero(ordered_score[1:] != ordered_score[:-1])
    return np.append(changes, len(ordered_score) - 1)


@dataclass(frozen=True)
class FoundCurve:
    """What is found by checking the first cases of a ranking: straight lines between knots.

    A group of equal scores is one straight line under ``ties="expected"``: each of its rows is equally likely
    at each of its positions, so every case checked brings the group's mean. A row of weight w is w copies, on
    one line.
    """

    cases: NDArray[np.float64]
    found: NDArray[np.float64]

    def at(self, depth: Any) -> NDArray[np.float64]:
        """Return what is found at each depth, a number of cases between 0 and the total."""
        return np.interp(depth, self.cases, self.found)


def found_curve(rows: CheckedRows, value: NDArray[Any], ties: str) -> FoundCurve:
    """Return the sum of `value`, shape (n,), down the ranking. Cost: one sort, or two."""
    value = value.astype(np.float64, copy=False)
    if ties == "expected":
        order = np.argsort(rows.score, kind="stable")[::-1]
        knots: Any = last_of_group(rows.score[order])
    else:
        # A stable sort by score of rows sorted by value; read backwards, the last of `first` leads its group.
        first = np.argsort(value if ties == "best" else -value, kind="stable")
        order = first[np.argsort(rows.score[first], kind="stable")][::-1]
        knots = slice(None)
    weight = rows.weight[order]
    cases = np.cumsum(weight)[knots]
    found = np.cumsum(weight * value[order])[knots]
    return FoundCurve(np.append(0.0, cases), np.append(0.0, found))
