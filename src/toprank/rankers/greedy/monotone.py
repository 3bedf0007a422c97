"""Monotone constraints on plain trees: the score never falls, or never rises, along a number column.

Two things ensure this, as in scikit-learn's trees. A split on a constrained column whose rates go the wrong way is
rejected (`Limits.direction`). And the midpoint of the rates of its two sides bounds all rates below it, so that
splits further down cannot undo it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from toprank._core.dtypes import NUMERIC
from toprank.data.binned_cases import BinnedCases
from toprank.errors import InputError
from toprank.tree.columns import Column
from toprank.tree.structure import Tree

MONOTONIC_CST: list[Any] = ["array-like", dict, None]
"""scikit-learn's checks of the parameter."""


def read_directions(given: Any, columns: Sequence[Column], is_categorical: np.ndarray, owner: str) -> np.ndarray | None:
    """Return the direction of each column: int8 (n_features,), 1 = the score must not fall as it rises, -1 = not rise.

    `given` has one value per column, or maps column names to values; None if no column has a direction.
    """
    if given is None:
        return None
    names = [column.name for column in columns]
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise InputError(
                f"monotonic_cst of {owner} names {unknown[0]!r}, but X has no such column (its {len(names)} columns "
                f"begin with {names[0]!r}). Hint: use the names of the columns, or one value per column."
            )
        values = [given.get(name, 0) for name in names]
    else:
        values = list(np.asarray(given, dtype=object).ravel())
        if len(values) != len(names):
            raise InputError(
                f"monotonic_cst of {owner} has {len(values)} values, but X has {len(names)} columns. "
                "Hint: give one of -1, 0, 1 per column, or a dict of names."
            )
    for name, value in zip(names, values, strict=True):
        if isinstance(value, bool | np.bool_) or value not in (-1, 0, 1):
            raise InputError(
                f"monotonic_cst of {owner} must be -1, 0 or 1 for every column, but is {value!r} for {name!r}. "
                "Hint: 1 = the score must not fall as the column rises."
            )
    direction = np.array(values, np.int8)
    constrained = np.flatnonzero((direction != 0) & (is_categorical > 0))
    if len(constrained):
        raise InputError(
            f"monotonic_cst of {owner} constrains {names[constrained[0]]!r}, but its values are categories, which have "
            "no order. Hint: give it the value 0, or turn the column into numbers."
        )
    return direction if direction.any() else None


def directions_of_tree(model: Any, data: BinnedCases) -> np.ndarray | None:
    """`read_directions` for a tree, whose leaves must be constant: other scores depend on distances and votes."""
    owner = type(model).__name__
    direction = read_directions(model.monotonic_cst, data.columns, data.is_categorical, owner)
    if direction is not None and model.leaf_score != "constant":
        raise InputError(
            f"{owner} supports monotonic_cst only with leaf_score='constant', but leaf_score is "
            f"{model.leaf_score!r}, whose scores change inside leaves. Hint: use leaf_score='constant'."
        )
    return direction


def bounded_rates(tree: Tree, rate: np.ndarray, direction: np.ndarray | None) -> np.ndarray:
    """Return the node rates of a plain tree, clipped to the bounds set by the constrained splits above them.

    The weights of the tree give the rates of both sides of a condition; without directions nothing changes.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import RankingTree
    >>> x = np.arange(40.0)
    >>> y = (x > 30) | (x == 3)
    >>> tree = RankingTree(monotonic_cst=[1], smoothing=None, min_samples_leaf=1).fit(x[:, None], y)
    >>> (np.diff(tree.decision_function(x[:, None])) >= 0).all()
    np.True_
    """
    if direction is None:
        return rate
    low, high = np.zeros(len(tree)), np.ones(len(tree))
    raw = tree.positive / (tree.positive + tree.negative)
    for node in np.flatnonzero(~tree.is_leaf).tolist():  # parents first
        sides = [int(tree.left[node]), int(tree.right[node])]
        low[sides], high[sides] = low[node], high[node]
        towards = direction[tree.feature[node]] if tree.kind[node] == NUMERIC else 0
        if towards == 0 or np.isinf(tree.threshold[node]):  # an infinite threshold separates values from missing ones
            continue
        middle = np.clip(raw[sides], low[node], high[node]).mean()
        lower, upper = sides if towards > 0 else sides[::-1]
        high[lower] = low[upper] = middle
    return np.clip(rate, low, high)
