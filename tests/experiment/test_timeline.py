"""Times and lengths of all kinds, as `PrequentialSplit` takes them."""

import re
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from toprank.experiment.prequential import PrequentialSplit

DAYS = np.datetime64("2024-01-01") + np.arange(10)


def as_lists(folds):
    return [(train.tolist(), test.tolist()) for train, test in folds]


PARIS = pd.DatetimeIndex(DAYS).tz_localize("Europe/Paris")


@pytest.mark.parametrize(
    "times",
    [
        DAYS,
        DAYS.astype("datetime64[ns]"),
        pd.Series(DAYS),
        pd.DatetimeIndex(DAYS),
        PARIS,
        pd.Series(PARIS),
        pd.Series(DAYS.astype("datetime64[us]"), dtype="timestamp[us][pyarrow]"),
        pl.Series(DAYS),
        pl.Series(DAYS).cast(pl.Datetime("ms", "UTC")),
        pa.chunked_array([DAYS]),
        DAYS.tolist(),
        [datetime(day.year, day.month, day.day, tzinfo=timezone(timedelta(hours=9))) for day in DAYS.tolist()],
    ],
    ids=lambda times: f"{type(times).__module__}.{type(times).__name__}-{getattr(times, 'dtype', '')}",
)
def test_dates_of_all_kinds(times):
    expected = [([0, 1, 2], [4, 5]), ([2, 3, 4], [6, 7]), ([4, 5, 6], [8, 9])]
    assert as_lists(PrequentialSplit("3d", "1d", "2d", times=times).split()) == expected


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_times_are_a_column_of_the_frame(frame):
    X = frame({"x": np.arange(10), "day": DAYS})
    assert as_lists(PrequentialSplit("8d", 0, "2d", times="day").split(X)) == [([*range(8)], [8, 9])]


@pytest.mark.parametrize(
    "week",
    ["1w", "7d", " 168 h", "10080min", "604800s", "7.0d", np.timedelta64(1, "W"), np.timedelta64(168, "h"),
     timedelta(days=7), pd.Timedelta(days=7)],
)  # fmt: skip
def test_lengths_of_all_kinds(week):
    assert as_lists(PrequentialSplit(week, 0, "2d", times=DAYS, n_splits=1).split()) == [([*range(1, 8)], [8, 9])]


@pytest.mark.parametrize("numbers", [np.arange(6, dtype=np.uint8), np.arange(6.0), pd.Series(range(6), dtype="Int64"),
                                     [np.int64(row) for row in range(6)], pl.Series(range(6)),
                                     np.array(range(6), dtype=object)])  # fmt: skip
def test_numbers_of_all_kinds(numbers):
    assert as_lists(PrequentialSplit(4, np.int64(0), np.float32(2), times=numbers).split()) == [([0, 1, 2, 3], [4, 5])]


def test_years_and_months_of_numpy_are_days():
    years = np.array(["2020", "2021", "2022"], dtype="datetime64[Y]")
    assert as_lists(PrequentialSplit("366d", 0, "1d", times=years).split()) == [([0], [1]), ([1], [2])]


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("train", 0, ValueError),
        ("train", "every", ValueError),
        ("train", None, TypeError),
        ("test", "3months", ValueError),
        ("test", -1, ValueError),
        ("test", float("nan"), ValueError),
        ("test", True, TypeError),
        ("gap", "-1d", ValueError),
        ("gap", None, TypeError),
        ("step", 0, ValueError),
        ("step", np.timedelta64("NaT"), ValueError),
        ("step", np.timedelta64(1, "M"), ValueError),
        ("label_delay", timedelta(days=-1), ValueError),
        ("label_delay", [1], TypeError),
    ],
)
def test_a_bad_length_is_a_sentence(name, value, error):
    options = {"train": 1, "gap": 0, "test": 1} | {name: value}
    with pytest.raises(
        error, match=rf"The '{name}' parameter of PrequentialSplit must be a length of time .* Got .* Hint"
    ):
        PrequentialSplit(**options)


@pytest.mark.parametrize(
    ("times", "error", "sentence"),
    [
        (None, ValueError, "PrequentialSplit needs the times of the rows, but 'times' is None. Hint"),
        (["2024-01-01"] * 3, TypeError, "'times' of PrequentialSplit must be numbers or dates. Got dtype <U10"),
        ([[1, 2, 3]], ValueError, "must be one column with at least one row. Got an array of shape (1, 3)"),
        ([], ValueError, "must be one column with at least one row. Got an array of shape (0,)"),
        ([1, 2, np.nan], ValueError, "must have a time for every row, but 1 of 3 are missing or inf"),
        ([1, np.inf, 3], ValueError, "1 of 3 are missing or infinite (the first in row 1)"),
        (pd.Series([1, None, 3], dtype="Int64"), ValueError, "1 of 3 are missing"),
        (np.array([1, None, 3], dtype=object), ValueError, "1 of 3 are missing"),
        ([date(2024, 1, 1), None, date(2024, 1, 3)], ValueError, "1 of 3 are missing"),
        (pd.Series(pd.to_datetime(["2024-01-01", None, None])), ValueError, "2 of 3 are missing"),
        (pl.Series([None, 1, 2]), ValueError, "1 of 3 are missing or infinite (the first in row 0)"),
        ([True, False, True], TypeError, "must be numbers or dates. Got dtype bool"),
        (pd.period_range("2024", periods=3, freq="M"), TypeError, "must be numbers or dates. Got dtype object"),
        ([1, 2], ValueError, "must have one value per row of X (3 rows). Got 2 values"),
        ("day", TypeError, "PrequentialSplit reads the column 'day' of X, so X must be a data frame. Got ndarray"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_times_are_a_sentence(times, error, sentence):
    with pytest.raises(error, match=re.escape(sentence)):
        PrequentialSplit(1, 0, 1, times=times).split(np.zeros((3, 1)))
