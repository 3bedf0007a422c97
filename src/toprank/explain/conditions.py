"""`Condition`: all that a path requires of one feature, with its wording; `Way`: all conditions of a path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from toprank._core.dtypes import CATEGORY, NUMERIC
from toprank.errors import InputError
from toprank.tree.columns import Column
from toprank.tree.structure import Tree
from toprank.words.wording import (
    SHORT,
    Detail,
    Term,
    category_text,
    labels_of,
    projection_text,
    range_text,
    sum_gap,
    sum_terms,
)


@dataclass(frozen=True)
class Condition:
    """What a path requires of one feature, or of one weighted sum of features.

    Attributes
    ----------
    feature : int
        -1 for a weighted sum.
    column : Column
        Name and categories; for a weighted sum, a column named like "0.8 x turnover_gap - 0.3 x age".
    low, high : float
        Numbers with low < value <= high qualify; infinite if open.
    missing : bool
        Whether a missing value qualifies.
    codes : tuple of int or None
        Category codes that qualify; None for a number.
    terms : tuple of Term
        Terms of a weighted sum, in the order of summation.
    summands : tuple of Column
        Column of each term of a weighted sum.
    steps : tuple of int
        Positions on the path of the conditions that were merged, 0 = the root.
    """

    feature: int
    column: Column
    low: float = -np.inf
    high: float = np.inf
    missing: bool = True
    codes: tuple[int, ...] | None = None
    terms: tuple[Term, ...] = ()
    summands: tuple[Column, ...] = ()
    steps: tuple[int, ...] = ()

    @property
    def is_sum(self) -> bool:
        """True for a weighted sum."""
        return self.feature < 0

    @property
    def is_open(self) -> bool:
        """True if every value qualifies, so that the condition says nothing."""
        if self.codes is not None and self.column.categories is not None:
            return self.missing and len(self.codes) == len(self.column.categories)
        return self.missing and self.low == -np.inf and self.high == np.inf

    @property
    def is_possible(self) -> bool:
        """True if some value qualifies, or a missing one."""
        return self.missing or self.has_values

    @property
    def has_values(self) -> bool:
        """True if some known value qualifies."""
        return bool(self.codes) if self.codes is not None else self.low < self.high

    def text(self, value: float | None = None, detail: Detail = SHORT) -> str:
        """Return the condition in words; with the value of one case, how that value meets it.

        Parameters
        ----------
        value : float or None
            A number, a category code or a weighted sum, as returned by `values`; NaN = missing.
        detail : Detail
            `SHORT` for reading, `EXACT` for applying.
        """
        missing = self.missing and (detail.is_exact or self.column.has_missing or self.is_open)
        if self.codes is not None:
            return category_text(self.column, self.codes, missing, value, detail)
        if self.is_sum:
            name, nothing = projection_text(self.summands, self.terms, detail), sum_gap(self.terms, detail)
        else:
            name, nothing = detail.name(self.column.name), "missing"
        return range_text(name, self.low, self.high, missing, value, detail, nothing, self.column)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON, that select exactly the same rows.

        Returns
        -------
        dict
            text; column (None for a weighted sum); low and high (low < value <= high; None if open; dates as text);
            categories (None for a number); missing (whether a missing value, or an unknown category, qualifies);
            only_missing (True if no known value qualifies, whatever the bounds). A weighted sum also has terms, each
            with column, weight, category (the term counts if the row has one of these; None for a number) and fill
            (what a missing number counts as; None if it makes the sum missing).
        """
        out: dict[str, Any] = {"text": self.text(), "column": None if self.is_sum else self.column.name}
        for name, bound in (("low", self.low), ("high", self.high)):
            shown = self.column.bound_text(bound) if self.column.is_date and np.isfinite(bound) else float(bound)
            out[name] = shown if np.isfinite(bound) else None
        out["categories"] = None if self.codes is None else labels_of(self.column, self.codes)
        out["missing"], out["only_missing"] = self.missing, not self.has_values
        if self.is_sum:
            out["terms"] = [
                {
                    "column": column.name,
                    "weight": term.weight,
                    "category": None if term.code is None else list(column.labels(term.code)),
                    "fill": term.fill,
                }
                for term, column in zip(self.terms, self.summands, strict=True)
            ]
        return out

    def values(self, X: np.ndarray) -> np.ndarray:
        """Return the value that the condition tests in each row of X: float64 (n,)."""
        if not self.is_sum:
            return X[:, self.feature].astype(np.float64)
        total = np.zeros(len(X))
        # One by one, in the order of the tree: the same sum to the last bit.
        for term in self.terms:
            values = X[:, term.feature].astype(np.float64)
            if term.code is not None:
                values = (values == term.code).astype(np.float64)
            elif term.fill is not None:
                values = np.where(np.isnan(values), term.fill, values)
            total += term.weight * values
        return total

    def holds(self, X: np.ndarray) -> np.ndarray:
        """Return the rows of X that satisfy the condition: bool (n,)."""
        values = self.values(X)
        if self.codes is None:
            return np.where(np.isnan(values), self.missing, (values > self.low) & (values <= self.high))
        known = (values >= 0) & (values < len(self.column.categories or ()))
        return np.where(known, np.isin(values, self.codes), self.missing)

    def narrowed(self, other: Condition) -> Condition:
        """Return both conditions merged; they must test the same feature or sum."""
        codes = self.codes
        if codes is not None and other.codes is not None:
            codes = tuple(code for code in codes if code in other.codes)
        return replace(
            self,
            low=max(self.low, other.low),
            high=min(self.high, other.high),
            missing=self.missing and other.missing,
            codes=codes,
            steps=self.steps + other.steps,
        )


@dataclass(frozen=True)
class Way:
    """Conditions that must all hold: one way into a leaf. Without any, all rows qualify."""

    conditions: tuple[Condition, ...] = ()
    _texts: dict[Detail, list[str]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.conditions)

    def texts(self, detail: Detail = SHORT) -> list[str]:
        """Return each condition in words."""
        if detail not in self._texts:  # wording is slow, and rules compare texts before they show them
            self._texts[detail] = [condition.text(detail=detail) for condition in self.conditions]
        return self._texts[detail]

    def text(self, detail: Detail = SHORT) -> str:
        """Return the conditions joined by "and"; those that contain "or" or "and not" are in brackets."""
        texts = self.texts(detail)
        if len(texts) < 2:
            return texts[0] if texts else "all cases"
        return " and ".join(f"({text})" if " or " in text or " and not " in text else text for text in texts)

    def holds(self, X: np.ndarray) -> np.ndarray:
        """Return the rows of X that satisfy all conditions: bool (n,)."""
        out = np.ones(len(X), bool)
        for condition in self.conditions:
            out &= condition.holds(X)
        return out


def side_condition(tree: Tree, columns: Sequence[Column], node: int, left: bool = True) -> Condition:
    """Return the condition of one side of an inner node; the left side is the "yes" of its question."""
    missing = bool(tree.missing_left[node]) == left
    feature = int(tree.feature[node])
    if tree.kind[node] == CATEGORY:
        named = np.arange(len(columns[feature].categories or ()))
        codes = named[np.isin(named, tree.categories_left(node)) == left]
        return Condition(feature, columns[feature], missing=missing, codes=tuple(codes.tolist()))
    threshold = float(tree.threshold[node])
    low, high = (-np.inf, threshold) if left else (threshold, np.inf)
    if tree.kind[node] == NUMERIC:
        return Condition(feature, columns[feature], low, high, missing)
    terms = sum_terms(tree, node)
    summands = tuple(columns[term.feature] for term in terms)
    column = Column(projection_text(summands, terms), has_missing=any(term.makes_missing for term in terms))
    return Condition(-1, column, low, high, missing, terms=terms, summands=summands)


def merged(conditions: Iterable[Condition]) -> list[Condition]:
    """Return one condition per feature or weighted sum, in order of first occurrence."""
    out: dict[object, Condition] = {}
    for condition in conditions:
        key = condition.terms if condition.is_sum else condition.feature
        out[key] = out[key].narrowed(condition) if key in out else condition
    return list(out.values())


def path_conditions(tree: Tree, columns: Sequence[Column], nodes: Sequence[int] | np.ndarray) -> list[Condition]:
    """Conditions of a path, one per feature, in the order in which the path first asks for them.

    `nodes` go from the root to a leaf, or part of the way; the child that follows gives the side. Padding (-1) is
    ignored. Weighted sums are separate from the features in them. A node whose two sides lead to the same child gives
    no condition.
    """
    sides: list[Condition] = []
    for step, (node, child) in enumerate(pairwise(int(node) for node in nodes if node >= 0)):
        left, right = int(tree.left[node]), int(tree.right[node])
        if child not in (left, right):
            raise InputError(
                f"Not a path: node {child} is not a child of node {node}, whose children are {left} and "
                f"{right}. Hint: take the nodes from Tree.paths."
            )
        if left != right:
            sides.append(replace(side_condition(tree, columns, node, child == left), steps=(step,)))
    return merged(sides)
