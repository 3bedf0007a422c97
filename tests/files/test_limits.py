"""Files made to harm: out-of-range values, bombs, depth, twins, devices. Each is refused with a sentence, at once."""

import io
import json
import os
import zipfile

import numpy as np
import pytest

from cli_files import run
from files.fuzz_models import SEEDS, packed, parts, write
from files.make_formats import new_cases
from toprank import RankingTree, load
from toprank.files import archive
from toprank.files.archive import pack_arrays, unpack_arrays
from toprank.files.head import parse_head
from toprank.files.model_file import ModelFileError, numbered_parts, read_model_info
from toprank.tree.bin_mapper import BinMapper
from toprank.tree.columns import Column
from toprank.tree.structure import MAX_DEPTH

HIGH, LOW = 2**31 - 1, -(2**31)


def refused(path, info, arrays, match):
    """Load a file of these parts, which must be refused."""
    write(path, info, arrays if isinstance(arrays, bytes) else packed(arrays))
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    assert "Hint:" in str(caught.value)


def wrapping(n, last):
    """Offsets whose int32 differences wrap, so that each seems to be 0 or more."""
    at = np.zeros(n, np.int32)
    at[1:4], at[4:-1], at[-1] = [HIGH, LOW, -1], -1, last
    with np.errstate(over="ignore"):
        assert (np.diff(at) >= 0).all()
    return at


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("linear", "tree_scoring_points_at"),
        ("additive", "tree_scoring_step_at"),
        ("oblique", "tree_oblique_at"),
        ("rate", "paths_offset"),
        ("rate", "covers_offset"),
        ("treerank-forest", "tree1_oblique_at"),
        ("cost-curve", "tree2_tree_oblique_at"),
    ],
)
def test_offsets_that_wrap_are_refused(tmp_path, name, array):
    info, arrays = parts(SEEDS / f"{name}.toprank")
    arrays[array] = wrapping(len(arrays[array]), arrays[array][-1])
    refused(tmp_path / "m", info, arrays, "damaged toprank model")


def test_the_unpruned_tree_is_checked_like_the_other(tmp_path):
    info, arrays = parts(SEEDS / "treerank.toprank")
    tree = {name: array for name, array in arrays.items() if name.startswith("tree_")}
    arrays |= {name.replace("tree_", "full_", 1): array for name, array in tree.items()}
    arrays = {name: array for name, array in arrays.items() if not name.startswith("full_scoring_")}
    arrays |= {"full_scoring_kind": np.array("constant"), "full_n_features": np.array(99)}
    refused(tmp_path / "m", info, arrays, "reads 99 columns")


def test_kinds_of_conditions_and_of_columns_must_agree(tmp_path):
    info, arrays = parts(SEEDS / "rate.toprank")
    kinds, categories = [column["kind"] for column in info["columns"]], info["columns"][2]["categories"]
    assert kinds[2] == "category"
    as_category = {"kind": "category", "categories": categories}
    changed = [column | as_category if "form" not in column and "part" not in column else column
               for column in info["columns"]]  # fmt: skip
    for column in changed:
        column.pop("usual", None)
    refused(tmp_path / "m", info | {"columns": changed}, arrays, "do not fit together: the tree compares a category")
    number = {
        name: value for name, value in info["columns"][2].items() if name not in ("categories", "usual", "shared")
    }
    changed = [number | {"kind": "number"} if i == 2 else column for i, column in enumerate(info["columns"])]
    refused(tmp_path / "m", info | {"columns": changed}, arrays, "do not fit together: the tree compares a number")


@pytest.mark.parametrize(
    ("name", "array", "value", "match"),
    [
        ("forest", "n_trees", -1, "says that it has -1 parts"),
        ("forest", "n_trees", 10**12, "says that it has 1,000,000,000,000 parts"),
        ("rate", "tree_n_features", HIGH, "reads 2,147,483,647 columns|as wide as the tree"),
        ("rate", "hit_rates_average_precision", 1.5, "average precision from 0 to 1"),
    ],
)
def test_single_numbers_beyond_reason(tmp_path, name, array, value, match):
    info, arrays = parts(SEEDS / f"{name}.toprank")
    arrays[array] = np.array(value, arrays[array].dtype)
    refused(tmp_path / "m", info, arrays, match)


@pytest.mark.parametrize("entry", ["hit_rate", "training_rate", "hit_rate_low"])
def test_rates_beyond_0_and_1(tmp_path, entry):
    info, arrays = parts(SEEDS / "rate.toprank")
    info["cutoff"][entry] = 1.5
    refused(tmp_path / "m", info, arrays, "rates from 0 to 1 at its cutoff")


def test_a_choice_that_is_none_of_the_points(tmp_path):
    model = load(SEEDS / "cost-curve.toprank")
    model.with_choice(model.select(max_fpr=0.5)).save(tmp_path / "m")
    info, arrays = parts(tmp_path / "m")
    arrays["selection"][0] = -1
    refused(tmp_path / "m", info, arrays, "choice is not one of its points")


def test_points_that_all_come_from_another(tmp_path):
    info, arrays = parts(SEEDS / "cost-curve.toprank")
    arrays["moved"] = np.zeros_like(arrays["moved"])
    refused(tmp_path / "m", info, arrays, "points and those that they come from")


def test_a_column_has_flags_and_plain_categories(tmp_path):
    info, arrays = parts(SEEDS / "rate.toprank")
    for at, change in ((0, {"has_missing": {}}), (2, {"categories": [["a"], "b"]}), (2, {"shared": [None]})):
        columns = [column | change if i == at else column for i, column in enumerate(info["columns"])]
        refused(tmp_path / "m", info | {"columns": columns}, arrays, f"Column '{info['columns'][at]['name']}' has a")


def test_a_date_beyond_all_calendars_is_written_as_a_day():
    assert Column("opened", form="date").date_text(1e308).startswith("day 1")


# --- bombs --------------------------------------------------------------------------------------------------


def zipped(members, compression=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in members:
            file.writestr(name, content)
    return buffer.getvalue()


def npy(descr, shape, content=b""):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + content


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (npy("<f8", "(100000000,)"), "header says 800,000,000"),
        (npy("<U500000000", "()"), "unknown type"),
        (npy("<U999999", "()"), "not text of at most"),
        (npy("<f8", "(9999999999, 9999999999)"), "header says"),
        (npy("<f8", "(0, 999999999)"), "which no model has"),
        (npy("<f8", "(1, 1, 1, 1)", bytes(8)), "which no model has"),
        (npy("|O", "(1,)", bytes(8)), "unknown type"),
        (npy("<c16", "(1,)", bytes(16)), "unknown type"),
        (npy("<f8", "(1,) + (2,)", bytes(8)), "unknown type"),
        (npy("|b1", "(1,)", b"\x07"), "not booleans"),
        (npy("<U1", "()", b"\xff\xff\xff\x00"), "invalid text"),
        (npy("<U1", "()", b"\x00\xd8\x00\x00"), "invalid text"),
        (npy("<f8", "(" * 5000), "unknown type"),
        (b"", "unknown type"),
        (b"\x93NUMPY\x01\x00\xff\xff", "unknown type"),
    ],
    ids=range(15),
)
def test_arrays_that_declare_what_they_do_not_hold(content, match):
    with pytest.raises(ValueError, match=match):
        unpack_arrays(zipped([("a.npy", content)]))


def test_arrays_that_take_far_more_room_than_their_file():
    bomb = npy("<f8", "(8000000,)", bytes(64_000_000))
    raw = zipped([("a.npy", bomb)])
    assert len(raw) < 100_000
    with pytest.raises(ValueError, match="would take 64,000,"):
        unpack_arrays(raw)


def test_regular_arrays_of_a_real_model_are_no_bomb():
    arrays = {"zeros": np.zeros(4_000_000)}
    assert unpack_arrays(pack_arrays(arrays))["zeros"].shape == (4_000_000,)


def test_twins_and_strangers_among_the_arrays(tmp_path):
    one = npy("|u1", "(1,)", b"\x01")
    with pytest.warns(UserWarning, match="Duplicate"), pytest.raises(ValueError, match="same name"):
        unpack_arrays(zipped([("a.npy", one), ("a.npy", one)]))
    with pytest.raises(ValueError, match="is not an array"):
        unpack_arrays(zipped([("a.exe", one)]))
    with pytest.raises(ValueError, match="unknown way"):
        unpack_arrays(zipped([("a.npy", one)], zipfile.ZIP_LZMA))
    info, arrays = parts(SEEDS / "rate.toprank")
    refused(tmp_path / "m", info, arrays | {"extra": np.zeros(3)}, "'extra' is not one of this model")
    refused(tmp_path / "m", info, arrays | {"tree_rate": arrays["tree_rate"].astype(np.float32)}, "tree_?|rate")


def test_compressed_members_and_files_too_large(tmp_path, monkeypatch):
    path = tmp_path / "m"
    with zipfile.ZipFile(SEEDS / "rate.toprank") as file:
        members = [(name, file.read(name)) for name in file.namelist()]
    path.write_bytes(zipped(members))
    with pytest.raises(ModelFileError, match="is compressed"):
        load(path)
    monkeypatch.setattr(archive, "MAX_HEAD", 100)
    with pytest.raises(ModelFileError, match="more than 100"):
        load(SEEDS / "rate.toprank")
    monkeypatch.setattr(archive, "MAX_FILE", 1000)
    with pytest.raises(ModelFileError, match="1,000 at most"):
        load(SEEDS / "rate.toprank")


@pytest.mark.parametrize(
    ("raw", "match"),
    [
        (b"[" * 13 + b"]" * 13, "nested more than 12 deep"),
        (b'{"a": NaN}', "is not JSON"),
        (b'{"a": -Infinity}', "is not JSON"),
        (b'{"a": 1, "b": 2, "a": 3}', "'a' is there twice"),
        (b'{"a": "\\ud800"}', "surrogates not allowed"),
        (b"[" + b"[]," * 1_100_000 + b"[]]", "more than 2,000,000 values"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
    ],
    ids=range(7),
)
def test_descriptions_made_to_harm(raw, match):
    with pytest.raises(ValueError, match=match):
        parse_head(raw)


def test_parameters_in_parameters(tmp_path):
    info, arrays = parts(SEEDS / "rate.toprank")
    nested = {}
    for _ in range(4):
        nested = {"ranker": "RankingTree", "parameters": {"budget": nested}}
    refused(tmp_path / "m", info | {"parameters": {"budget": nested}}, arrays, "rankers deep")
    for value in ({"float": "1e5"}, {"items": [1]}, {"code": "x"}, {"ranker": "os.system", "parameters": {}}):
        refused(tmp_path / "m", info | {"parameters": {"budget": value}}, arrays, "damaged toprank model")


def test_classes_that_take_memory(tmp_path):
    info, arrays = parts(SEEDS / "rate.toprank")
    for dtype in ("<U500000000", "<M8[s]", "V8", "<c16", "<i3", "S10"):
        changed = {"classes": {"dtype": dtype, "values": ["no", "yes"]}}
        refused(tmp_path / "m", info | changed, arrays, "'classes' is not")


def test_a_tree_too_deep_to_read(tmp_path):
    X = np.arange(3000.0)[:, np.newaxis]
    y = np.arange(3000) % 2
    model = RankingTree(max_depth=2, cv=0).fit(X, y)
    info, arrays = (model.save(tmp_path / "m"), parts(tmp_path / "m"))[1]
    refused(tmp_path / "m", info, arrays | deep_tree(MAX_DEPTH + 1), "1,001 conditions deep")


def deep_tree(depth):
    """A chain of so many conditions, each with a leaf on its left."""
    n = 2 * depth + 1
    inner = np.arange(n) % 2 == 0
    inner[-1] = False
    node = np.arange(n, dtype=np.int32)
    leaf = np.where(inner, -1, np.minimum(node // 2, depth)).astype(np.int32)
    known = np.where(inner, np.nan, 1.0 - leaf / (depth + 1))
    arrays = {
        "kind": inner.astype(np.uint8), "feature": np.where(inner, 0, -1).astype(np.int32),
        "threshold": np.where(inner, node * 1.0, np.nan), "left": np.where(inner, node + 1, -1).astype(np.int32),
        "right": np.where(inner, node + 2, -1).astype(np.int32), "missing_left": np.zeros(n, np.uint8),
        "positive": np.ones(n), "negative": np.ones(n), "leaf": leaf, "score": known, "rate": np.nan_to_num(known),
        "category_at": np.full(n, -1, np.int32), "gain": inner * 1.0, "oblique_at": np.zeros(n + 1, np.int32),
    }  # fmt: skip
    return {f"tree_{name}": array for name, array in arrays.items()}


# --- paths and widths ---------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="FIFOs and devices are those of POSIX")
def test_a_fifo_and_a_device_are_no_model_files(tmp_path):
    fifo = tmp_path / "model.toprank"
    os.mkfifo(fifo)
    for path, what in ((fifo, "a FIFO"), ("/dev/zero", "a device")):
        with pytest.raises(ModelFileError, match=f"is {what}"):
            load(path)
    done = run("describe", fifo)
    assert done.code == 2
    assert "FIFO" in done.err


def test_trees_and_bins_look_at_the_width_of_a_table():
    tree = load(SEEDS / "rate.toprank").tree_
    for X in (np.zeros((3, tree.n_features - 1)), np.zeros((3, tree.n_features + 1)), np.zeros(3)):
        for method in (tree.apply, tree.decision_function, tree.paths, tree.scores_and_leaves):
            with pytest.raises(ValueError, match=rf"has {tree.n_features} columns"):
                method(X)
    mapper = BinMapper().fit(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="bins were fitted on 2 columns"):
        mapper.transform(np.zeros((3, 3)))


def test_the_head_is_read_without_the_arrays(tmp_path, monkeypatch):
    from toprank.files import model_file

    def fail(_):
        raise AssertionError("the arrays were read")

    monkeypatch.setattr(model_file, "unpack_arrays", fail)
    assert read_model_info(SEEDS / "rate.toprank")["class"] == "RankingTree"


def test_parts_by_number():
    assert numbered_parts({"tree0_a": 1, "tree1_a": 2, "tree01_a": 3, "tree2_a": 4}, "tree", 2) == [{"a": 1}, {"a": 2}]


def test_a_sound_model_of_each_kind_is_used_as_it_was():
    """The seeds of the tests above are sound: what is refused is refused for its damage."""
    for path in SEEDS.glob("*.toprank"):
        load(path).predict(new_cases())
    assert json.loads((SEEDS / "outputs.json").read_text())


def test_a_tree_too_deep_for_a_file_is_not_saved(tmp_path, monkeypatch):
    from toprank.tree import structure

    models = [load(SEEDS / f"{name}.toprank") for name in ("rate", "forest", "classes")]
    monkeypatch.setattr(structure, "MAX_DEPTH", 1)
    for model in models:
        with pytest.raises(ValueError, match="conditions deep"):
            model.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())
