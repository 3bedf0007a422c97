"""`toprank topk`: the cases of a file most worth checking, with reasons."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toprank.cli.errors import InputError
from toprank.cli.options import AsJson, Debug, Ids, ModelFile, Quiet, note_large_budget, parse_budget, split_names
from toprank.cli.terminal import Terminal
from toprank.tree.counts import plural

if TYPE_CHECKING:
    import polars

ROWS_PRINTED = 20
RATES = {
    "training": "in training {} of such cases were hits, expect fewer",
    "leaves": "their leaves held {} hits in training, and the scorecard puts the likeliest cases of a leaf first",
    "unseen": "{} of the past cases with such scores were hits, as judged by trees that had not seen them",
}
"""What the mean hit rate of the alerts is, by where it comes from."""

HINTS = {
    "training": "Hit rate, lift: of such cases in training; expect fewer hits.",
    "leaves": "Hit rate, lift: of the whole leaf in training; the scorecard puts its likeliest cases first.",
}
"""What the hit rates of a printed list are, where that is not plain."""


def topk(
    model: ModelFile,
    table: Annotated[Path, typer.Argument(metavar="FILE", help="New cases: CSV, CSV.gz or Parquet.")],
    k: Annotated[
        str | None,
        typer.Option("--k", "-k", metavar="CASES", help="How many cases: 200, or a share: 2% (default: the budget)."),
    ] = None,
    chosen: Annotated[
        bool, typer.Option("--chosen", help="Of a curve: the cases that its chosen tree calls positive.")
    ] = False,
    reasons: Annotated[int, typer.Option(metavar="N", help="Reasons a case.")] = 3,
    id_columns: Ids = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="Columns to carry to the end of each line: a,b, or all (not in the model).",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="CSV, CSV.gz or Parquet; none = print the first."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    r"""List the k cases of a file most worth checking, best first, each with reasons.

    The column `row` is the place of a case in the file, counted from 0; --id adds the column that names it.

    \b
    toprank topk model.toprank new.csv --k 20
    toprank topk model.toprank new.parquet --k 500 --id case_id --keep amount -o alerts.csv
    toprank topk curve.toprank new.csv --chosen -o alerts.csv
    """
    terminal = Terminal(as_json=as_json, quiet=quiet)
    from toprank.cli.reading import TABLE_SUFFIXES, check_readable
    from toprank.cli.scoring import called_positive, load_and_read, ranked
    from toprank.cli.writing import check_output, write_table

    check_readable(table)
    if out is not None:
        check_output(out, TABLE_SUFFIXES, inputs=[model, table])
    if reasons < 0:
        raise InputError(f"--reasons must be 0 or more, got {reasons}. Hint: 3 fit on a line.")
    if chosen and k is not None:
        raise InputError(
            "--k and --chosen ask for different lists, expected one of them. Hint: --chosen lists all that the chosen "
            "tree calls positive, --k cuts the ranking."
        )
    asked = _read_k(k)
    ranker, frame, features = load_and_read(model, table, terminal, needs_choice=chosen)
    ids = split_names(id_columns, frame.columns, "--id", table.name)
    kept = _kept_columns(keep, ids, ranker, frame, table.name)
    with terminal.working(f"Ranking {plural(frame.height, 'case')}"):
        if chosen:
            top = called_positive(ranker, features, reasons)
        else:
            top = ranked(ranker, features, choose_k(asked, ranker, frame.height, table.name, terminal), reasons)
    alerts = join_columns(top, frame, ids, kept, table.name)
    if out is not None:
        write_table(alerts, out)
    result = {"n_rows": frame.height, "k": alerts.height, "out": None if out is None else str(out)}
    terminal.finish(result | ({} if out is not None else {"alerts": alerts.to_dicts()}))
    said = _title(alerts.height, frame.height, chosen, chosen and ranker.selected_.cut is not None)
    _print_alerts(said, alerts, ids + kept or ["row"], out, ranker._rate_source(), terminal)


def _read_k(text: str | None) -> int | float | None:
    """Return a number of cases, which may still be too large or too small for the table, or a share of them."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return parse_budget(text, "--k")


def choose_k(k: int | float | None, model: Any, n_rows: int, file: str, terminal: Terminal) -> int:
    """Return the number of alerts: as asked for, or as the model's budget says, with a note where it is too large."""
    from toprank.cli.judging import default_k, share_of_rows
    from toprank.rankers.model_file import describe_model

    if k is None:
        info = describe_model(model)
        note_large_budget(info["parameters"].get("budget"), n_rows, "the budget of the model", file, terminal)
        return default_k(info, n_rows)
    if isinstance(k, float):
        return share_of_rows(k, n_rows)
    if not 1 <= k <= n_rows:
        raise InputError(
            f"--k must be from 1 to the number of rows of {file} ({n_rows:,}), got {k:,}. "
            "Hint: k is how many cases you can check."
        )
    return k


def _kept_columns(keep: list[str] | None, ids: list[str], model: Any, frame: polars.DataFrame, file: str) -> list[str]:
    """Return the columns to carry behind the reasons."""
    if keep == ["all"] and "all" not in frame.columns:
        used = {column.name for column in model.columns_}
        return [name for name in frame.columns if name not in used and name not in ids]
    return [name for name in split_names(keep, frame.columns, "--keep", file) if name not in ids]


def join_columns(
    top: polars.DataFrame, frame: polars.DataFrame, ids: list[str], kept: list[str], file: str
) -> polars.DataFrame:
    """Return the alerts with the id columns first and the carried columns last."""
    for name in (*ids, *kept):
        if name in top.columns:
            raise InputError(
                f"Column {name!r} of {file} has the name of a column of the alerts. Hint: rename it first."
            )
    rows = top["row"].to_list()
    carried = [frame[name].gather(rows) for name in (*ids, *kept)]
    return top.with_columns(carried).select(*ids, *top.columns, *kept)


def _title(n_alerts: int, n_rows: int, chosen: bool, is_cut: bool) -> str:
    """Return what is listed, in words."""
    among = plural(n_rows, "case")
    if not chosen:
        return f"The {n_alerts:,} of {among} most worth checking"
    if not n_alerts:
        return (
            f"None of {among} is among the alerts of the chosen tree"
            if is_cut
            else (f"The chosen tree calls none of {among} positive")
        )
    cut = " and the curve ranks high enough for the budget" if is_cut else ""
    return f"The {n_alerts:,} of {among} that the chosen tree calls positive{cut}"


def _print_alerts(
    said: str, alerts: polars.DataFrame, carried: list[str], out: Path | None, source: str, terminal: Terminal
) -> None:
    """Print the first alerts, or where they are, and where their hit rates come from (`source`)."""
    from toprank.cli.show import alerts_table, percent

    if out is not None:
        if not terminal.quiet:
            rate = alerts["hit_rate"].mean()
            rates = "" if rate is None else f"; {RATES[source].format(percent(float(rate)))}"  # type: ignore[arg-type]
            terminal.show(f"{said}{rates}.", f"Wrote {out} in {terminal.seconds:.1f} s.")
        return
    if not alerts.height:
        terminal.show(f"{said}.")
        return
    shown = alerts.head(ROWS_PRINTED)
    first = f", the first {shown.height}" if shown.height < alerts.height else ""
    terminal.show(f"{said}{first}:", alerts_table(shown.to_dicts(), carried))
    if source in HINTS:
        terminal.hint(f"  {HINTS[source]}")
    if shown.height < alerts.height:
        terminal.hint("Write them all with -o alerts.csv.")
