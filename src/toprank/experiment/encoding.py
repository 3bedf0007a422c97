"""`make_encoder`: turn a frame into numbers, learning from training rows only."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from toprank.experiment.registry import Reads

MAX_CATEGORIES = 100
"""Maximum number of columns that one categorical column may become; the rarest categories share one."""


def make_encoder(reads: Reads) -> BaseEstimator:
    """Transformer from a data frame to what a method reads.

    Numbers: numeric columns first, missing values replaced by the median and flagged in a column of their own; then one
    column per category, with missing values as a category. Scaled: the numeric columns at mean 0 and deviation 1.
    """
    return FunctionTransformer() if reads == "frame" else FrameEncoder(is_scaled=reads == "scaled")


class FrameEncoder(TransformerMixin, BaseEstimator):
    """Numbers of a data frame: numeric columns, flags of missing values, one column per category."""

    def __init__(self, is_scaled: bool = False):
        self.is_scaled = is_scaled

    def fit(self, X: Any, y: Any = None) -> FrameEncoder:
        """Learn medians, scales and categories of the training rows."""
        numeric = [name for name in X.columns if _is_numeric(X[name])]
        others = [name for name in X.columns if name not in numeric]
        steps: list[Any] = [SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)]
        if self.is_scaled:
            steps.append(StandardScaler())
        one_hot = OneHotEncoder(
            handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES, sparse_output=False
        )
        self.transformer_ = ColumnTransformer([
            ("numbers", make_pipeline(*steps), numeric),
            ("categories", make_pipeline(FunctionTransformer(_as_text), one_hot), others),
        ])  # fmt: skip
        self.transformer_.set_output(transform="default").fit(X)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the numbers as float64 in C order."""
        return np.ascontiguousarray(self.transformer_.transform(X), np.float64)


def _is_numeric(column: Any) -> bool:
    return column.dtype.kind in "fiu"


def _as_text(frame: Any) -> Any:
    """Categories as text; missing values become the category "(missing)"."""
    return frame.astype(object).where(frame.notna(), "(missing)").astype(str)
