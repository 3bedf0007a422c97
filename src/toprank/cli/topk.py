"""`toprank topk`: the k cases of a file most worth checking, with reasons."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from toprank.budget import fewer_text
from toprank.cli.columns import model_features, note_other_dates, text_columns
from toprank.cli.csv_text import CsvFormat
from toprank.cli.options import (
    Encoding,
    Ids,
    ModelFile,
    RawText,
    Separator,
    note_large_budget,
    parse_budget,
    split_names,
)
from toprank.cli.reading import TableFile, check_readable
from toprank.cli.show import alerts_table, near_chance_text, percent, rates_source, strengths_text, why_no_rates
from toprank.cli.terminal import Terminal
from toprank.cli.writing import check_table_output, write_table
from toprank.errors import InputError
from toprank.files.model_file import load
from toprank.register import entry_of
from toprank.words.counts import hits_in_words, plural
from toprank.words.numbers import three_decimals

if TYPE_CHECKING:
    import polars

    from toprank.metrics import HitRates

ROWS_PRINTED = 20
FIGURES = ("rank", "row", "score", "hit_rate", "training_rate", "lift")
"""Columns of the alerts that always come from the ranking, even if the reasons do not."""


def topk(
    terminal: Terminal,
    model: ModelFile,
    table: Annotated[Path, typer.Argument(metavar="FILE", help="New cases: CSV, TSV or Parquet.")],
    k: Annotated[
        str | None,
        typer.Option("--k", "-k", metavar="CASES", help="How many cases: 200, or a share: 2% (default: the budget)."),
    ] = None,
    chosen: Annotated[
        bool, typer.Option("--chosen", help="For a curve: list the cases that its chosen tree flags.")
    ] = False,
    reasons: Annotated[int, typer.Option(metavar="N", help="Most reasons per case.")] = 3,
    id_columns: Ids = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="Columns to copy to the end of each line: a,b, or all (those not in the model).",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="CSV, TSV, Excel or Parquet (default: print the first few)."),
    ] = None,
    raw_text: RawText = False,
    sep: Separator = None,
    encoding: Encoding = None,
) -> None:
    r"""List the k cases of a file most worth checking, best first, each with reasons.

    Column `row` is the position of the case in the file, from 0; --id adds the column that identifies it.

    \b
    toprank topk model.toprank new.csv --k 20
    toprank topk model.toprank new.parquet --k 500 --id case_id --keep amount -o alerts.csv
    toprank topk curve.toprank new.csv --chosen -o alerts.csv
    """
    from toprank.explain.reasons import MAX_REASONS

    check_readable(table)
    if out is not None:
        check_table_output(out, inputs=[model, table])
    if reasons < 0:
        raise InputError(f"--reasons must be 0 or more, got {reasons}. Hint: 3 are easy to read.")
    if reasons > MAX_REASONS:
        raise InputError(f"--reasons must be at most {MAX_REASONS}, got {reasons:,}. Hint: 3 are easy to read.")
    if chosen and k is not None:
        raise InputError(
            "--k and --chosen ask for different lists; expected one of them. Hint: --chosen lists all cases that the "
            "chosen tree flags, --k the first k of the ranking."
        )
    asked, csv_format = read_k(k), CsvFormat.from_options(sep, encoding)
    ranker, source, frame, features = load_and_read(model, table, terminal, csv_format=csv_format, needs_choice=chosen)
    ids = split_names(id_columns, frame.columns, "--id", table.name)
    if keep == ["all"] and "all" not in frame.columns:
        used = {column.input_name for column in ranker.columns_}
        kept = [name for name in frame.columns if name not in used and name not in ids]
    else:
        kept = [name for name in split_names(keep, frame.columns, "--keep", table.name) if name not in ids]
    ties = Ties(0, 0)
    with terminal.working(f"Ranking {plural(frame.height, 'case')}", is_scoring=True):
        if chosen:
            top = flagged_by_choice(ranker, features, reasons)
        else:
            k_listed = choose_k(asked, ranker, frame.height, table.name, terminal)
            top, ties = first_cases(ranker, features, k_listed, reasons)
    note_near_chance(ranker, terminal)
    note_other_dates(ranker, features, table.name, terminal)
    alerts = join_columns(top, source.as_written([*ids, *kept]), ids, kept, table.name)
    if out is not None:
        write_table(alerts, out, raw=raw_text, shares=[name for name in top.columns if name.endswith("_rate")])
    result: dict[str, Any] = {"n_rows": frame.height, "k": alerts.height, "out": None if out is None else str(out)}
    result |= {} if chosen else {"ties_at_end": ties._asdict()}
    terminal.finish(result | ({} if out is not None else {"alerts": alerts.to_dicts()}))
    title = _title(alerts.height, frame.height, chosen, chosen and ranker.selected_.cut is not None)
    _print_alerts(title, alerts, ids + kept or ["row"], out, ranker, ties, terminal)


def load_and_read(
    model: Path, table: Path, terminal: Terminal, *, csv_format: CsvFormat | None = None, needs_choice: bool = False
) -> tuple[Any, TableFile, polars.DataFrame, Any]:
    """Return the model, the table file, the table, and the columns that the model needs.

    A classifier is refused; with --chosen, so is anything but a curve with a chosen tree.
    """
    ranker = load_ranker(model, terminal)
    if needs_choice:
        if entry_of(ranker).kind != "curve":
            raise InputError(
                f"--chosen needs a curve with a chosen tree, but {model.name} holds a model of class "
                f"{type(ranker).__name__}, expected CostOptimalCurve. Hint: use a file written by `toprank curve`, or "
                "--k."
            )
        if ranker.selected_ is None:
            name = shlex.quote(str(model))
            raise InputError(
                f"--chosen needs a curve with a chosen tree, but no tree of {model.name} has been chosen. "
                f"Hint: choose one with `toprank curve {name} --k 200 -o {name}`."
            )
    with terminal.working(f"Reading {table.name}"):
        source = TableFile(table, csv_format)
        frame = source.frame(text_columns(ranker.columns_))
        features = model_features(frame, ranker, table.name)
    return ranker, source, frame, features


def load_ranker(model: Path, terminal: Terminal) -> Any:
    """Return the model of a file; InputError if it is a classifier."""
    with terminal.working(f"Loading {model.name}"):
        ranker = load(model)
    if not entry_of(ranker).ranks:
        raise InputError(
            f"{model.name} holds a model of class {type(ranker).__name__}, which predicts classes and does not "
            "rank, expected a ranker. Hint: use a file written by `toprank fit`, or call predict of this one in Python."
        )
    return ranker


def ranked(ranker: Any, features: Any, k: int, reasons: int) -> polars.DataFrame:
    """Return the k cases most worth checking, best first, each with reasons."""
    import narwhals as nw

    # A model fitted on arrays has no frame type, so its alerts come in whichever one is installed.
    return nw.from_native(ranker.top_k(features, k, reasons=reasons)).to_polars()


class Ties(NamedTuple):
    """Cases with the score of the last one listed: how many of them are listed, and how many there are."""

    listed: int
    cases: int

    def in_words(self, n_alerts: int) -> str:
        """Return which cases a list of so many takes from a tie that does not fit; empty if it fits."""
        if self.listed == self.cases:
            return ""
        which = "The last one is" if self.listed == 1 else f"The last {self.listed:,} are"
        which = which if self.listed < n_alerts else "This is" if n_alerts == 1 else "These are"
        return f"{which} the first of {self.cases:,} cases with the same score, in the order of the file."


def first_cases(ranker: Any, features: Any, k: int, reasons: int) -> tuple[polars.DataFrame, Ties]:
    """Return what `ranked` does, and the ties at the end of the list."""
    score = ranker.decision_function(features)
    rows = np.argsort(-score, kind="stable")[:k]
    is_tied = score == score[rows[-1]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # decision_function has warned already, of the whole file
        top = ranked(ranker, features[rows], k, reasons)
    return top.with_columns(row=rows[top["row"].to_numpy()]), Ties(int(is_tied[rows].sum()), int(is_tied.sum()))


def flagged_by_choice(curve: Any, features: Any, reasons: int) -> polars.DataFrame:
    """Return the cases that the chosen tree of a curve flags, in the order of the curve.

    Leaf and reasons come from the chosen tree, score and hit rate from the curve.
    """
    flagged = np.flatnonzero(curve.predict(features) == curve.classes_[curve.positive_index_])
    rows = flagged if len(flagged) else np.arange(1)  # no alerts: take one case for its columns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # predict has warned already
        top = ranked(curve, features[rows], len(rows), 0)
        why = ranked(curve.selected_.tree, features[rows], len(rows), reasons).sort("row")[top["row"]]
    top = top.with_columns(row=rows[top["row"].to_numpy()]).hstack(why.drop(*FIGURES, strict=False))
    return top.head(len(flagged))


def note_near_chance(ranker: Any, terminal: Terminal) -> None:
    """Add a note if a list by this model will hardly be better than one in random order."""
    rates: HitRates = ranker.rates_
    base_rate, n_positives = ranker.base_rate_, ranker.n_positives_
    if rates.is_near_chance(base_rate, n_positives):
        few, limit = rates.has_few_positives(base_rate, n_positives), rates.random_order_limit(base_rate, n_positives)
        found = (
            f"On new cases, {rates_source(rates)}, the AP of this model is {three_decimals(rates.average_precision)}"
        )
        terminal.note(f"{found}; a random order has {three_decimals(base_rate)}. {near_chance_text(limit, few)}")


def read_k(text: str | None) -> int | float | None:
    """Return a number of cases, not yet checked against the table, or a share of them: 100% are all cases."""
    if text is not None and re.fullmatch(r"100(\.0+)?\s*%", text.strip()):
        return 1.0
    try:
        return None if text is None else int(text)
    except ValueError:
        return parse_budget(text, "--k")


def choose_k(k: int | float | None, model: Any, n_rows: int, file: str, terminal: Terminal) -> int:
    """Return the number of alerts: as requested, or the model's budget, with a note if that is too large."""
    from toprank.metrics.at_k import cases_of_share

    if k is None:
        note_large_budget(model.budget_, n_rows, "the budget of the model", file, terminal)
        return model._budget_in(n_rows)
    if isinstance(k, float):
        return int(cases_of_share(k, n_rows))
    if not 1 <= k <= n_rows:
        raise InputError(
            f"--k must be from 1 to the number of rows of {file} ({n_rows:,}), got {k:,}. "
            "Hint: k is how many cases you can check."
        )
    return k


def join_columns(
    top: polars.DataFrame, frame: polars.DataFrame, ids: list[str], kept: list[str], file: str
) -> polars.DataFrame:
    """Return the alerts with the id columns first and the copied columns last."""
    for name in (*ids, *kept):
        if name in top.columns:
            raise InputError(
                f"Column {name!r} of {file} has the same name as a column of the alerts. Hint: rename it first."
            )
    rows = top["row"].to_list()
    carried = [frame[name].gather(rows) for name in (*ids, *kept)]
    return top.with_columns(carried).select(*ids, *top.columns, *kept)


def _title(n_alerts: int, n_rows: int, chosen: bool, is_cut: bool) -> str:
    """Return a sentence that says what is listed."""
    among = plural(n_rows, "case")
    if not chosen:
        return f"The {n_alerts:,} of {among} most worth checking"
    if not n_alerts:
        return f"The chosen tree has no alerts among {among}" if is_cut else f"The chosen tree flags none of {among}"
    cut = ", cut at the budget in the order of the curve" if is_cut else ""
    return f"The {n_alerts:,} of {among} that the chosen tree flags{cut}"


def _print_alerts(
    title: str, alerts: polars.DataFrame, carried: list[str], out: Path | None, ranker: Any, ties: Ties,
    terminal: Terminal,
) -> None:  # fmt: skip
    """Print the first alerts, or where they were written, the hits to expect among them, and ties that are split."""
    expected, tied = hits_text(alerts, ranker), ties.in_words(alerts.height)
    if out is not None:
        if not terminal.quiet:
            terminal.show(
                f"{title}; {expected}." if expected else f"{title}.",
                *([tied] if tied else []),
                f"Wrote {out} in {terminal.seconds:.1f} s.",
            )
        return
    if not alerts.height:
        terminal.show(f"{title}.")
        return
    shown = alerts.head(ROWS_PRINTED)
    first = f", the first {shown.height}" if shown.height < alerts.height else ""
    terminal.show(f"{title}{first}:", alerts_table(shown.to_dicts(), carried))
    strengths = strengths_text(shown.to_dicts(), ranker.rates_)
    if strengths:
        terminal.hint(f"  {strengths}")
    terminal.hint(f"  {expected[0].upper()}{expected[1:]}.")
    if tied:
        terminal.hint(f"  {tied}")
    if shown.height < alerts.height:
        terminal.hint("Write all of them with -o alerts.csv.")


def hits_text(alerts: polars.DataFrame, ranker: Any) -> str:
    """Return the hits to expect among the alerts, in words; empty without alerts."""
    if not alerts.height:
        return ""
    rates: HitRates = ranker.rates_
    if not rates.is_for_new_cases:
        mean, why = float(alerts["training_rate"].to_numpy().mean()), why_no_rates(ranker)
        message = f"the training rate of such cases is {percent(mean)}; {fewer_text(mean, ranker.base_rate_)}"
        return f"{message}: {why}" if why else message
    hits, low, high = (alerts.height * rate for rate in rates.of_group(alerts["score"].to_numpy()))
    return f"expect {hits_in_words(hits)} among them ({low:,.0f} to {high:,.0f}), {rates_source(rates)}"
