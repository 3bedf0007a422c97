"""Hit rates that models claim, beside those that new cases have.

    python benchmarks/quality/hit_rates.py --data ../shared/data [--tables held-out] [--seeds 11 12 13] [--write]

Each ranker, with its defaults, learns from 70 % of a table and claims a hit rate for the top 1 % and 5 % of the rest
and for its first three rules; the rest shows what they hit. A group of few cases hits by luck more or less than any
claim says, so beside the mean absolute difference stands what it would be if every claim were right: the luck of the
draw. Groups of fewer than 20 test cases are left out. `--write` stores the table in docs/results/hit_rates.md.

The settings behind the rates (`toprank.metrics.hit_rates`) were chosen on the development tables; `--tables held-out`,
the default, are the others.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

import toprank
from tables import DEVELOPMENT, HELD_OUT, load_table

RANKERS = ("RedFlags", "Scorecard", "ScorecardTree", "SGBAP", "ExtraTrees", "StackedRanker", "GammaKNN", "MetaAP",
           "TreeRank", "RankingTree", "MetaAPForest", "TreeRankForest", "TreeRankBoost", "TAOTree", "CostTree",
           "CostOptimalCurve")  # fmt: skip
SHARES = (0.01, 0.05)
RULES = 3
LEAST_CASES = 20
LEAST_ROWS = 1_000
SLOW_ROWS = 4_000
"""Rows of a table that the curve learns from at most: it takes minutes on more."""

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "hit_rates.md"


def groups_of(model: Any, X: Any, y: np.ndarray) -> Iterator[tuple[str, float, float, float, np.ndarray]]:
    """Name, claimed rate, both ends of its interval and the outcomes of each group of test cases."""
    score = model.decision_function(X)
    order = np.argsort(-score, kind="stable")
    for share in SHARES:
        top = order[: round(share * len(y))]
        if len(top) >= LEAST_CASES:
            yield f"top {100 * share:.0f} %", *model.rates_.of_group(score[top]), y[top]
    for rate, n, inside in first_rules(model, X):
        if inside.sum() >= LEAST_CASES:
            ends = model.rates_.interval(rate, n / model.n_cases_ * model.rates_.n_cases, inside.sum())
            yield "first rules", rate, *ends, y[inside]


def first_rules(model: Any, X: Any) -> Iterator[tuple[float, float, np.ndarray]]:
    """Claimed rate, training cases and test cases of the first rules of a tree, and of the first red flags."""
    if hasattr(model, "tree_"):
        leaf = model.tree_.leaf[model.apply(X)]
        for row in nw.from_native(model.rules()).head(RULES).rows(named=True):
            yield row["hit_rate"], row["n"], leaf == row["leaf"] - 1
    elif hasattr(model, "flags_"):
        holds = model.flags_.holds(model._encode(X))
        for place, flag in enumerate(list(model.flags_)[:RULES]):
            yield flag.hit_rate, flag.n, holds[:, place]


def luck(rate: float, n: int) -> float:
    """Mean absolute difference between a rate and the share of hits in n cases that have it."""
    from scipy.stats import binom

    hits = np.arange(n + 1)
    return float(np.sum(binom.pmf(hits, n, rate) * np.abs(hits / n - rate)))


def measure(name: str, tables: list[str], folder: Path, seeds: list[int]) -> pd.DataFrame:
    """One row per group of test cases of one ranker."""
    rows = []
    for table in tables:
        X, y = load_table(table, folder)
        if len(y) < LEAST_ROWS:
            continue
        for seed in seeds:
            inside, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=seed)
            if name == "CostOptimalCurve" and len(inside) > SLOW_ROWS:
                inside, _ = train_test_split(inside, train_size=SLOW_ROWS, stratify=y[inside], random_state=seed)
            settings = {"random_state": 0} if "random_state" in getattr(toprank, name)().get_params() else {}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = getattr(toprank, name)(**settings).fit(X.iloc[inside], y[inside])
                for group, rate, low, high, hits in groups_of(model, X.iloc[test], y[test]):
                    found = float(hits.mean())
                    rows.append({"ranker": name, "table": table, "seed": seed, "group": group, "n": len(hits),
                                 "claimed": rate, "found": found, "difference": rate - found,
                                 "is_covered": low <= found <= high, "luck": luck(rate, len(hits))})  # fmt: skip
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per ranker and group: how far claims are off, by luck and on average, and how often intervals hold."""
    found = []
    for (ranker, group), part in rows.groupby(["ranker", "group"], sort=False):
        by_table = part.groupby("table")[["claimed", "found"]].mean()
        found.append({
            "ranker": ranker, "group": group, "groups": len(part), "claimed": part.claimed.mean(),
            "found": part.found.mean(), "off on average": part.difference.mean(),
            "mean absolute difference": part.difference.abs().mean(), "by luck alone": part.luck.mean(),
            "of the means of tables": (by_table.claimed - by_table.found).abs().mean(),
            "covered": part.is_covered.mean(),
        })  # fmt: skip
    return pd.DataFrame(found)


def page(table: pd.DataFrame, arguments: argparse.Namespace, seconds: float) -> str:
    """The results page."""
    command = f"python benchmarks/quality/hit_rates.py --seeds {' '.join(map(str, arguments.seeds))} --write"
    shown = table.copy()
    for name in table.columns[3:]:
        shown[name] = [f"{value:.3f}" if name != "covered" else f"{100 * value:.0f} %" for value in table[name]]
    lines = [f"| {' | '.join(map(str, row))} |" for row in [shown.columns, *shown.to_numpy().tolist()]]
    lines.insert(1, f"|{'---|' * len(shown.columns)}")
    return "\n".join([
        "# Hit rates: claimed and found", "",
        f"{date.today()}, {platform.machine()}, 2 cores, Python {platform.python_version()}, {seconds:.0f} s; "
        f"`{command}`", "", *(__doc__ or "").split("\n\n")[2].split("\n"), "",
        f"Tables ({arguments.tables}): {', '.join(arguments.names)}.", "", *lines, "",
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--tables", default="held-out", help="held-out, development, or names with commas")
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13])
    parser.add_argument("--rankers", nargs="+", default=list(RANKERS))
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    arguments.names = {"held-out": HELD_OUT, "development": DEVELOPMENT}.get(
        arguments.tables, arguments.tables.split(",")
    )
    started = time.monotonic()
    parts = []
    for name in arguments.rankers:
        parts.append(measure(name, arguments.names, arguments.data, arguments.seeds))
        print(summary(parts[-1]).round(3).to_string(index=False), flush=True)
    table = summary(pd.concat(parts))
    if arguments.write:
        RESULTS.write_text(page(table, arguments, time.monotonic() - started))


if __name__ == "__main__":
    main()
