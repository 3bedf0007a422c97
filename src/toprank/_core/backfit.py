"""Sums of functions of one binned column each, fitted one after the other to the logistic loss."""

import math

import numpy as np

from toprank._core.jit import kernel


@kernel
def slopes_by_bin(codes, z, target, weight, out):
    """Sum the slopes and curvatures of the logistic loss by bin: weight * (target - p) and weight * p * (1 - p).

    Pre:  codes uint8 (n,), below out.shape[0]; z, target, weight float64 (n,); target from 0 to 1.
    Post: out float64 (n_bins, 2), overwritten.
    Cost: n exponentials.
    """
    out[:] = 0.0
    for i in range(codes.shape[0]):
        p = 1.0 / (1.0 + math.exp(-z[i]))
        out[codes[i], 0] += weight[i] * (target[i] - p)
        out[codes[i], 1] += weight[i] * p * (1.0 - p)


@kernel
def add_by_bin(codes, change, z):
    """Add the change of each row's bin to its score.

    Pre:  codes uint8 (n,); change float64 (n_bins,); z float64 (n,).
    """
    for i in range(codes.shape[0]):
        z[i] += change[codes[i]]


@kernel
def invert(matrix, out):
    """Write the inverse of a positive definite matrix, by Cholesky's factors and without BLAS.

    Pre:  matrix float64 (d, d); overwritten by its lower factor.
    Post: out float64 (d, d).
    Cost: d^3 multiplications.
    """
    d = matrix.shape[0]
    for j in range(d):
        total = matrix[j, j]
        for k in range(j):
            total -= matrix[j, k] * matrix[j, k]
        matrix[j, j] = math.sqrt(max(total, 1e-300))
        for i in range(j + 1, d):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = total / matrix[j, j]
    for j in range(d):  # the inverse of the factor, in the upper half of `out`, transposed
        for i in range(j):
            out[i, j] = 0.0
        out[j, j] = 1.0 / matrix[j, j]
        for i in range(j + 1, d):
            total = 0.0
            for k in range(j, i):
                total -= matrix[i, k] * out[k, j]
            out[i, j] = total / matrix[i, i]
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, d):
                total += out[k, i] * out[k, j]
            matrix[i, j] = total
    for i in range(d):
        for j in range(i + 1):
            out[i, j] = matrix[i, j]
            out[j, i] = matrix[i, j]


@kernel
def quadratic_model(sums, design, penalty, own, slope, gram):
    """Write the slope and the matrix of the quadratic model of the loss plus penalties around `own`.

    Pre:  sums float64 (n_bins, 2) of `slopes_by_bin`; design float64 (n_bins, d); penalty, own float64 (d,).
    Post: slope float64 (d,) and gram float64 (d, d), overwritten.
    Cost: n_bins * d^2 / 2 multiplications; zeros of the design are skipped.
    """
    d = own.shape[0]
    gram[:] = 0.0
    for j in range(d):
        slope[j] = -penalty[j] * own[j]
        gram[j, j] = penalty[j]
    for b in range(design.shape[0]):
        if sums[b, 1] == 0.0:
            continue
        for j in range(d):
            if design[b, j] == 0.0:
                continue
            slope[j] += design[b, j] * sums[b, 0]
            scaled = design[b, j] * sums[b, 1]
            for k in range(j + 1):
                gram[j, k] += scaled * design[b, k]
    for j in range(d):
        for k in range(j):
            gram[k, j] = gram[j, k]


@kernel
def descend_above(gram, pull, lowest, value):
    """Minimise value . gram . value / 2 - pull . value over value >= lowest by coordinate descent.

    Pre:  gram float64 (d, d), positive definite; pull, lowest, value float64 (d,).
    Post: value, overwritten; the input is where the descent starts.
    Cost: at most 200 sweeps of d^2 multiplications.
    """
    for i in range(value.shape[0]):
        value[i] = max(value[i], lowest[i])
    for _ in range(200):
        largest = 0.0
        for i in range(value.shape[0]):
            slope = pull[i]
            for j in range(value.shape[0]):
                slope -= gram[i, j] * value[j]
            moved = max(lowest[i], value[i] + slope / gram[i, i])
            largest = max(largest, abs(moved - value[i]))
            value[i] = moved
        if largest < 1e-9:
            return


@kernel
def take_step(sums, codes, z, design, lowest, penalty, own, variance, largest_step):
    """Take one Newton step of a term, update the scores, and return the largest change of a value's log-odds.

    Pre:  sums float64 (n_bins, 2): slopes, downhill, and curvatures by bin; codes uint8 (m,); z float64 (m,);
          design float64 (n_bins, d); lowest, penalty float64 (d,).
    Post: own float64 (d,), the coefficients, and z, changed; variance float64 (d,): the diagonal of the inverse of the
          curvature.
    """
    d = own.shape[0]
    slope = np.empty(d)
    gram = np.empty((d, d))
    quadratic_model(sums, design, penalty, own, slope, gram)
    is_diagonal = True
    for j in range(d):
        for k in range(j):
            if gram[j, k] != 0.0:
                is_diagonal = False
    step = np.zeros(d)
    if is_diagonal:
        for j in range(d):
            variance[j] = 1.0 / gram[j, j]
            step[j] = slope[j] * variance[j]
    else:
        inverse = np.empty((d, d))
        invert(gram.copy(), inverse)
        for j in range(d):
            variance[j] = inverse[j, j]
            for k in range(d):
                step[j] += inverse[j, k] * slope[k]
    if lowest.max() > -np.inf:
        pull = np.zeros(d)
        goal = own + step
        for j in range(d):
            for k in range(d):
                pull[j] += gram[j, k] * goal[k]
        descend_above(gram, pull, lowest, goal)
        for j in range(d):
            step[j] = goal[j] - own[j]
    change = np.zeros(design.shape[0])
    largest = 0.0
    for b in range(design.shape[0]):
        for j in range(d):
            change[b] += design[b, j] * step[j]
        largest = max(largest, abs(change[b]))
    shrink = min(1.0, largest_step / largest) if largest > 0.0 else 1.0
    for j in range(d):
        own[j] += shrink * step[j]
    for b in range(change.shape[0]):
        change[b] *= shrink
    add_by_bin(codes, change, z)
    return shrink * largest


@kernel
def pair_sums(codes, others, slope, curvature, out):
    """Sum slopes and curvatures by the bin of one column and the bins of several others.

    Pre:  codes uint8 (m,), below out.shape[0]; others uint8 (m, d), below out.shape[2]; slope, curvature float64 (m,).
    Post: out float64 (n_bins, d, n_other_bins, 2), overwritten.
    Cost: m * d additions.
    """
    out[:] = 0.0
    for i in range(codes.shape[0]):
        own = codes[i]
        for j in range(others.shape[1]):
            out[own, j, others[i, j], 0] += slope[i]
            out[own, j, others[i, j], 1] += curvature[i]
