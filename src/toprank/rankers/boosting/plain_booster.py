"""`PlainBooster`: a booster without parameters of its own, and `LogisticBoost`, the simplest one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toprank.rankers.boosting.booster import BOOSTER_CONSTRAINTS, Booster
from toprank.rankers.boosting.losses import Logistic, Loss


@dataclass(kw_only=True, eq=False, repr=False)
class PlainBooster(Booster):
    """Base of the boosters that differ in the loss alone; parameters are those of `SGBAP`."""

    _parameter_constraints = BOOSTER_CONSTRAINTS

    n_estimators: int = 400
    learning_rate: float = 0.05
    max_depth: int = 6
    min_child_weight: float = 1.0
    reg_lambda: float = 1.0
    subsample: float = 0.8
    colsample_bytree: float = 0.8
    max_bin: int = 256
    early_stopping_rounds: int | None = 50
    cv: Any = 5
    budget: int | float | None = None
    pos_label: Any = None
    categorical_features: Any = None
    keep_columns: Any = None
    device: str = "cpu"
    on_interrupt: str = "raise"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0


class LogisticBoost(PlainBooster):
    """Gradient boosting on the logistic loss (GB-Logistic of the SGBAP paper).

    It asks how likely a case is to be positive and ranks by the answer. Trees are grown by XGBoost. With the parameters
    and defaults of `SGBAP(max_depth=6)`, it shows what the surrogate of average precision adds.

    Parameters
    ----------
    n_estimators, learning_rate
        As in `SGBAP`.
    max_depth : int, default 6
        Most conditions on a path of a tree.
    min_child_weight, reg_lambda, subsample, colsample_bytree, max_bin, early_stopping_rounds, cv
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

    Examples
    --------
    >>> from toprank import LogisticBoost
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(2000, random_state=0)
    >>> model = LogisticBoost(n_estimators=30, cv=0, budget=20).fit(data.X, data.y)
    >>> len(model.top_k(data.X)), model.n_rounds_
    (20, 30)
    """

    def _loss_of(self, turn: int) -> Loss:
        return Logistic()
