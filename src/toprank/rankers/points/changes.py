"""What changed between two versions of a model of points: rules, and points of columns.

Rules and columns are matched by the names of their columns, so that the versions may have different columns. Both are
read on the same cases, each model in its own encoding.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.explain.conditions import Condition
from toprank.explain.values import value_text
from toprank.rankers.points.card_text import points_text
from toprank.rankers.points.flags import Flag, Flags
from toprank.tree.columns import Column
from toprank.words.numbers import number_text
from toprank.words.wording import EXACT, SHORT, labels_of

LEAST_OVERLAP = 0.5
"""Rules on the same columns are versions of one rule if both hold for more than this share of the cases of either."""

ROUNDING = 1e-9
"""Points that differ by less are the same: another scale leaves rounding errors."""

ORDER = ("dropped", "added", "changed", "kept")


@dataclass(frozen=True)
class RuleChange:
    """A rule of one version beside that of the other; None if that version has no such rule.

    Attributes
    ----------
    before, after : Flag or None
        Points of both are on the scale of the later version.
    """

    before: Flag | None
    after: Flag | None

    @property
    def kind(self) -> str:
        """One of "dropped", "added", "changed" (other points or conditions) and "kept"."""
        if self.before is None or self.after is None:
            return "added" if self.before is None else "dropped"
        is_kept = points_text(self.before.points) == points_text(self.after.points) and not self.has_other_conditions
        return "kept" if is_kept else "changed"

    @property
    def has_other_conditions(self) -> bool:
        """Whether both versions have the rule, with other bounds or categories of the same columns."""
        old, new = self.before, self.after
        return old is not None and new is not None and _conditions(old) != _conditions(new)

    @property
    def text(self) -> str:
        """The rule in words, with its points; what it was before, if it is not new."""
        old, new = self.before, self.after
        if old is None or new is None:
            flag = old or new
            assert flag is not None
            return f"{points_text(flag.points)}: {flag.text()}"
        points = points_text(new.points)
        if points != points_text(old.points):
            points += f" instead of {points_text(old.points)}"
        if not self.has_other_conditions:
            return f"{points}: {new.text()}"
        earlier = {condition.column.name: condition for condition in old.conditions}
        differing = [
            (earlier[condition.column.name], condition)
            for condition in new.conditions
            if _condition(earlier[condition.column.name]) != _condition(condition)
        ]
        looks_same = all(was.text() == now.text() for was, now in differing)  # short texts are rounded
        detail = EXACT if looks_same else SHORT
        return f"{points}: {new.text(detail)}; was: {', '.join(was.text(detail=detail) for was, _ in differing)}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        out: dict[str, Any] = {"kind": self.kind, "text": self.text}
        for when, flag in (("before", self.before), ("after", self.after)):
            out[f"rule_{when}"] = None if flag is None else flag.text()
            out[f"points_{when}"] = None if flag is None else flag.points
        return out


@dataclass(frozen=True)
class PointsChange:
    """A column whose points differ between two versions.

    Attributes
    ----------
    column : str
    size : float
        Points that a case gains or loses on average, beyond what all cases do.
    value : str
        The value in these cases whose points changed most, in words.
    before, after : float
        Points of that value, on the scale of the later version.
    kind : {"dropped", "added", "changed"}
        "dropped": the column has no points any more; "added": it had none.
    """

    column: str
    size: float
    value: str
    before: float
    after: float
    kind: str

    @property
    def text(self) -> str:
        """The change in words."""
        if self.kind == "dropped":
            return f"{self.column}: no points any more; was {points_text(self.before)} where {self.value}"
        if self.kind == "added":
            return f"{self.column}: has points now; {points_text(self.after)} where {self.value}"
        mean = f"{number_text(self.size, 2)} points per case on average"
        return f"{self.value}: {points_text(self.after)} instead of {points_text(self.before)} ({mean})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        names = ("kind", "column", "size", "value", "before", "after", "text")
        return {name: getattr(self, name) for name in names}


# --- rules ------------------------------------------------------------------------------------------------------


def rule_changes(before: Flags, after: Flags, holds_before: np.ndarray, holds_after: np.ndarray) -> list[RuleChange]:
    """Return the rules of both versions beside each other: dropped, added, with other points, other conditions, kept.

    Points are on one scale; `holds_before` and `holds_after`, bool (n, n_rules), say for which of the same cases the
    rules hold.
    """
    old, new = [_conditions(flag) for flag in before], [_conditions(flag) for flag in after]
    partner: dict[int, int] = {}
    for i, key in enumerate(old):
        free = (j for j, other in enumerate(new) if other == key and j not in partner.values())
        if (found_at := next(free, None)) is not None:
            partner[i] = found_at
    similar = [
        (-overlap, i, j)
        for i in range(len(old))
        for j in range(len(new))
        if i not in partner
        and j not in partner.values()
        and _columns(before[i]) == _columns(after[j])
        and (overlap := _overlap(holds_before[:, i], holds_after[:, j])) > LEAST_OVERLAP
    ]
    moved: dict[int, int] = {}
    for _, i, j in sorted(similar):
        if i not in moved and j not in moved.values():
            moved[i] = j
    partner |= moved
    found = [RuleChange(before[i], after[j]) for i, j in sorted(partner.items())]
    found += [RuleChange(flag, None) for i, flag in enumerate(before) if i not in partner]
    found += [RuleChange(None, flag) for j, flag in enumerate(after) if j not in partner.values()]
    return sorted(found, key=lambda change: (ORDER.index(change.kind), change.has_other_conditions))


def _conditions(flag: Flag) -> Hashable:
    """What a rule asks for, by names; equal for rules that hold for the same rows of any table."""
    return frozenset(_condition(condition) for condition in flag.conditions)


def _condition(condition: Condition) -> Hashable:
    column = condition.column
    missing = condition.missing and (column.has_missing or not condition.has_values)
    labels = None if condition.codes is None else frozenset(labels_of(column, condition.codes))
    return column.name, condition.low, condition.high, labels, missing


def _columns(flag: Flag) -> frozenset[str]:
    return frozenset(condition.column.name for condition in flag.conditions)


def _overlap(first: np.ndarray, second: np.ndarray) -> float:
    """Share of the cases of either rule that both hold for; 0 without cases."""
    return float((first & second).sum() / max((first | second).sum(), 1))


# --- points of columns ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ColumnPoints:
    """Points of the values of some cases, by column."""

    columns: Sequence[Column]
    matrix: np.ndarray  # float64 (n, n_features): the cases as the model reads them
    points: np.ndarray  # float64 (n, n_features)
    # Columns that have points, also if only for values that none of these cases have
    scored: frozenset[str]

    def points_of(self, name: str) -> np.ndarray:
        """Points of a column, float64 (n,); 0 for a column that the model does not have."""
        place = next((i for i, column in enumerate(self.columns) if column.name == name), None)
        return np.zeros(len(self.points)) if place is None else self.points[:, place]


def points_changes(before: ColumnPoints, after: ColumnPoints) -> list[PointsChange]:
    """Return the columns whose points differ, those that change the scores most first.

    What all cases gain or lose alike changes no ranking: the median difference of a column does not count.
    """
    names = dict.fromkeys(column.name for own in (before, after) for column in own.columns)
    found = []
    for name in names:
        old, new = before.points_of(name), after.points_of(name)
        difference = new - old
        if np.ptp(difference) <= ROUNDING:
            continue
        beyond = np.abs(difference - np.median(difference))
        row = int(np.argmax(np.abs(difference)))
        kind = "dropped" if name not in after.scored else "added" if name not in before.scored else "changed"
        owner = before if kind == "dropped" else after
        place = next(i for i, column in enumerate(owner.columns) if column.name == name)
        text = value_text(owner.columns[place], float(owner.matrix[row, place]), with_usual=False)
        found.append(PointsChange(name, float(beyond.mean()), text, float(old[row]), float(new[row]), kind))
    return sorted(found, key=lambda change: (-change.size, change.column))
