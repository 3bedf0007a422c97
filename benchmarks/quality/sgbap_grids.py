"""Grids for tuning SGBAP on small tables, compared on development tables that are not in the SGBAP paper.

    python benchmarks/quality/sgbap_grids.py --data ../shared/data [--splits 4] [--store grids.json] [--tables ...]

2/3-1/3 splits, at most 800 rows for training. Rounds (10 to 200), depth (2, 4) and, if a grid has several, the way to
boost are chosen by 5-fold cross-validation of average precision; the figure is the test AP of the choice.
Splits that are already in `--store` are not run again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from tables import load_table
from toprank import SGBAP
from toprank.metrics import average_precision

TABLES = ["abalone20", "autompg", "german", "haberman", "newthyroid", "pc1", "sonar", "vehicle3", "wine4", "yeast5",
          "yeast6", "iono", "australian", "wdbc"]  # fmt: skip
MOST_ROWS = 800
ROUNDS, DEPTHS = (10, 25, 50, 100, 200), (2, 4)
WAYS: dict[str, dict[str, Any]] = {
    "A blend s.8 c.8": {"warm_up": 25},
    "B blend s.5 c.5": {"warm_up": 25, "subsample": 0.5, "colsample_bytree": 0.5},
    "C surrogate s.5": {"blend": 1.0, "warm_up": 0, "alpha": 1.0, "subsample": 0.5},
}
GRIDS = ("A", "B", "C", "AB", "AC", "BC", "ABC")
Scores = dict[str, list[list[list[float]]]]
"""By way: scores of the folds and of the test part, (n_depths, n_rounds) each."""


def staged_precision(X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, **setting: Any) -> list[float]:
    """Test average precision after each number of rounds."""
    model = SGBAP(n_estimators=max(ROUNDS), cv=0, n_jobs=1, **setting).fit(X.iloc[train], y[train])
    scores = list(model.staged_decision_function(X.iloc[test]))
    return [average_precision(y[test], scores[n_rounds - 1]) for n_rounds in ROUNDS]


def run_split(X: Any, y: np.ndarray, seed: int) -> Scores:
    """Scores of all settings on one split."""
    train, test = train_test_split(np.arange(len(y)), test_size=1 / 3, stratify=y, random_state=seed)
    if len(train) > MOST_ROWS:
        train, _ = train_test_split(train, train_size=MOST_ROWS, stratify=y[train], random_state=seed)
    folds = StratifiedKFold(min(5, int(y[train].sum())), shuffle=True, random_state=seed)
    splits = [(train[inside], train[outside]) for inside, outside in folds.split(train, y[train])]
    found: Scores = {}
    for name, way in WAYS.items():
        settings = [{"max_depth": depth, "random_state": seed, **way} for depth in DEPTHS]
        inner = [np.mean([staged_precision(X, y, *split, **each) for split in splits], axis=0) for each in settings]
        outer = [staged_precision(X, y, train, test, **each) for each in settings]
        found[name] = [np.array(inner).tolist(), outer]
    return found


def choice(scores: Scores, grid: str) -> float:
    """Test score of the setting of a grid that the folds like best; ties go to the first."""
    parts = [scores[name] for name in WAYS if name[0] in grid]
    inner, outer = (np.array([part[i] for part in parts]) for i in (0, 1))
    return float(outer.flat[np.argmax(inner)])


def main() -> None:
    """Print the mean of each grid, and its mean per table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--store", type=Path, default=Path("grids.json"))
    parser.add_argument("--tables", nargs="+", default=TABLES)
    given = parser.parse_args()
    found: dict[str, Scores] = json.loads(given.store.read_text()) if given.store.exists() else {}
    seeds = range(1, given.splits + 1)
    for seed in seeds:
        for table in given.tables:
            if f"{table} {seed}" not in found:
                found[f"{table} {seed}"] = run_split(*load_table(table, given.data), seed)
                given.store.write_text(json.dumps(found))
                print(f"{table}, split {seed}", flush=True)
    print("\n".join(f"{name[0]}: {way}" for name, way in WAYS.items()))
    for grid in GRIDS:
        means = [np.mean([choice(found[f"{table} {seed}"], grid) for seed in seeds]) for table in given.tables]
        each = ", ".join(f"{table} {100 * mean:.1f}" for table, mean in zip(given.tables, means, strict=True))
        print(f"{'+'.join(grid)}: {100 * np.mean(means):.1f} ({each})")


if __name__ == "__main__":
    main()
