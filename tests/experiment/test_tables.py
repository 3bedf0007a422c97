import html.parser
import io
import os
import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from experiment_results import METHODS, make_published, make_results
from toprank.experiment import summary
from toprank.experiment.tables import (
    ShownColumn,
    ShownTable,
    format_value,
    make_table,
    spread,
    to_html,
    to_latex,
    to_markdown,
    to_text,
    write_table,
)

GOLDEN = Path(__file__).parents[1] / "golden"
FORMATS = {".txt": to_text, ".md": to_markdown, ".tex": to_latex, ".html": to_html}
HOSTILE = '<b>[A] & "B"</b> | 100% $x_1^2$ #{} ~\\ *c* `d`'


def not_finished(n_rows: int) -> pl.DataFrame:
    """Trials that are missing, counted by method, status and reason."""
    rows = [
        ("Gini", "failed", "ValueError: all rows are alike", 1, 1, "yeast, seed 2"),
        ("XGBoost", "timeout", "stopped after 60 s", 1, 1, "wine_4 & <5%, seed 3"),
    ]
    schema = {"method": pl.String, "status": pl.String, "reason": pl.String, "n_trials": pl.Int64,
              "n_data_sets": pl.Int64, "first": pl.String}  # fmt: skip
    return pl.DataFrame(rows[:n_rows], schema=schema, orient="row")


def shown_tables() -> list[ShownTable]:
    """Tables that use every format of a column, with stars, marks, missing figures and characters to escape."""
    results = make_results(unfinished={("yeast", "seed 2", "Gini"): "failed", ("wine", "seed 3", "XGBoost"): "timeout"})
    renamed = pl.col("dataset").replace("wine", "wine_4 & <5%")
    results = results.with_columns(dataset=renamed)
    shift = pl.when(pl.col("dataset") == "sonar").then(0.1).otherwise(0.0)
    published = make_published().with_columns(pl.col("average_precision") + shift, dataset=renamed)
    note = "* more than two standard errors below the published figure."
    return [
        make_table(summary.leaderboard(results), title="All methods, AP"),
        spread(summary.by_data_set(results), title="AP by data set"),
        spread(summary.by_imbalance(results, reference="MetaAP")),
        make_table(summary.against(results, "MetaAP")),
        make_table(summary.beside_published(results, published)),
        spread(summary.beside_published_by_data_set(results, published), ("ours", "published"), note=note),
        make_table(summary.times(results)),
        make_table(not_finished(2)),
    ]


@pytest.mark.parametrize("ending", FORMATS)
def test_golden(ending):
    """TOPRANK_WRITE_GOLDEN=1 writes the file anew, to be read before it is kept."""
    text = "\n".join(FORMATS[ending](table) for table in shown_tables())
    path = GOLDEN / f"experiment_tables{ending}"
    if os.environ.get("TOPRANK_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


# --- cells ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (0.685349, "points", "68.53"),
        (1.0, "points", "100.00"),
        (-1e-9, "points", "0.00"),
        (0.0123, "change", "+1.23"),
        (-0.0123, "change", "-1.23"),
        (-0.00004, "change", "0.00"),
        (0.00004, "change", "0.00"),
        (0.0009999, "p_value", "< 0.001"),
        (0.001, "p_value", "0.001"),
        (0.0499, "p_value", "0.050"),
        (1.0, "p_value", "1.000"),
        (1234567, "count", "1,234,567"),
        (0, "count", "0"),
        (14.0, "number", "14"),
        (14.5, "number", "14.5"),
        (12345.0, "number", "12,345"),
        (12345.67, "number", "12,345.7"),
        (0.00012, "number", "0.00012"),
        (1e300, "number", "1e+300"),
        (2.25, "rank", "2.25"),
        (0.123, "seconds", "0.12"),
        (9.996, "seconds", "10.0"),
        (99.96, "seconds", "100"),
        (4321.0, "seconds", "4,321"),
        (True, "flag", "yes"),
        (False, "flag", "no"),
        ("a\n b", "text", "a b"),
        ("", "text", "-"),
        (None, "points", "-"),
        (None, "text", "-"),
        (float("nan"), "p_value", "-"),
        (float("inf"), "number", "inf"),
    ],
)
def test_format_value(value, kind, expected):
    assert format_value(value, kind) == expected


def test_companions_join_their_column():
    frame = pl.DataFrame({
        "method": ["A", "B"], "mean": [0.5, None], "std": [0.01, 0.02], "is_best": [True, False],
        "size": [14.0, 3.5], "size_unit": ["leaves", None], "ours": [0.4, 0.3], "is_below": [True, False],
        "difference": [-0.1, 0.2], "standard_error": [0.05, None],
    })  # fmt: skip
    assert to_markdown(make_table(frame)).splitlines() == [
        "| method | mean | size | ours | difference |",
        "|---|---:|---:|---:|---:|",
        r"| A | **50.00 ± 1.00** | 14 leaves | 40.00 \* | -10.00 ± 5.00 |",
        "| B | - | 3.5 | 30.00 | +20.00 |",
    ]
    assert to_text(make_table(frame)).splitlines() == [
        "method        mean       size     ours   difference",
        "------  ----------  ---------  -------  -----------",
        "A       50.00±1.00  14 leaves  40.00 *  -10.00±5.00",
        "B                -        3.5  30.00         +20.00",
    ]


def test_other_columns_go_by_name_and_type():
    frame = pl.DataFrame({"dataset": ["a"], "n_rows": [1234], "roc_auc": [0.91234], "p_at_5": [0.5], "is_new": [True],
                          "gain": [0.91234]})  # fmt: skip
    assert to_markdown(make_table(frame)).splitlines()[0] == r"| data set | n rows | roc auc | p at 5 | is new | gain |"
    assert to_markdown(make_table(frame)).splitlines()[2] == "| a | 1,234 | 91.23 | 50.00 | yes | 0.9123 |"


def test_callers_choose_columns():
    frame = pl.DataFrame({"a": [0.25], "b": [0.5], "c": ["x"]})
    table = ShownTable(frame, (ShownColumn("c", "what"), ShownColumn("b", "share", "points", error="a")))
    assert to_markdown(table).splitlines()[2] == "| x | 50.00 ± 25.00 |"


# --- methods side by side ---------------------------------------------------------------------------------------


def test_spread_marks_the_best_and_shows_gaps():
    frame = pl.DataFrame({"value": [2.0, 2.0, 3.0], "method": ["A", "{B}", "A"], "mean": [0.2, 0.3, 0.4]})
    table = spread(frame)
    assert to_markdown(table).splitlines() == [
        "| value | A | {B} |",
        "|---:|---:|---:|",
        "| 2 | 20.00 | **30.00** |",
        "| 3 | **40.00** | - |",
    ]
    assert table.frame["{B} mean"].to_list() == [0.3, None]


def test_spread_keeps_figures_of_the_row():
    frame = pl.DataFrame({"level": [10.0] * 2, "method": ["A", "B"], "mean": [0.1, 0.2], "is_best": [False, True],
                          "rival": ["B", "B"], "difference": [-0.1, -0.1], "p_value": [0.5, 0.5]})  # fmt: skip
    assert to_text(spread(frame)).splitlines()[-1].split() == ["10", "10.00", "20.00", "B", "-10.00", "0.500"]


# --- text -------------------------------------------------------------------------------------------------------


def test_six_methods_stand_side_by_side():
    results = make_results(methods=(*METHODS, "MetaAPForest"))
    results = results.with_columns(dataset=pl.col("dataset").replace("wine", "bankmarketing"))
    lines = to_text(spread(summary.by_data_set(results))).splitlines()
    assert len(lines) == 2 + 6
    assert max(map(len, lines)) <= 100


def test_a_wide_header_is_wrapped_before_the_table_is_cut():
    names = [f"a rather long method {i}" for i in range(6)]
    frame = pl.DataFrame({"dataset": ["wine"] * 6, "method": names, "mean": [0.1 * i for i in range(6)]})
    lines = to_text(spread(frame)).splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[-1].split() == ["wine", "0.00", "10.00", "20.00", "30.00", "40.00", "50.00"]
    assert [line.split()[0] for line in lines[:2]] == ["a", "rather"]


def test_blocks_repeat_the_first_column():
    frame = summary.by_imbalance(make_results(methods=tuple(METHODS)), reference="MetaAP")
    frame = frame.with_columns(method=pl.col("method") + "-with-a-long-name")
    blocks = to_text(spread(frame)).split("\n\n")
    assert len(blocks) == 2
    for block in blocks:
        assert [line.split()[0] for line in block.splitlines()[-5:]] == ["10", "20", "30", "40", "50"]
    two = summary.by_data_set(make_results()).select("dataset", "method", "mean")
    for name in ("first", "second", "third", "fourth"):
        two = two.with_columns(pl.lit("a reason of some thirty letters").alias(name))
    blocks = to_text(make_table(two)).split("\n\n")
    assert len(blocks) > 1
    for block in blocks:
        assert sum(line.split()[:2] == ["abalone", "XGBoost"] for line in block.splitlines()) == 1


words = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=60)


@settings(max_examples=40)
@given(st.lists(words, min_size=1, max_size=12, unique=True), st.lists(words, min_size=1, max_size=3, unique=True))
def test_text_never_exceeds_100_columns_and_loses_no_cell(methods, datasets):
    rows = [(d, m, (i * 7919 + j) % 10000 / 10000) for i, d in enumerate(datasets) for j, m in enumerate(methods)]
    frame = pl.DataFrame(rows, schema=["dataset", "method", "mean"], orient="row").with_columns(std=pl.lit(0.1234))
    for table in (spread(frame), make_table(frame)):
        text = to_text(table)
        assert max(map(len, text.splitlines())) <= 100
        for _, _, mean in rows:
            assert f"{100 * mean:.2f}±12.34" in text
        assert not any(line != line.rstrip() for line in text.split("\n"))


def test_an_empty_frame_is_a_header():
    empty = not_finished(0)
    assert to_text(make_table(empty)).splitlines()[0].split() == [
        "method",
        "status",
        "reason",
        "trials",
        "data",
        "sets",
        "first",
    ]
    for write in FORMATS.values():
        assert write(make_table(empty)).endswith("\n")


# --- escaping ---------------------------------------------------------------------------------------------------


class Reader(html.parser.HTMLParser):
    """Texts and tags of a page."""

    def __init__(self):
        super().__init__()
        self.texts, self.tags, self.open = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_html_holds_the_text_and_no_foreign_tag():
    frame = pl.DataFrame({"method": [HOSTILE], "mean": [0.5], "is_best": [True]})
    reader = Reader()
    reader.feed(to_html(make_table(frame, title=HOSTILE, note=HOSTILE)))
    assert reader.open == []
    assert reader.texts.count(HOSTILE) == 3
    assert "50.00" in reader.texts
    assert reader.tags == {"table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td", "b"}


@given(words)
def test_latex_has_no_bare_special_character(text):
    frame = pl.DataFrame({"method": [text], "n_splits": [1]})
    row = to_latex(make_table(frame)).splitlines()[4]
    cell = row.removesuffix(r" & 1 \\")
    assert cell != row
    for known in (r"\textbackslash{}", r"\textasciitilde{}", r"\textasciicircum{}", r"$\pm$", "$<$", "$>$", "$|$",
                  "{[}", "{]}", "{*}"):  # fmt: skip
        cell = cell.replace(known, "")
    assert not re.search(r"(?<!\\)[&%$#_{}~^]|[<>|]", cell)
    assert re.fullmatch(r"(?:[^\\]|\\[&%$#_{}])*", cell)


def test_latex_row_begins_with_no_bracket_or_star():
    lines = to_latex(make_table(pl.DataFrame({"method": ["[1]", "*x"]}))).splitlines()
    assert lines[4:6] == [r"{[}1{]} \\", r"{*}x \\"]


@given(words)
def test_markdown_rows_have_as_many_cells_as_columns(text):
    for line in to_markdown(
        make_table(pl.DataFrame({"method": [text], "n_splits": [1], "rival": [text]}))
    ).splitlines():
        plain = re.sub(r"\\.", "", line)
        assert plain.count("|") == 4
        assert not re.search(r"[`*_<\[~#]", plain)


def test_markdown_escapes_entities_only():
    lines = to_markdown(make_table(pl.DataFrame({"method": ["a & b", "&lt;"]}))).splitlines()
    assert lines[2:] == ["| a & b |", r"| \&lt; |"]


# --- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [*FORMATS, ".csv", ".parquet"])
def test_the_same_frame_gives_the_same_bytes(tmp_path, ending):
    first, second = tmp_path / f"a{ending}", tmp_path / f"b{ending}"
    write_table(spread(summary.by_data_set(make_results())), first)
    shuffled = make_results().sample(fraction=1.0, shuffle=True, seed=1)
    write_table(spread(summary.by_data_set(shuffled)), second)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes()


@pytest.mark.parametrize("ending", FORMATS)
def test_files_hold_what_the_functions_return(tmp_path, ending):
    frame = summary.leaderboard(make_results())
    write_table(make_table(frame), tmp_path / f"board{ending}")
    assert (tmp_path / f"board{ending}").read_text(encoding="utf-8") == FORMATS[ending](make_table(frame))


def test_csv_and_parquet_keep_every_digit(tmp_path):
    frame = summary.leaderboard(make_results())
    for name, read in (("a.csv", pl.read_csv), ("a.parquet", pl.read_parquet)):
        write_table(make_table(frame), tmp_path / name)
        assert_frame_equal(read(io.BytesIO((tmp_path / name).read_bytes())), frame, check_exact=True)


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "board.md"
    write_table(make_table(pl.DataFrame({"method": ["old"]})), path)
    before = path.read_bytes()

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        write_table(make_table(pl.DataFrame({"method": ["new"]})), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
