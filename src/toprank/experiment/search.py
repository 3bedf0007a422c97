"""Tuning: which setting of a method is best, judging by the training rows alone.

Work is shared: a fold's rows are encoded (`make_encoder`) and binned once for all settings, and if one fit gives all
values of a parameter (depths of a tree, rounds of a booster), there is only one fit.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils.validation import has_fit_parameter

from toprank._compat import take_rows
from toprank.data.shared_table import SharedTable
from toprank.errors import InputError
from toprank.experiment.measures import score_of
from toprank.experiment.plan import MethodUse, Protocol
from toprank.experiment.registry import Method, Reads, find_method
from toprank.rankers.reading import as_read_by

Setting = dict[str, Any]
Folds = Sequence[tuple[np.ndarray, np.ndarray]]
MAX_CATEGORIES = 100
"""Maximum number of columns that one categorical column may become; the rarest categories share one."""


@dataclass(frozen=True)
class Tuning:
    """The best setting, its score, and the mean score of every setting tried (NaN: dropped on the way)."""

    setting: Setting
    score: float | None
    tried: list[tuple[Setting, float]]


@dataclass(frozen=True)
class Tuner:
    """How one method is tuned on one set of training rows.

    `before_fit` is called before every fit, for time limits. `groups` says who each of the rows belongs to: estimators
    that take groups keep them together in their own folds.
    """

    use: MethodUse
    protocol: Protocol
    random_state: int = 0
    before_fit: Callable[[], None] = lambda: None
    groups: np.ndarray | None = None

    @property
    def method(self) -> Method:
        """The method of the plan."""
        return find_method(self.use.method)

    @property
    def reads(self) -> Reads:
        """What the method gets."""
        is_forced = self.protocol.encoding == "numbers" and self.method.reads == "frame"
        return "numbers" if is_forced else self.method.reads

    def tune(self, X: Any, y: np.ndarray, folds: Folds) -> Tuning:
        """Best setting on (X, y); ties go to the first. With a single setting, nothing is fitted."""
        if self.use.tuner == "optuna":
            return self._ask_optuna(X, y, folds)
        settings = product_of(self.use.space)
        if len(settings) == 1:
            return Tuning(settings[0], None, [])
        if self.use.judge == "out-of-bag":
            scores = self._out_of_bag(settings, X, y)
        elif self.use.tuner == "halving":
            scores = self._halve(settings, X, y, folds)
        else:
            scores = self.cross_validate(settings, X, y, folds).mean(axis=1)
        best = int(np.nanargmax(scores))
        return Tuning(settings[best], float(scores[best]), list(zip(settings, scores.tolist(), strict=True)))

    def cross_validate(self, settings: Sequence[Setting], X: Any, y: np.ndarray, folds: Folds) -> np.ndarray:
        """Score of each setting on each held-out fold, float64 (n_settings, n_folds)."""
        out = np.full((len(settings), len(folds)), np.nan)
        depths = [setting["leaf_depth"] for setting in settings if "leaf_depth" in setting]  # MetaAP: grown together
        for i, (inside, held_out) in enumerate(folds):
            encoder = make_encoder(self.reads).fit(take_rows(X, inside))
            known = SharedTable(encoder.transform(take_rows(X, inside)), leaf_depths=depths)
            new = SharedTable(encoder.transform(take_rows(X, held_out)))
            part = self if self.groups is None else replace(self, groups=self.groups[inside])
            for positions, scores in part.score_settings(settings, known, y[inside], new):
                for position, score in zip(positions, scores, strict=True):
                    out[position, i] = score_of(self.protocol.scoring, y[held_out], score)
        return out

    def score_settings(
        self, settings: Sequence[Setting], known: Any, y: np.ndarray, new: Any
    ) -> Iterator[tuple[list[int], np.ndarray]]:
        """Positions of settings covered by one fit, and their scores of new rows, float64 (n_positions, n)."""
        sweep = self.method.sweep
        if sweep is not None and not all(sweep.applies({**self.use.parameters, **setting}) for setting in settings):
            sweep = None
        for positions in groups_of(settings, sweep.parameter if sweep else None):
            values = [settings[p].get(sweep.parameter) if sweep else None for p in positions]
            largest = positions[int(np.argmax([np.inf if value is None else float(value) for value in values]))]
            model = self.fit(settings[largest], known, y)
            if sweep is None or len(positions) == 1:
                yield positions, scores_of(model, new)[None, :]
            else:
                yield positions, np.asarray(sweep.scores(model, as_read_by(model, new), values))

    def fit(self, setting: Setting, X: Any, y: np.ndarray) -> Any:
        """A fitted estimator; X is encoded for the method. A seed in the plan overrides the trial's."""
        self.before_fit()
        parameters = {"random_state": self.random_state, **self.use.parameters, **setting}
        model = self.method.make(n_jobs=1, **parameters)
        takes_groups = self.groups is not None and has_fit_parameter(model, "groups")
        return model.fit(as_read_by(model, X), y, **({"groups": self.groups} if takes_groups else {}))

    def _out_of_bag(self, settings: Sequence[Setting], X: Any, y: np.ndarray) -> np.ndarray:
        """Out-of-bag score of a forest of each setting: no fold is held out, and no fewer rows are learned from."""
        known = SharedTable(make_encoder(self.reads).fit(X).transform(X))
        models = [self.fit(setting, known, y) for setting in settings]
        if not all(hasattr(model, "oob_decision_function_") for model in models):
            raise InputError(f"{self.method.title} has no out-of-bag score. Hint: use the judge cv.")
        scores = []
        for model in models:
            judged = np.asarray(model.oob_decision_function_)
            judged = judged[:, 1] if judged.ndim == 2 else judged
            seen = np.isfinite(judged)
            scores.append(score_of(self.protocol.scoring, y[seen], judged[seen]))
        return np.array(scores)

    def _halve(self, settings: Sequence[Setting], X: Any, y: np.ndarray, folds: Folds) -> np.ndarray:
        """Mean score of the settings that survive: after every fold the worse half is dropped."""
        alive, scores = np.arange(len(settings)), np.full((len(settings), len(folds)), np.nan)
        for i, fold in enumerate(folds):
            scores[alive, i] = self.cross_validate([settings[a] for a in alive.tolist()], X, y, [fold])[:, 0]
            if i + 1 < len(folds):
                order = np.argsort(-scores[alive, : i + 1].mean(axis=1), kind="stable")
                alive = np.sort(alive[order[: max(1, (len(alive) + 1) // 2)]])
        return scores.mean(axis=1)  # NaN if a fold is missing

    def _ask_optuna(self, X: Any, y: np.ndarray, folds: Folds) -> Tuning:
        """Best of `n_candidates` settings that Optuna's tree-structured Parzen estimator proposes."""
        import optuna

        with quiet_optuna(optuna):
            sampler = optuna.samplers.TPESampler(seed=self.random_state)
            study = optuna.create_study(direction="maximize", sampler=sampler)
            tried: dict[str, tuple[Setting, float]] = {}
            for _ in range(self.use.n_candidates):
                candidate = study.ask()
                setting = {name: _suggest(candidate, name, values) for name, values in self.use.space.items()}
                key = json.dumps(setting, sort_keys=True, default=str)
                if key not in tried:
                    tried[key] = (setting, float(self.cross_validate([setting], X, y, folds).mean()))
                study.tell(candidate, tried[key][1])
        best = max(tried.values(), key=lambda pair: pair[1])
        return Tuning(best[0], best[1], list(tried.values()))


@contextmanager
def quiet_optuna(optuna: Any) -> Iterator[None]:
    """Let Optuna log errors only, until the end of the block."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _suggest(candidate: Any, name: str, values: Any) -> Any:
    """A value that Optuna proposes: from a list, or from a range of ints or floats."""
    if not isinstance(values, Mapping):
        return values[candidate.suggest_categorical(name, list(range(len(values))))]
    low, high, log, step = values["low"], values["high"], bool(values.get("log")), values.get("step")
    if isinstance(low, int) and isinstance(high, int):
        return candidate.suggest_int(name, low, high, log=log, step=step or 1)
    return candidate.suggest_float(name, low, high, log=log, step=step)


def product_of(space: Mapping[str, Sequence[Any]]) -> list[Setting]:
    """All combinations of a space; one empty setting if there is nothing to try."""
    return [dict(zip(space, values, strict=True)) for values in itertools.product(*space.values())]


def groups_of(settings: Sequence[Setting], parameter: str | None) -> list[list[int]]:
    """Groups of positions of settings that differ only in the given parameter."""
    groups: dict[str, list[int]] = {}
    for position, setting in enumerate(settings):
        rest = {k: v for k, v in setting.items() if k != parameter} if parameter in setting else {"": position}
        groups.setdefault(json.dumps(rest, sort_keys=True, default=str), []).append(position)
    return list(groups.values())


def scores_of(model: Any, X: Any) -> np.ndarray:
    """Scores of rows by whatever the estimator offers: larger is more suspicious."""
    X = as_read_by(model, X)
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), np.float64)
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), np.float64)[:, 1]
    return np.asarray(model.predict(X), np.float64)


# --- encoding -----------------------------------------------------------------------------------------------------


def make_encoder(reads: Reads) -> BaseEstimator:
    """Transformer from a data frame to what a method reads.

    Numbers: numeric columns first, missing values replaced by the median and flagged in a column of their own; then one
    column per category, with missing values as a category. Scaled: the numeric columns at mean 0 and deviation 1.
    """
    return FunctionTransformer() if reads == "frame" else FrameEncoder(is_scaled=reads == "scaled")


class FrameEncoder(TransformerMixin, BaseEstimator):
    """Numbers of a data frame: numeric columns, flags of missing values, one column per category."""

    def __init__(self, is_scaled: bool = False):
        self.is_scaled = is_scaled

    def fit(self, X: Any, y: Any = None) -> FrameEncoder:
        """Learn medians, scales and categories of the training rows."""
        numeric = [name for name in X.columns if X[name].dtype.kind in "fiu"]
        others = [name for name in X.columns if name not in numeric]
        steps: list[Any] = [SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)]
        if self.is_scaled:
            steps.append(StandardScaler())
        one_hot = OneHotEncoder(
            handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES, sparse_output=False
        )
        self.transformer_ = ColumnTransformer([
            ("numbers", make_pipeline(*steps), numeric),
            ("categories", make_pipeline(FunctionTransformer(_as_text), one_hot), others),
        ])  # fmt: skip
        self.transformer_.set_output(transform="default").fit(X)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the numbers as float64 in C order."""
        return np.ascontiguousarray(self.transformer_.transform(X), np.float64)


def _as_text(frame: Any) -> Any:
    """Categories as text; missing values become the category "(missing)"."""
    return frame.astype(object).where(frame.notna(), "(missing)").astype(str)
