"""`check_plan`: find errors that would fail every trial before the first one runs."""

from __future__ import annotations

from pathlib import Path

from toprank.errors import InputError
from toprank.experiment.data import load_cases
from toprank.experiment.plan import MethodUse, Plan
from toprank.experiment.registry import find_method
from toprank.experiment.trial import quiet


def check_plan(plan: Plan, folder: str | Path | None = None) -> None:
    """Raise ValueError if a table cannot be read or a method does not accept its parameters.

    Tables from OpenML are not fetched, and methods whose package is not installed are skipped.
    """
    for table in plan.tables:
        if "openml" not in table.source:
            try:
                load_cases(table, folder)
            except (ValueError, TypeError, OSError) as error:
                raise InputError(f"Table {table.name!r}: {error}") from None
    for use in plan.methods:
        if not find_method(use.method).missing_packages:
            with quiet():
                _check_parameters(use)


def _check_parameters(use: MethodUse) -> None:
    """Make an estimator with the first setting and the first value of each profiled parameter."""
    names = {*use.parameters, *use.space, *use.profile}
    first = {name: values["low"] if isinstance(values, dict) else values[0] for name, values in use.space.items()}
    first |= {name: values[0] for name, values in use.profile.items()}
    if "n_jobs" in names:
        raise InputError(
            f"Method {use.label!r}: a plan cannot set 'n_jobs', because every fit has one thread and trials run in "
            "parallel. Hint: set the number of parallel trials of the run (--jobs)."
        )
    try:
        find_method(use.method).make(n_jobs=1, **{"random_state": 0, **use.parameters, **first})
    except TypeError as error:
        word = str(error).split("'")[1] if "unexpected keyword argument" in str(error) else None
        if word not in names:
            raise
        raise InputError(
            f"Method {use.label!r}: {find_method(use.method).title} has no parameter {word!r}. "
            f"Hint: it is usually tuned by {', '.join(find_method(use.method).space) or 'nothing'}."
        ) from None
