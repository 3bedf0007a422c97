"""Triplets of MLFP: which rows are compared, with which weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from toprank._core.threads import Threads
from toprank._core.triplets import cumulate_rivals
from toprank.errors import InputError
from toprank.rankers.neighbours.search import PointSet

MAX_RIVALS = 25_000_000
"""Most distances to rivals held at once; 24 bytes each."""


@dataclass(frozen=True)
class Triplets:
    """Anchors, the positives whose distance to them is learned, and the negatives they are compared with.

    A positive anchor has side 1: its partners should be nearer than its rivals, or it would be a false negative. A
    negative anchor has side -1: its partners should be farther, or it would be a false positive.
    """

    anchor: np.ndarray  # int64 (n_anchors,): positions of rows
    side: np.ndarray  # float64 (n_anchors,)
    anchor_weight: np.ndarray  # float64 (n_anchors,)
    partner_start: np.ndarray  # int64 (n_anchors + 1,)
    partner: np.ndarray  # int64 (n_pairs,)
    partner_weight: np.ndarray  # float64 (n_pairs,)
    rival_start: np.ndarray  # int64 (n_anchors + 1,)
    rival: np.ndarray  # float64 (n_rivals,): squared distances, increasing for each anchor
    weight_before: np.ndarray  # float64 (n_rivals + n_anchors,): see `toprank._core.triplets.cumulate_rivals`
    sum_before: np.ndarray  # float64 (n_rivals + n_anchors,)
    n_triplets: float  # number of triplets; a row of weight 2 counts twice

    @property
    def total_weight(self) -> float:
        """Sum of the weights of all triplets."""
        partners, n = segment_sums(self.partner_weight, self.partner_start), len(self.anchor)
        rivals = self.weight_before[self.rival_start[1:] + np.arange(n)] if n else np.zeros(0)
        return float(np.sum(self.anchor_weight * partners * rivals))


@dataclass(frozen=True)
class Lists:
    """For each anchor a list of rows with weights and squared distances, nearest first.

    Those of anchor a are at start[a]:start[a + 1].
    """

    start: np.ndarray
    row: np.ndarray
    weight: np.ndarray
    distance: np.ndarray


def segment_sums(values: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the sums of values[start[i]:start[i + 1]], float64."""
    n = len(start) - 1
    return np.bincount(np.repeat(np.arange(n), np.diff(start)), values, n)


def make_triplets(
    is_positive: np.ndarray, weight: np.ndarray, alpha: float, partners: Lists, rivals: Lists, total: float | None
) -> Triplets:
    """Return the triplets of lists of partners (positives) and rivals (negatives), one of each per row.

    `alpha` is the share of positives. The sum of losses is divided by `total`; None = the number of triplets.
    """
    n_partners, n_rivals = segment_sums(partners.weight, partners.start), segment_sums(rivals.weight, rivals.start)
    n_triplets = float(np.sum(weight * n_partners * n_rivals))
    divisor = (n_triplets or 1.0) if total is None else total
    weight_before = np.empty(len(rivals.distance) + len(is_positive))
    sum_before = np.empty_like(weight_before)
    cumulate_rivals(rivals.start, rivals.distance, rivals.weight, weight_before, sum_before)
    return Triplets(
        np.arange(len(is_positive)), np.where(is_positive, 1.0, -1.0),
        weight * np.where(is_positive, 1.0 - alpha, alpha) / divisor, partners.start, partners.row, partners.weight,
        rivals.start, rivals.distance, weight_before, sum_before, n_triplets,
    )  # fmt: skip


def distinct_cases(
    points: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return distinct points of each class in a fixed order, their classes, and how many cases each stands for.

    So row order changes nothing, and weight 2 is the row twice. Points of weight 0 are left out.
    """
    weight = np.ones(len(points)) if weight is None else weight
    points, is_positive, weight = points[weight > 0], is_positive[weight > 0], weight[weight > 0]
    table = np.ascontiguousarray(np.column_stack((is_positive, points)) + 0.0)  # -0.0 is 0.0
    distinct, which = np.unique(table, axis=0, return_inverse=True)
    order = np.lexsort((weight, which.ravel()))
    total = np.bincount(which.ravel()[order], weight[order], len(distinct))
    return np.ascontiguousarray(distinct[:, 1:]), distinct[:, 0] > 0, total


def nearest_lists(points: np.ndarray, in_class: np.ndarray, weight: np.ndarray, k: int, threads: Threads) -> Lists:
    """Return the k nearest rows of a class for each row; no two points of a class may be equal.

    A row of weight 2 is two rows: it counts twice among the neighbours of others, and once among its own. Where weights
    do not add up to k exactly, the farthest neighbour counts in part.
    """
    members = np.flatnonzero(in_class)
    place = np.full(len(points), -1)
    place[members] = np.arange(len(members))
    copies = np.where(in_class, np.maximum(weight - 1.0, 0.0), 0.0)
    found = PointSet(points[members]) if len(members) else None
    n_found = min(k, len(members))
    while True:
        row, length = np.arange(len(points))[:, None], np.zeros((len(points), 1))
        share = copies[:, None]
        if found is not None:
            near = found.nearest(points, n_found, threads, left_out=place)
            others = np.where(near.position < 0, 0.0, weight[members][near.position])
            row, length = np.hstack((row, members[near.position])), np.hstack((length, near.distance**2))
            share = np.hstack((share, others))
        reached = np.cumsum(share, axis=1)
        if n_found >= len(members) or reached[:, -1].min() >= k:
            break
        n_found = min(2 * n_found, len(members))
    kept = np.clip(k - (reached - share), 0.0, share)
    is_kept = kept > 0.0
    start = np.concatenate(([0], np.cumsum(is_kept.sum(axis=1))))
    return Lists(start, row[is_kept], kept[is_kept], length[is_kept])


def full_lists(points: np.ndarray, in_class: np.ndarray, weight: np.ndarray, anchors: slice = slice(None)) -> Lists:
    """Return all rows of a class for some rows, nearest first; a row of the class is in its own list, as in (3.1)."""
    members, n = np.flatnonzero(in_class), len(points[anchors])
    if n * len(members) > MAX_RIVALS:
        raise InputError(
            f"triplets='all' compares {n:,} rows with {len(members):,}, which are {n * len(members):,} distances; at "
            f"most {MAX_RIVALS:,} are supported. Hint: use triplets='nearest' or triplets='sampled'."
        )
    length = cdist(points[anchors], points[members], "sqeuclidean")
    order = np.argsort(length, axis=1, kind="stable")
    start = np.arange(n + 1) * len(members)
    return Lists(start, members[order].ravel(), weight[members][order].ravel(),
                 np.take_along_axis(length, order, axis=1).ravel())  # fmt: skip


def sampled_lists(
    points: np.ndarray, in_class: np.ndarray, weight: np.ndarray, n_drawn: int, rng: np.random.Generator
) -> Lists:
    """Return rows of a class drawn at random, by weight and with replacement, for each row.

    Weights are such that the list of a row has the weight of the class: sums of losses estimate those of all triplets.
    """
    members, n = np.flatnonzero(in_class), len(points)
    total = weight[members].sum()
    drawn = members[rng.choice(len(members), (n, n_drawn), p=weight[members] / total)]
    length = np.stack([np.square(points - points[column]).sum(axis=1) for column in drawn.T], axis=1)
    order = np.argsort(length, axis=1, kind="stable")
    start = np.arange(n + 1) * n_drawn
    return Lists(start, np.take_along_axis(drawn, order, axis=1).ravel(), np.full(n * n_drawn, total / n_drawn),
                 np.take_along_axis(length, order, axis=1).ravel())  # fmt: skip


def choose_triplets(
    points: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, threads: Threads, *, kind: str, n_neighbors: int,
    n_sampled: int, seed: int, per_case: bool,
) -> Triplets:  # fmt: skip
    """Return the triplets of training rows; no two points of a class may be equal.

    Anchors have `n_neighbors` partners and rivals with kind "nearest", `n_sampled` with "sampled", all others with
    "all". `per_case` divides by the cube of the number of cases, as in (3.1), instead of the number of triplets.
    """
    if kind == "nearest":
        partners = nearest_lists(points, is_positive, weight, n_neighbors, threads)
        rivals = nearest_lists(points, ~is_positive, weight, n_neighbors, threads)
    elif kind == "all":
        partners, rivals = (full_lists(points, side, weight) for side in (is_positive, ~is_positive))
    else:
        rng = np.random.default_rng(seed)
        partners, rivals = (sampled_lists(points, side, weight, n_sampled, rng) for side in (is_positive, ~is_positive))
    alpha, total = weight[is_positive].sum() / weight.sum(), float(weight.sum()) ** 3 if per_case else None
    return make_triplets(is_positive, weight, alpha, partners, rivals, total)


def block_of_all(
    points: np.ndarray, mapped: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, anchors: slice
) -> tuple[Triplets, np.ndarray]:
    """Return all triplets of some anchors, divided by m^3, and the learned squared distances of their pairs."""
    positives, m = np.flatnonzero(is_positive), weight.sum()
    learned = cdist(mapped[anchors], mapped[positives], "sqeuclidean")
    n = len(learned)
    partners = Lists(
        np.arange(n + 1) * len(positives), np.tile(positives, n), np.tile(weight[positives], n), learned.ravel()
    )
    rivals = full_lists(points, ~is_positive, weight, anchors)
    alpha = weight[is_positive].sum() / m
    return make_triplets(is_positive[anchors], weight[anchors], alpha, partners, rivals, m**3), partners.distance
