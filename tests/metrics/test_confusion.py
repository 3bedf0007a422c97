from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, fbeta_score, precision_score, recall_score

from reference_metrics import repeat_rows, weighted_cases
from toprank.metrics import balanced_accuracy, f_beta, g_mean, g_measure

MEASURES = (balanced_accuracy, f_beta, g_mean, g_measure)


@pytest.fixture
def decisions():
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, 60)
    return y, np.where(generator.random(60) < 0.7, y, 1 - y), generator.random(60)


@pytest.mark.parametrize("pos_label", [None, 0, 1])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_equal_to_scikit_learn(decisions, pos_label, is_weighted):
    y, predicted, weight = decisions
    ours = {"sample_weight": weight if is_weighted else None, "pos_label": pos_label}
    theirs = {"sample_weight": ours["sample_weight"], "pos_label": 1 if pos_label is None else pos_label}
    for beta in (0.0, 0.5, 1.0, 2.0):
        assert f_beta(y, predicted, beta=beta, **ours) == pytest.approx(fbeta_score(y, predicted, beta=beta, **theirs))
    precision, recall = precision_score(y, predicted, **theirs), recall_score(y, predicted, **theirs)
    other_recall = recall_score(y, predicted, **{**theirs, "pos_label": 1 - theirs["pos_label"]})
    assert g_measure(y, predicted, **ours) == pytest.approx(sqrt(precision * recall))
    assert g_mean(y, predicted, **ours) == pytest.approx(sqrt(recall * other_recall))
    assert balanced_accuracy(y, predicted, **ours) == pytest.approx(
        balanced_accuracy_score(y, predicted, sample_weight=ours["sample_weight"])
    )


def test_true_positive_rate_is_not_the_misprint_of_the_thesis():
    """TP = 1, FN = 3, TN = 4, FP = 0: TP / (TP + TN) would be 0.2, TP / (TP + FN) is 0.25."""
    y, predicted = [1, 1, 1, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]
    assert g_mean(y, predicted) == 0.5
    assert balanced_accuracy(y, predicted) == 0.625


@given(weighted_cases(), st.sampled_from(MEASURES))
def test_weight_two_is_the_row_twice(case, measure):
    y, score, weight = case
    predicted = np.asarray(score) % 2
    y_rows, predicted_rows = repeat_rows(weight, y, predicted)
    assert measure(y, predicted, sample_weight=weight) == pytest.approx(measure(y_rows, predicted_rows))


@pytest.mark.parametrize(
    ("measure", "value"), [(balanced_accuracy, 0.5), (f_beta, 0.0), (g_mean, 0.0), (g_measure, 0.0)]
)
def test_nothing_predicted_positive(measure, value):
    assert measure([0, 0, 1], [0, 0, 0]) == value


def test_labels_can_be_strings_and_booleans():
    assert f_beta(["fraud", "ok", "ok"], ["fraud", "ok", "fraud"], pos_label="fraud") == pytest.approx(2 / 3)
    assert f_beta([True, False], [True, False]) == 1.0
    assert f_beta([1, -1], [1, -1]) == 1.0


@pytest.mark.parametrize("predicted", [[0.3, 0.7], [0, 2], ["0", "1"]])
def test_predictions_that_are_not_labels_are_refused(predicted):
    with pytest.raises(
        ValueError, match=r"'y_pred' of g_mean must hold the labels of y_true, 0 and 1\. Got .*Hint: cut"
    ):
        g_mean([0, 1], predicted)


def test_predictions_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"'y_pred' of f_beta must have one value per row .*\(2 rows\)\. Got 3 values"):
        f_beta([0, 1], [0, 1, 1])


@pytest.mark.parametrize("beta", [-1, float("inf"), float("nan"), "1", True])
def test_a_bad_beta_is_refused(beta):
    with pytest.raises(ValueError, match=r"'beta' parameter of f_beta must be a float in the range \[0, inf\)"):
        f_beta([0, 1], [0, 1], beta=beta)


def test_a_class_without_weight_is_refused():
    with pytest.raises(
        ValueError, match=r"balanced_accuracy needs both classes .* every positive row has sample_weight 0"
    ):
        balanced_accuracy([0, 1], [0, 1], sample_weight=[1, 0])
