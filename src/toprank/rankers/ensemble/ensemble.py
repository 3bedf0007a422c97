"""`Ensemble`: a ranker made of many trees; reasons by votes, rules, files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.encoding import original_values
from toprank.data.frames import make_frame
from toprank.errors import InputError
from toprank.explain import (
    PathCounts,
    Reason,
    Rule,
    VoteExplanation,
    explain_votes,
    gain_importance,
    leaf_rules,
    rule_table,
    vote_reasons,
)
from toprank.explain.reasons import mean_contributions
from toprank.explain.values import Originals
from toprank.export import to_text
from toprank.files.model_file import numbered_parts, with_prefix
from toprank.metrics import proportion_interval
from toprank.metrics.checks import is_int
from toprank.rankers.binned import BinnedRanker, path_indicator
from toprank.tree.structure import Tree, check_columns, check_depth
from toprank.words.counts import plural

PATH_ROWS = 5_000
"""Training rows, drawn at random, whose paths show how each leaf of a tree is usually reached."""


class Ensemble(BinnedRanker):
    """Base of the rankers made of many trees; a subclass grows them and turns their votes into a score."""

    _cutoff_rows = 100_000

    trees_: list[Tree]
    _path_counts: list[PathCounts]

    # --- scoring ------------------------------------------------------------------------------------------------

    def _reasons(
        self, matrix: np.ndarray, n_reasons: int, originals: Originals, gain: np.ndarray | None
    ) -> list[list[Reason]]:
        weights = self._tree_weights()
        return vote_reasons(self.trees_, self.columns_, matrix, n_reasons, weights, originals=originals, gain=gain)

    def _contributions(self, matrix: np.ndarray) -> np.ndarray:
        return mean_contributions(self.trees_, self.columns_, matrix, self._tree_weights())

    def _tree_weights(self) -> np.ndarray | None:
        """Weight of each tree's vote; None = all equal."""
        return None

    def _how(self) -> str:
        """How the trees make the score, in words; {} stands for their number."""
        return "mean of {}"

    # --- reading ------------------------------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean over the trees of each column's share of the gain, float64 (n_features,); sums to 1."""
        check_is_fitted(self)
        shares = self._tree_shares().sum(axis=0)
        return shares / shares.sum() if shares.any() else shares  # a tree without conditions does not count

    def _tree_shares(self) -> np.ndarray:
        """Return the share of each column in the gain of each tree, float64 (n_trees, n_features)."""
        return np.array([gain_importance(tree) for tree in self.trees_])

    @property
    def n_leaves_(self) -> int:
        """Number of leaves of all trees."""
        check_is_fitted(self)
        return sum(int(tree.is_leaf.sum()) for tree in self.trees_)

    def _figures(self) -> dict[str, Any]:
        n_conditions = sum(int((~tree.is_leaf).sum()) for tree in self.trees_)
        return {"n_leaves": self.n_leaves_, "n_trees": len(self.trees_), "n_conditions": n_conditions}

    def _size_in_words(self) -> str:
        return f"{plural(len(self.trees_), 'tree')}, {plural(self.n_leaves_, 'leaf', 'leaves')} in all"

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf node that each row reaches in each tree, int32 (n, n_trees)."""
        matrix = self._encode(X)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            return np.column_stack([tree.apply(matrix, threads) for tree in self.trees_])

    def decision_path(self, X: Any) -> tuple[sp.csr_array, np.ndarray]:
        """Return the nodes on each row's paths: sparse indicator (n, nodes of all trees), and each tree's start."""
        matrix = self._encode(X)
        offset = np.append(0, np.cumsum([len(tree) for tree in self.trees_]))
        return sp.hstack([path_indicator(tree, matrix) for tree in self.trees_], format="csr"), offset

    def rules(self, *, exact: bool = False) -> Any:
        """Return one row per leaf, best first: tree, rule, n, positives, training_rate, lift; all on training data.

        With `exact`, rules are written in full, with all known ways into a leaf.
        """
        return make_frame(rule_table(self.rule_list(exact=exact), exact=exact), self._backend)

    def rule_list(self, *, exact: bool = False) -> list[Rule]:
        """Return the rules of all trees as data, best first; the `tree` of a rule is the tree it belongs to.

        Examples
        --------
        >>> from toprank import MetaAPForest
        >>> from toprank.datasets import make_audit
        >>> data = make_audit(2000, random_state=0)
        >>> rule = MetaAPForest(n_estimators=2).fit(data.X, data.y).rule_list()[0]
        >>> 1 <= rule.tree <= 2, len(rule.ways) >= 1
        (True, True)
        """
        check_is_fitted(self)
        rules = [
            replace(rule, tree=i)
            for i, (tree, paths) in enumerate(zip(self.trees_, self._path_counts, strict=True), 1)
            for rule in leaf_rules(tree, self.columns_, paths, exact=exact)
        ]
        positives, n = np.array([(rule.positives, rule.n) for rule in rules]).T
        low = proportion_interval(positives, n)[0]  # so that a few lucky cases do not make the best rule
        return [rules[i] for i in np.argsort(-low, kind="stable")]

    def explain(self, X: Any) -> list[VoteExplanation]:
        """Explain the score of each row: the contribution of each column, averaged over the trees."""
        matrix = self._encode(X)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            score = self._score_rows(matrix, threads)
        return explain_votes(
            self.trees_, self.columns_, matrix, score, self.rates_, self.base_rate_, self._tree_weights(), self._how(),
            original_values(X, self._input_names),
        )  # fmt: skip

    def to_text(self, tree: int = 1, *, exact: bool = False) -> str:
        """Return one of the trees as text, after the summary of the model; trees count from 1, as in `rules`.

        With `exact`, numbers have all digits and nothing is cut: the text leads to the same leaves as `apply`.
        """
        check_is_fitted(self)
        if not is_int(tree) or not 1 <= tree <= len(self.trees_):
            raise InputError(
                f"{type(self).__name__}.to_text needs the number of a tree, from 1 to {len(self.trees_)}, got "
                f"{tree!r}. Hint: `rules` names the tree of each rule."
            )
        title = f"{self.summary()}\ntree {tree} of {len(self.trees_)}:"
        return to_text(self.trees_[tree - 1], self.columns_, title=title, exact=exact)

    def _plain_parts(self) -> dict[str, Any]:
        return {"trees": [tree.to_dict() for tree in self.trees_]}

    # --- files --------------------------------------------------------------------------------------------------

    def _to_arrays(self) -> dict[str, np.ndarray]:
        for tree in self.trees_:
            check_depth(tree)
        arrays = super()._to_arrays()
        for i, tree in enumerate(self.trees_):
            arrays |= with_prefix(tree.to_arrays(), f"tree{i}_")
        for i, paths in enumerate(self._path_counts):
            arrays |= with_prefix(paths.to_arrays(), f"paths{i}_")
        return arrays | {"n_trees": np.array(len(self.trees_))}

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        count = int(arrays["n_trees"])
        self.trees_ = [Tree.from_arrays(part) for part in numbered_parts(arrays, "tree", count)]
        for tree in self.trees_:
            check_columns(tree, self.columns_)
        paths = numbered_parts(arrays, "paths", count)
        self._path_counts = [PathCounts.from_arrays(*each) for each in zip(paths, self.trees_, strict=True)]


def negatives_above(tree: Tree) -> np.ndarray:
    """Return the share of the tree's negatives above each place and the end, float64 (n_places + 1,), from 0 to 1.

    These are alpha_0, ..., alpha_L of the TreeRank paper, in the weights that the tree was grown with. Without
    negatives all places but the end have 0.
    """
    leaves = np.flatnonzero(tree.is_leaf)
    above = np.append(0.0, np.cumsum(np.bincount(tree.leaf[leaves], tree.negative[leaves], tree.n_leaves)))
    share = above / above[-1] if above[-1] > 0 else above
    share[-1] = 1.0
    return share
