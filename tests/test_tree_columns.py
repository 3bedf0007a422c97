import json

import pytest

from toprank.tree.columns import Column, Usual

COLUMNS = [
    Column("amount"),
    Column("amount", has_missing=False),
    Column("sector", ("farms", "banks")),
    Column("is_new", (False, True), has_missing=False),
    Column("amount", usual=Usual(3.0, -1.5, 1e9, 0.1, 0.25)),
    Column("sector", ("farms", "banks"), usual=Usual(1.0, 1.0, 1.0, 0.7, 0.0)),
    Column("town", ("A", "B", "C"), ("D", "E")),
]


@pytest.mark.parametrize("column", COLUMNS)
def test_a_dictionary_gives_an_equal_column_back(column):
    assert Column.from_dict(json.loads(json.dumps(column.to_dict()))) == column
    assert sum(Column.from_dict(column.to_dict()) == other for other in COLUMNS) == 1


def test_a_code_stands_for_its_category_and_the_last_one_for_the_shared_ones_too():
    town = COLUMNS[-1]
    assert town.is_categorical
    assert town.labels(0) == ("A",)
    assert town.labels(2) == ("C", "D", "E")
    assert not COLUMNS[0].is_categorical


@pytest.mark.parametrize(
    "usual",
    [[1.0, 0.0, 2.0, 0.1], [1.0, 0.0, 2.0, 0.1, 2.0], [1.0, 0.0, float("nan"), 0.1, 0.0], [1.0, 2.0, 3.0, 0.1, 0.0],
     ["1", 0.0, 2.0, 0.1, 0.0], [True, 0, 2, 0, 0], 3.0],
    ids=repr,
)  # fmt: skip
def test_what_is_usual_is_checked(usual):
    with pytest.raises((ValueError, TypeError)):
        Column.from_dict({"name": "amount", "kind": "number", "has_missing": True, "usual": usual})


@pytest.mark.parametrize("code", [2.0, -1.0, 0.5])
def test_the_commonest_category_is_one_of_the_column(code):
    data = {"name": "town", "kind": "category", "categories": ["A", "B"], "has_missing": True}
    with pytest.raises(ValueError, match="town"):
        Column.from_dict(data | {"usual": [code, code, code, 0.5, 0.0]})
