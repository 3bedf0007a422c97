"""Figures 3 and 5 of the paper on cost-optimal curves: trees in the plane, and thresholds on a line.

The drawing half of `cost_curve_figures.py`.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from toprank import CostOptimalCurve
from toprank.metrics import OperatingPoints
from toprank.plots import save_figure
from toprank.plots.style import (
    FAINT,
    INK,
    PALETTE,
    SMALL_SIZE,
    TEXT_SIZE,
    dress_axes,
    house_style,
    new_figure,
    write_over,
)

NEGATIVE, POSITIVE = PALETTE[0], PALETTE[3]
AGREE = [1, 1, 1, 0, 1, 1, 0, 1, 0, 0]
"""Labels in the order of x on which the constraint and the penalty have the same solutions."""
DISAGREE = [0, 1, 0, 1, 1]
"""The smallest data set on which they do not."""


def toy_cases(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Four overlapping clouds in the plane, opposite ones of the same class, both classes equally frequent."""
    rng = np.random.default_rng(3)
    cloud = np.arange(n) % 4
    middle = np.array([[-1.0, -0.8], [1.0, -1.0], [0.9, 1.0], [-1.1, 0.9]])
    return middle[cloud] + rng.normal(0.0, 0.72, (n, 2)), cloud % 2


# --- figure 3 ------------------------------------------------------------------------------------------------------


def draw_figure_3(curve: CostOptimalCurve, X: np.ndarray, y: np.ndarray, path: Path, n_panels: int = 5) -> None:
    """Top: the base tree with a moving threshold. Bottom: trees of the curve. From no false alarm to no missed case."""
    edges = [np.linspace(low - 0.4, high + 0.4, 161) for low, high in zip(X.min(axis=0), X.max(axis=0), strict=True)]
    plane = np.column_stack([axis.ravel() for axis in np.meshgrid(*edges)])
    base = curve.path_[curve.base_point_].tree
    rows = {
        "ROC": [_thresholded(base, threshold) for threshold in _thresholds(base, X, curve, n_panels)],
        "COC": [point.tree.predict for point in (curve.path_[i] for i in _spread(curve, n_panels))],
    }
    with house_style("draw_figure_3"):
        figure = new_figure((2.1 * n_panels, 5.3))
        axes = figure.subplots(2, n_panels)
        for row, (name, classifiers) in zip(axes, rows.items(), strict=True):
            for place, (ax, classifier) in enumerate(zip(row, classifiers, strict=True)):
                _draw_regions(ax, classifier, edges, plane, X, y)
                if place == 0:
                    words = "base tree,\nmoving threshold" if name == "ROC" else "trees of the\ncost-optimal curve"
                    ax.set_ylabel(words, fontsize=TEXT_SIZE, color=INK)
        write_over(figure, "The same tree with other thresholds, and a tree for every cost")
    save_figure(figure, path)


def _thresholds(base: Any, X: np.ndarray, curve: CostOptimalCurve, n_panels: int) -> list[float]:
    """Thresholds on the rate of a leaf: none positive, the tree's own labels, all positive, and some in between."""
    rates = np.unique(base.predict_proba(X)[:, 1])[::-1]
    levels = np.append(np.inf, rates)  # the threshold at which 0, 1, ... leaves are positive
    called = [base.predict_proba(X)[:, 1] >= level for level in levels]
    own = next(i for i, is_called in enumerate(called) if (is_called == (base.predict(X) == 1)).all())
    half = (n_panels - 1) // 2
    below = np.rint(np.linspace(0, own, half + 1)).astype(int)
    above = np.rint(np.linspace(own, len(levels) - 1, half + 1)).astype(int)
    return [float(levels[i]) for i in [*below, *above[1:]]]


def _thresholded(base: Any, threshold: float) -> Any:
    return lambda cases: (base.predict_proba(cases)[:, 1] >= threshold).astype(int)


def _spread(curve: CostOptimalCurve, n_panels: int) -> list[int]:
    """Positions in the path: dearest false positive first, the base tree in the middle."""
    half, base, last = (n_panels - 1) // 2, curve.base_point_, len(curve.path_) - 1
    up = np.rint(np.linspace(last, base, half + 1)).astype(int)
    down = np.rint(np.linspace(base, 0, half + 1)).astype(int)
    return [*up.tolist(), *down[1:].tolist()]


def _draw_regions(
    ax: Any, classifier: Any, edges: list[np.ndarray], plane: np.ndarray, X: np.ndarray, y: np.ndarray
) -> None:
    from matplotlib.colors import ListedColormap

    region = classifier(plane).reshape(len(edges[1]), len(edges[0]))
    colours = ListedColormap([_pale(NEGATIVE), _pale(POSITIVE)])
    ax.pcolormesh(*edges, region, cmap=colours, vmin=0, vmax=1, shading="nearest", rasterized=True)
    for label, colour, marker in ((0, NEGATIVE, "x"), (1, POSITIVE, "o")):
        look: dict[str, Any] = {"s": 11, "linewidths": 0.9, "zorder": 3, "marker": marker}
        look |= {"c": colour} if marker == "x" else {"facecolors": "none", "edgecolors": colour}
        ax.scatter(*X[y == label].T, **look)
    points = OperatingPoints.from_labels(y, classifier(X))
    rates = 100 * points.false_positive_rate[0], 100 * points.true_positive_rate[0]
    ax.set_xlabel(f"FP {rates[0]:.0f} %,  TP {rates[1]:.0f} %", fontsize=TEXT_SIZE, color=INK)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_aspect("equal")
    for spine in ax.spines.values():
        spine.set_color("#B0B0B0")


def _pale(colour: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(1 - 0.28 * (1 - part) for part in to_rgb(colour))


# --- figure 5 ------------------------------------------------------------------------------------------------------


def thresholds_of(labels: list[int]) -> OperatingPoints:
    """Classifiers "positive where x <= theta", theta from below all cases to above: (pi, nu) of each."""
    return OperatingPoints.from_scores(labels, -np.arange(len(labels)))


def penalty_pieces(points: OperatingPoints) -> list[tuple[float, float, int]]:
    """Ranges of lambda with one optimum: from, to, and which classifier, by rising lambda."""
    pairs = list(zip(points.false_positives, points.false_negatives, strict=True))
    crossings = {(b - a) / (p - q) for p, a in pairs for q, b in pairs if p > q and b > a}
    ends = [0.0, *sorted(crossings), np.inf]
    pieces: list[tuple[float, float, int]] = []
    for low, high in pairwise(ends):
        best = points.cheapest(low + 1.0 if high == np.inf else (low + high) / 2)
        if pieces and pieces[-1][2] == best:
            pieces[-1] = (pieces[-1][0], high, best)
        else:
            pieces.append((low, high, best))
    return pieces


def tables_of_figure_5() -> list[str]:
    """Solutions of the constrained and of the penalised form, side by side, for both data sets; Markdown."""
    lines = ["## Figure 5: the constraint and the penalty", ""]
    for labels in (AGREE, DISAGREE):
        points = thresholds_of(labels)
        signs = " ".join("+" if label else "-" for label in labels)
        lines += [f"Labels `{signs}` in the order of x = 1, 2, ...; positive where x <= theta.", ""]
        lines += [
            "| constraint: false positives at most p | theta | pi | nu | also best at some lambda |",
            "|---:|---:|---:|---:|---|",
        ]
        pieces = penalty_pieces(points)
        known = {best for *_, best in pieces}
        for p in range(int(points.negatives) + 1):
            allowed = np.flatnonzero(points.false_positives <= p)
            best = int(allowed[np.lexsort((points.false_positives[allowed], points.false_negatives[allowed]))[0]])
            cells = [f"{p}", _theta(best), *_counts(points, best), "yes" if best in known else "**no**"]
            lines.append("| " + " | ".join(cells) + " |")
        lines += ["", "| penalty: lambda | theta | pi | nu | C(lambda) |", "|---:|---:|---:|---:|---|"]
        for low, high, best in pieces:
            pi, nu = _counts(points, best)
            limits = f"{low:g} to {high:g}" if high < np.inf else f"from {low:g} on"
            cost = f"{nu} + {pi} lambda" if pi != "0" else nu
            lines.append(f"| {limits} | {_theta(best)} | {pi} | {nu} | {cost} |")
        lines.append("")
    return lines


def _theta(position: int) -> str:
    """A threshold with so many cases at or below it."""
    return f"{position + 0.5:g}"


def _counts(points: OperatingPoints, at: int) -> list[str]:
    return [f"{points.false_positives[at]:g}", f"{points.false_negatives[at]:g}"]


def draw_figure_5(path: Path) -> None:
    """The cases on their line, and C, pi and nu against lambda, for both data sets."""
    with house_style("draw_figure_5"):
        figure = new_figure((10.8, 5.4))
        axes = figure.subplots(2, 2, height_ratios=(1, 6))
        for (line, ax), labels in zip(axes.T, (AGREE, DISAGREE), strict=True):
            _draw_line(line, labels)
            _draw_costs(ax, thresholds_of(labels))
        write_over(figure, "Least cost C, false positives pi and false negatives nu, by lambda")
    save_figure(figure, path)


def _draw_line(ax: Any, labels: list[int]) -> None:
    for place, label in enumerate(labels, 1):
        look: dict[str, Any] = {"marker": "o", "markerfacecolor": "none"} if label else {"marker": "x"}
        ax.plot(
            [place],
            [0],
            color=POSITIVE if label else NEGATIVE,
            markersize=9,
            markeredgewidth=2,
            linestyle="none",
            **look,
        )
    ax.set_xlim(0.3, len(labels) + 0.7)
    ax.set_ylim(-1, 1)
    ax.set_yticks([])
    ax.set_xticks(range(1, len(labels) + 1))
    ax.tick_params(labelsize=SMALL_SIZE, color="#B0B0B0")
    for side in ("top", "left", "right"):
        ax.spines[side].set_visible(False)
    ax.set_title("positive (o) where x <= theta", loc="left", fontsize=TEXT_SIZE, color=INK)


def _draw_costs(ax: Any, points: OperatingPoints) -> None:
    dress_axes(ax)
    pieces = penalty_pieces(points)
    last = 3.0
    for low, high, best in pieces:
        ends = np.array([low, min(high, last)])
        pi, nu = points.false_positives[best], points.false_negatives[best]
        for values, colour, style, name in (
            (nu + ends * pi, INK, "-", "C(lambda)"),
            (np.full(2, pi), NEGATIVE, (0, (5, 1.6)), "pi, false positives"),
            (np.full(2, nu), POSITIVE, (0, (1.3, 1.3)), "nu, false negatives"),
        ):
            ax.plot(ends, values, color=colour, linestyle=style, linewidth=2.2, label=name if low == 0 else None)
        if low > 0:
            ax.axvline(low, color=FAINT, linewidth=0.9, linestyle=(0, (2, 2)))
    ax.set_xlim(0, last)
    ax.set_ylim(-0.15, float(points.false_negatives[[best for *_, best in pieces]].max()) + 0.35)
    ax.set_xlabel("lambda, cost of a false positive", fontsize=TEXT_SIZE, color=INK)
    ax.set_yticks(range(4))
    ax.legend(fontsize=SMALL_SIZE, loc="upper left", framealpha=0.9, edgecolor="none")
