"""Two models of `RedFlags()` as text and as pictures: the simulated campaign of `toprank demo`, and vehicle claims.

    python benchmarks/quality/red_flags_pages.py --data ../shared/data [--write]

prints both, with the average precision on cases held out; `--write` stores them in docs/results/red_flags_models.md and
docs/results/red_flags.
"""

from __future__ import annotations

import argparse
import platform
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from toprank import MetaAP, RedFlags
from toprank.datasets import make_audit
from toprank.metrics import average_precision
from toprank.plots import RedFlagsDisplay, save_figure

DOCS = Path(__file__).parents[2] / "docs"


def campaign() -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """The campaign of `toprank demo`: three years to learn from, the fourth held out."""
    past, new = make_audit(40_000, years=(2021, 2022, 2023, 2024), drift=0.3, random_state=0).split()
    return past.X, past.y, new.X, new.y


def claims(folder: Path) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Insurance claims for vehicles, 30 % held out."""
    table = pd.read_csv(folder / "vehicle_claim_fraud.csv.gz", keep_default_na=False, na_values=[""])
    y = table.pop("label").to_numpy()
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=77)
    return table.iloc[train], y[train], table.iloc[test], y[test]


def page_of(title: str, name: str, cases: tuple[Any, np.ndarray, Any, np.ndarray], write: bool) -> str:
    """One model: its figures, its text and its picture."""
    X, y, X_new, y_new = cases
    model = RedFlags(n_jobs=-1, random_state=0).fit(X, y)
    found = {type(each).__name__: average_precision(y_new, each.decision_function(X_new))
             for each in (model, MetaAP(n_jobs=-1, random_state=0).fit(X, y))}  # fmt: skip
    if write:
        save_figure(
            RedFlagsDisplay.from_estimator(model).plot().figure_, DOCS / "results" / "red_flags" / f"{name}.png"
        )
    precision = ", ".join(f"`{method}()` {value:.3f}" for method, value in found.items())
    return "\n\n".join([
        f"## {title}",
        f"{len(y):,} cases to learn from, {int(y.sum()):,} of them positive; average precision on {len(y_new):,} cases "
        f"held out: {precision}; in random order {y_new.mean():.3f}.",
        f"```text\n{model.to_text()}\n```",
        f"![The rules of this model as bars](red_flags/{name}.png)",
    ])  # fmt: skip


def main() -> None:
    """Print both models, and write them if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    pages = [
        page_of("The simulated campaign of the demo", "demo", campaign(), arguments.write),
        page_of("Claims for vehicles", "claims", claims(arguments.data), arguments.write),
    ]
    head = (
        f"# Two models with red flags\n\n{date.today()}, {platform.machine()}, Python {platform.python_version()}; "
        "`python benchmarks/quality/red_flags_pages.py --data ../shared/data --write`\n\n"
        "`RedFlags()` with nothing set. Each page says how to score a case by hand; [Red flags](../red-flags.md) says "
        "more."
    )
    text = "\n\n".join([head, *pages]) + "\n"
    print(text)
    if arguments.write:
        (DOCS / "results" / "red_flags_models.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
