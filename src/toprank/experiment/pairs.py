"""Paired comparisons: a reference method against all others, our figures beside published ones.

Each pair is compared on the splits that both have. As in `summary`, functions take and return frames, and the order of
rows changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toprank.experiment.panel import (
    AP,
    COUNTS,
    METHOD,
    RESOLUTION,
    NothingToCompareError,
    Panel,
    check_columns,
    check_reference,
    deviation,
    finished,
    make_panel,
    to_frame,
)
from toprank.metrics.comparison import Comparison, corrected_resampled_t_test, holm, wilcoxon_test

if TYPE_CHECKING:
    import polars


SHOWN = 5e-5
"""Smaller differences show as 0.00 points in a table."""


def signed_ranks(own: NDArray[np.float64], other: NDArray[np.float64]) -> Comparison:
    """Wilcoxon's test over data sets, ignoring rounding differences."""
    differences = np.round(own - other, RESOLUTION)
    return wilcoxon_test(differences, np.zeros_like(differences))


def against(
    results: polars.DataFrame, reference: str, measure: str = AP, methods: Sequence[str] | None = None
) -> polars.DataFrame:
    """A reference against every other method over data sets, strongest competitor first.

    Each pair is compared on the splits that both finished; a method that shares none is left out.

    Returns
    -------
    polars.DataFrame
        method, n_data_sets, n_splits, difference (mean of reference minus method), wins, ties, losses (of the
        reference over data sets), p_value (Wilcoxon's signed-rank test), p_holm (adjusted for all rows).
    """
    rows: list[tuple[Any, ...]] = []
    for method, panel in _pairs(results, reference, [measure], methods):
        own, other = panel.means[:, 0, 0], panel.means[:, 1, 0]
        result = signed_ranks(own, other)
        counts = (own > other).sum(), (own == other).sum(), (own < other).sum()
        difference = round(result.difference, RESOLUTION)
        rows.append((method, len(own), panel.n_splits, difference, *counts, result.p_value))
    adjusted = holm([row[-1] for row in rows])
    rows = sorted(((*row, p) for row, p in zip(rows, adjusted, strict=True)), key=lambda row: (row[3], row[0]))
    schema = {"difference": float, "wins": int, "ties": int, "losses": int, "p_value": float, "p_holm": float}
    return to_frame(rows, METHOD | COUNTS | schema)


def against_by_data_set(
    results: polars.DataFrame,
    reference: str,
    measure: str = AP,
    methods: Sequence[str] | None = None,
    *,
    level: float = 0.95,
) -> polars.DataFrame:
    """A reference against every other method on each data set, by the corrected resampled t-test over splits.

    Returns
    -------
    polars.DataFrame
        dataset, positive_rate, method, n_splits, difference (reference minus method), low, high (interval at
        `level`), p_value, p_holm (adjusted for the methods of the data set). Intervals and p-values are null if a data
        set has only one split.
    """
    rows: list[tuple[Any, ...]] = []
    for method, panel in _pairs(results, reference, [measure, "n_train", "n_test"], methods):
        for dataset, rate, values, means in panel.each():
            differences = np.round(values[:, 0, 0] - values[:, 1, 0], RESOLUTION)
            tested: tuple[float, ...] = (math.nan, math.nan, math.nan)
            if len(differences) > 1:
                result = corrected_resampled_t_test(differences, means[0, 1], means[0, 2], level=level)
                assert result.interval is not None
                tested = result.interval.low, result.interval.high, result.p_value
            rows.append((dataset, rate, method, len(values), round(differences.mean(), RESOLUTION), *tested))
    adjusted: dict[tuple[str, str], float] = {}
    for dataset in {row[0] for row in rows}:
        family = [row for row in rows if row[0] == dataset and not math.isnan(row[-1])]
        corrected = holm([row[-1] for row in family])
        adjusted |= {(dataset, row[2]): p for row, p in zip(family, corrected, strict=True)}
    rows = [(*row, adjusted.get((row[0], row[2]), math.nan)) for row in rows]
    rows.sort(key=lambda row: (row[1], row[0], row[4], row[2]))
    figures = ("difference", "low", "high", "p_value", "p_holm")
    schema = {"dataset": str, "positive_rate": float} | METHOD | {"n_splits": int} | dict.fromkeys(figures, float)
    return to_frame(rows, schema)


def beside_published(
    results: polars.DataFrame,
    published: polars.DataFrame,
    measure: str = AP,
    names: Mapping[str, str] | None = None,
) -> polars.DataFrame:
    """Ours beside published figures, one row per method, over the splits that both have.

    Parameters
    ----------
    published : polars.DataFrame
        Columns dataset, split, method and the measure.
    names : mapping of str to str or None
        Our label -> name of the published method, where the two differ.

    Returns
    -------
    polars.DataFrame
        method, n_data_sets, n_splits, ours, published (means over data sets), difference (ours minus published),
        n_below (data sets on which ours is more than two standard errors, and 0.005 points, below). Best of ours first.
    """
    rows = []
    for method, panel in _published_pairs(results, published, measure, names):
        ours, theirs = panel.overall[:, 0]
        n_below = sum(_paired(values)[1] for values in panel.values)
        difference = round(ours - theirs, RESOLUTION)
        rows.append((method, len(panel.data_sets), panel.n_splits, ours, theirs, difference, n_below))
    schema = {"ours": float, "published": float, "difference": float, "n_below": int}
    return to_frame(rows, METHOD | COUNTS | schema)


def beside_published_by_data_set(
    results: polars.DataFrame,
    published: polars.DataFrame,
    measure: str = AP,
    names: Mapping[str, str] | None = None,
) -> polars.DataFrame:
    """Ours beside published figures, one row per data set and method; parameters as in `beside_published`.

    Returns
    -------
    polars.DataFrame
        dataset, positive_rate, method, n_splits, ours, published, difference, standard_error (of the paired
        difference over splits; null for one split), is_below (more than two standard errors, and 0.005 points, below).
    """
    rows = []
    for place, (method, panel) in enumerate(_published_pairs(results, published, measure, names)):
        for dataset, rate, values, means in panel.each():
            difference = round(means[0, 0] - means[1, 0], RESOLUTION)
            row = (dataset, rate, method, len(values), means[0, 0], means[1, 0], difference, *_paired(values))
            rows.append(((rate, dataset, place), row))
    figures = ("ours", "published", "difference", "standard_error")
    schema = {"dataset": str, "positive_rate": float} | METHOD | {"n_splits": int} | dict.fromkeys(figures, float)
    return to_frame([row for _, row in sorted(rows, key=lambda row: row[0])], schema | {"is_below": bool})


def _pairs(
    results: polars.DataFrame, reference: str, measures: Sequence[str], methods: Sequence[str] | None
) -> list[tuple[str, Panel]]:
    """(other method, panel of the reference and it), by name."""
    check_columns(results, ["method", *measures])
    known = finished(results, measures[:1])["method"].unique().to_list() if methods is None else list(methods)
    check_reference(reference, known)
    pairs = []
    for name in sorted(set(known) - {reference}):
        try:
            pairs.append((name, make_panel(results, measures, [reference, name])))
        except NothingToCompareError:
            continue
    if not pairs:
        raise NothingToCompareError(
            f"No other method finished a split that {reference!r} finished. Hint: `incomplete` counts what is missing."
        )
    return pairs


def _published_pairs(
    results: polars.DataFrame, published: polars.DataFrame, measure: str, names: Mapping[str, str] | None
) -> list[tuple[str, Panel]]:
    """(method, panel of ours and published), best of ours first; methods without a split of both are left out."""
    import polars as pl

    check_columns(published, ["dataset", "split", "method", measure])
    ours, theirs = finished(results, [measure]), finished(published, [measure])
    keys, pairs = ["dataset", "split"], []
    for method in sorted(ours["method"].unique().to_list()):
        own = ours.filter(pl.col("method") == method).select(*keys, "positive_rate", measure, method=pl.lit("ours"))
        other = theirs.filter(pl.col("method") == (names or {}).get(method, method))
        rates = own.select(*keys, "positive_rate").unique()
        both = other.select(*keys, measure, method=pl.lit("published")).join(rates, on=keys)
        if both.height:
            rows = pl.concat([own, both.select(own.columns)])
            pairs.append((method, make_panel(rows, [measure], ["ours", "published"])))
    if not pairs:
        raise NothingToCompareError(
            "The results and the published figures share no split of any method. Hint: methods, data sets and splits "
            "are matched by name; `names` maps our labels to published ones."
        )
    return sorted(pairs, key=lambda pair: (-pair[1].overall[0, 0], pair[0]))


def _paired(values: NDArray[np.float64]) -> tuple[float, bool]:
    """Standard error of ours minus published over splits, and whether the mean is more than two of them below 0.

    A difference that a table shows as 0.00 points does not count as below.
    """
    differences = np.round(values[:, 0, 0] - values[:, 1, 0], RESOLUTION)
    if len(differences) < 2:
        return math.nan, False
    error = float(deviation(differences) / math.sqrt(len(differences)))
    return error, bool(differences.mean() < -max(2 * error, SHOWN))
