"""The measures as scorers for scikit-learn: ``GridSearchCV(..., scoring=average_precision_scorer)``.

The only file of the folder that imports scikit-learn. A scorer reads the estimator's ``decision_function``,
or the positive column of ``predict_proba`` if there is none. It can be pickled, and weights are passed through
``set_score_request(sample_weight=True)``.

scikit-learn assumes that every ``decision_function`` is large for the second of ``classes_``. That of a toprank ranker
is large for its positive label, whichever that is, and these scorers ask the ranker for it.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from sklearn.metrics import make_scorer
from sklearn.pipeline import Pipeline

from toprank.errors import InputError
from toprank.metrics.at_k import lift_at_k, precision_at_k, recall_at_k
from toprank.metrics.checks import check_choice
from toprank.metrics.labels import default_positive
from toprank.metrics.ranking import average_precision
from toprank.metrics.ties import TIES

_RESPONSE = ("decision_function", "predict_proba")
_AT_K = {"precision": precision_at_k, "recall": recall_at_k, "lift": lift_at_k}


class RankingScorer:
    """A scorer, called as ``scorer(estimator, X, y)``; the metric as ``metric(y, score, **options)``.

    For a fitted toprank ranker, a pipeline that ends in one or a search over either, the positive label is that of the
    ranker. For all other estimators the scorer equals ``make_scorer(metric, ...)`` with the positive label of a usual
    pair, such as yes of yes/no, else the larger.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from toprank.metrics import roc_auc
    >>> X, y = [[1], [2], [3], [4]], [0, 0, 1, 1]
    >>> RankingScorer(roc_auc)(LogisticRegression().fit(X, y), X, y)
    1.0
    """

    def __init__(self, metric: Callable[..., float], **options: Any) -> None:
        self._metric = metric
        self._options = options
        self._scorer = make_scorer(metric, response_method=_RESPONSE, **options)

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> float:
        """Return the measure of the estimator's scores of X; `params` are further arguments of the metric."""
        if sample_weight is not None:
            params["sample_weight"] = sample_weight
        ranker = ranker_of(estimator)
        if ranker is None:
            return self._scorer_of(estimator)(estimator, X, y, **params)
        options = {**self._options, **params}
        options["pos_label"] = self._positive_label(ranker, options.get("pos_label"))
        return self._metric(y, estimator.decision_function(X), **options)

    def _scorer_of(self, estimator: Any) -> Any:
        """Return scikit-learn's scorer for an estimator that is no ranker; by default it turns to the second class."""
        classes = np.asarray(getattr(estimator, "classes_", ())).tolist()
        if self._options.get("pos_label") is not None or len(classes) != 2 or default_positive(*classes) == classes[1]:
            return self._scorer
        return make_scorer(self._metric, response_method=_RESPONSE, **{**self._options, "pos_label": classes[0]})

    def _positive_label(self, ranker: Any, pos_label: Any) -> Any:
        """Return the positive label of the ranker; raise if the scorer was made for the other one."""
        positive = ranker.classes_.tolist()[ranker.positive_index_]
        if pos_label is not None and pos_label != positive:
            name = type(ranker).__name__
            raise InputError(
                f"The scorer of {self._metric.__name__} must have the pos_label of the {name} it scores, {positive!r}. "
                f"Got {pos_label!r} instead. Hint: leave it out of the scorer, or give pos_label to {name}."
            )
        return positive

    def __repr__(self) -> str:
        return repr(self._scorer)

    # --- scikit-learn's interface of a scorer ----------------------------------------------------------------------

    def set_score_request(self, **requests: Any) -> RankingScorer:
        """Set which metadata the scorer requests, such as ``sample_weight=True``; return the scorer itself."""
        self._scorer.set_score_request(**requests)
        return self

    def get_metadata_routing(self) -> Any:
        """Return the metadata that the scorer requests."""
        return self._scorer.get_metadata_routing()

    def _accept_sample_weight(self) -> bool:
        return "sample_weight" in signature(self._metric).parameters


average_precision_scorer = RankingScorer(average_precision)
"""Average precision as a scorer for scikit-learn: ``GridSearchCV(..., scoring=average_precision_scorer)``."""


def make_at_k_scorer(
    metric: str = "precision",
    k: int | float = 1.0,
    *,
    of: str = "positives",
    ties: str = "expected",
    pos_label: Any = None,
) -> RankingScorer:
    """Scorer of the first k cases of each test fold.

    Parameters
    ----------
    metric : {"precision", "recall", "lift"}
    k : int or float, default=1.0
        As in `precision_at_k`. A test fold is smaller than the table, so an int that suits the table may be too large
        for a fold; a share works for both.
    of : {"positives", "cases"}
        What a float `k` is a share of.
    ties : {"expected", "best", "worst"}
    pos_label : optional
        The positive label; by default that of a toprank ranker; of other estimators that of a usual pair, such as
        yes of yes/no, else the larger.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``, for `cross_val_score`, `GridSearchCV` and the like.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = make_classification(weights=[0.9], random_state=0)
    >>> scorer = make_at_k_scorer("precision", k=0.1, of="cases")
    >>> cross_val_score(LogisticRegression(), X, y, scoring=scorer, cv=3).shape
    (3,)
    """
    caller = "make_at_k_scorer"
    check_choice(metric, "metric", tuple(_AT_K), caller=caller)
    check_choice(of, "of", ("positives", "cases"), caller=caller)
    check_choice(ties, "ties", TIES, caller=caller)
    keywords = {"k": k, "of": of, "ties": ties} | ({} if pos_label is None else {"pos_label": pos_label})
    return RankingScorer(_AT_K[metric], **keywords)


def ranker_of(estimator: Any) -> Any:
    """Return the fitted ranker behind a pipeline, a search or a threshold; None if there is none."""
    while not hasattr(estimator, "positive_index_"):
        if isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "estimator_"):
            estimator = estimator.estimator_
        else:
            return None
    return estimator
