"""The look: styles that differ, names that fit, labels that keep apart."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from toprank.plots.lines import spread
from toprank.plots.style import MethodStyle, complete_styles, method_styles, short_names, text_width, wrap


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.1."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_fifty_methods_look_different():
    styles = method_styles(map(str, range(50)))
    assert len({(style.colour, style.line, style.marker) for style in styles.values()}) == 50


def test_colours_show_on_white():
    for style in method_styles(map(str, range(7))).values():
        assert 1.05 / (luminance(style.colour) + 0.05) > 2, style.colour


def test_styles_follow_the_order_and_not_the_name():
    assert list(method_styles(["b", "a", "b"])) == ["b", "a"]
    assert method_styles(["b", "a"])["b"] == method_styles(["x"])["x"]


def test_further_methods_take_free_styles():
    given_styles = method_styles(["a", "b", "c"])
    styles = complete_styles(["c", "new", "newer"], given_styles)
    assert styles["c"] == given_styles["c"]
    assert len({styles["new"], styles["newer"], *given_styles.values()}) == 5
    own = MethodStyle("#123456", "-", "o")
    assert complete_styles(["a"], {"a": own}) == {"a": own}


def test_long_names_lose_their_middle_only_while_they_differ():
    long = "Gradient boosting behind a sampler of rows and columns"
    assert short_names(["a\nb", long]) == {
        "a\nb": "a b",
        long: "Gradient boosting b…er of rows and columns"[:20] + "of rows and columns",
    }
    twins = [f"Gradient boosting with {word} and all the other options" for word in ("ten", "two")]
    assert list(short_names(twins).values()) == twins


@given(st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=12), st.floats(0.01, 0.08))
def test_spread_keeps_order_distance_and_bounds(wanted, gap):
    placed = spread(wanted, gap, 0.0, 1.0)
    order = np.argsort(wanted, kind="stable")
    assert (np.diff(placed[order]) >= gap - 1e-9).all()
    assert placed.min() >= -1e-9
    assert placed.max() <= 1 + 1e-9


@given(st.lists(st.integers(0, 6), min_size=1, max_size=4))
def test_spread_is_the_nearest_of_all_places(steps):
    """Against a search through all places on a fine grid."""
    wanted, gap = np.sort(np.array(steps)) / 6, 1 / 6
    grid = np.arange(13) / 12
    fits = [
        c
        for c in itertools.product(grid, repeat=len(wanted))
        if all(b - a >= gap - 1e-9 for a, b in itertools.pairwise(c))
    ]
    best = min(float(np.square(np.array(c) - wanted).sum()) for c in fits)
    assert np.square(spread(wanted, gap, 0.0, 1.0) - wanted).sum() <= best + 1e-9


def test_text_is_wrapped_to_the_width_in_lines_about_as_long():
    figure = Figure()
    text = "one two three four five six seven eight nine ten eleven twelve"
    lines = wrap(figure, text, 2.5, 12.0).splitlines()
    assert " ".join(lines) == text
    assert len(lines) > 1
    assert text_width(figure, lines, 12.0) <= 2.5
    assert len(lines[-1]) > 0.6 * len(lines[0])
    assert wrap(figure, text, 50.0, 12.0) == text
    assert figure.texts == []  # what was measured is gone


@pytest.mark.parametrize("text", ["a" * 100, ""])
def test_text_that_cannot_be_wrapped_ends(text):
    assert wrap(Figure(), text, 0.5, 12.0).replace("\n", "") == text
