"""Kernels of triplet losses in which one of the two distances is learned.

An anchor has partners, rows whose distance to it is learned, and rivals, whose distance to it is given. A triplet is an
anchor, one of its partners and one of its rivals. With side = 1 the partner should be nearer than the rival, with side
= -1 farther, both by a margin:

    z = margin + side * (learned squared distance - squared distance of the rival),    loss = max(0, z)

A width > 0 smooths the loss: z ** 2 / (2 width) for z between 0 and width, z - width / 2 above.

The partners of anchor a are partner[partner_start[a]:partner_start[a + 1]], in any order. Its rivals are at
rival[rival_start[a]:rival_start[a + 1]], nearest first. Sums are taken in a fixed order: same input, same bits.
"""

from __future__ import annotations

import numpy as np

from toprank._core.jit import kernel


@kernel
def pair_products(rows, mapped, anchor, partner_start, partner, start, stop, out):
    """Write (x_i - x_j) . (z_i - z_j) for anchors i from start to stop and their partners j; z are the mapped rows.

    With z = M x this is the squared distance (x_i - x_j)' M (x_i - x_j).

    Pre:  rows and mapped float64 (n, d); out float64, one value per partner.
    Cost: d multiplications per partner, in four partial sums that the compiler keeps in one vector.
    """
    d = rows.shape[1]
    whole = d - d % 4
    for a in range(start, stop):
        x, z = rows[anchor[a]], mapped[anchor[a]]
        for at in range(partner_start[a], partner_start[a + 1]):
            u, v = rows[partner[at]], mapped[partner[at]]
            s0 = s1 = s2 = s3 = 0.0
            for f in range(0, whole, 4):
                s0 += (x[f] - u[f]) * (z[f] - v[f])
                s1 += (x[f + 1] - u[f + 1]) * (z[f + 1] - v[f + 1])
                s2 += (x[f + 2] - u[f + 2]) * (z[f + 2] - v[f + 2])
                s3 += (x[f + 3] - u[f + 3]) * (z[f + 3] - v[f + 3])
            for f in range(whole, d):
                s0 += (x[f] - u[f]) * (z[f] - v[f])
            out[at] = (s0 + s1) + (s2 + s3)


@kernel
def add_squared_differences(rows, anchor, partner_start, partner, slope, start, stop, out):
    """Add slope * (anchor - partner) ** 2 over the pairs of anchors start to stop to out, per column.

    Pre:  out float64 (d,).
    Cost: d multiplications per partner whose slope is not 0.
    """
    for a in range(start, stop):
        one = rows[anchor[a]]
        for at in range(partner_start[a], partner_start[a + 1]):
            if slope[at] != 0.0:
                other = rows[partner[at]]
                for f in range(rows.shape[1]):
                    out[f] += slope[at] * (one[f] - other[f]) * (one[f] - other[f])


@kernel
def cumulate_rivals(rival_start, rival, rival_weight, weight_before, sum_before):
    """Write the cumulative sums of the weights of an anchor's rivals, and of weight times distance.

    Pre:  both float64, one value more per anchor than it has rivals: those of anchor a begin at rival_start[a] + a.
    Cost: one pass over the rivals.
    """
    for a in range(len(rival_start) - 1):
        weight_before[rival_start[a] + a] = sum_before[rival_start[a] + a] = 0.0
        for r in range(rival_start[a], rival_start[a + 1]):
            weight_before[r + a + 1] = weight_before[r + a] + rival_weight[r]
            sum_before[r + a + 1] = sum_before[r + a] + rival_weight[r] * rival[r]


@kernel
def triplet_losses(
    side, anchor_weight, partner_start, partner_weight, learned, rival_start, rival, weight_before, sum_before, margin,
    width, start, stop, slope
):  # fmt: skip
    """Sum the losses of the triplets of anchors start to stop; write each pair's derivative by its learned distance.

    Pre:  weight_before and sum_before by `cumulate_rivals`; width >= 0; slope float64, one value per partner.
    Cost: per partner two binary searches among the rivals, and the rivals in the smooth part.
    """
    total = 0.0
    for a in range(start, stop):
        sign, own = side[a], rival[rival_start[a] : rival_start[a + 1]]
        weights = weight_before[rival_start[a] + a : rival_start[a + 1] + a + 1]
        sums = sum_before[rival_start[a] + a : rival_start[a + 1] + a + 1]
        for at in range(partner_start[a], partner_start[a + 1]):
            # z > 0 for rivals below the edge if sign is 1, above it if sign is -1.
            edge = learned[at] + sign * margin
            outer, inner = np.searchsorted(own, edge), np.searchsorted(own, edge - sign * width)
            begin, end = (0, inner) if sign > 0 else (inner, len(own))  # z >= width
            weight = weights[end] - weights[begin]
            loss = weight * (margin + sign * learned[at] - 0.5 * width) - sign * (sums[end] - sums[begin])
            for r in range(min(outer, inner), max(outer, inner)):
                z = margin + sign * (learned[at] - own[r])
                part = min(max(z / width, 0.0), 1.0)
                loss += (weights[r + 1] - weights[r]) * part * (z - 0.5 * width * part)
                weight += (weights[r + 1] - weights[r]) * part
            pair = anchor_weight[a] * partner_weight[at]
            total += pair * loss
            slope[at] = sign * pair * weight
    return total
