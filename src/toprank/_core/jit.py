"""The one decorator of all kernels.

Kernels are serial, cached on disk and release the GIL. Parallel work is a thin shell around them
(`toprank._core.threads`): plain threads, each running a serial kernel on its own part of the rows. So nothing here
depends on Numba's threading layers, and the compiled code is the same for any number of threads.

Set the environment variable ``NUMBA_DISABLE_JIT=1`` to run every kernel as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a free function on first use, cache the result on disk, release the GIL while it runs."""
    return numba.njit(cache=True, nogil=True)(function)
