"""Scorers for scikit-learn that read a column of X which is no feature: the entity, the amount, the day of a case.

`make_entity_scorer` and `make_money_scorer` return scorers for `cross_validate` and searches. The columns stand in the
X that is split, so they go with their rows through every fold; the estimator is given only those it was trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.metrics import make_scorer

from toprank.experiment.timeline import read_column
from toprank.metrics import distinct_entity_precision_at_k, gain_at_k, per_period
from toprank.metrics._ties import TIES
from toprank.metrics._validation import check_choice, is_real


@dataclass(frozen=True)
class ColumnScorer:
    """A scorer, called as ``scorer(estimator, X, y)``.

    Attributes
    ----------
    metric : callable
    columns : mapping of str to str
        The column of X for each argument of the metric that has one value per row.
    period : str or None
        The column of X with the periods to average over.
    options : mapping of str to object
        Further arguments of `per_period`.
    """

    metric: Callable[..., float]
    columns: Mapping[str, str]
    period: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the measure of the estimator's scores of X."""
        caller = f"The scorer of {self.metric.__name__}"
        values = {name: read_column(X, column, caller=caller).to_numpy() for name, column in self.columns.items()}
        values["periods"] = (
            np.zeros(len(y), dtype=int)
            if self.period is None
            else read_column(X, self.period, caller=caller).to_numpy()
        )
        options = dict(self.options)
        classes: Any = getattr(estimator, "classes_", ())
        if options.get("pos_label") is None and len(classes) == 2:
            options["pos_label"] = classes[1]  # a fold may have no positive; the estimator has seen both classes
        scorer = make_scorer(
            partial(per_period, self.metric),
            response_method=("decision_function", "predict_proba"),
            **values,
            **options,
        )
        return float(scorer(estimator, _trained_columns(estimator, X), y))


def make_entity_scorer(
    k: int | float,
    entity: str,
    *,
    period: str | None = None,
    of: str = "positives",
    ties: str = "expected",
    pos_label: Any = None,
) -> ColumnScorer:
    """Scorer of the precision at k distinct entities, on average per period where one is named.

    Parameters
    ----------
    k : int or float
        As in `distinct_entity_precision_at_k`: an int is a number of entities to check in each test fold, or in each
        period. Where there are fewer, all are checked.
    entity : str
        The column of X that says whose row it is.
    period : str, optional
        The column of X that says in which day or week a row is; equal values are one period. With k checks a day this
        is the card precision of the literature.
    of : {"positives", "cases"}
        What a float `k` is a share of.
    ties : {"expected", "best", "worst"}
    pos_label : optional
        The positive label; the second of the estimator's classes by default.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``. A fold or period without a positive counts as 0.

    Notes
    -----
    X is a data frame that has the columns named here beside the features. An estimator with `feature_names_in_` is
    given those columns only. A column that should be no feature must be kept from it when it is trained, too: put a
    step in front that drops it (see the example), as scikit-learn trains on the whole X.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from toprank.experiment.prequential import PrequentialSplit
    >>> X = pd.DataFrame({"amount": [9, 1, 8, 2, 7, 3], "card": list("ababab"), "day": [1, 1, 2, 2, 3, 3]})
    >>> drop = make_column_transformer(("drop", ["card", "day"]), remainder="passthrough")
    >>> cv = PrequentialSplit(train=1, gap=0, test=1, times="day")
    >>> scorer = make_entity_scorer(1, "card")
    >>> cross_val_score(make_pipeline(drop, LogisticRegression()), X, [1, 0, 1, 0, 0, 1], cv=cv, scoring=scorer)
    array([1., 0.])
    """
    caller = "make_entity_scorer"
    _check_scorer(k, {"entity": entity, "period": period}, of, ties, caller)
    options = {"k": k, "of": of, "ties": ties, "pos_label": pos_label}
    return ColumnScorer(distinct_entity_precision_at_k, {"entities": entity}, period, options)


def make_money_scorer(
    k: int | float,
    amount: str,
    *,
    period: str | None = None,
    of: str = "positives",
    ties: str = "expected",
    pos_label: Any = None,
) -> ColumnScorer:
    """Scorer of the money found by k checks (`gain_at_k`), on average per period where one is named.

    Parameters
    ----------
    k : int or float
        As in `gain_at_k`: an int is a number of checks in each test fold, or in each period. Where there are fewer
        cases, all are checked.
    amount : str
        The column of X with what a case brings if it is positive.
    period, of, ties, pos_label
        As in `make_entity_scorer`, whose notes on columns hold here too. An amount that is known before the check may
        well be a feature; then no step need drop it.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``, in the unit of the amount. A fold or period without a positive counts as 0.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = pd.DataFrame({"size": [1, 2, 3, 4], "euro": [70, 0, 50, 90]}), [0, 0, 1, 1]
    >>> make_money_scorer(1, "euro")(LogisticRegression().fit(X[["size"]], y), X, y)
    90.0
    """
    caller = "make_money_scorer"
    _check_scorer(k, {"amount": amount, "period": period}, of, ties, caller)
    options = {"k": k, "of": of, "ties": ties, "pos_label": pos_label}
    return ColumnScorer(gain_at_k, {"amount": amount}, period, options)


def _check_scorer(k: Any, columns: dict[str, Any], of: str, ties: str, caller: str) -> None:
    """Raise before a search starts, not in its first fold."""
    check_choice(of, "of", ("positives", "cases"), caller=caller)
    check_choice(ties, "ties", TIES, caller=caller)
    if not is_real(k) or not k > 0 or (not isinstance(k, int | np.integer) and k > 1):
        raise (ValueError if is_real(k) else TypeError)(
            f"The 'k' parameter of {caller} must be an int in the range [1, inf) or a float in the range (0, 1]. Got "
            f"{k!r} instead."
        )
    for name, column in columns.items():
        if not isinstance(column, str) and not (name == "period" and column is None):
            raise TypeError(
                f"The '{name}' parameter of {caller} must be the name of a column of X. Got {column!r} instead. Hint: "
                "put the values into a column of X, so that they go with their rows."
            )


def _trained_columns(estimator: Any, X: Any) -> Any:
    """Return X with the columns that the estimator was trained on, in their order; X itself where it does not say."""
    trained = getattr(estimator, "feature_names_in_", None)
    frame = nw.from_native(X, eager_only=True)
    if trained is None or list(trained) == frame.columns or not set(trained) <= set(frame.columns):
        return X
    return frame.select(*trained).to_native()
