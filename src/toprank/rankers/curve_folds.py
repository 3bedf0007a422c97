"""Cross-validation of a cost-optimal curve: depth and penalty of its trees, and its mistakes on rows not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from toprank._core.threads import Threads
from toprank.rankers.curve_path import FitTree, Follower, Start, fit_start, subset, votes_and_scores
from toprank.rankers.progress import progress
from toprank.rankers.tao_tree import TAOTree
from toprank.rankers.training import TrainingData


class CurveFolds:
    """Folds of training data, each with the trees that are fitted on the other folds.

    Parameters
    ----------
    data : TrainingData
    folds : list of (int array, int array)
        Rows to learn from and held-out rows of each fold.
    base : TAOTree
        Not fitted.
    fitter : callable
        fitter(data) -> what fits a tree on them.
    path_iter : int
        Passes over each tree of a path at most.
    threads : Threads
        Folds are worked on side by side.
    verbose : bool
    """

    def __init__(
        self,
        data: TrainingData,
        folds: list[tuple[np.ndarray, np.ndarray]],
        base: TAOTree,
        fitter: Callable[[TrainingData], FitTree],
        path_iter: int,
        threads: Threads,
        verbose: bool,
    ):
        self.data, self.folds, self.base, self.fitter = data, folds, base, fitter
        self.path_iter, self.threads, self.verbose = path_iter, threads, verbose

    def __len__(self) -> int:
        return len(self.folds)

    @property
    def rows(self) -> np.ndarray:
        """Rows of all folds, one fold after the other."""
        return np.concatenate([held_out for _, held_out in self.folds])

    def costs(self, starts: Sequence[Start], ratio: float) -> np.ndarray:
        """What a case costs out of fold with each start, in units of a false negative, float64 (n_starts,)."""

        def judge(inside: np.ndarray, held_out: np.ndarray) -> list[float]:
            fit = self._fit_on(inside)
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

        def judge(inside: np.ndarray, held_out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            fit = self._fit_on(inside)
            base = fit_start(self.base, start, float(ratios[base_point]), fit)
            path = Follower(fit, self.path_iter).same_path(base, ratios, base_point)
            return votes_and_scores(path, self.data.X[held_out], Threads())

        votes, scores = zip(*self._each(judge, "curves out of fold"), strict=True)
        return np.concatenate(votes, axis=1), np.concatenate(scores)

    def _fit_on(self, rows: np.ndarray) -> FitTree:
        return self.fitter(subset(self.data, rows, self.base))

    def _each(self, judge: Callable, label: str) -> list:
        return list(progress(self.threads.map(judge, *zip(*self.folds, strict=True)), len(self), label, self.verbose))
