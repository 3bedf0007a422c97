"""RankBoost on bins: masses of bins, the best weak ranking of all columns, and how it changes scores."""

import numpy as np

from toprank._core.jit import kernel


@kernel
def add_masses(binned, offsets, is_positive, mass, out):
    """Add the mass of each row to the bins of its values, positives and negatives apart.

    Pre:  binned uint8 (n, n_features); offsets int64 (n_features,): first bin of each column; mass int64 (n,).
    Post: out int64 (total_bins, 2), added to: positives, negatives. Sums of integers do not depend on their order.
    Cost: n * n_features additions.
    """
    for i in range(binned.shape[0]):
        side = 0 if is_positive[i] else 1
        for f in range(binned.shape[1]):
            out[offsets[f] + np.int64(binned[i, f]), side] += mass[i]


@kernel
def best_stump(masses, offsets, n_bins, is_categorical, missing_side, best):
    """Find the weak ranking with the largest |r|; ties go to the first column and the first cut.

    A weak ranking h is 1 for values above a threshold, or of one category, and 0 for the others; r is the mean of h
    over the positives minus that over the negatives, by mass. A missing value has h = 1/2, or, with missing_side, 0 or
    1, whichever makes |r| larger.

    Pre:  masses int64 (total_bins, 2); the bin of missing values follows the n_bins bins of a column. Both classes have
          mass.
    Post: best float64 (4,): r, column (-1 if no h tells anything), last bin below the threshold or the category,
          h of missing values.
    """
    best[0] = 0.0
    best[1] = -1.0
    for f in range(n_bins.shape[0]):
        start, last = offsets[f], offsets[f] + np.int64(n_bins[f])
        positive = np.int64(0)
        negative = np.int64(0)
        for b in range(start, last + 1):
            positive += masses[b, 0]
            negative += masses[b, 1]
        missing = masses[last, 0] / positive - masses[last, 1] / negative
        above_positive = positive - masses[last, 0]
        above_negative = negative - masses[last, 1]
        n_cuts = np.int64(n_bins[f])
        if not missing_side and (n_cuts == 1 or not is_categorical[f]):
            n_cuts -= 1  # a cut with all known values on one side
        for cut in range(n_cuts):
            if is_categorical[f]:
                above_positive = masses[start + cut, 0]
                above_negative = masses[start + cut, 1]
            else:
                above_positive -= masses[start + cut, 0]
                above_negative -= masses[start + cut, 1]
            known = above_positive / positive - above_negative / negative
            for side in range(2 if missing_side else 1):
                default = np.float64(side) if missing_side else 0.5
                r = known + default * missing
                if abs(r) > abs(best[0]):
                    best[0] = r
                    best[1] = f
                    best[2] = cut
                    best[3] = default


@kernel
def stump_values(codes, n_bins, is_category, cut, below, above, missing, score):
    """Add the value of a stump to the score of each row.

    Pre:  codes uint8 (n,): bins of its column, n_bins for missing values.
    Post: score float64 (n,), added to.
    """
    for i in range(codes.shape[0]):
        code = np.int64(codes[i])
        if code == n_bins:
            score[i] += missing
        elif code == cut if is_category else code > cut:
            score[i] += above
        else:
            score[i] += below
