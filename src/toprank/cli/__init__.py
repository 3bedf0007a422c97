"""The command line: reads files, calls the library, prints. The only place that prints.

Commands import heavy packages when they run, so that `toprank describe` and `--help` start fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

NEEDED = ("typer", "rich", "polars")
INTERRUPTED = 130
PIPE_CLOSED = 141
"""As if the signal SIGPIPE had ended the command, as it ends `cat` in `cat FILE | head`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0 = done, 2 = bad input, 130 = interrupted, 141 = the reader closed the pipe, 1 = anything else.
    """
    # OpenMP threads that spin while they wait make XGBoost 50 times slower on a processor that has other work. The
    # variable is read when XGBoost, LightGBM or scikit-learn is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from toprank.cli.app import run
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in NEEDED:
            raise
        print(
            f"The command line needs the package {error.name!r}, which is not installed. "
            'Hint: pip install "toprank[cli]".',
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:  # `run` catches it once it is imported
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    return run(argv)
