"""`PairwiseBoost`, `MAPBoost`: XGBoost's own ranking objectives, with all cases in one list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from toprank.rankers.boosting.losses import THIS_PROCESS, RowSums
from toprank.rankers.boosting.plain_booster import PlainBooster
from toprank.rankers.boosting.rounds import Rounds, Rows, Settings

MOST_COPIES = 10
"""Whole weights are numbers of copies as long as the table grows at most by this factor."""

DRAWN_COPIES = 4
"""Copies per row, on average, where other weights decide how many copies a row gets."""


class ListRounds(Rounds):
    """A booster that XGBoost grows on an objective of its own, with all rows in one list.

    It takes no weights of rows, so rows are repeated (`copies_of`). XGBoost forms pairs of the rows in one thread, and
    sums gradients in double precision, which holds them without rounding unless they differ by a factor of millions: 1,
    2 and 3 threads gave the same bytes on 300,000 rows.
    """

    def __init__(self, rows: Rows, settings: Settings, others: Rows | None = None, all_rows: RowSums = THIS_PROCESS):
        rows = repeated(rows, settings.seed)
        super().__init__(rows, settings, others, all_rows)
        self._train.set_info(label=rows.is_positive.astype(np.float32), group=np.array([len(rows.X)]))

    def step(self) -> None:
        """Grow one more tree."""
        self._booster.update(self._train, self.n_rounds)
        self.n_rounds += 1
        if self._others is not None:
            self._other_score = self._booster.predict(self._others, output_margin=True).astype(np.float64)


def repeated(rows: Rows, seed: int) -> Rows:
    """The rows, each as often as its weight says, with weight 1."""
    copies = copies_of(rows.weight, rows.is_positive, seed)
    if np.all(copies == 1):
        return replace(rows, weight=np.ones(len(copies)))
    at = np.repeat(np.arange(len(copies)), copies)
    return replace(rows, X=rows.X[at], is_positive=rows.is_positive[at], weight=np.ones(len(at)))


def copies_of(weight: np.ndarray, is_positive: np.ndarray, seed: int) -> np.ndarray:
    """How often each row is repeated in place of its weight, int64 (n,); at least one row of each class is.

    Small whole numbers are numbers of copies, and equal weights are one copy each. Otherwise rows are drawn in
    proportion to their weights at equal distances, so that a row gets either of the two whole numbers next to its
    share; both classes have the same number of copies per unit of weight.

    Examples
    --------
    >>> classes = np.array([True, True, False, False])
    >>> copies_of(np.array([1.0, 2.0, 0.0, 1.0]), classes, 0).tolist()
    [1, 2, 0, 1]
    >>> copies_of(np.full(4, 0.1), classes, 0).tolist(), copies_of(np.array([0.1, 0.3, 0.1, 0.3]), classes, 0).tolist()
    ([1, 1, 1, 1], [2, 6, 2, 6])
    """
    if np.all(weight == np.rint(weight)) and weight.sum() <= MOST_COPIES * len(weight):
        return weight.astype(np.int64)
    if np.all(weight == weight[0]):
        return np.ones(len(weight), np.int64)
    copies, share = np.zeros(len(weight), np.int64), weight / weight.max()
    start = np.random.default_rng(seed).random()
    for of_class in (is_positive, ~is_positive):
        n_draws = max(1, round(DRAWN_COPIES * len(weight) * share[of_class].sum() / share.sum()))
        place = np.cumsum(share[of_class])
        passed = np.floor(place * (n_draws / place[-1]) + start)
        copies[of_class] = np.diff(passed, prepend=np.floor(start)).astype(np.int64)
    return copies


@dataclass(kw_only=True, eq=False, repr=False)
class ListBooster(PlainBooster):
    """Base of the boosters on objectives of XGBoost.

    In every round, each case is paired with a random case of the other class. XGBoost's default forms pairs with the
    first 32 cases alone, which suits pages of search results, not one long list.
    """

    _objective: ClassVar[str]
    _rounds = ListRounds

    min_child_weight: float = 0.0

    def _settings(self) -> Settings:
        settings = super()._settings()
        native = {"objective": self._objective, "lambdarank_pair_method": "mean", "lambdarank_num_pair_per_sample": 1,
                  "subsample": self.subsample}  # fmt: skip
        return replace(settings, parameters=settings.parameters | native)


class PairwiseBoost(ListBooster):
    """XGBoost's rank:pairwise on one list of all cases.

    Each round pairs every case with a random one of the other class and lowers the logistic loss of the pairs, a smooth
    form of 1 - AUC.

    Parameters
    ----------
    n_estimators, learning_rate
        As in `SGBAP`.
    max_depth : int, default 6
        Most conditions on a path of a tree.
    min_child_weight : float, default 0.0
        Least sum of curvature in a leaf; pairs of one long list have little.
    reg_lambda, subsample, colsample_bytree, max_bin, early_stopping_rounds, cv
        As in `SGBAP`.
    budget, pos_label, categorical_features, keep_columns
        As in `MetaAP`.
    device, on_interrupt, n_jobs, random_state, verbose
        As in `SGBAP`.

    Attributes
    ----------
    trees_, n_rounds_, learning_curve_, booster_
        As in `SGBAP`.
    rates_, cutoff_, columns_, classes_
        As in all rankers.

    Notes
    -----
    XGBoost's ranking takes no weights of cases, so cases are repeated: whole weights are numbers of copies; with other
    weights, copies are drawn in proportion (`copies_of`). 1 to 3 threads gave the same model, which XGBoost does not
    promise.

    Examples
    --------
    >>> from toprank import PairwiseBoost
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(2000, random_state=0)
    >>> model = PairwiseBoost(n_estimators=30, cv=0, budget=20).fit(data.X, data.y)
    >>> len(model.top_k(data.X)), model.n_rounds_
    (20, 30)
    """

    _objective = "rank:pairwise"


class MAPBoost(ListBooster):
    """XGBoost's rank:map on one list of all cases.

    Each round pairs every case with a random one of the other class, and weights a pair by what average precision would
    change if the two changed places. `LambdaMART` does the same with all pairs, or with all of those at the top.

    Parameters
    ----------
    n_estimators, learning_rate
        As in `SGBAP`.
    max_depth : int, default 6
        Most conditions on a path of a tree.
    min_child_weight : float, default 0.0
        Least sum of curvature in a leaf; pairs of one long list have little.
    reg_lambda, subsample, colsample_bytree, max_bin, early_stopping_rounds, cv
        As in `SGBAP`.
    budget, pos_label, categorical_features, keep_columns
        As in `MetaAP`.
    device, on_interrupt, n_jobs, random_state, verbose
        As in `SGBAP`.

    Attributes
    ----------
    trees_, n_rounds_, learning_curve_, booster_
        As in `SGBAP`.
    rates_, cutoff_, columns_, classes_
        As in all rankers.

    Notes
    -----
    Weights of cases are copies, as in `PairwiseBoost`.

    Examples
    --------
    >>> from toprank import MAPBoost
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(2000, random_state=0)
    >>> model = MAPBoost(n_estimators=30, cv=0, budget=20).fit(data.X, data.y)
    >>> len(model.top_k(data.X)), model.n_rounds_
    (20, 30)
    """

    _objective = "rank:map"
