"""`TableReader`: an estimator that is fitted on one table and reads others like it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from narwhals.dependencies import is_polars_lazyframe
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from toprank._core.threads import Threads
from toprank.data.cases import Cases
from toprank.data.column_roles import learn_columns
from toprank.data.encoding import encode
from toprank.data.frames import backend_of, check_names, names_of
from toprank.data.shared_table import SharedTable, plain_table
from toprank.data.table import Table, read_table
from toprank.errors import InputError, InputTypeError
from toprank.files.model_file import save_model
from toprank.rankers.validation import check_finite, check_no_iterator, check_no_truth_values, missing_columns_text
from toprank.tree.columns import Column, with_usual

OF_A_PART = ("_is_prepared", "_table_counts")
"""Attributes that only nested models have."""


class TableReader(BaseEstimator):
    """Base of every estimator: what is known of the training table, and how new tables are matched to it."""

    _start_params: tuple[str, ...] = ()  # parameters that may be a model to start from

    columns_: list[Column]  # names and categories of the columns of the encoded matrix
    left_out_: dict[str, str]  # columns that are not used as features, and why
    categorical_features: Any
    keep_columns: Any
    _backend: str | None
    _input_names: list[str]

    def _validate_params(self) -> None:
        super()._validate_params()
        check_no_truth_values(self)
        check_no_iterator(self)

    def _reset(self) -> None:
        """Drop all fitted attributes."""
        for name in [name for name in vars(self) if name.endswith("_") or name in OF_A_PART]:
            delattr(self, name)

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Check parameters and drop all fitted attributes; those of a fit that fails, too.

        Linear algebra keeps to one thread: matrices are small here, and several threads take longer than one to
        multiply them, much longer on a busy machine. The order of sums does not depend on the machine either.
        """
        self._validate_params()
        self._reset()
        try:
            with threadpool_limits(1, "blas"):
                yield
        except BaseException:
            self._reset()
            raise

    def _read(self, X: Any, reset: bool) -> Table:
        """Table of X, its columns checked against training unless `reset`."""
        X = plain_table(X)
        if is_polars_lazyframe(X):
            raise InputTypeError("X is a LazyFrame, expected a table in memory. Hint: pass X.collect().")
        check_names(X)
        if backend_of(X) is None:
            if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 0:
                raise self._no_columns(len(X))
            X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False, accept_sparse=False)
            if X.dtype.kind in "mM":
                raise InputTypeError(
                    f"X holds dates ({X.dtype}), expected numbers or text. Hint: pass them in a data frame."
                )
            if X.dtype.kind not in "fiuO":
                X = check_array(X, dtype=object if X.dtype.kind in "USb" else np.float64, ensure_all_finite=False)
            if X.dtype.kind in "iu" or X.dtype == np.float16:
                X = X.astype(np.float64)
        else:
            self._check_frame(X, reset)
        table = read_table(X)
        if reset:
            self._input_names, self._backend = table.names, backend_of(X)
        elif table.array is not None or not self._is_read_by_name(table.names):
            table = replace(table, names=self._input_names)
        if len(table) == 0:
            raise InputError(
                f"Found array with 0 sample(s) (shape=(0, {len(table.names)})) while a minimum of 1 is required: "
                f"{type(self).__name__} needs rows. Hint: did a filter drop them all?"
            )
        return table

    def _check_frame(self, X: Any, reset: bool) -> None:
        """Return the column names of a data frame: at least one, and all that training used, in any order."""
        names = names_of(X)
        if not names:
            raise self._no_columns(len(X))
        if reset or not self._is_read_by_name(names):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return
        present, left_out = set(names), getattr(self, "left_out_", {})
        missing = [name for name in self._input_names if name not in present and name not in left_out]
        if missing:
            raise InputError(missing_columns_text(missing, names, "X"))

    def _is_read_by_name(self, names: list[str]) -> bool:
        """Return True if columns with these names are matched by name; for a model fitted on an array, by position.

        scikit-learn keeps only names that are strings; others are matched by name if all of them are present.
        """
        is_named = self._backend is not None and set(names) >= set(self._input_names)
        return hasattr(self, "feature_names_in_") or is_named

    def _no_columns(self, n_rows: int) -> ValueError:
        return InputError(
            f"X has 0 feature(s) (shape=({n_rows}, 0)) while a minimum of 1 is required: {type(self).__name__} needs "
            "columns. Hint: did a selection drop them all?"
        )

    def _encode(self, X: Any) -> np.ndarray:
        """Return the matrix of new rows, checked against training."""
        check_is_fitted(self)
        shared, columns = X if isinstance(X, SharedTable) else None, tuple(self.columns_)
        found = shared.encoded.find(columns, None) if shared else None
        if found is not None:
            return found
        matrix = encode(self._read(X, reset=False), self.columns_)
        check_finite(matrix, self.columns_)
        if shared:
            shared.encoded.keep(columns, None, matrix)
        return matrix

    def _learn_table(
        self, table: Table, is_positive: np.ndarray, weight: np.ndarray | None, threads: Threads, rows: Any = None
    ) -> Any:
        """Learn the columns of a training table; return it, or some of its rows, in the form for the fit."""
        self.columns_, self.left_out_ = learn_columns(table, self.categorical_features, self.keep_columns)
        matrix = encode(table, self.columns_)
        data = self._make_cases(matrix if rows is None else matrix[rows], is_positive, weight, threads)
        self.columns_ = with_usual(data.columns, data.X, is_positive, weight)
        self.data_hash_ = data.fingerprint()
        return data

    def _make_cases(
        self, matrix: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None, threads: Threads
    ) -> Cases:
        """Return the encoded rows in the form that the model is fitted on."""
        check_finite(matrix, self.columns_)
        has_missing = np.isnan(matrix).any(axis=0)
        columns = [replace(c, has_missing=bool(m)) for c, m in zip(self.columns_, has_missing, strict=True)]
        return Cases(matrix, is_positive, weight, columns)

    def _params_of_file(self) -> dict[str, Any]:
        """Return the parameters that a file keeps; a fitted model that the fit started from is left out."""
        given = self.get_params(deep=False)
        return {name: None if name in self._start_params and hasattr(value, "columns_") else value
                for name, value in given.items()}  # fmt: skip

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, completely or not at all; `toprank.load` reads it."""
        check_is_fitted(self)
        save_model(self, Path(path))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def as_read_by(model: Any, X: Any) -> Any:
    """A table as a model reads it: estimators of others know no `SharedTable`."""
    return X if isinstance(model, TableReader) else plain_table(X)
