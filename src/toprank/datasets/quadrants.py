"""Images of pen strokes, labelled by which quadrants hold the ink: many columns, only sums of which are informative.

Appendix E of the paper on cost-optimal curves labels handwritten digits in this way. The strokes here are simulated, so
that the labelling rule, and with it the optimal ROC curve, is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.errors import InputError
from toprank.metrics.checks import check_count

from .populations import LAYOUT_STREAM, SimulatedData, SteppedPopulation, check_number, check_random_state

N_POINTS = 40  # points per stroke
PEN = 0.8  # standard deviation of the ink around a point, in pixels of an image of 28 x 28
GREY_LEVELS = 255
IMAGES_AT_ONCE = 512
MEDIAN_IMAGES = 4_096  # used to find the excess that separates the classes


@dataclass(frozen=True, eq=False)
class QuadrantPopulation(SteppedPopulation):
    """Images whose label says whether one diagonal pair of quadrants has much more ink than the other.

    With Q_i the sum of the pixels of quadrant i, an image is dominated by a diagonal if |(Q_1 + Q_4) - (Q_2 + Q_3)| is
    at least H. About half of all strokes are; of these, so many are dropped that there are `ratio` others for each.
    Finally, labels are flipped at random.

    Parameters
    ----------
    size : int, default=28
        Pixels per side, even and at least 8.
    ratio : float in [1, inf), default=10.0
        Number of images without a dominant diagonal per image with one.
    noise : float in [0, 0.5), default=0.1
        Probability of a wrong label.
    n_noise_features : int, default=0
        Independent uniform features after the pixels.

    Examples
    --------
    >>> from toprank.datasets import QuadrantPopulation
    >>> population = QuadrantPopulation()
    >>> round(population.positive_rate, 3), population.optimal_roc().beta.round(3).tolist()
    (0.173, [0.0, 0.474, 1.0])
    """

    size: int = 28
    ratio: float = 10.0
    noise: float = 0.1
    n_noise_features: int = 0

    def __post_init__(self) -> None:
        _check_images(self.size, self.ratio, self.noise, caller=type(self).__name__)
        check_count(self.n_noise_features, "n_noise_features", caller=type(self).__name__, low=0)

    @property
    def n_signal_features(self) -> int:
        """Number of pixels."""
        return self.size**2

    @property
    def cell_share(self) -> NDArray[np.float64]:
        """The share of images with a dominant diagonal, and of those without."""
        return np.array([1.0, self.ratio]) / (1.0 + self.ratio)

    @property
    def cell_rate(self) -> NDArray[np.float64]:
        """P(Y = 1) of images with a dominant diagonal, and of those without."""
        return np.array([1.0 - self.noise, self.noise])

    @property
    def least_excess(self) -> float:
        """H: a diagonal with at least this excess of ink is dominant."""
        return _median_excess(self.size)

    def _cell_of(self, X: NDArray[np.float64]) -> NDArray[np.intp]:
        return np.where(diagonal_excess(X, self.size) >= self.least_excess, 0, 1)

    def _draw(self, rng: np.random.Generator, n_samples: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        cell = np.where(rng.random(n_samples) < self.cell_share[0], 0, 1)
        X = np.empty((n_samples, self.size**2))
        wanted = [np.flatnonzero(cell == kind) for kind in (0, 1)]
        while len(wanted[0]) or len(wanted[1]):
            images = draw_strokes(rng, IMAGES_AT_ONCE, self.size)
            found = self._cell_of(images)
            for kind in (0, 1):
                fitting = images[found == kind][: len(wanted[kind])]
                X[wanted[kind][: len(fitting)]] = fitting
                wanted[kind] = wanted[kind][len(fitting) :]
        return X, rng.random(n_samples) < self.cell_rate[cell]


def make_quadrants(
    n_samples: int = 1000,
    *,
    size: int = 28,
    ratio: float = 10.0,
    noise: float = 0.1,
    random_state: Any = None,
) -> SimulatedData:
    """Draw grey images of pen strokes; those with most of their ink in one diagonal pair of quadrants are positive.

    No single pixel says much about the label, but two weighted sums of all pixels determine it: the case for oblique
    trees. As in handwritten digits, about four fifths of the pixels are 0, and neighbours are similar.

    Parameters
    ----------
    n_samples : int, default=1000
    size : int, default=28
        Pixels per side, even and at least 8; a row of X holds the lines of an image one after the other.
    ratio : float in [1, inf), default=10.0
        Number of images without a dominant diagonal per image with one, up to chance and before the noise.
    noise : float in [0, 0.5), default=0.1
        Probability of a wrong label.
    random_state : int, numpy.random.Generator or None, default=None
        The same int gives the same rows.

    Returns
    -------
    data : SimulatedData
        ``data.population`` is a `QuadrantPopulation`; all values of X are in [0, 1].

    References
    ----------
    .. [1] Gabidolla, Zharmagambetov, Carreira-Perpiñán. Beyond the ROC curve: classification trees using cost-optimal
       curves, with application to imbalanced datasets. ICML 2024. Appendix E.

    Examples
    --------
    >>> from toprank.datasets import make_quadrants
    >>> data = make_quadrants(200, size=8, random_state=0)
    >>> data.X.shape, sorted(set(data.probability.tolist()))
    ((200, 64), [0.1, 0.9])
    """
    caller = "make_quadrants"
    check_count(n_samples, "n_samples", caller=caller)
    _check_images(size, ratio, noise, caller=caller)
    population = QuadrantPopulation(size, ratio, noise)
    return population.sample(n_samples, check_random_state(random_state, caller=caller))


def diagonal_excess(X: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return |(Q_1 + Q_4) - (Q_2 + Q_3)| of each image, Q_i the sum of the pixels of a quadrant: shape (n,)."""
    half = size // 2
    quadrant = X.reshape(len(X), 2, half, 2, half).sum(axis=(2, 4))
    return np.abs(quadrant[:, 0, 0] + quadrant[:, 1, 1] - quadrant[:, 0, 1] - quadrant[:, 1, 0])


def draw_strokes(rng: np.random.Generator, n_images: int, size: int) -> NDArray[np.float64]:
    """Return images of one pen stroke each, in 256 levels of grey: shape (n_images, size ** 2).

    A stroke turns smoothly, at a rate that wanders, and is moved and scaled into the middle five sevenths of the image,
    where digits are.
    """
    turn = 0.08 * rng.standard_normal((n_images, 1)) + np.cumsum(0.02 * rng.standard_normal((n_images, N_POINTS)), 1)
    heading = 2.0 * np.pi * rng.random((n_images, 1)) + np.cumsum(turn, axis=1)
    path = np.stack([np.cumsum(np.sin(heading), axis=1), np.cumsum(np.cos(heading), axis=1)], axis=1)
    low, high = path.min(axis=2, keepdims=True), path.max(axis=2, keepdims=True)
    longest = (high - low).max(axis=1, keepdims=True)
    path = (path - (low + high) / 2.0) / longest  # in [-1/2, 1/2], filled by its longer side
    path = path * (5.0 / 7.0) + 0.04 * rng.standard_normal((n_images, 2, 1)) + 0.5
    # The ink of a point is a product of both directions, so that all points together are one matrix product.
    offset = (path[:, :, :, None] * size - (np.arange(size) + 0.5)) * (28.0 / size / PEN)
    ink = np.exp(-0.5 * offset**2)
    grey = 0.9 * (ink[:, 0].transpose(0, 2, 1) @ ink[:, 1]) - 0.1
    return np.rint(GREY_LEVELS * np.clip(grey, 0.0, 1.0)).reshape(n_images, size**2) / GREY_LEVELS


@lru_cache
def _median_excess(size: int) -> float:
    """Return the median excess of images, between two levels of grey, so that rounding decides no label."""
    rng = np.random.default_rng([size, LAYOUT_STREAM])
    parts = [draw_strokes(rng, IMAGES_AT_ONCE, size) for _ in range(MEDIAN_IMAGES // IMAGES_AT_ONCE)]
    excess = np.concatenate([diagonal_excess(images, size) for images in parts])
    return (np.floor(GREY_LEVELS * float(np.median(excess))) + 0.5) / GREY_LEVELS


def _check_images(size: Any, ratio: Any, noise: Any, *, caller: str) -> None:
    check_count(size, "size", caller=caller, low=8)
    if size % 2:
        raise InputError(
            f"The 'size' parameter of {caller} must be even, so that quadrants have whole pixels. Got {size} instead. "
            "Hint: handwritten digits have 28."
        )
    check_number(ratio, "ratio", "[1, inf)", caller=caller)
    check_number(noise, "noise", "[0, 0.5)", caller=caller)
