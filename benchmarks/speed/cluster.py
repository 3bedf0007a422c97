"""SGBAP on two workers of this machine beside one process, with one thread each.

    python benchmarks/speed/cluster.py [--rows N] [--columns N] [--rounds N]

Prints seconds of a fit without folds, and the largest difference between the scores of both models.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import toprank
from toprank.distributed import SGBAP


def seconds_of(model: Any, *table: Any) -> float:
    """Seconds of a fit."""
    start = time.perf_counter()
    model.fit(*table)
    return time.perf_counter() - start


def main() -> None:
    import dask.array as da
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=100)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(arguments.rows, arguments.columns)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)) > 5).astype(int)
    settings: dict[str, Any] = {"n_estimators": arguments.rounds, "cv": 0, "n_jobs": 1}
    alone, together = toprank.SGBAP(**settings), SGBAP(**settings)
    toprank.SGBAP(**settings).set_params(n_estimators=2).fit(X[:5000], y[:5000])  # compile
    print(f"{len(X):,} x {X.shape[1]}, {y.mean():.2%} positive, {arguments.rounds} rounds")
    print(f"one process: {seconds_of(alone, X, y):.1f} s", flush=True)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        rows = client.persist(da.from_array(X, chunks=(len(X) // 8, X.shape[1])))
        SGBAP(**settings).set_params(n_estimators=2).fit(rows[:5000].rechunk((2500, -1)), y[:5000])
        print(f"two workers: {seconds_of(together, rows, y):.1f} s", flush=True)
    far = np.abs(alone.decision_function(X) - together.decision_function(X)).max()
    print(f"largest difference between scores: {far:.2g}")


if __name__ == "__main__":
    main()
