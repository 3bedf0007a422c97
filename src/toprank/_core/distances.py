"""Distances between rows, neighbours by brute force, screened by a matrix product, and along a graph.

Every distance is a sum over the coordinates in their order, so that it is the same bit for bit alone, in a batch, and
whichever search asks for it. Euclidean distances stay squared in here; `power` is 2 for them and 1 for city-block
distances.

Screening finds candidates for the nearest from a matrix product in single precision, with rigorous error bounds:
|x - p|^2 = |x|^2 + |p|^2 - 2 x . p. A product of matrices gives all x . p fast, but rounded: 2 x . p is off by at most
`slack` times (|x|^2 + |p|^2), plus `floor` where numbers underflow. For d coordinates, |p| <= 1 and the smallest normal
number u, each x_f, p_f and x_f p_f loses at most u, in all 2 d u (2 + |x|). So every distance lies between two bounds,
and a point whose lower bound exceeds the k-th smallest upper bound is not among the k nearest. What is left are a few
candidates per query, whose distances are then computed exactly.
"""

import numpy as np

from toprank._core.jit import kernel

BLOCK = 512
"""Points per block, 4 kB of distances: they stay in the L1 cache."""


@kernel
def map_rows(points, components, out):
    """Write the image of each point under a linear map.

    Pre:  points float64 (n, d); components float64 (p, d).
    Post: out float64 (n, p).
    Cost: n * p * d multiplications.
    """
    for i in range(points.shape[0]):
        for c in range(components.shape[0]):
            total = 0.0
            for f in range(points.shape[1]):
                total += components[c, f] * points[i, f]
            out[i, c] = total


@kernel
def to_block(query, by_feature, start, stop, power, out):
    """Write the distances of a query to the points from start to stop, several points per instruction.

    Pre:  query float64 (d,); by_feature float64 (d, m), C order: the points, one column each.
    Post: out float64 (stop - start,).
    """
    out[:] = 0.0
    for f in range(by_feature.shape[0]):
        value, column = query[f], by_feature[f, start:stop]
        if power == 2:
            for j in range(stop - start):
                gap = value - column[j]
                out[j] += gap * gap
        else:
            for j in range(stop - start):
                out[j] += abs(value - column[j])


@kernel
def pair_distances(queries, points, position, power, out):
    """Write the distance of each query to each of its points, infinite where the position is -1.

    Pre:  queries float64 (n, d); points float64 (m, d); position int64 (n, k).
    Post: out float64 (n, k).
    Cost: n * k * d additions.
    """
    for i in range(queries.shape[0]):
        for j in range(position.shape[1]):
            at = position[i, j]
            if at < 0:
                out[i, j] = np.inf
                continue
            total = 0.0
            for f in range(queries.shape[1]):
                gap = queries[i, f] - points[at, f]
                total += gap * gap if power == 2 else abs(gap)
            out[i, j] = total


@kernel
def put(distance, position, value, at):
    """Insert a point into a list sorted by distance, then by position; the last one drops out.

    Pre:  distance float64 (k,) and position int64 (k,), sorted; (value, at) comes before the last one.
    """
    place = len(distance) - 1
    while place > 0 and (value < distance[place - 1] or (value == distance[place - 1] and at < position[place - 1])):
        distance[place] = distance[place - 1]
        position[place] = position[place - 1]
        place -= 1
    distance[place] = value
    position[place] = at


@kernel
def brute_force(queries, by_feature, left_out, power, distance, position):
    """Write the k nearest points of each query, nearest first; ties go to the lower position.

    Pre:  queries float64 (n, d); by_feature float64 (d, m), C order: the points, one column each.
          left_out int64 (n,): a point that the query must not find, -1 for none.
    Post: distance float64 (n, k) and position int64 (n, k): infinite and -1 where there are fewer points.
    Cost: n * m * d additions, several points per instruction.
    """
    m, k = by_feature.shape[1], distance.shape[1]
    total = np.empty(BLOCK)
    for i in range(queries.shape[0]):
        nearest, found = distance[i], position[i]
        nearest[:] = np.inf
        found[:] = -1
        for start in range(0, m, BLOCK):
            stop = min(start + BLOCK, m)
            part = total[: stop - start]
            to_block(queries[i], by_feature, start, stop, power, part)
            for j in range(stop - start):  # positions rise, so that a tie with the last one keeps that one
                if part[j] < nearest[k - 1] and start + j != left_out[i]:
                    put(nearest, found, part[j], start + j)


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
            last, at_last = distance[i, k - 1], position[i, k - 1]
            if not (total > last or (total == last and at > at_last >= 0)):
                put(distance[i], position[i], total, at)


@kernel
def along_graph(queries, points, graph, entries, n_entries, width, left_out, power, distance, position):
    """Write near points of each query, found by best-first search along a graph of near neighbours.

    The search begins at the `n_entries` nearest of the entries, keeps the `width` nearest points seen, and ends when
    the neighbours of all of them have been looked at.

    Pre:  queries float64 (n, d); points float64 (m, d); graph int32 (m, g): near points of each point, -1 where there
          are fewer; entries int64 (e,): distinct points; n_entries <= min(e, width); width > k.
          left_out int64 (n,): a point that the search neither finds nor passes through, -1 for none.
    Post: distance float64 (n, k) and position int64 (n, k): infinite and -1 where too few were reached.
    Cost: about n * (e + width * g) * d additions.
    """
    m, d = points.shape
    k = distance.shape[1]
    seen = np.full(m, -1, np.int32)  # the query that looked at each point last
    nearest, found = np.empty(width), np.empty(width, np.int64)
    is_open = np.empty(width, np.bool_)
    first, start = np.empty(n_entries), np.empty(n_entries, np.int64)
    for i in range(queries.shape[0]):
        first[:] = np.inf
        start[:] = -1
        if left_out[i] >= 0:
            seen[left_out[i]] = i
        for e in entries:
            if e == left_out[i]:
                continue
            total = 0.0
            for f in range(d):
                gap = queries[i, f] - points[e, f]
                total += gap * gap if power == 2 else abs(gap)
            if total < first[n_entries - 1]:
                put(first, start, total, e)
        nearest[:] = np.inf
        found[:] = -1
        for s in range(n_entries):
            nearest[s], found[s] = first[s], start[s]
            if start[s] >= 0:
                seen[start[s]] = i
        is_open[:] = found >= 0
        while True:
            here = -1
            for s in range(width):
                if is_open[s]:
                    here = s
                    break
            if here < 0:
                break
            is_open[here] = False
            at = found[here]
            for g in range(graph.shape[1]):
                near = graph[at, g]
                if near < 0 or seen[near] == i:
                    continue
                seen[near] = i
                total = 0.0
                for f in range(d):
                    gap = queries[i, f] - points[near, f]
                    total += gap * gap if power == 2 else abs(gap)
                if total < nearest[width - 1]:
                    place = width - 1
                    while place > 0 and total < nearest[place - 1]:
                        nearest[place] = nearest[place - 1]
                        found[place] = found[place - 1]
                        is_open[place] = is_open[place - 1]
                        place -= 1
                    nearest[place], found[place], is_open[place] = total, near, True
        kept = 0
        for s in range(width):
            if kept < k and found[s] >= 0:
                distance[i, kept], position[i, kept] = nearest[s], found[s]
                kept += 1
        distance[i, kept:] = np.inf
        position[i, kept:] = -1


@kernel
def count_within(queries, by_feature, weight, radius, is_open, power, count, beyond):
    """Write the weight of the points within a radius of each query, and the distance of the nearest point beyond it.

    Pre:  queries float64 (n, d); by_feature float64 (d, m), C order; weight float64 (m,); radius float64 (n,), a true
          distance, not squared; is_open: points exactly at the radius are beyond it.
    Post: count, beyond float64 (n,): beyond is infinite if there is no such point.
    Cost: n * m * d additions, several points per instruction.
    """
    m = by_feature.shape[1]
    total = np.empty(BLOCK)
    for i in range(queries.shape[0]):
        inside, nearest = 0.0, np.inf
        for start in range(0, m, BLOCK):
            stop = min(start + BLOCK, m)
            part = total[: stop - start]
            to_block(queries[i], by_feature, start, stop, power, part)
            for j in range(stop - start):
                at = np.sqrt(part[j]) if power == 2 else part[j]
                if at < radius[i] or (at == radius[i] and not is_open):
                    inside += weight[start + j]
                elif at < nearest:
                    nearest = at
        count[i] = inside
        beyond[i] = nearest
