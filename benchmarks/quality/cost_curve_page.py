"""Tables and figures of the results of cost_curve.py: docs/results/cost_curve/quality.md, figure4.png, figure10.png."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from toprank.plots import save_figure
from toprank.plots.roc import RATES, prepare_rates
from toprank.plots.style import TEXT_SIZE, house_style, method_styles, new_figure, write_over

NAMES = {
    "oblique": "COC, weighted sums",
    "fine": "costs alone, in steps of 1.1",
    "axis": "COC, single columns",
    "tree": "tree at 15 costs",
    "cart": "pruned CART at 15 costs",
    "logistic": "logistic regression",
    "balanced": "balanced logistic regression",
    "weight": "TAO, costs",
    "oversample": "TAO, oversampling",
    "undersample": "TAO, undersampling",
    "smote": "TAO, SMOTE",
    "classes-cart": "CART, full",
    "classes-pruned": "CART, pruned",
    "classes-tao": "TAO",
}
CURVES = ("oblique", "axis", "tree", "cart", "logistic")
AREAS = ("oblique", "fine", "axis", "tree", "cart")
WAYS = ("weight", "oversample", "undersample", "smote")
LOGISTIC = ("logistic", "balanced")
JUDGED = ("oblique", "tree", "logistic")
CLASS_METHODS = ("classes-cart", "classes-pruned", "classes-tao")
RANKING, COSTS = "hull_area_of_ranking", "hull_area_of_costs"
MARGIN = 0.01
FPR_GRID = np.linspace(0, 1, 201)
PANEL = 3.0  # inches of a panel

Result = dict[str, Any]


class Results:
    """Results by data set, method and seed."""

    def __init__(self, results: Iterable[Result]):
        self.of: dict[tuple[str, str], dict[int, Result]] = {}
        for result in results:
            self.of.setdefault((result["dataset"], result["method"]), {})[result["seed"]] = result

    def sets(self, *methods: str) -> list[str]:
        """Data sets that have results of all these methods."""
        found = dict.fromkeys(dataset for dataset, _ in self.of)
        return [dataset for dataset in found if all((dataset, method) in self.of for method in methods)]

    def seeds(self, dataset: str, methods: Sequence[str]) -> list[int]:
        """Seeds that all these methods finished."""
        return sorted(set.intersection(*(set(self.of.get((dataset, method), ())) for method in methods)))

    def values(
        self, dataset: str, method: str, figure: str | Callable[[Result], float], beside: Sequence[str] = ()
    ) -> np.ndarray:
        """A figure for each seed that the method, and those beside it, finished."""
        read = figure if callable(figure) else lambda result: result[figure]
        by_seed = self.of[dataset, method]
        return np.array([read(by_seed[seed]) for seed in self.seeds(dataset, [method, *beside])], float)

    def mean(
        self, dataset: str, method: str, figure: str | Callable[[Result], float], beside: Sequence[str] = ()
    ) -> float:
        """Mean over these seeds; NaN where there is no result."""
        values = self.values(dataset, method, figure, beside) if (dataset, method) in self.of else np.empty(0)
        return float(values.mean()) if len(values) else float("nan")


# --- tables -----------------------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Markdown table; numbers as they are formatted already, right-aligned but for the first column."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def shown(value: float, form: str = ".4f") -> str:
    return "" if np.isnan(value) else format(value, form)


def yes_or_no(is_so: bool) -> str:
    return "yes" if is_so else "no"


def mean_leaves(result: Result) -> float:
    return float(np.mean(result["leaves"]))


def most_leaves(result: Result) -> float:
    return float(max(result["leaves"]))


def areas_table(results: Results) -> str:
    """Area under the hull, by set and method."""
    head = ["data set", "cases", "columns", "positives", "seeds", *(NAMES[method] for method in AREAS)]
    head += ["COC, costs alone", "COC, its ranking"]
    head += [cell for method in LOGISTIC for cell in (f"{NAMES[method]}, ROC", "its hull")]
    rows = []
    for dataset in results.sets("tree", "logistic"):
        first = next(iter(results.of[dataset, "tree"].values()))
        there = [method for method in (*AREAS, *LOGISTIC) if (dataset, method) in results.of]
        areas = [results.mean(dataset, method, "hull_area", there) for method in AREAS]
        areas += [results.mean(dataset, "oblique", area, there) for area in (COSTS, RANKING)]
        areas += [results.mean(dataset, method, figure, there) for method in LOGISTIC
                  for figure in ("roc_auc", "hull_area")]  # fmt: skip
        size = [f"{first['n_train']:,}", first["n_columns"], f"{first['positives']:,}"]
        rows.append([dataset, *size, len(results.seeds(dataset, there)), *map(shown, areas)])
    return table(head, rows)


def differences(
    results: Results, others: dict[str, str], curve: str = "oblique", area: str = "hull_area"
) -> dict[str, np.ndarray]:
    """By set, for each seed: area of a curve minus that of the best of others, by method the area that counts.

    Best in the mean over the seeds: the best one of each seed would owe part of its lead to luck.
    """
    found, methods = {}, (curve, *others)
    for dataset in results.sets(*methods):
        own = results.values(dataset, curve, area, methods)
        if len(own):
            theirs = [results.values(dataset, method, other, methods) for method, other in others.items()]
            found[dataset] = own - max(theirs, key=np.mean)
    return found


def standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def judgement(results: Results) -> str:
    """The three claims, set by set and together."""
    hulls = dict.fromkeys(("tree", *LOGISTIC), "hull_area")
    gaps = differences(results, hulls)
    also = {
        "costs alone": differences(results, hulls, area=COSTS),
        "costs alone, in steps of 1.1": differences(results, hulls, "fine"),
        "its ranking": differences(results, hulls, area=RANKING),
    }
    rows, has_fewer = [], []
    for dataset, gap in gaps.items():
        own, tree = (results.mean(dataset, method, mean_leaves, JUDGED) for method in JUDGED[:2])
        has_fewer.append(own < tree)
        rows.append([dataset, len(gap), shown(gap.mean(), "+.4f"), shown(standard_error(gap)),
                     yes_or_no(gap.mean() >= -MARGIN), shown(own, ".1f"), shown(tree, ".1f"),
                     yes_or_no(own < tree), *(shown(np.mean(each.get(dataset, np.nan)), "+.4f")
                                              for each in also.values())])  # fmt: skip
    if not rows:
        return "No results yet."
    head = [
        "data set",
        "seeds",
        "COC minus the best",
        "standard error",
        f"within {MARGIN:g} or above",
        "leaves of the COC",
        "leaves of the tree",
        "fewer",
        *(f"{name} minus the best" for name in also),
    ]
    means = np.array([gap.mean() for gap in gaps.values()])
    return "\n".join([
        table(head, rows),
        "",
        f"- Within {MARGIN:g} of the best, or above: {(means >= -MARGIN).sum()} of {len(means)} sets.",
        f"- Mean over the sets: {means.mean():+.4f}; above on average: {yes_or_no(means.mean() > 0)}.",
        *(f"- {name[0].upper()}{name[1:]}: {sum(gap.mean() >= -MARGIN for gap in each.values())} of {len(each)} sets, "
          f"mean {np.mean([gap.mean() for gap in each.values()]):+.4f}." for name, each in also.items() if each),
        f"- Fewer leaves than the tree: {sum(has_fewer)} of {len(means)} sets.",
    ])  # fmt: skip


def trees_table(results: Results, method: str) -> str:
    """What the curve chose, its size, and how it ranks."""
    rows = []
    for dataset in results.sets(method):
        by_seed = results.of[dataset, method]
        chosen = [f"{by_seed[seed]['max_depth']}, {by_seed[seed]['alpha']:g}" for seed in sorted(by_seed)]
        figures = [
            (mean_leaves, ".1f"), (most_leaves, ".1f"), (lambda result: np.mean(result["weights"]), ".1f"),
            (lambda result: len(result["leaves"]), ".1f"), ("n_costs", ".1f"), ("dominated", ".0%"),
            ("hull_area", ".4f"),
            ("hull_area_of_kept", ".4f"), ("roc_auc", ".4f"), ("average_precision", ".4f"), ("seconds", ".1f"),
        ]  # fmt: skip
        cells = [shown(results.mean(dataset, method, figure), form) for figure, form in figures]
        logistic = shown(results.mean(dataset, "logistic", "average_precision"))
        rows.append([dataset, "; ".join(chosen), *cells[:-1], logistic, cells[-1]])
    head = ["data set", "depth, alpha by seed", "leaves, mean", "largest tree", "weights, mean", "trees", "at costs",
            "dominated on the test part", "area under the hull", "of trees kept out of fold", "AUC", "AP",
            "AP of logistic regression", "seconds"]  # fmt: skip
    return table(head, rows)


def sizes_table(results: Results) -> str:
    """Leaves, dominated points and seconds of the baselines."""
    rows = []
    for dataset in results.sets("tree", "cart"):
        cells = [shown(results.mean(dataset, method, figure), form) for method in ("tree", "cart")
                 for figure, form in ((mean_leaves, ".1f"), ("dominated", ".0%"), ("seconds", ".1f"))]  # fmt: skip
        rows.append([dataset, *cells])
    head = ["data set", "tree: leaves", "dominated", "seconds", "pruned CART: leaves", "dominated", "seconds"]
    return table(head, rows)


def samplers_table(results: Results) -> str:
    """Area under the hull with costs and with sampling, at the same costs."""
    rows = []
    for dataset in results.sets(*WAYS):
        areas = [shown(results.mean(dataset, method, "hull_area", WAYS)) for method in WAYS]
        seconds = [shown(results.mean(dataset, method, "seconds", WAYS), ".1f") for method in WAYS]
        rows.append([dataset, len(results.seeds(dataset, WAYS)), *areas, *seconds])
    names = [NAMES[method] for method in WAYS]
    return table(["data set", "seeds", *names, *(f"{name}: seconds" for name in names)], rows)


def classes_table(results: Results) -> str:
    """Table 1 of the paper on our sets."""
    rows = []
    for dataset in results.sets(*CLASS_METHODS):
        for method in CLASS_METHODS:
            error = results.values(dataset, method, "error")
            spread = f"{error.mean():.2f} ± {error.std(ddof=1):.2f}" if len(error) > 1 else f"{error.mean():.2f}"
            cells = [shown(results.mean(dataset, method, figure), ".1f") for figure in ("leaves", "depth", "seconds")]
            rows.append([dataset, NAMES[method], len(error), spread, *cells])
    return table(["data set", "method", "seeds", "cost-weighted error", "leaves", "depth", "seconds"], rows)


def classes_judgement(results: Results) -> str:
    """Whether TAO errs less with fewer leaves than either CART, set by set."""
    sentences = []
    for dataset in results.sets(*CLASS_METHODS):
        for method in CLASS_METHODS[:2]:
            own, other = ((results.mean(dataset, m, "error"), results.mean(dataset, m, "leaves"))
                          for m in ("classes-tao", method))  # fmt: skip
            less, fewer = (yes_or_no(own[i] < other[i]) for i in (0, 1))
            sentences.append(f"- {dataset}, TAO beside {NAMES[method]}: lower error {less}, fewer leaves {fewer}.")
    return "\n".join(sentences)


# --- figures ----------------------------------------------------------------------------------------------------


def mean_points(by_seed: dict[int, Result]) -> tuple[np.ndarray, np.ndarray]:
    """FPR and TPR in %, mean over the seeds at each cost that all of them have, and the corners; rising."""
    rates: dict[int, list[tuple[float, float]]] = {}
    for result in by_seed.values():
        points = result["points"]
        fpr = np.array(points["false_positives"]) / points["negatives"]
        tpr = 1 - np.array(points["false_negatives"]) / points["positives"]
        for step, *rate in zip(result["steps"], fpr.tolist(), tpr.tolist(), strict=True):
            if step is not None:
                rates.setdefault(step, []).append((rate[0], rate[1]))
    common = [np.mean(rates[step], axis=0) for step in sorted(rates, reverse=True) if len(rates[step]) == len(by_seed)]
    return tuple(100 * np.array([(0.0, 0.0), *common, (1.0, 1.0)]).T)  # type: ignore[return-value]


def small_multiples(results: Results, sets: list[str], methods: Sequence[str], title: str, width: int) -> Any:
    """One panel a data set with the points of each method; of logistic regression its mean ROC curve."""
    styles = method_styles(methods)
    height = -(-len(sets) // width)
    with house_style("cost_curve.py"):
        figure = new_figure((PANEL * width, PANEL * height + 1.0))
        lines: dict[str, Any] = {}
        for place, dataset in enumerate(sets):
            ax = figure.add_subplot(height, width, place + 1)
            prepare_rates(ax)
            for text in list(ax.texts):
                text.remove()  # the diagonal needs no name in every panel
            for order, method in enumerate(methods):
                by_seed = results.of.get((dataset, method))
                if not by_seed:
                    continue
                look = {"color": styles[method].colour, "zorder": 4 - order / 10, "linewidth": 1.3}
                if method == "logistic":
                    mean = np.mean([result["roc"] for result in by_seed.values()], axis=0)
                    (line,) = ax.plot(100 * FPR_GRID, 100 * mean, linestyle=(0, (5, 1.6)), **look)
                else:
                    x, y = mean_points(by_seed)
                    (line,) = ax.plot(x, y, marker=styles[method].marker, markersize=3.6, **look)
                lines.setdefault(method, line)
            ax.set_title(dataset, loc="left", fontsize=TEXT_SIZE, weight="bold")
            if place % width == 0:
                ax.set_ylabel(RATES[1])
            if place >= len(sets) - width:
                ax.set_xlabel(RATES[0])
        write_over(figure, title)
        figure.legend(list(lines.values()), [NAMES[method] for method in lines], loc="outside lower center",
                      ncols=min(len(lines), 2 * width - 2), frameon=False, fontsize=TEXT_SIZE)  # fmt: skip
    return figure


# --- the page ---------------------------------------------------------------------------------------------------

PROTOCOL = """\
80/20 splits, stratified; categories one-hot, missing numbers the median, columns standardised on the training part. A
method is a set of classifiers; the figure is the area under the concave hull of their points (FPR, TPR) on the test
part and the corners, mean over the seeds.

- COC: `CostOptimalCurve()`, depth and alpha by cross-validation of the base tree; single columns:
  `CostOptimalCurve(TAOTree(split="axis"))`. Costs alone: without the trees between two costs, as in the paper; in steps
  of 1.1: likewise, with the same depth and alpha and `cost_factor=1.1`, so with four times the costs
  (`max_point_gap=None`).
  Its ranking: the classifiers "the first k cases", k = 1, 2, ..., in the order of `decision_function`, as the hull of
  logistic regression has them.
- Tree: scikit-learn's, depth 6, at least 5 cases a leaf, at 15 costs. Pruned CART: `CostTree()` at the same costs.
- Logistic regression: L1 penalty, C = 1; its ROC curve, and the hull of that. Balanced: with weights that make both
  classes count alike.

A hull picks among points by the test part itself, which flatters all methods, and those with many points most."""

TREES = """\
Weighted sums. "Of trees kept out of fold": only trees that cross-validation on the training part does not call
dominated. Weights: numbers in the conditions of a tree. AUC and AP: the curve as a ranker. Seconds of one core,
with the choice of depth and alpha and the curves out of fold."""

SAMPLING = """\
Appendix F: TAO trees of the depth and alpha that the curve chose, at nine costs, none started from another. Where rows
are added alpha grows as the mistakes do."""

CLASSES = """\
Section 5.3.4: all classes cost the same in total. Digits: scikit-learn's, each digit with 0.8 times the cases of the
one before. Simulated: `make_classification`, five classes of 60 to 2 %. 70/30 splits; mean and standard deviation. TAO:
`TAOClassifier`, depth and alpha by five folds of the training part; pruned CART: `ccp_alpha` likewise."""


def write_page(raw: list[Result], folder: Path) -> str:
    """Write the page and the figures that the results allow, and return the page."""
    results = Results(raw)
    folder.mkdir(parents=True, exist_ok=True)
    hours = sum(result["seconds"] for result in raw) / 3600
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    command = "python benchmarks/quality/cost_curve.py --data FOLDER"
    text = [
        "# The cost-optimal curve on unseen cases",
        f"{date.today()}, {machine}, {hours:.1f} hours of one core; `{command}`",
        *curve_sections(results, folder),
        *sampling_section(results, folder),
        *classes_section(results),
    ]
    page = "\n\n".join(text) + "\n"
    (folder / "quality.md").write_text(page, encoding="utf-8")
    return page


def curve_sections(results: Results, folder: Path) -> list[str]:
    """Areas, the judgement, figure 4 and the trees behind it."""
    sets = results.sets(*JUDGED)
    if not sets:
        return []
    title = "Test points of the cost-optimal curve and of other methods"
    save_figure(small_multiples(results, sets, CURVES, title, min(4, len(sets))), folder / "figure4.png")
    return [
        PROTOCOL,
        "## Area under the hull",
        areas_table(results),
        "## Judgement",
        "The best of three hulls, by the mean over the seeds: of the tree, and of logistic regression with and without "
        "weights.",
        judgement(results),
        "![Test points of all methods](figure4.png)",
        "As figure 4 of the paper: points are means over the seeds at each cost that all seeds have; without the trees "
        "between two costs.",
        "## The trees of the curve",
        TREES,
        trees_table(results, "oblique"),
        "Single columns:",
        trees_table(results, "axis"),
        "The trees beside them:",
        sizes_table(results),
    ]


def sampling_section(results: Results, folder: Path) -> list[str]:
    """Costs beside sampling, with figure 10."""
    sets = results.sets(*WAYS)
    if not sets:
        return []
    title = "Costs and sampling: TAO trees of the same depth"
    save_figure(small_multiples(results, sets, WAYS, title, max(len(sets), 2)), folder / "figure10.png")
    return ["## Costs and sampling", SAMPLING, samplers_table(results), "![Costs and sampling](figure10.png)"]


def classes_section(results: Results) -> list[str]:
    """More than two classes."""
    if not results.sets(*CLASS_METHODS):
        return []
    return ["## More than two classes", CLASSES, classes_table(results), classes_judgement(results)]
