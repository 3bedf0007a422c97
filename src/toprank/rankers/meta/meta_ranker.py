"""`MetaRanker`: what MetaAP and TreeRank share: grow, order, prune, flatten, score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank._core.dtypes import NODE
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.budget import Cutoff, cases_of_budget, find_cutoff
from toprank.data.binned_cases import BinnedCases
from toprank.data.frames import make_frame
from toprank.errors import InputError
from toprank.explain import Covers, PathCounts
from toprank.files.model_file import with_prefix, without_prefix
from toprank.metrics import HitRates
from toprank.rankers.growth import GrowthSettings, category_search, grow_meta, grow_shared_meta
from toprank.rankers.leaf_scores import fit_leaf_score
from toprank.rankers.meta.nodes import MetaNodes, NodeClassifier
from toprank.rankers.meta.ordering import LeafOrder, finish_meta, stages_of
from toprank.rankers.meta.pruning import CellPruner, Pruner, best_penalty, checked_penalties, penalties_to_try
from toprank.rankers.tree_ranker import TreeRanker
from toprank.rankers.unseen import (
    Fold,
    HeldOut,
    Unseen,
    by_folds,
    has_folds,
    held_out_folds,
    pruning_folds,
    rates_of_training,
)
from toprank.tree.meta.meta_tree import MetaTree
from toprank.tree.meta.stages import Stages
from toprank.tree.scoring import Scoring


@dataclass(frozen=True)
class GrownMeta:
    """A meta-tree and the unit of its integer weights.

    If rows were held out to order its leaves: these rows, and the weights of all.
    """

    meta: MetaTree
    unit: float
    aside: np.ndarray | None = None
    weight: np.ndarray | None = None


class MetaRanker(TreeRanker):
    """Base of the rankers that are a meta-tree.

    A subclass defines what it optimises and how it grows and prunes; flattening, stages and the choice of the penalty
    by cross-validation are here.
    """

    _measure_name: ClassVar[str]
    _meta: MetaNodes
    _stages: Stages | None
    ccp_alpha: float | str
    leaf_score: str
    logistic_C: float

    # --- what a subclass says -----------------------------------------------------------------------------------

    @abstractmethod
    def _settings(self) -> GrowthSettings:
        """Return how the meta-tree grows."""

    def _grow(
        self, settings: GrowthSettings, data: BinnedCases, weight: np.ndarray | None, threads: Threads
    ) -> GrownMeta:
        """Return a meta-tree on the rows with weight."""
        if weight is data.weight:
            return GrownMeta(*grow_shared_meta(settings, data, threads))
        return GrownMeta(*grow_meta(settings, data, weight, threads))

    @abstractmethod
    def _pruner(self, settings: GrowthSettings, grown: GrownMeta, data: BinnedCases) -> Pruner:
        """Return the pruner of the meta-tree."""

    @abstractmethod
    def _measure(self, is_positive: np.ndarray, score: np.ndarray, weight: np.ndarray) -> float:
        """Return the measure that a penalty is chosen by; larger is better."""

    # --- fitting ------------------------------------------------------------------------------------------------

    def _fit_model(self, data: BinnedCases, threads: Threads) -> Unseen | None:
        settings = self._settings()
        grown = self._grow(settings, data, data.weight, threads)
        scoring = self._fit_scoring(data, data.weight)
        pruner = self._pruner(settings, grown, data)
        self.ccp_alpha_, unseen = self._choose_penalty(settings, data, pruner, threads)
        meta, order = pruner.at(self.ccp_alpha_)
        self.tree_, entry = self._finish(settings, replace(grown, meta=meta), data, scoring, order)
        # Held-out rows and merged cells give an order of the leaves that does not follow from the meta-tree.
        fixed = order if grown.aside is not None or isinstance(pruner, CellPruner) else None
        bare = meta if entry is None else replace(meta, inner=[None] * len(meta.left))  # None: split by classifiers
        starts = np.zeros(0, NODE) if entry is None else entry
        self._meta = MetaNodes(bare, grown.unit, settings, self.tree_, starts, fixed)
        has_stages = self.ccp_alpha_ == 0.0 and grown.aside is None and entry is not None
        self._stages = stages_of(settings, meta, grown.unit, entry) if has_stages else None
        self._remember(settings, grown, data, scoring, pruner)
        return unseen

    def _finish(
        self, settings: GrowthSettings, grown: GrownMeta, data: BinnedCases, scoring: Scoring, order: LeafOrder
    ) -> tuple[Any, Any]:
        """Return the tree, and the node at which each meta-node begins."""
        return finish_meta(settings, grown.meta, grown.unit, data.is_categorical, scoring, order)

    def _remember(
        self, settings: GrowthSettings, grown: GrownMeta, data: BinnedCases, scoring: Scoring, pruner: Pruner
    ) -> None:
        """Set the fitted attributes besides the tree."""

    def _fit_scoring(self, data: BinnedCases, weight: np.ndarray | None) -> Scoring:
        """Return the scoring inside leaves, fitted on the rows with weight."""
        return fit_leaf_score(self.leaf_score, data, weight, self.logistic_C, category_search(self))

    def _choose_penalty(
        self, settings: GrowthSettings, data: BinnedCases, pruner: Pruner, threads: Threads
    ) -> tuple[float, Unseen | None]:
        """Return the penalty, given or the best by cross-validation (ties go to the largest), and the held-out cases.

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
        pruned = [self._pruned_trees(settings, data, fold, tried, threads) for fold in folds]
        scores = np.array([self._held_out_scores(data, *each) for each in zip(folds, pruned, strict=True)])
        self.ccp_path_ = {"ccp_alpha": tried, self._measure_name: scores.mean(axis=0)}
        parts = []
        for i, (fold, trees) in enumerate(zip(folds, pruned, strict=True)):
            others = np.delete(scores, i, axis=0) if len(folds) > 1 else scores
            tree = trees[int(np.flatnonzero(tried == best_penalty(tried, others))[0])]
            parts.append(HeldOut.from_fold(data, fold, partial(tree.decision_function, threads=threads)))
        return best_penalty(tried, scores), Unseen(parts, by_folds(len(folds))) if has_folds(self.cv) else None

    def _pruned_trees(
        self, settings: GrowthSettings, data: BinnedCases, fold: Fold, tried: np.ndarray, threads: Threads
    ) -> list[Any]:
        """Return the final tree at each penalty, on the training rows of a fold."""
        inside = fold.inside_weight
        grown = self._grow(settings, data, inside, threads)
        pruner, scoring = self._pruner(settings, grown, data), self._fit_scoring(data, inside)
        trees: dict[int, Any] = {}
        sizes = []
        for alpha in tried:
            meta, order = pruner.at(alpha)
            sizes.append(order.n_places)  # one pruned tree per size
            if sizes[-1] not in trees:
                trees[sizes[-1]] = self._finish(settings, replace(grown, meta=meta), data, scoring, order)[0]
        return [trees[size] for size in sizes]

    def _held_out_scores(self, data: BinnedCases, fold: Fold, trees: list[Any]) -> list[float]:
        """Return the measure on the held-out rows of a fold for each tree."""
        rows, done = fold.held_out, {}
        X, card = data.X[rows], trees[0].scoring.card
        points = None if card is None else card.total(X)  # the same for all sizes of the tree
        for tree in trees:
            if id(tree) not in done:
                with_points = points is not None
                score = tree.scores_with_points(tree.apply(X), points) if with_points else tree.decision_function(X)
                done[id(tree)] = self._measure(data.is_positive[rows], score, fold.weight[rows])
        return [done[id(tree)] for tree in trees]

    # --- the meta-tree ------------------------------------------------------------------------------------------

    @property
    def nodes_(self) -> Any:
        """Meta-nodes as a frame, parents first: node, parent, depth, is_leaf, n, positives, alpha, beta, auc_gain."""
        columns = {name: values.tolist() for name, values in self._fitted_meta().table().items()}
        return make_frame(columns, self._backend)

    def subtree(self, nodes: Any) -> Self:
        """Return a copy of the model whose ranking ends in the given meta-nodes; the nodes below are merged.

        Parameters
        ----------
        nodes : list of int
            Meta-nodes, numbered as in `nodes_`. The cells of the copy are ordered by `leaf_order`; if that needs
            held-out rows, or if cells were merged, they keep their order. `predict` of the copy flags whole cells, and
            its hit rates are training rates, as the training rows are no longer available.

        Examples
        --------
        >>> from toprank import TreeRank
        >>> from toprank.datasets import make_audit
        >>> data = make_audit(4000, random_state=0)
        >>> model = TreeRank(max_depth=3).fit(data.X, data.y)
        >>> model.n_leaves_, model.subtree([1, 2]).n_leaves_
        (7, 2)
        """
        own = self._fitted_meta()
        part = copy(self)
        part._meta = own.ending_in(own.check(nodes, f"{type(self).__name__}.subtree"))
        part._stages, part._leaf_rates = None, None
        part.tree_ = part._meta.tree
        part.path_counts_, part._covers = PathCounts.none(part.tree_), Covers.none()
        part.cutoff_, part.rates_ = self._cutoff_and_rates_of_cells(part.tree_)
        return part

    def _cutoff_and_rates_of_cells(self, tree: Any) -> tuple[Cutoff, HitRates]:
        """Set the cutoff of the budget and training rates without the training rows: whole cells are flagged."""
        cells = np.flatnonzero(tree.is_leaf)
        score = tree.score[cells]
        if tree.scoring.stays_inside:
            score = np.nextafter(score - 1.0 / tree.n_leaves, 1.0)  # the lower end of a cell's range
        k = cases_of_budget(self.budget, self.n_cases_, self.n_positives_)
        weight = np.concatenate((tree.positive[cells], tree.negative[cells]))
        is_positive = np.repeat([True, False], len(cells))
        present = weight > 0
        counted = np.tile(score, 2)[present], is_positive[present], weight[present]
        return find_cutoff(k, self.n_cases_, *counted), rates_of_training(*counted)

    def node_classifier(self, node: int) -> NodeClassifier:
        """Return what splits one meta-node: a classifier with `predict` (True = the better half) and `to_text`.

        Examples
        --------
        >>> from toprank import TreeRank
        >>> from toprank.datasets import make_audit
        >>> data = make_audit(4000, random_state=0)
        >>> model = TreeRank(max_depth=2, leaf_ranker="stump").fit(data.X, data.y)
        >>> root = model.node_classifier(0)
        >>> bool(root.beta > root.alpha), root.predict(data.X).shape
        (True, (4000,))
        """
        own = self._fitted_meta()
        chosen = int(own.check([node], f"{type(self).__name__}.node_classifier")[0])
        if own.meta.is_leaf[chosen]:
            raise InputError(
                f"{type(self).__name__}.node_classifier needs a meta-node that is split, but {chosen} is a cell of "
                "the ranking. Hint: see the column is_leaf of `nodes_`."
            )
        meta, left = own.meta, own.meta.left[chosen]
        negative = meta.total - meta.positive
        alpha, beta = negative[left] / negative[chosen], meta.positive[left] / meta.positive[chosen]
        return NodeClassifier(chosen, own.rule_at(chosen), float(alpha), float(beta), self.columns_, self._encode)

    def _fitted_meta(self) -> MetaNodes:
        check_is_fitted(self)
        return self._meta

    # --- stages -------------------------------------------------------------------------------------------------

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the scores of models with max_depth 1, 2, ... up to `max_depth`.

        All depths come from the one fitted model, with the same bits as a refit with the same `leaf_depth`. With
        leaf_depth=None the inner trees have the depth of the fitted `max_depth` at every stage. If growing stopped
        early, the last scores repeat. With max_depth=None there are as many as the meta-tree has levels.

        Raises ValueError if the meta-tree was pruned or comes from `subtree`, or if the order of its leaves does not
        follow from its growth.

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
        if self._stages is None and self.ccp_alpha_ > 0:
            raise InputError(
                f"{type(self).__name__}.staged_decision_function needs a meta-tree that was not pruned, but this one "
                f"was, at ccp_alpha {self.ccp_alpha_:.3g}: pruned trees are not nested. Hint: fit "
                "with ccp_alpha=0."
            )
        if self._stages is None:
            raise InputError(
                f"{type(self).__name__}.staged_decision_function needs a whole meta-tree, but this one is a result of "
                "subtree. Hint: call it on the model that subtree was called on."
            )
        matrix = self._encode(X)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            return self._stages.scores(self.tree_, matrix, threads)

    # --- files and text -----------------------------------------------------------------------------------------

    def _size_in_words(self) -> str:
        pruned = f"; ccp_alpha {self.ccp_alpha_:.3g}" if self.ccp_alpha != 0.0 else ""
        return f"{super()._size_in_words()}; inside leaves: {self.leaf_score}{pruned}"

    def _to_arrays(self) -> dict[str, np.ndarray]:
        path = with_prefix(getattr(self, "ccp_path_", {}), "ccp_") | with_prefix(self._meta.to_arrays(), "meta_")
        stages = {} if self._stages is None else with_prefix(self._stages.to_arrays(), "stages_")
        return super()._to_arrays() | {"penalty": np.array(self.ccp_alpha_)} | path | stages

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self._meta = MetaNodes.from_arrays(without_prefix(arrays, "meta_"), self._settings(), self.tree_)
        stages = without_prefix(arrays, "stages_")
        self._stages = Stages.from_arrays(stages, self.tree_) if stages else None
        self.ccp_alpha_, path = float(arrays["penalty"]), without_prefix(arrays, "ccp_")
        if path:
            self.ccp_path_ = checked_penalties(path, self._measure_name)
