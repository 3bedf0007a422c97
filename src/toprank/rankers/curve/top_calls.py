"""Budgets between the trees of a cost-optimal curve: the first alerts of a tree in the order of the curve.

A budget of 50 alerts may lie between two trees. `TopCalls` keeps the rows at the top of the ranking and the label
of each by every model of the curve, to count and judge the first 50 alerts of a larger tree without the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from toprank.errors import InputError

ROWS_KEPT = 10_000
"""Rows at the top of the ranking to keep, also in files; larger budgets use whole trees only."""

ROUNDING = 1e-9
"""Relative tolerance for sums of weights, which may be off in the last bits."""


@dataclass(frozen=True, eq=False)
class TopCalls:
    """The first rows of a ranking, best first, and their labels by each model of a curve.

    Attributes
    ----------
    score : float64 array of shape (n_rows,), descending
    called : bool array of shape (n_points, n_rows)
    is_positive : bool array of shape (n_rows,)
    weight : float64 array of shape (n_rows,)
    total : float
        Weight of all rows, including those further down that are not kept.
    """

    score: np.ndarray
    called: np.ndarray
    is_positive: np.ndarray
    weight: np.ndarray
    total: float

    @classmethod
    def from_calls(
        cls, score: np.ndarray, called: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None
    ) -> Self:
        """Keep the first of these rows; rows without weight are ignored."""
        all_weights = np.ones(len(score)) if weight is None else np.asarray(weight, np.float64)
        rows = np.flatnonzero(all_weights > 0)
        rows = rows[np.argsort(-score[rows], kind="stable")[:ROWS_KEPT]]
        return cls(score[rows], called[:, rows], is_positive[rows], all_weights[rows], float(all_weights.sum()))

    def first_alerts(self, position: int, k: float) -> tuple[float, float] | None:
        """Return the weight of the first k alerts of a model, fewer if it has fewer, and of the positives among them.

        If the cut splits tied rows, the positives are those to expect in random order. None if the cut lies below the
        kept rows.
        """
        alerts, hits, _ = self._by_score(position)
        if k > alerts[-1] * (1 + ROUNDING) and not self._is_whole:
            return None
        n_alerts = min(k, float(alerts[-1]))
        return n_alerts, float(np.interp(n_alerts, alerts, hits))

    def threshold(self, position: int, k: float) -> float:
        """Return the lowest score that leaves at most k alerts of a model.

        NaN if even its first alerts do not fit, or if the cut lies below the kept rows.
        """
        alerts, _, score = self._by_score(position)
        n_fitting = int(np.searchsorted(alerts, k * (1 + ROUNDING), side="right")) - 1
        is_below = n_fitting == len(score) and not self._is_whole
        return float("nan") if n_fitting == 0 or is_below else float(score[n_fitting - 1])

    @property
    def _is_whole(self) -> bool:
        """True if all rows are kept."""
        return len(self.score) < ROWS_KEPT

    def _by_score(self, position: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the weight of the alerts and of the hits down to each score, both from 0, and the scores."""
        rows = np.flatnonzero(self.called[position])
        score, weight = self.score[rows], self.weight[rows]
        last = np.flatnonzero(np.append(np.diff(score) != 0, True)) if len(rows) else np.zeros(0, np.int64)
        alerts, hits = np.cumsum(weight)[last], np.cumsum(weight * self.is_positive[rows])[last]
        return np.append(0.0, alerts), np.append(0.0, hits), score[last]

    # --- files --------------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the rows as arrays for a file."""
        return {"score": self.score, "called": np.packbits(self.called, axis=1), "is_positive": self.is_positive,
                "weight": self.weight, "total": np.array(self.total)}  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], n_points: int) -> Self:
        """Return the rows of a file, checked."""
        score, is_positive, weight = (arrays[name] for name in ("score", "is_positive", "weight"))
        n, packed, total = len(score), arrays["called"], float(arrays["total"])
        is_sound = (
            score.shape == is_positive.shape == weight.shape == (n,)
            and score.dtype == weight.dtype == np.float64
            and is_positive.dtype == bool
            and packed.dtype == np.uint8
            and packed.shape == (n_points, -(-n // 8))
            and np.isfinite(score).all()
            and (np.diff(score) <= 0).all()
            and (weight > 0).all()
            and np.isfinite(total)
            and weight.sum() <= total * (1 + ROUNDING)
        )
        if not is_sound:
            raise InputError("The model's points and the rows at the top of its ranking do not fit together.")
        called = np.unpackbits(packed, axis=1, count=n).astype(bool)
        return cls(score, called, is_positive, weight, total)
