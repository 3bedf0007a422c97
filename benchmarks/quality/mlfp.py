"""MLFP and its rivals by the protocol of the thesis (section 3.5.1), beside its tables 3.1 and 3.3.

    python benchmarks/quality/mlfp.py --data ../shared/data --published ../shared/reference/thesis_neighbours.csv \
        --out mlfp-results [--k 3 1] [--seeds 1 2 3 4 5] [--calls 400] [--jobs 2] [--write]

A stratified 80/20 split per seed; numbers standardised by the training part; settings chosen by 10-fold cross-
validation of the F-measure on the training part, all folds counted together; F-measure of the majority vote of k = 3
(or 1) neighbours on the test part. MLFP tunes mu and c in [0, 1] with `--calls` proposals of Optuna (the thesis: 400
of scikit-optimize), GMML 20 values of t, ImbML `--imbml-calls` of its three parameters. LMNN and ITML (metric-learn)
keep their defaults; LMNN, ITML and ImbML learn from at most 1,000 rows. Results are kept in one line per run, so a
run that was stopped goes on where it was; seeds come first, so that all tables have a result early. `--write` stores
the comparison in docs/results/mlfp.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from toprank import MLFP
from toprank.experiment.methods.neighbours import GMML, ImbML, MetricTransformer
from toprank.experiment.metric_tuning import tune_mlfp

TABLES = {
    "balance": "BALANCE", "autompg": "AUTOMPG", "iono": "IONOSPHERE", "pima": "PIMA", "german": "GERMAN",
    "yeast1": "YEAST1", "haberman": "HABERMAN", "vehicle3": "VEHICLE3", "hayes": "HAYES", "abalone8": "ABALONE8",
    "ecoli_imu": "ECOLI3", "pageblocks": "PAGEBLOCKS", "satimage": "SATIMAGE", "libras": "LIBRAS",
    "arrhythmia6": "ARRHYTHMIA", "solar_flare_m0": "SOLAR-FLARE-M0", "oil": "OIL", "yeast4": "YEAST4",
    "wine4": "REDWINEQUALITY4", "yeast5": "YEAST5", "yeast6": "YEAST6", "abalone20": "ABALONE20",
}  # fmt: skip
"""Tables of the folder, and their names in the thesis."""

METHODS = ("kNN", "GMML", "MLFP", "ITML", "LMNN", "ImbML")
"""Cheap ones first."""

SLOW_ROWS = 1_000
RESULTS = Path(__file__).parents[2] / "docs" / "results" / "mlfp.md"
TOL = 1e-2
"""Of MLFP, when tuned and when fitted."""

Numbers = tuple[np.ndarray, np.ndarray]


def load_numbers(name: str, folder: Path) -> Numbers:
    """A table as numbers and labels: categories as indicators, missing values at the median."""
    table = pd.read_csv(folder / f"{name}.csv.gz", keep_default_na=False, na_values=[""])
    X = pd.get_dummies(table.drop(columns="label"), dtype=float)
    return X.fillna(X.median()).to_numpy(np.float64), table["label"].to_numpy()


def vote(transformer: Any, train: Numbers, X_new: np.ndarray, k: int) -> np.ndarray:
    """Majority vote of the k nearest training rows after a fitted transformer; None keeps the rows."""
    X, y = train
    if transformer is not None:
        X, X_new = transformer.fit(X, y).transform(X), transformer.transform(X_new)
    k = min(k, len(y))
    return np.asarray(KNeighborsClassifier(k).fit(X, y).predict(X_new))


def pooled_f1(make: Callable[[], Any], train: Numbers, k: int, seed: int) -> float:
    """F-measure of the votes of all held-out folds, counted together."""
    X, y = train
    votes = np.zeros(len(y))
    for inside, held_out in folds_of(y, seed):
        scaler = StandardScaler().fit(X[inside])
        part = scaler.transform(X[inside]), y[inside]
        votes[held_out] = vote(make(), part, scaler.transform(X[held_out]), k)
    return float(f1_score(y, votes, zero_division=0))


def folds_of(y: np.ndarray, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Ten stratified folds, or as many as the smaller class allows."""
    n_folds = min(10, int(np.bincount(y).min()))
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros((len(y), 1)), y))


def tuned_transformer(method: str, train: Numbers, k: int, seed: int, options: argparse.Namespace) -> tuple[Any, dict]:
    """The transformer of a rival with its best setting, unfitted, and the setting."""
    if method == "kNN":
        return None, {}
    if method in ("LMNN", "ITML"):
        return MetricTransformer(method.lower(), max_rows=SLOW_ROWS, random_state=seed), {}
    if method == "GMML":
        scores = {t: pooled_f1(partial(GMML, t), train, k, seed) for t in np.linspace(0, 1, 20).tolist()}
        t = max(scores, key=scores.__getitem__)
        return GMML(t), {"t": t}
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))

    def make(setting: dict[str, Any]) -> ImbML:
        return ImbML(**setting, n_neighbors=k, max_rows=SLOW_ROWS, random_state=seed)

    def objective(trial: Any) -> float:
        setting = {
            "margin": trial.suggest_categorical("margin", [1, 10, 100, 1000, 10000]),
            "penalty": trial.suggest_categorical("penalty", [0, 0.01, 0.1, 1, 10]),
            "a": trial.suggest_float("a", 0, 1),
        }
        return pooled_f1(lambda: make(setting), train, k, seed)

    study.optimize(objective, options.imbml_calls)
    return make(study.best_params), study.best_params


def run_one(name: str, seed: int, method: str, k: int, options: argparse.Namespace) -> dict[str, Any]:
    """One table, split and method: its F-measure and misses on the test part."""
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    X, y = load_numbers(name, options.data)
    inside, test = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=seed)
    with threadpool_limits(1):
        if method == "MLFP":
            model = MLFP(n_neighbors=k, tol=TOL, keep_columns="all", cv=0)
            tuned = tune_mlfp(model, X[inside], y[inside], n_calls=options.calls, cv=folds_of(y[inside], seed),
                              random_state=seed)  # fmt: skip
            votes = tuned.model.fit(X[inside], y[inside]).predict(X[test])
            setting = {"mu": tuned.mu, "c": tuned.c, "cv_score": tuned.score}
        else:
            transformer, setting = tuned_transformer(method, (X[inside], y[inside]), k, seed, options)
            scaler = StandardScaler().fit(X[inside])
            votes = vote(transformer, (scaler.transform(X[inside]), y[inside]), scaler.transform(X[test]), k)
    is_missed = (votes == 0) & (y[test] == 1)
    return {"table": name, "seed": seed, "method": method, "k": k, "f1": f1_score(y[test], votes, zero_division=0),
            "missed": float(is_missed.sum() / y[test].sum()), "seconds": round(time.perf_counter() - began, 2),
            "setting": setting, "calls": {"MLFP": options.calls, "ImbML": options.imbml_calls}.get(method)}  # fmt: skip


def runs_of(options: argparse.Namespace) -> Iterator[tuple[str, int, str, int]]:
    """All runs, in the order in which they are made."""
    for k in options.k:
        for seed in options.seeds:
            for method in options.methods:
                for name in options.tables:
                    yield name, seed, method, k


def load_results(path: Path) -> pd.DataFrame:
    """What has been run."""
    lines = path.read_text().splitlines() if path.exists() else []
    columns = ["table", "seed", "method", "k", "f1", "missed", "seconds", "setting", "calls"]
    return pd.DataFrame([json.loads(line) for line in lines], columns=columns)


def run(options: argparse.Namespace) -> None:
    """Run what is missing; one line per run."""
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "runs.jsonl"
    done = {tuple(row) for row in load_results(path)[["table", "seed", "method", "k"]].itertuples(index=False)}
    missing = [each for each in runs_of(options) if each not in done]
    with ProcessPoolExecutor(options.jobs) as pool, path.open("a") as file:
        futures = {pool.submit(run_one, *each, options): each for each in missing}
        for number, future in enumerate(as_completed(futures), 1):
            try:
                result = future.result()
            except Exception as error:  # one table that a method refuses must not stop the others
                print(f"{futures[future]}: {type(error).__name__}: {error}", flush=True)
                continue
            file.write(json.dumps(result) + "\n")
            file.flush()
            print(f"{number}/{len(missing)} {result['table']} {result['seed']} {result['method']} k={result['k']}: "
                  f"{result['f1']:.3f} ({result['seconds']} s)", flush=True)  # fmt: skip


def published_of(path: Path, k: int) -> pd.DataFrame:
    """F-measures of the thesis, one row per table and one column per method."""
    rows = pd.read_csv(path)
    rows = rows[rows["table"].astype(str) == {3: "3.1", 1: "3.3"}[k]].copy()
    rows["dataset"] = rows["dataset"].replace("PAGELOCKS", "PAGEBLOCKS")
    rows["method"] = rows["method"].replace({f"{k}-NN": "kNN"})
    return rows.pivot_table(index="dataset", columns="method", values="mean")


def comparison(results: pd.DataFrame, published: pd.DataFrame, k: int) -> list[str]:
    """Lines of a Markdown table: ours and the published F-measures, per table and on average."""
    results = results[results["k"] == k]
    methods_run = results.groupby(["table", "seed"])["method"].transform("nunique")
    results = results[methods_run == results["method"].nunique()]  # the same splits for all
    ours = results.pivot_table(index="table", columns="method", values="f1")
    methods = [method for method in METHODS if method in ours]
    complete = ours[methods].dropna()
    n_seeds = results.groupby(["table", "method"])["seed"].nunique()
    lines = [f"| table | {' | '.join(methods)} | published kNN | published ImbML | published MLFP |",
             "|" + "---|" * (len(methods) + 4)]  # fmt: skip
    for name in [name for name in TABLES if name in complete.index]:
        theirs = published.loc[TABLES[name]]
        best = complete.loc[name].max()
        cells = [f"**{v:.3f}**" if v == best else f"{v:.3f}" for v in complete.loc[name]]
        cells += [f"{theirs[m]:.3f}" for m in ("kNN", "ImbML", "MLFP")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    theirs = published.loc[[TABLES[name] for name in complete.index]].mean()
    cells = [f"{v:.3f}" for v in complete.mean()] + [f"{theirs[m]:.3f}" for m in ("kNN", "ImbML", "MLFP")]
    lines.append(f"| **mean** | {' | '.join(cells)} |")
    missed = results.pivot_table(index="table", columns="method", values="missed").loc[complete.index, methods].mean()
    lines += ["", f"{len(complete)} tables, {n_seeds.min()} to {n_seeds.max()} splits per table and method. "
              f"Published means of the same tables: {', '.join(f'{m} {theirs[m]:.3f}' for m in theirs.index)}. "
              f"Positives missed on average: {', '.join(f'{m} {missed[m]:.1%}' for m in methods)}."]  # fmt: skip
    return lines


def page(results: pd.DataFrame, options: argparse.Namespace, command: str) -> str:
    """The page of results."""
    calls = {m: sorted(set(c.dropna().astype(int))) for m, c in results.groupby("method")["calls"]}
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    lines = ["# MLFP beside the thesis", "",
             f"Protocol of section 3.5.1 (`benchmarks/quality/mlfp.py`), {date.today():%d %B %Y}, {machine}. Command:",
             "", f"    {command}", "",
             f"Settings tried per split: MLFP {calls.get('MLFP')}, ImbML {calls.get('ImbML')}, GMML 20; the thesis "
             "tried 400, 400 and 20. LMNN and ITML keep their defaults and, like ImbML, learn from at most 1,000 rows. "
             "F-measure on the test part, mean over splits; the best of ours in bold."]  # fmt: skip
    for k in sorted(set(results["k"]), reverse=True):
        lines += ["", f"## k = {k}", "", *comparison(results, published_of(options.published, k), k)]
    seconds = results.groupby("method")["seconds"].mean()
    lines += ["", f"Mean seconds per split, tuning included: {', '.join(f'{m} {s:.1f}' for m, s in seconds.items())}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--published", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("mlfp-results"))
    parser.add_argument("--k", type=int, nargs="+", default=[3, 1], choices=[1, 3])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--imbml-calls", type=int, default=400)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    run(options)
    results = load_results(options.out / "runs.jsonl")
    command = "python benchmarks/quality/mlfp.py --data ../shared/data"
    command += " --published ../shared/reference/thesis_neighbours.csv"
    command += f" --calls {options.calls} --imbml-calls {options.imbml_calls} --write"
    text = page(results, options, command)
    if options.write:
        RESULTS.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
