"""Speed beside LightGBM, XGBoost and scikit-learn, as ratios from one run on one machine.

    python benchmarks/speed/run.py [--rows 1000000] [--write]

Each figure is the best of five runs, of scikit-learn's tree one; what is compared runs in turn. `--write` stores the
table in `results.md`.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
N_FEATURES = 30
REPEATS = 5
GIVEN: dict[str, Any] = {"criterion": "ap", "leaf_score": "margin", "ccp_alpha": 0.0, "min_samples_leaf": 20, "cv": 0}
"""Settings of a single growth, without the folds and the scorecard of the defaults."""


def make_table(n: int, n_features: int = N_FEATURES, dtype: str = "float64") -> tuple[Any, Any]:
    """Gaussian columns and about 2 % positives in interacting pockets."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, n_features), dtype=dtype)
    log_odds = -6.1 + 2.0 * X[:, 0] * X[:, 1] + X[:, 2]
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-log_odds))).astype(int)


def best_of_each(*calls: Callable[[], Any], repeats: int = REPEATS) -> list[tuple[float, Any]]:
    """Least seconds of a few calls of each, in turn, and the last result."""
    best: list[tuple[float, Any]] = [(float("inf"), None)] * len(calls)
    for _ in range(repeats):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            result = call()
            best[i] = (min(best[i][0], time.perf_counter() - start), result)
    return best


def best_of(call: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """Least seconds of a few calls, and the last result."""
    return best_of_each(call, repeats=repeats)[0]


def grow_alone(X: Any, y: Any, peer: Callable[[], Any]) -> list[float]:
    """Seconds to grow MetaAP(4, 4) from bins with one thread and with two, and those of a peer."""
    from toprank._core.threads import Threads
    from toprank.data.binned_cases import BinnedCases
    from toprank.rankers.growth import GrowthSettings, grow_meta
    from toprank.tree.categories import CategorySearch
    from toprank.tree.columns import Column

    columns = [Column(f"x{i}") for i in range(X.shape[1])]
    data = BinnedCases(X, y == 1, None, columns)
    settings = GrowthSettings(0, 4, 20, 2, 0.0, None, "hierarchical", 10.0, CategorySearch(), max_depth=4)
    with Threads(2) as two:
        calls = (lambda: grow_meta(settings, data, None, Threads()), lambda: grow_meta(settings, data, None, two), peer)
        return [seconds for seconds, _ in best_of_each(*calls)]


def measure_training(n: int) -> list[tuple[str, str, str, str]]:
    """Fitting, growing and scoring beside the peers."""
    import lightgbm
    import xgboost
    from sklearn.tree import DecisionTreeClassifier

    from toprank import MetaAP

    X, y = make_table(n)
    MetaAP(**GIVEN, max_depth=4, leaf_depth=4).fit(X[:20_000], y[:20_000])  # compile
    one_thread, two_threads = (MetaAP(**GIVEN, max_depth=4, leaf_depth=4, n_jobs=n_jobs) for n_jobs in (1, 2))
    (ours, model), (two, _) = best_of_each(lambda: one_thread.fit(X, y), lambda: two_threads.fit(X, y))
    lightgbm_options = {"objective": "binary", "num_leaves": 255, "num_threads": 1, "verbose": -1}
    light, _ = best_of(lambda: lightgbm.train(lightgbm_options, lightgbm.Dataset(X, y), 1))
    sklearn_seconds, _ = best_of(lambda: DecisionTreeClassifier(max_depth=8).fit(X, y), 1)
    matrix = xgboost.QuantileDMatrix(X, y, max_bin=256, nthread=1)
    options = {"tree_method": "hist", "max_depth": 8, "nthread": 1, "max_bin": 256, "objective": "binary:logistic"}
    grow_one, grow_two, xgb = grow_alone(X, y, lambda: xgboost.train(options, matrix, 1))
    scoring, _ = best_of(lambda: model.decision_function(X))
    return [
        ("MetaAP(4, 4), array to model, 1 thread", f"{ours:.2f} s", "", ""),
        ("LightGBM, array to one 255-leaf tree, 1 thread", f"{light:.2f} s",
         f"ours / theirs {ours / light:.2f}", "<= 0.5"),
        ("scikit-learn DecisionTreeClassifier(max_depth=8)", f"{sklearn_seconds:.2f} s",
         f"theirs / ours {sklearn_seconds / ours:.0f}", ">= 30"),
        ("growing alone, 1 thread", f"{grow_one:.2f} s", "", ""),
        ("XGBoost hist, one tree of depth 8 from its matrix, 1 thread", f"{xgb:.2f} s",
         f"ours / theirs {grow_one / xgb:.2f}", "<= 2"),
        ("MetaAP(4, 4), 2 threads", f"{two:.2f} s", f"speed-up {ours / two:.2f}", ">= 1.6"),
        ("growing alone, 2 threads", f"{grow_two:.2f} s", f"speed-up {grow_one / grow_two:.2f}", ""),
        (f"scoring {n:,} rows, 1 thread", f"{scoring:.2f} s", "", "< 0.5 s"),
    ]  # fmt: skip


FOREST_SCRIPT = """
import resource, sys
sys.path.insert(0, {here!r})
from run import make_table
from toprank import TreeRankForest
X, y = make_table(50_000)
TreeRankForest(n_estimators=10, n_jobs=2, random_state=0).fit(X, y)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
forest = TreeRankForest(n_estimators={n_trees}, n_jobs=2, random_state=0).fit(X, y)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
size = sum(array.nbytes for tree in forest.trees_ for array in tree.to_arrays().values())
print((after - before) / 2**10, size / 2**20)
"""


def measure_encoding(n: int) -> list[tuple[str, str, str, str]]:
    """Scoring a table of 18 numbers and 4 columns of categories beside one of the numbers alone, by library."""
    import numpy as np
    import polars as pl
    from sklearn.base import clone

    from toprank import MetaAP, RankingTree

    X, y = make_table(n, 18)
    rng = np.random.default_rng(1)
    numbers = pl.DataFrame(X, schema=[f"number {i}" for i in range(18)])
    texts = {f"text {c}": np.array([f"category {i:03d}" for i in range(c)])[rng.integers(0, c, n)]
             for c in (5, 20, 60, 200)}  # fmt: skip
    table = numbers.with_columns(**texts)
    forms: dict[str, Callable[[pl.DataFrame], Any]] = {
        "polars": lambda frame: frame,
        "polars, categorical": lambda frame: frame.with_columns(pl.selectors.string().cast(pl.Categorical)),
        "pandas, object": lambda frame: _pandas(frame, object),
        "pandas, string": lambda frame: _pandas(frame, "string"),
        "pandas, category": lambda frame: _pandas(frame, "category"),
        "pyarrow": lambda frame: frame.to_arrow(),
        "pyarrow, dictionary": lambda frame: frame.with_columns(pl.selectors.string().cast(pl.Categorical)).to_arrow(),
    }
    some = 50_000
    lines = []
    for model in (MetaAP(max_depth=3, leaf_depth=3, cv=0, n_jobs=1), RankingTree(max_depth=6, cv=0, n_jobs=1)):
        alone, both = (clone(model).fit(frame[:some], y[:some]) for frame in (numbers, table))
        for name, form in forms.items():
            plain, mixed = form(numbers), form(table)
            (theirs, _), (ours, _) = best_of_each(
                lambda plain=plain, alone=alone: alone.decision_function(plain),
                lambda mixed=mixed, both=both: both.decision_function(mixed),
            )
            lines.append((f"scoring {n:,} x (18 numbers + 4 texts), {type(model).__name__}, {name}", f"{ours:.3f} s",
                          f"/ numbers alone ({theirs:.3f} s) {ours / theirs:.2f}", "<= 2"))  # fmt: skip
    return lines


def _pandas(frame: Any, dtype: Any) -> Any:
    """A polars frame as one of pandas, its texts of the given type."""
    return frame.to_pandas().astype({name: dtype for name in frame.columns if name.startswith("text")})


def measure_treerank(n: int) -> list[tuple[str, str, str, str]]:
    """Growing TreeRank beside MetaAP of the same depths, and its forest."""
    from toprank import TreeRankForest
    from toprank._core.threads import Threads
    from toprank.data.binned_cases import BinnedCases
    from toprank.rankers.growth import GrowthSettings, grow_meta
    from toprank.tree.categories import CategorySearch
    from toprank.tree.columns import Column
    from toprank.tree.meta.objectives import AVERAGE_PRECISION, ROC_AREA

    X, y = make_table(n)
    data = BinnedCases(X, y == 1, None, [Column(f"x{i}") for i in range(X.shape[1])])
    greedy = {"max_leaf_nodes": None, "smoothing": "hierarchical", "smoothing_strength": 10.0, "max_depth": 4}
    ap, auc = (
        GrowthSettings(each.criterion, 4, 20, 2, 0.0, categories=CategorySearch(), objective=each, **greedy)
        for each in (AVERAGE_PRECISION, ROC_AREA)
    )
    (theirs, _), (ours, _) = best_of_each(
        lambda: grow_meta(ap, data, None, Threads()), lambda: grow_meta(auc, data, None, Threads())
    )
    X, y = X[:50_000], y[:50_000]
    one, two = (TreeRankForest(n_jobs=n_jobs, random_state=0) for n_jobs in (1, 2))
    (forest_one, _), (forest_two, _) = best_of_each(lambda: one.fit(X, y), lambda: two.fit(X, y), repeats=2)
    beyond = {}
    for n_trees in (100, 400):
        script = FOREST_SCRIPT.format(here=str(HERE), n_trees=n_trees)
        out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
        beyond[n_trees] = f"{float(out[0]):.0f} MB", f"trees {float(out[1]):.0f} MB"
    return [
        ("growing TreeRank(4, 4) alone, 1 thread", f"{ours:.2f} s", f"/ MetaAP(4, 4) {ours / theirs:.2f}", "<= 1"),
        ("TreeRankForest of 100 on 50,000 x 30, 2 threads", f"{forest_two:.1f} s",
         f"speed-up {forest_one / forest_two:.2f}", "< 60 s"),
        *((f"memory of a forest of {n_trees} beyond one of 10", *values, "that of the trees")
          for n_trees, values in beyond.items()),
    ]  # fmt: skip


def measure_growth_with_rows(largest: int) -> list[tuple[str, str, str, str]]:
    """Seconds per million rows as the table grows."""
    from toprank import MetaAP

    lines = []
    for n in (largest // 16, largest // 4, largest):
        X, y = make_table(n)
        seconds, _ = best_of(lambda X=X, y=y: MetaAP(**GIVEN, max_depth=4, leaf_depth=4).fit(X, y))
        lines.append(
            (
                f"MetaAP(4, 4) on {n:,} rows, 1 thread",
                f"{seconds:.2f} s",
                f"{1e6 * seconds / n:.2f} s a million",
                "linear",
            )
        )
    return lines


MEMORY_SCRIPT = """
import resource, sys
import numpy as np
sys.path.insert(0, {here!r})
from run import GIVEN, make_table
from toprank import MetaAP
n, d = {n}, {d}
X, y = np.empty((n, d), np.float32), np.empty(n, int)
for start in range(0, n, 100_000):
    X[start:start + 100_000], y[start:start + 100_000] = make_table(min(100_000, n - start), d, "float32")
MetaAP(**GIVEN, max_depth=4, leaf_depth=4).fit(X[:5000].copy(), y[:5000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
MetaAP(**GIVEN, max_depth=4, leaf_depth=4, n_jobs=2).fit(X, y)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) / 2**20, X.nbytes / 2**30)
"""


def measure_memory(n: int, d: int) -> list[tuple[str, str, str, str]]:
    """Memory beyond the input for a wide table, in a process of its own."""
    script = MEMORY_SCRIPT.format(here=str(HERE), n=n, d=d)
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    return [
        (
            f"{n:,} x {d} float32 ({float(out[1]):.1f} GB), memory beyond the input",
            f"{float(out[0]):.2f} GB",
            "",
            "<= 2 GB",
        )
    ]


def measure_start() -> list[tuple[str, str, str, str]]:
    """Import, first compilation and `toprank describe`, each in a process of its own."""

    def seconds(code: list[str], repeats: int, **environment: str) -> float:
        call = lambda: subprocess.run(code, check=True, capture_output=True, env=os.environ | environment)  # noqa: E731
        return best_of(call, repeats)[0]

    fit = "import numpy as np; from toprank import MetaAP; X = np.random.rand(500, 3); y = X[:, 0] > 0.9; "
    fit += "model = MetaAP().fit(X, y); model.top_k(X, 5)"
    with tempfile.TemporaryDirectory() as folder:
        compile_seconds = seconds([sys.executable, "-c", fit], 1, NUMBA_CACHE_DIR=folder)
        warm = seconds([sys.executable, "-c", fit], 2, NUMBA_CACHE_DIR=folder)
        model = f"{folder}/model.toprank"
        subprocess.run([sys.executable, "-c", f"{fit}; model.save({model!r})"], check=True)
        command = [str(Path(sys.executable).with_name("toprank")), "describe", model]
        describe = seconds(command, 3)
    importing = seconds([sys.executable, "-c", "import toprank"], 3)
    return [
        (
            "first fit, score and alerts in a new environment",
            f"{compile_seconds:.1f} s",
            f"warm {warm:.1f} s",
            "< 20 s",
        ),
        ('python -c "import toprank"', f"{importing:.2f} s", "", "< 1 s"),
        ("toprank describe model", f"{describe:.2f} s", "", "< 1.5 s"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument(
        "--parts", default="training;treerank;encoding;growth;memory;start", help="what to measure, separated by ';'"
    )
    parser.add_argument("--write", action="store_true", help="store the table in results.md")
    arguments = parser.parse_args()
    parts = {
        "training": lambda: measure_training(arguments.rows),
        "treerank": lambda: measure_treerank(arguments.rows),
        "encoding": lambda: measure_encoding(3 * arguments.rows // 10),
        "growth": lambda: measure_growth_with_rows(4 * arguments.rows),
        "memory": lambda: measure_memory(3 * arguments.rows, 250),
        "start": measure_start,
    }
    lines = ["| what | measured | ratio | wanted |", "|---|---|---|---|"]
    for part in arguments.parts.split(";"):
        for line in parts[part]():
            lines.append("| " + " | ".join(line) + " |")
            print(lines[-1], flush=True)
    if arguments.write:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        machine = f"{platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB, Python {platform.python_version()}"
        note = f"\nOne run of the benchmark; best of {REPEATS} of everything, but scikit-learn's tree once.\n"
        head = f"# Speed\n\n{date.today()}, {machine}; `make bench BENCH_ARGS=--write`\n\n"
        (HERE / "results.md").write_text(head + "\n".join(lines) + "\n" + note)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
