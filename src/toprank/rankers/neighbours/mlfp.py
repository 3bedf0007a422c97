"""`MLFP`: a distance towards positives, learned from few of them (Viola et al., 2020)."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from toprank._compat import Interval, StrOptions
from toprank._core.threads import Threads
from toprank.data.cases import Cases
from toprank.errors import InputError
from toprank.metrics.confusion_counts import f_beta
from toprank.rankers.neighbours.facts import vote_text
from toprank.rankers.neighbours.known import shares
from toprank.rankers.neighbours.metric_problem import (
    DiagonalForm,
    FullForm,
    LowRankForm,
    MatrixForm,
    MetricProblem,
    Solution,
    risk_of_all,
    solve,
)
from toprank.rankers.neighbours.neighbour_ranker import LEAVE_ONE_OUT, NEIGHBOUR_CONSTRAINTS, LeftOut, NeighbourRanker
from toprank.rankers.neighbours.search import mapped
from toprank.rankers.neighbours.triplets import Triplets, choose_triplets, distinct_cases
from toprank.rankers.neighbours.tuning import decision_counts
from toprank.rankers.unseen import Unseen, held_out_folds
from toprank.words.counts import plural

ROUNDING = 1e-6
"""How far the largest singular value in a file may exceed 1."""

PROVED, STATED = 96.0, 12.0
"""kappa * mu / ((1 - alpha) K^2)^2, by the proof of theorem 5 and as printed in theorem 2.

The printed theorems 2 and 6 have 12 / mu where the proof gives 6 * 4 ** 2 / mu = 96 / mu (4 (1 - alpha) K^2, the
Lipschitz constant of lemma 3, enters squared; in the last lines of the proof its factor 4 is lost). The larger constant
is used; `MetricBound.stated` has the bounds with the printed one."""


@dataclass(kw_only=True, eq=False, repr=False)
class MLFP(TransformerMixin, NeighbourRanker):
    """Nearest neighbours with a distance towards positives that is learned (metric learning from few positives).

    The distance to a negative is Euclidean. The distance to a positive is (x - x')' M (x - x') with a matrix M that
    is positive semi-definite and has no eigenvalue above 1: positives only move nearer, along the directions that
    matter least. M minimises (problem 3.1)

        [(1 - alpha) sum of l_FN + alpha sum of l_FP] / normalisation + mu |M - I|^2

    over two kinds of triplets. A positive x_i should be nearer to a positive x_j, by M, than to a negative x_k:
    l_FN = [1 - c + D_M(x_i, x_j)^2 - D(x_i, x_k)^2]_+. A negative x_i should be nearer to a negative x_j than to a
    positive x_k, by M: l_FP = [1 - c + D(x_i, x_j)^2 - D_M(x_i, x_k)^2]_+. alpha is the share of positives.

    A case is flagged if most of its k nearest known cases are positive; its score is d- / (d+ + d-), as in `GammaKNN`,
    with d+ measured by M. All iterates of the solver are feasible, and the objective never rises.

    Parameters
    ----------
    n_neighbors : int, default 3
        k: of the vote, and of the triplets with triplets="nearest".
    mu : float, default 0.01
        Weight of the penalty that keeps M near the identity. The thesis tunes it in [0, 1].
    c : float, default 0.5
        The margin is 1 - c. The thesis tunes it in [0, 1].
    form : {"diagonal", "full", "low_rank"}, default "diagonal"
        One weight per coordinate, as in the experiments of the thesis; any matrix; M = L'L where L has `n_components`
        rows. The first two are convex problems. "low_rank" is not: it starts from principal components and ends in a
        local minimum.
    n_components : int or None, default None
        Rows of L with form="low_rank"; None is half of the coordinates, rounded up.
    triplets : {"nearest", "all", "sampled"}, default "nearest"
        Which cases each case is compared with: its k nearest positives and negatives; all, as in (3.1), for tables of
        up to about 5,000 rows; or `n_sampled` of each class, drawn at random.
    n_sampled : int, default 10
        Positives and negatives drawn per case with triplets="sampled".
    normalization : {"triplets", "cases"}, default "triplets"
        What the sums are divided by: the number of triplets, so that `mu` means the same on any table; or the cube of
        the number of cases, 1/m^3, as in (3.1), whatever the triplets.
    tol : float, default 1e-3
        The solver stops when the objective is proved to be within this share of its first value of the minimum.
    max_iter : int, default 500
    scaling, category_distance, algorithm
        As in `GammaKNN`, but by default numbers have mean 0 and deviation 1. Triplets are always exact.
    cv : int, splitter, iterable of splits or None, default 5
        Folds that give the hit rates of new cases: each learns its own metric. None is 5 folds; 0 none: then rates are
        those of the training cases, each scored without itself, by a metric that has seen it.
    budget, pos_label, categorical_features, keep_columns
        As in `GammaKNN`.
    random_state : int, RandomState or None
        Seed of folds, of sampled triplets and of the approximate search, fixed for None.
    n_jobs : int or None
        Threads; no result depends on it.

    Attributes
    ----------
    components_ : float64 array of shape (rank, n_dims)
        L, with M = L'L; all singular values are at most 1. Coordinates are those of the space: one per number, one per
        category.
    objective_ : float64 array
        Objective at the identity and after every iteration; never rises.
    gap_ : float or None
        Upper bound on how far the objective is above the minimum; None for "low_rank".
    n_iter_ : int
    n_triplets_ : float
    vote_f1_ : float
        F-measure of the votes on left-out training cases.
    n_neighbors_, recall_
        As in `GammaKNN`.

    References
    ----------
    R. Viola, R. Emonet, A. Habrard, G. Metzler, M. Sebban: Learning from Few Positives: a Provably Accurate Metric
    Learning Algorithm to Deal with Imbalanced Data, IJCAI 2020.

    Examples
    --------
    >>> from toprank import MLFP
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(1000, random_state=0)
    >>> model = MLFP(budget=20).fit(data.X, data.y)
    >>> bool(model.components_.max() <= 1.0)
    True
    >>> bool(model.objective_[-1] < model.objective_[0])
    True
    >>> model.top_k(data.X, 1, reasons=1)["reason_1"].iloc[0].startswith("near known positive")
    True
    """

    _parameter_constraints = {
        **{name: checks for name, checks in NEIGHBOUR_CONSTRAINTS.items() if name != "metric"},
        "mu": [Interval(Real, 0, None, closed="left")],
        "c": [Interval(Real, 0, 1, closed="both")],
        "form": [StrOptions({"diagonal", "full", "low_rank"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "triplets": [StrOptions({"nearest", "all", "sampled"})],
        "n_sampled": [Interval(Integral, 1, None, closed="left")],
        "normalization": [StrOptions({"triplets", "cases"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    metric = "euclidean"  # towards negatives

    n_neighbors: int = 3
    mu: float = 0.01
    c: float = 0.5
    form: str = "diagonal"
    n_components: int | None = None
    triplets: str = "nearest"
    n_sampled: int = 10
    normalization: str = "triplets"
    tol: float = 1e-3
    max_iter: int = 500
    scaling: str | None = "standard"
    category_distance: float = 2.0
    algorithm: str = "auto"
    cv: Any = 5
    budget: int | float | None = None
    pos_label: Any = None
    categorical_features: Any = None
    keep_columns: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    # --- the metric ---------------------------------------------------------------------------------------------

    def learn_components(
        self, points: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None, threads: Threads
    ) -> np.ndarray:
        """Return L for points of a space, float64 (rank, n_dims); this is what `GammaKNN(metric=MLFP())` calls.

        Points of weight 0 are left out.
        """
        return self._solve(points, is_positive, weight, threads)[0]

    def _solve(
        self, points: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None, threads: Threads
    ) -> tuple[np.ndarray, Solution, Triplets]:
        """Return L, the solution of problem (3.1), and its triplets."""
        cases = distinct_cases(points, is_positive, weight)
        triplets = choose_triplets(
            *cases, threads, kind=self.triplets, n_neighbors=self.n_neighbors, n_sampled=self.n_sampled,
            seed=self._seed, per_case=self.normalization == "cases",
        )  # fmt: skip
        form = self._make_form(cases[0], cases[2], threads)
        solution = solve(MetricProblem(triplets, form, 1.0 - self.c, self.mu), self.tol, self.max_iter)
        if not solution.has_converged:
            warnings.warn(_why_not_converged(solution, self.max_iter, self.tol), ConvergenceWarning, stacklevel=2)
        return form.components(solution.variable), solution, triplets

    def _make_form(self, points: np.ndarray, weight: np.ndarray, threads: Threads) -> MatrixForm:
        n_dims = points.shape[1]
        if self.form == "low_rank":
            rank = -(-n_dims // 2) if self.n_components is None else self.n_components
            return LowRankForm(points, threads, min(rank, n_dims), weight)
        return (DiagonalForm if self.form == "diagonal" else FullForm)(points, threads)

    def _learn_metric(self, points: np.ndarray, data: Cases, threads: Threads) -> np.ndarray:
        components, solution, triplets = self._solve(points, data.is_positive, data.weight, threads)
        self.components_, self.objective_ = components, np.array(solution.objective)
        self.gap_, self.n_iter_, self.n_triplets_ = solution.gap, solution.n_iter, triplets.n_triplets
        return components

    def get_mahalanobis_matrix(self) -> np.ndarray:
        """Return M = L'L, float64 (n_dims, n_dims), in the coordinates of the space."""
        check_is_fitted(self)
        return self.components_.T @ self.components_

    def transform(self, X: Any) -> np.ndarray:
        """Return rows after the map L, float64 (n, rank): Euclidean distances there are the learned distances."""
        return mapped(self._space_points(X), self.components_)

    # --- the vote -----------------------------------------------------------------------------------------------

    def _leave_out(self, data: Cases, points: np.ndarray, components: np.ndarray | None, threads: Threads) -> LeftOut:
        """Compare the rows of each fold with those of the others; without folds, each row with all others."""
        folds = held_out_folds(data, self.cv, self.random_state)
        if folds:
            return self._leave_folds_out(data, points, components, threads, folds)
        return self._leave_one_out(data, points, threads)

    def _unseen(self, data: Cases, left_out: LeftOut, score: np.ndarray, threads: Threads) -> Unseen | None:
        if left_out.source == LEAVE_ONE_OUT:  # a metric that has seen a row says nothing about new ones
            return None
        return super()._unseen(data, left_out, score, threads)

    def _metric_of_fold(
        self, points: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, components: np.ndarray | None,
        threads: Threads,
    ) -> np.ndarray | None:  # fmt: skip
        return self.learn_components(points, is_positive, weight, threads)

    def _learn_rule(self, left_out: LeftOut, data: Cases, points: np.ndarray, threads: Threads) -> None:
        is_flagged = self._flags_of(left_out.evidence, points)
        self.vote_f1_ = float(f_beta(*decision_counts(is_flagged, left_out.is_positive, left_out.weight))[0])

    def _scores_of(self, evidence: tuple[np.ndarray, ...], points: np.ndarray) -> np.ndarray:
        return shares(evidence[0])

    def _flags_of(self, evidence: tuple[np.ndarray, ...], points: np.ndarray) -> np.ndarray:
        return evidence[0] > 1.0

    # --- guarantees ---------------------------------------------------------------------------------------------

    def bound(self, delta: float = 0.05) -> MetricBound:
        """Return the bounds of theorems 2 and 3 on the loss and on the mistakes of new cases.

        They hold for triplets="all" and a convex form, for cases drawn independently whose points lie within the
        radius of the training points; `applies` says whether the first two are so. They grow with the fourth power of
        the radius and fall with the root of the number of cases: with a dozen columns, ten million cases are too few
        for a bound below 1. Their use is in comparing: how much faster the misses are under control than the false
        alarms, and what a larger `mu` or fewer columns would buy.

        `delta` is the probability with which a bound may fail, between 0 and 1.

        Examples
        --------
        >>> from toprank import MLFP
        >>> from toprank.datasets import make_audit
        >>> data = make_audit(300, random_state=0)
        >>> bound = MLFP(triplets="all", mu=1.0, c=0.0, cv=0).fit(data.X, data.y).bound(0.05)
        >>> bound.applies, bound.fn_rate < bound.fp_rate
        (True, True)
        """
        check_is_fitted(self)
        if not isinstance(delta, int | float) or not 0.0 < delta < 1.0:
            raise InputError(f"MLFP.bound: delta must be a probability between 0 and 1, got {delta!r}. Hint: use 0.05.")
        sides = (self._known.positives, self._known.negatives)
        points = np.concatenate([side.places for side in sides])
        weight = np.concatenate([side.weights for side in sides])
        is_positive = np.arange(len(points)) < len(sides[0])
        points, is_positive, weight = distinct_cases(points, is_positive, weight)
        m = float(weight.sum())
        alpha = float(weight[is_positive].sum() / m)
        # Divided by the number of triplets, which is alpha (1 - alpha) m^3, the penalty counts for that much less.
        mu = self.mu * (alpha * (1.0 - alpha) if self.normalization == "triplets" else 1.0)
        why_not = ""
        if self.triplets != "all":
            why_not = f"The theorems are about all triplets, and this model has triplets={self.triplets!r}."
        elif self.form == "low_rank":
            why_not = "The theorems need a convex problem, and form='low_rank' is not one."
        elif self.mu == 0.0:
            why_not = "The theorems need a penalty, and mu is 0."
        risk = risk_of_all(points, is_positive, weight, self.components_, 1.0 - self.c)
        return evaluate_bound(
            delta=float(delta), empirical_risk=risk, m=m, alpha=alpha, mu=mu, c=float(self.c),
            radius=float(np.sqrt(np.square(points).sum(axis=1).max())), why_not=why_not,
        )  # fmt: skip

    # --- files and text -----------------------------------------------------------------------------------------

    def _size_in_words(self) -> str:
        rank, n_dims = self.components_.shape
        kind = {"diagonal": "one weight per coordinate", "full": "a full matrix", "low_rank": f"rank {rank}"}[self.form]
        return f"{super()._size_in_words()}, a learned distance in {plural(n_dims, 'coordinate')} ({kind})"

    def _facts(self) -> dict[str, str]:
        # Without folds, the metric has seen the cases that were left out of the search.
        how = "of folds that their metric has not seen" if self.rates_.is_for_new_cases else "left out, optimistic"
        value = f"f1 {self.vote_f1_:.3f} on training cases {how}"
        return {"measured": value, "vote": vote_text(0.5, self.budget_)} | super()._facts()

    def _figures(self) -> dict[str, Any]:
        return super()._figures() | {"objective": float(self.objective_[-1]), "gap": self.gap_, "n_iter": self.n_iter_}

    def _to_arrays(self) -> dict[str, np.ndarray]:
        gap = np.nan if self.gap_ is None else self.gap_
        figures = np.array([gap, self.n_triplets_, self.vote_f1_])
        return super()._to_arrays() | {"objective": self.objective_, "metric_figures": figures}

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        components, objective, figures = self._known.components, arrays["objective"], arrays["metric_figures"]
        if (
            components is None or objective.dtype != np.float64 or objective.ndim != 1 or not len(objective)
            or not np.all(np.isfinite(objective)) or not np.all(np.diff(objective) <= 0.0)
            or figures.dtype != np.float64 or figures.shape != (3,) or not np.all(np.isfinite(figures[1:]))
            or (components.size and np.linalg.norm(components, 2) > 1.0 + ROUNDING)
        ):  # fmt: skip
            raise InputError("The model's metric does not fit its parameters: no singular value may exceed 1.")
        self.components_, self.objective_, self.n_iter_ = components, objective, len(objective) - 1
        gap, self.n_triplets_, self.vote_f1_ = figures.tolist()
        self.gap_ = None if np.isnan(gap) else gap


def _why_not_converged(solution: Solution, max_iter: int, tol: float) -> str:
    """Return why the solver stopped early, and what to do about it."""
    if not solution.is_stuck:
        return (
            f"MLFP stopped after max_iter={max_iter} iterations, before its objective was within tol={tol} of the "
            "minimum. Hint: raise max_iter, tol or mu."
        )
    share = 0.0 if solution.gap is None else solution.gap / solution.objective[0]
    return (
        f"MLFP stopped after {plural(solution.n_iter, 'iteration')}: rounding hides what further steps would gain. Its "
        f"objective is proved to be within {share:.2g} of the minimum, not within tol={tol} (both as shares of the "
        "objective at the start). Hint: use scaling='standard', or raise tol."
    )


# --- theorems 2 and 3 of chapter 3 --------------------------------------------------------------------------------


@dataclass(frozen=True)
class MetricBound:
    """Bounds on what a learned metric does to new cases, each true with probability 1 - delta.

    A bound above 1 (`fp_rate`, `fn_rate`) or above `worst` (`risk`) says nothing.

    Attributes
    ----------
    delta : float
    empirical_risk : float
        R_S: mean loss of all m^3 triplets of training cases.
    risk : float
        Theorem 2: bound on the expected loss of a triplet of new cases.
    fp_rate, fn_rate : float
        Theorem 3: bounds on the share of cases that are negative and flagged, or positive and missed, by the nearest
        positive and the nearest negative (k = 1).
    worst : float
        sigma: the largest loss that a triplet can have.
    stability : float
        kappa: replacing one case changes no loss by more than kappa / m.
    radius : float
        K: largest norm of a training point.
    m : float
        Number of training cases.
    applies : bool
        False if a condition of the theorems does not hold; then the figures are not bounds, and `why_not` says why.
    why_not : str
    stated : tuple of float
        risk, fp_rate and fn_rate with the constant that theorem 2 prints, an eighth of the proved one.
    """

    delta: float
    empirical_risk: float
    risk: float
    fp_rate: float
    fn_rate: float
    worst: float
    stability: float
    radius: float
    m: float
    applies: bool
    why_not: str
    stated: tuple[float, float, float]


def evaluate_bound(
    *, delta: float, empirical_risk: float, m: float, alpha: float, mu: float, c: float, radius: float, why_not: str
) -> MetricBound:
    """Return the bounds of theorems 2 and 3 for m training cases with a share alpha of positives.

    `empirical_risk` is R_S, `radius` K, and mu the weight of the penalty where the losses are divided by m^3. Theorem 3
    is for c = 0; a margin 1 - c below 1 bounds the share of mistakes by the loss / (1 - c). `why_not` says which
    condition does not hold; empty if all do.
    """
    worst = (1.0 - alpha) * (1.0 - c + 4.0 * radius**2)

    def rates(constant: float) -> tuple[float, float, float, float]:
        scale = constant * ((1.0 - alpha) * radius**2) ** 2
        kappa = scale / mu if mu > 0.0 else (math.inf if scale else 0.0)

        def slack(n: float) -> float:
            return 2.0 * kappa / n + (2.0 * kappa + 2.0 * worst) * math.sqrt(math.log(2.0 / delta) / (2.0 * n))

        # Theorem 3 has one case more, whose triplets lose at most `worst` each.
        old = (m / (m + 1.0)) ** 3
        risk = old * empirical_risk + (1.0 - old) * worst + slack(m + 1.0)
        scaled = risk / (1.0 - c) if c < 1.0 else math.inf
        return empirical_risk + slack(m), scaled / alpha, scaled / (1.0 - alpha), kappa

    risk, fp_rate, fn_rate, kappa = rates(PROVED)
    return MetricBound(delta, empirical_risk, risk, fp_rate, fn_rate, worst, kappa, radius, m, not why_not, why_not,
                       rates(STATED)[:3])  # fmt: skip
