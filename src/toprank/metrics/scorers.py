"""The measures as scorers for scikit-learn: ``GridSearchCV(..., scoring=average_precision_scorer)``.

The only file of the folder that imports scikit-learn. A scorer reads the estimator's ``decision_function``,
or the positive column of ``predict_proba`` where there is none. It is scikit-learn's own kind of object, so
it can be pickled, and weights reach it through ``set_score_request(sample_weight=True)``.
"""

from __future__ import annotations

from typing import Any

from sklearn.metrics import make_scorer

from toprank.metrics._ties import TIES
from toprank.metrics._validation import check_choice
from toprank.metrics.at_k import lift_at_k, precision_at_k, recall_at_k
from toprank.metrics.ranking import average_precision

_RESPONSE = ("decision_function", "predict_proba")
_AT_K = {"precision": precision_at_k, "recall": recall_at_k, "lift": lift_at_k}

average_precision_scorer = make_scorer(average_precision, response_method=_RESPONSE)


def make_at_k_scorer(
    metric: str = "precision",
    k: int | float = 1.0,
    *,
    of: str = "positives",
    ties: str = "expected",
    pos_label: Any = None,
) -> Any:
    """Scorer of the first k cases of each test fold.

    Parameters
    ----------
    metric : {"precision", "recall", "lift"}
    k : int or float, default=1.0
        As in `precision_at_k`. A test fold is smaller than the table, so an int that suits the table may be
        too large for a fold; a share suits both.
    of : {"positives", "cases"}
        What a float `k` is a share of.
    ties : {"expected", "best", "worst"}
    pos_label : optional
        The positive label; the larger of the two by default.

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
    return make_scorer(_AT_K[metric], response_method=_RESPONSE, **keywords)
