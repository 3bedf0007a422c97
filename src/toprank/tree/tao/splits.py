"""Conditions of a node, and the search for the one that saves most on its care points.

Theorem 4.1: a node can only send a row left or right, so its problem is binary: the rows whose cost differs between the
two subtrees, each with the child it prefers and the extra cost of the other one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from toprank._core.dtypes import CATEGORY, NUMERIC, OBLIQUE
from toprank._core.splitting import FEW_LEVELS
from toprank._core.tao import best_code_cut
from toprank.tree.bin_mapper import between, short_between
from toprank.tree.categories import N_COINS, N_HALVINGS, CategorySearch, coins
from toprank.tree.tao.logistic import LinearFit, fit_l1_logistic
from toprank.tree.tao.problem import CostProblem

FIT_ROWS = 100_000
"""Largest number of care points to fit a direction on, drawn at random; the threshold along it uses all of them."""

FIT_TOLERANCE = 1e-3
"""Tolerance of the fit of a direction: the threshold along it is exact, and more digits of the surrogate gain
nothing."""

NEWTON_STEPS = 100
"""Largest number of steps of a fit."""

LEAST_PENALTY = 1e-6
"""Smallest penalty of a fit, as a share of the cost of all care points: directions must stay finite."""

NOISE = 1e-4
"""Weights below this share of the largest one are noise of the fit: they are set to 0 before the threshold search."""


@dataclass(frozen=True, eq=False)
class Split:
    """The condition of one node.

    Attributes
    ----------
    kind : int
        NUMERIC, CATEGORY or OBLIQUE.
    norm : float
        phi of eq. (3): L1 norm of the weights on standardised columns and on categories, as fitted by the surrogate; 1
        for a condition on one column, 0 if all rows go the same way.
    feature, threshold, missing_left
        As in `Tree`.
    categories : bool array of shape (256,)
        Category codes that go left.
    columns, codes, weights, fill : int32 and float64 arrays
        Terms of a weighted sum, in original units; fitted or random terms are sorted by standardised weight, largest
        first. Code -1 is the number itself, any other code is 1 if a row has that category, else 0. A missing number is
        replaced by its term's fill; if that is NaN, the row goes by missing_left.
    """

    kind: int
    norm: float
    feature: int = -1
    threshold: float = np.nan
    missing_left: bool = False
    categories: np.ndarray | None = None
    columns: np.ndarray | None = None
    codes: np.ndarray | None = None
    weights: np.ndarray | None = None
    fill: np.ndarray | None = None

    @classmethod
    def one_way(cls, goes_left: bool) -> Split:
        """All rows go to one child: w = 0."""
        return cls(NUMERIC, 0.0, 0, np.inf if goes_left else -np.inf, goes_left)


@dataclass(frozen=True, eq=False)
class ReducedProblem:
    """The reduced problem of a node.

    Attributes
    ----------
    rows : int64 array of shape (m,)
        Care points, ascending: the rows whose cost depends on which way they go.
    saving : int64 array of shape (m,)
        What a row saves in the left child over the right one, never 0; in units of cost.
    """

    rows: np.ndarray
    saving: np.ndarray

    @property
    def one_way(self) -> tuple[int, Split]:
        """Saving of sending all rows to the better child, and that condition."""
        total = int(self.saving.sum())
        return max(total, 0), Split.one_way(total > 0)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A condition, its saving over sending all rows right, and whether it swaps the two children.

    `honest` decides between conditions: the saving of a condition on categories, on other cases than those that chose
    its levels; None: `saved`.
    """

    split: Split
    saved: int
    swaps: bool = False
    honest: float | None = None

    @property
    def judged(self) -> float:
        """The saving by which conditions are compared."""
        return self.saved if self.honest is None else self.honest


def best_threshold(
    value: np.ndarray, saving: np.ndarray, *, is_sum: bool = True
) -> tuple[int, float, bool, bool] | None:
    """The threshold along a number that saves most, by one sort.

    Parameters
    ----------
    value : float64 array of shape (m,)
        NaN = missing: these rows together go to the child that is better for them.
    saving : int64 array of shape (m,)
        What a row saves in the left child over the right one.
    is_sum : bool, default True
        Thresholds on weighted sums are midway between two values; those on a column are short numbers.

    Returns
    -------
    saved, threshold, low_left, missing_left
        low_left: rows with `value <= threshold` go to the left child, else to the right one. missing_left: missing
        values go to the left child. Ties go to the threshold in the widest gap. None if all values are equal.

    Examples
    --------
    >>> import numpy as np
    >>> best_threshold(np.array([1.0, 2.0, 4.0, np.nan]), np.array([-1, -1, 3, 2]))
    (5, 3.0, False, True)
    """
    known = ~np.isnan(value)
    missing = int(saving[~known].sum())
    order = np.argsort(value[known])
    ascending, low = value[known][order], np.cumsum(saving[known][order])
    cut = np.flatnonzero(ascending[1:] != ascending[:-1])
    if len(cut) == 0:
        return None
    total = int(low[-1])
    saved = np.maximum(low[cut], total - low[cut])
    best = cut[saved == saved.max()]
    with np.errstate(over="ignore", invalid="ignore"):  # sums may have overflowed
        gap = ascending[best + 1] - ascending[best]
        at = int(best[np.argmax(np.nan_to_num(gap))])
        threshold = float((between if is_sum else short_between)(ascending[at], ascending[at + 1]))
    low_left = bool(2 * low[at] >= total)
    low_is_heavier = bool(2 * np.abs(saving[known][order[: at + 1]]).sum() >= np.abs(saving[known]).sum())
    missing_left = missing > 0 if missing else low_left == low_is_heavier
    return int(saved.max()) + max(missing, 0), threshold, low_left, missing_left


def numeric_candidate(problem: CostProblem, reduced: ReducedProblem, split: Split) -> Candidate | None:
    """The best threshold of a condition on one column or on a weighted sum; None if it splits nothing.

    If numbers of a sum have missing values, either the means replace them, or all rows with a missing value go to one
    child, whichever saves more; ties go to the means.
    """
    if split.columns is None or split.codes is None:
        tried = [split]
    else:
        tried = [replace(split, fill=problem.rows.means[split.columns])]
        if problem.rows.has_missing[split.columns[split.codes < 0]].any():
            tried.append(replace(split, fill=np.where(split.codes < 0, np.nan, 0.0)))
    found = [_thresholded(values_of(problem, each, reduced.rows), reduced, each) for each in tried]
    return max((each for each in found if each is not None), key=lambda each: each.saved, default=None)


def values_of(problem: CostProblem, split: Split, rows: np.ndarray) -> np.ndarray:
    """The number that a condition compares with its threshold: float64 (m,), NaN if missing."""
    if split.columns is None:
        return problem.rows.X[rows, split.feature]
    assert split.codes is not None
    assert split.weights is not None
    assert split.fill is not None
    return problem.rows.sums(rows, split.columns, split.codes, split.weights, split.fill, problem.threads)


def _thresholded(value: np.ndarray, reduced: ReducedProblem, split: Split) -> Candidate | None:
    """The best threshold along the number used by a condition."""
    found = best_threshold(value, reduced.saving, is_sum=split.columns is not None)
    if found is None:
        return None
    saved, threshold, low_left, missing_left = found
    split = replace(split, threshold=threshold, missing_left=missing_left == low_left)
    return Candidate(split, saved, not low_left)


def best_axis(problem: CostProblem, reduced: ReducedProblem) -> Candidate | None:
    """The condition on one column that saves most, over all columns and cuts; ties go to the first column."""
    rows = problem.rows

    def best_cut(feature: int) -> tuple[float, int, bool]:
        code, n_codes = rows.codes[feature][reduced.rows].astype(np.int32, copy=False), rows.n_codes[feature]
        if rows.is_categorical[feature]:
            if problem.categories.cat_smooth is not None:
                return choose_levels(problem, reduced, feature).judged, 0, True
            # The best subset: each category goes to the child that is better for it.
            return int(np.maximum(_sums_by_code(code, reduced.saving, n_codes + 1), 0).sum()), 0, True
        scratch = np.empty((2, n_codes + 1), np.int64)
        return best_code_cut(code, reduced.saving, n_codes, scratch[0], scratch[1])

    best: tuple[float, int, int, bool] | None = None
    for feature, (saved, cut, low_left) in enumerate(problem.threads.run(best_cut, range(len(rows.codes)))):
        if cut >= 0 and (best is None or saved > best[0]):
            best = saved, feature, int(cut), bool(low_left)
    if best is None:
        return None
    saved, feature, cut, low_left = best
    if not rows.is_categorical[feature]:
        return _cut_at(problem, reduced, feature, cut, low_left, int(saved))
    if problem.categories.cat_smooth is None:
        return Candidate(_subset_split(rows.codes[feature], rows.n_codes[feature], feature, reduced), int(saved))
    return choose_levels(problem, reduced, feature)


def choose_levels(problem: CostProblem, reduced: ReducedProblem, feature: int) -> Candidate:
    """The condition on a categorical column: each level goes to the child that is better for it, rare ones are pooled.

    The saving of a level per case is shrunk towards the mean of all care points by `cat_smooth` cases, and one side has
    at most `max_cat_threshold` categories. For the honest saving one half of the cases chooses the sides and the other
    half measures the saving, both ways, with the coins of `toprank.tree.categories`.
    """
    search, n_codes = problem.categories, problem.rows.n_codes[feature]
    code = problem.rows.codes[feature][reduced.rows]
    cases = problem.rows.weight[reduced.rows] * problem.rows.unit
    sides = reduced.saving > 0, reduced.saving < 0
    sums = np.array([_sums_by_code(code[side], reduced.saving[side], n_codes + 1) for side in sides])
    counts = np.array([np.bincount(code[side], cases[side], n_codes + 1) for side in sides])
    present = np.flatnonzero(counts.sum(axis=0))
    is_rare = counts.sum(axis=0)[present] < search.min_data_per_group
    level = np.cumsum(~is_rare) - 1  # of each present code; rare ones are the last level
    level[is_rare] = (~is_rare).sum()
    n_levels = int(level.max(initial=-1)) + 1
    members = np.bincount(level, minlength=n_levels)
    level_counts = np.array([np.bincount(level, each[present], n_levels) for each in counts])
    level_sums = np.array([_sums_by_code(level, each[present], n_levels) for each in sums])
    goes_left = _sides_of_levels(level_sums.sum(axis=0), level_counts.sum(axis=0), members, search)
    saved = int(level_sums[:, goes_left].sum())
    honest = float(saved)
    if n_levels > FEW_LEVELS:
        honest = min(honest, _honest_saving(level_sums, level_counts, members, search))
    categories = np.zeros(256, bool)
    sent_left, n_left = goes_left[level], int(members[goes_left].sum())
    most = np.inf if search.max_cat_threshold is None else search.max_cat_threshold
    mass = np.abs(level_sums).sum(axis=0)
    if min(n_left, len(present) - n_left) <= most < max(n_left, len(present) - n_left):
        categories[:] = n_left > most  # the others go to the side that need not be listed
    else:
        categories[:] = 2 * mass[goes_left].sum() >= mass.sum()
    categories[present] = sent_left
    categories[n_codes:] = categories[n_codes]  # unseen codes count as missing values
    split = Split(CATEGORY, 1.0, feature, missing_left=bool(categories[n_codes]), categories=categories)
    return Candidate(split, saved, honest=honest)


def _sides_of_levels(saving: np.ndarray, cases: np.ndarray, members: np.ndarray, search: CategorySearch) -> np.ndarray:
    """Levels that go left: those that save there on average, up to the size limit of a side."""
    smooth = float(search.cat_smooth or 0.0)
    prior = smooth * saving.sum() / max(cases.sum(), 1.0)
    mean = (saving + prior) / np.maximum(cases + smooth, 1e-300)  # a level may have no cases in a half
    goes_left = mean > 0
    most = search.max_cat_threshold
    if most is None or min(members[goes_left].sum(), members[~goes_left].sum()) <= most:
        return goes_left
    order = np.argsort(-mean, kind="stable")
    first, last = np.zeros(len(mean), bool), np.ones(len(mean), bool)
    first[order[np.cumsum(members[order]) <= most]] = True
    last[order[np.cumsum(members[order[::-1]])[::-1] <= most]] = False
    return first if saving[first].sum() >= saving[last].sum() else last


def _honest_saving(sums: np.ndarray, counts: np.ndarray, members: np.ndarray, search: CategorySearch) -> float:
    """Saving on one half of the cases of the sides chosen by the other half, both ways; mean over the halvings.

    `sums` and `counts`, (2, n_levels), are those of the care points that are better on the left, and on the right.
    """
    by_size = np.lexsort((-counts[0], -counts.sum(axis=0)))
    sums, counts, members = sums[:, by_size].astype(np.float64), counts[:, by_size], members[by_size]
    n_cases = np.maximum(np.rint(counts), 1.0)
    exact = np.minimum(n_cases, N_COINS).astype(np.int64)
    place, total = np.arange(counts.shape[1]), 0.0
    for heads in coins():
        tossed = np.array([heads[place, kind, exact[kind]] for kind in (0, 1)], np.float64)
        few = n_cases <= N_COINS
        share = np.where(few, tossed / n_cases, 0.5 + (tossed - 0.5 * N_COINS) / np.sqrt(N_COINS * n_cases))
        for guide in (share, 1.0 - share):
            goes_left = _sides_of_levels((sums * guide).sum(axis=0), (counts * guide).sum(axis=0), members, search)
            total += float((sums * (1.0 - guide)).sum(axis=0)[goes_left].sum())
    return total / N_HALVINGS


def _sums_by_code(code: np.ndarray, value: np.ndarray, n_codes: int) -> np.ndarray:
    """Sum of the values of each code: int64 (n_codes,), exact where floats would round."""
    sums = np.zeros(n_codes, np.int64)
    np.add.at(sums, code, value)
    return sums


def _subset_split(codes: np.ndarray, n_codes: int, feature: int, reduced: ReducedProblem) -> Split:
    """The best subset of categories; those without care points go to the heavier side."""
    code = codes[reduced.rows]
    sums, mass = (_sums_by_code(code, value, 256) for value in (reduced.saving, np.abs(reduced.saving)))
    goes_left = sums > 0
    goes_left[mass == 0] = 2 * mass[goes_left].sum() >= mass.sum()
    goes_left[n_codes:] = goes_left[n_codes]  # unseen codes count as missing values
    return Split(CATEGORY, 1.0, feature, missing_left=bool(goes_left[n_codes]), categories=goes_left)


def _cut_at(
    problem: CostProblem, reduced: ReducedProblem, feature: int, cut: int, low_left: bool, saved: int
) -> Candidate:
    """A condition on a number, with a short threshold between the care points on both sides."""
    code, value = problem.rows.codes[feature][reduced.rows], problem.rows.X[reduced.rows, feature]
    n_codes = problem.rows.n_codes[feature]
    is_low, is_high, is_missing = code <= cut, (code > cut) & (code < n_codes), code == n_codes
    threshold = float(short_between(value[is_low].max(), value[is_high].min())) if is_high.any() else np.inf
    missing = int(reduced.saving[is_missing].sum())
    mass = np.abs(reduced.saving)
    missing_left = missing > 0 if missing else low_left == bool(mass[is_low].sum() >= mass[is_high].sum())
    if not is_high.any() and not missing:
        missing_left = not low_left  # the cut separates missing values from the others
    split = Split(NUMERIC, 1.0, feature, threshold, missing_left == low_left)
    return Candidate(split, saved, not low_left)


def fitted_sum(
    problem: CostProblem, reduced: ReducedProblem, start: LinearFit | None, max_steps: int = NEWTON_STEPS
) -> tuple[Split | None, LinearFit] | None:
    """Direction of a weighted L1 logistic regression on the care points; its threshold is not set yet.

    The weight of a care point is the cost of the wrong child; the penalty is alpha. None if all weights are 0; no Split
    if all weights are on one categorical column: `best_axis` knows the best condition on it.
    """
    feature, code, _, standard = problem.rows.standard
    prefers_right = reduced.saving < 0
    if len(feature) == 0 or prefers_right.all() or not prefers_right.any():
        return None
    rows, weight = reduced.rows, np.abs(reduced.saving) * problem.unit
    if len(rows) > FIT_ROWS:
        chosen = np.sort(np.random.default_rng(0).choice(len(rows), FIT_ROWS, replace=False))
        scale = weight.sum() / weight[chosen].sum()
        rows, weight, prefers_right = rows[chosen], weight[chosen] * scale, prefers_right[chosen]
    fit = fit_l1_logistic(
        standard,
        prefers_right,
        weight,
        max(problem.alpha, LEAST_PENALTY * float(weight.sum())),
        start=start,
        rows=rows if len(rows) < len(problem) else None,  # avoids a copy of all rows
        tolerance=FIT_TOLERANCE,
        max_iter=max_steps,
        threads=problem.threads,
    )
    used = np.flatnonzero(np.abs(fit.weight) > NOISE * np.abs(fit.weight).max(initial=0.0))
    if len(used) == 0:
        return None
    if len(np.unique(feature[used])) == 1:  # a sum of one column is a condition on one column
        return None if code[used[0]] >= 0 else Split(NUMERIC, 1.0, int(feature[used[0]])), fit
    return sum_split(problem, used, fit.weight[used]), fit


def sum_split(problem: CostProblem, used: np.ndarray, weight: np.ndarray) -> Split:
    """A weighted sum of terms scaled to standard deviation 1, so that margins are comparable.

    `used` are positions among the columns of `problem.rows.standard`, `weight` the weights on these, standardised.
    """
    feature, code, spread, _ = problem.rows.standard
    order = np.argsort(-np.abs(weight), kind="stable")
    columns, codes, weights = feature[used[order]], code[used[order]], weight[order] / spread[used[order]]
    weights = weights / problem.rows.spread_of_sum(columns, codes, weights, problem.threads)
    fill, norm = problem.rows.means[columns], float(np.abs(weight).sum())
    return Split(OBLIQUE, norm, columns=columns, codes=codes, weights=weights, fill=fill)
