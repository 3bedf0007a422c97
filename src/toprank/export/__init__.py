"""Trees as text, for reading or for applying, and the scorecard inside leaves as a table."""

from toprank.export.scorecard import (
    CARD_TITLE,
    WIDTH,
    checked_spread,
    main_columns,
    no_split_text,
    scorecard_features,
    scorecard_lines,
    scorecard_shares,
    scorecard_summary,
    scorecard_table,
)
from toprank.export.text import block_lines, fitting_rules, question, rule_figures, rule_lines, rules_text, to_text

__all__ = [
    "CARD_TITLE",
    "WIDTH",
    "block_lines",
    "checked_spread",
    "fitting_rules",
    "main_columns",
    "no_split_text",
    "question",
    "rule_figures",
    "rule_lines",
    "rules_text",
    "scorecard_features",
    "scorecard_lines",
    "scorecard_shares",
    "scorecard_summary",
    "scorecard_table",
    "to_text",
]
