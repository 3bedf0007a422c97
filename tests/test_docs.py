"""The Python examples in README and docs run as they are written."""

import re
from pathlib import Path

import pytest

from toprank.datasets import make_audit

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", "docs/getting-started.md"]


def blocks(page: str) -> list[str]:
    """Python code blocks of a page, in order."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train, test = make_audit(6000, random_state=0).split()
    names = {"X": train.X, "y": train.y, "X_new": test.X, "X_test": test.X, "y_test": test.y}
    assert blocks(page)
    for block in blocks(page):
        exec(compile(block, page, "exec"), names)
    assert len(names["alerts"]) == 500
    assert (names["model"].decision_function(test.X)[:10] > 0).all()


def test_examples_of_choosing_errors_run():
    train, test = make_audit(2400, random_state=0).split()
    names = {"X": train.X, "y": train.y, "X_new": test.X, "X_test": test.X, "y_test": test.y}
    page = "docs/choosing-errors.md"
    for block in blocks(page):
        exec(compile(block, page, "exec"), names)
    assert len(names["curve"].diff(names["few"], names["many"]))
    assert len(names["points"]) == 5


@pytest.mark.parametrize(
    "page", [p.relative_to(ROOT).as_posix() for p in [ROOT / "README.md", *ROOT.glob("docs/*.md")]]
)
def test_links_between_pages_lead_somewhere(page):
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", (ROOT / page).read_text()):
        assert (folder / target).exists(), f"{page} links to {target}, which does not exist"
