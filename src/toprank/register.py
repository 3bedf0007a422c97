"""The register of estimators: what each is called, where it lives and what it can do. Imports nothing.

The package's names, the command line, model files and warm-up read it; a new estimator is one more entry.
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
        Name of the class: in Python and in model files.
    module : str
        Where the class lives.
    kind : {"tree", "ensemble", "curve", "classes", "other"}
        One tree that ranks; many of them; a tree for every balance of mistakes; a tree that predicts classes and ranks
        nothing; a ranker without trees.
    command : str or None
        Name on the command line (`toprank fit --model`); None where it is not offered there.
    """

    name: str
    module: str
    kind: str
    command: str | None = None

    @property
    def ranks(self) -> bool:
        """True for rankers: they have a positive class, a cutoff and hit rates."""
        return self.kind != "classes"

    @property
    def has_leaves(self) -> bool:
        """True for models made of trees."""
        return self.kind != "other"

    def load(self) -> Any:
        """The class itself."""
        return getattr(import_module(self.module), self.name)


ENTRIES = (
    Entry("MetaAP", "toprank.rankers.meta.meta_ap", "tree", "metaap"),
    Entry("MetaAPForest", "toprank.rankers.ensemble.meta_ap_forest", "ensemble", "metaap-forest"),
    Entry("TreeRank", "toprank.rankers.meta.treerank", "tree", "treerank"),
    Entry("TreeRankForest", "toprank.rankers.ensemble.treerank_forest", "ensemble", "treerank-forest"),
    Entry("TreeRankBoost", "toprank.rankers.ensemble.treerank_boost", "ensemble", "treerank-boost"),
    Entry("CostOptimalCurve", "toprank.rankers.curve.cost_curve", "curve", "cost-curve"),
    Entry("CostOptimalForest", "toprank.rankers.curve.cost_forest", "ensemble"),
    Entry("TAOTree", "toprank.rankers.cost.tao_tree", "tree", "tao"),
    Entry("CostTree", "toprank.rankers.cost.cost_tree", "tree", "cost-tree"),
    Entry("RankingTree", "toprank.rankers.greedy.ranking_tree", "tree", "tree"),
    Entry("TAOClassifier", "toprank.rankers.cost.tao_classifier", "classes"),
)
"""In the order in which the command line lists them."""

BY_NAME = {entry.name: entry for entry in ENTRIES}
BY_COMMAND = {entry.command: entry for entry in ENTRIES if entry.command is not None}


def entry_of(model: Any) -> Entry:
    """Entry of a model or of the name of its class; raises KeyError where the register does not know it.

    Examples
    --------
    >>> entry_of("MetaAP").command, entry_of("TAOClassifier").ranks
    ('metaap', False)
    """
    return BY_NAME[model if isinstance(model, str) else type(model).__name__]
