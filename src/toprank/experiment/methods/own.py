"""Rankers of this library as methods: meta-trees, forests, trees for costs, greedy trees, boosters, points, neighbours.

A trial needs only the ranking, not the hit rates of new cases, which need folds: so cv=0, where the ranking is the
same. With its defaults a booster chooses its number of trees by folds of its own, as `SGBAP().fit` does. Boosters with
settings to try fit exactly `n_estimators` trees (cv=0), and their number is tuned like any other, from one fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank.errors import InputError
from toprank.experiment.registry import Method, Sweep, recipe
from toprank.rankers.boosting.lambdamart import LambdaMART
from toprank.rankers.boosting.plain_booster import LogisticBoost
from toprank.rankers.boosting.rankboost import RankBoost
from toprank.rankers.boosting.sgbap import SGBAP
from toprank.rankers.boosting.xgboost_rankers import MAPBoost, PairwiseBoost
from toprank.rankers.cost.cost_path import last_step
from toprank.rankers.cost.cost_tree import CostTree
from toprank.rankers.cost.tao_tree import TAOTree
from toprank.rankers.curve.cost_curve import CostOptimalCurve
from toprank.rankers.ensemble.extra_trees import ExtraTrees
from toprank.rankers.ensemble.meta_ap_forest import MetaAPForest
from toprank.rankers.ensemble.stacked import StackedRanker
from toprank.rankers.ensemble.treerank_boost import TreeRankBoost
from toprank.rankers.ensemble.treerank_forest import TreeRankForest
from toprank.rankers.greedy.ranking_tree import RankingTree
from toprank.rankers.meta.meta_ap import MetaAP
from toprank.rankers.meta.treerank import TreeRank
from toprank.rankers.neighbours.gamma_knn import GammaKNN
from toprank.rankers.neighbours.knn import KNN
from toprank.rankers.neighbours.local_gamma_knn import LocalGammaKNN
from toprank.rankers.neighbours.mlfp import MLFP
from toprank.rankers.points.card import Card
from toprank.rankers.points.red_flags import RedFlags
from toprank.rankers.points.scorecard import Scorecard
from toprank.rankers.points.scorecard_tree import ScorecardTree

DEPTHS = {"max_depth": (1, 2, 4), "leaf_depth": (2, 3, 4)}
PAPER_DEPTHS = tuple(range(2, 11))
TREE_DEPTHS = (*PAPER_DEPTHS, *range(20, 101, 10))
"""Depths of the MetaAP paper, section 5: of meta-trees and forests, and of plain trees."""
TAO_SPACE = {"max_depth": (1, 2, 4), "alpha": (0.3, 1.0, 3.0, 10.0)}
ROUNDS = (50, 100, 200, 400)
BOOSTER_SPACE = {"n_estimators": ROUNDS, "max_depth": (3, 6), "learning_rate": (0.03, 0.1)}
LIKE_XGBOOST: dict[str, Any] = {"subsample": 1.0, "colsample_bytree": 1.0}
"""XGBoost's own defaults: all rows and all columns in every round."""


# --- estimators -------------------------------------------------------------------------------------------------


def paper_tree(criterion: str, leaf_score: str) -> Callable[..., RankingTree]:
    """`make` of a baseline of the MetaAP paper: exact splits down to single cases, no smoothing; deterministic."""
    return recipe(RankingTree, words=(None, "n_jobs"), cv=0, criterion=criterion, leaf_score=leaf_score,
                  min_samples_leaf=1, min_gain=-np.inf, smoothing=None, splitter="midpoint")  # fmt: skip


def boosted(ranker: Callable[..., Any], *given: Any, **fixed: Any) -> Callable[..., Any]:
    """`make` of a boosted ranker, without folds of its own where the setting has a number of trees.

    A setting may name an `init` of `STARTS`.
    """

    def make(**setting: Any) -> Any:
        alone = {"cv": 0} if "n_estimators" in setting else {}
        name = setting.get("init", "none")
        if name not in STARTS:
            raise InputError(
                f"init is {name!r}, expected one of {', '.join(STARTS)}. Hint: 'none' starts from scratch."
            )
        start = {"init": STARTS[name]()} if "init" in setting else {}
        return recipe(ranker, *given, **alone | fixed)(**setting | start)

    return make


def ridge() -> Pipeline:
    """Logistic regression on standardised columns with a strong L2 penalty; categories as codes."""
    numbers = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return make_pipeline(numbers, StandardScaler(), LogisticRegression(C=0.01, max_iter=10_000))


STARTS: dict[str, Callable[[], Any]] = {
    "none": lambda: None, "ridge": ridge, "metaap-forest": MetaAPForest, "extra-trees": lambda: ExtraTrees(cv=0),
    "deep-extra-trees": lambda: ExtraTrees(cv=0, max_depth=30, min_samples_leaf=1, max_features="sqrt"),
}  # fmt: skip
"""What boosting may start from, by the name of `init` in plans."""


# --- sizes --------------------------------------------------------------------------------------------------------


def size_of_ranker(ranker: Any) -> tuple[int, str]:
    """What a person has to read of a fitted ranker: conditions of its tree and coefficients of its scorecard.

    A condition on a weighted sum counts once per term.
    """
    tree = ranker.tree_
    n_terms = np.diff(tree.oblique_at)[~tree.is_leaf]
    n_conditions = int(np.maximum(n_terms, 1).sum())
    n_coefficients = 0 if tree.scoring.card is None else tree.scoring.card.n_coefficients
    if not n_coefficients:
        return n_conditions, "conditions"
    if not n_conditions:
        return n_coefficients, "coefficients"
    return n_conditions + n_coefficients, "conditions and coefficients"


def size_of_points(ranker: Any) -> tuple[int, str]:
    """What a person has to read of a card: its bins, and the conditions of rules or of a tree with corrections."""
    bins, tree = bins_of(ranker.card_), getattr(ranker, "card_tree_", None)
    if isinstance(ranker, RedFlags):
        return ranker.flags_.n_conditions + bins, "conditions and bins"
    n_conditions = 0 if tree is None else int((tree.feature >= 0).sum())
    bins += 0 if tree is None else sum(map(bins_of, tree.corrections))
    return n_conditions + bins, "conditions and bins" if n_conditions else "bins"


def bins_of(card: Card) -> int:
    """Different points of a card, counted per column: what a person reads."""
    return sum(len(set(shape.points.tolist())) for shape in card.shapes)


def rows_kept(model: Any) -> tuple[int, str]:
    """Training rows that a model of neighbours keeps."""
    known = last_step(model)[1]._known
    return len(known.positives) + len(known.negatives), "rows"


# --- sweeps -------------------------------------------------------------------------------------------------------


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


def scores_by_round(ranker: Any, X: Any, values: Sequence[int]) -> np.ndarray:
    """Scores after each number of rounds, float64 (n_values, n)."""
    asked = [min(value, ranker.n_rounds_) for value in values]
    found = {n: score for n, score in enumerate(ranker.staged_decision_function(X), 1) if n in asked}
    return np.stack([found[n] for n in asked])


def scores_by_neighbours(model: Any, X: Any, values: Sequence[int]) -> np.ndarray:
    """Scores with each number of neighbours, float64 (n_values, n), from one search."""
    before = model[:-1].transform(X) if isinstance(model, Pipeline) else X
    return last_step(model)[1]._scores_by_k(before, values)


BY_DEPTH = Sweep("max_depth", scores_by_depth, contains_lower_depths)
BY_NEIGHBOURS = Sweep("n_neighbors", scores_by_neighbours, lambda setting: setting.get("sampler") is None)


# --- methods ------------------------------------------------------------------------------------------------------


def tree(
    name: str, title: str, make: Callable[..., Any], summary: str, size: Any = size_of_ranker, **others: Any
) -> Method:
    """A ranker that a person can read."""
    return Method(name, title, "toprank", make, is_readable=True, size=size, summary=summary, **others)


def forest(
    name: str,
    title: str,
    make: Callable[..., Any],
    summary: str,
    size: Any = lambda ranker: (ranker.n_leaves_, "leaves"),
    **others: Any,
) -> Method:
    """A ranker of many trees."""
    return Method(name, title, "toprank", make, size=size, summary=summary, **others)


def booster(name: str, title: str, make: Callable[..., Any], summary: str, space: Any, *packages: str) -> Method:
    """A sum of boosted trees; one fit gives the scores for all numbers of rounds."""
    return Method(name, title, "toprank", make, space, packages=packages, sweep=Sweep("n_estimators", scores_by_round),
                  size=lambda ranker: (ranker.trees_.n_leaves, "leaves"), summary=summary)  # fmt: skip


METHODS = [
    tree("metaap", "MetaAP", recipe(MetaAP, cv=0),
         "Tree of trees for average precision, with the defaults of MetaAP()."),
    tree("red-flags", "RedFlags", recipe(RedFlags, cv=0),
         "Rules with points and a card, with the defaults of RedFlags().", size=size_of_points),
    tree("metaap-margin", "MetaAP margin",  # the published criterion, not pruned
         recipe(MetaAP, cv=0, criterion="ap", leaf_score="margin", ccp_alpha=0.0, min_samples_leaf=20),
         "MetaAP whose leaves are ordered inside by the distance to the nearest threshold.", space=DEPTHS,
         sweep=BY_DEPTH),
    tree("metaap-paper", "MetaAP as published", recipe(MetaAP.paper, depth=4, cv=0),
         "MetaAP as published: one depth for both levels, no stopping, no smoothing.", space={"depth": PAPER_DEPTHS}),
    tree("treerank", "TreeRank", recipe(TreeRank, cv=0),
         "Tree of trees for the area under the ROC curve.", space=DEPTHS, sweep=BY_DEPTH),
    tree("treerank-pruned", "TreeRank pruned",
         recipe(TreeRank, cv=0, max_depth=8, min_samples_leaf=1, leaf_order="meta", ccp_alpha="cv",
                leaf_score="linear"),
         "TreeRank grown deep and pruned by cross-validation, with a sparse score in its cells.",
         space={"leaf_depth": DEPTHS["leaf_depth"]}),
    tree("treerank-paper", "TreeRank as published", recipe(TreeRank.paper, depth=4, cv=0),
         "TreeRank as in the MetaAP paper: one depth for both levels, no stopping, no smoothing.",
         space={"depth": PAPER_DEPTHS}),
    forest("treerank-forest", "TreeRank forest", recipe(TreeRankForest),
           "Ranking forest: TreeRank trees on bootstraps, with the defaults of TreeRankForest()."),
    forest("treerank-boost", "TreeRank boosted", recipe(TreeRankBoost, words=(None, "n_jobs"), cv=0),
           "50 small TreeRank trees, boosted on pairs.", space={"max_depth": (1, 2, 3)}),
    forest("metaap-forest", "MetaAP forest", recipe(MetaAPForest),
           "MetaAP trees on bootstraps, averaged, with the defaults of MetaAPForest()."),
    forest("metaap-forest-paper", "MetaAP forest as published",  # on bins, which are faster on long tables
           recipe(MetaAPForest.paper, depth=4, splitter="hist"),
           "The forest as published: one depth for both levels, no stopping, no smoothing.",
           space={"depth": PAPER_DEPTHS}),
    Method("extra-trees", "Extra trees", "toprank", recipe(ExtraTrees, cv=0),
           size=lambda ranker: (ranker.trees_.n_leaves, "leaves"),
           summary="Trees with random thresholds, their log-odds averaged, with the defaults of ExtraTrees()."),
    tree("tao", "TAO tree", recipe(TAOTree, cv=0, split="oblique"),
         "Small tree of conditions on weighted sums, optimised as a whole for the cost of mistakes.", space=TAO_SPACE),
    tree("tao-axis", "TAO tree, axis-aligned", recipe(TAOTree, cv=0, split="axis"),
         "Small tree of conditions on single columns, optimised as a whole for the cost of mistakes.",
         space=TAO_SPACE),
    # Each tree can be read, but the ranking is that of all of them.
    forest("cost-curve", "Cost-optimal curve", recipe(CostOptimalCurve, cv=0),
           "TAO trees for all costs; rows by the costs at which they turn positive.",
           size=lambda ranker: (sum(point.tree.n_leaves_ for point in ranker.path_), "leaves")),
    tree("cost-tree", "CART with costs", recipe(CostTree, cv=0),
         "Greedy Gini tree for balanced costs, pruned by cross-validation on what mistakes cost."),
    tree("tree", "Ranking tree", recipe(RankingTree, cv=0), "One greedy tree, with the defaults of RankingTree().",
         sweep=BY_DEPTH),
    tree("ap-tree", "AP tree", recipe(RankingTree, cv=0, criterion="ap"),
         "One greedy tree with the AP criterion, leaves by their smoothed rate.",
         space={"max_depth": (2, 3, 4, 5, 6, 8, 10)}, sweep=BY_DEPTH),
    *(tree(criterion, criterion.capitalize(), paper_tree(criterion, "margin"),
           f"{criterion.capitalize()} tree of the MetaAP paper, which ranks by the signed distance to a threshold.",
           space={"max_depth": TREE_DEPTHS}, sweep=BY_DEPTH) for criterion in ("gini", "entropy")),
    *(tree(f"{criterion}-rate", f"{criterion.capitalize()} leaf rate", paper_tree(criterion, "constant"),
           f"The same {criterion.capitalize()} tree, which ranks by the positive rate of leaves.",
           space={"max_depth": TREE_DEPTHS}, sweep=BY_DEPTH) for criterion in ("gini", "entropy")),
    booster("sgbap", "SGBAP", boosted(SGBAP),
            "Boosting on average precision with exponentials, with the defaults of SGBAP().", {}, "xgboost"),
    booster("sgbap-sigmoid", "SGBAP sigmoid", boosted(SGBAP, "sigmoid"),
            "The same with sigmoids, with the defaults of SGBAP('sigmoid').", {}, "xgboost"),
    booster("sgbap-paper", "SGBAP as published", boosted(SGBAP.paper),
            "SGBAP as published: the surrogate alone, half of the cases per round, line search.",
            {"n_estimators": ROUNDS, "max_depth": (2, 4, 6)}, "xgboost"),
    booster("logistic-boost", "Logistic boosting", boosted(LogisticBoost),
            "Boosting on the logistic loss, with the defaults of LogisticBoost().", {}, "xgboost"),
    booster("lambdamart-ap", "LambdaMART-AP", boosted(LambdaMART),
            "Boosting on pairs, weighted by the change of average precision, with the defaults of LambdaMART().", {},
            "xgboost"),
    Method("stacked", "Stack", "toprank", boosted(StackedRanker), packages=("xgboost",),
           size=lambda ranker: (len(ranker.members_), "rankers"),
           summary="Forests and boosters added up on the scale of log-odds, with the defaults of StackedRanker()."),
    booster("rankboost", "RankBoost", boosted(RankBoost),
            "Thresholds on single columns, boosted on pairs (Freund et al. 2003).", {}),
    booster("pairwise-boost", "Pairwise boosting", boosted(PairwiseBoost),
            "XGBoost's rank:pairwise, pairs over the whole list, with the defaults of PairwiseBoost().", {}, "xgboost"),
    booster("xgb-pairwise", "XGBoost pairwise", boosted(PairwiseBoost, min_child_weight=1.0, **LIKE_XGBOOST),
            "The same with XGBoost's own defaults, tuned.", BOOSTER_SPACE, "xgboost"),
    booster("map-boost", "MAP boosting", boosted(MAPBoost),
            "XGBoost's rank:map, pairs over the whole list, with the defaults of MAPBoost().", {}, "xgboost"),
    booster("xgb-map", "XGBoost MAP", boosted(MAPBoost, **LIKE_XGBOOST),
            "The same with XGBoost's own defaults, tuned.", BOOSTER_SPACE, "xgboost"),
    tree("scorecard", "Scorecard", recipe(Scorecard),
         "Points per column that add up, with the defaults of Scorecard().", size=size_of_points),
    tree("scorecard-tree", "Scorecard tree", recipe(ScorecardTree),
         "Points per column, corrected in the leaves of a shallow tree, with the defaults of ScorecardTree().",
         size=size_of_points),
    Method("gamma-knn", "gamma-kNN", "toprank", recipe(GammaKNN), {"n_neighbors": (1, 3, 5, 9, 15, 25, 41)},
           size=rows_kept, sweep=BY_NEIGHBOURS,
           summary="Distance to the nearest positives against that to the nearest negatives."),
    Method("knn", "kNN", "toprank", recipe(KNN, cv=0), {"n_neighbors": (1, 3, 5, 9, 15, 25, 41)},
           size=rows_kept, sweep=BY_NEIGHBOURS, summary="Share of positives among the nearest rows, as KNN() has it."),
    Method("local-gamma-knn", "Local gamma-kNN", "toprank", recipe(LocalGammaKNN, cv=0), {"n_neighbors": (1, 3, 9)},
           size=rows_kept, summary="The same, with a weight of positives for each cluster."),
    Method("mlfp", "MLFP", "toprank", recipe(MLFP, cv=0), {"mu": (0.001, 0.01, 0.1), "c": (0.0, 0.5, 0.9)},
           size=rows_kept, summary="Nearest rows, with a distance to positives that is learned from few of them."),
]  # fmt: skip
