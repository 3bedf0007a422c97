"""Small tables and plans for tests of the experiment engine."""

from pathlib import Path

import numpy as np
import pandas as pd

from toprank.experiment.plan import Plan


def make_frame(n=160, seed=0, positive_rate=0.2, text=True):
    """Table with a signal, missing values and a category; the label is the last column."""
    rng = np.random.default_rng(seed)
    columns = {f"x{i}": rng.normal(size=n) for i in range(4)}
    odds = columns["x0"] + columns["x1"] * columns["x2"] + rng.normal(scale=0.7, size=n)
    columns["x3"][rng.random(n) < 0.1] = np.nan
    if text:
        columns["place"] = rng.choice(["north", "south", "east"], n)
    return pd.DataFrame(columns | {"label": (odds > np.quantile(odds, 1 - positive_rate)).astype(int)})


def write_tables(folder: Path, names=("one", "two"), **options) -> Path:
    """Folder with tables of these names."""
    for i, name in enumerate(names):
        make_frame(seed=i, **options).to_csv(folder / f"{name}.csv", index=False)
    return folder


METHODS = {
    "MetaAP": {"method": "metaap-paper", "search": {"depth": [2, 3]}, "profile": {"depth": "1-3"}},
    "Gini": {"method": "gini", "search": {"max_depth": "2-4"}},
    "Logistic": {"method": "logistic-l2", "search": {"C": [0.1, 1.0]}},
}


def make_plan(names=("one", "two"), seeds="1-2", methods=METHODS, **others) -> Plan:
    protocol = {"seeds": seeds, "inner_splits": 3} | others.pop("protocol", {})
    return Plan.from_dict({"name": "small", "data": list(names), "methods": methods, "protocol": protocol} | others)
