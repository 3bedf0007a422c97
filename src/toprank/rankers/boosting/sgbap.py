"""`SGBAP`: stochastic gradient boosting on a smooth surrogate of average precision."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np

from toprank._compat import HasMethods, Interval, StrOptions
from toprank._core.threads import Threads
from toprank.data.cases import Cases
from toprank.errors import InputError, warn_caller
from toprank.rankers.boosting.boosted_ranker import Followed
from toprank.rankers.boosting.booster import BOOSTER_CONSTRAINTS, MOST_DEPTH
from toprank.rankers.boosting.losses import Blend, ExponentialAP, Logistic, Loss, SigmoidAP
from toprank.rankers.boosting.warm_booster import WarmBooster
from toprank.rankers.ensemble.extra_trees import ExtraTrees
from toprank.rankers.unseen import Fold, Unseen, has_folds
from toprank.words.counts import plural

BLEND = 0.8
"""Share of the surrogate where it pays."""

DEPTH, ADDITIVE = 6, 1
"""Depth of the trees if columns interact, and if each acts on its own."""

FEW_POSITIVES, FEWEST_POSITIVES = 100, 50
"""With fewer positives than the first, boosting starts from a forest. With fewer than the second, held-out cases cannot
tell which depth ranks better."""

NOT_ALL_TRIED = (
    "The folds were interrupted before all settings were tried: the model has the best of those whose folds are done. "
    "Ctrl-C again ends the last fit."
)


class Setup(NamedTuple):
    """What folds choose among."""

    depth: int
    blend: float


@dataclass(eq=False, repr=False)
class SGBAP(WarmBooster):
    """Stochastic gradient boosting on average precision.

    Trees are grown by XGBoost on the gradient of 1 - AP, in which a smooth function takes the place of "ranks at or
    above". The first rounds lower the logistic loss, the others both losses together, which ranks better than either
    alone; `SGBAP.paper()` is the published algorithm. The number of rounds is chosen by the average precision of
    held-out cases, which also say whether the surrogate pays, and trees of several conditions.

    Parameters
    ----------
    surrogate : {"exp", "sigmoid"}, default "exp"
        "exp": exponentials (SGBAP of the paper); "sigmoid": sigmoids (SGBAPsig), nearer to AP, with gradients that
        vanish more easily.
    alpha : float, default 0.7
        Steepness of the surrogate: the larger, the more the very top counts.
    blend : float or "auto", default "auto"
        Share of the surrogate in a round, the rest is the logistic loss. 1 = the surrogate alone. "auto": 0.8, or 0 if
        held-out cases are ranked better without the surrogate; folds try both. With cv=0, or after the forest of
        init="auto", it is 0.8.
    warm_up : int, default 50
        First rounds, which lower the logistic loss alone.
    n_estimators : int, default 400
        Most trees; exactly so many with cv=0.
    learning_rate : float, default 0.05
    max_depth : int or "auto", default "auto"
        Most conditions on a path of a tree. "auto": 6, or 1, so that columns add up, if held-out cases are ranked
        better so; folds try 1 with the logistic loss alone, unless `blend` is a number. With cv=0, fewer than 50
        positives, or after the forest of init="auto", it is 6.
    min_child_weight, reg_lambda : float, default 1.0
        XGBoost's penalties: least sum of curvature in a leaf, and what is added to it.
    subsample : float, default 0.8
        Share of the cases that a round sees, drawn one by one; some of each class. Gradients at the top would otherwise
        feed on themselves.
    colsample_bytree : float, default 0.8
        Share of the columns that a tree may use, but at least two columns.
    max_bin : int, default 256
        Most bins of a number column.
    early_stopping_rounds : int or None, default 50
        Rounds without a gain in held-out average precision after which the folds stop.
    line_search : bool, default False
        True: algorithm 1 of the paper, with regression trees on the gradient and the best step along each tree. False:
        Newton steps.
    init : estimator, "auto" or None, default "auto"
        Warm start: a ranker of this library or a classifier of scikit-learn, refitted on parts of the table (16 times
        with cv=5). Boosting starts from its out-of-fold scores, scaled to log-odds, and its score is part of the score.
        It reads the encoded table: categories as codes, missing values as NaN. Rankers of this library are saved in the
        model file; with other estimators, `save` raises an error. "auto": `ExtraTrees` if fewer than 100 cases are
        positive, as boosted trees alone learn little from so few; else None, as with cv=0.
    cv : int, splitter or iterable, default 5
        Folds to choose the number of rounds and to estimate hit rates of new cases; 0 turns both off.
    budget, pos_label, categorical_features, keep_columns
        As in `MetaAP`.
    device : str, default "cpu"
        "cuda" grows the trees on a GPU.
    on_interrupt : {"raise", "keep"}, default "raise"
        "keep": Ctrl-C ends the fit with the rounds done so far.
    n_jobs : int or None
        Threads; -1 = all. The model does not depend on it.
    random_state : int, RandomState or None
    verbose : int
        1 shows a progress line with the average precision of held-out cases.

    Attributes
    ----------
    trees_ : AdditiveTrees
    n_rounds_ : int
    blend_ : float
        The share of the surrogate after the warm-up; 0 if the model has no more rounds than `warm_up`.
    max_depth_ : int
        The most conditions that a path of a tree could have.
    init_ : estimator or None
        The fitted `init`.
    learning_curve_ : dict of arrays
        Average precision and precision at k of held-out cases after each round; k is the budget, scaled to the held-out
        cases, or the number of positives without one.
    booster_ : xgboost.Booster
        The model for XGBoost's own tools.
    rates_, cutoff_, columns_, classes_
        As in all rankers.

    Examples
    --------
    >>> from toprank import SGBAP
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(2000, random_state=0)
    >>> model = SGBAP(n_estimators=30, cv=0, budget=20).fit(data.X, data.y)
    >>> alerts = model.top_k(data.X, 3)
    >>> alerts.columns[:3].tolist(), len(alerts)
    (['rank', 'row', 'score'], 3)

    Trees on top of another ranker, whose score is then one of the reasons:

    >>> from toprank import KNN
    >>> model = SGBAP(init=KNN(cv=0), n_estimators=30, cv=0).fit(data.X, data.y)
    >>> any(step.feature == "score of KNN" for step in model.explain(data.X.head(1))[0].steps)
    True
    """

    _parameter_constraints = {
        **BOOSTER_CONSTRAINTS,
        "max_depth": [*BOOSTER_CONSTRAINTS["max_depth"], StrOptions({"auto"})],
        "surrogate": [StrOptions({"exp", "sigmoid"})],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "blend": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "warm_up": [Interval(Integral, 0, None, closed="left")],
        "line_search": ["boolean"],
        "init": [HasMethods(["fit"]), StrOptions({"auto"}), None],
    }

    surrogate: str = "exp"
    _: KW_ONLY
    alpha: float = 0.7
    blend: float | str = "auto"
    warm_up: int = 50
    n_estimators: int = 400
    learning_rate: float = 0.05
    max_depth: int | str = "auto"
    min_child_weight: float = 1.0
    reg_lambda: float = 1.0
    subsample: float = 0.8
    colsample_bytree: float = 0.8
    max_bin: int = 256
    early_stopping_rounds: int | None = 50
    line_search: bool = False
    init: Any = "auto"
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

    @classmethod
    def paper(cls, surrogate: str = "exp", **parameters: Any) -> Self:
        """SGBAP as published: the surrogate alone from the first round, half of the cases per round, the line search.

        The paper tunes the number of rounds, the depth and alpha by cross-validation; pass them as parameters. It names
        no shrinkage: a learning_rate below 1 takes that share of each step.

        Examples
        --------
        >>> SGBAP.paper("sigmoid", max_depth=3).line_search
        True
        """
        published: dict[str, Any] = {
            "alpha": 1.0, "blend": 1.0, "warm_up": 0, "subsample": 0.5, "learning_rate": 1.0, "max_depth": DEPTH,
            "colsample_bytree": 1.0, "line_search": True, "init": None,
        }  # fmt: skip
        return cls(surrogate, **published | parameters)

    def _fit_model(self, data: Cases, threads: Threads) -> Unseen | None:
        self._use(self._setups()[0])
        unseen = super()._fit_model(data, threads)
        self.blend_ = self._used_blend()
        return unseen

    def _init_to_fit(self) -> Any:
        if not isinstance(self.init, str):
            return self.init
        return ExtraTrees(cv=0) if self._has_forest_first() else None

    def _has_forest_first(self) -> bool:
        """Whether init="auto" stands for a forest."""
        n_positives = self.n_positives_ * self._weight_unit
        return isinstance(self.init, str) and has_folds(self.cv) and 2 <= n_positives < FEW_POSITIVES

    def _setups(self) -> list[Setup]:
        """What folds try; without folds, the first one is used.

        The surrogate learns from the top of the training ranking. Where the model is still far from the best that trees
        can do, it overfits, and the logistic loss gets further; so do trees of several conditions where columns add up.
        After a forest, with few positives, a choice by folds gains nothing.
        """
        depth = DEPTH if isinstance(self.max_depth, str) else int(self.max_depth)
        blends = [BLEND, 0.0] if isinstance(self.blend, str) else [float(self.blend)]
        if self._has_forest_first():
            return [Setup(depth, blends[0])]
        setups = [Setup(depth, blend) for blend in blends]
        has_enough_positives = self.n_positives_ * self._weight_unit >= FEWEST_POSITIVES
        if isinstance(self.max_depth, str) and has_enough_positives:
            setups.append(Setup(ADDITIVE, blends[-1]))
        return setups

    def _use(self, setup: Setup) -> None:
        self.max_depth_, self.blend_ = setup

    def _depth(self) -> int:
        return self.max_depth_

    def _used_blend(self) -> float:
        """The share of the surrogate in the rounds of the model; 0 if all of them belong to the warm-up."""
        return self.blend_ if self.n_rounds_ > self.warm_up else 0.0

    def _follow_folds(self, data: Cases, folds: list[Fold], threads: Threads, label: str = "folds") -> Followed:
        """Boost with all setups that folds are to choose among, and keep the one that ranks held-out cases best."""
        setups = self._setups()
        best, kept = None, setups[0]
        for i, setup in enumerate(setups):
            self._use(setup)
            try:
                found = super()._follow_folds(data, folds, threads, f"{label}{_pass_in_words(setups, i)}")
            except KeyboardInterrupt:  # with no round that could be kept, or a second one
                if self.on_interrupt != "keep" or best is None:
                    raise
                warn_caller(NOT_ALL_TRIED)
                break
            if best is None or self._is_better(found, setup, best, kept):
                best, kept = found, setup
            elif not found.is_complete:
                warn_caller(NOT_ALL_TRIED)
            if not found.is_complete:
                break
        assert best is not None
        self._use(kept)
        return best

    @staticmethod
    def _is_better(found: Followed, setup: Setup, best: Followed, kept: Setup) -> bool:
        """Whether a setup ranks held-out cases better; ties at one depth go to the setup without the surrogate."""
        gain = found.average_precision - best.average_precision
        return gain > 0 or (gain == 0 and found.is_complete and setup.depth == kept.depth)

    def _loss_of(self, turn: int) -> Loss:
        if turn < self.warm_up or self.blend_ == 0:
            return Logistic()
        surrogate = ExponentialAP(self.alpha) if self.surrogate == "exp" else SigmoidAP(self.alpha)
        return surrogate if self.blend_ == 1 else Blend(surrogate, self.blend_)

    def _facts(self) -> dict[str, str]:
        by_folds = ", chosen by folds" if self.learning_curve_ else ""
        has_forest_first = self.init == "auto" and self.start_ is not None and self.start_.slope > 0
        has_blend_by_folds = self.blend == "auto" and not has_forest_first
        has_depth_by_folds = self.max_depth == "auto" and self.n_positives_ >= FEWEST_POSITIVES and not has_forest_first
        depth = f"of up to {self.max_depth_} conditions in a row"
        if self.max_depth_ == ADDITIVE:
            depth = "of one condition each, so that columns add up"
        start = {"start": f"a forest, as fewer than {FEW_POSITIVES} cases are positive"} if has_forest_first else {}
        return super()._facts() | start | {
            "rounds": f"{self.n_rounds_:,}{by_folds}",
            "blend": self._blend_in_words() + (by_folds if has_blend_by_folds else ""),
            "trees": depth + (by_folds if has_depth_by_folds else ""),
        }  # fmt: skip

    def _blend_in_words(self) -> str:
        if self.blend_ == 0:
            return "the logistic loss alone"
        shares = f"{self.blend_:g} of the surrogate of average precision and {1 - self.blend_:g} of the logistic loss"
        after = f"{plural(self.warm_up, 'round')} of the logistic loss, then " if self.warm_up else ""
        return after + ("the surrogate of average precision alone" if self.blend_ == 1 else shares)

    def _to_arrays(self) -> dict[str, np.ndarray]:
        return super()._to_arrays() | {"blend": np.array([self.blend_]), "max_depth": np.array([self.max_depth_])}

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        if self.start_ is None and self._has_forest_first():  # a file from before init="auto"
            self.init = None
        given = self._setups()[0]  # of files that were written before folds chose
        blend = arrays.get("blend", np.array([given.blend]))
        depth = arrays.get("max_depth", np.array([given.depth], np.int64))
        if blend.shape != (1,) or blend.dtype != np.float64 or not 0 <= blend[0] <= 1:
            raise InputError("The share of its surrogate is not a number from 0 to 1.")
        if depth.shape != (1,) or depth.dtype != np.int64 or not 1 <= depth[0] <= MOST_DEPTH:
            raise InputError(f"The most conditions of its trees is not a number from 1 to {MOST_DEPTH}.")
        self._use(Setup(int(depth[0]), float(blend[0])))
        self.blend_ = self._used_blend()


def _pass_in_words(setups: list[Setup], i: int) -> str:
    """What the progress line says of a pass after the word "folds".

    Examples
    --------
    >>> setups = [Setup(6, 0.8), Setup(6, 0.0), Setup(1, 0.0)]
    >>> _pass_in_words(setups, 1), _pass_in_words(setups, 2)
    (' without the surrogate (2 of 3)', ' with single conditions (3 of 3)')
    """
    if len(setups) == 1:
        return ""
    what = ""
    if setups[i].depth != setups[0].depth:
        what = " with single conditions"
    elif setups[i].blend != setups[0].blend:
        what = " without the surrogate"
    return f"{what} ({i + 1} of {len(setups)})"
