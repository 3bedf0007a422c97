"""A model file and a table file, loaded and checked against each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from toprank.cli.errors import InputError
from toprank.cli.terminal import Terminal

if TYPE_CHECKING:
    import polars


def load_and_read(model: Path, table: Path, terminal: Terminal) -> tuple[Any, polars.DataFrame, Any]:
    """Return the model, the table, and the columns of it that the model asks for; refuse a model that ranks nothing."""
    from toprank.cli.columns import model_features, text_columns
    from toprank.cli.reading import read_table
    from toprank.rankers.model_file import CLASSIFIERS, load

    with terminal.working(f"Loading {model.name}"):
        ranker = load(model)
    if type(ranker).__name__ in CLASSIFIERS:
        raise InputError(
            f"{model.name} holds a model of class {type(ranker).__name__}, which tells classes and ranks nothing, "
            "expected a ranker. Hint: use a file that `toprank fit` wrote, or the predict of this one in Python."
        )
    with terminal.working(f"Reading {table.name}"):
        frame = read_table(table, text_columns(ranker.columns_))
    return ranker, frame, model_features(frame, ranker, table.name)
