"""What a person wants to know of a fitted model by neighbours, in words: gamma, distances, weights of columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from toprank.rankers.neighbours.space import Space
from toprank.tree.columns import Column
from toprank.words.counts import plural
from toprank.words.numbers import number_text, percent_text
from toprank.words.wording import SHORT

COLUMNS = 5
"""Most columns whose weights are listed."""


def gamma_text(gamma: float, cases: str = "a known positive counts") -> str:
    """Return a gamma and what it means.

    Examples
    --------
    >>> gamma_text(0.4)
    '0.4: a known positive counts as if it were 2.5 times nearer'
    """
    if gamma == 1:
        return f"1: {cases} as far away as it is"
    if gamma == 0:
        return f"0: {cases} as if it were at distance 0"
    side = "nearer" if gamma < 1 else "farther away"
    return f"{number_text(gamma)}: {cases} as if it were {_factor_text(gamma)} {side}"


def gammas_text(gammas: np.ndarray) -> str:
    """Return the range of the gammas of several regions, and what it means.

    Examples
    --------
    >>> import numpy as np
    >>> gammas_text(np.array([0.2, 0.5]))
    '0.2 to 0.5 in 2 clusters: there a known positive counts as if it were 2 times to 5 times nearer'
    """
    low, high = float(gammas.min()), float(gammas.max())
    where = f"in {plural(len(gammas), 'cluster')}"
    if number_text(low) == number_text(high):
        return f"{gamma_text(low)}, {where}"
    ends = f"{number_text(low)} to {number_text(high)} {where}"
    if low == 0 or high >= 1:
        return f"{ends}: what distances to known positives are multiplied by there"
    return f"{ends}: there a known positive counts as if it were {_factor_text(high)} to {_factor_text(low)} nearer"


def vote_text(line: float, budget: int | float | None, which: str = "whose score exceeds") -> str:
    """Return what the vote flags, and whether `predict` follows it."""
    follows = "predict follows it" if budget is None else "predict follows the budget instead"
    return f"flags cases {which} {number_text(line)}; {follows}"


def _factor_text(gamma: float) -> str:
    """Return how much nearer or farther away, as a factor, or in percent if that is small."""
    factor = 1 / gamma if gamma < 1 else gamma
    return f"{number_text(factor, 3)} times" if factor >= 1.1 else percent_text(abs(1 - gamma))


def distance_facts(
    columns: Sequence[Column], space: Space, metric: str, scaling: str | None, category_distance: float
) -> dict[str, str]:
    """Return how rows are compared, by name: the distance, and where columns have them, categories and missing values.

    The rules are those of `Space`.
    """
    numbers = {
        "minmax": "numbers are scaled so that the training range is [-1, 1]",
        "standard": "numbers are scaled to mean 0 and standard deviation 1",
        None: "numbers are not scaled",
    }[scaling]
    out = {"distance": f"{metric}; {numbers}"}
    is_category = np.array([bool(column.categories) for column in columns])
    if is_category.any():
        end = ", as far as the two ends of a number" if scaling == "minmax" and category_distance == 2 else ""
        out["categories"] = f"two different categories are {number_text(category_distance)} apart{end}"
    missing = []
    if not is_category.all():
        known, gaps = "a missing number counts as the median", np.unique(space.gap[space.gap > 0])
        apart = "one unit" if len(gaps) == 1 and gaps[0] == 1 else "one standard deviation"
        columns_with = ", in columns with missing values in training" if np.any(space.gap[~is_category] == 0) else ""
        missing.append(f"{known}; it is {apart} away from known ones{columns_with}" if len(gaps) else known)
    if is_category.any():
        missing.append(
            f"a missing or unknown category is {number_text(category_distance / math.sqrt(2), 3)} from every category"
        )
    return out | {"missing values": "; ".join(missing)}


def column_weights(components: np.ndarray, space: Space) -> np.ndarray:
    """Return how much a difference in each column counts after a linear map, float64 (n_features,); 1 is unchanged.

    Of a column with several coordinates, the root of the mean square. Columns that carry nothing have weight 0.
    """
    n, squares = len(space.scale), np.square(components).sum(axis=0)
    sums, counts = np.bincount(space.column_of, squares, n), np.bincount(space.column_of, minlength=n)
    return np.sqrt(sums / np.maximum(counts, 1))


def weights_text(columns: Sequence[Column], weights: np.ndarray) -> str:
    """Return the columns with the largest weights, and how many have none."""
    order = [i for i in np.argsort(-weights, kind="stable").tolist() if weights[i] >= 0.0005]
    listed = [f"{SHORT.name(columns[i].name)} {weights[i]:.2g}" for i in order[:COLUMNS]]
    n_none = len(columns) - len(order)
    rest = len(order) - len(listed)
    parts = [", ".join(listed) or "no column counts"]
    parts += [f"{plural(rest, 'column')} less"] if rest else []
    parts += [f"{plural(n_none, 'column')} nothing"] if n_none and order else []
    return "; ".join(parts) + "; 1 is as much as towards negatives"
