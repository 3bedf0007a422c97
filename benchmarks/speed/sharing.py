"""What shared searches save: 81 settings of MetaAP beside the deepest one alone, both by 5-fold cross-validation.

    python benchmarks/speed/sharing.py [--data FOLDER] [--write]

The search goes through the experiment engine's `Tuner`, as `toprank benchmark` does. `--data` adds real tables.
`--write` stores the table in `sharing.md`.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from toprank.datasets import load, make_audit
from toprank.experiment.plan import Plan
from toprank.experiment.search import Tuner, product_of

HERE = Path(__file__).parent
DEPTHS = list(range(2, 11))
WANTED = 8


def seconds_of(search: dict[str, Any], parameters: dict[str, Any], X: Any, y: Any, folds: Any) -> float:
    """Least of three times of a cross-validation of all settings of a search."""
    entry = {"method": "metaap-margin", "parameters": parameters, "search": search}
    plan = Plan.from_dict({"name": "sharing", "data": ["x"], "methods": {"MetaAP": entry}})
    tuner = Tuner(plan.methods[0], plan.protocol)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        tuner.cross_validate(product_of(plan.methods[0].space), X, y, folds)
        best = min(best, time.perf_counter() - start)
    return best


def gaussian(n: int, d: int) -> tuple[Any, Any]:
    """Gaussian columns with a weak signal: trees grow as deep as they may."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    odds = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n)
    return X, odds > np.quantile(odds, 0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with wine4 and pageblocks")
    parser.add_argument("--write", action="store_true", help="store the table in sharing.md")
    arguments = parser.parse_args()
    tables = {f"make_audit, {n:,} rows": (a.X, a.y) for n in (1_500, 20_000) for a in [make_audit(n, random_state=0)]}
    tables["Gaussian columns, 1,500 rows"] = gaussian(1_500, 10)
    if arguments.data:
        for name in ("wine4", "pageblocks"):
            found = load(name, folder=arguments.data)
            tables[f"{name}, {len(found):,} rows"] = (found.X, found.y)
    lines = ["| table | MetaAP | deepest alone | 81 settings | ratio | wanted |", "|---|---|---|---|---|---|"]
    variants = {"default": {"leaf_score": "margin"}, "constant": {"leaf_score": "constant"},
                "linear": {"leaf_score": "linear"},
                "exact, leaves of 1": {"leaf_score": "margin", "splitter": "exact", "min_samples_leaf": 1}}  # fmt: skip
    for table, (X, y) in tables.items():
        y = np.asarray(y).astype(int)
        folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(np.zeros((len(y), 1)), y))
        for variant, parameters in variants.items():
            seconds_of({"max_depth": [2], "leaf_depth": [2]}, parameters, X, y, folds)  # compile
            alone = seconds_of({"max_depth": [10], "leaf_depth": [10]}, parameters, X, y, folds)
            every = seconds_of({"max_depth": DEPTHS, "leaf_depth": DEPTHS}, parameters, X, y, folds)
            figures = f"{alone:.2f} s | {every:.2f} s | {every / alone:.1f} | <= {WANTED}"
            lines.append(f"| {table} | {variant} | {figures} |")
            print(lines[-1], flush=True)
    if arguments.write:
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        command = "python benchmarks/speed/sharing.py --data DATA --write"
        head = f"# Shared searches\n\n{date.today()}, {machine}; `{command}`\n\n"
        (HERE / "sharing.md").write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
