"""Whether two tables come from the same population, and where they differ if not.

`two_sample_test` trains a ranker to separate the two on one part of the rows and tests on the rest whether it can. The
tree shows where the difference is. This folder owns reading two tables as one, the test of held-out scores, and the
table of cells; it grows no trees and prints nothing.
"""

from __future__ import annotations

from toprank.drift.result import DriftCell, TwoSampleResult
from toprank.drift.two_sample import two_sample_test

__all__ = ["DriftCell", "TwoSampleResult", "two_sample_test"]
