"""`tune_mlfp`: find mu and c of MLFP by Bayesian optimisation, resumable, with one set of triplets per fold.

Triplets and the distances to negatives depend on neither mu nor c. They are found once per fold; a setting then costs
one run of the solver and the distances to the positives.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv

from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.cases import Cases
from toprank.errors import InputError, InputTypeError
from toprank.experiment.search import quiet_optuna
from toprank.rankers.neighbours.known import CaseSet, DecidingCounts, KnownCases, ratios
from toprank.rankers.neighbours.metric_problem import MetricProblem, solve
from toprank.rankers.neighbours.mlfp import MLFP
from toprank.rankers.neighbours.search import PointSet, mapped
from toprank.rankers.neighbours.space import Space
from toprank.rankers.neighbours.triplets import choose_triplets, distinct_cases
from toprank.rankers.neighbours.tuning import MEASURES
from toprank.rankers.progress import progress as show_progress

LEAST_MU = 1e-5
"""Smallest mu to try: values are tried evenly on a log scale."""


@dataclass(frozen=True)
class MetricTuning:
    """What was tried, and the best.

    Attributes
    ----------
    mu, c : float
        The best setting; ties go to the first.
    score : float
        Its measure on held-out rows, all folds counted together.
    tried : list of (mu, c, score)
        In the order of the trials.
    model : MLFP
        Unfitted, with the best setting.
    """

    mu: float
    c: float
    score: float
    tried: list[tuple[float, float, float]]
    model: MLFP


class _Fold:
    """Rows inside and outside a fold as points, with all that does not depend on mu and c."""

    def __init__(self, model: MLFP, data: Cases, inside: np.ndarray, held_out: np.ndarray, threads: Threads):
        space = Space.learn(
            data.X[inside], data.n_categories, None, scaling=model.scaling, category_distance=model.category_distance
        )
        points, self.queries = space.points(data.X[inside]), space.points(data.X[held_out])
        is_positive, self.is_positive = data.is_positive[inside], data.is_positive[held_out]
        self.model, self.threads = model, threads
        votes = DecidingCounts.from_k(model._used_neighbours(is_positive.sum(), (~is_positive).sum()))
        cases = distinct_cases(points, is_positive, None)
        self.triplets = choose_triplets(
            *cases, threads, kind=model.triplets, n_neighbors=model.n_neighbors, n_sampled=model.n_sampled,
            seed=model._seed, per_case=model.normalization == "cases",
        )  # fmt: skip
        self.form = model._make_form(cases[0], cases[2], threads)
        known = KnownCases.learn(points, is_positive, None)
        self.negative = known.negatives.at_count(self.queries, np.array([votes.negatives]), threads)[:, 0]
        self.positives, self.count = known.positives.places, np.array([votes.positives])

    def counts(self, mu: float, c: float) -> np.ndarray:
        """Return true positives, false positives, false negatives and true negatives among the held-out rows."""
        problem = MetricProblem(self.triplets, self.form, 1.0 - c, mu)
        components = self.form.components(solve(problem, self.model.tol, self.model.max_iter).variable)
        places = PointSet(mapped(self.positives, components))
        cases = CaseSet(places, self.positives, None, np.arange(len(self.positives)))
        near = cases.at_count(mapped(self.queries, components), self.count, self.threads)[:, 0]
        is_flagged, is_positive = ratios(near, self.negative) > 1.0, self.is_positive
        return np.array([
            np.sum(is_flagged & is_positive), np.sum(is_flagged & ~is_positive), np.sum(~is_flagged & is_positive),
            np.sum(~is_flagged & ~is_positive),
        ], np.float64)  # fmt: skip


def tune_mlfp(
    model: MLFP,
    X: Any,
    y: Any,
    *,
    n_calls: int = 400,
    cv: Any = 10,
    scoring: str = "f1",
    storage: str | Path | None = None,
    progress: bool = False,
    random_state: int = 0,
) -> MetricTuning:
    """Find the mu in (0, 1] and the c in [0, 1] with which the votes of held-out rows are best.

    Parameters
    ----------
    model : MLFP
        Its other parameters are kept.
    X, y : training rows and labels, as in `MLFP.fit`
    n_calls : int, default 400
        Settings to try, as in the thesis: proposals of Optuna's tree-structured Parzen estimator. The first is the
        model's own.
    cv : int, splitter or iterable of splits, default 10
    scoring : {"f1", "g_mean", "g_measure", "balanced_accuracy", "average_precision"}, default "f1"
    storage : path or None
        File that keeps the trials. A later call with the same file goes on where this one stopped, and ends with the
        same result as one that was not interrupted. Calls that differ in more than `n_calls` need files of their own.
    progress : bool, default False
        Show a progress line on standard error.
    random_state : int, default 0

    Returns
    -------
    MetricTuning
        `model` has the best setting and is not fitted.

    Examples
    --------
    >>> from toprank import MLFP
    >>> from toprank.datasets import make_audit
    >>> from toprank.experiment import tune_mlfp
    >>> data = make_audit(300, positive_rate=0.1, random_state=0)
    >>> tuned = tune_mlfp(MLFP(), data.X, data.y, n_calls=3, cv=2)
    >>> len(tuned.tried), tuned.score == max(score for _, _, score in tuned.tried)
    (3, True)
    >>> model = tuned.model.fit(data.X, data.y)
    """
    if not isinstance(model, MLFP):
        raise InputTypeError(f"tune_mlfp tunes an MLFP, got {type(model).__name__}. Hint: pass MLFP().")
    if scoring not in MEASURES:
        raise InputError(f"scoring must be one of {', '.join(MEASURES)}, got {scoring!r}.")
    try:
        import optuna
    except ImportError:
        raise InputError(
            "tune_mlfp needs the package optuna, which is not installed. Hint: pip install 'toprank[experiment]'."
        ) from None
    with Threads(resolve_n_jobs(model.n_jobs)) as threads:
        reader = clone(model)
        reader._validate_params()
        data: Cases = reader._read_training(X, y, None, threads)
    measure = MEASURES[scoring]
    splitter = check_cv(cv, data.is_positive, classifier=True)
    if hasattr(splitter, "shuffle"):
        splitter.shuffle, splitter.random_state = True, random_state
    splits = list(splitter.split(np.zeros((len(data.X), 1)), data.is_positive))
    search = _fingerprint(model, data, splits, scoring, random_state)
    with quiet_optuna(optuna), Threads(resolve_n_jobs(model.n_jobs)) as threads:
        study = _open_study(optuna, storage, search)
        folds = [_Fold(model, data, inside, held_out, threads) for inside, held_out in splits]
        tried: list[tuple[float, float, float]] = []
        trials = _trials(optuna, study, model, n_calls, random_state)
        for trial, mu, c, known in show_progress(trials, n_calls, "MLFP", progress):
            counts = [fold.counts(mu, c) for fold in folds] if known is None else []
            score = float(measure(*np.sum(counts, axis=0))) if known is None else known
            if trial is not None:
                trial(score)
            tried.append((mu, c, score))
    best = max(tried, key=lambda each: each[2])
    return MetricTuning(*best, tried, clone(model).set_params(mu=best[0], c=best[1]))


def _fingerprint(
    model: MLFP, data: Cases, splits: list[tuple[np.ndarray, np.ndarray]], scoring: str, random_state: int
) -> dict[str, str]:
    """Return what the scores of a search depend on, by name: texts, and hashes of arrays."""
    parameters = {
        name: value for name, value in model.get_params(deep=False).items() if name not in ("n_jobs", "random_state")
    }
    return {
        "data": _hash(data.X, data.is_positive, np.asarray(data.n_categories)),
        "parameters": f"{parameters}, seed {model._seed}",
        "cv": _hash(*(rows for split in splits for rows in split)),
        "scoring": scoring,
        "random_state": str(random_state),
    }


def _hash(*arrays: np.ndarray) -> str:
    """Return a hash of the shapes, types and values of arrays."""
    out = hashlib.sha256()
    for array in arrays:
        out.update(f"{array.shape}{array.dtype}".encode())
        out.update(np.ascontiguousarray(array).tobytes())
    return out.hexdigest()


def _open_study(optuna: Any, storage: str | Path | None, search: dict[str, str]) -> Any:
    """Return a new study, or that of a file if it is of the same search."""
    kept = None
    if storage is not None:
        kept = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(storage)))
    study = optuna.create_study(direction="maximize", storage=kept, study_name="mlfp", load_if_exists=True)
    earlier = study.user_attrs.get("search", {} if study.trials else search)
    different = [name for name, value in search.items() if earlier.get(name) != value]
    if different:
        raise InputError(
            f"storage {str(storage)!r} has the trials of another search: its {', '.join(different)} "
            f"{'differs' if len(different) == 1 else 'differ'}. Hint: use another file, or delete this one to start "
            "again."
        )
    study.set_user_attr("search", search)
    return study


def _trials(
    optuna: Any, study: Any, model: MLFP, n_calls: int, random_state: int
) -> Iterator[tuple[Any, float, float, float | None]]:
    """Yield settings: how to report their score, mu, c, and the score if it is known from an earlier run.

    The sampler of a trial is seeded by its number, so that an interrupted search ends as one that was not.
    """
    done = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
    for earlier in done[:n_calls]:
        yield None, earlier.params["mu"], earlier.params["c"], float(earlier.values[0])
    for number in range(len(done), n_calls):
        study.sampler = optuna.samplers.TPESampler(seed=random_state + number)
        if number == 0:
            study.enqueue_trial({"mu": min(max(model.mu, LEAST_MU), 1.0), "c": model.c})
        trial = study.ask()
        mu, c = trial.suggest_float("mu", LEAST_MU, 1.0, log=True), trial.suggest_float("c", 0.0, 1.0)
        yield lambda score, trial=trial: study.tell(trial, score), mu, c, None
