"""`Scorecard`: points per column that add up, as in credit scoring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.rankers.points.additive import AdditiveModel, Rows, Term, fit_additive
from toprank.rankers.points.card import Card
from toprank.rankers.points.points_ranker import POINTS_CONSTRAINTS, PointsRanker


@dataclass(kw_only=True, eq=False, repr=False)
class Scorecard(PointsRanker):
    """Points per column that add up to a score, as in credit scoring.

    An additive logistic regression: each number gets a curve of straight lines and steps between quantiles, each
    category a level, missing values one of their own. Penalties are learned per column from the data (evidence), so
    that a column without information, or with many meaningless categories, gets next to no points; how strong they are
    to begin with is chosen by the average precision of held-out cases.

    Parameters
    ----------
    points : int or None, default 20
        Points that double the odds of a positive; all points are then whole numbers at the ends of each bin. None keeps
        log-odds.
    alpha : float or "cv", default "cv"
        Penalty before the data are seen: coefficients are expected to be about 1 / sqrt(alpha) in log-odds. "cv"
        chooses one of 1, 3, 10, 30 and 100.
    max_features : int or None
        Most columns with points; those with the largest spread are kept.
    max_bins_per_feature : int or None
        Most bins of a number column, at least 2, each with one number of points: those that follow its curve best.
    monotonic_cst : array-like of int, or dict of column names, or None
        1: points must not fall as the number rises; -1: must not rise; 0: free. As in scikit-learn.
    fine_tune : bool, default False
        Also try cards whose points are fitted further, on the logistic loss and a surrogate of average precision, as in
        `SGBAP`, in equal shares; taken where folds say that it pays. A fit then takes about five times as long.
    cv : int, splitter or iterable, default 5
        Folds to choose alpha and to estimate hit rates of new cases; 0 turns both off, and alpha is 10.
    budget, pos_label, categorical_features, keep_columns, n_jobs
        As in `MetaAP`.
    random_state : int, RandomState or None
        Of the folds.

    Attributes
    ----------
    card_ : Card
        The points: `card_.to_text(columns_)`, `card_.contributions`.
    alpha_ : float
    is_fine_tuned_ : bool
    cv_results_ : dict of arrays
        "alpha", "fine_tuned" if asked for, and "mean_test_score", the average precision of held-out cases; empty with
        cv=0.
    spread_ : float64 array of shape (n_features,)
        Standard deviation of each column's points over the training cases.
    rates_, cutoff_, columns_, classes_
        As in all rankers.

    Notes
    -----
    Large tables are fitted on all positives (up to 50,000) and random negatives, 100,000 rows in all.

    References
    ----------
    MacKay (1992), "Bayesian interpolation", Neural Computation 4, for the penalties; Wood (2011), "Fast stable
    restricted maximum likelihood and marginal likelihood estimation of semiparametric generalized linear models".

    Examples
    --------
    >>> from toprank import Scorecard
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(2000, random_state=0)
    >>> model = Scorecard(max_features=3, cv=0, budget=20).fit(data.X, data.y)
    >>> len(model.card_), len(model.top_k(data.X)), model.card_.scale_text()
    (3, 20, '20 points double the odds')
    """

    _parameter_constraints = {**POINTS_CONSTRAINTS, "fine_tune": ["boolean"]}

    points: int | None = 20
    alpha: float | str = "cv"
    max_features: int | None = None
    max_bins_per_feature: int | None = None
    monotonic_cst: Any = None
    fine_tune: bool = False
    cv: Any = 5
    budget: int | float | None = None
    pos_label: Any = None
    categorical_features: Any = None
    keep_columns: Any = None
    n_jobs: int | None = None
    random_state: Any = None

    def _candidates(self, data: BinnedCases, rows: Rows, terms: list[Term], alphas: Sequence[float]) -> list[Card]:
        models = fits_by_alpha(data, rows, terms, alphas, self.max_features, self.max_bins_per_feature)
        tuned = [model.tuned() for model in models] if self.fine_tune else []
        return [self._finished(model.card()) for model in (*tuned, *models)]

    def _candidate_names(self, alphas: Sequence[float]) -> dict[str, np.ndarray]:
        names = np.array(alphas, np.float64)
        if not self.fine_tune:
            return {"alpha": names}
        return {"alpha": np.append(names, names), "fine_tuned": np.repeat([1.0, 0.0], len(names))}

    def _plain_candidates(self, n_candidates: int) -> np.ndarray:
        return np.arange(n_candidates // 2 if self.fine_tune else 0, n_candidates)

    def _keep(self, chosen: Any, name: Mapping[str, Any]) -> None:
        self.card_, self.alpha_, self.is_fine_tuned_ = chosen, float(name["alpha"]), bool(name.get("fine_tuned", False))

    def _to_arrays(self) -> dict[str, np.ndarray]:
        return super()._to_arrays() | {"fine_tuned": np.array(self.is_fine_tuned_)}

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self.is_fine_tuned_ = bool(arrays.get("fine_tuned", np.array(False)).any())

    # --- scoring ---------------------------------------------------------------------------------------

    def _score_rows(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        return self.card_.decision_function(matrix, threads)

    def _points_of(self, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(matrix), self.card_.base), self.card_.contributions(matrix)


def fits_by_alpha(
    data: BinnedCases,
    rows: Rows,
    terms: Sequence[Term],
    alphas: Sequence[float],
    max_features: int | None,
    max_bins: int | None,
) -> list[AdditiveModel]:
    """Additive models for falling penalties, each started from the one before; None for no limit."""
    found: list[AdditiveModel] = []
    for alpha in alphas:
        found.append(fit_additive(rows, terms, alpha, max_features, found[-1] if found else None))
    return found if max_bins is None else [model.with_few_bins(data, max_bins) for model in found]
