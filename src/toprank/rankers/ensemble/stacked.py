"""`StackedRanker`: several rankers of one table, added up on the scale of log-odds.

`Blend` is the sum. It knows held-out scores and outcomes, but no models. Equal rows are merged and sorted first, so
that neither the order of the rows nor copies change a bit of the result.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, astuple, dataclass, fields
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from toprank._core.threads import Threads, resolve_n_jobs
from toprank.budget import Cutoff
from toprank.data.cases import Cases
from toprank.data.encoding import original_values
from toprank.errors import InputError, InputTypeError
from toprank.explain.reasons import Reason, strongest
from toprank.explain.rows import ScoreExplanation, Step, figures_of, step_lines, value_steps
from toprank.explain.values import Originals
from toprank.files.head import check_cutoff
from toprank.files.model_file import numbered_parts, with_prefix
from toprank.rankers.base import RANKER_CONSTRAINTS, Ranker
from toprank.rankers.growth import FOLD_CONSTRAINTS
from toprank.rankers.log_odds import LogOddsMap, fit_log_odds_map, fit_logistic
from toprank.rankers.progress import progress
from toprank.rankers.unseen import Fold, HeldOut, Unseen, by_folds, has_both, held_out_folds
from toprank.rankers.validation import check_shares_table
from toprank.register import BY_NAME
from toprank.tree.weights import integer_weights
from toprank.words.counts import plural
from toprank.words.numbers import number_text

DEFAULT_MEMBERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("forest", "MetaAPForest", {}),
    ("boosting", "SGBAP", {"init": None}),  # the stack has forests of its own
    ("logistic boosting", "LogisticBoost", {}),
    ("treerank forest", "TreeRankForest", {}),
    ("scorecard tree", "ScorecardTree", {}),
)
"""Name, class and parameters of the members of `StackedRanker()`."""

LEAST_COVERED = 0.9
"""Least share of the cases in folds for which a member must have held-out scores of its own, such as out of bag; else
it is fitted in the folds."""

MOST_SCALED = 10.0
"""Contributions of a member are scaled to its log-odds, but by no more than this factor."""

PULL = 30.0
"""Penalty of the squared distance to equal weights, in cases. The members of a stack agree on most cases, so weights
are poorly determined, and equal ones are hard to beat. On 16 development tables 30, 100 and 300 ranked new cases
equally well, and better than 1; the smallest of them gives a bad member the least weight if positives are few."""


@dataclass(frozen=True, eq=False)
class Blend:
    """A weighted sum of log-odds, one term per ranker.

    Attributes
    ----------
    maps : list of LogOddsMap
    weights : float64 array of shape (n_rankers,), at least 0
    intercept : float
    """

    maps: list[LogOddsMap]
    weights: np.ndarray
    intercept: float

    @classmethod
    def fit(cls, scores: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> Blend:
        """Learn maps and weights from held-out cases.

        Parameters
        ----------
        scores : float array of shape (n, n_rankers)
        is_positive : bool array of shape (n,), both classes
        weight : float array of shape (n,), all above 0
        """
        maps = [fit_log_odds_map(score, is_positive, weight) for score in scores.T]
        distinct, which = np.unique(scores, axis=0, return_inverse=True)
        which = which.reshape(-1)
        total, positive = np.bincount(which, weight), np.bincount(which, weight * is_positive)
        features = np.column_stack([each.at(score) for each, score in zip(maps, distinct.T, strict=True)])
        equal = np.full(len(maps), 1.0 / len(maps))
        weights, intercept = fit_logistic(features, positive, total, np.zeros(len(maps)), PULL, equal)
        if not weights.any():  # no member knows more than chance
            return cls(maps, equal, 0.0)
        return cls(maps, weights, intercept)

    def in_use(self) -> Blend:
        """The same sum without terms of weight 0."""
        used = self.weights > 0
        maps = [each for each, is_used in zip(self.maps, used, strict=True) if is_used]
        return Blend(maps, self.weights[used], self.intercept)

    def score(self, scores: list[np.ndarray] | np.ndarray) -> np.ndarray:
        """Sum of the rankers' log-odds, float64 (n,); `scores` has one array per ranker, ignored at weight 0."""
        terms = [w * each.at(score) for w, each, score in zip(self.weights, self.maps, scores, strict=True) if w > 0]
        total = np.full(len(terms[0]), self.intercept)
        for term in terms:
            total += term
        return total


@dataclass(frozen=True)
class MemberShare:
    """What one member adds to a score: its log-odds of a positive, times its weight."""

    name: str
    log_odds: float
    weight: float


@dataclass(frozen=True)
class StackExplanation(ScoreExplanation):
    """Why a stack gives a row its score.

    Attributes
    ----------
    score, rate, lift : float
        As in all explanations; `is_for_new_cases` says which rate it is.
    intercept : float
        What the score starts from; the members' log-odds, times their weights, are added.
    members : tuple of MemberShare
    steps : tuple of Step
        Columns by their contribution: those of the members, in log-odds, times the members' weights. Columns that
        contribute nothing are left out.
    """

    intercept: float
    members: tuple[MemberShare, ...]
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        terms = [f"{number_text(each.weight, 3)} x {number_text(each.log_odds, 3)} of {each.name}"
                 for each in self.members]  # fmt: skip
        lines = [
            f"score {number_text(self.score, 6)}; {self.rate_text}",
            f"= {number_text(self.intercept, 3)} + {' + '.join(terms)} (weight x log-odds of each member)",
            "columns, and what each adds to the log-odds of a positive, weighted over the members:",
        ]
        return "\n".join(lines + step_lines(self.steps))


@dataclass(eq=False, repr=False)
class StackedRanker(Ranker):
    """Several rankers of one table: the most accurate model, and the least readable.

    Every member scores cases that it has not seen: out of bag or in folds of its own, else in the folds of the stack.
    From these scores two things are learned: a strictly increasing map from each member's score to log-odds, and a
    non-negative weight per member, by a logistic regression that is pulled towards equal weights. The members are
    fitted on all cases, and the score is the weighted sum of their log-odds. The table is read once, and binned once
    per kind of bins.

    Hit rates come from the same held-out scores, with maps and weights that were learned on the other folds.

    Parameters
    ----------
    rankers : list of rankers or of (name, ranker) pairs, or None
        The members. None: `MetaAPForest`, `SGBAP(init=None)`, `LogisticBoost`, `TreeRankForest` and `ScorecardTree`;
        without XGBoost no boosting, with a warning. Members keep their parameters, except that n_jobs, and a
        random_state of None, become those of the stack.
    cv : int, splitter or iterable of splits, default 5
        Folds of the stack. 0: equal weights, and training rates only.
    budget : int, float or None
        Cases (int) or share of cases (float) that `predict` flags; None = as many as training positives.
    pos_label, categorical_features, keep_columns, n_jobs
        As in `MetaAP`; they hold for all members.
    random_state : int, RandomState or None
        Seed of the folds, fixed for None, and of members without a seed of their own.
    verbose : int, default 0
        1 shows progress on standard error.

    Attributes
    ----------
    members_ : dict of fitted rankers
        By name; those of weight 0 are dropped.
    weights_ : dict of float
        Weight of each member by name, also of those that were dropped.
    blend_ : Blend
        Maps and weights of the members in use, and the intercept.
    rates_, cutoff_, columns_, classes_
        As in all rankers.

    Examples
    --------
    >>> from toprank import MetaAP, MetaAPForest, StackedRanker
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(2000, random_state=0)
    >>> members = [("tree", MetaAP(max_depth=2)), ("forest", MetaAPForest(n_estimators=20))]
    >>> model = StackedRanker(members, random_state=0).fit(data.X, data.y)
    >>> sorted(model.weights_), min(model.weights_.values()) >= 0
    (['forest', 'tree'], True)
    >>> len(model.top_k(data.X, 5))
    5
    """

    _fits_training_closely = True
    _cutoff_rows = 100_000
    _parameter_constraints = {
        **RANKER_CONSTRAINTS,
        "rankers": [list, tuple, None],
        **FOLD_CONSTRAINTS,
        "verbose": ["verbose"],
    }

    rankers: Any = None
    _: KW_ONLY
    cv: Any = 5
    budget: int | float | None = None
    pos_label: Any = None
    categorical_features: Any = None
    keep_columns: Any = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    # --- fitting ------------------------------------------------------------------------------------------------

    def _validate_params(self) -> None:
        super()._validate_params()
        for name, ranker in ({} if self.rankers is None else _named(self.rankers)).items():
            check_shares_table(ranker, f"the member {name!r}", self, type(self).__name__)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; `deep` also gives the members by name, and theirs as name__parameter."""
        out = super().get_params(deep=False)
        for name, ranker in (self._given_members() if deep else {}).items():
            out |= {name: ranker} | {f"{name}__{key}": value for key, value in ranker.get_params().items()}
        return out

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the stack, of members (name__parameter), or replace a member by name."""
        own = set(self._get_param_names())
        super().set_params(**{name: value for name, value in params.items() if name in own})
        others = {name: value for name, value in params.items() if name not in own}
        members = self._given_members()
        replaced = {name: others.pop(name) for name in members if name in others}
        if replaced:
            self.rankers = [*(members | replaced).items()]
        super().set_params(**others)
        return self

    def _given_members(self) -> dict[str, Ranker]:
        """Members of `rankers` by name; none for the default ones, or if `rankers` is not valid."""
        try:
            return _named(self.rankers or [])
        except (ValueError, TypeError):
            return {}

    def _fit_model(self, data: Cases, threads: Threads) -> Unseen | None:
        given = default_members() if self.rankers is None else _named(self.rankers)
        folds = held_out_folds(data, self.cv, self.random_state)
        tables: dict[Any, Cases] = {}
        fitted, scores, finals = {}, [], []
        steps = progress(given.items(), len(given), type(self).__name__, bool(self.verbose))
        for name, ranker in steps:
            member = self._unfitted_member(ranker)
            if member._table_settings not in tables:
                tables[member._table_settings] = member._remake_cases(data, threads)
            table = tables[member._table_settings]
            fitted[name], score, final = self._fit_member(member, table, folds, threads)
            scores.append(score)
            finals.append(final)
        self._kinds = [type(ranker).__name__ for ranker in given.values()]
        blend, unseen = learn_blend(data, folds, np.column_stack(scores), np.column_stack(finals))
        self.weights_ = dict(zip(fitted, blend.weights.tolist(), strict=True))
        self.members_ = {name: member for name, member in fitted.items() if self.weights_[name] > 0}
        self.blend_ = blend.in_use()
        return unseen

    def _unfitted_member(self, ranker: Ranker) -> Ranker:
        """Return a member that knows the table and its cases."""
        member = clone(ranker)
        member.set_params(n_jobs=self.n_jobs)
        if "random_state" in member.get_params(deep=False) and member.random_state is None:
            member.set_params(random_state=self.random_state)
        member._know_table(self)
        member.n_cases_, member.n_positives_, member.data_hash_ = self.n_cases_, self.n_positives_, ""
        member._is_prepared = True
        return member

    def _fit_member(
        self, member: Ranker, data: Cases, folds: list[Fold], threads: Threads
    ) -> tuple[Ranker, np.ndarray, np.ndarray]:
        """Fit a member on all rows; return it, and two scores of each row on its scale.

        First by models that did not see the row, NaN if there is none, then by the member itself; float64 (n,) each.
        """
        member._validate_params()
        unseen = member._fit_model(data, threads)
        final = member._score_rows(data.X, threads)
        score = _scores_by_row(unseen, final, data)
        in_folds = np.unique(np.concatenate([np.zeros(0, np.int64), *(fold.held_out for fold in folds)]))
        if len(folds) and np.isfinite(score[in_folds]).mean() < LEAST_COVERED:
            unseen = member._score_in_folds(data, folds, threads)
            score = _scores_by_row(unseen, final, data)
        member._set_cutoff(data, threads, unseen)
        return member, score, final

    # --- scoring ------------------------------------------------------------------------------------------------

    def _score_rows(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        return self.blend_.score([member._score_rows(matrix, threads) for member in self.members_.values()])

    # --- reading ------------------------------------------------------------------------------------------------

    def _log_odds(self, matrix: np.ndarray) -> np.ndarray:
        """Log-odds of each row by each member in use, float64 (n, n_members)."""
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            scores = [member._score_rows(matrix, threads) for member in self.members_.values()]
        return np.column_stack([each.at(score) for each, score in zip(self.blend_.maps, scores, strict=True)])

    def _weighted_contributions(self, matrix: np.ndarray, originals: Originals, log_odds: np.ndarray) -> np.ndarray:
        """What each value adds to the log-odds of its row, weighted over the members: float64 (n, n_features).

        A member's contributions are scaled by one factor per row, so that they add up to what its log-odds exceed those
        of all cases by; those of trees are along the path, those of boosters Shapley values. Of a member without
        contributions, its reasons count.
        """
        base = np.log(self.base_rate_ / (1.0 - self.base_rate_))
        out = np.zeros(matrix.shape)
        for member, weight, own in zip(self.members_.values(), self.blend_.weights, log_odds.T, strict=True):
            found = member._contributions(matrix)
            if found is None:
                found = _from_reasons(member._reasons(matrix, matrix.shape[1], originals, None), self.columns_)
            total, wanted = found.sum(axis=1), own - base
            agrees = total * wanted > 0
            factor = np.where(agrees, wanted / np.where(agrees, total, 1.0), 1.0)
            out += weight * np.clip(factor, 1.0 / MOST_SCALED, MOST_SCALED)[:, None] * found
        return out

    def _reasons(
        self, matrix: np.ndarray, n_reasons: int, originals: Originals, gain: np.ndarray | None
    ) -> list[list[Reason]]:
        contributions = self._weighted_contributions(matrix, originals, self._log_odds(matrix))
        return strongest(contributions, self.columns_, matrix, n_reasons, originals, gain)

    def explain(self, X: Any) -> list[StackExplanation]:
        """Explain the score of each row: what each member says, and what each column adds."""
        matrix = self._encode(X)
        originals, log_odds = original_values(X, self._input_names), self._log_odds(matrix)
        contributions = self._weighted_contributions(matrix, originals, log_odds)
        score = self.blend_.intercept + np.zeros(len(matrix))
        for weight, own in zip(self.blend_.weights, log_odds.T, strict=True):
            score += weight * own
        figures = figures_of(score, self.rates_, self.base_rate_)
        out = []
        for i, steps in enumerate(value_steps(contributions, self.columns_, matrix, originals)):
            members = [MemberShare(name, float(own), float(weight)) for name, own, weight
                       in zip(self.members_, log_odds[i], self.blend_.weights, strict=True)]  # fmt: skip
            out.append(StackExplanation(float(self.blend_.intercept), tuple(members), steps, **figures[i]))
        return out

    @property
    def feature_importances_(self) -> np.ndarray:
        """Shares of the columns in the members, weighted, float64 (n_features,); sums to 1 if any member has shares."""
        check_is_fitted(self)
        total = np.zeros(len(self.columns_))
        for member, weight in zip(self.members_.values(), self.blend_.weights, strict=True):
            total += weight * member._importances()
        return total / total.sum() if total.any() else total

    def _plain_parts(self) -> dict[str, Any]:
        members: list[Any] = [
            {"name": name, "weight": float(weight), "score": each.score.tolist(), "log_odds": each.log_odds.tolist(),
             "model": member.to_plain()}
            for (name, member), weight, each
            in zip(self.members_.items(), self.blend_.weights, self.blend_.maps, strict=True)
        ]  # fmt: skip
        return {"intercept": self.blend_.intercept, "members": members}

    def _size_in_words(self) -> str:
        parts = [f"{name} {number_text(weight, 2)}" for name, weight in self.weights_.items()]
        return f"{plural(len(self.members_), 'ranker')}, by weight: {', '.join(parts)}"

    def _figures(self) -> dict[str, Any]:
        return {"n_members": len(self.members_)}

    # --- files --------------------------------------------------------------------------------------------------

    def _to_arrays(self) -> dict[str, np.ndarray]:
        arrays = super()._to_arrays()
        arrays |= {
            **{f"kind{i}": np.array(kind) for i, kind in enumerate(self._kinds)},
            **{f"name{i}": np.array(name) for i, name in enumerate(self.weights_)},
            "weights": np.array(list(self.weights_.values())),
            "intercept": np.array(self.blend_.intercept),
        }
        for i, (member, each) in enumerate(zip(self.members_.values(), self.blend_.maps, strict=True)):
            arrays |= {f"map{i}_score": each.score, f"map{i}_log_odds": each.log_odds}
            cutoff = {"cutoff": np.array(astuple(member.cutoff_), np.float64)}
            arrays |= with_prefix(cutoff | member._to_arrays(), f"member{i}_")
        return arrays

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        weights = arrays["weights"]
        is_sound = weights.dtype == np.float64 and weights.ndim == 1 and len(weights) <= len(arrays)
        if not is_sound or not (np.isfinite(weights).all() and np.all(weights >= 0) and weights.any()):
            raise InputError("It breaks the rule that a stack has a weight of 0 or more for each member.")
        given = self._members_of_file(arrays, len(weights))
        intercept = arrays["intercept"]
        if intercept.shape != () or intercept.dtype != np.float64 or not np.isfinite(intercept):
            raise InputError("It breaks the rule that a stack has an intercept.")
        used = np.flatnonzero(weights > 0)
        maps = [
            LogOddsMap(part["score"], part["log_odds"]).check() for part in numbered_parts(arrays, "map", len(used))
        ]
        self.weights_ = dict(zip(given, weights.tolist(), strict=True))
        self.blend_ = Blend(maps, weights[used], float(intercept))
        self.members_ = {}
        names = list(given)
        for at, part in zip(used.tolist(), numbered_parts(arrays, "member", len(used)), strict=True):
            self.members_[names[at]] = self._restored(given[names[at]], part)

    def _members_of_file(self, arrays: dict[str, np.ndarray], count: int) -> dict[str, Ranker]:
        """Unfitted members by name: those of `rankers`, or the default ones that the stack was fitted with."""
        kinds, names = ([str(arrays[f"{what}{i}"]) for i in range(count)] for what in ("kind", "name"))
        if self.rankers is None:
            known = {name: (kind, parameters) for name, kind, parameters in DEFAULT_MEMBERS}
            made = [(name, *known[name]) for name in names if name in known]
            given = {name: BY_NAME[kind].load()(**parameters) for name, kind, parameters in made}
        else:
            given = _named(self.rankers)
        if [*given] != names or [type(ranker).__name__ for ranker in given.values()] != kinds:
            raise InputError(f"It breaks the rule that the members of a stack are its rankers: it has {names!r}.")
        self._kinds = kinds
        return given

    def _restored(self, ranker: Ranker, arrays: dict[str, np.ndarray]) -> Ranker:
        """Return a member with the arrays of a file."""
        member = self._unfitted_member(ranker)
        values = arrays.pop("cutoff")
        if values.shape != (len(fields(Cutoff)),) or values.dtype != np.float64:
            raise InputError("It breaks the rule that a model has a cutoff.")
        member.cutoff_ = Cutoff(*values.tolist())
        check_cutoff(member.cutoff_)
        member.budget_ = member.budget
        member._from_arrays(arrays)
        return member


def default_members() -> dict[str, Ranker]:
    """Return the members of `StackedRanker()`: those in the register, without boosters if XGBoost is missing."""
    members = {
        name: BY_NAME[kind].load()(**parameters) for name, kind, parameters in DEFAULT_MEMBERS if kind in BY_NAME
    }
    if find_spec("xgboost") is not None:
        return members
    from toprank.rankers.boosting.booster import Booster

    left_out = [name for name, member in members.items() if isinstance(member, Booster)]
    warnings.warn(
        f"XGBoost is not installed, so StackedRanker leaves out {' and '.join(left_out)}, and ranks less well. "
        "Hint: pip install 'toprank[boosting]', or name the members in `rankers`.",
        stacklevel=2,
    )
    return {name: member for name, member in members.items() if name not in left_out}


def _named(rankers: Sequence[Any]) -> dict[str, Ranker]:
    """Members by name, checked; rankers without a name get that of their class."""
    pairs: list[tuple[Any, Any]] = []
    for each in rankers:
        is_pair = isinstance(each, tuple | list) and len(each) == 2
        name, ranker = each if is_pair else (type(each).__name__, each)
        if not isinstance(ranker, Ranker) or type(ranker).__name__ not in BY_NAME:
            raise InputTypeError(
                f"rankers of StackedRanker must be rankers of this library or (name, ranker) pairs, got {each!r}. "
                "Hint: for example [('forest', MetaAPForest()), ('boosting', SGBAP())]."
            )
        taken = [other for other, _ in pairs]
        if not is_pair and name in taken:
            name = next(f"{name} {i}" for i in range(2, len(taken) + 3) if f"{name} {i}" not in taken)
        if not isinstance(name, str) or not name or name in taken:
            raise InputError(
                f"rankers of StackedRanker must have names of their own, got {name!r} twice or not as text. "
                "Hint: leave the names out."
            )
        if "__" in name or name in StackedRanker._get_param_names():
            raise InputError(
                f"rankers of StackedRanker must not have the name {name!r}: set_params could not tell it from a "
                "parameter. Hint: choose a name without two underscores that is no parameter of the stack."
            )
        pairs.append((name, ranker))
    if not pairs:
        raise InputError("rankers of StackedRanker is empty, expected at least one. Hint: None takes the default ones.")
    return dict(pairs)


def learn_blend(data: Cases, folds: list[Fold], scores: np.ndarray, finals: np.ndarray) -> tuple[Blend, Unseen | None]:
    """Learn maps and weights of members from held-out scores; without any, weights are equal.

    `scores` are those by models that did not see the row, NaN if there is none, `finals` those by the members
    themselves, both float64 (n, n_members). Also returns the cases of each fold, scored with maps and weights from the
    other folds.
    """
    known = np.isfinite(scores).all(axis=1)
    parts = []
    for fold in folds:
        inside, held_out = (rows[known[rows]] for rows in (fold.inside, fold.held_out))
        if not all(has_both(data.is_positive[rows]) for rows in (inside, held_out)):
            continue
        blend = Blend.fit(scores[inside], data.is_positive[inside], fold.weight[inside])
        n_cases = None if fold.own_weight is None else fold.own_weight[held_out]
        parts.append(HeldOut(blend.score(scores[held_out].T), data.is_positive[held_out], fold.weight[held_out],
                             n_cases=n_cases, rows=held_out))  # fmt: skip
    if not parts:
        own = integer_weights(data.is_positive, data.weight).total.astype(np.float64)
        rows = np.flatnonzero(own > 0)
        # Training scores give maps, but say nothing about weights.
        maps = [fit_log_odds_map(score, data.is_positive[rows], own[rows]) for score in finals[rows].T]
        return Blend(maps, np.full(len(maps), 1.0 / len(maps)), 0.0), None
    weight = folds[0].weight
    rows = np.flatnonzero(known & (weight > 0))
    blend = Blend.fit(scores[rows], data.is_positive[rows], weight[rows])
    return blend, Unseen(parts, by_folds(len(parts)))


def _scores_by_row(unseen: Unseen | None, final: np.ndarray, data: Cases) -> np.ndarray:
    """Held-out scores of the training rows on the scale of the final model, float64 (n,); NaN for rows without one."""
    out = np.full(len(final), np.nan)
    if unseen is None:
        return out
    weight = data.all_weights
    present = weight > 0
    for part in unseen.parts:
        if part.rows is not None and len(part.rows):
            score, _, _ = Unseen([part], unseen.source).on_scale(final[present], weight[present])
            out[part.rows] = score
    return out


def _from_reasons(reasons: list[list[Reason]], columns: Sequence[Any]) -> np.ndarray:
    """Log-odds of each column's reasons, float64 (n, n_features)."""
    position = {column.name: f for f, column in enumerate(columns)}
    out = np.zeros((len(reasons), len(columns)))
    for row, own in enumerate(reasons):
        for reason in own:
            if reason.feature in position:  # not the score of a booster's `init`
                out[row, position[reason.feature]] += np.log(reason.strength)
    return out
