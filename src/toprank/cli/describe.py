"""`toprank describe`: show what a model file or a table holds. Loads only what it needs, so it is fast."""

from __future__ import annotations

import inspect
import shlex
import textwrap
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toprank.cli.choice import show_tree
from toprank.cli.columns import can_be_feature, choose_positive, label_values, outcomes, typed_columns
from toprank.cli.csv_text import CsvFormat
from toprank.cli.options import Encoding, Positive, Separator
from toprank.cli.reading import SPREADSHEETS, TABLE_SUFFIXES, TableFile, check_readable
from toprank.cli.show import (
    classifier_card,
    grid,
    inside_facts,
    model_card,
    page_facts,
    page_text,
    percent,
    precision_text,
    rules_list,
    rules_shown,
    rules_title,
    scorecard_excerpt,
    table_rows,
)
from toprank.cli.terminal import WIDTH, Terminal
from toprank.errors import InputError
from toprank.files.model_file import damage_in, load, read_model_info, read_model_parts, without_prefix
from toprank.register import entry_of
from toprank.tree.columns import TEXT_FORMS, Column
from toprank.words.counts import count, plural
from toprank.words.numbers import value_text
from toprank.workflow.curves import choice_dict

if TYPE_CHECKING:
    import numpy as np
    import polars

    from toprank.metrics import HitRates

CLASS_RULES_SHOWN = 16
FREE_TEXT_SHOWN = 38
"""Characters of a column of free text, so that it takes one line."""

CATEGORIES_SHOWN = 6
OF_TRAINING = ", with figures on the training cases"
NOT_SHOWN = ("pos_label", "n_jobs", "random_state", "verbose")
"""Parameters left out of the card: they do not matter to its reader, or it shows them already (`pos_label`)."""


def describe(
    terminal: Terminal,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Model file, or a table: CSV, TSV or Parquet.")],
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Tables: column with the outcome.")] = None,
    positive: Positive = None,
    max_rules: Annotated[
        int | None,
        typer.Option(
            "--max-rules", metavar="N", min=1, help="Models: rules to print (default: as many as fit in 20 lines)."
        ),
    ] = None,
    max_conditions: Annotated[
        int, typer.Option("--max-conditions", metavar="N", min=1, help="Models: most conditions per way of a rule.")
    ] = 4,
    all_facts: Annotated[
        bool, typer.Option("--all", help="Models: also show all columns, parameters, packages and points.")
    ] = False,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Models: print the whole tree or page, nothing shortened."),
    ] = False,
    sep: Separator = None,
    encoding: Encoding = None,
) -> None:
    r"""Show what a model file or a table holds.

    \b
    toprank describe model.toprank
    toprank describe model.toprank --max-rules 10 --max-conditions 2
    toprank describe model.toprank --exact > tree.txt
    toprank describe history.csv --label fraud
    """
    is_sheet = file.name.lower().endswith(SPREADSHEETS)  # some spreadsheets are zip files too
    if file.name.lower().endswith(".toprank") or (file.is_file() and not is_sheet and zipfile.is_zipfile(file)):
        if exact:
            _print_exactly(file, terminal)
        else:
            _describe_model(file, terminal, max_rules, max_conditions, all_facts)
    elif exact:
        raise InputError(
            f"--exact prints the tree of a model file, but {file.name} is a table. Hint: leave --exact out."
        )
    else:
        _describe_table(file, label, positive, CsvFormat.from_options(sep, encoding), terminal)


# --- models -------------------------------------------------------------------------------------------------


def _describe_model(
    path: Path, terminal: Terminal, max_rules: int | None, max_conditions: int, all_facts: bool
) -> None:
    """Show what a model file holds; max_rules=None means as many rules as fit in 20 lines."""
    info, arrays = read_model_parts(path)
    entry = entry_of(info["class"])
    found = {"kind": "model", "file": str(path), "info": info}
    if entry.kind == "curve":
        _describe_curve(path, found, terminal, all_facts)
        return
    if not entry.ranks:
        _describe_classifier(path, found, terminal, max_rules, all_facts)
        return
    with damage_in(path):
        from toprank.metrics.hit_rates import HitRates

        found_rates = without_prefix(arrays, "hit_rates_")
        rates = HitRates.from_arrays(found_rates) if found_rates else None
    exact = "; --exact prints the whole tree" if entry.has_leaves else ""
    if entry.has_page:
        exact = "; --exact prints every digit and category"
        model = load(path)
        title, text = page_text(model, path, max_rules, is_whole=all_facts)
        terminal.finish(found | {"rules": []} | page_facts(model, path, max_rules))
        _print_model(info, terminal, all_facts, rates=rates)
        terminal.heading(title)
        terminal.show(text)
    elif info["figures"].get("n_trees") or not entry.has_leaves:
        terminal.finish(found | {"rules": []})
        _print_model(info, terminal, all_facts, rates=rates)
    else:
        _describe_tree(path, found, arrays, terminal, max_rules, max_conditions, all_facts, rates)
    if not all_facts:
        terminal.hint(f"\n`toprank describe {shlex.quote(str(path))} --all` shows more{exact}.")


def _describe_tree(
    path: Path, found: dict[str, Any], arrays: dict[str, np.ndarray], terminal: Terminal, max_rules: int | None,
    max_conditions: int, all_facts: bool, rates: HitRates | None,
) -> None:  # fmt: skip
    """Show the first rules of a saved tree and the scorecard inside its leaves, without loading scikit-learn."""
    from toprank.explain import MAX_LEAVES, Covers, PathCounts, checked_leaf_rates, leaf_rules
    from toprank.export import (
        CARD_TITLE,
        checked_spread,
        no_split_text,
        scorecard_lines,
        scorecard_shares,
        scorecard_summary,
        scorecard_table,
    )
    from toprank.tree.structure import Tree, check_columns

    info, width = found["info"], min(terminal.out.width, WIDTH)
    with damage_in(path):
        tree = Tree.from_arrays(without_prefix(arrays, "tree_"))
        columns = [Column.from_dict(column) for column in info["columns"]]
        check_columns(tree, columns)
        rules = leaf_rules(
            tree,
            columns,
            PathCounts.from_arrays(without_prefix(arrays, "paths_"), tree),
            checked_leaf_rates(arrays.get("leaf_rates"), tree),
            covers=Covers.from_arrays(without_prefix(arrays, "covers_"), tree),
            max_rules=max_rules or MAX_LEAVES,
            max_conditions=max_conditions,
        )
        card = (tree.scoring, columns, checked_spread(arrays.get("points_spread"), tree.n_features))
        scorecard, inside = table_rows(scorecard_table(*card)), scorecard_summary(*card)
        alone = no_split_text(tree.n_leaves, inside, info["parameters"].get("ccp_alpha"))
        lines = scorecard_lines(*card, width) if all_facts else scorecard_excerpt(card, width)
        card_shares = scorecard_shares(tree.scoring, card[2])
    shown = rules_shown(rules, width, max_rules)
    found |= {"rules": [rule.to_dict() for rule in rules]}
    terminal.finish(found | ({"scorecard": scorecard} if inside else {}))
    _print_model(info, terminal, all_facts, rates=rates, inside=inside, alone=alone, card_shares=card_shares)
    if shown and not alone:
        terminal.heading(rules_title(len(shown), tree.n_leaves))
        terminal.show(rules_list(shown, width))
    if lines:
        terminal.heading(CARD_TITLE)
        terminal.show(*lines)


def _print_exactly(path: Path, terminal: Terminal) -> None:
    """Print the exact text of a model: all trees of a forest, the chosen tree of a curve."""
    from toprank.export import to_text

    info = read_model_info(path)
    if not (entry_of(info["class"]).has_leaves or entry_of(info["class"]).has_page):
        raise InputError(
            f"--exact prints readable models, but {path} holds a model of class {info['class']}, which is not one. "
            f"Hint: use `toprank describe {shlex.quote(str(path))} --all`."
        )
    with terminal.working(f"Loading {path.name}"):
        model = load(path)
    if entry_of(info["class"]).kind == "ensemble":
        n = len(model.trees_)
        trees = [
            to_text(tree, model.columns_, title=f"tree {i} of {n}:", exact=True)
            for i, tree in enumerate(model.trees_, 1)
        ]
        text = "\n\n".join([model.summary(), *trees])
    else:
        text = model.to_text(exact=True)
    terminal.finish({"kind": "model", "file": str(path), "info": info, "text": text})
    if not terminal.as_json:
        terminal.write(text)  # not wrapped: one line per node


def _describe_curve(path: Path, found: dict[str, Any], terminal: Terminal, all_facts: bool) -> None:
    """Show what a file with a cost-optimal curve holds, with the choice and the rules of the chosen tree."""
    from toprank.rankers.curve.changes import positive_rules

    with terminal.working(f"Loading {path.name}"):
        curve = load(path)
    chosen = curve.selected_
    rules = positive_rules(curve.path_[curve.base_point_].tree if chosen is None else chosen.tree)
    terminal.finish(found | {"chosen": choice_dict(chosen), "rules": [rule.to_dict() for rule in rules]})
    _print_model(found["info"], terminal, all_facts, is_chosen=chosen is not None)
    show_tree(curve, chosen, rules, terminal)
    terminal.hint(f"\n`toprank curve {shlex.quote(str(path))}` lists all trees; its options choose another one.")


def _describe_classifier(
    path: Path, found: dict[str, Any], terminal: Terminal, max_rules: int | None, all_facts: bool
) -> None:
    """Show what a file with a classifier holds: its classes, and the rules of a tree, which have no rank."""
    info, rules = found["info"], []
    if entry_of(info["class"]).has_leaves:
        with terminal.working(f"Loading {path.name}"):
            rules = load(path).rule_list()
    terminal.finish(found | {"rules": [rule.to_dict() for rule in rules]})
    terminal.show(classifier_card(info, _provenance(info, all_facts=all_facts)))
    if all_facts:
        _print_columns(info, [], terminal)
    if not rules:
        return
    n_shown = min(len(rules), max_rules or CLASS_RULES_SHOWN)
    terminal.heading(rules_title(n_shown, len(rules), "from left to right in the tree", OF_TRAINING))
    terminal.show(rules_list(rules[:n_shown], min(terminal.out.width, WIDTH)))
    if len(rules) > n_shown:
        terminal.hint(f"\n`toprank describe {shlex.quote(str(path))} --exact` prints the whole tree.")


def _print_model(
    info: dict[str, Any], terminal: Terminal, all_facts: bool, *, is_chosen: bool = False,
    rates: HitRates | None = None, inside: str = "", alone: str = "", card_shares: list[float] | None = None,
) -> None:  # fmt: skip
    """Print the card of a model, with how it orders rows inside leaves, and optionally its columns."""
    figures = info["figures"]
    quality = "" if rates is None else precision_text(rates, figures["n_positives"] / figures["n_cases"])
    judged = [("AP", quality)] if quality else []
    more = [*inside_facts(inside, alone), *judged, *_provenance(info, all_facts=all_facts)]
    terminal.show(model_card(info, more, is_chosen=is_chosen, card_shares=card_shares, rates=rates))
    if not all_facts:
        return
    shares = info["importances"]
    share_of = "share of points" if entry_of(info["class"]).has_page else "share of gain"
    if card_shares is not None and not any(shares):
        shares, share_of = card_shares, "share of scorecard"
    has_shares = entry_of(info["class"]).has_leaves or any(shares)
    _print_columns(info, [(share_of, shares)] if has_shares else [], terminal)


def _provenance(info: dict[str, Any], *, all_facts: bool) -> list[tuple[str, str]]:
    """Return data, packages and parameters of a model, in words; the short form lists only non-default parameters."""
    written = info["created"].replace("T", " ").replace("+00:00", " UTC")
    given, changed = info["parameters"], info["changed"]
    if all_facts:
        return [
            ("data hash", info["data_hash"]),
            ("written", written),
            ("packages", ", ".join(f"{name} {version}" for name, version in info["packages"].items())),
            ("parameters", ", ".join(f"{name}={_parameter(value)}" for name, value in given.items())),
        ]
    listed = [f"{name}={_parameter(given[name])}" for name in changed if name in given and name not in NOT_SHOWN]
    return [
        ("parameters", f"{', '.join(listed)}; otherwise the defaults" if listed else "the defaults"),
        ("written", f"{written} by toprank {info['packages'].get('toprank', '?')}; data {info['data_hash'][:12]}"),
    ]


def _print_columns(info: dict[str, Any], shares: list[tuple[str, list[float]]], terminal: Terminal) -> None:
    """Print the columns of a model, with the named shares of each and their categories."""
    terminal.heading("Columns")
    columns = [Column.from_dict(column) for column in info["columns"]]
    rows = []
    for i, column in enumerate(columns):
        names = [str(name) for name in column.categories or ()]
        rest = len(names) + len(column.shared) - CATEGORIES_SHOWN
        listed = ", ".join(names[:CATEGORIES_SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")
        of_column = (f"{100 * of[i]:.1f} %" for _, of in shares)
        rows.append([column.name, column.kind, *of_column, column.reading_text or listed])
    rows += [[name, "left out", *("" for _ in shares), reason] for name, reason in info["left_out"].items()]
    is_read = any(column.reading_text for column in columns) or bool(info["left_out"])
    last = "categories, or how it was read" if is_read else "categories"
    titles = [("name", "left"), ("kind", "left"), *((name, "right") for name, _ in shares), (last, "left")]
    terminal.show(grid(titles, rows))


def _parameter(value: Any) -> Any:
    """Return a parameter of a model file as Python code; for a ranker only what differs from its defaults."""
    if isinstance(value, list):
        return f"[{', '.join(str(_parameter(each)) for each in value)}]"
    if not isinstance(value, dict):
        return repr(value) if isinstance(value, str) else value
    if "ranker" not in value:
        return value["float"]
    import toprank

    defaults = inspect.signature(getattr(toprank, value["ranker"])).parameters
    other = {name: each for name, each in value["parameters"].items() if each != defaults[name].default}
    return f"{value['ranker']}({', '.join(f'{name}={_parameter(each)}' for name, each in other.items())})"


# --- tables -------------------------------------------------------------------------------------------------


def _describe_table(
    path: Path, label: str | None, positive: str | None, csv_format: CsvFormat, terminal: Terminal
) -> None:
    import polars as pl

    check_readable(path, (".toprank", *TABLE_SUFFIXES))
    with terminal.working(f"Reading {path.name}"):
        frame = TableFile(path, csv_format).frame()
    result: dict[str, Any] = {"kind": "table", "file": str(path), "n_rows": frame.height, "n_columns": frame.width}
    outcome = ""
    if label is not None:
        values = label_values(frame, label, path.name)
        chosen = choose_positive(outcomes(values, label, path.name), positive, label, path.name)
        n_positives = int((values == chosen).sum())
        result["label"] = {"column": label, "positive": chosen, "n_positives": n_positives}
        outcome = f"; {label} = {chosen!r}: {count(n_positives)} of them ({percent(n_positives / frame.height)})"
    with terminal.working(f"Describing {path.name}"):
        columns = _describe_columns(typed_columns(frame, path.name, [label]), label)
    texts = (column.str.strip_chars() for column in frame if column.dtype == pl.String)
    codes = [text.name for text in texts if text.str.contains(r"^0\d").any() and text.str.contains(r"^\d+$").all()]
    if codes:
        verb, who, it = ("is", "it identifies", "it") if len(codes) == 1 else ("are", "they identify", "them")
        terminal.note(
            f"{', '.join(map(repr, codes))} {verb} written with leading zeros; if {who} the case, give {it} to "
            "`toprank fit` as --id."
        )
    result["columns"] = columns
    terminal.finish(result)
    terminal.show(f"{path.name}: {plural(frame.height, 'row')}, {plural(frame.width, 'column')}{outcome}")
    rows = []
    for each in columns:
        missing = percent(each["missing"]) if each["missing"] else "-"
        rows.append([each["name"], each["kind"], missing, count(each["distinct"]), _with_note(each)])
    sides = {"column": "left", "kind": "left", "missing": "right", "distinct": "right", "values": "left"}
    terminal.show(grid(list(sides.items()), rows))


def _with_note(column: dict[str, Any]) -> str:
    """Return the values of a column with why it is left out, or how it is read; of free text only the beginning."""
    from toprank.data.column_roles import FREE_TEXT

    note, values = column["note"], column["values"]
    if column["kind"] == "left out":
        text = textwrap.shorten(values, FREE_TEXT_SHOWN, placeholder="...") if note == FREE_TEXT else values
        return f"{note}: {text}"
    return f"{values}; {note}" if note else str(values)


def _describe_columns(frame: polars.DataFrame, label: str | None) -> list[dict[str, Any]]:
    """Return what `toprank fit` would make of each column, and what it holds."""
    import polars as pl

    from toprank.data.column_roles import column_roles
    from toprank.data.encoding import encode
    from toprank.data.table import read_table

    table = read_table(frame.select(c.name for c in frame if c.name != label and can_be_feature(c.dtype)))
    learned, left_out = column_roles(table)
    roles = {column.name: column for column in learned if not column.part}
    out = []
    for values in frame:
        name, role = values.name, roles.get(values.name)
        shown, dates = values, None
        if role is not None and role.form in TEXT_FORMS:
            shown = pl.Series(name, encode(table, [role])[:, 0])
            dates = role if role.is_date else None
        if role is not None:
            parts = " and ".join(column.part for column in learned if column.source == name)
            kind, note = role.kind, "; ".join(filter(None, (role.reading_text, parts and f"with its {parts}")))
        else:
            kind = "label" if name == label else "left out" if name in left_out else "other"
            note = left_out.get(name, "")
        known = shown.drop_nulls()
        if shown.dtype.is_float():
            known = known.drop_nans()
        distinct = 0 if shown.dtype.is_nested() else known.n_unique()
        found = {"name": name, "missing": 1 - len(known) / len(shown), "distinct": distinct}
        out.append(found | {"values": _values_text(known, distinct, dates), "kind": kind, "note": note})
    return out


def _values_text(known: polars.Series, distinct: int, dates: Column | None) -> str:
    """Return the range of numbers and dates, or the most common categories; `dates`: numbers are its days."""
    if len(known) == 0:
        return "all missing"
    if known.dtype.is_nested():
        return str(known.dtype)
    if dates is not None:
        first, last = (dates.date_text(float(day)) for day in (known.min(), known.max()))  # type: ignore[arg-type]
        return f"always {first}" if distinct == 1 else f"{first} to {last}"
    if distinct == 1:
        value = known[0]
        return f"always {value_text(value) if known.dtype.is_numeric() else value}"
    if known.dtype.is_numeric():
        ends: list[Any] = [known.min(), known.max(), known.median()]
        low, high, middle = (value_text(float(value)) for value in ends)
        return f"{low} to {high}, median {middle}"
    if known.dtype.is_temporal():
        return f"{known.min()!s} to {known.max()!s}"
    counts = known.value_counts(sort=True, name="count").sort(["count", known.name], descending=[True, False])
    names = [str(name) for name in counts[known.name].head(CATEGORIES_SHOWN).to_list()]
    rest = distinct - len(names)
    return ", ".join(names) + (f" and {rest:,} more" if rest > 0 else "")
