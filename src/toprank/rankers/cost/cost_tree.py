"""`CostTree`: CART with misclassification costs, grown fully and pruned on the cost of its mistakes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.files.model_file import with_prefix, without_prefix
from toprank.rankers.cost.labelled_tree import BALANCED, LABELLED_CONSTRAINTS, LabelledTree
from toprank.rankers.greedy.monotone import MONOTONIC_CST, bounded_rates, directions_of_tree
from toprank.rankers.growth import CCP_ALPHA, DEPTH, FOLD_CONSTRAINTS
from toprank.rankers.meta.pruning import best_penalty, checked_penalties, penalties_to_try
from toprank.rankers.unseen import held_out_folds, pruning_folds
from toprank.tree.meta.prune import SMALLEST_PENALTY, link_penalties, prune_tree
from toprank.tree.structure import Tree, parents_of
from toprank.tree.weights import RowWeights, integer_weights

PENALTIES_TRIED = 10_000
"""Most penalties that folds compare; together they take one pass over the held-out rows."""


@dataclass(kw_only=True, eq=False, repr=False)
class CostTree(LabelledTree):
    """A greedy tree for given costs of false alarms and missed positives: CART, pruned on the weighted 0/1 loss.

    The tree is grown fully by the Gini index, with each case weighted by the cost of a mistake on it. Then the weakest
    links are pruned: among all prunings of the full tree the result minimises fp_cost * false positives + fn_cost *
    false negatives + ccp_alpha * (number of leaves). scikit-learn prunes on the Gini index instead, unlike the authors
    of CART [2]_. This is the baseline in the paper of `TAOTree` [1]_, with the same costs, labels and scores.

    Parameters
    ----------
    max_depth : int or None
        Most conditions on a path; None = no limit.
    fp_cost, fn_cost
        As in `TAOTree`.
    ccp_alpha : float or "cv", default "cv"
        Penalty per leaf, in the unit of `fp_cost` and `fn_cost`; leaves that save less are pruned. 0 prunes nothing.
        "cv" chooses the penalty with the lowest cross-validated cost; ties go to the largest.
    cv
        As in `MetaAP`.
    leaf_score
        As in `TAOTree`.
    min_samples_leaf : int, default 1
        Minimum weight of a leaf, in cases of the cheaper class.
    smoothing, smoothing_strength, splitter, max_bins
        As in `MetaAP`.
    categorical_features, cat_smooth, min_data_per_group, max_cat_threshold
        As in `MetaAP`.
    monotonic_cst
        As in `RankingTree`; the labels of the leaves are monotone too.
    keep_columns, budget, pos_label, n_jobs
        As in `TAOTree`.
    random_state : int, RandomState or None
        Seed of the folds of ccp_alpha="cv", fixed for None; nothing else is random.

    Attributes
    ----------
    tree_ : Tree
    ccp_alpha_ : float
        The penalty used.
    ccp_path_ : dict
        With ccp_alpha="cv": penalties tried and the cross-validated cost of each, as a share of the cost of mistakes on
        all cases (NaN if there are too few rows for folds).
    objective_ : float
        fp_cost_ * n_fp_ + fn_cost * n_fn_ + ccp_alpha_ * n_leaves_.
    n_fp_, n_fn_, fp_cost_
        As in `TAOTree`.

    References
    ----------
    .. [1] Gabidolla, Zharmagambetov, Carreira-Perpiñán. Beyond the ROC curve: classification trees using cost-optimal
       curves, with application to imbalanced datasets. ICML 2024. Section 5.3, appendix H.2.
    .. [2] Breiman, Friedman, Olshen, Stone. Classification and regression trees. 1984. Chapter 3.

    Examples
    --------
    >>> from toprank import CostTree
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(2000, random_state=0)
    >>> full, pruned = (CostTree(ccp_alpha=alpha).fit(data.X, data.y) for alpha in (0, 1.0))
    >>> full.n_fp_ + full.n_fn_, pruned.n_leaves_
    (0.0, 11)
    """

    _parameter_constraints = {
        **LABELLED_CONSTRAINTS,
        "max_depth": DEPTH,
        "monotonic_cst": MONOTONIC_CST,
        "ccp_alpha": CCP_ALPHA,
        **FOLD_CONSTRAINTS,
    }

    max_depth: int | None = None
    fp_cost: float | str = BALANCED
    fn_cost: float = 1.0
    ccp_alpha: float | str = "cv"
    cv: Any = 5
    leaf_score: str = "margin"
    min_samples_leaf: int = 1
    smoothing: str | None = "hierarchical"
    smoothing_strength: float = 10.0
    splitter: str = "hist"
    max_bins: int = 255
    categorical_features: Any = None
    cat_smooth: float | None = 10.0
    min_data_per_group: int = 10
    max_cat_threshold: int | None = 3
    monotonic_cst: Any = None
    keep_columns: Any = None
    budget: int | float | None = None
    pos_label: Any = None
    n_jobs: int | None = None
    random_state: Any = None

    # --- growing and pruning ------------------------------------------------------------------------------------

    def _fit_model(self, data: BinnedCases, threads: Threads) -> None:
        direction = directions_of_tree(self, data)
        costs = self._set_costs()
        weights = integer_weights(data.is_positive, data.weight)
        costly = self._weigh_by_cost(data, weights, costs)
        full = self._grow(data, costly, threads, direction)
        self.ccp_alpha_ = self._choose_penalty(full, data, costs, threads, direction)
        tree = prune_tree(full.tree, full.penalty, self.ccp_alpha_)
        is_positive = costs_less_as_positive(tree)
        if direction is not None:
            share = tree.positive / (tree.positive + tree.negative)
            is_positive = bounded_rates(tree, share, direction) >= 0.5
        self._finish(counted(tree, data, weights, threads), is_positive, data, direction)
        self.objective_ = self.fp_cost_ * self.n_fp_ + self.fn_cost * self.n_fn_ + self.ccp_alpha_ * self.n_leaves_

    def _grow(self, data: BinnedCases, costly: RowWeights, threads: Threads, direction: np.ndarray | None) -> FullTree:
        """The tree before pruning."""
        cheaper = min(self.fp_cost_, self.fn_cost) / costly.unit
        tree = self._greedy_tree(data, costly, self.max_depth, np.floor(self.min_samples_leaf * cheaper), threads,
                                 direction)  # fmt: skip
        return FullTree.from_tree(replace(tree, gain=tree.gain * costly.unit))

    def _choose_penalty(
        self, full: FullTree, data: BinnedCases, costs: np.ndarray, threads: Threads, direction: np.ndarray | None
    ) -> float:
        """Return the given penalty, or the one with the lowest cross-validated cost; ties go to the largest."""
        if self.ccp_alpha != "cv":
            return float(self.ccp_alpha)
        tried = penalties_to_try(full.penalty[np.isfinite(full.penalty)], PENALTIES_TRIED)
        folds = held_out_folds(data, pruning_folds(self.cv), self.random_state)
        if len(tried) == 1 or len(folds) == 0:
            self.ccp_path_ = {"ccp_alpha": tried[:1], "cost": np.full(1, np.nan)}
            return float(tried[0])
        held_out = self._weigh_by_cost(data, integer_weights(data.is_positive, folds[0].weight), costs)
        share = np.zeros((len(folds), len(tried)))
        for i, fold in enumerate(folds):
            weights = integer_weights(data.is_positive, fold.inside_weight)
            part = self._grow(data, self._weigh_by_cost(data, weights, costs), threads, direction)
            # Penalties are on the scale of total cost, so a tree on a share of the cases gets that share of the
            # penalty.
            scaled = tried * (part.cost / full.cost)
            rows = fold.held_out
            leaf = part.tree.apply(data.X[rows], threads)
            share[i] = part.costs_of(leaf, held_out.positive[rows], held_out.total[rows], scaled)
        share *= len(folds) / held_out.sum_of_total  # of all folds together
        self.ccp_path_ = {"ccp_alpha": tried, "cost": share.mean(axis=0)}
        return best_penalty(tried, -share)

    # --- files and text -----------------------------------------------------------------------------------------

    def _size_in_words(self) -> str:
        return f"{super()._size_in_words()}; ccp_alpha {self.ccp_alpha_:.3g}"

    def _to_arrays(self) -> dict[str, np.ndarray]:
        path = with_prefix(getattr(self, "ccp_path_", {}), "ccp_")
        return super()._to_arrays() | {"penalty": np.array(self.ccp_alpha_)} | path

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self.ccp_alpha_, path = float(arrays["penalty"]), without_prefix(arrays, "ccp_")
        if path:
            self.ccp_path_ = checked_penalties(path, "cost")


@dataclass(frozen=True)
class FullTree:
    """A tree before pruning, with weights in units of cost, and the penalty at which each node becomes a leaf."""

    tree: Tree
    penalty: np.ndarray

    @classmethod
    def from_tree(cls, tree: Tree) -> FullTree:
        """Find the weakest links of a tree for the weighted 0/1 loss."""
        return cls(tree, link_penalties(tree.left, tree.right, -np.minimum(tree.positive, tree.negative)))

    @property
    def cost(self) -> float:
        """The cost of mistakes on all its cases."""
        return float(self.tree.positive[0] + self.tree.negative[0])

    def costs_of(self, leaf: np.ndarray, positive: np.ndarray, total: np.ndarray, penalties: np.ndarray) -> np.ndarray:
        """Return the cost of other rows in the pruned tree of each penalty; penalties are ascending.

        `leaf` is the leaf of this tree that each row reaches; `positive` and `total` are the costs of a mistake on each
        row, `positive` 0 for negatives.
        """
        tree, n_penalties = self.tree, len(penalties)
        positive, total = (sums_of_nodes(tree, leaf, values) for values in (positive, total))
        cost = np.where(costs_less_as_positive(tree), total - positive, positive)
        # A node is a leaf from its own penalty up to its parent's.
        parent, penalty = parents_of(tree.left, tree.right), np.maximum(self.penalty, SMALLEST_PENALTY)
        first = np.searchsorted(penalties, np.where(tree.is_leaf, 0.0, penalty))
        last = np.searchsorted(penalties, np.where(parent < 0, np.inf, penalty[parent]))
        change = np.bincount(first, cost, n_penalties + 1) - np.bincount(last, cost, n_penalties + 1)
        return np.cumsum(change)[:n_penalties]


def costs_less_as_positive(tree: Tree) -> np.ndarray:
    """Return the nodes whose positives cost at least as much as their negatives (theorem 4.2)."""
    return tree.positive >= tree.negative


def sums_of_nodes(tree: Tree, leaf: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the sum of row values per node of a plain tree, from the leaf of each row: float64, exact for integers."""
    sums = np.bincount(leaf, values, len(tree)).tolist()
    left, right = tree.left.tolist(), tree.right.tolist()
    for node in np.flatnonzero(~tree.is_leaf)[::-1].tolist():  # children first
        sums[node] = sums[left[node]] + sums[right[node]]
    return np.array(sums)


def counted(tree: Tree, data: BinnedCases, weights: RowWeights, threads: Threads) -> Tree:
    """Return the tree with cases instead of costs in its nodes."""
    leaf = tree.apply(data.X, threads)
    positive, total = (sums_of_nodes(tree, leaf, values) for values in (weights.positive, weights.total))
    return replace(tree, positive=positive * weights.unit, negative=(total - positive) * weights.unit)
