"""`TwoSampleResult`: the result of a two-sample test, as data and in words."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from toprank.data.frames import make_frame
from toprank.drift.cells import DriftCell
from toprank.metrics import Interval
from toprank.rankers.base import Ranker
from toprank.words.numbers import percent_text
from toprank.words.plain import plain

WIDTH = 100


@dataclass(frozen=True)
class TwoSampleResult:
    """Whether two samples differ, and where.

    Attributes
    ----------
    statistic : float
        Held-out AUC: the probability that a new row scores higher than a reference row; 0.5 = indistinguishable.
    p_value : float
        p-value of the hypothesis that both samples come from one population, from the scores and the cells together.
    score_p_value : float
        p-value of the held-out scores alone, one-sided.
    auc_interval : Interval
        Two-sided interval of the statistic, with confidence 1 - level.
    cells : tuple of DriftCell
        Leaves of the tree in which the held-out shares of the samples differ most, strongest first; empty if the ranker
        is not one tree.
    ranker : Ranker
        Fitted on the rows that were not held out; new rows are its positives.
    n_rows_reference, n_rows_new : int
        Rows of each table.
    n_shared : int
        Rows that are in both tables and count as the same case.
    n_reference, n_new : int
        Held-out rows of each sample.
    level : float
    test, method : str
        The test, and how the distribution of its statistic was computed: exact, normal or permutation.
    obstacle : str or None
        Why no difference could have been found, in a sentence: too few rows, or no column that varies.
    backend : str or None
        Data frame library of the reference, for `cells_frame`.
    """

    statistic: float
    p_value: float
    score_p_value: float
    auc_interval: Interval
    cells: tuple[DriftCell, ...]
    ranker: Ranker = field(repr=False)
    n_rows_reference: int
    n_rows_new: int
    n_shared: int
    n_reference: int
    n_new: int
    level: float
    test: str
    method: str
    obstacle: str | None = None
    backend: str | None = field(default=None, repr=False)

    @property
    def is_different(self) -> bool:
        """True if the p-value is at most `level`."""
        return self.p_value <= self.level

    @property
    def clear_cells(self) -> tuple[DriftCell, ...]:
        """Cells that differ on their own, at `level` after adjustment; empty if the samples do not differ."""
        return tuple(cell for cell in self.cells if self.is_different and cell.p_adjusted <= self.level)

    @property
    def is_same_table(self) -> bool:
        """True if both tables have the same rows, in any order."""
        return self.n_shared == self.n_rows_reference == self.n_rows_new

    def cells_frame(self) -> Any:
        """Cells as a table, strongest first, in the frame type of the reference."""
        kinds = {"leaf": np.int64, "n_reference": np.int64, "n_new": np.int64, "rule": str, "direction": str}
        kinds |= dict.fromkeys(
            (each.name for each in fields(DriftCell) if each.name not in (*kinds, "leaf_rule")), np.float64
        )
        rows = [cell.to_dict() for cell in self.cells]
        return make_frame({name: np.array([row[name] for row in rows], kind) for name, kind in kinds.items()},
                          self.backend)  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; None for numbers that are not finite. Without the ranker."""
        names = ("statistic", "p_value", "score_p_value", "is_different", "level", "test", "method",
                 "n_rows_reference", "n_rows_new", "n_shared", "n_reference", "n_new", "obstacle")  # fmt: skip
        interval = {"low": self.auc_interval.low, "high": self.auc_interval.high, "level": self.auc_interval.level}
        return {
            **{name: getattr(self, name) for name in names},
            "auc_interval": interval,
            "cells": [plain(cell.to_dict()) for cell in self.cells],
        }

    def __str__(self) -> str:
        if self.obstacle is not None:
            return self.obstacle
        if self.is_same_table:
            return f"Both tables hold the same {self.n_shared:,} rows: there is no difference"
        interval = f"{self.auc_interval.low:.3f} to {self.auc_interval.high:.3f}"
        verdict = "The samples differ" if self.is_different else "No difference was found"
        lines = [
            f"{verdict}: {p_text(self.p_value)} at level {self.level:g}, "
            f"tested on {self.n_reference:,} reference and {self.n_new:,} new rows",
            f"AUC {self.statistic:.3f} ({interval}), 0.5 = cannot be told apart; "
            f"{self.test} test of the scores: {p_text(self.score_p_value)}",
        ]
        if self.n_shared:
            share = percent_text(self.n_shared / min(self.n_rows_reference, self.n_rows_new))
            verb = "row is" if self.n_shared == 1 else "rows are"
            lines.append(f"{self.n_shared:,} {verb} in both tables, {share} of the smaller one")
        if self.clear_cells:
            lines.append("where they differ most:")
        for place, cell in enumerate(self.clear_cells, 1):
            start = f"  {place}. "
            lines.append(f"{start}{cell.direction}: {cell.figures}, {p_text(cell.p_adjusted)}")
            indent = " " * (len(start) + 2)
            lines += textwrap.wrap(cell.rule, WIDTH, initial_indent=indent, subsequent_indent=indent)
        if self.is_different and self.cells and not self.clear_cells:
            lines.append("no cell differs clearly by itself")
        return "\n".join(lines)


def p_text(p_value: float) -> str:
    """Words for a p-value: p = 0.031, p < 0.0001."""
    return "p < 0.0001" if p_value < 0.0001 else f"p = {p_value:.4f}" if p_value < 0.001 else f"p = {p_value:.3f}"
