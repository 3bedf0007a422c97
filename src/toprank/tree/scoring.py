"""Orders of the rows inside a leaf, one small class each: ties, distance to a threshold, scorecard, votes.

Leaves come first: a score varies only within the range of its leaf, unless all leaves vote. To add a way of scoring,
subclass `Scoring`; trees, files and texts use its methods and know no names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from toprank._core.traverse import confusion_scores, scorecard_points
from toprank.errors import InputError, Invariant, check_invariants
from toprank.tree.bin_mapper import as_block, row_blocks

if TYPE_CHECKING:
    from toprank.tree.structure import Tree

NO_MARGIN = np.zeros(0)
"""Units of columns if no margin is needed."""


def squash(value: np.ndarray) -> np.ndarray:
    """Map any number into the open interval (0, 1), increasing, without saturating early.

    Points that overflowed map to an end of the interval, those that overflowed both ways to the middle.
    """
    finite = np.nan_to_num(value)
    return 0.5 + 0.499 * finite / (1.0 + np.abs(finite))


def rises(values: np.ndarray) -> bool:
    """True if the values are non-decreasing.

    Compares neighbours: the difference of two int32 may wrap, which would turn a decrease into an increase.
    """
    return bool(np.all(values[1:] >= values[:-1]))


@dataclass(frozen=True, eq=False)
class Scoring(ABC):
    """How a tree turns a row's leaf into a score.

    A subclass has numbers and arrays as fields, which files store by name, and computes scores in `finish`.
    """

    kind: ClassVar[str]
    """Name in files and in `leaf_score`, where both "linear" and "additive" fit a card of kind "linear"."""

    stays_inside: ClassVar[bool] = True
    """Whether rows of a leaf differ: then the leaves' own scores must leave room between them."""

    shown: ClassVar[str] = "score up to"
    """Label in an exact text of the number shown for a leaf."""

    dtypes: ClassVar[Mapping[str, Any]] = {}
    """Types of arrays that are not float64."""

    def __post_init__(self) -> None:
        for name, value in self._values().items():
            if isinstance(value, int | float):
                object.__setattr__(self, name, float(value))
                continue
            array = np.array(value, self.dtypes.get(name, np.float64))
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scoring):
            return NotImplemented
        same = type(self) is type(other)
        return same and all(np.array_equal(value, getattr(other, name)) for name, value in self._values().items())

    __hash__ = None  # type: ignore[assignment]

    def _values(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    # --- scoring ------------------------------------------------------------------------------------------------

    @property
    def margin_units(self) -> np.ndarray:
        """Unit of each column's distance to a threshold; empty if distances do not count."""
        return NO_MARGIN

    @abstractmethod
    def finish(self, tree: Tree, block: np.ndarray, leaf: np.ndarray, out: np.ndarray) -> None:
        """Write the scores of rows with known leaf nodes; `out` holds their margins if there are units."""

    @property
    def vote_decay(self) -> float | None:
        """Weight that a leaf keeps per broken condition if all leaves vote; None if a row's own leaf decides."""
        return None

    @property
    def card(self) -> LeafScorecard | None:
        """The scorecard whose points order the rows of a leaf; None without one."""
        return None

    def points(self, X: np.ndarray) -> np.ndarray:
        """Points of each value of X, float64 of X's shape; all 0 if values have none."""
        return np.zeros(X.shape)

    def room(self, X: np.ndarray) -> np.ndarray | float:
        """Distance of each row below the top of its leaf's range, as a share of the range; without margins."""
        return 0.0

    # --- plain values -------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Kind and fields as plain values; `scoring_from` returns an equal object."""
        plain = {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in self._values().items()}
        return {"kind": self.kind} | plain

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Kind and fields as arrays, for a file; `scoring_from` returns an equal object."""
        return {"kind": np.array(self.kind)} | {name: np.array(value) for name, value in self._values().items()}

    def check(self, n_features: int) -> None:
        """Raise ValueError at the first broken invariant."""
        message = "Not a valid tree: its scoring is not {}. Hint: the data may be damaged."
        check_invariants(self._invariants(n_features), message)

    def _invariants(self, n_features: int) -> Iterator[Invariant]:
        """Whether each invariant holds, and its text; one may rely on those before it."""
        yield True, "checked"

    def column_invariants(self, n_categories: np.ndarray) -> Iterator[Invariant]:
        """Whether it fits columns with these numbers of categories, 0 for numbers: invariants and their texts."""
        yield from ()


@dataclass(frozen=True, eq=False)
class Ties(Scoring):
    """All rows of a leaf tie."""

    kind = "constant"
    stays_inside = False
    shown = "score"

    def finish(self, tree: Tree, block: np.ndarray, leaf: np.ndarray, out: np.ndarray) -> None:
        """Write the score of each row's leaf."""
        out[:] = tree.score[leaf]


@dataclass(frozen=True, eq=False)
class Margin(Scoring):
    """Distance to the nearest threshold on the path.

    Attributes
    ----------
    scale : float64 array of shape (n_features,)
        Unit of each column's distances.
    turn : float
        Positive rate above which a larger distance from a threshold raises the score; 0 = the rate of the root.
    """

    kind = "margin"
    scale: np.ndarray
    turn: float = 0.0

    @property
    def margin_units(self) -> np.ndarray:
        """Unit of each column's distance to a threshold."""
        return self.scale

    def sign(self, tree: Tree) -> np.ndarray:
        """+1 in nodes with a positive rate above `turn`, where rows far from the boundary rank higher; else -1."""
        total = tree.positive + tree.negative
        if self.turn > 0:
            return np.where(tree.positive > self.turn * total, 1.0, -1.0)
        return np.where(tree.positive * total[0] > tree.positive[0] * total, 1.0, -1.0)

    def finish(self, tree: Tree, block: np.ndarray, leaf: np.ndarray, out: np.ndarray) -> None:
        """Turn margins into scores."""
        out *= tree.margin_sign[leaf]
        out[:] = tree.scores_with_points(leaf, out)

    def _invariants(self, n_features: int) -> Iterator[Invariant]:
        yield self.scale.shape == (n_features,), "as wide as the tree"
        yield np.isfinite(self.scale).all(), "finite"
        yield np.all(self.scale > 0), "in positive units"
        yield 0 <= self.turn < 1, "with a turn from 0 to 1"


@dataclass(frozen=True, eq=False)
class LeafScorecard(Scoring):
    """A sparse scorecard shared by all leaves: points in log-odds of a positive.

    Attributes
    ----------
    center, weight : float64 arrays of shape (n_features,)
        A number x is worth weight * (x - center) points.
    missing : float64 array of shape (n_features,)
        Points of a missing value.
    points_at, category_points : int32 (n_features + 1,), float64
        Category code c of feature f is worth category_points[points_at[f] + c].
    step_at, step_above, step_points : int32 (n_features + 1,) or empty, float64, float64
        A number x of feature f is worth step_points[j] more for each j in step_at[f]:step_at[f + 1] with
        x > step_above[j].
    """

    kind = "linear"
    dtypes = {"points_at": np.int32, "step_at": np.int32}
    center: np.ndarray
    weight: np.ndarray
    missing: np.ndarray
    points_at: np.ndarray
    category_points: np.ndarray
    step_at: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    step_above: np.ndarray = field(default_factory=lambda: np.zeros(0))
    step_points: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if len(self.step_at) == 0:
            object.__setattr__(self, "step_at", np.zeros(len(self.weight) + 1, np.int32))
        super().__post_init__()

    @property
    def card(self) -> LeafScorecard:
        """The scorecard itself."""
        return self

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arrays for kernels, in their order."""
        return tuple(self._values().values())

    def finish(self, tree: Tree, block: np.ndarray, leaf: np.ndarray, out: np.ndarray) -> None:
        """Add up points and place each row within the range of its leaf."""
        scorecard_points(block, *self.arrays, out)
        out[:] = tree.scores_with_points(leaf, out)

    def total(self, X: np.ndarray) -> np.ndarray:
        """Points of each row of X, float64 (n,)."""
        out = np.empty(len(X))
        for rows in row_blocks(*X.shape):
            scorecard_points(as_block(X, rows), *self.arrays, out[rows])
        return out

    def room(self, X: np.ndarray) -> np.ndarray:
        """Distance of each row below the top of its leaf's range, as a share of the range."""
        return 1.0 - squash(self.total(X))

    def points(self, X: np.ndarray) -> np.ndarray:
        """Points of each value of X, float64 of X's shape; each row sums to its total."""
        with np.errstate(over="ignore"):  # points may be infinite
            number = self.weight * (X.astype(np.float64) - self.center)
        of_step = np.repeat(np.arange(X.shape[1]), np.diff(self.step_at))
        for step, f in enumerate(of_step.tolist()):
            number[:, f] += self.step_points[step] * (X[:, f] > self.step_above[step])
        out = np.where(np.isnan(X), self.missing, number)
        for feature in np.flatnonzero(np.diff(self.points_at)).tolist():
            values = X[:, feature].astype(np.float64)
            points = self.category_points[self.points_at[feature] : self.points_at[feature + 1]]
            known = (values >= 0) & (values < len(points))
            out[:, feature] = self.missing[feature]
            out[known, feature] = points[values[known].astype(np.intp)]
        return out

    def one_column(self, feature: int) -> LeafScorecard:
        """The scorecard of one feature, with one column."""
        own, categories = slice(feature, feature + 1), slice(*self.points_at[feature : feature + 2])
        steps = slice(*self.step_at[feature : feature + 2])
        return LeafScorecard(
            self.center[own],
            self.weight[own],
            self.missing[own],
            np.array([0, categories.stop - categories.start]),
            self.category_points[categories],
            np.array([0, steps.stop - steps.start]),
            self.step_above[steps],
            self.step_points[steps],
        )

    @property
    def n_coefficients(self) -> int:
        """Number of slopes, categories and steps with points."""
        return int(np.count_nonzero(self.weight) + np.count_nonzero(self.category_points)) + len(self.step_points)

    def _invariants(self, n_features: int) -> Iterator[Invariant]:
        per_feature = self.center, self.weight, self.missing
        yield all(array.shape == (n_features,) for array in per_feature), "as wide as the tree"
        numbers = *per_feature, self.category_points, self.step_above, self.step_points
        yield all(np.isfinite(array).all() for array in numbers), "finite"
        at = self.points_at
        yield at.shape == (n_features + 1,) and at[0] == 0 and rises(at), "consistent in its points for categories"
        yield self.category_points.shape == (at[-1],), "consistent in its points for categories"
        at = self.step_at
        yield at.shape == (n_features + 1,) and at[0] == 0 and rises(at), "consistent in its steps"
        yield self.step_above.shape == self.step_points.shape == (at[-1],), "consistent in its steps"

    def column_invariants(self, n_categories: np.ndarray) -> Iterator[Invariant]:
        """Points belong to the categories of their column, and steps to numbers."""
        n_points, n_steps = (at[1:] - at[:-1] for at in (self.points_at, self.step_at))
        yield np.all((n_points == 0) | (n_points == n_categories)), "gives points to categories that its column lacks"
        yield not n_steps[n_categories > 0].any(), "has steps for categories"


@dataclass(frozen=True, eq=False)
class Votes(Scoring):
    """All leaves vote (Ling & Yan, 2003).

    Attributes
    ----------
    decay : float
        The weight of a leaf is `decay` to the power of the number of conditions that the row violates on its path.
    """

    kind = "votes"
    stays_inside = False
    shown = "rate"
    decay: float = 0.0

    @property
    def vote_decay(self) -> float:
        """Weight that a leaf keeps per broken condition."""
        return self.decay

    def finish(self, tree: Tree, block: np.ndarray, leaf: np.ndarray, out: np.ndarray) -> None:
        """Write the mean rate of all leaves, weighted by how nearly the row reaches them."""
        confusion_scores(block, *tree.conditions, tree.rate, self.decay, out)

    def _invariants(self, n_features: int) -> Iterator[Invariant]:
        yield 0 <= self.decay <= 1, "with a decay of votes from 0 to 1"


TIES = Ties()


def scoring_from(values: Mapping[str, Any]) -> Scoring:
    """Scoring from a kind and its field values, plain or arrays; ValueError if they are invalid.

    Examples
    --------
    >>> scoring_from(Margin(np.ones(2)).to_dict()) == Margin(np.ones(2))
    True
    """
    known = {each.kind: each for each in Scoring.__subclasses__()}
    kind = str(values.get("kind", ""))
    if kind not in known:
        raise InputError(f"Not a valid tree: its scoring is not of a known kind, one of {', '.join(known)}.")
    names = {f.name: f for f in fields(known[kind])}
    given: dict[str, Any] = {name: value for name, value in values.items() if name != "kind"}
    if unknown := sorted(given.keys() - names.keys()):
        raise InputError(f"Not a valid tree: a scoring of kind {kind} has no {unknown[0]!r}.")
    for name, value in given.items():
        if names[name].type in ("float", float):
            given[name] = float(value)
        elif isinstance(value, np.ndarray) and value.dtype != known[kind].dtypes.get(name, np.float64):
            raise InputError(f"Not a valid tree: its scoring has an array {name!r} of {value.dtype}.")
    try:
        return known[kind](**given)
    except TypeError as error:
        raise InputError(f"Not a valid tree: its scoring is incomplete: {error}.") from error
