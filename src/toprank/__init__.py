"""toprank ranks rare cases with trees a person can read: the k cases most worth checking, and why.

Names load on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toprank import datasets, metrics
    from toprank.drift import two_sample_test
    from toprank.rankers.cost_curve import CostOptimalCurve
    from toprank.rankers.cost_forest import CostOptimalForest
    from toprank.rankers.cost_tree import CostTree
    from toprank.rankers.meta_ap import MetaAP
    from toprank.rankers.meta_ap_forest import MetaAPForest
    from toprank.rankers.model_file import load
    from toprank.rankers.ranking_tree import RankingTree
    from toprank.rankers.tao_classifier import TAOClassifier
    from toprank.rankers.tao_tree import TAOTree
    from toprank.rankers.treerank import TreeRank
    from toprank.rankers.treerank_boost import TreeRankBoost
    from toprank.rankers.treerank_forest import TreeRankForest

__version__ = "0.1.0"

__all__ = [
    "CostOptimalCurve",
    "CostOptimalForest",
    "CostTree",
    "MetaAP",
    "MetaAPForest",
    "RankingTree",
    "TAOClassifier",
    "TAOTree",
    "TreeRank",
    "TreeRankBoost",
    "TreeRankForest",
    "__version__",
    "datasets",
    "load",
    "metrics",
    "two_sample_test",
]

_HOME = {
    "CostOptimalCurve": "toprank.rankers.cost_curve",
    "CostOptimalForest": "toprank.rankers.cost_forest",
    "CostTree": "toprank.rankers.cost_tree",
    "MetaAP": "toprank.rankers.meta_ap",
    "MetaAPForest": "toprank.rankers.meta_ap_forest",
    "RankingTree": "toprank.rankers.ranking_tree",
    "TAOClassifier": "toprank.rankers.tao_classifier",
    "TAOTree": "toprank.rankers.tao_tree",
    "TreeRank": "toprank.rankers.treerank",
    "TreeRankBoost": "toprank.rankers.treerank_boost",
    "TreeRankForest": "toprank.rankers.treerank_forest",
    "load": "toprank.rankers.model_file",
    "two_sample_test": "toprank.drift",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in ("datasets", "metrics"):
        return import_module(f"toprank.{name}")
    raise AttributeError(f"module 'toprank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
