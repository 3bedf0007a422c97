"""Models that fit on a page, as the commands show them: the page, its red flags alone, and all of it as data."""

from __future__ import annotations

from copy import copy
from typing import Any

from toprank.register import entry_of

EXACT_COMMAND = "`toprank describe MODEL --exact`"
"""How to print the full text of a model; shortened pages name it."""


def page_facts(model: Any, max_rules: int | None = None) -> dict[str, Any]:
    """Return a model on a page as plain values, with at most `max_rules` rules; nothing for other models.

    A score is the base, plus the points of the rules that hold, plus the points of the values of a case; with a tree
    of corrections, plus those of its leaf.
    """
    if not entry_of(model).has_page:
        return {}
    from toprank.cli.show import table_rows
    from toprank.rankers.points.card_text import card_columns

    card = model.card_
    return {
        "base": card.base,
        "rules": [flag.to_dict() for flag in getattr(model, "flags_", ())][:max_rules],
        "scorecard": table_rows(card_columns(card, model.columns_, [shape.feature for shape in card.shapes])),
        "page": model._page(full_text=EXACT_COMMAND),
        **({"tree": model.to_plain()["tree"]} if hasattr(model, "card_tree_") else {}),
    }


def page_text(model: Any, max_rules: int | None = None) -> tuple[str, str]:
    """Return a title and the page of a model, with at most `max_rules` rules."""
    n = len(getattr(model, "flags_", ()))
    if max_rules is None or max_rules >= n:
        return "The model", model._page(full_text=EXACT_COMMAND)
    first = copy(model)
    first.flags_ = model.flags_.take(range(max_rules))
    return f"The model, with the first {max_rules:,} of {n:,} rules", first._page(full_text=EXACT_COMMAND)


def flags_text(model: Any) -> tuple[str, str]:
    """Return a title and the red flags of a model without its card; the page if it has none."""
    if not len(getattr(model, "flags_", ())):
        return page_text(model)
    from toprank.rankers.points.pages import flag_lines

    return "The red flags of the model", "\n".join(flag_lines(model.flags_, model.rates_.is_for_new_cases))
