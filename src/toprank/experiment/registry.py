"""`Method`: what the engine knows about a ranking method, and the register of all methods by name.

A method is a recipe for an estimator with the settings to try. The engine only needs `fit(X, y)` and one of
`decision_function`, `predict_proba`, `predict`. `register` adds further methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from toprank.errors import InputError
from toprank.words.nearest import did_you_mean

Reads = Literal["frame", "numbers", "scaled"]
"""What a method gets: the data frame itself, with categories and missing values; numbers (one-hot categories,
missing values filled in and flagged); or numbers of mean 0 and deviation 1. Encoders see training rows only."""


@dataclass(frozen=True)
class Sweep:
    """All values of one parameter from one fit: depths of one tree, rounds of one booster, penalties of one path.

    Attributes
    ----------
    parameter : str
    scores : callable
        scores(estimator, X, values) -> float array (len(values), n): row i is what the method fitted with values[i]
        would score, computed from the estimator fitted with the largest of the values (None counts as largest).
    applies : callable
        applies(setting) -> False if another parameter prevents it; then every value is fitted.
    """

    parameter: str
    scores: Callable[[Any, Any, Sequence[Any]], np.ndarray]
    applies: Callable[[Mapping[str, Any]], bool] = lambda setting: True


@dataclass(frozen=True)
class Method:
    """A named ranking method.

    Attributes
    ----------
    name : str
        Short, lower case, words joined by hyphens: used in plans and on the command line.
    title : str
        Used in tables and plots.
    family : str
        "toprank", "tree", "forest", "linear", "boosting", "balanced", "neighbours" or "additive".
    make : callable
        make(random_state=0, n_jobs=1, **setting) -> an unfitted estimator.
    space : mapping of str to sequence
        Default values to try for each parameter; empty: nothing to tune.
    reads : {"frame", "numbers", "scaled"}
    packages : tuple of str
        Optional packages that `make` imports.
    is_readable : bool
        True if a person can read the fitted model.
    size : callable or None
        size(fitted estimator) -> (number, unit), such as (14, "leaves").
    sweep : Sweep or None
    summary : str
        One line for the list of methods.
    """

    name: str
    title: str
    family: str
    make: Callable[..., Any]
    space: Mapping[str, Sequence[Any]] = field(default_factory=lambda: MappingProxyType({}))
    reads: Reads = "frame"
    packages: tuple[str, ...] = ()
    is_readable: bool = False
    size: Callable[[Any], tuple[float, str]] | None = None
    sweep: Sweep | None = None
    summary: str = ""

    @property
    def missing_packages(self) -> list[str]:
        """Packages that are not installed."""
        return [name for name in self.packages if find_spec(name) is None]


def recipe(
    estimator: Callable[..., Any] | str,
    /,
    *given: Any,
    words: tuple[str | None, str | None] = ("random_state", "n_jobs"),
    **fixed: Any,
) -> Callable[..., Any]:
    """`make` of an estimator with some parameters other than its defaults; a setting overrides them.

    "module:Class" names an estimator of an optional package, which is imported when one is made. `words` are what the
    estimator calls the seed and the number of threads; None if it takes none.
    """

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> Any:
        module, _, name = estimator.partition(":") if isinstance(estimator, str) else ("", "", "")
        made = getattr(import_module(module), name) if isinstance(estimator, str) else estimator
        how = {word: value for word, value in zip(words, (random_state, n_jobs), strict=True) if word is not None}
        return made(*given, **fixed | how | setting)

    return make


_METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Register a method by name."""
    if method.name in _METHODS:
        raise InputError(f"A method {method.name!r} is already registered. Hint: choose another name.")
    _METHODS[method.name] = method
    return method


def list_methods() -> list[Method]:
    """All methods in order of registration, this library's first."""
    _load_methods()
    return list(_METHODS.values())


def find_method(name: str) -> Method:
    """The method with this name; "smote+xgboost" is a sampler followed by a method."""
    _load_methods()
    if name in _METHODS:
        return _METHODS[name]
    sampler, plus, rest = name.partition("+")
    if plus:
        from toprank.experiment.methods.samplers import with_sampler

        return with_sampler(sampler, find_method(rest))
    hint = did_you_mean(name, _METHODS) or f" Hint: known are {', '.join(_METHODS)}."
    raise InputError(f"There is no method {name!r}.{hint}")


def _load_methods() -> None:
    """Import the modules that register methods; optional packages are imported only when an estimator is made."""
    import toprank.experiment.methods  # noqa: F401
