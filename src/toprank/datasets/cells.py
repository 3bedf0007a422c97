"""Uniform rows in the unit cube with a positive rate that is constant on cells: checkerboards and boxes.

The optimal ROC curve is exact. On a checkerboard no feature is informative without the others; with boxes, positives
are rare and most of them are in a few small places.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.errors import InputError
from toprank.metrics.checks import check_count

from .populations import SimulatedData, SteppedPopulation, check_number, check_random_state, layout_generator


@dataclass(frozen=True, eq=False)
class CheckerboardPopulation(SteppedPopulation):
    """A board whose fields alternate between two rates: exclusive or, if each side has two fields.

    The number of fields per side is even. Each line of the board then has as many fields of one kind as of the other,
    so that the label is independent of any proper subset of the features.

    Parameters
    ----------
    n_signal_features : int, default=2
        Dimension of the board, at least 2.
    n_fields : int, default=2
        Fields per side, even.
    positive_rate : float in (0, 1), default=0.5
    contrast : float in (0, 1], default=0.8
        The rates of the fields are positive_rate * (1 + contrast), in the corner at 0 and in every second field from
        there, and positive_rate * (1 - contrast).
    n_noise_features : int, default=0
        Independent uniform features after the others.

    Examples
    --------
    >>> from toprank.datasets import CheckerboardPopulation
    >>> board = CheckerboardPopulation()
    >>> board.probability([[0.2, 0.2], [0.2, 0.7], [0.7, 0.7]]).round(9).tolist()
    [0.9, 0.1, 0.9]
    >>> round(board.optimal_auc(), 9)
    0.9
    """

    n_signal_features: int = 2
    n_fields: int = 2
    positive_rate: float = 0.5
    contrast: float = 0.8
    n_noise_features: int = 0

    def __post_init__(self) -> None:
        caller = type(self).__name__
        check_count(self.n_signal_features, "n_signal_features", caller=caller, low=2)
        _check_board(self.n_fields, self.positive_rate, self.contrast, caller=caller)
        check_count(self.n_noise_features, "n_noise_features", caller=caller, low=0)

    @property
    def cell_share(self) -> NDArray[np.float64]:
        """One half for each kind of field."""
        return np.array([0.5, 0.5])

    @property
    def cell_rate(self) -> NDArray[np.float64]:
        """The rates of the two kinds of field."""
        return self.positive_rate * np.array([1.0 + self.contrast, 1.0 - self.contrast])

    def _cell_of(self, X: NDArray[np.float64]) -> NDArray[np.intp]:
        field = np.minimum((X * self.n_fields).astype(np.intp), self.n_fields - 1)  # 1.0 is in the last field
        return field.sum(axis=1) % 2


@dataclass(frozen=True, eq=False)
class BoxPopulation(SteppedPopulation):
    """A few boxes with rates of their own in a uniform background.

    Parameters
    ----------
    lower, upper : array-like of shape (n_boxes, d)
        Opposite corners of the boxes, in the unit cube. A box includes its lower faces, but not its upper ones; boxes
        do not overlap.
    box_rate : array-like of shape (n_boxes,)
        P(Y = 1) inside each box.
    background_rate : float in [0, 1]
        P(Y = 1) outside the boxes.
    n_noise_features : int, default=0
        Independent uniform features after the others.

    Examples
    --------
    >>> from toprank.datasets import BoxPopulation
    >>> population = BoxPopulation([[0.0, 0.0]], [[0.5, 0.2]], [0.4], 0.01)
    >>> round(population.positive_rate, 3), population.probability([[0.1, 0.1], [0.9, 0.1]]).tolist()
    (0.049, [0.4, 0.01])
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    box_rate: NDArray[np.float64]
    background_rate: float
    n_noise_features: int = 0

    def __post_init__(self) -> None:
        caller = type(self).__name__
        for name in ("lower", "upper", "box_rate"):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=np.float64))
        check_number(self.background_rate, "background_rate", "[0, 1]", caller=caller)
        check_count(self.n_noise_features, "n_noise_features", caller=caller, low=0)
        _check_boxes(self.lower, self.upper, self.box_rate, caller=caller)
        if not 0.0 < self.positive_rate < 1.0:
            raise InputError(
                f"{caller} needs cases of both classes, but all rates are {self.background_rate:g}. "
                "Hint: change background_rate or box_rate."
            )

    @property
    def n_signal_features(self) -> int:
        """Dimension of the boxes."""
        return self.lower.shape[1]

    @property
    def cell_share(self) -> NDArray[np.float64]:
        """The volumes of the boxes and, last, of the background."""
        volume = (self.upper - self.lower).prod(axis=1)
        return np.r_[volume, max(1.0 - volume.sum(), 0.0)]

    @property
    def cell_rate(self) -> NDArray[np.float64]:
        """The rates of the boxes and, last, of the background."""
        return np.r_[self.box_rate, self.background_rate]

    def _cell_of(self, X: NDArray[np.float64]) -> NDArray[np.intp]:
        cell = np.full(len(X), len(self.lower))
        for box, (lower, upper) in enumerate(zip(self.lower, self.upper, strict=True)):
            cell[((lower <= X) & (upper > X)).all(axis=1)] = box
        return cell


def make_checkerboard(
    n_samples: int = 1000,
    *,
    n_features: int = 2,
    n_fields: int = 2,
    positive_rate: float = 0.5,
    contrast: float = 0.8,
    n_noise_features: int = 0,
    random_state: Any = None,
) -> SimulatedData:
    """Draw rows on a checkerboard, where only all features together are informative about the label.

    Every feature alone, and any set of fewer than ``n_features`` of them, is independent of y, so that a greedy first
    split has no signal.

    Parameters
    ----------
    n_samples : int, default=1000
    n_features : int, default=2
        Dimension of the board, at least 2.
    n_fields : int, default=2
        Fields per side, even. Two is exclusive or.
    positive_rate : float in (0, 1), default=0.5
        P(y = 1); the share of positives varies around it by chance.
    contrast : float in (0, 1], default=0.8
        The rates of the two kinds of field are positive_rate * (1 + contrast) and positive_rate * (1 - contrast).
    n_noise_features : int, default=0
        Independent uniform features after the others.
    random_state : int, numpy.random.Generator or None, default=None
        The same int gives the same rows.

    Returns
    -------
    data : SimulatedData
        ``data.population`` is a `CheckerboardPopulation`.

    Examples
    --------
    >>> from toprank.datasets import make_checkerboard, optimal_roc
    >>> data = make_checkerboard(500, random_state=0)
    >>> optimal_roc(data).alpha.round(9).tolist(), optimal_roc(data).beta.round(9).tolist()
    ([0.0, 0.1, 1.0], [0.0, 0.9, 1.0])
    """
    caller = "make_checkerboard"
    check_count(n_samples, "n_samples", caller=caller)
    check_count(n_features, "n_features", caller=caller, low=2)
    _check_board(n_fields, positive_rate, contrast, caller=caller)
    check_count(n_noise_features, "n_noise_features", caller=caller, low=0)
    population = CheckerboardPopulation(n_features, n_fields, positive_rate, contrast, n_noise_features)
    return population.sample(n_samples, check_random_state(random_state, caller=caller))


def make_boxes(
    n_samples: int = 10_000,
    *,
    n_features: int = 3,
    n_boxes: int = 3,
    box_volume: float = 0.01,
    positive_rate: float = 0.02,
    rate_ratio: float = 50.0,
    layout_seed: int = 0,
    n_noise_features: int = 0,
    random_state: Any = None,
) -> SimulatedData:
    """Draw rare positives, many of which are in a few small boxes.

    Parameters
    ----------
    n_samples : int, default=10_000
    n_features : int, default=3
        Dimension of the boxes.
    n_boxes : int, default=3
    box_volume : float in (0, 1), default=0.01
        Share of all rows in each box.
    positive_rate, n_noise_features, random_state
        As in `make_checkerboard`; positives are rare by default.
    rate_ratio : float in (1, inf), default=50.0
        Positive rate in the best box relative to the background. The other boxes go down to half of it in equal steps.
    layout_seed : int, default=0
        Seed of the box positions, separate from the rows: the same population for every ``random_state``.

    Returns
    -------
    data : SimulatedData
        ``data.population`` is a `BoxPopulation`.

    Examples
    --------
    >>> from toprank.datasets import make_boxes
    >>> data = make_boxes(random_state=0)
    >>> data.population.box_rate.round(3).tolist(), round(data.population.background_rate, 4)
    ([0.477, 0.358, 0.239], 0.0095)
    """
    caller = "make_boxes"
    check_count(n_samples, "n_samples", caller=caller)
    check_count(n_features, "n_features", caller=caller)
    check_count(n_boxes, "n_boxes", caller=caller)
    check_number(box_volume, "box_volume", "(0, 1)", caller=caller)
    check_number(positive_rate, "positive_rate", "(0, 1)", caller=caller)
    check_number(rate_ratio, "rate_ratio", "(1, inf)", caller=caller)
    check_count(n_noise_features, "n_noise_features", caller=caller, low=0)
    layout = layout_generator(layout_seed, "layout_seed", caller=caller)
    lower, upper = _place_boxes(layout, n_boxes, n_features, box_volume, caller)
    ratio = np.linspace(rate_ratio, rate_ratio / 2.0, n_boxes) if n_boxes > 1 else np.array([rate_ratio])
    background = float(positive_rate / (1.0 + box_volume * (ratio - 1.0).sum()))
    if background * rate_ratio > 1.0:
        raise InputError(
            f"make_boxes needs rates of at most 1, but positive_rate={positive_rate:g} and rate_ratio={rate_ratio:g} "
            f"give {background * rate_ratio:.3g} in the best box. Hint: lower one of them, or raise box_volume."
        )
    population = BoxPopulation(lower, upper, background * ratio, background, n_noise_features)
    return population.sample(n_samples, check_random_state(random_state, caller=caller))


def _place_boxes(
    layout: np.random.Generator, n_boxes: int, n_features: int, box_volume: float, caller: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corners of equal cubes, each at a random place in its own field of a regular grid."""
    n_fields = 1
    while n_fields**n_features < n_boxes:
        n_fields += 1
    side, field = box_volume ** (1.0 / n_features), 1.0 / n_fields
    if side > field:
        raise InputError(
            f"{caller} cannot place {n_boxes} boxes of volume {box_volume:g} in {n_features} dimensions: with "
            f"{n_fields} fields per side the largest is {field**n_features:.3g}. Hint: lower n_boxes or box_volume."
        )
    chosen = layout.choice(n_fields**n_features, n_boxes, replace=False)
    corner = np.stack(np.unravel_index(chosen, (n_fields,) * n_features), axis=1) * field
    lower = corner + layout.random((n_boxes, n_features)) * (field - side)
    return lower, np.minimum(lower + side, 1.0)


def _check_board(n_fields: Any, positive_rate: Any, contrast: Any, *, caller: str) -> None:
    check_count(n_fields, "n_fields", caller=caller, low=2)
    if n_fields % 2:
        raise InputError(
            f"The 'n_fields' parameter of {caller} must be even, so that no feature alone is informative. "
            f"Got {n_fields} instead. Hint: 2 is exclusive or."
        )
    check_number(positive_rate, "positive_rate", "(0, 1)", caller=caller)
    check_number(contrast, "contrast", "(0, 1]", caller=caller)
    if positive_rate * (1.0 + contrast) > 1.0:
        raise InputError(
            f"{caller} needs rates of at most 1, but positive_rate={positive_rate:g} and contrast={contrast:g} give "
            f"{positive_rate * (1.0 + contrast):.3g}. Hint: lower one of them."
        )


def _check_boxes(
    lower: NDArray[np.float64], upper: NDArray[np.float64], rate: NDArray[np.float64], *, caller: str
) -> None:
    """Raise if the boxes are not valid boxes in the unit cube, overlap, or have invalid rates."""
    is_table = lower.ndim == 2 and lower.shape == upper.shape and lower.size > 0 and rate.shape == lower.shape[:1]
    if not is_table:
        raise InputError(
            f"{caller} needs one row in lower and upper and one rate for each box. Got shapes {lower.shape}, "
            f"{upper.shape} and {rate.shape}. Hint: one box in two dimensions is lower=[[0, 0]], upper=[[0.5, 0.5]]."
        )
    if not ((lower >= 0.0) & (lower < upper) & (upper <= 1.0)).all():
        raise InputError(
            f"{caller} needs 0 <= lower < upper <= 1 in every coordinate of every box. Got lower={lower.tolist()} and "
            f"upper={upper.tolist()}. Hint: all rows are in the unit cube."
        )
    if not ((rate >= 0.0) & (rate <= 1.0)).all():
        raise InputError(
            f"The 'box_rate' parameter of {caller} must be numbers in [0, 1]. Got {rate.tolist()} instead. "
            "Hint: a rate is a probability, not a ratio."
        )
    for a, b in combinations(range(len(lower)), 2):
        if (np.maximum(lower[a], lower[b]) < np.minimum(upper[a], upper[b])).all():
            raise InputError(
                f"{caller} needs boxes that do not overlap, but boxes {a} and {b} do. Hint: shrink one of them."
            )
