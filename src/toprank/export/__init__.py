"""Trees in other forms: text, to read or to apply, and the scorecard inside leaves as a table."""

from toprank.export.rules import fitting_rules, rule_figures, rule_lines, rules_text, ways_of, wrapped
from toprank.export.scorecard import (
    CARD_TITLE,
    WIDTH,
    checked_spread,
    main_columns,
    scorecard_features,
    scorecard_lines,
    scorecard_shares,
    scorecard_summary,
    scorecard_table,
)
from toprank.export.text import INDENT, node_lines, to_text

__all__ = [
    "CARD_TITLE",
    "INDENT",
    "WIDTH",
    "checked_spread",
    "fitting_rules",
    "main_columns",
    "node_lines",
    "rule_figures",
    "rule_lines",
    "rules_text",
    "scorecard_features",
    "scorecard_lines",
    "scorecard_shares",
    "scorecard_summary",
    "scorecard_table",
    "to_text",
    "ways_of",
    "wrapped",
]
