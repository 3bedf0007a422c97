"""Roles of columns: what is left out, what text is read as, and that scoring does it again."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from ranker_cases import CLASSES, RANKERS
from toprank import MetaAP, RankingTree, TAOClassifier, load
from toprank.data.column_roles import LeftOutWarning, is_id_name, learn_columns
from toprank.data.encoding import encode
from toprank.data.table import read_table
from toprank.tree.columns import Column

N = 400
WORDS = np.array(["the", "claim", "was", "paid", "late", "again", "by", "letter"])


def make_table(n=N, seed=0):
    """A frame with a column of each role, and outcomes that depend on the date and the amount."""
    rng = np.random.default_rng(seed)
    day = rng.integers(17_000, 19_000, n)
    amount = rng.lognormal(8, 1, n).round(2)
    opened = pd.to_datetime(day, unit="D")
    frame = pd.DataFrame({
        "case_id": rng.permutation(n) + 1000,
        "token": [f"{i:x}-{rng.integers(10**9)}" for i in range(n)],
        "remark": [f"{' '.join(rng.choice(WORDS, 7))} {i}" for i in range(n)],
        "version": "v1",
        "edition": 3,
        "nothing": np.nan,
        "opened": opened.strftime("%d.%m.%Y"),
        "closed": opened + pd.to_timedelta(rng.integers(0, 10**6, n), unit="s"),
        "amount": [f"{each:,.2f} EUR" for each in amount],
        "place": rng.choice(["north", "south"], n),
        "size": rng.normal(size=n),
    })  # fmt: skip
    return frame, ((day > 18_000) & (amount > 3_000)).astype(int)


LEFT_OUT = {
    "case_id": "identifier",
    "token": "identifier",
    "remark": "free text",
    "version": "constant",
    "edition": "constant",
    "nothing": "no values",
}
LIBRARIES = {"pandas": lambda f: f, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


def quiet_fit(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def roles(values, name="c", **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = pd.DataFrame({name: values, "other": np.linspace(0, 1, len(values))})
        return learn_columns(read_table(frame), **parameters)


@pytest.mark.parametrize("library", LIBRARIES)
def test_roles_are_the_same_in_every_library(library):
    X, _ = make_table()
    with pytest.warns(LeftOutWarning) as caught:
        columns, left_out = learn_columns(read_table(LIBRARIES[library](X)))
    assert left_out == LEFT_OUT
    assert set(caught[0].message.columns) == set(LEFT_OUT)
    assert all(repr(name) in str(caught[0].message) for name in LEFT_OUT)
    assert [(column.name, column.kind, column.input_name) for column in columns] == [
        ("opened", "date", "opened"),
        ("opened (month)", "category", "opened"),
        ("opened (weekday)", "category", "opened"),
        ("closed", "date", "closed"),
        ("closed (month)", "category", "closed"),
        ("closed (weekday)", "category", "closed"),
        ("amount", "number", "amount"),
        ("place", "category", "place"),
        ("size", "number", "size"),
    ]
    assert (columns[0].form, columns[0].has_time, columns[3].form, columns[3].has_time) == ("dmy", False, "date", True)
    assert (columns[6].form, columns[6].unit) == ("1,234.56", "EUR")


def test_the_matrix_is_the_same_in_every_library_and_for_each_row_alone():
    X, _ = make_table()
    with pytest.warns(LeftOutWarning):
        columns = learn_columns(read_table(X)).columns
    whole = encode(read_table(X), columns)
    for convert in LIBRARIES.values():
        table = convert(X)
        assert np.array_equal(encode(read_table(table), columns), whole, equal_nan=True)
    for row in range(0, N, 37):
        alone = encode(read_table(X.iloc[[row]]), columns)
        assert np.array_equal(alone[0], whole[row], equal_nan=True)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_ranker_leaves_out_and_reads_again(kind, tmp_path):
    X, y = make_table()
    with pytest.warns(LeftOutWarning) as caught:
        model = clone(RANKERS[kind]).fit(X, y)
    assert {warning.filename for warning in caught} == {__file__}
    assert model.left_out_ == LEFT_OUT
    assert model.n_features_in_ == len(X.columns) == len(model.feature_names_in_)
    assert len(model.feature_importances_) == len(model.columns_) == 9
    score = model.decision_function(X)
    assert model.score(X, y) > 0.9
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert (back.columns_, back.left_out_, back.n_features_in_) == (model.columns_, LEFT_OUT, 11)
    assert np.array_equal(back.decision_function(X), score)
    assert np.array_equal(back.decision_function(pl.from_pandas(X)), score)
    assert np.array_equal(model.decision_function(X.drop(columns=["token", "nothing"])), score)
    quiet_fit(model.set_params(keep_columns=["case_id", "token"]), X, y)
    assert {"case_id", "token"} <= {column.name for column in model.columns_}
    assert "remark" in model.left_out_


def test_a_classifier_leaves_out_too():
    X, y = make_table()
    with pytest.warns(LeftOutWarning):
        model = TAOClassifier(max_depth=2).fit(X, y)
    assert model.left_out_ == LEFT_OUT
    assert model.score(X, y) > 0.9


def test_conditions_on_dates_are_written_as_dates():
    X = make_table()[0][["opened", "size"]]
    model = quiet_fit(RankingTree(max_depth=2, min_samples_leaf=5), X, X["opened"].str[-4:] > "2020")
    assert "opened <= 2020-12-" in model.to_text()
    assert "opened <= 2020-12-" in model.to_text(exact=True)
    assert model.explain(X)[0].steps[0].value == model.columns_[0].date_text(
        encode(read_table(X[["opened"]]), model.columns_[:1])[0, 0]
    )


# What is left out


@pytest.mark.parametrize(
    ("values", "name", "reason"),
    [
        (np.arange(N) + 7, "c", "identifier"),
        (np.random.default_rng(0).permutation(N) * 2, "c", "identifier"),  # half of its range
        (np.arange(N) * 1000, "c", None),  # an amount may have a different value in each row
        (np.arange(N) * 1000, "customer_id", "identifier"),
        (np.arange(N) * 1000.0, "customerId", "identifier"),
        (np.arange(N) * 1000 + 0.5, "customer_id", None),
        (np.r_[0, np.arange(N - 1)], "customer_id", None),  # two rows have the same
        (np.r_[np.nan, np.arange(N - 1)], "c", None),
        (np.random.default_rng(0).normal(size=N), "id", None),
        ([f"u{i}" for i in range(N)], "c", "identifier"),
        ([f"u{i % 300}" for i in range(N)], "c", None),
        ([f"u{i}" for i in range(N - 30)] + [None] * 30, "c", "identifier"),
        ([f"it was said that number {i % 250} came late again" for i in range(N)], "c", "free text"),
        ([f"see fax {i % 250} to us" for i in range(N)], "c", "free text"),  # short, too
        (["a fairly long name of a category", "another long name of a category"] * (N // 2), "c", None),
        (["x"] * N, "c", "constant"),
        (["x"] * (N - 1) + [None], "c", None),  # that it is missing may tell
        ([1.5] * N, "c", "constant"),
        ([1.5] * (N - 1) + [np.nan], "c", None),
        ([True] * N, "c", "constant"),
        ([None] * N, "c", "no values"),
        (pd.to_datetime(["2024-01-01"] * N), "c", "constant"),
        (pd.date_range("2020-01-01", periods=N), "c", None),
        (pd.Series([f"u{i}" for i in range(N)], dtype="category"), "c", "identifier"),
        ([f"${i}.50" if i % 4 else f"({i}.50)" for i in range(N)], "c",
         "looks like numbers, but 100 of 400 cells are not written as 1,234.56 $, such as '(0.50)'"),
        ([f"{i}.5k" for i in range(N)], "c", "looks like numbers with k or M, such as '0.5k', which are not read"),
        ([f"{i}" if i % 4 else f"A{i}" for i in range(N)], "c", "identifier"),
    ],
)  # fmt: skip
def test_what_is_left_out(values, name, reason):
    assert roles(values, name).left_out.get(name) == reason
    assert name not in roles(values, name, keep_columns=[name]).left_out
    assert roles(values, name, keep_columns="all").left_out == {}
    assert roles(values[:49], name).left_out == {}  # too few rows to tell


def test_categories_that_are_declared_stay():
    columns, left_out = roles([f"u{i}" for i in range(200)], categorical_features=["c"])
    assert not left_out
    assert len(columns[0].categories) == 200


def test_arrays_of_numbers_are_taken_as_they_are():
    X = np.column_stack((np.arange(N), np.ones(N), np.full(N, np.nan), np.linspace(0, 1, N)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        columns, left_out = learn_columns(read_table(X))
    assert [column.name for column in columns] == ["x0", "x1", "x2", "x3"]
    assert not left_out


def test_arrays_of_objects_have_roles_too():
    X, y = make_table()
    names = ["token", "opened", "amount", "place", "size"]
    array = X[names].to_numpy(object)
    model = quiet_fit(MetaAP(), array, y)
    assert model.left_out_ == {"x0": "identifier"}
    assert [column.name for column in model.columns_] == [
        "x1", "x1 (month)", "x1 (weekday)", "x2", "x3", "x4"]  # fmt: skip
    assert np.array_equal(model.decision_function(array), quiet_fit(MetaAP(), X[names], y).decision_function(X[names]))


def test_a_table_of_nothing_to_learn_from():
    y = np.arange(N) % 5 == 0
    with pytest.raises(ValueError, match=r"no column to learn from: 'a' \(identifier\).*keep_columns=\['a'\]"):
        RankingTree().fit(pd.DataFrame({"a": [f"u{i}" for i in range(N)]}), y)
    model = RankingTree().fit(pd.DataFrame({"a": ["x"] * N, "b": [1.0] * N}), y)  # nothing to learn, nothing wrong
    assert (model.n_leaves_, model.left_out_) == (1, {})


def test_names_that_look_like_identifiers():
    for name in ("ID", "id", "PassengerId", "policy_number", "invoice No", "row"):
        assert is_id_name(name)
    for name in ("paid", "amount", "", "123", "idea", "number_of_children"):
        assert not is_id_name(name)


@pytest.mark.parametrize("parameter", ["keep_columns", "categorical_features"])
def test_columns_that_are_not_there(parameter):
    with pytest.raises(ValueError, match=rf"{parameter} names 'nowhere', but X has no such column.*Hint:"):
        roles([1.0, 2.0], **{parameter: ["nowhere"]})


# What text is read as


def test_declared_categories_are_not_read():
    dates = ["2024-01-31", "2024-02-29"] * 30
    assert roles(dates).columns[0].kind == "date"
    assert roles(dates, categorical_features=[0]).columns[0] == Column("c", ("2024-01-31", "2024-02-29"))
    assert roles(pd.Series(dates, dtype="category")).columns[0].kind == "category"


def test_dates_that_fit_two_orders_are_day_first_and_say_so():
    X = pd.DataFrame({"d": ["03/04/2024", "05/06/2024"] * 30})
    with pytest.warns(UserWarning, match="'d' holds dates that could be day first or month first.*day first"):
        columns = learn_columns(read_table(X)).columns
    assert columns[0].form == "dmy"


def test_derived_columns_have_names_of_their_own():
    X, y = make_table()
    X = X[["opened"]].assign(**{"opened (month)": np.linspace(0, 1, N)})
    model = quiet_fit(RankingTree(max_depth=2), X, y)
    assert [column.name for column in model.columns_] == [
        "opened", "opened (month 2)", "opened (weekday)", "opened (month)"]  # fmt: skip
    assert len(model.decision_function(X)) == N


def test_stray_cells_are_missing_and_counted():
    X, y = make_table()
    X = X[["opened", "amount", "size"]].copy()
    X.loc[[1, 2], "amount"] = "n/a"
    X.loc[3, "opened"] = "soon"
    X.loc[4, "amount"] = " "
    with pytest.warns(UserWarning, match="is read as") as caught:
        model = RankingTree().fit(X, y)
    told = sorted(str(warning.message) for warning in caught)
    assert len(told) == 2
    assert ("2 cells" in told[0], "'n/a'" in told[0], "1 cell" in told[1], "'soon'" in told[1]) == (True,) * 4
    with pytest.warns(UserWarning, match="but 1 cell holds none, such as 'n/a'"):
        matrix = encode(read_table(X.iloc[[1]]), model.columns_)
    amount = [column.name for column in model.columns_].index("amount")
    assert np.isnan(matrix[0, amount])


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([*map(str, range(30))] * 20 + ["n/a", "?", "-", "unknown"], "number"),
        (["0.5", "1.5"] * 20 + ["?", "-", "unknown", ""], "number"),
        ([*"012345" * 20], "category"),  # codes
        ([*"012345" * 20, "n/a"], "category"),  # the same codes
        ([*"01" * 20, *["n/a"] * 5], "category"),  # too many words
        ([*"012345" * 20, "None"], "category"),  # may mean zero
        ([*"012345" * 20, "10+"], "category"),
        (["1"] * 20 + ["no"], "category"),
        (["10115", "80331", "20095"] * 20 + ["n/a"], "category"),
        (["0115", "331"] * 20 + ["n/a"], "category"),
    ],
)
def test_a_few_words_change_neither_numbers_nor_codes(cells, kind):
    columns, _ = learn_columns(read_table(pl.DataFrame({"c": cells})))
    assert [column.kind for column in columns] == [kind]


def test_scored_tables_may_hold_numbers_and_dates_as_such():
    X, y = make_table()
    X = X[["opened", "amount", "size"]]
    model = RankingTree(max_depth=3).fit(X, y)
    typed = X.assign(
        opened=pd.to_datetime(X["opened"], format="%d.%m.%Y"),
        amount=X["amount"].str.replace(r"[, A-Z]", "", regex=True).astype(float),
    )
    assert np.array_equal(model.decision_function(typed), model.decision_function(X))
    empty = X.assign(opened=None, amount=None).iloc[:2]
    assert np.isnan(encode(read_table(empty), model.columns_)[:, 0]).all()


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        (Column("c", form="dmy"), [1.0, 2.0], "'c' held dates in training, but holds numbers now"),
        (Column("c", form="date"), [True, False], "'c' held dates in training, but holds booleans now"),
        (Column("c", form="1,234.56"), [True, False], "but holds booleans now"),
        (Column("c", form="1,234.56"), pd.to_datetime(["2024-01-01"] * 2), "in training, but holds dates now"),
        (Column("c", ("a",)), pd.to_datetime(["2024-01-01"] * 2), "strings in training, but holds dates now"),
        (Column("c"), pd.to_datetime(["2024-01-01"] * 2), "was a number in training but holds dates now"),
    ],
)  # fmt: skip
def test_columns_that_changed_their_kind(column, values, message):
    with pytest.raises(TypeError, match=rf"{message}.*Hint:"):
        encode(read_table(pd.DataFrame({"c": values})), [column])


def test_months_that_training_never_saw_are_missing():
    column = Column("d (month)", ("Jan", "Mar"), source="d", form="ymd", part="month")
    sentence = (
        r"'d \(month\)' holds 1 category in 1 row that training never saw, such as 'Feb'; it is scored like a missing"
    )
    with pytest.warns(UserWarning, match=sentence):
        matrix = encode(read_table(pd.DataFrame({"d": ["2024-01-05", "2024-02-05", "2024-03-05", None]})), [column])
    assert np.array_equal(matrix[:, 0], [0.0, np.nan, 1.0, np.nan], equal_nan=True)


def test_whole_numbers_beyond_floats_get_a_sentence():
    frame = pd.DataFrame({"a": pd.Series([10**400, 1] * 20, dtype=object)})
    with pytest.raises(ValueError, match=r"Column 'a' holds an integer of 401 digits.*Hint:"):
        RankingTree().fit(frame, np.arange(40) % 2)


# Tables that lack columns


def test_all_missing_columns_are_named_at_once():
    X, y = make_table()
    model = quiet_fit(RankingTree(), X, y)
    with pytest.raises(ValueError, match="missing from X") as caught:
        model.decision_function(X.drop(columns=["token", "place"]).rename(columns={"amount": "Amount"}))
    text = str(caught.value).splitlines()[-1]
    assert text.startswith("2 columns were used to train this model but are missing from X (9 columns read)")
    assert ("'amount', 'place'" in text, "'Amount' for 'amount'" in text, "'token'" in text) == (True, True, False)


# One positive


@pytest.mark.parametrize("kind", RANKERS)
def test_one_positive_gives_a_ranking(kind):
    X, y = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) == 7
    model = clone(RANKERS[kind])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert 0 <= model.predict_proba(X)[:, 1].min() <= model.predict_proba(X)[:, 1].max() <= 1
    assert len(model.top_k(X, 3)) == 3
