"""`toprank drift`: test whether the rows of a new file differ from a reference, and where."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.padding import Padding
from rich.text import Text

from toprank.cli.columns import can_be_feature, check_finite, kind_in_words
from toprank.cli.csv_text import CsvFormat
from toprank.cli.options import Encoding, RawText, Separator, find_model, split_names
from toprank.cli.reading import TableFile, as_numbers, check_readable
from toprank.cli.show import Facts, interval_text, main_columns, percent, times
from toprank.cli.terminal import Terminal
from toprank.cli.writing import check_table_output, write_table
from toprank.errors import InputError
from toprank.words.counts import plural, row_text
from toprank.words.nearest import did_you_mean, nearest_name

if TYPE_CHECKING:
    import polars

    from toprank.drift import DriftCell, TwoSampleResult

Names = list[str] | None
TESTS = ("rank-sum", "permutation")
ROWS_JUDGED = 20
"""With fewer rows than this, a column whose values are all new is not suspicious."""


def drift(
    terminal: Terminal,
    reference: Annotated[Path, typer.Argument(metavar="REFERENCE", help="Earlier rows: CSV, CSV.gz or Parquet.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="New rows, with the same columns.")],
    columns: Annotated[Names, typer.Option(metavar="COLUMNS", help="Columns to compare: a,b (default: all).")] = None,
    ignore: Annotated[
        Names, typer.Option(metavar="COLUMNS", help="Columns to leave out, such as the label, an id or a date: a,b.")
    ] = None,
    categories: Annotated[
        Names, typer.Option(metavar="COLUMNS", help="Number columns to read as categories: a,b.")
    ] = None,
    level: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Significance level: how often drift is reported where there is none."),
    ] = 0.05,
    test: Annotated[str, typer.Option(metavar="NAME", help="rank-sum or permutation.")] = "rank-sum",
    ranker: Annotated[
        str | None, typer.Option(metavar="NAME", help="A model of `fit --model` (default: a small TreeRank).")
    ] = None,
    cells: Annotated[
        int, typer.Option(metavar="N", min=0, help="How many places where the files differ most to print.")
    ] = 5,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Random seed that picks the held-out rows.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write all places as CSV, TSV, Excel or Parquet."),
    ] = None,
    raw_text: RawText = False,
    sep: Separator = None,
    encoding: Encoding = None,
) -> None:
    r"""Test whether new rows differ from a reference, and show where. Exit status 0 = no drift, 1 = drift, 2 = error.

    \b
    toprank drift reference.csv new.csv --ignore case_id,fraud
    toprank drift 2023.parquet 2024.parquet --level 0.01 -o cells.csv
    """
    terminal.keep_hint = ""
    for path in (reference, new):
        check_readable(path)
    if out is not None:
        check_table_output(out, inputs=[reference, new])
    if not 0 < level < 1:
        raise InputError(f"--level must be between 0 and 1, got {level:g}. Hint: 0.05 is usual.")
    if test not in TESTS:
        raise InputError(f"--test must be {' or '.join(TESTS)}, got {test!r}.{did_you_mean(test, TESTS)}")
    csv_format = CsvFormat.from_options(sep, encoding)
    before, after = read_both(reference, new, columns, ignore, categories, terminal, csv_format)
    with terminal.working(f"Learning to tell {new.name} from {reference.name}"):
        from toprank.drift import two_sample_test

        learner = None if ranker is None else find_model("--ranker", ranker).load()()
        result = two_sample_test(
            before, after, ranker=learner, test=test, level=level, random_state=seed, n_cells=2**31
        )
    if out is not None:
        write_table(result.cells_frame(), out, raw=raw_text)
        if not result.cells:
            terminal.note(
                f"{type(result.ranker).__name__} is not a single tree and shows no places: {out.name} has no rows."
            )
    found = result.to_dict()
    found |= {"cells": found["cells"][:cells], "columns": before.columns, "out": None if out is None else str(out)}
    terminal.finish(found)
    _print(result, reference.name, new.name, cells, terminal)
    if out is not None and not terminal.quiet:
        terminal.show(f"\nWrote {out} in {terminal.seconds:.1f} s.")
    if result.is_different:
        raise typer.Exit(1)


# --- reading ------------------------------------------------------------------------------------------------


def read_both(
    reference: Path, new: Path, columns: Names, ignore: Names, categories: Names, terminal: Terminal,
    csv_format: CsvFormat | None = None,
) -> tuple[polars.DataFrame, polars.DataFrame]:  # fmt: skip
    """Return the columns to compare from both files, in the same order and of the same kinds."""
    import polars as pl

    from toprank.drift.samples import MIN_ROWS

    as_text = {name.strip() for text in categories or () for name in (text, *text.split(","))}
    with terminal.working(f"Reading {reference.name}"):
        before = TableFile(reference, csv_format).frame(as_text)
    with terminal.working(f"Reading {new.name}"):
        after = TableFile(new, csv_format).frame(as_text)
        shared = [name for name in before.columns if name in after.columns]
        if codes := {name for name in shared if _are_codes(before[name], after[name])}:
            before, after = (TableFile(path, csv_format).frame(as_text | codes) for path in (reference, new))
    names, left_out = _compared_columns(before, after, columns, ignore, (reference.name, new.name))
    chosen = split_names(categories, names, "--categories", f"what is compared of {reference.name}")
    before, after = (frame.select(names).with_columns(pl.col(chosen).cast(pl.String)) for frame in (before, after))
    for frame, file in ((before, reference.name), (after, new.name)):
        if frame.height < MIN_ROWS:
            raise InputError(
                f"{file} has {plural(frame.height, 'row')}, expected at least {MIN_ROWS}. "
                "Hint: part of the rows is used to train a model, the rest to test it."
            )
    with terminal.working("Reading numbers written as text"):
        before, after = _numbers_of_text(before, after, chosen), _numbers_of_text(after, before, chosen)
    for name in names:
        ignoring = _ignoring([*left_out, name])
        _check_kinds(before[name], after[name], (reference.name, new.name), ignoring)
        _note_new_values(before[name], after[name], (reference.name, new.name), ignoring, terminal)
    check_finite(before, reference.name)
    check_finite(after, new.name)
    return before, after


def _compared_columns(
    before: polars.DataFrame, after: polars.DataFrame, columns: Names, ignore: Names, files: tuple[str, str]
) -> tuple[list[str], list[str]]:
    """Return the requested names, or all except those left out, and those left out; raise if a file lacks one."""
    known = list(dict.fromkeys((*before.columns, *after.columns)))
    both = f"{files[0]} or {files[1]}"
    left_out = split_names(ignore, known, "--ignore", both)
    asked = split_names(columns, known, "--columns", both) or known
    names = [name for name in asked if name not in left_out]
    if not names:
        raise InputError(f"No column of {both} is left to compare. Hint: leave out fewer columns.")
    gone = [name for name in names if name not in after.columns]
    come = [name for name in names if name not in before.columns]
    if not gone and not come:
        return names, left_out
    sides = ((gone, files[0], files[1], after.width), (come, files[1], files[0], before.width))
    found = ", and ".join(
        f"{'column' if len(missing) == 1 else 'columns'} {', '.join(map(repr, missing))} "
        f"{'is' if len(missing) == 1 else 'are'} in {there} but missing from {here} ({plural(width, 'column')} read)"
        for missing, there, here, width in sides
        if missing
    )
    if len(gone) + len(come) == len(names):
        hint = "check that both files hold the same table"
    else:
        hint = f"leave {'it' if len(gone) + len(come) == 1 else 'them'} out with {_ignoring(left_out + gone + come)}"
    free = [name for name in after.columns if name not in before.columns and name not in left_out]
    for name in gone:
        match = nearest_name(name, free)
        if match is not None:
            hint = f"rename {match!r} to {name!r} if they mean the same, or {hint}"
            break
    raise InputError(f"{found[0].upper()}{found[1:]}. Hint: {hint}.")


def _ignoring(names: Sequence[str]) -> str:
    """Return the option that leaves columns out, repeated for names with a comma or outer spaces."""
    plain = [name for name in names if "," not in name and name == name.strip()]
    texts = [*([",".join(plain)] if plain else []), *(name for name in names if name not in plain)]
    return " ".join(f"--ignore {shlex.quote(text)}" for text in texts)


def _are_codes(before: polars.Series, after: polars.Series) -> bool:
    """Return whether a column that is text in one file only is text: codes that happen to be all numbers in the other.

    Text of the reference is, unless only a few words keep it from being numbers; text of the new file if it has leading
    zeros.
    """
    from toprank.data.column_roles import learn_numbers
    from toprank.data.table import read_table as as_table

    kinds = _kind(before), _kind(after)
    if kinds == ("numbers", "text"):
        return as_numbers(after.cast(str)).null_count() == after.null_count()
    if kinds == ("text", "numbers"):
        return learn_numbers(as_table(before.cast(str).to_frame()).coded(0), may_be_few=True) is None
    return kinds[0] == "text" and kinds[1] not in ("text", "nothing")


def _numbers_of_text(frame: polars.DataFrame, other: polars.DataFrame, chosen: Sequence[str]) -> polars.DataFrame:
    """Return a table with the numbers of text columns that hold numbers in the other file, read as scoring reads them.

    A few words count as missing, with a warning; columns of `chosen` categories, or with more words, stay text.
    """
    import polars as pl

    from toprank.data.encoding import numbers_among_words
    from toprank.data.table import read_table as as_table
    from toprank.tree.columns import Column

    found = []
    for name in frame.columns:
        if name not in chosen and _kind(other[name]) == "numbers" and _kind(frame[name]) == "text":
            values = numbers_among_words(as_table(frame.select(pl.col(name).cast(pl.String))), 0, Column(name))
            if values is not None:
                found.append(pl.Series(name, values, nan_to_null=True))
    return frame.with_columns(found)


def _check_kinds(before: polars.Series, after: polars.Series, files: tuple[str, str], ignoring: str) -> None:
    """Raise InputError unless both columns hold numbers, both text or both booleans; empty ones match any kind.

    `ignoring` is the option that also leaves this column out.
    """
    kinds = []
    for values, file in zip((before, after), files, strict=True):
        kind = _kind(values)
        if kind is None:
            raise InputError(
                f"Column {values.name!r} of {file} holds values of type {values.dtype}, expected numbers or "
                f"categories. Hint: leave it out with {ignoring}."
            )
        kinds.append(kind)
    if "nothing" in kinds or kinds[0] == kinds[1]:
        return
    choosing = f"compare categories with --categories {shlex.quote(before.name)}"
    start = f"Column {before.name!r} holds {kinds[0]} in {files[0]} but {kinds[1]} in {files[1]}"
    if kinds == ["numbers", "text"]:
        row = int(np.argmax((after.is_not_null() & as_numbers(after.cast(str)).is_null()).to_numpy()))
        raise InputError(
            f"{start}: {after[row]!r} in {row_text(row)}. Hint: leave such cells empty to mark them missing, or "
            f"{choosing}."
        )
    raise InputError(f"{start}. Hint: {choosing}, or convert one of them.")


def _kind(values: polars.Series) -> str | None:
    """Return the kind of a column, in words; None if it cannot be compared."""
    if values.null_count() == len(values):
        return "nothing"
    return kind_in_words(values.dtype).replace(" or ", " and ") if can_be_feature(values.dtype) else None


def _note_new_values(
    before: polars.Series, after: polars.Series, files: tuple[str, str], ignoring: str, terminal: Terminal
) -> None:
    """Add a note if no value of a column is in both files: ids and dates differ in any two samples."""
    import polars as pl

    is_discrete = all(
        values.dtype == pl.String or values.dtype.is_integer() or values.dtype.is_temporal()
        for values in (before, after)
    )
    if not is_discrete or min(len(before), len(after)) < ROWS_JUDGED:
        return
    old, fresh = set(before.drop_nulls().unique().to_list()), set(after.drop_nulls().unique().to_list())
    if not fresh or not old.isdisjoint(fresh):
        return
    name = before.name
    if len(old) == len(before) and len(fresh) == len(after):
        terminal.note(
            f"Column {name!r} has a different value in every row, and none of {files[1]} occurs in {files[0]}; if it "
            f"identifies the row, it differs without any drift: leave it out with {ignoring}."
        )
    elif old:
        terminal.note(
            f"No value of column {name!r} in {files[1]} occurs in {files[0]}; if it is a date or a batch it differs "
            f"without any drift: leave it out with {ignoring}."
        )


# --- printing -----------------------------------------------------------------------------------------------


def _print(result: TwoSampleResult, reference: str, new: str, n_cells: int, terminal: Terminal) -> None:
    verdict, colour = _verdict(result, reference, new)
    terminal.show(Text(verdict, style=f"bold {colour}"), Facts(_figures_of(result, reference, new)))
    if result.obstacle is not None or result.is_same_table:
        return
    if not result.is_different:
        terminal.hint(
            f"A drift too small to show in {plural(result.n_reference + result.n_new, 'row')} is still possible."
        )
    elif result.cells and n_cells:
        _print_cells(result.clear_cells[:n_cells], new, terminal)


def _verdict(result: TwoSampleResult, reference: str, new: str) -> tuple[str, str]:
    """Return the verdict in one sentence, and its colour."""
    from toprank.drift.result import p_text

    p_value = f"{p_text(result.p_value)}, level {result.level:g}"
    if result.obstacle is not None:
        return result.obstacle, "yellow"
    if result.is_same_table:
        return f"No drift: {new} holds the same rows as {reference}.", "green"
    if result.is_different:
        return f"Drift: {new} differs from {reference} ({p_value}).", "red"
    return f"No drift found: {new} cannot be told from {reference} ({p_value}).", "green"


def _figures_of(result: TwoSampleResult, reference: str, new: str) -> list[tuple[str, str]]:
    """Return names and values of what was compared and found; without a test if none was possible or needed."""
    from toprank.drift.result import p_text

    columns = result.ranker.columns_
    compared = [
        ("rows", f"{result.n_rows_reference:,} in {reference}, {result.n_rows_new:,} in {new}"),
        ("columns", f"{len(columns):,}, {sum(column.is_categorical for column in columns):,} of them categorical"),
    ]
    if result.obstacle is not None or result.is_same_table:
        return compared
    if result.n_shared:
        smaller, n_rows = min((new, result.n_rows_new), (reference, result.n_rows_reference), key=lambda file: file[1])
        share = f"{100 * result.n_shared / n_rows:.{0 if 100 * result.n_shared >= n_rows else 1}f} % of {smaller}"
        verb = "is" if result.n_shared == 1 else "are"
        compared.insert(1, ("shared", f"{plural(result.n_shared, 'row')} ({share}) {verb} in both files"))
    tested = ("tested on", f"{result.n_reference:,} and {result.n_new:,} of them; the model was trained on the others")
    found = [
        ("AUC", f"{interval_text(result.auc_interval)}; 0.500 = cannot be told apart"),
        (f"{result.test} test", f"{p_text(result.score_p_value)} for the order of all rows"),
    ]
    if result.is_different:
        names = [{"name": column.name} for column in columns]
        main = main_columns({"columns": names, "importances": result.ranker.feature_importances_})
        found.append(("main columns", main or "none"))
    return [*compared[:-1], tested, compared[-1], *found]


def _print_cells(cells: tuple[DriftCell, ...], new: str, terminal: Terminal) -> None:
    if not cells:
        terminal.heading("No single place differs clearly: the drift is spread out.")
        return
    terminal.heading(f"Where {new} differs most, on the test rows")
    for place, cell in enumerate(cells, 1):
        colour = "red" if cell.share_new > cell.share_reference else "cyan"
        more = "more" if cell.share_new > cell.share_reference else "fewer"
        blank = "\n" if place > 1 else ""
        terminal.show(Text.assemble(blank, (f"{place}. ", "bold"), (f"{more}: ", colour), _figures(cell)))
        for i, way in enumerate(cell.leaf_rule.way_texts()):
            terminal.show(Padding(Text(f"{'or ' if i else ''}{way}"), (0, 0, 0, 5)))


def _figures(cell: DriftCell) -> str:
    """Return the shares of a cell in both files, their ratio with its interval, and the adjusted p-value."""
    from toprank.drift.result import p_text

    shares = f"{percent(cell.share_new)} of the new rows, {percent(cell.share_reference)} of the reference"
    if cell.share_new == 0:
        ratio = "none are left"
    elif np.isinf(cell.ratio):
        ratio = f"at least {times(cell.ratio_low)}"
    else:
        ratio = f"{times(cell.ratio)} ({times(cell.ratio_low)} to {times(cell.ratio_high)})"
    return f"{shares}: {ratio}, {p_text(cell.p_adjusted)}"
