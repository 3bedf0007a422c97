"""Columns that are only carried come back as they were written; text never becomes a formula."""

import csv
import datetime
import gzip
import io
from pathlib import Path

import polars as pl
import pytest

from cli_files import HEADER, case_lines, fit_cases, run, write_cases
from odd_cells import odd_identifiers
from toprank.cli.writing import without_formulas, write_table

FORMULA_STARTS = "=+-@\t\r\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return fit_cases(tmp_path_factory.mktemp("carried"))


def is_signed_number(cell: str) -> bool:
    """Tell -12.5 and +49123 from formulas, by another way than the library's."""
    digits = cell[1:].replace(".", "").replace(",", "").replace("e", "", 1)
    return cell[:1] in "+-" and digits.isdigit() and digits.isascii()


def neutralised(cell: str) -> str:
    return f"'{cell}" if cell[:1] in FORMULA_STARTS and cell and not is_signed_number(cell) else cell


def write_odd(path: Path, n: int) -> list[list[str]]:
    """Write n cases with odd ids, notes and amounts, and return the rows."""
    cases = [line.split(",") for line in case_lines()]
    ids, notes = odd_identifiers(n), odd_identifiers(n, seed=1)[::-1]
    rows = []
    for i in range(n):
        _, sector, amount, age, staff, _ = cases[i % len(cases)]
        rows.append([ids[i], sector, f"{amount}.50" if i % 2 else f"0{amount}", age, staff, notes[i]])
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([[*HEADER.split(",")[:5], "=note"], *rows])
    return rows


def read_back(data: bytes, separator: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline=""), delimiter=separator))


def check_carried(model, folder, n: int) -> None:
    rows = write_odd(folder / "new.csv", n)
    common = ("topk", model, folder / "new.csv", "--k", n, "--reasons", 0, "--id", "case_id")
    for option, name, expected in (("--raw-text", "=note", str), ("--quiet", "'=note", neutralised)):
        out = folder / "alerts.csv"
        done = run(*common, "--keep", "=note,amount", option, "-o", out)
        assert done.code == 0, done.err
        alerts = read_back(out.read_bytes())
        assert sorted(int(alert["row"]) for alert in alerts) == list(range(n))
        for alert in alerts:
            case_id, _, amount, _, _, note = rows[int(alert["row"])]
            assert (alert["case_id"], alert[name]) == (expected(case_id), expected(note))
            assert alert["amount"] == amount  # learned from as a number, carried as written


def test_odd_identifiers_come_back(model, tmp_path):
    check_carried(model, tmp_path, 20_000)


@pytest.mark.slow
def test_a_million_odd_identifiers_come_back(model, tmp_path):
    check_carried(model, tmp_path, 1_000_000)


@pytest.mark.parametrize(
    ("name", "separator", "encoding"),
    [("new.csv", ";", "utf-8"), ("new.tsv", "\t", "utf-8"), ("new.txt", "|", "cp1252"), ("new.tsv.gz", "\t", "utf-16")],
)
def test_formats_in_and_out(model, tmp_path, name, separator, encoding):
    content = "\n".join([HEADER, *case_lines()]).replace("C00", "é00").replace(",", separator).encode(encoding)
    new = tmp_path / name
    new.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    options = ("--k", 300, "--id", "case_id", "--encoding", encoding, "--sep", separator)
    expected = {line.split(",")[0].replace("C00", "é00") for line in case_lines()}
    for out, cells_by in (("alerts.tsv", "\t"), ("alerts.csv.gz", ","), ("alerts.tsv.gz", "\t")):
        done = run("topk", model, new, *options, "-o", tmp_path / out)
        assert done.code == 0, done.err
        data = (tmp_path / out).read_bytes()
        alerts = read_back(gzip.decompress(data) if out.endswith(".gz") else data, cells_by)
        assert {alert["case_id"] for alert in alerts} == expected
        assert set(alerts[0]) >= {"rank", "score", "reason_1"}


def test_decimal_commas_are_carried_and_learned_from(model, tmp_path):
    lines = [line.replace(",", ";") for line in case_lines()]
    lines = [";".join([*line.split(";")[:2], f"{line.split(';')[2]},50", *line.split(";")[3:]]) for line in lines]
    new = write_cases(tmp_path / "new.csv", HEADER.replace(",", ";"), lines)
    done = run("topk", model, new, "--k", 3, "--keep", "amount", "-o", tmp_path / "a.csv")
    assert done.code == 0, done.err
    written = {line.split(";")[2] for line in lines}
    assert all(alert["amount"] in written for alert in read_back((tmp_path / "a.csv").read_bytes()))


def test_empty_and_quoted_empty_cells_stay_apart(model, tmp_path):
    lines = case_lines()
    lines[0] = lines[0].replace("C0000", '""')
    lines[1] = lines[1].replace("C0001", "")
    new = write_cases(tmp_path / "new.csv", lines=lines)
    out = tmp_path / "a.csv"
    assert run("topk", model, new, "--k", 300, "--id", "case_id", "--reasons", 0, "-o", out).code == 0
    starts = {line.split(",")[2]: line.split(",")[0] for line in out.read_text().splitlines()[1:]}
    assert (starts["0"], starts["1"], starts["2"]) == ('""', "", "C0002")


def test_parquet_columns_are_carried_with_their_type(model, tmp_path):
    frame = pl.read_csv(write_cases(tmp_path / "h.csv"), schema_overrides={"case_id": pl.String}).with_columns(
        day=pl.lit(datetime.date(2024, 5, 17)),
        price=pl.lit("12.50").cast(pl.Decimal(10, 2)),
        number=pl.lit(2**63 - 1),
        kind=pl.lit("=1+1").cast(pl.Categorical),
        parts=pl.lit([1, 2]),
    )
    frame.write_parquet(tmp_path / "new.parquet")
    carried = ["day", "price", "number", "kind"]
    common = ("topk", model, tmp_path / "new.parquet", "--k", 2, "--reasons", 0, "--keep", ",".join(carried))
    assert run(*common, "-o", tmp_path / "a.parquet").code == 0
    found = pl.read_parquet(tmp_path / "a.parquet")
    assert found.select(carried).schema == frame.select(carried).schema
    assert run(*common, "-o", tmp_path / "a.csv").code == 0
    first = read_back((tmp_path / "a.csv").read_bytes())[0]
    assert [first[name] for name in carried] == ["2024-05-17", "12.50", str(2**63 - 1), "'=1+1"]
    done = run(*common, "--keep", "parts", "-o", tmp_path / "b.csv")
    assert done.code == 2
    assert "Column 'parts' holds values of type List" in done.err
    assert not (tmp_path / "b.csv").exists()
    assert run(*common, "--keep", "parts", "-o", tmp_path / "b.parquet").code == 0


# --- formulas -----------------------------------------------------------------------------------------------


def test_what_a_spreadsheet_would_run_gets_an_apostrophe():
    runs = [
        "=1+1",
        "+1+1",
        "-2+3+cmd|' /C calc'!A0",
        "@SUM(1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "＝1+1",
        "-",
        "+",
        "--1",
        "-1e",
    ]
    runs += ["-12.5=", "+49 89 123", "=12", "-1\n"]
    stays = ["-12.5", "+491234", "-.5", "-1,234.56", "+1e-5", "-3%", "12", "a=1", " =1", "'=1", "", "0", "(1)"]
    frame = without_formulas(pl.DataFrame({"text": [*runs, *stays, None], "=n": [-1.5] * (len(runs + stays) + 1)}))
    assert frame.columns == ["text", "'=n"]
    assert frame["text"].to_list() == [*(f"'{cell}" for cell in runs), *stays, None]
    assert frame["'=n"].to_list() == [-1.5] * frame.height


def test_names_and_categories_of_an_attacker_reach_no_file_as_formulas(tmp_path):
    header = HEADER.replace("sector", "=cmd|calc").replace("case_id", "@id")
    lines = [line.replace("construction", "=HYPERLINK(1)") for line in case_lines()]
    history, model = write_cases(tmp_path / "h.csv", header, lines), tmp_path / "m.toprank"
    done = run("fit", history, "--label", "fraud", "--id", "@id", "--model", "tree", "--cv", 0, "-o", model)
    assert done.code == 0, done.err
    out = tmp_path / "a.csv"
    assert run("topk", model, history, "--k", 20, "--id", "@id", "--keep", "=cmd|calc", "-o", out).code == 0
    table = list(csv.reader(io.StringIO(out.read_text(), newline="")))
    assert {"'@id", "'=cmd|calc"} <= set(table[0])
    assert any(cell.startswith("'=cmd|calc") for cell in table[1])  # a reason begins with the name of its column
    assert not [cell for row in table for cell in row if cell.startswith(("=", "@"))]


# --- Excel --------------------------------------------------------------------------------------------------


def load_sheet(path: Path):
    openpyxl = pytest.importorskip("openpyxl")
    return openpyxl.load_workbook(path).active


def test_excel_alerts(model, tmp_path):
    lines = [line.replace("C00", "=1+").replace("retail", "https://x.invalid/a") for line in case_lines()]
    new, out = write_cases(tmp_path / "new.csv", lines=lines), tmp_path / "alerts.xlsx"
    done = run("topk", model, new, "--k", 300, "--id", "case_id", "--keep", "sector,amount", "-o", out)
    assert done.code == 0, done.err
    assert "Wrote" in done.out
    sheet = load_sheet(out)
    names = [cell.value for cell in sheet[1]]
    assert names[:4] == ["case_id", "rank", "row", "score"]
    assert sheet.freeze_panes == "A2"
    assert sheet.max_row == 301
    by_row = {row[names.index("row")].value: row for row in sheet.iter_rows(min_row=2)}
    first = by_row[0]
    assert (first[0].value, first[0].data_type) == ("=1+00", "s")  # text as it was, marked as text
    assert not [cell for row in by_row.values() for cell in row if cell.data_type == "f" or cell.hyperlink]
    rate = first[names.index("training_rate")]
    assert rate.data_type == "n"
    assert first[names.index("amount")].value == lines[0].split(",")[2]
    assert sheet.column_dimensions[rate.column_letter].number_format.endswith("%") or rate.number_format.endswith("%")


def test_excel_cells_keep_their_type(tmp_path):
    now = datetime.datetime(2024, 5, 17, 12, 30)
    frame = pl.DataFrame({
        "number": [1.5, None, float("nan")], "whole": [7, 2**53, 2**53 + 1], "flag": [True, False, None],
        "day": [now.date(), None, datetime.date(1800, 1, 1)], "time": [now, None, now],
        "text": ["=1", "\x1b[31m", "_x0041_"], "share": [0.25, 0.5, None],
    })  # fmt: skip
    write_table(frame, tmp_path / "a.xlsx", shares=["share"])
    rows = list(load_sheet(tmp_path / "a.xlsx").iter_rows(min_row=2))
    values = [[cell.value for cell in row] for row in rows]
    assert values[0] == [1.5, 7, True, datetime.datetime(2024, 5, 17), now, "=1", 0.25]
    assert [row[0] for row in values] == [1.5, None, None]
    assert [row[1] for row in values] == [7, 2**53, str(2**53 + 1)]
    assert values[2][3] == "1800-01-01"
    assert rows[0][6].number_format == "0.0%"
    assert rows[0][5].data_type == "s"


def test_what_excel_cannot_hold_is_refused(model, tmp_path, monkeypatch):
    lines = case_lines()
    lines[0] = lines[0].replace("C0000", "x" * 40_000)
    new = write_cases(tmp_path / "new.csv", lines=lines)
    done = run("topk", model, new, "--k", 300, "--id", "case_id", "-o", tmp_path / "a.xlsx")
    assert done.code == 2
    assert "takes 32,767" in done.err
    assert not (tmp_path / "a.xlsx").exists()
    monkeypatch.setattr("toprank.cli.writing.MAX_SHEET", (100, 50))
    done = run("topk", model, new, "--k", 200, "-o", tmp_path / "a.xlsx")
    assert done.code == 2
    assert "sheet takes 99" in done.err
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = run("topk", model, new, "--k", 2, "-o", tmp_path / "a.xlsx")
    assert done.code == 2
    assert "needs the package xlsxwriter" in done.err
