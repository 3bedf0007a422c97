"""`TreeRanker`: a ranker held by one `Tree`; reasons, rules and text are read off it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from toprank._core.threads import Threads
from toprank.explain import (
    Explanation,
    PathCounts,
    Reason,
    count_paths,
    explain_rows,
    gain_importance,
    leaf_rules,
    reasons,
)
from toprank.explain.values import Originals
from toprank.export import (
    checked_spread,
    scorecard_features,
    scorecard_shares,
    scorecard_summary,
    scorecard_table,
    to_text,
)
from toprank.rankers.base import BaseRanker
from toprank.rankers.encoding import original_values
from toprank.rankers.frames import make_frame
from toprank.rankers.training import TrainingData
from toprank.tree.bin_mapper import center_and_spread, distinct_values
from toprank.tree.counts import plural
from toprank.tree.scoring import Scoring, feature_points
from toprank.tree.structure import Tree
from toprank.tree.weights import integer_weights
from toprank.tree.wording import EXACT, SHORT

SPREAD_ROWS = 10_000
"""Rows that tell how much the points of a scorecard differ; they order its columns, nothing else."""


class TreeRanker(BaseRanker):
    """Base of the rankers that are one tree.

    Attributes
    ----------
    tree_ : Tree
        Conditions, leaves and weights.
    columns_ : list of Column
        Names and categories of the columns.
    cutoff_ : Cutoff
        Where `predict` draws the line.
    n_leaves_, n_conditions_ : int
    """

    tree_: Tree
    path_counts_: PathCounts
    _points_spread: np.ndarray | None = None
    """Of a scorecard: standard deviation of each column's points in training; None where a file does not say."""

    def _review(self, data: TrainingData, threads: Threads) -> tuple[slice, np.ndarray]:
        score, leaf = self.tree_.scores_and_leaves(data.X, threads)
        self.path_counts_ = count_paths(self.tree_, data.X, data.weight, leaf=leaf)  # how leaves are usually reached
        self._points_spread = points_spread(self.tree_.scoring, data) if self._has_scorecard else None
        return slice(None), score

    @property
    def n_leaves_(self) -> int:
        """Number of leaves."""
        check_is_fitted(self)
        return int(self.tree_.is_leaf.sum())

    @property
    def n_conditions_(self) -> int:
        """Number of conditions in the tree."""
        check_is_fitted(self)
        return int((~self.tree_.is_leaf).sum())

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of the total gain that each column's conditions brought, float64 (n_features,).

        What orders the rows inside leaves is not counted: see `scorecard`.
        """
        check_is_fitted(self)
        return gain_importance(self.tree_)

    def _decide(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        return self.tree_.decision_function(matrix, threads)

    def _rates(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        return self.tree_.rate[self.tree_.apply(matrix, threads)]

    def _rate_source(self) -> str:
        return "leaves" if scorecard_features(self.tree_.scoring) else super()._rate_source()

    def _leaf_column(self, matrix: np.ndarray) -> dict[str, np.ndarray]:
        return {"leaf": self.tree_.leaf[self.tree_.apply(matrix)] + 1}

    def _reasons(
        self, matrix: np.ndarray, n_reasons: int, originals: Originals, gain: np.ndarray | None
    ) -> list[list[Reason]]:
        return reasons(self.tree_, self.columns_, matrix, n_reasons, originals=originals, gain=gain)

    def _size_in_words(self) -> str:
        leaves = plural(self.n_leaves_, "leaf", "leaves")
        return f"{leaves}, {plural(self.n_conditions_, 'condition')}, depth {self.tree_.depth}"

    def apply(self, X: Any) -> np.ndarray:
        """Leaf node of `tree_` that each row reaches, int32 (n,)."""
        matrix = self._encode(X)
        return self.tree_.apply(matrix)

    def decision_path(self, X: Any) -> sp.csr_array:
        """Nodes of `tree_` on each row's path: sparse indicator of shape (n, n_nodes)."""
        matrix = self._encode(X)
        return path_indicator(self.tree_, matrix)

    def rules(self, *, exact: bool = False) -> Any:
        """One row a leaf, best first: rule, n, positives, hit_rate with its interval, lift; a frame as in fit.

        Parameters
        ----------
        exact : bool, default False
            Write rules out in full, as `to_text` does, and all ways into a leaf that are known from training (at most
            five) instead of three.
        """
        check_is_fitted(self)
        detail = EXACT if exact else SHORT
        return make_frame(leaf_rules(self.tree_, self.columns_, self.path_counts_, detail=detail), self._backend)

    def scorecard(self) -> Any:
        """One row a part of the score inside leaves that has points; a frame as in fit.

        Of two rows in one leaf, the one with more points stands first.

        Returns
        -------
        frame
            The column that counts most in training first. `column`; `category`, by name, or None; `counts`: "per unit"
            of a number, "category", or "missing", which an unknown category is, too; `points`; `center`: a number x is
            worth points * (x - center). What is not listed has no points.

        Examples
        --------
        >>> from toprank import MetaAP
        >>> from toprank.datasets import make_audit
        >>> data = make_audit(4000, random_state=0)
        >>> model = MetaAP(max_depth=2, leaf_depth=2, leaf_score="linear").fit(data.X, data.y)
        >>> list(model.scorecard().columns)
        ['column', 'category', 'counts', 'points', 'center']
        """
        check_is_fitted(self)
        if not self._has_scorecard:
            raise ValueError(
                f"{type(self).__name__}.scorecard needs leaves with a linear score inside, but what orders rows inside "
                f"the leaves of this model is of kind {self.tree_.scoring.kind!r}. Hint: fit MetaAP or TreeRank with "
                "leaf_score='linear'."
            )
        return make_frame(scorecard_table(self.tree_.scoring, self.columns_, self._points_spread), self._backend)

    @property
    def _has_scorecard(self) -> bool:
        return self.tree_.scoring.kind == "linear"

    @property
    def _card_shares(self) -> list[float] | None:
        return scorecard_shares(self.tree_.scoring, self._points_spread)

    def summary(self) -> str:
        """A few lines about the fitted model: size, training figures, cutoff, columns of a scorecard inside leaves."""
        lines = super().summary()
        if not self._has_scorecard:
            return lines
        return f"{lines}\ninside leaves: {scorecard_summary(self.tree_.scoring, self.columns_, self._points_spread)}"

    def explain(self, X: Any) -> list[Explanation]:
        """Why each row stands where it stands: the path in words, original units, categories by name."""
        matrix = self._encode(X)
        originals = original_values(X, [column.name for column in self.columns_])
        return explain_rows(self.tree_, self.columns_, matrix, originals=originals)

    def to_text(self, *, exact: bool = False) -> str:
        """The whole tree as text, and the scorecard inside its leaves where it has one.

        Parameters
        ----------
        exact : bool, default False
            False gives a text to read, in 100 columns: numbers are rounded, long lists and sums cut; its last line says
            so. True gives a text to apply, one line a node: whoever answers its questions for a row ends in the leaf
            that `apply` finds, and where leaves are constant, the score of the leaf is that of `decision_function` to
            the last bit. A category that training did not know counts as missing.

        Examples
        --------
        >>> import pandas as pd
        >>> from toprank import RankingTree
        >>> X = pd.DataFrame({"gap": [0.1234567, 0.2, 0.3, 0.4], "sector": list("abab")})
        >>> model = RankingTree(max_depth=1, min_samples_leaf=1).fit(X, [0, 0, 1, 1])
        >>> print(model.to_text(exact=True).split("highest")[1].strip())
        gap <= 0.25 or missing?
        |   yes: leaf 2: score 0.5, 0 of 2 positive (0 %, lift 0)
        |   no:  leaf 1: score 1.0, 2 of 2 positive (100 %, lift 2)
        """
        check_is_fitted(self)
        return to_text(self.tree_, self.columns_, title=self.summary(), spread=self._points_spread, exact=exact)

    def to_dict(self) -> dict[str, Any]:
        """The model as plain values: class, columns, tree."""
        check_is_fitted(self)
        return {
            "class": type(self).__name__,
            "columns": [column.to_dict() for column in self.columns_],
            "tree": self.tree_.to_dict(),
        }

    def _figures(self) -> dict[str, Any]:
        """Figures of the fitted model beside those that every ranker has."""
        return {"n_conditions": self.n_conditions_, "depth": self.tree_.depth}

    def _to_arrays(self) -> dict[str, np.ndarray]:
        """Arrays of the fitted model for a file."""
        paths = {f"paths_{name}": array for name, array in self.path_counts_.to_arrays().items()}
        card = {} if self._points_spread is None else {"points_spread": self._points_spread}
        return {f"tree_{name}": array for name, array in self.tree_.to_arrays().items()} | paths | card

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Take the fitted model from arrays of a file."""
        self.tree_ = Tree.from_arrays(without_prefix(arrays, "tree_"))
        if self.tree_.n_features != len(self.columns_):
            raise ValueError("The model's tree and its list of columns do not fit together.")
        self.path_counts_ = PathCounts.from_arrays(without_prefix(arrays, "paths_"), self.tree_)
        self._points_spread = checked_spread(arrays.get("points_spread"), self.tree_.n_features)


def points_spread(scoring: Scoring, data: TrainingData) -> np.ndarray:
    """Standard deviation of the points that a scorecard gives each column of the training rows: float64 (n_features,).

    Of a number that is never missing: weight times the spread of the column.
    """
    rows = data.sample(SPREAD_ROWS)
    weight = None if data.weight is None else integer_weights(data.is_positive, data.weight).total[rows]
    out = np.zeros(len(scoring.weight))
    for f in scorecard_features(scoring):
        start, stop = scoring.points_at[f : f + 2]
        own = slice(f, f + 1)
        alone = Scoring(
            "linear",
            center=scoring.center[own],
            weight=scoring.weight[own],
            missing=scoring.missing[own],
            points_at=np.array([0, stop - start]),
            points=scoring.points[start:stop],
        )
        points = feature_points(alone, data.X[rows, own])[:, 0]
        out[f] = center_and_spread(*distinct_values(points, weight))[1]
    return out


def path_indicator(tree: Tree, matrix: np.ndarray) -> sp.csr_array:
    """Nodes on the path of each encoded row: sparse indicator of shape (n, n_nodes)."""
    nodes, length = tree.paths(matrix)
    column = nodes[np.arange(nodes.shape[1]) < length[:, None]]
    offset = np.append(0, np.cumsum(length))
    return sp.csr_array((np.ones(len(column), np.int64), column, offset), shape=(len(nodes), len(tree)))


def without_prefix(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Arrays whose name begins with the prefix, by the rest of their name."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
