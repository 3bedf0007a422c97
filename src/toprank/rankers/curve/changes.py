"""Which rules come and go between two points of a cost-optimal curve."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from toprank.explain import Condition, leaf_rules, merge_path
from toprank.explain.paths import ways_up
from toprank.explain.rules import PATHS_SHOWN, WAYS_TRIED
from toprank.rankers.cost.tao_tree import TAOTree
from toprank.tree.columns import Column

FIGURES = ("n", "positives", "training_rate", "lift")
ORDER = ("goes", "comes", "changes", "stays")

Rule = dict[str, Any]
"""A row of `leaf_rules`."""


def positive_rules(tree: TAOTree, columns: Sequence[Column]) -> list[Rule]:
    """Rules of the leaves that a tree calls positive, best first, with their figures on the training data.

    Leaves whose rules read the same are rules of their own: their `leaf` tells them apart.
    """
    ends = np.flatnonzero(tree.tree_.is_leaf)
    called = np.bincount(tree.tree_.leaf[ends], tree._label[ends] == 1, tree.tree_.n_leaves) > 0
    table = leaf_rules(tree.tree_, columns, tree.path_counts_)
    return [{name: values[i] for name, values in table.items()} for i in np.flatnonzero(called)]


def rule_changes(before: TAOTree, after: TAOTree, columns: Sequence[Column]) -> dict[str, list[Any]]:
    """Rules for positives of two trees, side by side.

    A rule stays where the other tree has one that reads the same. It changes where the other has one that asks for the
    same columns on the same sides, and for the same categories, with other numbers; of weighted sums the columns in
    them count, not their weights. All others come or go.

    Returns
    -------
    dict of lists
        change ("goes", "comes", "changes", "stays"), rule (of the later tree, where it has one), rule_before, and n,
        positives, training_rate and lift of the rule before and after (NaN where there is none).
    """
    pairs = _paired(before, after, columns)
    rows = sorted(pairs, key=lambda pair: ORDER.index(_change(*pair)))
    out: dict[str, list[Any]] = {
        "change": [_change(*pair) for pair in rows],
        "rule": [(a if b is None else b)["rule"] for a, b in rows],  # type: ignore[index]
        "rule_before": [None if a is None else a["rule"] for a, _ in rows],
    }
    for name in FIGURES:
        for when, place in (("before", 0), ("after", 1)):
            found = (pair[place] for pair in rows)
            out[f"{name}_{when}"] = [float("nan") if rule is None else float(rule[name]) for rule in found]
    return out


def _paired(before: TAOTree, after: TAOTree, columns: Sequence[Column]) -> list[tuple[Rule | None, Rule | None]]:
    """Each rule of one tree with at most one of the other: one that reads the same, else one of the same shape."""
    old, new = positive_rules(before, columns), positive_rules(after, columns)
    texts = [[rule["rule"] for rule in rules] for rules in (old, new)]
    shapes = [[_shape(tree, columns, int(rule["leaf"]) - 1) for rule in rules]
              for tree, rules in ((before, old), (after, new))]  # fmt: skip
    partner: dict[int, int] = {}
    for of_old, of_new in (texts, shapes):
        for i, wanted in enumerate(of_old):
            free = (j for j, found in enumerate(of_new) if found == wanted and j not in partner.values())
            if i not in partner and (j := next(free, None)) is not None:
                partner[i] = j
    pairs: list[tuple[Rule | None, Rule | None]] = [(old[i], new[j]) for i, j in partner.items()]
    pairs += [(None, rule) for j, rule in enumerate(new) if j not in partner.values()]
    return pairs + [(rule, None) for i, rule in enumerate(old) if i not in partner]


def _change(before: Rule | None, after: Rule | None) -> str:
    if after is None:
        return "goes"
    if before is None:
        return "comes"
    return "stays" if before["rule"] == after["rule"] else "changes"


# --- what a rule is but for its numbers -------------------------------------------------------------------------


def _shape(tree: TAOTree, columns: Sequence[Column], leaf: int) -> Hashable:
    """The ways into a leaf that its rule names, without their numbers."""
    paths: list[Any] = [nodes for nodes, _ in tree.path_counts_.into(leaf)]
    ways = [merge_path(tree.tree_, columns, nodes) for nodes in paths]
    if not ways:  # no counted row reached it: the rule names a way that some row can take
        found = [merge_path(tree.tree_, columns, path) for path in islice(ways_up(tree.tree_, leaf), WAYS_TRIED)]
        ways = [next((way for way in found if all(condition.is_possible for condition in way)), found[0])]
    shapes = dict.fromkeys(frozenset(_condition_shape(c) for c in way if not c.is_open) for way in ways)
    return frozenset(islice(shapes, PATHS_SHOWN))


def _condition_shape(condition: Condition) -> Hashable:
    """Columns, open sides, categories, and whether missing values qualify."""
    features = frozenset(term.feature for term in condition.terms) if condition.terms else condition.feature
    missing = condition.missing and (condition.column.has_missing or condition.is_open)
    return features, condition.low > -np.inf, condition.high < np.inf, condition.codes, missing
