"""Shapes of features on bins: boosted one feature at a time, cut into few bins, refitted together."""

import math

import numpy as np

from toprank._core.jit import kernel

LEAST_RATE = 1e-7
"""Rates stay this far from 0 and 1 while they are updated to first order."""

ROUNDING = 1e-12
"""Differences below this share of a sum are rounding errors."""


@kernel
def rates_of(score, rate):
    """Write the rate of each log-odds score."""
    for i in range(score.shape[0]):
        rate[i] = 1.0 / (1.0 + math.exp(-score[i]))


@kernel
def add_step(codes, step, weight, target, score, rate, other_codes, sums):
    """Add a step of one feature to the scores, update the rates, and sum gradients over the bins of another feature.

    Rates are updated to first order; `rates_of` makes them exact again.

    Pre:  codes, other_codes uint8 (n,); step float64, one per code; weight, target, score, rate float64 (n,).
    Post: sums float64 (n_bins + 1, 2), overwritten: gradients, curvatures.
    """
    sums[:] = 0.0
    for i in range(codes.shape[0]):
        by = step[codes[i]]
        p = rate[i]
        if by != 0.0:
            score[i] += by
            p += by * p * (1.0 - p)
            p = min(max(p, LEAST_RATE), 1.0 - LEAST_RATE)
            rate[i] = p
        code = other_codes[i]
        sums[code, 0] += weight[i] * (target[i] - p)
        sums[code, 1] += weight[i] * p * (1.0 - p)


@kernel
def best_step(sums, order, n_ordered, least_curvature, ridge, learning_rate, direction, step):
    """Find the best step function with two values over ordered bins; the rest gets values of its own.

    Pre:  sums float64 (n_bins, 2); order int64: bins in order, the first n_ordered of them are cut in two; direction
          1 or -1 for steps up or down alone, 0 for any.
    Post: step float64 (n_bins,), overwritten.
    """
    step[:] = 0.0
    gradient = 0.0
    curvature = 0.0
    for k in range(n_ordered):
        gradient += sums[order[k], 0]
        curvature += sums[order[k], 1]
    best, cut, low, high = 0.0, -1, 0.0, 0.0
    left_gradient, left_curvature = 0.0, 0.0
    for k in range(n_ordered - 1):
        left_gradient += sums[order[k], 0]
        left_curvature += sums[order[k], 1]
        right_curvature = curvature - left_curvature
        if left_curvature < least_curvature or right_curvature < least_curvature:
            continue
        right_gradient = gradient - left_gradient
        left, right = left_gradient / (left_curvature + ridge), right_gradient / (right_curvature + ridge)
        if (right - left) * direction < 0.0:
            continue
        gain = left_gradient * left + right_gradient * right
        if gain > best:
            best, cut, low, high = gain, k, left, right
    for k in range(n_ordered if cut >= 0 else 0):
        step[order[k]] = learning_rate * (low if k <= cut else high)
    for k in range(n_ordered, order.shape[0]):
        step[order[k]] = learning_rate * sums[order[k], 0] / (sums[order[k], 1] + ridge + least_curvature)


@kernel
def log_loss(score, target, weight):
    """Return the weighted sum of log-losses of soft targets."""
    total = 0.0
    for i in range(score.shape[0]):
        if weight[i] > 0.0:
            s = score[i]
            total += weight[i] * (max(s, 0.0) + math.log1p(math.exp(-abs(s))) - target[i] * s)
    return total


@kernel
def cut_into_groups(value, weight, most, group):
    """Cut ordered bins into at most `most` groups with the least weighted squared deviation from the group means.

    Among cuts that are equal up to rounding, the one with the fewest groups is taken, so the order of summation does
    not matter.

    Pre:  value, weight float64 (n,), weights non-negative.
    Post: group int64 (n,): 0, 1, ... in order.
    Cost: most * n**2.
    """
    n = value.shape[0]
    sums = np.zeros((n + 1, 3))
    for i in range(n):
        sums[i + 1, 0] = sums[i, 0] + weight[i]
        sums[i + 1, 1] = sums[i, 1] + weight[i] * value[i]
        sums[i + 1, 2] = sums[i, 2] + weight[i] * value[i] * value[i]
    k_most, rounding = min(most, n), ROUNDING * sums[n, 2]
    cost = np.full((k_most + 1, n + 1), np.inf)
    start = np.zeros((k_most + 1, n + 1), np.int64)
    cost[0, 0] = 0.0
    for k in range(1, k_most + 1):
        for stop in range(k, n + 1):
            for begin in range(k - 1, stop):
                mass = sums[stop, 0] - sums[begin, 0]
                spread = sums[stop, 2] - sums[begin, 2]
                if mass > 0.0:
                    spread -= (sums[stop, 1] - sums[begin, 1]) ** 2 / mass
                total = cost[k - 1, begin] + max(spread, 0.0)
                if total < cost[k, stop] - rounding:
                    cost[k, stop] = total
                    start[k, stop] = begin
    stop = n
    while k_most > 1 and cost[k_most - 1, n] <= cost[k_most, n] + rounding:
        k_most -= 1
    for k in range(k_most, 0, -1):
        begin = start[k, stop]
        for i in range(begin, stop):
            group[i] = k - 1
        stop = begin


@kernel
def add_newton_sums(active, weight, target, coefficients, gradient, curvature):
    """Add the gradient and the upper triangle of the curvature of a logistic model with 0/1 terms.

    Pre:  active int32 (n, m): terms of each row in ascending order, padded with -1; coefficients float64 (n_terms,).
    Post: gradient float64 (n_terms,), curvature float64 (n_terms, n_terms), added to.
    Cost: n * m**2 / 2.
    """
    for i in range(active.shape[0]):
        if weight[i] <= 0.0:
            continue
        score = 0.0
        n_active = 0
        for j in range(active.shape[1]):
            if active[i, j] < 0:
                break
            score += coefficients[active[i, j]]
            n_active += 1
        p = 1.0 / (1.0 + math.exp(-score))
        g = weight[i] * (target[i] - p)
        h = weight[i] * p * (1.0 - p)
        for j in range(n_active):
            gradient[active[i, j]] += g
            for k in range(j, n_active):
                curvature[active[i, j], active[i, k]] += h
