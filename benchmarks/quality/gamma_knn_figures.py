"""Figures 2.2 to 2.8 of the thesis, remade: boundaries as gamma moves, gamma against imbalance, methods side by side.

    python benchmarks/quality/gamma_knn_figures.py --data FOLDER

Figures 2.5, 2.6 and 2.8 are drawn from what `gamma_knn.py` has kept so far. Writes docs/results/neighbours/*.png.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from gamma_knn import MEASURED, NEIGHBOURS, RULES, SETS, read_part, stored
from gamma_knn_page import MEASURES, means
from imblearn.over_sampling import SMOTE

from toprank import GammaKNN
from toprank.plots import save_figure
from toprank.plots.style import FAINT, INK, PALETTE, SMALL_SIZE, TEXT_SIZE, house_style, new_figure, write_over
from toprank.rankers.neighbours.gamma_knn import ratio_beside
from toprank.rankers.neighbours.tuning import MEASURES as BY_NAME
from toprank.rankers.neighbours.tuning import gamma_curve

OUT = Path(__file__).parents[2] / "docs" / "results" / "neighbours"
NEGATIVE, POSITIVE, SYNTHETIC = PALETTE[3], PALETTE[0], PALETTE[6]
SHADES = ("#B9D7E8", "#86B9D6", "#4C97C2", "#1F6FA3", INK)
GAMMAS = (0.2, 0.4, 0.6, 0.8, 1.0)


def plane(low: float, high: float, n: int = 241) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a square grid: both axes and its points."""
    axis = np.linspace(low, high, n)
    points = np.column_stack([each.ravel() for each in np.meshgrid(axis, axis)])
    return axis, axis, points


def draw_boundaries(ax: Any, X: np.ndarray, y: np.ndarray, gammas: tuple[float, ...], low: float, high: float) -> None:
    """Draw where decisions change, one line per gamma: all from the scores of one model."""
    score = GammaKNN(n_neighbors=1, gamma=1.0, scaling=None).fit(X, y)
    across, up, points = plane(low, high)
    found = score.decision_function(points).reshape(len(up), len(across))
    levels = [gamma / (1 + gamma) for gamma in gammas]
    lines = ax.contour(across, up, found, levels=levels)
    paths = lines.get_paths()
    lines.remove()  # plain lines instead, which can be saved with their labels
    for gamma, path, colour in zip(gammas, paths, SHADES[-len(gammas) :], strict=True):
        path.should_simplify = False
        for place, part in enumerate(path.to_polygons(closed_only=False)):
            label = f"gamma = {gamma}" if place == 0 else None
            ax.plot(*part.T, color=colour, linewidth=2.6 if gamma == 1.0 else 1.4, label=label)
    for label, colour, marker in ((0, NEGATIVE, "o"), (1, POSITIVE, "x")):
        ax.scatter(*X[y == label].T, c=colour, marker=marker, s=36, zorder=3)
    ax.set_aspect("equal")
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.legend(frameon=True, framealpha=0.9, fontsize=SMALL_SIZE, loc="upper left")


def figure_2_2() -> None:
    """Two points: circles of Apollonius. Beside it, a cloud of few positives among many negatives (figure 2.3)."""
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], [60, 8])
    cloud = np.where(y[:, None] == 1, rng.normal(0.6, 0.55, (68, 2)), rng.normal(-0.2, 1.0, (68, 2)))
    with house_style("figure_2_2"):
        figure = new_figure((9.6, 5.0))
        left, right = figure.subplots(1, 2)
        draw_boundaries(left, np.array([[-0.6, -0.2], [0.6, 0.2]]), np.array([1, 0]), GAMMAS, -2.5, 2.5)
        draw_boundaries(right, cloud, y, (0.4, 0.7, 1.0), -2.2, 2.2)
        write_over(figure, "The boundary as gamma moves: one positive and one negative; 8 positives and 60 negatives")
    save_figure(figure, OUT / "figure_2_2.png")


def figure_2_4(folder: str) -> None:
    """Best gamma on Balance, k = 3, as positives are removed from the training part."""
    ratios = (1.2, 2, 3, 5, 7.5, 10, 15, 20, 30)
    found = {name: np.zeros((5, len(ratios))) for name in MEASURED}
    for seed in range(5):
        part = read_part(folder, "balance", seed)
        rng = np.random.default_rng(seed)
        positives, negatives = rng.permutation(np.flatnonzero(part.y == 1)), np.flatnonzero(part.y == 0)
        for place, ratio in enumerate(ratios):
            kept = np.sort(np.concatenate((positives[: max(2, round(len(negatives) / ratio))], negatives)))
            for name, scoring in MEASURED.items():
                model = GammaKNN(n_neighbors=3, scoring=scoring).fit(part.X.iloc[kept], part.y[kept])
                found[name][seed, place] = model.gamma_
    with house_style("figure_2_4"):
        figure = new_figure((7.5, 4.6))
        ax = figure.subplots()
        for (name, values), colour in zip(found.items(), PALETTE, strict=False):
            ax.plot(ratios, values.mean(axis=0), marker="o", color=colour, label=name)
        ax.set_xlabel("negatives per positive", fontsize=TEXT_SIZE)
        ax.set_ylabel("best gamma", fontsize=TEXT_SIZE)
        ax.set_ylim(0, 1)
        ax.legend(frameon=False, fontsize=SMALL_SIZE)
        write_over(figure, "The rarer the positives, the smaller the best gamma (Balance, k = 3, 5 runs)")
    save_figure(figure, OUT / "figure_2_4.png")


def bars(ax: Any, table: pd.DataFrame, title: str) -> None:
    """Draw groups of bars, one group per row of a table, one bar per column."""
    width = 0.8 / len(table.columns)
    for i, name in enumerate(table.columns):
        at = np.arange(len(table)) + (i - (len(table.columns) - 1) / 2) * width
        ax.bar(at, table[name], width, label=name, color=PALETTE[i % len(PALETTE)])
    ax.set_xticks(np.arange(len(table)), table.index)
    ax.set_title(title, fontsize=TEXT_SIZE)
    ax.spines[["top", "right"]].set_visible(False)


def figure_2_5(lines: list[dict[str, Any]]) -> None:
    """Mean measures of kNN, gamma-kNN and, where they were run, oversamplers."""
    table = means(lines, SETS)
    names = [n for n in ("kNN", "gamma-kNN", "OS", "OS + gamma-kNN") if n in set(table["method"])]
    sets = set.intersection(*(set(table.loc[table["method"] == name, "dataset"]) for name in names))
    table = table[table["dataset"].isin(sets)]
    with house_style("figure_2_5"):
        figure = new_figure((10, 4.4))
        for ax, k in zip(figure.subplots(1, 2), NEIGHBOURS, strict=True):
            own = table[table["k"] == k].pivot_table(index="measure", columns="method", values="value")
            bars(ax, own.loc[list(MEASURES), names], f"k = {k}")
            ax.set_ylim(0.3, 1)
        ax.legend(frameon=False, fontsize=SMALL_SIZE, loc="upper right", ncols=2)
        write_over(figure, f"Means over {len(sets)} data sets")
    save_figure(figure, OUT / "figure_2_5.png")


def figure_2_6(lines: list[dict[str, Any]]) -> None:
    """Every data set: kNN against gamma-kNN, and gamma-kNN after the best oversampler where it was run."""
    table = means(lines, SETS)
    with house_style("figure_2_6"):
        figure = new_figure((9.6, 5.0))
        for ax, measure in zip(figure.subplots(1, 2), ("F1", "GM"), strict=True):
            own = table[(table["measure"] == measure) & (table["k"] == 1)]
            wide = own.pivot_table(index="dataset", columns="method", values="value")
            ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
            ax.scatter(wide["gamma-kNN"], wide["kNN"], color=POSITIVE, label="gamma-kNN", zorder=3)
            if "OS + gamma-kNN" in wide:
                ax.scatter(wide["OS + gamma-kNN"], wide["kNN"], color=PALETTE[1], label="with oversampling", zorder=3)
            ax.set_xlabel(f"{measure} of gamma-kNN", fontsize=TEXT_SIZE)
            ax.set_ylabel(f"{measure} of kNN", fontsize=TEXT_SIZE)
            ax.set_aspect("equal")
        ax.legend(frameon=False, fontsize=SMALL_SIZE, loc="upper left")
        write_over(figure, "Below the line: gamma-kNN beats plain kNN (k = 1)")
    save_figure(figure, OUT / "figure_2_6.png")


def figure_2_7(folder: str) -> None:
    """F1 of left-out training cases for every pair of gammas, of real and of synthetic positives, after SMOTE."""
    grids = np.arange(21) / 20, np.arange(21) / 10
    with house_style("figure_2_7"):
        figure = new_figure((9.6, 4.8))
        for ax, name in zip(figure.subplots(1, 2), ("abalone8", "german"), strict=True):
            part = read_part(folder, name, 0)
            model = GammaKNN(n_neighbors=1, sampler=SMOTE(random_state=0), keep_columns="all")
            evidence, is_positive = evidence_of(model, part)
            real, synthetic, negative = evidence
            values = np.array([
                gamma_curve(ratio_beside(real, synthetic, negative, s), is_positive, None, BY_NAME["f1"]).at(grids[0])
                for s in grids[1]
            ])  # fmt: skip
            shown = ax.pcolormesh(*grids, values, cmap="viridis", shading="nearest")
            ax.plot(model.gamma_, model.gamma_synthetic_, marker="x", color="white", markersize=10, mew=2)
            figure.colorbar(shown, ax=ax, shrink=0.8)
            ax.set_xlabel("gamma of real positives", fontsize=TEXT_SIZE)
            ax.set_ylabel("gamma of synthetic positives", fontsize=TEXT_SIZE)
            ax.set_title(name, fontsize=TEXT_SIZE)
        write_over(figure, "F1 for both gammas after SMOTE (k = 1, 10 folds); x is the pair that is chosen")
    save_figure(figure, OUT / "figure_2_7.png")


def evidence_of(model: GammaKNN, part: Any) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Fit a model; return the distances of its held-out rows, and which of them are positive."""
    kept: list[Any] = []
    learn = model._learn_rule

    def watch(left_out: Any, *others: Any) -> None:
        kept.append(left_out)
        learn(left_out, *others)

    model._learn_rule = watch  # type: ignore[method-assign]
    model.fit(part.X, part.y)
    return kept[0].evidence, kept[0].is_positive


def figure_2_8(lines: list[dict[str, Any]]) -> None:
    """Share of positives that each method misses, by measure that it was tuned for."""
    rows = [
        (line["method"], line["k"], measure, line["values"][f"FN {measure}"])
        for line in lines for measure in MEASURES if line["dataset"] in SETS.values()
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["method", "k", "measure", "missed"])
    names = [n for n in (*RULES, "gamma-kNN") if n in set(table["method"])]
    with house_style("figure_2_8"):
        figure = new_figure((10, 4.4))
        for ax, k in zip(figure.subplots(1, 2), NEIGHBOURS, strict=True):
            own = table[table["k"] == k].pivot_table(index="measure", columns="method", values="missed")
            bars(ax, 100 * own.loc[list(MEASURES), names], f"k = {k}")
            ax.set_ylabel("positives missed (%)", fontsize=TEXT_SIZE)
            ax.set_ylim(0, 75)
        ax.legend(frameon=False, fontsize=SMALL_SIZE, ncols=3, loc="upper right")
        write_over(figure, "Positives missed, by the measure that gamma is tuned for")
    save_figure(figure, OUT / "figure_2_8.png")


def main() -> None:
    """Draw all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    folder = parser.parse_args().data
    OUT.mkdir(parents=True, exist_ok=True)
    lines = stored()
    figure_2_2()
    figure_2_4(folder)
    figure_2_7(folder)
    for draw in (figure_2_5, figure_2_6, figure_2_8):
        draw(lines)


if __name__ == "__main__":
    main()
