"""Figures 1, 4 and 5 of the TreeRank paper: how trees approach the optimal ROC curve of two Gaussian classes.

    python benchmarks/quality/treerank_roc.py [--repeats 20] [--write]

The paper draws 1,000 cases in five columns, both classes equally frequent and of the same covariance, and grows five
levels of orthogonal splits: (i) the optimal separator is orthogonal to an axis, (ii) it is in arbitrary position.
Areas are those on 100,000 fresh cases. `--write` stores table and plots in docs/results/treerank.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from toprank import TreeRank, TreeRankForest
from toprank.datasets import SimulatedData, approximate_roc, make_gaussians, optimal_auc, optimal_roc
from toprank.metrics import RocCurve, roc_auc, roc_curve
from toprank.plots import RocDisplay, RocLevelsDisplay, save_figure

OUT = Path(__file__).parents[2] / "docs" / "results" / "treerank"
DEPTH = 5
N_TRAIN, N_TEST = 1_000, 100_000
SITUATIONS = {"axis": "(i) separator orthogonal to an axis", "arbitrary": "(ii) separator in arbitrary position"}

MODELS: dict[str, Any] = {
    "stumps": TreeRank.paper(DEPTH, leaf_ranker="stump"),
    "inner trees": TreeRank(max_depth=DEPTH, leaf_depth=4, leaf_score="constant"),
    "weighted sums": TreeRank.paper(DEPTH, leaf_ranker="oblique"),
    "forest of inner trees": TreeRankForest(max_features=2, min_samples_leaf=20, random_state=0),
    "forest of weighted sums": TreeRankForest(leaf_ranker="oblique", max_depth=3, min_samples_leaf=20, random_state=0),
}
"""Stumps and weighted sums as published: down to single cases, cells from left to right, nothing inside them."""


def areas_by_depth(model: Any, test: SimulatedData) -> list[float]:
    """Area on fresh cases after each level; of a forest, the one it has."""
    if isinstance(model, TreeRankForest):
        return [roc_auc(test.y, model.decision_function(test.X))] * DEPTH
    return [roc_auc(test.y, score) for score in model.staged_decision_function(test.X)]


def curves_by_depth(model: TreeRank, test: SimulatedData) -> list[RocCurve]:
    """ROC curve on fresh cases after each level."""
    return [roc_curve(test.y, score) for score in model.staged_decision_function(test.X)]


def measure(n_repeats: int) -> dict[tuple[str, str], np.ndarray]:
    """Areas, (n_repeats, depth), by situation and model."""
    areas: dict[tuple[str, str], list[list[float]]] = {}
    for separator in SITUATIONS:
        test = make_gaussians(N_TEST, separator=separator, random_state=10_000)
        for repeat in range(n_repeats):
            train = make_gaussians(N_TRAIN, separator=separator, random_state=repeat)
            for name, model in MODELS.items():
                areas.setdefault((separator, name), []).append(areas_by_depth(model.fit(train.X, train.y), test))
            print(f"\r{separator}: {repeat + 1} of {n_repeats} samples", end="", file=sys.stderr)
        print(file=sys.stderr)
    return {key: np.array(values) for key, values in areas.items()}


def as_markdown(areas: dict[tuple[str, str], np.ndarray], n_repeats: int) -> str:
    """Mean areas by depth, and how much of the gap that stumps leave each model closes."""
    lines: list[str] = []
    for separator, words in SITUATIONS.items():
        best = optimal_auc(make_gaussians(10, separator=separator, random_state=0))
        stump = areas[separator, "stumps"][:, -1].mean()
        lines += [f"## {words}", "", f"Optimal AUC {best:.4f}.", ""]
        depths = [f"depth {depth}" for depth in range(1, DEPTH + 1)]
        lines += ["| model | " + " | ".join(depths) + " | standard error | gap closed |"]
        lines += ["|---|" + "---:|" * (DEPTH + 2)]
        for name, model in MODELS.items():
            values = areas[separator, name]
            mean, last = values.mean(axis=0), values[:, -1]
            error = last.std(ddof=1) / np.sqrt(len(last))
            shown = [f"{value:.4f}" for value in mean]
            if isinstance(model, TreeRankForest):
                shown = [""] * (DEPTH - 1) + shown[-1:]
            closed = "" if name == "stumps" else f"{100 * (last.mean() - stump) / (best - stump):.0f} %"
            lines.append(f"| {name} | " + " | ".join(shown) + f" | {error:.4f} | {closed} |")
        lines.append("")
    lines += [
        f"Mean AUC on {N_TEST:,} fresh cases over {n_repeats} samples of {N_TRAIN:,}; standard error of the last. "
        "Gap closed: share of the distance between stumps at depth 5 and the optimum.",
        "",
        f"{date.today()}; {os.cpu_count()} cores, Python {platform.python_version()}; "
        f"`python benchmarks/quality/treerank_roc.py --repeats {n_repeats} --write`",
        "",
    ]
    return "\n".join(lines)


def draw(folder: Path) -> None:
    """Figure 1: the ideal recursion; figures 4 and 5: one sample of each situation, by stumps and by weighted sums."""
    population = make_gaussians(10, random_state=0).population
    ideal = approximate_roc(population, 3)
    levels = RocLevelsDisplay.from_curves(
        ideal[1:], optimal=optimal_roc(population), title="The ideal recursion of section III, level by level"
    )
    save_figure(levels, folder / "figure_1.png")
    for separator, figure in (("axis", 4), ("arbitrary", 5)):
        train = make_gaussians(N_TRAIN, separator=separator, random_state=0)
        test = make_gaussians(N_TEST, separator=separator, random_state=10_000)
        for name, ending in (("stumps", ""), ("weighted sums", "_oblique")):
            curves = curves_by_depth(MODELS[name].fit(train.X, train.y), test)
            title = f"{SITUATIONS[separator]}: TreeRank with {name}"
            display = RocLevelsDisplay.from_curves(curves, optimal=optimal_roc(test), title=title)
            save_figure(display, folder / f"figure_{figure}{ending}.png")
    draw_shaking(folder / "shaking.png")
    draw_pruning(folder / "pruning.png")


def draw_shaking(path: Path) -> None:
    """Stumps in situation (ii): the tree's own order, its best permutation, and growth that intercalates."""
    train, test = (make_gaussians(n, separator="arbitrary", random_state=n) for n in (N_TRAIN, N_TEST))
    orders = {"meta": "left to right", "training": "cells by beta / alpha", "growth": "moved while growing"}
    curves = {
        words: roc_curve(test.y, TreeRank.paper(DEPTH, leaf_ranker="stump", leaf_order=order).fit(train.X, train.y)
                         .decision_function(test.X))
        for order, words in orders.items()
    }  # fmt: skip
    title = f"Shaking: {SITUATIONS['arbitrary']}, stumps, fresh cases"
    save_figure(RocDisplay.from_curves(curves, optimal=optimal_roc(test), title=title), path)


def draw_pruning(path: Path) -> None:
    """A tree grown far too deep, before and after pruning by cross-validation, on its own and on fresh cases."""
    train, test = (make_gaussians(n, separator="arbitrary", random_state=n) for n in (N_TRAIN, N_TEST))
    model = TreeRank.paper(8, leaf_depth=4, ccp_alpha="cv").fit(train.X, train.y)
    full, pruned = model.full_tree_, model.tree_
    curves = {
        f"{full.n_leaves} cells, own cases": roc_curve(train.y, full.decision_function(train.X)),
        f"{full.n_leaves} cells, fresh cases": roc_curve(test.y, full.decision_function(test.X)),
        f"{pruned.n_leaves} cells, own cases": roc_curve(train.y, pruned.decision_function(train.X)),
        f"{pruned.n_leaves} cells, fresh cases": roc_curve(test.y, pruned.decision_function(test.X)),
    }
    title = "Pruning by cross-validated AUC"
    save_figure(RocDisplay.from_curves(curves, optimal=optimal_roc(test), title=title), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20, help="samples of each situation")
    parser.add_argument("--write", action="store_true", help="store table and plots")
    arguments = parser.parse_args()
    table = as_markdown(measure(arguments.repeats), arguments.repeats)
    print(table)
    if arguments.write:
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / "gaussians.md").write_text("# TreeRank on two Gaussian classes\n\n" + table)
        draw(OUT)


if __name__ == "__main__":
    main()
