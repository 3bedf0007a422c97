"""Passes over scores for the surrogates of average precision: exponentials, and masses on a grid of scores."""

import numpy as np

from toprank._core.jit import kernel

UNIT = 2.0**32
"""Exponentials of at most 1 are summed in units of 1/UNIT: exact in any order, for any number of rows."""


LANES = 512
"""Running maxima of `plain_tops`; few enough to stay in the processor's cache."""


@kernel
def log_weighted(score, weight, alpha):
    """Return alpha * score + log(weight), -inf without weight; most weights are 0 or 1."""
    if weight == 1.0:
        return alpha * score
    if weight == 0.0:
        return -np.inf
    return alpha * score + np.log(weight)


@kernel
def plain_tops(score, weight, is_positive, alpha):
    """As `class_tops`, and the number of weights other than 0 and 1: the tops hold if there are none.

    A loop without branches, as weights 0 and 1 come in random order and a processor would guess every fifth one wrong.
    Maxima are taken lane by lane: it compares several lanes at a time, but would wait for a single one at every row.
    """
    negative = np.full(LANES, -np.inf)
    positive = np.full(LANES, -np.inf)
    others = 0
    for start in range(0, score.shape[0], LANES):
        rows = slice(start, start + LANES)
        scores, weights, labels = score[rows], weight[rows], is_positive[rows]
        for i in range(scores.shape[0]):
            value = alpha * scores[i] if weights[i] > 0.0 else -np.inf
            of_negatives = -np.inf if labels[i] else value
            of_positives = value if labels[i] else -np.inf
            negative[i] = of_negatives if of_negatives > negative[i] else negative[i]
            positive[i] = of_positives if of_positives > positive[i] else positive[i]
            others += (weights[i] != 0.0) & (weights[i] != 1.0)
    return negative.max(), positive.max(), others


@kernel
def plain_below_top(score, weight, is_positive, alpha, top_negative, top_positive, out):
    """As `below_top`, for weights 0 and 1 alone."""
    for i in range(score.shape[0]):
        value = alpha * score[i] - (top_positive if is_positive[i] else top_negative)
        out[i] = value if weight[i] > 0.0 else -np.inf


@kernel
def class_tops(score, weight, is_positive, alpha):
    """Return the largest alpha * score + log(weight) of negatives and of positives, -inf without any.

    Pre:  score and weight float64 (n,); is_positive bool (n,).
    """
    top_negative = -np.inf
    top_positive = -np.inf
    for i in range(score.shape[0]):
        value = log_weighted(score[i], weight[i], alpha)
        if is_positive[i]:
            top_positive = max(top_positive, value)
        else:
            top_negative = max(top_negative, value)
    return top_negative, top_positive


@kernel
def below_top(score, weight, is_positive, alpha, top_negative, top_positive, out):
    """Write alpha * score + log(weight) minus the largest one of the class, -inf without weight.

    Pre:  score and weight float64 (n,); is_positive bool (n,).
    Post: out float32 (n,), at most 0.
    """
    for i in range(score.shape[0]):
        top = top_positive if is_positive[i] else top_negative
        out[i] = log_weighted(score[i], weight[i], alpha) - top if weight[i] > 0.0 else -np.inf


@kernel
def class_sums(values, is_positive):
    """Return the sums of negatives and of positives, as integers in units of 1/UNIT: the same in any order.

    Pre:  values float32 (n,), from 0 to 1.
    """
    negative = np.int64(0)
    positive = np.int64(0)
    for i in range(values.shape[0]):
        units = np.int64(values[i] * UNIT + 0.5)
        if is_positive[i]:
            positive += units
        else:
            negative += units
    return negative, positive


@kernel
def sum_in_units(values, per_unit):
    """Sum of values in whole units, each rounded down: the same in any order.

    Pre:  values float32 or float64 (n,); values * per_unit is at most UNIT.
    """
    total = np.int64(0)
    for i in range(values.shape[0]):
        total += np.int64(np.float64(values[i]) * per_unit)
    return total


@kernel
def signed_shares(values, per_negative, per_positive, bound, is_positive, gradient, curvature):
    """Write values per class times a factor: as gradients, negative for positives, and as bounds on the curvature.

    Pre:  values float32 (n,), not negative.
    Post: gradient, curvature float32 (n,).
    """
    for i in range(values.shape[0]):
        if is_positive[i]:
            gradient[i] = -values[i] * per_positive
            curvature[i] = bound * values[i] * per_positive
        else:
            gradient[i] = values[i] * per_negative
            curvature[i] = bound * values[i] * per_negative


@kernel
def logistic_slopes(rate, rest, weight, is_positive, gradient, curvature):
    """Write the derivatives of the logistic loss, given the rates that the scores stand for, and 1 minus the rates.

    Products are taken in double precision. Weights narrowed to float32 first would compile to a load that leaves the
    processor's wide registers in use, and whatever runs next without them, such as SciPy, would be 40 times slower.

    Pre:  rate, rest float32 (n,); weight float64 (n,); is_positive bool (n,).
    Post: gradient, curvature float32 (n,).
    """
    for i in range(rate.shape[0]):
        gradient[i] = weight[i] * (-rest[i] if is_positive[i] else rate[i])
        curvature[i] = weight[i] * (rate[i] * rest[i])


@kernel
def add_scaled(values, factor, more):
    """Add factor * more to values, in single precision.

    Pre:  values, more float32 (n,); factor float32.
    """
    for i in range(values.shape[0]):
        values[i] += factor * more[i]


@kernel
def add_to_grid(score, mass, is_positive, start, step, grid):
    """Share the mass of each score between the two nearest points of its class's grid, by distance.

    Scores outside go to its ends.

    Pre:  score and mass float64 (n,); is_positive bool (n,).
    Post: grid float64 (2, n_points), negatives first, points at start + step * i: added to.
    """
    last = grid.shape[1] - 1
    for i in range(score.shape[0]):
        if mass[i] == 0.0:
            continue
        own = np.int64(is_positive[i])
        place = (score[i] - start) / step
        if place <= 0.0:
            grid[own, 0] += mass[i]
        elif place >= last:
            grid[own, last] += mass[i]
        else:
            low = np.int64(place)
            share = place - low
            grid[own, low] += mass[i] * (1.0 - share)
            grid[own, low + 1] += mass[i] * share


@kernel
def between_points(grid, place):
    """Return the value at a place between the points of a grid, by linear interpolation; its ends outside."""
    last = grid.shape[0] - 1
    if place <= 0.0:
        return grid[0]
    if place >= last:
        return grid[last]
    low = np.int64(place)
    share = place - low
    return grid[low] * (1.0 - share) + grid[low + 1] * share


@kernel
def read_grid(score, start, step, grid, out):
    """Write the value of a function given at the points of a grid at each score, by linear interpolation.

    Pre:  score float64 (n,); grid float64 (n_points,).
    Post: out float64 (n,); scores outside the grid have the value at its end.
    """
    for i in range(score.shape[0]):
        out[i] = between_points(grid, (score[i] - start) / step)


@kernel
def negative_slopes(score, weight, is_positive, start, step, grid, alpha, gradient, curvature):
    """Write the slopes of negatives: weight times a function of the score that is given on a grid.

    Pre:  as in `read_grid`.
    Post: gradient, curvature float64 (n,): alpha times the gradient; rows of positives are left alone.
    """
    for i in range(score.shape[0]):
        if is_positive[i]:
            continue
        value = between_points(grid, (score[i] - start) / step)
        gradient[i] = weight[i] * max(value, 0.0)
        curvature[i] = alpha * gradient[i]


@kernel
def to_fixed_point(values, per_unit, unit):
    """Round each value to the nearest multiple of a unit, a power of 2, in place.

    Pre:  values float32 (n,), none of more than 2**24 units; unit float32, at least 2**-126; per_unit its inverse.
    """
    for i in range(values.shape[0]):
        values[i] = np.rint(values[i] * per_unit) * unit
