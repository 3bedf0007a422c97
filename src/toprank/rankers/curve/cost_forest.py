"""`CostOptimalForest`: bagged trees for every trade-off of false alarms and missed positives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from toprank._compat import Interval
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.errors import InputError
from toprank.explain import PathCounts
from toprank.metrics import average_precision
from toprank.rankers.base import RANKER_CONSTRAINTS
from toprank.rankers.cost.tao_tree import TAOTree
from toprank.rankers.curve.curve_ranker import OF_VALIDATION, CurveRanker, Labels
from toprank.rankers.curve.path import PathFitter, Start, fit_start
from toprank.rankers.ensemble.forest import COLUMNS_DRAWN, ROWS_DRAWN, draw_bootstrap
from toprank.rankers.progress import progress
from toprank.rankers.unseen import Unseen
from toprank.tree.grower import columns_wanted
from toprank.tree.structure import Tree
from toprank.words.counts import plural

OUT_OF_BAG = "out-of-bag votes"
"""What `select` uses without validation data."""


@dataclass(eq=False, repr=False)
class CostOptimalForest(CurveRanker):
    """Bagged trees for every trade-off of false alarms and missed positives.

    Each member draws a bootstrap sample and follows its own cost-optimal curve: a base tree at the cost that weights
    both classes equally, then costs of a false positive multiplied and divided by `cost_factor`, with warm starts from
    the neighbour, until its sample has no false positive at one end and no missed positive at the other. At each cost
    the forest flags the cases that at least half of its members flag. This is the extension to ensembles that the
    paper announces in its conclusion.

    All members share the same costs, from the lowest to the highest that any of them needs. A member that has reached
    its end keeps its last tree from there on: a tree without false positives costs the same when these get more
    expensive, and no other tree gets cheaper; likewise at the other end. The out-of-bag votes show the mistakes to
    expect at every cost without cross-validation, and `select` uses them.

    As a ranker the forest orders cases by the votes of all members at all costs, and ties by the mean score of the
    trees.

    Parameters
    ----------
    base : TAOTree or None, default None
        Trees of the forest; None is `TAOTree()`. `TAOTree(split="axis")` gives plain thresholds. Its costs and its
        random_state are ignored.
    n_estimators : int, default 30
        Number of members.
    cost_factor, path_max_iter
        As in `CostOptimalCurve`.
    max_samples : int, float or None, default None
        Cases drawn per member: a number, or a share; None = as many as there are. The fewer the cases, the stronger the
        penalty `alpha` of the base.
    max_features : {"sqrt", "log2"}, int, float or None, default None
        Columns drawn at random per member: a number, or a share; None = all.
    categorical_features, keep_columns, budget, pos_label
        As in `CostOptimalCurve`.
    n_jobs : int or None
        Members fitted in parallel; the results do not depend on it.
    random_state : int, RandomState or None
    verbose : int, default 0
        1 shows progress on standard error.

    Attributes
    ----------
    path_ : list of CurvePoint
        By ascending cost of a false positive, so from many alerts to few; the `tree` of a point is a `Bag`.
    base_point_ : int
        Position of the base cost in `path_`.
    points_, held_out_points_ : OperatingPoints
        Mistakes on the training data; and on the validation data, else by out-of-bag votes. None if all members drew
        all cases of a class.
    held_out_by_ : {"validation data", "out-of-bag votes", "training data"}
        The figures that `select` uses.
    selected_
        As in `CostOptimalCurve`.
    trees_ : list of Tree
        Those of the first member by ascending cost, then those of the next.
    oob_decision_function_ : float64 array of shape (n,)
        Score of each training case by the members that did not draw it; NaN if all did.
    oof_decision_function_ : float64 array of shape (n,)
        Alias of `oob_decision_function_`, the name that `CostOptimalCurve` uses for held-out scores.
    oof_fold_ : None
        A forest has no folds.
    oob_score_ : float
        Average precision of these scores; NaN if a class has none.

    References
    ----------
    .. [1] Gabidolla, Zharmagambetov, Carreira-Perpiñán. Beyond the ROC curve: classification trees using cost-optimal
       curves, with application to imbalanced datasets. ICML 2024. Sections 4 and 6.
    .. [2] Carreira-Perpiñán, Zharmagambetov. Ensembles of bagged TAO trees consistently improve over random forests,
       AdaBoost and gradient boosting. FODS 2020.

    Examples
    --------
    >>> from toprank import CostOptimalForest, TAOTree
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(1000, random_state=0)
    >>> forest = CostOptimalForest(TAOTree(max_depth=2), n_estimators=5, cost_factor=3, random_state=0)
    >>> forest = forest.fit(data.X, data.y)
    >>> forest.held_out_by_, bool(forest.oob_score_ > data.y.mean())
    ('out-of-bag votes', True)
    >>> forest.select(max_fpr=0.2).false_positive_rate.value <= 0.2
    True
    """

    _parameter_constraints = {
        **RANKER_CONSTRAINTS,
        "base": [TAOTree, None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "cost_factor": [Interval(Real, 1, None, closed="neither")],
        "path_max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_samples": ROWS_DRAWN,
        "max_features": COLUMNS_DRAWN,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    _what_a_point_is = "bag of trees of the forest"

    base: TAOTree | None = None
    _: KW_ONLY
    n_estimators: int = 30
    cost_factor: float = 1.5
    path_max_iter: int = 1
    max_samples: int | float | None = None
    max_features: str | int | float | None = None
    categorical_features: Any = None
    keep_columns: Any = None
    budget: int | float | None = None
    pos_label: Any = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    # --- fitting ------------------------------------------------------------------------------------------------

    def _fit_model(self, data: BinnedCases, threads: Threads) -> Unseen | None:
        validation = self._read_validation()
        ratio = self.n_positives_ / (self.n_cases_ - self.n_positives_)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=self.n_estimators)
        grown = threads.map(lambda seed: self._follow_path(data, ratio, int(seed)), seeds)
        members = list(progress(grown, self.n_estimators, type(self).__name__, bool(self.verbose)))
        self.trees_ = [tree for member in members for tree in member.trees]
        # Of the nodes of each tree: 1 positive, 0 negative, -1 inside.
        self._labels = [label for member in members for label in member.labels]
        self._path_counts = [paths for member in members for paths in member.path_counts]
        # The tree of each member at each cost, int (n_estimators, n_points).
        self._tree_at, self.base_point_ = _side_by_side(members)
        ratios = np.array([ratio * self.cost_factor ** (i - self.base_point_) for i in range(self._tree_at.shape[1])])
        by_all, by_others = self._tally(len(data.X)), self._tally(len(data.X))
        for i, member in enumerate(members):
            is_flagged, score = self._member_labels(i, data.X, threads)
            new = member.is_unseen
            by_all.add(is_flagged, score)
            by_others.add(is_flagged[:, new], score[new], new)
        seen = Labels(data.is_positive, data.weight, *by_all.result())
        is_flagged, self.oob_decision_function_ = by_others.result()
        self.oof_decision_function_, self.oof_fold_ = self.oob_decision_function_, None
        weight = data.all_weights
        rows = np.flatnonzero((by_others.n_voters > 0) & (weight > 0))
        is_positive, score, weight = data.is_positive[rows], self.oob_decision_function_[rows], weight[rows]
        has_both = 0 < is_positive.sum() < len(rows)
        self.oob_score_ = float("nan")
        if has_both:
            self.oob_score_ = average_precision(is_positive, score, sample_weight=weight, pos_label=True)
        unseen, source = None, OUT_OF_BAG
        if validation is not None:
            matrix, outcome = validation
            unseen, source = Labels(outcome, None, *self._labels_and_scores(matrix, threads)), OF_VALIDATION
        elif has_both:
            unseen = Labels(is_positive, weight, is_flagged[:, rows], score)
        self._judge(ratios, [self._bag(i) for i in range(len(ratios))], seen, unseen, source)
        return self._unseen(unseen)

    def _follow_path(self, data: BinnedCases, ratio: float, seed: int) -> Member:
        """Fit the curve of one member."""
        rng = np.random.default_rng(seed)
        weight = draw_bootstrap(data, self.max_samples, rng)
        base = self._plain_base().set_params(random_state=seed)
        rows = np.flatnonzero(weight)
        X = data.X[rows]
        n_columns = columns_wanted(self.max_features, X.shape[1])
        if n_columns is not None:  # columns that were not drawn are constant
            X[:, rng.permutation(X.shape[1])[n_columns:]] = 0.0
        drawn = BinnedCases(
            X, data.is_positive[rows], weight[rows], data.columns, splitter=base.splitter, max_bins=base.max_bins
        )

        def fit(tree: TAOTree) -> TAOTree:
            return tree._fit_prepared(drawn, self, Threads())

        first = fit_start(base, Start(base.max_depth, base.alpha), ratio, fit)
        _, path, at = PathFitter(fit, self.path_max_iter).both_ways(first, ratio, self.cost_factor, Threads())
        # Keep only what votes and explanations need: a fitted tree holds much more, such as the fits of its nodes.
        return Member(
            [tree.tree_ for tree in path],
            [tree._label for tree in path],
            [tree.path_counts_ for tree in path],
            at,
            weight == 0,
        )

    # --- scoring ------------------------------------------------------------------------------------------------

    def _tally(self, n_rows: int) -> Tally:
        n_members, n_points = self._tree_at.shape
        return Tally(n_points, n_rows, n_members)

    def _member_labels(self, member: int, matrix: np.ndarray, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
        """Return a member's label of each row at each cost, bool (n_points, n), and its mean score, float64 (n,)."""
        places = self._tree_at[member]
        is_flagged, total = np.empty((len(places), len(matrix)), bool), np.zeros(len(matrix))
        for i in np.unique(places):
            score, leaf = self.trees_[i].scores_and_leaves(matrix, threads)
            is_flagged[places == i] = self._labels[i][leaf] == 1
            total += np.count_nonzero(places == i) * score
        return is_flagged, total / len(places)

    def _labels_and_scores(self, matrix: np.ndarray, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
        tally = self._tally(len(matrix))
        for i in range(len(self._tree_at)):
            tally.add(*self._member_labels(i, matrix, threads))
        return tally.result()

    def _labels_at(self, position: int, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        return self.path_[position].tree.is_flagged(matrix, threads)

    def _bag(self, position: int) -> Bag:
        """Return the trees of one cost, by its position."""
        chosen = self._tree_at[:, position]
        return Bag([self.trees_[i] for i in chosen], [self._labels[i] for i in chosen])

    def _tree_weights(self) -> np.ndarray:
        """Return the number of costs at which each tree is used."""
        return np.bincount(self._tree_at.ravel()).astype(np.float64)

    # --- files and text -----------------------------------------------------------------------------------------

    def _figures(self) -> dict[str, Any]:
        known = None if np.isnan(self.oob_score_) else self.oob_score_
        return super()._figures() | {"n_points": len(self.path_), "oob_average_precision": known}

    def _size_in_words(self) -> str:
        judged = "" if np.isnan(self.oob_score_) else f"; out-of-bag average precision {self.oob_score_:.3f}"
        n_members, n_points = self._tree_at.shape
        size = f"{plural(n_members, 'member')} at {plural(n_points, 'cost')}"
        return f"{size}, {plural(self.n_leaves_, 'leaf', 'leaves')} in all{judged}"

    def _to_arrays(self) -> dict[str, np.ndarray]:
        return super()._to_arrays() | self._judged_to_arrays() | {
            "labels": np.concatenate(self._labels),
            "tree_at": self._tree_at,
            "oob_score": np.array(self.oob_score_),
            "oob_decision_function": self.oob_decision_function_,
        }  # fmt: skip

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self.oob_score_, self.oob_decision_function_ = float(arrays["oob_score"]), arrays["oob_decision_function"]
        ends = np.cumsum([len(tree) for tree in self.trees_])
        labels, self._tree_at = arrays["labels"], arrays["tree_at"]
        if labels.shape != (ends[-1],) or labels.dtype != np.int8:
            raise InputError("The model's trees and their labels do not fit together.")
        self._labels = np.split(labels, ends[:-1])
        for tree, label in zip(self.trees_, self._labels, strict=True):
            if not np.isin(label[tree.is_leaf], (0, 1)).all():
                raise InputError("The model's leaves lack labels.")
        if (
            self._tree_at.ndim != 2
            or self._tree_at.dtype != np.int32
            or not np.array_equal(np.unique(self._tree_at), np.arange(len(self.trees_)))
        ):
            raise InputError("The model's members and trees do not fit together.")
        self._judged_from_arrays(arrays, self._tree_at.shape[1], lambda i, _: self._bag(i))
        self.oof_decision_function_ = self.oob_decision_function_


@dataclass(frozen=True, eq=False)
class Bag:
    """The trees of a forest at one cost, one per member; the `tree` of a `CurvePoint`.

    Attributes
    ----------
    trees : list of Tree
    labels : list of int8 arrays
        Labels of their nodes: 1 positive, 0 negative, -1 at inner nodes.
    """

    trees: list[Tree]
    labels: list[np.ndarray]

    @property
    def n_leaves_(self) -> int:
        """Number of leaves of all trees."""
        return sum(int(tree.is_leaf.sum()) for tree in self.trees)

    def is_flagged(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        """Return True for rows that at least half of the trees flag, bool (n,)."""
        n_flags = np.zeros(len(matrix), np.int64)
        for tree, label in zip(self.trees, self.labels, strict=True):
            n_flags += label[tree.apply(matrix, threads)] == 1
        return 2 * n_flags >= len(self.trees)


class Member(NamedTuple):
    """A member's trees by ascending cost, the position of its base tree, and its out-of-bag cases."""

    trees: list[Tree]
    labels: list[np.ndarray]
    path_counts: list[PathCounts]
    base_at: int
    is_unseen: np.ndarray


class Tally:
    """Running count of the votes on rows, per cost; rows with fewer votes than members are scored on the same scale.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.rankers.curve.cost_forest import Tally
    >>> tally = Tally(2, 3, 2)
    >>> tally.add(np.array([[True, True, False], [True, False, False]]), np.full(3, 0.5))
    >>> tally.add(np.array([[True, False, False], [True, False, False]]), np.full(3, 0.5))
    >>> is_flagged, score = tally.result()
    >>> is_flagged.tolist(), score.round(2).tolist()
    ([[True, True, False], [True, False, False]], [0.9, 0.3, 0.1])
    """

    def __init__(self, n_points: int, n_rows: int, n_members: int):
        self.n_flags = np.zeros((n_points, n_rows), np.int32)
        self.n_voters = np.zeros(n_rows, np.int64)
        self.total = np.zeros(n_rows)
        self.n_votes = n_points * n_members

    def add(self, is_flagged: np.ndarray, score: np.ndarray, rows: Any = slice(None)) -> None:
        """Add a member's labels of some rows, bool (n_points, n), and its mean scores of them, float64 (n,)."""
        self.n_flags[:, rows] += is_flagged
        self.n_voters[rows] += 1
        self.total[rows] += score

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """Return whether at least half of the votes on a row are positive per cost, bool (n_points, n), and its score.

        Scores are in (0, 1]: by the share of positive votes, ties by the mean score; NaN for rows without votes,
        whose labels mean nothing.
        """
        with np.errstate(invalid="ignore"):
            share = self.n_flags.sum(axis=0) / (len(self.n_flags) * self.n_voters)
            score = (share * self.n_votes + (1 - 1e-9) * self.total / self.n_voters) / (self.n_votes + 1)
        return 2 * self.n_flags >= self.n_voters, score


def _side_by_side(members: Sequence[Member]) -> tuple[np.ndarray, int]:
    """Return the tree number of each member at each cost, int32 (n_members, n_points), and the base cost's position.

    Before its first cost a member uses its first tree, after its last cost its last tree.
    """
    length = np.array([len(member.trees) for member in members])
    below = np.array([member.base_at for member in members])
    base_point = int(below.max())
    step = np.arange(-base_point, int((length - below).max()))
    inside = np.clip(below[:, np.newaxis] + step, 0, length[:, np.newaxis] - 1)
    return (np.cumsum(length) - length)[:, np.newaxis].astype(np.int32) + inside.astype(np.int32), base_point
