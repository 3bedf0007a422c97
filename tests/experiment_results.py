"""Results of an experiment that never ran: small frames of the engine's shape, the same on every machine."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import polars

DATA_SETS = {"abalone": 0.02, "yeast": 0.08, "wine": 0.15, "glass": 0.25, "bupa": 0.35, "sonar": 0.48}
"""Name -> share of positives; a law about at most 10, 20, ... % positives has something to cut at every level."""

METHODS = {"MetaAP": 0.60, "Gini": 0.35, "Entropy": 0.45, "XGBoost": 0.75, "Logistic": 0.30}
"""Label -> skill, the share of the way from a random to a perfect ranking."""

SIZES = {"MetaAP": (14.0, "leaves"), "Gini": (40.0, "leaves"), "Entropy": (36.0, "leaves"),
         "Logistic": (9.0, "weights")}  # fmt: skip
PERCENTS = (1, *range(5, 101, 5))
ERRORS = {"failed": "ValueError: all rows are alike", "timeout": "stopped after 60 s", "skipped": "lightgbm is missing"}


def draw(*what: object) -> float:
    """A number in [0, 1) that looks random and hangs on the words alone."""
    return zlib.crc32("/".join(map(str, what)).encode()) / 2**32


def average_precision(dataset: str, split: str, method: str, kind: str = "test") -> float:
    """Share of the way from the positive rate to 1, with noise of the data set, the split and the trial."""
    skill = METHODS.get(method, 0.5) + 0.2 * (draw(dataset) - 0.5) + 0.1 * (draw(dataset, split) - 0.5)
    skill += 0.15 * (draw(dataset, method) - 0.5) + 0.1 * (draw(dataset, split, method, kind) - 0.5)
    rate = DATA_SETS[dataset]
    return round(rate + (1 - rate) * min(max(skill, 0.0), 1.0), 6)


def precisions(dataset: str, split: str, method: str, kind: str = "test") -> dict[str, float]:
    """Precision at 1, 5, 10, ..., 100 % of the positives: falling, about the average precision in the middle."""
    middle = average_precision(dataset, split, method, kind)
    return {f"p_at_{k}": round(min(1.0, max(0.0, middle + 0.3 * (0.5 - k / 100))), 6) for k in PERCENTS}


def make_results(
    n_data_sets: int = 6,
    methods: Sequence[str] = ("MetaAP", "Gini", "Entropy", "XGBoost"),
    n_splits: int = 4,
    unfinished: Mapping[tuple[str, str, str], str] | None = None,
) -> polars.DataFrame:
    """`Store.results()` of a plan; `unfinished` maps (dataset, split, method) to "failed", "timeout" or "skipped"."""
    unfinished = unfinished or {}
    rows = []
    for dataset in list(DATA_SETS)[:n_data_sets]:
        for method in methods:
            for split in (f"seed {i}" for i in range(1, n_splits + 1)):
                status = unfinished.get((dataset, split, method), "done")
                rows.append(_trial(dataset, method, split, status))
    return polars.DataFrame(rows, schema=_schema(), orient="row")


def make_profiles(
    n_data_sets: int = 6,
    methods: Sequence[str] = ("MetaAP", "Gini", "Entropy"),
    n_splits: int = 4,
    values: Sequence[float] = (2, 3, 4, 6, 8),
) -> polars.DataFrame:
    """`Store.profiles()`: the average precision of every depth, rising at first and falling later."""
    rows = [
        {
            "dataset": dataset, "positive_rate": DATA_SETS[dataset], "split": split, "method": method,
            "parameter": "max_depth", "value": float(value),
            "average_precision": round(average_precision(dataset, split, method) * (1 - (value - 5) ** 2 / 100), 6),
        }
        for dataset in list(DATA_SETS)[:n_data_sets]
        for method in methods
        for split in (f"seed {i}" for i in range(1, n_splits + 1))
        for value in values
    ]  # fmt: skip
    return polars.DataFrame(rows)


def make_published(
    n_data_sets: int = 6, methods: Sequence[str] = ("MetaAP", "Gini", "Entropy"), n_splits: int = 4
) -> polars.DataFrame:
    """Published figures of the same splits: the same skills, other noise."""
    rows = [
        {
            "dataset": dataset, "split": split, "method": method,
            "average_precision": average_precision(dataset, split, method, "published"),
            **precisions(dataset, split, method, "published"),
        }
        for dataset in list(DATA_SETS)[:n_data_sets]
        for split in (f"seed {i}" for i in range(1, n_splits + 1))
        for method in methods
    ]  # fmt: skip
    return polars.DataFrame(rows)


def _schema() -> dict[str, type[polars.DataType]]:
    text, whole, real = polars.String, polars.Int64, polars.Float64
    measures = ["average_precision", "roc_auc", *(f"p_at_{k}" for k in PERCENTS), "average_precision_train"]
    return {
        "trial": text, "dataset": text, "n": whole, "n_positives": whole, "positive_rate": real, "n_train": whole,
        "n_test": whole, "split": text, "method": text, "status": text, "error": text, "setting": text,
        "tuning_score": real, **dict.fromkeys(measures, real), "size": real, "size_unit": text,
        "is_readable": polars.Boolean, "seconds_tune": real, "seconds_fit": real, "seconds_score": real,
        "n_settings": whole,
    }  # fmt: skip


def _trial(dataset: str, method: str, split: str, status: str) -> dict[str, object]:
    """One row; a trial that is not done has an error in place of all it would have found."""
    n = 1000 + 100 * list(DATA_SETS).index(dataset)
    row: dict[str, object] = dict.fromkeys(_schema())
    row |= {
        "trial": f"{zlib.crc32(f'{dataset}/{method}/{split}'.encode()):08x}",
        "dataset": dataset, "split": split, "method": method, "status": status, "error": ERRORS.get(status),
    }  # fmt: skip
    if status != "done":
        return row
    size, unit = SIZES.get(method, (None, None))
    wobble = round(5 * draw(dataset, split, method, "size"))
    return row | {
        "n": n, "n_positives": round(n * DATA_SETS[dataset]), "positive_rate": DATA_SETS[dataset],
        "n_train": round(0.7 * n), "n_test": n - round(0.7 * n), "is_readable": method != "XGBoost",
        "setting": '{"max_depth":4}', "tuning_score": average_precision(dataset, split, method, "tuning"),
        "average_precision": average_precision(dataset, split, method),
        "roc_auc": round(0.5 + average_precision(dataset, split, method) / 2, 6),
        **precisions(dataset, split, method),
        "average_precision_train": round(min(1.0, average_precision(dataset, split, method) + 0.1), 6),
        "size": None if size is None else size + wobble, "size_unit": unit,
        "seconds_tune": 10 * draw(dataset, split, method, "tune"), "seconds_fit": draw(dataset, split, method, "fit"),
        "seconds_score": draw(dataset, split, method, "score") / 10, "n_settings": 9,
    }  # fmt: skip
