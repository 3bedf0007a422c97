"""Which model to take for one table: a leaderboard with intervals, and a recommendation in words."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.datasets.frames import import_optional
from toprank.experiment.measures import AT_CASES, RESAMPLED, resampled_columns
from toprank.experiment.plan import Plan, Trial
from toprank.experiment.registry import find_method
from toprank.experiment.runner import Progress, default_workers, run
from toprank.experiment.store import Store
from toprank.metrics import Interval, corrected_resampled_t_test
from toprank.rankers.validation import check_classes, check_labels
from toprank.tree.wording import percent_text

if TYPE_CHECKING:
    import polars

CORE = ("metaap", "logistic-l1", "lightgbm", "cart", "treerank-forest", "metaap-forest", "cost-curve", "ebm")
"""Compared first: this library's good models, and one of each kind that they must be measured against."""

METHODS = (
    *CORE, "treerank", "treerank-pruned", "tree", "cost-tree", "tao", "xgboost", "hist-gradient-boosting", "catboost",
    "random-forest", "treerank-boost",
)  # fmt: skip
"""Compared unless others are named, in the order in which they get their share of the time."""

SEARCHES: dict[str, dict[str, list[Any]]] = {
    "logistic-l1": {"C": [0.03, 0.3, 3.0]},
    "cart": {"ccp_alpha": [0.0001, 0.0003, 0.001, 0.003], "min_samples_leaf": [5]},
    "lightgbm": {"n_estimators": [50, 100, 200], "learning_rate": [0.05], "num_leaves": [7, 31]},
    "xgboost": {"n_estimators": [50, 100, 200], "learning_rate": [0.05], "max_depth": [3, 6]},
    "hist-gradient-boosting": {"max_iter": [50, 100, 200], "learning_rate": [0.05], "max_leaf_nodes": [7, 31]},
    "catboost": {"iterations": [50, 100, 200], "learning_rate": [0.1], "depth": [4, 6]},
    "random-forest": {"min_samples_leaf": [3, 10]},
    "ebm": {"interactions": [10], "outer_bags": [4]},
}
"""Values tried here where the register has more: a comparison has minutes, not hours."""

EXTRAS = {"xgboost": "boosting", "imblearn": "experiment", "optuna": "experiment", "metric_learn": "experiment"}
"""Extra of this package that installs a package; others are in "baselines"."""

LEVEL = 0.95
LEAST_SPLITS = 3
"""With fewer splits an interval over them is no more than a guess."""

TOLERANCE = 0.05
"""Share of the best average precision that a smaller model may lose and still be recommended, if it is level."""

LARGE, ENOUGH_POSITIVES = 20_000, 500
"""Rows and positives from which on one test part of `TEST_SIZE` says enough: no folds are needed."""

FOLDS, FOLDS_OF_LARGE = 5, 3
"""Folds unless others are asked for: of large tables with few positives as few as can tell a gap from noise."""

TEST_SIZE = 0.3
BOOTSTRAPS = 200
"""Bootstraps of the test cases that the intervals of a single test part are made of."""

FEW_POSITIVES = 50
TOO_GOOD = 0.995
OWN = "toprank"  # family of the methods that `toprank fit` fits


@dataclass(frozen=True)
class Entry:
    """One method on the leaderboard.

    Attributes
    ----------
    name, title : str
    average_precision : Interval
        Mean over the splits, with an interval that allows for their overlap (Nadeau and Bengio); of a single test
        part the value on it, with an interval from bootstraps of its cases.
    precision : float
        Mean precision among the first k cases.
    gap : Interval
        Average precision of the best method minus this one's, paired by split or by bootstrap.
    p_value : float
        Of the gap; 1 for the best itself.
    size : float or None
        What a person has to read: conditions of a tree, coefficients of a sum or scorecard, curves of an additive
        model. Of models that nobody reads the leaves of all trees.
    unit : str or None
    is_readable : bool
    is_own : bool
        Whether it is one of this library's.
    seconds : float
        Median time of one fit with the chosen setting.
    setting : mapping of str to value
        The setting that most splits chose.
    """

    name: str
    title: str
    average_precision: Interval
    precision: float
    gap: Interval
    p_value: float
    size: float | None
    unit: str | None
    is_readable: bool
    is_own: bool
    seconds: float
    setting: Mapping[str, Any]

    @property
    def is_level(self) -> bool:
        """True where the gap to the best may be noise; NaN, which too few splits give, is not."""
        return self.p_value >= 1 - LEVEL

    @property
    def size_in_words(self) -> str:
        """Size and unit, such as "14 conditions"."""
        if self.size is None or self.unit is None:
            return ""
        n = round(self.size)
        unit = {"leaves": "leaf"}.get(self.unit, self.unit.removesuffix("s")) if n == 1 else self.unit
        return f"{n:,} {unit}"


@dataclass(frozen=True)
class Leaderboard:
    """Methods compared on one table, best first.

    Attributes
    ----------
    entries : list of Entry
    left_out : dict of str to str
        Titles of methods without a result on every split, and why.
    n_cases, n_positives, n_splits : int
        Of the table; of the test cases where these were given.
    share : float
        Share of the cases that is checked: what `precision` is about.
    judged_by : str
        How, in words: "5-fold cross-validation", "a random test part of 30 %", "the test cases given".
    is_resampled : bool
        Whether intervals are from bootstraps of one test part, and not over splits.
    """

    entries: list[Entry]
    left_out: dict[str, str]
    n_cases: int
    n_positives: int
    n_splits: int
    share: float
    judged_by: str = "cross-validation"
    is_resampled: bool = False

    @classmethod
    def of(
        cls,
        results: polars.DataFrame,
        share: float,
        methods: Sequence[str],
        judged_by: str = "cross-validation",
        n_test_positives: int | None = None,
    ) -> Leaderboard:
        """Leaderboard of the trials of one table; a method counts where it has every split that any method has.

        `n_test_positives` are the positives of test cases that were given.
        """
        done = results.filter(results["status"] == "done")
        if done.height == 0:
            reasons = "; ".join(dict.fromkeys(results["error"].drop_nulls().to_list())) or "nothing was run"
            raise ValueError(f"No method could be compared: {reasons}.")
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
    def best(self) -> Entry:
        """The method of the highest average precision."""
        return self.entries[0]

    @property
    def best_readable(self) -> Entry | None:
        """The readable method of the highest average precision."""
        return next((entry for entry in self.entries if entry.is_readable), None)

    @property
    def level_readable(self) -> list[Entry]:
        """Readable methods as good as the best, smallest first.

        Their gap to it may be noise and is no more than `TOLERANCE` of its average precision; where none is that
        close, those whose gap may be noise.
        """
        level = [entry for entry in self.entries if entry.is_readable and self.verdict(entry) in ("best", "level")]
        most = TOLERANCE * self.best.average_precision.value
        close = [entry for entry in level if entry.gap.value <= most]
        return sorted(close or level[:1], key=lambda entry: np.inf if entry.size is None else entry.size)

    @property
    def recommended(self) -> Entry | None:
        """The smallest readable method as good as the best, of those that this library fits where there are any.

        Where no readable one is as good, the best; None where too few splits cannot tell.
        """
        level = self.level_readable
        if not level:
            return self.best if self.can_tell or self.best_readable is None else None
        return next((entry for entry in level if entry.is_own), level[0])

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
        """True where there are enough splits, or test cases, to tell a gap from noise."""
        return self.is_resampled or self.n_splits >= LEAST_SPLITS

    def verdict(self, entry: Entry) -> str:
        """An entry beside the best: "best", "level" (the gap may be noise), "lower", or "?" (too few splits)."""
        if entry is self.best:
            return "best"
        return "level" if entry.is_level else "lower" if self.can_tell else "?"

    def recommendation(self) -> str:
        """What to take, in words."""
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
            text += f" {n_level} of the {len(self.entries)} methods cannot be told apart."
        if self.can_tell and best.average_precision.low <= self.n_positives / self.n_cases:
            text += " None of them is clearly better than a random order: there may be little to learn in this table."
        if best.average_precision.value > TOO_GOOD:
            text += " That is too good to be true: look for a column that gives the outcome away."
        if self.n_positives < FEW_POSITIVES:
            text += (
                f" With {self.n_positives} positives in all, intervals are wide: collect more before you trust a gap."
            )
        return text

    def _why_recommended(self, chosen: Entry) -> str:
        """Why a readable model is recommended: it is the best, or the smallest of those that are as good."""
        best, level = self.best, self.level_readable
        if chosen is best:
            text = f"Take {_named(chosen)}: it is the best of these, and readable."
        else:
            loses = max(chosen.gap.value, 0.0)
            smallest = "the smallest readable model" if len(level) > 1 else "readable, and"
            text = (
                f"Take {_named(chosen)}: it is {smallest} level with the best ({best.title}). It is behind by "
                f"{100 * loses:.1f} points of average precision, which may be noise (95 % interval "
                f"{_range(chosen.gap)})."
            )
        smaller = [entry for entry in level[: level.index(chosen)] if not entry.is_own]
        if smaller:
            names = " and ".join(_named(entry) for entry in smaller)
            text += f" {names} {'is' if len(smaller) == 1 else 'are'} smaller and level, too, but not made by toprank."
        return text


def _named(entry: Entry) -> str:
    """Title with size."""
    return f"{entry.title} with {entry.size_in_words}" if entry.size else entry.title


def _range(gap: Interval) -> str:
    return f"{100 * gap.low:.1f} to {100 * gap.high:.1f}"


def _common_splits(splits: dict[str, list[str]]) -> list[str]:
    """The splits to compare on: those of some method, with the most methods that have them all times what they tell.

    A split more is a degree of freedom more; methods that lack one of the splits are left out.
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


NO_TIME, NOT_INSTALLED = "not enough time", "needs the package"
"""How the reasons begin for which methods are left out most often."""


def _entries(complete: dict[str, polars.DataFrame], precision: str, is_resampled: bool) -> list[Entry]:
    """Entries of the methods that have all splits, best first."""
    means = {label: float(part["average_precision"].mean()) for label, part in complete.items()}  # type: ignore[arg-type]
    order = sorted(complete, key=lambda label: -means[label])
    best = complete[order[0]]
    entries = []
    for label in order:
        part = complete[label]
        mean, gap, p_value = _by_bootstraps(part, best) if is_resampled else _by_splits(part, best)
        method = find_method(label)
        entries.append(Entry(
            label, method.title, mean, float(part[precision].mean()), gap, p_value,  # type: ignore[arg-type]
            part["size"].median(), part["size_unit"][0], method.is_readable, method.family == OWN,  # type: ignore[arg-type]
            float(part["seconds_fit"].median()),  # type: ignore[arg-type]
            json.loads(Counter(part["setting"]).most_common(1)[0][0]),
        ))  # fmt: skip
    return entries


def _by_splits(part: polars.DataFrame, best: polars.DataFrame) -> tuple[Interval, Interval, float]:
    """Interval of the mean, interval of the gap and its p-value; NaN where there are too few splits."""
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
    """The same from one test part and the bootstraps of its cases, which are the same for all methods."""
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


# --- running --------------------------------------------------------------------------------------------------------


def comparison_plan(
    path: str | Path, label: str, methods: Sequence[str] | None, share: float, protocol: Mapping[str, Any],
    time_limit: float | None,
) -> Plan:  # fmt: skip
    """Plan that compares methods on one file, settings tuned inside the training rows.

    Parameters
    ----------
    path, label : the file, and its column with the outcome
    methods : names; None = `METHODS`
    share : float
        Share of the cases whose precision is measured.
    protocol : mapping
        As of a plan; see `folds_protocol` and `test_protocol`.
    time_limit : float or None
        Seconds that one fit may take.
    """
    names = list(dict.fromkeys(methods or METHODS))
    has_folds = protocol["kind"] == "kfold"
    searches = {} if methods else SEARCHES
    return Plan.from_dict({
        "name": "compare",
        "data": [{"path": str(path), "label": label, "as": "table"}],
        "methods": {name: {"method": name, "tuner": "halving", "search": searches.get(name)} for name in names},
        "protocol": {"inner_splits": 3, "time_limit": time_limit, **protocol},
        "measures": ["average_precision", "roc_auc", f"{AT_CASES}{share}",
                     *([] if has_folds else [f"{RESAMPLED}{BOOTSTRAPS}"])],
    })  # fmt: skip


def choose_protocol(
    n_rows: int, n_positives: int, n_splits: int | None, n_repeats: int, random_state: int
) -> tuple[dict[str, Any], str]:
    """Protocol for a table, and in words: folds, or one random test part where that says enough."""
    is_large = n_rows > LARGE
    if n_splits is None and n_repeats == 1 and is_large and n_positives >= ENOUGH_POSITIVES:
        words = f"a random test part of {TEST_SIZE:.0%} of the cases".replace("%", " %")
        return {"kind": "holdout", "test_size": TEST_SIZE, "seeds": [random_state]}, words
    if n_splits is None:
        n_splits = FOLDS_OF_LARGE if is_large else FOLDS
    times = "" if n_repeats == 1 else f", {n_repeats} times"
    seeds = [random_state + i for i in range(n_repeats)]
    return {"kind": "kfold", "n_splits": n_splits, "seeds": seeds}, f"{n_splits}-fold cross-validation{times}"


def run_within(store: Store, minutes: float | None, n_workers: int | None = None) -> Iterator[Progress]:
    """Work off a comparison in about so many minutes, the most wanted methods first.

    The methods of `CORE` go before all others. Of either group the first split of every method is run; what it took
    tells which methods can finish all splits in the time that is left, in the order of the plan. The others are left
    out of the leaderboard, with the reason.
    """
    n_workers = n_workers or default_workers()
    how: dict[str, Any] = {"n_workers": n_workers, "backend": "threads" if n_workers == 1 else "processes"}
    if minutes is None:
        yield from run(store, **how)
        return
    deadline = time.monotonic() + 60 * minutes
    missing = store.missing()
    groups = [[t for t in missing if (t.use.method in CORE) == is_core] for is_core in (True, False)]
    for i, group in enumerate(group for group in groups if group):
        first, rest = _by_split(group)
        left = deadline - time.monotonic()
        if i and left < 1:
            return
        yield from run(store, trials=first, seconds=left / 2 if rest else left, **how)
        more = _affordable(store, first, rest, n_workers * (deadline - time.monotonic()))
        if more:
            # A tenth more for what was guessed wrong: half-finished methods are of no use.
            seconds = max(1.0, deadline + 6 * minutes - time.monotonic())
            yield from run(store, trials=more, seconds=seconds, **how)


def _affordable(store: Store, first: Sequence[Trial], rest: Sequence[Trial], seconds: float) -> list[Trial]:
    """Trials of the methods that can finish all splits in so many seconds of all workers, by their first split.

    The first method that finished its first split is always among them: without one there is no leaderboard.
    """
    spent = {trial.use.label: outcome["seconds_tune"] + outcome["seconds_fit"] + outcome["seconds_score"]
             for trial, outcome in _finished(store, first)}  # fmt: skip
    chosen: list[str] = []
    for trial in first:
        label = trial.use.label
        if label not in spent:
            continue
        need = spent[label] * sum(other.use.label == label for other in rest)
        if need <= seconds or not chosen:
            chosen.append(label)
            seconds -= need
    order = {label: i for i, label in enumerate(chosen)}
    return sorted((t for t in rest if t.use.label in order), key=lambda t: order[t.use.label])


def _by_split(trials: Sequence[Trial]) -> tuple[list[Trial], list[Trial]]:
    """Trials of the first split, and all others."""
    split = trials[0].split if trials else ""
    return [t for t in trials if t.split == split], [t for t in trials if t.split != split]


def _finished(store: Store, trials: Sequence[Trial]) -> list[tuple[Trial, dict[str, Any]]]:
    outcomes = store.outcomes()
    return [(t, outcomes[t.id]) for t in trials if outcomes.get(t.id, {}).get("status") == "done"]


def compare(
    X: Any,
    y: Any,
    *,
    methods: Sequence[str] | None = None,
    budget: int | float | None = None,
    X_test: Any = None,
    y_test: Any = None,
    n_splits: int | None = None,
    n_repeats: int = 1,
    minutes: float | None = None,
    n_workers: int | None = None,
    random_state: int = 0,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Leaderboard:
    """Leaderboard of rankers and baselines on one table, by cases that they have not seen; tuning is part of learning.

    Parameters
    ----------
    X : data frame or array of shape (n, n_features)
    y : array of shape (n,)
        Two values, of which the larger (1, True, "yes") is the outcome to look for.
    methods : names of methods; None = `METHODS`; those whose package is not installed are left out with a reason
    budget : int, float or None
        Cases that can be checked, or a share of them; None = as many as there are positives.
    X_test, y_test : optional
        Test cases, such as those of a later year: all methods learn from X and are judged by these.
    n_splits : int or None
        Folds; None = 5. With more than 20,000 rows a random test part of 30 % where there are at least 500 positives,
        else 3 folds.
    n_repeats : int
        How often the folds are drawn.
    minutes : float or None
        Time that this may take, about; methods too slow for it are left out with the reason.
    n_workers : int or None
        Processes; None = one a processor, 1 = none but this one. A script that uses several must begin its work below
        `if __name__ == "__main__":`, as with any process pool.
    random_state : int
    on_progress : callable
        Called with the `Progress` after every trial.

    Returns
    -------
    Leaderboard

    Examples
    --------
    >>> from toprank.datasets import make_audit
    >>> from toprank.experiment import compare
    >>> data = make_audit(600, positive_rate=0.1, random_state=0)
    >>> board = compare(data.X, data.y, methods=["gini-rate", "cart"], n_splits=3, n_workers=1)
    >>> [entry.title for entry in board.entries if entry.is_readable]
    ['CART', 'Gini leaf rate']
    """
    import_optional("pandas", needed_for="compare", hint='pip install "toprank[experiment]"')
    outcome = _outcome(y, len(X), "compare")
    share_of = outcome
    if X_test is not None:
        tested = _outcome(y_test, len(X_test), "compare (y_test)")
        X, outcome, share_of = _stacked(X, X_test), np.concatenate([outcome, tested]), tested
        protocol, judged_by = {"kind": "given", "test": len(tested), "seeds": [random_state]}, "the test cases given"
    else:
        protocol, judged_by = choose_protocol(len(X), int(outcome.sum()), n_splits, n_repeats, random_state)
    share = check_share(budget, len(share_of), int(share_of.sum()))
    methods = [methods] if isinstance(methods, str) else methods
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.parquet")
        label = _write_parquet(X, outcome, path)
        plan = comparison_plan(path, label, methods, share, protocol, None if minutes is None else 60 * minutes)
        with Store(Path(folder, "trials.sqlite")) as store:
            store.keep_plan(plan)
            for progress in run_within(store, minutes, n_workers):
                on_progress(progress)
            names = [use.label for use in plan.methods]
            n_tested = None if X_test is None else int(share_of.sum())
            return Leaderboard.of(store.results(), share, names, judged_by, n_tested)


def _outcome(y: Any, n_rows: int, owner: str) -> np.ndarray:
    """The outcome as 0 and 1."""
    labels = check_labels(y, n_rows, owner)
    classes, positive = check_classes(labels, None, owner)
    return (labels == classes[positive]).astype(np.int64)


def _stacked(X: Any, X_test: Any) -> Any:
    """One table of training and test cases, with the columns of the training cases."""
    import pandas as pd

    if not hasattr(X, "columns"):
        return np.vstack([X, X_test])
    if hasattr(X, "write_parquet"):  # polars
        import polars as pl

        return pl.concat([X, X_test.select(X.columns)], how="vertical_relaxed")
    first, last = (each.to_pandas() if hasattr(each, "to_pandas") else each for each in (X, X_test))
    return pd.concat([first, last[list(first.columns)]], ignore_index=True)


def _write_parquet(X: Any, outcome: np.ndarray, path: Path) -> str:
    """Write features and outcome for the workers; return the name of the outcome's column."""
    import pandas as pd

    frame = X if hasattr(X, "columns") else pd.DataFrame(X).rename(columns=lambda i: f"x{i}")
    label = "label"
    while label in frame.columns:
        label += "_"
    if hasattr(frame, "write_parquet"):  # polars
        import polars as pl

        frame.with_columns(pl.Series(label, outcome)).write_parquet(path)
    else:
        frame = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
        frame.rename(columns=str).reset_index(drop=True).assign(**{label: outcome}).to_parquet(path)
    return label


def check_share(budget: int | float | None, n_cases: int, n_positives: int) -> float:
    """Share of the cases that a budget means, rounded so that it can stand in a name."""
    from toprank.budget import cases_of_budget

    return max(round(cases_of_budget(budget, n_cases, n_positives) / n_cases, 6), 1e-6)


def draw(board: Leaderboard, path: Path, table: str) -> Path:
    """Write the leaderboard as a picture; ImportError where matplotlib is not installed."""
    from toprank.plots import LeaderboardDisplay, save_figure

    display = LeaderboardDisplay.from_frame(
        board.frame().rename({"average_precision": "mean", "verdict": "note"}),
        chance=board.n_positives / board.n_cases, title=f"Which model for {table}?")  # fmt: skip
    return save_figure(display.plot(), path)
