"""The register of estimators: the name, module and kind of each. Imports nothing.

The package namespace, the command line, model files and warm-up use it; a new estimator is one more entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One estimator.

    Attributes
    ----------
    name : str
        Name of the class, in Python and in model files.
    module : str
        Module of the class.
    kind : {"tree", "ensemble", "curve", "points", "other"}
        What it is made of: one tree; many of them; a tree for every trade-off of mistakes; points that add up, printed
        on a page; nothing to read.
    command : str or None
        Name on the command line (`toprank fit --model`); None if it is not offered there.
    ranks : bool
        True for rankers: they have a positive class, a cutoff and hit rates. False for classifiers, which predict
        classes and do not rank.
    labels : bool
        True for rankers whose `predict` returns labels of their own if they have no budget: those of lowest cost, or of
        a vote. False for all others: without a budget, they flag as many cases as were positive.
    """

    name: str
    module: str
    kind: str
    command: str | None = None
    ranks: bool = True
    labels: bool = False

    @property
    def has_leaves(self) -> bool:
        """True for models made of trees."""
        return self.kind not in ("points", "other")

    @property
    def has_page(self) -> bool:
        """True for models whose `to_text` is short enough to print whole."""
        return self.kind == "points"

    def load(self) -> Any:
        """The class itself."""
        return getattr(import_module(self.module), self.name)


ENTRIES = (
    Entry("MetaAP", "toprank.rankers.meta.meta_ap", "tree", "metaap"),
    Entry("MetaAPForest", "toprank.rankers.ensemble.meta_ap_forest", "ensemble", "metaap-forest"),
    Entry("TreeRank", "toprank.rankers.meta.treerank", "tree", "treerank"),
    Entry("TreeRankForest", "toprank.rankers.ensemble.treerank_forest", "ensemble", "treerank-forest"),
    Entry("ExtraTrees", "toprank.rankers.ensemble.extra_trees", "other", "extra-trees"),
    Entry("TreeRankBoost", "toprank.rankers.ensemble.treerank_boost", "ensemble", "treerank-boost"),
    Entry("CostOptimalCurve", "toprank.rankers.curve.cost_curve", "curve", "cost-curve", labels=True),
    Entry("CostOptimalForest", "toprank.rankers.curve.cost_forest", "ensemble", labels=True),
    Entry("TAOTree", "toprank.rankers.cost.tao_tree", "tree", "tao", labels=True),
    Entry("CostTree", "toprank.rankers.cost.cost_tree", "tree", "cost-tree", labels=True),
    Entry("RankingTree", "toprank.rankers.greedy.ranking_tree", "tree", "tree"),
    Entry("RedFlags", "toprank.rankers.points.red_flags", "points", "red-flags"),
    Entry("SGBAP", "toprank.rankers.boosting.sgbap", "other", "sgbap"),
    Entry("LogisticBoost", "toprank.rankers.boosting.plain_booster", "other", "logistic-boost"),
    Entry("PairwiseBoost", "toprank.rankers.boosting.xgboost_rankers", "other", "pairwise-boost"),
    Entry("MAPBoost", "toprank.rankers.boosting.xgboost_rankers", "other", "map-boost"),
    Entry("LambdaMART", "toprank.rankers.boosting.lambdamart", "other", "lambdamart-ap"),
    Entry("RankBoost", "toprank.rankers.boosting.rankboost", "other", "rankboost"),
    Entry("Scorecard", "toprank.rankers.points.scorecard", "points", "scorecard"),
    Entry("ScorecardTree", "toprank.rankers.points.scorecard_tree", "points", "scorecard-tree"),
    Entry("GammaKNN", "toprank.rankers.neighbours.gamma_knn", "other", "gamma-knn", labels=True),
    Entry("LocalGammaKNN", "toprank.rankers.neighbours.local_gamma_knn", "other", "local-gamma-knn", labels=True),
    Entry("KNN", "toprank.rankers.neighbours.knn", "other", "knn", labels=True),
    Entry("MLFP", "toprank.rankers.neighbours.mlfp", "other", "mlfp", labels=True),
    Entry("StackedRanker", "toprank.rankers.ensemble.stacked", "other", "stacked"),
    Entry("TAOClassifier", "toprank.rankers.cost.tao_classifier", "tree", ranks=False),
    Entry("GammaKNNClassifier", "toprank.rankers.neighbours.gamma_knn_classifier", "other", ranks=False),
)
"""In the order of the command line's lists."""

BY_NAME = {entry.name: entry for entry in ENTRIES}
BY_COMMAND = {entry.command: entry for entry in ENTRIES if entry.command is not None}

DEFAULT_COMMAND = "red-flags"
"""Name on the command line of the model that `toprank fit` and `toprank demo` fit."""


def entry_of(model: Any) -> Entry:
    """Return the entry of a model or of a class name; raises KeyError if the register does not have it.

    Examples
    --------
    >>> entry_of("MetaAP").command, entry_of("TAOClassifier").ranks
    ('metaap', False)
    """
    return BY_NAME[model if isinstance(model, str) else type(model).__name__]
