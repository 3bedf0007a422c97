"""Measures of a ranking of rare cases, with intervals and tests.

Everywhere a larger score is more suspicious and rank 1 is the top. Labels take two values; the positive one
is that of a usual pair (1 of {0, 1} or {-1, 1}, True of {False, True}, "Ja" of {"Ja", "Nein"}), else the larger, as in
``fit``, unless ``pos_label`` says otherwise.

Many rows of a tree have the same score, so ties are the rule, and every measure says how it handles them:

* ``"expected"``: the exact mean over all orders of the tied rows, in closed form: the average result of a user who
  picks tied rows at random, and the only fair figure for comparing two models;
* ``"best"`` and ``"worst"``: positives first, or last, among the tied rows: the bounds of what can happen;
* ``"grouped"`` (average precision only): a tied group counts as a whole, as scikit-learn does.

A ``sample_weight`` counts copies: weight 2 is the row twice, weight 0 is no row.

This folder owns measures, curves, intervals, tests and scorers for scikit-learn searches. It knows no estimator and
draws nothing. Importing it loads neither scikit-learn nor
``scipy.stats``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toprank.metrics.at_k import (
    gain_at_k,
    gain_at_k_curve,
    gains_table,
    lift_at_k,
    precision_at_k,
    precision_at_k_curve,
    recall_at_k,
    recall_at_k_curve,
)
from toprank.metrics.auc import auc_interval, delong_test
from toprank.metrics.comparison import (
    BeforeAfter,
    Comparison,
    corrected_resampled_t_test,
    paired_bootstrap_test,
    wilcoxon_test,
)
from toprank.metrics.confusion import balanced_accuracy, f_beta, g_mean, g_measure
from toprank.metrics.groups import (
    EntityCases,
    PeriodValues,
    distinct_entity_precision_at_k,
    per_entity,
    per_period,
    values_per_period,
)
from toprank.metrics.hit_rates import HitRates
from toprank.metrics.intervals import Interval, bootstrap_interval, proportion_interval
from toprank.metrics.operating_points import OperatingPoints
from toprank.metrics.ranking import average_precision, pos_at_top, roc_auc
from toprank.metrics.roc import RocBand, RocCurve, roc_band, roc_curve

if TYPE_CHECKING:
    from toprank.metrics.scorers import average_precision_scorer, make_at_k_scorer

__all__ = [
    "BeforeAfter",
    "Comparison",
    "EntityCases",
    "HitRates",
    "Interval",
    "OperatingPoints",
    "PeriodValues",
    "RocBand",
    "RocCurve",
    "auc_interval",
    "average_precision",
    "average_precision_scorer",
    "balanced_accuracy",
    "bootstrap_interval",
    "corrected_resampled_t_test",
    "delong_test",
    "distinct_entity_precision_at_k",
    "f_beta",
    "g_mean",
    "g_measure",
    "gain_at_k",
    "gain_at_k_curve",
    "gains_table",
    "lift_at_k",
    "make_at_k_scorer",
    "paired_bootstrap_test",
    "per_entity",
    "per_period",
    "pos_at_top",
    "precision_at_k",
    "precision_at_k_curve",
    "proportion_interval",
    "recall_at_k",
    "recall_at_k_curve",
    "roc_auc",
    "roc_band",
    "roc_curve",
    "values_per_period",
    "wilcoxon_test",
]

_FROM_SCORERS = ("average_precision_scorer", "make_at_k_scorer")


def __getattr__(name: str) -> Any:
    """Load the scorers, and scikit-learn with them, on first use."""
    if name in _FROM_SCORERS:
        return getattr(import_module("toprank.metrics.scorers"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FROM_SCORERS})
