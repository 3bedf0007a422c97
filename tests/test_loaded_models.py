"""A model from a file offers all that the fitted one does: every public method and attribute, over the register."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from ranker_cases import make_cases
from toprank import KNN, MetaAPForest, RankingTree, TAOTree, load
from toprank.rankers.points.card import Card
from toprank.rankers.points.card_tree import CardTree
from toprank.register import ENTRIES
from toprank.tree.additive import AdditiveTrees
from toprank.tree.structure import Tree

X, Y = make_cases(300)
NEW = make_cases(40)[0]
LATER = make_cases(200, seed=1)

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "MetaAP": [{"cv": 3}, {"ccp_alpha": 0.0, "leaf_score": "constant", "cv": 0}],
    "MetaAPForest": [{"n_estimators": 3, "random_state": 0}],
    "TreeRank": [{"cv": 0}, {"ccp_alpha": 0.001, "cv": 3}],
    "TreeRankForest": [{"n_estimators": 3, "random_state": 0}],
    "TreeRankBoost": [{"n_estimators": 3, "cv": 0}],
    "ExtraTrees": [{"n_estimators": 3, "cv": 2}],
    "CostOptimalCurve": [{"base": TAOTree(max_depth=2), "depths": None, "alphas": None, "cost_factor": 16.0, "cv": 2}],
    "CostOptimalForest": [{"base": TAOTree(max_depth=2), "n_estimators": 2, "cost_factor": 50.0, "random_state": 0}],
    "TAOTree": [{"max_depth": 2, "cv": 0}],
    "CostTree": [{"cv": 0}],
    "RankingTree": [{"cv": 0}],
    "RedFlags": [{"cv": 2, "teacher": None, "max_rules": 4}, {"cv": 0, "max_rules": 0, "points": None}],
    "GammaKNN": [{}, {"gamma": 0.5, "cv": 3}],
    "LocalGammaKNN": [{"n_clusters": 2, "cv": 2}],
    "MLFP": [{"cv": 2}, {"form": "low_rank", "cv": 0}],
    "KNN": [{"cv": 0}, {"rule": "krnn"}],
    "TAOClassifier": [{"max_depth": 2}],
    "GammaKNNClassifier": [{}, {"gamma": 0.5, "n_neighbors": 2}],
    "LogisticBoost": [{"n_estimators": 4, "cv": 0}],
    "PairwiseBoost": [{"n_estimators": 4, "cv": 0}],
    "MAPBoost": [{"n_estimators": 4, "cv": 2}],
    "LambdaMART": [{"n_estimators": 4, "cv": 0}],
    "RankBoost": [{"n_estimators": 4, "cv": 2}, {"n_estimators": 3, "missing": "side", "cv": 0}],
    "StackedRanker": [
        {"rankers": [RankingTree(cv=0), ("trees", MetaAPForest(n_estimators=3))], "random_state": 0, "cv": 2},
        {"rankers": [RankingTree(cv=0), RankingTree(max_depth=2)], "cv": 0},
    ],
    "Scorecard": [{"cv": 3}, {"points": None, "max_features": 2, "cv": 0}],
    "ScorecardTree": [{"cv": 3, "random_state": 0}, {"max_depth": 2, "min_class_leaf": 5, "cv": 0}],
    "SGBAP": [{"n_estimators": 5, "cv": 2, "random_state": 0}, {"n_estimators": 3, "line_search": True, "cv": 0},
              {"n_estimators": 3, "init": KNN(cv=0), "cv": 2}],
}  # fmt: skip
CASES = [(entry, settings) for entry in ENTRIES for settings in SETTINGS[entry.name]]

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("decision_function", "predict", "predict_proba", "apply", "decision_path", "explain"), (NEW,)),
    **dict.fromkeys(("staged_decision_function", "cell_scores", "transform"), (NEW,)),
    **dict.fromkeys(("get_mahalanobis_matrix", "bound"), ()),
    **dict.fromkeys(("rules", "rule_list", "to_text", "summary", "scorecard", "to_dict", "to_plain", "frame"), ()),
    "points": (X, Y), "diff": (0, 1),
    "without_rule": (1, *LATER), "with_points": (1, 7, *LATER), "with_rule": ({"size": (">", 1)}, *LATER),
    "score": (X, Y), "top_k": (NEW, 5), "dependence": (NEW, "size"), "subtree": ([1],), "node_classifier": (0,),
}  # fmt: skip
"""How each public method is called. A method that is not here, nor among those below, fails the test."""

TARGETS = {"select", "at"}
"""Methods of a curve that take a target by name."""

NOT_READERS = {"fit", "fit_transform", "learn_components", "set_output", "save", "paper", "from_dict", "with_choice",
               "with_budget", "get_params", "set_params", "get_metadata_routing", "set_fit_request",
               "set_score_request"}  # fmt: skip
"""Methods that make or change a model, or are scikit-learn's own."""

OF_TRAINING_ROWS = {"oob_decision_function_", "oof_decision_function_", "oof_fold_"}
"""One value per training row: files hold no training rows."""


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal, whatever they are made of."""
    if isinstance(one, Iterator):
        return same(list(one), list(other))
    if isinstance(one, BaseEstimator):
        return type(one) is type(other) and np.array_equal(one.decision_function(NEW), other.decision_function(NEW))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if sp.issparse(one):
        return (one != other).nnz == 0
    if hasattr(one, "equals"):
        return bool(one.equals(other))
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, float) and np.isnan(one):
        return bool(np.isnan(other))
    if is_dataclass(one) and not isinstance(one, Tree | Card | CardTree):
        values = [[getattr(each, f.name) for f in fields(each)] for each in (one, other)]
        return type(one) is type(other) and same(*values)
    if hasattr(one, "save_raw"):  # of XGBoost
        return bool(one.save_raw("json") == other.save_raw("json"))
    if isinstance(one, AdditiveTrees):
        return all(np.array_equal(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if callable(one):
        return callable(other)
    return bool(one == other)


def outcome(use):
    """What a call returns, or the kind and words of what it raises."""
    try:
        found = use()
        return list(found) if isinstance(found, Iterator) else found
    except ValueError as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize(("entry", "settings"), CASES, ids=[f"{entry.name}-{i}" for i, (entry, _) in enumerate(CASES)])
def test_a_loaded_model_is_the_fitted_one(entry, settings, tmp_path):
    fitted = entry.load()(**settings).fit(X, Y)
    fitted.save(tmp_path / "model.toprank")
    loaded = load(tmp_path / "model.toprank")
    for name in (name for name in dir(type(fitted)) if not name.startswith("_") and name not in NOT_READERS):
        if callable(getattr(type(fitted), name)):
            if name in TARGETS:
                assert same(*(getattr(model, name)(max_fpr=0.2) for model in (fitted, loaded)))
                continue
            assert name in ARGUMENTS, f"{entry.name}.{name} is new. Hint: say in ARGUMENTS how it is called"
            results = [outcome(partial(getattr(model, name), *ARGUMENTS[name])) for model in (fitted, loaded)]
            assert same(*results), f"{entry.name}.{name} of a loaded model differs"
    known = {name for name in dir(fitted) if name.endswith("_") and not name.startswith("_")} - OF_TRAINING_ROWS
    for name in known:
        assert same(getattr(fitted, name), getattr(loaded, name)), f"{entry.name}.{name} of a loaded model differs"
