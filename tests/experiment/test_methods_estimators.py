"""The estimators that the register brings along: BalanceCascade, distance trees, boosters, neighbours, metrics."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from toprank import KNN
from toprank.errors import InputError
from toprank.experiment.methods.balanced import BalanceCascade, threshold_of_share, votes
from toprank.experiment.methods.boosting import GroupRanker, MarginRanker, deal_out
from toprank.experiment.methods.neighbours import (
    GMML,
    ImbML,
    MetricTransformer,
    choose_rows,
    nearest_pairs,
    pair_scatters,
)
from toprank.experiment.methods.trees import DistanceTree
from toprank.experiment.registry import find_method
from toprank.metrics import average_precision


def make_table(n=400, n_positives=40, seed=0):
    """Positives in two corners of the first two of five columns, with some noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    worth = np.abs(X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n)
    y = np.zeros(n, int)
    y[np.argsort(-worth)[:n_positives]] = 1
    return X, y


# --- BalanceCascade -----------------------------------------------------------------------------------------

ALL_FALSE = (
    "has classes of equal size, where the share of false positives that algorithm 1.4 keeps is 1: the threshold lies "
    "below every case, and predict says positive of all. test_the_second_class_is_found_where_it_is_rare checks predict"
)


@parametrize_with_checks(
    [
        BalanceCascade(AdaBoostClassifier(n_estimators=5), n_estimators=2),
        BalanceCascade(LogisticRegression(), n_estimators=2),
    ],
    expected_failed_checks=lambda _: {"check_classifiers_train": ALL_FALSE},
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def cascade_by_hand(X, y, n_rounds, seed):
    """Algorithm 1.4, one step at a time: scores of all rows, and how many negatives each round chose from."""
    random = np.random.RandomState(seed)
    positives, negatives = [i for i in range(len(y)) if y[i] == 1], [i for i in range(len(y)) if y[i] == 0]
    f = (len(positives) / len(negatives)) ** (1 / (n_rounds - 1))
    total, theta, n_left = np.zeros(len(y)), 0.0, []
    for _ in range(n_rounds):
        n_left.append(len(negatives))
        drawn = random.choice(negatives, len(positives), replace=False)
        rows = sorted([*positives, *drawn])
        booster = AdaBoostClassifier(n_estimators=8, random_state=random.randint(np.iinfo(np.int32).max))
        booster.fit(X[rows], y[rows])
        score = np.zeros(len(y))
        for learner, error in zip(booster.estimators_, booster.estimator_errors_, strict=False):
            alpha = 0.5 * np.log((1 - error) / error)
            score += alpha * (2 * learner.predict(X) - 1)
        ranked = sorted((score[i] for i in negatives), reverse=True)
        lowest_kept = ranked[int(np.ceil(f * len(negatives) - 1e-9)) - 1]
        removed = [score[i] for i in negatives if score[i] < lowest_kept - 1e-9]
        negatives = [i for i in negatives if score[i] >= lowest_kept - 1e-9]
        total, theta = total + score, theta + max(removed, default=lowest_kept)
    return total - theta, n_left


@pytest.mark.parametrize("seed", [0, 1])
def test_the_cascade_is_algorithm_1_4(seed):
    X, y = make_table(seed=seed)
    model = BalanceCascade(AdaBoostClassifier(n_estimators=8), n_estimators=4, random_state=seed).fit(X, y)
    expected, n_left = cascade_by_hand(X, y, 4, seed)
    assert model.n_left_.tolist() == n_left
    assert np.allclose(model.decision_function(X), expected, rtol=1e-9, atol=1e-9)


def test_negatives_leave_until_as_many_are_left_as_positives():
    X, y = make_table(2000, 50)
    model = BalanceCascade(n_estimators=5, random_state=0).fit(X, y)
    share = (50 / 1950) ** (1 / 4)
    assert model.n_left_[0] == 1950
    assert np.all(np.diff(model.n_left_) < 0)
    # Each round keeps the share, rounded up, and all cases that tie at the threshold.
    assert np.all(model.n_left_[1:] >= share * model.n_left_[:-1])
    assert 50 <= model.n_left_[-1] < 60


def test_the_second_class_is_found_where_it_is_rare():
    X, y = make_table(1000, 50)
    model = BalanceCascade(n_estimators=10, random_state=0).fit(X, y)
    predicted = model.predict(X)
    assert predicted[y == 1].mean() > 0.95
    assert predicted[y == 0].mean() < 0.4
    assert average_precision(y, model.decision_function(X)) > 0.4


def test_the_rarer_class_may_be_the_first():
    X, y = make_table()
    cascade = BalanceCascade(AdaBoostClassifier(n_estimators=5), n_estimators=3, random_state=0)
    model, turned = clone(cascade).fit(X, y), clone(cascade).fit(X, 1 - y)
    assert np.array_equal(turned.decision_function(X), -model.decision_function(X))
    named = clone(cascade).fit(X, np.where(y, "yes", "no"))
    assert np.array_equal(named.predict(X) == "yes", model.predict(X) == 1)


def test_one_round_is_one_balanced_booster():
    X, y = make_table()
    model = BalanceCascade(n_estimators=1, random_state=0).fit(X, y)
    assert len(model.estimators_) == 1
    assert model.n_left_.tolist() == [360]


@pytest.mark.parametrize(
    ("scores", "share", "expected"),
    [([1, 2, 3, 4], 0.5, 2), ([1, 2, 3, 4], 0.51, 1), ([1, 3, 3, 3], 0.25, 1), ([2, 2, 2], 0.5, np.nextafter(2, 0)),
     ([1, 2], 0.0, 1), ([5], 1.0, np.nextafter(5, 0))],
)  # fmt: skip
def test_the_threshold_leaves_the_share_above_it(scores, share, expected):
    threshold = threshold_of_share(np.array(scores, float), share)
    assert threshold == expected
    assert np.mean(np.array(scores) > threshold) >= share


def test_surer_votes_count_more():
    X, y = make_table()
    booster = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=5, random_state=0).fit(X, y)
    scaled = booster.decision_function(X) * booster.estimator_weights_.sum() / 4  # in [-2, 2], weights are 2 * alpha
    assert np.allclose(votes(booster, X), scaled)


def test_bad_labels_are_told():
    X, _ = make_table(30, 5)
    with pytest.raises(ValueError, match=r"all 30 labels equal 0: only one class\. Hint"):
        BalanceCascade().fit(X, np.zeros(30, int))
    with pytest.raises(ValueError, match=r"found 3 label values in y, expected 2\. Hint"):
        BalanceCascade().fit(X, np.arange(30) % 3)


# --- DistanceTree ---------------------------------------------------------------------------------------------


@parametrize_with_checks([DistanceTree()])
def test_scikit_learn_check_of_distance_trees(estimator, check):
    check(estimator)


def distance_by_hand(model, row):
    """Down the tree with one row: the nearest threshold, and the majority where it ends."""
    tree, node, nearest = model.tree_, 0, np.inf
    while tree.children_left[node] >= 0:
        value, threshold = row[tree.feature[node]], tree.threshold[node]
        nearest = min(nearest, abs(value - threshold))
        node = (tree.children_left if value <= threshold else tree.children_right)[node]
    negative, positive = tree.value[node, 0]
    return nearest * (0 if negative == positive else 1 if positive > negative else -1)


@pytest.mark.parametrize("depth", [1, 3, None])
def test_distance_trees_rank_by_the_nearest_threshold_and_the_majority(depth):
    X, y = make_table()
    X = X.round(1)  # rows that meet thresholds exactly, and leaves of equal rows with both classes
    model = DistanceTree(max_depth=depth, random_state=1).fit(X[:, :2], y)
    score = model.decision_function(X[:, :2])
    assert score.tolist() == [distance_by_hand(model, row) for row in X[:, :2]]
    assert (score > 0).any()
    assert (score < 0).any()


def test_a_distance_tree_without_a_cut_ranks_nobody():
    X, y = np.zeros((10, 1)), np.arange(10) < 5
    assert DistanceTree().fit(X, y).decision_function(X).tolist() == [0.0] * 10
    assert DistanceTree().fit(X, np.arange(10) < 7).decision_function(X).tolist() == [0.0] * 10


# --- boosters -----------------------------------------------------------------------------------------------


def test_groups_share_out_both_classes():
    label = (np.arange(25_003) % 50 == 0).astype(int)
    group = deal_out(label, 10_000, 0)
    assert np.bincount(group).tolist() == [8335, 8334, 8334]
    positives = np.bincount(group, label)
    assert np.ptp(positives) <= 1
    assert np.array_equal(group, deal_out(label, 10_000, 0))
    assert not np.array_equal(group, deal_out(label, 10_000, 1))
    assert np.array_equal(deal_out(label, None, 0), np.zeros(25_003))
    assert np.array_equal(deal_out(label, 25_003, 0), np.zeros(25_003))


@pytest.mark.parametrize("name", ["xgb-ranker", "xgb-ndcg", "lightgbm-ranker", "catboost-ranker", "catboost-softmax"])
def test_rankers_learn_in_several_groups(name):
    method = find_method(name)
    if method.missing_packages:
        pytest.skip(f"{name} needs {method.missing_packages}")
    X, y = make_table()
    rounds = {method.sweep.parameter: 30}
    ranker = method.make(**rounds).set_params(max_group_rows=150).fit(X, y)
    assert ranker.n_groups_ == 3
    assert average_precision(y, ranker.decision_function(X)) > 0.7
    assert method.make(**rounds).fit(X, y).n_groups_ == 1


def test_lightgbm_looks_at_as_many_places_as_there_are_positives():
    pytest.importorskip("lightgbm")
    X, y = make_table(400, 60)
    method = find_method("lightgbm-ranker")
    model = method.make(n_estimators=5).fit(X, y)
    assert model.booster_.get_params()["lambdarank_truncation_level"] == 60
    told = method.make(n_estimators=5, lambdarank_truncation_level=7).fit(X, y)
    assert told.booster_.get_params()["lambdarank_truncation_level"] == 7


def test_lightgbm_takes_more_rows_than_its_limit():
    pytest.importorskip("lightgbm")
    X, y = make_table(10_100, 30)
    model = find_method("lightgbm-ranker").make(n_estimators=2).fit(X, y)
    assert model.n_groups_ == 2


def test_weights_of_positives_follow_the_rows_fitted_on():
    pytest.importorskip("xgboost")
    X, y = make_table(400, 40)
    method = find_method("xgboost-weighted")
    assert method.make(n_estimators=2).fit(X, y).booster_.scale_pos_weight == 9.0
    assert method.make(n_estimators=2, scale_pos_weight=2.0).fit(X, y).booster_.scale_pos_weight == 2.0


def test_margins_order_rows_that_probabilities_tie():
    xgboost = pytest.importorskip("xgboost")
    X, y = make_table(400, 200)
    X[:, 0] = y + 0.01 * X[:, 0]
    model = MarginRanker(xgboost.XGBClassifier(n_estimators=300, reg_lambda=0, n_jobs=1)).fit(X, y)
    margin = model.decision_function(X)
    assert np.array_equal(model.predict(X) == 1, margin > 0)
    assert margin.dtype == np.float64
    assert np.allclose(1 / (1 + np.exp(-margin)), model.booster_.predict_proba(X)[:, 1], atol=1e-5)


@pytest.mark.parametrize("kind", [MarginRanker, GroupRanker])
def test_a_booster_needs_two_classes(kind):
    X, _ = make_table(30, 5)
    with pytest.raises(ValueError, match=r"needs labels of two values, but y has 1\. Hint"):
        kind(find_method("hist-gradient-boosting").make().booster).fit(X, np.zeros(30))


# --- neighbours ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["lmnn", "itml"])
def test_a_learned_metric_turns_from_noise(algorithm):
    pytest.importorskip("metric_learn")
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.normal(size=(300, 2)), 3 * rng.normal(size=(300, 6))))
    y = (X[:, 0] + X[:, 1] > 1.5).astype(int)
    metric = MetricTransformer(algorithm, random_state=0).fit(X[:200], y[:200])
    known, new = metric.transform(X[:200]), metric.transform(X[200:])
    learned = roc_auc_score(y[200:], KNN(n_neighbors=9, scaling=None).fit(known, y[:200]).decision_function(new))
    plain = roc_auc_score(y[200:], KNN(n_neighbors=9, scaling=None).fit(X[:200], y[:200]).decision_function(X[200:]))
    assert learned > plain + 0.05


@pytest.mark.parametrize("algorithm", ["lmnn", "itml"])
def test_a_metric_is_learned_from_two_positives_and_equal_rows(algorithm):
    pytest.importorskip("metric_learn")
    X, y = make_table(40, 2)
    X[20:] = X[:20]
    metric = MetricTransformer(algorithm, random_state=0).fit(X, y)
    assert np.isfinite(metric.components_).all()
    y[np.flatnonzero(y)[0]] = 0
    with pytest.raises(ValueError, match=rf"{algorithm.upper()} compares rows.*smaller class has 1\. Hint"):
        MetricTransformer(algorithm).fit(X, y)


def test_a_metric_is_learned_from_a_part_of_many_rows():
    _, y = make_table(400, 40)
    rows = choose_rows(y, 100, random_state=0)
    assert len(rows) == len(np.unique(rows)) == 100
    assert y[rows].sum() == 40
    assert y[choose_rows(y, 60, random_state=0)].sum() == 30
    assert len(choose_rows(y, None, random_state=0)) == 400


# --- GMML, ImbML and MLFP ------------------------------------------------------------------------------------


def make_rows(n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (np.arange(n) < n // 4).astype(int)
    X[y == 1, 0] += 2
    return X, y


def test_scatters_are_those_of_all_pairs():
    X, y = make_rows(14)
    expected = [np.zeros((4, 4)), np.zeros((4, 4))]
    counts = [0, 0]
    for i in range(14):
        for j in range(14):
            if i != j:
                kind = int(y[i] != y[j])
                expected[kind] += np.outer(X[i] - X[j], X[i] - X[j])
                counts[kind] += 1
    for found, total, count in zip(pair_scatters(X, y == 1), expected, counts, strict=True):
        assert found == pytest.approx(total / count)


def test_gmml_is_the_geometric_mean():
    """At t = 1/2 the mean M solves M S M = D; at t = 0 it is the inverse of S."""
    X, y = make_rows()
    similar, dissimilar = pair_scatters(X, y == 1)

    def matrix(t):
        components = GMML(t).fit(X, y).components_
        return components.T @ components

    assert matrix(0.5) @ similar @ matrix(0.5) == pytest.approx(dissimilar, rel=0.02, abs=0.02)
    assert matrix(0.0) == pytest.approx(scipy.linalg.inv(similar), rel=0.02, abs=0.02)
    assert matrix(1.0) == pytest.approx(dissimilar, rel=0.02, abs=0.02)


def test_imbml_lowers_its_objective():
    X, y = make_rows()
    model = ImbML(margin=1.0, penalty=0.1, a=0.7).fit(X, y)
    difference, weight, is_similar = nearest_pairs(X, y == 1, 3, 0.7)
    assert weight[is_similar].sum() == pytest.approx(1.0)
    assert len(difference) == 2 * 3 * 60

    def objective(components):
        square = np.sum((difference @ components.T) ** 2, axis=1)
        loss = np.where(is_similar, np.maximum(square - 1, 0), np.maximum(2 - square, 0))
        return weight @ loss + 0.1 * np.sum((components.T @ components - np.eye(4)) ** 2)

    assert objective(model.components_) < objective(np.eye(4)) - 0.01
    rng = np.random.default_rng(0)
    near = [objective(model.components_ + 0.05 * rng.normal(size=(4, 4))) for _ in range(20)]
    assert objective(model.components_) < min(near)


def test_rows_are_drawn_from_both_classes():
    rows = choose_rows(np.arange(1000) < 30, 100, 0)
    assert len(rows) == 100
    assert np.sum(rows < 30) == 30
    with pytest.raises(InputError, match="two"):
        GMML().fit(np.eye(3), [0, 0, 1])


@pytest.mark.parametrize("name", ["mlfp", "gmml", "imbml"])
def test_methods_rank(name):
    X, y = make_rows(120)
    method = find_method(name)
    setting = {parameter: values[0] for parameter, values in method.space.items()}
    model = method.make(**setting | ({"n_neighbors": 5} if name != "mlfp" else {})).fit(X, y)
    score = model.decision_function(X)
    assert score[y == 1].mean() > score[y == 0].mean() + 0.1
    assert method.size(model) == (120, "rows")
