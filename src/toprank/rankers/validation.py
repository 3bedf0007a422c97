"""Checks of labels and weights; every error is one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from toprank._compat import Interval, InvalidParameterError
from toprank.data.table import is_missing
from toprank.errors import InputError, InputTypeError, warn_caller
from toprank.metrics.checks import as_vector
from toprank.metrics.groups import encode_identifiers
from toprank.metrics.labels import default_positive, usual_positive
from toprank.tree.bin_mapper import row_blocks
from toprank.tree.columns import Column
from toprank.words.counts import every, plural
from toprank.words.nearest import did_you_mean, nearest_name

LARGEST_TOTAL = 1e150
"""Sums of weights from one over this up to this can be multiplied without overflow."""

NEGLIGIBLE = 2.0**-50
"""Share of the weight below which a class counts as absent: weights are summed in 52 bits."""

NAMED, MATCHED = 20, 50
"""Most missing columns to name, and most to look up similar names for."""

OF_TABLE = ("categorical_features", "keep_columns", "pos_label")
"""Parameters about the table: those of the ranker that reads it hold for all that are fitted on it."""


def check_no_truth_values(model: BaseEstimator) -> None:
    """Raise InvalidParameterError if a numeric parameter is True or False, which Python takes as 1 and 0."""
    for name, value in model.get_params(deep=False).items():
        allowed = model._parameter_constraints[name]
        is_number = "boolean" not in allowed and any(isinstance(each, Interval) for each in allowed)
        if is_number and isinstance(value, bool):
            raise InvalidParameterError(
                f"The {name!r} parameter of {type(model).__name__} must be a number. Got {value!r} instead. "
                f"Hint: pass a number, such as {name}=1."
            )


def check_no_iterator(model: BaseEstimator) -> None:
    """Raise InvalidParameterError if `cv` can be iterated only once: pruning and hit rates both need it."""
    cv = model.get_params(deep=False).get("cv")
    if hasattr(cv, "__next__"):
        raise InvalidParameterError(
            f"The 'cv' parameter of {type(model).__name__} must be a number of folds, a splitter or a list of splits. "
            f"Got {type(cv).__name__} instead, which can be iterated only once. Hint: pass list(...) of it."
        )


def check_shares_table(model: BaseEstimator, name: str, owner: BaseEstimator, owner_name: str) -> None:
    """Raise InputError if a model that does not read its table itself has settings of its own for reading it."""
    for parameter in OF_TABLE:
        given, used = (each.get_params(deep=False).get(parameter) for each in (model, owner))
        if given is not None and np.asarray(given).tolist() != np.asarray(used).tolist():
            raise InputError(
                f"{parameter} of {name} is {given!r}, but it is fitted on the table that {owner_name} reads, where "
                f"{parameter} is {used!r}. Hint: set {parameter} of {owner_name} instead."
            )


def check_labels(y: Any, n_rows: int, owner: str) -> np.ndarray:
    """Return the labels as a one-dimensional array of n_rows values of one kind, none missing."""
    if y is None:
        raise InputError(
            f"{owner} requires y to be passed, but the target y is None. "
            "Hint: fit(X, y) needs the outcome of each case."
        )
    labels = column_or_1d(_to_numpy(y), warn=True)
    if len(labels) != n_rows:
        raise InputError(
            f"{owner} needs one label per row: Found input variables with inconsistent numbers of samples: "
            f"[{n_rows}, {len(labels)}]. Hint: were rows dropped from only one of X and y?"
        )
    n_missing = _count_missing(labels)
    if n_missing:
        raise InputError(
            f"{owner} needs a label for every row, but {n_missing:,} of {len(labels):,} labels are missing (NaN). "
            "Hint: drop the rows whose outcome is not known yet."
        )
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise InputError(
            f"Input y contains infinity or a value too large: {owner} needs labels with two values, such as 0 and 1. "
            "Hint: drop the rows whose outcome is not known."
        )
    kinds = sorted({type(v).__name__ for v in labels.tolist()}) if labels.dtype.kind == "O" else []
    if len(kinds) > 1 and "str" in kinds:
        raise InputTypeError(
            f"{owner} needs labels of one kind, but y mixes {' and '.join(kinds)}. "
            "Hint: convert them all to strings or to numbers."
        )
    if type_of_target(as_numbers(distinct_labels(labels)), input_name="y").startswith("continuous"):
        raise InputError(
            f"Unknown label type: {owner} needs labels with two values, but y holds numbers with fractions. "
            "Hint: turn the outcome into yes/no, for example y > 0."
        )
    return labels


def check_groups(groups: Any, n_rows: int, owner: str) -> np.ndarray | None:
    """Return the groups as int64 codes in the order of their values, -1 for rows without one; None without groups."""
    if groups is None:
        return None
    values = _to_numpy(groups)
    values = as_vector(values[:, 0] if values.shape[1:] == (1,) else values, "groups", caller=owner)
    if len(values) != n_rows:
        raise InputError(
            f"{owner} needs one group per row, but groups has {len(values):,} values and X {n_rows:,} rows. "
            "Hint: pass the column that says to whom each row belongs."
        )
    is_known = np.array([not is_missing(value) for value in values.tolist()], bool)
    codes, distinct = encode_identifiers(values[is_known], "groups", int(is_known.sum()), caller=owner)
    order = np.argsort(distinct.astype(str) if distinct.dtype == object else distinct, kind="stable")
    out = np.full(n_rows, -1)
    out[is_known] = np.argsort(order)[codes]
    return out


def check_split_groups(groups: Any, n_rows: int, owner: str) -> np.ndarray | None:
    """`check_groups` for splits that need no more than a group for every row: one without has its own."""
    codes = check_groups(groups, n_rows, owner)
    if codes is not None:
        lone = codes < 0
        codes[lone] = codes.max(initial=-1) + 1 + np.arange(lone.sum())
    return codes


def check_class_labels(y: Any, sample_weight: Any, n_rows: int, owner: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the labels of any number of classes, and the weights as float64; None without weights."""
    check_no_measurements(y, owner)
    labels = check_labels(y, n_rows, owner)
    return labels, None if sample_weight is None else _weights_of_rows(sample_weight, n_rows, owner)


def as_numbers(values: np.ndarray) -> np.ndarray:
    """Return an array of objects that holds numbers and at least one fraction as float64, any other as it is."""
    if values.dtype != object or not all(isinstance(value, Real) for value in values.flat):
        return values
    return values if all(isinstance(value, Integral) for value in values.flat) else values.astype(np.float64)


def check_no_measurements(y: Any, owner: str) -> None:
    """Raise ValueError if y holds numbers that cannot be classes: fractions or infinities."""
    values = as_numbers(np.asarray(y))
    if values.dtype.kind != "f" or np.isnan(values).any():
        return
    if np.isinf(values).any():
        raise InputError(
            f"Input y contains infinity or a value too large: {owner} needs a class for every row. "
            "Hint: drop the rows whose class is not known."
        )
    if (values != np.rint(values)).any():
        raise InputError(
            f"Unknown label type: {owner} needs classes, but y holds numbers with fractions. "
            "Hint: turn the outcome into a few classes, for example with numpy.digitize."
        )


def check_classes(labels: np.ndarray, pos_label: Any, owner: str) -> tuple[np.ndarray, int]:
    """Return both classes, sorted, and the position of the positive one: that of a usual pair, else the later."""
    classes = check_two_labels(labels, owner)
    if len(classes) > 2:
        raise InputError(
            f"Only binary classification is supported. The type of the target is multiclass: {owner} found "
            f"{len(classes)} label values in y, expected 2. Hint: pass y == value for the outcome you look for."
        )
    if pos_label is None:
        pos_label = default_positive(*classes)
    position = np.flatnonzero(classes == pos_label)
    if len(position) == 0:
        raise InputError(
            f"pos_label={_plain(pos_label)!r} is not a label: y holds {_both(classes)}. "
            "Hint: use one of these, with the same type."
        )
    return classes, int(position[0])


def check_two_labels(labels: np.ndarray, owner: str) -> np.ndarray:
    """Return the distinct labels, sorted; raise ValueError if all are the same."""
    classes = distinct_labels(labels)
    if len(classes) == 1:
        raise InputError(
            f"{owner} needs both classes in y, but {every(len(labels), 'label equals', 'labels equal')} {classes[0]}: "
            "only one class. Hint: check that y is the outcome and these rows hold both; StratifiedKFold keeps both in "
            "every fold."
        )
    return classes


def distinct_labels(labels: np.ndarray) -> np.ndarray:
    """Return the distinct labels, sorted; two numbers are found without sorting all labels."""
    if labels.dtype.kind in "biuf":
        ends = np.unique([labels.min(), labels.max()])
        if np.all((labels == ends[0]) | (labels == ends[-1])):
            return ends
    return np.unique(labels)


def check_weights(sample_weight: Any, is_positive: np.ndarray, owner: str) -> np.ndarray | None:
    """Return the weights as float64, finite and non-negative, with some weight in both classes; None if all are 1."""
    if sample_weight is None:
        return None
    weight = _weights_of_rows(sample_weight, len(is_positive), owner)
    for kind, rows in (("positive", is_positive), ("negative", ~is_positive)):
        if weight[rows].sum() <= weight.sum() * NEGLIGIBLE:
            raise InputError(
                f"{owner} needs both classes, but the weight of every {kind} row is zero: only one class is left. "
                "Hint: give some rows of each class a weight."
            )
    return None if np.all(weight == 1.0) else weight


def _weights_of_rows(sample_weight: Any, n_rows: int, owner: str) -> np.ndarray:
    """Return one weight per row as float64, finite and non-negative, some above zero."""
    try:
        weight = np.asarray(_to_numpy(sample_weight), np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(
            f"{owner} needs weights that are numbers, but sample_weight holds something else. "
            "Hint: convert the column first."
        ) from None
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.ndim != 1:
        raise InputError("Sample weights must be 1D array or scalar, one weight per row.")
    if len(weight) != n_rows:
        raise InputError(
            f"{owner} needs one weight per row, but sample_weight has {len(weight):,} for "
            f"{plural(n_rows, 'row')}. Hint: were rows dropped from only one of X and sample_weight?"
        )
    if not np.isfinite(weight).all():
        raise InputError(
            "sample_weight holds NaN or infinite values, expected finite numbers. Hint: fill or clip them."
        )
    n_negative = int((weight < 0).sum())
    if n_negative:
        raise InputError(
            f"sample_weight must not be negative, but {plural(n_negative, 'weight')} "
            f"{'is' if n_negative == 1 else 'are'}. Hint: use 0 to leave a row out."
        )
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not total <= LARGEST_TOTAL or 0 < total < 1 / LARGEST_TOTAL:
        much = "much" if total > 1 else "little"
        raise InputError(
            f"sample_weight adds up to {total:.4g}, which is too {much}, expected {1 / LARGEST_TOTAL:g} to "
            f"{LARGEST_TOTAL:g}. Hint: divide the weights by their mean."
        )
    if not weight.any():
        raise InputError(
            f"{owner} needs rows with a weight above zero, but {every(len(weight), 'weight is', 'weights are')} 0. "
            "Hint: leave sample_weight out to give all rows weight 1."
        )
    return weight


def warn_of_light_weights(n_cases: float, min_samples_leaf: int, weight: np.ndarray | None) -> None:
    """Warn if the weights add up to too few cases for any condition."""
    if (
        weight is not None
        and n_cases < 2 * min_samples_leaf
        and np.count_nonzero(weight) >= max(20, 2 * min_samples_leaf)
    ):
        warn_caller(
            f"The weights add up to {n_cases:.4g} cases, too few for min_samples_leaf={min_samples_leaf}: the model "
            "will have no conditions. Hint: weights are copies of rows; scale them so that a typical case has weight 1."
        )


def warn_of_common_text_label(classes: np.ndarray, positive_index: int, pos_label: Any, rate: float) -> None:
    """Warn if the default positive label, one of two words, is the common one."""
    if pos_label is None and classes.dtype.kind in "OU" and rate > 0.6:
        positive, other = str(classes[positive_index]), str(classes[1 - positive_index])
        why = "" if usual_positive([other, positive]) else ", as the later of the two"
        warn_caller(
            f"{positive!r} is taken as the positive label{why}, but {100 * rate:.0f} % of the cases have it. "
            f"Hint: pass pos_label={other!r} if the other one is the rare outcome."
        )


def check_finite(matrix: np.ndarray, columns: Sequence[Column]) -> None:
    """Raise ValueError, naming the first column, if an encoded table holds infinite values."""
    for rows in row_blocks(*matrix.shape):
        infinite = np.isinf(matrix[rows])
        if infinite.any():
            name = columns[int(np.argmax(infinite.any(axis=0)))].name
            raise InputError(
                f"Column {name!r} of X holds infinite values (infinity), expected finite numbers or NaN for missing. "
                "Hint: replace them with NaN, or clip the column."
            )


def _count_missing(labels: np.ndarray) -> int:
    if labels.dtype.kind == "f":
        return int(np.isnan(labels).sum())
    return sum(map(is_missing, labels.tolist())) if labels.dtype.kind == "O" else 0


def _to_numpy(values: Any) -> np.ndarray:
    """Return a list, a numpy array or a column of any data frame library as an array."""
    if hasattr(values, "to_numpy") and not hasattr(values, "to_pylist"):
        values = values.to_numpy()
    return np.asarray(values)  # also for a pyarrow column, even with missing values


def check_known_labels(labels: np.ndarray, classes: np.ndarray, owner: str) -> None:
    """Raise ValueError at a label that the model was not trained with."""
    unknown = sorted(set(np.unique(labels).tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise InputError(
            f"{owner} found the label {unknown[0]!r} in y, but the model was trained with {_both(classes)}. "
            "Hint: use the labels of the training data."
        )


def positives_of(model: Any, y: Any, n_rows: int, owner: str, *, need_both: bool = True) -> np.ndarray:
    """Return which outcomes are positive for a fitted model, bool (n_rows,).

    ValueError for labels that were not in training and, unless `need_both` is False, for labels of one class alone.
    """
    labels = check_labels(y, n_rows, owner)
    check_known_labels(labels, model.classes_, owner)
    if need_both:
        check_two_labels(labels, owner)
    return labels == model.classes_[model.positive_index_]


def missing_columns_text(missing: Sequence[str], known: Sequence[str], where: str) -> str:
    """Return the message for columns that a table lacks; those with a similar name in the table come first.

    Examples
    --------
    >>> missing_columns_text(["turnover"], ["age", "TURNOVER"], "X").partition("(")[2]
    "2 columns read). Hint: did you mean 'TURNOVER'?"
    >>> missing_columns_text(["turnover", "sector"], ["age", "TURNOVER"], "X").partition(":")[0]
    '2 columns were used to train this model but are missing from X (2 columns read)'
    """
    read = f"({plural(len(known), 'column')} read)"
    if len(missing) == 1:
        hint = did_you_mean(missing[0], known)
        return f"Column {missing[0]!r} was used to train this model but is missing from {where} {read}.{hint}"
    trained = set(missing)
    free = [name for name in known if name not in trained]
    matches = {name: nearest_name(name, free) for name in missing[:MATCHED]}
    similar = [f"{match!r} for {name!r}" for name, match in matches.items() if match is not None]
    shown = ", ".join(map(repr, missing[:NAMED])) + (
        f" and {len(missing) - NAMED:,} more" if len(missing) > NAMED else ""
    )
    hint = f" Hint: did you mean {', '.join(similar[:NAMED])}?" if similar else ""
    return f"{len(missing):,} columns were used to train this model but are missing from {where} {read}: {shown}.{hint}"


def _plain(label: Any) -> Any:
    """Return a label as a Python value, for its repr."""
    return label.item() if isinstance(label, np.generic) else label


def _both(classes: np.ndarray) -> str:
    return " and ".join(repr(_plain(label)) for label in classes)
