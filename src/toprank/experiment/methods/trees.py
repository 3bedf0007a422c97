"""scikit-learn's classification trees (CART): pruned by cost-complexity, with costs, or ranked by distance."""

from __future__ import annotations

from typing import Any

from sklearn.tree import DecisionTreeClassifier

from toprank.experiment.methods.distance_tree import DistanceTree
from toprank.experiment.methods.own import PAPER_DEPTHS
from toprank.experiment.methods.sizes import conditions
from toprank.experiment.registry import Method, register

PENALTIES = (0.0, 0.0003, 0.001, 0.003, 0.01, 0.03)
LEAST_LEAVES = (1, 5)


def make_cart(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> DecisionTreeClassifier:
    """Tree without costs; always single-threaded."""
    return DecisionTreeClassifier(**{"random_state": random_state} | setting)


def make_balanced_cart(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> DecisionTreeClassifier:
    """Tree with equal weight of both classes."""
    return make_cart(random_state, n_jobs, **({"class_weight": "balanced"} | setting))


def make_cost_cart(
    random_state: Any = 0, n_jobs: int | None = 1, positive_weight: float = 1.0, **setting: Any
) -> DecisionTreeClassifier:
    """Tree in which a positive counts as `positive_weight` negatives."""
    return make_cart(random_state, n_jobs, **({"class_weight": {0: 1.0, 1: positive_weight}} | setting))


def make_distance_cart(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> DistanceTree:
    """Tree that ranks by distances to thresholds."""
    return DistanceTree(random_state=random_state, **setting)


register(
    Method("cart", "CART", "tree", make_cart, {"ccp_alpha": PENALTIES, "min_samples_leaf": LEAST_LEAVES}, "numbers",
           is_readable=True, size=conditions, summary="scikit-learn's Gini tree, pruned by cost-complexity.")
)  # fmt: skip
register(
    Method("cart-balanced", "CART balanced", "tree", make_balanced_cart,
           {"ccp_alpha": PENALTIES, "min_samples_leaf": LEAST_LEAVES}, "numbers", is_readable=True, size=conditions,
           summary="The same tree with classes of equal weight.")
)  # fmt: skip
register(
    Method("cart-cost", "CART tuned cost", "tree", make_cost_cart,
           {"positive_weight": (1.0, 3.0, 10.0, 30.0), "ccp_alpha": (0.0, 0.001, 0.01)}, "numbers", is_readable=True,
           size=conditions, summary="The same tree; the weight of a positive is tuned.")
)  # fmt: skip
# The paper tries depths up to 100 (`benchmarks/quality/metaap.yaml`); each needs its own fit.
register(
    Method("cart-distance", "CART distance", "tree", make_distance_cart, {"max_depth": PAPER_DEPTHS}, "numbers",
           is_readable=True, size=conditions,
           summary="scikit-learn's tree as in the MetaAP paper: ranked by the signed distance to a threshold.")
)  # fmt: skip
