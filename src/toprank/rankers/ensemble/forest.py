"""`Forest`: bagged meta-trees; what MetaAPForest and TreeRankForest share. Out-of-bag votes need little memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from toprank._compat import Interval, StrOptions
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.errors import InputError
from toprank.explain import PathCounts, count_paths
from toprank.rankers.ensemble.ensemble import PATH_ROWS, Ensemble
from toprank.rankers.growth import DEPTH, GROWTH_CONSTRAINTS, GrowthSettings, category_search, grow_meta
from toprank.rankers.leaf_scores import fit_leaf_score
from toprank.rankers.meta.ordering import finish_meta
from toprank.rankers.progress import progress
from toprank.rankers.unseen import OUT_OF_BAG, HeldOut, Unseen, held_out_folds
from toprank.tree.grower import FeatureSampler, columns_wanted
from toprank.tree.meta.meta_tree import MetaTree
from toprank.tree.scoring import Scoring
from toprank.tree.structure import Tree

BLOCK_VOTES = 2**20
"""Votes in memory at a time if all votes on a row are needed at once."""

CARD_FOLDS = 3
"""Folds of the scorecards used for out-of-bag scores."""

MAX_REDRAWS = 20
"""Most redraws of a bootstrap sample that lacks a class."""

COLUMNS_DRAWN: list[Any] = [StrOptions({"sqrt", "log2"}), Interval(Integral, 1, None, closed="left"),
                            Interval(Real, 0, 1, closed="right"), None]  # fmt: skip
"""scikit-learn's checks of a number of columns to draw."""

ROWS_DRAWN: list[Any] = [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="right"), None]
"""scikit-learn's checks of a number of rows to draw."""

Rows = slice | np.ndarray
Vote = Callable[[Tree, Rows, Threads], np.ndarray]
"""Votes of one tree on some rows of a table."""


class MeanOfVotes:
    """The mean of the out-of-bag votes on a row: one sum and one count per row.

    `cast` runs in parallel, `count` one tree at a time and in order, `result` at the end.
    """

    def __init__(self, vote: Vote, n_rows: int):
        self.vote = vote
        self.total, self.n_votes = np.zeros(n_rows), np.zeros(n_rows, np.int64)

    def cast(self, tree: Tree, unseen: np.ndarray) -> np.ndarray:
        """Return the votes of one tree on its out-of-bag rows."""
        return self.vote(tree, unseen, Threads())

    def count(self, tree: Tree, unseen: np.ndarray, cast: np.ndarray) -> None:
        """Add the votes to the sums."""
        self.total[unseen] += cast
        self.n_votes[unseen] += 1

    def result(self, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of each row's votes, NaN without any, and their number."""
        with np.errstate(invalid="ignore"):
            return self.total / self.n_votes, self.n_votes


class MedianOfVotes:
    """The median instead: one bit per tree and row for who may vote; votes are computed in blocks."""

    def __init__(self, vote: Vote, n_rows: int):
        self.vote, self.n_rows = vote, n_rows
        self.trees: list[Tree] = []
        self.may_vote: list[np.ndarray] = []

    def cast(self, tree: Tree, unseen: np.ndarray) -> np.ndarray:
        """Return which rows the tree may vote on, one bit per row."""
        may_vote = np.zeros(self.n_rows, bool)
        may_vote[unseen] = True
        return np.packbits(may_vote)

    def count(self, tree: Tree, unseen: np.ndarray, cast: np.ndarray) -> None:
        """Keep the tree and which rows it may vote on."""
        self.trees.append(tree)
        self.may_vote.append(cast)

    def result(self, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
        """Return the median of each row's votes, NaN without any, and their number."""
        n_votes = np.zeros(self.n_rows, np.int64)

        def silence(votes: np.ndarray, rows: slice) -> None:
            for voice, packed in zip(votes, self.may_vote, strict=True):
                may_vote = np.unpackbits(packed[rows.start // 8 :], count=rows.stop - rows.start)
                voice[may_vote == 0] = np.nan
                n_votes[rows] += may_vote

        return median_votes(self.vote, self.trees, self.n_rows, threads, silence), n_votes


def median_votes(
    vote: Vote,
    trees: list[Tree],
    n_rows: int,
    threads: Threads,
    silence: Callable[[np.ndarray, slice], None] | None = None,
) -> np.ndarray:
    """Return the median over the trees of their votes on each row, float64 (n,), computed in blocks.

    `silence` may set votes to NaN to leave them out; it gets the votes of a block, (n_trees, n_rows), and its rows,
    which begin at a multiple of eight.
    """
    size = max(8, BLOCK_VOTES // len(trees) // 8 * 8)
    out = np.empty(n_rows)

    def decide(rows: slice) -> None:
        votes = np.array([vote(tree, rows, Threads()) for tree in trees])
        if silence is not None:
            silence(votes, rows)
        out[rows] = median_of_present(votes)

    threads.run(decide, [slice(a, min(a + size, n_rows)) for a in range(0, n_rows, size)])
    return out


def median_of_present(votes: np.ndarray) -> np.ndarray:
    """Return the median of each column ignoring NaN, float64 (n,); NaN if there is nothing else.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.rankers.ensemble.forest import median_of_present
    >>> median_of_present(np.array([[1.0, np.nan], [4.0, 3.0], [2.0, np.nan]]))
    array([2., 3.])
    """
    ordered = np.sort(votes, axis=0)  # NaN comes last
    count, column = np.sum(~np.isnan(votes), axis=0), np.arange(votes.shape[1])
    low, high = ordered[np.maximum(count - 1, 0) // 2, column], ordered[count // 2, column]
    return low + (high - low) / 2


@dataclass(frozen=True)
class Judgement:
    """A measure of out-of-bag scores: the attribute that holds it, its name in files, in words, and the measure."""

    attribute: str
    figure: str
    words: str
    measure: Callable[..., float]


class Forest(Ensemble):
    """Base of the forests of meta-trees: bootstrap samples, drawn columns, out-of-bag scores.

    A subclass defines how a meta-tree grows (`_growth`) and which measures judge it (`_judgements`). A tree's vote on a
    row is its score, and the forest's score is the mean of the votes; a subclass may replace both.
    """

    _parameter_constraints = {
        **GROWTH_CONSTRAINTS,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_depth": DEPTH,
        "leaf_depth": DEPTH,
        "leaf_order": [StrOptions({"rate", "meta"})],
        "leaf_score": [StrOptions({"constant", "margin", "additive"})],
        "max_features": COLUMNS_DRAWN,
        "bootstrap": ["boolean"],
        "max_samples": ROWS_DRAWN,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    _judgements: ClassVar[tuple[Judgement, ...]]

    max_meta_features: str | int | float | None = None  # a parameter of some forests, as the next one
    logistic_C: float = 1.0
    oob_score_: float
    oob_decision_function_: np.ndarray

    # --- what a subclass says -----------------------------------------------------------------------------------

    @abstractmethod
    def _settings(self) -> GrowthSettings:
        """Return how a meta-tree grows."""

    def _grow(
        self, settings: GrowthSettings, data: BinnedCases, weight: np.ndarray, sampler: FeatureSampler | None
    ) -> tuple[MetaTree, float]:
        """Return one meta-tree and the unit of its weights."""
        return grow_meta(settings, data, weight, Threads(), sampler)

    def _vote(self, tree: Tree, score: np.ndarray) -> np.ndarray:
        """Return the votes of one tree on rows with these tree scores."""
        return score

    def _out_of_bag_votes(self, vote: Vote, n_rows: int) -> MeanOfVotes | MedianOfVotes:
        """Return the counter of out-of-bag votes."""
        return MeanOfVotes(vote, n_rows)

    def _voter(self, matrix: np.ndarray, points: np.ndarray | None) -> Vote:
        """Return the votes of trees on the rows of a matrix, given their points on the scorecard, if there is one."""

        def vote(tree: Tree, rows: Rows, threads: Threads) -> np.ndarray:
            if points is None:
                return self._vote(tree, tree.decision_function(matrix[rows], threads))
            return self._vote(tree, tree.scores_with_points(tree.apply(matrix[rows], threads), points[rows]))

        return vote

    # --- fitting ------------------------------------------------------------------------------------------------

    def _fit_model(self, data: BinnedCases, threads: Threads) -> Unseen | None:
        settings = self._settings()
        scoring, points = self._fit_scoring(data)
        random = check_random_state(self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=self.n_estimators)

        votes = self._out_of_bag_votes(self._voter(data.X, points), len(data.X))
        sampled = data.sample(PATH_ROWS)
        sample, sample_weight = data.X[sampled], None if data.weight is None else data.weight[sampled]

        def grow_one(seed: int) -> tuple[Tree, PathCounts, np.ndarray, np.ndarray]:
            rng = np.random.default_rng(int(seed))
            weight = draw_bootstrap(data, self.max_samples, rng) if self.bootstrap else data.all_weights
            meta, unit = self._grow(settings, data, weight, self._feature_sampler(data.X.shape[1], rng))
            tree = finish_meta(settings, meta, unit, data.is_categorical, scoring)[0]
            unseen = np.flatnonzero(weight == 0) if self.bootstrap else np.arange(len(weight))
            return tree, count_paths(tree, sample, sample_weight), unseen, votes.cast(tree, unseen)

        self.trees_, self._path_counts = [], []
        grown = threads.map(grow_one, seeds)
        for tree, paths, unseen, cast in progress(grown, self.n_estimators, type(self).__name__, bool(self.verbose)):
            self.trees_.append(tree)
            self._path_counts.append(paths)
            votes.count(tree, unseen, cast)
        return self._judge_out_of_bag(data, *votes.result(threads))

    def _fit_scoring(self, data: BinnedCases) -> tuple[Scoring, np.ndarray | None]:
        """Return the scoring inside leaves, and the points of each row by a scorecard that did not see it.

        All trees share one scorecard, fitted on all rows. Out of bag, a row gets the points of one fitted on other
        folds.
        """
        fit = partial(fit_leaf_score, self.leaf_score, data, C=self.logistic_C, categories=category_search(self))
        scoring = fit(data.weight)
        if scoring.card is None:
            return scoring, None
        points = scoring.card.total(data.X)
        for fold in held_out_folds(data, CARD_FOLDS, 0, len(data.X)) if self.bootstrap else ():
            other = fit(fold.inside_weight).card
            assert other is not None
            points[fold.held_out] = other.total(data.X[fold.held_out])
        return scoring, points

    def _feature_sampler(self, n_features: int, rng: np.random.Generator) -> FeatureSampler | None:
        """Return the random choice of columns; None if all are allowed."""
        n_per_split = columns_wanted(self.max_features, n_features)
        n_per_tree = columns_wanted(self.max_meta_features, n_features)
        if n_per_split is None and n_per_tree is None:
            return None
        return FeatureSampler(n_features, n_per_split, n_per_tree, rng)

    def _judge_out_of_bag(self, data: BinnedCases, score: np.ndarray, votes: np.ndarray) -> Unseen | None:
        """Keep out-of-bag scores and their measures; return the rows that have one."""
        self.oob_decision_function_ = score
        weight = data.all_weights
        rows = np.flatnonzero((votes > 0) & (weight > 0))
        positive = data.is_positive[rows]
        has_both = 0 < positive.sum() < len(rows)  # else there are too few rows for any to be out of bag
        for judgement in self._judgements:
            value = float("nan")
            if has_both and self.bootstrap:
                value = judgement.measure(positive, score[rows], sample_weight=weight[rows], pos_label=True)
            setattr(self, judgement.attribute, value)
        if not self.bootstrap:  # no row is out of bag
            self.oob_decision_function_ = np.full(len(votes), np.nan)
            return None
        return Unseen([HeldOut(score[rows], positive, weight[rows], rows=rows)], OUT_OF_BAG)

    # --- scoring ------------------------------------------------------------------------------------------------

    def _score_rows(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        vote, whole, total = self._voter(matrix, self._points(matrix)), slice(None), np.zeros(len(matrix))
        for tree in self.trees_:
            total += vote(tree, whole, threads)
        return total / len(self.trees_)

    def _points(self, matrix: np.ndarray) -> np.ndarray | None:
        """Return the points of rows on the shared scorecard; None without one."""
        card = self.trees_[0].scoring.card
        return None if card is None else card.total(matrix)

    # --- files and text -----------------------------------------------------------------------------------------

    def _judged(self) -> list[tuple[Judgement, float]]:
        return [(judgement, getattr(self, judgement.attribute)) for judgement in self._judgements]

    def _figures(self) -> dict[str, Any]:
        judged = {each.figure: None if np.isnan(value) else value for each, value in self._judged()}
        return super()._figures() | judged

    def _size_in_words(self) -> str:
        known = [f"{each.words} {value:.3f}" for each, value in self._judged() if not np.isnan(value)]
        judged = f"; out-of-bag {', '.join(known)}" if known else ""
        return f"{super()._size_in_words()}{judged}"

    def _to_arrays(self) -> dict[str, np.ndarray]:
        judged = {each.attribute.rstrip("_"): np.array(value) for each, value in self._judged()}
        return super()._to_arrays() | judged | {"oob_decision_function": self.oob_decision_function_}

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        for judgement in self._judgements:
            setattr(self, judgement.attribute, float(arrays[judgement.attribute.rstrip("_")]))
        self.oob_decision_function_ = arrays["oob_decision_function"]
        if self.oob_decision_function_.ndim != 1 or self.oob_decision_function_.dtype != np.float64:
            raise InputError("The model's out-of-bag scores are not valid.")


def draw_bootstrap(data: BinnedCases, max_samples: int | float | None, rng: np.random.Generator) -> np.ndarray:
    """Return the row weights of one bootstrap sample: how often each was drawn, times its own weight; float64 (n,).

    `max_samples` is the number or the share of rows to draw; None = as many as there are. With groups, whole groups are
    drawn, so that a row is out of bag only if all rows of its group are.
    """
    weight = data.all_weights
    present = np.flatnonzero(weight)
    size = len(present) if max_samples is None else max_samples
    if not isinstance(size, int | np.integer):
        size = max(1, round(size * len(present)))
    for _ in range(MAX_REDRAWS):
        if data.groups is None:
            rows = present[rng.integers(0, len(present), min(int(size), len(present)))]
            times = np.bincount(rows, minlength=len(weight))
        else:
            known = np.unique(data.groups[present])
            n_drawn = max(1, round(min(int(size), len(present)) / len(present) * len(known)))
            drawn_groups = known[rng.integers(0, len(known), n_drawn)]
            times = np.bincount(drawn_groups, minlength=int(data.groups.max()) + 1)[data.groups]
        drawn = weight * times
        if 0 < drawn[data.is_positive].sum() < drawn.sum():
            break
    return drawn
