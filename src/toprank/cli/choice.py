"""A cost-optimal curve in words: its points, the chosen one, its rules, and how they differ from another tree's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from toprank.cli.show import Facts, grid, percent, rules_list, share_interval_text
from toprank.cli.terminal import Terminal
from toprank.words.counts import count, plural
from toprank.workflow.curves import curve_table

if TYPE_CHECKING:
    from toprank.explain import Rule
    from toprank.metrics import OperatingPoints
    from toprank.rankers.curve.changes import LeafRuleChange
    from toprank.rankers.curve.cost_curve import CostOptimalCurve
    from toprank.rankers.curve.selection import Selection

POINTS_SHOWN = 15
RULES_SHOWN = 8
LOOKS = {"dropped": "red", "added": "green", "changed": "yellow", "kept": "dim"}


# --- the points ---------------------------------------------------------------------------------------------


def table_title(curve: CostOptimalCurve) -> str:
    """Return the title of the table, which says which cases the figures are from."""
    points = curve.judged_points_
    cases = f"{points.positives + points.negatives:,.0f} cases, {points.positives:,.0f} positive"
    source = {
        "cross-validation": f"out of fold: {cases}, each judged by trees that did not see it",
        "validation data": f"on the validation data: {cases}",
    }.get(curve.held_out_by_, f"on the training data, which is optimistic: {cases}")
    return f"The trees, from many alerts to few, {source}"


def points_shown(points: OperatingPoints, marked: Mapping[int, str]) -> list[int]:
    """Return the positions of a path to print: all of a short one.

    A long path first loses the points that others beat or repeat, then some of the rest, so that what remains is
    spread evenly. Marked points always stay.
    """
    n = len(points)
    if n <= POINTS_SHOWN:
        return list(range(n))
    mistakes = list(zip(points.false_positives.tolist(), points.false_negatives.tolist(), strict=True))
    shown = {mistakes[i] for i in marked}
    free = [
        i
        for i in range(n)
        if not points.is_dominated[i] and mistakes[i] not in shown and mistakes[i] not in mistakes[:i]
    ]
    room = max(POINTS_SHOWN - len(marked), 0)
    if len(free) > room:
        free = [free[place] for place in np.linspace(0, len(free) - 1, room).round().astype(int)]
    return sorted({*free, *marked})


def path_table(curve: CostOptimalCurve, marked: Mapping[int, str]) -> Group:
    """Return the points as a table, from many alerts to few, with marks beside them and a legend."""
    points = curve.judged_points_
    rows, shown = curve_table(curve).rows, points_shown(points, marked)
    columns = ("point", "cost", "leaves", "alerts", "found", "false alarms", "hit rate", "share found")
    beaten = {i for i in shown if points.is_dominated[i] and i not in marked}
    cells: list[list[RenderableType]] = []
    for row in (rows[i] for i in shown):
        mark = "beaten" if row.point in beaten else marked.get(row.point, "")
        cost = f"{row.cost_ratio:.3g}" if row.moved is None else "between"
        counts = [f"{each:,.0f}" for each in (row.counts.alerts, row.counts.found, row.counts.false_alarms)]
        rates = ["-" if row.precision is None else percent(row.precision), percent(row.recall)]
        texts = [count(row.point), cost, count(row.leaves), *counts, *rates, mark]
        cells.append(
            [Text(text, style="dim" if mark == "beaten" else "bold" if "chosen" in mark else "") for text in texts]
        )
    titles = [*((name, "right") for name in columns), ("", "left")]
    note = (
        "Alerts = found + false alarms. Share found: of all positives. Cost: of a false alarm, where a missed positive "
        "costs 1."
    )
    if any(rows[i].moved is not None for i in shown):
        note += " Between: the tree of a neighbour with one threshold moved."
    if beaten:
        note += " Beaten: another tree makes no more mistakes of either kind."
    if len(shown) < len(rows):
        note += f" {plural(len(rows) - len(shown), 'point')} not shown; --json lists all."
    return Group(grid(titles, cells), Padding(Text(note, style="dim"), (0, 0, 0, 2)))


# --- the choice ---------------------------------------------------------------------------------------------


def choice_facts(curve: CostOptimalCurve, selection: Selection, why: str = "") -> RenderableType:
    """Return what to expect of a chosen point of a curve, and optionally why it was chosen."""
    alerts, made = selection.alerts, f"trained for false alarms that cost {selection.point.cost_ratio:.3g}"
    if selection.point.moved is not None:
        made = str(selection.point.moved)
    leaves, source = plural(selection.tree.n_leaves_, "leaf", "leaves"), selection.judged_by
    if source == "training data":
        source = "the training data, which is optimistic: use `toprank evaluate` on held-out cases"
    has_hits = not np.isnan(selection.precision.value)
    hits = f"; {share_interval_text(selection.precision)} of them positive" if has_hits else ""
    cut = [] if selection.cut is None else [("cut", selection.cut.text(alerts.value))]
    rows = [
        ("tree", f"point {selection.position}, {leaves}, {made}"),
        *cut,
        *([("because", why)] if why and not cut else []),
        ("alerts", f"{alerts.value:,.0f} ({alerts.low:,.0f} to {alerts.high:,.0f}) among as many cases as in "
                   f"training{hits}"),
        *_other_alerts(curve, selection),
        ("found", f"{share_interval_text(selection.recall)} of the positives"),
        ("false alarms", f"{share_interval_text(selection.false_positive_rate)} of the negatives"),
        ("judged by", f"{source}; in brackets: "
        f"{100 * selection.recall.level:.0f} % confidence interval"),
    ]  # fmt: skip
    return Facts(rows)


def _other_alerts(curve: CostOptimalCurve, selection: Selection) -> list[tuple[str, str]]:
    """Return why the table has more alerts than the choice, if it has: they are of the trees of the folds."""
    rows, taken = curve_table(curve).rows, f"{selection.alerts.value:,.0f}"
    row = rows[selection.position]
    there = f"{row.counts.alerts:,.0f}"
    if selection.judged_by != "cross-validation" or there == taken:
        return []
    own = f"{row.training.alerts:,.0f}"
    return [("in the table", f"{there} alerts, those of the trees of the folds; this tree itself has {own} in "
                             f"training, and the figures here are of the first {taken} of the {there}")]  # fmt: skip


def show_tree(
    curve: CostOptimalCurve, chosen: Selection | None, rules: Sequence[Rule], terminal: Terminal, why: str = ""
) -> None:
    """Print what to expect of the chosen tree and its rules for positives, or those of the base tree."""
    whose = f"base tree (point {curve.base_point_}, which weights both classes equally)"
    if chosen is not None:
        terminal.heading(f"Chosen: {chosen.target}")
        terminal.show(choice_facts(curve, chosen, why))
        whose = "chosen tree"
    terminal.heading(f"Rules of the {whose} for positives, with figures on the training cases")
    if not rules:
        terminal.show("  None: this tree flags no case.")
        return
    terminal.show(rules_list(rules[:RULES_SHOWN]))
    if len(rules) > RULES_SHOWN:
        terminal.show(Text(f"\n   and {plural(len(rules) - RULES_SHOWN, 'more rule')}", style="dim"))


# --- its rules ----------------------------------------------------------------------------------------------


def changes_summary(changes: Sequence[LeafRuleChange]) -> str:
    """Return how many rules are dropped, added, changed and kept, in words."""
    found = Counter(change.kind for change in changes)
    parts = [f"{n:,} {kind}" for kind in LOOKS if (n := found[kind])]
    return f"Rules for positives: {', '.join(parts)}." if parts else "Neither tree flags any case."


def changes_list(changes: Sequence[LeafRuleChange]) -> Group:
    """Return the rules that are dropped, added, changed and kept, with their figures on the training cases."""
    parts: list[RenderableType] = []
    for change in changes:
        name = change.kind
        parts += [Text(), Text.assemble((f"{name}: ", LOOKS[name]), _caught(change))]
        lines = [("or " if i else "", way) for i, way in enumerate(change.rule.way_texts())]
        if name == "changed" and change.before is not None:
            lines = [("was ", change.before.text()), ("now ", change.rule.text())]
        for lead, way in lines:
            parts.append(Padding(Text.assemble((lead, "dim"), way), (0, 0, 0, 5)))
    return Group(*parts[1:])


def _caught(change: LeafRuleChange) -> str:
    """Return positives, cases and hit rate of a rule, before and after where it exists."""
    texts = [
        f"{count(rule.positives)} of {plural(rule.n, 'case')} positive, {percent(rule.training_rate)}"
        for rule in (change.before, change.after)
        if rule is not None
    ]
    return texts[0] if texts[0] == texts[-1] else f"{texts[1]}; previously {texts[0]}"
