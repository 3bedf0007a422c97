"""Fuzzed CSV files: what is read is what Python's csv module reads; everything else is refused with its line."""

import csv
import io
import random

import pytest

from odd_cells import fuzzed_csv
from toprank.cli.csv_text import CsvFormat
from toprank.cli.reading import TableFile
from toprank.errors import InputError


def read_by_python(text: str, n_fields: int) -> list[list[str]]:
    """Return the records below the header; line ends at the end of the file begin no further record."""
    records = list(csv.reader(io.StringIO(text.rstrip("\r\n"), newline="")))[1:]
    return [record or [""] for record in records] if n_fields == 1 else records


def compare_readers(folder, seed: int, n_files: int) -> tuple[int, int]:
    """Return how many files were read, each as Python reads it, and how many were refused."""
    rng, path, n_read, n_refused = random.Random(seed), folder / "t.csv", 0, 0
    for _ in range(n_files):
        names, text = fuzzed_csv(rng)
        path.write_bytes(text.encode())
        expected = read_by_python(text, len(names))
        try:
            source = TableFile(path, CsvFormat(separator=","))
        except InputError as error:
            said = str(error)
            assert said.startswith("Line ") or " is empty" in said, (text, said)
            n_refused += 1
            continue
        as_written = [["" if cell is None else cell for cell in row] for row in source.as_written(names).rows()]
        assert as_written == expected, text
        if expected:
            as_text = [["" if cell is None else str(cell) for cell in row] for row in source.frame(names).rows()]
            # A column without a value is one of numbers, all missing.
            assert as_text == expected, text
            assert source.frame().height == len(expected), text
        n_read += 1
    return n_read, n_refused


@pytest.mark.slow
def test_fuzzed_files_are_read_as_python_reads_them_or_refused(tmp_path):
    n_read, n_refused = compare_readers(tmp_path, 0, 400)
    assert n_read > 120
    assert n_refused > 80


@pytest.mark.slow
def test_ten_thousand_fuzzed_files(tmp_path):
    n_read, n_refused = compare_readers(tmp_path, 1, 10_000)
    assert n_read > 3_500
    assert n_refused > 2_000


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " ", ":"])
def test_records_that_python_wrote_come_back(tmp_path, separator):
    rng = random.Random(3)
    pieces = ["a", "1", " ", "é", ",", ";", "\t", "|", ":", '"', "\n", "\r", "'", "\x1b", "\ufeff"]
    rows = [["".join(rng.choices(pieces, k=rng.randint(0, 6))) for _ in range(3)] for _ in range(400)]
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator).writerows([["x", "y", "z"], *rows])
    path = tmp_path / "t.csv"
    path.write_bytes(text.getvalue().encode())
    found = TableFile(path, CsvFormat(separator=separator)).as_written(["z", "x", "y"])
    assert found.columns == ["z", "x", "y"]
    assert [[cell or "" for cell in row] for row in found.select("x", "y", "z").rows()] == rows


@pytest.mark.parametrize(
    "names", [["a b", " a b"], ["a", "a_duplicated_0"], ['q"', "x\ny"], ["c1", "c0"], ["a\rb", "'"]]
)
def test_names_of_columns_are_as_written(tmp_path, names):
    text = io.StringIO(newline="")
    csv.writer(text).writerows([names, ["007", "2"], ["3", ""]])
    path = tmp_path / "t.csv"
    path.write_bytes(text.getvalue().encode())
    source = TableFile(path)
    assert source.as_written(names[:1]).to_dict(as_series=False) == {names[0]: ["007", "3"]}
    assert source.frame([names[0]]).to_dict(as_series=False) == {names[0]: ["007", "3"], names[1]: [2, None]}
