"""Cross-validation of a cost-optimal curve: depth and penalty of its trees, and its mistakes on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.rankers.cost.tao_tree import TAOTree
from toprank.rankers.curve.path import FitTree, Follower, Start, fit_start, subset, votes_and_scores
from toprank.rankers.curve.threshold_moves import Place, ThresholdMoves
from toprank.rankers.progress import progress


class CurveFolds:
    """Folds of training data, each with the trees fitted on the other folds.

    Parameters
    ----------
    data : BinnedCases
    folds : list of (int array, int array)
        Training rows and held-out rows of each fold.
    base : TAOTree
        Not fitted.
    fitter : callable
        fitter(data) returns what fits a tree on the data.
    path_max_iter : int
        Most passes over each tree of a path.
    threads : Threads
        Folds run in parallel.
    verbose : bool
    """

    def __init__(
        self,
        data: BinnedCases,
        folds: list[tuple[np.ndarray, np.ndarray]],
        base: TAOTree,
        fitter: Callable[[BinnedCases], FitTree],
        path_max_iter: int,
        threads: Threads,
        verbose: bool,
    ):
        self.data, self.folds, self.base, self.fitter = data, folds, base, fitter
        self.path_max_iter, self.threads, self.verbose = path_max_iter, threads, verbose

    def __len__(self) -> int:
        return len(self.folds)

    @property
    def rows(self) -> np.ndarray:
        """Return the rows of all folds, one fold after the other."""
        return np.concatenate([held_out for _, held_out in self.folds])

    def by_row(self, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return one score per training row from the scores of all folds, and the fold of each row.

        Parameters
        ----------
        score : float64 array of shape (n_held_out,)
            In the order of `rows`; a row held out several times gets the mean of its scores.

        Returns
        -------
        score : float64 array of shape (n,)
            NaN for rows that are never held out.
        fold : int64 array of shape (n,)
            The last fold in which a row is held out; -1 for none.
        """
        n = len(self.data.X)
        total, times = np.bincount(self.rows, score, n), np.bincount(self.rows, minlength=n)
        fold = np.full(n, -1, np.int64)
        for i, (_, held_out) in enumerate(self.folds):
            fold[held_out] = i
        return np.where(times > 0, total / np.maximum(times, 1), np.nan), fold

    def costs(self, starts: Sequence[Start], ratio: float) -> np.ndarray:
        """Return the out-of-fold cost per case with each start, in units of a false negative, float64 (n_starts,)."""

        def judge(inside: np.ndarray, held_out: np.ndarray) -> list[float]:
            fit = self.fitter(subset(self.data, inside, self.base))
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

    def votes(
        self, start: Start, ratios: np.ndarray, base_point: int, places: Sequence[Place] = ()
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the labels of the rows of all folds by paths over the given costs.

        Returns
        -------
        votes, score : bool array of shape (n_ratios, n) and float64 array of shape (n,)
            As in `votes_and_scores`.
        between : bool array of shape (n_places, n)
            The same for trees at places between the costs.
        """

        def judge(inside: np.ndarray, held_out: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            part, matrix = subset(self.data, inside, self.base), self.data.X[held_out]
            fit = self.fitter(part)
            base = fit_start(self.base, start, float(ratios[base_point]), fit)
            path = Follower(fit, self.path_max_iter).same_path(base, ratios, base_point)
            between = np.zeros((len(places), len(held_out)), bool)
            if places:
                trees = ThresholdMoves.from_trees(path, part, Threads())
                for i, place in enumerate(places):
                    between[i] = trees.votes(place, matrix)
            return *votes_and_scores(path, matrix, Threads()), between

        votes, scores, between = zip(*self._each(judge, "curves out of fold"), strict=True)
        return np.concatenate(votes, axis=1), np.concatenate(scores), np.concatenate(between, axis=1)

    def _each(self, judge: Callable, label: str) -> list:
        return list(progress(self.threads.map(judge, *zip(*self.folds, strict=True)), len(self), label, self.verbose))
