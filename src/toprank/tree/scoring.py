"""What orders the rows inside a leaf: nothing, the margin to the path's conditions, or a scorecard.

The order of the leaves comes first: whatever stands here moves a score only inside the range of its leaf.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

STEPS = ("step_above", "step_points")
OFFSETS = ("points_at", "step_at")
ARRAYS = ("scale", "center", "weight", "missing", "points", *OFFSETS, *STEPS)

KINDS = ("constant", "margin", "linear", "confusion")
POINT_KINDS = ("linear",)
"""Kinds that give points to each value of a row, in log-odds of a positive."""


def _no_numbers() -> np.ndarray:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class Scoring:
    """How a tree turns a row's leaf into a score.

    Attributes
    ----------
    kind : {"constant", "margin", "linear", "confusion"}
        constant: all rows of a leaf tie. margin: distance to the nearest threshold on the path, in units of
        `scale`. linear: a sparse scorecard shared by all leaves. confusion: all leaves vote, a leaf's weight is
        `confusion` to the power of the conditions the row breaks on the way to it (Ling & Yan, 2003).
    scale : float64 array of shape (n_features,)
    turn : float
        Margin: share of positives above which being far from a threshold speaks for a row; 0 = that of the root.
    confusion : float
    center, weight : float64 arrays of shape (n_features,)
        Scorecard: a number x is worth weight * (x - center) points.
    missing : float64 array of shape (n_features,)
        Scorecard: points of a missing value.
    points_at, points : int32 (n_features + 1,), float64
        Scorecard: category code c of feature f is worth points[points_at[f] + c].
    step_at, step_above, step_points : int32 (n_features + 1,) or empty, float64, float64
        Scorecard: a number x of feature f is worth step_points[j] more for each j in step_at[f]:step_at[f + 1] with
        x > step_above[j].
    """

    kind: str = "constant"
    scale: np.ndarray = field(default_factory=_no_numbers)
    turn: float = 0.0
    confusion: float = 0.0
    center: np.ndarray = field(default_factory=_no_numbers)
    weight: np.ndarray = field(default_factory=_no_numbers)
    missing: np.ndarray = field(default_factory=_no_numbers)
    points_at: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    points: np.ndarray = field(default_factory=_no_numbers)
    step_at: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    step_above: np.ndarray = field(default_factory=_no_numbers)
    step_points: np.ndarray = field(default_factory=_no_numbers)

    def __post_init__(self) -> None:
        if len(self.step_at) == 0:
            object.__setattr__(self, "step_at", np.zeros(len(self.weight) + 1, np.int32))
        for f in fields(self):
            if f.name not in ("kind", "turn", "confusion"):
                dtype = np.int32 if f.name in OFFSETS else np.float64
                array = np.array(getattr(self, f.name), dtype)
                array.flags.writeable = False
                object.__setattr__(self, f.name, array)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scoring):
            return NotImplemented
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    __hash__ = None  # type: ignore[assignment]

    @property
    def card(self) -> tuple[np.ndarray, ...]:
        """The arrays of a scorecard that kernels take, in their order."""
        steps = self.step_at, self.step_above, self.step_points
        return self.center, self.weight, self.missing, self.points_at, self.points, *steps

    @property
    def has_points(self) -> bool:
        """True where each value of a row has points: see `feature_points`."""
        return self.kind in POINT_KINDS

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `Scoring(**data)` gives an equal object back."""
        return {
            f.name: getattr(self, f.name).tolist()
            if isinstance(getattr(self, f.name), np.ndarray)
            else getattr(self, f.name)
            for f in fields(self)
        }

    def check(self, n_features: int) -> None:
        """Raise ValueError at the first broken invariant."""
        per_feature = {"margin": ("scale",), "linear": ("center", "weight", "missing")}.get(self.kind, ())
        rules = [
            (self.kind in KINDS, f"of a known kind, one of {', '.join(KINDS)}"),
            (all(getattr(self, name).shape == (n_features,) for name in per_feature), "as wide as the tree"),
            (all(len(getattr(self, name)) in (0, n_features) for name in ("scale", "center", "weight", "missing")),
             "as wide as the tree"),
            (all(np.isfinite(getattr(self, name)).all() for name in (*per_feature, "points", *STEPS)), "finite"),
            (self.kind != "margin" or bool(np.all(self.scale > 0)), "in positive units"),
            (0 <= self.turn < 1, "with a turn from 0 to 1"),
            (0 <= self.confusion <= 1, "with a confusion factor from 0 to 1"),
            (all(getattr(self, name).ndim == 1 for name in ARRAYS), "made of rows of numbers"),
            (self.kind != "linear" or (len(self.points_at) == n_features + 1 and self.points_at[0] == 0
             and rises(self.points_at) and self.points_at[-1] == len(self.points)),
             "consistent in its points for categories"),
            (self._has_consistent_steps(), "consistent in its steps"),
        ]  # fmt: skip
        for holds, rule in rules:
            if not holds:
                raise ValueError(f"Not a valid tree: its scoring is not {rule}. Hint: the data may be damaged.")

    def _has_consistent_steps(self) -> bool:
        at = self.step_at
        is_whole = at.shape == (len(self.weight) + 1,) and at[0] == 0 and rises(at)
        return is_whole and all(getattr(self, name).shape == (at[-1],) for name in STEPS)


def rises(offsets: np.ndarray) -> bool:
    """Tell whether no number of an array is below the one before it.

    By comparing neighbours: the difference of two int32 may wrap, and would pass off a fall as a rise.
    """
    return bool(np.all(offsets[1:] >= offsets[:-1]))


def feature_points(scoring: Scoring, X: np.ndarray) -> np.ndarray:
    """Points that a scorecard gives to each value of X: float64 of X's shape; rows add up to their points.

    A number x is worth weight * (x - center) and its steps, a category its own points, a missing value `missing`. Kinds
    without points give 0 throughout.
    """
    out = np.zeros(X.shape)
    if not scoring.has_points:
        return out
    with np.errstate(over="ignore"):  # infinite points are points, too
        number = scoring.weight * (X.astype(np.float64) - scoring.center)
    of_step = np.repeat(np.arange(X.shape[1]), np.diff(scoring.step_at))
    for step, f in enumerate(of_step.tolist()):
        number[:, f] += scoring.step_points[step] * (X[:, f] > scoring.step_above[step])
    out[:] = np.where(np.isnan(X), scoring.missing, number)
    for feature in np.flatnonzero(np.diff(scoring.points_at)).tolist():
        values = X[:, feature].astype(np.float64)
        points = scoring.points[scoring.points_at[feature] : scoring.points_at[feature + 1]]
        known = (values >= 0) & (values < len(points))
        out[:, feature] = scoring.missing[feature]
        out[known, feature] = points[values[known].astype(np.intp)]
    return out
