"""What the commands print: model card, rules, alerts, gains. Numbers in everyday notation, 100 columns wide."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from toprank.register import entry_of
from toprank.words.counts import count, plural
from toprank.words.numbers import hit_rate_text, three_decimals, value_text
from toprank.words.visible import visible
from toprank.words.wrapping import GLUE, wrapped

if TYPE_CHECKING:
    import numpy as np

    from toprank.explain import ClassRule, Rule
    from toprank.metrics import HitRates
    from toprank.tree.columns import Column
    from toprank.tree.scoring import Scoring

LARGEST_FACTOR = 50.0
"""Larger strengths of reasons are not shown: no table has the cases to tell them apart."""

LEAST_OF_CLASS = 10
"""With fewer cases of a class, folds may lack one; that is why a model has no hit rates of new cases."""

NEAR_CHANCE = "This is hardly better than a random order: do not expect a list by this model to help."
TOO_FEW = "too few to tell if this model helps."

TIES = "About: cases with equal scores have no order; these figures are the mean over all orders."
NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*")
CARD_COLUMNS = 8
"""Columns named on the card of a model, and columns listed of a scorecard, at most."""

CARD_LINES = 8
"""Lines of a scorecard, so that card, rules and scorecard of a model fit on one screen."""

NO_FILE = "MODEL"
"""Stands for the file of a model in suggested commands where it has none."""


def describe_command(path: Path | None, option: str) -> str:
    """Return the command that prints a saved model with an option; shortened pages name it."""
    return f"`toprank describe {NO_FILE if path is None else shlex.quote(str(path))} {option}`"


def expected(value: float) -> str:
    """Return a number of cases: 1,234, or "about 13" if ties make it a mean."""
    return f"about {value:,.0f}" if "." in count(value) else count(value)


def percent(share: float) -> str:
    """Return a share: 46.7 %, 0.22 %."""
    return f"{100 * share:.{2 if abs(share) < 0.0995 else 1}f} %"


def times(lift: float) -> str:
    """Return a lift: 31x, 2.3x, 0.05x."""
    return f"{lift:,.0f}x" if lift >= 19.95 else f"{lift:,.{1 if lift >= 0.95 else 2}f}x"


def factor(strength: float) -> str:
    """Return the strength of a reason: x2.1, x14, x1.04; x50+ from 50 on."""
    if strength >= LARGEST_FACTOR:
        return f"x{LARGEST_FACTOR:.0f}+"
    return f"x{strength:,.{0 if strength >= 9.95 else 1 if strength >= 1.095 else 2}f}"


def strengths_text(alerts: Sequence[dict[str, Any]], rates: Any) -> str:
    """Return what the strengths before the reasons of these alerts mean, with one of them; empty if there are none.

    Points of a model, or what its trees saw in training, may promise more than the hit rate that is expected of a case
    like this: then the strengths of all its reasons are lowered (`toprank.explain.reasons.kept_shares`).
    """
    from toprank.explain.reasons import MAX_REASONS

    names = [f"strength_{i}" for i in range(1, MAX_REASONS + 1)]  # a copied column may be called strength_of_lock
    known = [alert[name] for alert in alerts for name in names if isinstance(alert.get(name), float)]
    if not known:
        return ""
    shown = factor(next((strength for strength in known if strength < LARGEST_FACTOR), known[0]))
    by = f"{shown[1:-1]} or more" if shown.endswith("+") else shown[1:]
    limit = "scaled to fit the hit rate" if rates.is_for_new_cases else "as in training"
    return f"{shown} before a reason: it makes the odds of a hit {by} times as high, {limit}."


def why_no_rates(model: Any) -> str:
    """Return why a fitted model has no hit rates of new cases, if it has too few cases of a class; else nothing."""
    fewest = min(model.n_positives_, model.n_cases_ - model.n_positives_)
    given = model.get_params(deep=False)
    is_off = given.get("cv", 5) == 0 or not given.get("bootstrap", True)
    if model.rates_.is_for_new_cases or is_off or fewest >= LEAST_OF_CLASS:
        return ""
    what = plural(fewest, "positive" if model.n_positives_ == fewest else "negative")
    return f"{what} {'is' if fewest == 1 else 'are'} too few to estimate hit rates of new cases"


def rates_source(rates: Any) -> str:
    """Return how hit rates of new cases were estimated: by 5-fold cross-validation, or out of bag."""
    return f"estimated {'by ' if 'validation' in rates.source else ''}{rates.source}"


class Facts:
    """Names and values in two columns; values do not wrap before a % or after a comparison sign."""

    def __init__(self, rows: Iterable[tuple[str, str]]) -> None:
        self.rows = list(rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        indent = 4 + max((len(name) for name, _ in self.rows), default=0)
        for name, value in self.rows:
            lines = [line for part in value.split("\n") for line in wrapped(part, options.max_width - indent)]
            for i, line in enumerate(lines or [""]):
                label = f"  {name}" if i == 0 else ""
                yield Text.assemble((label.ljust(indent), "dim"), line)


class Sentence:
    """A text in a cell, wrapped as `Facts` are; the name of a column and its value stay on a line."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in wrapped(self.text.replace(" = ", f"{GLUE}={GLUE}"), options.max_width):
            yield Text(line)  # which wraps again where a line is still too wide

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(20, options.max_width), len(self.text)).with_maximum(options.max_width)


def grid(columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[RenderableType]]) -> Padding:
    """Return a table; each column is given as its title and "left" or "right"."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for title, justify in columns:
        table.add_column(visible(title, one_line=True), justify=justify, no_wrap=justify == "right")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return Padding(table, (0, 0, 0, 2))


# --- models -------------------------------------------------------------------------------------------------


def model_card(
    info: dict[str, Any],
    more: Sequence[tuple[str, str]] = (),
    *,
    is_chosen: bool = False,
    card_shares: Sequence[float] | None = None,
    rates: HitRates | None = None,
) -> Group:
    """Return a fitted model in a few lines, from the contents of its file, followed by the lines of `more`.

    `is_chosen`: whether a tree of a curve was chosen; `card_shares`: the result of `scorecard_shares`; `rates`: the hit
    rates of the model.
    """
    figures = info["figures"]
    rate = figures["n_positives"] / figures["n_cases"]
    classes, positive = info["classes"]["values"], info["positive_index"]
    no_columns = "none: no column separates the cases" if entry_of(info["class"]).has_leaves else ""
    facts = dict(info.get("facts", {}))
    size_in_words = facts.pop("size", "")
    size = model_size(figures)
    if entry_of(info["class"]).kind == "curve":
        one = model_size({name: value for name, value in figures.items() if name != "n_trees"})
        size = f"{plural(figures['n_trees'], 'tree')}; the {'chosen' if is_chosen else 'base'} one has {one}"
    rows = [
        ("size", size or size_in_words),
        ("trained on", f"{plural(figures['n_cases'], 'case')}, {count(figures['n_positives'])} positive "
                       f"({percent(rate)})"),
        ("outcome", f"looks for {classes[positive]!r}, the other is {classes[1 - positive]!r}"),
        ("columns", columns_in_words(info)),
        ("main columns", main_columns(info, card_shares) or no_columns),
        flagged_row(info, rates, is_chosen=is_chosen),
    ]  # fmt: skip
    known = [row for row in rows if row[1]]
    return Group(Text(info["class"], style="bold"), Facts([*known, *facts.items(), *more]))


def flagged_row(info: dict[str, Any], rates: HitRates | None = None, *, is_chosen: bool = False) -> tuple[str, str]:
    """Return which cases `predict` flags, from the contents of a file: by a budget, or by labels of the model.

    The text is empty for a model whose vote is one of its facts.
    """
    from toprank.budget import Cutoff, budget_text, curve_text, least_cost_text

    figures, budget = info["figures"], info["parameters"].get("budget")
    if not is_chosen and (budget is not None or not entry_of(info["class"]).labels):
        n_cases, cutoff = figures["n_cases"], Cutoff.from_dict(info["cutoff"])
        text = budget_text(cutoff, rates, base_rate=figures["n_positives"] / n_cases, n_cases=n_cases)
        return "budget", text.removeprefix("budget ")
    text = ""
    if "n_fp" in figures:
        text = least_cost_text(figures["n_positives"], figures["n_fp"], figures["n_fn"])
    elif "vote" not in info.get("facts", {}):
        text = curve_text(is_chosen=is_chosen)
    return "flags", text.removeprefix("flags ")


def classifier_card(info: dict[str, Any], more: Sequence[tuple[str, str]] = ()) -> Group:
    """Return a classifier in a few lines, from the contents of its file, followed by the lines of `more`."""
    figures = info["figures"]
    counts = zip(info["classes"]["values"], figures["class_counts"], strict=True)
    facts, trained = dict(info.get("facts", {})), plural(figures["n_cases"], "case")
    if "n_wrong" in figures:
        share = percent(figures["n_wrong"] / figures["n_cases"])
        trained = f"{trained}, {count(figures['n_wrong'])} misclassified ({share})"
    rows = [
        ("size", model_size(figures) or facts.pop("size", "")),
        ("trained on", trained),
        ("classes", ", ".join(f"{label!r}: {count(n)}" for label, n in counts)),
        ("columns", columns_in_words(info)),
    ]
    return Group(Text(info["class"], style="bold"), Facts([*rows, *facts.items(), *more]))


def columns_in_words(info: dict[str, Any]) -> str:
    """Return the number of columns and how many are categorical."""
    n_categorical = sum(column["kind"] == "category" for column in info["columns"])
    return f"{len(info['columns']):,}, {n_categorical:,} of them categorical"


def model_size(figures: dict[str, Any]) -> str:
    """Return the numbers of trees, leaves and conditions, and the depth, in words."""
    parts = [plural(figures["n_trees"], "tree")] if figures.get("n_trees") else []
    if "n_rules" in figures:
        parts += [plural(figures["n_rules"], "rule"), plural(figures["n_conditions"], "condition")]
    if "n_columns" in figures:
        parts += [f"points for {plural(figures['n_columns'], 'column')}"]
    if "n_leaves" in figures:
        parts += [plural(figures["n_leaves"], "leaf", "leaves"), plural(figures["n_conditions"], "condition")]
    return ", ".join(parts + ([f"depth {figures['depth']}"] if "depth" in figures else []))


def main_columns(info: dict[str, Any], card_shares: Sequence[float] | None = None) -> str:
    """Return the columns with the largest shares of the gain; without gain, of the scorecard."""
    from toprank import export

    names = [column["name"] for column in info["columns"]]
    return export.main_columns(names, info["importances"], card_shares, CARD_COLUMNS)


def rules_title(n_shown: int, n_rules: int, order: str = "in the order of the ranking", figures: str = "") -> str:
    """Return the title of a list of rules: their order, and where the figures come from."""
    if n_rules == 1:
        return f"The only rule{figures}"
    which = f"All {n_rules:,}" if n_shown == n_rules else f"The first {n_shown:,} of {n_rules:,}"
    return f"{which} rules, {order}{figures}"


def scorecard_excerpt(card: tuple[Scoring, Sequence[Column], np.ndarray | None], width: int) -> list[str]:
    """Return the main columns of a scorecard in at most 8 lines; the last one counts the rest."""
    from toprank.export import scorecard_lines

    lines: list[str] = []
    for n_columns in range(CARD_COLUMNS, 0, -1):
        lines = scorecard_lines(*card, width, max_columns=n_columns)
        if len(lines) <= CARD_LINES:
            break
    return lines


def rules_shown(rules: Sequence[Rule], width: int, max_rules: int | None) -> list[Rule]:
    """Return the rules to print: the first `max_rules`, or as many as fit in 20 lines."""
    from toprank.export import fitting_rules

    return list(rules[: fitting_rules(rules, width, max_rules)])


def rules_list(rules: Sequence[Rule | ClassRule], width: int = 100) -> Group:
    """Return rules with their figures, one paragraph per way, and how well a short rule fits."""
    from toprank.explain import Rule
    from toprank.export import rule_figures, rule_lines

    parts: list[RenderableType] = []
    for place, rule in enumerate(rules, 1):
        if isinstance(rule, Rule):
            figures = rule_figures(rule)
        else:  # of a leaf with a class
            interval = f"{percent(rule.share_low)} to {percent(rule.share_high)}"
            figures = (
                f"class {rule.label!r}, {count(rule.of_class)} of {plural(rule.n, 'case')}: {percent(rule.share)} "
                f"({interval}), {percent(rule.coverage)} of the class"
            )
        parts.append(Text.assemble((f"{place}. ", "bold"), figures))
        parts += [Text(line) for line in rule_lines(rule, width)]
    return Group(*parts)


def precision_text(rates: Any, base_rate: float) -> str:
    """Return the average precision of a model in words, and how it was estimated; empty if unknown."""
    if math.isnan(rates.average_precision):
        return ""
    found = f"{three_decimals(rates.average_precision)} {judged_on(rates)}"
    return f"{found}; a random order has {three_decimals(base_rate)}"


def judged_on(rates: Any) -> str:
    """Return which cases the average precision of a model is on, and how it was estimated."""
    if not rates.is_for_new_cases:
        return "on the training data itself, which is optimistic"
    spread = "" if math.isnan(rates.deviation) else f" (standard deviation {rates.deviation:.3f})"
    return f"on new cases, {rates_source(rates)}{spread}"


def inside_facts(inside: str, alone: str) -> list[tuple[str, str]]:
    """Return the lines of a card on the scorecard inside leaves, and on a tree of only one leaf."""
    return [("inside leaves", inside), *([("", alone)] if alone else [])] if inside else []


def page_facts(model: Any, path: Path | None = None, max_rules: int | None = None) -> dict[str, Any]:
    """Return a model on a page as plain values, with at most `max_rules` rules; nothing for other models.

    `path` is the file of the model, if it has one.

    A score is the base, plus the points of the rules that hold, plus the points of the values of a case; with a tree
    of corrections, plus those of its leaf.
    """
    if not entry_of(model).has_page:
        return {}
    from toprank.rankers.points.card_text import card_columns

    card = model.card_
    return {
        "base": card.base,
        "rules": [flag.to_dict() for flag in getattr(model, "flags_", ())][:max_rules],
        "scorecard": table_rows(card_columns(card, model.columns_, [shape.feature for shape in card.shapes])),
        "page": model._page(full_text=describe_command(path, "--exact")),
        **({"tree": model.to_plain()["tree"]} if hasattr(model, "card_tree_") else {}),
    }


def page_text(
    model: Any, path: Path | None = None, max_rules: int | None = None, *, is_whole: bool = False
) -> tuple[str, str]:
    """Return a title and the page of a model, with at most `max_rules` rules; only its beginning if it is long.

    `path` is the file of the model, if it has one; `is_whole`: the whole page.
    """
    full_text = describe_command(path, "--exact")
    n = len(getattr(model, "flags_", ()))
    if max_rules is None or max_rules >= n:
        if is_whole:
            return "The model", model._page(full_text=full_text)
        return "The model", model._overview(describe_command(path, "--all"), full_text)
    first = copy(model)
    first.flags_ = model.flags_.take(range(max_rules))
    return f"The model, with the first {max_rules:,} of {n:,} rules", first._page(full_text=full_text)


def flags_page_part(model: Any) -> tuple[str, str]:
    """Return a title and the red flags of a model without its card; the page if it has none."""
    if not len(getattr(model, "flags_", ())):
        return page_text(model)
    from toprank.rankers.points.pages import flag_lines

    return "The red flags of the model", "\n".join(flag_lines(model.flags_, model.rates_.is_for_new_cases))


# --- rankings -----------------------------------------------------------------------------------------------


def alerts_table(
    alerts: Sequence[dict[str, Any]],
    carried: Sequence[str],
    *,
    amount: str | None = None,
    outcome: str | None = None,
) -> Padding:
    """Return alerts as a table: rank, copied columns, hit rate, lift, amount, whether it was a hit, reasons."""
    numeric = {name for name in carried if alerts and all(looks_like_number(alert[name]) for alert in alerts)}
    columns = [("rank", "right"), *((name, "right" if name in numeric else "left") for name in carried)]
    rate = "hit rate" if "hit_rate" in alerts[0] else "training rate"
    columns += [(rate, "right"), ("lift", "right")] + ([("amount", "right")] if amount else [])
    columns += [("found", "left")] if outcome else []
    has_reasons = bool(alerts) and "reason_1" in alerts[0]
    columns += [("reasons", "left")] if has_reasons else []
    return grid(columns, [_alert_cells(alert, carried, amount, outcome, has_reasons) for alert in alerts])


def _alert_cells(
    alert: dict[str, Any], carried: Sequence[str], amount: str | None, outcome: str | None, has_reasons: bool
) -> list[RenderableType]:
    cells: list[RenderableType] = [f"{alert['rank']:,}", *(carried_text(alert[name]) for name in carried)]
    is_for_new_cases = "hit_rate" in alert
    rate = alert["hit_rate" if is_for_new_cases else "training_rate"]
    cells += [hit_rate_text(rate, percent, is_for_new_cases=is_for_new_cases), times(alert["lift"])]
    if amount:
        cells.append("" if alert[amount] is None else value_text(round(alert[amount])))
    if outcome:
        cells.append(Text("hit", style="green") if alert[outcome] else Text("-", style="dim"))
    if has_reasons:
        cells.append(_reasons_cell(alert, carried))
    return cells


def looks_like_number(value: Any) -> bool:
    """Return True for numbers, numbers in text, and missing values; False for words."""
    return value is None or isinstance(value, int | float) or bool(NUMBER.fullmatch(str(value)))


def _reasons_cell(alert: dict[str, Any], carried: Sequence[str]) -> Table:
    """Return the reasons of a case, one per line, each after its strength."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(justify="right", no_wrap=True, style="dim")
    table.add_column()
    for name, text in alert.items():
        if name.startswith("reason_") and name not in carried and text:
            strength = alert.get(name.replace("reason_", "strength_"))
            table.add_row("" if strength is None else factor(strength), Sentence(visible(text, one_line=True)))
    return table


def carried_text(value: Any) -> str:
    """Return a value of a user's column; whole numbers unchanged, as they may be ids or years."""
    if value is None:
        return ""
    return value_text(value, 10) if isinstance(value, float) else visible(str(value), one_line=True)


def table_rows(table: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Return the rows of a table that is stored by column."""
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def gains_grid(gains: dict[str, Any], n_cases: int) -> Group:
    """Return what is found down the ranking, one row per depth, with a note if ties make it a mean."""
    columns = [(name, "right") for name in ("top", "cases", "found", "precision", "recall", "lift")]
    has_money = "cumulative_amount" in gains
    columns += [("amount found", "right"), ("of all", "right")] if has_money else []
    rows = []
    for i, depth in enumerate(gains["depth"]):
        rates = percent(gains["precision"][i]), percent(gains["recall"][i]), times(gains["lift"][i])
        row = [percent_short(depth, n_cases), count(depth), expected(gains["cumulative_positives"][i]), *rates]
        if has_money:
            row += [f"{gains['cumulative_amount'][i]:,.0f}", percent(gains["amount_recall"][i])]
        rows.append(row)
    is_open = any(row[2].startswith("about") for row in rows)
    return Group(grid(columns, rows), *([Padding(Text(TIES, style="dim"), (0, 0, 0, 2))] if is_open else []))


def percent_short(n_first: float, n_cases: int) -> str:
    """Return the shortest percentage that these first cases of a ranking are, rounded up: 1 %, 12.5 %."""
    from toprank.metrics.at_k import cases_of_share

    shares = [float(f"{n_first / n_cases:.{digits}g}") for digits in (1, 2, 3)]
    fitting = (share for share in shares if cases_of_share(share, n_cases) == n_first)
    return f"{100 * next(fitting, shares[-1]):.3g} %"


def chance_facts(judged: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the line below an average precision that a random order often has."""
    if not judged["is_near_chance"]:
        return []
    return [("", near_chance_text(judged["random_order_limit"], judged["has_few_positives"]))]


def near_chance_text(random_order_limit: float, has_few_positives: bool) -> str:
    """Return what an average precision says that a random order often has."""
    limit = three_decimals(random_order_limit)
    few = f"With so few positives, 5 % of random orders have more than {limit}: {TOO_FEW}"
    return few if has_few_positives else NEAR_CHANCE


def share_interval_text(interval: Any) -> str:
    """Return a share with its interval: 33.1 % (28.4 % to 37.9 %)."""
    return f"{percent(interval.value)} ({percent(interval.low)} to {percent(interval.high)})"


def interval_text(interval: Any) -> str:
    """Return a figure with its interval: 0.331 (0.284 to 0.379)."""
    level = f"{100 * interval.level:.0f} % confidence"
    value, low, high = (three_decimals(end) for end in (interval.value, interval.low, interval.high))
    return f"{value} ({low} to {high} with {level})"
