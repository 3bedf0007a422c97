"""`TAOClassifier`: a tree for two or more classes, all of whose nodes are optimised for what mistakes cost."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from toprank._core.dtypes import NUMERIC
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.rankers.growth import GROWTH_CONSTRAINTS
from toprank.rankers.training import TrainingData
from toprank.tree.bin_mapper import between
from toprank.tree.columns import Column
from toprank.tree.tao import Alternation
from toprank.tree.tao_problem import CostProblem, DistinctRows
from toprank.tree.tao_splits import Split
from toprank.tree.tao_starts import random_tree
from toprank.tree.tao_tree import AlternatingTree, pruned, to_tree
from toprank.tree.weights import integer_weights


class TAOClassifier(ClassifierMixin, BaseEstimator):
    """A small tree for two or more classes, optimised as a whole for what mistakes cost.

    Tree alternating optimisation, as in `TAOTree`, for labels instead of a ranking: section 4.1 of the paper. Columns
    are numbers; missing values are allowed.

    Parameters
    ----------
    split, max_depth, alpha, n_iter, n_restarts, min_samples_leaf, splitter, max_bins, n_jobs, random_state
        As in `TAOTree`.
    costs : "balanced", array of shape (K,) or (K, K), or None, default None
        Cost of a mistake on a case of each class, in the order of `classes_`, or of calling a case of class i (row)
        class j (column). None: 1 each. balanced: such that all classes cost the same in total.
    init : {"cart", "random"}, default "cart"
        Where to begin: a greedy tree (Gini index, cases weighted by their costs), or random conditions in a complete
        tree.

    Attributes
    ----------
    tree_ : Tree
        Conditions and leaves; places in a ranking are not given.
    label_ : int64 array of shape (n_nodes,)
        Class of each leaf of `tree_` as a position in `classes_`, -1 inside.
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
    >>> from toprank.rankers.tao_classifier import TAOClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TAOClassifier(max_depth=2, costs="balanced").fit(X, y)
    >>> model.n_leaves_, bool(model.score(X, y) > 0.95)
    (3, True)
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **{name: GROWTH_CONSTRAINTS[name] for name in ("min_samples_leaf", "splitter", "max_bins", "n_jobs")},
        "split": [StrOptions({"oblique", "axis"})],
        "max_depth": [Interval(Integral, 1, 20, closed="both")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "costs": [StrOptions({"balanced"}), "array-like", None],
        "n_iter": [Interval(Integral, 0, None, closed="left")],
        "init": [StrOptions({"cart", "random"})],
        "n_restarts": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        split: str = "oblique",
        max_depth: int = 4,
        alpha: float = 1.0,
        costs: Any = None,
        n_iter: int = 20,
        init: str = "cart",
        n_restarts: int = 1,
        min_samples_leaf: int = 5,
        splitter: str = "hist",
        max_bins: int = 255,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.split = split
        self.max_depth = max_depth
        self.alpha = alpha
        self.costs = costs
        self.n_iter = n_iter
        self.init = init
        self.n_restarts = n_restarts
        self.min_samples_leaf = min_samples_leaf
        self.splitter = splitter
        self.max_bins = max_bins
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn labels from past cases.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Numbers, NaN = missing.
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
            Non-negative weights. Weight 2 is the row twice, weight 0 leaves it out.

        Returns
        -------
        self
        """
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        if weight is not None:
            X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
        self.classes_, label = np.unique(y, return_inverse=True)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            rows = self._distinct_rows(X, label, weight, threads)
            self.costs_ = self._cost_matrix(np.bincount(rows.label, rows.weight))
            problem = CostProblem.of(rows, self.costs_, self.alpha, self.split == "oblique")
            best: Alternation | None = None
            for start in self._starts(problem):
                found = Alternation(problem, start, threads)
                n_iter = found.run(self.n_iter)
                if best is None or found.objective_path[-1] < best.objective_path[-1]:
                    best, self.n_iter_ = found, n_iter
        assert best is not None
        small = pruned(best.tree, problem)
        self.tree_ = to_tree(small, problem)
        self.label_ = np.where(self.tree_.is_leaf, small.label, -1)
        self._class_weight = np.array([
            np.bincount(rows.label[reached], rows.weight[reached], len(self.classes_))
            for reached in small.reduced_sets(problem)
        ])  # fmt: skip
        self.objective_ = small.objective(problem)
        self.objective_path_ = np.array([*best.objective_path, self.objective_])
        return self

    def _distinct_rows(
        self, X: np.ndarray, label: np.ndarray, weight: np.ndarray | None, threads: Threads
    ) -> DistinctRows:
        columns = [Column(f"x{f}") for f in range(X.shape[1])]
        nobody = np.zeros(len(X), bool)
        data = TrainingData(X, nobody, weight, columns, splitter=self.splitter, max_bins=self.max_bins, threads=threads)
        return DistinctRows.of(X, label, integer_weights(nobody, weight), data.is_categorical, data.codes)

    def _cost_matrix(self, class_weight: np.ndarray) -> np.ndarray:
        """Cost of calling a case of class i class j."""
        n = len(self.classes_)
        if self.costs is None:
            costs = np.ones(n)
        elif isinstance(self.costs, str):  # "balanced"
            costs = class_weight.sum() / (n * class_weight)
        else:
            costs = np.asarray(self.costs, np.float64)
        if costs.shape not in ((n,), (n, n)) or not np.isfinite(costs).all() or (costs < 0).any():
            raise ValueError(
                f"costs must be {n} numbers, one a class, or a matrix of shape ({n}, {n}), none of them negative, got "
                f"{self.costs!r}. Hint: the order is that of classes_, here {self.classes_.tolist()}."
            )
        matrix = np.where(np.eye(n, dtype=bool), 0.0, costs[:, None] if costs.ndim == 1 else costs)
        if costs.ndim == 2 and np.diag(costs).any():
            raise ValueError(
                f"costs must be 0 on the diagonal, where nothing is mistaken, got {np.diag(costs).tolist()}. "
                "Hint: row i, column j is what calling a case of class i class j costs."
            )
        return matrix

    def _starts(self, problem: CostProblem) -> Iterator[AlternatingTree]:
        """Trees to begin with."""
        if problem.n_classes == 1:
            yield AlternatingTree(np.array([-1]), np.array([-1]), [None])
            return
        random = np.random.default_rng(
            check_random_state(0 if self.random_state is None else self.random_state).randint(2**31)
        )
        if self.init == "cart":
            yield self._greedy_tree(problem)
        for _ in range(self.n_restarts - (self.init == "cart")):
            yield random_tree(problem, self.max_depth, random)

    def _greedy_tree(self, problem: CostProblem) -> AlternatingTree:
        """scikit-learn's tree on codes instead of values, so that thresholds are between values here, too."""
        rows = problem.rows
        codes = np.array(rows.codes, np.float64).T
        codes[codes == np.array(rows.n_codes)] = np.nan
        mean_cost = self.costs_.sum(axis=1) / (problem.n_classes - 1)
        weight = rows.weight * rows.unit * mean_cost[rows.label]
        share = min(self.min_samples_leaf / (rows.weight.sum() * rows.unit), 0.5)
        greedy = DecisionTreeClassifier(max_depth=self.max_depth, min_weight_fraction_leaf=share, random_state=0)
        grown = greedy.fit(codes, rows.label, sample_weight=weight).tree_
        splits: list[Split | None] = [None] * grown.node_count
        for node in np.flatnonzero(grown.children_left >= 0):
            feature = int(grown.feature[node])
            value, is_low = rows.X[:, feature], codes[:, feature] <= grown.threshold[node]
            is_high = codes[:, feature] > grown.threshold[node]
            cut = float(between(value[is_low].max(), value[is_high].min())) if is_high.any() else np.inf
            splits[node] = Split(NUMERIC, 1.0, feature, cut, bool(grown.missing_go_to_left[node]))
        return AlternatingTree(grown.children_left, grown.children_right, splits)

    @property
    def n_leaves_(self) -> int:
        """Number of leaves."""
        check_is_fitted(self)
        return int(self.tree_.is_leaf.sum())

    def apply(self, X: Any) -> np.ndarray:
        """Leaf node of `tree_` that each row reaches, int32 (n,)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            return self.tree_.apply(X, threads)

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row: the label of its leaf, the cheapest one for the training cases there."""
        leaf = self.apply(X)
        return self.classes_[self.label_[leaf]]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Share of each class among the training cases of a row's leaf, float64 (n, K)."""
        leaf = self.apply(X)
        weight = self._class_weight[leaf]
        return weight / weight.sum(axis=1, keepdims=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
