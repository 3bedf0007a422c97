"""Trees and forests of scikit-learn and imbalanced-learn, and those that the MetaAP paper compares with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Self

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import BaseDecisionTree, DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted, validate_data

from toprank.errors import InputError
from toprank.experiment.methods.own import PAPER_DEPTHS
from toprank.experiment.registry import Method, Sweep, recipe
from toprank.rankers.cost.cost_path import last_step

PRUNED = {"ccp_alpha": (0.0, 0.0003, 0.001, 0.003, 0.01, 0.03), "min_samples_leaf": (1, 5)}
FOREST_SPACE = {"max_features": ("sqrt", 0.5), "min_samples_leaf": (1, 3, 10)}


def leaves(model: Any) -> tuple[int, str]:
    """Leaves of a tree, or of all trees of an ensemble, also of ensembles in pipelines."""
    return _count_leaves(model), "leaves"


def conditions(model: Any) -> tuple[int, str]:
    """Conditions of one tree: what a person reads."""
    return _count_leaves(model) - 1, "conditions"


def _count_leaves(model: Any) -> int:
    model = last_step(model)[1]
    if isinstance(model, BaseDecisionTree):
        return int(model.get_n_leaves())
    return sum(map(_count_leaves, model.estimators_))


class DistanceTree(DecisionTreeClassifier):
    """Classification tree that ranks by the signed distance to the nearest threshold.

    The distance of a case is the smallest difference, in the columns' own units, to a threshold on its path. It is
    positive if positives are the majority of the leaf, negative if they are the minority, and 0 if both classes are
    equal; the rate of a leaf is not used. A baseline: `toprank.RankingTree(leaf_score="margin")` measures distances
    in standard deviations, which ranks better.

    With random_state=1, which breaks ties between splits, these are the Gini and Entropy trees of [1]_. Of their 420
    runs on 21 data sets, 401 reproduce the published average precision on training and test cases to all six digits.
    The others differ by at most 0.015 points on test cases: published distances were scaled over the scored batch,
    where close ones become equal.

    References
    ----------
    .. [1] Viola, Gautheron, Habrard, Sebban. MetaAP: a meta-tree-based ranking algorithm optimizing the average
       precision from imbalanced data. Pattern Recognition Letters 161, 2022. Sections 3 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0], [2.0], [4.0], [7.0]])
    >>> DistanceTree().fit(X, [0, 0, 1, 1]).decision_function(X)
    array([-2., -1.,  1.,  4.])
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Self:
        """Fit the tree to numbers and labels of two values."""
        X, y = validate_data(self, X, y)
        super().fit(X, y, sample_weight, check_input)
        if len(self.classes_) != 2:
            raise InputError(
                f"Only binary classification is supported: DistanceTree.fit found {len(self.classes_)} label values in "
                "y, expected 2, not one class or several. Hint: pass y == value."
            )
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance to the nearest threshold, float64 (n,).

        Rows are read in double precision, as in the published runs; `predict` reads them in single precision.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        *_, leaves = islice(levels(self, X, np.float64), self.get_depth() + 1)
        return signed(*leaves)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = tags.classifier_tags.multi_label = False
        tags.target_tags.multi_output = False
        tags.input_tags.allow_nan = tags.input_tags.sparse = False
        return tags


def signed(rate: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Distance, negative if positives are the minority, 0 if both classes are equal."""
    return np.sign(rate - 0.5) * distance


def levels(estimator: Any, X: Any, precision: type = np.float32) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rate of each row's node at depth 0, 1, ... (endless), and distance to the nearest threshold so far (0: none).

    Rows are compared with thresholds in this precision; scikit-learn uses single precision.
    """
    tree, X = estimator.tree_, np.asarray(X)
    rows, numbers = np.arange(len(X)), X.astype(precision)
    node, nearest = np.zeros(len(X), np.intp), np.full(len(X), np.inf)
    while True:
        yield tree.value[node, 0, 1], np.where(np.isinf(nearest), 0.0, nearest)
        is_leaf = tree.children_left[node] < 0
        feature, threshold = np.maximum(tree.feature[node], 0), tree.threshold[node]
        distance = np.abs(X[rows, feature] - threshold)
        nearest = np.where(is_leaf, nearest, np.minimum(nearest, distance))
        is_left = numbers[rows, feature] <= threshold
        child = np.where(is_left, tree.children_left[node], tree.children_right[node])
        node = np.where(is_leaf, node, child)


class DistanceForest(RandomForestClassifier):
    """Forest that ranks by the mean over its trees of the signed distance to the nearest threshold on the path.

    The distance is in the units of the columns, negative in leaves with less than half positives, 0 in those with half,
    and taken as a share of its range over the training cases, tree by tree. The published forest of the MetaAP paper
    takes it as a share of its range over the scored cases, so a score depends on the other cases scored with it; apart
    from that, with random_state=1, this is the same forest. Leaf rates rank better. `ranges_` has the range of the
    distance over the training cases of each tree cut at depth 0, 1, ...; 1 if it is 0.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the trees, and measure them on the training cases."""
        super().fit(X, y, sample_weight)
        self.ranges_ = [
            np.array([np.ptp(signed(*level)) or 1.0 for level in islice(levels(tree, X), tree.get_depth() + 1)])
            for tree in self.estimators_
        ]
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Mean signed distance, float64 (n,)."""
        return scores_by_depth(self, X, [None])[0]


def scores_by_depth(forest: RandomForestClassifier, X: np.ndarray, values: Sequence[int | None]) -> np.ndarray:
    """Mean score of the nodes that rows reach at each depth, float64 (n_values, n); None means the leaves.

    It is the rate of a node; of a `DistanceForest` the signed distance. Every node chooses among all columns, so a tree
    of depth d is the top of the deeper one, except that ties between conditions are broken at random in both.
    """
    deepest = max(tree.get_depth() for tree in forest.estimators_)
    depths = [deepest if value is None else min(value, deepest) for value in values]
    total = np.zeros((max(depths) + 1, len(X)))
    for place, estimator in enumerate(forest.estimators_):
        for depth, (rate, distance) in enumerate(islice(levels(estimator, X), len(total))):
            if isinstance(forest, DistanceForest):
                ranges = forest.ranges_[place]
                total[depth] += signed(rate, distance) / ranges[min(depth, len(ranges) - 1)]
            else:
                total[depth] += rate
    return total[depths] / len(forest.estimators_)


def make_cost_cart(
    random_state: Any = 0, n_jobs: int | None = 1, positive_weight: float = 1.0, **setting: Any
) -> DecisionTreeClassifier:
    """Tree in which a positive counts as `positive_weight` negatives."""
    return DecisionTreeClassifier(
        **{"random_state": random_state, "class_weight": {0: 1.0, 1: positive_weight}} | setting
    )


def cart(name: str, title: str, make: Callable[..., Any], space: Any, summary: str) -> Method:
    """One tree, which a person can read."""
    return Method(name, title, "tree", make, space, "numbers", is_readable=True, size=conditions, summary=summary)


def forest(name: str, title: str, make: Callable[..., Any], space: Any, summary: str, **others: Any) -> Method:
    """Many trees."""
    return Method(name, title, "forest", make, space, "numbers", size=leaves, summary=summary, **others)


ONE_THREAD = ("random_state", None)
BY_DEPTH = Sweep("max_depth", scores_by_depth)
METHODS = [
    cart("cart", "CART", recipe(DecisionTreeClassifier, words=ONE_THREAD), PRUNED,
         "scikit-learn's Gini tree, pruned by cost-complexity."),
    cart("cart-balanced", "CART balanced",
         recipe(DecisionTreeClassifier, words=ONE_THREAD, class_weight="balanced"), PRUNED,
         "The same tree with classes of equal weight."),
    cart("cart-cost", "CART tuned cost", make_cost_cart,
         {"positive_weight": (1.0, 3.0, 10.0, 30.0), "ccp_alpha": (0.0, 0.001, 0.01)},
         "The same tree; the weight of a positive is tuned."),
    # The paper tries depths up to 100 (`benchmarks/quality/metaap.yaml`); each needs its own fit.
    cart("cart-distance", "CART distance", recipe(DistanceTree, words=ONE_THREAD), {"max_depth": PAPER_DEPTHS},
         "scikit-learn's tree as in the MetaAP paper: ranked by the signed distance to a threshold."),
    forest("random-forest", "Random forest", recipe(RandomForestClassifier), FOREST_SPACE,
           "scikit-learn's random forest, 100 trees."),
    forest("plain-extra-trees", "Plain extra trees", recipe(ExtraTreesClassifier), FOREST_SPACE,
           "scikit-learn's extremely randomised trees, 100 of them."),
    forest("balanced-random-forest", "Balanced random forest",  # drawn with replacement (Chen et al., 2004)
           recipe("imblearn.ensemble:BalancedRandomForestClassifier", sampling_strategy="all", replacement=True,
                  bootstrap=False),
           FOREST_SPACE, "Every tree sees as many negatives as positives (imbalanced-learn).", packages=("imblearn",)),
    # Section 5.4 of the MetaAP paper.
    forest("entropy-forest", "Entropy forest",
           recipe(RandomForestClassifier, criterion="entropy", max_features=None), {"max_depth": PAPER_DEPTHS},
           "100 bootstrap samples, all columns at every node, mean rate of the leaves.", sweep=BY_DEPTH),
    forest("entropy-forest-paper", "Entropy forest as published",
           recipe(DistanceForest, criterion="entropy", max_features=None), {"max_depth": PAPER_DEPTHS},
           "The same forest as in the MetaAP paper, which ranks by distances to thresholds.",
           sweep=BY_DEPTH),
    forest("gini-forest", "Gini forest", recipe(RandomForestClassifier, criterion="gini", max_features=None),
           {"max_depth": PAPER_DEPTHS}, "The same forest with the Gini criterion.", sweep=BY_DEPTH),
]  # fmt: skip
