"""`Condition`: everything a path says about one feature, merged, with its wording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from toprank._core.dtypes import CATEGORY, NUMERIC
from toprank.errors import InputError
from toprank.tree.columns import Column
from toprank.tree.structure import Tree
from toprank.words.wording import SHORT, Detail, Term, category_text, projection_text, range_text, sum_gap, sum_terms


@dataclass(frozen=True)
class Condition:
    """What a path says about one feature, or about one weighted sum of features.

    Attributes
    ----------
    feature : int
        -1 for a weighted sum.
    column : Column
        Name and categories; for a weighted sum, a column named like "0.8 x turnover_gap - 0.3 x age".
    low, high : float
        Numbers with low < value <= high qualify; infinite where open.
    missing : bool
        Whether a missing value qualifies.
    codes : tuple of int or None
        Category codes that qualify; None for a number.
    terms : tuple of Term
        Of a weighted sum, in the order in which they are added up.
    steps : tuple of int
        Places on the path, 0 = at the root, where the conditions stand that were merged.
    """

    feature: int
    column: Column
    low: float = -np.inf
    high: float = np.inf
    missing: bool = True
    codes: tuple[int, ...] | None = None
    terms: tuple[Term, ...] = ()
    steps: tuple[int, ...] = ()

    @property
    def is_open(self) -> bool:
        """True where every value qualifies, so that the condition says nothing."""
        if self.codes is not None and self.column.categories is not None:
            return self.missing and len(self.codes) == len(self.column.categories)
        return self.missing and self.low == -np.inf and self.high == np.inf

    @property
    def is_possible(self) -> bool:
        """True where some value qualifies."""
        return self.missing or (bool(self.codes) if self.codes is not None else self.low < self.high)

    def text(self, value: float | None = None, detail: Detail = SHORT) -> str:
        """Words for the condition; with the value of one case, words for how that value meets it.

        Parameters
        ----------
        value : float or None
            A number, a category code or a weighted sum, as `values` gives it; NaN = missing.
        detail : Detail
            Of a weighted sum, as in `merge_path`, which words the sum itself.
        """
        missing = self.missing and (detail.is_exact or self.column.has_missing or self.is_open)
        if self.codes is not None:
            return category_text(self.column, self.codes, missing, value, detail)
        name = self.column.name if self.terms else detail.name(self.column.name)
        nothing = sum_gap(self.terms, detail) if self.terms else "missing"
        return range_text(name, self.low, self.high, missing, value, detail, nothing, self.column)

    def values(self, X: np.ndarray) -> np.ndarray:
        """Return what the condition looks at in each row of X: float64 (n,)."""
        if not self.terms:
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
        """Rows of X that satisfy the condition: bool (n,)."""
        values = self.values(X)
        if self.codes is None:
            return np.where(np.isnan(values), self.missing, (values > self.low) & (values <= self.high))
        known = (values >= 0) & (values < len(self.column.categories or ()))
        return np.where(known, np.isin(values, self.codes), self.missing)

    def narrowed(self, other: Condition) -> Condition:
        """Both conditions at once; they must look at the same thing."""
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


def side_condition(tree: Tree, columns: Sequence[Column], node: int, left: bool, detail: Detail = SHORT) -> Condition:
    """Return what holds on one side of an inner node."""
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
    column = Column(projection_text(columns, terms, detail), has_missing=any(term.makes_missing for term in terms))
    return Condition(-1, column, low, high, missing, terms=terms)


def merge_path(
    tree: Tree, columns: Sequence[Column], nodes: Sequence[int] | np.ndarray, detail: Detail = SHORT
) -> list[Condition]:
    """Conditions of a path, one a feature, in the order in which the path first asks for them.

    Parameters
    ----------
    tree : Tree
    columns : sequence of Column, one a feature of the tree
    nodes : sequence of int
        From the root to a leaf, or part of it; which child follows tells the side. Padding (-1) is ignored.
    detail : Detail
        How weighted sums are worded.

    Returns
    -------
    list of Condition
        Weighted sums come apart from the features in them. A node whose two sides lead to the same child says
        nothing and gives no condition.
    """
    path = [int(node) for node in nodes if node >= 0]
    merged: dict[object, Condition] = {}
    for step, (node, child) in enumerate(pairwise(path)):
        left, right = int(tree.left[node]), int(tree.right[node])
        if child not in (left, right):
            raise InputError(
                f"Not a path: node {child} is not a child of node {node}, whose children are {left} and "
                f"{right}. Hint: take the nodes from Tree.paths."
            )
        if left == right:
            continue
        condition = replace(side_condition(tree, columns, node, child == left, detail), steps=(step,))
        key = condition.terms or condition.feature
        merged[key] = merged[key].narrowed(condition) if key in merged else condition
    return list(merged.values())
