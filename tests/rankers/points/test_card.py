"""Cards: points per feature, scored, stored, checked and printed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank._core.threads import Threads
from toprank.errors import InputError
from toprank.rankers.points.card import Card
from toprank.rankers.points.card import Shape as TypedShape
from toprank.tree.columns import Column


def Shape(feature, edges, points, **rest):
    """A shape from plain lists."""
    return TypedShape(feature, edges, points, **rest)


COLUMNS = [Column("age"), Column("spare"), Column("sector", ("retail", "catering", "transport")), Column("share")]
CARD = Card(
    (
        Shape(3, [0.25, 0.5, 0.75], [0, 0, 4, 9], missing=-2, ends=[0, 4, 8, 9]),
        Shape(0, [2, 10], [8, 3, 0], missing=3),
        Shape(2, [], [0, 5, -1], missing=1, is_categorical=True),
    ),
    base=-20,
    scale=10,
)


def plain_points(shape, x):
    """Points of one value, the obvious way."""
    if math.isnan(x):
        return shape.missing
    if shape.is_categorical:
        return shape.points[int(x)] if 0 <= x < len(shape.points) else shape.missing
    place = sum(edge < x for edge in shape.edges)
    if shape.points[place] == shape.ends[place]:
        return shape.points[place]
    return np.interp(x, shape.edges[place - 1 : place + 1], [shape.points[place], shape.ends[place]])


def make_matrix(n, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack((rng.integers(0, 14, n), rng.normal(size=n), rng.integers(-1, 4, n), rng.random(n).round(2)))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@given(st.integers(0, 2**32 - 1))
def test_scores_are_the_sum_of_points(seed):
    X = make_matrix(50, seed)
    expected = [[plain_points(s, row[s.feature]) for s in CARD.shapes] for row in X]
    assert np.allclose(CARD.decision_function(X), CARD.base + np.sum(expected, axis=1), rtol=1e-14)
    points = CARD.contributions(X)
    assert np.allclose(points[:, CARD.features], expected)
    assert not points[:, 1].any()
    assert np.allclose(CARD.base + points.sum(axis=1), CARD.decision_function(X))


def test_a_row_scores_the_same_alone_in_a_batch_and_on_threads():
    X = make_matrix(20_000)
    together = CARD.decision_function(X)
    with Threads(2) as threads:
        assert np.array_equal(CARD.decision_function(np.asfortranarray(X), threads), together)
    alone = [CARD.decision_function(X[i : i + 1])[0] for i in range(200)]
    assert np.array_equal(alone, together[:200])


def test_a_value_on_an_edge_belongs_to_the_bin_below():
    card = Card((Shape(0, [1.0, 2.0], [1, 2, 3]),))
    values = np.array([1.0, np.nextafter(1.0, 2), 2.0, np.nextafter(2.0, 3), -np.inf, np.inf])
    assert card.decision_function(values[:, None]).tolist() == [1, 2, 2, 3, 1, 3]


def test_lines_between_huge_edges_do_not_overflow():
    card = Card((Shape(0, [-1.7e308, 1.7e308], [0, 0, 4], ends=[0, 4, 4]),))
    assert card.decision_function(np.array([[0.0], [1.7e308], [-1.7e308]])).tolist() == [2, 4, 0]


def test_a_stored_card_is_the_same_card():
    assert Card.from_arrays(CARD.to_arrays(), COLUMNS) == CARD
    empty = Card((), base=3)
    assert Card.from_arrays(empty.to_arrays(), COLUMNS) == empty
    assert empty.decision_function(make_matrix(3)).tolist() == [3, 3, 3]


DAMAGES = {
    "feature": [3, 0, 4], "is_categorical": [0, 0, 2], "edge_at": [0, 3, 9, 5], "edges": [0.25, 0.5, 0.5, 2, 10],
    "point_at": [0, 4, 7, 11], "points": [0, 0, 4, np.nan, 8, 3, 0, 0, 5, -1], "missing": [1.0, np.inf, 0.0],
    "ends": [1, 4, 8, 9, 8, 3, 0, 0, 5, -1], "scale": 0.0, "base": np.nan,
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_card_is_refused(name):
    arrays = CARD.to_arrays()
    damaged = np.array(DAMAGES[name], arrays[name].dtype)
    with pytest.raises(InputError, match="Not a valid card"):
        Card.from_arrays(arrays | {name: damaged}, COLUMNS)
    with pytest.raises(InputError, match=name):
        Card.from_arrays(arrays | {name: arrays[name].astype(np.float32)}, COLUMNS)
    with pytest.raises(InputError, match=name):
        Card.from_arrays({key: value for key, value in arrays.items() if key != name}, COLUMNS)


@pytest.mark.parametrize(
    ("column", "shape"),
    [
        (2, Shape(2, [], [0, 5], is_categorical=True)),  # three categories
        (2, Shape(2, [0.5], [0, 5])),
        (0, Shape(0, [], [0, 5], is_categorical=True)),
    ],
)
def test_a_card_of_other_columns_is_refused(column, shape):
    with pytest.raises(InputError, match=COLUMNS[column].name):
        Card.from_arrays(Card((shape,)).to_arrays(), COLUMNS)


def test_a_feature_has_one_shape_and_a_finite_score():
    shape = Shape(0, [1.0], [0, 1])
    with pytest.raises(InputError, match="one shape"):
        Card((shape, shape))
    with pytest.raises(InputError, match="finite score"):
        Card((Shape(0, [1.0], [0, 1.5e308]), Shape(1, [1.0], [0, 1.5e308])))
    with pytest.raises(InputError, match="flat"):
        Card((Shape(0, [1.0], [0, 1], ends=[1, 1]),))
    with pytest.raises(InputError, match=r"\(5, 2\)"):
        CARD.decision_function(np.zeros((5, 2)))


def test_scaling_and_rounding():
    X = make_matrix(100)
    doubled = CARD.scaled(20)
    assert np.allclose(doubled.decision_function(X), 2 * CARD.decision_function(X))
    small = Card((Shape(0, [1.0], [0.2, -0.3]), Shape(1, [1.0], [1.4, -2.6])), base=-0.4)
    rounded = small.rounded()
    assert rounded.features.tolist() == [1], "a feature without points is dropped"
    assert rounded.shapes[0].points.tolist() == [1, -3]
    assert not np.signbit(rounded.base)


TEXT = """\
share           <= 0.25    to 0.5    to 0.75   > 0.75
  missing: -2         0   0 to +4   +4 to +8       +9
age             <= 2   to 10   > 10
  missing: +3     +8      +3      0
sector          catering: +5   retail: 0   transport: -1   missing: +1"""


def test_text():
    text = CARD.to_text(COLUMNS)
    assert text == TEXT
    assert CARD.to_text(COLUMNS, order=[2]).startswith("sector")


def test_many_categories_with_points_of_their_own_share_a_cell():
    sector = Column("sector", tuple(f"k{i}" for i in range(30)), has_missing=False)
    text = Card((Shape(0, [], np.arange(30.0), is_categorical=True),)).to_text([sector])
    assert "19 others: between 0 and +18   missing: 0" in text
    assert "k29: +29" in text


def test_dates_are_dates_and_names_are_safe():
    column = Column("open\x1bed", form="ymd")
    text = Card((Shape(0, [18691.0, 18692.0], [1, 2, 3]),)).to_text([column])
    assert "<= 2021-03-05   to 2021-03-06   > 2021-03-06" in text
    assert "\x1b" not in text


def test_a_card_of_12_features_and_5_bins_is_a_page():
    columns = [Column(f"some_long_column_{i}") for i in range(12)]
    edges = np.array([0.125, 1.5, 1234.5, 56789.0])
    lines = Card(tuple(Shape(f, edges, [-21, -3, 0, 11, 25]) for f in range(12))).to_text(columns).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100
