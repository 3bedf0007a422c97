"""`load` and `list_datasets`: small files made here, and the project's own data where it is present."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from toprank.datasets import list_datasets, load, make_audit
from toprank.datasets.frames import is_missing

polars = pytest.importorskip("polars", reason="reading files needs polars: pip install 'toprank[cli]'")

CSV = "size,colour,label\n1.5,red,0\n,None,1\n3,,0\n"


def write(folder, name, text):
    path = folder / name
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") and not isinstance(text, bytes) else data)
    return path


def check_small(dataset):
    assert dataset.name == "small"
    assert dataset.columns["size"].tolist() == pytest.approx([1.5, np.nan, 3.0], nan_ok=True)
    assert dataset.columns["colour"].tolist() == ["red", "None", None]
    assert (dataset.y.tolist(), dataset.y.dtype) == ([0, 1, 0], np.int8)
    assert dataset.categorical_features == ["colour"]


@pytest.mark.parametrize("name", ["small.csv", "small.csv.gz"])
def test_csv_by_name_and_by_path(tmp_path, monkeypatch, name):
    path = write(tmp_path, name, CSV)
    check_small(load("small", folder=tmp_path))
    check_small(load(path))
    check_small(load(str(path)))
    monkeypatch.setenv("TOPRANK_DATA", str(tmp_path))
    check_small(load("small"))
    assert repr(load("small")) == "<Dataset 'small': 3 rows, 2 features (1 categorical), 1 positive>"


def test_parquet_by_name_and_by_path(tmp_path):
    frame = polars.DataFrame(
        {
            "size": [1.5, None, 3.0],
            "colour": polars.Series(["red", "None", None], dtype=polars.Categorical),
            "label": [False, True, False],
        }
    )
    frame.write_parquet(tmp_path / "small.parquet")
    check_small(load("small", folder=tmp_path))
    check_small(load(tmp_path / "small.parquet"))


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frame_has_the_label_last(tmp_path, backend):
    pytest.importorskip(backend)
    frame = load(write(tmp_path, "small.csv", CSV)).frame(backend)
    names = list(frame.column_names if backend == "pyarrow" else frame.columns)
    assert names == ["size", "colour", "label"]
    found = frame["size"].to_pylist() if backend == "pyarrow" else frame["size"].to_list()
    assert [value is None or value != value for value in found] == [False, True, False]


def test_features_alone(tmp_path):
    pytest.importorskip("pandas")
    assert list(load(write(tmp_path, "small.csv", CSV)).X.columns) == ["size", "colour"]


def test_simulated_cases_survive_a_file(tmp_path):
    data = make_audit(300, missing_rate=0.2)
    data.frame("polars").write_csv(tmp_path / "cases.csv")
    back = load(tmp_path / "cases.csv")
    assert np.array_equal(back.y, data.y)
    for name, values in data.columns.items():
        if values.dtype == object:
            assert back.columns[name].tolist() == values.tolist()
        else:
            assert np.array_equal(back.columns[name], values, equal_nan=True)


def test_quoted_empty_cells_empty_columns_and_booleans(tmp_path):
    text = 'a,empty,flag,label\n"",,true,0\nx,,false,1\n'
    columns = load(write(tmp_path, "t.csv", text)).columns
    assert columns["a"].tolist() == [None, "x"]
    assert np.isnan(columns["empty"]).all()
    assert columns["flag"].tolist() == ["true", "false"]


@pytest.mark.parametrize(
    ("values", "pos_label", "expected"),
    [
        ("0 1", None, [0, 1]),
        ("1 -1", None, [1, 0]),
        ("true false", None, [1, 0]),
        ("yes no", "yes", [1, 0]),
        ("1 2", 2, [0, 1]),
        ("1 2", 1, [1, 0]),
    ],
)
def test_labels(tmp_path, values, pos_label, expected):
    text = "x,fraud\n" + "".join(f"1,{value}\n" for value in values.split())
    assert load(write(tmp_path, "t.csv", text), label="fraud", pos_label=pos_label).y.tolist() == expected


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "t.csv",
            "x,lable\n1,0\n2,1\n",
            r"'label' is missing from t.csv \(2 columns read\)\. Hint: did you mean 'lable'",
        ),
        (
            "t.csv",
            "x,label\n1,0\n2,1\n3,2\n",
            "'label' of t.csv must have exactly two values. Got 3: 0, 1, 2",
        ),
        ("t.csv", "x,label\n1,0\n2,0\n", "must have exactly two values. Got 1: 0"),
        ("t.csv", "x,label\n1,a\n2,b\n", "has the values 'a' and 'b'. Hint: say which is positive"),
        ("t.csv", "x,label\n1,0\n2,\n", "has 1 missing values, the first in row 2"),
        ("t.csv", "x,z,label\n1,1,0\n2\n3,1,1\n", "first in row 2. Hint: .* lines that are too short"),
        ("t.csv", "x,label\n1,0\n2,1,3\n", "t.csv cannot be read as UTF-8 CSV"),
        ("t.csv", "x,x,label\n1,1,0\n2,2,1\n", "t.csv has the name 'x' 2 times"),
        ("t.csv", "x,,label\n1,1,0\n2,2,1\n", "t.csv has an empty name"),
        ("t.csv", "", "must start with a row of column names"),
        ("t.csv", "x,label\n", "Got 0 rows and 2 columns"),
        ("t.csv", "label\n0\n1\n", "Got 2 rows and 1 column"),
        ("t.csv", "x,label\né,0\ny,1\n".encode("latin-1"), "t.csv cannot be read as UTF-8 CSV"),
        ("t.csv.gz", b"x,label\n1,0\n2,1\n", "t.csv.gz cannot be read as UTF-8 CSV"),
        ("t.csv.gz", gzip.compress(b"x,label\n" + b"1,0\n2,1\n" * 999, mtime=0)[:-20], "t.csv.gz cannot be read"),
        ("t.parquet", b"not parquet", "t.parquet cannot be read as Parquet"),
        ("t.txt", "x,label\n1,0\n2,1\n", "t.txt must end in .csv.gz, .csv, .parquet"),
    ],
)
def test_bad_files_get_a_sentence(tmp_path, name, text, sentence):
    with pytest.raises(ValueError, match=sentence):
        load(write(tmp_path, name, text))


def test_a_wrong_pos_label_gets_a_sentence(tmp_path):
    path = write(tmp_path, "small.csv", CSV)
    with pytest.raises(ValueError, match=r"The 'pos_label' parameter of load must be one of 0 and 1. Got 'x' instead"):
        load(path, pos_label="x")


def test_nested_columns_get_a_sentence(tmp_path):
    polars.DataFrame({"x": [[1], [2]], "label": [0, 1]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"Column 'x' of t.parquet must hold numbers or text. Got List"):
        load(tmp_path / "t.parquet")


def test_missing_files_folders_and_names_get_a_sentence(tmp_path, monkeypatch):
    monkeypatch.delenv("TOPRANK_DATA", raising=False)
    write(tmp_path, "small.csv", CSV)
    with pytest.raises(ValueError, match="set the environment variable TOPRANK_DATA"):
        load("small")
    with pytest.raises(FileNotFoundError, match="given by folder= does not exist"):
        load("small", folder=tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"no data set 'smal' in .* \(1 found\)\. Hint: did you mean 'small'\?"):
        load("smal", folder=tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        load(tmp_path / "gone.csv")
    monkeypatch.setenv("TOPRANK_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="given by TOPRANK_DATA does not exist"):
        list_datasets()


def test_without_polars_there_is_a_hint(tmp_path, monkeypatch):
    path = write(tmp_path, "small.csv", CSV)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r'needs the package \'polars\'.* Hint: pip install "toprank\[cli\]"'):
        load(path)


def test_list_with_and_without_an_index(tmp_path):
    for name in ("b.csv", "a.csv.gz", "c.parquet", "notes.txt"):
        write(tmp_path, name, b"")
    assert list_datasets(tmp_path) == {"a": {}, "b": {}, "c": {}}
    write(tmp_path, "index.csv", "name,n\nb,10\na,20\ngone,30\n")
    assert list_datasets(tmp_path) == {"b": {"n": "10"}, "a": {"n": "20"}, "c": {}}
    assert list(list_datasets(tmp_path)) == ["b", "a", "c"]
    write(tmp_path, "index.csv", "title\nb\n")
    with pytest.raises(ValueError, match="must have a column 'name'"):
        list_datasets(tmp_path)


@pytest.fixture(scope="module")
def data_folder():
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("TOPRANK_DATA", beside))
    if not (folder / "index.csv").is_file():
        pytest.skip("no data sets here: set TOPRANK_DATA to a folder with index.csv and <name>.csv.gz")
    return folder


@pytest.mark.slow
@pytest.mark.slow
def test_every_data_set_agrees_with_its_index(data_folder):
    for name, facts in list_datasets(data_folder).items():
        dataset = load(name, folder=data_folder)
        missing = sum(int(is_missing(values).sum()) for values in dataset.columns.values())
        found = (len(dataset), len(dataset.columns), int(dataset.y.sum()), missing)
        assert found == tuple(int(facts[key]) for key in ("n", "d", "positives", "missing_cells")), name
