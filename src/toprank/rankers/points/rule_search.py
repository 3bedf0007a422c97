"""A table in few bins, and the search for rules on it: a beam of conditions, chosen again, and rules inside rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from toprank._core.rule_search import IS_KNOWN, IS_MISSING, SLOTS, add_rule_sums, best_conditions, keep_rows
from toprank._core.threads import Threads
from toprank.explain.conditions import Condition
from toprank.tree.bin_mapper import BinMapper
from toprank.tree.columns import Column

BEAM_WIDTH = 15
"""Rules that are kept at every step."""

PRICE = 1.5
"""Gain in log-likelihood that a condition must bring."""

LEAST_ROWS, LEAST_POSITIVES = 8.0, 4.0
"""Least weight of all rows and of positives in a rule."""

MOST_NAMED = 3
"""Most categories that a condition names."""

THRESHOLDS = math.log(64)
"""Log of the conditions that a number offers; categories that offer more choices pay the difference."""

PRICE_OF_MISSING = 0.5
"""Price of "or missing", in log-likelihood."""

FIXED_POINT_BITS = 60
"""Weights are scaled so that the sum over all rows takes at most this many bits."""

NULL_DRAWS = 9
"""Times that labels are shuffled, to see what the best rule gains by luck."""

NULL_QUANTILE = 3.14
"""Standard deviations above the mean of the 99 % quantile of a Gumbel distribution."""


class BinTable:
    """Codes of a table in bins, uint8 (n, n_features): bin or category code; the number of bins means missing.

    `at` is the first of each feature's bins, the one of missing values included, in one list of all bins; `edges` are
    the upper edges of all bins of a number but the last, empty for categories.
    """

    def __init__(self, mapper: BinMapper, codes: np.ndarray):
        self.codes, self.by_column = codes, np.ascontiguousarray(codes.T)
        self.n_bins = mapper.n_bins.astype(np.int64)
        self.is_categorical = mapper.is_categorical
        self.at = np.append(0, np.cumsum(self.n_bins + 1))
        self.edges = [
            np.zeros(0) if categorical else mapper.edges[f, : max(n - 1, 0)]
            for f, (n, categorical) in enumerate(zip(self.n_bins.tolist(), self.is_categorical.tolist(), strict=True))
        ]

    @classmethod
    def from_rows(
        cls, X: np.ndarray, n_categories: np.ndarray, weight: np.ndarray, max_bins: int, threads: Threads
    ) -> Self:
        """Bins of the rows of a matrix, all with weight."""
        mapper = BinMapper(max_bins).fit(X, n_categories, weight, threads)
        return cls(mapper, mapper.transform(X, threads).by_row)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.n_bins)

    def n_conditions(self, feature: int, mask: np.ndarray) -> int:
        """Conditions that a set of codes takes: both ends of a range count; 0 if it holds all codes."""
        if mask.all():
            return 0
        if self.is_categorical[feature]:
            return 1
        bins = np.flatnonzero(mask[:-1])
        if len(bins) == 0:
            return 1
        return max(int(bins[0] > 0) + int(bins[-1] < len(mask) - 2), 1)

    def condition(self, feature: int, mask: np.ndarray, column: Column) -> Condition:
        """The condition that a value is in a set of codes."""
        missing = bool(mask[-1])
        if self.is_categorical[feature]:
            return Condition(feature, column, missing=missing, codes=tuple(np.flatnonzero(mask[:-1]).tolist()))
        bins, edges = np.flatnonzero(mask[:-1]), self.edges[feature]
        if len(bins) == 0:
            return Condition(feature, column, low=np.inf, high=-np.inf, missing=missing)
        low = float(edges[bins[0] - 1]) if bins[0] > 0 else -np.inf
        high = float(edges[bins[-1]]) if bins[-1] < len(edges) else np.inf
        return Condition(feature, column, low=low, high=high, missing=missing)


@dataclass(frozen=True, eq=False)
class BinRule:
    """A rule on bins."""

    masks: dict[int, np.ndarray] = field(default_factory=dict)  # codes that qualify, by feature; missing values last
    rows: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))  # rows for which it holds, ascending
    value: float = -np.inf  # gain in log-likelihood minus the price of its conditions, those of its parent apart
    price: float = 0.0  # price of all its conditions
    n_conditions: int = 0  # with those of its parent
    parent: BinRule | None = None  # the rule inside which it was found

    @property
    def key(self) -> tuple[tuple[int, bytes], ...]:
        """What two equal rules have in common."""
        return tuple((f, self.masks[f].tobytes()) for f in sorted(self.masks))


class RuleSearch:
    """Searches for rules whose rows have more positives than a model expects.

    `target` is the share of a positive that each row has, 0 to 1; all weights are above 0. A rule has at most
    `max_conditions`, those of its parent included. `allowed`, uint8 (n_features, 2), says whether "at most" and "above"
    may be asked of each feature.
    """

    def __init__(
        self, table: BinTable, target: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, max_conditions: int,
        allowed: np.ndarray, threads: Threads,
    ):  # fmt: skip
        self._table, self._most, self._allowed, self._threads = table, max_conditions, allowed, threads
        self._target, self._is_positive, self._weight = target, is_positive, weight
        bits = FIXED_POINT_BITS - math.ceil(math.log2(max(float(weight.sum()), 1e-300)))
        self._scale = 2.0 ** min(bits, 1000)
        self._price = self._prices()
        self.all_rows = np.arange(len(table), dtype=np.int32)
        self._values = np.zeros((len(table), 4), np.int64)
        self._known: Sequence[BinRule] = ()
        self._priced: dict[tuple[int, bytes], tuple[int, float]] = {}  # the same sets come back all the time

    def expect(self, rate: np.ndarray, known: Sequence[BinRule] = ()) -> None:
        """Set the rate that the present model expects of each row, float64 (n,), and its rules, which are not new."""
        self._values, self._known = self._fixed(self._target, rate, self._is_positive), known

    def _fixed(self, target: np.ndarray, rate: np.ndarray, is_positive: np.ndarray) -> np.ndarray:
        """Channels of the sums in fixed point."""
        w = self._weight
        channels = np.column_stack((w * target, w * rate, w, w * is_positive))
        return np.round(channels * self._scale).astype(np.int64)

    def _prices(self) -> np.ndarray:
        """Price of a condition on a feature that the rule does not use yet, by feature and slot."""
        table, price = self._table, np.full((self._table.n_features, SLOTS), PRICE)
        for f in range(table.n_features):
            if table.is_categorical[f]:
                price[f, :MOST_NAMED] += [self._surcharge(f, m) for m in range(1, MOST_NAMED + 1)]
            else:
                price[f, 2:4] += PRICE_OF_MISSING
        return price

    def _surcharge(self, feature: int, n_named: int) -> float:
        """What naming so many categories costs more than a threshold."""
        n = int(self._table.n_bins[feature])
        return max(0.0, math.log(max(math.comb(n, min(n_named, n)), 1)) - THRESHOLDS)

    # --- one condition ------------------------------------------------------------------------------------------

    def _sums(self, rows: np.ndarray) -> np.ndarray:
        """Sums over some rows by bin, int64 (total_bins, 4)."""
        table = self._table
        parts = np.array_split(rows, max(1, min(self._threads.n_threads, len(rows) // 8192)))

        def add(part: np.ndarray) -> np.ndarray:
            out = np.zeros((int(table.at[-1]), 4), np.int64)
            add_rule_sums(table.codes, part, self._values, table.at, out)
            return out

        total: np.ndarray = np.add.reduce(self._threads.run(add, parts))
        return total

    def _candidates(self, rule: BinRule) -> Candidates:
        """The best conditions to add to a rule, by feature and slot; inside another, for more or fewer positives."""
        table, d = self._table, self._table.n_features
        found = Candidates(rule, np.full((d, SLOTS), -np.inf), np.zeros((d, SLOTS), np.int64),
                           np.zeros((d, SLOTS, 4), np.int64), np.full((d, 3), -1))  # fmt: skip
        is_free = self._allowed.min(axis=1, keepdims=True)  # a rule that may lower the score asks nothing of the others
        either_sign = rule.parent is not None
        allowed = self._allowed * is_free if either_sign else self._allowed
        best_conditions(
            self._sums(rule.rows), table.at, table.is_categorical, 1.0 / self._scale,
            np.array([LEAST_ROWS, LEAST_POSITIVES]), either_sign, allowed, MOST_NAMED,
            found.gains, found.cuts, found.sums, found.named,
        )  # fmt: skip
        return found

    def _mask(self, found: Candidates, feature: int, slot: int) -> np.ndarray:
        """Codes of a feature that qualify in the rule with one more condition."""
        n = int(self._table.n_bins[feature])
        mask = np.zeros(n + 1, bool)
        if slot == IS_MISSING:
            mask[n] = True
        elif slot == IS_KNOWN:
            mask[:n] = True
        elif self._table.is_categorical[feature]:
            mask[found.named[feature, : slot + 1]] = True
        else:
            cut = int(found.cuts[feature, slot])
            mask[: cut + 1] = slot % 2 == 0
            mask[cut + 1 : n] = slot % 2 == 1
            mask[n] = slot > 1
        known = found.rule.masks.get(feature)
        return mask if known is None else mask & known

    def _price_of(self, masks: dict[int, np.ndarray]) -> tuple[float, int]:
        """Price and number of conditions."""
        total, count = 0.0, 0
        for f, mask in masks.items():
            key = f, mask.tobytes()
            if key not in self._priced:
                self._priced[key] = self._price_of_one(f, mask)
            n, extra = self._priced[key]
            count += n
            total += n * PRICE
            total += extra
        return total, count

    def _price_of_one(self, feature: int, mask: np.ndarray) -> tuple[int, float]:
        """Number of conditions that a set of codes takes, and what it costs more than as many thresholds."""
        n, named = self._table.n_conditions(feature, mask), int(mask[:-1].sum())
        if self._table.is_categorical[feature]:
            return n, self._surcharge(feature, named) if named <= MOST_NAMED else 0.0
        return n, PRICE_OF_MISSING if mask[-1] and named else 0.0

    def _extended(self, found: Candidates, feature: int, slot: int) -> BinRule:
        """The rule with one more condition, without its rows."""
        rule = found.rule
        masks = {**rule.masks, feature: self._mask(found, feature, slot)}
        price, n_conditions = self._price_of(masks)
        value = float(found.gains[feature, slot]) - price + (0.0 if rule.parent is None else rule.parent.price)
        return BinRule(masks, rule.rows, value, price, n_conditions, rule.parent)

    def _with_rows(self, rule: BinRule, rows: np.ndarray, features: Sequence[int]) -> BinRule:
        """The rule with those of `rows` that meet its conditions on some features."""
        for feature in features:
            kept = np.empty(len(rows), np.int32)
            n = keep_rows(self._table.codes, rows, feature, rule.masks[feature].view(np.uint8), kept)
            rows = kept[:n].copy()
        return replace(rule, rows=rows)

    # --- whole rules --------------------------------------------------------------------------------------------

    def best_rule(self) -> BinRule | None:
        """The best rule on all rows; None if none is worth its price."""
        return self._search(BinRule(rows=self.all_rows))

    def best_inside(self, parent: BinRule) -> BinRule | None:
        """The best rule for some of the rows of another, which have more or fewer positives than the rest of it."""
        return self._search(replace(parent, parent=parent, value=-np.inf))

    def _search(self, start: BinRule) -> BinRule | None:
        """The best rule that a beam finds from a start, refined; None if none is worth its price."""
        beam, best, seen = [start], None, set()
        for _ in range(self._most - start.n_conditions):
            every = self._threads.run(self._candidates, beam)
            offers = sorted(
                (-value, i, f, slot) for i, found in enumerate(every) for value, f, slot in self._offers(found)
            )
            beam, sums = [], set()
            for _, i, f, slot in offers:
                if len(beam) == BEAM_WIDTH:
                    break
                rows_key = every[i].sums[f, slot].tobytes()
                if rows_key in sums:
                    continue
                sums.add(rows_key)
                rule = self._extended(every[i], f, slot)
                if rule.key not in seen:
                    seen.add(rule.key)
                    beam.append(self._with_rows(rule, every[i].rule.rows, [f]))
            leader = max((rule for rule in beam if self._is_new(rule)), key=lambda rule: rule.value, default=None)
            if leader is not None and (best is None or leader.value > best.value):
                best = leader
        if best is None or best.value <= 0:
            return None
        refined = self._refined(best, start)
        return refined if self._is_new(refined) else best

    def _is_new(self, rule: BinRule) -> bool:
        """Whether no rule of the model holds for the same rows: points held back by the penalty are not news."""
        return not any(np.array_equal(rule.rows, other.rows) for other in self._known)

    def _offers(self, found: Candidates) -> list[tuple[float, int, int]]:
        """Value, feature and slot of each condition that the rule has room for."""
        rule = found.rule
        spent = rule.price - (0.0 if rule.parent is None else rule.parent.price)
        value = found.gains - spent - self._price
        if rule.n_conditions >= self._most:
            value[:] = -np.inf
        for f in rule.masks:  # a tighter bound on a feature used before takes no further condition
            for slot in np.flatnonzero(np.isfinite(found.gains[f])).tolist():
                extended = self._extended(found, f, slot)
                value[f, slot] = extended.value if extended.n_conditions <= self._most else -np.inf
        features, slots = np.nonzero(np.isfinite(value))
        return list(zip(value[features, slots].tolist(), features.tolist(), slots.tolist(), strict=True))

    def _refined(self, rule: BinRule, start: BinRule) -> BinRule:
        """The rule with each condition freed in turn and chosen again, as long as that raises its value."""
        while True:
            before = rule
            for feature in [f for f in rule.masks if f not in start.masks]:
                if feature in rule.masks:
                    rule = self._chosen_again(rule, feature, start)
            if rule is before:
                return rule

    def _chosen_again(self, rule: BinRule, feature: int, start: BinRule) -> BinRule:
        """The rule with the best condition in place of its conditions on one feature."""
        masks = {f: mask for f, mask in rule.masks.items() if f != feature}
        price, n_conditions = self._price_of(masks)
        less = BinRule(masks, start.rows, -np.inf, price, n_conditions, rule.parent)
        less = self._with_rows(less, start.rows, [f for f in masks if f not in start.masks])
        found = self._candidates(less)
        value, f, slot = max(self._offers(found), default=(-np.inf, -1, -1))
        if value <= rule.value + 1e-9 * max(1.0, abs(rule.value)):  # relative, for large weights
            return rule
        return self._with_rows(self._extended(found, f, slot), less.rows, [f])

    def is_better_than_luck(self, rng: np.random.Generator) -> bool:
        """Whether the best rule for the labels gains more than the best rules for shuffled labels.

        It compares with the 99 % quantile of a Gumbel distribution, which is that of the best of many, fitted to a few
        shuffles. `expect` has to be called after it.
        """
        rate = np.full(len(self._weight), np.average(self._is_positive, weights=self._weight))
        values = self._fixed(self._is_positive, rate, self._is_positive)

        def best_value(values: np.ndarray) -> float:
            self._values = values
            found = self.best_rule()
            return 0.0 if found is None else found.value

        own = best_value(values)
        if own <= 0:
            return False
        lucky = np.array([best_value(rng.permutation(values)) for _ in range(NULL_DRAWS)])  # weights go with labels
        return bool(own > lucky.mean() + NULL_QUANTILE * lucky.std(ddof=1))


@dataclass(frozen=True, eq=False)
class Candidates:
    """The best conditions to add to a rule, by feature and slot; arrays as in `best_conditions`."""

    rule: BinRule
    gains: np.ndarray
    cuts: np.ndarray
    sums: np.ndarray
    named: np.ndarray
