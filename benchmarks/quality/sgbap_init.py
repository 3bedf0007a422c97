"""What a warm start adds: SGBAP from scratch and on top of other models, on development tables.

    python benchmarks/quality/sgbap_init.py --data ../shared/data [--splits 2]
    python benchmarks/quality/sgbap_init.py --data ../shared/data --tables all --methods "from scratch" "on ExtraTrees"

70/30 splits, test average precision; nothing is tuned. Of eleven tables, at most 1,000 rows are used for training, of
`--tables all` at most 12,000. Fits are stored in the working folder, and not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from tables import DEVELOPMENT, load_table
from toprank import SGBAP, ExtraTrees, LogisticBoost, MetaAPForest
from toprank.metrics import average_precision

TABLES = ["german", "haberman", "newthyroid", "pc1", "vehicle3", "yeast6", "wine4", "abalone20", "sick", "splice@2",
          "audit-6000-1"]  # fmt: skip
MOST_ROWS = {"some": 1_000, "all": 12_000}
BOUNDS = (0, 25, 50, 100, 200, 400, 10**9)
"""Positives in training by which tables are grouped."""

METHODS: dict[str, Callable[[int], Any]] = {
    "from scratch": lambda seed: SGBAP(init=None, random_state=seed),
    "on LogisticBoost": lambda seed: SGBAP(init=LogisticBoost(n_estimators=100, cv=0), random_state=seed),
    "on MetaAPForest": lambda seed: SGBAP(init=MetaAPForest(), random_state=seed),
    "on ExtraTrees": lambda seed: SGBAP(init=ExtraTrees(cv=0), blend=0.8, max_depth=6, random_state=seed),
    "MetaAPForest": lambda seed: MetaAPForest(random_state=seed),
    "ExtraTrees": lambda seed: ExtraTrees(cv=0, random_state=seed),
}


def measure(name: str, folder: Path, seed: int, most_rows: int, make: Callable[[int], Any]) -> tuple[float, float, int]:
    """Test average precision of a method on one split, the seconds of its fit, and the positives in training."""
    X, y = load_table(name, folder)
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=seed)
    if len(train) > most_rows:
        train, _ = train_test_split(train, train_size=most_rows, stratify=y[train], random_state=seed)
    started = time.perf_counter()
    model = make(seed).fit(X.iloc[train], y[train])
    seconds = time.perf_counter() - started
    return average_precision(y[test], model.decision_function(X.iloc[test])), seconds, int(y[train].sum())


def print_tables(found: dict[str, Any], tables: list[str], methods: list[str], seeds: range) -> None:
    """Print mean average precision by table and method."""
    print("| mean AP | " + " | ".join(methods) + " |\n|---|" + "---:|" * len(methods))
    mean = {table: [np.mean([found[f"{table}, {name}, {seed}"][0] for seed in seeds]) for name in methods]
            for table in tables}  # fmt: skip
    for table, values in [*mean.items(), ("all", np.mean(list(mean.values()), axis=0))]:
        print(f"| {table} | " + " | ".join(f"{100 * value:.1f}" for value in values) + " |")


def print_by_positives(found: dict[str, Any], tables: list[str], methods: list[str], seeds: range) -> None:
    """Print mean average precision by the number of positives, and what the last method gains on the first."""
    splits = [[found[f"{table}, {name}, {seed}"] for name in methods] for table in tables for seed in seeds]
    print(
        "\n| positives in training | splits | "
        + " | ".join(methods)
        + " | gain |\n|---|"
        + "---:|" * (len(methods) + 2)
    )
    for low, high in [*pairwise(BOUNDS), (0, 100), (100, BOUNDS[-1])]:
        value = np.array([[one[0] for one in split] for split in splits if low <= split[0][2] < high])
        if len(value) > 1:
            gain = 100 * (value[:, -1] - value[:, 0])  # splits of one table are not independent: the error is a guide
            cells = [f"{low} or more" if high == BOUNDS[-1] else f"{low} to {high - 1}", str(len(value))]
            cells += [f"{100 * mean:.1f}" for mean in value.mean(axis=0)]
            cells += [f"{gain.mean():+.1f} ± {gain.std(ddof=1) / np.sqrt(len(gain)):.1f}"]
            print("| " + " | ".join(cells) + " |")


def main() -> None:
    """Measure what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--tables", choices=MOST_ROWS, default="some")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    given = parser.parse_args()
    store = Path(f"sgbap-init-{given.tables}.json")
    found: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    tables, seeds = TABLES if given.tables == "some" else DEVELOPMENT, range(1, given.splits + 1)
    for seed in seeds:
        for table in tables:
            for name in given.methods:
                key = f"{table}, {name}, {seed}"
                if key not in found:
                    found[key] = measure(table, given.data, seed, MOST_ROWS[given.tables], METHODS[name])
                    store.write_text(json.dumps(found))
                    print(f"{key}: {found[key][0]:.3f} in {found[key][1]:.1f} s", flush=True)
    print_tables(found, tables, given.methods, seeds)
    if given.tables == "all":
        print_by_positives(found, tables, given.methods, seeds)


if __name__ == "__main__":
    main()
