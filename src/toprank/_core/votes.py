"""Votes of weighted trees on pairs of cases: which of the two ranks higher."""

import numpy as np

from toprank._core.jit import kernel

BLOCK = 1024
"""Pairs whose balance is held at a time, 8 kB of it: it stays in the first cache."""


@kernel
def pair_votes(places, other, count, weight, out):
    """Write for each case how many others rank below it, less how many rank above it, by a weighted vote.

    Pre:  places int16 (n, n_trees): place of each case in each tree, 0 is the top.
          other int16 (n_trees, n_others), C order: the places of those it is compared with.
          count int64 (n_others,): how many cases each of those stands for.
          weight float64 (n_trees,): vote of each tree, such that no sum of them rounds.
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
                for j in range(stop - start):  # selects and one addition: several pairs an instruction
                    part[j] += vote if against[j] > place else (-vote if against[j] < place else 0.0)
            for j in range(stop - start):
                total += count[start + j] * (np.int64(part[j] > 0.0) - np.int64(part[j] < 0.0))
        out[i] = total
