"""`model.json` of a model file: parsed within limits, with the type of every entry checked."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from toprank.budget import Cutoff
from toprank.errors import InputError
from toprank.tree.columns import Column

MAX_VALUES = 2_000_000
"""Maximum number of values in `model.json`, counted by brackets and commas."""

MAX_DEPTH = 12
"""Maximum number of brackets around a value: a parameter of the leaf ranker of a ranker has eight."""

MAX_RANKERS = 3
"""Maximum number of rankers around a parameter: a forest of trees, each with its own leaf ranker."""

MAX_COUNT = 1e18
CLASS_TYPE = re.compile(r"object|[<|]([biufU])(\d{1,9})")
LABELS = (str, bool, int, float)


def parse_head(raw: bytes) -> Any:
    """The values of `model.json`; raise ValueError or RecursionError if it is not plain JSON within the limits.

    Examples
    --------
    >>> parse_head(b'{"class": "MetaAP"}')
    {'class': 'MetaAP'}
    >>> parse_head(b'{"class": "MetaAP", "class": "CostTree"}')
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: 'class' is there twice
    """
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") > MAX_VALUES:
        raise InputError(f"it has more than {MAX_VALUES:,} values")
    info = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_without_twins)
    if _depth(info) > MAX_DEPTH:
        raise InputError(f"its values are nested more than {MAX_DEPTH} deep")
    json.dumps(info, ensure_ascii=False).encode()  # lone surrogates cannot be written
    return info


def _refuse_constant(text: str) -> None:
    raise InputError(f"{text} is not JSON")


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise InputError(f"{next(name for name in names if names.count(name) > 1)!r} is there twice")
    return found


def _depth(value: Any) -> int:
    """How deep lists and dictionaries are nested, without recursion."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        inside = [each for each in level if isinstance(each, list | dict)]
        level = [child for each in inside for child in (each.values() if isinstance(each, dict) else each)]
        depth += bool(inside)
    return depth


def check_head(info: dict[str, Any], *, is_ranker: bool, has_leaves: bool) -> None:
    """Raise KeyError, TypeError or ValueError where an entry is missing or not what its readers take it for."""
    for name, holds, expected in _entries(info, is_ranker, has_leaves):
        if not holds():
            raise InputError(f"Its entry {name!r} is not {expected}.")
    columns = [Column.from_dict(column) for column in info["columns"]]
    if not columns:
        raise InputError("It breaks the rule that a model has columns.")
    check_parameters(info["parameters"])
    if is_ranker:
        if not all(value is None or _is_number(value) for value in info["cutoff"].values()):
            raise InputError("Its entry 'cutoff' is not a set of finite numbers.")
        check_cutoff(Cutoff.from_dict(info["cutoff"]))


def _entries(info: dict[str, Any], is_ranker: bool, has_leaves: bool) -> Iterator[tuple[str, Callable[[], bool], str]]:
    """Name, check and expectation of each entry."""
    figures = info["figures"]
    yield "parameters", lambda: isinstance(info["parameters"], dict), "a set of named values"
    yield "changed", lambda: _are_texts(info["changed"]), "a list of names"
    yield "columns", lambda: _is_list_of(info["columns"], dict), "a list of columns"
    yield "left_out", lambda: _is_texts_by_name(info["left_out"]), "a reason in words for each column left out"
    yield "input_names", lambda: _are_texts(info["input_names"]), "a list of names"
    yield "feature_names", lambda: info["feature_names"] is None or _are_texts(info["feature_names"]), "a list of names"
    yield "classes", lambda: _are_classes(info["classes"]), "a list of classes and their type"
    yield "backend", lambda: info["backend"] is None or isinstance(info["backend"], str), "a name"
    yield "data_hash", lambda: isinstance(info["data_hash"], str), "a text"
    yield "created", lambda: isinstance(info["created"], str), "a text"
    yield "facts", lambda: _is_texts_by_name(info.get("facts", {})), "a text for each fact"
    yield "packages", lambda: _is_texts_by_name(info["packages"]), "a version of each package"
    yield "figures", lambda: isinstance(figures, dict), "a set of named values"
    yield "figures", lambda: all(_is_figure(value) for value in figures.values()), "a set of finite numbers"
    counts = ["n_cases", *(["n_positives"] if is_ranker else ["n_wrong"] if has_leaves else [])]
    counts += ["n_leaves", "n_conditions"] if has_leaves else []
    yield "figures", lambda: all(_is_count(figures[name]) for name in counts), f"a count of {', '.join(counts)}"
    optional = [figures[name] for name in ("n_trees", "depth") if name in figures]
    yield "figures", lambda: all(_is_count(value) and type(value) is int for value in optional), "a whole number"
    yield "figures", lambda: figures["n_cases"] > 0, "of a model that was trained on cases"
    if is_ranker:
        n_columns = len(info["columns"])
        shares = info["importances"]
        yield "positive_index", lambda: type(info["positive_index"]) is int, "a position"
        yield "positive_index", lambda: info["positive_index"] in (0, 1), "one of two classes"
        yield "classes", lambda: len(info["classes"]["values"]) == 2, "a list of two classes"
        yield "importances", lambda: isinstance(shares, list) and len(shares) == n_columns, "a share of each column"
        yield "importances", lambda: all(_is_number(v) and 0 <= v <= 1 + 1e-9 for v in shares), "shares from 0 to 1"
        yield "cutoff", lambda: isinstance(info["cutoff"], dict), "a set of named values"
    else:
        per_class, classes = figures["class_counts"], info["classes"]["values"]
        yield "figures", lambda: isinstance(per_class, list) and len(per_class) == len(classes), "a count of each class"
        yield "figures", lambda: all(_is_count(n) for n in per_class), "a count of each class"


def check_cutoff(cutoff: Cutoff) -> None:
    """Raise ValueError if a cutoff lacks its threshold, has negative counts, or has rates outside [0, 1]."""
    rates = (cutoff.training_rate, cutoff.hit_rate, cutoff.hit_rate_low, cutoff.hit_rate_high)
    for holds, rule in (
        (math.isfinite(cutoff.threshold), "has a cutoff"),
        (all(0 <= n <= MAX_COUNT for n in (cutoff.k, cutoff.n_above, cutoff.n_tied)), "counts the cases at its cutoff"),
        (all(math.isnan(rate) or 0 <= rate <= 1 for rate in rates), "has rates from 0 to 1 at its cutoff"),
        (not math.isnan(cutoff.training_rate), "has a training rate at its cutoff"),
        (len({math.isnan(rate) for rate in rates[1:]}) == 1, "has an interval for its hit rate"),
    ):
        if not holds:
            raise InputError(f"It breaks the rule that a model {rule}.")


def check_parameters(parameters: Any, n_rankers: int = 1) -> None:
    """Raise ValueError if parameters are not as `save` writes them: plain values and nested rankers."""
    if not isinstance(parameters, dict) or n_rankers > MAX_RANKERS:
        raise InputError(f"Its parameters are nested more than {MAX_RANKERS} rankers deep, or have no names.")
    for value in parameters.values():
        _check_value(value, n_rankers)


def _check_value(value: Any, n_rankers: int) -> None:
    """Raise ValueError if a value is not plain, a list of values, a ranker, a dictionary or a non-finite number."""
    if isinstance(value, list):
        for each in value:
            _check_value(each, n_rankers)
    elif not isinstance(value, dict):
        return
    elif value.keys() == {"ranker", "parameters"}:
        check_parameters(value["parameters"], n_rankers + 1)
    elif value.keys() == {"float"}:
        if value["float"] not in ("inf", "-inf", "nan"):
            raise InputError(f"Its parameters hold {value['float']!r}, which is not a non-finite number.")
    elif value.keys() == {"items"}:
        if not _is_list_of(value["items"], list) or any(len(pair) != 2 for pair in value["items"]):
            raise InputError("Its parameters hold a dictionary that is not a list of pairs.")
    else:
        raise InputError("Its parameters hold a value of an unknown kind.")


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(each, kind) for each in value)


def _are_texts(value: Any) -> bool:
    return _is_list_of(value, str)


def _is_texts_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= MAX_COUNT


def _is_figure(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_number(each) for each in value)
    return value is None or isinstance(value, str | bool) or _is_number(value)


def _are_classes(value: Any) -> bool:
    """Return whether classes are plain values of a matching type that takes no more memory than they do."""
    kind = CLASS_TYPE.fullmatch(value["dtype"]) if isinstance(value["dtype"], str) else None
    if kind is None or not isinstance(value["values"], list):
        return False
    labels = value["values"]
    if not all(type(label) in LABELS and (isinstance(label, str) or math.isfinite(label)) for label in labels):
        return False
    if kind[1] == "U":
        return all(isinstance(label, str) for label in labels) and int(kind[2]) <= max(map(len, labels), default=0)
    return kind[1] is None or int(kind[2]) in (1, 2, 4, 8, 16)
