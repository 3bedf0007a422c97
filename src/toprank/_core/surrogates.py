"""Passes over scores for the surrogates of average precision: exponentials, and masses on a grid of scores."""

import numpy as np

from toprank._core.jit import kernel

UNIT = 2.0**38
"""Exponentials of at most 1 are summed in units of 1/UNIT: exact in any order, for up to 2**24 rows."""


@kernel
def exponentials(score, weight, is_positive, top_negative, top_positive, out):
    """Write weight * exp(score - top of the class), and return the sums of both classes.

    Pre:  score float64 (n,); weight float64 (n,), at most 1; no score with weight is above the top of its class.
    Post: out float64 (n,), at most 1. The sums are integers in units of 1/UNIT, so they add up the same in any order.
    """
    negative = np.int64(0)
    positive = np.int64(0)
    for i in range(score.shape[0]):
        if weight[i] == 0.0:
            out[i] = 0.0
        elif is_positive[i]:
            out[i] = weight[i] * np.exp(score[i] - top_positive)
            positive += np.int64(out[i] * UNIT)
        else:
            out[i] = weight[i] * np.exp(score[i] - top_negative)
            negative += np.int64(out[i] * UNIT)
    return negative, positive


@kernel
def sum_in_units(values, per_unit):
    """Sum of values in whole units, each rounded down: the same in any order.

    Pre:  values float64 (n,); values * per_unit is at most UNIT.
    """
    total = np.int64(0)
    for i in range(values.shape[0]):
        total += np.int64(values[i] * per_unit)
    return total


@kernel
def add_to_grid(score, mass, start, step, grid):
    """Share the mass of each score between the two nearest points of a grid, by distance.

    Scores outside go to its ends.

    Pre:  score and mass float64 (n,); grid float64 (n_points,), points at start + step * i.
    """
    last = grid.shape[0] - 1
    for i in range(score.shape[0]):
        if mass[i] == 0.0:
            continue
        place = (score[i] - start) / step
        if place <= 0.0:
            grid[0] += mass[i]
        elif place >= last:
            grid[last] += mass[i]
        else:
            low = np.int64(place)
            share = place - low
            grid[low] += mass[i] * (1.0 - share)
            grid[low + 1] += mass[i] * share


@kernel
def read_grid(score, start, step, grid, out):
    """Write the value of a function given at the points of a grid at each score, by linear interpolation.

    Pre:  score float64 (n,); grid float64 (n_points,).
    Post: out float64 (n,); scores outside the grid have the value at its end.
    """
    last = grid.shape[0] - 1
    for i in range(score.shape[0]):
        place = (score[i] - start) / step
        if place <= 0.0:
            out[i] = grid[0]
        elif place >= last:
            out[i] = grid[last]
        else:
            low = np.int64(place)
            share = place - low
            out[i] = grid[low] * (1.0 - share) + grid[low + 1] * share
