"""Learning red flags: rules one by one, each rule searched again, then the card, then all points together.

Outcomes are mixed with what a teacher, a model of any kind, predicts for cases that it has not seen (`soft_targets`): a
case without a finding that looks like fraud is then not quite a negative, and an accident not quite a positive, so that
rules follow what holds in general.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from toprank._core.shapes import log_loss
from toprank._core.threads import Threads
from toprank.data.cases import Cases
from toprank.errors import InputError
from toprank.rankers.points.rule_search import PRICE, BinRule, BinTable, RuleSearch
from toprank.rankers.points.shapes import N_BAGS, Grouped, Refit, boost_shapes, cut_shape, most_varied, refit
from toprank.rankers.unseen import Fold, held_out_folds, is_partition, predict_left_out
from toprank.tree.columns import Column
from toprank.tree.rows import find_equal_rows, row_hashes
from toprank.tree.weights import balanced_weights

MAX_BINS = 32
"""Bins of a number: thresholds lie between them."""

LEAST_WORTH = 2.25
"""Log-likelihood that a rule must be worth in the whole model."""

TEACHER_SHARE = 0.5
"""Share of the teacher in a soft target; the rest is the outcome."""

TEACHER_FOLDS = 5
"""Folds for the teacher where the ranker has none of its own."""


@dataclass(frozen=True)
class Limits:
    """The size of the model: see `RedFlags`."""

    max_rules: int
    max_conditions: int
    max_total_conditions: int
    max_features: int
    max_bins_per_feature: int


@dataclass(frozen=True, eq=False)
class LearningCases:
    """Cases to learn from."""

    X: np.ndarray  # float64 (n, n_features)
    is_positive: np.ndarray  # bool (n,)
    weight: np.ndarray  # float64 (n,): drawn cases also stand for others; `own_weight` does not count these
    own_weight: np.ndarray  # float64 (n,)
    columns: Sequence[Column]
    groups: np.ndarray | None = None  # int64 (n,) or None: as in `Cases`

    @classmethod
    def from_cases(cls, data: Cases, rows: np.ndarray, weight: np.ndarray) -> LearningCases:
        """Distinct cases among some rows, in an order that does not depend on that of the table.

        Weights of equal cases of a group are added up: weight 2 is the row twice.
        """
        groups = np.zeros(len(rows)) if data.groups is None else data.groups[rows]
        labelled = np.column_stack((data.X[rows], data.is_positive[rows], groups))
        first, which = find_equal_rows(labelled)
        total, own_total = (np.bincount(which, each[rows], len(first)) for each in (weight, data.all_weights))
        X, is_positive = np.ascontiguousarray(labelled[first, :-2]), labelled[first, -2] > 0
        kept = None if data.groups is None else labelled[first, -1].astype(np.int64)
        return cls(X, is_positive, total, own_total, data.columns, kept)

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: np.ndarray) -> LearningCases:
        """Some of the cases."""
        groups = None if self.groups is None else self.groups[rows]
        parts = (self.X[rows], self.is_positive[rows], self.weight[rows], self.own_weight[rows])
        return LearningCases(*parts, self.columns, groups)

    def cases(self) -> Cases:
        """The cases as training data."""
        cases = Cases(self.X, self.is_positive, self.weight, self.columns)
        cases.groups = self.groups
        return cases


@dataclass(frozen=True, eq=False)
class Learned:
    """Rules and shapes on bins, and the log-odds of each."""

    table: BinTable
    rules: list[BinRule]
    grouped: list[Grouped]
    points: Refit


def learn(
    lesson: LearningCases, target: np.ndarray, limits: Limits, direction: np.ndarray, seed: int, threads: Threads
) -> Learned:
    """Learn rules and a card from cases and their soft targets, float64 (n,)."""
    weight = balanced_weights(lesson.is_positive, lesson.weight)  # bins are narrow where rare positives are
    table = BinTable.from_rows(lesson.X, lesson.cases().n_categories, weight, MAX_BINS, threads)
    learner = RuleLearner(table, lesson, target, limits, direction, seed, threads)
    rules = learner.find_rules() if limits.max_rules else []
    grouped = learner.make_card(rules) if limits.max_features else []
    rules, points = learner.prune(rules, grouped)
    return Learned(table, rules, grouped, points.in_order(table, grouped, direction, lesson.weight))


class RuleLearner:
    """One table, and the steps of learning from it."""

    def __init__(
        self, table: BinTable, lesson: LearningCases, target: np.ndarray, limits: Limits, direction: np.ndarray,
        seed: int, threads: Threads,
    ):  # fmt: skip
        self._table, self._lesson, self._target, self._limits = table, lesson, target, limits
        self._direction, self._seed, self._threads = direction, seed, threads
        allowed = np.column_stack((direction <= 0, direction >= 0)).astype(np.uint8)
        most = limits.max_conditions
        self._search = RuleSearch(table, target, lesson.is_positive, lesson.weight, most, allowed, threads)

    def refit(self, rules: Sequence[BinRule], grouped: Sequence[Grouped] = ()) -> Refit:
        """Fit all terms together."""
        holds = []
        for rule in rules:
            held = np.zeros(len(self._table), bool)
            held[rule.rows] = True
            holds.append(held)
        group_of = [each.group[self._table.by_column[each.feature]] for each in grouped]
        priors, ridges = [each.values for each in grouped], [each.ridge for each in grouped]
        return refit(holds, group_of, priors, ridges, self._target, self._lesson.weight, self._threads)

    # --- rules --------------------------------------------------------------------------------------------------

    def find_rules(self) -> list[BinRule]:
        """Rules one by one, as long as they are worth their price; none if chance finds rules as good."""
        if not self._search.is_better_than_luck(np.random.default_rng(self._seed)):
            return []
        rules: list[BinRule] = []
        while len(rules) < self._limits.max_rules:
            self._expect(rules)
            found = self._next_rule(rules)
            if found is None or self._n_conditions([*rules, found]) > self._limits.max_total_conditions:
                break
            rules.append(found)
        return self.prune(self._searched_again(rules), [])[0]

    def _expect(self, rules: Sequence[BinRule]) -> None:
        self._search.expect(1.0 / (1.0 + np.exp(-self.refit(rules).score)), rules)

    def _next_rule(self, rules: Sequence[BinRule]) -> BinRule | None:
        """The best new rule, or the best rule inside one of the rules."""
        best = self._search.best_rule()
        for parent in rules:
            is_free = not any(self._direction[f] for f in parent.masks)  # a correction could turn its direction around
            if parent.parent is None and is_free and parent.n_conditions < self._limits.max_conditions:
                inside = self._search.best_inside(parent)
                if inside is not None and (best is None or inside.value > best.value):
                    best = inside
        return best

    def _searched_again(self, rules: list[BinRule]) -> list[BinRule]:
        """The rules, each taken out once and replaced by the best rule for its place if that is better."""
        value = self._value(rules)
        parents = {id(rule.parent) for rule in rules}
        for place, rule in enumerate(rules):
            if rule.parent is not None or id(rule) in parents:
                continue
            self._expect([*rules[:place], *rules[place + 1 :]])
            other = self._search.best_rule()
            trial = rules if other is None else [*rules[:place], other, *rules[place + 1 :]]
            is_allowed = self._n_conditions(trial) <= self._limits.max_total_conditions
            if trial is not rules and is_allowed and (value_of_trial := self._value(trial)) > value + 1e-9:
                rules, value = trial, value_of_trial
        return rules

    def _value(self, rules: Sequence[BinRule]) -> float:
        """Log-likelihood of the rules minus the price of their conditions."""
        loss = log_loss(self.refit(rules).score, self._target, self._lesson.weight)
        return -float(loss) - PRICE * self._n_conditions(rules)

    def _n_conditions(self, rules: Sequence[BinRule]) -> int:
        return sum(rule.n_conditions for rule in rules)

    def prune(self, rules: list[BinRule], grouped: Sequence[Grouped]) -> tuple[list[BinRule], Refit]:
        """Drop rules worth too little, the least first, and flags that lower the score; return the rest and its points.

        A rule inside a dropped one stands on its own if it raises the score, else it goes too.
        """
        points = self.refit(rules, grouped)
        while rules:
            worth = points.worth.copy()
            worth[[rule.parent is None and beta <= 0 for rule, beta in zip(rules, points.rules, strict=True)]] = -1.0
            least = int(np.argmin(worth))
            if worth[least] >= LEAST_WORTH:
                break
            dropped = rules[least]
            kept = [(rule, beta) for rule, beta in zip(rules, points.rules, strict=True) if rule is not dropped]
            rules = [
                rule if rule.parent is not dropped else replace(rule, parent=None)
                for rule, beta in kept
                if rule.parent is not dropped or beta > 0
            ]
            points = self.refit(rules, grouped)
        return rules, points

    # --- card ---------------------------------------------------------------------------------------------------

    def make_card(self, rules: Sequence[BinRule]) -> list[Grouped]:
        """Shapes of the features that matter most beside the rules.

        Features with similar values share what they say. Those that are kept are boosted again by themselves, so that
        they take over what the others said.
        """
        lesson, offset = self._lesson, self.refit(rules).score
        rate = 1.0 / (1.0 + np.exp(-offset))
        curvature = lesson.weight * rate * (1.0 - rate)
        is_second, bag_of = np.divmod(row_hashes(lesson.X, self._seed) % np.uint64(2 * N_BAGS), np.uint64(N_BAGS))
        features = np.flatnonzero(self._table.n_bins > 0)
        while True:
            shapes = boost_shapes(
                self._table, self._target, lesson.weight, offset, self._direction, features, bag_of, is_second == 0,
                self._threads,
            )  # fmt: skip
            kept = most_varied(self._table, shapes, curvature, self._limits.max_features)
            if len(features) <= self._limits.max_features:
                most = self._limits.max_bins_per_feature
                return [cut_shape(self._table, f, shapes, curvature, lesson.weight, most) for f in kept.tolist()]
            features = np.sort(kept)


# --- soft targets -------------------------------------------------------------------------------------------------


class Teacher:
    """A model that predicts rates of encoded rows; `estimator` None means gradient boosting with fixed settings."""

    def __init__(self, estimator: Any, is_categorical: np.ndarray):
        self._estimator, self._is_categorical = estimator, is_categorical

    def predictions(
        self, lesson: LearningCases, tasks: Sequence[tuple[np.ndarray, list[np.ndarray]]], threads: Threads
    ) -> list[list[np.ndarray]]:
        """For each task fit on some rows and predict others; return the rates of each set of rows."""
        return threads.run(lambda task: self._predict(lesson, *task), list(tasks))

    def _predict(self, lesson: LearningCases, inside: np.ndarray, others: list[np.ndarray]) -> list[np.ndarray]:
        is_positive, weight = lesson.is_positive[inside], lesson.weight[inside]
        if is_positive.all() or not is_positive.any():
            return [np.full(len(rows), float(is_positive[0])) for rows in others]
        X = lesson.X[inside]
        is_empty = np.isnan(X).all(axis=0)
        X[:, is_empty] = 0.0
        model = clone(self._estimator) if self._estimator is not None else HistGradientBoostingClassifier(
            learning_rate=0.08, max_iter=100, max_leaf_nodes=15, min_samples_leaf=10, l2_regularization=1.0,
            categorical_features=self._is_categorical > 0, early_stopping=False, random_state=0,
        )  # fmt: skip
        is_weighted = not np.all(weight == weight[0])
        if is_weighted and not has_fit_parameter(model, "sample_weight"):
            raise InputError(
                f"The teacher {type(model).__name__} must accept sample_weight: equal cases are merged and weighted. "
                "Hint: use HistGradientBoostingClassifier, which also reads missing values."
            )
        with threadpool_limits(1, "openmp"):  # sums in parallel depend on the number of threads
            model.fit(X, is_positive.astype(np.int8), **({"sample_weight": weight} if is_weighted else {}))
            found = []
            for rows in others:
                asked = lesson.X[rows]
                asked[:, is_empty] = 0.0
                found.append(_positive_rates(model, asked))
        return found


def _positive_rates(model: Any, X: np.ndarray) -> np.ndarray:
    """Rates of positives, checked."""
    rates = np.asarray(model.predict_proba(X), np.float64)
    if rates.shape != (len(X), 2) or not np.all((rates >= 0) & (rates <= 1)):
        raise InputError(
            f"The teacher {type(model).__name__} must give one rate from 0 to 1 per class and row, but its "
            f"predict_proba gave an array of shape {rates.shape}. Hint: use a classifier with calibrated rates."
        )
    return rates[:, 1]


def soft_targets(
    lesson: LearningCases, teacher: Teacher, folds: Sequence[Fold], random_state: Any, threads: Threads
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Soft targets for the model of all cases, and for the model of each fold, NaN in its held-out rows.

    No case is predicted by a model that saw its outcome. When hit rates are estimated by folds, neither is any case of
    a fold by a model that saw the fold held out: with one model for every two folds left out, each model serves two.
    """
    own = [fold.held_out for fold in folds]
    if len(own) > 2 and is_partition(own, np.arange(len(lesson))):
        of_all, of_folds = predict_left_out(own, len(lesson), lambda tasks: teacher.predictions(lesson, tasks, threads))
        return _mixed(lesson, of_all), [_mixed(lesson, rate) for rate in of_folds]
    of_folds = []
    for fold in folds:
        target = np.full(len(lesson), np.nan)
        target[fold.inside] = _alone(lesson.take(fold.inside), teacher, random_state, threads)
        of_folds.append(target)
    return _alone(lesson, teacher, random_state, threads), of_folds


def _alone(lesson: LearningCases, teacher: Teacher, random_state: Any, threads: Threads) -> np.ndarray:
    """Soft targets by folds of their own; the outcomes if a class is too small for folds."""
    folds = held_out_folds(lesson.cases(), TEACHER_FOLDS, random_state, len(lesson))
    rate = np.full(len(lesson), np.nan)
    tasks = [(fold.inside, [fold.held_out]) for fold in folds]
    for fold, found in zip(folds, teacher.predictions(lesson, tasks, threads), strict=True):
        rate[fold.held_out] = found[0]
    return _mixed(lesson, rate)


def _mixed(lesson: LearningCases, rate: np.ndarray) -> np.ndarray:
    """Outcomes mixed with a teacher's rates where there are any."""
    own = lesson.is_positive.astype(np.float64)
    return np.where(np.isnan(rate), own, own + TEACHER_SHARE * (rate - own))
