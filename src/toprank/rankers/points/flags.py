"""`Flag`: a rule with points; `Flags`: all rules of a model, how they are checked, applied, stored and printed.

Rules can be changed by hand: the conditions that an expert writes, refitted points, and what a change costs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from toprank._core.points import add_rule_points, write_holds
from toprank._core.threads import Threads
from toprank.data.dates import days_of_values, read_date
from toprank.errors import InputError, Invariant, check_invariants
from toprank.explain.conditions import Condition, Way
from toprank.metrics import BeforeAfter
from toprank.metrics.checks import is_real
from toprank.rankers.points.card import Card, Shape, bins_of
from toprank.rankers.points.card_text import points_text
from toprank.rankers.points.shapes import prior_ridge, refit
from toprank.tree.bin_mapper import as_block, row_blocks
from toprank.tree.columns import Column
from toprank.words.counts import plural
from toprank.words.nearest import did_you_mean
from toprank.words.plain import plain
from toprank.words.wording import SHORT, Detail

DTYPES: dict[str, Any] = {
    "condition_at": np.int64, "feature": np.int32, "is_categorical": np.uint8, "low": np.float64, "high": np.float64,
    "missing": np.uint8, "bits": np.uint64, "points": np.float64, "inside": np.int32, "n": np.float64,
    "positives": np.float64, "hit_rate": np.float64,
}  # fmt: skip

PER_FLAG = ("points", "inside", "n", "positives", "hit_rate")
PER_CONDITION = ("feature", "is_categorical", "low", "high", "missing", "bits")

DAMAGED = "Not a valid list of red flags: it breaks the rule that {}. Hint: the data may be damaged."

LARGEST = float(np.finfo(np.float64).max)
SIGNS = ("<=", ">")
HOW = (
    'Hint: a number is ("<=", 3), (">", 3) or (2, 5), a date ("<=", "2024-03-01"), a category its name or a list of '
    "names, None is missing."
)

TOP = -1
"""In place of the number of a flag: it is not inside another one."""


def joined(conditions: Sequence[str]) -> str:
    """Return conditions that must all hold as one text: a list of categories has commas, so these are semicolons.

    Examples
    --------
    >>> joined(["sector is bar, hotel or bank", "age <= 3"])
    'sector is bar, hotel or bank; age <= 3'
    """
    return (" and " if any(";" in each for each in conditions) else "; ").join(conditions)


def flags_text(n_rules: int, n_corrections: int) -> str:
    """Return the size of a set of rules, corrections apart.

    Examples
    --------
    >>> flags_text(12, 8), flags_text(1, 0)
    ('4 red flags, 8 corrections', '1 red flag')
    """
    flags = plural(n_rules - n_corrections, "red flag")
    return f"{flags}, {plural(n_corrections, 'correction')}" if n_corrections else flags


@dataclass(frozen=True)
class Flag:
    """One rule with points.

    Attributes
    ----------
    conditions : tuple of Condition
        All must hold, those of the flag around it included; one per column.
    points : float
        What the score changes by where they hold.
    inside : int
        Position of the flag around it, which it corrects; -1 if it stands on its own.
    n, positives : float
        Training cases for which it holds, and positives among them.
    hit_rate : float
        Rate to expect of new cases for which it holds, by their scores; NaN if unknown.
    """

    conditions: tuple[Condition, ...]
    points: float
    inside: int = TOP
    n: float = math.nan
    positives: float = math.nan
    hit_rate: float = math.nan

    @property
    def n_conditions(self) -> int:
        """Number of conditions: both ends of a range count."""
        return sum(max(1, int(np.isfinite(c.low)) + int(np.isfinite(c.high))) if c.has_values else 1
                   for c in self.conditions)  # fmt: skip

    def rate(self, has_rates: bool) -> float:
        """The rate to expect of new cases, or without such rates that of the training cases; NaN if unknown."""
        return self.hit_rate if has_rates else self.positives / self.n if self.n > 0 else math.nan

    @property
    def way(self) -> Way:
        """The conditions, for their wording."""
        return Way(self.conditions)

    def text(self, detail: Detail = SHORT) -> str:
        """Return all conditions in words."""
        return joined(self.way.texts(detail))

    def holds(self, matrix: np.ndarray) -> np.ndarray:
        """Return for which encoded rows it holds, bool (n,)."""
        return self.way.holds(matrix)

    @property
    def is_correction(self) -> bool:
        """True if it corrects a flag around it, or lowers the score: it is not a red flag of its own."""
        return self.inside != TOP or self.points < 0

    @property
    def kind(self) -> str:
        """What it is called: "red flag" or "correction"."""
        return "correction" if self.is_correction else "red flag"

    def beside(self, other: Flag) -> tuple[Condition, ...]:
        """Return the conditions that another flag does not have, for "if also"."""
        known = set(other.conditions)
        return tuple(condition for condition in self.conditions if condition not in known)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        out = {name: getattr(self, name) for name in ("points", "inside", "n", "positives", "hit_rate")}
        conditions = [condition.to_dict() for condition in self.conditions]
        return plain({"rule": self.text(), "conditions": conditions, **out})


@dataclass(frozen=True, eq=False)
class Flags:
    """All rules of a model, in the order in which they are printed: each is followed by the flags inside it.

    Examples
    --------
    >>> age, sector = Column("age", has_missing=False), Column("sector", ("bar", "bank"), has_missing=False)
    >>> young = Condition(0, age, high=3.0, missing=False)
    >>> bar = Condition(1, sector, missing=False, codes=(0,))
    >>> flags = Flags((Flag((young,), 12.0), Flag((young, bar), -5.0, inside=0)), 2)
    >>> print(flags.to_text())
    +12   age <= 3
     -5     if also sector is bar
    >>> flags.decision_function(np.array([[2.0, 1.0], [2.0, 0.0], [9.0, 0.0]])).tolist()
    [12.0, 7.0, 0.0]
    """

    flags: tuple[Flag, ...]
    n_features: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "flags", tuple(self.flags))
        check_invariants(self._invariants(), DAMAGED)

    def __len__(self) -> int:
        return len(self.flags)

    def __iter__(self) -> Iterator[Flag]:
        return iter(self.flags)

    def __getitem__(self, place: int) -> Flag:
        return self.flags[place]

    @property
    def n_conditions(self) -> int:
        """Conditions of all rules; a flag inside another counts with all of its conditions."""
        return sum(flag.n_conditions for flag in self)

    @property
    def size_text(self) -> str:
        """Number of red flags and of corrections, in words: 3 red flags, 9 corrections."""
        return flags_text(len(self), sum(flag.is_correction for flag in self))

    def _invariants(self) -> Iterator[Invariant]:
        """Whether each invariant holds, and its text."""
        for place, flag in enumerate(self.flags):
            features = [condition.feature for condition in flag.conditions]
            yield bool(features) and all(0 <= f < self.n_features for f in features), "every rule asks for columns"
            yield len(set(features)) == len(features), "a rule has one condition per column"
            yield math.isfinite(flag.points), "points are finite"
            yield not any(v < 0 or v == math.inf for v in (flag.n, flag.positives)), "counts are not negative"
            yield math.isnan(flag.hit_rate) or 0 <= flag.hit_rate <= 1, "hit rates are from 0 to 1"
            yield (
                flag.inside == TOP or (0 <= flag.inside < place and self.flags[flag.inside].inside == TOP),
                "a flag is inside an earlier one that stands on its own",
            )
        yield math.isfinite(sum(abs(flag.points) for flag in self.flags)), "points add up to a finite score"

    # --- scoring ------------------------------------------------------------------------------------------------

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        """All rules in the arrays that kernels take."""
        conditions = [condition for flag in self for condition in flag.conditions]
        bits = np.zeros((len(conditions), 4), np.uint64)
        for place, condition in enumerate(conditions):
            for code in condition.codes or ():
                bits[place, code >> 6] |= np.uint64(1) << np.uint64(code & 63)
        found: dict[str, Any] = {
            "condition_at": np.append(0, np.cumsum([len(flag.conditions) for flag in self])),
            "feature": [c.feature for c in conditions],
            "is_categorical": [c.codes is not None for c in conditions],
            "low": [c.low for c in conditions],
            "high": [c.high for c in conditions],
            "missing": [c.missing for c in conditions],
            "bits": bits,
            **{name: [getattr(flag, name) for flag in self] for name in PER_FLAG},
        }
        return {name: np.array(found[name], dtype) for name, dtype in DTYPES.items()}

    @property
    def _conditions(self) -> tuple[np.ndarray, ...]:
        return tuple(self._arrays[name] for name in ("condition_at", *PER_CONDITION))

    def decision_function(self, matrix: np.ndarray, threads: Threads | None = None) -> np.ndarray:
        """Return the points of the rules that hold for each encoded row, added up: float64 (n,)."""
        out = np.zeros(len(matrix))

        def add(rows: slice) -> None:
            add_rule_points(as_block(matrix, rows), *self._conditions, self._arrays["points"], out[rows])

        (threads or Threads()).run(add, row_blocks(*matrix.shape))
        return out

    def holds(self, matrix: np.ndarray) -> np.ndarray:
        """Return which rules hold for each encoded row, bool (n, n_rules)."""
        out = np.zeros((len(matrix), len(self)), bool)
        for rows in row_blocks(*matrix.shape):
            write_holds(as_block(matrix, rows), *self._conditions, out[rows])
        return out

    # --- files --------------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of a file; `from_arrays` returns equal flags."""
        return dict(self._arrays)

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], columns: Sequence[Column]) -> Flags:
        """Return the flags in the arrays of a file, checked; ValueError if they do not fit these columns."""
        for name, dtype in DTYPES.items():
            if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1 + (name == "bits"):
                raise InputError(DAMAGED.format(f"{name!r} is an array of {np.dtype(dtype)}"))
        at, n_flags = arrays["condition_at"], len(arrays["points"])
        n_conditions = len(arrays["feature"])
        sizes = [arrays[name].shape == (n_flags,) for name in PER_FLAG]
        sizes += [arrays[name].shape == (n_conditions, *([4] if name == "bits" else [])) for name in PER_CONDITION]
        if not all(sizes) or at.shape != (n_flags + 1,):
            raise InputError(DAMAGED.format("all arrays have one entry per rule or condition"))
        invariants: list[Invariant] = [
            (bool(at[0] == 0 and at[-1] == n_conditions and np.all(at[1:] > at[:-1])), "every rule has conditions"),
            (bool(np.all((arrays["feature"] >= 0) & (arrays["feature"] < len(columns)))), "rules ask for columns"),
            (bool(np.all(arrays["missing"] <= 1)), "a missing value meets a condition or not"),
            (not np.isnan(np.concatenate((arrays["low"], arrays["high"]))).any(), "bounds are numbers"),
        ]
        check_invariants(invariants, DAMAGED)
        conditions = [_condition_from(arrays, place, columns) for place in range(n_conditions)]
        starts = at.tolist()
        flags = []
        for place in range(n_flags):
            own = {name: arrays[name][place].item() for name in PER_FLAG}
            flags.append(Flag(tuple(conditions[starts[place] : starts[place + 1]]), **own))
        return cls(tuple(flags), len(columns))

    # --- text ---------------------------------------------------------------------------------------------------

    def to_text(self, detail: Detail = SHORT) -> str:
        """Return one line per rule: points, then conditions; flags inside another are indented."""
        width = max((len(points_text(flag.points, detail)) for flag in self), default=0)
        return "\n".join(
            f"{points_text(flag.points, detail):>{width}}   {self.rule_text(flag, detail)}" for flag in self
        )

    def rule_text(self, flag: Flag, detail: Detail = SHORT) -> str:
        """Return the conditions of one of the rules; of a flag inside another, those that it adds."""
        if flag.inside == TOP:
            return flag.text(detail)
        added = flag.beside(self.flags[flag.inside])
        return "  if also " + joined([condition.text(detail=detail) for condition in added])

    def with_points(self, points: Sequence[float]) -> Flags:
        """The same rules with other points."""
        flags = [replace(flag, points=float(value)) for flag, value in zip(self, points, strict=True)]
        return Flags(tuple(flags), self.n_features)

    def without(self, place: int) -> Flags:
        """The flags without one of them, and without those inside it."""
        kept = [i for i, flag in enumerate(self.flags) if place not in (i, flag.inside)]
        return self.take(kept)

    def take(self, places: Sequence[int]) -> Flags:
        """Some of the rules; a flag whose surrounding flag is not among them stands on its own."""
        position = {old: new for new, old in enumerate(places)}
        flags = [replace(self.flags[i], inside=position.get(self.flags[i].inside, TOP)) for i in places]
        return Flags(tuple(flags), self.n_features)


def _condition_from(arrays: dict[str, np.ndarray], place: int, columns: Sequence[Column]) -> Condition:
    """Return one condition in the arrays of a file, checked against its column."""
    feature = int(arrays["feature"][place])
    column = columns[feature]
    n_categories = len(column.categories or ())
    low, high, missing = (arrays[name][place].item() for name in ("low", "high", "missing"))
    if bool(arrays["is_categorical"][place]) != (n_categories > 0):
        raise InputError(DAMAGED.format(f"conditions on column {column.name!r} fit its values"))
    if not n_categories:
        return Condition(feature, column, low=low, high=high, missing=bool(missing))
    unpacked = np.unpackbits(arrays["bits"][place].view(np.uint8), bitorder="little")
    codes = tuple(np.flatnonzero(unpacked).tolist())
    if codes and codes[-1] >= n_categories:
        raise InputError(DAMAGED.format(f"conditions on column {column.name!r} name its categories"))
    return Condition(feature, column, missing=bool(missing), codes=codes)


# --- changes by hand ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Change(BeforeAfter):
    """A changed model, and what the change costs on the cases it was judged on.

    Attributes
    ----------
    before, after, difference, k, hits_before, hits_after
        Average precision and hits of both models, as in `BeforeAfter`; k is the model's budget for so many cases.
    model : RedFlags
        The changed model; its hit rates come from these cases.
    text : str
        What was changed, in words.
    """

    model: Any
    text: str

    def __str__(self) -> str:
        return f"{self.text}\n{super().__str__()}"


def written_conditions(given: Mapping[str, Any], columns: Sequence[Column]) -> tuple[Condition, ...]:
    """Conditions from what an expert writes: column names with bounds or categories.

    Examples
    --------
    >>> columns = [Column("age"), Column("sector", ("bar", "bank"))]
    >>> [c.text() for c in written_conditions({"age": ("<=", 3), "sector": ["bar"]}, columns)]
    ['age <= 3', 'sector is bar']
    """
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"A rule must be a dict of column names and conditions, got {given!r}. {HOW}")
    names = [column.name for column in columns]
    out = []
    for name, wanted in given.items():
        if name not in names:
            raise InputError(
                f"The rule asks for column {name!r}, which the model does not have.{did_you_mean(name, names)}"
            )
        feature = names.index(name)
        make = _category_condition if columns[feature].is_categorical else _number_condition
        out.append(make(feature, columns[feature], wanted))
    return tuple(out)


def _number_condition(feature: int, column: Column, wanted: Any) -> Condition:
    if wanted is None:
        return Condition(feature, column, low=np.inf, high=-np.inf)
    is_pair = isinstance(wanted, tuple | list) and len(wanted) == 2
    bounds = [_as_days(bound, column) for bound in wanted] if is_pair else []
    numbers = [v for v in bounds if _is_number(v)]
    if is_pair and bounds[0] in SIGNS and len(numbers) == 1:
        low, high = (-np.inf, float(numbers[0])) if bounds[0] == "<=" else (float(numbers[0]), np.inf)
    elif len(numbers) == 2 and numbers[0] < numbers[1]:
        low, high = float(numbers[0]), float(numbers[1])
    else:
        raise InputError(f"The condition on column {column.name!r} must have bounds, got {wanted!r}. {HOW}")
    return Condition(feature, column, low=low, high=high, missing=False)


def _as_days(bound: Any, column: Column) -> Any:
    """Return a date as the days that its column holds, also a date in text; anything else as it is."""
    if not column.is_date:
        return bound
    form = "ymd" if column.form == "date" else column.form
    days = read_date(bound, form) if isinstance(bound, str) else days_of_values([bound])[0]
    return bound if math.isnan(days) else days


def _is_number(value: Any) -> bool:
    """Return True for a finite number; True and False are none."""
    return is_real(value) and -LARGEST <= value <= LARGEST


def _category_condition(feature: int, column: Column, wanted: Any) -> Condition:
    assert column.categories is not None
    names = list(wanted) if isinstance(wanted, Iterable) and not isinstance(wanted, str) else [wanted]
    codes = []
    for name in names:
        found = [code for code in range(len(column.categories)) if name in column.labels(code)]
        if name is not None and not found:
            known = [str(label) for label in column.categories]
            raise InputError(
                f"Column {column.name!r} has no category {name!r} in training.{did_you_mean(str(name), known)}"
            )
        codes += found
    if not names:
        raise InputError(f"The condition on column {column.name!r} names no category. {HOW}")
    return Condition(feature, column, missing=None in names, codes=tuple(sorted(set(codes))))


def refitted(
    flags: Flags,
    card: Card,
    matrix: np.ndarray,
    is_positive: np.ndarray,
    direction: np.ndarray,
    is_whole: bool,
    threads: Threads,
) -> tuple[Flags, Card]:
    """The same rules and bins with points fitted on some cases.

    Bins are drawn towards the points that they have, rules towards none. Values that had no points still have none,
    and columns with a direction keep it.
    """
    group_of, priors, ridges, ids = [], [], [], []
    for shape in card.shapes:
        distinct, which = np.unique(np.append(shape.points, shape.missing), return_inverse=True)
        bins = bins_of(matrix[:, shape.feature], shape.edges, shape.n_bins, shape.is_categorical)
        group_of.append(which[bins])
        priors.append(distinct / card.scale)
        ridges.append(prior_ridge(shape.is_categorical, len(shape.points)))
        ids.append(which)
    weight = np.ones(len(matrix))
    target = is_positive.astype(np.float64)
    found = refit(list(flags.holds(matrix).T), group_of, priors, ridges, target, weight, threads)
    points = _scaled(found.rules, card.scale, is_whole)
    shapes: list[Shape] = []
    base = found.base
    for shape, which, values, prior in zip(card.shapes, ids, found.groups, priors, strict=True):
        usual = values[int(np.argmin(np.abs(prior)))]
        base += float(usual)
        own = _scaled(values - usual, card.scale, is_whole)[which]
        if direction[shape.feature]:
            own[:-1] = isotonic_regression(own[:-1], increasing=bool(direction[shape.feature] > 0))
            own = np.round(own) + 0.0 if is_whole else own
        shapes.append(replace(shape, points=own[:-1], missing=float(own[-1]), ends=np.zeros(0)))
    base = float(_scaled(np.array([base]), card.scale, is_whole)[0])
    return flags.with_points(points.tolist()), Card(tuple(shapes), base, card.scale)


def _scaled(log_odds: np.ndarray, scale: float, is_whole: bool) -> np.ndarray:
    points = log_odds * scale
    return np.round(points) + 0.0 if is_whole else points
