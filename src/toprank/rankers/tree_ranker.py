"""`TreeRanker`: a ranker made of one `Tree`, with reasons, rules and text."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.data.encoding import original_values
from toprank.data.frames import make_frame
from toprank.errors import InputError
from toprank.explain import (
    MAX_CONDITIONS,
    MAX_LEAVES,
    Covers,
    Explanation,
    LeafRows,
    PathCounts,
    Reason,
    Rule,
    checked_leaf_rates,
    count_paths,
    explain_rows,
    gain_importance,
    leaf_rules,
    reasons,
    rule_table,
)
from toprank.explain.reasons import row_contributions
from toprank.explain.values import Originals
from toprank.export import (
    CARD_TITLE,
    WIDTH,
    checked_spread,
    no_split_text,
    rules_text,
    scorecard_features,
    scorecard_lines,
    scorecard_shares,
    scorecard_summary,
    scorecard_table,
    to_text,
)
from toprank.files.model_file import with_prefix, without_prefix
from toprank.metrics import HitRates
from toprank.metrics.checks import is_int
from toprank.rankers.binned import BinnedRanker, OneTree
from toprank.tree.bin_mapper import center_and_spread, distinct_values
from toprank.tree.scoring import LeafScorecard
from toprank.tree.structure import Tree, check_columns, check_depth
from toprank.tree.weights import integer_weights
from toprank.words.counts import plural
from toprank.words.wrapping import wrapped

CARD_COLUMNS = 8
"""Columns of a scorecard that a short text lists."""

SPREAD_ROWS = 10_000
"""Rows to measure the spread of a scorecard's points on; used only to order the columns."""


class TreeRanker(OneTree, BinnedRanker):
    """Base of the rankers that are one tree."""

    path_counts_: PathCounts
    _points_spread: np.ndarray | None = None
    """Standard deviation of each column's points on the scorecard in training; None if a file lacks it."""

    _leaf_rates: np.ndarray | None = None
    """Hit rate of new cases in each leaf with both ends of its interval, float64 (n_leaves, 3), best leaf first; None
    if unknown."""
    _leaf_rows: LeafRows | None = None
    """Training rows to find short rules on, kept until these are first needed: most fits never need them."""

    _covers: Covers | None = None
    _training_leaf: np.ndarray | None = None
    """Leaf nodes of the training rows, kept only while the cutoff is set."""

    def _score_training_rows(self, data: BinnedCases, threads: Threads) -> tuple[slice, np.ndarray]:
        score, leaf = self.tree_.scores_and_leaves(data.X, threads)
        self._training_leaf = leaf
        self.path_counts_ = count_paths(self.tree_, data.X, data.weight, leaf=leaf)  # how leaves are usually reached
        card = self.tree_.scoring.card
        self._points_spread = None if card is None else points_spread(card, data)
        self._covers = None
        self._leaf_rows = None if self._is_prepared else LeafRows.draw(self.tree_, data.X, leaf, data.weight)
        return slice(None), score

    def _rate_parts(self, data: BinnedCases, rows: slice | np.ndarray, score: np.ndarray) -> None:
        leaf: np.ndarray | None = self.__dict__.pop("_training_leaf", None)
        self._leaf_rates = None
        if leaf is not None and self.rates_.is_for_new_cases:
            self._leaf_rates = leaf_rates(self.tree_, self.rates_, score, leaf, data.all_weights)

    def _short_rules(self) -> Covers:
        """Return the short rules of the best leaves, found at the first call."""
        if self._covers is None:
            tree, rows = self._readable_tree(), self._leaf_rows
            self._covers = Covers.none() if rows is None else Covers.find(tree, self.columns_, rows, self.path_counts_)
            self._leaf_rows = None
        return self._covers

    def __getstate__(self) -> dict[str, Any]:
        if self._leaf_rows is not None:
            self._short_rules()  # copies do not carry training rows
        return super().__getstate__()

    @property
    def n_places_(self) -> int:
        """Number of places in the ranking; leaves that tie share one."""
        check_is_fitted(self)
        return int(self.tree_.n_leaves)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column's conditions in the total gain, float64 (n_features,).

        The score inside leaves does not count: see `scorecard`.
        """
        check_is_fitted(self)
        return gain_importance(self.tree_)

    def _score_rows(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        return self.tree_.decision_function(matrix, threads)

    def _leaf_column(self, matrix: np.ndarray) -> dict[str, np.ndarray]:
        return {"leaf": self.tree_.leaf[self.tree_.apply(matrix)] + 1}

    def _reasons(
        self, matrix: np.ndarray, n_reasons: int, originals: Originals, gain: np.ndarray | None
    ) -> list[list[Reason]]:
        return reasons(self._readable_tree(), self.columns_, matrix, n_reasons, originals=originals, gain=gain)

    def _contributions(self, matrix: np.ndarray) -> np.ndarray | None:
        return row_contributions(self._readable_tree(), self.columns_, matrix)

    def _size_in_words(self) -> str:
        leaves = plural(self.n_leaves_, "leaf", "leaves")
        size = f"{leaves}, {plural(self.n_conditions_, 'condition')}, depth {self.tree_.depth}"
        shared = f"; the leaves share {plural(self.n_places_, 'place')} in the ranking"
        return size if self.n_places_ == self.n_leaves_ else f"{size}{shared}"

    def rules(
        self, *, max_rules: int | None = MAX_LEAVES, max_conditions: int | None = MAX_CONDITIONS, exact: bool = False
    ) -> Any:
        """Return one row per leaf, best first, with its rule and hit rate; a frame as in fit.

        `hit_rate`, with the ends of its interval, is the rate to expect of as many new cases as the leaf had in
        training (`rates_`); `n`, `positives` and `training_rate` are from training. With cv=0 there is only the
        training rate.

        A leaf with many paths, or one long path, gets a short rule found on training cases: one or two ways of a few
        conditions each. Its `coverage` is the share of the leaf's training cases that it selects, its `precision` the
        share of the selected cases that belong to the leaf; both are 1 if the rule is exact. Rules do not depend on the
        rules above them, except for "all other cases".

        Parameters
        ----------
        max_rules : int or None, default 20
            Most leaves, from the top; None gives all. The best 20 have short rules, the others their main paths.
        max_conditions : int or None, default 4
            Most conditions per way of a short rule. Short rules have at most 4; with more, or None, a leaf with one
            longer path shows that path.
        exact : bool, default False
            Show the paths themselves, as in `to_text(exact=True)`: all that are known from training, at most five.

        Examples
        --------
        >>> from toprank import MetaAP
        >>> from toprank.datasets import make_audit
        >>> data = make_audit(4000, random_state=0)
        >>> model = MetaAP().fit(data.X, data.y)
        >>> rules = model.rules(max_rules=3, max_conditions=2)
        >>> len(rules), list(rules.columns)[:4]
        (3, ['leaf', 'rule', 'coverage', 'precision'])
        """
        check_is_fitted(self)
        self._check_limits("rules", max_rules, max_conditions)
        rules = self.rule_list(max_rules=max_rules, max_conditions=max_conditions, exact=exact)
        return make_frame(rule_table(rules, exact=exact), self._backend)

    def rule_list(
        self, *, max_rules: int | None = MAX_LEAVES, max_conditions: int | None = MAX_CONDITIONS, exact: bool = False
    ) -> list[Rule]:
        """Return the rules as data, best first: a rule is a list of ways, a way is a list of `Condition` objects.

        Parameters are those of `rules`. `Rule.text()`, `Way.text()` and `Condition.text()` give words, `Rule.to_dict()`
        plain values for JSON. Paths that read the same in short form are one way, with the conditions of the first;
        `exact` keeps all that differ.

        Examples
        --------
        >>> from toprank import RankingTree
        >>> X = [[1, 0.2], [2, 0.1], [3, 0.9], [4, 0.8]]
        >>> model = RankingTree(max_depth=1, min_samples_leaf=1, cv=0).fit(X, [0, 0, 1, 1])
        >>> rule = model.rule_list()[0]
        >>> rule.n, rule.positives, rule.text()
        (2.0, 2.0, 'x0 > 2')
        >>> condition = rule.ways[0].conditions[0]
        >>> condition.column.name, condition.low, condition.high, condition.missing
        ('x0', 2.0, inf, False)
        """
        check_is_fitted(self)
        self._check_limits("rule_list", max_rules, max_conditions)
        return leaf_rules(
            self._readable_tree(),
            self.columns_,
            self.path_counts_,
            self._leaf_rates,
            covers=None if exact else self._short_rules(),
            exact=exact,
            max_rules=max_rules,
            max_conditions=max_conditions,
        )

    def _check_limits(self, method: str, max_rules: Any, max_conditions: Any) -> None:
        for name, value in (("max_rules", max_rules), ("max_conditions", max_conditions)):
            if value is not None and (not is_int(value) or value < 1):
                raise InputError(
                    f"The '{name}' parameter of {type(self).__name__}.{method} must be an int of 1 or more, or None. "
                    f"Got {value!r} instead."
                )

    def scorecard(self) -> Any:
        """Return one row per item of the scorecard inside leaves that has points; a frame as in fit.

        Of two rows in the same leaf, the one with more points ranks first.

        Returns
        -------
        frame
            By importance in training. `column`; `category`, by name, or None; `counts`: "per unit" or "above" for a
            number, "category", or "missing", which includes unknown categories; `points`; `center`: a number x gets
            points * (x - center) per unit, and the points of each "above" whose center is below x. Anything not listed
            has no points.

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
            raise InputError(
                f"{type(self).__name__}.scorecard needs leaves with a linear score inside, but the score inside "
                f"the leaves of this model is of kind {self.tree_.scoring.kind!r}. Hint: fit MetaAP or TreeRank with "
                "leaf_score='linear'."
            )
        return make_frame(scorecard_table(self.tree_.scoring, self.columns_, self._points_spread), self._backend)

    @property
    def _has_scorecard(self) -> bool:
        return self.tree_.scoring.card is not None

    @property
    def _card_shares(self) -> list[float] | None:
        return scorecard_shares(self.tree_.scoring, self._points_spread)

    def summary(self) -> str:
        """Return a few lines about the fitted model: size, training figures, cutoff, columns of the scorecard."""
        lines = super().summary()
        if not self._has_scorecard:
            return lines
        inside = scorecard_summary(self.tree_.scoring, self.columns_, self._points_spread)
        alone = no_split_text(self.tree_.n_leaves, inside, getattr(self, "ccp_alpha", None))
        return "\n".join([lines, f"inside leaves: {inside}", *([alone] if alone else [])])

    def explain(self, X: Any) -> list[Explanation]:
        """Explain the score of each row: its path in words, in original units, categories by name."""
        matrix = self._encode(X)
        originals = original_values(X, self._input_names)
        return explain_rows(self._readable_tree(), self.columns_, matrix, self.rates_, originals=originals)

    def to_text(
        self,
        *,
        max_rules: int | None = None,
        max_conditions: int | None = MAX_CONDITIONS,
        tree: bool = False,
        exact: bool = False,
    ) -> str:
        """Return the model as text: its rules on one screen, or the whole tree.

        Parameters
        ----------
        max_rules : int or None
            Most rules, from the top; None shows as many as fit in 20 lines.
        max_conditions : int or None, default 4
            Most conditions per way of a rule, as in `rules`.
        tree : bool, default False
            Write the whole tree, in 100 columns: conditions as questions with a yes and a no branch. Long lists and
            sums are cut; the last line says so.
        exact : bool, default False
            Write the full tree, one line per node: answering its questions for a row leads to the leaf of `apply`, and
            if leaves are constant, the score of the leaf is that of `decision_function` to the last bit. A category
            that was not in training counts as missing.

        Examples
        --------
        >>> import pandas as pd
        >>> from toprank import RankingTree
        >>> X = pd.DataFrame({"gap": [0.1234567, 0.2, 0.3, 0.4], "sector": list("abab")})
        >>> model = RankingTree(max_depth=1, min_samples_leaf=1, cv=0).fit(X, [0, 0, 1, 1])
        >>> print(model.to_text().split("highest.")[1].strip())
        1. training rate 100 %, lift 2x; in training 2 of 2 positive
             gap > 0.2
        2. training rate 0 %, lift 0x; in training 0 of 2 positive
             gap <= 0.2
        >>> print(model.to_text(exact=True).split("highest")[1].strip())
        gap <= 0.2 or missing?
        |   yes: leaf 2: score 0.5, 0 of 2 positive (0 %, lift 0)
        |   no:  leaf 1: score 1.0, 2 of 2 positive (100 %, lift 2)
        """
        check_is_fitted(self)
        self._check_limits("to_text", max_rules, max_conditions)
        if tree or exact:
            return to_text(
                self._readable_tree(), self.columns_, title=self.summary(), spread=self._points_spread, exact=exact
            )
        most = MAX_LEAVES if max_rules is None else max_rules
        rules = self.rule_list(max_rules=most, max_conditions=max_conditions)
        title = [part for line in self.summary().splitlines() for part in wrapped(line, WIDTH)]
        n_leaves = self.tree_.n_leaves
        lines = [*title, "", "The rule of each leaf; leaf 1 ranks highest.", ""]
        lines += rules_text(rules, n_leaves, WIDTH, max_rules)
        card = scorecard_lines(self.tree_.scoring, self.columns_, self._points_spread, max_columns=CARD_COLUMNS)
        return "\n".join(lines + (["", f"{CARD_TITLE}:", *card] if card else []))

    def _plain_parts(self) -> dict[str, Any]:
        return {"tree": self._readable_tree().to_dict()}

    def _figures(self) -> dict[str, Any]:
        """Return figures of the fitted model besides those of every ranker."""
        return {"n_leaves": self.n_leaves_, "n_conditions": self.n_conditions_, "depth": self.tree_.depth}

    def _to_arrays(self) -> dict[str, np.ndarray]:
        check_depth(self._readable_tree())
        card = {} if self._points_spread is None else {"points_spread": self._points_spread}
        rates = {} if self._leaf_rates is None else {"leaf_rates": self._leaf_rates}
        tree = with_prefix(self.tree_.to_arrays(), "tree_") | with_prefix(self.path_counts_.to_arrays(), "paths_")
        covers = with_prefix(self._short_rules().to_arrays(), "covers_")
        return super()._to_arrays() | tree | card | rates | covers

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self.tree_ = Tree.from_arrays(without_prefix(arrays, "tree_"))
        check_columns(self.tree_, self.columns_)
        self.path_counts_ = PathCounts.from_arrays(without_prefix(arrays, "paths_"), self.tree_)
        self._points_spread = checked_spread(arrays.get("points_spread"), self.tree_.n_features)
        self._leaf_rates = checked_leaf_rates(arrays.get("leaf_rates"), self.tree_)
        self._covers, self._leaf_rows = Covers.from_arrays(without_prefix(arrays, "covers_"), self.tree_), None


def leaf_rates(tree: Tree, rates: HitRates, score: np.ndarray, leaf: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the hit rate of new cases per leaf position and both ends of its interval, float64 (n_leaves, 3).

    The rate of a leaf is the mean over its training rows of the rate at their scores. `score`, `leaf` (node) and
    `weight` are those of the training rows.
    """
    place = tree.leaf[leaf]
    total = np.bincount(place, weight, tree.n_leaves)
    leaves, of_leaf = np.flatnonzero(tree.is_leaf), np.zeros(tree.n_leaves)
    of_leaf[tree.leaf[leaves]] = rates.at(tree.score[leaves])
    sums = np.bincount(place, weight * rates.at(score), tree.n_leaves)
    rate = np.divide(sums, total, out=of_leaf, where=total > 0)  # a leaf without rows gets the rate at its score
    known = total / total.sum() * rates.n_cases
    ends = [rates.interval(*each) for each in zip(rate.tolist(), known.tolist(), total.tolist(), strict=True)]
    return np.column_stack((rate, np.array(ends)))


def points_spread(card: LeafScorecard, data: BinnedCases) -> np.ndarray:
    """Return the standard deviation of each column's scorecard points over the training rows, float64 (n_features,).

    For a number that is never missing: weight times the spread of the column.
    """
    rows = data.sample(SPREAD_ROWS)
    weight = None if data.weight is None else integer_weights(data.is_positive, data.weight).total[rows]
    out = np.zeros(len(card.weight))
    for f in scorecard_features(card):
        points = card.one_column(f).total(data.X[rows, f : f + 1])
        out[f] = center_and_spread(*distinct_values(points, weight))[1]
    return out
