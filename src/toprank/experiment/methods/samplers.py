"""`with_sampler`: a sampler of imbalanced-learn in front of any method.

Samplers see training rows only: they act in `fit`, and rows to score are not resampled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_X_y

from toprank.errors import InputError
from toprank.experiment.methods.boosting import limited_threads
from toprank.experiment.registry import Method, Sweep
from toprank.words.nearest import did_you_mean

TITLES = {
    "smote": "SMOTE",
    "borderline-smote": "Borderline-SMOTE",
    "svm-smote": "SVM-SMOTE",
    "adasyn": "ADASYN",
    "kmeans-smote": "KMeans-SMOTE",
    "smote-tomek": "SMOTE-Tomek",
    "smote-enn": "SMOTE-ENN",
    "random-over": "Random over-sampling",
    "random-under": "Random under-sampling",
    "tomek": "Tomek links",
    "near-miss": "NearMiss",
}
"""Samplers by name, with their titles in tables."""

GIVES_UP = ("adasyn", "svm-smote", "kmeans-smote")
"""Samplers that raise an error if they find no place for new rows."""


def with_sampler(sampler: str, method: Method) -> Method:
    """The method on resampled training rows: same settings, same size, one more package."""
    if sampler not in TITLES:
        hint = did_you_mean(sampler, TITLES) or f" Hint: known are {', '.join(TITLES)}."
        raise InputError(f"There is no sampler {sampler!r} to put in front of {method.name!r}.{hint}")

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> Any:
        from imblearn.pipeline import Pipeline

        model = method.make(random_state=random_state, n_jobs=n_jobs, **setting)
        return Pipeline([("sampler", Resampler(sampler, random_state, n_jobs)), ("model", model)])

    size, sweep = method.size, method.sweep
    return replace(
        method,
        name=f"{sampler}+{method.name}",
        title=f"{TITLES[sampler]} + {method.title}",
        make=make,
        reads="scaled" if method.reads == "scaled" else "numbers",
        packages=("imblearn", *method.packages),
        size=size and (lambda model: size(model[-1])),
        # The model was fitted on the same rows for every value.
        sweep=sweep and Sweep(sweep.parameter, lambda model, X, values: sweep.scores(model[-1], X, values)),
        summary=f"{TITLES[sampler]} on the training rows, then: {method.summary}",
    )


class Resampler(BaseEstimator):
    """A sampler, a key of `TITLES`, whose numbers of neighbours fit the table.

    If there is nothing to resample (no two positives, no cluster with enough of them, no positive near a negative), the
    rows come back unchanged. `n_threads` is that of OpenMP and linear algebra: clusters of a small table take far
    longer with several.
    """

    def __init__(self, sampler: str = "smote", random_state: Any = None, n_threads: int | None = 1):
        self.sampler = sampler
        self.random_state = random_state
        self.n_threads = n_threads

    def fit_resample(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and labels to train on."""
        X, y = check_X_y(X, y)
        n_rare = int(np.unique(y, return_counts=True)[1].min())
        if n_rare < 2 and not self.sampler.startswith("random"):
            return X, y
        try:
            with limited_threads(self.n_threads):
                new_X, new_y = _build(self.sampler, n_rare, len(y), self.random_state).fit_resample(X, y)
        except (ValueError, RuntimeError):
            if self.sampler in GIVES_UP:
                return X, y
            raise
        return (new_X, new_y) if len(np.unique(new_y)) == len(np.unique(y)) else (X, y)


def _build(name: str, n_rare: int, n_rows: int, random_state: Any) -> Any:
    """The sampler of a name for a table of n_rows rows, n_rare of them of the rarer class."""
    from imblearn import combine, over_sampling, under_sampling
    from sklearn.cluster import KMeans

    seed, k, m = {"random_state": random_state}, min(5, n_rare - 1), min(10, n_rows - 1)
    smote = over_sampling.SMOTE(k_neighbors=max(k, 1), **seed)
    richer = n_rare / n_rows  # clusters richer than the table; the default asks for half positives
    makers: dict[str, Callable[[], Any]] = {
        "smote": lambda: smote,
        "borderline-smote": lambda: over_sampling.BorderlineSMOTE(k_neighbors=k, m_neighbors=m, **seed),
        "svm-smote": lambda: over_sampling.SVMSMOTE(k_neighbors=k, m_neighbors=m, **seed),
        "adasyn": lambda: over_sampling.ADASYN(n_neighbors=k, **seed),
        "kmeans-smote": lambda: over_sampling.KMeansSMOTE(
            k_neighbors=min(2, k), kmeans_estimator=KMeans(n_clusters=min(8, n_rows), n_init=1, **seed),
            cluster_balance_threshold=richer, **seed),
        "smote-tomek": lambda: combine.SMOTETomek(smote=smote, **seed),
        "smote-enn": lambda: combine.SMOTEENN(smote=smote, **seed),
        "random-over": lambda: over_sampling.RandomOverSampler(**seed),
        "random-under": lambda: under_sampling.RandomUnderSampler(**seed),
        "tomek": under_sampling.TomekLinks,
        "near-miss": lambda: under_sampling.NearMiss(n_neighbors=min(3, n_rare)),
    }  # fmt: skip
    return makers[name]()
