"""Summaries of an experiment: from the frames of a store to small frames that tables and plots show.

Every function takes the frame of `Store.results()` or `Store.profiles()` and returns a polars frame of shares in 0..1;
the order of rows changes nothing. A data set is represented by the splits that all compared methods finished (`panel`
explains the rule); a pair of methods, or ours and a published one, by the splits that both have. Data sets are sorted
by share of positives, methods by their mean, best first. Only `times` has times: all other frames are the same however
often a run was stopped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toprank.experiment.panel import (
    AP,
    COUNTS,
    METHOD,
    RESOLUTION,
    NothingToCompareError,
    Panel,
    deviation,
    finished,
    make_panel,
    to_frame,
)
from toprank.experiment.statistics import FriedmanTest, friedman_test, mean_ranks, nemenyi_difference
from toprank.metrics.comparison import Comparison, holm, wilcoxon_test

if TYPE_CHECKING:
    import polars

LEVELS = (10, 20, 30, 40, 50)
LEVEL = 0.05
"""Significance level of differences of mean ranks."""

SECONDS = ("seconds_tune", "seconds_fit", "seconds_score")
SHOWN = 5e-5
"""Smaller differences show as 0.00 points in a table."""


# --- one row per method -----------------------------------------------------------------------------------------


def leaderboard(results: polars.DataFrame, measure: str = AP) -> polars.DataFrame:
    """One row per method, best mean first.

    Returns
    -------
    polars.DataFrame
        method, n_data_sets, n_splits (of all data sets), mean (over data sets of the means over splits), std (over
        data sets), mean_rank, wins (data sets on which no method has a higher mean), size (median over splits),
        size_unit (both null if splits differ in it), is_readable.
    """
    panel = make_panel(results, [measure, "size"])
    means = panel.means[:, :, 0]
    ranks, wins = mean_ranks(means), (means == means.max(axis=1, keepdims=True)).sum(axis=0)
    sizes = np.concatenate(panel.values)[:, :, 1]
    facts = finished(results, [measure]).select("method", "size_unit", "is_readable").unique()
    rows = []
    for i, method in enumerate(panel.methods):
        own = facts.filter(facts["method"] == method)
        units, measured = own["size_unit"].drop_nulls().unique().to_list(), sizes[np.isfinite(sizes[:, i]), i]
        has_size = len(units) == 1 and len(measured) > 0
        size, unit = (float(np.median(measured)), units[0]) if has_size else (None, None)
        rows.append((method, len(means), panel.n_splits, panel.overall[i, 0], deviation(means[:, i]), ranks[i],
                     wins[i], size, unit, bool(own["is_readable"].all())))  # fmt: skip
    rows.sort(key=lambda row: (-row[3], row[0]))
    schema = {"mean": float, "std": float, "mean_rank": float, "wins": int, "size": float, "size_unit": str,
              "is_readable": bool}  # fmt: skip
    return to_frame(rows, METHOD | COUNTS | schema)


class RankComparison(NamedTuple):
    """Data of a critical-difference diagram."""

    mean_ranks: dict[str, float]  # by method, best first
    n_data_sets: int
    test: FriedmanTest  # whether the methods differ at all
    critical_difference: float  # of two mean ranks, by Nemenyi's test


def compare_ranks(results: polars.DataFrame) -> RankComparison:
    """Mean ranks of all methods with Friedman's test and Nemenyi's critical difference (Demšar 2006)."""
    panel = make_panel(results, [AP])
    means = panel.means[:, :, 0]
    n_data_sets, n_methods = means.shape
    if n_data_sets < 2 or n_methods < 3:
        raise NothingToCompareError(
            f"Ranks need at least 2 data sets and 3 methods, found {n_data_sets} and {n_methods}."
        )
    ranks = sorted(zip(mean_ranks(means).tolist(), panel.methods, strict=True))
    difference = nemenyi_difference(n_methods, n_data_sets, LEVEL)
    return RankComparison({name: rank for rank, name in ranks}, n_data_sets, friedman_test(means), difference)


def times(results: polars.DataFrame) -> polars.DataFrame:
    """Seconds to tune, fit and score, one row per method, fastest first; over splits that all methods finished.

    Returns
    -------
    polars.DataFrame
        method, n_data_sets, n_splits, seconds_tune, seconds_fit, seconds_score (means of one trial), seconds_total
        (of all trials counted).
    """
    panel = make_panel(results, SECONDS, n_needed=len(SECONDS))
    sums = np.concatenate(panel.values).sum(axis=0)
    rows = [
        (method, len(panel.data_sets), panel.n_splits, *(sums[i] / panel.n_splits), sums[i].sum())
        for i, method in enumerate(panel.methods)
    ]
    rows.sort(key=lambda row: (row[-1], row[0]))
    return to_frame(rows, METHOD | COUNTS | dict.fromkeys((*SECONDS, "seconds_total"), float))


# --- a figure for each data set, level or value -----------------------------------------------------------------


def by_data_set(results: polars.DataFrame) -> polars.DataFrame:
    """One row per data set and method.

    Returns
    -------
    polars.DataFrame
        dataset, positive_rate, method, n_splits, mean, std (over splits), is_best (no other mean is higher).
    """
    panel = make_panel(results, [AP])
    rows = []
    for dataset, rate, values, means in panel.each():
        for i, method in enumerate(panel.methods):
            figures = (len(values), means[i, 0], deviation(values[:, i, 0]), means[i, 0] == means[:, 0].max())
            rows.append((dataset, rate, method, *figures))
    schema = {"n_splits": int, "mean": float, "std": float, "is_best": bool}
    return to_frame(rows, {"dataset": str, "positive_rate": float} | METHOD | schema)


def by_imbalance(
    results: polars.DataFrame, reference: str | None = None, levels: Sequence[float] = LEVELS
) -> polars.DataFrame:
    """Means over the data sets with at most `level` % positives (MetaAP paper, figure 3).

    Returns
    -------
    polars.DataFrame
        level, n_data_sets, method, mean, is_best; with a reference also rival (the other method with the highest
        mean), difference (reference minus rival) and p_value (Wilcoxon's test over data sets), the same in all rows
        of a level. Levels without a data set are left out.
    """
    panel = make_panel(results, [AP])
    rows = []
    for level in levels:
        if panel.positive_rates.min() > level / 100:
            continue
        part = panel.at_most(level)
        overall = part.overall[:, 0]
        tested: tuple[Any, ...] = ()
        if reference is not None:
            own = part.methods.index(reference)
            others = [i for i in range(len(part.methods)) if i != own]
            best = min(others, key=lambda i: (-overall[i], part.methods[i]))
            result = signed_ranks(part.means[:, own, 0], part.means[:, best, 0])
            tested = (part.methods[best], round(result.difference, RESOLUTION), result.p_value)
        for i, method in enumerate(part.methods):
            rows.append((float(level), len(part.data_sets), method, overall[i], overall[i] == overall.max(), *tested))
    schema = {"level": float, "n_data_sets": int} | METHOD | {"mean": float, "is_best": bool}
    return to_frame(rows, schema | ({} if reference is None else {"rival": str, "difference": float, "p_value": float}))


def precision_curves(results: polars.DataFrame, level: float = 50) -> polars.DataFrame:
    """Mean precision at k over the data sets with at most `level` % positives (MetaAP paper, figures 4 and 6).

    Returns
    -------
    polars.DataFrame
        percent (k as a share of the test positives, in %), n_data_sets, method, mean; method by method.
    """
    percents = sorted(int(found[1]) for name in results.columns if (found := re.fullmatch(r"p_at_(\d+)", name)))
    if not percents:
        raise NothingToCompareError(
            "The results have no precision at k (columns p_at_1, p_at_5, ...). Hint: add the measure "
            "'precision_at_positives' to the plan."
        )
    panel = make_panel(results, [f"p_at_{k}" for k in percents], n_needed=len(percents)).at_most(level)
    rows = [
        (percent, len(panel.data_sets), method, panel.overall[i, j])
        for i, method in enumerate(panel.methods)
        for j, percent in enumerate(percents)
    ]
    return to_frame(rows, {"percent": int, "n_data_sets": int} | METHOD | {"mean": float})


def by_value(profiles: polars.DataFrame, level: float = 50) -> polars.DataFrame:
    """Mean AP by value of the profiled parameter, over data sets with at most `level` % positives (figure 5).

    A split counts if every method has all of its values there.

    Returns
    -------
    polars.DataFrame
        parameter, value, n_data_sets, method, mean; method by method.
    """
    panel = make_panel(profiles, [AP], parts=("parameter", "value")).at_most(level)
    rows = [
        (parameter, value, len(panel.data_sets), method, panel.overall[i, 0])
        for i, (method, parameter, value) in enumerate(panel.series)
    ]
    return to_frame(rows, {"parameter": str, "value": float, "n_data_sets": int} | METHOD | {"mean": float})


# --- pairs --------------------------------------------------------------------------------------------------------


def signed_ranks(own: NDArray[np.float64], other: NDArray[np.float64]) -> Comparison:
    """Wilcoxon's test over data sets, ignoring rounding differences."""
    differences = np.round(own - other, RESOLUTION)
    return wilcoxon_test(differences, np.zeros_like(differences))


def against(results: polars.DataFrame, reference: str) -> polars.DataFrame:
    """A reference against every other method over data sets, strongest competitor first.

    Each pair is compared on the splits that both finished; a method that shares none is left out.

    Returns
    -------
    polars.DataFrame
        method, n_data_sets, n_splits, difference (mean of reference minus method), wins, ties, losses (of the
        reference over data sets), p_value (Wilcoxon's signed-rank test), p_holm (adjusted for all rows).
    """
    rows: list[tuple[Any, ...]] = []
    for method, panel in _pairs(results, reference):
        own, other = panel.means[:, 0, 0], panel.means[:, 1, 0]
        result = signed_ranks(own, other)
        counts = (own > other).sum(), (own == other).sum(), (own < other).sum()
        difference = round(result.difference, RESOLUTION)
        rows.append((method, len(own), panel.n_splits, difference, *counts, result.p_value))
    adjusted = holm([row[-1] for row in rows])
    rows = sorted(((*row, p) for row, p in zip(rows, adjusted, strict=True)), key=lambda row: (row[3], row[0]))
    schema = {"difference": float, "wins": int, "ties": int, "losses": int, "p_value": float, "p_holm": float}
    return to_frame(rows, METHOD | COUNTS | schema)


def beside_published(results: polars.DataFrame, published: polars.DataFrame) -> polars.DataFrame:
    """Ours beside published figures, one row per method, over the splits that both have.

    `published` has the columns dataset, split, method and average_precision.

    Returns
    -------
    polars.DataFrame
        method, n_data_sets, n_splits, ours, published (means over data sets), difference (ours minus published),
        n_below (data sets on which ours is more than two standard errors, and 0.005 points, below). Best of ours first.
    """
    rows = []
    for method, panel in _published_pairs(results, published):
        ours, theirs = panel.overall[:, 0]
        n_below = sum(_paired(values)[1] for values in panel.values)
        difference = round(ours - theirs, RESOLUTION)
        rows.append((method, len(panel.data_sets), panel.n_splits, ours, theirs, difference, n_below))
    schema = {"ours": float, "published": float, "difference": float, "n_below": int}
    return to_frame(rows, METHOD | COUNTS | schema)


def beside_published_by_data_set(results: polars.DataFrame, published: polars.DataFrame) -> polars.DataFrame:
    """Ours beside published figures, one row per data set and method; parameters as in `beside_published`.

    Returns
    -------
    polars.DataFrame
        dataset, positive_rate, method, n_splits, ours, published, difference, standard_error (of the paired
        difference over splits; null for one split), is_below (more than two standard errors, and 0.005 points, below).
    """
    rows = []
    for place, (method, panel) in enumerate(_published_pairs(results, published)):
        for dataset, rate, values, means in panel.each():
            difference = round(means[0, 0] - means[1, 0], RESOLUTION)
            row = (dataset, rate, method, len(values), means[0, 0], means[1, 0], difference, *_paired(values))
            rows.append(((rate, dataset, place), row))
    figures = ("ours", "published", "difference", "standard_error")
    schema = {"dataset": str, "positive_rate": float} | METHOD | {"n_splits": int} | dict.fromkeys(figures, float)
    return to_frame([row for _, row in sorted(rows, key=lambda row: row[0])], schema | {"is_below": bool})


def _pairs(results: polars.DataFrame, reference: str) -> list[tuple[str, Panel]]:
    """(other method, panel of the reference and it), by name."""
    known, pairs = finished(results, [AP])["method"].unique().to_list(), []
    for name in sorted(set(known) - {reference}):
        try:
            pairs.append((name, make_panel(results, [AP], [reference, name])))
        except NothingToCompareError:
            continue
    if not pairs:
        raise NothingToCompareError(
            f"No other method finished a split that {reference!r} finished. "
            "Hint: `toprank experiment show` lists what is missing."
        )
    return pairs


def _published_pairs(results: polars.DataFrame, published: polars.DataFrame) -> list[tuple[str, Panel]]:
    """(method, panel of ours and published), best of ours first; methods without a split of both are left out."""
    import polars as pl

    ours, theirs = finished(results, [AP]), finished(published, [AP])
    keys, pairs = ["dataset", "split"], []
    for method in sorted(ours["method"].unique().to_list()):
        own = ours.filter(pl.col("method") == method).select(*keys, "positive_rate", AP, method=pl.lit("ours"))
        other = theirs.filter(pl.col("method") == method)
        rates = own.select(*keys, "positive_rate").unique()
        both = other.select(*keys, AP, method=pl.lit("published")).join(rates, on=keys)
        if both.height:
            rows = pl.concat([own, both.select(own.columns)])
            pairs.append((method, make_panel(rows, [AP], ["ours", "published"])))
    if not pairs:
        raise NothingToCompareError(
            "The results and the published figures share no split of any method. Hint: methods, data sets and splits "
            "are matched by name."
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
