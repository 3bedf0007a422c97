"""Data with a known optimum, and data sets from files.

`make_audit` simulates an audit campaign together with the true probability of every case; the functions
around it say how well the best ranking would do. `load` reads a data set by name or path.
"""

from .audit import AuditData, make_audit
from .files import Dataset, list_datasets, load
from .optimum import expected_average_precision, optimal_average_precision, optimal_roc

__all__ = [
    "AuditData",
    "Dataset",
    "expected_average_precision",
    "list_datasets",
    "load",
    "make_audit",
    "optimal_average_precision",
    "optimal_roc",
]
