import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from toprank.metrics import (
    average_precision,
    balanced_accuracy,
    gain_at_k,
    gains_table,
    pos_at_top,
    precision_at_k,
    precision_at_k_curve,
    roc_auc,
)

RANKING = (average_precision, roc_auc, pos_at_top, precision_at_k, precision_at_k_curve, gains_table)
WEIGHTED = (average_precision, roc_auc, pos_at_top, precision_at_k, gains_table, balanced_accuracy)


def names(functions):
    return pytest.mark.parametrize("metric", functions, ids=lambda function: function.__name__)


def refuses(sentence, error=ValueError):
    return pytest.raises(error, match=re.escape(sentence))


@names((*RANKING, balanced_accuracy))
def test_one_class_only(metric):
    name = metric.__name__
    with refuses(f"{name} needs both classes in y_true, but all 1,200 labels equal 0. Hint: check that these rows"):
        metric(np.zeros(1200, dtype=int), np.arange(1200))
    with refuses(f"{name} needs both classes in y_true, but all 2 labels equal 'ok'. Hint"):
        metric(["ok", "ok"], ["ok", "ok"])


@names(RANKING)
def test_lengths_that_differ(metric):
    with refuses(f"'score' of {metric.__name__} must have one value per row of y_true (3 rows). Got 2 values. Hint"):
        metric([0, 1, 0], [1, 2])


@names(RANKING)
def test_nan_scores(metric):
    with refuses(f"'score' of {metric.__name__} must be free of NaN, but 2 of 4 scores are NaN (the first in row 1)."):
        metric([0, 1, 0, 1], [0.5, np.nan, 1.0, np.nan])


@names((*RANKING, balanced_accuracy))
def test_labels_of_more_than_two_values(metric):
    with refuses(f"{metric.__name__} needs two distinct labels in y_true, but found more (0, 1, 2). Hint: compare"):
        metric([0, 1, 2], [0, 1, 2])
    with refuses(f"{metric.__name__} needs two distinct labels in y_true, but found more ('a', 'b', 'c')"):
        metric(["c", "b", "a"], [0, 1, 2])


@pytest.mark.parametrize(
    "labels",
    [
        [0.0, np.nan, 1.0, np.nan],
        ["a", None, "b", None],
        np.array([0, np.nan, 1, np.nan], dtype=object),
        pd.Series([0, None, 1, None], dtype="Int64"),
        pl.Series([0, None, 1, None]),
        pl.Series(["a", None, "b", None]),
        pa.array([0, None, 1, None]),
    ],
)
def test_missing_labels(labels):
    with refuses("roc_auc needs a label for every row of y_true, but 2 are missing (NaN or None). Hint: drop"):
        roc_auc(labels, [1, 2, 3, 4])


def test_labels_of_other_kinds():
    with refuses("roc_auc needs labels of one type in y_true. Got a mixture of int, str. Hint: convert", TypeError):
        roc_auc(np.array([0, "a"], dtype=object), [1, 2])
    with refuses("roc_auc needs labels that are numbers, booleans or strings in y_true. Got dtype complex", TypeError):
        roc_auc([0j, 1j], [1, 2])
    with refuses("roc_auc needs at least one row of each class, but y_true is empty."):
        roc_auc([], [])


def test_pos_label_that_is_not_a_label():
    with refuses("The 'pos_label' parameter of roc_auc must be one of the labels in y_true, 0 or 1. Got 2 instead."):
        roc_auc([0, 1], [1, 2], pos_label=2)
    with refuses("The 'pos_label' parameter of balanced_accuracy must be one of the labels in y_true"):
        balanced_accuracy(["a", "b"], ["a", "b"], pos_label="c")


def test_more_than_one_dimension():
    with refuses(
        "'score' of roc_auc must have one dimension. Got an array of shape (2, 2). Hint: pass one column, for"
    ):
        roc_auc([0, 1], [[0.5, 0.5], [0.2, 0.8]])
    with refuses("'y_true' of roc_auc must have one dimension. Got an array of shape (2, 1). Hint: pass a list"):
        roc_auc([[0], [1]], [1, 2])


def test_scores_that_are_not_numbers():
    with refuses("'score' of roc_auc must be numbers. Got dtype <U1 instead. Hint: convert", TypeError):
        roc_auc([0, 1], ["1", "2"])
    with refuses("'score' of roc_auc must be numbers. Got dtype object instead.", TypeError):
        roc_auc([0, 1], np.array([1, "a"], dtype=object))


@names(WEIGHTED)
@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_bad_weights(metric, bad):
    with refuses(
        f"'sample_weight' of {metric.__name__} must be finite and at least 0, but 1 of 3 values is not "
        f"(the first in row 2: {bad}). Hint: use 0"
    ):
        metric([0, 1, 0], [0, 1, 1], sample_weight=[1, 1, bad])


@names(WEIGHTED)
def test_weights_that_are_all_zero(metric):
    with refuses(f"'sample_weight' of {metric.__name__} must be positive for some row, but all 3 weights are 0. Hint"):
        metric([0, 1, 0], [0, 1, 1], sample_weight=[0, 0, 0])


@names(WEIGHTED)
def test_a_class_without_weight(metric):
    with refuses(f"{metric.__name__} needs both classes in y_true, but every negative row has sample_weight 0. Hint"):
        metric([0, 1, 0], [0, 1, 1], sample_weight=[0, 1, 0])


@names(WEIGHTED)
def test_weights_of_another_length(metric):
    with refuses(f"'sample_weight' of {metric.__name__} must have one value per row of y_true (3 rows). Got 1 value."):
        metric([0, 1, 0], [0, 1, 1], sample_weight=[1])


def test_amounts_that_are_not_numbers():
    with refuses("'amount' of gain_at_k must be numbers. Got dtype <U1 instead.", TypeError):
        gain_at_k([0, 1], [1, 2], ["1", "2"], 1)


@pytest.mark.parametrize(
    "labels",
    [
        [0, 0, 1],
        [-1, -1, 1],
        [False, False, True],
        ["no", "no", "yes"],
        [0.0, 0.0, 1.0],
        [1, 1, 2],
        [3, 3, 7],
    ],
    ids=str,
)
def test_the_positive_label_is_the_larger_one(labels):
    assert roc_auc(labels, [1, 2, 3]) == 1.0
    assert roc_auc(labels, [1, 2, 3], pos_label=labels[-1]) == 1.0
    assert roc_auc(labels, [1, 2, 3], pos_label=labels[0]) == 0.0


@pytest.mark.parametrize(
    "column", [np.array, pd.Series, pl.Series, pa.array, lambda values: pd.Series(values, dtype="Int64")]
)
def test_columns_of_every_kind_of_table(column):
    assert average_precision(column([0, 1, 0, 1]), column([1, 4, 3, 2]), sample_weight=column([1, 2, 1, 1])) == (
        average_precision([0, 1, 0, 1], [1, 4, 3, 2], sample_weight=[1, 2, 1, 1])
    )


@pytest.mark.parametrize("column", [pd.Series, pd.Categorical, pl.Series, pa.array, np.array])
def test_labels_of_every_kind_of_string(column):
    assert roc_auc(column(["no", "yes", "no"]), [1, 3, 2]) == 1.0


def test_inputs_are_left_as_they_were():
    y, score, weight = np.array([0, 1, 0]), np.array([3.0, 1.0, 2.0]), np.array([1.0, 0.0, 2.0])
    weight[1] = 1.0
    copies = y.copy(), score.copy(), weight.copy()
    for metric in (average_precision, roc_auc, pos_at_top, precision_at_k, gains_table):
        metric(y, score, sample_weight=weight, **({"n_groups": 2} if metric is gains_table else {}))
    assert all(np.array_equal(now, before) for now, before in zip((y, score, weight), copies, strict=True))
