"""Kernels of triplet losses against plain loops."""

import numpy as np
import pytest

from toprank._core.triplets import add_squared_differences, cumulate_rivals, pair_products, triplet_losses


def smoothed(z, width):
    """The hinge, smoothed over a width."""
    if z <= 0:
        return 0.0, 0.0
    return (z - width / 2, 1.0) if z >= width else (z * z / (2 * width), z / width)


def lists(rng, n_anchors, n_rows):
    """Random lists of partners and sorted rivals, some of them empty."""
    sizes = rng.integers(0, 4, n_anchors), rng.integers(0, 5, n_anchors)
    partner_start, rival_start = (np.concatenate(([0], np.cumsum(size))) for size in sizes)
    partner = rng.integers(0, n_rows, partner_start[-1])
    rival = np.concatenate([np.sort(rng.integers(0, 12, size) / 4) for size in sizes[1]] + [np.zeros(0)])
    return partner_start, partner, rng.random(len(partner)), rival_start, rival, rng.random(len(rival))


@pytest.mark.parametrize("width", [0.0, 0.25, 0.7, 10.0])
@pytest.mark.parametrize("seed", range(5))
def test_losses_and_slopes_are_those_of_a_double_loop(seed, width):
    rng = np.random.default_rng(seed)
    n_anchors, margin = 12, 0.5
    partner_start, partner, partner_weight, rival_start, rival, rival_weight = lists(rng, n_anchors, 9)
    side, weight = rng.choice([-1.0, 1.0], n_anchors), rng.random(n_anchors)
    learned = rng.integers(0, 12, len(partner)) / 4  # ties with rivals
    before, sums = np.empty(len(rival) + n_anchors), np.empty(len(rival) + n_anchors)
    cumulate_rivals(rival_start, rival, rival_weight, before, sums)
    slope = np.full(len(partner), np.nan)
    found = sum(
        triplet_losses(side, weight, partner_start, partner_weight, learned, rival_start, rival, before, sums, margin,
                       width, start, stop, slope)
        for start, stop in ((0, 5), (5, n_anchors))
    )  # fmt: skip
    total, slopes = 0.0, np.zeros(len(partner))
    for a in range(n_anchors):
        for p in range(partner_start[a], partner_start[a + 1]):
            for r in range(rival_start[a], rival_start[a + 1]):
                loss, part = smoothed(margin + side[a] * (learned[p] - rival[r]), width)
                total += weight[a] * partner_weight[p] * rival_weight[r] * loss
                slopes[p] += side[a] * weight[a] * partner_weight[p] * rival_weight[r] * part
    assert found == pytest.approx(total, abs=1e-12)
    if width:  # without smoothing, the slope at the corner may be either one
        assert slope == pytest.approx(slopes, abs=1e-12)


@pytest.mark.parametrize("d", [1, 3, 4, 9])
def test_pairs_have_the_distance_of_the_matrix(d):
    rng = np.random.default_rng(d)
    rows, root = rng.normal(size=(7, d)), rng.normal(size=(d, d))
    matrix = root @ root.T
    anchor, start, partner = np.array([0, 3, 6]), np.array([0, 2, 2, 5]), np.array([1, 2, 0, 4, 6])
    out, slope = np.empty(5), rng.normal(size=5)
    slope[1] = 0.0
    pair_products(rows, rows @ matrix, anchor, start, partner, 0, 3, out)
    difference = rows[[0, 0, 6, 6, 6]] - rows[partner]
    assert out == pytest.approx(np.einsum("ij,jk,ik->i", difference, matrix, difference))
    total = np.zeros(d)
    add_squared_differences(rows, anchor, start, partner, slope, 0, 3, total)
    assert total == pytest.approx(slope @ difference**2)
