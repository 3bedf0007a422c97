"""What a warm start adds: SGBAP from scratch and on top of other models, on development tables.

    python benchmarks/quality/sgbap_init.py --data ../shared/data [--splits 2] [--store sgbap-init.json]

70/30 splits, test average precision; nothing is tuned. At most 1,000 rows of a table are used for training. Fits that
are already in `--store` are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from tables import load_table
from toprank import SGBAP, LogisticBoost, MetaAPForest
from toprank.metrics import average_precision

TABLES = ["german", "haberman", "newthyroid", "pc1", "vehicle3", "yeast6", "wine4", "abalone20", "sick", "splice@2",
          "audit-6000-1"]  # fmt: skip
MOST_ROWS = 1_000
METHODS: dict[str, Callable[[int], Any]] = {
    "SGBAP": lambda seed: SGBAP(random_state=seed),
    "init=LogisticBoost": lambda seed: SGBAP(init=LogisticBoost(n_estimators=100, cv=0), random_state=seed),
    "init=MetaAPForest": lambda seed: SGBAP(init=MetaAPForest(), random_state=seed),
    "MetaAPForest": lambda seed: MetaAPForest(random_state=seed),
}


def measure(name: str, folder: Path, seed: int, make: Callable[[int], Any]) -> tuple[float, float]:
    """Test average precision of a method on one split, and the seconds of its fit."""
    X, y = load_table(name, folder)
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=seed)
    if len(train) > MOST_ROWS:
        train, _ = train_test_split(train, train_size=MOST_ROWS, stratify=y[train], random_state=seed)
    started = time.perf_counter()
    model = make(seed).fit(X.iloc[train], y[train])
    seconds = time.perf_counter() - started
    return average_precision(y[test], model.decision_function(X.iloc[test])), seconds


def main() -> None:
    """Print mean average precision by table and method."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--store", type=Path, default=Path("sgbap-init.json"))
    given = parser.parse_args()
    found: dict[str, tuple[float, float]] = json.loads(given.store.read_text()) if given.store.exists() else {}
    for seed in range(1, given.splits + 1):
        for table in TABLES:
            for name, make in METHODS.items():
                key = f"{table}, {name}, {seed}"
                if key not in found:
                    found[key] = measure(table, given.data, seed, make)
                    given.store.write_text(json.dumps(found))
                    print(f"{key}: {found[key][0]:.3f} in {found[key][1]:.1f} s", flush=True)
    print("| mean AP | " + " | ".join(METHODS) + " |\n|---|" + "---:|" * len(METHODS))
    mean = {
        table: [
            float(np.mean([found[f"{table}, {name}, {seed}"][0] for seed in range(1, given.splits + 1)]))
            for name in METHODS
        ]
        for table in TABLES
    }
    for table, values in [*mean.items(), ("all", np.mean(list(mean.values()), axis=0).tolist())]:
        print(f"| {table} | " + " | ".join(f"{100 * value:.1f}" for value in values) + " |")


if __name__ == "__main__":
    main()
