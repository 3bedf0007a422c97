"""What only reproduces the papers: exact optima. Nothing else imports it."""

from toprank.papers.exact_costs import ExactCurve, LinearOptimum, Stump, exact_linear, exact_linear_curve, exact_stumps

__all__ = ["ExactCurve", "LinearOptimum", "Stump", "exact_linear", "exact_linear_curve", "exact_stumps"]
