"""Ensembles on balanced samples: EasyEnsemble, `BalanceCascade`, RUSBoost, balanced bagging."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from toprank._compat import HasMethods, Interval
from toprank.errors import InputError
from toprank.experiment.methods.trees import leaves
from toprank.experiment.registry import Method, recipe


class BalanceCascade(ClassifierMixin, BaseEstimator):
    """A sum of classifiers, each on a balanced sample without the majority cases already classified correctly.

    Each of the T classifiers sees all cases of the rarer class and as many others, drawn without replacement. Its
    threshold leaves a share f = (m+ / m-) ** (1 / (T - 1)) of the remaining other cases above it: the false positives,
    which stay. Those below it are classified correctly and removed. After T - 1 rounds, both classes have as many cases
    left.

    `estimator` is fitted in each of the `n_estimators` rounds and needs `decision_function`; None is
    `AdaBoostClassifier()`, 50 stumps. `thresholds_` has theta_i of each round, `n_left_` the cases of the common class
    that it chose from.

    AdaBoost's score is the sum of its weighted votes, not divided by the sum of the weights as in scikit-learn: as in
    algorithm 1.4, a round with more confident votes counts more. If scores tie at the threshold, all tied cases stay,
    so a round never keeps less than the share f.

    Algorithm 1.4 of [2]_ prints the T-th root in f. Its text, where f ** (T - 1) * m- = m+, and [1]_ have T - 1.

    References
    ----------
    .. [1] Liu, Wu, Zhou. Exploratory undersampling for class-imbalance learning. IEEE Transactions on Systems, Man, and
       Cybernetics B 39(2), 2009. Algorithm 2.
    .. [2] Viola. Highly imbalanced learning, application to fraud detection. Thesis, Université de Lyon, 2022.
       Algorithm 1.4.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank.experiment.methods.balanced import BalanceCascade
    >>> X, y = make_classification(1000, weights=[0.9], random_state=0)
    >>> model = BalanceCascade(n_estimators=4, random_state=0).fit(X, y)
    >>> int(y.sum()), model.n_left_.tolist()
    (102, [898, 435, 211, 103])
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "estimator": [HasMethods(["fit", "decision_function"]), None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(self, estimator: Any = None, *, n_estimators: int = 10, random_state: Any = None):
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> BalanceCascade:
        """Fit the cascade to numbers and labels of two values."""
        self._validate_params()
        X, y = validate_data(self, X, y)
        label = self._encode_labels(y)
        random = check_random_state(self.random_state)
        rare, common = np.flatnonzero(label), np.flatnonzero(~label)
        share = (len(rare) / len(common)) ** (1 / max(1, self.n_estimators - 1))  # f

        self.estimators_, thresholds, n_left = [], [], []
        for _ in range(self.n_estimators):
            n_left.append(len(common))
            drawn = random.choice(common, min(len(rare), len(common)), replace=False)
            rows = np.sort(np.concatenate((rare, drawn)))
            estimator = AdaBoostClassifier() if self.estimator is None else clone(self.estimator)
            if "random_state" in estimator.get_params():
                estimator.set_params(random_state=random.randint(np.iinfo(np.int32).max))
            estimator.fit(X[rows], label[rows].astype(int))
            score = votes(estimator, X[common])
            threshold = threshold_of_share(score, share)
            common = common[score > threshold]
            self.estimators_.append(estimator)
            thresholds.append(threshold)
        self.thresholds_, self.n_left_ = np.array(thresholds), np.array(n_left)
        return self

    def _encode_labels(self, y: np.ndarray) -> np.ndarray:
        """True for cases of the rarer class (ties go to the second class); sets `classes_`."""
        check_classification_targets(y)
        self.classes_, position = np.unique(y, return_inverse=True)
        if len(self.classes_) == 1:
            raise InputError(
                f"BalanceCascade.fit needs both classes in y, but all {len(y):,} labels equal {self.classes_[0]}: only "
                "one class. Hint: use StratifiedKFold."
            )
        if len(self.classes_) > 2:
            raise InputError(
                "Only binary classification is supported. The type of the target is multiclass: BalanceCascade.fit "
                f"found {len(self.classes_)} label values in y, expected 2. Hint: pass y == value."
            )
        self._sign = 1 if 2 * position.sum() <= len(position) else -1
        return position == max(self._sign, 0)

    def decision_function(self, X: Any) -> np.ndarray:
        """Sum over the rounds of score minus threshold, float64 (n,): positive for the second class."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        return self._sign * (sum(votes(estimator, X) for estimator in self.estimators_) - self.thresholds_.sum())

    def predict(self, X: Any) -> np.ndarray:
        """The second class if the score is positive."""
        is_second = self.decision_function(X) > 0
        return self.classes_[is_second.astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def votes(estimator: Any, X: np.ndarray) -> np.ndarray:
    """Score of a fitted classifier, float64 (n,); for AdaBoost the sum of alpha_ij * h_ij(x), h_ij in {-1, 1}."""
    if not isinstance(estimator, AdaBoostClassifier):
        return np.asarray(estimator.decision_function(X), np.float64)
    total = np.zeros(len(X))
    for weight, learner in zip(estimator.estimator_weights_, estimator.estimators_, strict=False):
        total += weight / 2 * np.where(learner.predict(X) == 1, 1.0, -1.0)  # scikit-learn's weight is 2 * alpha
    return total


def threshold_of_share(score: np.ndarray, share: float) -> float:
    """Largest threshold with at least a share of the scores above it."""
    n_above = min(max(1, int(np.ceil(share * len(score) - 1e-9))), len(score))
    least = np.partition(score, len(score) - n_above)[len(score) - n_above]  # among the cases that stay
    below = score[score < least]
    return float(below.max() if len(below) else np.nextafter(least, -np.inf))


# --- methods ------------------------------------------------------------------------------------------------------


def boosts(ensemble: Any, **how: Any) -> Any:
    """`make` of an ensemble of 10 AdaBoosts of small trees."""

    def make(
        random_state: Any = 0, n_jobs: int | None = 1, max_depth: int = 1, n_rounds: int = 50, **setting: Any
    ) -> Any:
        boost = AdaBoostClassifier(DecisionTreeClassifier(max_depth=max_depth), n_estimators=n_rounds)
        return recipe(ensemble, estimator=boost, **how)(random_state, n_jobs, **setting)

    return make


def trees(ensemble: str, parameter: str, **how: Any) -> Any:
    """`make` of an ensemble of trees, one of whose parameters is that of its trees, by default 1."""

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> Any:
        tree = DecisionTreeClassifier(**{parameter: setting.pop(parameter, 1)})
        return recipe(ensemble, estimator=tree, **how)(random_state, n_jobs, **setting)

    return make


BOOSTS = {"max_depth": (1, 3), "n_rounds": (10, 50)}
METHODS = [
    Method("easy-ensemble", "EasyEnsemble", "balanced", boosts("imblearn.ensemble:EasyEnsembleClassifier"), BOOSTS,
           "numbers", ("imblearn",), size=leaves, summary="10 AdaBoosts on balanced samples (imbalanced-learn)."),
    Method("balance-cascade", "BalanceCascade", "balanced", boosts(BalanceCascade, words=("random_state", None)),
           BOOSTS, "numbers", size=leaves,
           summary="10 AdaBoosts in sequence; negatives classified correctly are removed (Liu, Wu, Zhou 2009)."),
    Method("rus-boost", "RUSBoost", "balanced",  # one round after the other: one thread
           trees("imblearn.ensemble:RUSBoostClassifier", "max_depth", words=("random_state", None)),
           {"max_depth": (1, 3), "n_estimators": (50, 200), "learning_rate": (0.1, 1.0)}, "numbers", ("imblearn",),
           size=leaves, summary="AdaBoost with random under-sampling in every round (imbalanced-learn)."),
    Method("balanced-bagging", "Balanced bagging", "balanced",
           trees("imblearn.ensemble:BalancedBaggingClassifier", "min_samples_leaf", n_estimators=50),
           {"min_samples_leaf": (1, 3, 10)}, "numbers", ("imblearn",), size=leaves,
           summary="50 trees on balanced bootstraps (imbalanced-learn)."),
]  # fmt: skip
