"""`two_sample_test`: a ranker learns to tell two samples apart, and rows it has not seen say whether it can."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from toprank.drift.cells import DriftCell, drift_cells
from toprank.drift.combination import combined_p_value, union_bound
from toprank.drift.homogeneity import TESTS, homogeneity_test
from toprank.drift.samples import TwoSamples, join_samples
from toprank.metrics import Interval, auc_interval
from toprank.metrics._validation import check_choice, check_count, is_real
from toprank.rankers.base import BaseRanker
from toprank.rankers.tree_ranker import TreeRanker
from toprank.rankers.treerank import TreeRank
from toprank.tree.structure import Tree

WIDTH = 100
LEAST_LEAF, LARGEST_LEAF = 5, 15
"""Bounds of the least number of training rows in a cell of the default ranker, which is a tenth of them in between."""


@dataclass(frozen=True)
class TwoSampleResult:
    """Whether two samples differ, and where.

    Attributes
    ----------
    statistic : float
        Held-out AUC: the chance that a new row scores higher than a reference row; 0.5 = they cannot be told apart.
    p_value : float
        Of the hypothesis that both samples come from one population: of the scores and the cells together.
    score_p_value : float
        Of the test of the held-out scores alone, one-sided.
    auc_interval : Interval
        Around the statistic, two-sided, with the confidence 1 - level.
    cells : tuple of DriftCell
        Leaves of the tree in which the held-out shares of the samples differ most, strongest first; none where the
        ranker is not one tree.
    ranker : BaseRanker
        As fitted on the rows that were not held out; new rows are its positives.
    n_reference, n_new : int
        Held-out rows of either sample.
    level : float
    test, method : str
        The test, and how the distribution of its statistic was found: exact, normal or permutation.
    """

    statistic: float
    p_value: float
    score_p_value: float
    auc_interval: Interval
    cells: tuple[DriftCell, ...]
    ranker: BaseRanker = field(repr=False)
    n_reference: int
    n_new: int
    level: float
    test: str
    method: str

    @property
    def is_different(self) -> bool:
        """True where the p-value is at most `level`."""
        return self.p_value <= self.level

    @property
    def clear_cells(self) -> tuple[DriftCell, ...]:
        """Cells that differ by themselves, at `level` after adjustment; none where the samples as a whole do not."""
        return tuple(cell for cell in self.cells if self.is_different and cell.p_adjusted <= self.level)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; what is not a finite number is None. The ranker is left out."""
        names = ("statistic", "p_value", "score_p_value", "is_different", "level", "test", "method",
                 "n_reference", "n_new")  # fmt: skip
        interval = {"low": self.auc_interval.low, "high": self.auc_interval.high, "level": self.auc_interval.level}
        return {
            **{name: getattr(self, name) for name in names},
            "auc_interval": interval,
            "cells": [{name: _plain(value) for name, value in cell.to_dict().items()} for cell in self.cells],
        }

    def __str__(self) -> str:
        interval = f"{self.auc_interval.low:.3f} to {self.auc_interval.high:.3f}"
        verdict = "The samples differ" if self.is_different else "No difference was found"
        lines = [
            f"{verdict}: {p_text(self.p_value)} at level {self.level:g}, "
            f"tested on {self.n_reference:,} reference and {self.n_new:,} new rows",
            f"AUC {self.statistic:.3f} ({interval}), 0.5 = cannot be told apart; "
            f"{self.test} test of the scores: {p_text(self.score_p_value)}",
        ]
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


def two_sample_test(
    X: Any,
    Y: Any,
    *,
    ranker: BaseRanker | None = None,
    test: str = "rank-sum",
    test_size: float = 0.5,
    n_permutations: int | None = None,
    n_cells: int = 5,
    level: float = 0.05,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> TwoSampleResult:
    """Test of whether two tables come from the same population, with the places where they differ, in words.

    Both tables are parted at random. A ranker learns on one part to put new rows above reference rows; if both come
    from one population, nothing it learned holds on the other part, whatever it learned, so a test of the held-out
    scores has its level for every ranker and every number of columns (remark 14 of [1]_). The test is one-sided: the
    ranker says beforehand which rows should score higher. If the samples differ, its AUC is above 1/2; below 1/2 lies
    only chance, and a two-sided test would spend half of its level there.

    Parameters
    ----------
    X, Y : array or data frame of shape (n, n_features)
        Reference rows and new rows: numpy, pandas, polars or pyarrow; categories and missing values as they are.
        Columns of frames go together by name, those of arrays by position. Leave out columns that name the row or
        count the time: they differ in any two samples.
    ranker : ranker or None
        What learns to tell the samples apart; a copy is fitted. None is ``TreeRank(max_depth=3, leaf_depth=2,
        leaf_score="constant")`` with at least a tenth of the training rows in a cell, though never fewer than 5 nor
        more than 15 rows. A ranker that is not one tree, such as a forest, gives no cells.
    test : {"rank-sum", "permutation"}
        How `score_p_value` is found: Mann and Whitney's test with a correction for ties (exact for at most 60 held-out
        rows), or a permutation test. It decides `p_value` only where there are no cells, or below what draws resolve.
    test_size : float, default 0.5
        Share of the rows of each table that is held out.
    n_permutations : int or None
        Draws of the held-out labels, for the p-value of scores and cells together, for the permutation test, and for
        the rank-sum test where a sample is too small for a normal distribution. None is 9,999, or 999 where more than
        5,000 held-out rows differ in score, since each of these draws goes through all rows.
    n_cells : int, default 5
        Cells to return.
    level : float, default 0.05
        Probability of finding a difference where there is none.
    random_state : int, default 0
        Which rows are held out, permutations, and the ranker's own where it has none. Fix it beforehand: to try
        several and take the smallest p-value is to give up the level.
    n_jobs : int or None
        Threads of the ranker; results are the same for any number.

    Returns
    -------
    TwoSampleResult

    Notes
    -----
    Where the ranker is one tree, its cells are tested too: a category that is new in 3 % of the rows hardly moves the
    order of all rows, but is beyond doubt in its own cell. The statistic of both looks is the smaller of p / 0.9 of the
    scores and p / 0.1 of the clearest cell after Holm's adjustment. Its distribution is drawn: given the held-out rows,
    their leaves and scores, every choice of the new rows among them is equally likely under the null hypothesis. The
    p-value is (b + 1) / (m + 1) with b of m draws at least as extreme, which keeps its level for every m. Where b = 0,
    it is the statistic itself if that is below 1 / (m + 1): by Bonferroni that is a p-value too, if a less sharp one.

    Both samples have the same weight in learning, whatever their sizes: a row of the smaller one weighs 1. Columns and
    categories are read over both tables, without a look at which row is whose, so that a category that only the new
    rows have can be learned.

    References
    ----------
    .. [1] Clémençon, Vayatis. Tree-based ranking methods. Preprint hal-00268068, 2008. Remark 14.

    Examples
    --------
    Two columns that have the same distributions as before, but are no longer independent:

    >>> import numpy as np
    >>> from toprank import two_sample_test
    >>> rng = np.random.default_rng(1)
    >>> reference, new = rng.normal(size=(1000, 3)), rng.normal(size=(1000, 3))
    >>> two_sample_test(reference, new).is_different
    False
    >>> new[:, 1] = 0.6 * new[:, 0] + 0.8 * new[:, 1]
    >>> result = two_sample_test(reference, new)
    >>> result.is_different, result.cells[0].direction
    (True, 'new has more')
    """
    caller = "two_sample_test"
    check_choice(test, "test", TESTS, caller=caller)
    if n_permutations is not None:
        check_count(n_permutations, "n_permutations", caller=caller)
    check_count(n_cells, "n_cells", caller=caller, low=0)
    for name, value in (("level", level), ("test_size", test_size)):
        if not is_real(value) or not 0 < value < 1:
            raise ValueError(
                f"The '{name}' parameter of {caller} must be a float in the range (0, 1). Got {value!r} instead."
            )
    check_count(random_state, "random_state", caller=caller, low=0)
    if ranker is not None and not isinstance(ranker, BaseRanker):
        raise TypeError(
            f"The 'ranker' parameter of {caller} must be a ranker of toprank or None. Got {type(ranker).__name__} "
            "instead. Hint: for example MetaAP(max_depth=3)."
        )
    learner = TreeRank(max_depth=3, leaf_depth=2, leaf_score="constant") if ranker is None else clone(ranker)
    samples = join_samples(X, Y, learner)
    split_rng, test_rng = np.random.default_rng(random_state).spawn(2)
    held_out = draw_held_out(samples.is_new, test_size, split_rng)
    weight = balanced_weights(samples.is_new, held_out)
    if ranker is None:
        learner.set_params(min_samples_leaf=int(np.clip(weight.sum() / 10, LEAST_LEAF, LARGEST_LEAF)))
    _fit(learner, samples, weight, random_state, n_jobs)
    score = learner.decision_function(samples.table)[held_out]
    is_new = samples.is_new[held_out]
    draws: dict[str, Any] = {"n_permutations": n_permutations, "random_state": test_rng}
    outcome = homogeneity_test(score, is_new, test=test, **draws)
    p_value, cells = outcome.p_value, []
    if isinstance(learner, TreeRanker) and isinstance(learner.tree_, Tree):  # TreeRank of classifiers has no rules
        leaf = learner.tree_.leaf[learner.apply(samples.table)][held_out]
        cells = drift_cells(learner, leaf, is_new, level=level)
        bound = union_bound(p_value, min(cell.p_adjusted for cell in cells))
        p_value = combined_p_value(score, leaf, is_new, n_leaves=len(cells), bound=bound, **draws)
    return TwoSampleResult(
        statistic=outcome.auc,
        p_value=p_value,
        score_p_value=outcome.p_value,
        auc_interval=auc_interval(is_new, score, level=1 - level),
        cells=tuple(cells[:n_cells]),
        ranker=learner,
        n_reference=int(np.count_nonzero(~is_new)),
        n_new=int(np.count_nonzero(is_new)),
        level=float(level),
        test=test,
        method=outcome.method,
    )


def draw_held_out(is_new: NDArray[np.bool_], test_size: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Rows to test on: the same share of both samples, at least one row of each on either side."""
    held_out = np.zeros(len(is_new), bool)
    for rows in (np.flatnonzero(~is_new), np.flatnonzero(is_new)):
        n_held_out = min(max(round(test_size * len(rows)), 1), len(rows) - 1)
        held_out[rng.choice(rows, n_held_out, replace=False)] = True
    return held_out


def balanced_weights(is_new: NDArray[np.bool_], held_out: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Weights to learn with: both samples weigh the same, a row of the smaller one 1, a row held out nothing."""
    n_rows = np.bincount(is_new[~held_out], minlength=2)
    return np.where(held_out, 0.0, (n_rows.min() / n_rows)[is_new.astype(int)])


def _fit(learner: BaseRanker, samples: TwoSamples, weight: NDArray[np.float64], seed: int, n_jobs: int | None) -> None:
    """Fit the ranker on both samples; rows of weight 0 give their categories, and nothing else."""
    known = learner.get_params(deep=False)
    settings: dict[str, Any] = {"pos_label": None, "categorical_features": samples.categorical or None}
    if known.get("random_state", seed) is None:
        settings["random_state"] = seed
    if n_jobs is not None:
        settings["n_jobs"] = n_jobs
    learner.set_params(**{name: value for name, value in settings.items() if name in known})
    learner.fit(samples.table, samples.is_new.astype(np.int64), sample_weight=weight)


def p_text(p_value: float) -> str:
    """Words for a p-value: p = 0.031, p < 0.0001."""
    return "p < 0.0001" if p_value < 0.0001 else f"p = {p_value:.4f}" if p_value < 0.001 else f"p = {p_value:.3f}"


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
