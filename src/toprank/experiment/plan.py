"""`Plan`: what an experiment does, read from a file, and the resulting trials.

Owns reading and checking plans and naming trials. A trial's id is a hash of everything that determines its figures
(table, split, method, settings, measures), so a plan can be edited and extended without rerunning finished trials.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from toprank.errors import InputError
from toprank.experiment.measures import check_measure
from toprank.experiment.registry import Method, find_method
from toprank.metrics.checks import is_int, is_real
from toprank.words.nearest import did_you_mean

TUNERS = ("grid", "halving", "optuna")
JUDGES = ("cv", "out-of-bag")
KINDS = ("holdout", "kfold", "published", "prequential", "given")
MAX_TRIALS = 1_000_000
DEFAULT_MEASURES = ("average_precision", "roc_auc", "precision_at_positives")
SPAN = re.compile(r"\s*(-?\d+)(?:\s*-\s*(-?\d+)\s*(?:by\s+(\d+))?)?\s*")
MAX_VALUES = 10_000
"""Maximum number of values of a list, with spans expanded; more are probably a typo."""

RANGE_KEYS = ("low", "high", "log", "step")


@dataclass(frozen=True)
class PlanTable:
    """A table of a plan: `source` says where it comes from, `name` what tables of results call it."""

    name: str
    source: Mapping[str, Any]

    def decides(self) -> dict[str, Any]:
        """What enters a trial's id: for a path only the file's name, wherever the file is."""
        if "path" not in self.source:
            return dict(self.source)
        return dict(self.source) | {"path": Path(self.source["path"]).name, "as": self.name}


@dataclass(frozen=True)
class MethodUse:
    """A method of a plan: fixed parameters, values to try, and how the best is chosen."""

    label: str  # what tables of results call it
    method: str  # registered name
    parameters: Mapping[str, Any] = field(default_factory=dict)  # fixed
    search: Mapping[str, Any] | None = None  # values to try; None = the method's default values
    tuner: str = "grid"
    n_candidates: int = 30  # settings that Optuna may try
    judge: str = "cv"  # how settings are compared: by inner cross-validation, or by the out-of-bag score of a forest
    # One parameter and values at which the test measure is also recorded, for plots; never used to choose.
    profile: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] | None = None  # seeds to run on, if fewer than the plan's

    @property
    def space(self) -> dict[str, Any]:
        """Values to try, without the parameters that are fixed."""
        space = find_method(self.method).space if self.search is None else self.search
        return {name: values for name, values in space.items() if name not in self.parameters}

    def decides(self) -> dict[str, Any]:
        """What enters a trial's id; the order of values matters, because ties go to the first setting."""
        kept = {name: getattr(self, name) for name in ("method", "parameters", "tuner", "judge", "profile")}
        candidates = {"n_candidates": self.n_candidates} if self.tuner == "optuna" else {}
        return kept | {"space": list(self.space.items())} | candidates


@dataclass(frozen=True)
class Protocol:
    """How tables are split and settings are compared.

    holdout: a random stratified holdout of `test_size`, one per seed. kfold: `n_splits` stratified folds, reshuffled
    for each seed. published: as in the code of the MetaAP paper, holdout and inner folds from one generator.
    prequential: `n_splits` windows in time, see `PrequentialSplit`. given: the last `test` rows are the test rows.
    """

    kind: str = "holdout"
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    test_size: float = 0.3
    n_splits: int = 5
    inner_splits: int = 5  # folds of the inner cross-validation that compares settings
    scoring: str = "average_precision"  # measure by which settings are compared
    # "numbers": every method gets numbers, even those that read categories and missing values themselves.
    encoding: str = "as needed"
    time_limit: float | None = None  # seconds per fit
    trial_minutes: float | None = 240.0  # per trial, reading and tuning included; None = no limit
    trial_memory: float | str | None = "auto"  # gigabytes per process; "auto" = 90 % of the machine's, None = no limit
    # Windows of "prequential"; of "given", `test` is a number of rows.
    time: str | None = None
    train: Any = "all"
    gap: Any = 0
    test: Any = None
    label_delay: Any = None

    def decides(self) -> dict[str, Any]:
        """What enters a trial's id: the settings that its kind uses, without seeds and limits."""
        names = ["kind", "inner_splits", "scoring", "encoding"]
        names += {"holdout": ["test_size"], "published": ["test_size"], "given": ["test"]}.get(self.kind, ["n_splits"])
        names += ["time", "train", "gap", "test", "label_delay"] if self.kind == "prequential" else []
        return {name: getattr(self, name) for name in names}

    @property
    def n_splits_in_all(self) -> int:
        """Number of splits over all seeds."""
        if self.kind == "prequential":
            return self.n_splits
        return len(self.seeds) * (self.n_splits if self.kind == "kfold" else 1)

    def splits(self) -> list[tuple[int, int]]:
        """(seed, fold) of every split; fold 0 if a seed has one split."""
        if self.kind == "kfold":
            return [(seed, fold) for seed in self.seeds for fold in range(1, self.n_splits + 1)]
        if self.kind == "prequential":
            return [(self.seeds[0], fold) for fold in range(1, self.n_splits + 1)]
        return [(seed, 0) for seed in self.seeds]


@dataclass(frozen=True)
class Trial:
    """One table, one split, one method: the unit of work."""

    id: str
    table: PlanTable
    use: MethodUse
    protocol: Protocol
    measures: tuple[str, ...]
    seed: int
    fold: int

    @property
    def split(self) -> str:
        """The split in words."""
        if self.protocol.kind == "prequential":
            return f"window {self.fold}"
        return f"seed {self.seed}" + (f" fold {self.fold}" if self.fold else "")


@dataclass(frozen=True)
class Plan:
    """Tables, methods, protocol and measures of an experiment.

    Examples
    --------
    >>> from toprank.experiment import Plan
    >>> plan = Plan.from_dict({
    ...     "name": "trees", "data": ["sick", "oil"], "protocol": {"seeds": "1-3"},
    ...     "methods": {"MetaAP": {"method": "metaap", "search": {"max_depth": "2-4"}}, "Gini": {"method": "gini"}},
    ... })
    >>> len(plan.trials())
    12
    >>> plan.methods[0].search
    {'max_depth': [2, 3, 4]}
    """

    name: str
    tables: tuple[PlanTable, ...]
    methods: tuple[MethodUse, ...]
    protocol: Protocol = Protocol()
    measures: tuple[str, ...] = DEFAULT_MEASURES
    reference: str | None = None

    @classmethod
    def from_yaml(cls, path: str | Path, *, folder: str | Path | None = None, quick: bool = False) -> Plan:
        """Plan from a YAML file.

        Parameters
        ----------
        path : path of the file
            Paths in it are relative to the file.
        folder : where to find tables by name or group
        quick : bool
            Let the file's section `quick` override the rest, for a run of a few minutes.
        """
        path = Path(path)
        plan = cls.from_dict(read_yaml(path), folder=folder, quick=quick, owner=path.name)
        tables = []
        for table in plan.tables:
            place = {"path": str(path.parent / table.source["path"])} if "path" in table.source else {}
            tables.append(replace(table, source={**table.source, **place}))
        return replace(plan, tables=tuple(tables))

    @classmethod
    def from_dict(
        cls, content: Any, *, folder: str | Path | None = None, quick: bool = False, owner: str = "the plan"
    ) -> Plan:
        """Plan from plain values, checked; every error is explained."""
        content = _mapping(content, owner, ("name", "data", "methods", "protocol", "measures", "reference", "quick"))
        if quick:
            content = _overridden(content, _mapping(content.get("quick") or {}, f"'quick' of {owner}", None))
        for needed in ("name", "data", "methods"):
            if not content.get(needed):
                raise InputError(
                    f"{owner} must have '{needed}', found {sorted(content)}. Hint: see docs/experiments.md."
                )
        methods = _mapping(content["methods"], f"'methods' of {owner}", None)
        if not re.fullmatch(r"[\w .+-]*\w[\w .+-]*", str(content["name"])):
            raise InputError(
                f"'name' of {owner} must be letters, digits, spaces and . + - _, found {content['name']!r}. "
                "Hint: it names the folder of the results."
            )
        plan = cls(
            name=str(content["name"]),
            tables=tuple(_tables(content["data"], folder, owner)),
            methods=tuple(_method_use(label, entry, owner) for label, entry in methods.items()),
            protocol=_protocol(content.get("protocol") or {}, owner),
            measures=_measures(content.get("measures") or DEFAULT_MEASURES, owner),
            reference=content.get("reference"),
        )
        labels = [use.label for use in plan.methods]
        if plan.reference is not None and plan.reference not in labels:
            raise InputError(f"'reference' of {owner} must be one of {labels}, found {plan.reference!r}.")
        twice = sorted({table.name for table in plan.tables if [t.name for t in plan.tables].count(table.name) > 1})
        if twice:
            raise InputError(f"'data' of {owner} names {twice[0]!r} twice. Hint: give one of them another name.")
        n_trials = plan.protocol.n_splits_in_all * len(plan.tables) * len(plan.methods)
        if n_trials > MAX_TRIALS:
            raise InputError(
                f"{owner} asks for {n_trials:,} trials (splits x tables x methods), expected at most {MAX_TRIALS:,}. "
                "Hint: use fewer seeds or folds, or several plans."
            )
        return plan

    def with_limits(self, *, trial_minutes: float | None = None, trial_memory: float | None = None) -> Plan:
        """The plan with other limits per trial; None keeps a limit. Finished trials stay finished."""
        given: dict[str, Any] = {"trial_minutes": trial_minutes, "trial_memory": trial_memory}
        return replace(self, protocol=replace(self.protocol, **{name: v for name, v in given.items() if v is not None}))

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `from_dict` gives an equal plan back."""
        methods = {use.label: {k: v for k, v in asdict(use).items() if k != "label"} for use in self.methods}
        return {
            "name": self.name,
            "data": [dict(table.source) | {"as": table.name} for table in self.tables],
            "methods": json.loads(json.dumps(methods)),
            "protocol": json.loads(json.dumps(asdict(self.protocol))),
            "measures": list(self.measures),
            "reference": self.reference,
        }

    def trials(self) -> list[Trial]:
        """All trials, split by split, so that an unfinished run is still a fair, smaller comparison."""
        found = []
        for seed, fold in self.protocol.splits():
            for table in self.tables:
                for use in self.methods:
                    if use.seeds is None or seed in use.seeds:
                        found.append(self._trial(table, use, seed, fold))
        return found

    def _trial(self, table: PlanTable, use: MethodUse, seed: int, fold: int) -> Trial:
        decides = [table.decides(), use.decides(), self.protocol.decides(), list(self.measures), seed, fold]
        text = json.dumps(decides, sort_keys=True, default=str)
        trial_id = hashlib.sha256(text.encode()).hexdigest()[:16]
        return Trial(trial_id, table, use, self.protocol, self.measures, seed, fold)


# --- reading ------------------------------------------------------------------------------------------------------


def _mapping(value: Any, owner: str, known: Iterable[str] | None) -> dict[str, Any]:
    """A mapping with text keys, all of them known."""
    if not isinstance(value, Mapping):
        raise InputError(f"{owner} must be a mapping of names to values, found {value!r:.60}.")
    names = [str(name) for name in value]
    if known is not None:
        for name in names:
            if name not in known:
                hint = did_you_mean(name, known) or f" Hint: known are {', '.join(known)}."
                raise InputError(f"{owner} has an entry {name!r} that is unknown.{hint}")
    return dict(zip(names, value.values(), strict=True))


def _overridden(content: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The content with changes merged in; `methods` of the changes picks and edits methods, None drops one."""
    out = dict(content)
    for name, value in changes.items():
        if isinstance(value, Mapping) and isinstance(out.get(name), Mapping):
            merged = _overridden(dict(out[name]), dict(value))
            out[name] = {key: entry for key, entry in merged.items() if entry is not None or name != "methods"}
        else:
            out[name] = value
    return out


def _tables(entries: Any, folder: str | Path | None, owner: str) -> Iterable[PlanTable]:
    from toprank.datasets import list_datasets

    entries = [entries] if isinstance(entries, str | Mapping) else entries
    if not isinstance(entries, Sequence):
        raise InputError(f"'data' of {owner} must be a list of tables, found {entries!r:.60}.")
    known = ("name", "path", "openml", "group", "label", "positive", "drop", "split_by", "as")
    for entry in entries:
        entry = {"name": entry} if isinstance(entry, str) else _mapping(entry, f"An entry of 'data' of {owner}", known)
        kinds = [kind for kind in ("name", "path", "openml", "group") if kind in entry]
        if len(kinds) != 1:
            raise InputError(
                f"An entry of 'data' of {owner} must have one of name, path, openml, group; found {entry}."
            )
        title = entry.pop("as", None)
        if "group" in entry:
            index, group = list_datasets(folder), entry.pop("group")
            names = [name for name, facts in index.items() if facts.get("group") == group]
            if not names:
                groups = sorted({facts["group"] for facts in index.values() if "group" in facts})
                raise InputError(f"'data' of {owner} asks for the group {group!r}, found the groups {groups}.")
            yield from (PlanTable(name, {"name": name} | entry) for name in names)
        else:
            default = Path(str(entry["path"])).name.split(".")[0] if "path" in entry else str(entry[kinds[0]])
            yield PlanTable(str(title or default), entry)


def _measures(given: Any, owner: str) -> tuple[str, ...]:
    """Measures of a plan; average precision is always included, because tables and tests use it."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputError(f"'measures' of {owner} must be a list of names, found {given!r:.60}.")
    for measure in given:
        check_measure(measure, f"'measures' of {owner}")
    return tuple(dict.fromkeys(["average_precision", *given]))


def _method_use(label: str, entry: Any, owner: str) -> MethodUse:
    place = f"Method {label!r} of {owner}"
    known = [f.name for f in fields(MethodUse) if f.name != "label"]
    entry = {"method": entry} if isinstance(entry, str) else _mapping(entry or {}, place, known)
    method: Method = find_method(str(entry.get("method", label)))
    entry["method"] = method.name
    for name in ("search", "profile", "parameters"):
        if entry.get(name) is not None:
            entry[name] = _mapping(entry[name], f"'{name}' of {place}", None)
    for name in ("search", "profile"):
        if entry.get(name) is not None:
            entry[name] = {key: parse_values(values, f"{name} of {place}") for key, values in entry[name].items()}
    if entry.get("seeds") is not None:
        entry["seeds"] = parse_seeds(entry["seeds"], place)
    use = MethodUse(label, **entry)
    for name, allowed in (("tuner", TUNERS), ("judge", JUDGES)):
        if getattr(use, name) not in allowed:
            raise InputError(f"'{name}' of {place} must be one of {', '.join(allowed)}; found {getattr(use, name)!r}.")
    followed = [value for values in use.profile.values() for value in values]
    rules = [
        (len(use.profile) <= 1, "'profile' must name one parameter", sorted(use.profile)),
        (all(_is_number(value) for value in followed), "'profile' must list numbers", followed),
        (_is_int(use.n_candidates, 1), "'n_candidates' must be an int of at least 1", use.n_candidates),
        (use.judge == "cv" or use.tuner == "grid", "'judge: out-of-bag' needs the tuner grid", use.tuner),
    ]
    _check(rules, place)
    ranges = [name for name, values in use.space.items() if isinstance(values, Mapping)]
    if ranges and use.tuner != "optuna":
        raise InputError(
            f"{place} searches a range of {ranges[0]!r}, which the tuner {use.tuner!r} cannot. "
            "Hint: list the values, or use the tuner optuna."
        )
    return use


def _protocol(entry: Any, owner: str) -> Protocol:
    place = f"'protocol' of {owner}"
    entry = _mapping(entry, place, [f.name for f in fields(Protocol)])
    if "seeds" in entry:
        entry["seeds"] = parse_seeds(entry["seeds"], place)
    protocol = Protocol(**entry)
    check_measure(protocol.scoring, place)
    rules = [
        (protocol.kind in KINDS, f"'kind' must be one of {', '.join(KINDS)}", protocol.kind),
        (_is_number(protocol.test_size) and 0 < protocol.test_size < 1, "'test_size' must be a share",
         protocol.test_size),
        (_is_int(protocol.n_splits, 1), "'n_splits' must be an int of at least 1", protocol.n_splits),
        (_is_int(protocol.inner_splits, 2), "'inner_splits' must be an int of at least 2", protocol.inner_splits),
        (protocol.kind != "kfold" or _is_int(protocol.n_splits, 2), "'n_splits' must be at least 2", protocol.n_splits),
        (protocol.encoding in ("as needed", "numbers"), "'encoding' must be 'as needed' or 'numbers'",
         protocol.encoding),
        (protocol.time_limit is None or _is_above_zero(protocol.time_limit),
         "'time_limit' must be seconds", protocol.time_limit),
        (protocol.trial_minutes is None or _is_above_zero(protocol.trial_minutes),
         "'trial_minutes' must be minutes", protocol.trial_minutes),
        (protocol.trial_memory in (None, "auto") or _is_above_zero(protocol.trial_memory),
         "'trial_memory' must be gigabytes, or auto", protocol.trial_memory),
        (protocol.kind != "prequential" or (protocol.time is not None and protocol.test is not None),
         "'time' (a column) and 'test' (a window) are needed for prequential splits", (protocol.time, protocol.test)),
        (protocol.kind != "given" or _is_int(protocol.test, 1), "'test' must be the number of test rows at the end",
         protocol.test),
    ]  # fmt: skip
    _check(rules, place)
    return protocol


def _check(rules: Iterable[tuple[bool, str, Any]], place: str) -> None:
    """Raise ValueError for the first broken rule."""
    for holds, rule, found in rules:
        if not holds:
            raise InputError(f"{place}: {rule}. Found {found!r}.")


def _is_number(value: Any) -> bool:
    return is_real(value) and math.isfinite(value)


def _is_above_zero(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_int(value: Any, least: int) -> bool:
    return is_int(value) and value >= least


# --- values: "2-10", "20-100 by 10", lists of both, ranges for Optuna ---------------------------------------------


def parse_values(given: Any, owner: str) -> Any:
    """List of values; "2-5" is 2, 3, 4, 5 and may be part of a list. A mapping with low and high is a range.

    Examples
    --------
    >>> parse_values(["2-4", "20-40 by 10", None], "search")
    [2, 3, 4, 20, 30, 40, None]
    """
    if isinstance(given, Mapping):
        if not {"low", "high"} <= set(given) <= set(RANGE_KEYS):
            raise InputError(f"A range in the {owner} must have low and high (log, step), found {dict(given)}.")
        return dict(given)
    entries = given if isinstance(given, list | tuple) else [given]
    values: list[Any] = []
    for entry in entries:
        span = SPAN.fullmatch(entry) if isinstance(entry, str) else None
        if span is None:
            values.append(list(entry) if isinstance(entry, tuple) else entry)
            continue
        low, high, step = int(span[1]), int(span[2] or span[1]), int(span[3] or 1)
        if low > high or step < 1:
            raise InputError(f"The {owner} holds {entry!r}, expected a span such as 2-10 or 20-100 by 10.")
        if (high - low) // step >= MAX_VALUES:
            n_values = (high - low) // step + 1  # len() may overflow for a range this long
            raise InputError(
                f"The {owner} holds {entry!r}, which is {n_values:,} values, expected at most {MAX_VALUES:,}. "
                "Hint: use a shorter span, or steps such as 0-1000 by 100."
            )
        values += range(low, high + 1, step)
    if not values:
        raise InputError(f"The {owner} holds an empty list, expected values. Hint: leave the parameter out.")
    return values


def parse_seeds(given: Any, owner: str) -> tuple[int, ...]:
    """Seeds: an int, a list, or "1-10"."""
    values = parse_values(given, f"seeds of {owner}")
    if isinstance(values, dict) or not all(type(value) is int and 0 <= value < 2**32 for value in values):
        raise InputError(f"The seeds of {owner} must be ints from 0 to 2**32 - 1 such as 1-10, found {given!r:.60}.")
    return tuple(dict.fromkeys(values))


def read_yaml(path: Path) -> Any:
    """Content of a YAML file; duplicate keys are refused."""
    from toprank.datasets.frames import import_optional

    import_optional("yaml", needed_for=f"Reading {path.name}", hint='pip install "toprank[experiment]"')
    import yaml

    class Loader(yaml.SafeLoader):
        """A safe loader that refuses duplicate keys, which others drop silently."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names = [self.construct_object(key, deep=True) for key, _ in node.value]
            twice = [name for i, name in enumerate(names) if name in names[:i]]
            if twice:
                raise yaml.MarkedYAMLError(problem=f"{twice[0]!r} is given twice", problem_mark=node.start_mark)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader)
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name} is not encoded as UTF-8 ({error.reason}). Hint: save it as UTF-8.") from None
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or str(error)
        where = f" in line {mark.line + 1}" if mark else ""
        hint = "use spaces, not tabs" if "\\t" in str(problem) else "check the indentation and the brackets"
        raise InputError(f"{path.name} cannot be read as YAML{where}: {problem}. Hint: {hint}.") from None
