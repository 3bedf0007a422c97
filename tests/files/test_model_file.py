"""Model files: what comes back, what is refused, and that no file is ever half-written."""

import io
import json
import os
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from ranker_cases import RANKERS, fewer, make_cases
from toprank import MetaAP, RankingTree, TAOClassifier, load
from toprank.files import atomic, model_file
from toprank.files.model_file import FORMAT_VERSION, ModelFileError, read_model_info

FAST = MetaAP(max_depth=2, leaf_depth=2, min_samples_leaf=5, ccp_alpha="cv", cv=2)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.toprank"
    clone(FAST).fit(*make_cases(200)).save(path)
    return path


def three_classes(n):
    """A table and three classes that it tells."""
    X, y = make_cases(n)
    return X, np.where(y, "yes", np.where(X["size"] > 0.5, "maybe", "no"))


@pytest.fixture(scope="module")
def saved_classes(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "classes.toprank"
    TAOClassifier(max_depth=2, alpha=0.3).fit(*three_classes(200)).save(path)
    return path


@pytest.fixture(scope="module", params=["saved", "saved_classes"])
def any_saved(request):
    """A file of a ranker, and one of a model that ranks nothing."""
    return request.getfixturevalue(request.param)


def parts(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("model.json")), archive.read("arrays.npz")


def write(path, info, arrays, sign=True):
    """A model file of these parts, with a checksum that fits unless `sign` is False."""
    if sign and isinstance(info, dict):
        info = info | {"checksum": model_file._checksum(info, arrays)}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", info if isinstance(info, bytes) else json.dumps(info))
        archive.writestr("arrays.npz", arrays)
    return path


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def arrays_of(raw):
    with np.load(io.BytesIO(raw)) as archive:
        return dict(archive)


def load_or_complain(path):
    """The model and nothing, or nothing and the sentence."""
    try:
        return load(path), ""
    except ModelFileError as error:
        return None, str(error)


def plain(parameters):
    """Parameters that are no estimators; those of an estimator are among them by name."""
    return {name: value for name, value in parameters.items() if not hasattr(value, "fit")}


@pytest.mark.parametrize("kind", RANKERS)
def test_everything_comes_back(kind, tmp_path):
    X, y = make_cases(200)
    weight = np.random.default_rng(0).integers(0, 4, 200).astype(float)
    model = clone(RANKERS[kind]).set_params(budget=20).fit(X, np.where(y, "yes", "no"), weight)
    path = tmp_path / "model.toprank"
    model.save(str(path))
    back = load(path)
    assert type(back) is type(model)
    assert plain(back.get_params()) == plain(model.get_params())
    assert {*vars(back)} == {*vars(model)}
    assert back.columns_ == model.columns_
    assert back.cutoff_ == model.cutoff_
    assert back.to_plain() == model.to_plain()
    assert back.summary() == model.summary()
    assert back.to_text() == model.to_text()
    assert back.data_hash_ == model.data_hash_
    assert (back.n_cases_, back.n_positives_) == (model.n_cases_, model.n_positives_)
    assert back.rules().equals(model.rules())
    assert back.top_k(X, 7).equals(model.top_k(X, 7))
    assert [str(e) for e in back.explain(X.head(3))] == [str(e) for e in model.explain(X.head(3))]
    for method in ("decision_function", "predict", "predict_proba", "apply"):
        assert np.array_equal(getattr(back, method)(X), getattr(model, method)(X))
    assert np.array_equal(back.feature_importances_, model.feature_importances_)
    again = tmp_path / "again.toprank"
    back.save(again)
    assert parts(again)[1] == parts(path)[1]


def test_the_file_says_what_it_holds(saved):
    info = read_model_info(saved)
    assert (info["format"], info["format_version"], info["class"]) == ("toprank-model", FORMAT_VERSION, "MetaAP")
    assert [column["name"] for column in info["columns"]] == ["size", "age", "place"]
    assert info["columns"][2]["categories"] == ["centre", "east", "north", "south", "west"]
    assert info["figures"]["n_cases"] == 200
    assert {"toprank", "numpy", "scikit-learn", "numba"} == {*info["packages"]}
    assert len(info["data_hash"]) == 32
    assert info["created"].endswith("+00:00")


def test_an_older_file_is_refused(any_saved, tmp_path):
    info, raw = parts(any_saved)
    with pytest.raises(
        ModelFileError, match=rf"has model format 1, this toprank reads {FORMAT_VERSION}\. Hint: refit the model"
    ):
        load(write(tmp_path / "m", info | {"format_version": 1}, raw))


def test_columns_that_do_not_fit_together_are_refused(saved, tmp_path):
    info, raw = parts(saved)
    first, *others = info["columns"]
    for change in (
        {"left_out": {"nowhere": "identifier"}},
        {"left_out": ["size"]},
        {"left_out": {"size": 1}},
        {"input_names": ["size", "age"]},
        {"columns": [first | {"source": "nowhere"}, *others]},
        {"columns": [first | {"form": "os.system"}, *others]},
        {"columns": [first | {"kind": "date"}, *others]},
        {"columns": [first | {"part": "month"}, *others]},
        {"columns": [first | {"unit": 3}, *others]},
        {"columns": [first, *others[:-1], others[-1] | {"name": first["name"]}]},
    ):
        with pytest.raises(ModelFileError, match=r"damaged toprank model.*Hint:"):
            load(write(tmp_path / "m", info | change, raw))


def test_what_json_cannot_hold_comes_back_plain(tmp_path):
    X, y = make_cases(100)
    parameters = {"min_gain": -np.inf, "categorical_features": np.array(["place"]), "pos_label": np.int64(1),
                  "random_state": np.random.RandomState(0), "max_depth": np.int64(2)}  # fmt: skip
    model = MetaAP(min_samples_leaf=5, **parameters).fit(X, y)
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert back.get_params() == model.get_params() | {"random_state": None, "categorical_features": ["place"]}


@pytest.mark.parametrize("model", [RankingTree(), TAOClassifier()], ids=str)
def test_classes_that_json_cannot_hold(tmp_path, model):
    X, y = make_cases(100)
    model.fit(X, np.array([np.int64(label) for label in y], dtype=object)).save(tmp_path / "m")
    assert [type(label) for label in load(tmp_path / "m").predict(X)] == [int] * 100
    model.fit(X, np.where(y, np.datetime64("2024-01-01"), np.datetime64("2025-01-01")))
    with pytest.raises(TypeError, match=r"The class .* has the type datetime64, which .* can hold, expected .* Hint:"):
        model.save(tmp_path / "dates")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_arrays_of_other_libraries_among_the_parameters_come_back(tmp_path):
    X, y = three_classes(100)
    model = TAOClassifier(categorical_features=X.columns[2:], costs=pd.Series([1.0, 2.0, 3.0])).fit(X, y)
    model.save(tmp_path / "m")
    told = load(tmp_path / "m").get_params()
    assert (told["categorical_features"], told["costs"]) == (["place"], [1.0, 2.0, 3.0])


def test_categories_of_every_kind_come_back(tmp_path):
    rng = np.random.default_rng(0)
    X = np.array(
        [[np.int64(v % 3), np.float64(v % 2), bool(v % 2), np.str_("ab"[v % 2])] for v in range(60)], dtype=object
    )
    model = MetaAP(min_samples_leaf=3, categorical_features=[0, 1]).fit(X, rng.random(60) < 0.4)
    assert [c.categories for c in model.columns_] == [(0, 1, 2), (0.0, 1.0), (False, True), ("a", "b")]
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").columns_ == model.columns_


# Files that are refused


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no model file .*none\.toprank\. Hint:"):
        load(tmp_path / "none.toprank")
    with pytest.raises(ModelFileError, match=r"is a folder, expected a model file\. Hint:"):
        load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PK\x03\x04", b"\x00" * 100, b"PK\x05\x06" + b"\x00" * 18])
def test_foreign_files(tmp_path, content):
    path = tmp_path / "model.toprank"
    path.write_bytes(content)
    with pytest.raises(
        ModelFileError, match=r"model\.toprank .*not? .*toprank model.*Hint:|cannot be read as a toprank model.*Hint:"
    ):
        load(path)


def test_a_foreign_zip(tmp_path):
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ModelFileError, match=r"is a zip file but not a toprank model\. Hint:"):
        load(path)
    for info in ([1, 2], {"format": "other"}, b"{", b"\xff\xfe", b"[" * 100_000):
        with pytest.raises(ModelFileError, match=r"toprank model.*Hint:"):
            load(write(path, info, npz(), sign=False))


def test_a_truncated_file(any_saved, tmp_path):
    whole, path = any_saved.read_bytes(), tmp_path / "model.toprank"
    ends = range(len(whole) - 200, len(whole))  # without its own list of parts a zip reader finds that of the arrays
    for size in [*range(0, len(whole), 211), *ends]:
        path.write_bytes(whole[:size])
        with pytest.raises(ModelFileError, match=r"cannot be read as a toprank model: it is truncated.*Hint:"):
            load(path)


def test_arrays_of_something_else(tmp_path):
    path = tmp_path / "arrays.npz"
    np.savez(path, x=np.zeros(3))
    with pytest.raises(ModelFileError, match=r"is a zip file but not a toprank model\. Hint:"):
        load(path)


@given(place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_one_changed_byte_is_noticed_or_harmless(any_saved, tmp_path_factory, place, flip):
    whole = bytearray(any_saved.read_bytes())
    whole[int(place * len(whole))] ^= flip
    path = tmp_path_factory.getbasetemp() / "flipped.toprank"
    path.write_bytes(whole)
    model, complaint = load_or_complain(path)
    if model is None:
        assert "Hint:" in complaint
    else:
        assert model.tree_ == load(any_saved).tree_  # a byte that zip does not use, such as a date


def test_a_tampered_file(any_saved, tmp_path):
    info, raw = parts(any_saved)
    path = tmp_path / "model.toprank"
    sentence = r"was changed after it was saved: its checksum does not match\. Hint:"
    with pytest.raises(ModelFileError, match=sentence):
        load(write(path, info | {"positive_index": 0}, raw, sign=False))
    arrays = arrays_of(raw)
    arrays["tree_threshold"] = arrays["tree_threshold"] + 1.0
    with pytest.raises(ModelFileError, match=sentence):
        load(write(path, info, npz(**arrays), sign=False))
    with pytest.raises(ModelFileError, match=sentence):
        load(write(path, info | {"checksum": None}, raw, sign=False))


def test_a_newer_file_and_an_unknown_class(any_saved, tmp_path):
    info, raw = parts(any_saved)
    for version in (FORMAT_VERSION + 1, 99, "1", None, FORMAT_VERSION + 0.5):
        with pytest.raises(
            ModelFileError, match=rf"has model format {version}, this toprank reads {FORMAT_VERSION}\. Hint: upgrade"
        ):
            load(write(tmp_path / "m", info | {"format_version": version}, raw))
    for name in ("os.system", "GridSearchCV", None):
        with pytest.raises(
            ModelFileError,
            match=r"holds a model of class .*known are MetaAP, MetaAPForest, .*TAOTree, .*\. Hint:",
        ):
            load(write(tmp_path / "m", info | {"class": name}, raw))


def test_pickled_arrays_are_refused(any_saved, tmp_path):
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    info, raw = parts(any_saved)
    harmful = npz(**arrays_of(raw) | {"tree_threshold": np.array([Harm()], dtype=object)})
    with pytest.raises(ModelFileError, match=r"holds arrays that cannot be read .*has an unknown type.*Hint:"):
        load(write(tmp_path / "m", info, harmful))
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize(
    "change",
    [
        {"columns": "abc"},
        {"columns": [{"name": "a"}]},
        {"columns": [{"name": "a", "kind": "number", "has_missing": False}]},
        {"parameters": {"max_depth": 3, "colour": "red"}},
        {"parameters": [1]},
        {"parameters": {"max_depth": "deep"}},
        {"classes": {"dtype": "<i8", "values": [0, 1, 2]}},
        {"classes": {"dtype": "no type", "values": [0, 1]}},
        {"positive_index": 2},
        {"positive_index": None},
        {"cutoff": {"k": 1}},
        {"figures": {"n_cases": 0, "n_positives": 0}},
        {"backend": "os"},
        {"feature_names": ["a"]},
    ],
    ids=str,
)
def test_a_damaged_description_with_a_fitting_checksum(saved, tmp_path, change):
    info, raw = parts(saved)
    with pytest.raises(ModelFileError, match=r"m is a damaged toprank model: .*Hint: save it again"):
        load(write(tmp_path / "m", info | change, raw))


@pytest.mark.parametrize("lost", ["columns", "parameters", "classes", "cutoff", "figures", "backend", "data_hash"])
def test_a_part_of_the_description_is_missing(saved, tmp_path, lost):
    info, raw = parts(saved)
    del info[lost]
    with pytest.raises(ModelFileError, match=rf"damaged toprank model: '{lost}'"):
        load(write(tmp_path / "m", info, raw))


@pytest.mark.parametrize("lost", ["columns", "parameters", "classes", "backend", "data_hash"])
def test_a_part_of_the_description_of_classes_is_missing(saved_classes, tmp_path, lost):
    info, raw = parts(saved_classes)
    del info[lost]
    with pytest.raises(ModelFileError, match=rf"damaged toprank model: '{lost}'"):
        load(write(tmp_path / "m", info, raw))


DAMAGED = {
    "labels and classes": {"label": lambda label: np.where(label < 0, label, 3)},
    "counts and classes": {"class_counts": lambda counts: counts - counts.max()},
    "costs and classes": {"costs": lambda costs: costs * np.inf},
    "objectives": {"objective_path": lambda path: path[:0]},
    "tree and leaves": {"tree_leaf": lambda leaf: np.where(leaf < 0, leaf, leaf.max() - leaf)},
}


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("what", DAMAGED)
def test_classes_that_do_not_fit_the_tree(saved_classes, tmp_path, what):
    info, raw = parts(saved_classes)
    arrays = arrays_of(raw)
    for name, change in DAMAGED[what].items():
        arrays[name] = change(arrays[name])
    if what == "tree and leaves":  # scores fall along the leaves
        arrays["tree_score"] = np.where(arrays["tree_leaf"] < 0, np.nan, 1 - arrays["tree_leaf"] / 8)
    path = write(tmp_path / "m", info, npz(**arrays))
    with pytest.raises(ModelFileError, match=f"is a damaged toprank model: The model's {what} do not fit together. H"):
        load(path)
    for values in (["yes", "no"], ["yes", "no", "no"], [], [["yes"], ["no"], ["maybe"]]):
        with pytest.raises(ModelFileError, match="is a damaged toprank model: "):
            load(write(path, info | {"classes": {"dtype": "object", "values": values}}, raw))


@fewer(2)
@given(data=st.data())
def test_damaged_arrays_with_a_fitting_checksum(any_saved, tmp_path_factory, data):
    """Whatever an array is changed to, the file is refused, or the tree is one that `check` accepts."""
    info, raw = parts(any_saved)
    arrays = arrays_of(raw)
    name = data.draw(st.sampled_from(sorted(arrays)))
    array = arrays[name]
    change = data.draw(st.sampled_from(["drop", "shorten", "type", "value"]))
    if change == "drop":
        del arrays[name]
    elif change == "shorten":
        arrays[name] = array[:-1] if array.ndim and len(array) else np.zeros(3, array.dtype)
    elif change == "type":
        arrays[name] = np.array(["x"] * max(array.size, 1))
    elif array.size and array.dtype.kind in "fiu":
        flat = array.copy().reshape(-1)
        flat[data.draw(st.integers(0, array.size - 1))] = data.draw(st.sampled_from([0, 1, 99]))
        arrays[name] = flat.reshape(array.shape)
    path = write(tmp_path_factory.getbasetemp() / "damaged.toprank", info, npz(**arrays))
    model, complaint = load_or_complain(path)
    if model is None:
        assert "damaged toprank model" in complaint or "holds arrays that cannot be read" in complaint
        assert "Hint:" in complaint
    else:
        model.tree_.check()
        assert np.isfinite(model.predict_proba(make_cases(20)[0])).all()
        assert np.isin(model.predict(make_cases(20)[0]), model.classes_).all()


# Files that cannot be written


def break_replace(monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(atomic.os, "replace", fail)


@pytest.mark.parametrize("there_before", [False, True])
def test_a_failure_in_the_middle_leaves_the_folder_as_it_was(saved, tmp_path, monkeypatch, there_before):
    path = tmp_path / "model.toprank"
    if there_before:
        path.write_bytes(b"old")
    break_replace(monkeypatch, OSError(28, "No space left on device"))
    with pytest.raises(OSError, match=r"Cannot write .*model\.toprank: No space left on device\. Hint:"):
        load(saved).save(path)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == (
        [("model.toprank", b"old")] if there_before else []
    )


def test_an_interrupt_leaves_nothing_either(saved, tmp_path, monkeypatch):
    break_replace(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        load(saved).save(tmp_path / "model.toprank")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_while_writing(saved, tmp_path, monkeypatch):
    class FullDisk(io.BytesIO):
        def write(self, _):
            raise OSError(28, "No space left on device")

    def open_full(path, *_, **__):
        path.touch()
        return FullDisk()

    model = load(saved)
    monkeypatch.setattr(atomic, "open", open_full, raising=False)
    with pytest.raises(OSError, match=r"Cannot write .*No space left on device"):
        model.save(tmp_path / "model.toprank")
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be_written(saved, tmp_path, monkeypatch):
    model = load(saved)
    with pytest.raises(FileNotFoundError, match=r"Cannot write .*none does not exist\. Hint:"):
        model.save(tmp_path / "none" / "model.toprank")
    with pytest.raises(IsADirectoryError, match=r"Cannot write .*: it is a folder, .* Hint:"):
        model.save(tmp_path)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "secret.part")

    monkeypatch.setattr(atomic, "open", refuse, raising=False)
    with pytest.raises(
        PermissionError, match=r"Cannot write .*model\.toprank: Permission denied\. Hint: check the permissions"
    ):
        model.save(tmp_path / "model.toprank")
    assert not list(tmp_path.iterdir())


def test_saving_replaces_an_older_file_whole(saved, tmp_path):
    path = tmp_path / "model.toprank"
    path.write_bytes(b"x" * 1_000_000)
    load(saved).save(path)
    assert load(path).tree_ == load(saved).tree_
    assert [p.name for p in tmp_path.iterdir()] == ["model.toprank"]
