"""`GammaKNN`: nearest neighbours with the distances to positives multiplied by gamma (Viola et al., 2019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone

from toprank._compat import HasMethods, Interval, Options, StrOptions
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.cases import Cases
from toprank.errors import InputError
from toprank.files.model_file import without_prefix
from toprank.rankers.neighbours.facts import gamma_text, vote_text
from toprank.rankers.neighbours.known import DecidingCounts, KnownCases, ratios, shares
from toprank.rankers.neighbours.neighbour_ranker import NEIGHBOUR_CONSTRAINTS, LeftOut, NeighbourRanker
from toprank.rankers.neighbours.search import mapped
from toprank.rankers.neighbours.space import FARTHEST
from toprank.rankers.neighbours.tuning import LEAST_GAMMA, MEASURES, GammaCurve, Measure, gamma_curve
from toprank.rankers.unseen import has_folds

CV = "cv"

SAMPLER_FOLDS = 10
"""Folds in which gamma is tuned beside a sampler: a left-out row must not have helped to make up others."""

MAX_SYNTHETIC = 2.0
"""Largest gamma of synthetic positives: above 1 they count as farther away than they are (section 2.5.1)."""

GRID = np.arange(21) / 10
"""Where the search for both gammas begins: the grid of the thesis."""

GAMMA = [Interval(Real, 0, None, closed="left"), Options(str, {CV})]


@dataclass(kw_only=True, eq=False, repr=False)
class GammaKNN(NeighbourRanker):
    """Nearest neighbours whose positives count as nearer (algorithm 2.1).

    A case is flagged if most of its k nearest known cases are positive, once all distances to positives are multiplied
    by gamma; gamma = 1 is plain kNN, a smaller gamma flags more. The score is eta-hat of section 2.4.3,
    d- / (d+ + d-), with the distances d+ and d- to the positive and to the negative that decide the vote: for k = 1 the
    nearest of each class, for k = 3 the second nearest. Without a sampler it does not depend on gamma. A case is
    flagged if its score exceeds gamma / (1 + gamma), which is the cost of a false positive that gamma stands for.

    Training rows are scored without themselves (leave-one-out), from one search. These scores tune gamma, give the hit
    rates of new cases and the cutoff of the budget. As no score depends on gamma, tuning it on the same rows does not
    make the rates optimistic; the measure at the tuned gamma (`tuned_score_`) is. A sampler is the exception: scores
    then depend on gamma_synthetic / gamma, tuned on the same rows, and the rates are slightly optimistic as well.

    Parameters
    ----------
    n_neighbors : int, default 3
        k. At most 2 m - 3 are used, where m is the number of cases of the smaller class, so that a case that is left
        out can still win the vote of the others (`n_neighbors_`).
    gamma : float or "cv", default "cv"
        "cv" finds the best of all values from 0 to `max_gamma`: decisions change only where gamma passes the ratio of
        two distances, so all of them are compared.
    scoring : {"f1", "g_mean", "g_measure", "balanced_accuracy", "average_precision"} or callable, default "f1"
        What gamma is tuned for. "average_precision" is that of the decisions, as a ranking with two places. A callable
        gets arrays of true positives, false positives, false negatives and true negatives and returns one value each.
        A model file does not keep a callable; None stands for "f1".
    max_gamma : float, default 1.0
        Largest gamma to consider. The thesis keeps to [0, 1]: larger values overfit (section 2.5.1).
    sampler : sampler of imbalanced-learn or None, default None
        Makes up positives, such as SMOTE, in the scaled space. Training rows are then scored in 10 folds, or as `cv`
        says, with a sampler fitted on the other folds. A model file does not keep it. It takes no sample weights.
    gamma_synthetic : float or "cv", default "cv"
        What distances to synthetic positives are multiplied by; "cv" tunes it, from 0 to 2, together with gamma.
    metric : {"euclidean", "manhattan"}, array of shape (p, n_dims) or object, default "euclidean"
        An array is a linear map L: distances to positives are Euclidean after it, those to negatives before it. An
        object has a method learn_components(points, is_positive, weight, threads) that returns such a map.
    scaling : {"minmax", "standard"} or None, default "minmax"
        How numbers are scaled: to [-1, 1], to mean 0 and deviation 1, or not at all.
    category_distance : float, default 2.0
        Distance of two different categories; 2 is the whole range of a number after "minmax". Missing values: see
        `toprank.rankers.neighbours.space`.
    algorithm : {"auto", "kd_tree", "brute", "gpu", "approximate"}, default "auto"
        How neighbours are searched: "auto" is exact. "gpu" finds the same on an NVIDIA GPU, and needs cupy.
        "approximate" is faster on many rows and needs pynndescent; `recall_` says how many of the nearest it finds.
    cv : int, splitter, iterable of splits or None, default None
        How training rows are scored: None leaves out one row at a time, an int is a number of folds. 0 leaves out one
        row at a time and gives no hit rates of new cases.
    budget : int, float or None
        Cases that can be checked: a count, a share, or None, by which `predict` follows the vote.
    pos_label, categorical_features, keep_columns
        As in `MetaAP`.
    random_state : int, RandomState or None
        Seed of folds and of the approximate search, fixed for None.
    n_jobs : int or None
        Threads; no result depends on it.

    Attributes
    ----------
    gamma_ : float
    gamma_synthetic_ : float or None
        None without a sampler.
    gamma_curve_ : GammaCurve or None
        The measure at every gamma; None if gamma was given.
    tuned_score_ : float
        The measure of left-out training rows at `gamma_`.
    fp_cost_, fn_cost_ : float
        The costs of a false positive and of a false negative that gamma stands for: they add up to 1.
    n_neighbors_ : int
        k as used.
    recall_ : float
        Share of the nearest cases that the search finds, 1.0 if it is exact.

    References
    ----------
    R. Viola, R. Emonet, A. Habrard, G. Metzler, S. Riou, M. Sebban: An Adjusted Nearest Neighbor Algorithm Maximizing
    the F-Measure from Imbalanced Data, ICTAI 2019.

    Examples
    --------
    >>> from toprank import GammaKNN
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(2000, random_state=0)
    >>> model = GammaKNN(n_neighbors=3, budget=20).fit(data.X, data.y)
    >>> 0 < model.gamma_ < 1
    True
    >>> model.top_k(data.X, 1, reasons=1)["reason_1"].iloc[0].startswith("near known positive")
    True
    """

    _parameter_constraints = {
        **NEIGHBOUR_CONSTRAINTS,
        "gamma": GAMMA,
        "scoring": [StrOptions(set(MEASURES)), callable],
        "max_gamma": [Interval(Real, 0, None, closed="neither")],
        "sampler": [HasMethods(["fit_resample", "get_params"]), None],
        "gamma_synthetic": GAMMA,
    }

    n_neighbors: int = 3
    gamma: float | str = CV
    scoring: str | Callable[..., Any] = "f1"
    max_gamma: float = 1.0
    sampler: Any = None
    gamma_synthetic: float | str = CV
    metric: Any = "euclidean"
    scaling: str | None = "minmax"
    category_distance: float = 2.0
    algorithm: str = "auto"
    cv: Any = None
    budget: int | float | None = None
    pos_label: Any = None
    categorical_features: Any = None
    keep_columns: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    # --- the vote -----------------------------------------------------------------------------------------------

    def _known_cases(
        self, points: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None, components: np.ndarray | None,
        rows: np.ndarray | None = None,
    ) -> KnownCases:  # fmt: skip
        if self.sampler is None:
            return super()._known_cases(points, is_positive, weight, components, rows)
        rows = np.arange(len(points)) if rows is None else rows
        is_known = np.ones(len(points), bool) if weight is None else weight > 0
        if weight is not None and np.any(weight[is_known] != weight[is_known][0]):
            raise InputError(
                "GammaKNN with a sampler takes no sample weights, as samplers ignore them, but the weights differ. "
                "Hint: leave sample_weight or sampler out."
            )
        points, is_positive, place = resample(points[is_known], is_positive[is_known], self.sampler, self._seed)
        made = (place < 0) & is_positive
        origin = np.where(place >= 0, rows[is_known][place], -1)
        known = super()._known_cases(points[~made], is_positive[~made], None, components, origin[~made])
        return known.with_synthetic(points[made], self._metric_name)

    def _leave_out(self, data: Cases, points: np.ndarray, components: np.ndarray | None, threads: Threads) -> LeftOut:
        if self.sampler is None:
            return super()._leave_out(data, points, components, threads)
        folds = self._folds_to_tune(data, self.cv if self.cv is not None and has_folds(self.cv) else SAMPLER_FOLDS)
        return self._leave_folds_out(data, points, components, threads, folds)

    def _evidence(
        self, known: KnownCases, points: np.ndarray, threads: Threads, own: np.ndarray | None
    ) -> tuple[np.ndarray, ...]:
        if known.synthetic is None:
            return super()._evidence(known, points, threads, own)
        return known.distances_apart(points, DecidingCounts.from_k(self.n_neighbors_), threads, own)

    def _learn_rule(self, left_out: LeftOut, data: Cases, points: np.ndarray, threads: Threads) -> None:
        measure = self.scoring if callable(self.scoring) else MEASURES[self.scoring]
        gamma, synthetic = (
            None if isinstance(given, str) else float(given) for given in (self.gamma, self.gamma_synthetic)
        )
        known = left_out.is_positive, left_out.weight, measure
        self.gamma_synthetic_: float | None = None
        if self.sampler is None:
            curve = gamma_curve(left_out.evidence[0], *known, self.max_gamma if gamma is None else gamma)
            self.gamma_ = curve.best if gamma is None else gamma
        else:
            self.gamma_, self.gamma_synthetic_, curve = tune_both(
                left_out.evidence, *known, self.max_gamma, gamma, synthetic
            )
        self.gamma_curve_ = curve if gamma is None else None
        self.tuned_score_ = float(curve.at(self.gamma_))

    def _ratio_of(self, evidence: tuple[np.ndarray, ...]) -> np.ndarray:
        """Return the ratio that gamma must stay below for a row to be flagged."""
        if self.gamma_synthetic_ is None:
            return evidence[0]
        real, synthetic, negative = evidence
        return joint_ratio(real, synthetic, negative, self.gamma_synthetic_ / max(self.gamma_, LEAST_GAMMA))

    def _scores_by_k(self, X: Any, values: Sequence[int]) -> np.ndarray:
        """Return the scores with each number of neighbours, float64 (n_values, n), from one search."""
        if self.sampler is not None:
            raise InputError("GammaKNN scores each number of neighbours from one search only without a sampler.")
        points, known = self._space_points(X), self._known
        most = int(max(1, self._most_neighbours(*known.totals)))
        votes = [DecidingCounts.from_k(min(k, most)) for k in values]
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            near, far = (
                cases.at_count(at, np.arange(1, max(counts) + 1), threads)[:, np.array(counts) - 1]
                for cases, at, counts in (
                    (known.positives, mapped(points, known.components), [vote.positives for vote in votes]),
                    (known.negatives, points, [vote.negatives for vote in votes]),
                )
            )
        return shares(ratios(near, far)).T

    def _scores_of(self, evidence: tuple[np.ndarray, ...], points: np.ndarray) -> np.ndarray:
        return shares(self._ratio_of(evidence))

    def _flags_of(self, evidence: tuple[np.ndarray, ...], points: np.ndarray) -> np.ndarray:
        return self._ratio_of(evidence) > self.gamma_

    @property
    def fp_cost_(self) -> float:
        """Cost of a false positive, gamma / (1 + gamma): where the score exceeds it, flagging costs less."""
        return self.gamma_ / (1.0 + self.gamma_)

    @property
    def fn_cost_(self) -> float:
        """Cost of a false negative, 1 / (1 + gamma)."""
        return 1.0 / (1.0 + self.gamma_)

    # --- files and text -----------------------------------------------------------------------------------------

    def _facts(self) -> dict[str, str]:
        out = {"gamma": gamma_text(self.gamma_)}
        if self.gamma_synthetic_ is not None:
            out["gamma_synthetic"] = gamma_text(self.gamma_synthetic_, "a synthetic positive counts")
        is_tuned = isinstance(self.gamma, str)
        measure = self.scoring if isinstance(self.scoring, str) else "measure"
        value = f"{measure} {self.tuned_score_:.3f} on left-out training cases"
        out["tuned for" if is_tuned else "measured"] = f"{value}, slightly optimistic" if is_tuned else value
        return out | {"vote": vote_text(self.fp_cost_, self.budget_)} | super()._facts()

    def _figures(self) -> dict[str, Any]:
        synthetic = {} if self.gamma_synthetic_ is None else {"gamma_synthetic": self.gamma_synthetic_}
        return super()._figures() | {"gamma": self.gamma_, "tuned_score": self.tuned_score_} | synthetic

    def _to_arrays(self) -> dict[str, np.ndarray]:
        curve, synthetic = self.gamma_curve_, self._known.synthetic
        parts = {} if curve is None else {"start": curve.start, "stop": curve.stop, "value": curve.value}
        out = super()._to_arrays() | {f"curve_{name}": array for name, array in parts.items()}
        out["gamma"] = np.array([self.gamma_, self.tuned_score_])
        if synthetic is not None and self.gamma_synthetic_ is not None:
            out |= {"synthetic_places": synthetic.places, "synthetic_gamma": np.array([self.gamma_synthetic_])}
        return out

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self.gamma_, self.tuned_score_ = arrays["gamma"].tolist()
        parts = without_prefix(arrays, "curve_")
        self.gamma_curve_ = GammaCurve(**parts) if parts else None
        if not np.all(np.isfinite(arrays["gamma"])) or self.gamma_ < 0 or (
            self.gamma_curve_ is not None and not self.gamma_curve_.is_valid
        ):  # fmt: skip
            raise InputError("The model's gamma and its curve do not fit together.")
        self.gamma_synthetic_ = None
        if "synthetic_places" in arrays:
            (self.gamma_synthetic_,) = arrays["synthetic_gamma"].tolist()
            places = arrays["synthetic_places"]
            if (
                not 0 <= self.gamma_synthetic_ < np.inf or places.dtype != np.float64
                or places.ndim != 2 or places.shape[1] != self._space.n_dims or not np.all(np.abs(places) <= FARTHEST)
            ):  # fmt: skip
                raise InputError("The model's synthetic cases and its columns do not fit together.")
            self._known = self._known.with_synthetic(places, self._metric_name)


# --- synthetic positives ------------------------------------------------------------------------------------------
#
# A row is flagged if enough real positives, at gamma times their distance, or synthetic ones, at gamma_s times theirs,
# come before the deciding negative (section 2.5.1). For a fixed gamma_s every row therefore has a ratio of its own that
# gamma must stay below, and the other way round: each of the two is tuned exactly while the other is fixed.


def resample(
    points: np.ndarray, is_positive: np.ndarray, sampler: Any, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what a sampler of imbalanced-learn makes of training points: points, classes, and where they come from.

    The last are positions among the given points, increasing; -1 for synthetic points, which come first.

    A point of the result that equals a given point of its class is that point; all others are synthetic. So real points
    that a sampler removes are gone, and copies of a point count as often as they occur.
    """
    sampler = clone(sampler)
    if sampler.get_params().get("random_state", 0) is None:
        sampler.set_params(random_state=seed)
    try:
        found, label = sampler.fit_resample(points, is_positive.astype(np.int64))
    except ValueError as error:
        raise InputError(
            f"{type(sampler).__name__} cannot sample from {int(is_positive.sum()):,} positives and "
            f"{int((~is_positive).sum()):,} negatives: {error} Hint: fewer neighbours in the sampler, or fewer folds."
        ) from error
    found, label = np.ascontiguousarray(found, np.float64), np.asarray(label) == 1
    known: dict[bytes, int] = {}
    for i in range(len(points)):
        known.setdefault(points[i].tobytes() + is_positive[i].tobytes(), i)
    rows = np.array([known.get(point.tobytes() + own.tobytes(), -1) for point, own in zip(found, label, strict=True)])
    order = np.argsort(rows, kind="stable")
    return found[order], label[order], rows[order].astype(np.int64)


def joint_ratio(real: np.ndarray, synthetic: np.ndarray, negative: np.ndarray, share: float) -> np.ndarray:
    """Return the ratio that gamma must stay below, for a fixed share gamma_s / gamma, float64 (n,).

    `real` and `synthetic` are the distances to the j nearest positives of either kind, float64 (n, j), `negative` those
    to the deciding negative, float64 (n,).
    """
    j = real.shape[1]
    both = np.concatenate(
        (real, np.where(np.isfinite(synthetic), share * np.minimum(synthetic, 1e300), np.inf)), axis=1
    )
    return ratios(np.sort(both, axis=1)[:, j - 1], negative)


def ratio_beside(moving: np.ndarray, fixed: np.ndarray, negative: np.ndarray, gamma: float) -> np.ndarray:
    """Return the ratio that the gamma of one kind of positive must stay below while that of the other kind is fixed.

    `moving` and `fixed` are the distances to the j nearest positives of either kind, float64 (n, j); `gamma` is that of
    the fixed kind.
    """
    n, j = moving.shape
    n_before = (ratios(fixed, negative[:, None]) > gamma).sum(axis=1)
    needed = np.maximum(j - n_before, 1)
    ratio = ratios(moving[np.arange(n), needed - 1], negative)
    return np.where(n_before >= j, np.inf, ratio)


def tune_both(
    evidence: tuple[np.ndarray, ...], is_positive: np.ndarray, weight: np.ndarray, measure: Measure, high: float,
    gamma: float | None, gamma_synthetic: float | None,
) -> tuple[float, float, GammaCurve]:  # fmt: skip
    """Return gamma, gamma_s, and the measure at every gamma beside that gamma_s.

    Every gamma_s of the grid gets its best gamma; from the best pair on, each is tuned in turn until neither gains. The
    result is at least as good as the best pair of the grid of the thesis. A gamma that is given stays as it is.
    """
    real, synthetic, negative = evidence
    high = high if gamma is None else gamma

    def curve_of(moving: np.ndarray, fixed: np.ndarray, at: float, top: float) -> GammaCurve:
        return gamma_curve(ratio_beside(moving, fixed, negative, at), is_positive, weight, measure, top)

    starts = GRID if gamma_synthetic is None else np.array([gamma_synthetic])
    best, pair, chosen = -np.inf, (1.0, 1.0), None
    for start in starts.tolist():
        curve = curve_of(real, synthetic, start, high)
        own = curve.best if gamma is None else gamma
        value = float(curve.at(own))
        if value > best:
            best, pair, chosen = value, (own, start), curve
    assert chosen is not None
    while gamma_synthetic is None:
        other = curve_of(synthetic, real, pair[0], MAX_SYNTHETIC)
        if float(other.value.max()) <= best + 1e-12:
            break
        curve = curve_of(real, synthetic, other.best, high)
        own = curve.best if gamma is None else gamma
        best, pair, chosen = float(curve.at(own)), (own, other.best), curve
    return (*pair, chosen)
