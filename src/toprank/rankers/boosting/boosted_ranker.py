"""`BoostedRanker`: a ranker whose score is a sum of trees that are grown one per round."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank._compat import Interval, StrOptions
from toprank._core.interrupts import first_interrupt_dropped
from toprank._core.threads import Threads
from toprank.budget import cases_of_budget
from toprank.data.cases import Cases
from toprank.errors import InputError, warn_caller
from toprank.files.model_file import without_prefix
from toprank.metrics import average_precision, precision_at_k
from toprank.rankers.additive_ranker import COVER_ROWS, AdditiveRanker
from toprank.rankers.base import RANKER_CONSTRAINTS, Ranker
from toprank.rankers.growth import FOLD_CONSTRAINTS
from toprank.rankers.progress import progress
from toprank.rankers.unseen import Fold, HeldOut, Unseen, by_folds, held_out_folds
from toprank.words.counts import plural

if TYPE_CHECKING:
    from toprank.rankers.boosting.rankboost import Stumps
    from toprank.rankers.boosting.rounds import Rounds

Result = TypeVar("Result")

SMOOTHED_ROUNDS = 10
"""Rounds on both sides that the learning curve is averaged over before its best round is chosen."""

MOST_MORE_ROUNDS = 1.25
"""The most by which rounds are multiplied from folds to all cases."""

BOOSTED_CONSTRAINTS: dict[str, list[Any]] = {
    **RANKER_CONSTRAINTS,
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "early_stopping_rounds": [Interval(Integral, 1, None, closed="left"), None],
    **FOLD_CONSTRAINTS,
    "on_interrupt": [StrOptions({"raise", "keep"})],
    "verbose": ["verbose"],
}
"""scikit-learn's checks of the parameters that all boosters share."""


@dataclass(frozen=True, eq=False)
class Followed:
    """What boosting in folds has shown."""

    n_rounds: int  # for the model of all cases
    unseen: Unseen  # the held-out cases, each scored after as many rounds as are best for the other folds
    curve: dict[str, np.ndarray]  # see `BoostedRanker.learning_curve_`
    is_complete: bool  # False: an interrupt ended it

    @property
    def average_precision(self) -> float:
        """That of held-out cases after the best round, the mean over the folds."""
        return float(self.curve["average_precision"].max())


class BoostedRanker(AdditiveRanker):
    """Base of the rankers that add one tree per round; a subclass says how they grow.

    The number of rounds is chosen by the average precision of held-out cases, in the folds that also give the hit rates
    of new cases.
    """

    n_estimators: int
    early_stopping_rounds: int | None
    on_interrupt: str
    verbose: int
    # "round", and "average_precision" and "precision_at_k" of held-out cases after it, means over the folds; k is the
    # `budget`, scaled to the held-out cases, or the number of positives without one. Empty with cv=0.
    learning_curve_: dict[str, np.ndarray]

    # --- fitting ------------------------------------------------------------------------------------------------

    @abstractmethod
    def _start(
        self, data: Any, rows: np.ndarray, weight: np.ndarray, threads: Threads, others: np.ndarray | None = None
    ) -> Rounds | Stumps:
        """Trees to grow on some rows of the table, all with weight; `others` are rows to score after every round.

        `weight` is that of all rows, float64.
        """

    def _fit_model(self, data: Cases, threads: Threads) -> Unseen | None:
        folds = held_out_folds(data, self.cv, self.random_state)
        self.learning_curve_ = {}
        n_rounds, unseen = self.n_estimators, None
        if folds:
            followed = self._follow_folds(data, folds, threads)
            n_rounds, unseen, self.learning_curve_ = followed.n_rounds, followed.unseen, followed.curve
            if not followed.is_complete:
                warn_caller(KEPT.format(plural(len(followed.curve["round"]), "round")))
        is_interrupted = False
        try:
            self._grow(data, n_rounds, threads)
        except KeyboardInterrupt:
            if self.on_interrupt != "keep" or not folds:
                raise
            is_interrupted = True
        if is_interrupted:  # after finished folds: once more
            warn_caller(AFTER_FOLDS)
            self._grow(data, n_rounds, threads)
        rows = data.sample(COVER_ROWS)
        self.trees_ = self._finish(lambda: self.trees_.with_cover(data.X[rows], data.all_weights[rows]))
        if self.trees_.is_leaf.all() and not self._is_prepared:
            some = data.X[rows]
            if not np.array_equal(some, np.broadcast_to(some[:1], some.shape), equal_nan=True):
                warn_caller(NO_SPLIT)
        return unseen

    def _grow(self, data: Cases, n_rounds: int, threads: Threads) -> None:
        """Grow the final trees on all rows, and keep them."""
        weight = data.all_weights
        growing = self._start(data, np.flatnonzero(weight > 0), weight, threads)
        try:
            for _ in progress(range(n_rounds), n_rounds, "trees", self.verbose > 0):
                growing.step()
        except KeyboardInterrupt:
            if self.on_interrupt != "keep" or growing.n_rounds == 0:
                raise
            warn_caller(TREES_SO_FAR)
        self._finish(lambda: self._take(growing))

    def _set_cutoff(self, data: Any, threads: Threads, unseen: Unseen | None) -> None:
        self._finish(partial(super()._set_cutoff, data, threads, unseen))

    def _take(self, growing: Any) -> None:
        """Keep what has grown."""
        self.trees_ = growing.trees()

    def _follow_folds(self, data: Cases, folds: list[Fold], threads: Threads, label: str = "folds") -> Followed:
        """Boost in all folds side by side until held-out cases gain nothing more; `label` is that of the progress."""
        share = None
        if self.budget is not None:
            share = cases_of_budget(self.budget, self.n_cases_, self.n_positives_) / self.n_cases_
        runs = [
            FoldRun(data, fold, self._start(data, fold.inside, fold.weight, threads, fold.held_out), share)
            for fold in folds
        ]
        patience = self.early_stopping_rounds or self.n_estimators
        steps = progress(range(self.n_estimators), self.n_estimators, label, self.verbose > 0, lambda: note)
        note, is_complete = "", True
        try:
            for turn in steps:
                for run in runs:
                    run.step()
                precision = np.array([run.precision for run in runs]).mean(axis=0)
                best, smooth = best_round(precision), smoothed(precision)
                after = plural(best, "round")
                note = f", average precision {smooth[-1]:.3f}, best {smooth[best - 1]:.3f} after {after}"
                if turn + 1 - best >= patience:
                    break
        except KeyboardInterrupt:
            if self.on_interrupt != "keep" or min(len(run.precision) for run in runs) == 0:
                raise
            is_complete = False
        try:
            return self._read_off(runs, is_complete)
        except KeyboardInterrupt:
            if self.on_interrupt != "keep":
                raise
        return self._read_off(runs, is_complete=False)

    def _read_off(self, runs: list[FoldRun], is_complete: bool) -> Followed:
        """The best number of rounds, and the held-out cases scored after it."""
        n_rounds = min(len(run.precision) for run in runs)
        curves = np.array([run.precision[:n_rounds] for run in runs])
        top = np.array([run.precision_at_k[:n_rounds] for run in runs])
        parts = []
        for i, run in enumerate(runs):
            others = np.delete(curves, i, axis=0) if len(runs) > 1 else curves
            score = self._scorer(run.growing, best_round(others.mean(axis=0)))
            parts.append(HeldOut.from_fold(run.data, run.fold, score))
        n_of_all = min(rounds_of_all(best_round(curves.mean(axis=0)), len(runs)), self.n_estimators)
        curve = curve_of(curves.mean(axis=0), top.mean(axis=0))
        return Followed(n_of_all, Unseen(parts, by_folds(len(parts))), curve, is_complete)

    def _scorer(self, growing: Any, n_rounds: int) -> Callable[[np.ndarray], np.ndarray]:
        """The scores of encoded rows after so many rounds, as a function."""
        return growing.trees().first(n_rounds).decision_function

    def _finish(self, step: Callable[[], Result]) -> Result:
        """Run a step that follows the last tree; drop the first Ctrl-C in it, if trees are to be kept."""
        if self.on_interrupt != "keep":
            return step()
        with first_interrupt_dropped() as dropped:
            result = step()
        if dropped:
            warn_caller(FINISHED)
        return result

    # --- scoring ------------------------------------------------------------------------------------------------

    @property
    def n_rounds_(self) -> int:
        """Number of trees."""
        check_is_fitted(self)
        return len(self.trees_)

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the scores after the first tree, the first two, and so on; float64 (n,) each."""
        yield from self.trees_.staged(self._encode(X))

    def _size_in_words(self) -> str:
        return f"{plural(len(self.trees_), 'boosted tree')}, {plural(self.trees_.n_leaves, 'leaf', 'leaves')} in all"

    # --- files --------------------------------------------------------------------------------------------------

    def _to_arrays(self) -> dict[str, np.ndarray]:
        curve = {f"curve_{name}": values for name, values in self.learning_curve_.items() if name != "round"}
        return Ranker._to_arrays(self) | curve | self._trees_to_arrays()

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        found, self.learning_curve_ = without_prefix(arrays, "curve_"), {}
        if found:
            parts = [found[name] for name in ("average_precision", "precision_at_k")]
            is_sound = len({part.shape for part in parts}) == 1 and all(part.ndim == 1 for part in parts)
            if not is_sound or any(part.dtype != np.float64 or not np.all((part >= 0) & (part <= 1)) for part in parts):
                raise InputError("Its learning curve is not a list of rates per round.")
            self.learning_curve_ = curve_of(*parts)


def curve_of(precision: np.ndarray, at_k: np.ndarray) -> dict[str, np.ndarray]:
    """A learning curve, given both measures after each round."""
    return {"round": np.arange(1, len(precision) + 1), "average_precision": precision, "precision_at_k": at_k}


AFTER_FOLDS = "The fit was interrupted after its folds: it continues with their results."

KEPT = "The folds were interrupted after {}: the number of trees is the best so far. Ctrl-C again ends the last fit."

TREES_SO_FAR = "The last fit was interrupted: the model has the trees grown so far."

FINISHED = "Ctrl-C after the last tree was ignored: the model is complete with the trees that it has."

NO_SPLIT = (
    "No tree found a split, so all cases get the same score from the trees. Hint: look for a few "
    "cases with nearly all of the weight, or for a subsample that leaves too few positives."
)


class FoldRun:
    """Trees of one fold, and how well they rank the held-out cases after every round.

    `share` is that of the cases that can be checked; None: as many as there are positives.
    """

    def __init__(self, data: Cases, fold: Fold, growing: Rounds | Stumps, share: float | None = None):
        self.data, self.fold, self.growing, self._share = data, fold, growing, share
        self.precision: list[float] = []
        self.precision_at_k: list[float] = []

    def step(self) -> None:
        """One more round."""
        self.growing.step()
        held_out, score = self.fold.held_out, self.growing.other_score
        is_positive, weight = self.data.is_positive[held_out], self.fold.weight[held_out]
        k, of = (1.0, "positives") if self._share is None else (self._share, "cases")
        self.precision_at_k.append(precision_at_k(is_positive, score, k=k, of=of, sample_weight=weight))
        self.precision.append(average_precision(is_positive, score, sample_weight=weight))


def best_round(precision: np.ndarray) -> int:
    """Number of rounds after which a learning curve is highest, when averaged over neighbouring rounds.

    Examples
    --------
    >>> best_round(np.array([0.2, 0.5, 0.9, 0.5, 0.2]))
    3
    """
    return int(np.argmax(smoothed(precision))) + 1


def smoothed(precision: np.ndarray) -> np.ndarray:
    """A learning curve averaged over neighbouring rounds, fewer of them while it is short."""
    width = min(SMOOTHED_ROUNDS, len(precision) // 5)
    padded = np.pad(precision, width, mode="edge")
    return np.convolve(padded, np.ones(2 * width + 1), "valid") / (2 * width + 1)


def rounds_of_all(n_rounds: int, n_folds: int) -> int:
    """Rounds for all cases, given the best number in folds, which hold fewer cases.

    More cases support more trees; on the development tables a quarter more was better than none.

    Examples
    --------
    >>> rounds_of_all(80, 5), rounds_of_all(80, 11)
    (100, 88)
    """
    return round(n_rounds * min(n_folds / max(n_folds - 1, 1), MOST_MORE_ROUNDS))
