"""How conditions on categories are searched: smoothing, pooling, a limit on names, and the coins of honest gains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from toprank.tree.weights import RowWeights

N_HALVINGS = 4
"""Random halvings of a node's cases behind one honest gain: fewer are noisier, more cost time."""

N_COINS = 256
"""Cases of one level and class up to which a halving is drawn exactly; beyond that a normal approximation serves."""

Rules = tuple[float, float, float, float, float]
"""As kernels take them: cat_smooth and min_data_per_group in cases, max_cat_threshold, and the weight of one case of
each class in integer units; a weight of 0: levels are ordered and cuts are judged on the same cases."""

PLAIN: Rules = (0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class CategorySearch:
    """What an estimator's parameters say of conditions on categories, in LightGBM's words.

    Attributes
    ----------
    cat_smooth : float or None
        Cases by which the rate of a level is pulled to that of the node; None: no smoothing and no honest gains.
    min_data_per_group : int
        Categories of fewer cases in the node are one level.
    max_cat_threshold : int or None
        Categories that one side of a condition has at most.
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


@cache
def coins() -> np.ndarray:
    """Heads among the first k of some coins: int16 (N_HALVINGS, 256, 2, N_COINS + 1), the same in every process.

    The coins are the bits of a SplitMix64 sequence, which no version of numpy changes.
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
