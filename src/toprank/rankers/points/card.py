"""`Card`: points per feature that add up to a score; how they are checked, applied, stored and printed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from toprank._core.points import add_points, write_points
from toprank._core.threads import Threads
from toprank.errors import InputError, Invariant, check_invariants
from toprank.rankers.points.card_text import card_lines
from toprank.tree.bin_mapper import as_block, row_blocks
from toprank.tree.columns import Column
from toprank.words.counts import count, plural
from toprank.words.numbers import number_text
from toprank.words.wording import EXACT, SHORT

DTYPES: dict[str, Any] = {
    "base": np.float64, "scale": np.float64, "feature": np.int32, "is_categorical": np.uint8, "edge_at": np.int32,
    "edges": np.float64, "point_at": np.int32, "points": np.float64, "ends": np.float64, "missing": np.float64,
}  # fmt: skip

DAMAGED = "Not a valid card: it breaks the rule that {}. Hint: the data may be damaged."


def bins_of(column: np.ndarray, edges: np.ndarray, n_bins: int, is_categorical: bool) -> np.ndarray:
    """The bin or category of each value, int64 (n,), as the points of a shape have them; n_bins for a missing value.

    Examples
    --------
    >>> column = np.array([1.0, 2.0, 3.0, np.nan])
    >>> bins_of(column, np.array([1.0, 2.5]), 3, False).tolist(), bins_of(column, np.zeros(0), 3, True).tolist()
    ([0, 1, 2, 3], [1, 2, 3, 3])
    """
    if is_categorical:
        return np.where((column >= 0) & (column < n_bins), column, n_bins).astype(np.int64)
    return np.where(np.isnan(column), n_bins, np.searchsorted(edges, column)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Shape:
    """Points of one feature.

    Attributes
    ----------
    feature : int
        Column of the encoded matrix.
    edges : float64 array of shape (b - 1,)
        Strictly ascending. Bin i holds the numbers with edges[i - 1] < x <= edges[i]; empty for categories.
    points : float64 array of shape (b,)
        Points of each bin, or of each category code.
    missing : float
        Points of a missing value, which is also what an unseen category counts as.
    is_categorical : bool, default False
    ends : float64 array of shape (b,), optional
        Points at the upper edge of each bin; `points` are then those just above its lower edge, with a straight line
        in between. The first and the last bin are flat. By default all bins are flat: a step function.

    Examples
    --------
    >>> age = Shape(0, edges=[2, 10], points=[8, 8, 0], ends=[8, 0, 0], missing=3)
    >>> age.n_bins, age.is_stepped, age.largest
    (3, False, 8.0)
    """

    feature: int
    edges: np.ndarray
    points: np.ndarray
    missing: float = 0.0
    is_categorical: bool = False
    ends: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        ends = self.ends if len(self.ends) else self.points
        for name, value in (("edges", self.edges), ("points", self.points), ("ends", ends)):
            array = np.array(value, np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(self, "feature", int(self.feature))
        object.__setattr__(self, "missing", float(self.missing))
        object.__setattr__(self, "is_categorical", bool(self.is_categorical))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Shape):
            return NotImplemented
        plain = (self.feature, self.missing, self.is_categorical)
        same = plain == (other.feature, other.missing, other.is_categorical)
        return same and all(np.array_equal(getattr(self, n), getattr(other, n)) for n in ("edges", "points", "ends"))

    __hash__ = None  # type: ignore[assignment]

    @property
    def n_bins(self) -> int:
        """Number of bins or categories, missing values apart."""
        return len(self.points)

    @property
    def is_stepped(self) -> bool:
        """True if all bins are flat."""
        return np.array_equal(self.points, self.ends)

    @property
    def largest(self) -> float:
        """Largest size of its points."""
        return float(max(np.abs(self.points).max(), np.abs(self.ends).max(), abs(self.missing)))

    def scaled(self, factor: float) -> Shape:
        """The same shape with all points times a factor."""
        return replace(self, points=self.points * factor, ends=self.ends * factor, missing=self.missing * factor)

    def rounded(self) -> Shape:
        """The same shape with whole points."""
        points, ends = np.round(self.points) + 0.0, np.round(self.ends) + 0.0  # + 0.0: no -0
        return replace(self, points=points, ends=ends, missing=float(np.round(self.missing)) + 0.0)

    def simplified(self, tolerance: float) -> Shape:
        """A shape with fewer bins: neighbours that are on one line, up to `tolerance` points, become one bin.

        Examples
        --------
        >>> shape = Shape(0, [1, 2, 3, 4], points=[0, 0, 2, 4, 9], ends=[0, 2, 4, 9, 9]).simplified(0.5)
        >>> shape.edges.tolist(), shape.points.tolist(), shape.ends.tolist()
        ([1.0, 3.0, 4.0], [0.0, 0.0, 4.0, 9.0], [0.0, 4.0, 9.0, 9.0])
        """
        if self.is_categorical or len(self.edges) == 0:
            return self
        last = len(self.edges)
        is_top = np.maximum(np.abs(self.points - self.points[last]), np.abs(self.ends - self.points[last])) <= tolerance
        first_top = int(np.append(0, np.flatnonzero(~is_top) + 1)[-1])  # from here on all is as in the last bin
        kept, points, ends, start = [], [], [], 0
        while start < first_top:
            stop = start
            while stop + 1 < first_top and self._is_line(start, stop + 1, tolerance):
                stop += 1
            points.append(self.points[start])
            ends.append(self.points[0] if start == 0 else self.ends[stop])
            kept.append(self.edges[stop])
            start = stop + 1
        points.append(self.points[last])
        ends.append(self.points[last])
        return replace(self, edges=np.array(kept), points=np.array(points), ends=np.array(ends))

    def _is_line(self, start: int, stop: int, tolerance: float) -> bool:
        """Whether some bins are on one line, which is flat if the first bin is among them."""
        own = slice(start, stop + 1)
        if start == 0:
            low = high = self.points[0]
            lower = upper = np.full(stop + 1, low)
        else:
            low, high = self.points[start], self.ends[stop]
            edges = scale_of(self.edges) * self.edges[start - 1 : stop + 1]
            line = low + (high - low) * ((edges - edges[0]) / (edges[-1] - edges[0]))
            lower, upper = line[:-1], line[1:]
        error = np.maximum(np.abs(self.points[own] - lower), np.abs(self.ends[own] - upper))
        return bool(error.max() <= tolerance)

    def _invariants(self, n_features: int) -> Iterator[Invariant]:
        """Whether each invariant holds, and its text; one may rely on those before it."""
        yield 0 <= self.feature < n_features, "features are columns"
        arrays = self.edges, self.points, self.ends
        yield all(array.ndim == 1 and np.isfinite(array).all() for array in arrays), "edges and points are finite"
        yield math.isfinite(self.missing), "points of missing values are finite"
        yield self.points.shape == self.ends.shape and len(self.points) > 0, "every bin has points"
        yield bool(np.all(self.edges[1:] > self.edges[:-1])), "edges are ascending"
        if self.is_categorical:
            yield len(self.edges) == 0 and self.is_stepped, "categories have points and no edges"
            return
        yield len(self.points) == len(self.edges) + 1, "there is one bin more than edges"
        outer = [0, -1]
        yield np.array_equal(self.points[outer], self.ends[outer]), "the first and the last bin are flat"


@dataclass(frozen=True, eq=False)
class Card:
    """Points per feature that add up to a score.

    Attributes
    ----------
    shapes : tuple of Shape
        At most one per feature, in the order in which points are added.
    base : float
        Score of a row without points.
    scale : float
        Points per unit of log-odds.

    Examples
    --------
    >>> card = Card((Shape(0, [2, 10], [8, 3, 0], missing=3), Shape(1, [], [0, 5], is_categorical=True)), base=-20)
    >>> card.decision_function(np.array([[1.0, 1.0], [10.0, 0.0], [np.nan, np.nan]])).tolist()
    [-7.0, -17.0, -17.0]
    >>> print(card.to_text([Column("age"), Column("sector", ("retail", "catering"))]))
    age             <= 2   to 10   > 10
      missing: +3     +8      +3      0
    sector          catering: +5   retail: 0
    """

    shapes: tuple[Shape, ...]
    base: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "shapes", tuple(self.shapes))
        object.__setattr__(self, "base", float(self.base))
        object.__setattr__(self, "scale", float(self.scale))
        self.check(1 + max((shape.feature for shape in self.shapes), default=0))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Card):
            return NotImplemented
        return (self.shapes, self.base, self.scale) == (other.shapes, other.base, other.scale)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.shapes)

    def __repr__(self) -> str:
        return f"Card({len(self):,} features, {self.n_bins:,} bins)"

    @property
    def features(self) -> np.ndarray:
        """Columns that have points, in the order of the shapes, int32 (n_shapes,)."""
        return np.array([shape.feature for shape in self.shapes], np.int32)

    @property
    def n_bins(self) -> int:
        """Number of bins and categories of all features, missing values apart."""
        return sum(shape.n_bins for shape in self.shapes)

    @property
    def most(self) -> float:
        """Bound on the size of a score."""
        with np.errstate(over="ignore"):
            return abs(self.base) + sum(shape.largest for shape in self.shapes)

    def shape_of(self, feature: int) -> Shape | None:
        """The shape of a feature; None if it has no points."""
        return next((shape for shape in self.shapes if shape.feature == feature), None)

    # --- scoring ------------------------------------------------------------------------------------------------

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        """The card in the arrays of a file; all but the first two are those that kernels take, in their order."""
        shapes = self.shapes
        found: dict[str, Any] = {
            "base": self.base,
            "scale": self.scale,
            "feature": self.features,
            "is_categorical": [shape.is_categorical for shape in shapes],
            "edge_at": np.append(0, np.cumsum([len(shape.edges) for shape in shapes])),
            "edges": np.concatenate([np.zeros(0), *(shape.edges for shape in shapes)]),
            "point_at": np.append(0, np.cumsum([shape.n_bins for shape in shapes])),
            "points": np.concatenate([np.zeros(0), *(shape.points for shape in shapes)]),
            "ends": np.concatenate([np.zeros(0), *(shape.ends for shape in shapes)]),
            "missing": [shape.missing for shape in shapes],
        }
        return {name: np.array(found[name], dtype) for name, dtype in DTYPES.items()}

    def decision_function(self, matrix: np.ndarray, threads: Threads | None = None) -> np.ndarray:
        """Return the score of each encoded row, float64 (n,): the base and the points of its values."""
        self._check_width(matrix)
        out, packed = np.full(len(matrix), self.base), list(self._arrays.values())[2:]

        def add(rows: slice) -> None:
            add_points(as_block(matrix, rows), *packed, out[rows])

        (threads or Threads()).run(add, row_blocks(*matrix.shape))
        return out

    def contributions(self, matrix: np.ndarray) -> np.ndarray:
        """Return the points of each value, float64 (n, n_features); base and points of a row add up to its score."""
        self._check_width(matrix)
        out, packed = np.zeros(matrix.shape), list(self._arrays.values())[2:]
        for rows in row_blocks(*matrix.shape):
            write_points(as_block(matrix, rows), *packed, out[rows])
        return out

    def _check_width(self, matrix: np.ndarray) -> None:
        needed = 1 + int(self.features.max(initial=-1))
        if matrix.ndim != 2 or matrix.shape[1] < needed:
            raise InputError(
                f"The card has points for column {needed - 1}, got an array of shape {matrix.shape}. "
                "Hint: pass the encoded columns that it was fitted on."
            )

    # --- changes ------------------------------------------------------------------------------------------------

    def scaled(self, scale: float) -> Card:
        """The same card with `scale` points per unit of log-odds."""
        factor = scale / self.scale
        return Card(tuple(shape.scaled(factor) for shape in self.shapes), self.base * factor, scale)

    def rounded(self) -> Card:
        """The same card with whole points; features that have none left are dropped."""
        shapes = tuple(shape.rounded() for shape in self.shapes)
        base = float(np.round(self.base)) + 0.0
        return Card(tuple(shape for shape in shapes if shape.largest > 0), base, self.scale)

    def simplified(self, tolerance: float) -> Card:
        """The same card with fewer bins, and points that differ by at most `tolerance` per column."""
        shapes = (shape.simplified(tolerance) for shape in self.shapes)
        return Card(
            tuple(s for s in shapes if s.n_bins > 1 or s.is_categorical or s.largest > 0), self.base, self.scale
        )

    # --- files --------------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of a file; `from_arrays` returns an equal card."""
        return {name: array.copy() for name, array in self._arrays.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], columns: Sequence[Column]) -> Card:
        """Return the card in the arrays of a file, checked; ValueError if it is damaged or not one of these columns."""
        for name, dtype in DTYPES.items():
            rank = 0 if name in ("base", "scale") else 1
            if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != rank:
                raise InputError(DAMAGED.format(f"{name!r} is an array of {np.dtype(dtype)} with {rank} dimensions"))
        n = len(arrays["feature"])
        edges, points = arrays["edges"], arrays["points"]
        starts = (("edge_at", len(edges)), ("point_at", len(points)))
        sizes = [arrays[name].shape == (n,) for name in ("is_categorical", "missing")]
        sizes += [arrays[name].shape == (n + 1,) for name, _ in starts]
        invariants = [
            (all(sizes) and arrays["ends"].shape == points.shape, "all arrays have one entry per feature"),
            (all(_rises_to(arrays[name], end) for name, end in starts), "one feature follows the other"),
            (bool(np.all(arrays["is_categorical"] <= 1)), "a feature is categorical or not"),
        ]
        check_invariants(invariants, DAMAGED)
        edge_at, point_at = arrays["edge_at"].tolist(), arrays["point_at"].tolist()
        shapes = []
        for s in range(n):
            own, bins = slice(*edge_at[s : s + 2]), slice(*point_at[s : s + 2])
            feature, is_categorical = int(arrays["feature"][s]), bool(arrays["is_categorical"][s])
            missing = float(arrays["missing"][s])
            shapes.append(Shape(feature, edges[own], points[bins], missing, is_categorical, arrays["ends"][bins]))
        card = cls(tuple(shapes), float(arrays["base"]), float(arrays["scale"])).check(len(columns))
        for shape in card.shapes:
            n_categories = len(columns[shape.feature].categories or ())
            if shape.is_categorical != (n_categories > 0) or (n_categories and shape.n_bins != n_categories):
                raise InputError(DAMAGED.format(f"column {columns[shape.feature].name!r} has points for its values"))
        return card

    def check(self, n_features: int) -> Self:
        """Verify every invariant; return self, or raise ValueError with an explanation."""
        check_invariants(self._invariants(n_features), DAMAGED)
        return self

    def _invariants(self, n_features: int) -> Iterator[Invariant]:
        for shape in self.shapes:
            yield from shape._invariants(n_features)
        yield len(set(self.features.tolist())) == len(self.shapes), "a feature has one shape"
        yield math.isfinite(self.scale) and self.scale > 0, "points per unit of log-odds are a positive number"
        yield math.isfinite(self.most), "points add up to a finite score"

    # --- text ---------------------------------------------------------------------------------------------------

    def to_text(
        self,
        columns: Sequence[Column],
        *,
        order: Sequence[int] | None = None,
        exact: bool = False,
        width: int = 100,
        indent: str = "",
    ) -> str:
        """Return small tables of points, one per feature.

        Parameters
        ----------
        columns : sequence of Column, one per feature
        order : sequence of int, optional
            Features in the order of the text; by default that of the shapes. Others are left out.
        exact : bool, default False
            Numbers with all their digits, and every category.
        width : int, default 100
            Where tables are broken.
        indent : str, default ""
        """
        chosen = self.shapes if order is None else [s for f in order if (s := self.shape_of(int(f))) is not None]
        return "\n".join(card_lines(chosen, columns, width, EXACT if exact else SHORT, indent))

    def scale_text(self) -> str:
        """Return what points mean: "20 points double the odds".

        Examples
        --------
        >>> Card((), scale=10).scale_text(), Card((), scale=20 / math.log(2)).scale_text(), Card(()).scale_text()
        ('about 7 points double the odds', '20 points double the odds', 'points are log-odds: 0.69 doubles the odds')
        """
        doubling = self.scale * math.log(2)
        if self.scale == 1:
            return f"points are log-odds: {doubling:.2f} doubles the odds"
        if abs(doubling - round(doubling)) < 1e-9:
            return f"{plural(round(doubling), 'point')} {'doubles' if round(doubling) == 1 else 'double'} the odds"
        return f"about {number_text(doubling, 2) if doubling < 5 else count(round(doubling))} points double the odds"


def _rises_to(at: np.ndarray, end: int) -> bool:
    """Return True if the starts go from 0 to `end` without a step back."""
    return bool(at[0] == 0 and at[-1] == end and np.all(at[1:] >= at[:-1]))


def scale_of(edges: np.ndarray) -> float:
    """A factor at which differences of edges do not overflow: 1, or one half for huge edges."""
    return 0.5 if len(edges) and 0.5 * edges[-1] - 0.5 * edges[0] > 0.25 * np.finfo(np.float64).max else 1.0
