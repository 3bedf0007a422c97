"""`python -m toprank` is the command `toprank`."""

import sys

from toprank.cli import main

sys.exit(main())
