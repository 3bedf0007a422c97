"""Rules about the shape of the source: import directions, optional packages, printing, sizes."""

import ast
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "src" / "toprank"

# From the top to the ground. A unit may import units of lower lines only: not of its own line, not above.
LAYERS = (
    ("cli", "__main__"),
    ("report",),
    ("workflow",),
    ("experiment", "distributed", "drift"),
    ("papers",),
    ("plots", "datasets"),
    ("rankers",),
    ("files",),
    ("export",),
    ("budget", "explain"),
    ("data",),
    ("metrics",),
    ("words",),
    ("tree",),
    ("_core",),
    ("errors", "register", "_compat"),
)
HEIGHT = {unit: len(LAYERS) - line for line, units in enumerate(LAYERS) for unit in units}
TOP = len(LAYERS)
SHARED_NAMES = {"__version__"}  # names any module may take from `toprank` itself

# fmt: off
OPTIONAL_PACKAGES = [
    "typer", "rich", "polars", "pandas", "pyarrow", "xgboost", "lightgbm", "matplotlib", "jinja2", "sqlglot",
    "onnx", "dask", "distributed", "imblearn", "optuna", "xlsxwriter",
]
# fmt: on

MAX_FILE_LINES = 700
MAX_FUNCTION_LINES = 80


def source_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


LOOKED_AT = (ast.Import, ast.ImportFrom, ast.Call, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def nodes(source: str) -> list[ast.AST]:
    """The imports, calls and functions of a file, which several rules look at."""
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, LOOKED_AT)]


def shown(path: Path) -> str:
    return f"src/toprank/{path.relative_to(PACKAGE).as_posix()}"


# --- scikit-learn -------------------------------------------------------------------------------------------


def private_imports_of_sklearn(source: str) -> list[str]:
    """Names of scikit-learn that a module imports although they, or the module they are in, begin with _."""
    return [
        name
        for _, name in imported_modules(source, "toprank")
        if name.startswith("sklearn.") and any(part.startswith("_") for part in name.split("."))
    ]


def test_one_module_alone_imports_private_names_of_scikit_learn():
    found = {shown(path) for path in source_files() if private_imports_of_sklearn(path.read_text("utf-8"))}
    assert found == {"src/toprank/_compat.py"}


# --- imports ------------------------------------------------------------------------------------------------


def imported_modules(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of every import, also in functions; `from a import b` gives `a.b`.

    `package` is the dotted name of the package the file is in, against which relative imports are resolved.
    """
    for node in nodes(source):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                parents = parents[: len(parents) - (node.level - 1)]
                base = ".".join([*parents, base] if base else parents)
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = node.args[0]
            if name in ("import_module", "__import__") and isinstance(first, ast.Constant):
                yield node.lineno, str(first.value)


def forbidden_imports(source: str, relative: str) -> list[str]:
    """Return one message for each import in `source` against the layers.

    `relative` is the path of the file below src/toprank, with forward slashes.
    """
    parts = relative.removesuffix(".py").split("/")
    unit = parts[0]
    if unit == "__init__":
        return []
    where = f"src/toprank/{relative}"
    if unit not in HEIGHT:
        return [f"{where}:1: '{unit}' is in no layer. Hint: add it to LAYERS in tests/test_architecture.py"]

    package = ".".join(["toprank", *parts[:-1]])
    messages = []
    for line, name in imported_modules(source, package):
        root, _, rest = name.partition(".")
        if root != "toprank" or HEIGHT[unit] == TOP:
            continue
        target = rest.partition(".")[0]
        if target == unit or target in SHARED_NAMES:
            continue
        if target not in HEIGHT:
            reason = "the package itself is above every layer. Hint: import from the module that defines it"
        elif HEIGHT[target] > HEIGHT[unit]:
            reason = f"'{target}' is above '{unit}'"
        elif HEIGHT[target] == HEIGHT[unit]:
            reason = f"'{target}' and '{unit}' are siblings"
        else:
            continue
        messages.append(f"{where}:{line}: forbidden import of {name}: {reason}")
    return messages


def test_there_are_source_files():
    assert source_files(), f"no Python files under {PACKAGE}: the rules below would hold for nothing"


def test_imports_go_one_way():
    messages = [
        message
        for path in source_files()
        for message in forbidden_imports(path.read_text(encoding="utf-8"), path.relative_to(PACKAGE).as_posix())
    ]
    assert not messages, "\n" + "\n".join(messages)


@pytest.mark.parametrize(
    ("relative", "source", "expected"),
    [
        ("tree/grower.py", "import numpy\n\nfrom toprank.rankers import MetaAP", ":3: .*'rankers' is above"),
        ("tree/grower.py", "from ..metrics.ap import x", ":1: .*toprank.metrics.ap.x: 'metrics' is above"),
        ("tree/deep/a.py", "from ...cli import main", ":1: .*'cli' is above 'tree'"),
        ("_core/binning.py", "def f():\n    from toprank import tree", ":2: .*'tree' is above '_core'"),
        ("_core/binning.py", "import toprank.tree.grower as g", ":1: .*'tree' is above"),
        ("budget.py", "from .explain import path", ":1: .*'explain' and 'budget' are siblings"),
        ("explain/rules.py", "from ..budget import cutoff", ":1: .*'budget' and 'explain' are siblings"),
        ("datasets.py", "from . import plots", ":1: .*'plots' and 'datasets' are siblings"),
        ("metrics.py", "import toprank", ":1: .*the package itself"),
        ("rankers/base.py", "from toprank import MetaAP", ":1: .*the package itself"),
        ("rankers/base.py", "import importlib\nimportlib.import_module('toprank.cli')", ":2: .*'cli' is"),
        ("utils.py", "", ":1: 'utils' is in no layer"),
    ],
)
def test_the_import_checker_finds(relative, source, expected):
    messages = forbidden_imports(source, relative)
    assert len(messages) == 1
    assert messages[0].startswith(f"src/toprank/{relative}:")
    with pytest.raises(AssertionError, match=expected):
        raise AssertionError(messages[0])


@pytest.mark.parametrize(
    ("relative", "source"),
    [
        ("__init__.py", "from .cli import main\nfrom .rankers import MetaAP"),
        ("cli/demo.py", "import toprank\nfrom ..report import html\nfrom . import tables"),
        ("rankers/meta/meta_ap.py", "from ..tree import Tree\nfrom ..budget import cut\nfrom .base import Base"),
        ("rankers/base.py", "from toprank import __version__\nimport sklearn.tree"),
        ("tree/__init__.py", "from .grower import grow\nfrom .._core.binning import bin_columns"),
        ("datasets.py", "from toprank._core import jit"),
    ],
)
def test_the_import_checker_allows(relative, source):
    assert forbidden_imports(source, relative) == []


# --- optional packages --------------------------------------------------------------------------------------


# scikit-learn loads pandas and rich by itself where they are installed, so sys.modules does not say who
# asked. This finder hides the optional packages, so that every request for one reaches it, and notes the file
# that asked. What runs under it runs without any of them.
HIDE_AND_NOTE = """
import sys

HIDDEN, ASKED = set({names!r}), []

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in HIDDEN:
            return None
        frame = sys._getframe(1)
        while "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        ASKED.append([name, frame.f_code.co_filename])
        raise ModuleNotFoundError(f"No module named {{name!r}} (hidden by the test)", name=name)

sys.meta_path.insert(0, Finder())
"""


def run_python(code: str) -> list:
    """Return the JSON list on the last line that `code` prints in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def loaded_by(statements: str, names: list[str]) -> list[str]:
    """Return those of `names` that are loaded after `statements`."""
    return run_python(f"{statements}\nimport json, sys\nprint(json.dumps([n for n in {names!r} if n in sys.modules]))")


def requests(statements: str, names: list[str]) -> list[tuple[str, str]]:
    """Return (module, file that asked for it) for `names` while `statements` run with them hidden."""
    finder = HIDE_AND_NOTE.format(names=names)
    found = run_python(f"{finder}\n{statements}\nimport json\nprint(json.dumps(ASKED))")
    return [(name, path) for name, path in found]


def test_import_loads_no_optional_package():
    assert loaded_by("import toprank", OPTIONAL_PACKAGES) == []


def test_estimators_need_and_ask_for_no_optional_package():
    import toprank

    names = [name for name in toprank.__all__ if hasattr(getattr(toprank, name), "fit")]
    assert {"MetaAP", "TreeRankBoost", "TAOClassifier", "CostOptimalForest"} <= set(names)
    asked = requests("\n".join(["import toprank", *(f"toprank.{name}" for name in names)]), OPTIONAL_PACKAGES)
    assert [(module, path) for module, path in asked if PACKAGE in Path(path).resolve().parents] == []


def test_the_probes_see_what_is_loaded_and_who_asked():
    assert loaded_by("import decimal", ["decimal", "no_such_module"]) == ["decimal"]
    attempt = "try:\n    import no_such_module.part\nexcept ImportError:\n    pass"
    assert requests(attempt, ["no_such_module"]) == [("no_such_module", "<string>")]


# --- tests --------------------------------------------------------------------------------------------------


def imported_tests(source: str, modules: set[str]) -> list[tuple[int, str]]:
    """Return (line, dotted name) of imports of test modules, whose names without folders are `modules`."""
    return [(line, name) for line, name in imported_modules(source, "tests") if not modules.isdisjoint(name.split("."))]


def test_no_test_imports_another_test_module():
    """What several tests use is in a helper module of tests/: a test module may change without a look at the others."""
    modules = {path.stem for path in TESTS.rglob("test_*.py")}
    messages = [
        f"{path.relative_to(TESTS)}:{line}: imports {name}. Hint: move what it needs to a helper module in tests/"
        for path in sorted(TESTS.rglob("*.py"))
        for source in [path.read_text(encoding="utf-8")]
        if not modules.isdisjoint(re.findall(r"\w+", source))  # most files name none, and need not be parsed
        for line, name in imported_tests(source, modules)
    ]
    assert not messages, "\n" + "\n".join(messages)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("from plots.test_roc import legend_of", "plots.test_roc.legend_of"),
        ("from . import test_roc", "tests.test_roc"),
        ("import test_roc", "test_roc"),
        ("from plot_checks import test_size", None),
    ],
)
def test_the_checker_of_test_imports_can_fail(source, name):
    assert imported_tests(source, {"test_roc"}) == ([] if name is None else [(1, name)])


# --- printing and sizes -------------------------------------------------------------------------------------


def print_calls(source: str) -> list[int]:
    """Return the lines on which `print` is called."""
    return [
        node.lineno
        for node in nodes(source)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def long_functions(source: str, limit: int) -> list[tuple[int, str, int]]:
    """Return (line, name, length) of functions of `limit` lines or more, docstring not counted."""
    found = []
    for node in nodes(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if ast.get_docstring(node, clean=False) is not None:
                first = node.body[0]
                length -= (first.end_lineno or first.lineno) - first.lineno + 1
            if length >= limit:
                found.append((node.lineno, node.name, length))
    return found


def test_only_the_command_line_prints():
    messages = [
        f"{shown(path)}:{line}: print() outside cli"
        for path in source_files()
        if path.relative_to(PACKAGE).parts[0] not in ("cli", "cli.py")
        for line in print_calls(path.read_text(encoding="utf-8"))
    ]
    assert not messages, "\n" + "\n".join(messages)


def plain_refusals(source: str) -> list[int]:
    """Return the lines that raise, or make, a plain ValueError or TypeError."""
    return [
        node.lineno
        for node in nodes(source)
        if isinstance(node, ast.Call)
        and any(isinstance(name, ast.Name) and name.id in ("ValueError", "TypeError") for name in ast.walk(node.func))
    ]


def test_input_is_refused_with_the_errors_of_the_library():
    messages = [
        f"{shown(path)}:{line}: a plain ValueError or TypeError. Hint: raise InputError of toprank.errors"
        for path in source_files()
        for line in plain_refusals(path.read_text(encoding="utf-8"))
    ]
    assert not messages, "\n" + "\n".join(messages)


def test_files_stay_short():
    lengths = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in source_files()}
    messages = [
        f"{path}: {length} lines, the limit is {MAX_FILE_LINES - 1}"
        for path, length in lengths.items()
        if length >= MAX_FILE_LINES
    ]
    assert not messages, "\n" + "\n".join(messages)


def test_functions_stay_short():
    messages = [
        f"{shown(path)}:{line}: {name} has {length} lines, the limit is {MAX_FUNCTION_LINES - 1}"
        for path in source_files()
        for line, name, length in long_functions(path.read_text(encoding="utf-8"), MAX_FUNCTION_LINES)
    ]
    assert not messages, "\n" + "\n".join(messages)


def test_the_checker_of_refusals_can_fail():
    assert plain_refusals("def f(x):\n    raise (ValueError if x else TypeError)(x)") == [2]
    assert plain_refusals("try:\n    f()\nexcept ValueError as e:\n    raise InputError(str(e)) from None") == []


def test_the_print_and_size_checkers_can_fail():
    source = 'def f():\n    """Say.\n\n    More.\n    """\n    print(1)\n    return 2\n'
    assert print_calls(source) == [6]
    assert long_functions(source, 3) == [(1, "f", 3)]
    assert long_functions(source, 4) == []


BENCHMARKS = TESTS.parent / "benchmarks"


@pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks/ is not part of this copy of the source")
def test_benchmarks_import_only_what_is_there():
    lost = []
    for path in sorted(BENCHMARKS.rglob("*.py")):
        for node in nodes(path.read_text()):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "toprank":
                module = importlib.import_module(str(node.module))
                names = [alias.name for alias in node.names if not hasattr(module, alias.name)]
                lost += [f"{path.name}: {node.module}.{name}" for name in names
                         if importlib.util.find_spec(f"{node.module}.{name}") is None]  # fmt: skip
    assert not lost
