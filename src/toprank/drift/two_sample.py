"""`two_sample_test`: a ranker learns to separate two samples, and held-out rows show whether it can."""

from __future__ import annotations

import math
import sys
import warnings
from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from toprank.data.column_roles import CONSTANT, EMPTY, LeftOutWarning
from toprank.drift.homogeneity import TESTS, combined_p_value, homogeneity_test, union_bound
from toprank.drift.result import TwoSampleResult, drift_cells
from toprank.drift.samples import (
    MIN_ROWS,
    TwoSamples,
    balanced_weights,
    draw_held_out,
    held_out_size,
    join_samples,
)
from toprank.errors import InputError, InputTypeError, warn_caller
from toprank.metrics import auc_interval
from toprank.metrics.checks import check_choice, check_count, is_real
from toprank.rankers.base import Ranker
from toprank.rankers.meta.treerank import TreeRank
from toprank.rankers.tree_ranker import TreeRanker
from toprank.tree.structure import Tree
from toprank.words.counts import plural

LEAST_LEAF, LARGEST_LEAF = 5, 15
"""Bounds of the smallest number of training rows per cell of the default ranker: a tenth of them, within these."""


def two_sample_test(
    X: Any,
    Y: Any,
    *,
    ranker: Ranker | None = None,
    test: str = "rank-sum",
    test_size: float = 0.5,
    n_permutations: int | None = None,
    n_cells: int = 5,
    level: float = 0.05,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> TwoSampleResult:
    """Test whether two tables come from the same population, and show where they differ, in words.

    Both tables are split at random. A ranker learns on one part to put new rows above reference rows; if both come from
    one population, nothing it learned holds on the other part, so a test of the held-out scores keeps its level for
    every ranker and any number of columns (remark 14 of [1]_). The test is one-sided, because the ranker defines
    beforehand which rows should score higher. If the samples differ, its AUC is above 1/2; an AUC below 1/2 is only
    chance, and a two-sided test would waste half of its level there.

    Parameters
    ----------
    X, Y : array or data frame of shape (n, n_features)
        Reference rows and new rows: numpy, pandas, polars or pyarrow; with categories and missing values. Columns of
        frames are matched by name, those of arrays by position. Leave out columns that identify the row or count time:
        they differ in any two samples.
    ranker : ranker or None
        The model that learns to separate the samples; a copy is fitted. None is ``TreeRank(max_depth=3, leaf_depth=2,
        leaf_score="constant", cv=0)`` with at least a tenth of the training rows per cell, but no fewer than 5 and no
        more than 15 rows. A ranker that is not one tree, such as a forest, has no cells.
    test : {"rank-sum", "permutation"}
        How `score_p_value` is computed: Mann and Whitney's test with a correction for ties (exact for at most 60
        held-out rows), or a permutation test. It determines `p_value` only without cells, or below the resolution of
        the draws.
    test_size : float, default 0.5
        Share of the rows of each table that is held out.
    n_permutations : int or None
        Draws of the held-out labels, for the p-value of scores and cells together, for the permutation test, and for
        the rank-sum test if a sample is too small for a normal approximation. None is 9,999, or 999 if more than 5,000
        held-out rows differ in score, because each of these draws visits all rows.
    n_cells : int, default 5
        Number of cells to return.
    level : float, default 0.05
        Probability of finding a difference if there is none.
    random_state : int, default 0
        Seed of the held-out rows, of permutations, and of the ranker if it has none. Fix it beforehand: trying several
        and picking the smallest p-value breaks the level.
    n_jobs : int or None
        Threads of the ranker; results are the same for any number.

    Returns
    -------
    TwoSampleResult

    Notes
    -----
    If the ranker is one tree, its cells are tested too: a category that is new in 3 % of the rows hardly changes the
    order of all rows, but is obvious in its own cell. The statistic of both tests is the smaller of p / 0.9 of the
    scores and p / 0.1 of the clearest cell after Holm's adjustment. Its distribution is drawn: given the held-out rows,
    their leaves and scores, every choice of the new rows among them is equally likely under the null hypothesis. The
    p-value is (b + 1) / (m + 1) with b of m draws at least as extreme, which keeps its level for every m. If b = 0, it
    is the statistic itself if that is below 1 / (m + 1): by Bonferroni that is a valid, though less sharp, p-value.

    A row that occurs once in each table, with the same values, counts as one case that is in both: its copies are both
    training rows or both held out. Otherwise the held-out rows would be the mirror image of the training rows, and a
    table would differ from itself. This is skipped in tables whose rows match as often within themselves.

    Both samples have the same weight in training, whatever their sizes: a row of the smaller one has weight 1. Columns
    and categories are read from both tables, without using which row belongs to which, so that the ranker can learn a
    category that only new rows have.

    References
    ----------
    .. [1] Clémençon, Vayatis. Tree-based ranking methods. Preprint hal-00268068, 2008. Remark 14.

    Examples
    --------
    Two columns with unchanged distributions that are no longer independent:

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
    for name, value, hint in (
        ("level", level, "0.05 is usual; it is a share, not a percentage."),
        ("test_size", test_size, "it is the share of held-out rows, 0.5 by default."),
    ):
        if not is_real(value) or not 0 < value < 1:
            raise InputError(
                f"The '{name}' parameter of {caller} must be a float in the range (0, 1). Got {value!r} instead. "
                f"Hint: {hint}"
            )
    check_count(random_state, "random_state", caller=caller, low=0)
    if ranker is not None and not isinstance(ranker, Ranker):
        raise InputTypeError(
            f"The 'ranker' parameter of {caller} must be a toprank ranker or None. Got {type(ranker).__name__} "
            "instead. Hint: for example MetaAP(max_depth=3)."
        )
    learner = TreeRank(max_depth=3, leaf_depth=2, leaf_score="constant", cv=0) if ranker is None else clone(ranker)
    samples = join_samples(X, Y, learner)
    split_rng, test_rng = np.random.default_rng(random_state).spawn(2)
    held_out = draw_held_out(samples.is_new, test_size, split_rng, samples.shared)
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
    min_leaf = learner.get_params(deep=False).get("min_samples_leaf", 1)
    n_rows = np.bincount(samples.is_new)
    return TwoSampleResult(
        statistic=outcome.auc,
        p_value=p_value,
        score_p_value=outcome.p_value,
        auc_interval=auc_interval(is_new, score, level=1 - level),
        cells=tuple(cells[:n_cells]),
        ranker=learner,
        n_rows_reference=int(n_rows[0]),
        n_rows_new=int(n_rows[1]),
        n_shared=len(samples.shared),
        n_reference=int(np.count_nonzero(~is_new)),
        n_new=int(np.count_nonzero(is_new)),
        level=float(level),
        test=test,
        method=outcome.method,
        obstacle=find_obstacle(samples, held_out, score, min_leaf=min_leaf, test_size=test_size, level=level),
        backend=samples.backend,
    )


def _fit(learner: Ranker, samples: TwoSamples, weight: NDArray[np.float64], seed: int, n_jobs: int | None) -> None:
    """Fit the ranker on both samples; rows of weight 0 contribute only their categories."""
    known = learner.get_params(deep=False)
    settings: dict[str, Any] = {"pos_label": None, "categorical_features": samples.categorical or None}
    if known.get("random_state", seed) is None:
        settings["random_state"] = seed
    if n_jobs is not None:
        settings["n_jobs"] = n_jobs
    learner.set_params(**{name: value for name, value in settings.items() if name in known})
    with warnings.catch_warnings():
        # Weights that add up to few cases are ours: the user gave none, and the result reports too few rows.
        warnings.filterwarnings("ignore", message="The weights add up to")
        warnings.filterwarnings("ignore", category=LeftOutWarning)
        learner.fit(samples.table, samples.is_new.astype(np.int64), sample_weight=weight)
    names = [name for name, reason in learner.left_out_.items() if reason not in (CONSTANT, EMPTY)]
    if names:  # a constant column cannot differ, so leaving it out changes nothing
        listed = ", ".join(f"{name!r} ({learner.left_out_[name]})" for name in names)
        text = (
            f"two_sample_test leaves out {plural(len(names), 'column')}: {listed}. "
            f"Hint: ranker=TreeRank(keep_columns=[{names[0]!r}]) compares such a column anyway."
        )
        warn_caller(LeftOutWarning(text, names))


# --- power: too few rows, or no column that varies ----------------------------------------------------------


def find_obstacle(
    samples: TwoSamples,
    held_out: NDArray[np.bool_],
    score: NDArray[np.float64],
    *,
    min_leaf: int,
    test_size: float,
    level: float,
) -> str | None:
    """Why no difference could have been found, in one sentence; None if one could, or if the rows are the same.

    `score` is that of the held-out rows; the ranker needs `min_leaf` rows of each sample to find a condition.
    """
    if samples.is_constant:
        return "There is nothing to compare: every column has a single value in both tables."
    if 2 * len(samples.shared) == len(samples.is_new):
        return None  # identical tables, however small
    n_rows, n_tested = np.bincount(samples.is_new), np.bincount(samples.is_new[held_out])
    has_order = score.min() < score.max()  # a forest may find conditions in fewer rows, by drawing them more than once
    is_learnable = has_order or min(n_rows - n_tested) >= min_leaf
    if is_learnable and is_decisive(int(n_tested[0]), int(n_tested[1]), level):
        return None
    return (
        f"There are too few rows to say anything: the smaller table has {min(n_rows):,}, and at least "
        f"{rows_needed(min_leaf, test_size, level):,} in each are needed."
    )


def is_decisive(n_reference: int, n_new: int, level: float) -> bool:
    """Whether the clearest outcome of a test on this many rows has a p-value of at most `level`.

    That outcome is one of all equally likely choices of the new rows.

    Examples
    --------
    >>> is_decisive(2, 2, 0.05), is_decisive(3, 3, 0.05)
    (False, True)
    """
    n = n_reference + n_new
    choices = math.lgamma(n + 1) - math.lgamma(n_reference + 1) - math.lgamma(n_new + 1)
    return choices >= -math.log(level) - 1e-9  # 3 of 6 rows: 20 choices, just enough for 0.05


def rows_needed(min_leaf: int, test_size: float, level: float) -> int:
    """Smallest number of rows, the same in both tables, with which a difference can be found.

    Examples
    --------
    >>> rows_needed(5, 0.5, 0.05), rows_needed(5, 0.1, 0.05)
    (9, 26)
    """

    def is_enough(n_rows: int) -> bool:
        n_tested = held_out_size(n_rows, test_size)
        return n_rows - n_tested >= min_leaf and is_decisive(n_tested, n_tested, level)

    # More rows are never worse, so bisection finds the smallest sufficient number.
    numbers = range(MIN_ROWS, sys.maxsize)
    return numbers[bisect_left(numbers, True, key=is_enough)]
