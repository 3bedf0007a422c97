"""`ScorecardTree`: a scorecard, corrected in the leaves of a shallow tree where that pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank._compat import Interval
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.files.model_file import with_prefix, without_prefix
from toprank.rankers.points.additive import Rows, Term
from toprank.rankers.points.card_text import FULL_TEXT, points_text
from toprank.rankers.points.card_tree import CardTree, Grower
from toprank.rankers.points.flags import joined
from toprank.rankers.points.pages import START, card_page, condition_texts, wrapped_conditions
from toprank.rankers.points.points_ranker import POINTS_CONSTRAINTS, USUAL_ALPHA, PointsRanker
from toprank.rankers.points.scorecard import fits_by_alpha
from toprank.words.counts import plural
from toprank.words.wording import EXACT, SHORT


def grown_alpha(alphas: Sequence[float]) -> float:
    """The penalty of the card that a tree corrects: the usual one, if it is tried."""
    return USUAL_ALPHA if USUAL_ALPHA in alphas else alphas[0]


@dataclass(kw_only=True, eq=False, repr=False)
class ScorecardTree(PointsRanker):
    """A scorecard, and a shallow tree whose leaves correct a few of its columns.

    The card says what each column adds whatever the others are. Where that is not so, a tree splits the cases, and
    each leaf adds points for a few columns on top of the card. How deep the tree is, if there is one at all, is chosen
    by the average precision of held-out cases: if no tree pays, the model is the card.

    Parameters
    ----------
    max_depth : int, default 3
        Most conditions on the way to a leaf. Folds choose among all depths from 0; with cv=0 it is this one.
    max_terms : int, default 5
        Most columns that one node corrects.
    min_class_leaf : float, default 10
        Least weight of positives, and of negatives, in a leaf.
    points, alpha, max_features, max_bins_per_feature, monotonic_cst
        As in `Scorecard`. Columns with a direction neither split nor correct, so that their order holds.
    cv, budget, pos_label, categorical_features, keep_columns, n_jobs, random_state
        As in `Scorecard`.

    Attributes
    ----------
    card_tree_ : CardTree
        The card, the conditions and the corrections.
    card_ : Card
        The points that count in all leaves.
    n_leaves_ : int
        1 if the model is the card alone.
    alpha_, cv_results_, spread_
        As in `Scorecard`; `cv_results_` has a "depth" too.
    rates_, cutoff_, columns_, classes_
        As in all rankers.

    Examples
    --------
    >>> from toprank import ScorecardTree
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(4000, random_state=0)
    >>> model = ScorecardTree(max_depth=1, cv=0, budget=20).fit(data.X, data.y)
    >>> model.n_leaves_, len(model.top_k(data.X))
    (2, 20)
    >>> row = model.explain(data.X[:1])[0]
    >>> abs(row.base + sum(step.contribution for step in row.steps) - row.score) < 1e-9
    True
    """

    _parameter_constraints = {
        **POINTS_CONSTRAINTS,
        "max_depth": [Interval(Integral, 0, 6, closed="both")],
        "max_terms": [Interval(Integral, 1, None, closed="left")],
        "min_class_leaf": [Interval(Real, 1, None, closed="left")],
    }

    max_depth: int = 3
    max_terms: int = 5
    min_class_leaf: float = 10
    points: int | None = 20
    alpha: float | str = "cv"
    max_features: int | None = None
    max_bins_per_feature: int | None = None
    monotonic_cst: Any = None
    cv: Any = 5
    budget: int | float | None = None
    pos_label: Any = None
    categorical_features: Any = None
    keep_columns: Any = None
    n_jobs: int | None = None
    random_state: Any = None

    # --- fitting ------------------------------------------------------------------------------------------------

    def _candidates(self, data: BinnedCases, rows: Rows, terms: list[Term], alphas: Sequence[float]) -> list[CardTree]:
        models = fits_by_alpha(data, rows, terms, alphas, self.max_features, self.max_bins_per_feature)
        cards = [self._finished(model.card()) for model in models]
        found = [CardTree.from_card(card) for card in cards]
        at = alphas.index(grown_alpha(alphas))
        is_limited = self.max_features is not None or self.max_bins_per_feature is not None
        own = models[at].terms if is_limited else terms
        grower = Grower(models[at], own, self.max_terms, self.min_class_leaf)
        grown = grower.grow(models[at].rows, models[at].z, self.max_depth)
        return found + [grown.tree(cards[at], d, self._finished) for d in range(1, self.max_depth + 1)]

    def _candidate_names(self, alphas: Sequence[float]) -> dict[str, np.ndarray]:
        depths = np.append(np.zeros(len(alphas)), np.arange(1.0, self.max_depth + 1))
        return {"alpha": np.append(alphas, np.full(self.max_depth, grown_alpha(alphas))), "depth": depths}

    def _plain_candidates(self, n_candidates: int) -> np.ndarray:
        return np.arange(n_candidates - self.max_depth)

    def _keep(self, chosen: Any, name: Mapping[str, Any]) -> None:
        self.card_tree_, self.card_, self.alpha_ = chosen, chosen.card, float(name["alpha"])

    @property
    def n_leaves_(self) -> int:
        """Number of leaves; 1 if the model is the card alone."""
        check_is_fitted(self)
        return self.card_tree_.n_leaves

    # --- scoring and text ---------------------------------------------------------------------------------------

    def _score_rows(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        return self.card_tree_.decision_function(matrix, threads)

    def _points_of(self, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.card_tree_.points(matrix)

    def _corrections_of(self, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.card_tree_.correction_points(matrix)

    def _leaf_names(self) -> list[str]:
        """The conditions of each leaf in words; empty without a tree."""
        if self.card_tree_.n_leaves == 1:
            return []
        of_leaf = [self.card_tree_.conditions(leaf, self.columns_) for leaf in range(self.card_tree_.n_leaves)]
        return [" and ".join(each.text(detail=SHORT) for each in conditions) for conditions in of_leaf]

    def _places(self, matrix: np.ndarray) -> list[str]:
        names = self._leaf_names()
        return [names[leaf] for leaf in self.card_tree_.apply(matrix).tolist()] if names else []

    def _page(self, *, exact: bool = False, width: int = 100, full_text: str = FULL_TEXT) -> str:
        if self.n_leaves_ == 1:
            return super()._page(exact=exact, width=width, full_text=full_text)
        detail, groups, corrections = EXACT if exact else SHORT, [], self.card_tree_.corrections
        for leaf, correction in enumerate(corrections):
            texts = condition_texts(self.card_tree_.conditions(leaf, self.columns_), exact=exact)
            texts[0] = f"Cases where {texts[0]}"
            texts[-1] += f": {points_text(correction.base, detail)}{', and' if len(correction) else ''}"
            first, *rest = [joined(texts)] if exact else wrapped_conditions(texts, width - 2)
            lines = [first, *(f"  {line}" for line in rest)]
            if len(correction):
                lines.append(correction.to_text(self.columns_, exact=exact, width=width, indent="  "))
            groups.append("\n".join(lines))
        return card_page(self, self._start_text, exact, width, groups, corrections, full_text=full_text)

    @property
    def _start_text(self) -> str:
        return (
            f"{START} and of the one group of cases at the end that it belongs to."
            if self.n_leaves_ > 1
            else f"{START}."
        )

    def _groups_in_words(self) -> list[tuple[str, list[str]]]:
        if self.n_leaves_ == 1:
            return []
        tree = self.card_tree_
        return [
            (points_text(correction.base), condition_texts(tree.conditions(leaf, self.columns_)))
            for leaf, correction in enumerate(tree.corrections)
        ]

    def _plain_parts(self) -> dict[str, Any]:
        tree = {name: array.tolist() for name, array in self.card_tree_.to_arrays().items()}
        return super()._plain_parts() | {"tree": tree}

    def _size_in_words(self) -> str:
        size = super()._size_in_words()
        return f"{size}, corrected in {plural(self.n_leaves_, 'leaf', 'leaves')}" if self.n_leaves_ > 1 else size

    def _figures(self) -> dict[str, Any]:
        return super()._figures() | {"n_correcting": self.n_leaves_}

    def _to_arrays(self) -> dict[str, np.ndarray]:
        return super()._to_arrays() | with_prefix(self.card_tree_.to_arrays(), "split_")

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self.card_tree_ = CardTree.from_arrays(self.card_, without_prefix(arrays, "split_"), self.columns_)
