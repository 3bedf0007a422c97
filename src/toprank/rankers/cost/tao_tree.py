"""`TAOTree`: one tree, optimised as a whole for given costs of false alarms and missed positives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from toprank._compat import HasMethods, Interval, StrOptions
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.errors import InputError
from toprank.rankers.cost.labelled_tree import BALANCED, LABELLED_CONSTRAINTS, LabelledTree
from toprank.rankers.growth import CV, category_search
from toprank.rankers.seeds import seed_of
from toprank.tree.categories import CategorySearch
from toprank.tree.structure import Tree
from toprank.tree.tao.alternating_tree import AlternatingTree, pruned, random_tree, to_tree, tree_of
from toprank.tree.tao.alternation import Alternation
from toprank.tree.tao.moves import with_threshold
from toprank.tree.tao.problem import CostProblem, DistinctRows
from toprank.tree.weights import integer_weights

DEEPEST = 20
"""Most conditions on a path, for any start."""

DEEPEST_RANDOM = 12
"""The same for random starts, which are complete trees with 2 ** max_depth leaves."""


ALTERNATING_CONSTRAINTS: dict[str, list[Any]] = {
    "split": [StrOptions({"oblique", "axis"})],
    "max_depth": [Interval(Integral, 1, DEEPEST, closed="both")],
    "alpha": [Interval(Real, 0, None, closed="left")],
    "max_iter": [Interval(Integral, 0, None, closed="left")],
    "n_init": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state"],
}
"""scikit-learn's checks of the parameters of both estimators by alternating optimisation."""


class Alternating(BaseEstimator):
    """What both estimators by alternating optimisation share: starts, the best result, clones that keep `init`."""

    _start_params: tuple[str, ...] = ("init",)
    n_iter_: int

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy; a fitted `init` stays fitted."""
        copies = {name: clone(value, safe=False) for name, value in self.get_params(deep=False).items()
                  if name != "init"}  # fmt: skip
        return type(self)(init=self.init, **copies)

    def _check_random_depth(self) -> None:
        is_random = self.n_init > 1 or (isinstance(self.init, str) and self.init == "random")
        if is_random and self.max_depth > DEEPEST_RANDOM:
            raise InputError(
                f"The 'max_depth' parameter of {type(self).__name__} must be at most {DEEPEST_RANDOM} for random "
                f"starts, which are complete trees. Got {self.max_depth} instead, so 2 ** {self.max_depth} leaves. "
                "Hint: init='cart' with n_init=1 has no random start."
            )

    def _optimised(self, problem: CostProblem, first: Callable[[], Iterable[AlternatingTree]]) -> Alternation:
        """Return the best result over all starts, and set its number of passes; `first` gives the trees of `init`."""
        best: Alternation | None = None
        for start in self._starts(problem, first):
            found = Alternation(problem, start)
            n_iter = found.run(self.max_iter)
            if best is None or found.objective_path[-1] < best.objective_path[-1]:
                best, self.n_iter_ = found, n_iter
        assert best is not None
        return best

    def _starts(
        self, problem: CostProblem, first: Callable[[], Iterable[AlternatingTree]]
    ) -> Iterator[AlternatingTree]:
        """Return the initial trees."""
        if problem.n_classes == 1:
            yield AlternatingTree(np.array([-1]), np.array([-1]), [None])
            return
        random = np.random.default_rng(seed_of(self.random_state))
        n_random = self.n_init
        if not (isinstance(self.init, str) and self.init == "random"):
            n_random -= 1
            yield from first()
        for _ in range(n_random):
            yield random_tree(problem, self.max_depth, random)


@dataclass(kw_only=True, eq=False, repr=False)
class TAOTree(Alternating, LabelledTree):
    """A small tree of weighted sums, optimised as a whole for given costs of false alarms and missed positives.

    Greedy trees choose a condition once, by an impurity. Here all conditions and labels of a tree of fixed shape are
    improved in turn, with the others fixed, and every change lowers fp_cost * false positives + fn_cost * false
    negatives + alpha * (L1 norm of all weights), eq. (3) of the paper (tree alternating optimisation). Branches that no
    case takes and conditions that change no label are removed at the end.

    Weighted sums combine numbers and one-hot categories (1 if the case has the category, else 0). A condition on one
    column, numeric or categorical, replaces a sum if that lowers the objective. In a sum a missing number counts as the
    mean of its column, unless it costs less to send all cases that lack one of its numbers to one side; a missing or
    unknown category counts 0 everywhere. Sums use at most the 32 most frequent categories of a column, those with at
    least 0.2 % of the cases, unless noise could explain all of them; of two categories, only the rarer one. Numbers are
    standardised for the fit and for the norm, categories stay 0 and 1, and each term takes n numbers in memory; the
    weights of `tree_` are in original units. A condition on one column has a norm of 1.

    A node is fitted on its care points, the cases whose cost depends on which way they go. The direction of a sum is
    fitted on at most 100,000 of them, drawn at random; its threshold is the best one on all.

    Parameters
    ----------
    split : {"oblique", "axis"}, default "oblique"
        Weighted sums of columns, or conditions on one column only.
    max_depth : int, default 4
        Most conditions on a path, up to 20; up to 12 with random starts.
    alpha : float, default 1.0
        Cost of a weight of 1 on a standardised column or on a category; larger values give fewer columns and fewer
        conditions.
    fp_cost : float or "balanced", default "balanced"
        Cost of a false positive, lambda of the paper; balanced: all negatives together cost as much as all
        positives, the base cost of the paper.
    fn_cost : float, default 1.0
        Cost of a false negative.
    max_iter : int, default 20
        Most passes over the tree; it stops early if nothing changes.
    init : {"cart", "random"}, fitted tree or None, default "cart"
        Initial tree. cart, or None: a greedy tree (Gini index, cases weighted by their costs). random: random
        conditions in a complete tree, as in the paper. A fitted `TAOTree` or `RankingTree`, or its `tree_`: a warm
        start from it, whose shape replaces max_depth; clones keep it.
    n_init : int, default 1
        Number of starts; the result with the lowest objective is kept. All but the first are random.
    leaf_score : {"margin", "constant"}, default "margin"
        How rows are ordered inside a leaf: by the distance to the nearest threshold on the path, or not at all.
    min_samples_leaf : int, default 5
        Minimum weight of a leaf of the greedy tree of init="cart", in cases of average cost.
    smoothing, smoothing_strength, splitter, max_bins
        As in `MetaAP`; conditions on one column are exact with splitter="exact", and on bins otherwise.
    categorical_features, cat_smooth, min_data_per_group, max_cat_threshold, keep_columns
        As in `MetaAP`.
    budget : int, float or None
        Cases (int) or share of cases (float) that `predict` flags; None: it returns the label of lowest cost.
    pos_label, n_jobs
        As in `MetaAP`.
    cv : int, splitter or iterable of splits, default 5
        Folds for the hit rates of new cases; 0 = training rates only.
    random_state : int, RandomState or None
        Seed of random starts and folds, fixed for None.

    Attributes
    ----------
    tree_ : Tree
    objective_ : float
        Eq. (3) of the final tree on the training data.
    objective_path_ : float64 array
        The objective at the start, after every accepted change, and after pruning; it never rises.
    n_iter_ : int
        Passes made.
    n_fp_, n_fn_ : float
        False positives and false negatives among the training cases.
    fp_cost_ : float
        The cost of a false positive used.

    References
    ----------
    .. [1] Gabidolla, Zharmagambetov, Carreira-Perpiñán. Beyond the ROC curve: classification trees using cost-optimal
       curves, with application to imbalanced datasets. ICML 2024. Section 4, appendices C, D and H.

    Examples
    --------
    >>> from toprank.datasets import make_audit
    >>> from toprank.rankers.cost.tao_tree import TAOTree
    >>> data = make_audit(2000, random_state=0)
    >>> model = TAOTree(max_depth=2).fit(data.X, data.y)
    >>> model.n_leaves_ <= 4, bool((model.objective_path_[1:] <= model.objective_path_[:-1]).all())
    (True, True)
    """

    _parameter_constraints = {
        **LABELLED_CONSTRAINTS,
        **ALTERNATING_CONSTRAINTS,
        "init": [StrOptions({"cart", "random"}), HasMethods(["decision_function"]), None],
        "cv": CV,
    }

    split: str = "oblique"
    max_depth: int = 4
    alpha: float = 1.0
    fp_cost: float | str = BALANCED
    fn_cost: float = 1.0
    max_iter: int = 20
    init: Any = "cart"
    n_init: int = 1
    leaf_score: str = "margin"
    min_samples_leaf: int = 5
    smoothing: str | None = "hierarchical"
    smoothing_strength: float = 10.0
    splitter: str = "hist"
    max_bins: int = 255
    categorical_features: Any = None
    cat_smooth: float | None = 10.0
    min_data_per_group: int = 10
    max_cat_threshold: int | None = 3
    keep_columns: Any = None
    budget: int | float | None = None
    pos_label: Any = None
    n_jobs: int | None = None
    cv: Any = 5
    random_state: Any = None

    # --- optimising ---------------------------------------------------------------------------------------------

    def _fit_model(self, data: BinnedCases, threads: Threads) -> None:
        self._check_random_depth()
        costs = self._set_costs()
        problem = self._problem(costs, data, threads)
        best = self._optimised(problem, lambda: [self._first_tree(problem, data, costs, threads)])
        self._keep(best.tree, best.objective_path, problem, data)

    def _keep(
        self, tree: AlternatingTree, objective_path: list[float], problem: CostProblem, data: BinnedCases
    ) -> None:
        """Set a tree as the result; `objective_path` holds the objectives on the way to it."""
        # Keep branches that no case takes: another cost may need them.
        self._whole: AlternatingTree | None = tree
        small = pruned(tree, problem)
        self._finish(to_tree(small, problem), small.label, data)
        self.objective_ = small.objective(problem)
        self.objective_path_ = np.array([*objective_path, self.objective_])

    def _with_threshold(self, node: int, threshold: float, fp_cost: float, data: BinnedCases) -> Self:
        """Return the fitted tree with another threshold at one node of `tree_`; its leaves keep their labels.

        These labels need not be those of lowest cost; `fp_cost` is the cost to report for the tree.
        """
        other = copy(self).set_params(fp_cost=fp_cost)
        problem = other._problem(other._set_costs(), data, Threads())
        tree = with_threshold(self._alternating(problem), node, threshold)
        other.n_iter_ = 0
        other._keep(tree, [], problem, data)
        other._set_cutoff(data, Threads(), None)
        return other

    def _alternating(self, problem: CostProblem) -> AlternatingTree:
        """Return `tree_` with its labels per node."""
        tree = tree_of(self.tree_, problem)
        tree.label = np.where(self.tree_.is_leaf, self._label, 0).astype(np.int64)
        return tree

    def _problem(self, costs: np.ndarray, data: BinnedCases, threads: Threads) -> CostProblem:
        categories = category_search(self)
        rows, is_oblique = distinct_rows(data, categories), self.split == "oblique"
        return CostProblem.from_costs(rows, costs, self.alpha, is_oblique, threads, categories)

    def _first_tree(
        self, problem: CostProblem, data: BinnedCases, costs: np.ndarray, threads: Threads
    ) -> AlternatingTree:
        """Return the tree of `init`: a given one, or a greedy one."""
        if not (self.init is None or isinstance(self.init, str)):
            return self._given_tree(problem)
        weights = integer_weights(data.is_positive, data.weight)
        costly = self._weigh_by_cost(data, weights, costs)
        average = costly.sum_of_total / (weights.sum_of_total * weights.unit)
        greedy = self._greedy_tree(data, costly, self.max_depth, self.min_samples_leaf * average, threads)
        return tree_of(greedy, problem)

    def _given_tree(self, problem: CostProblem) -> AlternatingTree:
        """Return the tree of another model, with its columns checked."""
        tree = self.init
        if not isinstance(tree, Tree):
            check_is_fitted(tree, msg="The init of a TAOTree must be fitted, but this %(name)s is not. Hint: fit it.")
            theirs = [column.categories for column in getattr(tree, "columns_", [])]
            if theirs != [column.categories for column in self.columns_]:
                raise InputError(
                    f"The init of a TAOTree must have the {len(self.columns_)} columns of X and their categories, but "
                    f"this {type(tree).__name__} has others. Hint: fit both on the same columns."
                )
            whole = getattr(tree, "_whole", None)
            if whole is not None:
                whole = whole.copy()
                # Fits depend on how columns were standardised; a copy fitted on a fold has no hash.
                if tree.data_hash_ != getattr(self, "data_hash_", None):
                    whole.fits = [None] * len(whole)
                return whole
            tree = tree.tree_
        if tree.n_features != len(self.columns_):
            raise InputError(
                f"The init of a TAOTree must be a tree over the {len(self.columns_)} columns of X, got one over "
                f"{tree.n_features}. Hint: fit both on the same columns."
            )
        return tree_of(tree, problem)

    # --- files --------------------------------------------------------------------------------------------------

    def _to_arrays(self) -> dict[str, np.ndarray]:
        path = {"objective_path": self.objective_path_, "n_iter": np.array(self.n_iter_)}
        return super()._to_arrays() | path

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self.objective_path_, self.n_iter_ = arrays["objective_path"], int(arrays["n_iter"])
        if self.objective_path_.ndim != 1 or not np.isfinite(self.objective_path_).all():
            raise InputError("The model's objectives are not numbers.")
        self._whole = None  # files hold only the final tree


def distinct_rows(data: BinnedCases, categories: CategorySearch) -> DistinctRows:
    """Return the distinct rows of the training data, computed once for all costs."""
    return data.once(("distinct rows", categories), lambda: DistinctRows.from_rows(
        data.X, data.is_positive, integer_weights(data.is_positive, data.weight), data.is_categorical, data.codes,
        categories,
    ))  # fmt: skip
