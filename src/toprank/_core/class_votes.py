"""Votes of nearest cases of several classes, for every factor of the distances to some of them."""

import numpy as np

from toprank._core.jit import kernel


@kernel
def nearest_of_classes(distance, gamma, is_member, tie_rank, next_case, kind, scaled):
    """Write the nearest cases of some classes for one row, nearest first, with distances multiplied by gamma.

    Pre:  distance float64 (K, k), increasing along k, infinite where a class has no more cases; gamma float64 (K,);
          is_member bool (K,); tie_rank int64 (K,), all different: at equal distances the higher one comes first;
          next_case int64 (K,) for scratch.
    Post: kind int64 (k,): class of each case, -1 where there is none; scaled float64 (k,).
    Cost: K * k comparisons.
    """
    n_classes, k = distance.shape
    next_case[:] = 0
    for i in range(k):
        best, at = np.inf, -1
        for c in range(n_classes):
            if not is_member[c] or next_case[c] == k:
                continue
            value = gamma[c] * distance[c, next_case[c]]
            if value < best or (value == best and at >= 0 and tie_rank[c] > tie_rank[at]):
                best, at = value, c
        kind[i], scaled[i] = at, best
        if at >= 0:
            next_case[at] += 1


@kernel
def class_votes(distance, gamma, is_moving, tie_rank, threshold, winner, rest):
    """Write how the k nearest cases vote, for every factor of the distances to the moving classes.

    The moving classes have as many of the k places as there are thresholds above the factor. Ties between classes go to
    the lowest tie_rank.

    Pre:  distance float64 (n, K, k), positive, increasing along k, infinite where a class has no more cases;
          gamma float64 (K,), positive; is_moving bool (K,), neither all nor none; tie_rank int64 (K,), all different.
    Post: threshold float64 (n, k), not increasing along k, 0 where there is no such case; winner int64 (n, k + 1), the
          class that wins if the moving classes have 0, 1, ..., k places; rest int64 (n, k), classes of the nearest
          cases of the other classes, -1 where there is none.
    Cost: 3 * n * K * k comparisons.
    """
    n, n_classes, k = distance.shape
    kind, own, other, next_case = np.empty(k, np.int64), np.empty(k), np.empty(k), np.empty(n_classes, np.int64)
    votes = np.empty(n_classes, np.int64)
    is_fixed = ~is_moving
    for row in range(n):
        nearest_of_classes(distance[row], gamma, is_moving, tie_rank, next_case, kind, own)
        nearest_of_classes(distance[row], gamma, is_fixed, tie_rank, next_case, rest[row], other)
        votes[:] = 0
        for i in range(k):
            if rest[row, i] >= 0:
                votes[rest[row, i]] += 1
        for places in range(k + 1):
            if places > 0:
                # The case at that place is among the k nearest if it comes before the case that would then drop out.
                last = k - places
                comes_first, drops_out = kind[places - 1], rest[row, last]
                ratio = 0.0 if comes_first < 0 else other[last] / own[places - 1]
                if comes_first >= 0 and drops_out >= 0 and tie_rank[comes_first] > tie_rank[drops_out]:
                    ratio = np.nextafter(ratio, np.inf)  # comes first at equal distances, too
                threshold[row, places - 1] = ratio
                if comes_first >= 0:
                    votes[comes_first] += 1
                if drops_out >= 0:
                    votes[drops_out] -= 1
            best = 0
            for c in range(1, n_classes):
                if votes[c] > votes[best] or (votes[c] == votes[best] and tie_rank[c] < tie_rank[best]):
                    best = c
            winner[row, places] = best
