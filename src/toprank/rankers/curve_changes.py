"""Which rules come and go between two points of a cost-optimal curve."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from toprank.explain import leaf_rules
from toprank.rankers.tao_tree import TAOTree
from toprank.tree.columns import Column

NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
FIGURES = ("n", "positives", "hit_rate", "lift")
ORDER = ("goes", "comes", "changes", "stays")


def positive_rules(tree: TAOTree, columns: Sequence[Column]) -> dict[str, dict[str, float]]:
    """Rules of the leaves that a tree calls positive, best first, with their figures on the training data."""
    ends = np.flatnonzero(tree.tree_.is_leaf)
    called = np.bincount(tree.tree_.leaf[ends], tree._label[ends] == 1, tree.tree_.n_leaves) > 0
    table = leaf_rules(tree.tree_, columns, tree.path_counts_)
    return {str(table["rule"][i]): {name: float(table[name][i]) for name in FIGURES} for i in np.flatnonzero(called)}


def rule_changes(before: TAOTree, after: TAOTree, columns: Sequence[Column]) -> dict[str, list[Any]]:
    """Rules for positives of two trees, side by side.

    A rule changes where the other tree has one of the same words with other numbers; it stays where the numbers are
    the same, too. All others come or go.

    Returns
    -------
    dict of lists
        change ("goes", "comes", "changes", "stays"), rule (of the later tree, where it has one), rule_before, and n,
        positives, hit_rate and lift of the rule before and after (NaN where there is none).
    """
    old, new = positive_rules(before, columns), positive_rules(after, columns)
    pairs: list[tuple[str | None, str | None]] = [(rule, rule) for rule in old if rule in new]
    left = [rule for rule in old if rule not in new]
    for rule in (rule for rule in new if rule not in old):
        same = [other for other in left if NUMBER.sub("#", other) == NUMBER.sub("#", rule)]
        pairs.append((same[0] if same else None, rule))
        if same:
            left.remove(same[0])
    pairs += [(rule, None) for rule in left]
    rows = sorted(pairs, key=lambda pair: ORDER.index(_change(*pair)))
    unknown = dict.fromkeys(FIGURES, float("nan"))
    out: dict[str, list[Any]] = {
        "change": [_change(*pair) for pair in rows],
        "rule": [b if b is not None else a for a, b in rows],
        "rule_before": [a for a, _ in rows],
    }
    for name in FIGURES:
        out[f"{name}_before"] = [(unknown if a is None else old[a])[name] for a, _ in rows]
        out[f"{name}_after"] = [(unknown if b is None else new[b])[name] for _, b in rows]
    return out


def _change(before: str | None, after: str | None) -> str:
    if after is None:
        return "goes"
    if before is None:
        return "comes"
    return "stays" if before == after else "changes"
