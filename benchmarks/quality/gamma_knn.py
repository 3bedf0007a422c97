"""gamma-kNN beside other votes of nearest neighbours: the protocol of section 2.5.1 of the thesis.

    python benchmarks/quality/gamma_knn.py --data FOLDER [--reference CSV] [--sets NAME ...] [--methods NAME ...]

Every data set is split 80/20 at random, stratified, five times; numbers are scaled to [-1, 1], learned on the training
part; k is 1 and 3. What a method tunes, it tunes on the training part, once for each of the four measures. gamma is
tuned over all values, by leave-one-out ("gamma-kNN"), or over the grid of the thesis by 10 folds ("gamma-kNN grid").
`OS` is the best of five oversamplers before plain kNN, `OS + gamma-kNN` the best before gamma-kNN with a gamma for
synthetic positives; sampler and number of positives are chosen by 10 folds.

Each result is kept at once in runs/gamma_knn/results.jsonl; a second run goes on where the first one ended. The page
docs/results/neighbours.md is made of what is there (`gamma_knn_page.py`); `--write-only` measures nothing more.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from gamma_knn_page import write_page
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from toprank import KNN, GammaKNN, LocalGammaKNN
from toprank.rankers.neighbours.tuning import MEASURES

HERE = Path(__file__).parent
STORE = HERE / "runs" / "gamma_knn" / "results.jsonl"

SETS = {
    "BALANCE": "balance", "AUTOMPG": "autompg", "IONOSPHERE": "iono", "PIMA": "pima", "GERMAN": "german",
    "YEAST1": "yeast1", "HABERMAN": "haberman", "VEHICLE3": "vehicle3", "HAYES": "hayes", "ABALONE8": "abalone8",
    "ECOLI3": "ecoli_imu", "PAGEBLOCKS": "pageblocks", "SATIMAGE": "satimage", "LIBRAS": "libras",
    "ARRHYTHMIA": "arrhythmia6", "SOLAR-FLARE-M0": "solar_flare_m0", "OIL": "oil", "YEAST4": "yeast4",
    "REDWINEQUALITY4": "wine4", "YEAST5": "yeast5", "YEAST6": "yeast6", "ABALONE20": "abalone20",
}  # fmt: skip
"""22 of the 28 data sets of table 2.2, in its order, and their files."""

SEEDS = (0, 1, 2, 3, 4)
NEIGHBOURS = (1, 3)
MEASURED = {"F1": "f1", "BA": "balanced_accuracy", "GM": "g_mean", "G1": "g_measure"}
RULES = {"kNN": "plain", "dup-kNN": "duplicated", "wkNN": "weighted", "cwkNN": "class_weighted", "kRNN": "krnn"}
RATIOS = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Positives per negative after oversampling; the thesis tries every tenth."""
FIGURES_SETS = ("balance", "abalone8", "german")


class Task(NamedTuple):
    """One method on one split of one data set: a line of the store."""

    dataset: str
    seed: int
    k: int
    method: str


class Part(NamedTuple):
    """A training and a test part."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray


@lru_cache(maxsize=2)
def read_part(folder: str, name: str, seed: int) -> Part:
    """Return one split of a data set."""
    table = pd.read_csv(Path(folder) / f"{name}.csv.gz", keep_default_na=False, na_values=[""])
    y = table.pop("label").to_numpy()
    train, test = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=seed)
    X = [table.iloc[rows].reset_index(drop=True) for rows in (train, test)]
    return Part(X[0], y[train], X[1], y[test])


def measured(y: np.ndarray, flagged: np.ndarray, names: list[str]) -> dict[str, float]:
    """Return measures of decisions, and the share of positives that they miss."""
    counts = [np.sum((flagged == f) & (y == p)) for f, p in ((1, 1), (1, 0), (0, 1), (0, 0))]
    values = {name: float(MEASURES[MEASURED[name]](*[np.array([float(c)]) for c in counts])[0]) for name in names}
    return values | {f"FN {name}": float(counts[2] / max(np.sum(y == 1), 1)) for name in names}


def by_rule(part: Part, k: int, rule: str) -> dict[str, Any]:
    """Return the measures of a vote that tunes nothing."""
    model = KNN(n_neighbors=k, rule=rule, keep_columns="all").fit(part.X, part.y)
    return measured(part.y_test, model.predict(part.X_test), list(MEASURED))


def tuned(part: Part, make: Callable[[str], Any]) -> dict[str, Any]:
    """Return the measures of a method that tunes its gamma for each of them."""
    out: dict[str, Any] = {}
    for name, scoring in MEASURED.items():
        model = make(scoring).fit(part.X, part.y)
        out |= measured(part.y_test, model.predict(part.X_test), [name])
        out[f"gamma {name}"] = model.gamma_
    return out


class Clustered(LocalGammaKNN):
    """The local version with clusters that are found once for all measures."""

    found: ClassVar[dict[tuple[int, int], np.ndarray]] = {}

    def _centres(self, points: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        key = self.n_clusters, hash(points.tobytes())
        if key not in self.found:
            self.found[key] = super()._centres(points, weight)
        return self.found[key]


def on_grid(part: Part, k: int) -> dict[str, Any]:
    """Return the measures of gamma-kNN tuned as in the thesis: every tenth, by 10 folds."""
    out: dict[str, Any] = {}
    grid = np.arange(11) / 10
    for name, scoring in MEASURED.items():
        model = GammaKNN(n_neighbors=k, scoring=scoring, cv=10, keep_columns="all").fit(part.X, part.y)
        assert model.gamma_curve_ is not None
        gamma = float(grid[np.argmax(model.gamma_curve_.at(grid))])
        model = GammaKNN(n_neighbors=k, gamma=gamma, keep_columns="all").fit(part.X, part.y)
        out |= measured(part.y_test, model.predict(part.X_test), [name])
        out[f"gamma {name}"] = gamma
    return out


def by_sampling(part: Part, k: int, seed: int, gamma: float | str) -> dict[str, Any]:
    """Return the measures after the oversampler that 10 folds choose, for each measure."""
    from imblearn.combine import SMOTEENN, SMOTETomek
    from imblearn.over_sampling import ADASYN, SMOTE, BorderlineSMOTE

    imbalance = np.sum(part.y == 1) / np.sum(part.y == 0)
    out: dict[str, Any] = {}
    for name, scoring in MEASURED.items():
        best: tuple[float, Any] = (-1.0, None)
        for sampler in (SMOTE, BorderlineSMOTE, ADASYN, SMOTEENN, SMOTETomek):
            for ratio in [r for r in RATIOS if r > imbalance] or [1.0]:
                model = GammaKNN(
                    n_neighbors=k, gamma=gamma, gamma_synthetic=gamma, scoring=scoring, keep_columns="all",
                    sampler=sampler(sampling_strategy=ratio, random_state=seed), random_state=seed,
                )  # fmt: skip
                try:
                    model.fit(part.X, part.y)
                except ValueError:  # too few positives, or none to make up
                    continue
                if model.tuned_score_ > best[0]:
                    best = (model.tuned_score_, model)
        if best[1] is None:
            best = (0.0, clone(GammaKNN(n_neighbors=k, gamma=gamma, scoring=scoring)).fit(part.X, part.y))
        out |= measured(part.y_test, best[1].predict(part.X_test), [name])
        out |= {f"gamma {name}": best[1].gamma_, f"gamma synthetic {name}": best[1].gamma_synthetic_}
    return out


def in_learned_metric(part: Part, k: int, seed: int) -> dict[str, Any]:
    """Return the measures of plain kNN in the metric of LMNN (metric-learn)."""
    from toprank.experiment.methods.neighbours import MetricTransformer

    space = GammaKNN(n_neighbors=k, gamma=1.0, keep_columns="all").fit(part.X, part.y)
    X, X_test = space._space_points(part.X), space._space_points(part.X_test)
    learned = MetricTransformer("lmnn", random_state=seed).fit(X, part.y)
    model = KNN(n_neighbors=k, scaling=None, keep_columns="all").fit(learned.transform(X), part.y)
    return measured(part.y_test, model.predict(learned.transform(X_test)), list(MEASURED))


def run_task(task: Task, folder: str) -> dict[str, Any]:
    """Return the line of one task."""
    warnings.simplefilter("ignore")
    part, start = read_part(folder, task.dataset, task.seed), time.perf_counter()
    k = task.k
    shared: dict[str, Any] = {"n_neighbors": k, "keep_columns": "all", "random_state": task.seed}
    if task.method in RULES:
        values = by_rule(part, k, RULES[task.method])
    elif task.method == "gamma-kNN":
        values = tuned(part, lambda scoring: GammaKNN(scoring=scoring, **shared))
    elif task.method == "gamma-kNN grid":
        values = on_grid(part, k)
    elif task.method.startswith("local"):
        Clustered.found.clear()
        version, q = int(task.method.split("V")[1][0]), int(task.method.split("q=")[1])
        shared |= {"version": version, "n_clusters": q, "measured_on": "all" if "all" in task.method else "cluster"}
        values = tuned(part, lambda scoring: Clustered(scoring=scoring, cv=0, **shared))
    elif task.method == "LMNN":
        values = in_learned_metric(part, k, task.seed)
    else:
        values = by_sampling(part, k, task.seed, 1.0 if task.method == "OS" else "cv")
    return task._asdict() | {"values": values, "seconds": round(time.perf_counter() - start, 3)}


METHODS = (*RULES, "gamma-kNN", "gamma-kNN grid", "local V1 q=5", "local V2 q=5", "local all V2 q=5",
           "LMNN")  # fmt: skip
SAMPLING = ("OS", "OS + gamma-kNN")


def stored() -> list[dict[str, Any]]:
    """Return the lines of the store."""
    if not STORE.exists():
        return []
    return [json.loads(line) for line in STORE.read_text(encoding="utf-8").splitlines() if line.strip()]


def main() -> None:
    """Measure what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--reference", help="CSV with published figures: table,measure,k,dataset,method,mean,std")
    parser.add_argument("--sets", nargs="*", default=list(SETS.values()))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), help=f"also: {', '.join(SAMPLING)}")
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write-only", action="store_true")
    chosen = parser.parse_args()
    done = {Task(*(line[field] for field in Task._fields)) for line in stored()}
    tasks = [
        Task(name, seed, k, method)
        for method in chosen.methods for name in chosen.sets for seed in chosen.seeds for k in NEIGHBOURS
    ]  # fmt: skip
    tasks = [] if chosen.write_only else [task for task in tasks if task not in done]
    STORE.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(chosen.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(run_task, task, chosen.data): task for task in tasks}
        for n, future in enumerate(as_completed(running), 1):
            with STORE.open("a", encoding="utf-8") as file:
                file.write(json.dumps(future.result()) + "\n")
            print(f"{n} of {len(tasks)}: {' '.join(map(str, running[future]))}", flush=True)
    write_page(stored(), SETS, chosen.reference)


if __name__ == "__main__":
    main()
