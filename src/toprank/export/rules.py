"""The rules of a tree as text: for each leaf its hit rate, a short rule, and how well the rule fits the leaf."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from toprank.words.counts import count, plural
from toprank.words.numbers import lift_text, percent_text

RULE_LINES = 20
"""Lines of rules that a person reads at once, where no number of rules is asked for."""

WAY = re.compile(r" or (?=\(|[\d,]+ other ways? \()")
"""Where one way into a leaf ends and the next begins."""

BOUND = re.compile(r"(?<=[<>=]) (?=[\d-])| (?=%)")
"""Spaces at which a line is not broken."""

GLUE, INDENT = "\0", 5


def fit_text(coverage: float, precision: float) -> str:
    """Words for how well a short rule fits its leaf; nothing where it selects the leaf's training cases and no others.

    Examples
    --------
    >>> fit_text(0.934, 0.972)
    'covers 93 % of this group; 97 % of what it selects belongs to it'
    >>> fit_text(0.9999, 1.0), fit_text(1.0, 1.0)
    ('covers 99 % of this group and nothing else', '')
    """
    if math.isnan(coverage) or math.isnan(precision) or (coverage >= 1 and precision >= 1):
        return ""
    covers = f"covers {'all' if coverage >= 1 else _whole(coverage)} of this group"
    if precision >= 1:
        return f"{covers} and nothing else"
    return f"{covers}; {_whole(precision)} of what it selects belongs to it"


def _whole(share: float) -> str:
    """A share below 1 in whole percent, never 100 % nor 0 %."""
    percent = min(round(100 * share), 99)
    return f"{percent} %" if percent >= 1 else "less than 1 %"


def ways_of(rule: str) -> list[str]:
    """Return the ways into a leaf, apart, without the brackets around each."""
    ways = WAY.split(rule)
    if len(ways) == 1 or any(way.count("(") != way.count(")") for way in ways):
        return [rule]
    return [way[1:-1] if _is_bracketed(way) else way for way in ways]


def _is_bracketed(way: str) -> bool:
    """Tell whether the first bracket of a way is closed by its last one."""
    depth = 0
    for i, letter in enumerate(way):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return i == len(way) - 1 and i > 0
    return False


def rule_lines(rule: Mapping[str, Any], width: int) -> list[str]:
    r"""Lines below a leaf's figures: one paragraph per way, and how well the rule fits.

    Parameters
    ----------
    rule : mapping
        A row of `leaf_rules`: rule, and coverage and precision where they are known.
    width : int

    Examples
    --------
    >>> rule = {"rule": "(age <= 3 and sector is retail) or (region is north)", "coverage": 0.9, "precision": 1.0}
    >>> print(*rule_lines(rule, 60), sep="\n")
         age <= 3 and sector is retail
         or region is north
         (covers 90 % of this group and nothing else)
    """
    paragraphs = [f"{'or ' if i else ''}{way}" for i, way in enumerate(ways_of(rule["rule"]))]
    fit = fit_text(rule["coverage"], rule["precision"]) if "precision" in rule else ""
    if fit and " other way" not in rule["rule"]:
        paragraphs.append(f"({fit})")
    return [line for text in paragraphs for line in wrapped(text, width, " " * INDENT)]


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of a text, broken neither before % nor behind a sign of comparison.

    Examples
    --------
    >>> wrapped("age > 3 and the share <= 30 %", 20)
    ['age > 3 and the', 'share <= 30 %']
    """
    glued = BOUND.sub(GLUE, text)
    lines = textwrap.wrap(
        glued, max(width, 20), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    return [line.replace(GLUE, " ") for line in lines]


def fitting_rules(rules: Sequence[Mapping[str, Any]], width: int, max_rules: int | None) -> int:
    """How many rules are shown: `max_rules`, or as many as fit in 20 lines, at least one."""
    if max_rules is not None:
        return min(max_rules, len(rules))
    n_lines = 0
    for i, rule in enumerate(rules):
        n_lines += 1 + len(rule_lines(rule, width))
        if n_lines > RULE_LINES and i > 0:
            return i
    return len(rules)


def rule_figures(rule: Mapping[str, Any]) -> str:
    """The hit rate to expect of a leaf with its interval and lift, and what it had in training.

    Examples
    --------
    >>> rule = {"positives": 57, "n": 57, "training_rate": 1.0, "lift": 4.05}
    >>> rule_figures(rule)
    'training rate 100 %, lift 4.05x; in training 57 of 57 positive'
    >>> rule_figures(rule | {"hit_rate": 0.281, "hit_rate_low": 0.17, "hit_rate_high": 0.41, "lift": 1.14})
    'hit rate 28.1 % (17 % to 41 %), lift 1.14x; in training 57 of 57 positive'
    """
    lift, training = lift_text(rule["lift"]), f"in training {count(rule['positives'])} of {count(rule['n'])} positive"
    if "hit_rate" not in rule:
        return f"training rate {percent_text(rule['training_rate'])}, lift {lift}x; {training}"
    interval = f"{percent_text(rule['hit_rate_low'])} to {percent_text(rule['hit_rate_high'])}"
    return f"hit rate {percent_text(rule['hit_rate'])} ({interval}), lift {lift}x; {training}"


def rules_text(rules: Sequence[Mapping[str, Any]], n_leaves: int, width: int, max_rules: int | None) -> list[str]:
    """All lines of a list of rules, best first, and a line that counts those left out.

    Parameters
    ----------
    rules : sequence of mappings
        Rows of `leaf_rules`.
    n_leaves : int
        Leaves of the tree, of which `rules` may be the first.
    width : int
    max_rules : int or None
        None shows as many as fit in 20 lines.
    """
    n_shown, lines = fitting_rules(rules, width, max_rules), []
    for rule in rules[:n_shown]:
        lines.append(f"{rule['leaf']}. {rule_figures(rule)}")
        lines += rule_lines(rule, width)
    if n_shown < n_leaves:
        lines.append(f"and {plural(n_leaves - n_shown, 'more rule')}; max_rules={n_leaves} shows all")
    return lines
