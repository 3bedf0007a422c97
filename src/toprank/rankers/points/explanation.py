"""`PointsExplanation`: the points of one row, which add up to its score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from toprank.explain.rows import Step, step_lines, value_steps
from toprank.explain.values import Originals
from toprank.tree.columns import Column
from toprank.words.numbers import hit_rate_text, lift_text, number_text
from toprank.words.plain import plain


@dataclass(frozen=True)
class PointsExplanation:
    """Why one row has its score: base plus points.

    Attributes
    ----------
    score, base : float
        The score, and where points start.
    rate, lift : float
        Hit rate of cases with such a score, and its ratio to the rate of all cases.
    steps : tuple of Step
        Columns with their points, most first, without those that have none; base and points add up to the score.
    place : str
        The conditions of the row's leaf, in words; empty without a tree.
    """

    score: float
    base: float
    rate: float
    lift: float
    steps: tuple[Step, ...]
    place: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; non-finite numbers become None."""
        return plain(asdict(self))

    def __str__(self) -> str:
        where = [f"points for cases with {self.place}:"] if self.place else []
        lines = [
            f"score {number_text(self.score, 6)} = {number_text(self.base, 6)} + points; hit rate of such cases "
            f"{hit_rate_text(self.rate)}, {lift_text(self.lift)} times the rate of all cases",
            *where,
        ]
        return "\n".join(lines + step_lines(self.steps))


def explain_points(
    points: np.ndarray,
    base: np.ndarray,
    score: np.ndarray,
    rate: np.ndarray,
    base_rate: float,
    columns: Sequence[Column],
    X: np.ndarray,
    originals: Originals | None = None,
    places: Sequence[str] = (),
) -> list[PointsExplanation]:
    """Explain rows by their points, float64 (n, n_features), and the score they start from, float64 (n,)."""
    out = []
    for i, steps in enumerate(value_steps(points, columns, X, originals)):
        lift = float(rate[i] / base_rate)
        place = places[i] if len(places) else ""
        out.append(PointsExplanation(float(score[i]), float(base[i]), float(rate[i]), lift, steps, place))
    return out
