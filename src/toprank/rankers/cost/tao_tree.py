"""`TAOTree`: one tree, all of whose nodes are optimised for what false alarms and missed cases cost."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank._compat import HasMethods, Interval, StrOptions
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.errors import InputError
from toprank.rankers.cost.labelled_tree import BALANCED, LABELLED_CONSTRAINTS, LabelledTree
from toprank.rankers.growth import CV, category_search
from toprank.tree.categories import CategorySearch
from toprank.tree.structure import Tree
from toprank.tree.tao.alternating_tree import AlternatingTree, pruned, to_tree
from toprank.tree.tao.alternation import Alternation
from toprank.tree.tao.moves import with_threshold
from toprank.tree.tao.problem import CostProblem, DistinctRows
from toprank.tree.tao.starts import random_tree, tree_of
from toprank.tree.weights import integer_weights

DEEPEST = 20
"""Conditions on a path at most, whatever the start."""

DEEPEST_RANDOM = 12
"""The same for random starts: these are complete trees, with 2 ** max_depth leaves."""


class TAOTree(LabelledTree):
    """A small tree of weighted sums, optimised as a whole for what false alarms and missed cases cost.

    Greedy trees choose a condition once, by an impurity. Here all conditions and labels of a tree of fixed shape are
    improved in turn, the others held fixed, so that fp_cost * false positives + fn_cost * false negatives + alpha *
    (L1 norm of all weights), eq. (3) of the paper, falls with every change (tree alternating optimisation). Branches
    that no case takes and conditions that change no label disappear at the end.

    Weighted sums are of numbers and of categories, one-hot: a term counts 1 where a case has its category, else 0. A
    condition on one column, of numbers or of categories, takes their place wherever that makes the objective lower. In
    a sum a missing number counts as the mean of its column, unless it costs less to send all cases that lack a number
    of it to one side; a missing or unknown category is none of the categories. The 32 most frequent categories of a
    column may stand in sums, those of 0.2 % of the cases and more, unless noise could explain all of them; of two
    categories, the rarer one alone. Numbers
    are standardised for the fit and for the norm, categories stay 0 and 1, and each term takes n numbers in memory;
    weights of `tree_` are in original units. A condition on one column has a norm of 1.

    A node is decided by its care points, the cases for which it matters where they go. The direction of a sum is fitted
    on at most 100,000 of them, drawn at random; its threshold is the best one on all.

    Parameters
    ----------
    split : {"oblique", "axis"}, default "oblique"
        Weighted sums of columns, or conditions on one column only.
    max_depth : int, default 4
        Conditions on a path at most, up to 20; up to 12 where a start is random.
    alpha : float, default 1.0
        What a weight of 1 on a standardised column, or on a category, costs: larger values give fewer columns and fewer
        conditions.
    fp_cost : float or "balanced", default "balanced"
        Cost of a false positive, lambda of the paper; balanced: such that all negatives together cost what all
        positives do, its base cost.
    fn_cost : float, default 1.0
        Cost of a false negative.
    max_iter : int, default 20
        Passes over the tree at most; it ends earlier where nothing changes.
    init : {"cart", "random"}, fitted tree or None, default "cart"
        Where to begin. cart, or None: a greedy tree (Gini index, cases weighted by their costs). random: random
        conditions in a complete tree, as in the paper. A fitted `TAOTree` or `RankingTree`, or its `tree_`: that one,
        whose shape then counts instead of max_depth; clones keep it.
    n_init : int, default 1
        Starts, of which the one with the lowest objective is kept; all but the first are random.
    leaf_score : {"margin", "constant"}, default "margin"
        What orders the cases inside a leaf: the distance to the nearest threshold on the path, or nothing.
    min_samples_leaf : int, default 5
        Least weight of a leaf of the greedy tree of init="cart", in cases of average cost.
    smoothing, smoothing_strength, splitter, max_bins
        As in `MetaAP`; conditions on one column are exact with splitter="exact", and on bins otherwise.
    categorical_features, keep_columns, cat_smooth, min_data_per_group, max_cat_threshold, pos_label, n_jobs
        As in `MetaAP`.
    budget : int, float or None
        Cases (int) or share of cases (float) that `predict` lets through; None: it gives the label that costs least.
    cv : int, splitter or iterable of splits, default 5
        Folds for the hit rates of new cases; 0 = none, rates are then those of training.
    random_state : int, RandomState or None
        Random starts and folds, the same each time for None.

    Attributes
    ----------
    tree_ : Tree
    objective_ : float
        Eq. (3) for the finished tree on the training data.
    objective_path_ : float64 array
        The objective at the start, after every accepted change, and after pruning; it never rises.
    n_iter_ : int
        Passes made.
    n_fp_, n_fn_ : float
        Training cases that their leaves' labels call positive and negative by mistake.
    fp_cost_ : float
        The cost of a false positive that was used.

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

    _parameter_constraints: dict[str, list[Any]] = {
        **LABELLED_CONSTRAINTS,
        "split": [StrOptions({"oblique", "axis"})],
        "max_depth": [Interval(Integral, 1, DEEPEST, closed="both")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "init": [StrOptions({"cart", "random"}), HasMethods(["decision_function"]), None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "cv": CV,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        split: str = "oblique",
        max_depth: int = 4,
        alpha: float = 1.0,
        fp_cost: float | str = BALANCED,
        fn_cost: float = 1.0,
        max_iter: int = 20,
        init: Any = "cart",
        n_init: int = 1,
        leaf_score: str = "margin",
        min_samples_leaf: int = 5,
        smoothing: str | None = "hierarchical",
        smoothing_strength: float = 10.0,
        splitter: str = "hist",
        max_bins: int = 255,
        categorical_features: Any = None,
        cat_smooth: float | None = 10.0,
        min_data_per_group: int = 10,
        max_cat_threshold: int | None = 3,
        keep_columns: Any = None,
        budget: int | float | None = None,
        pos_label: Any = None,
        n_jobs: int | None = None,
        cv: Any = 5,
        random_state: Any = None,
    ):
        self.split = split
        self.max_depth = max_depth
        self.alpha = alpha
        self.fp_cost = fp_cost
        self.fn_cost = fn_cost
        self.max_iter = max_iter
        self.init = init
        self.n_init = n_init
        self.leaf_score = leaf_score
        self.min_samples_leaf = min_samples_leaf
        self.smoothing = smoothing
        self.smoothing_strength = smoothing_strength
        self.splitter = splitter
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.cat_smooth = cat_smooth
        self.min_data_per_group = min_data_per_group
        self.max_cat_threshold = max_cat_threshold
        self.keep_columns = keep_columns
        self.budget = budget
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.cv = cv
        self.random_state = random_state

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy; a fitted tree to start from stays fitted."""
        copies = {name: clone(value, safe=False) for name, value in self.get_params(deep=False).items()
                  if name != "init"}  # fmt: skip
        return type(self)(init=self.init, **copies)

    # --- optimising ---------------------------------------------------------------------------------------------

    def _fit_model(self, data: BinnedCases, threads: Threads) -> None:
        self._check_random_depth()
        costs = self._set_costs()
        problem = self._problem(costs, data, threads)
        best: Alternation | None = None
        for start in self._starts(problem, data, costs, threads):
            found = Alternation(problem, start)
            n_iter = found.run(self.max_iter)
            if best is None or found.objective_path[-1] < best.objective_path[-1]:
                best, self.n_iter_ = found, n_iter
        assert best is not None
        self._keep(best.tree, best.objective_path, problem, data)

    def _keep(
        self, tree: AlternatingTree, objective_path: list[float], problem: CostProblem, data: BinnedCases
    ) -> None:
        """Take a tree as the result; `objective_path` holds the objectives on the way to it."""
        # Branches that no case takes are kept here: another cost may need them.
        self._whole: AlternatingTree | None = tree
        small = pruned(tree, problem)
        self._finish(to_tree(small, problem), small.label, data)
        self.objective_ = small.objective(problem)
        self.objective_path_ = np.array([*objective_path, self.objective_])

    def _with_threshold(self, node: int, threshold: float, fp_cost: float, data: BinnedCases) -> Self:
        """The fitted tree with another threshold at one node of `tree_`, and the labels that its leaves have.

        Its leaves need not have the labels that cost least; `fp_cost` is what it is said to be for.
        """
        other = copy(self).set_params(fp_cost=fp_cost)
        problem = other._problem(other._set_costs(), data, Threads())
        tree = with_threshold(self._alternating(problem), node, threshold)
        other.n_iter_ = 0
        other._keep(tree, [], problem, data)
        other._set_cutoff(data, Threads(), None)
        return other

    def _alternating(self, problem: CostProblem) -> AlternatingTree:
        """`tree_` with its labels, node by node."""
        tree = tree_of(self.tree_, problem)
        tree.label = np.where(self.tree_.is_leaf, self._label, 0).astype(np.int64)
        return tree

    def _problem(self, costs: np.ndarray, data: BinnedCases, threads: Threads) -> CostProblem:
        categories = category_search(self)
        rows, is_oblique = distinct_rows(data, categories), self.split == "oblique"
        return CostProblem.of(rows, costs, self.alpha, is_oblique, threads, categories)

    def _check_random_depth(self) -> None:
        is_random = self.n_init > 1 or (isinstance(self.init, str) and self.init == "random")
        if is_random and self.max_depth > DEEPEST_RANDOM:
            raise InputError(
                f"The 'max_depth' parameter of {type(self).__name__} must be at most {DEEPEST_RANDOM} where a start is "
                f"random, which is a complete tree. Got {self.max_depth} instead, so 2 ** {self.max_depth} leaves. "
                "Hint: init='cart' with n_init=1 has no random start."
            )

    def _starts(
        self, problem: CostProblem, data: BinnedCases, costs: np.ndarray, threads: Threads
    ) -> Iterator[AlternatingTree]:
        """Trees to begin with."""
        random = np.random.default_rng(
            check_random_state(0 if self.random_state is None else self.random_state).randint(2**31)
        )
        n_random = self.n_init
        if not (isinstance(self.init, str) and self.init == "random"):
            n_random -= 1
            if self.init is None or isinstance(self.init, str):
                yield tree_of(self._first_tree(data, costs, threads), problem)
            else:
                yield self._given_tree(problem)
        for _ in range(n_random):
            yield random_tree(problem, self.max_depth, random)

    def _first_tree(self, data: BinnedCases, costs: np.ndarray, threads: Threads) -> Tree:
        """The greedy tree of init="cart"."""
        weights = integer_weights(data.is_positive, data.weight)
        costly = self._weigh_by_cost(data, weights, costs)
        average = costly.sum_of_total / (weights.sum_of_total * weights.unit)
        return self._greedy_tree(data, costly, self.max_depth, self.min_samples_leaf * average, threads)

    def _given_tree(self, problem: CostProblem) -> AlternatingTree:
        """The tree of another model, after a look at its columns."""
        tree = self.init
        if not isinstance(tree, Tree):
            check_is_fitted(tree, msg="The init of a TAOTree must be fitted, but this %(name)s is not. Hint: fit it.")
            theirs = [column.categories for column in getattr(tree, "columns_", [])]
            if theirs != [column.categories for column in self.columns_]:
                raise InputError(
                    f"The init of a TAOTree must know the {len(self.columns_)} columns of X and their categories, but "
                    f"this {type(tree).__name__} knows others. Hint: fit both on the same columns."
                )
            whole = getattr(tree, "_whole", None)
            if whole is not None:
                whole = whole.copy()
                # Fits belong to the columns as they were standardised; a copy that learns from a fold has no hash.
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
            raise InputError("The model's objectives are no numbers.")
        self._whole = None  # files hold the finished tree alone


def distinct_rows(data: BinnedCases, categories: CategorySearch) -> DistinctRows:
    """Distinct rows of the training data; found once for all costs."""
    return data.once(("distinct rows", categories), lambda: DistinctRows.of(
        data.X, data.is_positive, integer_weights(data.is_positive, data.weight), data.is_categorical, data.codes,
        categories,
    ))  # fmt: skip
