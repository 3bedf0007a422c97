"""`MetaRanker`: what MetaAP and TreeRank share, from a grown meta-tree to a finished, pruned one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.training import TrainingData
from toprank.files.model_file import without_prefix
from toprank.rankers.growth import Arrangement, Growth, category_search, stages_of
from toprank.rankers.linear import STEPS_TRIED, fit_linear_scoring
from toprank.rankers.meta.pruning import Pruner, best_penalty, checked_penalties, penalties_to_try
from toprank.rankers.tree_ranker import TreeRanker
from toprank.rankers.unseen import Fold, HeldOut, Unseen, by_folds, has_folds, held_out_folds, pruning_folds
from toprank.tree.meta.meta_tree import MetaTree
from toprank.tree.meta.objectives import Objective
from toprank.tree.meta.stages import Stages
from toprank.tree.scoring import Scoring
from toprank.tree.structure import scorecard_scores


@dataclass(frozen=True)
class GrownMeta:
    """A meta-tree and the unit of its integer weights.

    Where rows were set aside to order its leaves: these rows, and the weights of all.
    """

    meta: MetaTree
    unit: float
    aside: np.ndarray | None = None
    weight: np.ndarray | None = None


class MetaRanker(TreeRanker):
    """Base of the rankers that are a meta-tree.

    A subclass says what it optimises and how it grows and prunes; finishing, stages and the choice of the penalty by
    cross-validation stand here.
    """

    _objective: ClassVar[Objective]
    _measure_name: ClassVar[str]
    _stages: Stages | None
    ccp_alpha: float | str
    leaf_score: str

    # --- what a subclass says -----------------------------------------------------------------------------------

    @abstractmethod
    def _growth(self, data: TrainingData) -> Growth:
        """How the meta-tree grows."""

    @abstractmethod
    def _grow(self, growth: Growth, data: TrainingData, weight: np.ndarray | None, threads: Threads) -> GrownMeta:
        """A meta-tree on the rows that have weight."""

    @abstractmethod
    def _pruner(self, growth: Growth, grown: GrownMeta, data: TrainingData) -> Pruner:
        """What cuts the meta-tree back."""

    @abstractmethod
    def _measure(self, is_positive: np.ndarray, score: np.ndarray, weight: np.ndarray) -> float:
        """What a penalty is chosen by: larger is better."""

    # --- fitting ------------------------------------------------------------------------------------------------

    def _fit_model(self, data: TrainingData, threads: Threads) -> Unseen | None:
        growth = self._growth(data)
        grown = self._grow(growth, data, data.weight, threads)
        scoring = self._fit_scoring(data, data.weight)
        pruner = self._pruner(growth, grown, data)
        self.ccp_alpha_, unseen = self._choose_penalty(growth, data, pruner, threads)
        meta, arrangement = pruner.at(self.ccp_alpha_)
        self.tree_, entry = self._finish(growth, replace(grown, meta=meta), data, scoring, arrangement)
        has_stages = self.ccp_alpha == 0.0 and grown.aside is None and entry is not None
        self._stages = growth.stages(meta, grown.unit, entry) if has_stages else None
        self._remember(growth, grown, data, scoring, pruner)
        return unseen

    def _finish(
        self, growth: Growth, grown: GrownMeta, data: TrainingData, scoring: Scoring, arrangement: Arrangement
    ) -> tuple[Any, Any]:
        """The tree, and the node at which each meta-node begins."""
        return growth.finish(grown.meta, grown.unit, data.is_categorical, scoring, arrangement)

    def _remember(self, growth: Growth, grown: GrownMeta, data: TrainingData, scoring: Scoring, pruner: Pruner) -> None:
        """Keep what the fitted model offers beside its tree."""

    def _fit_scoring(self, data: TrainingData, weight: np.ndarray | None) -> Scoring:
        """What orders rows inside leaves, from the rows that have weight."""
        if self.leaf_score == "margin":
            return Scoring("margin", scale=data.column_scales())
        if self.leaf_score in ("linear", "additive"):
            n_steps, categories = STEPS_TRIED if self.leaf_score == "additive" else 0, category_search(self)
            if weight is not data.weight:
                return fit_linear_scoring(data, weight, self.linear_C, n_steps, categories)
            name = self.leaf_score, self.linear_C, categories
            return data.once(name, lambda: fit_linear_scoring(data, weight, self.linear_C, n_steps, categories))
        return Scoring()

    def _choose_penalty(
        self, growth: Growth, data: TrainingData, pruner: Pruner, threads: Threads
    ) -> tuple[float, Unseen | None]:
        """The penalty given, or the one of best cross-validated measure, ties to the largest; and the held-out cases.

        The held-out cases of a fold are scored at the penalty that is best on the other folds, so that the
        penalty is not chosen by their own outcomes.
        """
        if self.ccp_alpha != "cv":
            return float(self.ccp_alpha), None
        tried = penalties_to_try(pruner.steps)
        folds = held_out_folds(data, pruning_folds(self.cv), self.random_state)
        if len(tried) == 1 or len(folds) == 0:
            self.ccp_path_ = {"ccp_alpha": tried[:1], self._measure_name: np.full(1, np.nan)}
            return float(tried[0]), None
        pruned = [self._pruned_trees(growth, data, fold, tried, threads) for fold in folds]
        scores = np.array([self._held_out_scores(data, *each) for each in zip(folds, pruned, strict=True)])
        self.ccp_path_ = {"ccp_alpha": tried, self._measure_name: scores.mean(axis=0)}
        parts = []
        for i, (fold, trees) in enumerate(zip(folds, pruned, strict=True)):
            others = np.delete(scores, i, axis=0) if len(folds) > 1 else scores
            tree = trees[int(np.flatnonzero(tried == best_penalty(tried, others))[0])]
            parts.append(HeldOut.of_fold(data, fold, partial(tree.decision_function, threads=threads)))
        return best_penalty(tried, scores), Unseen(parts, by_folds(len(folds))) if has_folds(self.cv) else None

    def _pruned_trees(
        self, growth: Growth, data: TrainingData, fold: Fold, tried: np.ndarray, threads: Threads
    ) -> list[Any]:
        """The finished tree at each penalty, of the rows that a fold learns from."""
        inside = fold.inside_weight
        grown = self._grow(growth, data, inside, threads)
        pruner, scoring = self._pruner(growth, grown, data), self._fit_scoring(data, inside)
        trees: dict[int, Any] = {}
        sizes = []
        for alpha in tried:
            meta, arrangement = pruner.at(alpha)
            sizes.append(arrangement.n_places)  # one pruned tree per size
            if sizes[-1] not in trees:
                trees[sizes[-1]] = self._finish(growth, replace(grown, meta=meta), data, scoring, arrangement)[0]
        return [trees[size] for size in sizes]

    def _held_out_scores(self, data: TrainingData, fold: Fold, trees: list[Any]) -> list[float]:
        """The measure on the held-out rows of a fold for each tree."""
        rows, done = fold.held_out, {}
        X, scoring = data.X[rows], trees[0].scoring
        points = scorecard_scores(scoring, X) if scoring.has_points else None  # the same for all sizes of the tree
        for tree in trees:
            if id(tree) not in done:
                with_points = points is not None
                score = tree.scores_with_points(tree.apply(X), points) if with_points else tree.decision_function(X)
                done[id(tree)] = self._measure(data.is_positive[rows], score, fold.weight[rows])
        return [done[id(tree)] for tree in trees]

    # --- stages -------------------------------------------------------------------------------------------------

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Scores for the meta-depths 1, 2, ... up to `max_depth`: what a model of that `max_depth` would score.

        All depths are read off the one fitted model, bit for bit as if it had been refitted with the same
        `leaf_depth`. With leaf_depth=None the inner trees are as deep as the fitted `max_depth` says, after each stage.
        Where growing stopped earlier the last scores repeat. With max_depth=None there are as many as the meta-tree
        has levels.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)

        Yields
        ------
        score : float64 array of shape (n,)

        Raises
        ------
        ValueError
            Where the meta-tree was pruned, where its order of leaves is not read off its own growing, or where the
            model comes from a file.

        Examples
        --------
        >>> from toprank import MetaAP
        >>> from toprank.datasets import make_audit
        >>> data = make_audit(4000, random_state=0)
        >>> model = MetaAP(max_depth=3, leaf_depth=3, ccp_alpha=0.0).fit(data.X, data.y)
        >>> shallow = MetaAP(max_depth=2, leaf_depth=3, ccp_alpha=0.0).fit(data.X, data.y)
        >>> stages = list(model.staged_decision_function(data.X))
        >>> len(stages), (stages[1] == shallow.decision_function(data.X)).all()
        (3, np.True_)
        """
        check_is_fitted(self)
        if self.ccp_alpha != 0.0:
            raise ValueError(
                f"{type(self).__name__}.staged_decision_function needs a meta-tree that was not pruned, but ccp_alpha "
                f"is {self.ccp_alpha!r}: pruned trees do not contain those of lower depth. Hint: fit with ccp_alpha=0."
            )
        stages = stages_of(self)
        matrix = self._encode(X)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            return stages.scores(self.tree_, matrix, threads)

    # --- files and text -----------------------------------------------------------------------------------------

    def _size_in_words(self) -> str:
        pruned = f"; ccp_alpha {self.ccp_alpha_:.3g}" if self.ccp_alpha != 0.0 else ""
        return f"{super()._size_in_words()}; inside leaves: {self.leaf_score}{pruned}"

    def _to_arrays(self) -> dict[str, np.ndarray]:
        path = {f"ccp_{name}": values for name, values in getattr(self, "ccp_path_", {}).items()}
        return super()._to_arrays() | {"penalty": np.array(self.ccp_alpha_)} | path

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self._stages = None  # files hold the finished tree
        self.ccp_alpha_, path = float(arrays["penalty"]), without_prefix(arrays, "ccp_")
        if path:
            self.ccp_path_ = checked_penalties(path, self._measure_name)
