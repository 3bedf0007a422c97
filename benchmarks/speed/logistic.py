"""The L1 logistic regression of oblique nodes beside scikit-learn's liblinear, one thread each, from one run.

    python benchmarks/speed/logistic.py [--shrink 1] [--write]

Fits: both classes weigh the same; the penalty is a share of the one at which all weights are 0. liblinear stops at
scikit-learn's default tolerance and at one a hundred times tighter; "above" is how far an objective is above the lower
bound that our duality gap proves, as a share. liblinear penalises its intercept, which is therefore scaled by 100; what
is left of that is part of "above". Paths: 14 cost ratios, each 1.5 times the one before, fitted from 0 or from the fit
before. Times are processor time, the best of three runs, of liblinear's one. `--shrink` divides the numbers of rows,
`--write` stores the tables in `logistic.md`.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from toprank.tree.tao.logistic import LinearFit, fit_l1_logistic, penalty_max

HERE = Path(__file__).parent
REPEATS = 3
COST_RATIOS = 1.5 ** np.arange(-6.0, 8.0)
LINEAR_TOLERANCES = (1e-4, 1e-6)
Data = tuple[np.ndarray, np.ndarray]


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and standard deviation 1, column-major."""
    return np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))


def make_correlated(n: int, d: int) -> Data:
    """Columns driven by ten factors, so that each is nearly made up of the others; 15 of them matter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 10)) @ rng.standard_normal((10, d)) + 0.1 * rng.standard_normal((n, d))
    X = standardised(X)
    slope = np.zeros(d)
    slope[rng.choice(d, 15, replace=False)] = rng.standard_normal(15)
    return X, rng.random(n) < 1.0 / (1.0 + np.exp(2.0 - X @ slope))


def make_images(n: int) -> Data:
    """Smooth images of 28 x 28 pixels, 1 in 11 positive: one diagonal of quadrants is much brighter; 10 % noise."""
    rng = np.random.default_rng(0)
    pixels = gaussian_filter(rng.standard_normal((n, 28, 28)), sigma=(0, 2, 2))
    half = pixels.reshape(n, 2, 14, 2, 14).sum(axis=(2, 4))
    excess = half[:, 0, 0] + half[:, 1, 1] - half[:, 0, 1] - half[:, 1, 0]
    is_positive = excess > np.quantile(excess, 10 / 11)
    noisy = rng.random(n) < 0.1 * is_positive.mean()
    return standardised(pixels.reshape(n, 784)), is_positive ^ noisy


def make_independent(n: int, d: int) -> Data:
    """Gaussian columns of which ten matter; about 5 % positives."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((n, d)))
    slope = np.where(np.arange(d) < 10, 0.5, 0.0)
    return X, rng.random(n) < 1.0 / (1.0 + np.exp(4.0 - X @ slope))


def balanced(is_positive: np.ndarray, ratio: float = 1.0) -> np.ndarray:
    """Weights with which positives weigh `ratio` times as much as negatives, the latter 1 each."""
    return np.where(is_positive, ratio * np.mean(~is_positive) / np.mean(is_positive), 1.0)


def seconds_of(call: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """Least seconds of processor time of a few calls, and the last result."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        result = call()
        best = min(best, time.process_time() - start)
    return best, result


def objective_of(X: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, penalty: float, model: Any) -> float:
    """Loss plus penalty of a fitted model of scikit-learn, the intercept without one."""
    z = X @ model.coef_[0] + model.intercept_[0]
    return float(weight @ np.logaddexp(0.0, np.where(is_positive, -z, z)) + penalty * np.abs(model.coef_).sum())


def fit_liblinear(X: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, penalty: float, tol: float) -> Any:
    """The same problem by liblinear."""
    model = LogisticRegression(C=1 / penalty, l1_ratio=1.0, solver="liblinear", tol=tol, intercept_scaling=100.0,
                               max_iter=1000, random_state=0)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, is_positive, sample_weight=weight)


def measure_fits(name: str, X: np.ndarray, is_positive: np.ndarray, share: float) -> Iterator[str]:
    """One line for our fit and one for each tolerance of liblinear's."""
    weight = balanced(is_positive)
    penalty = share * penalty_max(X, is_positive, weight)
    seconds, fit = seconds_of(lambda: fit_l1_logistic(X, is_positive, weight, penalty))
    bound = fit.objective - fit.gap
    n_used = np.count_nonzero(fit.weight)
    yield f"| {name} | {share} | toprank | {seconds:.2f} s | | {fit.gap / bound:.0e} | {n_used} |"
    for tol in LINEAR_TOLERANCES:
        theirs, model = seconds_of(partial(fit_liblinear, X, is_positive, weight, penalty, tol), repeats=1)
        above = objective_of(X, is_positive, weight, penalty, model) / bound - 1.0
        n_used = np.count_nonzero(model.coef_)
        ratio = f"{theirs / seconds:.1f}"
        yield f"| {name} | {share} | liblinear, tol={tol:.0e} | {theirs:.2f} s | {ratio} | {above:.0e} | {n_used} |"


def measure_path(name: str, X: np.ndarray, is_positive: np.ndarray, share: float) -> str:
    """One line: 14 fits from 0 and 14 fits along the path."""
    penalty = share * penalty_max(X, is_positive, balanced(is_positive))
    weights = [balanced(is_positive, ratio) for ratio in COST_RATIOS]

    def follow(is_warm: bool) -> list[LinearFit]:
        fits: list[LinearFit] = []
        for weight in weights:
            start = fits[-1] if is_warm and fits else None
            fits.append(fit_l1_logistic(X, is_positive, weight, penalty, start=start))
        return fits

    (cold, from_zero), (warm, along) = seconds_of(lambda: follow(False)), seconds_of(lambda: follow(True))
    steps = [sum(fit.n_iter for fit in fits) for fits in (from_zero, along)]
    apart = max(abs(a.objective / b.objective - 1.0) for a, b in zip(from_zero, along, strict=True))
    times = f"{cold:.2f} s | {warm:.2f} s | {cold / warm:.1f}"
    return f"| {name} | {share} | {times} | {steps[0]} | {steps[1]} | {apart:.0e} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shrink", type=int, default=1, help="divide the numbers of rows by this")
    parser.add_argument("--write", action="store_true", help="store the tables in logistic.md")
    arguments = parser.parse_args()
    sizes = [n // arguments.shrink for n in (12_000, 32_000, 1_000_000)]
    fits = ["| table | penalty | solver | time | ratio | above | weights |", "|---|---|---|---|---|---|---|"]
    paths = ["| table | penalty | cold | warm | ratio | steps cold | steps warm | objectives apart |"]
    paths.append("|---|---|---|---|---|---|---|---|")
    fit_l1_logistic(*make_independent(500, 5), None, 10.0)  # compile
    makers = {
        f"{sizes[0]:,} x 130, correlated": lambda: make_correlated(sizes[0], 130),
        f"{sizes[1]:,} x 784, images": lambda: make_images(sizes[1]),
        f"{sizes[2]:,} x 30": lambda: make_independent(sizes[2], 30),
    }
    for name, make in makers.items():
        X, is_positive = make()
        for share in (0.1, 0.01, 0.001) if "correlated" in name else (0.1, 0.01):
            for line in measure_fits(name, X, is_positive, share):
                fits.append(line)
                print(line, flush=True)
            paths.append(measure_path(name, X, is_positive, share))
            print(paths[-1], flush=True)
    if arguments.write:
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        head = f"# L1 logistic regression\n\n{date.today()}, {machine}; `python benchmarks/speed/logistic.py --write`\n"
        note = " ".join(__doc__.split("\n\n")[2].split("`--shrink`")[0].split())
        tables = "\n\n".join("\n".join(lines) for lines in (fits, paths))
        (HERE / "logistic.md").write_text(f"{head}\n{note}\n\n{tables}\n")


if __name__ == "__main__":
    main()
