"""Checks of the arguments of a measure: labels, scores, weights, amounts, choices.

Owns every error message about the rows. Returns plain arrays of one length that need no further check, without rows of
weight zero.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError, InputTypeError
from toprank.metrics.labels import default_positive
from toprank.words.counts import every, plural


@dataclass(frozen=True)
class CheckedRows:
    """Rows ready to be measured; all arrays have the shape (n,)."""

    positive: NDArray[np.bool_]
    score: NDArray[Any]
    weight: NDArray[np.float64]
    amount: NDArray[np.float64]
    is_weighted: bool

    @property
    def total(self) -> float:
        """The number of cases, counting copies."""
        return float(self.weight.sum())

    @property
    def total_positive(self) -> float:
        """The number of positive cases, counting copies."""
        return float(self.weight[self.positive].sum())


def check_rows(
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    amount: ArrayLike | None = None,
    pos_label: Any = None,
    caller: str,
) -> CheckedRows:
    """Return the checked rows; without weights or amounts every row counts once and is worth 1."""
    positive = mark_positives(y_true, pos_label=pos_label, caller=caller)
    score = check_score(score, "score", len(positive), caller=caller)
    weight = check_weight(sample_weight, len(positive), caller=caller)
    n = len(positive)
    amount = np.ones(n) if amount is None else check_nonnegative(amount, "amount", n, caller=caller)
    kept = weight > 0
    if not kept.all():
        positive, score, weight, amount = positive[kept], score[kept], weight[kept], amount[kept]
        check_both_classes_weigh(positive, caller)
    return CheckedRows(positive, score, weight, amount, is_weighted=sample_weight is not None)


def as_vector(values: ArrayLike, name: str, *, caller: str, n: int | None = None) -> NDArray[Any]:
    """Return `values` as a one-dimensional array, of length `n` if given."""
    array = np.asarray(values)
    if array.ndim != 1:
        hint = (
            "pass one column, for instance predict_proba(X)[:, 1]."
            if name.startswith("score")
            else "pass a list, an array or one column of a table."
        )
        raise InputError(
            f"'{name}' of {caller} must have one dimension. Got an array of shape {array.shape}. Hint: {hint}"
        )
    if n is not None and len(array) != n:
        raise InputError(
            f"'{name}' of {caller} must have one value per row of y_true ({plural(n, 'row')}). Got "
            f"{plural(len(array), 'value')}. Hint: check that both come from the same table."
        )
    return array


def mark_positives(y_true: ArrayLike, *, pos_label: Any = None, caller: str) -> NDArray[np.bool_]:
    """Return True where the label is the positive one."""
    labels = as_vector(y_true, "y_true", caller=caller)
    low, high = two_classes(labels, caller=caller)
    return labels == choose_pos_label(pos_label, low, high, caller=caller)


def choose_pos_label(pos_label: Any, low: Any, high: Any, *, caller: str) -> Any:
    """Return the positive label: the one given, or that of a usual pair, else the larger."""
    if pos_label is None:
        return default_positive(low, high)
    if pos_label not in (low, high):
        raise InputError(
            f"The 'pos_label' parameter of {caller} must be one of the labels in y_true, {low!r} or "
            f"{high!r}. Got {pos_label!r} instead."
        )
    return pos_label


def two_classes(labels: NDArray[Any], *, caller: str) -> tuple[Any, Any]:
    """Return the smaller and the larger label, or raise an error that says why there are not two."""
    if len(labels) == 0:
        raise InputError(f"{caller} needs at least one row of each class, but y_true is empty. Hint: check the filter.")
    found = _distinct_numbers(labels, caller) if labels.dtype.kind in "biuf" else _distinct_objects(labels, caller)
    if len(found) == 1:
        raise InputError(
            f"{caller} needs both classes in y_true, but {every(len(labels), 'label equals', 'labels equal')} "
            f"{found[0]!r}. Hint: check that these rows hold both outcomes; StratifiedKFold keeps both in every fold."
        )
    if len(found) > 2:
        shown = ", ".join(repr(label) for label in found[:5])
        raise InputError(
            f"{caller} needs two distinct labels in y_true, but found more ({shown}). "
            "Hint: compare with the positive label first, as in y_true == 'fraud'."
        )
    return found[0], found[1]


def _distinct_numbers(labels: NDArray[Any], caller: str) -> list[Any]:
    """Return the distinct labels, sorted; only some if there are more than two. Cost: linear."""
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise _missing_labels(int(np.isnan(labels).sum()), caller)
    low, high = labels.min(), labels.max()
    other = labels[(labels != low) & (labels != high)]
    found = [low, high] if low != high else [low]
    if len(other):
        found += [*np.unique(other[:1000])]
    return sorted(label.item() for label in found)


def _distinct_objects(labels: NDArray[Any], caller: str) -> list[Any]:
    if labels.dtype.kind not in "OUST":
        raise InputTypeError(
            f"{caller} needs labels that are numbers, booleans or strings in y_true. Got dtype {labels.dtype} instead."
        )
    values = labels.tolist()
    try:
        found = set(values)
        if not any(is_missing(label) for label in found):
            return sorted(found)
    except TypeError:  # lists and the like, or numbers next to strings
        kinds = ", ".join(sorted({type(label).__name__ for label in values}))
        raise InputTypeError(
            f"{caller} needs labels of one type in y_true. Got a mixture of {kinds}. Hint: convert the column first."
        ) from None
    raise _missing_labels(sum(map(is_missing, values)), caller)


def is_missing(label: Any) -> bool:
    """Return True for None and for what differs from itself, such as NaN and NaT."""
    return label is None or type(label).__name__ == "NAType" or bool(label != label)


def _missing_labels(n_missing: int, caller: str) -> ValueError:
    return InputError(
        f"{caller} needs a label for every row of y_true, but {n_missing:,} are missing (NaN or "
        "None). Hint: drop the cases whose outcome is unknown."
    )


def check_score(score: ArrayLike, name: str, n: int, *, caller: str) -> NDArray[Any]:
    """Return the scores in their own dtype, so that no two of them become equal; infinities are allowed."""
    array = as_vector(score, name, caller=caller, n=n)
    array = _as_numbers(array, name, caller, keep="iuf")
    if array.dtype.kind == "f" and np.isnan(array).any():
        is_nan = np.isnan(array)
        raise InputError(
            f"'{name}' of {caller} must be free of NaN, but {int(is_nan.sum()):,} of {n:,} scores are NaN "
            f"(the first in row {int(is_nan.argmax())}). Hint: give cases without a score the lowest one."
        )
    return array


def _as_numbers(array: NDArray[Any], name: str, caller: str, keep: str) -> NDArray[Any]:
    if array.dtype.kind in keep:
        return array
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    try:
        if array.dtype.kind not in "iufO":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(
            f"'{name}' of {caller} must be numbers. Got dtype {array.dtype} instead. Hint: convert the column first."
        ) from None


def check_weight(sample_weight: ArrayLike | None, n: int, *, caller: str) -> NDArray[np.float64]:
    """Return the weights as float64, ones by default."""
    if sample_weight is None:
        return np.ones(n)
    weight = check_nonnegative(sample_weight, "sample_weight", n, caller=caller)
    if not weight.any():
        raise InputError(
            f"'sample_weight' of {caller} must be positive for some row, but {every(n, 'weight is', 'weights are')} 0. "
            "Hint: leave sample_weight out to count every row once."
        )
    return weight


def check_nonnegative(values: ArrayLike, name: str, n: int, *, caller: str) -> NDArray[np.float64]:
    """Return the values as float64, all finite and at least 0."""
    array = _as_numbers(as_vector(values, name, caller=caller, n=n), name, caller, keep="")
    array = array.astype(np.float64, copy=False)
    is_bad = ~(np.isfinite(array) & (array >= 0))
    if is_bad.any():
        row, n_bad = int(is_bad.argmax()), int(is_bad.sum())
        raise InputError(
            f"'{name}' of {caller} must be finite and at least 0, but {n_bad:,} of {plural(n, 'value')} "
            f"{'is' if n_bad == 1 else 'are'} not (the first in row {row}: {array[row]}). Hint: use 0 for a row that "
            "should not count."
        )
    return array


def check_both_classes_weigh(positive: NDArray[np.bool_], caller: str) -> None:
    """Raise if the rows of positive weight are all of one class."""
    if positive.all() or not positive.any():
        side = "negative" if positive.all() else "positive"
        raise InputError(
            f"{caller} needs both classes in y_true, but every {side} row has sample_weight 0. Hint: check "
            "sample_weight."
        )


def check_choice(value: Any, name: str, choices: Sequence[str], *, caller: str) -> None:
    """Raise if `value` is not one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        shown = ", ".join(repr(choice) for choice in choices)
        raise InputError(f"The '{name}' parameter of {caller} must be one of {shown}. Got {value!r} instead.")


def shown(values: Any) -> str:
    """Return what was given, cut if it is long, for an error message."""
    text = repr(values)
    return text if len(text) <= 60 else text[:57] + "..."


def read_only(values: Any) -> NDArray[np.float64]:
    """Return a copy of the values that cannot be changed."""
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


def is_int(value: Any) -> bool:
    """Return True for ints of Python and numpy, but not for booleans."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """Return True for ints and floats of Python and numpy, but not for booleans."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_level(level: Any, *, caller: str) -> float:
    """Return the confidence level as a float strictly between 0 and 1."""
    if not is_real(level) or not 0 < level < 1:
        raise InputError(
            f"The 'level' parameter of {caller} must be a float in the range (0, 1). Got {level!r} instead. "
            "Hint: 95 % is 0.95."
        )
    return float(level)


def check_count(value: Any, name: str, *, caller: str, low: int = 1, high: float = np.inf) -> int:
    """Return `value` as an int in [low, high]."""
    if not is_int(value) or not low <= value <= high:
        upper = "inf)" if high == np.inf else f"{high:,}]"
        raise (InputError if is_int(value) else InputTypeError)(
            f"The '{name}' parameter of {caller} must be an int in the range [{low}, {upper}. Got {value!r} instead."
        )
    return int(value)
