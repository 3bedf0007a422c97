"""`AdditiveRanker`: a ranker whose score is a sum of trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.encoding import original_values
from toprank.explain import Reason, VoteExplanation, explain_sums, sum_reasons
from toprank.explain.values import Originals
from toprank.files.model_file import with_prefix, without_prefix
from toprank.rankers.base import Ranker
from toprank.tree.additive import AdditiveTrees
from toprank.tree.columns import Column

COVER_ROWS = 20_000
"""Training rows, drawn at random, that explanations take means over."""

OF_READABLE_MODELS = ("rules", "rule_list", "to_text")
"""Methods of models that people read; asked for here, they get a sentence."""


class AdditiveRanker(Ranker):
    """Base of the rankers that add up the values of leaves; a subclass grows the trees.

    Reasons are exact Shapley values of the sum.
    """

    _fits_training_closely = True

    trees_: AdditiveTrees

    # --- scoring and explaining ---------------------------------------------------------------------------------

    def _score_rows(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        return self.trees_.decision_function(matrix, threads)

    def _reasons(
        self, matrix: np.ndarray, n_reasons: int, originals: Originals, gain: np.ndarray | None
    ) -> list[list[Reason]]:
        return sum_reasons(*self._score_parts(matrix), n_reasons, originals, gain)

    def _score_parts(self, matrix: np.ndarray) -> tuple[np.ndarray, list[Column], np.ndarray]:
        """What each column adds to the score of encoded rows, the columns, and their values: (n, n_columns) both."""
        return self.trees_.contributions(matrix), self.columns_, matrix

    def _contributions(self, matrix: np.ndarray) -> np.ndarray | None:
        found, columns, _ = self._score_parts(matrix)
        return found if len(columns) == matrix.shape[1] else None  # the score of another model is no column

    def explain(self, X: Any) -> list[VoteExplanation]:
        """Explain the score of each row: what each column adds to it, as exact Shapley values of the trees."""
        matrix = self._encode(X)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            score = self._score_rows(matrix, threads)
        originals, n_trees = original_values(X, self._input_names), len(self.trees_)
        return explain_sums(*self._score_parts(matrix), score, self.rates_, self.base_rate_, n_trees, originals)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column in the gain of all conditions, float64 (n_features,); sums to 1."""
        check_is_fitted(self)
        return self.trees_.importances()

    def __getattr__(self, name: str) -> Any:
        own = type(self).__name__
        if name in OF_READABLE_MODELS:
            raise AttributeError(
                f"{own} has no {name!r}: a sum of many trees cannot be read. Hint: explain and top_k give the reasons "
                "of each case, summary the main columns; RedFlags, Scorecard and MetaAP are models to read."
            )
        raise AttributeError(f"{own!r} object has no attribute {name!r}")

    def _figures(self) -> dict[str, Any]:
        inner = ~self.trees_.is_leaf
        return {"n_leaves": self.trees_.n_leaves, "n_trees": len(self.trees_), "n_conditions": int(inner.sum())}

    def _plain_parts(self) -> dict[str, Any]:
        return {"trees": {name: array.tolist() for name, array in self.trees_.to_arrays().items()}}

    def _to_arrays(self) -> dict[str, np.ndarray]:
        return super()._to_arrays() | self._trees_to_arrays()

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self._trees_from_arrays(arrays)

    def _trees_to_arrays(self) -> dict[str, np.ndarray]:
        return with_prefix(self.trees_.to_arrays(), "trees_")

    def _trees_from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        self.trees_ = AdditiveTrees.from_arrays(without_prefix(arrays, "trees_"), self.columns_)
