"""All registered methods, this library's first. Importing this package registers them all.

Every module defines its methods and what to tune in them. Optional packages are imported only when an estimator is
made.
"""

from __future__ import annotations

from toprank.experiment.methods import balanced, boosting, linear, neighbours, own, trees
from toprank.experiment.registry import register

for module in (own, trees, linear, boosting, balanced, neighbours):  # the order of lists and tables
    for method in module.METHODS:
        register(method)
