"""The order of the rows by score, and the sums down that order.

Owns what is behind every ranking measure: the tied groups, and what is found by checking a number of cases.
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


def class_sums(rows: CheckedRows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weight of the negatives, and of the positives, down to each distinct score, the highest first.

    One sum per class: their difference could decrease by a rounding error.
    """
    order = np.argsort(rows.score, kind="stable")[::-1]
    last, weight, positive = last_of_group(rows.score[order]), rows.weight[order], rows.positive[order]
    return np.cumsum(np.where(positive, 0.0, weight))[last], np.cumsum(np.where(positive, weight, 0.0))[last]


def found_at(rows: CheckedRows, value: NDArray[Any], ties: str, depth: Any) -> NDArray[np.float64]:
    """Return the sum of `value`, shape (n,), over the first cases of a ranking, at each depth. Cost: one sort, or two.

    It grows on straight lines. Under ``ties="expected"`` a group of equal scores is one of them: each of its rows is
    equally likely at each of its positions, so every case checked brings the group's mean. A row of weight w is w
    copies, on one line.
    """
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
    cases, found = np.cumsum(weight)[knots], np.cumsum(weight * value[order])[knots]
    return np.interp(depth, np.append(0.0, cases), np.append(0.0, found))
