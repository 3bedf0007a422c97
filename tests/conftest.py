"""Settings of all tests: one thread for linear algebra, hypothesis profiles without deadlines and without luck."""

import gc
import os

from hypothesis import HealthCheck, settings

# Read when numpy and scikit-learn are loaded, which is later. On small tables a second thread of theirs mostly waits,
# and takes the processor from the test beside it. Threads of kernels have a number of their own.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

# Kernels compile first: the first example takes long.
steady = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("default", steady, max_examples=14)
settings.register_profile("quick", steady, max_examples=6)
settings.register_profile("thorough", steady, max_examples=1000, derandomize=False)
settings.load_profile("default")


def pytest_collection_finish():
    """Modules and tests live to the end: no later collection of garbage has to walk over them."""
    gc.freeze()
