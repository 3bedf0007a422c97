"""Displays of every kind, with few and many methods, long names and missing figures."""

from __future__ import annotations

import numpy as np

from toprank.plots import (
    CriticalDifferenceDisplay,
    DepthDisplay,
    GainsDisplay,
    ImbalanceDisplay,
    LeaderboardDisplay,
    PrecisionAtKDisplay,
)

# fmt: off
NAMES = (
    "MetaAP", "Gini", "Entropy", "TreeRank", "XGBRanker", "EntropyForest", "SGBAP", "Logistic regression",
    "Random forest", "Extra trees", "LightGBM", "CatBoost", "RUSBoost", "EasyEnsemble", "EBM",
)
# fmt: on
PERCENT = np.array([1.0, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100])
LEVELS = np.array([10, 20, 30, 40, 50])
DEPTHS = np.arange(1, 11)


def names(n: int, long: bool = False) -> list[str]:
    """n names; every second one longer than a plot writes out, and with signs that mean something to TeX."""
    return [
        f"{name} behind SMOTE, $k_1$ of 5 & all_the_options" if long and i % 2 else name
        for i, name in enumerate([*NAMES, *(f"{name} 2" for name in NAMES)][:n])
    ]


def lines(n: int, along: np.ndarray, long: bool = False, missing: bool = False) -> dict[str, np.ndarray]:
    """Curves that cross and end close to each other; with `missing`, one has gaps, one ends early, one is empty."""
    rng = np.random.default_rng(n)
    place = np.linspace(0, 1, len(along))
    series = {
        name: 0.9 - 0.3 * place - 0.01 * i + 0.02 * rng.normal(size=len(along)) for i, name in enumerate(names(n, long))
    }
    if missing:
        first, second, last = (list(series)[i] for i in (0, 1, -1))
        series[first][2] = np.nan
        series[second][len(along) // 2 :] = np.nan
        if n > 2:
            series[last][:] = np.nan
    return series


def precision_at_k(n, long=False, missing=False):
    series = lines(n, PERCENT, long, missing)
    first = next(iter(series))
    return PrecisionAtKDisplay(PERCENT, series, {first: series[first] - 0.03}, {first: series[first] + 0.03})


def gains(n, long=False, missing=False):
    checked = np.linspace(0, 1, 41)
    found = {name: checked ** (0.2 + 0.04 * i) for i, name in enumerate(names(n, long))}
    if missing:
        found[names(n, long)[-1]] = np.full(41, np.nan)
    return GainsDisplay(checked, found, budget=0.05, n_cases=12_345)


def imbalance(n, long=False, missing=False):
    return ImbalanceDisplay(LEVELS, lines(n, LEVELS, long, missing), [6, 13, 17, 22, 28])


def depth(n, long=False, missing=False):
    return DepthDisplay(DEPTHS, lines(n, DEPTHS, long, missing), squared=names(n, long)[1:3])


def critical_difference(n, long=False, missing=False):
    """Ranks in two crowds, two of them equal; there are no missing ranks."""
    ranks = np.concatenate([np.linspace(1.2, 2, n // 2), np.linspace(0.7 * n, 0.8 * n + 1, n - n // 2)])
    ranks[-1] = ranks[-2] if n > 2 else ranks[-1]
    return CriticalDifferenceDisplay(dict(zip(names(n, long), ranks, strict=True)), 0.26 * n, n_data_sets=28)


def leaderboard(n, long=False, missing=False):
    mean = 0.77 - 0.01 * np.arange(n)
    note = [None] * n
    if missing:
        mean[1], note[0], note[1] = np.nan, "within noise of the best", "stopped after 10 min"
    return LeaderboardDisplay(
        names(n, long),
        mean,
        low=mean - 0.015,
        high=mean + 0.012,
        is_readable=[i % 3 == 0 for i in range(n)],
        size=[np.nan if i == 4 else 14.0 + i**4 for i in range(n)],
        size_unit=["leaves"] * n,
        seconds=[0.03 * 4**i for i in range(n)],
        note=note,
        chance=0.06,
    )


MAKERS = (precision_at_k, gains, imbalance, depth, critical_difference, leaderboard)
LINE_MAKERS = MAKERS[:4]
