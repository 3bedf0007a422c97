"""How long `RedFlags` takes to fit and to score, beside EBM where it is installed.

    python benchmarks/speed/red_flags.py [--large]

Fits 30,000 simulated cases with 22 columns; `--large` also 1,000,000 cases with 30 columns of noise and pockets, and
scores them. Times are by the clock, on two threads, the second of two fits, so that nothing is compiled.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from toprank import RedFlags
from toprank.datasets import make_audit


def seconds(model: Any, X: Any, y: np.ndarray) -> float:
    """Time of one fit."""
    started = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - started


def large_table(n: int) -> tuple[np.ndarray, np.ndarray]:
    """30 numbers, two of them with missing values; 1 % positives, most of them in two pockets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 30))
    X[rng.random(n) < 0.1, 3] = np.nan
    pocket = ((X[:, 0] > 1.2) & (X[:, 1] < -0.5) & (X[:, 2] > 0)) | ((X[:, 4] > 1.5) & (X[:, 5] > 1))
    return X, (rng.random(n) < np.where(pocket, 0.12, 0.004)).astype(int)


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--large", action="store_true")
    large = parser.parse_args().large
    data = make_audit(30_000, random_state=0)
    X, y = data.X, np.asarray(data.y)
    RedFlags(n_jobs=2).fit(X.iloc[:3000], y[:3000])
    for name, settings in (("no teacher, no folds", {"teacher": None, "cv": 0}), ("no folds", {"cv": 0}),
                           ("no teacher", {"teacher": None}), ("defaults", {})):  # fmt: skip
        print(f"30,000 x 22, {name}: {seconds(RedFlags(n_jobs=2, **settings), X, y):.1f} s", flush=True)
    try:
        from interpret.glassbox import ExplainableBoostingClassifier
    except ImportError:
        print("EBM is not installed")
    else:
        print(f"30,000 x 22, EBM: {seconds(ExplainableBoostingClassifier(n_jobs=2), X, y):.1f} s", flush=True)
    if large:
        X, y = large_table(1_000_000)
        model = RedFlags(n_jobs=2, teacher=None, cv=0)
        print(f"1,000,000 x 30, no teacher, no folds: {seconds(model, X, y):.1f} s", flush=True)
        started = time.perf_counter()
        model.decision_function(X)
        print(f"scoring 1,000,000 rows: {time.perf_counter() - started:.2f} s, {model.flags_.n_conditions} conditions")
        print(f"1,000,000 x 30, defaults: {seconds(RedFlags(n_jobs=2), X, y):.1f} s", flush=True)


if __name__ == "__main__":
    main()
