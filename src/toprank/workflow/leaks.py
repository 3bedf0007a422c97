"""A column that gives the outcome away: often one that is filled in after the outcome is known."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.model_selection import StratifiedKFold

from toprank._compat import n_samples
from toprank.data.frames import names_of
from toprank.metrics import roc_auc
from toprank.rankers.greedy.ranking_tree import RankingTree
from toprank.rankers.validation import positives_of

DECIDES_ALONE = 0.98
"""Least area under the ROC curve of one column, on held-out cases, that gives the outcome away."""

FEWEST_CASES = 10
"""With fewer cases of an outcome, a column may separate them by chance."""


@dataclass(frozen=True)
class LoneColumn:
    """How well one column alone ranks the cases.

    Attributes
    ----------
    name : str
    area : float
        Area under the ROC curve on held-out cases; NaN with too few cases of an outcome.
    """

    name: str
    area: float

    @property
    def gives_outcome_away(self) -> bool:
        """True if the column alone ranks the cases almost without errors."""
        return self.area >= DECIDES_ALONE

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"gives_outcome_away": self.gives_outcome_away}


def check_main_column(model: Any, X: Any, y: Any) -> LoneColumn | None:
    """Check whether the main column of a fitted model gives the outcome away by itself.

    Parameters
    ----------
    model : fitted ranker
    X, y : the table and the outcomes that it was fitted on

    Returns
    -------
    LoneColumn or None
        None if the model uses no column.

    Examples
    --------
    >>> from toprank import RankingTree
    >>> from toprank.datasets import make_audit
    >>> from toprank.workflow import check_main_column
    >>> data = make_audit(1000, positive_rate=0.1, random_state=0)
    >>> X = data.X.assign(closed_as=["guilty" if fraud else "clean" for fraud in data.y])
    >>> model = RankingTree(max_depth=2, cv=0).fit(X, data.y)
    >>> column = check_main_column(model, X, data.y)
    >>> column.name, column.gives_outcome_away
    ('closed_as', True)
    """
    shares = model._importances()
    if not shares.any():
        shares = np.asarray(model._card_shares or [0.0])
    if not shares.any():
        return None
    name = model.columns_[int(np.argmax(shares))].input_name
    return LoneColumn(
        name, area_alone(_column(model, X, name), positives_of(model, y, n_samples(X), "check_main_column"))
    )


def _column(model: Any, X: Any, name: str) -> Any:
    """One column of a table, as a table."""
    if hasattr(X, "columns"):  # by position: names may be numbers
        return nw.from_native(X, eager_only=True)[:, [names_of(X).index(name)]].to_native()
    return np.asarray(X)[:, [list(model._input_names).index(name)]]


def area_alone(column: Any, is_positive: np.ndarray) -> float:
    """Mean area under the ROC curve of two small trees on one column, each tested on the half it did not see.

    NaN with too few cases of an outcome. Held-out cases keep a column of names from looking like a leak.
    """
    if min(is_positive.sum(), (~is_positive).sum()) < FEWEST_CASES:
        return np.nan
    areas = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a half may lack a rare category; the whole table has been checked
        for inside, held_out in StratifiedKFold(2, shuffle=True, random_state=0).split(is_positive, is_positive):
            tree = RankingTree(max_depth=3, min_samples_leaf=1, keep_columns="all").fit(
                _rows(column, inside), is_positive[inside]
            )
            areas.append(roc_auc(is_positive[held_out], tree.decision_function(_rows(column, held_out))))
    return float(np.mean(areas))


def _rows(column: Any, rows: np.ndarray) -> Any:
    return nw.from_native(column, eager_only=True)[rows].to_native() if hasattr(column, "columns") else column[rows]
