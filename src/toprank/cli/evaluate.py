"""`toprank evaluate`: compare a model's ranking of a file with the known outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from toprank.cli.columns import as_labels, kind_in_words, known_outcomes, note_other_dates
from toprank.cli.csv_text import CsvFormat
from toprank.cli.options import Encoding, Label, ModelFile, Positive, Separator
from toprank.cli.reading import as_numbers, check_readable
from toprank.cli.show import (
    Facts,
    chance_facts,
    expected,
    gains_grid,
    grid,
    interval_text,
    percent,
    share_interval_text,
    times,
)
from toprank.cli.terminal import Terminal
from toprank.cli.topk import choose_k, load_and_read, read_k
from toprank.data.number_text import NumberForm, learn_number_form, numbers_of
from toprank.errors import InputError
from toprank.tree.columns import NUMBER_FORMS
from toprank.words.counts import count, plural, row_text
from toprank.words.nearest import did_you_mean
from toprank.words.numbers import three_decimals

if TYPE_CHECKING:
    import polars

    from toprank.workflow import Judgement


def evaluate(
    terminal: Terminal,
    model: ModelFile,
    table: Annotated[Path, typer.Argument(metavar="FILE", help="Cases with known outcomes.")],
    label: Label,
    k: Annotated[
        list[str] | None,
        typer.Option(
            "--k",
            "-k",
            metavar="CASES",
            help="Report precision, recall and lift at this k: 200, or a share: 2%; may be repeated (default: the "
            "model's budget).",
        ),
    ] = None,
    amount: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Value of a case if it is positive: also report the amount found."),
    ] = None,
    positive: Positive = None,
    sep: Separator = None,
    encoding: Encoding = None,
) -> None:
    r"""Compare a model's ranking of a file with the known outcomes.

    \b
    toprank evaluate model.toprank checked.csv --label fraud --k 100
    toprank evaluate model.toprank checked.csv --label fraud --k 100 --k 500 --amount amount_eur
    """
    from toprank.workflow import judge

    check_readable(table)
    asked, csv_format = [read_k(each) for each in k] if k else [None], CsvFormat.from_options(sep, encoding)
    ranker, _, frame, features = load_and_read(model, table, terminal, csv_format=csv_format)
    is_positive = known_outcomes(frame, label, positive, ranker, table.name)
    depths = list(dict.fromkeys(choose_k(each, ranker, frame.height, table.name, terminal) for each in asked))
    worth = None if amount is None else _amounts(frame, amount, ranker, table.name)
    with terminal.working(f"Evaluating the ranking of {plural(frame.height, 'case')}", is_scoring=True):
        judgement = judge(ranker, features, as_labels(ranker, is_positive), k=depths, amount=worth)
    if judgement.is_training_data:
        terminal.note(
            f"{model.name} was trained on the cases of {table.name}: the figures are optimistic. "
            "Hint: use cases that it has not seen."
        )
    note_other_dates(ranker, features, table.name, terminal)
    terminal.finish(judgement.to_dict())
    _print_judgement(judgement, model.name, table.name, terminal)


def _amounts(frame: polars.DataFrame, name: str, model: Any, file: str) -> np.ndarray:
    """Return the value of each case: numbers of at least 0, none missing; also those written as text, as in `fit`."""
    if name not in frame.columns:
        raise InputError(
            f"The amount column {name!r} is missing from {file} ({plural(frame.width, 'column')} read)."
            + did_you_mean(name, frame.columns)
        )
    column = frame[name]
    values = column.cast(float).to_numpy() if column.dtype.is_numeric() else _amounts_in_text(column, model)
    if values is None:
        known = column.drop_nulls()
        found = f"{kind_in_words(column.dtype)}{f' such as {str(known[0])!r}' if len(known) else ''}"
        raise InputError(
            f"The amount column {name!r} of {file} must hold numbers, found {found}. "
            "Hint: numbers with a unit, such as 10 000 EUR, can be read if all have the same one."
        )
    is_bad = ~(np.isfinite(values) & (values >= 0))
    if is_bad.any():
        row = int(np.argmax(is_bad))
        cell = column[row]
        found = "nothing" if cell is None or cell != cell else repr(cell) if isinstance(cell, str) else cell
        raise InputError(
            f"The amount column {name!r} of {file} must hold numbers of at least 0, found {found} in {row_text(row)}. "
            "Hint: write 0 where nothing is at stake."
        )
    return values


def _amounts_in_text(column: polars.Series, model: Any) -> np.ndarray | None:
    """Return numbers written as text, NaN for other cells; None if the column holds no such numbers.

    A column of the model is read in the form that training found.
    """
    import polars as pl

    if column.dtype != pl.String:
        return None
    plain = as_numbers(column)
    if plain.null_count() == column.null_count() < len(column):
        return plain.to_numpy()
    own = next((each for each in model.columns_ if each.input_name == column.name and each.form in NUMBER_FORMS), None)
    texts = column.drop_nulls().unique().to_list()
    form = learn_number_form(texts) if own is None else NumberForm.from_column(own)
    if form is None:
        return None
    read = dict(zip(texts, numbers_of(texts, form), strict=True))
    return np.array([read.get(text, np.nan) for text in column.to_list()])


def _print_judgement(judgement: Judgement, model: str, table: str, terminal: Terminal) -> None:
    n, n_positives, precision = judgement.n_cases, judgement.n_positives, judgement.average_precision
    # A constant score has the same average precision in every bootstrap sample, which says nothing about its error.
    is_constant = abs(judgement.roc_auc - 0.5) < 1e-9 and precision.high - precision.low < 1e-9
    found = interval_text(precision)
    if is_constant:
        found = f"{three_decimals(precision.value)}, as all cases have the same score"
    terminal.show(f"{model} on {table}")
    terminal.show(Facts([
        ("cases", f"{count(n)}, {count(n_positives)} positive ({percent(n_positives / n)})"),
        ("AP", f"{found}; a random order has {three_decimals(n_positives / n)}"),
        *chance_facts(judgement.to_dict()),
        ("AUC", f"{judgement.roc_auc:.3f}"),
    ]))  # fmt: skip
    rows = []
    for at in judgement.at_k:
        ties = at.precision_worst < at.precision_best
        bounds = f"{percent(at.precision_worst)} to {percent(at.precision_best)}" if ties else "no ties"
        claimed = [] if at.claimed is None else [f"{at.claimed * at.k:,.0f}"]
        rows.append([plural(at.k, "case"), *claimed, expected(at.precision * at.k), percent(at.precision), bounds,
                     percent(at.recall), times(at.lift)])  # fmt: skip
    if judgement.chosen is not None:
        chosen = judgement.chosen
        terminal.heading(f"The chosen tree ({chosen.target})")
        hits = f"; {share_interval_text(chosen.precision)} of them positive" if chosen.alerts else ""
        terminal.show(Facts([
            ("alerts", f"{count(chosen.alerts)} of {plural(n, 'case')}{hits}"),
            ("found", f"{plural(chosen.found, 'positive')}, {share_interval_text(chosen.recall)} of them"),
            ("false alarms", f"{share_interval_text(chosen.false_positive_rate)} of the negatives"),
        ]))  # fmt: skip
    terminal.heading("Checking the first k cases")
    has_claims = judgement.at_k[0].claimed is not None
    columns = ["checked", *(["expected"] if has_claims else []), "found", "precision", "worst to best order of ties"]
    terminal.show(grid([(name, "right") for name in (*columns, "recall", "lift")], rows))
    if has_claims:
        terminal.hint("  Expected: the hits that the model predicts for these cases, from cases not seen in training.")
    terminal.heading("Down the ranking")
    terminal.show(gains_grid(judgement.gains.to_dict(), n))
