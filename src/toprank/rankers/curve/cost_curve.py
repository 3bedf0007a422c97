"""`CostOptimalCurve`: a tree for every trade-off of false alarms and missed positives, and the choice of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, astuple, dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from toprank._compat import Interval
from toprank._core.threads import Threads
from toprank.budget import Cutoff, cases_of_budget
from toprank.data.binned_cases import BinnedCases
from toprank.data.frames import make_frame
from toprank.errors import InputError
from toprank.explain import PathCounts, Rule
from toprank.export import to_text
from toprank.files.head import check_cutoff
from toprank.files.model_file import numbered_parts, with_prefix, without_prefix
from toprank.metrics import OperatingPoints
from toprank.rankers.base import RANKER_CONSTRAINTS, TABLE_FACTS, Ranker
from toprank.rankers.cost.tao_tree import TAOTree
from toprank.rankers.curve.changes import changes_table, leaf_rule_changes
from toprank.rankers.curve.curve_ranker import OF_VALIDATION, CurveRanker, Labels
from toprank.rankers.curve.path import (
    CurvePoint,
    FitTree,
    PathFitter,
    Start,
    fit_start,
    order_of,
    starts_to_try,
    subset,
    votes_and_scores,
    votes_of,
)
from toprank.rankers.curve.selection import ROUNDING, Selection
from toprank.rankers.curve.threshold_moves import DensePath, Place, ThresholdMoves
from toprank.rankers.growth import FOLD_CONSTRAINTS
from toprank.rankers.progress import progress
from toprank.rankers.unseen import Unseen, has_folds, held_out_folds, pruning_folds
from toprank.tree.structure import Tree
from toprank.words.counts import plural

OF_FOLDS = "cross-validation"


@dataclass(frozen=True, eq=False)
class CurveFolds:
    """Folds of training data, with the trees fitted on the other folds; they run in parallel."""

    data: BinnedCases
    folds: list[tuple[np.ndarray, np.ndarray]]  # training rows and held-out rows of each
    base: TAOTree
    fitter: Callable[[BinnedCases], FitTree]  # returns, for the data of a fold, what fits a tree on them
    path_max_iter: int  # most passes over each tree of a path
    threads: Threads
    verbose: bool

    def __len__(self) -> int:
        return len(self.folds)

    @property
    def rows(self) -> np.ndarray:
        """Return the rows of all folds, one fold after the other."""
        return np.concatenate([held_out for _, held_out in self.folds])

    def by_row(self, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return one score per training row from scores in the order of `rows`, and the last fold that held it out.

        A row held out several times gets the mean of its scores; one that never is gets NaN and fold -1.
        """
        n = len(self.data.X)
        total, times = np.bincount(self.rows, score, n), np.bincount(self.rows, minlength=n)
        fold = np.full(n, -1, np.int64)
        for i, (_, held_out) in enumerate(self.folds):
            fold[held_out] = i
        return np.where(times > 0, total / np.maximum(times, 1), np.nan), fold

    def costs(self, starts: Sequence[Start], ratio: float) -> np.ndarray:
        """Return the out-of-fold cost per case with each start, in units of a false negative, float64 (n_starts,)."""

        def judge(inside: np.ndarray, held_out: np.ndarray) -> list[float]:
            fit = self.fitter(subset(self.data, inside, self.base))
            is_positive = self.data.is_positive[held_out]
            weight = self.data.all_weights[held_out]
            cost = weight * np.where(is_positive, 1.0, ratio)
            found = []
            for start in starts:
                tree = fit_start(self.base, start, ratio, fit)
                (is_alert,), _ = votes_and_scores([tree], self.data.X[held_out], Threads())
                found.append(float(cost[is_alert != is_positive].sum() / weight.sum()))
            return found

        return np.mean(self._each(judge, "depth and alpha"), axis=0)

    def votes(
        self, start: Start, ratios: np.ndarray, base_point: int, places: Sequence[Place] = ()
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the labels of the rows of all folds by paths over the given costs.

        Votes and scores as in `votes_and_scores`, and the votes of trees at places between the costs, bool (n_places,
        n).
        """

        def judge(inside: np.ndarray, held_out: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            part, matrix = subset(self.data, inside, self.base), self.data.X[held_out]
            fit = self.fitter(part)
            base = fit_start(self.base, start, float(ratios[base_point]), fit)
            path = PathFitter(fit, self.path_max_iter).same_path(base, ratios, base_point)
            between = np.zeros((len(places), len(held_out)), bool)
            if places:
                trees = ThresholdMoves.from_trees(path, part, Threads())
                for i, place in enumerate(places):
                    between[i] = trees.votes(place, matrix)
            return *votes_and_scores(path, matrix, Threads()), between

        votes, scores, between = zip(*self._each(judge, "curves out of fold"), strict=True)
        return np.concatenate(votes, axis=1), np.concatenate(scores), np.concatenate(between, axis=1)

    def _each(self, judge: Callable, label: str) -> list:
        return list(progress(self.threads.map(judge, *zip(*self.folds, strict=True)), len(self), label, self.verbose))


@dataclass(eq=False, repr=False)
class CostOptimalCurve(CurveRanker):
    """A tree for every trade-off of false alarms and missed positives.

    A ROC curve moves a threshold over one model. Here every point is its own tree, optimised for its own cost of a
    false positive: a base tree at the cost that weights both classes equally, then two paths of costs multiplied and
    divided by `cost_factor`, with warm starts from the neighbour, until no training case is a false positive at one end
    and none is missed at the other (section 4 and figure 7 of the paper). `select` finds a point for a budget, a limit
    or a cost, `at` returns its tree as a ranker, and `diff` shows which rules change between two points.

    Beyond the paper, a tree that another one beats at its own cost is refitted from that one. And if two neighbours are
    far apart, further trees fill the gap. No cost leads to them; they come from moving one threshold of a neighbour,
    and among such trees the one with the fewest missed positives for a given number of false positives is taken.

    As a ranker the curve orders cases by the number of costs at which they are flagged, and ties by the mean score of
    the trees of all costs: a case that is flagged even if false alarms are expensive comes first.

    Parameters
    ----------
    base : TAOTree or None, default None
        Trees of the curve; None is `TAOTree()`. `TAOTree(split="axis")` gives plain thresholds. Its costs and its
        budget are ignored; pos_label, categorical_features and keep_columns are parameters of the curve.
    cost_factor : float, default 1.5
        Factor between neighbouring costs, above 1; smaller ones give more points.
    max_point_gap : float or None, default 0.02
        Largest gap between two neighbours, as a share of the negatives flagged or of the positives missed in training,
        before trees are put between them; None: only trees of costs, as in the paper.
    path_max_iter : int, default 1
        Most passes over each tree of the two paths, like `max_iter` for the base tree. More passes lower the training
        cost a little, and take longer.
    depths : list of int or None, default (1, 2, 3, 4)
        Values of `max_depth` to choose from by cross-validation of the base tree; None: that of the base.
    alphas : list of float or None, default (0.3, 1, 3, 10)
        Values of `alpha`, likewise.
    cv : int, splitter or None, default 5
        Folds for that choice and for the figures that `select` uses; an int means stratified folds. 0: figures of the
        training data only, and that choice uses 5 folds.
    categorical_features, keep_columns
        As in `MetaAP`.
    budget : int, float or None
        Cases (int) or share of cases (float) that `predict` flags, by the ranking; None: it returns the label of the
        base point.
    pos_label, n_jobs
        As in `MetaAP`.
    random_state : int, RandomState or None
        Seed of the folds and of random starts of the base tree, fixed for None.
    verbose : int, default 0
        1 shows progress on standard error.

    Attributes
    ----------
    path_ : list of CurvePoint
        By ascending cost of a false positive, so from many alerts to few; `is_between` marks trees between two costs.
    base_point_ : int
        Position of the base tree in `path_`.
    points_, held_out_points_ : OperatingPoints
        Mistakes on the training data; and on the validation data or out of fold, None without either.
    held_out_by_ : {"validation data", "cross-validation", "training data"}
        The figures that `select` uses.
    selected_ : Selection or None
        The choice stored by `with_choice`, else None.
    oof_decision_function_ : float64 array of shape (n,) or None
        Score of each training row by the curve fitted on the other folds, which has as many costs, so that its
        scores are on the scale of `decision_function`; NaN for rows in no fold. None with cv=0, with
        validation data, and after loading a file.
    oof_fold_ : int64 array of shape (n,) or None
        Fold in which each row was held out, the last one if there are several; -1 for rows in no fold.
    max_depth_, alpha_ : int and float
        The values chosen for the trees.
    grid_ : dict of list
        Depths, penalties and held-out costs per case behind the choice, in units of a false negative.

    References
    ----------
    .. [1] Gabidolla, Zharmagambetov, Carreira-Perpiñán. Beyond the ROC curve: classification trees using cost-optimal
       curves, with application to imbalanced datasets. ICML 2024.

    Examples
    --------
    >>> from toprank.datasets import make_audit
    >>> from toprank.rankers.curve.cost_curve import CostOptimalCurve
    >>> data = make_audit(1000, random_state=0)
    >>> curve = CostOptimalCurve(depths=[2], alphas=[3], cv=2).fit(data.X, data.y)
    >>> curve.path_[0].false_negatives, curve.path_[-1].false_positives
    (0.0, 0.0)
    >>> curve.select(max_fpr=0.1).false_positive_rate.value <= 0.1
    True
    >>> tree = curve.at(max_fpr=0.1)
    >>> type(tree).__name__, bool(tree.predict(data.X).sum() == tree.n_fp_ + data.y.sum() - tree.n_fn_)
    ('TAOTree', True)
    """

    _parameter_constraints = {
        **RANKER_CONSTRAINTS,
        "base": [TAOTree, None],
        "cost_factor": [Interval(Real, 1, None, closed="neither")],
        "max_point_gap": [Interval(Real, 0, None, closed="neither"), None],
        "path_max_iter": [Interval(Integral, 1, None, closed="left")],
        "depths": ["array-like", None],
        "alphas": ["array-like", None],
        **FOLD_CONSTRAINTS,
        "verbose": ["verbose"],
    }

    base: TAOTree | None = None
    _: KW_ONLY
    cost_factor: float = 1.5
    max_point_gap: float | None = 0.02
    path_max_iter: int = 1
    depths: Sequence[int] | None = (1, 2, 3, 4)
    alphas: Sequence[float] | None = (0.3, 1, 3, 10)
    cv: Any = 5
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
        base = self._plain_base()
        made = held_out_folds(data, pruning_folds(self.cv), self.random_state, len(data.X))
        parts = [(fold.inside, fold.held_out) for fold in made]
        folds = CurveFolds(data, parts, base, lambda part: self._fitter(part, Threads()), self.path_max_iter, threads,
                           bool(self.verbose))  # fmt: skip
        ratio = self.n_positives_ / (self.n_cases_ - self.n_positives_)
        start = self._choose_start(folds, ratio)
        self.max_depth_, self.alpha_ = start.max_depth, start.alpha
        first = fit_start(base, start, ratio, self._fitter(data, threads))
        fitter = PathFitter(self._fitter(data, threads), self.path_max_iter)
        ratios, trees, base_point = fitter.both_ways(first, ratio, self.cost_factor, threads)
        path = DensePath.from_trees(trees, ratios, data, self.max_point_gap, threads)
        self.base_point_ = int(np.flatnonzero(~path.is_between)[base_point])
        seen = Labels(data.is_positive, data.weight, *_labels_and_scores(path.trees, path.is_between, data.X, threads))
        self.oof_decision_function_ = self.oof_fold_ = None
        if validation is None:
            unseen, source = self._out_of_fold(folds, start, path, base_point), OF_FOLDS
            if unseen is not None:
                self.oof_decision_function_, self.oof_fold_ = folds.by_row(unseen.score)
        else:
            matrix, is_positive = validation
            labels = _labels_and_scores(path.trees, path.is_between, matrix, threads)
            unseen, source = Labels(is_positive, None, *labels), OF_VALIDATION
        self._judge(path.ratios, path.trees, seen, unseen, source, path.moved)
        return self._unseen(unseen, [len(held_out) for _, held_out in parts] if validation is None else [])

    def _fitter(self, data: BinnedCases, threads: Threads) -> FitTree:
        return lambda tree: tree._fit_prepared(data, self, threads)

    def _choose_start(self, folds: CurveFolds, ratio: float) -> Start:
        """Return depth and penalty of the lowest out-of-fold cost (section H.1.2); ties go to the smallest model."""
        tried = starts_to_try(self._base, self.depths, self.alphas)
        self.grid_: dict[str, list[float]] = {}
        if len(tried) == 1:
            return tried[0]
        if not len(folds):
            raise InputError(
                f"CostOptimalCurve needs folds to choose among {len(tried)} pairs of depth and alpha, but the data "
                "have too few cases of a class for them. "
                "Hint: give one depth and one alpha, as depths=[3], alphas=[1], or None for those of the base."
            )
        costs = folds.costs(tried, ratio)
        self.grid_ = {"max_depth": [s.max_depth for s in tried], "alpha": [s.alpha for s in tried],
                      "cost": costs.tolist()}  # fmt: skip
        return tried[int(np.argmin(costs))]

    def _out_of_fold(self, folds: CurveFolds, start: Start, path: DensePath, base_point: int) -> Labels | None:
        """Return the labels of each fold's cases by curves fitted on the other folds; None without folds or with cv=0.

        A tree with a single leaf gives every case its label, whatever the trees of the folds do.
        """
        if not len(folds) or not has_folds(self.cv):
            return None
        at_costs = ~path.is_between
        votes, score, between = folds.votes(start, path.ratios[at_costs], base_point, path.places)
        for i, tree in enumerate(path.at_costs):
            if tree.n_leaves_ == 1:
                votes[i] = tree._label[0] == 1
        is_flagged = np.empty((len(path.trees), votes.shape[1]), bool)
        is_flagged[at_costs], is_flagged[path.is_between] = votes, between
        weight = None if folds.data.weight is None else folds.data.weight[folds.rows]
        return Labels(folds.data.is_positive[folds.rows], weight, is_flagged, order_of(votes, score))

    # --- scoring ------------------------------------------------------------------------------------------------

    @property
    def trees_(self) -> list[Tree]:  # type: ignore[override]
        """The trees of all costs, which order cases; those between two costs are only in `path_`."""
        return [model.tree_ for model in self._at_costs]

    @property
    def _at_costs(self) -> list[TAOTree]:
        return [point.tree for point in self.path_ if not point.is_between]

    @property
    def _path_counts(self) -> list[PathCounts]:  # type: ignore[override]
        return [model.path_counts_ for model in self._at_costs]

    def _labels_and_scores(self, matrix: np.ndarray, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
        is_between = np.array([point.is_between for point in self.path_])
        return _labels_and_scores([point.tree for point in self.path_], is_between, matrix, threads)

    @property
    def _counts_own_alerts(self) -> bool:
        return self.held_out_by_ == OF_FOLDS  # trees of folds may flag other cases than the tree itself

    def _labels_at(self, position: int, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        return votes_of(self.path_[position].tree, matrix, threads)

    def _score_rows(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        return order_of(*votes_and_scores(self._at_costs, matrix, threads))

    # --- choosing -----------------------------------------------------------------------------------------------

    def _ranker_of(self, selection: Selection, k: int | float | None) -> TAOTree:
        tree = copy(selection.tree)
        return tree if selection.cut is None or k is None else _with_budget(tree, k)

    # --- reading ------------------------------------------------------------------------------------------------

    def diff(self, before: int | Selection, after: int | Selection) -> Any:
        """Return which rules for positives are added, dropped, changed or kept between two points; a frame as in fit.

        The points are positions in `path_`, or results of `select`.
        """
        one, other = self._point(before), self._point(after)
        return make_frame(changes_table(leaf_rule_changes(one.tree, other.tree)), self._backend)

    def _point(self, which: int | Selection | None) -> CurvePoint:
        """Return a point by its position or selection; None means the selected one, else the base."""
        check_is_fitted(self)
        if which is None:
            return self.path_[self.base_point_] if self.selected_ is None else self.selected_.point
        if self._has_selected(which):
            return which.point
        is_bool, n = isinstance(which, bool), len(self.path_)
        if is_bool or not isinstance(which, int | np.integer) or not -n <= which < n:
            raise InputError(
                f"CostOptimalCurve has points 0 to {n - 1}, got {which!r}. "
                "Hint: frame() lists them; select() of the same curve finds one."
            )
        return self.path_[which]

    def rules(self, point: int | Selection | None = None, *, exact: bool = False) -> Any:
        """Return the rules of the chosen tree, else of the base tree, best first, as `TAOTree.rules`."""
        return self._point(point).tree.rules(exact=exact)

    def rule_list(self, point: int | Selection | None = None, *, exact: bool = False) -> list[Rule]:
        """Return the rules of the chosen tree, else of the base tree, as data, best first."""
        return self._point(point).tree.rule_list(exact=exact)

    def to_text(self, point: int | Selection | None = None, *, exact: bool = False) -> str:
        """Return the chosen tree, else the base tree, as text, as `TAOTree.to_text`."""
        chosen = self._point(point)
        tree, label = chosen.tree.tree_, chosen.tree._label
        ranks = sorted({int(place) + 1 for place in tree.leaf[label == 1]})
        which = f"leaves {', '.join(map(str, ranks))}" if len(ranks) > 1 else f"leaf {ranks[0]}" if ranks else "no leaf"
        what = f"tree at a cost ratio of {chosen.cost_ratio:.3g}" if chosen.moved is None else str(chosen.moved)
        title = f"{what}, which flags the cases of {which}:"
        if point is None:
            title = f"{self.summary()}\n{title}"
        return to_text(tree, self.columns_, title=title, exact=exact)

    def _figures(self) -> dict[str, Any]:
        shown = self._point(None).tree
        return super()._figures() | {
            "n_trees": len(self.path_),
            "n_conditions": shown.n_conditions_,
            "max_depth": self.max_depth_,
            "alpha": self.alpha_,
        }

    def _plain_parts(self) -> dict[str, Any]:
        """Return the trees of all costs and the points of the path.

        A point has its cost ratio; if it lies between two costs, how it comes from another point; its tree, and the
        positive nodes of the tree. `selected` is the position of the chosen point, None without a choice.
        """
        points = [
            {
                "cost_ratio": point.cost_ratio,
                "moved": None if point.moved is None else point.moved._asdict(),
                "tree": point.tree.tree_.to_dict(),
                "positive_nodes": np.flatnonzero(point.tree._label == 1).tolist(),
            }
            for point in self.path_
        ]
        chosen = None if self.selected_ is None else self.selected_.position
        return super()._plain_parts() | {"points": points, "selected": chosen}

    @property
    def n_leaves_(self) -> int:
        """Number of leaves of the chosen tree, else of the base tree."""
        return self._point(None).tree.n_leaves_

    def _size_in_words(self) -> str:
        which = "base" if self.selected_ is None else "selected"
        return f"{plural(len(self.path_), 'tree')}, the {which} one with {self._point(None).tree._size_in_words()}"

    # --- files --------------------------------------------------------------------------------------------------

    def _to_arrays(self) -> dict[str, np.ndarray]:
        arrays = Ranker._to_arrays(self) | self._judged_to_arrays()
        arrays["curve"] = np.array([self.max_depth_, self.alpha_, len(self.path_)], np.float64)
        arrays |= {f"grid_{name}": np.array(values, np.float64) for name, values in self.grid_.items()}
        for i, point in enumerate(self.path_):
            arrays |= with_prefix(point.tree._to_arrays(), f"tree{i}_")
            arrays[f"cutoff{i}"] = np.array(astuple(point.tree.cutoff_), np.float64)
        return arrays

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        Ranker._from_arrays(self, arrays)
        depth, self.alpha_, n_points = arrays["curve"].tolist()
        parts = numbered_parts(arrays, "tree", int(n_points))
        self.max_depth_ = int(depth)
        self.grid_ = {name: values.tolist() for name, values in without_prefix(arrays, "grid_").items()}
        if self.grid_:
            self.grid_["max_depth"] = [int(each) for each in self.grid_["max_depth"]]

        def tree_at(i: int, points: OperatingPoints) -> TAOTree:
            settings = {"max_depth": self.max_depth_, "alpha": self.alpha_, "fp_cost": float(points.cost_ratio[i])}
            tree = clone(self._base).set_params(fn_cost=1.0, budget=None, **settings)
            for name in (*TABLE_FACTS, "n_cases_", "n_positives_", "data_hash_"):
                if hasattr(self, name):
                    setattr(tree, name, copy(getattr(self, name)))
            tree.cutoff_ = Cutoff(*arrays[f"cutoff{i}"].tolist())
            check_cutoff(tree.cutoff_)
            tree._from_arrays(parts[i])
            return tree

        self._judged_from_arrays(arrays, int(n_points), tree_at)


def _with_budget(tree: TAOTree, k: int | float) -> TAOTree:
    """Return the fitted tree with its own budget; the cutoff comes from the training scores kept for its rates."""
    tree.set_params(budget=k.item() if isinstance(k, np.generic) else k)
    rates, allowed = tree.rates_, cases_of_budget(tree.budget, tree.n_cases_, tree.n_positives_)
    above = rates.above * (tree.n_cases_ / rates.n_cases)
    at = min(int(np.count_nonzero(above > allowed * (1 + ROUNDING))), len(above) - 1)
    weight = above[at:] - np.append(above[at + 1 :], 0.0)
    rate = float(np.average(rates.rate[at:], weights=weight))
    tree.cutoff_, tree.budget_ = Cutoff(allowed, float(above[at]), float(rates.score[at]), rate), tree.budget
    return tree


def _labels_and_scores(
    trees: Sequence[TAOTree], is_between: np.ndarray, matrix: np.ndarray, threads: Threads
) -> tuple[np.ndarray, np.ndarray]:
    """Return the label of each row by each tree, and the score of each row, without trees between two costs."""
    is_flagged = np.empty((len(trees), len(matrix)), bool)
    for i in np.flatnonzero(is_between).tolist():
        is_flagged[i] = votes_of(trees[i], matrix, threads)
    votes, score = votes_and_scores([trees[i] for i in np.flatnonzero(~is_between).tolist()], matrix, threads)
    is_flagged[~is_between] = votes
    return is_flagged, order_of(votes, score)
