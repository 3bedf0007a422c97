"""Experiments: plan -> protocol -> store -> summary. Which method ranks best, on which tables, and how certain that is.

A `Plan` names tables, methods with the settings to try, and how they are compared. `run` runs its trials, and a `Store`
saves each one as soon as it is finished, so a run can be killed at any moment and resumed later.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toprank.experiment.column_scorers import make_entity_scorer, make_money_scorer
    from toprank.experiment.comparing import compare
    from toprank.experiment.evidence import write_evidence
    from toprank.experiment.leaderboard import Leaderboard
    from toprank.experiment.metric_tuning import MetricTuning, tune_mlfp
    from toprank.experiment.plan import Plan
    from toprank.experiment.prequential import PrequentialSplit
    from toprank.experiment.registry import Method, Sweep, find_method, list_methods, register
    from toprank.experiment.runner import run
    from toprank.experiment.store import Store

_HOMES = {
    "column_scorers": ("make_entity_scorer", "make_money_scorer"),
    "comparing": ("compare",),
    "evidence": ("write_evidence",),
    "leaderboard": ("Leaderboard",),
    "metric_tuning": ("MetricTuning", "tune_mlfp"),
    "plan": ("Plan",),
    "prequential": ("PrequentialSplit",),
    "registry": ("Method", "Sweep", "find_method", "list_methods", "register"),
    "runner": ("run",),
    "store": ("Store",),
}

__all__ = [
    "Leaderboard",
    "Method",
    "MetricTuning",
    "Plan",
    "PrequentialSplit",
    "Store",
    "Sweep",
    "compare",
    "find_method",
    "list_methods",
    "make_entity_scorer",
    "make_money_scorer",
    "register",
    "run",
    "tune_mlfp",
    "write_evidence",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"toprank.experiment.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
