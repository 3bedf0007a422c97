"""Forests: scikit-learn's, imbalanced-learn's, and the bagged trees that the MetaAP paper compares with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Self

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from toprank.experiment.methods.distance_tree import levels, signed
from toprank.experiment.methods.own import PAPER_DEPTHS
from toprank.experiment.methods.sizes import leaves
from toprank.experiment.registry import Method, Sweep, register

SPACE = {"max_features": ("sqrt", 0.5), "min_samples_leaf": (1, 3, 10)}


def make_random_forest(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> RandomForestClassifier:
    """Random forest of 100 trees."""
    return RandomForestClassifier(**{"random_state": random_state, "n_jobs": n_jobs} | setting)


def make_extra_trees(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> ExtraTreesClassifier:
    """100 extremely randomised trees."""
    return ExtraTreesClassifier(**{"random_state": random_state, "n_jobs": n_jobs} | setting)


def make_balanced_forest(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> Any:
    """Forest whose trees see as many negatives as positives, drawn with replacement (Chen et al., 2004)."""
    from imblearn.ensemble import BalancedRandomForestClassifier

    drawn = {"sampling_strategy": "all", "replacement": True, "bootstrap": False}
    return BalancedRandomForestClassifier(**drawn | {"random_state": random_state, "n_jobs": n_jobs} | setting)


def make_bagged_trees(criterion: str) -> Callable[..., RandomForestClassifier]:
    """`make` of 100 trees on bootstrap samples, all columns at every node: section 5.4 of the MetaAP paper."""

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> RandomForestClassifier:
        return make_random_forest(random_state, n_jobs, **({"criterion": criterion, "max_features": None} | setting))

    return make


class DistanceForest(RandomForestClassifier):
    """Forest that ranks by the mean over its trees of the signed distance to the nearest threshold on the path.

    The distance is in the units of the columns, negative in leaves with less than half positives, 0 in those with half,
    and taken as a share of its range over the training cases, tree by tree. The published forest of the MetaAP paper
    takes it as a share of its range over the scored cases, so a score depends on the other cases scored with it; apart
    from that, with random_state=1, this is the same forest. Leaf rates rank better.

    Attributes
    ----------
    ranges_ : list of float64 arrays of shape (depth + 1,)
        Range of the signed distance over the training cases, of each tree cut at depth 0, 1, ...; 1 if it is 0.
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
        return distances_by_depth(self, X, [None])[0]


def make_published_forest(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> DistanceForest:
    """Forest of the MetaAP paper, section 5.4, scores included."""
    published = {"criterion": "entropy", "max_features": None, "random_state": random_state, "n_jobs": n_jobs}
    return DistanceForest(**published | setting)


def rates_by_depth(forest: RandomForestClassifier, X: np.ndarray, values: Sequence[int | None]) -> np.ndarray:
    """Mean rate of the nodes that rows reach at each depth, float64 (n_values, n); None means the leaves.

    Every node chooses among all columns, so a tree of depth d is the top of the deeper one, except that ties between
    conditions are broken at random in both.
    """
    return _mean_by_depth(forest, X, values, lambda place, depth, rate, distance: rate)


def distances_by_depth(forest: DistanceForest, X: np.ndarray, values: Sequence[int | None]) -> np.ndarray:
    """Mean signed distance at each depth, float64 (n_values, n); None means the leaves."""

    def score(place: int, depth: int, rate: np.ndarray, distance: np.ndarray) -> np.ndarray:
        ranges = forest.ranges_[place]
        return signed(rate, distance) / ranges[min(depth, len(ranges) - 1)]

    return _mean_by_depth(forest, X, values, score)


def _mean_by_depth(
    forest: RandomForestClassifier, X: np.ndarray, values: Sequence[int | None], score: Callable[..., np.ndarray]
) -> np.ndarray:
    """Mean over the trees of score(position of the tree, depth, rate of the node, distance to a threshold)."""
    deepest = max(tree.get_depth() for tree in forest.estimators_)
    depths = [deepest if value is None else min(value, deepest) for value in values]
    total = np.zeros((max(depths) + 1, len(X)))
    for place, estimator in enumerate(forest.estimators_):
        for depth, (rate, distance) in enumerate(islice(levels(estimator, X), len(total))):
            total[depth] += score(place, depth, rate, distance)
    return total[depths] / len(forest.estimators_)


BY_DEPTH = Sweep("max_depth", rates_by_depth)

register(
    Method("random-forest", "Random forest", "forest", make_random_forest, SPACE, "numbers", size=leaves,
           summary="scikit-learn's random forest, 100 trees.")
)  # fmt: skip
register(
    Method("extra-trees", "Extra trees", "forest", make_extra_trees, SPACE, "numbers", size=leaves,
           summary="scikit-learn's extremely randomised trees, 100 of them.")
)  # fmt: skip
register(
    Method("balanced-random-forest", "Balanced random forest", "forest", make_balanced_forest, SPACE, "numbers",
           ("imblearn",), size=leaves, summary="Every tree sees as many negatives as positives (imbalanced-learn).")
)  # fmt: skip
register(
    Method("entropy-forest", "Entropy forest", "forest", make_bagged_trees("entropy"), {"max_depth": PAPER_DEPTHS},
           "numbers", size=leaves, sweep=BY_DEPTH,
           summary="100 bootstrap samples, all columns at every node, mean rate of the leaves.")
)  # fmt: skip
register(
    Method("entropy-forest-paper", "Entropy forest as published", "forest", make_published_forest,
           {"max_depth": PAPER_DEPTHS}, "numbers", size=leaves, sweep=Sweep("max_depth", distances_by_depth),
           summary="The same forest as in the MetaAP paper, which ranks by distances to thresholds.")
)  # fmt: skip
register(
    Method("gini-forest", "Gini forest", "forest", make_bagged_trees("gini"), {"max_depth": PAPER_DEPTHS},
           "numbers", size=leaves, sweep=BY_DEPTH, summary="The same forest with the Gini criterion.")
)  # fmt: skip
