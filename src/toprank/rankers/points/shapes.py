"""Shapes of a card: boosted on bins, cut into few groups of bins, and refitted together with rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from sklearn.isotonic import isotonic_regression

from toprank._core.shapes import (
    add_newton_sums,
    add_step,
    best_step,
    cut_into_groups,
    log_loss,
    rates_of,
)
from toprank._core.threads import Threads
from toprank.rankers.points.card import Shape, bins_of
from toprank.rankers.points.rule_search import BinTable

N_BAGS = 5
"""Times that shapes are boosted, each time with another share of the rows held out to end the boosting; their mean is
taken. Each row is held out once."""

MOST_ROUNDS, PATIENCE = 200, 6
"""Most passes over all features, and passes without a lower held-out loss after which boosting ends."""

LEARNING_RATE = 0.15
LEAST_CURVATURE = 0.1
"""Least curvature, the sum of p (1 - p), on both sides of a step. With 2, a handful of positives got no card at all: on
48 development tables with fewer than 30 positives, mean AP was .572 with 2 and .614 with 0.1; on 32 tables with more,
.666 and .667."""

ORDER_CURVATURE = 20.0
"""Added to the curvature when categories are ordered, so that rare ones stay near the middle."""

STEP_RIDGE = 1.0

LEAST_SPREAD = 0.02
"""Features whose log-odds vary by less than this have no points."""

PRIOR_RIDGE = 5.0
"""How strongly the refit of all points is drawn towards the boosted shapes."""

MANY_CATEGORIES = 10
"""With more categories than this, luck alone finds an order in which they seem to matter: they are ordered and cut on
different rows, and the refit is held back."""

RIDGE_PER_CATEGORY = 2.0
"""How strongly the refit of a column of many categories is drawn towards the boosted shape, for each category: its
groups were chosen by their outcomes, and a free refit on the same cases would bring back the luck in that choice.
"""

RULE_RIDGE = 1.0

NEWTON_STEPS, LONGEST_STEP = 40, 2.0

NO_STEP = np.zeros(256)


@dataclass(frozen=True, eq=False)
class Grouped:
    """A shape of one feature on groups of bins.

    `group` is the group of each code, missing values last; `values` the log-odds of each group, `cases` the weight of
    the cases in it; `ridge` says how strongly a refit is drawn towards the values. `is_unknown` marks the codes of
    missing values and of categories that no case has, whatever group they are in.
    """

    feature: int
    group: np.ndarray
    values: np.ndarray
    cases: np.ndarray
    ridge: float
    is_unknown: np.ndarray

    def group_of(self, table: BinTable, X: np.ndarray) -> np.ndarray:
        """The group of each row, int64 (n,); the table has the bins."""
        f = self.feature
        return self.group[bins_of(X[:, f], table.edges[f], len(self.group) - 1, bool(table.is_categorical[f]))]

    def usual_points(self, points: np.ndarray) -> float:
        """The points that most cases have, of the points of each group."""
        distinct, which = np.unique(points, return_inverse=True)
        return float(distinct[np.argmax(np.bincount(which, self.cases))])

    def knowing(self, table: BinTable, values: np.ndarray) -> Grouped:
        """The same after more cases, which have these encoded values of the feature."""
        last = len(self.group) - 1
        seen = np.full(last + 1, False)
        seen[last] = np.isnan(values).any()
        if table.is_categorical[self.feature]:
            seen[values[~np.isnan(values)].astype(np.intp)] = True
        return replace(self, is_unknown=self.is_unknown & ~seen)

    def shape(self, table: BinTable, points: np.ndarray) -> Shape:
        """The shape with the points of each group; neighbouring bins with equal points are merged.

        Missing values and categories that no case has get none.
        """
        of_code = np.where(self.is_unknown, 0.0, points[self.group])
        if table.is_categorical[self.feature]:
            return Shape(self.feature, np.zeros(0), of_code[:-1], float(of_code[-1]), is_categorical=True)
        edges, bins = table.edges[self.feature], of_code[:-1]
        is_edge = bins[1:] != bins[:-1]
        return Shape(self.feature, edges[is_edge], bins[np.append(is_edge, True)], float(of_code[-1]))


# --- boosting ---------------------------------------------------------------------------------------------------


def boost_shapes(
    table: BinTable,
    target: np.ndarray,
    weight: np.ndarray,
    offset: np.ndarray,
    direction: np.ndarray,
    features: np.ndarray,
    bag_of: np.ndarray,
    is_first_half: np.ndarray,
    threads: Threads,
) -> np.ndarray:
    """Log-odds of every bin of some features, and 0 of all other bins: float64 (total_bins,), added to an offset.

    With a direction of 1 or -1, int8 (n_features,), a shape must not fall, or not rise. `bag_of` is the bag that holds
    out each row, random numbers below `N_BAGS`. Many categories are ordered on one half of the rows and cut on the
    other, by turns: an order found by luck gains nothing on other rows. `is_first_half` says which half a row is in.
    """

    def boost(bag: int) -> np.ndarray:
        """Shapes of one bag, after the round whose loss on the rows that are out is lowest."""
        is_out = bag_of == bag
        inside, outside = np.where(is_out, 0.0, weight), np.where(is_out, weight, 0.0)
        halves = np.where(is_first_half, inside, 0.0), np.where(is_first_half, 0.0, inside)
        shapes = np.zeros(int(table.at[-1]))
        score, rate = offset.copy(), np.empty(len(offset))
        best, least, best_round = shapes.copy(), log_loss(score, target, outside), -1
        for turn in range(MOST_ROUNDS if len(features) else 0):
            rates_of(score, rate)
            codes, step = table.by_column[0], NO_STEP
            for feature in features.tolist():
                own, n_bins, order = table.by_column[feature], int(table.n_bins[feature]), None
                is_split = table.is_categorical[feature] and n_bins > MANY_CATEGORIES
                sums = np.empty((n_bins + 1, 2))
                add_step(codes, step, halves[turn % 2] if is_split else inside, target, score, rate, own, sums)
                if table.is_categorical[feature]:
                    order = np.argsort(sums[:, 0] / (sums[:, 1] + ORDER_CURVATURE), kind="stable")
                if is_split:
                    add_step(own, NO_STEP, halves[1 - turn % 2], target, score, rate, own, sums)
                codes, step = own, _step_of(sums, order, int(direction[feature]))
                shapes[table.at[feature] : table.at[feature + 1]] += step
            add_step(codes, step, inside, target, score, rate, codes, np.empty((256, 2)))
            loss = log_loss(score, target, outside)
            if loss < least:
                best, least, best_round = shapes.copy(), loss, turn
            elif turn - best_round >= PATIENCE:
                break
        return best

    mean: np.ndarray = sum(threads.run(boost, range(N_BAGS))) / N_BAGS
    return mean


def _step_of(sums: np.ndarray, order: np.ndarray | None, direction: int) -> np.ndarray:
    """The next step of a feature, one value per code; `order` is that of categories, None for numbers."""
    step = np.empty(len(sums))
    n_ordered = len(sums) if order is not None else len(sums) - 1
    order = np.arange(len(sums)) if order is None else order
    best_step(sums, order, n_ordered, LEAST_CURVATURE, STEP_RIDGE, LEARNING_RATE, direction, step)
    return step


# --- cutting ----------------------------------------------------------------------------------------------------


def most_varied(table: BinTable, shapes: np.ndarray, curvature: np.ndarray, max_features: int) -> np.ndarray:
    """The features whose log-odds vary most, most varied first: int (at most max_features,).

    `curvature` is the weight of each row in the log-likelihood, float64 (n,).
    """
    spread = np.zeros(table.n_features)
    for feature in range(table.n_features):
        value, mass = _centred(table, feature, shapes, curvature)
        if mass.sum() > 0:
            spread[feature] = math.sqrt(float((mass * value**2).sum() / mass.sum()))
    by_spread = np.argsort(-spread, kind="stable")[:max_features]
    return by_spread[spread[by_spread] >= LEAST_SPREAD]


def _centred(table: BinTable, feature: int, shapes: np.ndarray, curvature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds of each code of a feature, with mean 0, and the curvature of the rows that have it."""
    value = shapes[table.at[feature] : table.at[feature + 1]]
    mass = np.bincount(table.by_column[feature], curvature, len(value))
    total = mass.sum()
    return value - ((mass * value).sum() / total if total > 0 else 0.0), mass


def cut_shape(
    table: BinTable, feature: int, shapes: np.ndarray, curvature: np.ndarray, weight: np.ndarray, max_bins: int
) -> Grouped:
    """The shape of one feature cut into few groups of bins.

    A missing value with points of its own takes one of the `max_bins`. A category that no row has joins the group of
    missing values, and these join the usual group if no row has one.
    """
    value, mass = _centred(table, feature, shapes, curvature)
    n = len(value) - 1
    group = np.zeros(n + 1, np.int64)
    cases = np.bincount(table.by_column[feature], weight, n + 1)
    has_missing = bool(mass[n] > 0)
    if table.is_categorical[feature]:
        present = np.flatnonzero(mass > 0)
        present = present[np.argsort(value[present], kind="stable")]
    else:
        present = np.arange(n)
    own = np.zeros(len(present), np.int64)
    most = max_bins if table.is_categorical[feature] or not has_missing else max(max_bins - 1, 1)
    cut_into_groups(value[present], mass[present], most, own)
    group[present] = own
    n_groups = int(own.max(initial=0)) + 1
    if not table.is_categorical[feature] and has_missing:
        group[n] = n_groups
        n_groups += 1
    cases = np.bincount(group, cases, n_groups)
    if not has_missing:
        group[n] = int(np.argmax(cases))
    if table.is_categorical[feature]:
        group[np.flatnonzero(mass <= 0)] = group[n]
    total = np.bincount(group, mass, n_groups)
    values = np.bincount(group, mass * value, n_groups) / np.where(total > 0, total, 1.0)
    is_unknown = (mass <= 0) & (table.is_categorical[feature] | (np.arange(n + 1) == n))
    return Grouped(feature, group, values, cases, prior_ridge(bool(table.is_categorical[feature]), n), is_unknown)


def prior_ridge(is_categorical: bool, n_bins: int) -> float:
    """How strongly the refit draws the points of a column with this many bins or categories towards its shape."""
    return RIDGE_PER_CATEGORY * n_bins if is_categorical and n_bins > MANY_CATEGORIES else PRIOR_RIDGE


# --- refitting --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Refit:
    """A logistic model of 0/1 terms: a constant, rules, and groups of bins.

    `worth` is the log-likelihood that each rule is worth, from the curvature at the optimum.
    """

    base: float
    rules: np.ndarray
    groups: list[np.ndarray]
    worth: np.ndarray
    score: np.ndarray

    def in_order(self, table: BinTable, grouped: Sequence[Grouped], direction: np.ndarray, weight: np.ndarray) -> Refit:
        """The same with the groups of monotone features in order: neighbours that are not get their mean."""
        groups = list(self.groups)
        for place, each in enumerate(grouped):
            sign = int(direction[each.feature])
            known = int(each.group[:-1].max()) + 1
            if sign:
                of_rows = each.group[table.by_column[each.feature]]
                mass = np.bincount(of_rows, weight, len(groups[place]))[:known]
                ordered = isotonic_regression(groups[place][:known], sample_weight=mass + 1e-9, increasing=sign > 0)
                groups[place] = np.append(ordered, groups[place][known:])
        return replace(self, groups=groups)


def refit(
    holds: Sequence[np.ndarray],
    group_of: Sequence[np.ndarray],
    priors: Sequence[np.ndarray],
    ridges: Sequence[float],
    target: np.ndarray,
    weight: np.ndarray,
    threads: Threads,
) -> Refit:
    """Fit all terms together by Newton's method: rules with a ridge, groups drawn towards their priors.

    `holds` says for which rows each rule holds, `group_of` is the group of each row, by feature, `priors` are the
    log-odds that the groups of each feature are drawn towards, and `ridges` how strongly.
    """
    n_rules = len(holds)
    first = 1 + n_rules + np.append(0, np.cumsum([len(prior) for prior in priors])).astype(np.int64)
    active = _active_terms(holds, group_of, first, len(target))
    prior = np.concatenate([np.zeros(1 + n_rules), *priors])
    ridge = np.repeat([0.0, RULE_RIDGE, *ridges], [1, n_rules, *map(len, priors)])
    mean = float(np.average(target, weights=weight))
    coefficients = prior.copy()
    coefficients[0] = math.log(max(mean, 1e-12) / max(1 - mean, 1e-12))
    curvature = np.eye(len(prior))
    for _ in range(NEWTON_STEPS):
        gradient, curvature = _newton_sums(active, weight, target, coefficients, threads)
        gradient -= ridge * (coefficients - prior)
        curvature[np.diag_indices_from(curvature)] += ridge + 1e-9
        step = np.linalg.solve(curvature, gradient)
        longest = float(np.abs(step).max())
        coefficients += step * min(1.0, LONGEST_STEP / max(longest, 1e-300))
        if longest < 1e-7:
            break
    variance = np.diag(np.linalg.inv(curvature))[1 : 1 + n_rules]
    rules = coefficients[1 : 1 + n_rules]
    groups = [coefficients[a:b] for a, b in pairwise(first.tolist())]
    padded = np.append(coefficients, 0.0)
    return Refit(float(coefficients[0]), rules, groups, rules**2 / (2 * variance), padded[active].sum(axis=1))


def _active_terms(holds: Sequence[np.ndarray], group_of: Sequence[np.ndarray], first: np.ndarray, n: int) -> np.ndarray:
    """Terms of each row in ascending order, padded with -1: int32 (n, most terms of a row)."""
    width = 1 + (int(np.sum(holds, axis=0).max(initial=0)) if len(holds) else 0) + len(group_of)
    active = np.full((n, width), -1, np.int32)
    active[:, 0] = 0
    place = np.ones(n, np.int64)
    for term, held in enumerate(holds, start=1):
        rows = np.flatnonzero(held)
        active[rows, place[rows]] = term
        place[rows] += 1
    for group, start in zip(group_of, first.tolist(), strict=False):
        active[np.arange(n), place] = start + group
        place += 1
    return active


def _newton_sums(
    active: np.ndarray,
    weight: np.ndarray,
    target: np.ndarray,
    coefficients: np.ndarray,
    threads: Threads,
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and curvature; chunks of rows depend on the table alone, so that threads change nothing."""
    size = 65_536
    chunks = [slice(a, a + size) for a in range(0, len(active), size)]

    def add(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        gradient, curvature = np.zeros(len(coefficients)), np.zeros((len(coefficients),) * 2)
        add_newton_sums(active[rows], weight[rows], target[rows], coefficients, gradient, curvature)
        return gradient, curvature

    parts = threads.run(add, chunks)
    gradient, upper = sum(part[0] for part in parts), sum(part[1] for part in parts)
    return gradient, upper + np.triu(upper, 1).T
