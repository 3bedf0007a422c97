"""The rule diff between two points of a cost-optimal curve."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.explain import Condition, Rule, leaf_rules
from toprank.rankers.cost.tao_tree import TAOTree

FIGURES = ("n", "positives", "training_rate", "lift")
ORDER = ("dropped", "added", "changed", "kept")


@dataclass(frozen=True)
class LeafRuleChange:
    """A rule of one tree next to that of another; None if one of them has no such rule."""

    before: Rule | None
    after: Rule | None

    @property
    def kind(self) -> str:
        """One of "dropped", "added", "changed" and "kept"."""
        if self.before is None or self.after is None:
            return "added" if self.before is None else "dropped"
        return "kept" if self.before.text() == self.after.text() else "changed"

    @property
    def rule(self) -> Rule:
        """The rule of the later tree, if it has one, else that of the earlier one."""
        rule = self.before if self.after is None else self.after
        assert rule is not None
        return rule

    def to_dict(self) -> dict[str, Any]:
        """Return a row of the table of changes, as plain values; NaN if a figure does not exist."""
        out = {
            "change": self.kind,
            "rule": self.rule.text(),
            "rule_before": None if self.before is None else self.before.text(),
        }
        sides = (("before", self.before), ("after", self.after))
        figures = {f"{name}_{when}": float("nan") if rule is None else float(getattr(rule, name))
                   for name in FIGURES for when, rule in sides}  # fmt: skip
        return out | figures


def positive_rules(tree: TAOTree) -> list[Rule]:
    """Return the rules of the positive leaves of a tree, best first, with their figures on the training data.

    Leaves whose rules read the same are separate rules, with different `leaf`.
    """
    ends = np.flatnonzero(tree.tree_.is_leaf)
    is_positive = np.bincount(tree.tree_.leaf[ends], tree._label[ends] == 1, tree.tree_.n_leaves) > 0
    rules = leaf_rules(tree.tree_, tree.columns_, tree.path_counts_)
    return [rules[i] for i in np.flatnonzero(is_positive)]


def leaf_rule_changes(before: TAOTree, after: TAOTree) -> list[LeafRuleChange]:
    """Return the rule diff of two trees for positives: rules dropped, then those added, changed and kept.

    A rule is kept if the other tree has one that reads the same. It is changed if the other has one on the same
    columns, the same sides and the same categories, with other numbers; for weighted sums only the columns must match,
    not the weights. All others are dropped or added.
    """
    old, new = positive_rules(before), positive_rules(after)
    partner: dict[int, int] = {}
    for key in (Rule.text, _shape):
        of_new = [key(rule) for rule in new]
        for i, rule in enumerate(old):
            free = (j for j, found in enumerate(of_new) if found == key(rule) and j not in partner.values())
            if i not in partner and (j := next(free, None)) is not None:
                partner[i] = j
    changes = [LeafRuleChange(old[i], new[j]) for i, j in partner.items()]
    changes += [LeafRuleChange(None, rule) for j, rule in enumerate(new) if j not in partner.values()]
    changes += [LeafRuleChange(rule, None) for i, rule in enumerate(old) if i not in partner]
    return sorted(changes, key=lambda change: ORDER.index(change.kind))


def changes_table(changes: Sequence[LeafRuleChange]) -> dict[str, list[Any]]:
    """Return the columns change, rule (of the later tree, if it has one), rule_before, and figures before and after."""
    names = ["change", "rule", "rule_before", *(f"{name}_{when}" for name in FIGURES for when in ("before", "after"))]
    rows = [change.to_dict() for change in changes]
    return {name: [row[name] for row in rows] for name in names}


# --- what a rule is but for its numbers -------------------------------------------------------------------------


def _shape(rule: Rule) -> Hashable:
    """Return the ways of a rule, without their numbers."""
    return frozenset(frozenset(_condition_shape(condition) for condition in way.conditions) for way in rule.ways)


def _condition_shape(condition: Condition) -> Hashable:
    """Return columns, open sides, categories, and whether missing values qualify."""
    features = frozenset(term.feature for term in condition.terms) if condition.terms else condition.feature
    missing = condition.missing and (condition.column.has_missing or condition.is_open)
    return features, condition.low > -np.inf, condition.high < np.inf, condition.codes, missing
