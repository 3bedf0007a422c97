"""Data with a known optimum, and data sets from files.

`make_audit` simulates an audit campaign together with the true probability of every case. `make_gaussians`,
`make_quadratic_gaussians`, `make_checkerboard`, `make_boxes` and `make_quadrants` draw from a population whose optimal
ROC curve is known exactly. The `optimal_` functions measure the best possible ranking. `load` reads a data set by
name or path.
"""

from .audit import AuditData, make_audit
from .cells import BoxPopulation, CheckerboardPopulation, make_boxes, make_checkerboard
from .files import Dataset, list_datasets, load
from .gaussians import (
    GaussianPopulation,
    QuadraticGaussianPopulation,
    make_gaussians,
    make_quadratic_gaussians,
)
from .optimum import (
    approximate_roc,
    expected_average_precision,
    optimal_auc,
    optimal_average_precision,
    optimal_roc,
)
from .populations import Population, SimulatedData
from .quadrants import QuadrantPopulation, make_quadrants

__all__ = [
    "AuditData",
    "BoxPopulation",
    "CheckerboardPopulation",
    "Dataset",
    "GaussianPopulation",
    "Population",
    "QuadrantPopulation",
    "QuadraticGaussianPopulation",
    "SimulatedData",
    "approximate_roc",
    "expected_average_precision",
    "list_datasets",
    "load",
    "make_audit",
    "make_boxes",
    "make_checkerboard",
    "make_gaussians",
    "make_quadrants",
    "make_quadratic_gaussians",
    "optimal_auc",
    "optimal_average_precision",
    "optimal_roc",
]
