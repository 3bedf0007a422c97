"""`Booster`: a ranker whose score is a sum of trees that XGBoost grows."""

from __future__ import annotations

import json
import warnings
from abc import abstractmethod
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank._compat import Interval
from toprank._core.interrupts import interrupts_held_back
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.cases import Cases
from toprank.errors import InputError
from toprank.rankers.boosting.boosted_ranker import BOOSTED_CONSTRAINTS, BoostedRanker
from toprank.rankers.boosting.losses import Loss, RowSums
from toprank.rankers.boosting.rounds import Rounds, Rows, Settings, import_xgboost
from toprank.rankers.boosting.xgboost_trees import trees_from_json
from toprank.rankers.seeds import seed_of
from toprank.rankers.unseen import Unseen
from toprank.tree.weights import weight_unit

LEAST_COLUMNS = 2
"""Fewest columns that a tree may use, if there are so many."""

FEW_POSITIVES = 20
"""With fewer positives, the least curvature of a leaf is lowered in proportion."""

MOST_DEPTH = 30
"""Most conditions on a path of a tree that may be asked for."""

BOOSTER_CONSTRAINTS: dict[str, list[Any]] = {
    **BOOSTED_CONSTRAINTS,
    "max_depth": [Interval(Integral, 1, MOST_DEPTH, closed="both")],
    "min_child_weight": [Interval(Real, 0, None, closed="left")],
    "reg_lambda": [Interval(Real, 0, None, closed="left")],
    "subsample": [Interval(Real, 0, 1, closed="right")],
    "colsample_bytree": [Interval(Real, 0, 1, closed="right")],
    "max_bin": [Interval(Integral, 2, 65_535, closed="both")],
    "device": [str],
}
"""scikit-learn's checks of the parameters that all boosters share."""


class Booster(BoostedRanker):
    """Base of the rankers that XGBoost grows; a subclass says which loss each round lowers.

    Scoring and explaining need no XGBoost: its trees are converted, with the same scores bit for bit.
    """

    learning_rate: float
    max_depth: Any
    min_child_weight: float
    reg_lambda: float
    subsample: float
    colsample_bytree: float
    max_bin: int
    device: str
    line_search = False
    _rounds: type[Rounds] = Rounds
    _json: bytes
    _weight_unit = 1.0

    @abstractmethod
    def _loss_of(self, turn: int) -> Loss:
        """The loss that a round lowers; rounds count from 0."""

    def _fit_model(self, data: Cases, threads: Threads) -> Unseen | None:
        import_xgboost()
        check_device(self.device)
        self._weight_unit = weight_unit(data.weight)
        try:
            return super()._fit_model(data, threads)
        finally:
            del self._weight_unit

    def _depth(self) -> int:
        """The most conditions on a path of a tree."""
        return self.max_depth

    def _start(
        self, data: Any, rows: np.ndarray, weight: np.ndarray, threads: Threads, others: np.ndarray | None = None
    ) -> Rounds:
        held_out = None if others is None else rows_of(data, others, weight)
        return self._rounds(rows_of(data, rows, weight), self._settings(), held_out, RowSums(threads))

    def _settings(self) -> Settings:
        """How each booster of the fit is grown."""
        seed = seed_of(self.random_state)
        parameters = {
            "tree_method": "hist", "device": self.device, "base_score": 0.0, "seed": seed, "verbosity": 0,
            "nthread": resolve_n_jobs(self.n_jobs), "max_bin": self.max_bin, "eta": self.learning_rate,
            "max_depth": self._depth(), "reg_lambda": self.reg_lambda,
            # A handful of positives has little curvature in all, and trees should still grow.
            "min_child_weight": min(self.min_child_weight, self.n_positives_ * self._weight_unit / FEW_POSITIVES),
            # A tree of one column cannot show how two columns act together.
            "colsample_bytree": min(1.0, max(self.colsample_bytree, (LEAST_COLUMNS + 0.5) / len(self.columns_))),
        }  # fmt: skip
        settings = Settings(parameters, self._loss_of, self.subsample, seed, weight_unit=self._weight_unit)
        if not self.line_search:
            return settings
        parameters |= {"eta": 1.0, "reg_lambda": 0.0}  # leaves are means of gradients, and steps are chosen
        return replace(settings, line_search=True, shrinkage=self.learning_rate)

    def _take(self, growing: Any) -> None:
        self._take_json(growing.to_json())

    def _take_json(self, raw: bytes) -> None:
        """Set the trees from XGBoost's JSON."""
        self.trees_ = trees_from_json(raw, len(self.columns_))
        self._json = raw

    @property
    def booster_(self) -> Any:
        """The trees as a Booster of XGBoost, for its own tools; columns are those of `columns_`.

        XGBoost reads the JSON of the model file for it: ask for it only if you trust the file.
        """
        check_is_fitted(self)
        booster = import_xgboost().Booster()
        booster.load_model(bytearray(self._json))
        return booster

    def _plain_parts(self) -> dict[str, Any]:
        return {"booster": json.loads(self._json)}

    def _trees_to_arrays(self) -> dict[str, np.ndarray]:
        return {"booster": np.frombuffer(self._json, np.uint8), "cover": self.trees_.cover}

    def _trees_from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        self._take_json(arrays["booster"].astype(np.uint8).tobytes())
        cover = arrays["cover"]
        if cover.shape != self.trees_.cover.shape or cover.dtype != np.float64:
            raise InputError("Its trees and their weights do not fit together.")
        self.trees_ = self.trees_.with_given_cover(cover).check()


def feature_types(data: Cases) -> list[str]:
    """XGBoost's type of each column: "c" for categories, "q" for numbers and for bands, which are cut in order."""
    kinds = zip(data.is_categorical, data.columns, strict=True)
    return ["c" if is_category and not column.is_ordered else "q" for is_category, column in kinds]


def rows_of(data: Cases, rows: np.ndarray, weight: np.ndarray, margin: np.ndarray | None = None) -> Rows:
    """Some rows of a table; `weight` is that of all rows, `margin` that of these."""
    return Rows(data.X[rows], data.is_positive[rows], weight[rows], feature_types(data), margin=margin)


def check_device(device: str) -> None:
    """Raise InputError if XGBoost cannot use a device."""
    if device == "cpu":
        return
    if not device.startswith("cuda"):
        raise InputError(f"device is {device!r}, expected 'cpu', 'cuda' or 'cuda:0'. Hint: the default is 'cpu'.")
    xgboost = import_xgboost()
    try:
        with warnings.catch_warnings(), interrupts_held_back():
            warnings.simplefilter("ignore")  # XGBoost takes the CPU instead, and says so now and then
            table = xgboost.QuantileDMatrix(np.array([[0.0], [1.0]], np.float32))
            probe = xgboost.Booster({"device": device, "tree_method": "hist", "verbosity": 0}, [table])
            probe.boost(table, iteration=0, grad=np.ones(2, np.float32), hess=np.ones(2, np.float32))
            used = json.loads(probe.save_config())["learner"]["generic_param"]["device"]
        found = "no GPU was found" if used == "cpu" else ""
    except xgboost.core.XGBoostError as error:
        found = str(error).strip().splitlines()[-1]
    if found:
        raise InputError(
            f"device is {device!r}, but XGBoost cannot use a GPU here ({found}). "
            "Hint: leave device at 'cpu', or install XGBoost with CUDA and a driver."
        )
