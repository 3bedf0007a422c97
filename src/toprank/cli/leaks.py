"""The note on a column that gives the outcome away."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.cli.columns import as_labels
from toprank.cli.terminal import Terminal

if TYPE_CHECKING:
    import polars


def note_lone_column(model: Any, features: polars.DataFrame, is_positive: np.ndarray, terminal: Terminal) -> None:
    """Add a note if the main column of a fitted model, alone, ranks the cases almost perfectly."""
    from toprank.workflow import check_main_column

    if terminal.quiet and not terminal.as_json:
        return  # nobody would see the note
    with terminal.working("Checking the main column for leakage"):
        column = check_main_column(model, features, as_labels(model, is_positive))
    if column is not None and column.gives_outcome_away:
        terminal.note(
            f"Column {column.name!r} may give the outcome away: on its own it ranks held-out cases with an area under "
            f"the ROC curve of {column.area:.3f}. Such columns are often filled in after the outcome is known. "
            "Hint: if it is not known in time for new cases, leave it out with --drop "
            f"{shlex.quote(column.name)}."
        )
