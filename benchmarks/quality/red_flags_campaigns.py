"""RedFlags() on simulated campaigns, beside MetaAP(), LightGBM tuned a little and, where it is installed, EBM.

    python benchmarks/quality/red_flags_campaigns.py [--draws 8] [--cases 40000] [--write]

Each campaign of `make_audit` is another draw (seeds 201, 202, ...); 70 % of it to learn from, 30 % held out. LightGBM
chooses one of six settings by 3 folds of the training part. Reported are average precision, the size of the model, and
the share of each planted pocket's cases that some rule with at least 10 points holds for. Draws that are done are kept
in `--store`. `--write` stores the table in docs/results/red_flags_campaigns.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split

from toprank import MetaAP, RedFlags
from toprank.datasets import make_audit
from toprank.datasets.audit import pocket_depths
from toprank.metrics import average_precision

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "red_flags_campaigns.md"
SEED = 201
LEAST_POINTS = 10


def coded(X: Any) -> tuple[np.ndarray, list[int]]:
    """Numbers, and categories as codes; NaN where missing. Also the positions of categories."""
    columns, named = [], []
    for place, name in enumerate(X.columns):
        column = X[name]
        if column.dtype.kind not in "fiub":
            codes = column.astype("category").cat.codes.to_numpy().astype(float)
            columns.append(np.where(codes < 0, np.nan, codes))
            named.append(place)
        else:
            columns.append(column.to_numpy(dtype=float))
    return np.column_stack(columns), named


def tuned_lightgbm(X: np.ndarray, y: np.ndarray, named: list[int]) -> Any:
    """LightGBM with the best of six settings by 3 folds."""
    from lightgbm import LGBMClassifier

    best: tuple[float, Any] = (-1.0, None)
    for trees, leaves in product((100, 200, 400), (7, 31)):
        model = LGBMClassifier(n_estimators=trees, num_leaves=leaves, learning_rate=0.05, random_state=0, n_jobs=1,
                               verbose=-1)  # fmt: skip
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        found = cross_val_score(model, X, y, cv=folds, scoring="average_precision",
                                params={"categorical_feature": named}).mean()  # fmt: skip
        best = max(best, (found, model), key=lambda each: each[0])
    return best[1].fit(X, y, categorical_feature=named)


def run_draw(seed: int, n_cases: int) -> dict[str, Any]:
    """Average precision of each method on one campaign, and the size of the readable model."""
    data = make_audit(n_cases, random_state=seed)
    X, y = data.X, np.asarray(data.y)
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=seed)
    started = time.perf_counter()
    model = RedFlags(cv=0, n_jobs=-1, random_state=0).fit(X.iloc[train], y[train])
    out: dict[str, Any] = {"seed": seed, "seconds": time.perf_counter() - started}
    out["RedFlags"] = average_precision(y[test], model.decision_function(X.iloc[test]))
    out |= {"rules": len(model.flags_), "conditions": model.flags_.n_conditions}
    tree = MetaAP(cv=0, random_state=0).fit(X.iloc[train], y[train])
    out["MetaAP"] = average_precision(y[test], tree.decision_function(X.iloc[test]))
    matrix, named = coded(X)
    boosted = tuned_lightgbm(matrix[train], y[train], named)
    out["LightGBM tuned"] = average_precision(y[test], boosted.predict_proba(matrix[test])[:, 1])
    try:
        from interpret.glassbox import ExplainableBoostingClassifier
    except ImportError:
        pass
    else:
        types = ["nominal" if place in named else "continuous" for place in range(matrix.shape[1])]
        smooth = ExplainableBoostingClassifier(interactions=10, feature_types=types, n_jobs=1, random_state=0)
        smooth.fit(matrix[train], y[train])
        out["EBM"] = average_precision(y[test], smooth.predict_proba(matrix[test])[:, 1])
    out["best possible"] = average_precision(y[test], data.probability[test])
    out["pockets"] = pockets_found(model, data)
    return out


def pockets_found(model: RedFlags, data: Any) -> list[float]:
    """Share of each pocket's cases that some rule with enough points holds for."""
    holds = model.flags_.holds(model._encode(data.X))
    strong = np.flatnonzero([flag.points >= LEAST_POINTS for flag in model.flags_])
    is_flagged: np.ndarray = holds[:, strong].max(axis=1, initial=False)
    return [float(is_flagged[depth > 0].mean()) for depth in pocket_depths(data.columns)]


def table_of(found: list[dict[str, Any]]) -> str:
    """The results as Markdown."""
    named = ("RedFlags", "MetaAP", "LightGBM tuned", "EBM", "best possible")
    methods = [name for name in named if all(name in r for r in found)]
    head = ["campaign", *methods, "rules", "conditions", "pockets covered"]
    rows = [[str(r["seed"]), *(f"{r[m]:.3f}" for m in methods), str(r["rules"]), str(r["conditions"]),
             ", ".join(f"{share:.0%}" for share in r["pockets"])] for r in found]  # fmt: skip
    means = [f"{np.mean([r[m] for r in found]):.3f}" for m in methods]
    sizes = [f"{np.mean([r[name] for r in found]):.1f}" for name in ("rules", "conditions")]
    shares = ", ".join(f"{share:.0%}" for share in np.mean([r["pockets"] for r in found], axis=0))
    lines = [head, ["---"] * len(head), *rows, ["**mean**", *means, *sizes, shares]]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    notes = []
    for other in methods[1:-1]:
        gap = np.array([r["RedFlags"] - r[other] for r in found])
        error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
        notes.append(f"RedFlags minus {other}: {gap.mean():+.3f} (standard error {error:.3f}).")
    return text + "\n\n" + "\n".join(notes)


def main() -> None:
    """Run the draws that are not done, print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--cases", type=int, default=40_000)
    parser.add_argument("--store", type=Path, default=Path("red_flags_campaigns"))
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    arguments.store.mkdir(parents=True, exist_ok=True)
    found = []
    for seed in range(SEED, SEED + arguments.draws):
        file = arguments.store / f"{arguments.cases}-{seed}.json"
        if not file.exists():
            file.write_text(json.dumps(run_draw(seed, arguments.cases)))
        found.append(json.loads(file.read_text()))
        print(seed, {name: value for name, value in found[-1].items() if isinstance(value, float)}, flush=True)
    head = (
        f"# Red flags on simulated campaigns\n\n{date.today()}, {platform.machine()}, Python "
        f"{platform.python_version()}; `python benchmarks/quality/red_flags_campaigns.py --write`\n\n"
        f"{arguments.draws} draws of `make_audit` with {arguments.cases:,} cases, 2 % positive, 70 % to learn from. "
        "`RedFlags()` with nothing set, at most 20 rules and 40 conditions; LightGBM chooses one of six settings by "
        'folds; average precision on the rest. "Pockets covered": share of each planted pocket\'s cases that a rule '
        f"with at least {LEAST_POINTS} points holds for.\n\n"
    )
    text = head + table_of(found) + "\n"
    print(text)
    if arguments.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
