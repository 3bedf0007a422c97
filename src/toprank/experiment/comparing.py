"""Which model to take for one table: a leaderboard with intervals, and an advice in words."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.datasets.frames import import_optional
from toprank.experiment.measures import AT_CASES
from toprank.experiment.plan import Plan, Trial
from toprank.experiment.registry import find_method
from toprank.experiment.runner import Progress, default_workers, run
from toprank.experiment.store import Store
from toprank.metrics import Interval, corrected_resampled_t_test
from toprank.rankers.validation import check_classes, check_labels

if TYPE_CHECKING:
    import polars

METHODS = (
    "metaap", "metaap-margin", "treerank", "treerank-pruned", "tree", "cost-tree", "cart", "logistic-l1",
    "logistic-splines", "lightgbm", "xgboost", "xgb-ranker", "catboost", "hist-gradient-boosting", "random-forest",
    "balanced-random-forest", "metaap-forest", "treerank-forest", "tao", "treerank-boost", "rus-boost", "knn",
    "smote+logistic-l2", "easy-ensemble", "balance-cascade", "cost-curve", "ebm",
)  # fmt: skip
"""Compared unless others are named, the quick ones first: this library's rankers and one of each kind of the usual."""

LEVEL = 0.95
LEAST_SPLITS = 3
"""With fewer splits an interval over them is no more than a guess."""

FEW_POSITIVES = 50
TOO_GOOD = 0.995


@dataclass(frozen=True)
class Entry:
    """One method on the leaderboard.

    Attributes
    ----------
    name, title : str
    average_precision : Interval
        Mean over the splits, with an interval that allows for their overlap (Nadeau and Bengio).
    precision : float
        Mean precision among the first k cases.
    gap : Interval
        Average precision of the best method minus this one's, paired by split.
    p_value : float
        Of the gap; 1 for the best itself.
    size : float or None
    unit : str or None
    is_readable : bool
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
    seconds: float
    setting: Mapping[str, Any]

    @property
    def is_level(self) -> bool:
        """True where the gap to the best may be noise; NaN, which too few splits give, is not."""
        return self.p_value >= 1 - LEVEL

    @property
    def size_in_words(self) -> str:
        """Size and unit, such as "14 leaves"."""
        if self.size is None:
            return ""
        unit = (self.unit or "").removesuffix("s") if round(self.size) == 1 and self.unit != "leaves" else self.unit
        return f"{round(self.size):,} {'leaf' if round(self.size) == 1 and unit == 'leaves' else unit}"


@dataclass(frozen=True)
class Leaderboard:
    """Methods compared on one table, best first.

    Attributes
    ----------
    entries : list of Entry
    left_out : dict of str to str
        Titles of methods without a result on every split, and why.
    n_cases, n_positives, n_splits : int
    share : float
        Share of the cases that is checked: what `precision` is about.
    """

    entries: list[Entry]
    left_out: dict[str, str]
    n_cases: int
    n_positives: int
    n_splits: int
    share: float

    @classmethod
    def of(cls, results: polars.DataFrame, share: float, methods: Sequence[str]) -> Leaderboard:
        """Leaderboard of the trials of one table; a method counts where it has every split that any method has."""
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
            find_method(label).title: _why(results.filter(results["method"] == label))
            for label in methods
            if label not in complete
        }
        first = done.row(0, named=True)
        entries = _entries(complete, f"{AT_CASES}{share}")
        return cls(entries, left_out, first["n"], first["n_positives"], len(common), share)

    @property
    def best(self) -> Entry:
        """The method of the highest average precision."""
        return self.entries[0]

    @property
    def best_readable(self) -> Entry | None:
        """The readable method of the highest average precision."""
        return next((entry for entry in self.entries if entry.is_readable), None)

    @property
    def advised(self) -> Entry | None:
        """The method that the advice is for; None where too few splits cannot tell."""
        readable = self.best_readable
        if readable is None or readable is self.best or (self.can_tell and not readable.is_level):
            return self.best
        return readable if self.can_tell else None

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
        """True where there are enough splits to tell a gap from noise."""
        return self.n_splits >= LEAST_SPLITS

    def verdict(self, entry: Entry) -> str:
        """An entry beside the best: "best", "level" (the gap may be noise), "lower", or "?" (too few splits)."""
        if entry is self.best:
            return "best"
        return "level" if entry.is_level else "lower" if self.can_tell else "?"

    def advice(self) -> str:
        """What to take, in words."""
        best, readable = self.best, self.best_readable
        if readable is None:
            text = f"{best.title} is the best of these; no readable model was compared."
        elif readable is best:
            text = f"{_named(readable)} is the best of these, and readable: take it."
        elif not self.can_tell:
            text = (
                f"{best.title} is ahead of the best readable model, {_named(readable)}, by "
                f"{100 * readable.gap.value:.1f} points of average precision, but {self.n_splits} "
                f"{'split says' if self.n_splits == 1 else 'splits say'} little: at least {LEAST_SPLITS} are needed to "
                "tell a gap from noise. Hint: give it more time, or compare fewer methods."
            )
        elif readable.is_level:
            text = (
                f"{_named(readable)} is within noise of the best ({best.title}), and readable: take it. The gap is "
                f"{_range(readable.gap)} points of average precision."
            )
        else:
            text = (
                f"{best.title} is better than the best readable model, {_named(readable)}, by "
                f"{100 * readable.gap.value:.1f} points of average precision (95 % interval {_range(readable.gap)}). "
                f"Of 100 checks at the top it finds about {100 * best.precision:.0f}, the readable one "
                f"{100 * readable.precision:.0f}: that is what being able to say why costs here."
            )
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


def _why(trials: polars.DataFrame) -> str:
    """Why a method is not on the leaderboard."""
    errors = trials["error"].drop_nulls().to_list()
    if errors:
        return errors[0]
    if trials.height == 0:
        return "no split was finished in time"
    seconds = trials.select("seconds_tune", "seconds_fit", "seconds_score").to_numpy().sum(axis=1).mean()
    return f"too slow for the time given: one split took {seconds:.0f} s"


def _entries(complete: dict[str, polars.DataFrame], precision: str) -> list[Entry]:
    """Entries of the methods that have all splits, best first."""
    means = {label: float(part["average_precision"].mean()) for label, part in complete.items()}  # type: ignore[arg-type]
    order = sorted(complete, key=lambda label: -means[label])
    top = complete[order[0]]["average_precision"].to_numpy()
    entries = []
    for label in order:
        part = complete[label]
        values = part["average_precision"].to_numpy()
        n_train, n_test = float(part["n_train"].mean()), float(part["n_test"].mean())  # type: ignore[arg-type]
        mean, gap, p_value = _intervals(values, top - values, n_train, n_test)
        method = find_method(label)
        entries.append(Entry(
            label, method.title, mean, float(part[precision].mean()), gap, p_value,  # type: ignore[arg-type]
            part["size"].median(), part["size_unit"][0], method.is_readable,  # type: ignore[arg-type]
            float(part["seconds_fit"].median()),  # type: ignore[arg-type]
            json.loads(Counter(part["setting"]).most_common(1)[0][0]),
        ))  # fmt: skip
    return entries


def _intervals(values: np.ndarray, gaps: np.ndarray, n_train: float, n_test: float) -> tuple[Interval, Interval, float]:
    """Interval of the mean, interval of the gap and its p-value; NaN where there are too few splits."""
    if len(values) < LEAST_SPLITS:
        unknown = float("nan")
        return Interval(values.mean(), unknown, unknown, LEVEL), Interval(gaps.mean(), unknown, unknown, LEVEL), unknown
    mean = corrected_resampled_t_test(values, n_train, n_test, level=LEVEL).interval
    gap = corrected_resampled_t_test(gaps, n_train, n_test, level=LEVEL)
    assert mean is not None
    assert gap.interval is not None
    return mean, gap.interval, gap.p_value


# --- running --------------------------------------------------------------------------------------------------------


def comparison_plan(
    path: str | Path, label: str, methods: Sequence[str] | None, share: float, n_splits: int, n_repeats: int,
    random_state: int, time_limit: float | None,
) -> Plan:  # fmt: skip
    """Plan that compares methods on one file by repeated stratified cross-validation, settings tuned inside."""
    names = list(dict.fromkeys(methods or METHODS))
    return Plan.from_dict({
        "name": "compare",
        "data": [{"path": str(path), "label": label, "as": "table"}],
        "methods": {name: {"method": name, "tuner": "halving"} for name in names},
        "protocol": {"kind": "kfold", "n_splits": n_splits, "inner_splits": 3, "time_limit": time_limit,
                     "seeds": [random_state + i for i in range(n_repeats)]},
        "measures": ["average_precision", "roc_auc", f"{AT_CASES}{share}"],
    })  # fmt: skip


def run_within(store: Store, minutes: float | None, n_workers: int | None = None) -> Iterator[Progress]:
    """Work off a comparison in about so many minutes: the first split of every method, then as many methods as fit.

    Half of the time is for the first split. What it took tells which methods can finish all splits in the rest: the
    quick ones first. The others keep one split and are left out of the leaderboard, with the reason.
    """
    n_workers = n_workers or default_workers()
    backend = "threads" if n_workers == 1 else "processes"
    if minutes is None:
        yield from run(store, n_workers=n_workers, backend=backend)
        return
    started, first, rest = time.monotonic(), *_by_split(store.missing())
    yield from run(store, trials=first, n_workers=n_workers, backend=backend, seconds=30 * minutes)
    spent = {trial.use.label: outcome["seconds_tune"] + outcome["seconds_fit"] + outcome["seconds_score"]
             for trial, outcome in _finished(store, first)}  # fmt: skip
    left = n_workers * (started + 60 * minutes - time.monotonic())
    n_more = len(rest) / max(1, len(first))
    chosen: list[str] = []
    for label in sorted(spent, key=lambda label: spent[label]):
        left -= n_more * spent[label]
        if left >= 0 or not chosen:
            chosen.append(label)
    more = [trial for trial in rest if trial.use.label in chosen]
    seconds = max(1.0, started + 66 * minutes - time.monotonic())  # a tenth more for what was guessed wrong
    yield from run(store, trials=more, n_workers=n_workers, backend=backend, seconds=seconds)


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
    n_splits: int = 5,
    n_repeats: int = 1,
    minutes: float | None = None,
    n_workers: int | None = None,
    random_state: int = 0,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Leaderboard:
    """Leaderboard of rankers and baselines on one table, by cross-validation with the tuning inside it.

    Parameters
    ----------
    X : data frame or array of shape (n, n_features)
    y : array of shape (n,)
        Two values, of which the larger (1, True, "yes") is the outcome to look for.
    methods : names of methods; None = `METHODS`; those whose package is not installed are left out with a reason
    budget : int, float or None
        Cases that can be checked, or a share of them; None = as many as there are positives.
    n_splits, n_repeats : int
        Folds, and how often they are drawn.
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
    n_rows = len(X)
    labels = check_labels(y, n_rows, "compare")
    classes, positive = check_classes(labels, None, "compare")
    outcome = (labels == classes[positive]).astype(np.int64)
    share = check_share(budget, n_rows, int(outcome.sum()))
    methods = [methods] if isinstance(methods, str) else methods
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.parquet")
        label = _write_parquet(X, outcome, path)
        limit = None if minutes is None else 60 * minutes
        plan = comparison_plan(path, label, methods, share, n_splits, n_repeats, random_state, limit)
        with Store(Path(folder, "trials.sqlite")) as store:
            store.keep_plan(plan)
            for progress in run_within(store, minutes, n_workers):
                on_progress(progress)
            return Leaderboard.of(store.results(), share, [use.label for use in plan.methods])


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
