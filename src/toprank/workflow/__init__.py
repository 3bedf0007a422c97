"""The workflow as functions: evaluate a model, look for leaks, read a curve, compare methods and recommend one.

Each function returns a frozen dataclass with `to_dict`. The command line prints them; nothing here prints.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toprank.experiment.comparing import compare
    from toprank.workflow.advice import Recommendation, recommend
    from toprank.workflow.curves import CurveRow, CurveTable, curve_table
    from toprank.workflow.distilling import Distillation, distill
    from toprank.workflow.judging import AtDepth, FlaggedCases, Gains, Judgement, gains, judge
    from toprank.workflow.leaks import LoneColumn, check_main_column
    from toprank.workflow.versions import ModelChanges, VersionComparison, compare_versions

_HOMES = {
    "toprank.experiment.comparing": ("compare",),
    "toprank.workflow.advice": ("Recommendation", "recommend"),
    "toprank.workflow.curves": ("CurveRow", "CurveTable", "curve_table"),
    "toprank.workflow.distilling": ("Distillation", "distill"),
    "toprank.workflow.judging": ("AtDepth", "FlaggedCases", "Gains", "Judgement", "gains", "judge"),
    "toprank.workflow.leaks": ("LoneColumn", "check_main_column"),
    "toprank.workflow.versions": ("ModelChanges", "VersionComparison", "compare_versions"),
}

__all__ = [
    "AtDepth",
    "CurveRow",
    "CurveTable",
    "Distillation",
    "FlaggedCases",
    "Gains",
    "Judgement",
    "LoneColumn",
    "ModelChanges",
    "Recommendation",
    "VersionComparison",
    "check_main_column",
    "compare",
    "compare_versions",
    "curve_table",
    "distill",
    "gains",
    "judge",
    "recommend",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
