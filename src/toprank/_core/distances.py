"""Distances between rows, neighbours by brute force and along a graph.

Every distance is a sum over the coordinates in their order, so that it is the same bit for bit alone, in a batch, and
whichever search asks for it. Euclidean distances stay squared in here; `power` is 2 for them and 1 for city-block
distances.
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
    d, m = by_feature.shape
    k = distance.shape[1]
    total = np.empty(BLOCK)
    for i in range(queries.shape[0]):
        nearest, found = distance[i], position[i]
        nearest[:] = np.inf
        found[:] = -1
        for start in range(0, m, BLOCK):
            stop = min(start + BLOCK, m)
            part = total[: stop - start]
            part[:] = 0.0
            for f in range(d):
                value, column = queries[i, f], by_feature[f, start:stop]
                if power == 2:
                    for j in range(stop - start):
                        gap = value - column[j]
                        part[j] += gap * gap
                else:
                    for j in range(stop - start):
                        part[j] += abs(value - column[j])
            for j in range(stop - start):  # positions rise, so that a tie with the last one keeps that one
                if part[j] < nearest[k - 1] and start + j != left_out[i]:
                    put(nearest, found, part[j], start + j)


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
    d, m = by_feature.shape
    total = np.empty(BLOCK)
    for i in range(queries.shape[0]):
        inside, nearest = 0.0, np.inf
        for start in range(0, m, BLOCK):
            stop = min(start + BLOCK, m)
            part = total[: stop - start]
            part[:] = 0.0
            for f in range(d):
                value, column = queries[i, f], by_feature[f, start:stop]
                if power == 2:
                    for j in range(stop - start):
                        gap = value - column[j]
                        part[j] += gap * gap
                else:
                    for j in range(stop - start):
                        part[j] += abs(value - column[j])
            for j in range(stop - start):
                at = np.sqrt(part[j]) if power == 2 else part[j]
                if at < radius[i] or (at == radius[i] and not is_open):
                    inside += weight[start + j]
                elif at < nearest:
                    nearest = at
        count[i] = inside
        beyond[i] = nearest
