"""`PointsRanker`: a ranker whose score is a sum of points, chosen among candidates by held-out cases."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank._compat import Interval, StrOptions
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.binned_cases import BinnedCases
from toprank.data.encoding import original_values
from toprank.data.frames import make_frame
from toprank.errors import InputError
from toprank.explain.rows import ScoreExplanation, Step, figures_of, step_lines, value_steps
from toprank.files.model_file import with_prefix, without_prefix
from toprank.metrics import average_precision
from toprank.rankers.base import RANKER_CONSTRAINTS, Ranker
from toprank.rankers.greedy.monotone import MONOTONIC_CST, read_directions
from toprank.rankers.growth import FOLD_CONSTRAINTS
from toprank.rankers.points.additive import Rows, Term, make_terms
from toprank.rankers.points.card import Card
from toprank.rankers.points.card_text import FULL_TEXT, card_columns
from toprank.rankers.points.card_tree import CardTree
from toprank.rankers.points.pages import OVERVIEW_LINES, START, card_overview, card_page
from toprank.rankers.unseen import Fold, HeldOut, Unseen, by_folds, held_out_folds
from toprank.rankers.validation import check_finite
from toprank.words.counts import plural
from toprank.words.numbers import number_text

ALPHAS = (100.0, 30.0, 10.0, 3.0, 1.0)
"""Penalties tried by cross-validation, largest first, so that each fit starts from the one before."""

USUAL_ALPHA = 10.0
"""The penalty without folds."""

MAX_BINS = 64
"""Bins of a number in training; its curve has at most 15 knots."""

LEAST_DIFFERENCE = 0.1
"""Bins of a finished card differ by more than this, in log-odds, or become one: 3 points, if 20 double the odds."""

PAYS = 0.5
"""More than a plain card pays if its mean gain in average precision is above this many standard errors."""

SPREAD_ROWS = 20_000
"""Training rows, drawn at random, over which the spread of points is taken."""

POINTS_CONSTRAINTS: dict[str, list[Any]] = {
    **RANKER_CONSTRAINTS,
    "points": [Interval(Integral, 1, None, closed="left"), None],
    "alpha": [Interval(Real, 0, None, closed="neither"), StrOptions({"cv"})],
    "max_features": [Interval(Integral, 1, None, closed="left"), None],
    "max_bins_per_feature": [Interval(Integral, 2, None, closed="left"), None],
    "monotonic_cst": MONOTONIC_CST,
    **FOLD_CONSTRAINTS,
}
"""scikit-learn's checks of the parameters that scorecards share."""


OF_GROUP = "its group"
BETWEEN = "  Inside a range whose points change evenly, points have decimals."


def pays(gain: np.ndarray) -> bool:
    """Whether the mean gain in average precision, given that of each fold, is above half a standard error."""
    error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else 0.0
    return bool(gain.mean() > PAYS * error)


@dataclass(frozen=True)
class PointsExplanation(ScoreExplanation):
    """Why one row has its score: base plus points.

    Attributes
    ----------
    score, rate, lift : float
        As in all explanations; `is_for_new_cases` says which rate it is.
    base : float
        Where points start, with those of the row's leaf.
    steps : tuple of Step
        Columns with their points, most first, without those that have none; base and points add up to the score.
    place : str
        The conditions of the row's leaf, in words; empty without a tree.
    of_place : float
        Points that all cases of the leaf have, part of `base`; 0 without a tree.
    """

    base: float
    steps: tuple[Step, ...]
    place: str = ""
    of_place: float = 0.0
    _nothing: ClassVar[str] = "no value of this case has points"

    def __str__(self) -> str:
        start = self.base - self.of_place
        if not (self.steps or self.place):
            return f"score {number_text(self.score, 6)}, where all cases start: {self._nothing}; {self.rate_text}"
        head = f"score {number_text(self.score, 6)} = {number_text(start, 6)} + points; {self.rate_text}"
        group = Step("", None, self.of_place, f"{OF_GROUP}: {self.place}")
        lines = [head, *step_lines([*([group] if self.place else []), *self.steps])]
        is_whole = start.is_integer() and not all(float(step.contribution).is_integer() for step in self.steps)
        return "\n".join([*lines, *([BETWEEN] if is_whole else [])])


@dataclass(frozen=True)
class FlagsExplanation(PointsExplanation):
    """Why one row has its score with red flags; their steps come among those of columns."""

    _nothing: ClassVar[str] = "no red flag holds, and no value of this case has points"


class PointsRanker(Ranker):
    """Base of scorecards. A subclass fits candidates; folds choose one, and give the hit rates of new cases."""

    _fits_training_closely = True

    points: int | None
    alpha: float | str
    max_features: int | None
    max_bins_per_feature: int | None
    monotonic_cst: Any
    card_: Card
    alpha_: float
    cv_results_: dict[str, np.ndarray]

    # --- fitting ------------------------------------------------------------------------------------------------

    def _make_cases(
        self, matrix: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None, threads: Threads
    ) -> BinnedCases:
        check_finite(matrix, self.columns_)
        return BinnedCases(
            matrix, is_positive, weight, self.columns_, max_bins=MAX_BINS, classes_alike=True, threads=threads
        )

    @property
    def _scale(self) -> float:
        """Points per unit of log-odds."""
        return 1.0 if self.points is None else self.points / math.log(2.0)

    def _finished(self, card: Card) -> Card:
        """A card in log-odds on the scale of its points, whole if asked, and with no more bins than matter."""
        card = card.scaled(self._scale)
        return (card if self.points is None else card.rounded()).simplified(LEAST_DIFFERENCE * self._scale)

    @abstractmethod
    def _candidates(
        self, data: BinnedCases, rows: Rows, terms: list[Term], alphas: Sequence[float]
    ) -> list[Card] | list[CardTree]:
        """Models fitted on the rows, in the order of `_candidate_names`."""

    @abstractmethod
    def _candidate_names(self, alphas: Sequence[float]) -> dict[str, np.ndarray]:
        """What sets the candidates apart, as columns of `cv_results_`."""

    @abstractmethod
    def _plain_candidates(self, n_candidates: int) -> np.ndarray:
        """Positions of the candidates that are plain cards, int64."""

    @abstractmethod
    def _keep(self, chosen: Any, name: Mapping[str, Any]) -> None:
        """Set the fitted attributes, given the candidate and its entries in `_candidate_names`."""

    def _fit_model(self, data: BinnedCases, threads: Threads) -> Unseen | None:
        owner = type(self).__name__
        self._directions = read_directions(self.monotonic_cst, data.columns, data.is_categorical, owner)
        rows = data.once("rows of points", lambda: Rows.from_cases(data))
        folds = held_out_folds(data, self.cv, self.random_state)
        alphas = ALPHAS if self.alpha == "cv" else (float(self.alpha),)
        if not folds and self.alpha == "cv":
            alphas = (USUAL_ALPHA,)
        self.cv_results_ = {}
        best, unseen = -1, None  # without folds, the largest candidate
        if folds:
            best, unseen = self._follow_folds(data, rows, folds, alphas, threads)
        found = self._candidates(data, rows, make_terms(data, rows, self._directions), alphas)
        self._keep(found[best], {name: values[best] for name, values in self._candidate_names(alphas).items()})
        self._set_spread(data)
        return unseen

    def _follow_folds(
        self, data: BinnedCases, rows: Rows, folds: list[Fold], alphas: Sequence[float], threads: Threads
    ) -> tuple[int, Unseen]:
        """Fit all candidates in all folds; return the best one, and the held-out cases.

        Held-out cases are scored by the candidate that the other folds would choose.
        """

        def fit(fold: Fold) -> list[Card] | list[CardTree]:
            inside = rows.with_weight(data, fold.inside_weight)
            return self._candidates(data, inside, make_terms(data, inside, self._directions), alphas)

        models = threads.run(fit, folds)
        precision = np.array([
            [average_precision(data.is_positive[fold.held_out], model.decision_function(data.X[fold.held_out]),
                               sample_weight=fold.weight[fold.held_out], pos_label=True) for model in own]
            for fold, own in zip(folds, models, strict=True)
        ])  # fmt: skip
        self.cv_results_ = self._candidate_names(alphas) | {"mean_test_score": precision.mean(axis=0)}
        parts = []
        for i, (fold, own) in enumerate(zip(folds, models, strict=True)):
            others = np.delete(precision, i, axis=0) if len(folds) > 1 else precision
            parts.append(HeldOut.from_fold(data, fold, own[self._choose(others)].decision_function))
        return self._choose(precision), Unseen(parts, by_folds(len(parts)))

    def _choose(self, precision: np.ndarray) -> int:
        """The best candidate, or the best plain card if more does not pay; `precision` is (n_folds, n_candidates)."""
        mean, plain = precision.mean(axis=0), self._plain_candidates(precision.shape[1])
        card, best = int(plain[np.argmax(mean[plain])]), int(np.argmax(mean))
        return best if pays(precision[:, best] - precision[:, card]) else card

    # --- scoring and explaining ---------------------------------------------------------------------------------

    @abstractmethod
    def _points_of(self, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Score that each row starts from, float64 (n,), and the points of its values, float64 (n, n_features)."""

    def _corrections_of(self, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the leaves of a tree add, part of `_points_of`: float64 (n,), and float64 (n, n_features)."""
        return np.zeros(len(matrix)), np.zeros((len(matrix), len(self.columns_)))

    def _places(self, matrix: np.ndarray) -> list[str]:
        """The leaf of each row in words; empty without a tree."""
        return []

    def _contributions(self, matrix: np.ndarray) -> np.ndarray:
        return self._points_of(matrix)[1] / self._scale

    def explain(self, X: Any) -> list[PointsExplanation]:
        """Explain the score of each row: the points of its values, which add up to the score."""
        matrix = self._encode(X)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            score = self._score_rows(matrix, threads)
        base, points = self._points_of(matrix)
        places = self._places(matrix) or [""] * len(matrix)
        of_place, corrections = self._corrections_of(matrix)
        steps = value_steps(points, self.columns_, matrix, original_values(X, self._input_names))
        feature = {column.name: f for f, column in enumerate(self.columns_)}
        figures = figures_of(score, self.rates_, self.base_rate_)
        return [
            PointsExplanation(
                float(base[i]),
                tuple(_with_parts(step, float(corrections[i, feature[step.feature]])) for step in own),
                place,
                float(of_place[i]),
                **known,
            )
            for i, (own, place, known) in enumerate(zip(steps, places, figures, strict=True))
        ]

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column in the spread of the points over the training cases, float64 (n_features,)."""
        check_is_fitted(self)
        total = self.spread_.sum()
        return self.spread_ / total if total > 0 else self.spread_

    def _set_spread(self, data: BinnedCases) -> None:
        """Set the standard deviation of each column's points over a sample of the training rows.

        It is rounded, so that the order of the rows does not change it.
        """
        rows = data.sample(SPREAD_ROWS)
        weight = data.all_weights[rows]
        points = self._points_of(data.X[rows])[1]
        mean = np.average(points, axis=0, weights=weight)
        self.spread_ = np.round(np.sqrt(np.average((points - mean) ** 2, axis=0, weights=weight)), 6)

    # --- files and text -----------------------------------------------------------------------------------------

    def _order(self) -> list[int]:
        """Columns of the card, those with the largest spread of points first."""
        return sorted(self.card_.features.tolist(), key=lambda f: (-self.spread_[f], f))

    def to_text(self, *, exact: bool = False, width: int = 100) -> str:
        """Return the model as text: what scores mean, then small tables of points, largest spread first.

        Parameters
        ----------
        exact : bool, default False
            Numbers with all their digits, every category, and columns that hardly count.
        width : int, default 100
        """
        check_is_fitted(self)
        return self._page(exact=exact, width=width)

    def _page(self, *, exact: bool = False, width: int = 100, full_text: str = FULL_TEXT) -> str:
        """The model as text; `full_text` is how to get the exact text, which a shortened page names."""
        return card_page(self, self._start_text, exact, width, full_text=full_text)

    def _overview(self, page_text: str, full_text: str) -> str:
        """The page, or its beginning if it is long; the texts say how to get the page, and that with all digits."""
        page = self._page(full_text=full_text)
        if len(page.splitlines()) <= OVERVIEW_LINES:
            return page
        return card_overview(self, self._start_text, self._groups_in_words(), page_text)

    @property
    def _start_text(self) -> str:
        """How points add up, in a sentence, with {} for where they start."""
        return f"{START}."

    def _groups_in_words(self) -> list[tuple[str, list[str]]]:
        """Points and conditions of each group of cases that has points of its own."""
        return []

    def scorecard(self) -> Any:
        """Return the points as a frame, one row per bin or category: column, value, points (at both ends of a bin).

        The frame is of the kind that the model was trained with.
        """
        check_is_fitted(self)
        return make_frame(card_columns(self.card_, self.columns_, self._order()), self._backend)

    def _plain_parts(self) -> dict[str, Any]:
        return {"card": {name: array.tolist() for name, array in self.card_.to_arrays().items()}}

    def _size_in_words(self) -> str:
        return f"points for {plural(len(self.card_), 'column')}, {plural(self.card_.n_bins, 'bin')} in all"

    def _figures(self) -> dict[str, Any]:
        return {"n_columns": len(self.card_), "n_bins": self.card_.n_bins}

    def _to_arrays(self) -> dict[str, np.ndarray]:
        arrays = with_prefix(self.card_.to_arrays(), "card_") | with_prefix(self.cv_results_, "cv_")
        return super()._to_arrays() | arrays | {"spread": self.spread_, "alpha": np.array(self.alpha_)}

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self.card_ = Card.from_arrays(without_prefix(arrays, "card_"), self.columns_)
        self.spread_ = checked_numbers(arrays["spread"], (len(self.columns_),), "spread")
        self.alpha_ = float(checked_numbers(arrays["alpha"], (), "alpha"))
        results = without_prefix(arrays, "cv_")
        names = [*self._candidate_names((1.0,)), "mean_test_score"] if results else []
        n = len(results.get("alpha", ()))
        self.cv_results_ = {name: checked_numbers(results[name], (n,), name) for name in names}


def _with_parts(step: Step, correction: float) -> Step:
    """A step that says how many of its points are on the card and how many in the tables of the row's leaf."""
    if correction == 0:
        return step
    parts = (step.contribution - correction, correction)
    on_card, of_group = (f"{each:+z.2f}".removesuffix(".00") for each in parts)
    return replace(step, text=f"{step.text} (card {on_card}, {OF_GROUP} {of_group})")


def checked_numbers(array: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Return non-negative finite numbers from a file; ValueError if they are not of that shape."""
    if array.dtype != np.float64 or array.shape != shape or not np.all(np.isfinite(array) & (array >= 0)):
        raise InputError(f"Its array {name!r} is not {shape} numbers of at least 0.")
    return array
