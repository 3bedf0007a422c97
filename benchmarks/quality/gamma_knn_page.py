"""The page docs/results/neighbours.md, from the lines that `gamma_knn.py` has kept."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

PAGE = Path(__file__).parents[2] / "docs" / "results" / "neighbours.md"

MEASURES = ("F1", "BA", "GM", "G1")

OTHER_NAMES = {"ABALONES": "ABALONE8", "ECOL3": "ECOLI3", "ARRYTHMIA": "ARRHYTHMIA", "PAGELOCKS": "PAGEBLOCKS"}
"""Misprints in the published tables."""


def published(path: str | None) -> pd.DataFrame:
    """Return the published means of chapter 2 by measure, data set and method, for k = 1."""
    if path is None:
        return pd.DataFrame(columns=["measure", "dataset", "method", "mean"])
    table = pd.read_csv(path)
    table = table[table["table"].astype(str).str.startswith("2.")]
    table["dataset"] = table["dataset"].replace(OTHER_NAMES)
    return table[["measure", "dataset", "method", "mean"]]


def means(lines: list[dict[str, Any]], sets: dict[str, str]) -> pd.DataFrame:
    """Return the mean over seeds: method, k, data set, measure, value."""
    names = {file: name for name, file in sets.items()}
    rows = [
        (line["method"], line["k"], names[line["dataset"]], measure, line["values"][measure])
        for line in lines if line["dataset"] in names for measure in MEASURES
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["method", "k", "dataset", "measure", "value"])
    return frame.groupby(["method", "k", "dataset", "measure"], sort=False)["value"].mean().reset_index()


def table_text(frame: pd.DataFrame, digits: int = 3) -> str:
    """Return a frame as a Markdown table."""
    columns = [frame.index.name or "", *map(str, frame.columns)]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" + "---:|" * (len(columns) - 1)]
    for name, row in frame.iterrows():
        cells = ["" if pd.isna(value) else f"{value:.{digits}f}" for value in row]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_page(lines: list[dict[str, Any]], sets: dict[str, str], reference: str | None) -> None:
    """Write the page."""
    ours, theirs = means(lines, sets), published(reference)
    n_splits = pd.Series([(line["method"], line["k"]) for line in lines]).value_counts()
    complete = [  # means over other splits would not be comparable: those are compared split by split
        name for name in ours["method"].unique() if min(n_splits.get((name, k), 0) for k in (1, 3)) == n_splits.max()
    ]
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    text = [HEAD.format(date=datetime.now(UTC).date(), machine=machine, n_sets=ours["dataset"].nunique())]
    used = ours["dataset"].unique()
    for k in sorted(ours["k"].unique()):
        mean = ours[(ours["k"] == k) & ours["method"].isin(complete)].pivot_table(
            index="method", columns="measure", values="value", sort=False
        )[list(MEASURES)]
        mean.index.name = f"k = {k}"
        if k == 1 and len(theirs):
            own = theirs[theirs["dataset"].isin(used)].pivot_table(index="method", columns="measure", values="mean")
            mean = mean.join(own.rename(columns=lambda name: f"published {name}"))
        text += [f"## Means over {ours['dataset'].nunique()} data sets, k = {k}\n", table_text(mean), ""]
        if k == 3 and len(theirs):
            text += [PUBLISHED_3, table_text(_published_means(theirs, "3")), ""]
    text += paired_text(lines)
    for measure in MEASURES:
        wide = ours[(ours["measure"] == measure) & (ours["k"] == 1) & ours["method"].isin(complete)].pivot_table(
            index="dataset", columns="method", values="value", sort=False
        )
        wide.index.name = measure
        if len(theirs):
            own = theirs[(theirs["measure"] == measure) & (theirs["method"] == "gamma-kNN")]
            wide["published gamma-kNN"] = own.set_index("dataset")["mean"].reindex(wide.index)
        text += [f"## {measure} by data set, k = 1\n", table_text(wide), ""]
    PAGE.write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")


def paired_text(lines: list[dict[str, Any]]) -> list[str]:
    """Return what was not run on all splits beside gamma-kNN on the same splits."""
    values = {
        (line["method"], line["dataset"], line["seed"], line["k"]): line["values"] for line in lines
    }  # fmt: skip
    rows = []
    for method in dict.fromkeys(name for name, *_ in values):
        for k in (1, 3):
            splits = [split for name, *split in values if name == method and split[2] == k]
            both = [split for split in splits if ("gamma-kNN", *split) in values]
            if method == "gamma-kNN" or not both:
                continue
            gain = [
                sum(values[(method, *split)][m] - values[("gamma-kNN", *split)][m] for split in both) / len(both)
                for m in MEASURES
            ]
            rows.append((f"{method}, k = {k}", len(both), len({name for name, *_ in both}), *gain))
    frame = pd.DataFrame(rows, columns=["minus gamma-kNN", "splits", "data sets", *MEASURES])
    frame = frame.set_index("minus gamma-kNN")
    counts = [frame[name].astype(int).astype(str) for name in ("splits", "data sets")]
    body = ["| minus gamma-kNN | splits | data sets | " + " | ".join(MEASURES) + " |", "|---|" + "---:|" * 6]
    for i, name in enumerate(frame.index):
        cells = [counts[0].iloc[i], counts[1].iloc[i], *(f"{frame[m].iloc[i]:+.4f}" for m in MEASURES)]
        body.append(f"| {name} | " + " | ".join(cells) + " |")
    return ["## Split by split\n", PAIRED, *body, ""]


PAIRED = """Mean difference from gamma-kNN on the same splits, also for methods that were not run on all of them ("local
V2 q=5" is `LocalGammaKNN(measured_on="cluster")` of version 2 with 5 clusters; measured_on="all" is compared in
[Neighbours](../neighbours.md#regions-localgammaknn)). `min_positives=5` was chosen among five variants of the former
on splits that are part of this run, so the figures of the local version are slightly optimistic.
"""


def _published_means(theirs: pd.DataFrame, k: str) -> pd.DataFrame:
    """Return the published means over all 28 data sets, for k = 3."""
    rows = theirs[theirs["dataset"].str.contains(rf"MEAN .*{k}", case=False)]
    out = rows.pivot_table(index="method", columns="measure", values="mean")[list(MEASURES)]
    out.index.name = f"published, k = {k}"
    return out


PUBLISHED_3 = "The thesis has means only for k = 3, over all 28 of its data sets:\n"

HEAD = """# Neighbours: results

gamma-kNN, its local version and other votes of nearest neighbours by the protocol of section 2.5.1 of the thesis: 80/20
splits, five runs, k = 1 and 3, four measures, on the {n_sets} of its 28 data sets that are at hand. "published" are the
figures of the thesis on the same data sets, from other random splits.

Measured on {date} ({machine}) by

```
python benchmarks/quality/gamma_knn.py --data FOLDER --reference thesis_neighbours.csv
```

What is compared, and how each is tuned, is said at the top of `benchmarks/quality/gamma_knn.py`. The figures are drawn
by `benchmarks/quality/gamma_knn_figures.py`.

![Two points and a cloud](neighbours/figure_2_2.png)
![Best gamma by imbalance](neighbours/figure_2_4.png)
![Means](neighbours/figure_2_5.png)
![Data set by data set](neighbours/figure_2_6.png)
![Both gammas after SMOTE](neighbours/figure_2_7.png)
![Positives missed](neighbours/figure_2_8.png)
"""
