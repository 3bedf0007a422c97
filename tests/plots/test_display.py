"""Files of figures: whole, of the right format, the same bytes each time."""

import os
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from plot_cases import critical_difference, gains, leaderboard, precision_at_k
from toprank.explain import partial_dependence
from toprank.plots import DependenceDisplay, plot_panels, save_figure
from toprank.tree.columns import Column

TESTS = os.path.dirname(os.path.dirname(__file__))
STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize(
    ("make", "ending"),
    [(precision_at_k, ".svg"), (critical_difference, ".pdf"), (leaderboard, ".png")],
    ids=["curves.svg", "diagram.pdf", "dots.png"],
)
def test_the_same_plot_gives_the_same_bytes(make, ending, tmp_path):
    contents = [save_figure(make(3, True, True), tmp_path / f"{i}{ending}").read_bytes() for i in (1, 2)]
    assert contents[0].startswith(STARTS[ending])
    assert contents[0] == contents[1]
    for word in (b"Date", b"matplotlib.org", b"Matplotlib v"):
        assert word not in contents[0]


def test_a_map_with_contour_lines_is_saved(tmp_path):
    """The lines have a get_text of their own, which is not that of a text."""
    rows = np.random.default_rng(0).normal(size=(200, 2))
    columns = [Column("a"), Column("b")]
    found = partial_dependence(lambda X: X[:, 0] + X[:, 1] ** 2, rows, columns, ["a", "b"])
    assert save_figure(DependenceDisplay(found), tmp_path / "map.svg").stat().st_size > 1000


@pytest.mark.slow
def test_another_process_on_another_day_gives_the_same_bytes(tmp_path):
    """String hashes differ between processes; the date is moved by SOURCE_DATE_EPOCH; there is no display."""
    code = (
        f"import sys; sys.path.insert(0, {TESTS!r}); "
        "from plot_cases import gains; from toprank.plots import save_figure; "
        f"[save_figure(gains(6), sys.argv[1] + ending) for ending in {list(STARTS)}]; "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environment |= {"PYTHONHASHSEED": "1", "SOURCE_DATE_EPOCH": "111111111"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "there")], check=True, env=environment)
    for ending in STARTS:
        here = save_figure(gains(6), tmp_path / f"here{ending}")
        assert here.read_bytes() == (tmp_path / f"there{ending}").read_bytes(), ending


def test_a_display_is_drawn_once_and_only_if_needed(tmp_path):
    display = precision_at_k(2)
    save_figure(display, tmp_path / "a.png")
    figure = display.figure_
    assert save_figure(display, str(tmp_path / "B.PNG")) == tmp_path / "B.PNG"
    assert display.figure_ is figure
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "B.PNG").read_bytes()


def test_figures_are_written_too(tmp_path):
    assert save_figure(plot_panels([precision_at_k(2)]), tmp_path / "panels.svg").stat().st_size > 1000
    assert save_figure(Figure(), tmp_path / "empty.pdf").exists()


def test_a_subfigure_of_the_caller_is_saved_with_its_figure(tmp_path):
    figure = Figure(layout="constrained")
    left, _ = figure.subfigures(1, 2)
    display = precision_at_k(2).plot(left.add_subplot())
    assert display.figure_ is figure
    assert save_figure(display, tmp_path / "a.png").exists()


def test_a_notebook_shows_what_was_drawn():
    display = precision_at_k(2)
    assert display._repr_png_() is None
    assert display.plot()._repr_png_().startswith(STARTS[".png"])


@pytest.mark.parametrize(
    ("what", "name", "sentence"),
    [
        (precision_at_k(2), "a.jpg", "save_figure writes .png, .svg, .pdf, but the name 'a.jpg' ends in none of them"),
        (precision_at_k(2), "png", "the name 'png' ends in none"),
        ("text", "a.png", "takes a display or a matplotlib Figure. Got str instead"),
        (precision_at_k(2), "no/such/folder.png", "does not exist"),
    ],
)
def test_what_cannot_be_written_is_refused_and_leaves_nothing(what, name, sentence, tmp_path):
    with pytest.raises((ValueError, TypeError, OSError), match=sentence):
        save_figure(what, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_matplotlib_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"save_figure .*'matplotlib'"):
        save_figure(precision_at_k(2), tmp_path / "a.png")
