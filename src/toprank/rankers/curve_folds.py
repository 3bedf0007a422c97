"""Cross-validation of a cost-optimal curve: depth and penalty of its trees, and its mistakes on rows not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from toprank._core.threads import Threads
from toprank.rankers.curve_path import FitTree, Start, fit_start, same_path, subset, votes_and_scores
from toprank.rankers.progress import progress
from toprank.rankers.tao_tree import TAOTree
from toprank.rankers.training import TrainingData


class CurveFolds:
    """Folds of training data, each with the trees that are fitted on the other folds.

    Parameters
    ----------
    data : TrainingData
    held_out : list of int arrays
        Rows of each fold.
    base : TAOTree
        Not fitted.
    fitter : callable
        fitter(data) -> what fits a tree on them.
    threads : Threads
        Folds are worked on side by side.
    verbose : bool
    """

    def __init__(
        self,
        data: TrainingData,
        held_out: list[np.ndarray],
        base: TAOTree,
        fitter: Callable[[TrainingData], FitTree],
        threads: Threads,
        verbose: bool,
    ):
        self.data, self.held_out, self.base, self.fitter = data, held_out, base, fitter
        self.threads, self.verbose = threads, verbose

    def __len__(self) -> int:
        return len(self.held_out)

    @property
    def rows(self) -> np.ndarray:
        """Rows of all folds, one fold after the other."""
        return np.concatenate(self.held_out)

    def costs(self, starts: Sequence[Start], ratio: float) -> np.ndarray:
        """What a case costs out of fold with each start, in units of a false negative, float64 (n_starts,)."""

        def judge(held_out: np.ndarray) -> list[float]:
            fit = self._fit_without(held_out)
            is_positive = self.data.is_positive[held_out]
            weight = np.ones(len(held_out)) if self.data.weight is None else self.data.weight[held_out]
            cost = weight * np.where(is_positive, 1.0, ratio)
            found = []
            for start in starts:
                tree = fit_start(self.base, start, ratio, fit)
                (is_alert,), _ = votes_and_scores([tree], self.data.X[held_out], Threads())
                found.append(float(cost[is_alert != is_positive].sum() / weight.sum()))
            return found

        return np.mean(self._each(judge, "depth and alpha"), axis=0)

    def votes(self, start: Start, ratios: np.ndarray, base_point: int) -> tuple[np.ndarray, np.ndarray]:
        """Votes and scores of paths over the given costs for the rows of all folds, as in `votes_and_scores`."""

        def judge(held_out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            fit = self._fit_without(held_out)
            base = fit_start(self.base, start, float(ratios[base_point]), fit)
            return votes_and_scores(same_path(base, ratios, base_point, fit), self.data.X[held_out], Threads())

        votes, scores = zip(*self._each(judge, "curves out of fold"), strict=True)
        return np.concatenate(votes, axis=1), np.concatenate(scores)

    def _fit_without(self, held_out: np.ndarray) -> FitTree:
        is_inside = np.ones(len(self.data.X), bool) if self.data.weight is None else self.data.weight > 0
        is_inside[held_out] = False
        return self.fitter(subset(self.data, np.flatnonzero(is_inside), self.base))

    def _each(self, judge: Callable, label: str) -> list:
        return list(progress(self.threads.map(judge, self.held_out), len(self), label, self.verbose))
