"""Columns to bins: quantile bins for numbers, one bin per category, one bin for missing values."""

from __future__ import annotations

from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import NamedTuple

import numpy as np

from toprank._core.binning import GUIDE_CELLS, fill_guide, greedy_cuts, map_to_bins
from toprank._core.decimals import MARGIN, POWERS, shortest_between
from toprank._core.dtypes import BIN, MAX_BINS, VALUE
from toprank._core.threads import Threads
from toprank.errors import InputError
from toprank.tree.weights import integer_weights

BLOCK_CELLS = 2**18
"""Cells per block of rows passed to a kernel: the block and its bins stay in the L2 cache."""

SAMPLE_ROWS = 50_000
"""Rows used to choose bins and column scales: about 200 per bin. More would cost more than the mapping itself."""


BY_COLUMN_CELLS = 2**29
"""Cells up to which a column-major copy of the bins is kept: splitting rows by one column then reads 1 byte per row
instead of a cache line. Larger tables save the memory."""


def sample_rows(n: int, size: int, weight: np.ndarray | None) -> np.ndarray | None:
    """Ascending positions of at most `size` of n rows, drawn from those with weight; None for all rows."""
    if n <= size:
        return None
    present = None if weight is None else np.flatnonzero(weight)
    if present is not None and len(present) <= size:
        return present
    drawn = np.random.default_rng(0).choice(n if present is None else len(present), size, replace=False, shuffle=False)
    return np.sort(drawn if present is None else present[drawn])


Codes = tuple[np.ndarray, int, int]
"""Codes of a table in one flat array, the step from row to row and the step from column to column."""


class Binned(NamedTuple):
    """Bin codes of a table.

    `by_row` is uint8 (n, n_features), C order, for histograms; `by_column` the same codes as (n_features, n), or empty
    for large tables; `has_missing` marks the columns with missing values.
    """

    by_row: np.ndarray
    by_column: np.ndarray
    has_missing: np.ndarray

    @property
    def strided(self) -> Codes:
        """The codes in the layout that is faster to look up one column in."""
        n, n_features = self.by_row.shape
        if self.by_column.size:
            return self.by_column.ravel(), 1, n
        return self.by_row.ravel(), n_features, 1


def row_blocks(n_rows: int, n_features: int) -> list[slice]:
    """Slices that cover n_rows, each of about `BLOCK_CELLS` cells."""
    size = max(64, BLOCK_CELLS // max(n_features, 1))
    return [slice(a, min(a + size, n_rows)) for a in range(0, n_rows, size)]


def as_block(X: np.ndarray, rows: slice) -> np.ndarray:
    """Rows of X as the array type that kernels take: float64, C order; a view if X is one already."""
    return np.ascontiguousarray(X[rows], dtype=VALUE)


def between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Thresholds between pairs of values: their midpoint, or the lower value if no float is between them."""
    with np.errstate(over="ignore"):
        middle = low + (high - low) / 2
    return np.where((low <= middle) & (middle < high), middle, low)


def short_between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Thresholds between pairs of values, low < high: the shortest decimals t with low <= t < high. NaN gives NaN.

    The shortest decimal is a multiple of the largest power of ten, nearest to the middle of the gap; or the lower value
    itself if all others need more decimals. `x <= t` splits the values like any other threshold in the gap, and `repr`
    of the threshold is its short text: people read the exact number that the tree compares with.

    Examples
    --------
    >>> short_between(np.array([0.1234, 17.0, 31.0, 1999.5]), np.array([0.1299, 18.0, 47.2, 8012.0])).tolist()
    [0.127, 17.0, 40.0, 5000.0]
    """
    a, b = (np.atleast_1d(np.asarray(end, VALUE)).ravel() for end in (low, high))
    out = np.empty(len(a))
    shortest_between(a, b, POWERS, out)
    for i in np.flatnonzero(np.isnan(out) & (a < b)).tolist():
        out[i] = _short_decimal(float(a[i]), float(b[i]))
    return out.reshape(np.shape(low))


def _short_decimal(low: float, high: float) -> float:
    """`short_between` for two numbers of any size, in decimal arithmetic; the lower one if nothing else is short."""
    exact = Context(prec=800, Emin=-2000, Emax=2000)
    if not np.isfinite([low, high]).all():
        return low
    a, b = Decimal(low), Decimal(high)
    gap = exact.subtract(b, a)
    most = exact.subtract(b, exact.multiply(gap, Decimal(MARGIN)))
    middle, place = exact.add(a, exact.divide(gap, Decimal(2))), max(abs(a), abs(b)).adjusted()
    for step in range(place, place - 18, -1):
        unit = Decimal(1).scaleb(step, exact)
        below, last, nearest = (
            exact.multiply(exact.divide(value, unit).to_integral_value(rounding, exact), unit)
            for value, rounding in ((a, ROUND_FLOOR), (most, ROUND_FLOOR), (middle, ROUND_HALF_EVEN))
        )
        first = exact.add(below, unit)
        found = float(min(max(nearest, first), last))
        if first > last or not low < found < high:
            continue
        coarser = exact.multiply(unit, Decimal(10))
        if step < 0 and exact.remainder(Decimal(repr(low)), coarser) == 0:
            return low + 0.0
        return found + 0.0
    return low + 0.0


class BinMapper:
    """Maps the columns of a float matrix to at most 255 bins each, and bins back to thresholds.

    Categorical columns hold category codes 0..n_categories-1 (NaN = missing); a code is its bin.

    Attributes
    ----------
    n_bins : int32 array of shape (n_features,)
        Value bins of each column; code `n_bins` means missing.
    spread : float64 array of shape (n_features,)
        Standard deviation of each numeric column in the rows used to choose the bins.
    lower, upper : float64 arrays of shape (n_features, 255)
        Smallest and largest value of each bin in the rows used to choose the bins.
    """

    def __init__(self, max_bins: int = MAX_BINS, sample_rows: int = SAMPLE_ROWS):
        self.max_bins = max_bins
        self.sample_rows = sample_rows

    def fit(
        self,
        X: np.ndarray,
        n_categories: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
        threads: Threads | None = None,
    ) -> BinMapper:
        """Choose the bins of every column.

        Parameters
        ----------
        X : float array of shape (n, n_features)
        n_categories : int array of shape (n_features,), 0 for a numeric column
        sample_weight : float array of shape (n,) or None
        """
        n, d = X.shape
        self.n_categories = np.zeros(d, np.int32) if n_categories is None else np.asarray(n_categories, np.int32)
        self.is_categorical = (self.n_categories > 0).astype(np.uint8)
        self.n_bins = self.n_categories.copy()
        self.edges = np.full((d, MAX_BINS), np.inf)
        self.lower = np.full((d, MAX_BINS), np.nan)
        self.upper = np.full((d, MAX_BINS), np.nan)
        self.spread = np.zeros(d)
        self.guide_low = np.zeros(d)
        self.guide_scale = np.zeros(d)
        self.guide = np.zeros((d, GUIDE_CELLS + 1), BIN)
        weight = None if sample_weight is None else integer_weights(np.zeros(n, bool), sample_weight).total
        threads = threads or Threads()
        sample, weight = self._sample(X, weight, threads)
        numeric = np.flatnonzero(self.n_categories == 0)
        threads.run(lambda f: self._fit_column(f, sample, weight), numeric)
        return self

    def _sample(
        self, X: np.ndarray, weight: np.ndarray | None, threads: Threads
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Rows to take the quantiles from, with contiguous columns, and their weights."""
        rows = sample_rows(len(X), self.sample_rows, weight)
        if rows is None:
            return np.asfortranarray(X), weight
        sample = np.empty((len(rows), X.shape[1]), X.dtype, order="F")

        def gather(part: slice) -> None:
            sample[part] = X[rows[part]]

        threads.run(gather, row_blocks(*sample.shape))
        return sample, None if weight is None else weight[rows]

    def _fit_column(self, f: int, sample: np.ndarray, weight: np.ndarray | None) -> None:
        """Bins of one numeric column."""
        values, mass = distinct_values(sample[:, f].astype(VALUE, copy=False), weight)
        self.spread[f] = center_and_spread(values, mass)[1]
        if len(values) == 0:
            return
        if len(values) <= self.max_bins:
            last = np.arange(len(values))
        else:
            cut_after = np.zeros(len(values), np.uint8)
            greedy_cuts(mass, self.max_bins, cut_after)
            last = np.append(np.flatnonzero(cut_after), len(values) - 1)
            last = at_short_edges(values, last)
        first = np.append(0, last[:-1] + 1)
        n = len(last)
        self.n_bins[f] = n
        self.lower[f, :n] = values[first]
        self.upper[f, :n] = values[last]
        edges = short_between(values[last[:-1]], values[last[:-1] + 1])
        self.edges[f, : n - 1] = edges
        if n > 1:
            self.guide_low[f] = edges[0]
            width = float(edges[-1]) - float(edges[0])  # infinite if it overflows: then no guide
            scale = GUIDE_CELLS / width if width > 0 else 0.0
            self.guide_scale[f] = scale if np.isfinite(scale) else 0.0
        fill_guide(edges, self.guide_low[f], self.guide_scale[f], self.guide[f])

    def transform(self, X: np.ndarray, threads: Threads | None = None) -> Binned:
        """Bin codes of X. Raises ValueError for infinite values."""
        if X.ndim != 2 or X.shape[1] != len(self.n_bins):
            raise InputError(
                f"The bins were fitted on {len(self.n_bins)} columns, got an array of shape {X.shape}. "
                "Hint: pass the columns that the bins were fitted on."
            )
        by_row = np.empty(X.shape, BIN)
        by_column = np.empty(X.shape[::-1] if X.size <= BY_COLUMN_CELLS else (0, 0), BIN)
        has_missing = np.zeros(X.shape[1], np.uint8)

        def map_rows(rows: slice) -> int:
            return map_to_bins(as_block(X, rows), self.n_bins, self.is_categorical, self.edges, self.guide_low,
                               self.guide_scale, self.guide, has_missing, by_row[rows], by_column[:, rows])  # fmt: skip

        if sum((threads or Threads()).run(map_rows, row_blocks(*X.shape))):
            raise InputError(
                "X holds infinite values, expected finite numbers or NaN for missing. "
                "Hint: replace them with NaN, or clip the column."
            )
        return Binned(by_row, by_column, has_missing > 0)

    def thresholds(self, feature: np.ndarray, last_left: np.ndarray, first_right: np.ndarray) -> np.ndarray:
        """Thresholds between bins `last_left` and `first_right`; infinity if only missing values go right.

        Bins between the two are empty in the node. The threshold stays within their outer edges, so that values outside
        the sample used for the bins follow their bin.
        """
        cut = short_between(self.upper[feature, last_left], self.lower[feature, first_right])
        cut = np.clip(cut, self.edges[feature, last_left], self.edges[feature, first_right - 1])
        return np.where(first_right < 0, np.inf, cut)


def at_short_edges(values: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Move the last position of each bin in ascending `values` slightly, to where the edge is a short number.

    Each moves by at most a tenth of the distinct values of the smaller adjacent bin, so that no bin becomes empty.
    """
    size = np.diff(last, prepend=-1)
    reach = np.minimum(size[:-1], size[1:]) // 10
    ends = last[:-1]
    edge = short_between(values[ends - reach], values[ends + 1 + reach])
    moved = np.searchsorted(values, edge, side="right") - 1
    return np.append(moved, last[-1])


def distinct_values(column: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Finite distinct values of a column in ascending order, and the (integer) weight of each."""
    keep = np.isfinite(column)
    if weight is not None:
        keep &= weight > 0
        order = np.argsort(column[keep], kind="stable")
        values = column[keep][order]
    else:
        values = np.sort(column[keep])
    if len(values) == 0:
        return values, values
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    if weight is None:
        return values[starts], np.diff(np.append(starts, len(values))).astype(VALUE)
    return values[starts], np.add.reduceat(weight[keep][order], starts).astype(VALUE)


def center_and_spread(values: np.ndarray, mass: np.ndarray) -> tuple[float, float]:
    """Weighted mean and standard deviation of sorted distinct values; (0, 0) if there are none.

    Sums run over the distinct values, so that neither the order of the rows nor duplicates change the last bit. Values
    are scaled by a power of two, so that squares do not overflow.
    """
    if len(values) < 2:
        return float(values[0]) if len(values) else 0.0, 0.0
    exponent = int(np.frexp(np.abs(values[[0, -1]]).max())[1])
    scaled, total = np.ldexp(values, -exponent), mass.sum()
    center = (mass * scaled).sum() / total
    spread = np.sqrt((mass * (scaled - center) ** 2).sum() / total)
    return float(np.ldexp(center, exponent)), float(np.ldexp(spread, exponent))
