"""The note about a column that tells the outcome by itself."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.cli.columns import as_labels
from toprank.cli.terminal import Terminal

if TYPE_CHECKING:
    import polars


def note_lone_column(model: Any, features: polars.DataFrame, is_positive: np.ndarray, terminal: Terminal) -> None:
    """Note if the main column of a fitted model ranks the cases almost without mistakes, all others left out."""
    from toprank.workflow import check_main_column

    if terminal.quiet and not terminal.as_json:
        return  # nobody would read it
    with terminal.working("Looking at the main column alone"):
        column = check_main_column(model, features, as_labels(model, is_positive))
    if column is not None and column.gives_outcome_away:
        terminal.note(
            f"Column {column.name!r} tells the outcome by itself: it ranks cases held out with an area under the ROC "
            f"curve of {column.area:.3f}, all other columns left out. Such columns are often filled in after the "
            "outcome is known. Hint: if it is not known in time for new cases, leave it out with --drop "
            f"{shlex.quote(column.name)}."
        )
