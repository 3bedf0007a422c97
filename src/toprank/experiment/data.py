"""Tables of a plan: by name from a folder, by path, or from OpenML; features as a pandas frame, labels as 0 and 1."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from toprank.errors import InputError
from toprank.experiment.plan import PlanTable


class Cases(NamedTuple):
    """Features and outcome of a table."""

    X: Any
    y: np.ndarray


def load_cases(table: PlanTable, folder: str | Path | None = None) -> Cases:
    """Cases of a table of a plan; the last few are remembered."""
    return _load(tuple(sorted((key, _frozen(value)) for key, value in table.source.items())), str(folder or ""))


def content_of(table: PlanTable, folder: str | Path | None = None) -> str | None:
    """Hash of a table's file; None where there is none to be read."""
    from toprank.datasets.files import find_file

    if "openml" in table.source:
        return None
    try:
        path = find_file(table.source.get("path", table.source.get("name")), folder)
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except (OSError, ValueError):
        return None


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@lru_cache(maxsize=3)
def _load(entries: tuple[tuple[str, Any], ...], folder: str) -> Cases:
    source: Mapping[str, Any] = dict(entries)
    cases = _from_openml(source) if "openml" in source else _from_file(source, folder or None)
    drop = [source["drop"]] if isinstance(source.get("drop"), str) else list(source.get("drop", ()))
    missing = [name for name in drop if name not in cases.X.columns]
    if missing:
        raise InputError(f"The column {missing[0]!r} is to be dropped, but the table has {list(cases.X.columns)[:20]}.")
    return Cases(cases.X.drop(columns=drop), cases.y)


def _from_file(source: Mapping[str, Any], folder: str | None) -> Cases:
    from toprank.datasets import load

    found = load(source.get("path", source.get("name")), label=source.get("label", "label"),
                 pos_label=source.get("positive"), folder=folder)  # fmt: skip
    return Cases(found.X, found.y.astype(np.int64))


def _from_openml(source: Mapping[str, Any]) -> Cases:
    """Cases of an OpenML data set: the label column it names, or the default target; the rarer class is positive."""
    from sklearn.datasets import fetch_openml

    bunch = fetch_openml(data_id=int(source["openml"]), as_frame=True, parser="auto",
                         target_column=source.get("label", "default-target"))  # fmt: skip
    values = bunch.target.astype(str)
    counts = values.value_counts()
    if len(counts) != 2:
        raise InputError(
            f"The label of OpenML data set {source['openml']} has {len(counts)} values, expected two. "
            "Hint: name another label column."
        )
    positive = str(source.get("positive", counts.idxmin()))
    if positive not in counts.index:
        raise InputError(
            f"The label of OpenML data set {source['openml']} has no value {positive!r}: {list(counts.index)}."
        )
    return Cases(bunch.data, (values == positive).to_numpy().astype(np.int64))
