"""How conditions on categories are searched: smoothing, pooling, a size limit, and the coins of honest gains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from toprank._core.dtypes import ENTROPY
from toprank._core.splitting import FEW_LEVELS, honest_gain
from toprank.tree.weights import RowWeights

N_HALVINGS = 4
"""Random halvings of a node's cases per honest gain: fewer are noisier, more take longer."""

N_COINS = 256
"""Cases per level and class up to which a halving is drawn exactly; beyond that a normal approximation is used."""

LARGEST_CHANCE = 20.0
"""Honest gain, in units of chi-squared, that noise hardly ever reaches: its mean is 9, its standard deviation 3.5."""

Rules = tuple[float, float, float, float, float]
"""Rules for kernels: cat_smooth and min_data_per_group in cases, max_cat_threshold, and the weight of one case of each
class in integer units; if it is 0, the same cases order levels and evaluate cuts."""

PLAIN: Rules = (0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class CategorySearch:
    """An estimator's parameters for conditions on categories, with LightGBM's names.

    Attributes
    ----------
    cat_smooth : float or None
        Cases by which the rate of a level is shrunk towards that of the node; None: no smoothing and no honest gains.
    min_data_per_group : int
        Categories with fewer cases in the node are pooled into one level.
    max_cat_threshold : int or None
        Largest number of categories on one side of a condition.
    """

    cat_smooth: float | None = None
    min_data_per_group: int = 1
    max_cat_threshold: int | None = None

    def rules(self, weights: RowWeights) -> Rules:
        """The rules for a table whose rows have these weights."""
        if self.cat_smooth is None:
            return PLAIN
        most = np.inf if self.max_cat_threshold is None else float(self.max_cat_threshold)
        return float(self.cat_smooth), float(self.min_data_per_group), most, *weights.cases


def levels_worth_points(positive: np.ndarray, total: np.ndarray, search: CategorySearch) -> np.ndarray:
    """Levels of a column that may get points in a scorecard, given their positives and cases: bool (n_levels,).

    Levels with fewer than `min_data_per_group` cases get none. In a column with many levels none gets any if noise
    could explain its honest gain: an L1 penalty lets a share of any levels through.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.tree.categories import CategorySearch, levels_worth_points
    >>> search = CategorySearch(10.0, 10, None)
    >>> levels_worth_points(np.array([3.0, 9.0, 1.0]), np.array([40.0, 50.0, 8.0]), search)
    array([ True,  True, False])
    """
    if search.cat_smooth is None:
        return total > 0
    is_rare = total < search.min_data_per_group
    positive, total = (np.append(each[~is_rare], each[is_rare].sum()) for each in (positive, total))
    positive, total = positive[total > 0].astype(np.float64), total[total > 0].astype(np.float64)
    n_levels, both = len(total), (float(positive.sum()), float(total.sum()))
    if n_levels <= FEW_LEVELS or not 0 < both[0] < both[1]:
        return ~is_rare
    gain = honest_gain(ENTROPY, positive, total, np.ones(n_levels), n_levels, *both, *both, 1.0,
                       float(search.cat_smooth), np.inf, 1.0, 1.0, coins())  # fmt: skip
    return ~is_rare & (2.0 * np.log(2.0) * gain > LARGEST_CHANCE)


@cache
def coins() -> np.ndarray:
    """Heads among the first k coins: int16 (N_HALVINGS, 256, 2, N_COINS + 1), the same in every process.

    The coins are the bits of a SplitMix64 sequence, which is the same in all versions of numpy.
    """
    shape = (N_HALVINGS, 256, 2, N_COINS)
    state = np.arange(1, np.prod(shape) // 64 + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    state ^= state >> np.uint64(31)
    flips = np.unpackbits(state.astype("<u8").view(np.uint8)).reshape(shape)
    heads = np.zeros((*shape[:-1], N_COINS + 1), np.int16)
    np.cumsum(flips, axis=-1, dtype=np.int16, out=heads[..., 1:])
    heads.flags.writeable = False
    return heads
