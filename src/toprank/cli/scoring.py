"""Loads a model and a table, checks that they match, and makes the alerts."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.cli.csv_text import CsvFormat
from toprank.cli.errors import InputError
from toprank.cli.reading import TableFile
from toprank.cli.terminal import Terminal
from toprank.register import entry_of

if TYPE_CHECKING:
    import polars

FIGURES = ("rank", "row", "score", "hit_rate", "training_rate", "lift")
"""Columns of the alerts that always come from the ranking, even if the reasons do not."""


def load_and_read(
    model: Path, table: Path, terminal: Terminal, *, csv_format: CsvFormat | None = None, needs_choice: bool = False
) -> tuple[Any, TableFile, polars.DataFrame, Any]:
    """Return the model, the table file, the table, and the columns that the model needs.

    A classifier is refused; with --chosen, so is anything but a curve with a chosen tree.
    """
    from toprank.cli.columns import model_features, text_columns

    ranker = load_ranker(model, terminal)
    if needs_choice:
        _check_choice(ranker, model)
    with terminal.working(f"Reading {table.name}"):
        source = TableFile(table, csv_format)
        frame = source.frame(text_columns(ranker.columns_))
        features = model_features(frame, ranker, table.name)
    return ranker, source, frame, features


def load_ranker(model: Path, terminal: Terminal) -> Any:
    """Return the model of a file; InputError if it is a classifier."""
    from toprank.files.model_file import load

    with terminal.working(f"Loading {model.name}"):
        ranker = load(model)
    if not entry_of(ranker).ranks:
        raise InputError(
            f"{model.name} holds a model of class {type(ranker).__name__}, which predicts classes and does not "
            "rank, expected a ranker. Hint: use a file written by `toprank fit`, or call predict of this one in Python."
        )
    return ranker


def _check_choice(ranker: Any, model: Path) -> None:
    """Raise InputError unless the model is a curve with a chosen tree."""
    if entry_of(ranker).kind != "curve":
        raise InputError(
            f"--chosen needs a curve with a chosen tree, but {model.name} holds a model of class "
            f"{type(ranker).__name__}, expected CostOptimalCurve. Hint: use a file written by `toprank curve`, or --k."
        )
    if ranker.selected_ is None:
        name = shlex.quote(str(model))
        raise InputError(
            f"--chosen needs a curve with a chosen tree, but no tree of {model.name} has been chosen. "
            f"Hint: choose one with `toprank curve {name} --k 200 -o {name}`."
        )


def ranked(ranker: Any, features: Any, k: int, reasons: int) -> polars.DataFrame:
    """Return the k cases most worth checking, best first, each with reasons."""
    import narwhals as nw

    # A model fitted on arrays has no frame type, so its alerts come in whichever one is installed.
    return nw.from_native(ranker.top_k(features, k, reasons=reasons)).to_polars()


def called_positive(curve: Any, features: Any, reasons: int) -> polars.DataFrame:
    """Return the cases that the chosen tree of a curve flags, in the order of the curve.

    Leaf and reasons come from the chosen tree, score and hit rate from the curve.
    """
    called = np.flatnonzero(curve.predict(features) == curve.classes_[curve.positive_index_])
    rows = called if len(called) else np.arange(1)  # no alerts: take one case for its columns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # predict has warned already
        top = ranked(curve, features[rows], len(rows), 0)
        why = ranked(curve.selected_.tree, features[rows], len(rows), reasons).sort("row")[top["row"]]
    top = top.with_columns(row=rows[top["row"].to_numpy()]).hstack(why.drop(*FIGURES, strict=False))
    return top.head(len(called))
