"""`RedFlags`: a few rules with points, and a card of points for the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank._compat import HasMethods, Interval, StrOptions
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.cases import Cases, sample_cases
from toprank.data.encoding import original_values
from toprank.data.frames import make_frame
from toprank.errors import InputError, warn_caller
from toprank.explain.conditions import Condition, merged
from toprank.explain.reasons import LEAST_STRENGTH, MOST_STRENGTH, Reason, kept_shares, strongest, typical_row
from toprank.explain.rows import Step, figures_of, value_steps
from toprank.explain.values import Originals
from toprank.files.model_file import with_prefix, without_prefix
from toprank.metrics import BeforeAfter
from toprank.metrics.checks import is_int, is_real
from toprank.rankers.base import RANKER_CONSTRAINTS, Ranker
from toprank.rankers.greedy.monotone import MONOTONIC_CST, read_directions
from toprank.rankers.growth import FOLD_CONSTRAINTS
from toprank.rankers.points.card import Card
from toprank.rankers.points.card_text import FULL_TEXT, points_text
from toprank.rankers.points.flags import TOP, Change, Flag, Flags, joined, refitted, written_conditions
from toprank.rankers.points.learning import Learned, LearningCases, Limits, Teacher, learn, soft_targets
from toprank.rankers.points.pages import flags_page
from toprank.rankers.points.points_ranker import FlagsExplanation
from toprank.rankers.points.rule_search import LEAST_ROWS
from toprank.rankers.points.shapes import refit
from toprank.rankers.progress import progress, stage
from toprank.rankers.seeds import seed_of
from toprank.rankers.unseen import Fold, HeldOut, Unseen, by_folds, held_out_folds
from toprank.rankers.validation import positives_of, warn_of_light_weights
from toprank.words.counts import plural

JUDGED = "the cases that a change was judged on"
"""Where the hit rates of a changed model come from."""

SEARCH_ROWS = 50_000
"""Most cases that rules and shapes are learned from: all positives that fit in half of it, and random negatives,
weighted up. Points are then fitted on all cases."""


@dataclass(frozen=True, eq=False)
class FlagsAndCard:
    """A fitted model: rules and a card, both in points."""

    flags: Flags
    card: Card

    def decision_function(self, matrix: np.ndarray, threads: Threads | None = None) -> np.ndarray:
        """Return the score of each encoded row, float64 (n,)."""
        return self.card.decision_function(matrix, threads) + self.flags.decision_function(matrix, threads)


@dataclass(kw_only=True, eq=False, repr=False)
class RedFlags(Ranker):
    """A few rules with points, and a small card of points for everything else: a model that fits on one page.

    The score of a case is the sum of the points of the rules that hold for it and of the points of its values on the
    card. Rules are found one by one, each where the cases have most positives beyond what the model expects so far;
    a rule inside another corrects it ("if also ..."). Shuffled labels get no rules, but for rare chance. What the rules
    do not explain goes to the card. Outcomes are mixed with what a teacher, gradient boosting by default, predicts for
    cases that it has not seen, so that rules follow what holds in general.

    Parameters
    ----------
    max_rules : int, default 20
        Most rules, those inside others included; 0 makes a scorecard.
    max_conditions : int, default 4
        Most conditions of a rule. A rule inside another counts with the conditions of both; both ends of a range count.
    max_total_conditions : int, default 40
        Most conditions of all rules together.
    max_features : int, default 12
        Most columns on the card; 0 makes a set of rules.
    max_bins_per_feature : int, default 5
        Most different points of a column on the card, missing values included.
    points : int or None, default 10
        Points per unit of log-odds: 10 points multiply the odds by 2.72. All points are whole numbers. None leaves
        log-odds as they are.
    teacher : "auto", None or classifier, default "auto"
        Model whose predictions are mixed with the outcomes. "auto" is scikit-learn's gradient boosting. A classifier
        must have `predict_proba`; it gets the encoded table: numbers with NaN, categories as codes. None learns from
        the outcomes alone, which is faster and usually ranks a little worse.
    monotonic_cst : array-like of -1, 0, 1 per column, dict of names, or None
        1: the score must not fall as the column rises; -1: must not rise. Only numbers.
    cv : int, splitter, list of splits or None, default 5
        Folds of the whole procedure that hit rates of new cases come from; 0 turns them off.
    budget, pos_label, categorical_features, keep_columns, n_jobs
        As in `MetaAP`.
    random_state : int, RandomState or None
        Seed of folds and of the test against luck; None means 0.
    verbose : int, default 0
        1 shows progress.

    Attributes
    ----------
    flags_ : Flags
        The rules with their points.
    card_ : Card
        Points of values, and the base of the score.
    rates_ : HitRates
        Hit rate by score, of new cases; with cv=0 of the training cases.

    Examples
    --------
    >>> from toprank import RedFlags
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(6000, random_state=0)
    >>> model = RedFlags(teacher=None, cv=0, max_features=0).fit(data.X, data.y)
    >>> model.flags_[0].points > 20
    True
    """

    _parameter_constraints = {
        **RANKER_CONSTRAINTS,
        "max_rules": [Interval(Integral, 0, 60, closed="both")],
        "max_conditions": [Interval(Integral, 1, 10, closed="both")],
        "max_total_conditions": [Interval(Integral, 1, None, closed="left")],
        "max_features": [Interval(Integral, 0, None, closed="left")],
        "max_bins_per_feature": [Interval(Integral, 2, 32, closed="both")],
        "points": [Interval(Integral, 1, None, closed="left"), None],
        "teacher": [StrOptions({"auto"}), HasMethods(["fit", "predict_proba"]), None],
        "monotonic_cst": MONOTONIC_CST,
        **FOLD_CONSTRAINTS,
        "verbose": ["verbose"],
    }

    max_rules: int = 20
    max_conditions: int = 4
    max_total_conditions: int = 40
    max_features: int = 12
    max_bins_per_feature: int = 5
    points: int | None = 10
    teacher: Any = "auto"
    monotonic_cst: Any = None
    cv: Any = 5
    budget: int | float | None = None
    pos_label: Any = None
    categorical_features: Any = None
    keep_columns: Any = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    # --- fitting ------------------------------------------------------------------------------------------------

    def _fit_model(self, data: Cases, threads: Threads) -> Unseen | None:
        warn_of_light_weights(self.n_cases_, int(LEAST_ROWS), data.weight)
        direction, lesson = self._directions(data), self._lesson(data)
        limits = Limits(self.max_rules, self.max_conditions, self.max_total_conditions, self.max_features,
                        self.max_bins_per_feature)  # fmt: skip
        folds = [
            replace(fold, own_weight=lesson.own_weight)
            for fold in held_out_folds(lesson.cases(), self.cv, self.random_state, len(lesson))
        ]
        seed = seed_of(self.random_state)
        stage("the teacher predicts each case from others", self.verbose > 0 and self.teacher is not None)
        target, targets = self._targets(lesson, folds, data.is_categorical, threads)
        parts = []
        taught = list(zip(folds, targets, strict=True))
        for fold, own in progress(taught, len(folds), "rules in folds", self.verbose > 0):
            model = self._model(learn(lesson.take(fold.inside), own[fold.inside], limits, direction, seed, threads))
            part = HeldOut.from_fold(lesson.cases(), fold, model.decision_function)
            parts.append(part if lesson.X is data.X else replace(part, rows=None))  # rows of the lesson, not the table
        stage("rules and points from all cases", self.verbose > 0)
        learned = learn(lesson, target, limits, direction, seed, threads)
        n_present = len(data.X) if data.weight is None else np.count_nonzero(data.weight)
        if n_present > SEARCH_ROWS and lesson.X is not data.X:
            learned = self._refitted(learned, data, direction, lesson.weight, threads)
        model = self._model(learned)
        self.flags_, self.card_ = _with_figures(model.flags, data), model.card
        return Unseen(parts, by_folds(len(parts))) if parts else None

    def _directions(self, data: Cases) -> np.ndarray:
        """Direction of each column, int8 (n_features,); 0 for any."""
        found = read_directions(self.monotonic_cst, data.columns, data.is_categorical, "RedFlags")
        return np.zeros(len(data.columns), np.int8) if found is None else found

    def _lesson(self, data: Cases) -> LearningCases:
        """The cases to learn from: distinct ones, unless given folds refer to rows of the table."""
        if self.cv is None or isinstance(self.cv, int | np.integer):
            return LearningCases.from_cases(data, *sample_cases(data.is_positive, data.weight, SEARCH_ROWS))
        weight = data.all_weights
        return LearningCases(data.X, data.is_positive, weight, weight, data.columns, data.groups)

    def _targets(
        self, lesson: LearningCases, folds: list[Fold], is_categorical: np.ndarray, threads: Threads
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Soft targets for all cases and for each fold."""
        if self.teacher is None:
            own = lesson.is_positive.astype(np.float64)
            return own, [own] * len(folds)
        teacher = Teacher(None if self.teacher == "auto" else self.teacher, is_categorical)
        return soft_targets(lesson, teacher, folds, self.random_state, threads)

    @property
    def _scale(self) -> float:
        """Points per unit of log-odds."""
        return 1.0 if self.points is None else float(self.points)

    def _model(self, learned: Learned) -> FlagsAndCard:
        """Rules and a card in points, from log-odds on bins."""
        found = learned.points
        beta = found.rules * self._scale
        shapes, base = [], found.base * self._scale
        for each, values in zip(learned.grouped, found.groups, strict=True):
            points = values * self._scale
            usual = each.usual_points(points)  # what most cases have gets no points, so that points say what is unusual
            points = points - usual
            if self.points is not None:
                points = np.round(points)
                also = each.usual_points(points)  # rounded, two groups may have the same points, and most cases
                points, usual = points - also + 0.0, usual + also
            base += usual
            shapes.append(each.shape(learned.table, points))
        card = Card(tuple(shape for shape in shapes if shape.largest > 0), base, self._scale)
        if self.points is not None:
            beta, card = np.round(beta) + 0.0, replace(card, base=float(np.round(base)) + 0.0)
        flags = []
        places = {id(rule): place for place, rule in enumerate(learned.rules)}
        for rule, conditions, value in zip(learned.rules, self._conditions(learned), beta.tolist(), strict=True):
            inside = TOP if rule.parent is None else places[id(rule.parent)]
            flags.append(Flag(conditions, value, inside))
        return FlagsAndCard(_in_print_order(flags, len(self.columns_)), card)

    def _conditions(self, learned: Learned) -> list[tuple[Condition, ...]]:
        """The conditions of each rule."""
        return [
            tuple(learned.table.condition(f, mask, self.columns_[f]) for f, mask in rule.masks.items())
            for rule in learned.rules
        ]

    def _refitted(
        self, learned: Learned, data: Cases, direction: np.ndarray, lesson_weight: np.ndarray, threads: Threads
    ) -> Learned:
        """The same rules and groups of bins, with log-odds fitted on the outcomes of all rows of the table.

        Rules that no longer raise the score are dropped, with those inside them.
        """
        flags = Flags(tuple(Flag(conditions, 1.0) for conditions in self._conditions(learned)), len(self.columns_))
        holds = list(flags.holds(data.X).T)
        group_of = [each.group_of(learned.table, data.X) for each in learned.grouped]
        weight = data.all_weights
        priors, ridges = [each.values for each in learned.grouped], [each.ridge for each in learned.grouped]
        target, rules = data.is_positive.astype(np.float64), list(learned.rules)
        while True:
            points = refit(holds, group_of, priors, ridges, target, weight, threads)
            weak = {
                id(rule) for rule, beta in zip(rules, points.rules, strict=True) if rule.parent is None and beta <= 0
            }
            kept = [i for i, rule in enumerate(rules) if id(rule) not in weak and id(rule.parent) not in weak]
            if len(kept) == len(rules):
                points = points.in_order(learned.table, learned.grouped, direction, lesson_weight)
                grouped = [each.knowing(learned.table, data.X[weight > 0, each.feature]) for each in learned.grouped]
                return replace(learned, rules=rules, points=points, grouped=grouped)
            rules, holds = [rules[i] for i in kept], [holds[i] for i in kept]

    def _rate_parts(self, data: Cases, rows: slice | np.ndarray, score: np.ndarray) -> None:
        holds = self.flags_.holds(data.X[rows])
        weight = data.all_weights[rows]
        flags = []
        for flag, held in zip(self.flags_, holds.T, strict=True):
            held = held & (weight > 0) & self.rates_.is_for_new_cases
            rate = self.rates_.of_group(score[held], weight[held])[0] if held.any() else np.nan
            flags.append(replace(flag, hit_rate=rate))
        self.flags_ = Flags(tuple(flags), len(self.columns_))

    # --- scoring and explaining ---------------------------------------------------------------------------------

    def _score_rows(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        return FlagsAndCard(self.flags_, self.card_).decision_function(matrix, threads)

    def _reasons(
        self, matrix: np.ndarray, n_reasons: int, originals: Originals, gain: np.ndarray | None
    ) -> list[list[Reason]]:
        """Rules that hold, with the flags inside them, and values on the card, strongest first."""
        card = self._card_log_odds(matrix)
        holds = self.flags_.holds(matrix)
        tops = [place for place, flag in enumerate(self.flags_) if flag.inside == TOP]
        around = [place if flag.inside == TOP else flag.inside for place, flag in enumerate(self.flags_)]
        points = np.array([flag.points for flag in self.flags_]).reshape(-1) / self._scale
        rules = np.zeros((len(matrix), len(self.flags_)))
        for place, top in enumerate(around):
            rules[:, top] += holds[:, place] * points[place]
        share = (np.ones(len(matrix)) if gain is None else kept_shares(np.hstack((card, rules)), gain))[:, None]
        on_card = strongest(card * share, self.columns_, matrix, n_reasons, originals)
        rules *= share
        out = []
        for row, found in enumerate(on_card):
            counted = [place for place in np.flatnonzero(holds[row]).tolist() if points[place]]
            flagged = [
                self._flag_reason(
                    [each for each in counted if around[each] == place], matrix[row], float(rules[row, place])
                )
                for place in tops
                if holds[row, place] and rules[row, place] >= math.log(LEAST_STRENGTH)
            ]
            every = sorted([*flagged, *found], key=lambda reason: -reason.strength)
            out.append(every[:n_reasons])
        return out

    def _card_log_odds(self, matrix: np.ndarray) -> np.ndarray:
        """What each value adds on the card, against the usual one, in log-odds: float64 (n, n_features)."""
        typical = self.card_.contributions(typical_row(self.columns_)[None])
        return (self.card_.contributions(matrix) - typical) / self._scale

    def _contributions(self, matrix: np.ndarray) -> np.ndarray:
        """Those of the card, and the points of rules that hold, shared by their columns."""
        out = self._card_log_odds(matrix)
        for flag, holds in zip(self.flags_, self.flags_.holds(matrix).T, strict=True):
            features = [condition.feature for condition in flag.conditions]
            out[:, features] += (holds * flag.points / (self._scale * len(features)))[:, None]
        return out

    def _flag_reason(self, places: list[int], row: np.ndarray, log_odds: float) -> Reason:
        """A rule and the flags inside it as one reason: all their conditions, merged, with the values of the row."""
        conditions = merged(condition for place in places for condition in self.flags_[place].conditions)
        names = ", ".join(condition.column.name for condition in conditions)
        text = joined([condition.text(float(row[condition.feature])) for condition in conditions])
        return Reason(names, None, float(min(np.exp(log_odds), MOST_STRENGTH)), text)

    def explain(self, X: Any) -> list[FlagsExplanation]:
        """Explain the score of each row: the rules that hold and the points of its values; they add up to the score."""
        matrix = self._encode(X)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            score = self._score_rows(matrix, threads)
        figures = figures_of(score, self.rates_, self.base_rate_)
        holds, card = self.flags_.holds(matrix), self.card_.contributions(matrix)
        on_card = value_steps(card, self.columns_, matrix, original_values(X, self._input_names))
        out = []
        for i, (of_values, known) in enumerate(zip(on_card, figures, strict=True)):
            of_flags = [
                Step(flag.kind, place + 1, flag.points, f"{flag.kind} {place + 1}: {flag.text()}")
                for place, flag in enumerate(self.flags_)
                if holds[i, place]
            ]
            steps = sorted([*of_flags, *of_values], key=lambda step: -step.contribution)
            out.append(FlagsExplanation(self.card_.base, tuple(steps), **known))
        return out

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column in all points, float64 (n_features,): those of a rule are shared by its columns.

        Points count by the training cases that have them; a card's by the spread between its bins.
        """
        check_is_fitted(self)
        out = np.zeros(len(self.columns_))
        for flag in self.flags_:
            share = min(flag.n / self.n_cases_, 1.0) if flag.n >= 0 else 0.0  # unknown for rules added by hand
            for condition in flag.conditions:
                out[condition.feature] += abs(flag.points) * np.sqrt(share * (1 - share)) / len(flag.conditions)
        for shape in self.card_.shapes:
            out[shape.feature] += float(np.std(shape.points))
        total = out.sum()
        return out / total if total > 0 else out

    # --- changes by hand ----------------------------------------------------------------------------------------

    def without_rule(self, number: int, X: Any, y: Any, *, refit_on: Any = None) -> Change:
        """Drop a rule, with those inside it, and judge the change.

        Parameters
        ----------
        number : int
            Of the rule, as printed: from 1.
        X, y : table and outcomes
            Cases to judge the change on, which the model was not trained on; its new hit rates come from them. On the
            training cases, or those of `refit_on`, these are training rates, with a warning.
        refit_on : tuple of table and outcomes, optional
            Cases to refit the points of the other rules and of the card on; by default they stay.

        Returns
        -------
        Change
            `model` is the changed model; its text says what the change costs. The model itself stays as it is.
        """
        place = self._place(number)
        flags = self.flags_.without(place)
        n_inside = len(self.flags_) - len(flags) - 1
        inside = f", and {plural(n_inside, 'rule')} inside it" if n_inside else ""
        return self._changed(flags, f"dropped rule {number}: {self.flags_[place].text()}{inside}", X, y, refit_on)

    def with_points(self, number: int, points: float, X: Any, y: Any) -> Change:
        """Change the points of a rule, and judge the change; parameters as in `without_rule`."""
        place = self._place(number)
        old, points = self.flags_[place], _checked_points(points)
        changed = [points if i == place else flag.points for i, flag in enumerate(self.flags_)]
        text = f"rule {number} has {points_text(points)} instead of {points_text(old.points)}: {old.text()}"
        return self._changed(self.flags_.with_points(changed), text, X, y, None)

    def with_rule(
        self, conditions: Mapping[str, Any], X: Any, y: Any, *, points: float | None = None, refit_on: Any = None
    ) -> Change:
        """Add a rule that an expert knows, and judge the change.

        Parameters
        ----------
        conditions : dict
            Column names with ("<=", 3), (">", 3) or (2, 5) for a number, ("<=", "2024-03-01") and so on for a date, a
            name or a list of names for a category, None for a missing value.
        X, y, refit_on
            As in `without_rule`.
        points : float, optional
            Points of the rule; without them, `refit_on` is needed to fit them. One of the two.

        Examples
        --------
        >>> from toprank import RedFlags
        >>> from toprank.datasets import make_audit
        >>> past, new = make_audit(6000, random_state=0).split()
        >>> model = RedFlags(teacher=None, cv=0, max_rules=3).fit(past.X, past.y)
        >>> change = model.with_rule({"sector": "construction", "age_years": ("<=", 2)}, new.X, new.y, points=5)
        >>> len(change.model.flags_) - len(model.flags_), change.text
        (1, 'added +5: sector is construction; age_years <= 2')
        """
        check_is_fitted(self)
        if points is None and refit_on is None:
            raise InputError(
                "RedFlags.with_rule needs the points of the new rule, got neither points nor refit_on. "
                "Hint: pass points=10, or refit_on=(X, y) with the training cases."
            )
        if points is not None and refit_on is not None:
            raise InputError(
                "RedFlags.with_rule takes points or refit_on, got both: a refit fits the points of all rules. "
                "Hint: pass one of them."
            )
        flag = Flag(written_conditions(conditions, self.columns_), 0.0 if points is None else _checked_points(points))
        change = self._changed(Flags((*self.flags_, flag), self.flags_.n_features), "", X, y, refit_on)
        added = change.model.flags_[-1]
        return replace(change, text=f"added {points_text(added.points)}: {added.text()}")

    def _place(self, number: int) -> int:
        check_is_fitted(self)
        if not len(self.flags_):
            raise InputError("This model has no rules to change. Hint: `with_rule` adds one.")
        if not is_int(number) or not 1 <= number <= len(self.flags_):
            raise InputError(
                f"number must be a rule number, from 1 to {len(self.flags_)}, got {number!r}. "
                "Hint: to_text() numbers the rules."
            )
        return int(number) - 1

    def _changed(self, flags: Flags, text: str, X: Any, y: Any, refit_on: Any) -> Change:
        """A copy with other rules, judged on some cases."""
        other = copy(self)
        other.budget = self.budget_  # one set since the fit waits for the next fit
        matrix, is_positive = self._cases_to_judge(X, y)
        judged_on = Cases(matrix, is_positive, None, self.columns_)
        is_seen = self._has_trained_on(matrix, is_positive)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            other.flags_, other.card_ = flags, self.card_
            if refit_on is not None:
                if not isinstance(refit_on, tuple | list) or len(refit_on) != 2:
                    raise InputError("refit_on must be a pair of a table and its outcomes. Hint: pass refit_on=(X, y).")
                past, past_positive = self._cases_to_judge(*refit_on)
                cases = Cases(past, past_positive, None, self.columns_)
                is_seen = is_seen or cases.fingerprint() == judged_on.fingerprint()
                other.flags_, other.card_ = refitted(
                    flags, self.card_, past, past_positive, self._directions(cases), self.points is not None, threads
                )
                other.flags_ = _with_figures(other.flags_, cases)
            score = other._score_rows(matrix, threads)
            unseen = None if is_seen else Unseen([HeldOut(score, is_positive, np.ones(len(score)))], JUDGED)
            other._set_cutoff(judged_on, threads, unseen)
            k = self._budget_in(len(matrix))
            judged = BeforeAfter.from_scores(is_positive, self._score_rows(matrix, threads), score, k)
        if is_seen:
            warn_caller(
                "The model was trained on these very cases, so the figures of the change are optimistic, and its hit "
                "rates are training rates. Hint: judge it on later cases."
            )
        return Change(**vars(judged), model=other, text=text)

    def _cases_to_judge(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Encoded rows and which are positive, both classes present."""
        matrix = self._encode(X)
        return matrix, positives_of(self, y, len(matrix), type(self).__name__)

    # --- files and text -----------------------------------------------------------------------------------------

    def rules(self) -> Any:
        """Return one row per rule: number, rule, points, inside, hit_rate, n, positives, training_rate.

        `inside` is the number of the rule that a correction belongs to, 0 for a rule of its own. `hit_rate` is the rate
        to expect of new cases; with cv=0 there is only the training rate.
        """
        check_is_fitted(self)
        has_rates = self.rates_.is_for_new_cases
        return make_frame(
            {
                "number": list(range(1, len(self.flags_) + 1)),
                "rule": [flag.text() for flag in self.flags_],
                "points": [flag.points for flag in self.flags_],
                "inside": [flag.inside + 1 for flag in self.flags_],
                **({"hit_rate": [flag.hit_rate for flag in self.flags_]} if has_rates else {}),
                "n": [flag.n for flag in self.flags_],
                "positives": [flag.positives for flag in self.flags_],
                "training_rate": [flag.rate(has_rates=False) for flag in self.flags_],
            },
            self._backend,
        )

    def to_text(self, *, exact: bool = False) -> str:
        """Return the whole model on a page: what scores mean, rules with their points and hits, points of values.

        Parameters
        ----------
        exact : bool, default False
            Numbers with all their digits, and every category.
        """
        check_is_fitted(self)
        return self._page(exact=exact)

    def _page(self, *, exact: bool = False, full_text: str = FULL_TEXT) -> str:
        return flags_page(self, exact=exact, full_text=full_text)

    def _overview(self, page_text: str, full_text: str) -> str:
        """The page, which is never long: a parameter limits its rules and columns."""
        return self._page(full_text=full_text)

    def _plain_parts(self) -> dict[str, Any]:
        return {
            "rules": [flag.to_dict() for flag in self.flags_],
            "card": {name: array.tolist() for name, array in self.card_.to_arrays().items()},
        }

    def _size_in_words(self) -> str:
        rules = f"{self.flags_.size_text} with {plural(self.flags_.n_conditions, 'condition')} in all"
        return f"{rules}; points for {plural(len(self.card_), 'column')}"

    def _figures(self) -> dict[str, Any]:
        return {
            "n_rules": len(self.flags_),
            "n_conditions": self.flags_.n_conditions,
            "n_columns": len(self.card_),
        }

    def _to_arrays(self) -> dict[str, np.ndarray]:
        own = with_prefix(self.flags_.to_arrays(), "flags_") | with_prefix(self.card_.to_arrays(), "card_")
        return super()._to_arrays() | own

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self.flags_ = Flags.from_arrays(without_prefix(arrays, "flags_"), self.columns_)
        self.card_ = Card.from_arrays(without_prefix(arrays, "card_"), self.columns_)


def _checked_points(points: Any) -> float:
    """Points that a user gives, as a finite number."""
    if not is_real(points) or not math.isfinite(points):
        raise InputError(f"points must be a finite number, got {points!r}. Hint: points is a number such as 10.")
    return float(points)


def _in_print_order(flags: list[Flag], n_features: int) -> Flags:
    """Rules with the most points first, each followed by the flags inside it; those without points are dropped.

    A flag inside a dropped one stands on its own.
    """
    kept = [place for place, flag in enumerate(flags) if flag.points]
    tops = [place for place in kept if flags[place].inside not in kept]
    order = []
    for top in sorted(tops, key=lambda place: (-flags[place].points, place)):
        order += [top, *(place for place in kept if flags[place].inside == top)]
    position = {old: new for new, old in enumerate(order)}
    return Flags(tuple(replace(flags[i], inside=position.get(flags[i].inside, TOP)) for i in order), n_features)


def _with_figures(flags: Flags, data: Cases) -> Flags:
    """The rules with the training cases for which they hold."""
    if not len(flags):
        return flags
    holds = flags.holds(data.X)
    weight = data.all_weights
    counts = zip(flags, weight @ holds, (weight * data.is_positive) @ holds, strict=True)
    return Flags(
        tuple(replace(flag, n=float(n), positives=float(positives)) for flag, n, positives in counts), flags.n_features
    )
