"""`RankBoost`: a sum of thresholds on single columns, boosted on pairs of a positive and a negative."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from toprank._compat import Interval, StrOptions
from toprank._core.dtypes import CATEGORY, LEAF, NUMERIC
from toprank._core.stumps import add_masses, best_stump, stump_values
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.errors import InputError
from toprank.rankers.boosting.boosted_ranker import BOOSTED_CONSTRAINTS, BoostedRanker
from toprank.rankers.validation import check_finite
from toprank.tree.additive import DTYPES, AdditiveTrees
from toprank.tree.bin_mapper import BinMapper, row_blocks
from toprank.words.counts import plural

MOST_R = 1.0 - 2.0**-20
"""Largest |r| that decides a weight: a weak ranking without mistakes would have an infinite one."""


@dataclass(kw_only=True, eq=False, repr=False)
class RankBoost(BoostedRanker):
    """RankBoost for two classes: weak rankings are thresholds on one column.

    Every round weights each pair of a positive and a negative by exp(score of the negative - score of the positive),
    takes the threshold that agrees best with the weighted pairs, and adds it to the score. Weights of pairs are
    products of weights of cases, so a round costs one pass over the table, not over the pairs. Needs no XGBoost.

    Parameters
    ----------
    n_estimators : int, default 400
        Most rounds; exactly so many with cv=0.
    learning_rate : float, default 1.0
        Factor on each round's weight; 1 as published.
    max_bins : int, default 255
        Most bins of a number column: thresholds lie between them.
    missing : {"abstain", "side"}, default "abstain"
        What a weak ranking says of a missing value. "abstain": nothing, it stands midway between the two sides. "side":
        the side that agrees better with the pairs, as published.
    early_stopping_rounds, cv
        As in `SGBAP`.
    budget, pos_label, categorical_features, keep_columns, on_interrupt, n_jobs, random_state, verbose
        As in `SGBAP`. The model depends on random_state by the folds alone.

    Attributes
    ----------
    trees_ : AdditiveTrees
        The weak rankings; each adds half of its weight on one side and takes it away on the other.
    pair_loss_ : float64 array of shape (n_rounds_,)
        Mean of exp(score of the negative - score of the positive) over all training pairs after each round: at least
        1 - AUC. It falls from round to round.
    n_rounds_, learning_curve_
        As in `SGBAP`.
    rates_, cutoff_, columns_, classes_
        As in all rankers.

    Notes
    -----
    With h the weak ranking (1 above the threshold, 0 below) and r the weighted mean of h(positive) - h(negative) over
    the pairs, the threshold with the largest |r| gets the weight alpha = 1/2 ln((1 + r) / (1 - r)), which multiplies
    the loss by at most sqrt(1 - r^2). A category is compared with all others, as if its column were one of zeros and
    ones.

    References
    ----------
    .. [1] Freund, Iyer, Schapire, Singer. An efficient boosting algorithm for combining preferences. JMLR 4, 2003.

    Examples
    --------
    >>> from toprank import RankBoost
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(2000, random_state=0)
    >>> model = RankBoost(n_estimators=30, cv=0, budget=20).fit(data.X, data.y)
    >>> len(model.top_k(data.X)), bool(np.all(np.diff(model.pair_loss_) < 0))
    (20, True)
    """

    _parameter_constraints = {
        **BOOSTED_CONSTRAINTS,
        "max_bins": [Interval(Integral, 2, 255, closed="both")],
        "missing": [StrOptions({"abstain", "side"})],
    }

    n_estimators: int = 400
    learning_rate: float = 1.0
    max_bins: int = 255
    missing: str = "abstain"
    early_stopping_rounds: int | None = 50
    cv: Any = 5
    budget: int | float | None = None
    pos_label: Any = None
    categorical_features: Any = None
    keep_columns: Any = None
    on_interrupt: str = "raise"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def _make_cases(
        self, matrix: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None, threads: Threads
    ) -> BinnedCases:
        check_finite(matrix, self.columns_)
        return BinnedCases(matrix, is_positive, weight, self.columns_, max_bins=self.max_bins, threads=threads)

    @property
    def _table_settings(self) -> tuple[Any, ...]:
        return self.max_bins, *super()._table_settings

    def _start(
        self, data: Any, rows: np.ndarray, weight: np.ndarray, threads: Threads, others: np.ndarray | None = None
    ) -> Stumps:
        return Stumps(data, rows, weight[rows], threads, self.learning_rate, self.missing == "side", others)

    def _take(self, growing: Any) -> None:
        super()._take(growing)
        self.pair_loss_ = np.array(growing.pair_loss)

    def _size_in_words(self) -> str:
        n_columns = len(np.unique(self.trees_.feature[~self.trees_.is_leaf]))
        return f"{plural(len(self.trees_), 'weak ranking')} of {plural(n_columns, 'column')}"

    def _figures(self) -> dict[str, Any]:
        n = int(np.sum(self.trees_.gain > 0))  # checks for missing values are no conditions of their own
        return {"n_leaves": 2 * n, "n_trees": len(self.trees_), "n_conditions": n}

    def _to_arrays(self) -> dict[str, np.ndarray]:
        return super()._to_arrays() | {"pair_loss": self.pair_loss_}

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        loss = arrays["pair_loss"]
        if loss.dtype != np.float64 or loss.shape != (len(self.trees_),) or not np.all(loss >= 0):
            raise InputError("Its losses are not one number per tree.")
        self.pair_loss_ = loss


@dataclass(frozen=True)
class Stump:
    """One weak ranking: values above a cut, or one category, against the others. Column -1: it says nothing."""

    column: int
    cut: int
    below: float
    above: float
    missing: float
    gain: float


class Stumps:
    """Weak rankings, chosen one by one on some rows of a table, as `Rounds` grow trees.

    Scores are sums in single precision, as those of the trees are.
    """

    def __init__(
        self, data: BinnedCases, rows: np.ndarray, weight: np.ndarray, threads: Threads, learning_rate: float,
        missing_side: bool, others: np.ndarray | None,
    ):  # fmt: skip
        self._mapper, self._threads = data.mapper, threads
        self._learning_rate, self._missing_side = learning_rate, missing_side
        self._codes, self._is_positive = data.binned.by_row[rows], data.is_positive[rows]
        self._log_weight = np.log(weight)
        self._log_total = sum(math.log(weight[own].sum()) for own in (self._is_positive, ~self._is_positive))
        self._other_codes = None if others is None else data.binned.by_row[others]
        width = self._mapper.n_bins.astype(np.int64) + 1
        self._offsets, self._n_all_bins = np.cumsum(width) - width, int(width.sum())
        self._score = np.zeros(len(rows), np.float32)
        self._other_score = np.zeros(0 if others is None else len(others), np.float32)
        self._stumps: list[Stump] = []
        self.pair_loss: list[float] = []
        self._set_masses()

    @property
    def n_rounds(self) -> int:
        """Number of weak rankings."""
        return len(self._stumps)

    @property
    def other_score(self) -> np.ndarray:
        """Scores of the other rows, float64."""
        return self._other_score.astype(np.float64)

    def step(self) -> None:
        """Choose one more weak ranking."""
        best = np.zeros(4)
        best_stump(self._masses(), self._offsets, self._mapper.n_bins, self._mapper.is_categorical,
                   self._missing_side, best)  # fmt: skip
        r, column = float(np.clip(best[0], -MOST_R, MOST_R)), int(best[1])
        half = float(np.float32(self._learning_rate * math.atanh(r) / 2))  # atanh(r) = 1/2 ln((1 + r) / (1 - r))
        middle = float(np.float32(2.0 * half * (best[3] - 0.5)))
        stump = Stump(column, int(best[2]), -half, half, middle, -math.log1p(-r * r) / 2)
        self._stumps.append(stump)
        self._add(stump, self._codes, self._score)
        if self._other_codes is not None:
            self._add(stump, self._other_codes, self._other_score)
        self._set_masses()
        self.pair_loss.append(math.exp(min(self._log_loss, 700.0)))

    def _set_masses(self) -> None:
        """Weights of the cases for the next round, as integers: exp(-score) of positives, exp(score) of negatives."""
        sign = np.where(self._is_positive, -1.0, 1.0)
        power = self._log_weight + sign * self._score.astype(np.float64)
        bits = min(52, 62 - len(power).bit_length())
        self._mass = np.zeros(len(power), np.int64)
        self._log_loss = -self._log_total
        for rows in (self._is_positive, ~self._is_positive):
            top = power[rows].max()
            part = np.exp(power[rows] - top)
            self._mass[rows] = np.rint(np.ldexp(part, bits)).astype(np.int64)
            self._log_loss += float(top) + math.log(part.sum())

    def _masses(self) -> np.ndarray:
        """Mass of each bin, int64 (n_all_bins, 2)."""

        def add(rows: slice) -> np.ndarray:
            out = np.zeros((self._n_all_bins, 2), np.int64)
            add_masses(self._codes[rows], self._offsets, self._is_positive[rows], self._mass[rows], out)
            return out

        return np.sum(self._threads.run(add, row_blocks(*self._codes.shape)), axis=0)

    def _add(self, stump: Stump, codes: np.ndarray, score: np.ndarray) -> None:
        """Add a weak ranking to scores."""
        if stump.column >= 0:
            values = np.array([stump.below, stump.above, stump.missing], np.float32)
            stump_values(codes[:, stump.column], int(self._mapper.n_bins[stump.column]),
                         bool(self._mapper.is_categorical[stump.column]), stump.cut, *values, score)  # fmt: skip

    def trees(self) -> AdditiveTrees:
        """The weak rankings as trees."""
        return trees_of(self._stumps, self._mapper, self._missing_side)


def trees_of(stumps: Sequence[Stump], mapper: BinMapper, missing_side: bool) -> AdditiveTrees:
    """Weak rankings as trees: a leaf, a condition, or, if missing values abstain, two conditions."""
    nodes: list[dict[str, Any]] = []
    sets: list[np.ndarray] = []
    roots: list[int] = []

    def condition(column: int, categories: np.ndarray | None, threshold: float) -> dict[str, Any]:
        if categories is None:
            return {"kind": NUMERIC, "feature": column, "threshold": threshold}
        sets.append(np.isin(np.arange(256), categories))
        return {"kind": CATEGORY, "feature": column, "category_at": len(sets) - 1}

    for stump in stumps:
        column, at = stump.column, len(nodes)
        roots.append(at)
        if column < 0:
            nodes.append({"kind": LEAF, "value": 0.0})
            continue
        is_category, n_bins = bool(mapper.is_categorical[column]), int(mapper.n_bins[column])
        if not missing_side:  # missing values leave first: a known number, or a category of training, goes left
            known = condition(column, np.arange(n_bins) if is_category else None, math.inf)
            nodes.append(known | {"left": at + 1, "right": at + 2})
        first = len(nodes) + (1 if missing_side else 2)
        threshold = 0.0
        if not is_category:
            cut, is_last = np.array([stump.cut]), stump.cut + 1 >= n_bins
            threshold = float(mapper.thresholds(np.array([column]), cut, np.array([-1]) if is_last else cut + 1)[0])
        # The category goes left, and so do numbers up to the threshold.
        left, right = (stump.above, stump.below) if is_category else (stump.below, stump.above)
        nodes.append(
            condition(column, np.array([stump.cut]) if is_category else None, threshold)
            | {"left": first, "right": first + 1, "gain": stump.gain, "missing_left": int(stump.missing == left)}
        )
        nodes += [{"kind": LEAF, "value": each} for each in ([] if missing_side else [stump.missing]) + [left, right]]
    usual = {"feature": 0, "threshold": 0.0, "left": -1, "right": -1, "missing_left": 0, "category_at": -1,
             "value": 0.0, "cover": 1.0, "gain": 0.0}  # fmt: skip
    arrays = {name: np.array([node.get(name, usual.get(name)) for node in nodes])
              for name in DTYPES if name not in ("category_bits", "root")}  # fmt: skip
    bits = np.array(sets, np.uint8).reshape(-1, 256)
    packed = np.packbits(bits, axis=1, bitorder="little").view(np.uint64).reshape(-1, 4)
    return AdditiveTrees(**arrays, category_bits=packed, root=np.array(roots), n_features=len(mapper.n_bins)).check()
