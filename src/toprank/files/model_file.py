"""Model files: a zip of `model.json` and `arrays.npz`. Loading runs no code and refuses what it does not know.

This module needs numpy alone, so that a file can be described without loading scikit-learn.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from toprank.budget import Cutoff
from toprank.errors import InputError, InputTypeError
from toprank.files.archive import (
    UNREADABLE,
    NotAModelError,
    RefusedError,
    check_is_file,
    pack_arrays,
    read_members,
    unpack_arrays,
    write_members,
)
from toprank.files.atomic import write_atomically
from toprank.files.head import check_head, parse_head
from toprank.register import BY_NAME, entry_of
from toprank.tree.columns import Column

FORMAT = "toprank-model"
FORMAT_VERSION = 3
PACKAGES = ("toprank", "numpy", "scikit-learn", "numba")

JSON = "model_json"
"""Array with the JSON of a model that is part of another one."""

DAMAGED = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, ArithmeticError, RecursionError)
"""What reading a file raises if its parts do not fit together."""


class ModelFileError(InputError):
    """A file that is not a model this version can load; the message says why."""


def save_model(model: Any, path: Path) -> None:
    """Write a fitted model; the file is written whole or not at all."""
    arrays = pack_arrays(model._to_arrays())
    info = describe_model(model)
    info["checksum"] = _checksum(info, arrays)
    write_atomically(path, write_members(json.dumps(info, indent=1, allow_nan=False).encode(), arrays))


def describe_model(model: Any) -> dict[str, Any]:
    """Everything about a fitted model except its arrays, as plain values."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        **facts_of(model),
        **({"figures": model._figures()} if not entry_of(model).ranks else _ranking_of(model)),
        **({} if entry_of(model).has_leaves else {"facts": {"size": model._size_in_words()} | model._facts()}),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "packages": {name: metadata.version(name) for name in PACKAGES},
    }


def facts_of(model: Any) -> dict[str, Any]:
    """What any fitted model holds besides its arrays and figures, as plain values; `model_of` reads it."""
    classes = model.classes_
    return {
        "class": type(model).__name__,
        "parameters": _parameters(model),
        "changed": _changed(model),
        "columns": [column.to_dict() for column in model.columns_],
        "left_out": dict(model.left_out_),
        "input_names": list(model._input_names),
        "feature_names": list(getattr(model, "feature_names_in_", [])) or None,
        "classes": {
            "dtype": classes.dtype.str if classes.dtype.kind != "O" else "object",
            "values": [_plain_label(label) for label in classes],
        },
        "backend": model._backend,
        "data_hash": model.data_hash_,
    }


def _ranking_of(model: Any) -> dict[str, Any]:
    """What a ranker adds: its positive class, its figures and its cutoff."""
    return {
        "positive_index": model.positive_index_,
        "figures": {"n_cases": model.n_cases_, "n_positives": model.n_positives_} | model._figures(),
        "importances": model._importances().tolist(),
        "cutoff": model.cutoff_.to_dict(),
    }


def load(path: str | Path) -> Any:
    """Read a model that `save` wrote.

    Raises ModelFileError if the file is not a toprank model, is damaged, or has another format version.
    """
    path = Path(path)
    info, raw = _read_head(path)
    arrays = _read_arrays(path, raw)
    with damage_in(path):
        return _model_from(info, arrays)


def _model_from(info: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """A model from its two parts, checked."""
    model = model_of(_class_of(info["class"]), info)
    if entry_of(info["class"]).ranks:
        _take_ranking(model, info)
    model._from_arrays(arrays)
    _check_arrays(arrays, model._to_arrays())
    return model


def model_to_arrays(model: Any) -> dict[str, np.ndarray]:
    """A fitted model as arrays, for the file of a model that it is part of; `model_from_arrays` reads them."""
    info = describe_model(model) | {"created": "", "packages": {}}  # those of the file are enough
    return {JSON: np.frombuffer(json.dumps(info, allow_nan=False).encode(), np.uint8), **model._to_arrays()}


def model_from_arrays(arrays: dict[str, np.ndarray]) -> Any:
    """The model that `model_to_arrays` wrote; checked like a model of its own, with errors of a damaged file."""
    info = parse_head(arrays[JSON].astype(np.uint8).tobytes())
    entry = entry_of(info["class"])
    check_head(info, is_ranker=entry.ranks, has_leaves=entry.has_leaves)
    return _model_from(info, {name: array for name, array in arrays.items() if name != JSON})


@contextmanager
def damage_in(path: Path) -> Iterator[None]:
    """Turn what reading the parts of a file raises into a ModelFileError that names the file."""
    try:
        yield
    except DAMAGED as error:
        reason = str(error).partition(" Hint:")[0].rstrip(". ")
        raise ModelFileError(f"{path} is a damaged toprank model: {reason}. Hint: save it again.") from error


def _check_arrays(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Raise ValueError unless each array of a file is one that the loaded model would write, of that type and shape."""
    for name, array in found.items():
        if name not in expected:
            raise InputError(f"Its array {name!r} is not one of this model.")
        known = np.asarray(expected[name])
        if name.endswith(JSON):  # parsed and checked; another version may have more parameters
            continue
        if known.shape != array.shape or (known.dtype != array.dtype and known.dtype.kind != "U"):
            raise InputError(f"Its array {name!r} is {array.dtype} {array.shape}, not {known.dtype} {known.shape}.")


def model_of(kind: Any, facts: dict[str, Any]) -> Any:
    """A model of a class with the content of `facts_of`, checked; its trees are added later."""
    from toprank.data.frames import BACKENDS

    columns, left_out = [Column.from_dict(column) for column in facts["columns"]], facts["left_out"]
    if not isinstance(left_out, dict) or not all(isinstance(each, str) for each in left_out.values()):
        raise InputError("It breaks the rule that a model says in words which columns it leaves out.")
    model = kind(**{name: _from_plain(value) for name, value in facts["parameters"].items()})
    model._validate_params()
    model.columns_ = columns
    model.left_out_ = dict(left_out)
    model._input_names = list(facts["input_names"])
    model.n_features_in_ = len(model._input_names)
    if facts["feature_names"]:
        model.feature_names_in_ = np.array(facts["feature_names"], dtype=object)
    model.classes_ = np.array(facts["classes"]["values"], dtype=facts["classes"]["dtype"])
    model._backend, model.data_hash_ = facts["backend"], facts["data_hash"]
    distinct = np.unique(model.classes_)
    inputs, names = set(model._input_names), list(getattr(model, "feature_names_in_", model._input_names))
    _check_rules([
        (model.classes_.shape == distinct.shape and len(distinct) > 0, "has distinct classes"),
        (model._backend is None or model._backend in BACKENDS, "was trained on a known kind of table"),
        (names == model._input_names and len(inputs) == len(names), "has a name for each column"),
        (inputs.issuperset([c.input_name for c in columns]), "reads columns of its training table"),
        (inputs.issuperset(model.left_out_), "leaves out columns of its training table"),
        (len({c.name for c in columns}) == len(columns) > 0, "has columns of different names"),
    ])  # fmt: skip
    return model


def _take_ranking(model: Any, info: dict[str, Any]) -> None:
    """Add the content of `_ranking_of` to a ranker, checked; importances are those of its trees."""
    model.positive_index_ = int(info["positive_index"])
    model.n_cases_, model.n_positives_ = info["figures"]["n_cases"], info["figures"]["n_positives"]
    model.cutoff_, model.budget_ = Cutoff.from_dict(info["cutoff"]), model.budget
    _check_rules([
        (model.classes_.shape == (2,) and model.positive_index_ in (0, 1), "has two classes, one of them positive"),
        (0 < model.n_positives_ < model.n_cases_, "was trained on cases of both classes"),
        (math.isfinite(model.cutoff_.threshold), "has a cutoff"),
    ])  # fmt: skip


def _check_rules(rules: list[tuple[bool, str]]) -> None:
    """Raise ValueError at the first rule that a loaded model breaks; a fitted model breaks none."""
    for holds, rule in rules:
        if not holds:
            raise InputError(f"It breaks the rule that a model {rule}.")


def read_model_info(path: str | Path) -> dict[str, Any]:
    """`model.json` of a model file, checked: class, columns, figures, cutoff, versions. Arrays are not read."""
    return _read_head(Path(path))[0]


def read_model_parts(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """`model.json` of a model file, checked, and its arrays, which the `from_arrays` of their owners check."""
    info, raw = _read_head(Path(path))
    return info, _read_arrays(Path(path), raw)


def _read_head(path: Path) -> tuple[dict[str, Any], bytes]:
    """`model.json`, after every check that needs no estimator, and the raw arrays of the file."""
    if not path.exists():
        raise FileNotFoundError(
            f"There is no model file {path}. Hint: check the path; `toprank fit`, or `save` in Python, writes one."
        )
    try:
        check_is_file(path)
        head, raw = read_members(path)
        info = parse_head(head)
        if not isinstance(info, dict) or info.get("format") != FORMAT:
            raise NotAModelError
    except RefusedError as error:
        raise ModelFileError(str(error)) from None
    except NotAModelError:
        raise ModelFileError(
            f"{path} is a zip file but not a toprank model. Hint: use a file written by `toprank fit`, or by `save` in "
            "Python."
        ) from None
    except UNREADABLE as error:
        raise ModelFileError(
            f"{path} cannot be read as a toprank model: it is truncated or of another kind ({error}). "
            "Hint: copy it again, or save the model again."
        ) from error
    _check_header(path, info, raw)
    with damage_in(path):
        entry = entry_of(info["class"])
        check_head(info, is_ranker=entry.ranks, has_leaves=entry.has_leaves)
    return info, raw


def _read_arrays(path: Path, raw: bytes) -> dict[str, np.ndarray]:
    try:
        return unpack_arrays(raw)
    except UNREADABLE as error:
        raise ModelFileError(
            f"{path} holds arrays that cannot be read ({error}). Hint: save the model again."
        ) from error


def _check_header(path: Path, info: dict[str, Any], raw: bytes) -> None:
    version = info.get("format_version")
    if version != FORMAT_VERSION:
        is_older = isinstance(version, int) and version < FORMAT_VERSION
        raise ModelFileError(
            f"{path} has model format {version}, this toprank reads {FORMAT_VERSION}. "
            f"Hint: {'refit the model' if is_older else 'upgrade toprank'}."
        )
    if not isinstance(info.get("class"), str) or info["class"] not in BY_NAME:
        raise ModelFileError(
            f"{path} holds a model of class {info.get('class')!r}, known are {', '.join(BY_NAME)}. "
            "Hint: upgrade toprank."
        )
    if info.get("checksum") != _checksum(info, raw):
        raise ModelFileError(
            f"{path} was changed after it was saved: its checksum does not match. Hint: use the original file."
        )


def _checksum(info: dict[str, Any], arrays: bytes) -> str:
    """SHA-256 over both parts; it detects accidents and manual edits but is not a signature."""
    described = {name: value for name, value in info.items() if name != "checksum"}
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    digest.update(arrays)
    return digest.hexdigest()


def with_prefix(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Arrays with a prefix before their names, which `without_prefix` removes."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def without_prefix(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Arrays whose name begins with the prefix, keyed by the rest of the name."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def numbered_parts(arrays: dict[str, np.ndarray], prefix: str, count: int) -> list[dict[str, np.ndarray]]:
    """Arrays whose names begin with the prefix and a number below `count`, by number and the rest of their name.

    Examples
    --------
    >>> numbered_parts({"tree0_leaf": 1, "tree1_leaf": 2, "tree_at": 3}, "tree", 2)
    [{'leaf': 1}, {'leaf': 2}]
    """
    if not 0 < count <= len(arrays):
        raise InputError(f"It says that it has {count:,} parts {prefix!r}, but there are {len(arrays):,} arrays.")
    parts: list[dict[str, np.ndarray]] = [{} for _ in range(count)]
    pattern = re.compile(rf"{prefix}(0|[1-9]\d{{0,8}})_(.+)")
    for name, array in arrays.items():
        found = pattern.fullmatch(name)
        if found and int(found[1]) < count:
            parts[int(found[1])][found[2]] = array
    return parts


def _parameters(model: Any) -> dict[str, Any]:
    """Parameters of a model as JSON."""
    return {name: _plain(value) for name, value in model._params_of_file().items()}


def _changed(model: Any) -> list[str]:
    """Names of the parameters that differ from the defaults of the class, for short descriptions."""
    defaults = inspect.signature(type(model)).parameters
    return [
        name for name, value in _parameters(model).items()
        if name in defaults and value != _plain(defaults[name].default)
    ]  # fmt: skip


def _plain(value: Any) -> Any:
    """A parameter as JSON: numpy scalars and arrays as Python values, non-finite floats as {"float": "-inf"}.

    A dict becomes {"items": [[key, value], ...]}, because JSON keys must be text.
    """
    if hasattr(value, "__array__"):  # of numpy, pandas or polars
        value = np.asarray(value).tolist()
    if isinstance(value, list | tuple | set):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, dict):
        return {"items": [[_plain(key), _plain(each)] for key, each in value.items()]}
    if type(value).__name__ in BY_NAME:  # the base ranker of another ranker
        from sklearn.base import clone

        return {"ranker": type(value).__name__, "parameters": _parameters(clone(value))}  # unfitted, its `init` too
    return value if isinstance(value, str | bool | int | float | None) else None


def _plain_label(label: Any) -> Any:
    """A class label as JSON; raise TypeError if JSON cannot hold it, such as a date."""
    is_time = isinstance(label, np.datetime64 | np.timedelta64)  # the item of which may be a number
    label = label.item() if isinstance(label, np.generic) and not is_time else label
    if not isinstance(label, str | bool | int | float):
        raise InputTypeError(
            f"The class {label!r} of the model has the type {type(label).__name__}, which neither files nor to_dict "
            "can hold, expected text, a number or a boolean. Hint: turn the labels into text before fit."
        )
    return label


def _from_plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "ranker" in value:
        inner = _class_of(value["ranker"])(**{name: _from_plain(each) for name, each in value["parameters"].items()})
        inner._validate_params()
        return inner
    if "items" in value:
        return {key: _from_plain(each) for key, each in value["items"]}
    return float(value["float"])


def _class_of(name: str) -> Any:
    """Class of a ranker by name, among those allowed in files."""
    return BY_NAME[name].load()
