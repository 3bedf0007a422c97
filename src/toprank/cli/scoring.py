"""A model file and a table file, loaded and checked against each other, and the alerts that come of them."""

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
"""Columns of alerts that come from the ranking, whatever the reasons come from."""


def load_and_read(
    model: Path, table: Path, terminal: Terminal, *, csv_format: CsvFormat | None = None, needs_choice: bool = False
) -> tuple[Any, TableFile, polars.DataFrame, Any]:
    """Return the model, the file with the table, the table, and the columns of it that the model asks for.

    A model that ranks nothing is refused, and one that is no curve with a chosen tree where that is needed.
    """
    from toprank.cli.columns import model_features, text_columns
    from toprank.files.model_file import load

    with terminal.working(f"Loading {model.name}"):
        ranker = load(model)
    if not entry_of(ranker).ranks:
        raise InputError(
            f"{model.name} holds a model of class {type(ranker).__name__}, which tells classes and ranks nothing, "
            "expected a ranker. Hint: use a file that `toprank fit` wrote, or the predict of this one in Python."
        )
    if needs_choice:
        _check_choice(ranker, model)
    with terminal.working(f"Reading {table.name}"):
        source = TableFile(table, csv_format)
        frame = source.frame(text_columns(ranker.columns_))
    return ranker, source, frame, model_features(frame, ranker, table.name)


def _check_choice(ranker: Any, model: Path) -> None:
    """Raise InputError unless the model is a curve with a chosen tree."""
    if entry_of(ranker).kind != "curve":
        raise InputError(
            f"--chosen needs a curve with a chosen tree, but {model.name} holds a model of class "
            f"{type(ranker).__name__}, expected CostOptimalCurve. Hint: use a file that `toprank curve` wrote, or --k."
        )
    if ranker.selected_ is None:
        name = shlex.quote(str(model))
        raise InputError(
            f"--chosen needs a curve with a chosen tree, but no tree of {model.name} is chosen yet. "
            f"Hint: choose one with `toprank curve {name} --k 200 -o {name}`."
        )


def ranked(ranker: Any, features: Any, k: int, reasons: int) -> polars.DataFrame:
    """Return the k cases most worth checking, best first, each with reasons."""
    import narwhals as nw

    # A model of arrays has no frame type of its own, and its alerts come in any that is installed.
    return nw.from_native(ranker.top_k(features, k, reasons=reasons)).to_polars()


def called_positive(curve: Any, features: Any, reasons: int) -> polars.DataFrame:
    """Return the cases that the chosen tree of a curve calls positive, in the order of the curve.

    Leaf and reasons are those of the chosen tree, score and hit rate those of the curve.
    """
    called = np.flatnonzero(curve.predict(features) == curve.classes_[curve.positive_index_])
    rows = called if len(called) else np.arange(1)  # of no case at all: the columns of one
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is to be said of the table, predict has said
        top = ranked(curve, features[rows], len(rows), 0)
        why = ranked(curve.selected_.tree, features[rows], len(rows), reasons).sort("row")[top["row"]]
    top = top.with_columns(row=rows[top["row"].to_numpy()]).hstack(why.drop(*FIGURES, strict=False))
    return top.head(len(called))
