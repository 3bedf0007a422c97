"""`docs/reading-a-model.md` shows what `describe` prints, on one screen; TOPRANK_WRITE_GOLDEN=1 writes it there."""

import os
import re
from pathlib import Path

import pytest

from cli_files import run

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reading-a-model.md"
CLAIMS = Path(os.environ.get("TOPRANK_DATA", ROOT.parent / "shared" / "data")) / "vehicle_claim_fraud.csv.gz"
SCREEN = (100, 50)

pytestmark = pytest.mark.slow


def printed(*commands: str) -> str:
    """Commands and what the last of them prints, without what changes from run to run."""
    for command in commands:
        done = run(*command.split()[1:])
        assert done.code == 0, done.err
    text = re.sub(r"(  written +).*", r"\1today", done.out)
    return "".join(f"$ {command}\n" for command in commands) + f"\n{text}"


def check(name: str, text: str) -> None:
    """Compare with the page, or print the text there."""
    lines = [line for line in text.splitlines() if not line.startswith("$ ")]  # what the last command prints
    assert max(map(len, lines)) <= SCREEN[0]
    assert len(lines) <= SCREEN[1]
    page, mark = PAGE.read_text(encoding="utf-8"), f"<!-- describe: {name} -->\n```\n"
    before, _, rest = page.partition(mark)
    shown, _, after = rest.partition("```\n")
    if os.environ.get("TOPRANK_WRITE_GOLDEN"):
        PAGE.write_text(f"{before}{mark}{text}```\n{after}", encoding="utf-8")
        shown = text
    assert shown == text


def test_the_demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    how = "--label fraud --drop year,amount --budget 2% --model metaap"
    fit = f"toprank fit toprank-demo/history.csv {how} -o tree.toprank"
    check("demo", printed("toprank demo", fit, "toprank describe tree.toprank"))


@pytest.mark.skipif(not CLAIMS.exists(), reason=f"the claims are not at {CLAIMS}")
def test_the_claims(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims.csv.gz").symlink_to(CLAIMS)
    fit = "toprank fit claims.csv.gz --label label --model metaap -o claims.toprank"
    check("claims", printed(fit, "toprank describe claims.toprank"))


@pytest.mark.skipif(not CLAIMS.exists(), reason=f"the claims are not at {CLAIMS}")
@pytest.mark.parametrize("settings", ["", "criterion=ap leaf_score=linear ccp_alpha=0.0"])
def test_what_fit_prints_last_fits_a_screen(tmp_path, monkeypatch, settings):
    monkeypatch.chdir(tmp_path)  # a long path would wrap
    options = [part for setting in settings.split() for part in ("--set", setting)]
    done = run("fit", CLAIMS, "--label", "label", "--model", "metaap", "--cv", 0, *options, "-o", "m.toprank")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert len(lines) <= SCREEN[1]
    rules = done.out.partition(" rules, in the order of the ranking\n")[2].partition("\n\n")[0].splitlines()
    assert 2 <= len(rules) <= 20
    assert rules[0].startswith("1. training rate ")
