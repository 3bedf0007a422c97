"""Displays: `.frame()` returns the data of a plot, `.plot(ax=None)` draws it.

A display takes plain arrays, dictionaries and frames; it knows nothing about experiments, and only
`CostOptimalCurveDisplay.from_curve` and `TreeDisplay.from_estimator` read a fitted model. `method_styles` gives every
method one colour, line and marker for all plots of a page. matplotlib is imported when something is drawn, pyplot
never: no window opens, no figure stays open, and the caller's settings do not change.
"""

from __future__ import annotations

from toprank.plots.cost_curve import CostOptimalCurveDisplay
from toprank.plots.critical_difference import CriticalDifferenceDisplay
from toprank.plots.curves import GainsDisplay, LearningCurveDisplay, PrecisionAtKDisplay
from toprank.plots.dependence import DependenceDisplay
from toprank.plots.display import Display, save_figure
from toprank.plots.leaderboard import LeaderboardDisplay, PriceOfReadingDisplay
from toprank.plots.levels import DepthDisplay, ImbalanceDisplay
from toprank.plots.panels import plot_panels
from toprank.plots.points import CardDisplay, RedFlagsDisplay
from toprank.plots.roc import RocDisplay, RocLevelsDisplay
from toprank.plots.style import MethodStyle, method_styles
from toprank.plots.tree import TreeDisplay

__all__ = [
    "CardDisplay",
    "CostOptimalCurveDisplay",
    "CriticalDifferenceDisplay",
    "DependenceDisplay",
    "DepthDisplay",
    "Display",
    "GainsDisplay",
    "ImbalanceDisplay",
    "LeaderboardDisplay",
    "LearningCurveDisplay",
    "MethodStyle",
    "PrecisionAtKDisplay",
    "PriceOfReadingDisplay",
    "RedFlagsDisplay",
    "RocDisplay",
    "RocLevelsDisplay",
    "TreeDisplay",
    "method_styles",
    "plot_panels",
    "save_figure",
]
