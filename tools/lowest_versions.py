"""Print the oldest supported version of every dependency, for `pip install --constraint`: `make test-lowest`.

    python tools/lowest_versions.py [EXTRA] > constraints.txt

takes them from pyproject.toml: `numpy>=2.0,<3` gives `numpy==2.0`. Extras of toprank in an extra are followed.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest_versions(extra: str) -> dict[str, str]:
    """Oldest version of each dependency of toprank and of one of its extras, by name."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    extras, found = project["optional-dependencies"], {}
    waiting = [*project["dependencies"], *extras[extra]]
    while waiting:
        requirement = waiting.pop()
        if own := re.match(r"toprank\[(.*)\]", requirement):
            waiting += [each for name in own[1].split(",") for each in extras[name.strip()]]
        elif bound := re.match(r"([\w.-]+).*?>=\s*([\w.]+)", requirement):
            found[bound[1]] = bound[2]
    return found


if __name__ == "__main__":
    for name, version in sorted(lowest_versions(*(sys.argv[1:] or ["dev"])).items()):
        sys.stdout.write(f"{name}=={version}\n")
