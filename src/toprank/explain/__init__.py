"""Paths in words: merged conditions, contributions, reasons, rules of leaves, explanations of rows, dependence.

Reads a `Tree` and the columns' names; knows nothing of estimators or data frames.
"""

from toprank.explain.conditions import Condition, merge_path
from toprank.explain.contributions import auc_importance, feature_contributions, gain_importance, path_contributions
from toprank.explain.covers import MAX_CONDITIONS, MAX_LEAVES, Cover, Covers, LeafRows
from toprank.explain.dependence import Dependence, partial_dependence
from toprank.explain.paths import PathCounts, count_paths
from toprank.explain.reasons import Reason, reasons
from toprank.explain.rows import Explanation, Step, explain_rows
from toprank.explain.rules import checked_leaf_rates, leaf_rules, leaf_table
from toprank.explain.votes import VoteExplanation, explain_votes, vote_reasons

__all__ = [
    "MAX_CONDITIONS",
    "MAX_LEAVES",
    "Condition",
    "Cover",
    "Covers",
    "Dependence",
    "Explanation",
    "LeafRows",
    "PathCounts",
    "Reason",
    "Step",
    "VoteExplanation",
    "auc_importance",
    "checked_leaf_rates",
    "count_paths",
    "explain_rows",
    "explain_votes",
    "feature_contributions",
    "gain_importance",
    "leaf_rules",
    "leaf_table",
    "merge_path",
    "partial_dependence",
    "path_contributions",
    "reasons",
    "vote_reasons",
]
