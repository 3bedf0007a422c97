"""One round of SGBAP beside one of XGBoost's own binary:logistic: same table, same trees, side by side in one run.

    python benchmarks/speed/boosting.py [--rows 2000000] [--columns 40] [--rounds 10] [--skip 2] [--threads 1 2]
                                        [--devices cpu] [--write]
    python benchmarks/speed/boosting.py --gradients

The table has 0.2 % positives. Rounds of all methods alternate, so that other work on the machine falls on all of them;
a figure is the median round, after `--skip` that are not counted. Depth 6, 256 bins, 80 % of rows and columns a
round. `--write` stores the table in `boosting.md`. `--gradients` prints the processor time of all that is done
here in a round, per row and on one thread, which other work on the machine changes little.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import xgboost

from toprank._core.threads import Threads
from toprank.rankers.boosting.losses import Blend, ExponentialAP, Logistic, Loss, RowSums, SigmoidAP
from toprank.rankers.boosting.rounds import Rounds, Rows, Settings, to_fixed_points

HERE = Path(__file__).parent
SHARE, POSITIVES = 0.8, 0.002
LOSSES: dict[str, Loss] = {
    "logistic loss, our gradient": Logistic(), "SGBAP, exp": ExponentialAP(), "SGBAP, sigmoid": SigmoidAP(),
    "SGBAP, default blend": Blend(ExponentialAP(0.7), 0.8),
}  # fmt: skip


def make_table(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal columns of which five raise the chance of a positive."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), np.float32)
    score = X[:, :5].sum(axis=1) + 2 * rng.standard_normal(n)
    return X, score >= np.quantile(score, 1 - POSITIVES)


def parameters(threads: int, device: str) -> dict[str, Any]:
    """XGBoost's settings of all methods."""
    return {"tree_method": "hist", "device": device, "base_score": 0.0, "seed": 0, "verbosity": 0, "nthread": threads,
            "max_bin": 256, "eta": 0.05, "max_depth": 6, "colsample_bytree": SHARE}  # fmt: skip


def own_step(table: tuple[np.ndarray, np.ndarray], loss: Loss, given: dict[str, Any]) -> Callable[[], None]:
    """A round with a gradient of ours."""
    X, y = table
    rows = Rows(X, y, np.ones(len(X)), ["q"] * X.shape[1])
    threads = Threads(given["nthread"]).__enter__()
    return Rounds(rows, Settings(given, lambda turn: loss, SHARE, 0), all_rows=RowSums(threads)).step


def plain_step(table: tuple[np.ndarray, np.ndarray], given: dict[str, Any]) -> Callable[[], None]:
    """A round of XGBoost alone."""
    X, y = table
    train = xgboost.QuantileDMatrix(X, label=y, max_bin=given["max_bin"], nthread=given["nthread"])
    own = {name: value for name, value in given.items() if name != "base_score"}  # that of the labels
    own |= {"objective": "binary:logistic", "subsample": SHARE}
    booster = xgboost.Booster(own, [train])
    turn = iter(range(10**9))
    return lambda: booster.update(train, next(turn))


def time_rounds(
    table: tuple[np.ndarray, np.ndarray], given: dict[str, Any], n_rounds: int, n_skipped: int
) -> dict[str, float]:
    """Median seconds of a round of each method, after some that are not counted."""
    steps = {"XGBoost, binary:logistic": plain_step(table, given)}
    steps |= {name: own_step(table, loss, given) for name, loss in LOSSES.items()}
    spent: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(n_rounds + n_skipped):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            spent[name].append(time.perf_counter() - start)
    return {name: float(np.median(times[n_skipped:])) for name, times in spent.items()}


def print_gradients(n: int = 2**20, repeats: int = 15) -> None:
    """Print nanoseconds of processor time per row: drawing rows, slopes, and their fixed point."""
    table = make_table(n, 5)
    rows = Rows(*table, np.ones(n), ["q"] * 5)
    drawing = Rounds(rows, Settings(parameters(1, "cpu"), lambda turn: Logistic(), SHARE, 0))
    weight, score = drawing._draw(), np.random.default_rng(0).normal(-6.0, 1.0, n)

    def least(call: Callable[..., Any], *given: Any) -> float:
        call(*given)
        spent = []
        for _ in range(repeats):
            start = time.process_time()
            call(*given)
            spent.append(time.process_time() - start)
        return 1e9 * min(spent) / n

    draw = least(drawing._draw)
    for name, loss in LOSSES.items():
        slopes = loss.slopes(score, table[1], weight)
        parts = draw, least(loss.slopes, score, table[1], weight), least(to_fixed_points, slopes)
        print(f"{name}: {sum(parts):.1f} ns per row (rows {parts[0]:.1f}, slopes {parts[1]:.1f}, fixed {parts[2]:.1f})")


def main() -> None:
    """Print the table, and store it with --write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000])
    parser.add_argument("--columns", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--skip", type=int, default=2, help="first rounds, which are not counted")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--devices", nargs="+", default=["cpu"])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--gradients", action="store_true", help="only the processor time of gradients")
    given = parser.parse_args()
    if given.gradients:
        print_gradients()
        return
    lines = ["| rows | device | threads | method | a round | beside XGBoost |", "|---|---|---|---|---|---|"]
    print("\n".join(lines), flush=True)
    for n in given.rows:
        table = make_table(n, given.columns)
        for device in given.devices:
            for threads in given.threads:
                times = time_rounds(table, parameters(threads, device), given.rounds, given.skip)
                base = times["XGBoost, binary:logistic"]
                for name, seconds in times.items():
                    ratio = f"{seconds / base:.2f}"
                    lines.append(f"| {n:,} | {device} | {threads} | {name} | {seconds * 1000:,.0f} ms | {ratio} |")
                    print(lines[-1], flush=True)
    if given.write:
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        head = f"# A round of boosting\n\n{date.today()}, {machine}, XGBoost {xgboost.__version__}; "
        head += f"`python benchmarks/speed/boosting.py --columns {given.columns} --rounds {given.rounds} --write`\n\n"
        text = " ".join((__doc__ or "").split("\n\n")[2].split())
        (HERE / "boosting.md").write_text(head + text + "\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
