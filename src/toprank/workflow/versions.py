"""Two versions of a model on the same cases: is the later one better, which cases move, and what changed inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank.data.frames import backend_of, make_frame
from toprank.data.shared_table import SharedTable, plain_table
from toprank.errors import InputError, InputTypeError, warn_caller
from toprank.metrics import BeforeAfter
from toprank.rankers.alerts import count_of_alerts
from toprank.rankers.base import Ranker
from toprank.rankers.points.changes import ColumnPoints, PointsChange, RuleChange, points_changes, rule_changes
from toprank.rankers.points.points_ranker import PointsRanker
from toprank.rankers.points.red_flags import RedFlags
from toprank.rankers.points.scorecard_tree import ScorecardTree
from toprank.rankers.validation import positives_of
from toprank.words.counts import count, plural
from toprank.words.plain import plain
from toprank.words.wrapping import wrapped

OWNER = "compare_versions"
NOT_OF_THE_MODEL = ("n_jobs", "verbose")
"""Parameters that change no model."""

RULE_CHANGES = {"dropped": "rules dropped", "added": "new rules", "changed": "other points"}
"""What the text calls the changes of a rule whose conditions are the same."""

VERDICTS = {
    "better": "the later version is better",
    "worse": "the later version is worse",
    "no difference": "no difference",
    "no clear difference": "no clear difference: it may be chance",
}

WIDTH = 100
COLUMNS_SHOWN = 8
"""Columns with other points that the text lists."""

VALUE_WIDTH = 60
"""Most characters of a setting in the text."""


@dataclass(frozen=True, eq=False)
class ModelChanges:
    """What changed between two versions of a model.

    Attributes
    ----------
    classes : tuple of two str
        Names of the classes, before and after.
    sizes : tuple of two str
        Size of each model in words.
    trained_on : tuple of two tuples of floats
        Training cases and positives among them, before and after.
    settings : dict
        Parameters that differ, with both values; of different classes those that both have.
    columns_added, columns_dropped : tuple of str
        Columns that only one of the models uses.
    columns_changed : dict
        Columns of another kind ("number", "category", "date"), with both kinds.
    rules : tuple of RuleChange, or None
        All rules of both versions beside each other, kept ones included; None unless both are `RedFlags`.
    points : tuple of PointsChange, or None
        Columns whose points differ, the largest change first; None unless both are `RedFlags` or both are scorecards.
    has_other_scale : bool
        Whether points mean something else after; the earlier points are then shown on the later scale.
    """

    classes: tuple[str, str]
    sizes: tuple[str, str]
    trained_on: tuple[tuple[float, float], tuple[float, float]]
    settings: dict[str, tuple[Any, Any]]
    columns_added: tuple[str, ...] = ()
    columns_dropped: tuple[str, ...] = ()
    columns_changed: dict[str, tuple[str, str]] = field(default_factory=dict)
    rules: tuple[RuleChange, ...] | None = None
    points: tuple[PointsChange, ...] | None = None
    has_other_scale: bool = False

    def lines(self) -> list[tuple[str, str]]:
        """Return what changed as pairs of a name and a text, the name only once; empty if nothing changed."""
        found = [*self._fact_lines(), *self._rule_lines(), *self._points_lines()]
        names = ["", *(name for name, _ in found)]
        return [("" if name == previous else name, text)
                for previous, (name, text) in zip(names, found, strict=False)]  # fmt: skip

    def _fact_lines(self) -> Iterator[tuple[str, str]]:
        if self.classes[0] != self.classes[1]:
            yield "model", f"{self.classes[1]} instead of {self.classes[0]}"
        if self.sizes[0] != self.sizes[1]:
            yield "size", f"{self.sizes[1]}; was: {self.sizes[0]}"
        if self.trained_on[0] != self.trained_on[1]:
            then, now = (f"{plural(n, 'case')}, {count(positives)} positive" for n, positives in self.trained_on)
            yield "trained on", f"{now}; was: {then}"
        for name, (old, new) in self.settings.items():
            yield "settings", f"{name}={_short(new)} instead of {_short(old)}"
        if self.columns_added:
            yield "new columns", ", ".join(self.columns_added)
        if self.columns_dropped:
            yield "columns dropped", ", ".join(self.columns_dropped)
        for name, (old, new) in self.columns_changed.items():
            yield "other kind", f"{name}: {new} instead of {old}"

    def _rule_lines(self) -> Iterator[tuple[str, str]]:
        rules = self.rules or ()
        n_kept = sum(rule.kind == "kept" for rule in rules)
        for rule in rules:
            if rule.kind != "kept":
                yield "other conditions" if rule.has_other_conditions else RULE_CHANGES[rule.kind], rule.text
        if 0 < n_kept < len(rules):
            yield "unchanged", plural(n_kept, "rule")

    def _points_lines(self) -> Iterator[tuple[str, str]]:
        found = self.points or ()
        for change in found[:COLUMNS_SHOWN]:
            yield "points", change.text
        if len(found) > COLUMNS_SHOWN:
            yield "points", f"smaller changes in {plural(len(found) - COLUMNS_SHOWN, 'other column')}"
        if self.has_other_scale:
            yield "scale", "points have another scale now; the earlier ones are shown on the new scale"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        pairs = {"classes": self.classes, "sizes": self.sizes, "trained_on": self.trained_on}
        out: dict[str, Any] = {name: {"before": pair[0], "after": pair[1]} for name, pair in pairs.items()}
        for name in ("settings", "columns_changed"):
            found = getattr(self, name)
            out[name] = {key: {"before": old, "after": new} for key, (old, new) in found.items()}
        out |= {"columns_added": self.columns_added, "columns_dropped": self.columns_dropped}
        out["rules"] = None if self.rules is None else [rule.to_dict() for rule in self.rules]
        out["points"] = None if self.points is None else [change.to_dict() for change in self.points]
        return plain(out | {"has_other_scale": self.has_other_scale})


@dataclass(frozen=True, eq=False)
class VersionComparison:
    """Two versions of a model on the same cases.

    Attributes
    ----------
    n_cases : int
    n_positives : int or None
        None without outcomes, like the other figures that need them.
    k : int
        Number of cases that can be checked.
    figures : BeforeAfter or None
        Average precision and hits in the first k cases of both.
    n_same : int
        How many of the first k cases are the same; the others are new.
    hits_entered, hits_left : int or None
        Positives among the cases that entered the first k, and among those that left.
    moved : data frame
        Cases that entered or left the first k: change ("entered" or "left"), row (position in the table, from 0),
        rank_before, rank_after, and with outcomes is_positive. In the frame type of X.
    changes : ModelChanges
        What changed in the model.
    has_same_scores : bool
        Whether every case has the same score before and after.
    """

    n_cases: int
    n_positives: int | None
    k: int
    figures: BeforeAfter | None
    n_same: int
    hits_entered: int | None
    hits_left: int | None
    moved: Any
    changes: ModelChanges
    has_same_scores: bool

    @property
    def n_new(self) -> int:
        """Cases among the first k that were not there before; as many have left."""
        return self.k - self.n_same

    @property
    def moved_text(self) -> str:
        """How many of the first k cases are new, in words."""
        if not self.n_new:
            first = "first case is" if self.k == 1 else f"first {self.k:,} cases are"
            return f"the {first} the same before and after"
        text = f"{self.n_new:,} of the first {self.k:,} {'is' if self.n_new == 1 else 'are'} new"
        if self.hits_entered is None:
            return text
        if self.n_new == 1:
            new, old = ("a hit" if hits else "not a hit" for hits in (self.hits_entered, self.hits_left))
            return f"{text}: {new}; the one that left was {old}"
        return f"{text}: {plural(self.hits_entered, 'hit')} among them, {self.hits_left:,} among those that left"

    @property
    def unchanged_text(self) -> str:
        """What to say of models for which `changes` lists nothing."""
        return "nothing changed in the model" if self.has_same_scores else "the same kind of model, with other scores"

    @property
    def verdict_text(self) -> str:
        """Whether the later version is better, in words; empty without outcomes."""
        return "" if self.figures is None else VERDICTS[self.figures.verdict]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        names = ("n_cases", "n_positives", "k", "n_same", "n_new", "hits_entered", "hits_left",
                 "has_same_scores")  # fmt: skip
        out: dict[str, Any] = {name: getattr(self, name) for name in names}
        figures = self.figures
        if figures is not None:
            value, low, high = figures.difference
            out |= {
                "average_precision": {"before": figures.before, "after": figures.after},
                "difference": {"value": value, "low": low, "high": high, "level": 0.95},
                "hits": {"before": figures.hits_before, "after": figures.hits_after},
                "verdict": figures.verdict,
            }
        rows = self.moved if isinstance(self.moved, dict) else nw.from_native(self.moved).to_dict(as_series=False)
        return plain(out | {"moved": rows, "changes": self.changes.to_dict()})

    def __str__(self) -> str:
        cases = plural(self.n_cases, "case")
        lines = [f"on {cases}" if self.n_positives is None else f"on {cases}, {self.n_positives:,} positive:"]
        lines += [] if self.figures is None else [self.verdict_text, str(self.figures)]
        changed = self.changes.lines()
        lines += [self.moved_text, "what changed in the model:" if changed else self.unchanged_text]
        indent = 4 + max((len(name) for name, _ in changed), default=0)
        for name, text in changed:
            parts = wrapped(text, WIDTH - indent)
            lines += [f"  {name}".ljust(indent) + parts[0], *(" " * indent + part for part in parts[1:])]
        return "\n".join(lines)


def compare_versions(
    before: Ranker, after: Ranker, X: Any, y: Any = None, k: int | float | None = None
) -> VersionComparison:
    """Compare two versions of a model on the same cases.

    Parameters
    ----------
    before, after : fitted rankers
        For example last quarter's model and this quarter's, or a model before and after a change by hand. They may be
        of different classes, but X must have the columns of both.
    X : data frame or array of shape (n, n_features)
        Cases that neither version was trained on; otherwise the figures are optimistic.
    y : array of shape (n,), optional
        Their outcomes. Without them only ranks and models are compared.
    k : int, float or None
        Number of cases that can be checked, or a share of them; None: the budget of `after`.

    Returns
    -------
    VersionComparison

    Examples
    --------
    >>> from toprank import RedFlags, compare_versions
    >>> from toprank.datasets import make_audit
    >>> past, new = make_audit(4000, random_state=0).split()
    >>> old = RedFlags(teacher=None, cv=0, max_rules=3, max_features=2, budget=50).fit(past.X, past.y)
    >>> edited = old.with_rule({"age_years": ("<=", 2)}, new.X, new.y, points=5).model
    >>> found = compare_versions(old, edited, new.X, new.y)
    >>> found.k, found.n_same + found.n_new, [rule.text for rule in found.changes.rules if rule.kind != "kept"]
    (50, 50, ['+5: age_years <= 2'])
    """
    table = SharedTable(plain_table(X))
    old, new = _scores(before, "before", table), _scores(after, "after", table)
    n = len(old)
    is_positive = None if y is None else _positives(before, after, table, y, n)
    if k is None:
        k = after._budget_in(n)
    k = count_of_alerts(k, n)
    columns = _moved(_ranks(old), _ranks(new), k, is_positive)
    entered = np.array([change == "entered" for change in columns["change"]], bool)
    hits = np.array(columns.get("is_positive", ()), bool)
    return VersionComparison(
        n_cases=n,
        n_positives=None if is_positive is None else int(is_positive.sum()),
        k=k,
        figures=None if is_positive is None else BeforeAfter.from_scores(is_positive, old, new, k),
        n_same=k - int(entered.sum()),
        hits_entered=None if is_positive is None else int(hits[entered].sum()),
        hits_left=None if is_positive is None else int(hits[~entered].sum()),
        moved=make_frame(columns, backend_of(table.X) or after._backend),
        changes=model_changes(before, after, table),
        has_same_scores=np.array_equal(old, new),
    )


def _scores(model: Any, name: str, table: SharedTable) -> np.ndarray:
    """Scores of one version; errors say which one they are about."""
    if not isinstance(model, Ranker):
        raise InputTypeError(
            f"{OWNER} needs a fitted ranker of this library as `{name}`, got {model!r}. "
            "Hint: `toprank.load` reads one from a file."
        )
    check_is_fitted(model)
    try:
        return model.decision_function(table)
    except InputTypeError:
        raise
    except ValueError as error:
        raise InputError(
            f"{OWNER} needs a table with the columns of both versions, but `{name}` ({type(model).__name__}) cannot "
            f"read it: {error}"
        ) from error


def _positives(before: Ranker, after: Ranker, table: SharedTable, y: Any, n: int) -> np.ndarray:
    """Which cases are positive; warns if a version was trained on these cases."""
    wanted = [model.classes_.tolist()[model.positive_index_] for model in (before, after)]
    if wanted[0] != wanted[1] and set(before.classes_.tolist()) == set(after.classes_.tolist()):
        raise InputError(
            f"{OWNER} needs versions that look for the same outcome, but `before` looks for {wanted[0]!r} and `after` "
            f"for {wanted[1]!r}. Hint: refit one of them with another pos_label."
        )
    is_positive = positives_of(after, y, n, OWNER)
    known = [
        f"`{name}`"
        for name, model in (("before", before), ("after", after))
        if model._has_trained_on(model._encode(table), is_positive)
    ]
    if known:
        warn_caller(
            f"{' and '.join(known)} {'was' if len(known) == 1 else 'were'} trained on these very cases, so the figures "
            "are optimistic. Hint: compare on later cases."
        )
    return is_positive


def _ranks(score: np.ndarray) -> np.ndarray:
    """Rank of each case, from 1 at the top; ties are broken by row order, as in `top_k`."""
    ranks = np.empty(len(score), np.int64)
    ranks[np.argsort(-score, kind="stable")] = np.arange(1, len(score) + 1)
    return ranks


def _moved(before: np.ndarray, after: np.ndarray, k: int, is_positive: np.ndarray | None) -> dict[str, Any]:
    """Columns of the cases that entered or left the first k: those that entered first, each by rank."""
    entered = np.flatnonzero((after <= k) & (before > k))
    left = np.flatnonzero((before <= k) & (after > k))
    rows = np.concatenate((entered[np.argsort(after[entered])], left[np.argsort(before[left])]))
    out = {
        "change": ["entered"] * len(entered) + ["left"] * len(left),
        "row": rows.tolist(),
        "rank_before": before[rows].tolist(),
        "rank_after": after[rows].tolist(),
    }
    return out if is_positive is None else out | {"is_positive": is_positive[rows].tolist()}


# --- the models -------------------------------------------------------------------------------------------------


def model_changes(before: Ranker, after: Ranker, X: Any) -> ModelChanges:
    """Return what changed between two versions; their rules and points are compared on the cases X."""
    kinds = [{column.name: column.kind for column in model.columns_} for model in (before, after)]
    both = [name for name in kinds[0] if name in kinds[1]]
    parameters = [model.get_params(deep=False) for model in (before, after)]
    differing = {
        name: (value, parameters[1][name])
        for name, value in parameters[0].items()
        if name in parameters[1] and name not in NOT_OF_THE_MODEL and plain(value) != plain(parameters[1][name])
    }
    return ModelChanges(
        classes=(type(before).__name__, type(after).__name__),
        sizes=(before._size_in_words(), after._size_in_words()),
        trained_on=((before.n_cases_, before.n_positives_), (after.n_cases_, after.n_positives_)),
        settings=differing,
        columns_added=tuple(name for name in kinds[1] if name not in kinds[0]),
        columns_dropped=tuple(name for name in kinds[0] if name not in kinds[1]),
        columns_changed={name: (kinds[0][name], kinds[1][name]) for name in both if kinds[0][name] != kinds[1][name]},
        **_points(before, after, X),
    )


def _points(before: Ranker, after: Ranker, X: Any) -> dict[str, Any]:
    """Changes of rules and points; nothing for models without them, or of different kinds."""
    models: tuple[Any, Any] = (before, after)
    if not any(all(isinstance(model, kind) for model in models) for kind in (RedFlags, PointsRanker)):
        return {}
    scales = [model.card_.scale for model in models]
    matrices = [model._encode(X) for model in models]
    found = []
    for model, matrix, scale in zip(models, matrices, scales, strict=True):
        own = model.card_.contributions(matrix) if isinstance(model, RedFlags) else model._points_of(matrix)[1]
        # Columns that have points on the card, or in the corrections of a scorecard tree.
        cards = [model.card_, *(model.card_tree_.corrections if isinstance(model, ScorecardTree) else ())]
        scored = frozenset(model.columns_[feature].name for card in cards for feature in card.features.tolist())
        found.append(ColumnPoints(model.columns_, matrix, own * (scales[1] / scale), scored))
    out: dict[str, Any] = {"points": tuple(points_changes(*found)), "has_other_scale": scales[0] != scales[1]}
    if isinstance(before, RedFlags) and isinstance(after, RedFlags):
        flags = before.flags_.with_points([flag.points * (scales[1] / scales[0]) for flag in before.flags_])
        held = flags.holds(matrices[0]), after.flags_.holds(matrices[1])
        out["rules"] = tuple(rule_changes(flags, after.flags_, *held))
    return out


def _short(value: Any) -> str:
    """A setting in words, cut if it is long."""
    text = repr(value) if not isinstance(value, str) else value
    text = " ".join(text.split())
    return text if len(text) <= VALUE_WIDTH else f"{text[: VALUE_WIDTH - 3]}..."
