"""`toprank warmup`: compile all kernels now, so that later commands do not have to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np

from toprank.cli.terminal import Terminal

N_ROWS = 400
WIDE_WEIGHT = 1e7
"""Integer weight whose sum needs more than 31 bits, so that the kernels for wide weights are compiled too."""


def warmup(terminal: Terminal) -> None:
    """Compile and cache the numerical kernels now, so that later commands start at once."""
    steps: list[dict[str, Any]] = []
    with terminal.working("Loading the estimators") as update:
        for name, step in fits():
            update(f"Compiling: {name}")
            before = terminal.seconds
            step()
            steps.append({"name": name, "seconds": round(terminal.seconds - before, 3)})
    terminal.finish({"seconds": round(terminal.seconds, 3), "steps": steps})
    if not terminal.quiet:
        terminal.show(f"All kernels are compiled and cached ({terminal.seconds:.1f} s).")


def fits() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield small fits, with their names, that together use every kernel."""
    import polars as pl

    from toprank import (
        KNN,
        MLFP,
        CostOptimalCurve,
        GammaKNN,
        GammaKNNClassifier,
        MetaAP,
        MetaAPForest,
        RankingTree,
        RedFlags,
        ScorecardTree,
        TAOTree,
        TreeRank,
        TreeRankBoost,
    )

    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(N_ROWS, 4))
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    label = (np.nan_to_num(numbers[:, 0]) + rng.normal(size=N_ROWS) > 1.5).astype(int)
    frame = pl.DataFrame({f"number_{i}": numbers[:, i] for i in range(4)}).with_columns(
        pl.Series("category", rng.choice(["red", "green", "blue"], N_ROWS))
    )
    small: dict[str, Any] = {"max_depth": 2, "leaf_depth": 2}
    models: dict[str, Callable[..., Any]] = {
        "MetaAP": partial(MetaAP, **small),
        "MetaAP, limited leaves": partial(MetaAP, max_leaf_nodes=3, leaf_score="constant", **small),
        "RankingTree": partial(RankingTree, max_depth=2, leaf_score="votes"),
        "MetaAPForest": partial(MetaAPForest, n_estimators=2, random_state=0, **small),
    }
    weights = {"": None, ", weights": rng.random(N_ROWS), ", wide weights": np.full(N_ROWS, WIDE_WEIGHT)}
    tables = {"": frame, ", float64": numbers, ", float32": numbers.astype(np.float32)}

    def use(model: Any, X: Any, weight: Any = None) -> None:
        model.fit(X, label, sample_weight=weight)
        model.predict_proba(X)
        model.top_k(X, 5)
        model.explain(X[:5])
        if hasattr(model, "decision_path"):
            model.decision_path(X[:5])

    for splitter, (model_name, make) in product(("hist", "exact"), models.items()):
        for (table_name, X), (weight_name, weight) in product(tables.items(), weights.items()):
            if not (table_name and weight_name):
                name = f"{model_name} ({splitter}{table_name}{weight_name})"
                yield name, partial(use, make(splitter=splitter), X, weight)
    yield "linear scores", partial(use, MetaAP(leaf_score="linear", **small), frame)
    others: dict[str, Callable[[], Any]] = {
        "TreeRank, oblique cut": partial(TreeRank, splitter="hist", leaf_ranker="oblique", **small),
        "TreeRank, merged cells": partial(TreeRank, splitter="hist", pruning="cells", ccp_alpha=0.001, **small),
        "TreeRankBoost": partial(TreeRankBoost, splitter="hist", n_estimators=2, **small),
        "TAOTree": partial(TAOTree, splitter="hist", max_depth=2),
        "TAOTree, axis": partial(TAOTree, splitter="hist", max_depth=2, split="axis"),
        "CostOptimalCurve": partial(
            CostOptimalCurve, TAOTree(splitter="hist"), depths=[1], alphas=[1.0], cost_factor=9.0, cv=2
        ),
    }
    for (model_name, make), (table_name, X) in product(others.items(), tables.items()):
        yield f"{model_name}{table_name}", partial(use, make(), X)
    without_trees = {
        "RedFlags": RedFlags(teacher=None),
        "GammaKNN": GammaKNN(metric=np.eye(4)),
        "GammaKNN, KD-tree": GammaKNN(algorithm="kd_tree"),
        "KNN, kRNN": KNN(rule="krnn"),
        "MLFP": MLFP(tol=0.1),
        "ScorecardTree": ScorecardTree(monotonic_cst=[1, 0, 0, 0], min_class_leaf=1, cv=0),
    }
    for model_name, model in without_trees.items():
        yield model_name, partial(use, model, frame if model_name == "RedFlags" else np.nan_to_num(numbers))
    for model_name, model in boosters().items():
        yield model_name, partial(use, model, frame)
    classes = label + (numbers[:, 1] > 1)
    yield "GammaKNNClassifier", lambda: GammaKNNClassifier().fit(frame, classes).explain(frame[:5])


def boosters() -> dict[str, Any]:
    """Small boosters, by name; those that XGBoost grows only where it is installed."""
    from toprank import SGBAP, LambdaMART, RankBoost

    models: dict[str, Any] = {"RankBoost": RankBoost(n_estimators=3, cv=2)}
    if find_spec("xgboost") is not None:
        for surrogate in ("exp", "sigmoid"):
            models[f"SGBAP, {surrogate}"] = SGBAP(surrogate, n_estimators=3, warm_up=1, cv=2)
        models["LambdaMART"] = LambdaMART(n_estimators=3, cv=2)
    return models
