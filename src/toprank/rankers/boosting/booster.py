"""`Booster`: a ranker whose score is a sum of trees that XGBoost grows."""

from __future__ import annotations

import json
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank._compat import Interval, StrOptions
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.cases import Cases
from toprank.data.encoding import original_values
from toprank.errors import InputError
from toprank.explain import Reason, VoteExplanation, explain_sums, sum_reasons
from toprank.explain.values import Originals
from toprank.explain.votes import SUM
from toprank.files.model_file import without_prefix
from toprank.metrics import average_precision, precision_at_k
from toprank.rankers.base import RANKER_CONSTRAINTS, Ranker
from toprank.rankers.boosting.losses import Here, Loss
from toprank.rankers.boosting.rounds import Rounds, Rows, Settings, import_xgboost
from toprank.rankers.boosting.xgboost_trees import trees_from_json
from toprank.rankers.growth import CV
from toprank.rankers.progress import progress
from toprank.rankers.unseen import Fold, HeldOut, Unseen, by_folds, held_out_folds
from toprank.tree.additive import AdditiveTrees
from toprank.words.counts import plural

COVER_ROWS = 20_000
"""Training rows, drawn at random, that explanations take means over."""

SMOOTHED_ROUNDS = 10
"""Rounds on both sides that the learning curve is averaged over before its best round is chosen."""

MOST_MORE_ROUNDS = 1.25
"""The most by which rounds are multiplied from folds to all cases."""

BOOSTER_CONSTRAINTS: dict[str, list[Any]] = {
    **RANKER_CONSTRAINTS,
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "max_depth": [Interval(Integral, 1, 30, closed="both")],
    "min_child_weight": [Interval(Real, 0, None, closed="left")],
    "reg_lambda": [Interval(Real, 0, None, closed="left")],
    "subsample": [Interval(Real, 0, 1, closed="right")],
    "colsample_bytree": [Interval(Real, 0, 1, closed="right")],
    "max_bin": [Interval(Integral, 2, 65_535, closed="both")],
    "early_stopping_rounds": [Interval(Integral, 1, None, closed="left"), None],
    "cv": CV,
    "on_interrupt": [StrOptions({"raise", "keep"})],
    "device": [str],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}
"""scikit-learn's checks of the parameters that all boosters share."""


class Booster(Ranker):
    """Base of the rankers that XGBoost grows; a subclass says which loss each round lowers.

    The number of rounds is chosen by the average precision of held-out cases, in the folds that also give the hit rates
    of new cases. Scoring and explaining need no XGBoost: its trees are converted, with the same scores bit for bit.

    Attributes
    ----------
    trees_ : AdditiveTrees
        The trees; conditions are those of XGBoost, in double precision.
    n_rounds_ : int
        Number of trees.
    learning_curve_ : dict of arrays
        "round", and "average_precision" and "precision_at_k" of held-out cases after it, means over the folds; k is the
        number of positives. Empty with cv=0.
    """

    n_estimators: int
    learning_rate: float
    max_depth: int
    min_child_weight: float
    reg_lambda: float
    subsample: float
    colsample_bytree: float
    max_bin: int
    early_stopping_rounds: int | None
    on_interrupt: str
    device: str
    verbose: int
    line_search = False
    trees_: AdditiveTrees
    learning_curve_: dict[str, np.ndarray]
    _json: bytes

    @abstractmethod
    def _loss_of(self, turn: int) -> Loss:
        """The loss that a round lowers; rounds count from 0."""

    # --- fitting ------------------------------------------------------------------------------------------------

    def _fit_model(self, data: Cases, threads: Threads) -> Unseen | None:
        check_device(self.device)
        settings = self._settings()
        folds = held_out_folds(data, self.cv, self.random_state)
        self.learning_curve_ = {}
        n_rounds, unseen = self.n_estimators, None
        if folds:
            with self._interruptible("choosing the number of rounds"):
                n_rounds, unseen = self._follow_folds(data, folds, settings, Here(threads))
        self._take_json(self._grow(data, settings, n_rounds, Here(threads)))
        rows = data.sample(COVER_ROWS)
        weight = np.ones(len(rows)) if data.weight is None else data.weight[rows]
        self.trees_ = self.trees_.with_cover(data.X[rows], weight)
        return unseen

    def _grow(self, data: Cases, settings: Settings, n_rounds: int, all_rows: Here) -> bytes:
        """The final booster, as JSON, on all rows."""
        rounds = Rounds(rows_of(data, data.weight), settings, all_rows=all_rows)
        with self._interruptible("the last fit", lambda: rounds.n_rounds > 0):
            for _ in progress(range(n_rounds), n_rounds, "trees", self.verbose > 0):
                rounds.step()
        return rounds.to_json()

    def _settings(self) -> Settings:
        """How each booster of the fit is grown."""
        seed = int(check_random_state(0 if self.random_state is None else self.random_state).randint(2**31 - 1))
        parameters = {
            "tree_method": "hist", "device": self.device, "base_score": 0.0, "seed": seed, "verbosity": 0,
            "nthread": resolve_n_jobs(self.n_jobs), "max_bin": self.max_bin, "eta": self.learning_rate,
            "max_depth": self.max_depth, "min_child_weight": self.min_child_weight, "reg_lambda": self.reg_lambda,
            "colsample_bytree": self.colsample_bytree,
        }  # fmt: skip
        return Settings(parameters, self._loss_of, self.subsample, seed, self.line_search)

    def _follow_folds(self, data: Cases, folds: list[Fold], settings: Settings, all_rows: Here) -> tuple[int, Unseen]:
        """Boost in all folds side by side until held-out cases gain nothing more.

        Returns the number of rounds, and the held-out cases, each scored after as many rounds as are best for the other
        folds.
        """
        runs = [FoldRun(data, fold, settings, all_rows) for fold in folds]
        patience = self.early_stopping_rounds or self.n_estimators
        steps = progress(range(self.n_estimators), self.n_estimators, "folds", self.verbose > 0, lambda: note)
        note = ""
        try:
            for turn in steps:
                for run in runs:
                    run.step()
                precision = np.array([run.precision for run in runs]).mean(axis=0)
                best = best_round(precision)
                note = f"average precision {precision[-1]:.3f}, best {precision[best - 1]:.3f} after {best} rounds"
                if turn + 1 - best >= patience:
                    break
        except KeyboardInterrupt:
            if self.on_interrupt != "keep" or min(len(run.precision) for run in runs) == 0:
                raise
            warnings.warn(KEPT.format("the folds", min(len(run.precision) for run in runs)), stacklevel=2)
        n_rounds = min(len(run.precision) for run in runs)
        curves = np.array([run.precision[:n_rounds] for run in runs])
        top = np.array([run.precision_at_k[:n_rounds] for run in runs])
        self.learning_curve_ = _curve(curves.mean(axis=0), top.mean(axis=0))
        parts = []
        for i, run in enumerate(runs):
            others = np.delete(curves, i, axis=0) if len(runs) > 1 else curves
            parts.append(run.held_out(best_round(others.mean(axis=0))))
        return rounds_of_all(best_round(curves.mean(axis=0)), len(runs)), Unseen(parts, by_folds(len(parts)))

    @contextmanager
    def _interruptible(self, what: str, has_result: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Let Ctrl-C end a part of the fit, if the rounds done so far are to be kept."""
        try:
            yield
        except KeyboardInterrupt:
            if self.on_interrupt != "keep" or not has_result():
                raise
            warnings.warn(f"{what} was interrupted: the model has the trees grown so far.", stacklevel=2)

    def _take_json(self, raw: bytes) -> None:
        """Set the trees from XGBoost's JSON."""
        self.trees_ = trees_from_json(raw, len(self.columns_))
        self._json = raw

    # --- scoring and explaining ---------------------------------------------------------------------------------

    def _score_rows(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        return self.trees_.decision_function(matrix, threads)

    def _reasons(
        self, matrix: np.ndarray, n_reasons: int, originals: Originals, gain: np.ndarray | None
    ) -> list[list[Reason]]:
        return sum_reasons(self.trees_.contributions(matrix), self.columns_, matrix, n_reasons, originals, gain)

    def explain(self, X: Any) -> list[VoteExplanation]:
        """Explain the score of each row: what each column adds to it, as exact Shapley values of the trees."""
        matrix = self._encode(X)
        score = self._score_rows(matrix, Threads())
        rate = self.rates_.at(score)
        originals = original_values(X, self._input_names)
        return explain_sums(
            self.trees_.contributions(matrix), self.columns_, matrix, score, rate, self.base_rate_, len(self.trees_),
            SUM, originals,
        )  # fmt: skip

    @property
    def n_rounds_(self) -> int:
        """Number of trees."""
        check_is_fitted(self)
        return len(self.trees_)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column in the gain of all conditions, float64 (n_features,); sums to 1."""
        check_is_fitted(self)
        return self.trees_.importances()

    @property
    def booster_(self) -> Any:
        """The model as a Booster of XGBoost, for its own tools; columns are those of `columns_`.

        XGBoost reads the JSON of the model file for it: ask for it only if you trust the file.
        """
        check_is_fitted(self)
        booster = import_xgboost().Booster()
        booster.load_model(bytearray(self._json))
        return booster

    def to_plain(self) -> dict[str, Any]:
        """Return the model as plain values for other programs: class, columns, XGBoost's JSON."""
        check_is_fitted(self)
        return {
            "class": type(self).__name__,
            "columns": [column.to_dict() for column in self.columns_],
            "booster": json.loads(self._json),
        }

    def _size_in_words(self) -> str:
        return f"{plural(len(self.trees_), 'boosted tree')}, {plural(self.trees_.n_leaves, 'leaf', 'leaves')} in all"

    def _figures(self) -> dict[str, Any]:
        inner = ~self.trees_.is_leaf
        return {"n_leaves": self.trees_.n_leaves, "n_trees": len(self.trees_), "n_conditions": int(inner.sum())}

    # --- files --------------------------------------------------------------------------------------------------

    def _to_arrays(self) -> dict[str, np.ndarray]:
        arrays = {f"curve_{name}": values for name, values in self.learning_curve_.items() if name != "round"}
        arrays |= {"booster": np.frombuffer(self._json, np.uint8), "cover": self.trees_.cover}
        return super()._to_arrays() | arrays

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self._take_json(arrays["booster"].astype(np.uint8).tobytes())
        cover = arrays["cover"]
        if cover.shape != self.trees_.cover.shape or cover.dtype != np.float64:
            raise InputError("Its trees and their weights do not fit together.")
        self.trees_ = self.trees_.with_given_cover(cover).check()
        self.learning_curve_ = _curve_from(without_prefix(arrays, "curve_"))


def _curve(precision: np.ndarray, at_k: np.ndarray) -> dict[str, np.ndarray]:
    return {"round": np.arange(1, len(precision) + 1), "average_precision": precision, "precision_at_k": at_k}


def _curve_from(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The learning curve in the arrays of a file, checked; empty without one."""
    if not arrays:
        return {}
    parts = [arrays[name] for name in ("average_precision", "precision_at_k")]
    is_sound = len({part.shape for part in parts}) == 1 and all(part.ndim == 1 for part in parts)
    if not is_sound or any(part.dtype != np.float64 or not np.all((part >= 0) & (part <= 1)) for part in parts):
        raise InputError("Its learning curve is not a list of rates per round.")
    return _curve(*parts)


KEPT = "{} were interrupted after {:,} rounds: the number of trees is the best so far. Ctrl-C again ends the last fit."


class FoldRun:
    """A booster of one fold, and how well it ranks the held-out cases after every round."""

    def __init__(self, data: Cases, fold: Fold, settings: Settings, all_rows: Here):
        self._data, self._fold = data, fold
        inside, held_out = fold.inside, fold.held_out
        types = feature_types(data)
        self._rounds = Rounds(
            Rows(data.X[inside], data.is_positive[inside], fold.weight[inside], types), settings,
            Rows(data.X[held_out], data.is_positive[held_out], fold.weight[held_out], types), all_rows,
        )  # fmt: skip
        self.precision: list[float] = []
        self.precision_at_k: list[float] = []

    def step(self) -> None:
        """One more round."""
        self._rounds.step()
        held_out, score = self._fold.held_out, self._rounds.other_score
        is_positive, weight = self._data.is_positive[held_out], self._fold.weight[held_out]
        self.precision_at_k.append(precision_at_k(is_positive, score, k=int(is_positive.sum())))
        self.precision.append(average_precision(is_positive, score, sample_weight=weight))

    def held_out(self, n_rounds: int) -> HeldOut:
        """The held-out cases, scored after some rounds."""
        trees = trees_from_json(self._rounds.to_json(), self._data.X.shape[1]).first(n_rounds)
        return HeldOut.from_fold(self._data, self._fold, trees.decision_function)


def best_round(precision: np.ndarray) -> int:
    """Number of rounds after which a learning curve is highest, when averaged over neighbouring rounds.

    Examples
    --------
    >>> best_round(np.array([0.2, 0.5, 0.9, 0.5, 0.2]))
    3
    """
    width = min(SMOOTHED_ROUNDS, len(precision) // 5)
    padded = np.pad(precision, width, mode="edge")
    smooth = np.convolve(padded, np.ones(2 * width + 1), "valid")
    return int(np.argmax(smooth)) + 1


def rounds_of_all(n_rounds: int, n_folds: int) -> int:
    """Rounds for all cases, where so many are best in folds that have a part of them.

    More cases bear more trees; on the development tables a quarter more was better than none.

    Examples
    --------
    >>> rounds_of_all(80, 5), rounds_of_all(80, 11)
    (100, 88)
    """
    return round(n_rounds * min(n_folds / max(n_folds - 1, 1), MOST_MORE_ROUNDS))


def feature_types(data: Cases) -> list[str]:
    """XGBoost's type of each column: "c" for categories, "q" for numbers."""
    return ["c" if is_category else "q" for is_category in data.is_categorical]


def rows_of(data: Cases, weight: np.ndarray | None) -> Rows:
    """Training rows with weight."""
    if weight is None:
        return Rows(data.X, data.is_positive, np.ones(len(data.X)), feature_types(data))
    kept = np.flatnonzero(weight > 0)
    return Rows(data.X[kept], data.is_positive[kept], weight[kept].astype(np.float64), feature_types(data))


def check_device(device: str) -> None:
    """Raise InputError if XGBoost cannot use a device."""
    if device == "cpu":
        return
    if not device.startswith("cuda"):
        raise InputError(f"device is {device!r}, expected 'cpu', 'cuda' or 'cuda:0'. Hint: the default is 'cpu'.")
    xgboost = import_xgboost()
    try:
        table = xgboost.QuantileDMatrix(np.array([[0.0], [1.0]], np.float32))
        probe = xgboost.Booster({"device": device, "tree_method": "hist", "verbosity": 0}, [table])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            probe.boost(table, iteration=0, grad=np.ones(2, np.float32), hess=np.ones(2, np.float32))
    except (xgboost.core.XGBoostError, UserWarning) as error:
        raise InputError(
            f"device is {device!r}, but XGBoost cannot use a GPU here ({str(error).strip().splitlines()[-1]}). "
            "Hint: leave device at 'cpu', or install XGBoost with CUDA and a driver."
        ) from error
