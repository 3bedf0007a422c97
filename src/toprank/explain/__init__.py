"""Explanations as data and in words: conditions, contributions, reasons, rules, rows, dependence.

Needs only a `Tree` and its columns; knows nothing of estimators or data frames.
"""

from toprank.explain.conditions import Condition, Way, path_conditions, side_condition
from toprank.explain.contributions import auc_importance, feature_contributions, gain_importance
from toprank.explain.covers import MAX_CONDITIONS, MAX_LEAVES, Covers, LeafRows
from toprank.explain.dependence import Dependence, partial_dependence
from toprank.explain.paths import PathCounts, count_paths
from toprank.explain.reasons import Reason, reasons, sum_reasons, vote_reasons
from toprank.explain.rows import Explanation, Step, VoteExplanation, explain_rows, explain_sums, explain_votes
from toprank.explain.rules import ClassRule, Rule, checked_leaf_rates, leaf_rules, rule_table
from toprank.explain.walk import TreeWalk, Visit

__all__ = [
    "MAX_CONDITIONS",
    "MAX_LEAVES",
    "ClassRule",
    "Condition",
    "Covers",
    "Dependence",
    "Explanation",
    "LeafRows",
    "PathCounts",
    "Reason",
    "Rule",
    "Step",
    "TreeWalk",
    "Visit",
    "VoteExplanation",
    "Way",
    "auc_importance",
    "checked_leaf_rates",
    "count_paths",
    "explain_rows",
    "explain_sums",
    "explain_votes",
    "feature_contributions",
    "gain_importance",
    "leaf_rules",
    "partial_dependence",
    "path_conditions",
    "reasons",
    "rule_table",
    "side_condition",
    "sum_reasons",
    "vote_reasons",
]
