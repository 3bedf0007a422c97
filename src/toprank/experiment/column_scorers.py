"""Scorers for scikit-learn that read columns of X which are not features: the entity, the amount, the day of a case.

`make_entity_scorer` and `make_money_scorer` return scorers for `cross_validate` and searches. The columns are part of
X, so they are split along with the rows; the estimator gets only the columns it was trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from toprank.errors import InputError, InputTypeError
from toprank.experiment.timeline import read_column
from toprank.metrics import distinct_entity_precision_at_k, gain_at_k, per_period
from toprank.metrics.checks import check_choice, is_int, is_real
from toprank.metrics.labels import default_positive
from toprank.metrics.scorers import ranker_of
from toprank.metrics.ties import TIES


@dataclass(frozen=True)
class ColumnScorer:
    """A scorer, called as ``scorer(estimator, X, y)``.

    `columns` names the column of X for each argument of the metric that has one value per row, `period` that with the
    periods to average over; `options` are further arguments of `per_period`.
    """

    metric: Callable[..., float]
    columns: Mapping[str, str]
    period: str | None
    options: Mapping[str, Any]

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the measure of the estimator's scores of X."""
        caller = f"The scorer of {self.metric.__name__}"
        values: dict[str, Any] = {
            name: read_column(X, column, caller=caller).to_numpy() for name, column in self.columns.items()
        }
        values["periods"] = (
            np.zeros(len(y), dtype=int)
            if self.period is None
            else read_column(X, self.period, caller=caller).to_numpy()
        )
        trained, frame = getattr(estimator, "feature_names_in_", None), nw.from_native(X, eager_only=True)
        if trained is not None and list(trained) != frame.columns and set(trained) <= set(frame.columns):
            X = frame.select(*trained).to_native()
        pos_label, score = _score_positives(estimator, X, self.options.get("pos_label"), caller)
        return per_period(self.metric, y, score, **values, **{**self.options, "pos_label": pos_label})


def make_entity_scorer(
    k: int | float,
    entity: str,
    *,
    period: str | None = None,
    of: str = "positives",
    ties: str = "expected",
    pos_label: Any = None,
) -> ColumnScorer:
    """Scorer of the precision at k distinct entities, averaged over periods if `period` is given.

    Parameters
    ----------
    k : int or float
        As in `distinct_entity_precision_at_k`: an int is a number of entities to check in each test fold, or in each
        period. If there are fewer, all are checked.
    entity : str
        The column of X with the entity of each row.
    period : str, optional
        The column of X with the day or week of each row; equal values are one period. With k checks per day this is the
        card precision of the literature.
    of : {"positives", "cases"}
        What a float `k` is a share of.
    ties : {"expected", "best", "worst"}
    pos_label : optional
        The positive label; by default that of a toprank ranker; of other estimators that of a usual pair, such as
        yes of yes/no, else the second class.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``. A fold or period without a positive counts as 0.

    Notes
    -----
    X is a data frame with the columns named here in addition to the features. An estimator with `feature_names_in_`
    gets only those columns. scikit-learn trains on the whole X, so drop columns that are not features in a first
    pipeline step (see the example).

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
    options = {"k": k, "of": of, "ties": ties, "pos_label": pos_label}
    _check_scorer({"entity": entity, "period": period}, options, "make_entity_scorer")
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
    """Scorer of the money found by k checks (`gain_at_k`), averaged over periods if `period` is given.

    Parameters
    ----------
    k : int or float
        As in `gain_at_k`: an int is a number of checks in each test fold, or in each period. If there are fewer cases,
        all are checked.
    amount : str
        The column of X with the amount that a positive case yields.
    period, of, ties, pos_label
        As in `make_entity_scorer`, whose notes on columns apply here too. An amount that is known before the check may
        be a feature and need not be dropped.

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
    options = {"k": k, "of": of, "ties": ties, "pos_label": pos_label}
    _check_scorer({"amount": amount, "period": period}, options, "make_money_scorer")
    return ColumnScorer(gain_at_k, {"amount": amount}, period, options)


def _check_scorer(columns: dict[str, Any], options: dict[str, Any], caller: str) -> None:
    """Raise before a search starts, not in its first fold."""
    k = options["k"]
    check_choice(options["of"], "of", ("positives", "cases"), caller=caller)
    check_choice(options["ties"], "ties", TIES, caller=caller)
    if not is_real(k) or not k > 0 or (not is_int(k) and k > 1):
        raise (InputError if is_real(k) else InputTypeError)(
            f"The 'k' parameter of {caller} must be an int in the range [1, inf) or a float in the range (0, 1]. Got "
            f"{k!r} instead."
        )
    for name, column in columns.items():
        if not isinstance(column, str) and not (name == "period" and column is None):
            raise InputTypeError(
                f"The '{name}' parameter of {caller} must be the name of a column of X. Got {column!r} instead. Hint: "
                "put the values into a column of X, so that they are split along with the rows."
            )


def _score_positives(estimator: Any, X: Any, pos_label: Any, caller: str) -> tuple[Any, Any]:
    """Return the positive label and the scores of X, larger for rows more likely to have it.

    scikit-learn's scorer will not do: it assumes that every decision_function is large for the second class. The label
    comes from the estimator, which has seen both classes; a fold may have no positive.
    """
    has_decision = hasattr(estimator, "decision_function")
    classes = np.asarray(getattr(estimator, "classes_", ())).tolist()
    if has_decision and not classes:  # not a classifier: larger is more suspicious, as everywhere
        return pos_label, estimator.decision_function(X)
    if len(classes) != 2 or not (has_decision or hasattr(estimator, "predict_proba")):
        hint = " Hint: skip_one_class of PrequentialSplit skips such folds." if len(classes) == 1 else ""
        raise InputError(
            f"{caller} needs a two-class model with decision_function or predict_proba. Got "
            f"{type(estimator).__name__}, classes {classes}, instead.{hint}"
        )
    if pos_label is not None and pos_label not in classes:
        raise InputError(
            f"{caller} needs a pos_label that is a class of the model, {classes[0]!r} or {classes[1]!r}. Got "
            f"{pos_label!r} instead."
        )
    ranker = ranker_of(estimator)
    own = None if ranker is None else ranker.positive_index_
    sought = 1 if own is None else own  # the class that decision_function is large for
    if pos_label is None:
        pos_label = default_positive(*classes) if own is None else classes[own]
    positive = classes.index(pos_label)
    if has_decision:
        score = np.asarray(estimator.decision_function(X))
        return classes[positive], score if positive == sought else -score
    return classes[positive], np.asarray(estimator.predict_proba(X))[:, positive]
