"""All registered methods, this library's first. Importing this package registers them all.

Every module defines its methods and what to tune in them. Optional packages are imported only when an estimator is
made.
"""

from __future__ import annotations

# The order of imports is the order of registration, which is the order of lists and tables.
# isort: off
from toprank.experiment.methods import own as own
from toprank.experiment.methods import trees as trees
from toprank.experiment.methods import linear as linear
from toprank.experiment.methods import boosting as boosting
from toprank.experiment.methods import balanced as balanced
from toprank.experiment.methods import neighbours as neighbours
