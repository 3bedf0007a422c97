"""New tables that write dates and numbers in another way than the training table: each cell is read by itself."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from toprank.data.encoding import ChangedColumnWarning, encode
from toprank.data.table import read_table
from toprank.tree.columns import Column, Usual

DAYS = [np.datetime64("2019-01-01") + 37 * i for i in range(40)]
USUAL = Usual(5.0, 1.0, 9.0, 0.1, 0.05)
AMOUNTS = [7.5 + 613.25 * i for i in range(40)]


def dates_as(style):
    return [day.item().strftime(style) for day in DAYS]


def amounts_as(mark):
    texts = [f"{amount:,.2f} EUR" for amount in AMOUNTS]
    return texts if mark == "." else [text.translate(str.maketrans(",.", ".,")) for text in texts]


def read_as(column, texts):
    """Values of cells of text in a column of a model."""
    return encode(read_table(pl.DataFrame({"c": texts}, schema={"c": pl.String})), [column])[:, 0].tolist()


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (Column("c", usual=USUAL), ["1.234", "1.234,5", "1,234", "7,25", "2.5", "n/a", "-", "(3)", *["8,5"] * 9]),
        (Column("c", usual=USUAL), [*["low", "high"] * 8, "1e3"]),
        (Column("c", form="1.234,56", usual=USUAL), [*(f"{i}.500" for i in range(1, 30)), "7.5", "n/a"]),
        (Column("c", form="dmy", usual=USUAL), [*(f"{i:02d}/01/2020" for i in range(1, 30)), "01/31/2020", "x"]),
        (Column("c", form="ymd", usual=USUAL), [*["31.12.2020"] * 20, "2020-12-31"]),
    ],
)
def test_a_cell_is_read_alike_alone_and_in_any_table(column, texts):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = [read_as(column, [text])[0] for text in texts]
        for some in (slice(None), slice(None, 12), slice(-12, None)):
            assert np.array_equal(read_as(column, texts[some]), alone[some], equal_nan=True)


@pytest.mark.parametrize("form", ["dmy", "mdy"])
def test_dates_with_the_year_first_are_read_whatever_the_order_in_training(form):
    days = [float(day.astype(int)) for day in DAYS]
    assert read_as(Column("c", form=form), dates_as("%Y-%m-%d")) == days


@pytest.mark.parametrize(
    ("column", "texts", "words"),
    [
        (Column("c", form="dmy"), dates_as("%m/%d/%Y"), r"day first \(31.12.2024\) in training.*month first \(12/31"),
        (Column("c", form="ymd"), dates_as("%d.%m.%Y"), "the whole column can be read day first"),
        (Column("c", form="1.234,56", unit="EUR"), amounts_as("."), "as 1.234,56 EUR in training.*as 1,234.56 EUR"),
        (Column("c", form="1,234.56", unit="EUR"), amounts_as(","), "the whole column can be read as 1.234,56 EUR"),
        (Column("c"), [text[:-4] for text in amounts_as(",")], "a number .*; the whole .* be read as 1.234,56. Such"),
        (
            Column("c", form="1.234,56", unit="EUR", usual=USUAL),
            [*(text[:-4] for text in amounts_as(".")), *["n/a"] * 9],
            r"as 1.234,56 EUR in training.* such as '[\d,.]+'; the whole column can be read as 1,234.56. Such",
        ),
        (Column("c", usual=USUAL), amounts_as("."), "'[0-9,.]+ EUR'; the whole column can be read as 1,234.56 EUR"),
    ],
    ids=["month first", "day first", "point", "comma", "number", "point without unit", "number with unit"],
)  # fmt: skip
def test_a_column_in_another_format_is_named(column, texts, words):
    with pytest.warns(ChangedColumnWarning, match=words) as told:
        read_as(column, [*texts, "-", None, " "])
    (warning,) = (each.message for each in told)
    assert warning.column == "c"
    assert str(pickle.loads(pickle.dumps(warning))) == str(warning)
    assert "count as missing" not in warning.refusal


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (Column("c", form="dmy"), [*(f"{i:02d}/0{k}/2020" for i in range(1, 11) for k in (1, 5, 9)), "01/31/2020"]),
        (Column("c", form="1.234,56"), [*(f"{i}.500" for i in range(1, 30)), "7.5"]),
    ],
)
def test_one_cell_shows_another_format_if_the_whole_column_fits_it(column, texts):
    told = f"but 1 of {len(texts)} cells cannot be read so.*can be read .* others may be misread"
    with pytest.warns(ChangedColumnWarning, match=told):
        read_as(column, texts)
    with pytest.warns(UserWarning, match="1 cell is not written"):  # too few to tell
        read_as(column, texts[-9:])


@pytest.mark.parametrize(
    ("column", "texts", "why"),
    [
        (Column("c", form="dmy"), [*dates_as("%m/%d/%Y"), "31/12/2020"], "no single format fits"),
        (
            Column("c", form="ymd", usual=USUAL),
            [f"{i:02d}/01/2020" for i in range(1, 13)],
            "can be read day first .* or month first",
        ),
        (Column("c", form="1.234,56", unit="EUR", usual=USUAL), [*amounts_as("."), "0,5 EUR"], "no single format fits"),
    ],
    ids=["both orders", "either order", "both marks"],
)
def test_a_column_that_may_be_misread_is_named(column, texts, why):
    with pytest.warns(ChangedColumnWarning, match=f"Column 'c' held .* in training, but .* cannot be read so.*{why}"):
        read_as(column, texts)


def test_cells_beside_others_that_cannot_be_misread_are_left_out():
    with pytest.warns(UserWarning, match="1 cell is not written year first .* such as '03/04/2020'; it counts"):
        found = read_as(Column("c", form="ymd", usual=USUAL), ["1970-01-03", "03/04/2020"])
    assert np.array_equal(found, [2.0, np.nan], equal_nan=True)


def test_a_few_cells_in_another_format_are_left_out():
    column = Column("c", form="dmy")
    with pytest.warns(UserWarning, match=r"1 cell is not written day first \(31.12.2024\), such as '12/31/2020'; it"):
        found = read_as(column, [*dates_as("%d.%m.%Y"), "12/31/2020"])
    assert np.isnan(found).tolist() == [False] * 40 + [True]
    thousands = [f"{i}.500,5" for i in range(1, 30)]
    with pytest.warns(UserWarning, match="1 cell is not written as 1.234,56, such as '7.5'.*as in training"):
        found = read_as(Column("c", form="1.234,56"), [*thousands, "7.5"])
    assert found[:-1] == [1_000 * i + 500.5 for i in range(1, 30)]
    with pytest.warns(UserWarning, match="1 cell is not written as 1,234.56, such as '3,5'"):  # no other could differ
        read_as(Column("c", form="1,234.56"), [*map(str, range(40)), "3,5"])


def test_a_column_that_lost_its_numbers_is_named():
    column = Column("c", form="1.234,56", unit="EUR", usual=USUAL)
    with pytest.warns(ChangedColumnWarning, match="but 20 of 23 cells cannot be read so, such as 'high'. Such") as told:
        read_as(column, ["high"] * 10 + ["low"] * 10 + ["1,5 EUR"] * 3)
    assert "misread" not in str(told[0].message)
    assert "Hint: write them as in training." in str(told[0].message)
    with pytest.warns(UserWarning, match="12 cells hold none, such as '-'"):  # one word, and several numbers
        read_as(column, ["-"] * 12 + ["1,5 EUR", "2,5 EUR"])
    with pytest.warns(UserWarning, match="9 cells hold none"):  # too few to tell
        read_as(column, ["high"] * 5 + ["low"] * 4)
    with pytest.warns(UserWarning, match="20 cells hold none"):  # as in training
        read_as(replace(column, usual=replace(USUAL, missing=0.8)), ["high"] * 10 + ["low"] * 10)


def test_text_for_a_column_of_a_date_type_is_not_said_to_be_text_in_training():
    column = Column("c", form="date", usual=USUAL)
    assert read_as(column, dates_as("%Y-%m-%d")) == read_as(Column("c", form="ymd"), dates_as("%Y-%m-%d"))
    with pytest.warns(ChangedColumnWarning, match="'c' was of a date type in training, but 40 of 40 cells") as told:
        read_as(column, dates_as("%d.%m.%Y"))
    hint = "Hint: convert the column to dates, or use dates written year first (2024-12-31)."
    assert hint in str(told[0].message)
    with pytest.warns(UserWarning, match=r"Hint: write them year first \(2024-12-31\)\.$"):
        read_as(column, [*dates_as("%Y-%m-%d"), "31.12.2020"])
