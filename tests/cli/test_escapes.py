"""An attacker's table: its names, categories, outcomes and ids reach no terminal, file name or picture raw."""

import json
import re
import warnings
import xml.etree.ElementTree
import zipfile
from pathlib import Path

import pytest

from cli_files import HEADER, case_lines, run, save_classifier, write_cases
from toprank.cli.terminal import Terminal, make_console
from toprank.words.visible import UNSAFE, visible

RED, BELL, BACK, TURN, WIDTH_0, CSI = "\x1b[31m", "\x07", "\x08", "\u202e", "\u200b", "\x9b"
EVIL = f"{RED}x{BELL}{BACK}{TURN}{WIDTH_0}{CSI}\x7f"
TREE = ("--model", "metaap", "--set", "leaf_score=margin", "--set", "ccp_alpha=0.0", "--set", "max_depth=2")
NAMES = {name: f"{name}{EVIL}" for name in ("case_id", "sector", "amount", "age", "staff", "fraud")}


def attackers_lines() -> list[str]:
    lines = [re.sub("construction|retail|transport", lambda word: f'"{word[0]}\t{EVIL}\nsecond"', line)
             for line in case_lines()]  # fmt: skip
    lines = [re.sub("^(C....)", lambda name: f'"{name[1]}{EVIL}\r\n"', line) for line in lines]
    return [re.sub("([01])$", lambda outcome: f"{EVIL}{outcome[1]}", line) for line in lines]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacker")
    write_cases(folder / "h.csv", ",".join(NAMES[name] for name in HEADER.split(",")), attackers_lines())
    return folder


@pytest.fixture(scope="module")
def model(folder):
    path = folder / "m.toprank"
    done = run("fit", folder / "h.csv", *labelled(), "--id", NAMES["case_id"], "--cv", 2, *TREE, "-o", path)
    assert done.code == 0, done.err
    check_clean(done)
    return path


def labelled() -> tuple[str, ...]:
    return ("--label", NAMES["fraud"], "--positive", f"{EVIL}1")


def check_clean(done) -> str:
    for text in (done.out, done.err):
        assert not UNSAFE.search(text), ascii(text)
        assert not re.search(r"[\x00-\x09\x0b-\x1f]", text), ascii(text)
    return done.out + done.err


def check_all(*args: object, code: int = 0) -> str:
    """Run a command for people and for programs, one that fails with --debug too; return what it says to people."""
    done = run(*args)
    assert done.code == code, done.err
    said = check_clean(done)
    as_json = run(*args, "--json")
    check_clean(as_json)
    if as_json.out:
        json.loads(as_json.out)
    if code:
        check_clean(run(*args, "--debug"))
    return said


def test_describe(folder, model):
    assert r"sector\x1b[31mx" in check_all("describe", folder / "h.csv")
    check_all("describe", folder / "h.csv", *labelled())
    assert r"\x1b[31mx" in check_all("describe", model)
    check_all("describe", model, "--exact")


def test_topk(folder, model):
    said = check_all("topk", model, folder / "h.csv", "--k", 5, "--id", NAMES["case_id"], "--keep", NAMES["sector"])
    assert r"\x1b[31mx\x07\x08" in said
    alerts = json.loads(run("topk", model, folder / "h.csv", "--k", 1, "--id", NAMES["case_id"], "--json").out)[
        "alerts"
    ]
    assert alerts[0][NAMES["case_id"]].endswith(f"{EVIL}\r\n")  # JSON gives back what was in the cell


def test_evaluate_and_curve(folder, model, tmp_path):
    check_all("evaluate", model, folder / "h.csv", *labelled())
    curve, picture = tmp_path / "c.toprank", tmp_path / "c.svg"
    common = (
        *labelled(),
        "--id",
        NAMES["case_id"],
        "--set",
        "depths=[2]",
        "--set",
        "n_init=1",
        "--set",
        "cv=2",
        "--set",
        "cost_factor=9",
        "--split",
        "axis",
    )
    done = run("curve", folder / "h.csv", *common, "--k", 60, "--plot", picture, "-o", curve)
    assert done.code == 0, done.err
    check_clean(done)
    xml.etree.ElementTree.parse(picture)
    check_all("curve", curve, "--k", 90, "--from-k", 60)
    check_all("describe", curve)


def test_drift(folder, tmp_path):
    lines = [line.replace(",1", ",19") for line in attackers_lines()]
    new = write_cases(tmp_path / f"new{RED}.csv", ",".join(NAMES[name] for name in HEADER.split(",")), lines)
    args = ("drift", folder / "h.csv", new, "--ignore", ",".join([NAMES["case_id"], NAMES["fraud"]]))
    check_all(*args, "-o", tmp_path / "cells.csv", code=1)


@pytest.mark.slow
def test_compare(folder, tmp_path):
    pytest.importorskip("pandas")
    args = ("compare", folder / "h.csv", *labelled(), "--id", NAMES["case_id"], "--methods", "cart", "--folds", 2)
    done = run(*args, "-o", tmp_path / f"out{RED}")
    assert done.code == 0, done.err
    check_clean(done)


def test_errors_quote_names_and_cells_safely(folder, model, tmp_path):
    check_all("describe", tmp_path / f"no{EVIL}.csv", code=2)
    check_all("fit", folder / "h.csv", "--label", f"no{EVIL}", "-o", tmp_path / "m.toprank", code=2)
    check_all("fit", folder / "h.csv", "--label", NAMES["fraud"], "-o", tmp_path / "m.toprank", code=2)
    check_all("fit", folder / "h.csv", "--label", NAMES["sector"], "-o", tmp_path / "m.toprank", code=2)
    check_all("topk", model, write_cases(tmp_path / "other.csv"), code=2)
    check_all("topk", model, folder / "h.csv", "--keep", EVIL, code=2)
    check_all(f"comm{EVIL}", code=2)
    check_all("topk", model, folder / "h.csv", f"--op{EVIL}", code=2)
    (tmp_path / "bad.csv").write_text(f'{EVIL},{EVIL}\n1,"2\n')
    check_all("describe", tmp_path / "bad.csv", code=2)


def test_model_files(model, tmp_path):
    forged = tmp_path / f"forged{RED}.toprank"
    with zipfile.ZipFile(model) as archive, zipfile.ZipFile(forged, "w") as copy:
        for name in archive.namelist():
            content = archive.read(name)
            if name == "model.json":
                info = json.loads(content)
                info["class"] = f"{info['class']}{EVIL}"
                content = json.dumps(info).encode()
            copy.writestr(name, content)
    check_all("describe", forged, code=2)
    check_all("topk", forged, write_cases(tmp_path / "new.csv"), code=2)
    classes = save_classifier(tmp_path)
    check_all("describe", classes)


# --- the parts ----------------------------------------------------------------------------------------------


def test_every_dangerous_character_is_made_visible():
    assert (
        visible("".join(map(chr, range(0x20, 0x7F))) + "äé漢😀\n") == "".join(map(chr, range(0x20, 0x7F))) + "äé漢😀\n"
    )
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x200E, 0x202A, 0x202E, 0x2066, 0x2069, 0xFEFF, 0xE0041, 0xD800):
        shown = visible(f"a{chr(code)}b", one_line=True)
        assert shown.isprintable(), hex(code)
        assert shown[1] == "\\", hex(code)


def test_tables_stay_straight_and_our_own_colours_stay(monkeypatch):
    from rich.text import Text

    from toprank.cli.show import Facts, grid

    monkeypatch.setenv("COLUMNS", "100")
    console = make_console()
    with console.capture() as captured:
        console.print(grid([(f"na{RED}me", "left"), ("b", "right")], [[f"x{BELL}{EVIL}", "1"], ["y", "22"]]))
        console.print(Facts([("key", f"va{CSI}lue")]))
    lines = captured.get().splitlines()
    assert len({len(line.rstrip()) for line in lines[:1] + lines[2:4]}) == 1
    assert lines[0].startswith(r"  na\x1b[31mme")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = make_console()
    with coloured.capture() as captured:
        coloured.print(Text(f"re{RED}d", style="red"))
    assert captured.get() == "\x1b[31mre\\x1b[31md\x1b[0m\n"


def test_progress_and_notes(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    terminal = Terminal()
    terminal.note(f"a note on {EVIL}")
    with terminal.working(f"Reading {EVIL}"):
        terminal.show(f"shown {EVIL}")
    terminal.heading(EVIL)
    terminal.hint(EVIL)
    terminal.write(f"{EVIL}\n{EVIL}")
    terminal.finish({})
    out, err = capsys.readouterr()
    assert not UNSAFE.search(out + err)
    assert out.count(r"\x1b[31mx") == 5


def test_a_false_alarm_of_scikit_learn_is_no_note():
    terminal = Terminal(quiet=True)
    with terminal.working("Fitting"):
        warnings.warn_explicit("use Parallel", UserWarning, "lib/sklearn/utils/parallel.py", 1)
        warnings.warn_explicit("few cases", UserWarning, "lib/toprank/rankers/base.py", 1)
    assert terminal.notes == ["few cases"]


def test_a_picture_holds_no_control_character(tmp_path: Path):
    pytest.importorskip("matplotlib")
    from toprank.plots import PrecisionAtKDisplay, save_figure

    display = PrecisionAtKDisplay.from_scores([1, 0, 1, 0], {f"mine{EVIL}": [0.9, 0.8, 0.7, 0.6]})
    path = save_figure(display, tmp_path / "p.svg")
    assert not UNSAFE.search(path.read_text(encoding="utf-8"))
    xml.etree.ElementTree.parse(path)


def test_the_picture_of_a_tree_holds_no_control_character(model, tmp_path: Path):
    pytest.importorskip("matplotlib")
    import toprank
    from toprank.plots import TreeDisplay, save_figure

    path = save_figure(TreeDisplay.from_estimator(toprank.load(model)), tmp_path / "t.svg")
    content = path.read_text(encoding="utf-8")
    assert r"\x1b[31mx" in content
    assert not UNSAFE.search(content)
    xml.etree.ElementTree.parse(path)
