"""The rules by which mixed rows become points."""

import numpy as np
import pytest

from toprank import InputError
from toprank.rankers.neighbours.space import Space

X = np.array([[0.0, 0, 5, 1], [10.0, 1, 5, np.nan], [4.0, 2, 5, 3], [np.nan, np.nan, 5, 2]])
N_CATEGORIES = np.array([0, 3, 0, 0])


def test_numbers_categories_missing_values_and_constant_columns():
    space = Space.learn(X, N_CATEGORIES, category_distance=3.0)
    points = space.points(X)
    # number, is missing | three categories | nothing of the constant column | number, is missing
    assert space.column_of.tolist() == [0, 0, 1, 1, 1, 3, 3]
    assert points[:, 0].tolist() == pytest.approx([-1, 1, -0.2, -0.2])  # missing: the median, 4
    assert points[:, 1].tolist() == [0, 0, 0, 1]
    between = [np.linalg.norm(points[i, 2:5] - points[j, 2:5]) for i, j in ((0, 1), (0, 2), (1, 2), (3, 0))]
    assert between == pytest.approx([3, 3, 3, 3 / np.sqrt(2)])
    assert points[:, 5].tolist() == pytest.approx([-1, 0, 1, 0])
    assert points[:, 6].tolist() == [0, 1, 0, 0]
    new = space.points(np.array([[20.0, 1, 99, 1], [np.inf, 1, 0, 0], [-1e308, 1, 0, 0]]))
    assert new[0, 0] == 3
    assert np.all(np.isfinite(new))


def test_other_scalings():
    standard = Space.learn(X, N_CATEGORIES, scaling="standard").points(X)
    known = standard[:3, 0]
    assert known.mean() == pytest.approx(0)
    assert known.std() == pytest.approx(1)
    raw = Space.learn(X, N_CATEGORIES, scaling=None).points(X)
    assert raw[:3, 0].tolist() == [0, 10, 4]
    assert raw[3, 1] == pytest.approx(np.std([0, 10, 4])), "missing values are one standard deviation from known ones"


@pytest.mark.parametrize("scaling", ["minmax", "standard", None])
def test_weight_2_is_the_row_twice_weight_0_no_row_and_order_means_nothing(scaling):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 3)).round(1)
    rows[::7, 1] = np.nan
    weight = rng.integers(0, 3, 50)
    weight[0] = 0
    rows[0] = 1000
    none = np.zeros(3, int)
    weighted = Space.learn(rows, none, weight.astype(float), scaling=scaling)
    repeated = Space.learn(np.repeat(rows, weight, axis=0)[::-1], none, scaling=scaling)
    for name, array in weighted.to_arrays().items():
        assert np.array_equal(array, repeated.to_arrays()[name])


def test_huge_values_stay_finite():
    rows = np.array([[-1.7e308, 1e-300], [1.7e308, 0.0], [0.0, 2e-300]])
    for scaling in ("minmax", "standard"):
        assert np.all(np.isfinite(Space.learn(rows, np.zeros(2, int), scaling=scaling).points(rows)))


@pytest.mark.parametrize("scaling", ["minmax", "standard"])
def test_a_difference_that_overflows_is_scaled_all_the_same(scaling):
    huge = np.array([[-1.7e308], [-1.7e308], [1.5e308], [1.5e308], [1.5e308], [np.nan]])
    points, small = (Space.learn(X, np.array([0]), scaling=scaling).points(X) for X in (huge, huge * 2.0**-900))
    assert points == pytest.approx(small)
    assert np.abs(points).max() < 2


@pytest.mark.parametrize("scaling", ["minmax", "standard"])
def test_weight_3_is_three_rows_to_the_last_bit(scaling):
    rng = np.random.default_rng(0)
    for _ in range(50):
        X, weight = rng.normal(size=(12, 2)), rng.integers(1, 8, 12)
        one = Space.learn(X, np.array([0, 0]), weight.astype(float), scaling=scaling)
        other = Space.learn(np.repeat(X, weight, axis=0), np.array([0, 0]), scaling=scaling)
        assert all(np.array_equal(array, other.to_arrays()[name]) for name, array in one.to_arrays().items())


def test_a_deviation_that_vanishes_is_that_of_a_constant():
    tiny = np.array([[0.0]] * 19 + [[1e-323]])
    assert Space.learn(tiny, np.array([0]), scaling="standard").n_dims == 0


def test_squared_distances_add_up_by_column():
    space = Space.learn(X, N_CATEGORIES)
    points = space.points(X)
    gaps = points[:1] - points
    assert space.by_column(gaps).sum(axis=1) == pytest.approx((gaps**2).sum(axis=1))
    assert space.by_column(gaps)[1, 1] == pytest.approx(4)


def test_files_are_checked():
    space = Space.learn(X, N_CATEGORIES)
    arrays = space.to_arrays()
    again = Space.from_arrays(arrays, N_CATEGORIES)
    assert np.array_equal(again.points(X), space.points(X))
    for name, value in (("scale", -arrays["scale"]), ("centre", arrays["centre"][:2]), ("gap", arrays["gap"] * np.nan),
                        ("n_categories", np.array([0, 9, 0, 0])), ("fill", arrays["fill"] + 1e200)):  # fmt: skip
        with pytest.raises(InputError, match="scaling"):
            Space.from_arrays({**arrays, name: value}, N_CATEGORIES)
