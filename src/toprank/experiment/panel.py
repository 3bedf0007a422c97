"""The data of a comparison: the splits that all compared methods finished, and a count of what is left out.

If one method fails on a split, the split is dropped for all of them, so that every mean is over the same test rows. A
method that fails on hard data sets therefore makes the comparison easier for all: `toprank experiment show` lists what
is missing.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toprank.errors import InputError

if TYPE_CHECKING:
    import polars

AP = "average_precision"
METHOD = {"method": str}
COUNTS = {"n_data_sets": int, "n_splits": int}
"""Columns that many summaries begin with."""

RESOLUTION = 12
"""Decimals of a mean: figures that differ only by rounding are ties."""


class NothingToCompareError(InputError):
    """The results have no figures to compare: no common split, no such level, no such measure."""


@dataclass(frozen=True)
class Panel:
    """Figures of the splits that all compared series finished."""

    series: tuple[tuple[Any, ...], ...]  # what is compared, such as (method,), best mean first or as requested
    data_sets: tuple[str, ...]  # by share of positives, then by name
    positive_rates: NDArray[np.float64]
    # One per data set, (n_splits, n_series, n_measures); NaN if a measure that is not needed is missing.
    values: tuple[NDArray[np.float64], ...]

    @property
    def methods(self) -> list[str]:
        """First part of every series."""
        return [key[0] for key in self.series]

    @property
    def n_splits(self) -> int:
        """Number of splits over all data sets."""
        return sum(len(values) for values in self.values)

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """Mean over splits, of shape (n_data_sets, n_series, n_measures)."""
        return np.round([values.mean(axis=0) for values in self.values], RESOLUTION)

    @cached_property
    def overall(self) -> NDArray[np.float64]:
        """Mean over data sets of the means over splits, of shape (n_series, n_measures)."""
        return np.round(self.means.mean(axis=0), RESOLUTION)

    def at_most(self, level: float) -> Panel:
        """The data sets with at most `level` % positives."""
        kept = np.flatnonzero(self.positive_rates <= level / 100).tolist()
        if not kept:
            raise NothingToCompareError(
                f"No data set has at most {level:g} % positives, the lowest share is "
                f"{100 * self.positive_rates.min():.2f} %. Hint: raise the level."
            )
        chosen = tuple(self.data_sets[i] for i in kept), self.positive_rates[kept], tuple(self.values[i] for i in kept)
        return replace(self, data_sets=chosen[0], positive_rates=chosen[1], values=chosen[2])

    def each(self) -> Iterator[tuple[str, float, NDArray[np.float64], NDArray[np.float64]]]:
        """(name, positive rate, values, means) of each data set."""
        return zip(self.data_sets, self.positive_rates.tolist(), self.values, self.means, strict=True)


def make_panel(
    results: polars.DataFrame,
    measures: Sequence[str],
    methods: Sequence[str] | None = None,
    *,
    n_needed: int = 1,
    parts: Sequence[str] = (),
) -> Panel:
    """Figures of `measures` on the splits for which all methods have the first `n_needed` of them.

    If `results` has a status, only rows with the status "done" count. `methods` are those to compare, in this order;
    None: all with a finished trial, best mean first. `parts` are further columns that identify series, such as a
    parameter and its value.
    """
    rows = finished(results, measures[:n_needed])
    if methods is not None:
        rows = rows.filter(rows["method"].is_in(list(methods)))
    cells: dict[str, dict[str, dict[tuple[Any, ...], tuple[Any, ...]]]] = defaultdict(lambda: defaultdict(dict))
    rates = dict(rows.select("dataset", "positive_rate").sort("positive_rate", descending=True).iter_rows())
    for dataset, split, *rest in rows.select("dataset", "split", "method", *parts, *measures).iter_rows():
        key, figures = tuple(rest[: 1 + len(parts)]), tuple(rest[1 + len(parts) :])
        if key in cells[dataset][split]:
            raise InputError(
                f"The results hold more than one trial of {key[0]!r} on {dataset!r}, {split!r}, expected one. "
                "Hint: keep the last one."
            )
        cells[dataset][split][key] = figures
    series = sorted({key for splits in cells.values() for row in splits.values() for key in row})
    values = {}
    for dataset in sorted(cells, key=lambda name: (rates[name], name)):
        full = [row for _, row in sorted(cells[dataset].items()) if len(row) == len(series)]
        if full:
            values[dataset] = np.array([[row[key] for key in series] for row in full], dtype=np.float64)
    if not values:
        compared = ", ".join(dict.fromkeys(str(key[0]) for key in series)) or "any method"
        raise NothingToCompareError(
            f"The results hold no split that was finished by all of {compared}. Hint: `toprank experiment show` lists "
            "what is missing; name fewer methods."
        )
    whole = Panel(tuple(series), tuple(values), np.array([rates[name] for name in values]), tuple(values.values()))
    return _ordered(whole, methods, n_needed)


def _ordered(panel: Panel, methods: Sequence[str] | None, n_needed: int) -> Panel:
    """The panel with its methods in the requested order, or best mean first; series of one method keep their order."""
    if methods is None:
        level: dict[str, list[float]] = defaultdict(list)
        for key, figures in zip(panel.series, panel.overall, strict=True):
            level[key[0]] += figures[:n_needed].tolist()
        methods = sorted(level, key=lambda name: (-round(float(np.mean(level[name])), RESOLUTION), name))
    position = {name: i for i, name in enumerate(methods)}
    order = sorted(range(len(panel.series)), key=lambda i: position[panel.series[i][0]])
    values = tuple(np.ascontiguousarray(each[:, order]) for each in panel.values)
    return replace(panel, series=tuple(panel.series[i] for i in order), values=values)


def finished(results: polars.DataFrame, measures: Iterable[str] = ()) -> polars.DataFrame:
    """Rows of trials that are done and have a figure for each measure."""
    import polars as pl

    rows = results.filter(pl.col("status") == "done") if "status" in results.columns else results
    return rows.filter([pl.col(name).cast(pl.Float64).is_finite().fill_null(False) for name in measures])


def deviation(values: NDArray[np.float64]) -> float:
    """Standard deviation; NaN for a single figure, exactly 0 for equal ones."""
    if len(values) < 2:
        return math.nan
    return 0.0 if np.ptp(values) == 0 else float(values.std(ddof=1))


def to_frame(rows: Sequence[tuple[Any, ...]], schema: Mapping[str, type]) -> polars.DataFrame:
    """A frame of plain values; NaN is null."""
    import polars as pl

    types: dict[type, Any] = {str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    made = []
    for (name, kind), values in zip(schema.items(), columns, strict=True):
        plain = [None if v is None or v != v else kind(v) for v in values]
        made.append(pl.Series(name, plain, dtype=types[kind]))
    return pl.DataFrame(made)
