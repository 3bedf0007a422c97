"""The rules of a tree as text: per leaf its hit rate, a short rule, and how well the rule fits the leaf."""

from __future__ import annotations

import math
from collections.abc import Sequence

from toprank.explain.rules import LeafRule, Rule
from toprank.words.counts import count, plural
from toprank.words.numbers import hit_rate_text, lift_text, percent_text
from toprank.words.wrapping import wrapped

RULE_LINES = 20
"""Default length of a list of rules: as many lines as a person reads at once."""

INDENT = 5


def fit_text(coverage: float, precision: float) -> str:
    """Return how well a short rule fits its leaf, in words; empty if it selects exactly the leaf's training cases.

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
    """Return a share below 1 in whole percent, never 100 % or 0 %."""
    percent = min(round(100 * share), 99)
    return f"{percent} %" if percent >= 1 else "less than 1 %"


def rule_lines(rule: LeafRule, width: int) -> list[str]:
    r"""Return the lines below a leaf's figures: one paragraph per way, and how well the rule fits.

    Examples
    --------
    >>> from toprank.explain import Condition, Way
    >>> from toprank.tree.columns import Column
    >>> young = Condition(0, Column("age"), high=3.0, missing=False)
    >>> north = Condition(1, Column("region", ("north", "south")), missing=False, codes=(0,))
    >>> figures = {"lift": 2.0, "n": 9, "positives": 3, "training_rate": 0.3, "score": 1.0}
    >>> rule = Rule(leaf=1, ways=(Way((young,)), Way((north,))), coverage=0.9, precision=1.0, **figures)
    >>> print(*rule_lines(rule, 60), sep="\n")
         age <= 3
         or region is north
         (covers 90 % of this group and nothing else)
    """
    paragraphs = [f"{'or ' if i else ''}{way}" for i, way in enumerate(rule.way_texts())]
    fit = fit_text(rule.coverage, rule.precision) if isinstance(rule, Rule) and not rule.n_other_ways else ""
    paragraphs += [f"({fit})"] if fit else []
    return [line for text in paragraphs for line in wrapped(text, width, " " * INDENT)]


def fitting_rules(rules: Sequence[Rule], width: int, max_rules: int | None) -> int:
    """Return how many rules to show: `max_rules`, or as many as fit in 20 lines, at least one."""
    if max_rules is not None:
        return min(max_rules, len(rules))
    n_lines = 0
    for i, rule in enumerate(rules):
        n_lines += 1 + len(rule_lines(rule, width))
        if n_lines > RULE_LINES and i > 0:
            return i
    return len(rules)


def rule_figures(rule: Rule) -> str:
    """Return the expected hit rate of a leaf with its interval and lift, and its training figures.

    Examples
    --------
    >>> figures = {"coverage": 1.0, "precision": 1.0, "n": 57, "positives": 57, "training_rate": 1.0, "score": 1.0}
    >>> rule_figures(Rule(leaf=1, ways=(), lift=4.05, **figures))
    'training rate 100 %, lift 4.05x; in training 57 of 57 positive'
    >>> rule_figures(Rule(leaf=1, ways=(), hit_rate=0.281, hit_rate_low=0.17, hit_rate_high=0.41, lift=1.14, **figures))
    'hit rate 28.1 % (17 % to 41 %), lift 1.14x; in training 57 of 57 positive'
    """
    lift, training = lift_text(rule.lift), f"in training {count(rule.positives)} of {count(rule.n)} positive"
    if rule.hit_rate is None or rule.hit_rate_low is None or rule.hit_rate_high is None:
        return f"training rate {percent_text(rule.training_rate)}, lift {lift}x; {training}"
    interval = f"{percent_text(rule.hit_rate_low)} to {percent_text(rule.hit_rate_high)}"
    return f"hit rate {hit_rate_text(rule.hit_rate)} ({interval}), lift {lift}x; {training}"


def rules_text(rules: Sequence[Rule], n_leaves: int, width: int, max_rules: int | None) -> list[str]:
    """Return all lines of a list of rules, best first, and a line that counts those left out.

    Parameters
    ----------
    rules : sequence of Rule
    n_leaves : int
        Leaves of the tree; `rules` may be only the first.
    width : int
    max_rules : int or None
        None shows as many as fit in 20 lines.
    """
    n_shown, lines = fitting_rules(rules, width, max_rules), []
    for rule in rules[:n_shown]:
        lines.append(f"{rule.leaf}. {rule_figures(rule)}")
        lines += rule_lines(rule, width)
    if n_shown < n_leaves:
        lines.append(f"and {plural(n_leaves - n_shown, 'more rule')}; max_rules={n_leaves} shows all")
    return lines
