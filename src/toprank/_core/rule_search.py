"""Search for rules on bins: sums per bin over the rows of a rule, and the best condition to add.

A rule holds for a set of rows. Its gain is the binomial log-likelihood ratio of what these rows have (`target`) over
what a model expects of them (`expected`). All sums are integers in fixed point, so the order of rows changes nothing.
"""

import math

import numpy as np

from toprank._core.jit import kernel

TARGET, EXPECTED, WEIGHT, POSITIVE = range(4)
"""Channels of the sums: weight times target, weight times expectation, weight, weight of positives."""

SLOTS = 6
"""Candidates per feature. Numbers: at most, above, both or missing, missing, known. Categories: one, two or three named
ones in the first slots; missing, known."""

IS_MISSING, IS_KNOWN = 4, 5
"""Slots that numbers and categories share."""


@kernel
def add_rule_sums(codes, rows, values, at, out):
    """Add the values of some rows to the bins of each feature.

    Pre:  codes uint8 (n, n_features), C order; rows int32; values int64 (n, 4); at int64: first bin of each feature.
    Post: out int64 (total_bins, 4), added to.
    Cost: len(rows) * n_features * 4 additions.
    """
    for i in range(rows.shape[0]):
        row = rows[i]
        target, expected = values[row, TARGET], values[row, EXPECTED]
        weight, positive = values[row, WEIGHT], values[row, POSITIVE]
        for f in range(codes.shape[1]):
            cell = at[f] + np.int64(codes[row, f])
            out[cell, TARGET] += target
            out[cell, EXPECTED] += expected
            out[cell, WEIGHT] += weight
            out[cell, POSITIVE] += positive


@kernel
def keep_rows(codes, rows, feature, mask, out):
    """Write the rows whose code of a feature is in the mask to `out`, in order; return how many there are."""
    n = 0
    for i in range(rows.shape[0]):
        if mask[codes[rows[i], feature]]:
            out[n] = rows[i]
            n += 1
    return n


@kernel
def likelihood_gain(target, expected, weight):
    """Return the log-likelihood ratio of a rate target / weight over expected / weight; 0 without expectation."""
    if weight <= 0.0 or expected <= 0.0 or expected >= weight:
        return 0.0
    gain = 0.0
    if target > 0.0:
        gain += target * math.log(target / expected)
    if target < weight:
        gain += (weight - target) * math.log((weight - target) / (weight - expected))
    return gain


@kernel
def gain_of(sums, unit, least_weight, least_positive, either_sign):
    """Return the gain of a set of rows; -inf if it is too small, or has less than expected and only more is wanted."""
    target, expected = sums[TARGET] * unit, sums[EXPECTED] * unit
    weight, positive = sums[WEIGHT] * unit, sums[POSITIVE] * unit
    if weight < least_weight:
        return -np.inf
    if target > expected and positive < least_positive:
        return -np.inf
    if target <= expected and not either_sign:
        return -np.inf
    return likelihood_gain(target, expected, weight)


@kernel
def best_of_categories(sums, unit, limits, either_sign, most_named, gains, sums_of, named):
    """Grow a set of categories greedily by its gain; fill one slot per size of the set.

    Pre:  sums int64 (n_categories + 1, 4), missing values last.
    Post: gains, sums_of: slots 0 to most_named - 1; named int64 (3,): the categories in the order of choice.
    """
    n = sums.shape[0] - 1
    is_used = np.zeros(n, np.uint8)
    total = np.zeros(4, np.int64)
    trial = np.zeros(4, np.int64)
    n_present = 0
    for c in range(n):
        n_present += 1 if sums[c, WEIGHT] > 0 else 0
    for size in range(min(most_named, n_present - 1)):
        best, chosen = -np.inf, -1
        for c in range(n):
            if is_used[c] or sums[c, WEIGHT] <= 0:
                continue
            trial[:] = total + sums[c]
            if trial[TARGET] <= trial[EXPECTED] and not either_sign:
                continue
            gain = likelihood_gain(trial[TARGET] * unit, trial[EXPECTED] * unit, trial[WEIGHT] * unit)
            if gain > best:
                best, chosen = gain, c
        if chosen < 0:
            return
        is_used[chosen] = 1
        total += sums[chosen]
        named[size] = chosen
        gains[size] = gain_of(total, unit, limits[0], limits[1], either_sign)
        sums_of[size] = total


@kernel
def best_of_numbers(sums, unit, limits, either_sign, allowed, gains, cuts, sums_of):
    """Find the best threshold for each direction, without and with missing values.

    Pre:  sums int64 (n_bins + 1, 4), missing values last; allowed uint8 (2,): "at most" and "above".
    Post: gains, cuts, sums_of: slots 0 to 3; a cut is the last bin at most the threshold.
    """
    n = sums.shape[0] - 1
    missing = sums[n]
    known = np.zeros(4, np.int64)
    for b in range(n):
        known += sums[b]
    below = np.zeros(4, np.int64)
    trial = np.zeros(4, np.int64)
    for b in range(n - 1):
        if sums[b, WEIGHT] <= 0:
            continue
        below += sums[b]
        if below[WEIGHT] >= known[WEIGHT]:
            return
        for slot in range(4):
            if not allowed[slot % 2] or (slot > 1 and missing[WEIGHT] <= 0):
                continue
            trial[:] = below if slot % 2 == 0 else known - below
            if slot > 1:
                trial += missing
            gain = gain_of(trial, unit, limits[0], limits[1], either_sign)
            if gain > gains[slot]:
                gains[slot] = gain
                cuts[slot] = b
                sums_of[slot] = trial


@kernel
def best_conditions(
    sums, at, is_categorical, unit, limits, either_sign, allowed, most_named, gains, cuts, sums_of, named
):
    """Find the best condition of each feature and slot, given the sums over the rows of a rule.

    Pre:  sums int64 (total_bins, 4): the bin of missing values is the last of each feature; at int64 (n_features + 1,);
          limits float64 (2,): least weight and least weight of positives; allowed uint8 (n_features, 2).
    Post: gains float64 (n_features, 6), -inf where no condition is possible; cuts int64 (n_features, 6); sums_of int64
          (n_features, 6, 4): those of the rows that meet the condition; named int64 (n_features, 3).
    """
    gains[:] = -np.inf
    for f in range(is_categorical.shape[0]):
        own = sums[at[f] : at[f + 1]]
        missing = own[own.shape[0] - 1]
        if is_categorical[f]:
            best_of_categories(own, unit, limits, either_sign, most_named, gains[f], sums_of[f], named[f])
        else:
            best_of_numbers(own, unit, limits, either_sign, allowed[f], gains[f], cuts[f], sums_of[f])
        known = np.zeros(4, np.int64)
        for b in range(own.shape[0] - 1):
            known += own[b]
        if missing[WEIGHT] > 0 and known[WEIGHT] > 0:
            gains[f, IS_MISSING] = gain_of(missing, unit, limits[0], limits[1], either_sign)
            sums_of[f, IS_MISSING] = missing
            gains[f, IS_KNOWN] = gain_of(known, unit, limits[0], limits[1], either_sign)
            sums_of[f, IS_KNOWN] = known
