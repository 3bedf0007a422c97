"""How long neighbours take: the tuning of gamma beside one search, and a large table with approximate search.

    python benchmarks/speed/neighbours.py [--rows 1000000] [--columns 30] [--jobs 2] [--only tuning|large]

The table is a mixture of Gaussians in `columns` dimensions, most of their spread in a third of the directions, as real
columns depend on one another; 1 % of the rows are positive and shifted. Times are wall-clock seconds without compiling.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from toprank import GammaKNN
from toprank._core.threads import Threads
from toprank.metrics import average_precision
from toprank.rankers.neighbours.known import DecidingCounts, KnownCases, ratios
from toprank.rankers.neighbours.tuning import MEASURES, gamma_curve


def make_table(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and outcomes."""
    rng = np.random.default_rng(seed)
    population = np.random.default_rng(12345)
    centres, mixing = 2 * population.normal(size=(20, d)), population.normal(size=(d // 3, d))
    y = rng.random(n) < 0.01
    X = rng.normal(size=(n, d // 3)) @ mixing / 3 + 0.3 * rng.normal(size=(n, d)) + centres[rng.integers(0, 20, n)]
    X[y, : d // 3] += 0.8
    return X, y.astype(int)


def timed(use: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call, and its result."""
    start = time.perf_counter()
    result = use()
    return time.perf_counter() - start, result


def tuning() -> None:
    """Print the time of one leave-one-out search and of tuning gamma from it."""
    print("| rows | columns | one search (s) | tuning gamma (s) | both / search |\n|---:|---:|---:|---:|---:|")
    for n, d in ((2_000, 8), (10_000, 20), (30_000, 30)):
        X, y = make_table(n, d)
        is_positive = y == 1

        def search(X: np.ndarray = X, is_positive: np.ndarray = is_positive) -> np.ndarray:
            known = KnownCases.learn(X, is_positive, None)
            return ratios(*known.distances(X, DecidingCounts.from_k(3), Threads(1), np.arange(len(X))))

        search()
        found, ratio = timed(search)
        tuned = min(
            timed(lambda r=ratio, p=is_positive: gamma_curve(r, p, None, MEASURES["f1"]).best)[0] for _ in range(3)
        )
        print(f"| {n:,} | {d} | {found:.3f} | {tuned:.4f} | {(found + tuned) / found:.3f} |", flush=True)


def large(n: int, d: int, jobs: int) -> None:
    """Print the times of fitting and scoring a large table with approximate search, and its recall."""
    small = make_table(25_000, d)
    GammaKNN(algorithm="approximate", n_jobs=jobs).fit(*small)  # compiles
    X, y = make_table(n, d)
    new, label = make_table(n, d, seed=1)
    fitting, model = timed(lambda: GammaKNN(algorithm="approximate", n_jobs=jobs).fit(X, y))
    print(
        f"fit {n:,} x {d}: {fitting:.0f} s, recall {model.recall_:.4f}, {model.summary().splitlines()[0]}", flush=True
    )
    scoring, score = timed(lambda: model.decision_function(new))
    print(f"score {n:,} new rows: {scoring:.0f} s, AP {average_precision(label, score):.4f}", flush=True)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=("tuning", "large"))
    chosen = parser.parse_args()
    if chosen.only != "large":
        tuning()
    if chosen.only != "tuning":
        large(chosen.rows, chosen.columns, chosen.jobs)


if __name__ == "__main__":
    main()
