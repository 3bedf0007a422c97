"""`WarmBooster`: a booster that may start from the scores of another model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from toprank._core.threads import Threads
from toprank.data.cases import Cases
from toprank.files.model_file import with_prefix, without_prefix
from toprank.rankers.additive_ranker import COVER_ROWS
from toprank.rankers.base import Ranker
from toprank.rankers.boosting.boosted_ranker import Followed
from toprank.rankers.boosting.booster import Booster, rows_of
from toprank.rankers.boosting.losses import RowSums
from toprank.rankers.boosting.rounds import Rounds
from toprank.rankers.boosting.start import InitFits, Start
from toprank.rankers.unseen import Fold, Unseen
from toprank.tree.columns import Column


class WarmBooster(Booster):
    """Base of the boosters with `init`: trees are added to the log-odds that another model gives.

    Trees learn from out-of-fold log-odds, so that they do not trust what `init` only remembers; new rows get those of
    `init` fitted on all rows. The folds repeat the whole procedure, so that rates are those of new cases.
    """

    _start_params = ("init",)
    init: Any
    start_: Start | None  # the fitted `init` and its scale
    _fits: InitFits | None = None

    # --- fitting ------------------------------------------------------------------------------------------------

    def _fit_model(self, data: Cases, threads: Threads) -> Unseen | None:
        self.start_ = None
        init = self._init_to_fit()
        self._fits = None if init is None else InitFits(self, init, data, threads)
        try:
            return super()._fit_model(data, threads)
        finally:
            del self._fits

    def _init_to_fit(self) -> Any:
        """The unfitted model to start from; None to start from scratch."""
        return self.init

    def _grow(self, data: Cases, n_rounds: int, threads: Threads) -> None:
        super()._grow(data, n_rounds, threads)
        if self.start_ is not None:
            start, rows = self.start_, data.sample(COVER_ROWS)
            parts = data.X[rows], data.is_positive[rows], data.all_weights[rows]
            self.start_ = self._finish(lambda: start.with_usual(*parts, threads))

    def _follow_folds(self, data: Cases, folds: list[Fold], threads: Threads, label: str = "folds") -> Followed:
        if self._fits is not None:
            self._fits.folds = folds
        return super()._follow_folds(data, folds, threads, label)

    def _start(
        self, data: Any, rows: np.ndarray, weight: np.ndarray, threads: Threads, others: np.ndarray | None = None
    ) -> Rounds:
        if self._fits is None:
            return super()._start(data, rows, weight, threads, others)
        start, margin = self._fits.start(rows, weight)
        known, held_out = rows_of(data, rows, weight, margin), None
        if others is not None:
            held_out = rows_of(data, others, weight, start.margin(data.X[others], threads))
        growing = self._rounds(known, self._settings(), held_out, RowSums(threads))
        growing.start = start
        return growing

    def _take(self, growing: Any) -> None:
        super()._take(growing)
        self.start_ = growing.start

    def _scorer(self, growing: Any, n_rounds: int) -> Callable[[np.ndarray], np.ndarray]:
        trees, start = super()._scorer(growing, n_rounds), growing.start
        return trees if start is None else lambda X: start.margin(X, Threads()) + trees(X)

    # --- scoring and explaining ---------------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column in the gain of all conditions, float64 (n_features,); sums to 1.

        The trees of an `init` that adds up trees count, too; each of the two sums by how far it spreads cases apart.
        """
        own = super().feature_importances_
        if self.start_ is None or not self.start_.is_sum:
            return own
        model, spread = self.start_.model, self.trees_.spread()
        both = self.start_.slope * model.trees_.spread() * model.feature_importances_ + spread * own
        return both / both.sum() if both.any() else both

    @property
    def init_(self) -> Any:
        """The fitted `init`; None without one."""
        check_is_fitted(self)
        return None if self.start_ is None else self.start_.model

    def _score_rows(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        score = super()._score_rows(matrix, threads)
        return score if self.start_ is None else self.start_.margin(matrix, threads) + score

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the scores after the first tree, the first two, and so on; float64 (n,) each."""
        matrix = self._encode(X)
        margin = 0.0 if self.start_ is None else self.start_.margin(matrix, Threads())
        for score in self.trees_.staged(matrix):
            yield margin + score

    def _score_parts(self, matrix: np.ndarray) -> tuple[np.ndarray, list[Column], np.ndarray]:
        """Also those of `init`: by column if it adds up trees, else one more column, its score."""
        found, columns, values = super()._score_parts(matrix)
        start = self.start_
        if start is None:
            return found, columns, values
        if start.is_sum:
            own, columns, values = start.model._score_parts(matrix)
            own *= start.slope
            own[:, : found.shape[1]] += found
            return own, columns, values
        score = start.score(matrix, Threads())
        found = np.column_stack((found, start.log_odds(score) - start.mean))
        return found, [*columns, start.column], np.column_stack((values, score))

    def _size_in_words(self) -> str:
        if self.start_ is None or self.start_.slope == 0:  # without folds it says nothing of a case
            return super()._size_in_words()
        model = self.start_.model
        size = f" ({model._size_in_words()})" if hasattr(model, "_size_in_words") else ""
        return f"{super()._size_in_words()}, added to {self.start_.name}{size}"

    def _figures(self) -> dict[str, Any]:
        own = super()._figures()
        if self.start_ is None or not self.start_.is_sum:
            return own
        return {name: count + self.start_.model._figures()[name] for name, count in own.items()}

    # --- files --------------------------------------------------------------------------------------------------

    def _plain_parts(self) -> dict[str, Any]:
        """Return XGBoost's JSON and the `init`.

        The score of a row is the sum of the trees, plus slope * score + intercept of `init`; where `least` is above 0,
        the log-odds of its score, clipped to [least, 1 - least], take the place of the score.
        """
        parts, start = super()._plain_parts(), self.start_
        if start is None:
            return parts
        model = start.model.to_plain() if isinstance(start.model, Ranker) else {"class": start.name}
        scale = {"slope": start.slope, "intercept": start.intercept, "least": start.least}
        return parts | {"init": {"model": model, **scale}}

    def _to_arrays(self) -> dict[str, np.ndarray]:
        start = {} if self.start_ is None else self.start_.to_arrays()
        return super()._to_arrays() | with_prefix(start, "init_")

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        found = without_prefix(arrays, "init_")
        self.start_ = Start.from_arrays(found, self.columns_) if found else None
        if self.start_ is not None and not isinstance(self.init, str):
            self.init = clone(self.start_.model)  # also if it was fitted, which files leave out
