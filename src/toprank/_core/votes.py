"""Votes of weighted trees on pairs of cases: which of the two ranks higher."""

import numpy as np

from toprank._core.jit import kernel

BLOCK = 1024
"""Pairs balanced at a time, 8 kB: they stay in the L1 cache."""


@kernel
def pair_votes(places, other, count, weight, out):
    """Write how many other cases rank below each case, minus how many rank above it, by a weighted vote.

    Pre:  places int16 (n, n_trees): place of each case in each tree, 0 is the top.
          other int16 (n_trees, n_others), C order: places of the cases to compare with.
          count int64 (n_others,): multiplicity of each of those.
          weight float64 (n_trees,): vote of each tree; no sum of them may round.
    Post: out int64 (n,): the sum over the others of count * sign(sum over the trees of weight * sign(other - place)).
    Cost: n * n_trees * n_others comparisons.
    """
    n_trees, n_others = other.shape
    balance = np.empty(min(BLOCK, n_others))
    for i in range(places.shape[0]):
        total = np.int64(0)
        for start in range(0, n_others, BLOCK):
            stop = min(start + BLOCK, n_others)
            part = balance[: stop - start]
            part[:] = 0.0
            for tree in range(n_trees):
                place = places[i, tree]
                vote = weight[tree]
                against = other[tree, start:stop]
                for j in range(stop - start):  # selects and one addition: several pairs per instruction
                    part[j] += vote if against[j] > place else (-vote if against[j] < place else 0.0)
            for j in range(stop - start):
                total += count[start + j] * (np.int64(part[j] > 0.0) - np.int64(part[j] < 0.0))
        out[i] = total
