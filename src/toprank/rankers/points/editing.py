"""Rules changed by hand: the conditions that an expert writes, refitted points, and what a change costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from toprank._core.threads import Threads
from toprank.errors import InputError
from toprank.explain.conditions import Condition
from toprank.metrics import BeforeAfter
from toprank.rankers.points.card import Card, Shape
from toprank.rankers.points.flags import Flags
from toprank.rankers.points.shapes import refit
from toprank.tree.columns import Column
from toprank.words.nearest import did_you_mean

LARGEST = float(np.finfo(np.float64).max)
SIGNS = ("<=", ">")
HOW = 'Hint: a number is ("<=", 3), (">", 3) or (2, 5), a category its name or a list of names, None is missing.'


@dataclass(frozen=True, eq=False)
class Change(BeforeAfter):
    """A changed model, and what the change costs on the cases it was judged on.

    Attributes
    ----------
    before, after, difference, k, hits_before, hits_after
        Average precision and hits of both models, as in `BeforeAfter`; k is the model's budget for so many cases.
    model : RedFlags
        The changed model; its hit rates come from these cases.
    text : str
        What was changed, in words.
    """

    model: Any
    text: str

    def __str__(self) -> str:
        return f"{self.text}\n{super().__str__()}"


def written_conditions(given: Mapping[str, Any], columns: Sequence[Column]) -> tuple[Condition, ...]:
    """Conditions from what an expert writes: column names with bounds or categories.

    Examples
    --------
    >>> columns = [Column("age"), Column("sector", ("bar", "bank"))]
    >>> [c.text() for c in written_conditions({"age": ("<=", 3), "sector": ["bar"]}, columns)]
    ['age <= 3', 'sector is bar']
    """
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"A rule must be a dict of column names and conditions, got {given!r}. {HOW}")
    names = [column.name for column in columns]
    out = []
    for name, wanted in given.items():
        if name not in names:
            raise InputError(
                f"The rule asks for column {name!r}, which the model does not have.{did_you_mean(name, names)}"
            )
        feature = names.index(name)
        make = _category_condition if columns[feature].is_categorical else _number_condition
        out.append(make(feature, columns[feature], wanted))
    return tuple(out)


def _number_condition(feature: int, column: Column, wanted: Any) -> Condition:
    if wanted is None:
        return Condition(feature, column, low=np.inf, high=-np.inf)
    is_pair = isinstance(wanted, tuple | list) and len(wanted) == 2
    bounds = list(wanted) if is_pair else []
    numbers = [v for v in bounds if _is_number(v)]
    if is_pair and bounds[0] in SIGNS and len(numbers) == 1:
        low, high = (-np.inf, float(numbers[0])) if bounds[0] == "<=" else (float(numbers[0]), np.inf)
    elif len(numbers) == 2 and numbers[0] < numbers[1]:
        low, high = float(numbers[0]), float(numbers[1])
    else:
        raise InputError(f"The condition on column {column.name!r} must have bounds, got {wanted!r}. {HOW}")
    return Condition(feature, column, low=low, high=high, missing=False)


def _is_number(value: Any) -> bool:
    """Return True for a finite number; True and False are none."""
    is_number = type(value) is not bool and isinstance(value, int | float | np.integer | np.floating)
    return is_number and -LARGEST <= value <= LARGEST


def _category_condition(feature: int, column: Column, wanted: Any) -> Condition:
    assert column.categories is not None
    names = list(wanted) if isinstance(wanted, list | tuple | set) else [wanted]
    codes = []
    for name in names:
        found = [code for code in range(len(column.categories)) if name in column.labels(code)]
        if name is not None and not found:
            known = [str(label) for label in column.categories]
            raise InputError(
                f"Column {column.name!r} has no category {name!r} in training.{did_you_mean(str(name), known)}"
            )
        codes += found
    if not names:
        raise InputError(f"The condition on column {column.name!r} names no category. {HOW}")
    return Condition(feature, column, missing=None in names, codes=tuple(sorted(set(codes))))


def refitted(
    flags: Flags,
    card: Card,
    matrix: np.ndarray,
    is_positive: np.ndarray,
    direction: np.ndarray,
    is_whole: bool,
    threads: Threads,
) -> tuple[Flags, Card]:
    """The same rules and bins with points fitted on some cases.

    Bins are drawn towards the points that they have, rules towards none. Values that had no points still have none,
    and columns with a direction keep it.
    """
    group_of, priors, ids = [], [], []
    for shape in card.shapes:
        distinct, which = np.unique(np.append(shape.points, shape.missing), return_inverse=True)
        numbered = replace(shape, points=which[:-1].astype(np.float64), missing=float(which[-1]), ends=np.zeros(0))
        group_of.append(Card((numbered,)).contributions(matrix)[:, shape.feature].astype(np.int64))
        priors.append(distinct / card.scale)
        ids.append(which)
    weight = np.ones(len(matrix))
    found = refit(list(flags.holds(matrix).T), group_of, priors, is_positive.astype(np.float64), weight, threads)
    points = _scaled(found.rules, card.scale, is_whole)
    shapes: list[Shape] = []
    base = found.base
    for shape, which, values, prior in zip(card.shapes, ids, found.groups, priors, strict=True):
        usual = values[int(np.argmin(np.abs(prior)))]
        base += float(usual)
        own = _scaled(values - usual, card.scale, is_whole)[which]
        if direction[shape.feature]:
            own[:-1] = isotonic_regression(own[:-1], increasing=bool(direction[shape.feature] > 0))
            own = np.round(own) + 0.0 if is_whole else own
        shapes.append(replace(shape, points=own[:-1], missing=float(own[-1]), ends=np.zeros(0)))
    base = float(_scaled(np.array([base]), card.scale, is_whole)[0])
    return flags.with_points(points.tolist()), Card(tuple(shapes), base, card.scale)


def _scaled(log_odds: np.ndarray, scale: float, is_whole: bool) -> np.ndarray:
    points = log_odds * scale
    return np.round(points) + 0.0 if is_whole else points
