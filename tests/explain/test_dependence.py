import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.explain import partial_dependence
from toprank.tree.columns import Column

COLUMNS = [Column("age"), Column("gap"), Column("sector", ("retail", "catering", 3.5), shared=("farming",))]


def make_rows(n=60, seed=0):
    generator = np.random.default_rng(seed)
    rows = np.column_stack((generator.integers(0, 5, n), generator.normal(size=n), generator.integers(0, 3, n)))
    rows[generator.random(n) < 0.1, 1] = np.nan
    rows[generator.random(n) < 0.1, 2] = np.nan
    return rows


def score(X):
    """A score in which columns go together."""
    return X[:, 0] * np.nan_to_num(X[:, 1], nan=-1.0) + np.nan_to_num(X[:, 2], nan=7.0) ** 2


def mean_score(rows, **cells):
    """Mean score of the rows with these cells, one row at a time."""
    total = 0.0
    for row in rows:
        changed = row.copy()
        for name, value in cells.items():
            changed[[column.name for column in COLUMNS].index(name)] = value
        total += float(score(changed[None, :])[0])
    return total / len(rows)


@given(st.integers(1, 40), st.integers(0, 1000))
def test_one_column_is_the_mean_over_changed_rows(n, seed):
    rows = make_rows(n, seed)
    result = partial_dependence(score, rows, COLUMNS, "age")
    assert result.values == (tuple(np.unique(rows[:, 0])),)
    expected = [mean_score(rows, age=value) for value in result.values[0]]
    np.testing.assert_allclose(result.mean, expected, atol=1e-9)
    np.testing.assert_allclose(result.share, [(rows[:, 0] == value).mean() for value in result.values[0]])


@given(st.integers(5, 40), st.integers(0, 1000))
def test_two_columns_are_the_mean_over_changed_rows(n, seed):
    rows = make_rows(n, seed)
    result = partial_dependence(score, rows, COLUMNS, [2, "age"])
    assert result.names == ("sector", "age")
    codes = [0, 1, 2, *([np.nan] if np.isnan(rows[:, 2]).any() else [])]
    expected = [[mean_score(rows, sector=code, age=age) for age in result.values[1]] for code in codes]
    np.testing.assert_allclose(result.mean, expected, atol=1e-9)
    same = [np.isnan(rows[:, 2]) if np.isnan(code) else rows[:, 2] == code for code in codes]
    counted = [[(match & (rows[:, 0] == age)).mean() for age in result.values[1]] for match in same]
    np.testing.assert_allclose(result.share, counted)
    assert result.share.sum() == pytest.approx(1)


def test_numbers_are_tried_at_quantiles_that_occur():
    rows = make_rows(400)
    result = partial_dependence(score, rows, COLUMNS, "gap", n_values=7)
    known = rows[~np.isnan(rows[:, 1]), 1]
    values = np.array(result.values[0])
    assert len(values) == 7
    assert (values[0], values[-1]) == (known.min(), known.max())
    assert np.isin(values, known).all()
    nearest = np.abs(known[:, None] - values).argmin(axis=1)
    np.testing.assert_allclose(result.share, np.bincount(nearest, minlength=7) / len(rows))
    assert result.share.sum() == pytest.approx(len(known) / len(rows))  # a missing number is near none
    assert result.missing_share == pytest.approx(np.isnan(rows[:, 1]).mean())
    assert partial_dependence(score, rows, COLUMNS, ["age", "sector"]).missing_share == 0.0


def test_categories_are_named_and_the_missing_one_is_there_where_rows_have_it():
    rows = make_rows()
    result = partial_dependence(score, rows, COLUMNS, "sector")
    assert result.values == (("retail", "catering", "3.5 or farming", "missing"),)
    assert result.is_categorical == (True,)
    np.testing.assert_allclose(np.diff(result.mean), np.diff([0, 1, 4, 49]))
    complete = partial_dependence(score, rows[~np.isnan(rows[:, 2])], COLUMNS, "sector")
    assert complete.values == (("retail", "catering", "3.5 or farming"),)


def test_many_rows_are_sampled_and_the_sample_repeats():
    rows = make_rows(2000)
    seen = []

    def spy(X):
        seen.append(X.copy())
        return score(X)

    first = partial_dependence(spy, rows, COLUMNS, "age", max_rows=50)
    assert first.n_rows == 50
    known = {row[1:].tobytes() for row in rows}
    assert {row[1:].tobytes() for row in seen[0]} < known  # rows as they are, but for their age
    again = partial_dependence(score, rows, COLUMNS, "age", max_rows=50)
    assert first.to_dict() == again.to_dict()
    other = partial_dependence(score, rows, COLUMNS, "age", max_rows=50, random_state=1)
    assert first.to_dict() != other.to_dict()
    np.testing.assert_allclose(first.share, partial_dependence(score, rows, COLUMNS, "age").share)  # of all rows


def test_the_rows_stay_as_they_are_and_keep_their_dtype():
    rows = make_rows().astype(np.float32)
    before = rows.copy()

    def check(X):
        assert X.dtype == np.float32
        assert X.shape[1] == 3
        return score(X)

    partial_dependence(check, rows, COLUMNS, ["gap", "sector"])
    np.testing.assert_array_equal(rows, before)


def test_the_text_of_a_result_is_short():
    result = partial_dependence(lambda X: X[:, 0], make_rows(600), COLUMNS, ["sector", "age"])
    said = "<Dependence of the score on sector and age: 4 x 5 values, mean 0 to 4, over 500 rows>"
    assert repr(result) == said
    assert repr(partial_dependence(score, make_rows(), COLUMNS, "age")).startswith(
        "<Dependence of the score on age: 5 v"
    )


def test_columns_are_a_row_for_each_point():
    result = partial_dependence(score, make_rows(), COLUMNS, ["sector", "age"])
    columns = result.columns()
    assert list(columns) == ["value_1", "value_2", "mean", "share"]
    place = columns["value_1"].index("catering")
    assert columns["value_2"][place : place + 5] == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(columns["mean"][place : place + 5], result.mean[1])
    assert list(partial_dependence(score, make_rows(), COLUMNS, "age").columns()) == ["value", "mean", "share"]


@pytest.mark.parametrize("features", [np.array(["age", "gap"]), np.array([0, 1]), pd.Index(["age", "gap"])])
def test_columns_may_come_in_an_array(features):
    assert partial_dependence(score, make_rows(), COLUMNS, features).names == ("age", "gap")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"features": "sectr"}, "finds no column 'sectr' among 3. Hint: did you mean 'sector'"),
        ({"features": "AGE"}, "finds no column 'AGE' among 3. Hint: did you mean 'age'"),
        ({"features": 3}, "finds no column 3 among 3. Hint: positions go from 0 to 2"),
        ({"features": True}, "finds no column True"),
        ({"features": []}, "must name one column, or two that differ"),
        ({"features": ["age", 0]}, r"two that differ. Got \['age', 0\]"),
        ({"features": [0, 1, 2]}, "must name one column, or two"),
        ({"n_values": 1}, r"'n_values' parameter of partial_dependence must be an int in the range \[2, inf\). Got 1"),
        ({"max_rows": 0.5}, r"'max_rows' .* \[1, inf\). Got 0.5"),
        ({"matrix": make_rows()[:, :2]}, r"floats with 3 columns. Got shape \(60, 2\) of float64"),
        ({"matrix": np.zeros((0, 3))}, r"Got shape \(0, 3\)"),
        ({"matrix": [["a", 1, 2]]}, r"Hint: .* model.dependence\(X, features\) encodes a table"),
        ({"matrix": np.full((4, 3), np.nan)}, "Column 'age' has no finite value in the 4 rows.*Hint"),
        ({"decide": lambda X: X}, r"must return one score per row, shape \(300,\). Got shape \(300, 3\)"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(options, sentence):
    given_options = {"decide": score, "matrix": make_rows(), "features": "age"} | options
    with pytest.raises(ValueError, match=sentence):
        partial_dependence(columns=COLUMNS, **given_options)
