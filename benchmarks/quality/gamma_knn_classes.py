"""gamma-kNN with several classes against plain kNN, on tables with rare classes.

    python benchmarks/quality/gamma_knn_classes.py --data FOLDER

`--data` has yeast1, yeast4, yeast5 and yeast6 of the thesis: the same rows, each table with another class as its
positives; together they have five classes. abalone8 and abalone20 have three. The others come with scikit-learn: its
digits, thinned out so that the rarest digit has 8 cases, and its wines. Ten stratified splits, 80/20; gammas are tuned
on the training part, for each measure on its own. Prints the table of docs/neighbours.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split

from toprank import GammaKNNClassifier
from toprank.rankers.neighbours.tuning import CLASS_MEASURES, confusion_matrix

SPLITS = 10
NEIGHBOURS = (1, 3)
JOINED = {
    "yeast": ("yeast1", "yeast4", "yeast5", "yeast6"),
    "abalone": ("abalone8", "abalone20"),
}
"""Tables with the same rows, each with one class as its positives."""

THINNED = 0.7
"""Share of a digit's cases that the next digit keeps."""


def joined(folder: Path, names: tuple[str, ...]) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the rows that several tables share, and the table in which each is positive; 0 for none."""
    tables = [pd.read_csv(folder / f"{name}.csv.gz") for name in names]
    label = np.zeros(len(tables[0]), int)
    X = tables[0].drop(columns="label")
    for i, table in enumerate(tables, 1):
        if not table.drop(columns="label").equals(X):
            raise SystemExit(f"{names[i - 1]} and {names[0]} do not have the same rows.")
        label[table["label"].to_numpy() == 1] = i
    return X, label


def thinned_digits() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's digits, each with fewer cases than the one before."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    kept = [rng.permutation(np.flatnonzero(y == digit)) for digit in range(10)]
    rows = np.concatenate([own[: max(8, round(len(own) * THINNED**digit))] for digit, own in enumerate(kept)])
    return X[rows], y[rows]


def measured(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> dict[str, tuple[float, ...]]:
    """Return each measure on a test part, by plain kNN and with gammas tuned for it."""
    train, test = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=seed)
    n_classes, out = len(np.unique(y)), {}
    label = np.unique(y, return_inverse=True)[1]

    def value(model: GammaKNNClassifier, name: str) -> float:
        model.fit(X[train], y[train])
        called = np.searchsorted(model.classes_, model.predict(X[test]))
        confusion = confusion_matrix(label[test], called, np.ones(len(test)), n_classes)
        return CLASS_MEASURES[name].of_confusion(confusion)

    for name in CLASS_MEASURES:
        shared: dict[str, Any] = {"n_neighbors": k, "scoring": name, "keep_columns": "all"}
        out[name] = tuple(value(GammaKNNClassifier(gamma=gamma, **shared), name) for gamma in (1.0, "cv"))
    return out


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data
    tables = {name: joined(folder, names) for name, names in JOINED.items()}
    tables |= {"digits, thinned": thinned_digits(), "wine": load_wine(return_X_y=True)}
    print(f"| table (cases per class), k | {' | '.join(CLASS_MEASURES)} |\n|---|{'---:|' * len(CLASS_MEASURES)}")
    for name, (X, y) in tables.items():
        values = X.to_numpy() if isinstance(X, pd.DataFrame) else X
        sizes = ", ".join(map(str, sorted(np.unique(y, return_counts=True)[1].tolist(), reverse=True)))
        for k in NEIGHBOURS:
            runs = [measured(values, y, k, seed) for seed in range(SPLITS)]
            cells = [np.mean([run[each] for run in runs], axis=0) for each in CLASS_MEASURES]
            words = " | ".join(f"{plain:.3f} → {tuned:.3f}" for plain, tuned in cells)
            print(f"| {name} ({sizes}), k = {k} | {words} |", flush=True)


if __name__ == "__main__":
    main()
