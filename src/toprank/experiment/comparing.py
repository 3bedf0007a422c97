"""Which model to use for one table: what is compared, how it is evaluated, and in which order within the time limit.

`leaderboard` holds the result.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from toprank.budget import cases_of_budget
from toprank.data.frames import names_of
from toprank.datasets.frames import import_optional
from toprank.experiment.leaderboard import BOOTSTRAPS, Leaderboard
from toprank.experiment.measures import AT_CASES, RESAMPLED
from toprank.experiment.plan import Plan, Trial
from toprank.experiment.runner import Progress, default_workers, run
from toprank.experiment.store import Store
from toprank.rankers.validation import check_classes, check_labels, check_split_groups

CORE = (
    "red-flags", "metaap", "scorecard-tree", "scorecard", "logistic-l1", "sgbap", "lightgbm", "cart", "treerank-forest",
    "metaap-forest", "cost-curve", "ebm",
)  # fmt: skip
"""Compared first: this library's best models, and one baseline of each kind."""

METHODS = (
    *CORE, "treerank", "treerank-pruned", "tree", "cost-tree", "tao", "xgboost", "hist-gradient-boosting", "catboost",
    "random-forest", "extra-trees", "logistic-boost", "rankboost", "lambdamart-ap", "treerank-boost", "xgb-pairwise",
    "xgb-map",
)  # fmt: skip
"""Compared by default, in the order in which they get time."""

SEARCHES: dict[str, dict[str, list[Any]]] = {
    "logistic-l1": {"C": [0.03, 0.3, 3.0]},
    "cart": {"ccp_alpha": [0.0001, 0.0003, 0.001, 0.003], "min_samples_leaf": [5]},
    "lightgbm": {"n_estimators": [50, 100, 200], "learning_rate": [0.05], "num_leaves": [7, 31]},
    "xgboost": {"n_estimators": [50, 100, 200], "learning_rate": [0.05], "max_depth": [3, 6]},
    "hist-gradient-boosting": {"max_iter": [50, 100, 200], "learning_rate": [0.05], "max_leaf_nodes": [7, 31]},
    "catboost": {"iterations": [50, 100, 200], "learning_rate": [0.1], "depth": [4, 6]},
    "random-forest": {"min_samples_leaf": [3, 10]},
    "ebm": {"interactions": [10], "outer_bags": [4]},
    "xgb-pairwise": {"n_estimators": [50, 100, 200], "learning_rate": [0.05], "max_depth": [3, 6]},
    "xgb-map": {"n_estimators": [50, 100, 200], "learning_rate": [0.05], "max_depth": [3, 6]},
}
"""Values tried here instead of the registered ones: a comparison has minutes, not hours."""

LARGE, ENOUGH_POSITIVES = 20_000, 500
"""Rows and positives from which a single holdout of `TEST_SIZE` is enough: no folds are needed."""

FOLDS, FOLDS_OF_LARGE = 5, 3
"""Default number of folds; large tables with few positives get the fewest that can tell a gap from noise."""

TEST_SIZE = 0.3


def comparison_plan(
    path: str | Path, label: str, methods: Sequence[str] | None, share: float, protocol: Mapping[str, Any],
    time_limit: float | None, split_by: str | None = None,
) -> Plan:  # fmt: skip
    """Plan that compares methods (None = `METHODS`) on one file, settings tuned inside the training rows.

    `share` of the cases is that whose precision is measured; `time_limit` is in seconds per fit. Rows with the same
    value in the column `split_by` are never on both sides of a split.
    """
    names = list(dict.fromkeys(methods or METHODS))
    has_folds = protocol["kind"] == "kfold"
    searches = {} if methods else SEARCHES
    return Plan.from_dict({
        "name": "compare",
        "data": [{"path": str(path), "label": label, "as": "table"} | ({"split_by": split_by} if split_by else {})],
        "methods": {name: {"method": name, "tuner": "halving", "search": searches.get(name)} for name in names},
        "protocol": {"inner_splits": 3, "time_limit": time_limit, **protocol},
        "measures": ["average_precision", "roc_auc", f"{AT_CASES}{share}",
                     *([] if has_folds else [f"{RESAMPLED}{BOOTSTRAPS}"])],
    })  # fmt: skip


def choose_protocol(
    n_rows: int, n_positives: int, n_splits: int | None, n_repeats: int, random_state: int
) -> tuple[dict[str, Any], str]:
    """Protocol for a table, and its description: folds, or one random holdout if that is enough."""
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
    """Run a comparison in about `minutes` minutes, the most important methods first.

    The methods of `CORE` run first. In each group, the first split of every method is run; its time shows which methods
    can finish all splits in the time left, in the order of the plan. The others are left out of the leaderboard, with
    the reason.
    """
    n_workers = n_workers or default_workers()
    how: dict[str, Any] = {"n_workers": n_workers, "backend": "threads" if n_workers == 1 else "processes"}
    if minutes is None:
        yield from run(store, **how)
        return
    deadline = time.monotonic() + 60 * minutes
    missing = store.missing()
    groups = [[t for t in missing if (t.use.method in CORE) == is_core] for is_core in (True, False)]
    if len({trial.split for trial in missing}) == 1:  # nothing to plan ahead: no worker waits for a slow method
        groups = [[*groups[0], *groups[1]]]
    for i, group in enumerate(group for group in groups if group):
        first, rest = ([t for t in group if (t.split == group[0].split) == is_first] for is_first in (True, False))
        left = deadline - time.monotonic()
        if i and left < 1:
            return
        yield from _until(deadline, run(store, trials=first, seconds=left / 2 if rest else left, **how))
        more = _affordable(store, first, rest, n_workers * (deadline - time.monotonic()))
        if more:
            # A tenth more for wrong estimates: half-finished methods are useless.
            seconds = max(1.0, deadline + 6 * minutes - time.monotonic())
            yield from _until(deadline, run(store, trials=more, seconds=seconds, **how))


def _until(deadline: float, steps: Iterator[Progress]) -> Iterator[Progress]:
    """The same progress, which promises no more time than until the deadline of the whole comparison."""
    for progress in steps:
        progress.deadline = deadline
        yield progress


def _affordable(store: Store, first: Sequence[Trial], rest: Sequence[Trial], seconds: float) -> list[Trial]:
    """Trials of the methods that can finish all splits in `seconds` of all workers, judging by their first split.

    The first method that finished its first split is always included: without one there is no leaderboard.
    """
    outcomes = store.outcomes()
    spent = {trial.use.label: outcome["seconds_tune"] + outcome["seconds_fit"] + outcome["seconds_score"]
             for trial in first if (outcome := outcomes.get(trial.id, {})).get("status") == "done"}  # fmt: skip
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


def compare(
    X: Any,
    y: Any,
    *,
    groups: Any = None,
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
    """Leaderboard of rankers and baselines on one table, tested on unseen cases; tuning sees training cases only.

    Parameters
    ----------
    X : data frame or array of shape (n, n_features)
    y : array of shape (n,)
        Two values; positive is that of a usual pair, such as yes of yes/no, else the larger.
    groups : array of shape (n,), optional
        Who each row belongs to: rows of one person are never on both sides of a split.
    methods : names of methods; None = `METHODS`; those whose package is not installed are left out with a reason
    budget : int, float or None
        Cases that can be checked, or a share of them; None = the number of positives.
    X_test, y_test : optional
        Test cases, such as those of a later year: all methods learn from X and are tested on these.
    n_splits : int or None
        Folds; None = 5. With more than 20,000 rows: a random holdout of 30 % if there are at least 500 positives, else
        3 folds.
    n_repeats : int
        How often the folds are drawn.
    minutes : float or None
        Approximate run time; methods that are too slow for it are left out, with the reason.
    n_workers : int or None
        Processes; None = one per processor, 1 = only this one. A script that uses several must guard its work with `if
        __name__ == "__main__":`, as with any process pool.
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
    codes = check_split_groups(groups, len(X), "compare")
    share_of = outcome
    if X_test is not None:
        tested = _outcome(y_test, len(X_test), "compare (y_test)")
        X, outcome, share_of = _stacked(X, X_test), np.concatenate([outcome, tested]), tested
        if codes is not None:  # test cases are apart anyway
            codes = np.concatenate([codes, codes.max(initial=0) + 1 + np.arange(len(tested))])
        protocol, judged_by = {"kind": "given", "test": len(tested), "seeds": [random_state]}, "the test cases given"
    else:
        protocol, judged_by = choose_protocol(len(X), int(outcome.sum()), n_splits, n_repeats, random_state)
    share = check_share(budget, len(share_of), int(share_of.sum()))
    methods = [methods] if isinstance(methods, str) else methods
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.parquet")
        label, split_by = _write_parquet(X, outcome, codes, path)
        limit = None if minutes is None else 60 * minutes
        plan = comparison_plan(path, label, methods, share, protocol, limit, split_by)
        with Store(Path(folder, "trials.sqlite")) as store:
            store.keep_plan(plan)
            for progress in run_within(store, minutes, n_workers):
                on_progress(progress)
            names = [use.label for use in plan.methods]
            n_tested = None if X_test is None else int(share_of.sum())
            return Leaderboard.from_results(store.results(), share, names, judged_by, n_tested)


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


def _write_parquet(X: Any, outcome: np.ndarray, groups: np.ndarray | None, path: Path) -> tuple[str, str | None]:
    """Write features, outcome and groups for the workers; return the names of the last two columns."""
    import pandas as pd

    frame = X if hasattr(X, "columns") else pd.DataFrame(X).rename(columns=lambda i: f"x{i}")
    names, label, split_by = names_of(frame), "label", "group"
    while label in names:
        label += "_"
    while split_by in names:
        split_by += "_"
    added = {label: outcome} | ({} if groups is None else {split_by: groups})
    if hasattr(frame, "write_parquet"):  # polars
        import polars as pl

        frame.with_columns(pl.Series(name, values) for name, values in added.items()).write_parquet(path)
    else:
        frame = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
        frame.rename(columns=str).reset_index(drop=True).assign(**added).to_parquet(path)
    return label, None if groups is None else split_by


def check_share(budget: int | float | None, n_cases: int, n_positives: int) -> float:
    """Budget as a share of the cases, rounded for use in a name."""
    return max(round(cases_of_budget(budget, n_cases, n_positives) / n_cases, 6), 1e-6)


def draw(board: Leaderboard, path: Path, table: str) -> Path:
    """Write a plot of the leaderboard; ImportError if matplotlib is not installed."""
    from toprank.plots import LeaderboardDisplay, save_figure

    display = LeaderboardDisplay.from_frame(
        board.frame().rename({"average_precision": "mean", "verdict": "note"}),
        chance=board.n_positives / board.n_cases, title=f"Which model for {table}?")  # fmt: skip
    return save_figure(display.plot(), path)


def draw_price(board: Leaderboard, path: Path) -> Path | None:
    """Write a plot of average precision against size; None if no readable model was compared."""
    from toprank.plots import PriceOfReadingDisplay, save_figure

    if not any(entry.is_readable and entry.size is not None for entry in board.entries):
        return None
    frame = board.frame().rename({"average_precision": "mean"})
    return save_figure(PriceOfReadingDisplay.from_frame(frame).plot(), path)
