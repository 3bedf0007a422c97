"""What is taken from scikit-learn's private modules, all in one place: a release that moves a name is mended here."""

from __future__ import annotations

from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._param_validation import HasMethods, Interval, InvalidParameterError, Options, StrOptions
from sklearn.utils.validation import _num_samples as n_samples

__all__ = [
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "Options",
    "StrOptions",
    "n_samples",
    "take_rows",
]
