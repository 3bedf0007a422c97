"""Examples in README and docs run as they are written, links lead somewhere, and every public name has its place."""

import re
import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

import pytest
import yaml

from toprank.datasets import make_audit
from toprank.experiment.plan import Plan

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", "docs/getting-started.md"]


def blocks(page: str, language: str = "python") -> list[str]:
    """Code blocks of a page, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train, test = make_audit(1600, random_state=0).split()
    names = {"X": train.X, "y": train.y, "X_new": test.X, "X_test": test.X, "y_test": test.y}
    assert blocks(page)
    for block in blocks(page):
        exec(compile(block, page, "exec"), names)
    assert len(names["alerts"]) == 500
    assert len(set(names["model"].decision_function(test.X))) > 10


@pytest.mark.slow
def test_examples_of_choosing_errors_run():
    train, test = make_audit(2400, random_state=0).split()
    names = {"X": train.X, "y": train.y, "X_new": test.X, "X_test": test.X, "y_test": test.y}
    page = "docs/choosing-errors.md"
    for block in blocks(page):
        exec(compile(block, page, "exec"), names)
    assert len(names["curve"].diff(names["few"], names["many"]))
    assert len(names["points"]) == 5


@pytest.mark.slow
def test_examples_of_stacking_run():
    train, test = make_audit(2400, random_state=0).split()
    names: dict[str, Any] = {"X": train.X, "y": train.y, "X_new": test.X}
    for block in blocks("docs/stacking.md"):
        exec(compile(block, "docs/stacking.md", "exec"), names)
    assert len(names["stack"].weights_) >= 4
    assert names["student"].n_leaves_ > 1


@pytest.mark.slow
def test_examples_of_mlfp_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train, test = make_audit(800, random_state=0).split()
    names: dict[str, Any] = {"X": train.X, "y": train.y, "X_new": test.X}
    for block in blocks("docs/mlfp.md"):
        exec(compile(block, "docs/mlfp.md", "exec"), names)
    assert len(names["alerts"]) == 100
    assert len(names["tuned"].tried) == 20


def test_the_example_of_rules_as_data_runs(capsys):
    train, _ = make_audit(2400, random_state=0).split()
    names: dict[str, Any] = {"X": train.X, "y": train.y}
    page = "docs/reading-a-model.md"
    (block,) = blocks(page)
    exec(compile(block, page, "exec"), names)
    assert names["plain"]["rule"] in capsys.readouterr().out
    conditions = [condition for way in names["plain"]["ways"] for condition in way]
    text = (ROOT / page).read_text()
    assert conditions
    assert all(f"`{key}`" in text for condition in conditions for key in condition)


def test_the_example_of_the_scorecard_prints_what_the_page_shows(capsys):
    page = "docs/metaap.md"
    (block,) = blocks(page)
    exec(compile(block, page, "exec"), {})
    shown = (ROOT / page).read_text().partition("Its scorecard begins with\n\n```\n")[2].partition("```")[0]
    assert shown.startswith("Inside a leaf")
    assert shown in capsys.readouterr().out


def test_the_example_of_a_constraint_runs():
    train, test = make_audit(6000, random_state=0).split()
    names: dict[str, Any] = {"X": train.X, "y": train.y}
    (block,) = blocks("docs/categories.md")
    exec(compile(block, "docs/categories.md", "exec"), names)
    more = test.X.assign(turnover=test.X["turnover"] * 2)
    known = test.X["turnover"].notna()
    assert (names["model"].decision_function(more) >= names["model"].decision_function(test.X))[known].all()


def test_the_example_of_columns_prints_what_the_page_shows(capsys):
    page = "docs/columns.md"
    (block,) = blocks(page)
    with pytest.warns(UserWarning, match="'case_id' .identifier."):
        exec(compile(block, page, "exec"), {})
    shown = (ROOT / page).read_text().partition("prints\n\n```\n")[2].partition("```")[0]
    printed = capsys.readouterr().out
    assert [line.strip() for line in shown.splitlines()] == [line.strip() for line in printed.splitlines()][:6]
    assert re.search(r"opened <= 2022-01-\d\d\?", printed)


def test_examples_of_neighbours_run(capsys):
    train, test = make_audit(2400, random_state=0).split()
    names = {"X": train.X, "y": train.y, "X_new": test.X}
    for block in blocks("docs/neighbours.md"):
        exec(compile(block, "docs/neighbours.md", "exec"), names)
    printed = capsys.readouterr().out
    assert printed.startswith("near known positive, training row ")
    assert "nearest known negatives (rows of the training table, counted from 0):" in printed


@pytest.mark.slow
def test_examples_of_red_flags_run(capsys):
    names: dict[str, Any] = {}
    for block in blocks("docs/red-flags.md"):
        exec(compile(block, "docs/red-flags.md", "exec"), names)
    printed = capsys.readouterr().out
    assert re.match(r"A case starts at -\d+ and gets the points of every red flag that holds", printed)
    assert "dropped rule 1: " in printed


@pytest.mark.slow
def test_examples_of_points_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train, test = make_audit(1500, random_state=0).split()
    names: dict[str, Any] = {"X": train.X, "y": train.y, "X_new": test.X}
    for block in blocks("docs/points.md"):
        exec(compile(block, "docs/points.md", "exec"), names)
    assert capsys.readouterr().out.startswith(f"A case starts at {names['model'].card_.base:.0f} and gets the points")
    assert (tmp_path / "card.png").stat().st_size > 1000
    assert names["tree"].predict(test.X).sum() > 0


@pytest.mark.slow
def test_the_example_of_versions_prints_what_the_page_shows(capsys):
    page = "docs/versions.md"
    (block,) = blocks(page)
    exec(compile(block, page, "exec"), {})
    shown = (ROOT / page).read_text().partition("prints\n\n```\n")[2].partition("```")[0]
    assert shown.startswith("on 3,000 cases")
    assert capsys.readouterr().out == shown


def test_examples_of_data_sets_run():
    names: dict[str, Any] = {}
    for block in blocks("docs/datasets.md"):
        exec(compile(block, "docs/datasets.md", "exec"), names)
    train, test = names["train"], names["test"]
    assert len(train.X) + len(test.X) == len(names["data"].X) == 6000
    assert names["optimal_average_precision"](test.probability) > test.y.mean()


@pytest.mark.parametrize("page", [f"docs/{p.name}" for p in ROOT.glob("docs/*.md") if "```yaml" in p.read_text()])
def test_plans_of_pages_are_plans(page, tmp_path):
    for name in ("sick.csv", "wine.csv", "claims.parquet", "visits.parquet"):
        (tmp_path / name).touch()
    (tmp_path / "index.csv").write_text("name,group\nwine,metaap\n")
    for block in blocks(page, "yaml"):
        content = yaml.safe_load(block)
        if {"name", "data", "methods"} <= content.keys():
            for quick in (False, True):
                assert Plan.from_dict(content, folder=tmp_path, quick=quick).name == content["name"]


@pytest.mark.parametrize(
    "page", [p.relative_to(ROOT).as_posix() for p in [ROOT / "README.md", *ROOT.glob("docs/*.md")]]
)
def test_links_between_pages_lead_somewhere(page):
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", (ROOT / page).read_text()):
        assert (folder / target).exists(), f"{page} links to {target}, which does not exist"


# --- the reference --------------------------------------------------------------------------------------------------

IMPORTED = re.compile(r"from (toprank[\w.]*) import ([\w, ]+)")


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))])
def test_what_pages_import_is_public(page):
    for home, names in IMPORTED.findall((ROOT / page).read_text(encoding="utf-8")):
        public = import_module(home)
        assert home.count(".") <= 1, f"{page} imports from {home}. Hint: offer the names one level higher"
        assert {name.strip() for name in names.split(",")} <= set(public.__all__), f"{page}: from {home} import {names}"


def test_modules_and_functions_are_listed():
    import toprank

    for name in ("datasets", "drift", "experiment", "explain", "metrics", "plots", "fit_at_costs"):
        assert name in dir(toprank)
        assert getattr(toprank, name).__name__.rpartition(".")[2] == name


PUBLIC = ["toprank", "toprank.datasets", "toprank.distributed", "toprank.drift", "toprank.experiment",
          "toprank.metrics", "toprank.plots", "toprank.workflow"]  # fmt: skip
HELD_OR_RETURNED = ["toprank.tree.structure.Tree", "toprank.tree.columns.Column", "toprank.tree.bin_mapper.BinMapper",
                    "toprank.budget.Cutoff", "toprank.explain.Explanation", "toprank.explain.VoteExplanation",
                    "toprank.explain.Dependence", "toprank.rankers.curve.selection.Selection"]  # fmt: skip
"""What rankers keep and return, though nobody has to import it."""


def described() -> list[object]:
    """Objects that the pages describe: by name, or with all that their module makes public."""
    found: list[object] = []
    for page in ROOT.glob("docs/*.md"):
        for name in re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            target = resolve_name(name)
            found += _contents(target) if isinstance(target, ModuleType) else [target]
    return found


def _contents(module: ModuleType) -> list[object]:
    """What a page on a module shows: the names it makes public, or else what it defines."""
    if hasattr(module, "__all__"):
        return [getattr(module, name) for name in module.__all__]
    return [value for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__]  # fmt: skip


@pytest.mark.parametrize("module", PUBLIC)
def test_the_reference_describes_every_public_name(module):
    pages = described()
    home = import_module(module)
    for name in home.__all__:
        target = getattr(home, name)
        if isinstance(target, str | ModuleType):
            continue
        assert any(target is each for each in pages), f"no page of docs has '::: {module}.{name}'"
        assert target.__doc__, f"{module}.{name} has no docstring, and the reference leaves it out"


@pytest.mark.parametrize("name", HELD_OR_RETURNED)
def test_the_reference_describes_what_rankers_hold_and_return(name):
    assert any(resolve_name(name) is each for each in described()), f"no page of docs has '::: {name}'"


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in ROOT.glob("docs/*.md"):
        assert f": {page.name}\n" in menu, f"{page.name} is in no menu of mkdocs.yml"


def test_the_source_distribution_holds_what_pages_link_to_and_tests_read():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {"src", "tests", "docs", "benchmarks"} <= set(included)
    for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert target.split("/")[0] in included, f"README.md links to {target}, which is not in the source distribution"
