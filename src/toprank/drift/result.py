"""`TwoSampleResult`: whether two samples differ, and the leaves of a tree where they do, as data and in words."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field, fields
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.data.frames import make_frame
from toprank.drift.homogeneity import fisher_p_values
from toprank.explain import Rule, leaf_rules
from toprank.metrics import Interval
from toprank.metrics.comparison import holm
from toprank.rankers.base import Ranker
from toprank.rankers.tree_ranker import TreeRanker
from toprank.words.numbers import lift_text, percent_text
from toprank.words.plain import plain

WIDTH = 100


@dataclass(frozen=True)
class DriftCell:
    """One leaf of the tree, and the held-out rows of each sample in it.

    Attributes
    ----------
    leaf_rule : Rule
        The leaf as data; its figures are those of the rows that the tree was grown on.
    n_reference, n_new : int
        Held-out rows in the leaf.
    share_reference, share_new : float
        The same as shares of the held-out rows of each sample.
    ratio : float
        share_new / share_reference; infinite if the reference has no row here, NaN if neither has.
    ratio_low, ratio_high : float
        Ends of the interval of the ratio for this cell only.
    p_value : float
        Fisher's exact test, two-sided, for this cell only.
    p_adjusted : float
        The same after Holm's adjustment for the number of leaves.
    """

    leaf_rule: Rule
    n_reference: int
    n_new: int
    share_reference: float
    share_new: float
    ratio: float
    ratio_low: float
    ratio_high: float
    p_value: float
    p_adjusted: float

    @property
    def leaf(self) -> int:
        """Place in the order of the ranker, 1 = where new rows are most frequent."""
        return self.leaf_rule.leaf

    @property
    def rule(self) -> str:
        """The leaf in words."""
        return self.leaf_rule.text()

    @property
    def direction(self) -> str:
        """Words for the direction: "new has more" or "new has fewer"."""
        return "new has more" if self.share_new > self.share_reference else "new has fewer"

    @property
    def figures(self) -> str:
        """Both shares and their ratio, in words."""
        new, reference = percent_text(self.share_new), percent_text(self.share_reference)
        shares = f"{new} of the new rows, {reference} of the reference"
        if np.isnan(self.ratio):
            return shares
        if np.isinf(self.ratio):
            return f"{shares}: at least {lift_text(self.ratio_low)} times"
        return f"{shares}: {lift_text(self.ratio)} times ({lift_text(self.ratio_low)} to {lift_text(self.ratio_high)})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `ways` are lists of conditions, as in `Rule.to_dict`."""
        figures = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "leaf_rule"}
        ways = self.leaf_rule.to_dict()["ways"]
        return {"leaf": self.leaf, "rule": self.rule, "ways": ways} | figures | {"direction": self.direction}


def drift_cells(
    ranker: TreeRanker, leaf: NDArray[np.integer[Any]], is_new: NDArray[np.bool_], *, level: float
) -> list[DriftCell]:
    """All leaves of a tree with their held-out rows, largest differences first.

    The leaves are fixed by the training rows of the tree, so the held-out rows test them fairly; p-values are adjusted
    for the number of leaves. Sorted by the absolute two-sample z-statistic of the shares. `leaf` is that of each
    held-out row, 0 = the first in the order of the ranker; intervals have the confidence 1 - level.
    """
    new = np.bincount(leaf[is_new], minlength=ranker.tree_.n_leaves)
    reference = np.bincount(leaf[~is_new], minlength=ranker.tree_.n_leaves)
    rules = leaf_rules(ranker.tree_, ranker.columns_, ranker.path_counts_)
    p_value = fisher_p_values(reference, new)
    adjusted = holm(p_value)
    ratio, low, high = share_ratios(reference, new, level)
    order = np.argsort(-np.abs(share_z(reference, new)), kind="stable")
    return [
        DriftCell(
            leaf_rule=rules[i],
            n_reference=int(reference[i]),
            n_new=int(new[i]),
            share_reference=float(reference[i] / reference.sum()),
            share_new=float(new[i] / new.sum()),
            ratio=float(ratio[i]),
            ratio_low=float(low[i]),
            ratio_high=float(high[i]),
            p_value=float(p_value[i]),
            p_adjusted=float(adjusted[i]),
        )
        for i in order
    ]


def share_z(reference: NDArray[np.int64], new: NDArray[np.int64]) -> NDArray[np.float64]:
    """Difference of the shares of new and reference rows in each cell over its pooled standard error."""
    n, m = reference.sum(), new.sum()
    pooled = (reference + new) / (n + m)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    difference = new / m - reference / n
    return np.divide(difference, error, out=np.zeros(len(new)), where=error > 0)


def share_ratios(
    reference: NDArray[np.int64], new: NDArray[np.int64], level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Ratio of the shares in each cell, and the ends of its interval with confidence 1 - level.

    The interval is that of the logarithm of the ratio, with 1/2 added to every count so that it exists for empty cells
    too. It is widened to include the ratio.

    References
    ----------
    S. D. Walter, "The distribution of Levin's measure of attributable risk", Biometrika 62, 1975.

    Examples
    --------
    >>> [ends.round(2).tolist() for ends in share_ratios(np.array([10, 90]), np.array([30, 70]), 0.05)]
    [[3.0, 0.78], [1.52, 0.68], [5.53, 0.9]]
    """
    n, m = int(reference.sum()), int(new.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (new / m) / (reference / n)
    centre = np.log((new + 0.5) / (m + 0.5)) - np.log((reference + 0.5) / (n + 0.5))
    variance = 1 / (new + 0.5) - 1 / (m + 0.5) + 1 / (reference + 0.5) - 1 / (n + 0.5)
    half = NormalDist().inv_cdf(1 - level / 2) * np.sqrt(variance)
    return ratio, np.fmin(np.exp(centre - half), ratio), np.fmax(np.exp(centre + half), ratio)


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
        interval = {name: getattr(self.auc_interval, name) for name in ("low", "high", "level")}
        cells = [plain(cell.to_dict()) for cell in self.cells]
        return {name: getattr(self, name) for name in names} | {"auc_interval": interval, "cells": cells}

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
            lines += textwrap.wrap(cell.rule, WIDTH, initial_indent=indent, subsequent_indent=indent,
                                       break_on_hyphens=False)  # fmt: skip
        if self.is_different and self.cells and not self.clear_cells:
            lines.append("no cell differs clearly by itself")
        return "\n".join(lines)


def p_text(p_value: float) -> str:
    """Words for a p-value: p = 0.031, p < 0.0001."""
    return "p < 0.0001" if p_value < 0.0001 else f"p = {p_value:.4f}" if p_value < 0.001 else f"p = {p_value:.3f}"
