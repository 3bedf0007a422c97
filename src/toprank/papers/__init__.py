"""Exact optima, used only to reproduce the papers. Nothing else imports this package."""

from toprank.papers.exact_costs import ExactCurve, LinearOptimum, Stump, exact_linear, exact_linear_curve, exact_stumps

__all__ = ["ExactCurve", "LinearOptimum", "Stump", "exact_linear", "exact_linear_curve", "exact_stumps"]
