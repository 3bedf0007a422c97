"""`toprank diff`: two versions of a model on the same cases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from toprank.cli.columns import as_labels, known_outcomes, model_features, text_columns
from toprank.cli.csv_text import CsvFormat
from toprank.cli.options import (
    Encoding,
    Ids,
    Positive,
    RawText,
    Separator,
    split_names,
)
from toprank.cli.reading import TableFile, check_readable
from toprank.cli.show import Facts, carried_text, grid, looks_like_number, percent
from toprank.cli.terminal import Terminal
from toprank.cli.topk import choose_k, join_columns, load_ranker, read_k
from toprank.cli.writing import check_table_output, write_table
from toprank.errors import InputError
from toprank.words.counts import count, plural

if TYPE_CHECKING:
    import polars

    from toprank.workflow import VersionComparison

ROWS_PRINTED = 10
"""Cases that entered, and cases that left, of which the first are printed."""


def diff(
    terminal: Terminal,
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Model file of the earlier version.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Model file of the later version.")],
    table: Annotated[Path, typer.Argument(metavar="FILE", help="Cases that neither version was trained on.")],
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="COLUMN", help="Column with the outcome; without it only ranks are compared."),
    ] = None,
    k: Annotated[
        str | None,
        typer.Option(
            "--k", "-k", metavar="CASES", help="How many cases: 200, or a share: 2% (default: the budget of NEW)."
        ),
    ] = None,
    id_columns: Ids = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the cases that entered or left: CSV, TSV, Excel, ..."),
    ] = None,
    positive: Positive = None,
    raw_text: RawText = False,
    sep: Separator = None,
    encoding: Encoding = None,
) -> None:
    r"""Compare two versions of a model: is the later one better, which cases move, what changed inside.

    \b
    toprank diff old.toprank new.toprank checked.csv --label fraud --k 500
    toprank diff old.toprank new.toprank new.csv --id case_id -o moved.csv
    """
    import narwhals as nw
    import polars as pl

    from toprank.workflow import compare_versions

    check_readable(table)
    if out is not None:
        check_table_output(out, inputs=[old, new, table])
    asked, csv_format = read_k(k), CsvFormat.from_options(sep, encoding)
    before, after, source, frame, features = _load_and_read((old, new), table, terminal, csv_format)
    ids = split_names(id_columns, frame.columns, "--id", table.name)
    is_positive = None if label is None else known_outcomes(frame, label, positive, after, table.name)
    depth = choose_k(asked, after, frame.height, table.name, terminal)
    with terminal.working(f"Comparing the rankings of {plural(frame.height, 'case')}", is_scoring=True):
        labels = None if is_positive is None else as_labels(after, is_positive)
        found = compare_versions(before, after, features, labels, depth)
    moved = nw.from_native(found.moved).to_polars()
    types = {"change": pl.String, "row": pl.Int64, "rank_before": pl.Int64, "rank_after": pl.Int64}
    moved = moved.cast({name: types.get(name, pl.Boolean) for name in moved.columns})  # even if there are no cases
    moved = join_columns(moved, source.as_written(ids), ids, [], table.name)
    if out is not None:
        write_table(moved, out, raw=raw_text)
    result = found.to_dict() | {"moved": moved.to_dicts(), "out": None if out is None else str(out)}
    terminal.finish({"before": str(old), "after": str(new)} | result)
    _print(found, moved, ids or ["row"], (old.name, new.name, table.name), out, terminal)


def _load_and_read(
    models: tuple[Path, Path], table: Path, terminal: Terminal, csv_format: Any
) -> tuple[Any, Any, Any, polars.DataFrame, Any]:
    """Return both models, the table file, the table, and the columns that the models need."""
    import polars as pl

    before, after = (load_ranker(model, terminal) for model in models)
    with terminal.working(f"Reading {table.name}"):
        source = TableFile(table, csv_format)
        frame = source.frame(list(dict.fromkeys(text_columns([*before.columns_, *after.columns_]))))
        own = [model_features(frame, model, table.name) for model in (before, after)]
    if all(isinstance(features, pl.DataFrame) for features in own):
        return before, after, source, frame, frame.select(list(dict.fromkeys([*own[0].columns, *own[1].columns])))
    if before._input_names != after._input_names or type(own[0]) is not type(own[1]):
        raise InputError(
            f"{models[0].name} and {models[1].name} were trained on different columns, and one of them finds its "
            "columns by position; expected models of one table. Hint: fit both with `toprank fit`."
        )
    return before, after, source, frame, own[1]


def _print(
    found: VersionComparison, moved: polars.DataFrame, carried: list[str], names: tuple[str, str, str],
    out: Path | None, terminal: Terminal,
) -> None:  # fmt: skip
    old, new, table = names
    terminal.show(f"{old} (before) and {new} (after) on {table}")
    rows = [("cases", plural(found.n_cases, "case"))]
    if found.figures is not None and found.n_positives is not None:
        n, n_positives, figures = found.n_cases, found.n_positives, found.figures
        rows = [
            ("cases", f"{count(n)}, {count(n_positives)} positive ({percent(n_positives / n)})"),
            ("AP", figures.precision_text.removesuffix(")") + " with 95 % confidence)"),
            ("verdict", found.verdict_text),
            ("hits", f"{figures.hits_before:,} before, {figures.hits_after:,} after in the first {found.k:,}"),
        ]
    terminal.show(Facts([*rows, ("list", found.moved_text)]))
    changed = found.changes.lines()
    terminal.heading("What changed in the model")
    terminal.show(Facts(changed) if changed else f"  {found.unchanged_text[0].upper()}{found.unchanged_text[1:]}.")
    if out is not None:
        terminal.hint(f"\nWrote the cases that entered or left to {out}.")
    elif moved.height:
        _print_moved(moved, carried, found.k, terminal)


def _print_moved(moved: polars.DataFrame, carried: list[str], k: int, terminal: Terminal) -> None:
    """Print the first cases that entered, and the first that left."""
    import polars as pl

    shown = pl.concat([moved.filter(pl.col("change") == change).head(ROWS_PRINTED) for change in ("entered", "left")])
    has_outcome = "is_positive" in moved.columns
    columns = [("", "left")]
    for name in carried:
        columns.append((name, "right" if all(map(looks_like_number, shown[name].to_list())) else "left"))
    columns += [("rank before", "right"), ("rank after", "right")] + ([("outcome", "left")] if has_outcome else [])
    rows: list[list[Any]] = []
    for case in shown.to_dicts():
        cells: list[Any] = [Text(case["change"], style="green" if case["change"] == "entered" else "red")]
        cells += [carried_text(case[name]) for name in carried]
        cells += [f"{case['rank_before']:,}", f"{case['rank_after']:,}"]
        if has_outcome:
            cells.append(Text("hit", style="green") if case["is_positive"] else Text("-", style="dim"))
        rows.append(cells)
    first = "" if shown.height == moved.height else ", the first of each"
    terminal.heading(f"Cases that entered or left the first {k:,}{first}")
    terminal.show(grid(columns, rows))
    if shown.height < moved.height:
        terminal.hint(f"Write all {moved.height:,} of them with -o moved.csv.")
