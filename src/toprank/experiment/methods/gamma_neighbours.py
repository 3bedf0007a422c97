"""gamma-kNN, its local version and MLFP as methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toprank.experiment.registry import Method, Sweep, register
from toprank.rankers.neighbours.gamma_knn import GammaKNN
from toprank.rankers.neighbours.local_gamma_knn import LocalGammaKNN
from toprank.rankers.neighbours.mlfp import MLFP

NEIGHBOURS = (1, 3, 5, 9, 15, 25, 41)
MU_VALUES, C_VALUES = (0.001, 0.01, 0.1), (0.0, 0.5, 0.9)


def make_gamma_knn(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> GammaKNN:
    """gamma-kNN with its defaults; the ranking does not depend on gamma."""
    return GammaKNN(**{"random_state": random_state, "n_jobs": n_jobs} | setting)


def make_local(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> LocalGammaKNN:
    """Local gamma-kNN, version 2, without hit rates of new cases, which cost a refit per fold."""
    return LocalGammaKNN(**{"cv": 0, "random_state": random_state, "n_jobs": n_jobs} | setting)


def make_mlfp(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> MLFP:
    """MLFP with its defaults; a trial needs only the ranking, not the hit rates of new cases, which need folds."""
    return MLFP(**{"cv": 0, "random_state": random_state, "n_jobs": n_jobs} | setting)


def rows_kept(model: Any) -> tuple[int, str]:
    """Training rows that the model keeps."""
    return len(model._known.positives) + len(model._known.negatives), "rows"


def scores_by_neighbours(model: Any, X: Any, values: Sequence[int]) -> np.ndarray:
    """Scores with each number of neighbours, float64 (n_values, n), from one search."""
    return model._scores_by_k(X, values)


register(
    Method(
        "gamma-knn", "gamma-kNN", "toprank", make_gamma_knn, {"n_neighbors": NEIGHBOURS}, size=rows_kept,
        sweep=Sweep("n_neighbors", scores_by_neighbours),
        summary="Distance to the nearest positives against that to the nearest negatives.",
    )
)  # fmt: skip
register(
    Method(
        "local-gamma-knn", "Local gamma-kNN", "toprank", make_local, {"n_neighbors": (1, 3, 9)}, size=rows_kept,
        summary="The same, with a weight of positives for each cluster.",
    )
)  # fmt: skip
register(
    Method(
        "mlfp", "MLFP", "toprank", make_mlfp, {"mu": MU_VALUES, "c": C_VALUES}, size=rows_kept,
        summary="Nearest rows, with a distance to positives that is learned from few of them.",
    )
)  # fmt: skip
