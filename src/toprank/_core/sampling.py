"""Random rows that depend on their numbers alone, not on how the table is divided."""

import numpy as np

from toprank._core.jit import kernel


@kernel
def draw_rows(seed, turn, offset, share, weight, is_positive, out):
    """Write the weight of each row that is drawn in a turn, with the same chance for all, and 0 for the others.

    A row's lot is a hash of seed, turn and row number (SplitMix64), so any part of a table can be drawn by itself.

    Pre:  seed, turn, offset int64 >= 0: the first row is number `offset`; share float64 in (0, 1); weight float64 (n,);
          is_positive bool (n,).
    Post: out float64 (n,). Returns the number of negatives and of positives with weight that were drawn.
    """
    negatives = 0
    positives = 0
    limit = np.uint64(np.ceil(share * 2.0**53))
    start = np.uint64(seed) * np.uint64(0xA0761D6478BD642F) + np.uint64(turn) * np.uint64(0xD1B54A32D192ED03)
    for i in range(out.shape[0]):
        z = start + (np.uint64(offset) + np.uint64(i) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        # Without branches: lots are random, and a processor would guess every fifth one wrong.
        is_drawn = ((z >> np.uint64(11)) < limit) & (weight[i] > 0.0)
        out[i] = weight[i] * is_drawn
        positives += is_drawn & is_positive[i]
        negatives += is_drawn & (not is_positive[i])
    return negatives, positives
