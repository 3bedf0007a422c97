"""Figures 1, 2, 3 and 5 of the paper on cost-optimal curves, remade from our own runs, and their claims in figures.

    python benchmarks/quality/cost_curve_figures.py [--write] [--data FOLDER]

Left of figure 2: linear classifiers on 100 cases, the best ones by mixed-integer programming. Middle: decision stumps
on simulated e-mails, the best ones by enumeration; with `--data`, on the table `mammography` of that folder as well.
Right: oblique trees on simulated images of pen strokes. `--write` stores tables and plots in docs/results/cost_curve.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from cost_curve_toys import draw_figure_3, draw_figure_5, tables_of_figure_5, toy_cases
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from toprank import CostOptimalCurve, TAOTree
from toprank.datasets import load, make_boxes, make_quadrants, optimal_roc
from toprank.metrics import OperatingPoints, RocCurve, roc_curve
from toprank.papers.exact_costs import exact_linear, exact_linear_curve, exact_stumps
from toprank.plots import CostOptimalCurveDisplay, save_figure
from toprank.rankers.cost.cost_path import cost_ratios_around, fit_at_costs

OUT = Path(__file__).parents[2] / "docs" / "results" / "cost_curve"
EXACT = "exact cost-optimal curve"
N_RATIOS, BETA = 61, 1.15
N_PAPER, BETA_PAPER = 19, 1.5
N_TRAIN, N_TEST = 12_000, 20_000
SEED = 0


@dataclass
class Comparison:
    """Sets of classifiers on the same cases, beside the best that their family can do.

    Attributes
    ----------
    title : str
    frontier : OperatingPoints
        Solutions of the constrained problem, eq. (1), for every limit: what no classifier of the family dominates.
    optima : OperatingPoints
        Solutions of the penalised problem, eq. (2), at some cost ratios.
    at_costs : dict of str to OperatingPoints
        Methods with one model a cost ratio.
    scores : dict of str to OperatingPoints
        All thresholds of one model.
    coarse : dict of str to OperatingPoints
        The same as `at_costs` in the paper's steps of costs: in the table, not in the plot.
    """

    title: str
    frontier: OperatingPoints
    optima: OperatingPoints
    at_costs: dict[str, OperatingPoints] = field(default_factory=dict)
    scores: dict[str, OperatingPoints] = field(default_factory=dict)
    coarse: dict[str, OperatingPoints] = field(default_factory=dict)

    def excess(self, points: OperatingPoints) -> np.ndarray:
        """What each model costs beyond the least possible at its own cost ratio, as a share of that; own cost for 0."""
        pairs = zip(points.cost_ratio, points.false_positives, points.false_negatives, strict=True)
        least = np.array([self.frontier.cost(ratio).min() for ratio in points.cost_ratio])
        own = np.array([missed + ratio * called for ratio, called, missed in pairs])
        return np.where(least > 0, own / np.maximum(least, 1e-300) - 1, own)

    def lines(self) -> list[str]:
        """The table, in Markdown."""
        head = ["method", "classifiers", "hull area", "eq. (1) dominates", "eq. (2) dominates", "optimal at its cost",
                "mean excess cost"]  # fmt: skip
        lines = [f"### {self.title}", "", "| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
        for name, points in {EXACT: self.optima, **self.at_costs, **self.coarse, **self.scores}.items():
            cells = [name, f"{len(points)}", f"{points.hull_area:.4f}", _dominance(self.frontier, points),
                     "" if name == EXACT else _dominance(self.optima, points)]  # fmt: skip
            if name in self.scores:
                cells += ["", ""]
            else:
                excess = self.excess(points)
                cells += [f"{(excess < 1e-9).sum()} of {len(points)}", f"{100 * excess.mean():.1f} %"]
            lines.append("| " + " | ".join(cells) + " |")
        return [*lines, ""]

    def between(self, middle: str, above: str) -> str:
        """Sentences on the cost ratios at which both have a model: how often which is cheaper, and by how much."""
        one, other = self.at_costs[middle], self.at_costs[above]
        pairs = [(i, j) for i, r in enumerate(one.cost_ratio) for j in np.flatnonzero(np.isclose(other.cost_ratio, r))]
        mine, theirs = self.excess(one)[[i for i, _ in pairs]], self.excess(other)[[j for _, j in pairs]]
        less, more = int((mine < theirs - 1e-9).sum()), int((mine > theirs + 1e-9).sum())
        return (
            f"At the {len(pairs)} cost ratios that both have, {middle} costs less than {above} at {less}, the same at "
            f"{len(pairs) - less - more} and more at {more}. Mean excess cost there: {100 * mine.mean():.1f} % and "
            f"{100 * theirs.mean():.1f} %."
        )

    def display(self, curves: dict[str, RocCurve], title: str) -> CostOptimalCurveDisplay:
        """The plot: exact curve, models of several costs, ROC curves."""
        return CostOptimalCurveDisplay.from_points({EXACT: self.optima, **self.at_costs}, curves, title=title)


def _dominance(better: OperatingPoints, points: OperatingPoints) -> str:
    """Whether all points are dominated, or how many are not."""
    open_points = sum(not better.dominates(points.select([i])) for i in range(len(points)))
    return "yes" if open_points == 0 else f"but {open_points}"


# --- figure 2 ------------------------------------------------------------------------------------------------------


def two_gaussians(n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping Gaussian classes of different shape in the plane, equally frequent."""
    rng = np.random.default_rng(SEED)
    negative = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]], n // 2)
    positive = rng.multivariate_normal([1.2, 0.4], [[1.4, -0.5], [-0.5, 0.8]], n // 2)
    return np.vstack((negative, positive)), np.repeat([0, 1], n // 2)


def all_linear_points(X: np.ndarray, y: np.ndarray) -> OperatingPoints:
    """What linear classifiers in the plane can reach, dominated ones left out.

    Tries every order of the projections, which changes only where a direction is normal to the line through two
    cases, and every cut.
    """
    i, j = np.triu_indices(len(X), 1)
    normal = np.arctan2(*(X[i] - X[j]).T) % np.pi  # at a right angle to the line
    turns = np.sort(np.append(-normal % np.pi, [0.0, np.pi]))
    angles = (turns[1:] + turns[:-1]) / 2
    best = np.full(int((y == 0).sum()) + 1, np.inf)  # fewest false negatives for each number of false positives
    for angle in np.append(angles, angles + np.pi):
        order = np.argsort(-(X @ np.array([np.cos(angle), np.sin(angle)])))
        called, found = (np.append(0, np.cumsum(y[order] == label)) for label in (0, 1))
        np.minimum.at(best, called, found[-1] - found)
    points = OperatingPoints(None, np.arange(len(best)), best, float(y.sum()), float((1 - y).sum()))
    return points.select(~points.is_dominated)


def both_steps(
    trees: TAOTree, alpha: float, other: Any, name: str, X: np.ndarray, y: np.ndarray
) -> tuple[dict[str, OperatingPoints], dict[str, OperatingPoints]]:
    """Points of TAO trees of depth 1 and of another classifier, in our fine steps of costs and in the paper's."""
    found = []
    for n, beta, words in ((N_RATIOS, BETA, ""), (N_PAPER, BETA_PAPER, f", steps of {BETA_PAPER}")):
        tao = CostOptimalCurve(trees, depths=[1], alphas=[alpha], cv=0, cost_factor=beta, max_point_gap=None).fit(X, y)
        others = fit_at_costs(other, X, y, cost_ratios_around(y, n=n, cost_factor=beta))
        found.append({f"TAO, depth 1{words}": tao.points_, f"{name}{words}": others.points(X, y)})
    return found[0], found[1]


def linear_comparison() -> tuple[Comparison, dict[str, RocCurve]]:
    """Left of figure 2."""
    X, y = two_gaussians()
    trees, logistic = TAOTree(n_init=10, random_state=SEED), LogisticRegression(C=np.inf)
    at_costs, coarse = both_steps(trees, 0.01, logistic, "weighted logistic regression", X, y)
    base = {
        "ROC of logistic regression": logistic.fit(X, y).decision_function(X),
        "ROC of the best linear classifier": exact_linear(X, y, 1.0).decision_function(X),
    }
    comparison = Comparison(
        "Linear classifiers: 100 cases of two Gaussian classes in the plane",
        all_linear_points(X, y),
        exact_linear_curve(X, y, cost_ratios_around(y, n=N_RATIOS, cost_factor=BETA)),
        at_costs,
        {name: OperatingPoints.from_scores(y, score) for name, score in base.items()},
        coarse,
    )
    return comparison, {name: roc_curve(y, score) for name, score in base.items()}


def make_emails(n: int = 5_000, n_words: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Word frequencies of simulated e-mails, in %; 1 of 3.5 is spam, in which a fifth of the words differ."""
    rng = np.random.default_rng(SEED)
    y = (np.arange(n) < round(n / 3.5)).astype(int)
    common = 1.0 / np.arange(3, n_words + 3)  # Zipf's law
    taste = np.where(rng.random(n_words) < 0.2, rng.normal(0.0, 0.9, n_words), 0.0)
    length = np.maximum(rng.lognormal(4.6, 0.8, n), 5).astype(int)
    # Every e-mail has a subject of its own, so that words are burstier than independent draws.
    rate = np.exp(taste * y[:, np.newaxis]) * common * rng.gamma(0.4, 1 / 0.4, (n, n_words))
    counts = np.array([rng.multinomial(m, p / p.sum()) for m, p in zip(length, rate, strict=True)])
    return 100.0 * counts / length[:, np.newaxis], y


def stump_comparison(X: np.ndarray, y: np.ndarray, title: str) -> tuple[Comparison, dict[str, RocCurve]]:
    """Middle of figure 2."""
    exact = exact_stumps(X, y)
    trees = TAOTree(split="axis", splitter="exact", n_init=10, random_state=SEED)
    stump = DecisionTreeClassifier(max_depth=1, random_state=SEED)
    at_costs, coarse = both_steps(trees, 0.0, stump, "weighted Gini stump", X, y)
    gini = at_costs["weighted Gini stump"]
    base = exact.points.select([exact.points.cheapest(float(gini.cost_ratio[N_RATIOS // 2]))])
    scores = {"ROC of the best stump": base, "ROC of the Gini stump": gini.select([N_RATIOS // 2])}
    comparison = Comparison(title, exact.frontier, exact.points, at_costs, scores, coarse)
    return comparison, {"ROC of the best stump": base.curve()}


@dataclass
class TreeRun:
    """Curves of oblique and of axis-aligned trees on one simulated data set."""

    name: str
    curves: dict[str, CostOptimalCurve]
    train: Any
    test: Any

    def lines(self) -> list[str]:
        """Rows of the table of both kinds, in Markdown."""
        rows = []
        for kind, curve in self.curves.items():
            fresh = curve.points(self.test.X, self.test.y)
            sizes = [point.tree.n_leaves_ for point in curve.path_]
            base = curve.path_[curve.base_point_].tree
            roc = roc_curve(self.test.y, base.predict_proba(self.test.X)[:, 1])
            cells = [self.name, kind, f"{curve.max_depth_}", f"{curve.alpha_:g}", f"{len(sizes)}",
                     f"{np.mean(sizes):.1f}", f"{curve.points_.hull_area:.4f}",
                     f"{fresh.hull_area:.4f}", f"{roc.area:.4f}", f"{optimal_roc(self.test).area:.4f}"]  # fmt: skip
            rows.append("| " + " | ".join(cells) + " |")
        return rows


def tree_runs() -> list[TreeRun]:
    """Right of figure 2, and a set whose true rule is made of plain thresholds."""
    boxes = {"positive_rate": 0.05, "box_volume": 0.03, "n_noise_features": 5}
    samples = {  # as in appendix E, only the training labels of the images are noisy
        "quadrant images": [make_quadrants(N_TRAIN, size=16, random_state=SEED),
                            make_quadrants(N_TEST, size=16, noise=0.0, random_state=SEED + 1)],
        "boxes": [make_boxes(N_TRAIN, random_state=SEED, **boxes), make_boxes(N_TEST, random_state=SEED + 1, **boxes)],
    }  # fmt: skip
    runs = []
    for name, (train, test) in samples.items():
        curves = {}
        for split in ("oblique", "axis"):
            depths = [3] if (name, split) == ("quadrant images", "oblique") else [3, 4, 5]  # 3: as in the paper
            base = TAOTree(split=split, random_state=SEED)
            curve = CostOptimalCurve(base, depths=depths, alphas=[1, 3, 10], cv=3, random_state=SEED)
            curves[split] = curve.fit(train.X, train.y)
            print(f"{name}, {split}: {len(curve.path_)} trees", file=sys.stderr)
        runs.append(TreeRun(name, curves, train, test))
    return runs


# --- all together --------------------------------------------------------------------------------------------------


def as_markdown(comparisons: list[Comparison], runs: list[TreeRun], command: str) -> str:
    """All figures of one run."""
    lines = ["# Cost-optimal curves: the figures of the paper", "", "## Figure 2: how far from the best?", ""]
    for comparison in comparisons:
        lines += comparison.lines()
        lines += [comparison.between(*list(comparison.at_costs)), ""]
    lines += [
        "Hull area: under the hull of (false positive rate, true positive rate) on the training cases. Eq. (1) "
        "dominates: every classifier has one on the exact curve with no more errors of either kind. Eq. (2) dominates: "
        'the same with the optima of the penalised form only; "but 3": three classifiers lie between these optima, '
        "below their hull (see [where the paper is loose](../../choosing-errors.md#where-the-paper-is-loose)). Optimal "
        "at its cost: models that cost the least possible at the ratio they were fitted at; the mean excess is a share "
        f"of that least cost. Costs are in steps of {BETA}, and in the paper's of {BETA_PAPER} where it says so. The "
        "area also grows with the number of costs visited, and with mistakes that happen to lead to other good "
        "classifiers: it compares methods less sharply than what their models cost. One sample of each kind of data.",
        "",
        "## Oblique and axis-aligned trees",
        "",
        "| data | trees | depth | alpha | points | mean leaves | training hull | test hull | test ROC of the base | "
        "best possible |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        *(line for run in runs for line in run.lines()),
        "",
        f"{N_TRAIN:,} training and {N_TEST:,} test cases; depth and alpha by cross-validation on the base tree. One "
        "in ten training labels of the images is wrong, none of the test labels. Best possible: area under the optimal "
        "ROC curve.",
        "",
        *tables_of_figure_5(),
        f"{date.today()}; {os.cpu_count()} cores, Python {platform.python_version()}; `{command}`",
        "",
    ]
    return "\n".join(lines)


def draw(folder: Path, pictures: list[tuple[str, CostOptimalCurveDisplay]], quadrants: TreeRun) -> None:
    """All plots of the page."""
    for name, display in pictures:
        save_figure(display, folder / f"{name}.png")
    title = "Oblique trees of depth 3 on images of pen strokes"
    curve, test = quadrants.curves["oblique"], quadrants.test
    save_figure(CostOptimalCurveDisplay.from_curve(curve, test.X, test.y, title=title), folder / "figure_2_right.png")
    X, y = toy_cases()
    base = TAOTree(n_init=20, random_state=SEED)
    toy = CostOptimalCurve(base, depths=[3], alphas=[0.1], cv=0, max_point_gap=None).fit(X, y)
    title = "200 cases in the plane: the curve and the ROC of its base tree"
    save_figure(CostOptimalCurveDisplay.from_curve(toy, title=title), folder / "figure_1.png")
    draw_figure_3(toy, X, y, folder / "figure_3.png")
    draw_figure_5(folder / "figure_5.png")
    for path in folder.glob("figure_[1235]*.png"):
        Image.open(path).quantize(96).save(path, optimize=True)  # a third of the bytes, the same to the eye


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with mammography.csv.gz, for another run of the middle")
    parser.add_argument("--write", action="store_true", help="store tables and plots")
    arguments = parser.parse_args()
    linear, linear_curves = linear_comparison()
    print("linear classifiers: done", file=sys.stderr)
    emails = "Decision stumps: 5,000 simulated e-mails, 1:2.5"
    stumps, stump_curves = stump_comparison(*make_emails(), emails)
    print("stumps: done", file=sys.stderr)
    comparisons = [linear, stumps]
    pictures = [("figure_2_left", linear.display(linear_curves, "Linear classifiers on 100 cases")),
                ("figure_2_middle", stumps.display(stump_curves, "Decision stumps on 5,000 e-mails"))]  # fmt: skip
    if arguments.data:
        table = load("mammography", folder=arguments.data)
        real, real_curves = stump_comparison(np.asarray(table.X, float), table.y, "Decision stumps: mammography")
        comparisons.append(real)
        pictures.append(("figure_2_mammography", real.display(real_curves, "Decision stumps on mammography")))
    runs = tree_runs()
    command = "python benchmarks/quality/cost_curve_figures.py --write" + (" --data FOLDER" if arguments.data else "")
    text = as_markdown(comparisons, runs, command)
    print(text)
    if arguments.write:
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / "figures.md").write_text(text)
        draw(OUT, pictures, runs[0])


if __name__ == "__main__":
    main()
