"""Tables for choosing settings, and tables kept apart to report what the frozen settings give.

Every third table of the folder, in alphabetical order, was kept apart before any default was chosen; so were simulated
campaigns with other seeds. The category parameters are an exception: they were partly chosen on telco_churn and
vehicle_claim_fraud, which are held out here. `name@2` is a table whose positives are thinned out to 2 %.

    python benchmarks/quality/tables.py --data ../shared/data --out tables

writes them all as CSV files with an index, for `toprank benchmark`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

HELD_OUT = [
    "arrhythmia6", "balance", "bupa", "ecoli_imu", "hayes", "libras", "oil", "pima", "solar_flare_m0", "telco_churn",
    "vehicle_claim_fraud", "wine", "yeast4", "telco_churn@2", "audit-8000-11", "audit-20000-12", "audit-12000-13",
]  # fmt: skip

DEVELOPMENT = [
    "abalone20", "abalone8", "australian", "autompg", "bankmarketing", "breast_cancer_ljubljana", "cleveland4",
    "coil2000", "german", "haberman", "hiv_schilling", "iono", "mammography", "newthyroid", "pageblocks", "pc1",
    "satimage", "sick", "sonar", "splice", "us_crime", "vehicle3", "w8a", "wdbc", "wine4", "yeast1", "yeast5", "yeast6",
    "bankmarketing@2", "satimage@2", "splice@2", "abalone8@2", "pageblocks@2",
    "audit-6000-1", "audit-20000-2", "audit-12000-3",
]  # fmt: skip

MOST_ROWS = 12_000
"""Rows that are drawn from larger tables, both classes in proportion."""

THIN_SHARE = 0.02
FEWEST_POSITIVES = 20


def load_table(name: str, folder: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns and outcomes, 0 or 1, of a table by name; `audit-N-S` is a simulated campaign of N cases with seed S."""
    if name.startswith("audit-"):
        from toprank.datasets import make_audit

        _, n_cases, seed = name.split("-")
        campaign = make_audit(int(n_cases), random_state=int(seed))
        return campaign.X, np.asarray(campaign.y).astype(int)
    table = pd.read_csv(folder / f"{name.split('@')[0]}.csv.gz", keep_default_na=False, na_values=[""])
    label = table.pop("label").to_numpy()
    if "@" in name:
        negatives = np.flatnonzero(label == 0)
        n_positives = max(FEWEST_POSITIVES, int(len(negatives) * THIN_SHARE / (1 - THIN_SHARE)))
        positives = np.random.default_rng(0).permutation(np.flatnonzero(label == 1))[:n_positives]
        kept = np.sort(np.concatenate((negatives, positives)))
        table, label = table.iloc[kept].reset_index(drop=True), label[kept]
    if len(label) > MOST_ROWS:
        kept, _ = train_test_split(np.arange(len(label)), train_size=MOST_ROWS, stratify=label, random_state=0)
        table, label = table.iloc[kept].reset_index(drop=True), label[kept]
    return table, label


def write_tables(folder: Path, out: Path) -> None:
    """Write all tables and `index.csv`, which says to which group each belongs."""
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for group, names in (("development", DEVELOPMENT), ("held-out", HELD_OUT)):
        for name in names:
            table, label = load_table(name, folder)
            table.assign(label=label).to_csv(out / f"{name}.csv.gz", index=False)
            rows.append({"name": name, "group": group, "n": len(label), "d": table.shape[1], "positives": label.sum()})
    pd.DataFrame(rows).to_csv(out / "index.csv", index=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("tables"))
    arguments = parser.parse_args()
    write_tables(arguments.data, arguments.out)
