"""Clusters on this machine, and tables to fit on them, for the tests of toprank.distributed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd


@contextmanager
def local_client(n_workers: int = 2, processes: bool = False) -> Iterator[Any]:
    """A client of workers on this machine, with one thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=processes, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def mixed_table(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Numbers with more values than bins, few values and missing ones, categories, dates, an identifier, a constant."""
    rng = np.random.default_rng(seed)
    size = rng.exponential(size=n)
    city = rng.choice(["Aachen", "Bonn", "Celle", "Dresden"], n, p=[0.6, 0.3, 0.09, 0.01]).astype(object)
    city[rng.random(n) < 0.05] = None
    X = pd.DataFrame(
        {
            "size": size,
            "ratio": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "count": rng.poisson(3, n),
            "city": city,
            "member": rng.random(n) < 0.3,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "paid": [f"{value:,.2f} EUR" for value in 1000 * rng.exponential(size=n)],
            "case_id": rng.permutation(n),
            "country": "DE",
        }
    )
    odds = size + (city == "Bonn") + np.nan_to_num(X["ratio"].to_numpy()) + rng.normal(size=n)
    weight = np.where(rng.random(n) < 0.1, 0.0, rng.gamma(2.0, size=n))
    return X, (odds > np.quantile(odds, 0.95)).astype(int), weight
