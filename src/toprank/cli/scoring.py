"""A model file and a table file, loaded and checked against each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from toprank.cli.terminal import Terminal

if TYPE_CHECKING:
    import polars


def load_and_read(model: Path, table: Path, terminal: Terminal) -> tuple[Any, polars.DataFrame, Any]:
    """Return the model, the table, and the columns of it that the model asks for."""
    from toprank.cli.columns import model_features, text_columns
    from toprank.cli.reading import read_table
    from toprank.rankers.model_file import load

    with terminal.working(f"Loading {model.name}"):
        ranker = load(model)
    with terminal.working(f"Reading {table.name}"):
        frame = read_table(table, text_columns(ranker.columns_))
    return ranker, frame, model_features(frame, ranker, table.name)
