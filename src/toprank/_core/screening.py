"""Candidates for nearest neighbours from a matrix product in single precision, with rigorous error bounds.

|x - p|^2 = |x|^2 + |p|^2 - 2 x . p. A product of matrices gives all x . p fast, but rounded: 2 x . p is off by at most
`slack` times (|x|^2 + |p|^2), plus `floor` where numbers underflow. For d coordinates, |p| <= 1 and the smallest normal
number u, each x_f, p_f and x_f p_f loses at most u, in all 2 d u (2 + |x|). So every distance lies between two bounds,
and a point whose lower bound exceeds the k-th smallest upper bound is not among the k nearest. What is left are a few
candidates per query, whose distances are then computed exactly.
"""

import numpy as np

from toprank._core.jit import kernel


@kernel
def screen(product, query_square, point_square, slack, floor, left_out, offset, upper, low, candidate, n_candidates):
    """Add the points of a block that may be among the nearest of each query to its candidates.

    Pre:  product float32 (n, b): queries times the points at offset, offset + 1, ...; squares float64.
          slack: bound of the relative error; floor float64 (n,): bound of the absolute error, per query.
          left_out int64 (n,): a point that the query must not find, -1 for none.
          upper float64 (n, k): the smallest upper bounds so far, sorted, infinite at first.
          low float64 and candidate int64 (n, room): lower bounds and positions of the candidates.
          n_candidates int64 (n,): how many there are; room + 1 for a query that has more than fit.
    Cost: n * b comparisons.
    """
    k, room = upper.shape[1], low.shape[1]
    for i in range(product.shape[0]):
        best = upper[i]
        for j in range(product.shape[1]):
            both = query_square[i] + point_square[offset + j]
            middle = both - 2.0 * product[i, j]
            error = slack * both + floor[i]
            least = middle - error
            if least > best[k - 1] or offset + j == left_out[i]:
                continue
            most = middle + error
            if most < best[k - 1]:
                place = k - 1
                while place > 0 and most < best[place - 1]:
                    best[place] = best[place - 1]
                    place -= 1
                best[place] = most
            if n_candidates[i] == room:  # forget those that are out of the question by now
                kept = 0
                for c in range(room):
                    if low[i, c] <= best[k - 1]:
                        low[i, kept], candidate[i, kept] = low[i, c], candidate[i, c]
                        kept += 1
                n_candidates[i] = kept
            if n_candidates[i] < room:
                low[i, n_candidates[i]], candidate[i, n_candidates[i]] = least, offset + j
                n_candidates[i] += 1
            else:
                n_candidates[i] = room + 1


@kernel
def nearest_candidates(queries, points, low, candidate, n_candidates, upper, distance, position):
    """Write the k nearest of each query's candidates by their exact squared distances; ties go to the lower position.

    Pre:  queries float64 (n, d); points float64 (m, d); the others as `screen` left them. Queries with more candidates
          than fit are left alone.
    Post: distance float64 (n, k) and position int64 (n, k): infinite and -1 where there are fewer points.
    Cost: d additions per candidate.
    """
    k, room = distance.shape[1], low.shape[1]
    for i in range(queries.shape[0]):
        if n_candidates[i] > room:
            continue
        distance[i, :] = np.inf
        position[i, :] = -1
        for c in range(n_candidates[i]):
            if low[i, c] > upper[i, k - 1]:
                continue
            at = candidate[i, c]
            total = 0.0
            for f in range(queries.shape[1]):
                gap = queries[i, f] - points[at, f]
                total += gap * gap
            place = k - 1
            if total > distance[i, place] or (total == distance[i, place] and at > position[i, place] >= 0):
                continue
            while place > 0 and (
                total < distance[i, place - 1] or (total == distance[i, place - 1] and at < position[i, place - 1])
            ):
                distance[i, place], position[i, place] = distance[i, place - 1], position[i, place - 1]
                place -= 1
            distance[i, place], position[i, place] = total, at
