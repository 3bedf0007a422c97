"""Reading tables: what is a number, what is missing, what stays text."""

import csv
import gzip
import io
import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.cli import csv_text, reading
from toprank.cli.csv_text import CsvFormat
from toprank.cli.options import parse_budget, parse_value
from toprank.cli.show import expected, percent, rules_title, times
from toprank.errors import InputError
from toprank.words.nearest import did_you_mean


def read(tmp_path, content, **keywords):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return reading.TableFile(path).frame(**keywords)


def test_empty_cells_are_missing_and_none_is_a_category(tmp_path):
    frame = read(tmp_path, 'a,b,c\n1,None,""\n,NA,x\n3,,y\n')
    assert frame["a"].to_list() == [1, None, 3]
    assert frame["b"].to_list() == ["None", "NA", None]
    assert frame["c"].to_list() == [None, "x", "y"]


def test_numbers_stay_numbers(tmp_path):
    frame = read(tmp_path, "flag,padded,long,empty\n0, 1,123456789012345678901,\n1, 2.5,1,\n")
    assert frame["flag"].dtype == pl.Int64
    assert frame["padded"].to_list() == [1.0, 2.5]
    assert frame["long"].dtype == pl.Float64
    assert frame["empty"].dtype == pl.Float64
    assert frame["empty"].null_count() == 2


def test_codes_with_leading_zeros_stay_text(tmp_path):
    frame = read(tmp_path, "code,padded,n,share,zero,x\n1067, 007,10,0.5,0,a\n01069,8,20,-0.25,00.5,b\n,9,,,-0,\n")
    assert frame["code"].to_list() == ["1067", "01069", None]
    assert frame["padded"].to_list() == [" 007", "8", "9"]
    assert [frame[name].dtype for name in ("n", "share", "zero")] == [pl.Int64, pl.Float64, pl.Float64]
    assert read(tmp_path, 'a;b\n"0012";1,5\n"13";2\n')["a"].to_list() == ["0012", "13"]
    amounts = read(tmp_path, "a,b\n1.5,7\n05,-3\n2,04\n")  # a code is one of whole numbers
    assert amounts.to_dict(as_series=False) == {"a": [1.5, 5.0, 2.0], "b": [7, -3, 4]}
    assert read(tmp_path, "a;b\n1,5;x\n05;y\n")["a"].to_list() == [1.5, 5.0]
    assert read(tmp_path, "time,n\n08:30,12\n09:15,13\n")["n"].to_list() == [12, 13]


def test_text_columns_are_taken_as_they_stand(tmp_path):
    frame = read(tmp_path, "code,n\n007,1\n12,2\n", text_columns=["code", "not there"])
    assert frame["code"].to_list() == ["007", "12"]
    assert frame["n"].to_list() == [1, 2]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a;b\n1,5;x\n2,25;y\n", [1.5, 2.25]),
        ("a;b\n1.5;x,y\n2.25;y\n", [1.5, 2.25]),
        ("a\tb\n1.5\tx\n2.25\ty\n", [1.5, 2.25]),
        (b"\xef\xbb\xbfa,b\r\n1.5,x\r\n2.25,y\r\n\r\n", [1.5, 2.25]),
        ('a,b\n1.5,"x, ""y""\nz"\n2.25,y\n', [1.5, 2.25]),
        ("sep=,\na,b\n1.5,x\n2.25,y\n", [1.5, 2.25]),
        (b"\xef\xbb\xbfSEP=;\r\na;b\r\n1,5;x,y,z\r\n2,25;y\r\n", [1.5, 2.25]),
        ('"sep=|"\na|b\n1.5|"x\n"\n2.25|y,y\n', [1.5, 2.25]),
    ],
)
def test_separators_line_ends_and_quotes(tmp_path, content, expected):
    frame = read(tmp_path, content)
    assert frame.columns == ["a", "b"]
    assert frame["a"].to_list() == expected


@pytest.mark.parametrize(
    ("name", "content", "sep", "encoding"),
    [
        ("t.tsv", "a\tb;c\n1\té\n", None, None),
        ("t.txt", "a:b;c\n1:é\n", ":", None),
        ("t.csv", "a\tb;c\n1\té\n", "tab", None),
        ("t.csv", "a\tb;c\n1\té\n", r"\t", None),
        ("t.csv", "a,b;c\n1,é\n", ",", "cp1252"),
        ("t.csv", "a,b;c\n1,é\n", ",", "latin-1"),
        ("t.csv", "a,b;c\n1,é\n", ",", "utf-16-be"),
        ("t.csv", "\ufeffa,b;c\r\n1,é\r\n", ",", "utf-8"),
        ("t.csv", 'a,"b;c"\n1,é\n', None, None),
    ],
)
def test_formats_of_text_files(tmp_path, name, content, sep, encoding):
    path = tmp_path / name
    path.write_bytes(content.encode(encoding or "utf-8"))
    frame = reading.TableFile(path, CsvFormat.from_options(sep, encoding)).frame()
    assert frame.rows(named=True) == [{"a": 1, "b;c": "é"}]
    packed = path.with_name(f"{name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert reading.TableFile(packed, CsvFormat.from_options(sep, encoding)).frame().equals(frame)


def test_utf_16_is_known_by_its_mark(tmp_path):
    assert read(tmp_path, "a,b\n1,é\n".encode("utf-16")).rows() == [(1, "é")]


@pytest.mark.parametrize(
    ("sep", "encoding"),
    [("ab", None), ('"', None), ("\n", None), ("1", None), ("x", None), ("é", None), ("", None)]
    + [(None, name) for name in ("hex", "zip", "no such thing", "undefined", "")],
)
def test_formats_that_there_are_not(sep, encoding):
    option, value = ("--sep", sep) if encoding is None else ("--encoding", encoding)
    with pytest.raises(InputError, match=f"{option} must be .*got {re.escape(repr(value))}"):
        CsvFormat.from_options(sep, encoding)


def test_integers_of_any_length_are_numbers(tmp_path):
    frame = read(tmp_path, f"a,b,c,d,e\n1{'0' * 60},2,true,x,\n-3,,false,1,\n")
    assert frame.rows() == [(1e60, 2, True, "x", None), (-3.0, None, False, "1", None)]
    assert frame.dtypes == [pl.Float64, pl.Int64, pl.Boolean, pl.String, pl.Float64]
    frame = read(tmp_path, f"a;b;c\n1{'0' * 60};2,5;x,5\n-3;-1,25;y\n")
    assert frame.rows() == [(1e60, 2.5, "x,5"), (-3.0, -1.25, "y")]


@given(
    st.lists(st.lists(st.text('ab,;"\n é', max_size=4), min_size=2, max_size=4), min_size=1, max_size=6),
    st.integers(2, 40),
)
def test_records_are_counted_as_the_csv_module_does(rows, chunk):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    data = text.getvalue().encode().removesuffix(b"\n")
    n_fields = len(rows[0])
    usual, csv_text.CHUNK = csv_text.CHUNK, chunk
    try:
        found = csv_text.count_records(data, ord(","), n_fields)
    finally:
        csv_text.CHUNK = usual
    assert found == (len(rows) if all(len(row) == n_fields for row in rows) else None)


@pytest.mark.parametrize("data", [b'a"b,c', b'"a"b,c', b'"a" ,c', b' "a",c', b'a,"b', b'a""b,c', b'"a\nb,c', b'"",""c'])
def test_quotes_out_of_place_are_left_to_the_csv_module(data):
    assert csv_text.count_records(data, ord(","), 2) is None


@pytest.mark.parametrize("data", [b'"a",c', b'a,"b"', b'"",""', b'"""a""",c', b'a,"b"\r\n"","c,d"', b'"a\nb",c'])
def test_quotes_in_place(data):
    assert csv_text.count_records(data, ord(","), 2) == len(list(csv.reader(io.StringIO(data.decode(), newline=""))))


def test_parsing_of_options():
    assert [parse_value(text) for text in ("3", "0.5", "true", "None", "sqrt", "[1, 2]", "-inf")] == [
        3,
        0.5,
        True,
        None,
        "sqrt",
        [1, 2],
        float("-inf"),
    ]
    assert [parse_budget(text) for text in ("500", "0.02", "2%", None)] == [500, 0.02, 0.02, None]
    assert isinstance(parse_budget("500"), int)
    for text in ("0", "-1", "1.5", "nan", "inf", "x", "200%"):
        with pytest.raises(InputError):
            parse_budget(text)
    assert did_you_mean("AMOUNT", ["age", "amount_eur"]) == " Hint: did you mean 'amount_eur'?"
    assert did_you_mean("zzz", ["age"]) == ""


def test_numbers_for_people():
    assert [expected(1234567), expected(0.58 * 100), expected(12.5)] == ["1,234,567", "58", "about 12"]
    assert [percent(0.467), percent(0.0022), percent(1.0)] == ["46.7 %", "0.22 %", "100.0 %"]
    assert [times(31.2), times(2.34), times(0.052)] == ["31x", "2.3x", "0.05x"]


def test_titles_of_rules():
    assert rules_title(1, 1) == "The only rule"
    assert rules_title(1, 1, figures=", of training") == "The only rule, of training"
    assert rules_title(2, 2).startswith("All 2 rules, in the order")
    assert rules_title(3, 1600).startswith("The first 3 of 1,600 rules, in the order")
