"""`toprank warmup`: compile all kernels now, so that later commands do not have to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
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


def fits() -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield small fits, with their names, that together use every kernel."""
    import polars as pl

    from toprank import (
        CostOptimalCurve,
        MetaAP,
        MetaAPForest,
        RankingTree,
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
    models: dict[str, Callable[[str], Any]] = {
        "MetaAP": lambda splitter: MetaAP(splitter=splitter, **small),
        "MetaAP, limited leaves": lambda splitter: MetaAP(
            splitter=splitter, max_leaf_nodes=3, leaf_score="constant", **small
        ),
        "RankingTree": lambda splitter: RankingTree(splitter=splitter, max_depth=2, leaf_score="votes"),
        "MetaAPForest": lambda splitter: MetaAPForest(splitter=splitter, n_estimators=2, random_state=0, **small),
    }
    weights = {"": None, ", weights": rng.random(N_ROWS), ", wide weights": np.full(N_ROWS, WIDE_WEIGHT)}
    tables = {"": frame, ", float64": numbers, ", float32": numbers.astype(np.float32)}

    def step(make: Callable[[str], Any], splitter: str, X: Any, weight: Any) -> Callable[[], None]:
        def use() -> None:
            model = make(splitter).fit(X, label, sample_weight=weight)
            model.predict_proba(X)
            model.top_k(X, 5)
            model.explain(X[:5])
            if hasattr(model, "decision_path"):
                model.decision_path(X[:5])

        return use

    for splitter in ("hist", "exact"):
        for model_name, make in models.items():
            for table_name, X in tables.items():
                for weight_name, weight in weights.items():
                    if not (table_name and weight_name):
                        yield (
                            f"{model_name} ({splitter}{table_name}{weight_name})",
                            step(make, splitter, X, weight),
                        )
    yield "linear scores", step(lambda splitter: MetaAP(leaf_score="linear", **small), "hist", frame, None)
    others: dict[str, Callable[[str], Any]] = {
        "TreeRank, oblique cut": lambda splitter: TreeRank(splitter=splitter, leaf_ranker="oblique", **small),
        "TreeRank, merged cells": lambda splitter: TreeRank(
            splitter=splitter, pruning="cells", ccp_alpha=0.001, **small
        ),
        "TreeRankBoost": lambda splitter: TreeRankBoost(splitter=splitter, n_estimators=2, **small),
        "TAOTree": lambda splitter: TAOTree(splitter=splitter, max_depth=2),
        "TAOTree, axis": lambda splitter: TAOTree(splitter=splitter, max_depth=2, split="axis"),
        "CostOptimalCurve": lambda splitter: CostOptimalCurve(
            TAOTree(splitter=splitter), depths=[1], alphas=[1.0], cost_factor=9.0, cv=2
        ),
    }
    for model_name, make in others.items():
        for table_name, X in tables.items():
            yield f"{model_name}{table_name}", step(make, "hist", X, None)
    for model_name, model in without_trees().items():
        X = frame if model_name in ON_CATEGORIES else np.nan_to_num(numbers)
        yield model_name, step(partial(_given, model), "", X, None)
    yield "GammaKNNClassifier", lambda: _use_classes(frame, label + (numbers[:, 1] > 1))


ON_CATEGORIES = ("RedFlags",)
"""Models whose kernels for categories are compiled too."""


def _given(model: Any, _: str) -> Any:
    return model


def without_trees() -> dict[str, Any]:
    """Rankers without trees, by name."""
    from toprank import KNN, MLFP, GammaKNN, RedFlags, ScorecardTree

    return {
        "RedFlags": RedFlags(teacher=None),
        "GammaKNN": GammaKNN(metric=np.eye(4)),
        "GammaKNN, KD-tree": GammaKNN(algorithm="kd_tree"),
        "KNN, kRNN": KNN(rule="krnn"),
        "MLFP": MLFP(tol=0.1),
        "ScorecardTree": ScorecardTree(monotonic_cst=[1, 0, 0, 0], min_class_leaf=1, cv=0),
    }


def _use_classes(frame: Any, classes: np.ndarray) -> None:
    """Fit a vote between several classes, and explain some of its decisions."""
    from toprank import GammaKNNClassifier

    GammaKNNClassifier().fit(frame, classes).explain(frame[:5])
