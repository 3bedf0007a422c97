"""Rankers of this library as methods: MetaAP and TreeRank, their forests, trees for costs, and single greedy trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from toprank.errors import InputError
from toprank.experiment.registry import Method, Sweep, register
from toprank.rankers.cost.cost_tree import CostTree
from toprank.rankers.cost.tao_tree import TAOTree
from toprank.rankers.curve.cost_curve import CostOptimalCurve
from toprank.rankers.ensemble.meta_ap_forest import MetaAPForest
from toprank.rankers.ensemble.treerank_boost import TreeRankBoost
from toprank.rankers.ensemble.treerank_forest import TreeRankForest
from toprank.rankers.greedy.ranking_tree import RankingTree
from toprank.rankers.meta.meta_ap import MetaAP
from toprank.rankers.meta.treerank import TreeRank
from toprank.rankers.points.card import Card as PointsCard
from toprank.rankers.points.red_flags import RedFlags
from toprank.tree.scoring import Card

META_DEPTHS = (1, 2, 4)
LEAF_DEPTHS = (2, 3, 4)
PAPER_DEPTHS = tuple(range(2, 11))
TREE_DEPTHS = (*PAPER_DEPTHS, *range(20, 101, 10))
"""Depths of the MetaAP paper, section 5: of meta-trees and forests, and of plain trees."""
RANKING_ALONE: dict[str, Any] = {"cv": 0}
"""A trial needs only the ranking, not the hit rates of new cases, which need folds. The ranking is the same."""
TAO_SPACE = {"max_depth": (1, 2, 4), "alpha": (0.3, 1.0, 3.0, 10.0)}


def make_meta_ap(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> MetaAP:
    """MetaAP with its defaults: the same model as `MetaAP()` and `toprank fit --model metaap`."""
    return MetaAP(**RANKING_ALONE | {"random_state": random_state, "n_jobs": n_jobs} | setting)


def make_margin_meta_ap(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> MetaAP:
    """MetaAP with the published criterion, not pruned; margins order the rows inside leaves."""
    plain: dict[str, Any] = {"criterion": "ap", "leaf_score": "margin", "ccp_alpha": 0.0, "min_samples_leaf": 20}
    return MetaAP(**RANKING_ALONE | plain | {"random_state": random_state, "n_jobs": n_jobs} | setting)


def make_published(random_state: Any = 0, n_jobs: int | None = 1, depth: int = 4, **setting: Any) -> MetaAP:
    """MetaAP as published, one depth for both levels."""
    return MetaAP.paper(depth, **RANKING_ALONE | {"random_state": random_state, "n_jobs": n_jobs} | setting)


def make_forest(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> MetaAPForest:
    """Forest of MetaAP trees with its defaults."""
    return MetaAPForest(**{"random_state": random_state, "n_jobs": n_jobs} | setting)


def make_published_forest(
    random_state: Any = 0, n_jobs: int | None = 1, depth: int = 4, **setting: Any
) -> MetaAPForest:
    """MetaAPForest as published, one depth for both levels, but on bins, which are faster on long tables."""
    return MetaAPForest.paper(depth, **{"splitter": "hist", "random_state": random_state, "n_jobs": n_jobs} | setting)


def make_treerank(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> TreeRank:
    """TreeRank with this library's defaults."""
    return TreeRank(**RANKING_ALONE | {"random_state": random_state, "n_jobs": n_jobs} | setting)


def make_published_treerank(random_state: Any = 0, n_jobs: int | None = 1, depth: int = 4, **setting: Any) -> TreeRank:
    """TreeRank as used for comparison in the MetaAP paper, one depth for both levels."""
    return TreeRank.paper(depth, **RANKING_ALONE | {"random_state": random_state, "n_jobs": n_jobs} | setting)


def make_pruned_treerank(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> TreeRank:
    """TreeRank grown deep, pruned by its own cross-validation, with a sparse scorecard inside the cells."""
    deep: dict[str, Any] = {"max_depth": 8, "min_samples_leaf": 1, "leaf_order": "meta", "ccp_alpha": "cv",
                            "leaf_score": "linear"}  # fmt: skip
    return TreeRank(**RANKING_ALONE | deep | {"random_state": random_state, "n_jobs": n_jobs} | setting)


def make_treerank_forest(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> TreeRankForest:
    """Forest of TreeRank trees with its defaults."""
    return TreeRankForest(**{"random_state": random_state, "n_jobs": n_jobs} | setting)


def make_treerank_boost(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> TreeRankBoost:
    """50 small TreeRank trees, boosted; deterministic."""
    return TreeRankBoost(**RANKING_ALONE | {"n_jobs": n_jobs} | setting)


def make_tao(split: str) -> Callable[..., TAOTree]:
    """`make` of a tree optimised as a whole, of weighted sums or of conditions on one column."""

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> TAOTree:
        return TAOTree(**RANKING_ALONE | {"split": split, "random_state": random_state, "n_jobs": n_jobs} | setting)

    return make


def make_cost_curve(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> CostOptimalCurve:
    """Trees of weighted sums for every cost; it chooses their depth and penalty by its own cross-validation.

    Its points are not evaluated out of fold: that takes half of the time, and the ranking does not depend on it.
    """
    curve = CostOptimalCurve(**{"random_state": random_state, "n_jobs": n_jobs} | setting)
    curve._judges_points = False
    return curve


def make_cost_tree(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> CostTree:
    """CART with costs; it chooses its pruning by its own cross-validation."""
    return CostTree(**RANKING_ALONE | {"random_state": random_state, "n_jobs": n_jobs} | setting)


def make_red_flags(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> RedFlags:
    """Rules with points and a card."""
    return RedFlags(**RANKING_ALONE | {"random_state": random_state, "n_jobs": n_jobs} | setting)


def make_tree(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> RankingTree:
    """Greedy tree that maximises average precision; deterministic."""
    return RankingTree(**RANKING_ALONE | {"criterion": "ap", "n_jobs": n_jobs} | setting)


def make_plain_tree(criterion: str, leaf_score: str) -> Callable[..., RankingTree]:
    """`make` of a baseline of the MetaAP paper: exact splits down to single cases, no smoothing."""
    baseline: dict[str, Any] = {"criterion": criterion, "leaf_score": leaf_score, "min_samples_leaf": 1,
                                "min_gain": -np.inf, "smoothing": None, "splitter": "midpoint"}  # fmt: skip

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> RankingTree:
        return RankingTree(**RANKING_ALONE | baseline | {"n_jobs": n_jobs} | setting)

    return make


def size_of_ranker(ranker: Any) -> tuple[int, str]:
    """What a person has to read of a fitted ranker: conditions of its tree and coefficients of its scorecard.

    A condition on a weighted sum counts once per term. For a cost-optimal curve it is the tree at the base cost.
    """
    tree = ranker.path_[ranker.base_point_].tree.tree_ if hasattr(ranker, "path_") else ranker.tree_
    n_terms = np.diff(tree.oblique_at)[~tree.is_leaf]
    n_conditions = int(np.maximum(n_terms, 1).sum())
    n_coefficients = tree.scoring.n_coefficients if isinstance(tree.scoring, Card) else 0
    if not n_coefficients:
        return n_conditions, "conditions"
    if not n_conditions:
        return n_coefficients, "coefficients"
    return n_conditions + n_coefficients, "conditions and coefficients"


def conditions_and_bins(ranker: RedFlags) -> tuple[int, str]:
    """What a person has to read of rules and a card: conditions, and different points of the card."""
    return ranker.flags_.n_conditions + bins_of(ranker.card_), "conditions and bins"


def bins_of(card: PointsCard) -> int:
    """Different points of a card, counted per column: what a person reads."""
    return sum(len(set(shape.points.tolist())) for shape in card.shapes)


def leaves_of_ensemble(ranker: Any) -> tuple[int, str]:
    """Leaves of all trees of a fitted forest."""
    return ranker.n_leaves_, "leaves"


def scores_by_depth(ranker: Any, X: Any, values: Sequence[int | None]) -> np.ndarray:
    """Scores at each depth, float64 (n_values, n), from the deepest tree; None means the deepest."""
    if getattr(ranker, "leaf_depth", 0) is None:
        raise InputError(
            "Depths of MetaAP are read off one fit only where leaf_depth is a number; it is None, so the inner trees "
            "of every depth differ. Hint: use the method metaap-paper, or give leaf_depth."
        )
    # If growing stopped early, deeper trees equal the last one; a tree without limit has as many stages as levels.
    stages = dict(enumerate(ranker.staged_decision_function(X), 1))
    last = max(stages)
    return np.stack([stages[last if value is None else min(value, last)] for value in values])


def contains_lower_depths(setting: Mapping[str, Any]) -> bool:
    """Return whether a tree contains those of lower depth: grown level by level and not pruned."""
    is_whole = not setting.get("ccp_alpha") and setting.get("max_leaf_nodes") is None
    return is_whole and setting.get("leaf_depth", 0) is not None


BY_DEPTH = Sweep("max_depth", scores_by_depth, contains_lower_depths)


def register_tree(name: str, title: str, make: Callable[..., Any], summary: str, **others: Any) -> None:
    """Register a ranker that a person can read."""
    register(Method(name, title, "toprank", make, is_readable=True, size=size_of_ranker, summary=summary, **others))


def register_forest(name: str, title: str, make: Callable[..., Any], summary: str, **others: Any) -> None:
    """Register a ranker of many trees."""
    register(Method(name, title, "toprank", make, size=leaves_of_ensemble, summary=summary, **others))


register_tree(
    "metaap",
    "MetaAP",
    make_meta_ap,
    "Tree of trees for average precision, with the defaults of MetaAP().",
)
register(
    Method(
        "red-flags", "RedFlags", "toprank", make_red_flags, is_readable=True, size=conditions_and_bins,
        summary="Rules with points and a card, with the defaults of RedFlags().",
    )
)  # fmt: skip
register_tree(
    "metaap-margin",
    "MetaAP margin",
    make_margin_meta_ap,
    "MetaAP whose leaves are ordered inside by the distance to the nearest threshold.",
    space={"max_depth": META_DEPTHS, "leaf_depth": LEAF_DEPTHS},
    sweep=BY_DEPTH,
)
register_tree(
    "metaap-paper",
    "MetaAP as published",
    make_published,
    "MetaAP as published: one depth for both levels, no stopping, no smoothing.",
    space={"depth": PAPER_DEPTHS},
)
register_tree(
    "treerank",
    "TreeRank",
    make_treerank,
    "Tree of trees for the area under the ROC curve.",
    space={"max_depth": META_DEPTHS, "leaf_depth": LEAF_DEPTHS},
    sweep=BY_DEPTH,
)
register_tree(
    "treerank-pruned",
    "TreeRank pruned",
    make_pruned_treerank,
    "TreeRank grown deep and pruned by cross-validation, with a sparse score in its cells.",
    space={"leaf_depth": LEAF_DEPTHS},
)
register_tree(
    "treerank-paper",
    "TreeRank as published",
    make_published_treerank,
    "TreeRank as in the MetaAP paper: one depth for both levels, no stopping, no smoothing.",
    space={"depth": PAPER_DEPTHS},
)
register_forest(
    "treerank-forest",
    "TreeRank forest",
    make_treerank_forest,
    "Ranking forest: TreeRank trees on bootstraps, with the defaults of TreeRankForest().",
)
register_forest(
    "treerank-boost",
    "TreeRank boosted",
    make_treerank_boost,
    "50 small TreeRank trees, boosted on pairs.",
    space={"max_depth": (1, 2, 3)},
)
register_forest(
    "metaap-forest",
    "MetaAP forest",
    make_forest,
    "MetaAP trees on bootstraps, averaged, with the defaults of MetaAPForest().",
)
register_forest(
    "metaap-forest-paper",
    "MetaAP forest as published",
    make_published_forest,
    "The forest as published: one depth for both levels, no stopping, no smoothing.",
    space={"depth": PAPER_DEPTHS},
)
for split, name, title, conditions in (
    ("oblique", "tao", "TAO tree", "weighted sums"),
    ("axis", "tao-axis", "TAO tree, axis-aligned", "single columns"),
):
    register_tree(
        name,
        title,
        make_tao(split),
        f"Small tree of conditions on {conditions}, optimised as a whole for the cost of mistakes.",
        space=TAO_SPACE,
    )
register_tree(
    "cost-curve",
    "Cost-optimal curve",
    make_cost_curve,
    "TAO trees for all costs; rows by the costs at which they turn positive. Size: the base tree.",
)
register_tree(
    "cost-tree",
    "CART with costs",
    make_cost_tree,
    "Greedy Gini tree for balanced costs, pruned by cross-validation on what mistakes cost.",
)
register_tree(
    "tree",
    "AP tree",
    make_tree,
    "One greedy tree with the AP criterion, leaves by their smoothed rate.",
    space={"max_depth": (2, 3, 4, 5, 6, 8, 10)},
    sweep=BY_DEPTH,
)
for criterion in ("gini", "entropy"):
    register_tree(
        criterion,
        criterion.capitalize(),
        make_plain_tree(criterion, "margin"),
        f"{criterion.capitalize()} tree of the MetaAP paper, which ranks by the signed distance to a threshold.",
        space={"max_depth": TREE_DEPTHS},
        sweep=BY_DEPTH,
    )
for criterion in ("gini", "entropy"):
    register_tree(
        f"{criterion}-rate",
        f"{criterion.capitalize()} leaf rate",
        make_plain_tree(criterion, "constant"),
        f"The same {criterion.capitalize()} tree, which ranks by the positive rate of leaves.",
        space={"max_depth": TREE_DEPTHS},
        sweep=BY_DEPTH,
    )
