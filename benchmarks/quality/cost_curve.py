"""The cost-optimal curve on unseen cases, beside trees at as many costs, logistic regression and sampling.

    python benchmarks/quality/cost_curve.py --data FOLDER [--sets NAME ...] [--seeds 0 1 2 3 4] [--jobs 2]

Section 5.3 and appendix F of the paper of `CostOptimalCurve`. Every data set is parted 80/20 at random, stratified;
categories become columns, missing numbers the median, all columns get mean 0 and deviation 1, learned on the training
part. A method is a set of classifiers, points (FPR, TPR) on the test part; the area under their hull is measured.

Each result is kept at once in runs/cost_curve/results.jsonl; a second run goes on where the first one ended, and
`--again METHOD` forgets what a method did. Results are the same for any number of processes. Page and figures are made
of what is there; `--write-only` measures nothing more. Workers import the package when they start, so whoever edits it
meanwhile runs a copy:

    cp -a src frozen && PYTHONPATH=frozen python benchmarks/quality/cost_curve.py --data FOLDER
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cost_curve_page import write_page
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits, make_classification
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from toprank import CostOptimalCurve, CostTree, TAOTree
from toprank.datasets import load
from toprank.metrics import OperatingPoints, average_precision, roc_auc, roc_curve
from toprank.rankers.cost.cost_path import cost_ratios_around, fit_at_costs
from toprank.rankers.cost.tao_classifier import TAOClassifier
from toprank.tree.structure import Tree

HERE = Path(__file__).parent
OUT = HERE.parents[1] / "docs" / "results" / "cost_curve"
STORE = HERE / "runs" / "cost_curve" / "results.jsonl"

SETS = ("telco_churn", "coil2000", "us_crime", "mammography", "pageblocks", "satimage", "abalone8",
        "vehicle_claim_fraud")  # fmt: skip
SAMPLED = ("telco_churn", "us_crime", "abalone8")
"""Where sampling is compared with costs: figure 10 has three sets."""
SEEDS = (0, 1, 2, 3, 4)
N_COSTS, N_SAMPLED_COSTS = 15, 9
"""Costs of a path that is not followed to its ends; fewer where rows are drawn up to the ratio."""
FPR_GRID = np.linspace(0, 1, 201)
PENALTIES_TRIED = 30


class Part(NamedTuple):
    """A training and a test part, as numbers."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Task(NamedTuple):
    """One method on one split of one data set: a line of the store."""

    dataset: str
    seed: int
    method: str


Result = dict[str, Any]


# --- two classes ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def encoded_part(dataset: str, seed: int, folder: str) -> Part:
    """An 80/20 split of a table; what encodes it is learned on the training part."""
    table = load(dataset, folder=folder)
    X, y = table.X, table.y.astype(int)
    texts = table.categorical_features
    numbers = [name for name in X.columns if name not in texts]
    X[texts] = X[texts].fillna("(missing)")
    train, test = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=seed)
    to_numbers = ColumnTransformer([
        ("numbers", SimpleImputer(strategy="median"), numbers),
        ("categories", OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts),
    ])  # fmt: skip
    encoder = make_pipeline(to_numbers, StandardScaler()).fit(X.iloc[train])
    return Part(encoder.transform(X.iloc[train]), y[train], encoder.transform(X.iloc[test]), y[test])


def measured(points: OperatingPoints, trees: list[Any], ratio: float, is_between: Any = False) -> Result:
    """What is kept of classifiers: errors on the test part with their steps from the base cost, and sizes.

    Trees between two costs have no step.
    """
    all_steps = np.round(np.log(points.cost_ratio / ratio) / np.log(1.5)).astype(int)
    steps = np.where(is_between, None, all_steps).tolist()
    return {"points": points.to_dict(), "steps": steps, "leaves": [n_leaves(tree) for tree in trees],
            "hull_area": points.hull_area, "dominated": float(points.is_dominated.mean())}  # fmt: skip


def n_leaves(tree: Any) -> int:
    """Leaves of a tree of this library or of scikit-learn."""
    return int(tree.n_leaves_ if hasattr(tree, "n_leaves_") else tree.get_n_leaves())


def n_weights(tree: Tree) -> int:
    """Numbers that the conditions of a tree multiply columns with; a condition on one column has one."""
    in_sums = np.diff(tree.oblique_at)
    return int(np.where(tree.is_leaf, 0, np.maximum(in_sums, 1)).sum())


def at_costs(estimator: Any) -> Callable[[Part, int, Result], Result]:
    """One fit of a classifier at each of 15 costs."""

    def measure(part: Part, seed: int, chosen: Result) -> Result:
        ratios = cost_ratios_around(part.y, N_COSTS)
        path = fit_at_costs(estimator, part.X, part.y, ratios)
        return measured(path.points(part.X_test, part.y_test), path.models, ratios[N_COSTS // 2])

    return measure


def logistic(class_weight: str | None) -> Callable[[Part, int, Result], Result]:
    """The ROC curve of one sparse logistic regression."""

    def measure(part: Part, seed: int, chosen: Result) -> Result:
        model = LogisticRegression(
            l1_ratio=1, solver="liblinear", C=1.0, class_weight=class_weight, random_state=0, max_iter=1000
        )
        score = model.fit(part.X, part.y).decision_function(part.X_test)
        return {
            "roc_auc": roc_auc(part.y_test, score),
            "average_precision": average_precision(part.y_test, score),
            "hull_area": OperatingPoints.from_scores(part.y_test, score).hull_area,
            "roc": roc_curve(part.y_test, score)(FPR_GRID).tolist(),
            "weights": int(np.count_nonzero(model.coef_)),
        }

    return measure


def curve(base: TAOTree | None) -> Callable[[Part, int, Result], Result]:
    """The cost-optimal curve with its defaults: depth and penalty by cross-validation."""

    def measure(part: Part, seed: int, chosen: Result) -> Result:
        model = CostOptimalCurve(base, random_state=seed, n_jobs=1).fit(part.X, part.y)
        points = model.points(part.X_test, part.y_test)
        trees = [point.tree for point in model.path_]
        score = model.decision_function(part.X_test)
        is_between = np.array([point.is_between for point in model.path_])
        found = measured(points, trees, model.path_[model.base_point_].cost_ratio, is_between)
        kept = points.select(~model.held_out_points_.is_dominated)
        return found | {
            "max_depth": int(model.max_depth_),
            "alpha": float(model.alpha_),
            "weights": [n_weights(tree.tree_) for tree in trees],
            "roc_auc": roc_auc(part.y_test, score),
            "average_precision": average_precision(part.y_test, score),
            "hull_area_of_kept": kept.hull_area,
            "hull_area_of_costs": points.select(~is_between).hull_area,
            "n_costs": int((~is_between).sum()),
            "hull_area_of_ranking": OperatingPoints.from_scores(part.y_test, score).hull_area,
        }

    return measure


def fine_curve(part: Part, seed: int, chosen: Result) -> Result:
    """The curve of the depth and penalty that the other one chose, in steps of 1.1, without trees between costs."""
    base = TAOTree(max_depth=chosen["max_depth"], alpha=chosen["alpha"])
    settings = {"cost_factor": 1.1, "max_point_gap": None, "depths": None, "alphas": None, "cv": 0}
    model = CostOptimalCurve(base, random_state=seed, n_jobs=1, **settings)
    points = model.fit(part.X, part.y).points(part.X_test, part.y_test)
    return {"hull_area": points.hull_area, "leaves": [n_leaves(point.tree) for point in model.path_]}


def sampled(by: str) -> Callable[[Part, int, Result], Result]:
    """TAO trees on rows drawn up to each ratio, of the depth and penalty that the curve chose; none starts warm."""

    def measure(part: Part, seed: int, chosen: Result) -> Result:
        ratios = cost_ratios_around(part.y, N_SAMPLED_COSTS)
        models, labels = [], []
        for ratio in ratios:
            # More rows make mistakes dearer, all of them alike: the penalty grows with them to mean the same.
            scale = {"weight": 1.0, "undersample": max(ratio, 1.0)}.get(by, min(ratio, 1.0))
            tree = TAOTree(max_depth=chosen["max_depth"], alpha=chosen["alpha"] / scale, random_state=seed)
            path = fit_at_costs(tree, part.X, part.y, [ratio], by=by, random_state=seed)
            models += path.models
            labels.append(path.predict(part.X_test)[0])
        points = OperatingPoints.from_labels(part.y_test, labels, cost_ratio=ratios)
        return measured(points, models, ratios[N_SAMPLED_COSTS // 2])

    return measure


METHODS: dict[str, Callable[[Part, int, Result], Result]] = {
    "tree": at_costs(DecisionTreeClassifier(max_depth=6, min_samples_leaf=5, random_state=0)),
    "logistic": logistic(None),
    "balanced": logistic("balanced"),
    "cart": at_costs(CostTree(random_state=0)),
    "oblique": curve(None),
    "axis": curve(TAOTree(split="axis")),
}
SAMPLERS = {way: sampled(way) for way in ("weight", "oversample", "undersample", "smote")}
FOLLOWERS = {"fine": fine_curve} | SAMPLERS
"""These need the result of "oblique"."""


# --- more classes -----------------------------------------------------------------------------------------------


def imbalanced_digits(seed: int) -> Part:
    """scikit-learn's digits, of which each has 0.8 times the cases of the one before: 178 zeros, 24 nines."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    rows = [rng.permutation(np.flatnonzero(y == digit)) for digit in range(10)]
    kept = np.concatenate([each[: round(0.8**digit * len(rows[0]))] for digit, each in enumerate(rows)])
    return stratified(X[kept], y[kept], seed)


def simulated_classes(seed: int) -> Part:
    """Five classes of 60 to 2 % in 20 columns, of which five are sums of the ten that matter."""
    X, y = make_classification(
        8000, 20, n_informative=10, n_redundant=5, n_classes=5, n_clusters_per_class=2, class_sep=1.5,
        weights=[0.6, 0.25, 0.09, 0.04, 0.02], flip_y=0.01, random_state=seed,
    )  # fmt: skip
    return stratified(X, y, seed)


def stratified(X: np.ndarray, y: np.ndarray, seed: int) -> Part:
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X)
    return Part(scaler.transform(X), y, scaler.transform(X_test), y_test)


def cost_error(part: Part, called: np.ndarray) -> float:
    """Cost-weighted 0/1 error on the test part, 0 to 100, where all classes of the training part cost the same."""
    cost = (1 / np.bincount(part.y))[part.y_test]
    return float(100 * cost[called != part.y_test].sum() / cost.sum())


def best_of(estimator: Any, grid: dict[str, list[Any]], part: Part) -> Any:
    """The estimator with the setting of least cost by five folds of the training part, fitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a fold may be called no case of a rare class
        return GridSearchCV(estimator, grid, scoring="balanced_accuracy", cv=5).fit(part.X, part.y).best_estimator_


def full_cart(part: Part, seed: int) -> Any:
    """CART with costs, grown down to pure leaves."""
    return DecisionTreeClassifier(class_weight="balanced", random_state=seed).fit(part.X, part.y)


def pruned_cart(part: Part, seed: int) -> Any:
    """CART with costs, cut back by cross-validation."""
    tree = DecisionTreeClassifier(class_weight="balanced", random_state=seed)
    penalties = np.unique(np.maximum(tree.cost_complexity_pruning_path(part.X, part.y).ccp_alphas, 0))
    tried = np.unique(np.quantile(penalties, np.linspace(0, 1, PENALTIES_TRIED), method="nearest"))
    return best_of(tree, {"ccp_alpha": tried.tolist()}, part)


def tao(part: Part, seed: int) -> Any:
    """TAO for all classes, depth and penalty by cross-validation."""
    model = TAOClassifier(costs="balanced", random_state=seed, n_jobs=1)
    return best_of(model, {"max_depth": [3, 4, 5, 6], "alpha": [0.3, 1.0, 3.0, 10.0]}, part)


CLASS_SETS = {"digits": imbalanced_digits, "simulated": simulated_classes}
CLASS_METHODS = {"classes-cart": full_cart, "classes-pruned": pruned_cart, "classes-tao": tao}


def measure_classes(task: Task) -> Result:
    part = CLASS_SETS[task.dataset](task.seed)
    start = time.process_time()
    model = CLASS_METHODS[task.method](part, task.seed)
    seconds = time.process_time() - start
    depth = model.tree_.depth if isinstance(model, TAOClassifier) else model.get_depth()
    counts = np.bincount(part.y).tolist()
    return {"seconds": seconds, "error": cost_error(part, model.predict(part.X_test)), "leaves": n_leaves(model),
            "depth": int(depth), "n_train": len(part.y), "n_columns": part.X.shape[1], "classes": counts}  # fmt: skip


# --- running ----------------------------------------------------------------------------------------------------


def measure(task: Task, chosen: Result, folder: str) -> Result:
    """The line of one task; seconds are those of the processor, of which one thread takes no more."""
    with threadpool_limits(1):
        if task.method in CLASS_METHODS:
            return task._asdict() | measure_classes(task)
        part = encoded_part(task.dataset, task.seed, folder)
        start = time.process_time()
        found = (METHODS | FOLLOWERS)[task.method](part, task.seed, chosen)
        size = {"n_train": len(part.y), "n_columns": part.X.shape[1], "positives": int(part.y.sum())}
        return task._asdict() | {"seconds": time.process_time() - start} | size | found


def tasks_of(sets: list[str], seeds: list[int], methods: list[str]) -> Iterator[Task]:
    """All tasks, seed by seed, so that an early look sees all sets."""
    for seed in seeds:
        for dataset in sets:
            known = [*CLASS_METHODS] if dataset in CLASS_SETS else [*METHODS, *FOLLOWERS]
            left_out = [*SAMPLERS] if dataset not in SAMPLED else []
            for method in known:
                if method not in left_out and (not methods or method in methods):
                    yield Task(dataset, seed, method)


def read_store(store: Path) -> dict[Task, Result]:
    """Results by task; of several the last."""
    lines = store.read_text().splitlines() if store.exists() else []
    results = [json.loads(line) for line in lines]
    return {Task(*(result[name] for name in Task._fields)): result for result in results}


def forget(store: Path, methods: list[str]) -> None:
    """Leave results of these methods out of the store."""
    kept = [json.dumps(result) for task, result in read_store(store).items() if task.method not in methods]
    store.write_text("".join(line + "\n" for line in kept))


def run(tasks: list[Task], folder: str, store: Path, n_jobs: int) -> int:
    """Measure what the store does not hold yet, and return how many tasks failed."""
    store.parent.mkdir(parents=True, exist_ok=True)
    done, n_failed, started = read_store(store), 0, time.perf_counter()
    total = sum(task not in done for task in tasks)
    at = 0
    # Followers take the depth and penalty of the curve, so they come when all curves are there.
    for wave in (False, True):
        todo = [task for task in tasks if task not in done and (task.method in FOLLOWERS) == wave]
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(n_jobs, mp_context=context) as pool, store.open("a") as lines:
            futures = {}
            for task in todo:
                chosen = done.get(task._replace(method="oblique"), {})
                if wave and not chosen:
                    n_failed += 1
                    print(f"{task}: no result of the curve, of which it takes depth and penalty", file=sys.stderr)
                else:
                    futures[pool.submit(measure, task, chosen, folder)] = task
            for future in as_completed(futures):
                task, at = futures[future], at + 1
                minutes = (time.perf_counter() - started) / 60
                head = f"[{at} of {total}, {minutes:.1f} min] {task.dataset}, seed {task.seed}, {task.method}:"
                try:
                    done[task] = future.result()
                except Exception as error:  # the others go on
                    n_failed += 1
                    print(f"{head} failed, {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                    continue
                lines.write(json.dumps(done[task]) + "\n")
                lines.flush()
                print(head, in_words(done[task]), file=sys.stderr, flush=True)
    return n_failed


def in_words(result: Result) -> str:
    """The main figures of a result."""
    leaves = f", {np.mean(result['leaves']):.1f} leaves" if "leaves" in result else ""
    figure = f"error {result['error']:.2f}" if "error" in result else f"hull area {result['hull_area']:.4f}"
    return f"{figure}{leaves}, {result['seconds']:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="data", help="folder of the data sets")
    parser.add_argument("--sets", nargs="+", default=[*SETS, *CLASS_SETS], help="names of data sets")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--methods", nargs="+", default=[], help="some of the methods; all by default")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--again", nargs="+", default=[], help="methods whose results are forgotten first")
    parser.add_argument("--store", type=Path, default=STORE, help="file of the results")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the page and the figures")
    parser.add_argument("--write-only", action="store_true", help="measure nothing")
    arguments = parser.parse_args()
    tasks = list(tasks_of(arguments.sets, arguments.seeds, arguments.methods))
    if arguments.again:
        forget(arguments.store, arguments.again)
    n_failed = 0 if arguments.write_only else run(tasks, arguments.data, arguments.store, arguments.jobs)
    done = read_store(arguments.store)
    print(write_page([done[task] for task in tasks if task in done], arguments.out))
    sys.exit(n_failed > 0)


if __name__ == "__main__":
    main()
