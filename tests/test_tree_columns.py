import json

import pytest

from toprank.tree.columns import Column

COLUMNS = [
    Column("amount"),
    Column("amount", has_missing=False),
    Column("sector", ("farms", "banks")),
    Column("is_new", (False, True), has_missing=False),
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
