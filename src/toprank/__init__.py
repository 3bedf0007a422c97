"""toprank ranks rare cases with models a person can read: the k cases most worth checking, and why.

Names load on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toprank.register import ENTRIES

if TYPE_CHECKING:
    from toprank import datasets, distributed, drift, experiment, explain, metrics, papers, plots, workflow
    from toprank.data.shared_table import SharedTable
    from toprank.drift import two_sample_test
    from toprank.errors import InputError
    from toprank.files.model_file import ModelFileError, load
    from toprank.rankers.boosting.lambdamart import LambdaMART
    from toprank.rankers.boosting.plain_booster import LogisticBoost
    from toprank.rankers.boosting.rankboost import RankBoost
    from toprank.rankers.boosting.sgbap import SGBAP
    from toprank.rankers.boosting.xgboost_rankers import MAPBoost, PairwiseBoost
    from toprank.rankers.cost.cost_path import CostPath, cost_ratios_around, fit_at_costs
    from toprank.rankers.cost.cost_tree import CostTree
    from toprank.rankers.cost.tao_classifier import TAOClassifier
    from toprank.rankers.cost.tao_tree import TAOTree
    from toprank.rankers.curve.cost_curve import CostOptimalCurve
    from toprank.rankers.curve.cost_forest import CostOptimalForest
    from toprank.rankers.ensemble.extra_trees import ExtraTrees
    from toprank.rankers.ensemble.meta_ap_forest import MetaAPForest
    from toprank.rankers.ensemble.stacked import StackedRanker
    from toprank.rankers.ensemble.treerank_boost import TreeRankBoost
    from toprank.rankers.ensemble.treerank_forest import TreeRankForest
    from toprank.rankers.greedy.ranking_tree import RankingTree
    from toprank.rankers.meta.meta_ap import MetaAP
    from toprank.rankers.meta.treerank import TreeRank
    from toprank.rankers.neighbours.gamma_knn import GammaKNN
    from toprank.rankers.neighbours.gamma_knn_classifier import GammaKNNClassifier
    from toprank.rankers.neighbours.knn import KNN
    from toprank.rankers.neighbours.local_gamma_knn import LocalGammaKNN
    from toprank.rankers.neighbours.mlfp import MLFP
    from toprank.rankers.points.red_flags import RedFlags
    from toprank.rankers.points.scorecard import Scorecard
    from toprank.rankers.points.scorecard_tree import ScorecardTree
    from toprank.workflow.distilling import distill
    from toprank.workflow.versions import compare_versions

__version__ = "0.1.0"

__all__ = [
    "KNN",
    "MLFP",
    "SGBAP",
    "CostOptimalCurve",
    "CostOptimalForest",
    "CostPath",
    "CostTree",
    "ExtraTrees",
    "GammaKNN",
    "GammaKNNClassifier",
    "InputError",
    "LambdaMART",
    "LocalGammaKNN",
    "LogisticBoost",
    "MAPBoost",
    "MetaAP",
    "MetaAPForest",
    "ModelFileError",
    "PairwiseBoost",
    "RankBoost",
    "RankingTree",
    "RedFlags",
    "Scorecard",
    "ScorecardTree",
    "SharedTable",
    "StackedRanker",
    "TAOClassifier",
    "TAOTree",
    "TreeRank",
    "TreeRankBoost",
    "TreeRankForest",
    "__version__",
    "compare_versions",
    "cost_ratios_around",
    "datasets",
    "distill",
    "distributed",
    "drift",
    "experiment",
    "explain",
    "fit_at_costs",
    "load",
    "metrics",
    "papers",
    "plots",
    "two_sample_test",
    "workflow",
]

_HOME = {
    **{entry.name: entry.module for entry in ENTRIES},
    "CostPath": "toprank.rankers.cost.cost_path",
    "InputError": "toprank.errors",
    "ModelFileError": "toprank.files.model_file",
    "SharedTable": "toprank.data.shared_table",
    "compare_versions": "toprank.workflow.versions",
    "cost_ratios_around": "toprank.rankers.cost.cost_path",
    "distill": "toprank.workflow.distilling",
    "fit_at_costs": "toprank.rankers.cost.cost_path",
    "load": "toprank.files.model_file",
    "two_sample_test": "toprank.drift",
}

_MODULES = ("datasets", "distributed", "drift", "experiment", "explain", "metrics", "papers", "plots", "workflow")


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(f"toprank.{name}")
    raise AttributeError(f"module 'toprank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
