"""Held-out cases: folds that depend on the content of the rows, and hit rates from held-out scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from toprank.data.cases import Cases, sample_cases
from toprank.metrics.hit_rates import OF_TRAINING, HitRates, fit_hit_rates, on_final_scale
from toprank.rankers.seeds import seed_of
from toprank.tree.rows import row_hashes
from toprank.tree.weights import integer_weights

FOLD_ROWS = 100_000
"""Most cases in all folds together: all positives that fit in half of it, and random negatives, weighted up. Only
the model itself is fitted on the whole table."""


COMMON_ROWS, COMMON_SHARE = 100, 0.05
"""Equal rows of a class that are at least so many, and at least this share of the class, are dealt out one by one. New
cases will equal them, too, and a model of folds that sees none of them misplaces them all."""

OUT_OF_BAG = "out of bag"
"""How bootstrap cases were scored, in words: by the trees that did not draw them."""


@dataclass(frozen=True)
class Fold:
    """One fold: training rows and held-out rows, with the weights of both."""

    inside: np.ndarray
    held_out: np.ndarray
    weight: np.ndarray
    """Of all rows, float64 (n,): 0 for rows in no fold; in a sample, drawn rows also stand for the others."""

    own_weight: np.ndarray
    """As `weight`, but drawn rows stand for themselves alone."""

    @property
    def inside_weight(self) -> np.ndarray:
        """Weights of all rows, 0 for those that are not in training."""
        out = np.zeros_like(self.weight)
        out[self.inside] = self.weight[self.inside]
        return out


@dataclass(frozen=True)
class HeldOut:
    """Held-out cases scored by one model.

    `n_cases` is the number of cases that each row counts; None if that is its weight. A drawn case also stands for
    others, so its weight is larger than its count.
    `seen` and `seen_weight` are the scores and weights of the model's training cases; None if its scores are on the
    scale of the final model.
    `rows` are the rows of the training table; None if the cases are not from it.
    """

    score: np.ndarray
    is_positive: np.ndarray
    weight: np.ndarray
    seen: np.ndarray | None = None
    seen_weight: np.ndarray | None = None
    n_cases: np.ndarray | None = None
    rows: np.ndarray | None = None

    @classmethod
    def from_fold(cls, data: Cases, fold: Fold, score: Callable[[np.ndarray], np.ndarray]) -> HeldOut:
        """Return the held-out rows of a fold, scored by a model of the others."""
        rows, inside = fold.held_out, fold.inside
        seen = score(data.X[inside])
        weight, seen_weight = fold.weight[rows], fold.weight[inside]
        n_cases = fold.own_weight[rows]
        return cls(score(data.X[rows]), data.is_positive[rows], weight, seen, seen_weight, n_cases, rows)


@dataclass(frozen=True)
class Unseen:
    """All held-out cases with their scores, and how they were held out, in words."""

    parts: list[HeldOut]
    source: str

    def hit_rates(self, final: np.ndarray, final_weight: np.ndarray) -> HitRates | None:
        """Return hit rates by score of the final model, given its training scores; None if a class is absent."""
        parts = [part for part in self.parts if len(part.score)]
        score, is_positive, weight = self.on_scale(final, final_weight)
        if not 0 < is_positive.sum() < len(is_positive):
            return None
        fold = np.repeat(np.arange(len(parts)), [len(part.score) for part in parts]) if len(parts) > 1 else None
        n_cases = np.concatenate([part.weight if part.n_cases is None else part.n_cases for part in parts])
        return fit_hit_rates(score, is_positive, weight, fold, final, self.source, n_cases, final_weight)

    def on_scale(self, final: np.ndarray, final_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores of the held-out cases on the scale of the final model, which are positive, and their weights."""
        parts = [part for part in self.parts if len(part.score)]
        if not parts:
            return np.zeros(0), np.zeros(0, bool), np.zeros(0)
        scores = [
            part.score
            if part.seen is None or part.seen_weight is None
            else on_final_scale(part.score, part.seen, part.seen_weight, final, final_weight)
            for part in parts
        ]
        return (np.concatenate(scores), np.concatenate([part.is_positive for part in parts]),
                np.concatenate([part.weight for part in parts]))  # fmt: skip


def rates_of_training(score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> HitRates:
    """Return the hit rates by score of the training cases."""
    return fit_hit_rates(score, is_positive, weight, None, score, OF_TRAINING, knot_weight=weight)


def by_folds(n_folds: int) -> str:
    """Return how cases of folds were scored, in words."""
    return f"{n_folds}-fold cross-validation"


def has_folds(cv: Any) -> bool:
    """False for cv=0."""
    return not (isinstance(cv, int | np.integer) and cv == 0)


def pruning_folds(cv: Any) -> Any:
    """Return the folds to choose a penalty by: `cv`, or 5 folds if cv=0 turns hit rates off."""
    return cv if has_folds(cv) else 5


def held_out_folds(data: Cases, cv: Any, random_state: Any, n_rows: int = FOLD_ROWS) -> list[Fold]:
    """Return folds with both classes on both sides; none for cv=0, or if a class is too small.

    With a number of folds (None: 5), the fold of a row depends on its content, not its position: row order changes
    nothing, weight 2 is the row twice, and equal rows of a class are never on both sides, unless they are very common
    (`COMMON_ROWS`). Nor are the rows of a group, whose fold depends on the group alone. Folds are stratified. They use
    at most `n_rows` rows (`sample_cases`), but all with a splitter, which gets the groups, or given splits.
    """
    if not has_folds(cv):
        return []
    rows, weight = sample_cases(data.is_positive, data.weight, n_rows)
    if cv is None or isinstance(cv, int | np.integer):
        fold = _deal_out(data, rows, 5 if cv is None else int(cv), seed_of(random_state))
        splits = [(rows[fold != f], rows[fold == f]) for f in range(fold.max(initial=-1) + 1)]
    else:
        position = np.arange(len(data.X))
        weight = data.all_weights
        found = check_cv(cv, classifier=True).split(position.reshape(-1, 1), data.is_positive, data.groups)
        splits = [
            tuple(np.asarray(part)[weight[np.asarray(part)] > 0] for part in split) for split in found
        ]  # weight 0 means no row
    own = data.all_weights
    folds = [Fold(inside, held_out, weight, own) for inside, held_out in splits]
    return [f for f in folds if has_both(data.is_positive[f.inside]) and has_both(data.is_positive[f.held_out])]


def _deal_out(data: Cases, rows: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """Return the fold of each row, int (n,); empty if there are fewer than two kinds of positives or of negatives.

    Equal rows of a class are of one kind; with groups, all rows of a group. Groups with positives are dealt out by
    their positives, the others by their rows. The rows of a very common kind are spread over all folds.
    """
    fold = np.zeros(len(rows), np.int64)
    is_positive = data.is_positive[rows]
    cases = integer_weights(is_positive, None if data.weight is None else data.weight[rows]).total
    if data.groups is None:
        hashes = row_hashes(_dense_codes(data.X[rows], data.is_categorical), seed)
    else:
        hashes = row_hashes(data.groups[rows].astype(np.float64)[:, None], seed)
    n_folds = min(n_folds, *(len(np.unique(hashes[of_class])) for of_class in (is_positive, ~is_positive)))
    if n_folds < 2:
        return fold[:0]
    if data.groups is not None:
        has_positive = np.isin(hashes, hashes[is_positive])
        cases = np.where(has_positive & ~is_positive, 0, cases)
        is_positive = has_positive
    for of_class in (is_positive, ~is_positive):
        distinct, which, n_rows = np.unique(hashes[of_class], return_inverse=True, return_counts=True)
        if len(distinct) == 0:  # every group has a positive
            continue
        # Integers below 2**53 as float64 are exact, so that neither row order nor copies change the sums.
        own = cases[of_class]
        count = np.bincount(which, own)
        is_common = (n_rows >= COMMON_ROWS) & (count >= COMMON_SHARE * count.sum()) & (data.groups is None)
        place = _in_turn(np.where(is_common, 0, count), n_folds)
        if len(np.unique(place[~is_common])) < n_folds:  # a few kinds are most of the class: one after the other
            place = np.arange(len(distinct)) % n_folds
        of_rows = place[which]
        for kind in np.flatnonzero(is_common):
            copies = np.flatnonzero(which == kind)
            copies = copies[np.argsort(own[copies], kind="stable")]
            of_rows[copies] = _in_turn(own[copies], n_folds)
        fold[of_class] = of_rows
    return fold


def _in_turn(count: np.ndarray, n_folds: int) -> np.ndarray:
    """Fold of each item: runs of items with about the same sum of counts.

    Examples
    --------
    >>> _in_turn(np.array([2, 2, 4, 1, 1]), 2).tolist()
    [0, 0, 1, 1, 1]
    """
    middle = np.cumsum(count) - count / 2
    return np.minimum(middle * n_folds / max(1, count.sum()), n_folds - 1).astype(np.int64)


def _dense_codes(X: np.ndarray, is_categorical: np.ndarray) -> np.ndarray:
    """Return the rows with renumbered categories, so that categories found only in left-out rows change no code."""
    X = X.copy()
    for feature in np.flatnonzero(is_categorical):
        known = ~np.isnan(X[:, feature])
        X[known, feature] = np.unique(X[known, feature], return_inverse=True)[1]
    return X


def has_both(is_positive: np.ndarray) -> bool:
    """Return True if both classes are present."""
    return bool(0 < is_positive.sum() < len(is_positive))


def is_partition(parts: Sequence[np.ndarray], rows: np.ndarray) -> bool:
    """Return True if each of the rows, in rising order, is in one part and no other."""
    return len(parts) > 0 and np.array_equal(np.sort(np.concatenate(parts)), rows)


def predict_left_out(
    parts: Sequence[np.ndarray],
    n: int,
    predict: Callable[[list[tuple[np.ndarray, list[np.ndarray]]]], list[list[np.ndarray]]],
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Predictions of each row, to learn from, by models that did not see it.

    A model that learns from predictions also learns the outcomes behind them. So the model of a fold, which must not
    know the outcomes of its held-out rows, needs predictions by models that did not see these either. Each model that
    leaves out two parts serves the models of both: 15 fits for 5 parts.

    `parts` are the rows of at least 3 parts, none in two; of n rows, those in no part are NaN. `predict` gets pairs of
    the rows to learn from and a list of sets of rows to predict, and returns the predictions of each set.

    Returns the predictions by models that left out the part of the row, float64 (n,), and those for the model without
    each part, whose own rows are NaN.

    Examples
    --------
    >>> outcome = np.array([1.0, 2.0, 4.0])
    >>> def total(tasks):
    ...     return [[np.full(len(rows), outcome[inside].sum()) for rows in left_out] for inside, left_out in tasks]
    >>> of_all, of_parts = predict_left_out([np.array([0]), np.array([1]), np.array([2])], 3, total)
    >>> of_all.tolist(), of_parts[0].tolist()
    ([6.0, 5.0, 3.0], [nan, 4.0, 2.0])
    """
    every = np.sort(np.concatenate(parts))
    left = [*combinations(range(len(parts)), 1), *combinations(range(len(parts)), 2)]
    tasks = []
    for some in left:
        rows = [parts[a] for a in some]
        tasks.append((np.setdiff1d(every, np.concatenate(rows)), rows))
    of_all, of_parts = np.full(n, np.nan), [np.full(n, np.nan) for _ in parts]
    for some, found in zip(left, predict(tasks), strict=True):
        for a, predicted in zip(some, found, strict=True):
            others = [b for b in some if b != a]
            target = of_parts[others[0]] if others else of_all
            target[parts[a]] = predicted
    return of_all, of_parts
