"""`Leaderboard`: methods compared on one table, with intervals, and a recommendation in words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputError
from toprank.experiment.measures import AT_CASES, resampled_columns
from toprank.experiment.registry import find_method
from toprank.metrics import Interval, corrected_resampled_t_test
from toprank.words.counts import in_units
from toprank.words.numbers import percent_text

if TYPE_CHECKING:
    import polars

EXTRAS = {"xgboost": "boosting", "imblearn": "experiment", "optuna": "experiment", "metric_learn": "experiment"}
"""Extra of this package that installs a package; others are in "baselines"."""

LEVEL = 0.95
LEAST_SPLITS = 3
"""With fewer splits, an interval over them is only a guess."""

TOLERANCE = 0.05
"""Share of the best average precision that a smaller model may lose and still be recommended, if it is level."""

BOOTSTRAPS = 200
"""Bootstrap samples of the test cases behind the intervals of a single holdout."""

LEAST_PRICE = 0.0005
"""Smaller differences of average precision are shown as none."""

FEW_POSITIVES = 50
TOO_GOOD = 0.995
OWN = "toprank"  # family of the methods that `toprank fit` fits

NOT_OF_THE_MODEL = ("n_jobs", "random_state")
"""Parameters that say how to fit, not which model: `fit` uses its own."""

FEW_OPTIONS = 1
"""A model that needs more options than this is recommended only if no other is level."""

NO_TIME, NOT_INSTALLED = "not enough time", "needs the package"
"""Beginnings of the most common reasons for leaving out a method."""


@dataclass(frozen=True)
class BoardEntry:
    """One method on the leaderboard."""

    name: str
    title: str
    # Mean over the splits, with an interval that allows for their overlap (Nadeau and Bengio); for a single holdout,
    # its value with a bootstrap interval.
    average_precision: Interval
    precision: float  # mean precision among the first k cases
    gap: Interval  # average precision of the best method minus this one's, paired by split or by bootstrap
    p_value: float  # of the gap; 1 for the best method itself
    # What a person has to read: conditions of a tree, coefficients of a sum or scorecard, curves of an additive model.
    # For models that cannot be read, the leaves of all trees.
    size: float | None
    unit: str | None
    is_readable: bool
    is_own: bool  # whether it is one of this library's methods
    seconds: float  # median time of one fit with the chosen setting
    setting: Mapping[str, Any]  # the setting that most splits chose

    @property
    def options(self) -> dict[str, Any]:
        """Parameters of the estimator that differ from its defaults: options that `toprank fit` needs besides --model.

        Those that say how to fit, not which model, do not count; neither does cv=0, as `fit` estimates hit rates.
        """
        estimator = find_method(self.name).make(**self.setting)
        usual = type(estimator)().get_params(deep=False)
        return {
            name: value
            for name, value in estimator.get_params(deep=False).items()
            if name not in NOT_OF_THE_MODEL and not (name == "cv" and value == 0) and value != usual[name]
        }

    @property
    def is_level(self) -> bool:
        """True if the gap to the best may be noise; False if there are too few splits (NaN)."""
        return self.p_value >= 1 - LEVEL

    @property
    def size_in_words(self) -> str:
        """Size and unit, such as "14 conditions"."""
        if self.size is None or self.unit is None:
            return ""
        return in_units(round(self.size), self.unit)


@dataclass(frozen=True)
class Leaderboard:
    """Methods compared on one table, best first.

    Attributes
    ----------
    entries : list of BoardEntry
    left_out : dict of str to str
        Titles of methods without a result on every split, and why.
    n_cases, n_positives, n_splits : int
        Of the table, or of the test cases if they were given.
    share : float
        Share of the cases that is checked, for `precision`.
    judged_by : str
        How methods were tested, in words: "5-fold cross-validation", "a random test part of 30 %", "the test cases
        given".
    is_resampled : bool
        Whether intervals come from bootstrap samples of one holdout, not from splits.
    """

    entries: list[BoardEntry]
    left_out: dict[str, str]
    n_cases: int
    n_positives: int
    n_splits: int
    share: float
    judged_by: str = "cross-validation"
    is_resampled: bool = False

    @classmethod
    def from_results(
        cls,
        results: polars.DataFrame,
        share: float,
        methods: Sequence[str],
        judged_by: str = "cross-validation",
        n_test_positives: int | None = None,
    ) -> Leaderboard:
        """Leaderboard of the trials of one table; a method needs every split that is compared.

        `n_test_positives` is the number of positives among given test cases.
        """
        done = results.filter(results["status"] == "done")
        if done.height == 0:
            reasons = "; ".join(dict.fromkeys(results["error"].drop_nulls().to_list())) or "nothing was run"
            raise InputError(f"No method could be compared: {reasons}.")
        by_method = {label: done.filter(done["method"] == label) for label in methods}
        common = _common_splits({label: part["split"].to_list() for label, part in by_method.items()})
        complete = {
            label: part.filter(part["split"].is_in(common)).sort("split")
            for label, part in by_method.items()
            if set(common) <= set(part["split"])
        }
        left_out = {
            find_method(label).title: _why(label, results.filter(results["method"] == label))
            for label in methods
            if label not in complete
        }
        first = done.row(0, named=True)
        is_resampled = resampled_columns(1)[0] in done.columns
        entries = _entries(complete, f"{AT_CASES}{share}", is_resampled)
        n_cases = first["n"] if n_test_positives is None else first["n_test"]
        n_positives = first["n_positives"] if n_test_positives is None else n_test_positives
        return cls(entries, left_out, n_cases, n_positives, len(common), share, judged_by, is_resampled)

    @property
    def best(self) -> BoardEntry:
        """The method with the highest average precision."""
        return self.entries[0]

    @property
    def best_readable(self) -> BoardEntry | None:
        """The readable method with the highest average precision."""
        return next((entry for entry in self.entries if entry.is_readable), None)

    @property
    def level_readable(self) -> list[BoardEntry]:
        """Readable methods as good as the best, smallest first.

        Their gap may be noise and is at most `TOLERANCE` of the best average precision; if none is that close, all
        whose gap may be noise.
        """
        level = [entry for entry in self.entries if entry.is_readable and self.verdict(entry) in ("best", "level")]
        most = TOLERANCE * self.best.average_precision.value
        close = [entry for entry in level if entry.gap.value <= most]
        return sorted(close or level[:1], key=lambda entry: np.inf if entry.size is None else entry.size)

    @property
    def recommended(self) -> BoardEntry | None:
        """The smallest readable method as good as the best, preferably one that this library fits without options.

        The best if no readable one is as good; None if there are too few splits to tell.
        """
        level = self.level_readable
        if not level:
            return self.best if self.can_tell or self.best_readable is None else None
        own = [entry for entry in level if entry.is_own]
        return next((entry for entry in own if len(entry.options) <= FEW_OPTIONS), [*own, *level][0])

    def frame(self) -> polars.DataFrame:
        """The leaderboard as a table."""
        import polars as pl

        return pl.DataFrame([
            {
                "name": e.name, "method": e.title, "average_precision": e.average_precision.value,
                "low": max(e.average_precision.low, 0.0), "high": min(e.average_precision.high, 1.0),
                "precision_at_k": e.precision, "gap": e.gap.value, "p_value": e.p_value,
                "verdict": self.verdict(e), "size": e.size, "size_unit": e.unit, "is_readable": e.is_readable,
                "seconds": e.seconds,
            }
            for e in self.entries
        ])  # fmt: skip

    @property
    def can_tell(self) -> bool:
        """True if there are enough splits, or test cases, to tell a gap from noise."""
        return self.is_resampled or self.n_splits >= LEAST_SPLITS

    def verdict(self, entry: BoardEntry) -> str:
        """An entry compared with the best: "best", "level" (the gap may be noise), "lower", or "?" (too few splits)."""
        if entry is self.best:
            return "best"
        return "level" if entry.is_level else "lower" if self.can_tell else "?"

    def recommendation(self) -> str:
        """The recommendation, in words."""
        best, readable, chosen = self.best, self.best_readable, self.recommended
        if readable is None:
            text = f"{best.title} is the best of these; no readable model was compared."
        elif chosen is None:
            text = (
                f"{best.title} is ahead of the best readable model, {_named(readable)}, by "
                f"{100 * readable.gap.value:.1f} points of average precision, but {self.n_splits} "
                f"{'split says' if self.n_splits == 1 else 'splits say'} little: at least {LEAST_SPLITS} are needed to "
                "tell a gap from noise. Hint: give it more time, or compare fewer methods."
            )
        elif not chosen.is_readable:
            finds, finds_readable = round(100 * best.precision), round(100 * readable.precision)
            checks = (
                f"Of 100 checks at the top it finds about {finds}, the readable one {finds_readable}: that is the "
                "price of a model that can say why."
                if finds > finds_readable
                else f"Of the first {percent_text(self.share)} of the cases both find about as much, though."
            )
            text = (
                f"{best.title} is better than the best readable model, {_named(readable)}, by "
                f"{100 * readable.gap.value:.1f} points of average precision (95 % interval {_range(readable.gap)}). "
                f"{checks}"
            )
        else:
            text = self._why_recommended(chosen)
        n_level = sum(entry.is_level for entry in self.entries)
        if self.can_tell and n_level > 2:
            n = len(self.entries)
            which = f"The {n} methods" if n_level == n else f"{n_level} of the {n} methods"
            text += f" {which} cannot be told apart."
        if self.can_tell and best.average_precision.low <= self.n_positives / self.n_cases:
            text += " None of them is clearly better than a random order: there may be little to learn in this table."
        if best.average_precision.value > TOO_GOOD:
            text += " That is too good to be true: look for a column that gives the outcome away."
        if self.n_positives < FEW_POSITIVES:
            text += (
                f" With {self.n_positives} positives in all, intervals are wide: collect more before you trust a gap."
            )
        return text

    def price_of_reading(self) -> list[str]:
        """Cost of each readable model that no smaller one beats, against the best black box tried; best first."""
        boxes = [entry for entry in self.entries if not entry.is_readable]
        readable = [entry for entry in self.entries if entry.is_readable and entry.size is not None]
        if not boxes or not readable:
            return []
        out: list[str] = []
        box, smallest = boxes[0], np.inf
        for entry in readable:
            if entry.size is None or entry.size >= smallest:
                continue
            smallest = entry.size
            price = box.average_precision.value - entry.average_precision.value
            against = f"against {box.title}{'' if out else ', the best black box tried'}"
            gain = f" ({-price:+.3f})" if price <= -LEAST_PRICE else ""
            what = f"costs {price:.3f} of average precision" if price >= LEAST_PRICE else f"costs nothing{gain}"
            out.append(f"{entry.title} ({entry.size_in_words}) {what} {against}.")
        return out

    def _why_recommended(self, chosen: BoardEntry) -> str:
        """Why a readable model is recommended: it is the best, or the smallest of those that are as good."""
        best, level = self.best, self.level_readable
        if chosen is best:
            text = f"Take {_named(chosen)}: it is the best of these, and readable."
        else:
            loses = max(chosen.gap.value, 0.0)
            is_smallest = not any(entry.is_own for entry in level[: level.index(chosen)])
            smallest = "the smallest readable model" if len(level) > 1 and is_smallest else "readable, and"
            text = (
                f"Take {_named(chosen)}: it is {smallest} level with the best ({best.title}). It is behind by "
                f"{100 * loses:.1f} points of average precision, which may be noise (95 % interval "
                f"{_range(chosen.gap)})."
            )
        smaller = level[: level.index(chosen)]
        for is_own, why in ((False, "not made by toprank"), (True, "fitted only with several options")):
            entries = [entry for entry in smaller if entry.is_own == is_own]
            names = " and ".join(_named(entry) for entry in entries)
            if names:
                text += f" {names} {'is' if len(entries) == 1 else 'are'} smaller and level, too, but {why}."
        return text


def _named(entry: BoardEntry) -> str:
    """Title with size."""
    return f"{entry.title} with {entry.size_in_words}" if entry.size else entry.title


def _range(gap: Interval) -> str:
    return f"{100 * gap.low:z.1f} to {100 * gap.high:z.1f}"


def _common_splits(splits: dict[str, list[str]]) -> list[str]:
    """The splits to compare on: those of some method that maximise methods that have them all, times information.

    Each further split adds a degree of freedom; methods that lack one of the splits are left out.
    """
    candidates = sorted({tuple(sorted(own)) for own in splits.values() if own})
    n_methods = [sum(set(candidate) <= set(own) for own in splits.values()) for candidate in candidates]
    worth = [(n * (len(candidate) - 1), n) for n, candidate in zip(n_methods, candidates, strict=True)]
    return list(candidates[worth.index(max(worth))])


def _why(label: str, trials: polars.DataFrame) -> str:
    """Why a method is not on the leaderboard."""
    missing = find_method(label).missing_packages
    if missing:
        extra = EXTRAS.get(missing[0], "baselines")
        return f'{NOT_INSTALLED} {", ".join(missing)}: pip install "toprank[{extra}]"'
    errors = trials["error"].drop_nulls().to_list()
    if errors:
        return errors[0]
    if trials.height == 0:
        return NO_TIME
    seconds = trials.select("seconds_tune", "seconds_fit", "seconds_score").to_numpy().sum(axis=1).mean()
    return f"{NO_TIME}: one split took {seconds:.0f} s"


def _entries(complete: dict[str, polars.DataFrame], precision: str, is_resampled: bool) -> list[BoardEntry]:
    """Entries of the methods that have all splits, best first."""
    means = {label: float(part["average_precision"].mean()) for label, part in complete.items()}  # type: ignore[arg-type]
    order = sorted(complete, key=lambda label: -means[label])
    best = complete[order[0]]
    entries = []
    for label in order:
        part = complete[label]
        mean, gap, p_value = _by_bootstraps(part, best) if is_resampled else _by_splits(part, best)
        method = find_method(label)
        entries.append(BoardEntry(
            label, method.title, mean, float(part[precision].mean()), gap, p_value,  # type: ignore[arg-type]
            part["size"].median(), part["size_unit"][0], method.is_readable, method.family == OWN,  # type: ignore[arg-type]
            float(part["seconds_fit"].median()),  # type: ignore[arg-type]
            json.loads(Counter(part["setting"]).most_common(1)[0][0]),
        ))  # fmt: skip
    return entries


def _by_splits(part: polars.DataFrame, best: polars.DataFrame) -> tuple[Interval, Interval, float]:
    """Interval of the mean, interval of the gap and its p-value; NaN if there are too few splits."""
    values = part["average_precision"].to_numpy()
    gaps = best["average_precision"].to_numpy() - values
    n_train, n_test = float(part["n_train"].mean()), float(part["n_test"].mean())  # type: ignore[arg-type]
    if len(values) < LEAST_SPLITS:
        unknown = float("nan")
        return Interval(values.mean(), unknown, unknown, LEVEL), Interval(gaps.mean(), unknown, unknown, LEVEL), unknown
    mean = corrected_resampled_t_test(values, n_train, n_test, level=LEVEL).interval
    gap = corrected_resampled_t_test(gaps, n_train, n_test, level=LEVEL)
    assert mean is not None
    assert gap.interval is not None
    return mean, gap.interval, gap.p_value


def _by_bootstraps(part: polars.DataFrame, best: polars.DataFrame) -> tuple[Interval, Interval, float]:
    """The same from one holdout and its bootstrap samples, which are the same for all methods."""
    columns = resampled_columns(BOOTSTRAPS)
    own, others = part.select(columns).to_numpy()[0], best.select(columns).to_numpy()[0]
    value, top = float(part["average_precision"][0]), float(best["average_precision"][0])
    gap, spread = top - value, float(np.std(others - own, ddof=1))
    if spread == 0:
        p_value = 1.0 if gap == 0 else 0.0
    else:
        p_value = 2 * NormalDist().cdf(-abs(gap) / spread)
    return _around(value, float(np.std(own, ddof=1))), _around(gap, spread), p_value


def _around(value: float, standard_error: float) -> Interval:
    half = NormalDist().inv_cdf((1 + LEVEL) / 2) * standard_error
    return Interval(value, value - half, value + half, LEVEL)
