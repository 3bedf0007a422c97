"""Figures 3 and 4 of the SGBAP paper, remade: the surrogates of the toy, and fewer and fewer positives on pima.

    python benchmarks/quality/sgbap_figures.py toy [--write]
    python benchmarks/quality/sgbap_figures.py rounds [--write]
    python benchmarks/quality/sgbap_figures.py imbalance --data ../shared/data [--runs 30] [--write]

Figure 4, section 4.2: at each level, 2/3-1/3 splits; then the positives with the best mean rank among the test cases
are taken out, for each method by itself, until the next share of positives is reached. Each method chooses its number
of rounds by 5 folds of the training part; nothing else is tuned. Levels already done are kept in `--store` and not run
again. `rounds` is not in the paper: the learning curve of a fit to simulated data. `--write` stores tables and plots in
docs/results/sgbap.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from tables import load_table
from toprank import SGBAP, LambdaMART, LogisticBoost, RankBoost
from toprank.datasets import make_audit
from toprank.metrics import average_precision, precision_at_k
from toprank.plots import ImbalanceDisplay, LearningCurveDisplay, save_figure
from toprank.rankers.boosting.losses import ExponentialAP, Loss, SigmoidAP

OUT = Path(__file__).parents[2] / "docs" / "results" / "sgbap"
TOY_X = np.arange(-6.0, 8.0)
TOY_Y = np.isin(TOY_X, (-3.0, -2.0, 6.0))
SHARES = (0.34, 0.29, 0.24, 0.19, 0.14, 0.09, 0.06, 0.03)
METHODS: dict[str, Callable[[int], Any]] = {
    "SGBAP": lambda seed: SGBAP(random_state=seed),
    "SGBAP, surrogate alone": lambda seed: SGBAP(blend=1.0, alpha=1.0, warm_up=0, random_state=seed),
    "logistic boosting": lambda seed: LogisticBoost(random_state=seed),
    "LambdaMART-AP": lambda seed: LambdaMART(random_state=seed),
    "RankBoost": lambda seed: RankBoost(random_state=seed),
}


def toy_losses() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Slopes theta_1, and both surrogates there; theta_0 changes neither."""
    theta = np.linspace(-2.0, 2.0, 401)
    losses: dict[str, Loss] = {"1 - AP_exp": ExponentialAP(), "1 - AP_sig": SigmoidAP()}
    return theta, {name: np.array([loss.value(t * TOY_X, TOY_Y, np.ones(14)) for t in theta])
                   for name, loss in losses.items()}  # fmt: skip


def draw_toy(path: Path | None) -> None:
    """Print the average precision of the three orders and where the surrogates are lowest; draw both."""
    for theta, what in ((1.0, "> 0"), (-1.0, "< 0"), (0.0, "= 0")):
        print(f"theta_1 {what}: average precision {average_precision(TOY_Y, theta * TOY_X):.3f}")
    theta, values = toy_losses()
    for name, value in values.items():
        print(f"{name} is lowest, {value.min():.3f}, at theta_1 = {theta[np.argmin(value)]:.2f}")
    if path is not None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8.4, 3.4), layout="constrained")
        precise = np.array([1 - average_precision(TOY_Y, t * TOY_X) for t in theta])
        for ax, (name, value) in zip(figure.subplots(1, 2, sharey=True), values.items(), strict=True):
            ax.plot(theta, value, color="#0072b2", linewidth=2.2, label=name)
            ax.plot(theta, precise, color="#888888", linestyle=":", label="1 - AP")
            ax.plot(theta[np.argmin(value)], value.min(), "o", color="#0072b2")
            ax.set_xlabel("theta_1")
            ax.legend(frameon=False, loc="upper right")
        figure.suptitle("Both surrogates are lowest where the average precision is highest: theta_1 > 0")
        path.parent.mkdir(parents=True, exist_ok=True)
        save_figure(figure, path)


def draw_rounds(path: Path | None) -> None:
    """Print how many rounds held-out cases choose; draw their average precision after each round."""
    data = make_audit(10_000, random_state=0)
    model = SGBAP(random_state=0, n_jobs=-1).fit(data.X, data.y)
    display = LearningCurveDisplay.from_estimator(model)
    print(f"held-out cases are ranked best after {display.chosen} rounds; the last fit has {model.n_rounds_}")
    if path is not None:
        save_figure(display.plot().figure_, path)


def run_level(X: Any, y: np.ndarray, make: Callable[[int], Any], n_runs: int) -> tuple[list[float], list[float], Any]:
    """Average precision and precision at k of each split, and the mean place of each case when it was tested."""
    place, count = np.zeros(len(y)), np.zeros(len(y))
    measured: list[tuple[float, float]] = []
    for seed in range(n_runs):
        train, test = train_test_split(np.arange(len(y)), test_size=1 / 3, stratify=y, random_state=seed)
        score = make(seed).fit(X.iloc[train], y[train]).decision_function(X.iloc[test])
        place[test] += np.argsort(np.argsort(-score, kind="stable"), kind="stable")
        count[test] += 1
        k = int(y[test].sum())
        measured.append((average_precision(y[test], score), precision_at_k(y[test], score, k=k)))
    precision, at_k = zip(*measured, strict=True)
    return list(precision), list(at_k), place / np.maximum(count, 1)


def run_imbalance(folder: Path, n_runs: int, store: Path) -> dict[str, dict[str, list[float]]]:
    """Mean measures by method and share of positives; each level is stored when it is done."""
    found = json.loads(store.read_text()) if store.exists() else {}
    for name, make in METHODS.items():
        X, y = load_table("pima", folder)
        for share in SHARES:
            n_kept = round(share / (1 - share) * int((y == 0).sum()))
            key = f"{name} at {share}"
            if key in found:
                taken = found[key]["taken"]
            else:
                drop = max(int(y.sum()) - n_kept, 0)
                taken = found.get(f"{name} before {share}", {"best": []})["best"][:drop]
            kept = np.setdiff1d(np.arange(len(y)), taken)
            X, y = X.iloc[kept].reset_index(drop=True), y[kept]
            if key not in found:
                precision, at_k, place = run_level(X, y, make, n_runs)
                best = [int(i) for i in np.argsort(place, kind="stable") if y[i] == 1]
                found[key] = {"precision": float(np.mean(precision)), "at_k": float(np.mean(at_k)), "taken": taken,
                              "positives": int(y.sum())}  # fmt: skip
                later = [each for each in SHARES if each < share]
                if later:
                    found[f"{name} before {later[0]}"] = {"best": best}
                store.write_text(json.dumps(found))
                print(f"{name}, {100 * y.mean():.0f} %: AP {found[key]['precision']:.3f}, P@k {found[key]['at_k']:.3f}",
                      flush=True)  # fmt: skip
    return {
        name: {what: [found[f"{name} at {share}"][what] for share in SHARES] for what in ("precision", "at_k")}
        for name in METHODS
    }


def main() -> None:
    """Print the figures, and store them with --write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("figure", choices=["toy", "rounds", "imbalance"])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--store", type=Path, default=Path("sgbap-imbalance.json"))
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.figure == "toy":
        draw_toy(OUT / "figure_3.png" if given.write else None)
        return
    if given.figure == "rounds":
        draw_rounds(OUT / "learning_curve.png" if given.write else None)
        return
    found = run_imbalance(given.data, given.runs, given.store)
    print("| share of positives | " + " | ".join(METHODS) + " |\n|---:|" + "---:|" * len(METHODS))
    for i, share in enumerate(SHARES):
        cells = [f"{values['precision'][i]:.3f} / {values['at_k'][i]:.3f}" for values in found.values()]
        print(f"| {share:.0%} | " + " | ".join(cells) + " |")
    if given.write:
        levels = [100 * share for share in SHARES][::-1]
        values = {name: values["precision"][::-1] for name, values in found.items()}
        OUT.mkdir(parents=True, exist_ok=True)
        display = ImbalanceDisplay(levels, values).plot()
        display.ax_.set_xlabel("Share of positives left in pima")
        save_figure(display.figure_, OUT / "figure_4.png")


if __name__ == "__main__":
    main()
