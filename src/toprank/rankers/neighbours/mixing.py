"""New rows between known rows: neighbours of a group are mixed, numbers in proportion, categories from one of both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toprank._core.threads import Threads
from toprank.rankers.neighbours.search import PointSet
from toprank.rankers.neighbours.space import Space

N_NEIGHBORS = 5
"""Number of nearest neighbours to choose a partner from."""


class MixedRows(NamedTuple):
    """New rows, the known row that each was made from, and that row's neighbour that it was mixed with."""

    X: np.ndarray
    origin: np.ndarray
    partner: np.ndarray


def mix_neighbours(
    X: np.ndarray,
    n_categories: np.ndarray,
    group: np.ndarray,
    n_new: np.ndarray,
    rng: np.random.Generator,
    threads: Threads,
) -> MixedRows:
    """Return new rows, each between a row and one of its nearest neighbours of the same group.

    A number is a + u (b - a) with one u per row, uniform from 0 to 1; a category, or a number that one of both lacks,
    is that of b with probability u. Groups of one row give none.

    In X, float (n, n_features), categories are codes and NaN is missing; `n_categories` is 0 for numbers. `group` is
    that of each row, -1 for none, and `n_new` the number of new rows per group.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank._core.threads import Threads
    >>> X, group = np.array([[0.0], [1.0], [10.0], [12.0]]), np.array([0, 0, 1, 1])
    >>> new = mix_neighbours(X, np.array([0]), group, np.array([3, 2]), np.random.default_rng(0), Threads())
    >>> bool((new.X[:3] <= 1).all() and (new.X[3:] >= 10).all()), len(new.X)
    (True, 5)
    """
    points = Space.learn(X, n_categories, (group >= 0).astype(np.float64), scaling="standard").points(X)
    origins, partners = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for g, count in enumerate(n_new.tolist()):
        members = np.flatnonzero(group == g)
        if len(members) < 2 or count < 1:
            continue
        chosen = rng.integers(0, len(members), count)
        asked, which = np.unique(chosen, return_inverse=True)
        k = min(N_NEIGHBORS, len(members) - 1)
        near = PointSet(points[members]).nearest(points[members[asked]], k, threads, left_out=asked).position
        origins.append(members[chosen])
        partners.append(members[near[which, rng.integers(0, k, count)]])
    origin, partner = np.concatenate(origins), np.concatenate(partners)
    return MixedRows(_between(X[origin], X[partner], n_categories, rng), origin, partner)


def _between(a: np.ndarray, b: np.ndarray, n_categories: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows between those of a and b."""
    u = rng.random((len(a), 1))
    takes_b = rng.random(a.shape) < u
    with np.errstate(over="ignore", invalid="ignore"):
        mixed = a * (1.0 - u) + b * u
    is_whole = (np.asarray(n_categories) > 0) | ~np.isfinite(mixed)  # nothing lies between
    return np.where(is_whole, np.where(takes_b, b, a), mixed)
