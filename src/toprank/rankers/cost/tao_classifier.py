"""`TAOClassifier`: a tree for two or more classes, optimised as a whole for given costs of mistakes."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from toprank._compat import HasMethods, StrOptions
from toprank._core.dtypes import CATEGORY, NUMERIC
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.binned_cases import BinnedCases
from toprank.errors import InputError
from toprank.rankers.cost.class_tree import ClassTree
from toprank.rankers.cost.tao_tree import ALTERNATING_CONSTRAINTS, Alternating
from toprank.rankers.growth import GROWTH_CONSTRAINTS
from toprank.rankers.validation import check_class_labels
from toprank.tree.bin_mapper import short_between
from toprank.tree.structure import Tree
from toprank.tree.tao.alternating_tree import AlternatingTree, pruned, to_tree, tree_of
from toprank.tree.tao.alternation import Alternation
from toprank.tree.tao.problem import CostProblem, DistinctRows
from toprank.tree.tao.splits import Split
from toprank.tree.weights import integer_weights
from toprank.words.numbers import number_text


@dataclass(kw_only=True, eq=False, repr=False)
class TAOClassifier(Alternating, ClassTree):
    """A small tree for two or more classes, optimised as a whole for given costs of mistakes.

    Tree alternating optimisation, as in `TAOTree`, for labels instead of a ranking: section 4.1 of the paper. Numbers,
    categories and missing values enter weighted sums in the same way.

    Parameters
    ----------
    split, max_depth, alpha
        As in `TAOTree`.
    costs : "balanced", array of shape (K,) or (K, K), or None, default None
        Cost of a mistake on a case of each class, in the order of `classes_`, or of predicting class j (column) for a
        case of class i (row). None: 1 each. balanced: all classes cost the same in total.
    max_iter
        As in `TAOTree`.
    init : {"cart", "random"}, fitted tree or None, default "cart"
        Initial tree. cart, or None: a greedy tree (Gini index, cases weighted by their costs). random: random
        conditions in a complete tree. A fitted `TAOClassifier` or another single-tree model on the same columns, or its
        `tree_`: a warm start from it, whose shape replaces max_depth; clones keep it.
    n_init, min_samples_leaf, splitter, max_bins, categorical_features, keep_columns, n_jobs, random_state
        As in `TAOTree`.

    Attributes
    ----------
    tree_ : Tree
        Conditions and leaves. Leaves are numbered from left to right; this is not a ranking, and they share one rate.
        The last class counts as positive.
    label_ : int64 array of shape (n_nodes,)
        Class of each leaf of `tree_` as a position in `classes_`, -1 at inner nodes.
    class_counts_ : float64 array of shape (n_nodes, K)
        Training weight of each class that reached each node.
    costs_ : float64 array of shape (K, K)
    objective_, objective_path_, n_iter_
        As in `TAOTree`.

    References
    ----------
    .. [1] Gabidolla, Zharmagambetov, Carreira-Perpiñán. Beyond the ROC curve: classification trees using cost-optimal
       curves, with application to imbalanced datasets. ICML 2024. Section 4.1, appendix C.1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from toprank.rankers.cost.tao_classifier import TAOClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TAOClassifier(max_depth=2, costs="balanced").fit(X, y)
    >>> model.n_leaves_, bool(model.score(X, y) > 0.95)
    (3, True)
    """

    _parameter_constraints = {
        **{name: GROWTH_CONSTRAINTS[name]
           for name in ("min_samples_leaf", "splitter", "max_bins", "categorical_features", "keep_columns", "n_jobs")},
        **ALTERNATING_CONSTRAINTS,
        "costs": [StrOptions({"balanced"}), "array-like", None],
        "init": [StrOptions({"cart", "random"}), Tree, HasMethods(["fit", "apply"]), None],
    }  # fmt: skip

    split: str = "oblique"
    max_depth: int = 4
    alpha: float = 1.0
    costs: Any = None
    max_iter: int = 20
    init: Any = "cart"
    n_init: int = 1
    min_samples_leaf: int = 5
    splitter: str = "hist"
    max_bins: int = 255
    categorical_features: Any = None
    keep_columns: Any = None
    n_jobs: int | None = None
    random_state: Any = None

    # --- fitting ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to past cases.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            numpy, pandas, polars or pyarrow; categories and missing values as they are.
        y : array of shape (n,)
            Two or more classes.
        sample_weight : array of shape (n,), optional
            Non-negative weights. Weight 2 is the row twice, weight 0 leaves it out.

        Returns
        -------
        self
        """
        with self._fitting():
            self._check_random_depth()
            table = self._read(X, reset=True)
            rows, label, weight = self._read_labels(y, sample_weight, len(table))
            none, some = np.zeros(len(label), bool), None if len(rows) == len(table) else rows
            with Threads(resolve_n_jobs(self.n_jobs)) as threads:
                self._fit_model(self._learn_table(table, none, weight, threads, some), label, threads)
        return self

    def _read_labels(self, y: Any, sample_weight: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return the rows with weight, their classes as positions in `classes_`, and their weights."""
        labels, weight = check_class_labels(y, sample_weight, n_rows, f"{type(self).__name__}.fit")
        rows = np.flatnonzero(integer_weights(np.zeros(n_rows, bool), weight).total)
        self.classes_, label = np.unique(labels[rows], return_inverse=True)
        weight = None if weight is None else weight[rows]
        whole = integer_weights(np.zeros(len(rows), bool), weight)
        self.costs_ = self._cost_matrix(np.bincount(label, whole.total))
        return rows, label, weight

    def _fit_model(self, data: BinnedCases, label: np.ndarray, threads: Threads) -> None:
        """Optimise the tree, prune it, and number its leaves."""
        weights = integer_weights(data.is_positive, data.weight)
        rows = DistinctRows.from_rows(data.X, label, weights, data.is_categorical, data.codes)
        problem = CostProblem.from_costs(rows, self.costs_, self.alpha, self.split == "oblique", threads)
        best = self._optimised(problem, lambda: self._first_trees(problem))
        # Keep branches that no case takes: another cost may need them.
        self._whole = best.tree
        small = pruned(best.tree, problem)
        self.tree_ = number_leaves(to_tree(small, problem))
        self.label_ = np.where(self.tree_.is_leaf, small.label, -1)
        self.class_counts_ = rows.unit * np.array([
            np.bincount(rows.label[reached], rows.weight[reached], len(self.classes_))
            for reached in small.reduced_sets(problem)
        ])  # fmt: skip
        self.objective_ = small.objective(problem)
        self.objective_path_ = np.array([*best.objective_path, self.objective_])

    def _cost_matrix(self, class_weight: np.ndarray) -> np.ndarray:
        """Return the cost of predicting class j for a case of class i."""
        n = len(self.classes_)
        if self.costs is None:
            costs = np.ones(n)
        elif isinstance(self.costs, str):  # "balanced"
            costs = class_weight.sum() / (n * class_weight)
        else:
            costs = self._given_costs(n)
        return np.where(np.eye(n, dtype=bool), 0.0, costs[:, None] if costs.ndim == 1 else costs)

    def _given_costs(self, n: int) -> np.ndarray:
        """Return the user's costs for n classes: float64 (n,) or (n, n)."""
        costs: np.ndarray = np.zeros(())
        found = "rows of different lengths"
        try:
            given = np.asarray(self.costs)
        except ValueError:
            pass
        else:
            found = f"an array of shape {given.shape}"
            if given.dtype.kind in "biuf":
                costs = given.astype(np.float64)
            else:
                found = "values that are not numbers" if given.ndim else f"a {type(self.costs).__name__}"
        bad = costs[~(np.isfinite(costs) & (costs >= 0))]
        if costs.shape not in ((n,), (n, n)) or len(bad):
            raise InputError(
                f"costs must be {n} numbers, one per class, or a matrix of shape ({n}, {n}), none of them negative or "
                f"missing, got {number_text(bad[0]) if len(bad) else found}. "
                f"Hint: the classes are ordered as in classes_, here {reprlib.repr(self.classes_.tolist())}."
            )
        if costs.ndim == 2 and np.diag(costs).any():
            diagonal = reprlib.repr(np.diag(costs).tolist())
            raise InputError(
                f"costs must be 0 on the diagonal (correct predictions), got {diagonal}. "
                "Hint: row i, column j is the cost of predicting class j for a case of class i."
            )
        if n > 1 and not costs.any():
            raise InputError(
                "costs must hold a number above 0, but all of them are 0. "
                "Hint: None means a cost of 1 for every mistake."
            )
        return costs

    # --- where to begin -----------------------------------------------------------------------------------------

    def _first_trees(self, problem: CostProblem) -> list[AlternatingTree]:
        """Return the tree of `init`: a greedy one, or that of another model, with its columns checked.

        A given tree is also pruned if that costs less.
        """
        if self.init is None or isinstance(self.init, str):
            return [self._greedy_tree(problem)]
        whole, tree = None, self.init
        if not isinstance(tree, Tree):
            self._check_init()
            whole, tree = getattr(self.init, "_whole", None), self.init.tree_
        if tree.n_features != len(self.columns_):
            raise InputError(
                f"The init of a TAOClassifier must be a tree over the {len(self.columns_)} columns of X, got one over "
                f"{tree.n_features}. Hint: fit both on the same columns."
            )
        if whole is None:
            return [tree_of(tree, problem)]
        whole = whole.copy()
        whole.label = np.minimum(whole.label, problem.n_classes - 1)  # it may have more classes
        if self.init.data_hash_ != self.data_hash_:  # fits depend on how columns were standardised
            whole.fits = [None] * len(whole)
        begin = Alternation(problem, whole).objective_path[0]  # also labels its leaves
        small = pruned(whole, problem)
        return [whole] if begin <= small.objective(problem) else [whole, small]

    def _check_init(self) -> None:
        """Raise ValueError if `init` is not fitted, is not a single tree, or has other columns."""
        model, kind = self.init, type(self.init).__name__
        check_is_fitted(model, msg="The init of a TAOClassifier must be fitted, but this %(name)s is not. "
                                   "Hint: fit it.")  # fmt: skip
        if not isinstance(getattr(model, "tree_", None), Tree):
            raise InputError(
                f"The init of a TAOClassifier must be a model of one tree, but this {kind} is not. "
                "Hint: use a TAOClassifier, a TAOTree or a RankingTree."
            )
        names = [getattr(each, "feature_names_in_", None) for each in (model, self)]
        renamed = all(each is not None for each in names) and list(names[0]) != list(names[1])  # type: ignore[arg-type]
        if renamed or [c.categories for c in model.columns_] != [c.categories for c in self.columns_]:
            raise InputError(
                f"The init of a TAOClassifier must have the {len(self.columns_)} columns of X and their categories, "
                f"but this {kind} has others. Hint: fit both on the same columns."
            )

    def _greedy_tree(self, problem: CostProblem) -> AlternatingTree:
        """Grow scikit-learn's tree on codes instead of values, so that thresholds lie between values here too."""
        rows = problem.rows
        scaled = np.ldexp(self.costs_, -int(np.frexp(self.costs_.max())[1]))  # their scale does not matter here
        mean_cost = scaled.sum(axis=1) / (problem.n_classes - 1)
        weight = rows.weight * rows.unit * mean_cost[rows.label]
        codes = np.array(rows.codes, np.float64).T
        codes[codes == np.array(rows.n_codes)] = np.nan
        places: dict[int, np.ndarray] = {}
        for feature in np.flatnonzero(rows.is_categorical).tolist():
            known = ~np.isnan(codes[:, feature])
            places[feature] = category_places(
                rows.codes[feature][known], rows.label[known], weight[known], rows.n_codes[feature], problem.n_classes
            )
            codes[known, feature] = places[feature][rows.codes[feature][known]]
        share = min(self.min_samples_leaf / (rows.weight.sum() * rows.unit), 0.5)
        greedy = DecisionTreeClassifier(max_depth=self.max_depth, min_weight_fraction_leaf=share, random_state=0)
        grown = greedy.fit(codes, rows.label, sample_weight=weight).tree_
        splits: list[Split | None] = [None] * grown.node_count
        for node in np.flatnonzero(grown.children_left >= 0):
            feature, missing_left = int(grown.feature[node]), bool(grown.missing_go_to_left[node])
            if feature in places:
                categories = np.full(256, missing_left)
                categories[: len(places[feature])] = places[feature] <= grown.threshold[node]
                splits[node] = Split(CATEGORY, 1.0, feature, missing_left=missing_left, categories=categories)
                continue
            value, is_low = rows.X[:, feature], codes[:, feature] <= grown.threshold[node]
            is_high = codes[:, feature] > grown.threshold[node]
            cut = float(short_between(value[is_low].max(), value[is_high].min())) if is_high.any() else np.inf
            splits[node] = Split(NUMERIC, 1.0, feature, cut, missing_left)
        return AlternatingTree(grown.children_left, grown.children_right, splits)


def number_leaves(tree: Tree) -> Tree:
    """Return the tree with leaves numbered from left to right; without a ranking, all have the rate of the root."""
    leaf = np.where(tree.is_leaf, np.cumsum(tree.is_leaf) - 1, -1)
    n = int(tree.is_leaf.sum())
    total = tree.positive[0] + tree.negative[0]
    rate = min(tree.positive[0] / total, 1.0)
    return replace(
        tree, leaf=leaf, score=np.where(tree.is_leaf, (n - leaf) / n, np.nan), rate=np.where(tree.is_leaf, rate, np.nan)
    )


def category_places(
    codes: np.ndarray, label: np.ndarray, weight: np.ndarray, n_categories: int, n_classes: int
) -> np.ndarray:
    """Return the place of each category on a line, where a threshold separates categories with different class shares.

    The line is the first principal component of the shares (Coppersmith, Hong, Hosking, 1999); for two classes it is
    the share of one, which is the optimal order. Categories without weight get the overall shares.

    Examples
    --------
    >>> import numpy as np
    >>> category_places(np.array([0, 1, 2, 2]), np.array([1, 0, 1, 0]), np.ones(4), 3, 2)
    array([0., 2., 1.])
    """
    cell = codes.astype(np.int64) * n_classes + label
    mass = np.bincount(cell, weight, n_categories * n_classes).reshape(n_categories, n_classes)
    total = mass.sum(axis=1, keepdims=True)
    mean = mass.sum(axis=0) / max(mass.sum(), np.finfo(float).tiny)
    share = np.where(total > 0, mass / np.where(total > 0, total, 1.0) - mean, 0.0)
    direction = np.linalg.eigh((share * total).T @ share)[1][:, -1]
    direction = direction * np.sign(direction[np.argmax(np.abs(direction).round(9))])
    order = np.argsort(np.round(share @ direction, 12), kind="stable")
    place = np.empty(n_categories)
    place[order] = np.arange(n_categories)
    return place
