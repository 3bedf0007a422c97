"""A column that tells the outcome by itself: often one that is filled in after the outcome is known."""

from __future__ import annotations

import shlex
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.cli.terminal import Terminal

if TYPE_CHECKING:
    import polars

DECIDES_ALONE = 0.98
"""Area under the ROC curve of one column on cases held out from which on it tells the outcome by itself."""

FEWEST_CASES = 10
"""With fewer cases of an outcome, a column may part them by chance."""


def note_lone_column(model: Any, features: polars.DataFrame, is_positive: np.ndarray, terminal: Terminal) -> None:
    """Note where the main column of a fitted model ranks the cases almost without mistakes, all others left out."""
    if terminal.quiet and not terminal.as_json:
        return  # nobody would read it
    shares = model.feature_importances_
    if not shares.any():
        shares = np.asarray(model._card_shares or [0.0])
    if not shares.any():
        return
    name = model.columns_[int(np.argmax(shares))].input_name
    with terminal.working(f"Looking at {name} alone"):
        area = area_alone(features.select(name), is_positive)
    if area >= DECIDES_ALONE:
        terminal.note(
            f"Column {name!r} tells the outcome by itself: it ranks cases held out with an area under the ROC curve of "
            f"{area:.3f}, all other columns left out. Such columns are often filled in after the outcome is known. "
            f"Hint: if it is not known in time for new cases, leave it out with --drop {shlex.quote(name)}."
        )


def area_alone(column: polars.DataFrame, is_positive: np.ndarray) -> float:
    """Return the mean area under the ROC curve of two small trees of one column, each on the half it did not see.

    NaN with too few cases of an outcome. Held out, a column of names does not look as if it told the outcome.
    """
    from sklearn.model_selection import StratifiedKFold

    from toprank import RankingTree
    from toprank.metrics import roc_auc

    if min(is_positive.sum(), (~is_positive).sum()) < FEWEST_CASES:
        return np.nan
    areas = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a half may miss a rare category; the whole table has been checked
        for inside, held_out in StratifiedKFold(2, shuffle=True, random_state=0).split(is_positive, is_positive):
            tree = RankingTree(max_depth=3, min_samples_leaf=1, keep_columns="all").fit(
                column[inside], is_positive[inside]
            )
            areas.append(roc_auc(is_positive[held_out], tree.decision_function(column[held_out])))
    return float(np.mean(areas))
