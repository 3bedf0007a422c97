from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toprank._core.cells import (
    best_chains,
    is_steeper,
    rounding_error,
    sort_by_slope,
    sum_of_cross_products,
    upper_hull,
)

SMALL, LARGE = st.integers(0, 6), st.integers(0, 2**52)


def cells(weight, min_size=1, max_size=8):
    """(positive, negative) of cells, none of them empty."""
    cell = st.tuples(weight, weight).filter(any)
    return st.lists(cell, min_size=min_size, max_size=max_size)


def arrays(pairs):
    """The two columns of a list of pairs, as kernels take them."""
    return np.array([p for p, _ in pairs], float), np.array([n for _, n in pairs], float)


def cross(a, b):
    return a[0] * b[1] - b[0] * a[1]


@given(LARGE, LARGE)
@example(2**52 - 1, 2**52 - 3)
def test_a_product_and_its_rounding_error_are_the_product(a, b):
    product = float(a) * float(b)
    assert int(product) + int(rounding_error(float(a), float(b), product)) == a * b


@pytest.mark.parametrize("weight", [SMALL, LARGE])
@given(data=st.data())
def test_slopes_are_compared_without_rounding(weight, data):
    (a, b) = data.draw(cells(weight, 2, 2))
    assert is_steeper(*map(float, a), *map(float, b)) == (cross(a, b) > 0)


def test_slopes_that_division_cannot_tell_apart():
    n = 2**52
    first, second = (n - 1, n - 2), (n - 2, n - 3)
    assert first[0] / first[1] == second[0] / second[1]
    assert float(first[0]) * second[1] == float(second[0]) * first[1], "rounded products are equal too"
    assert is_steeper(*map(float, second), *map(float, first))
    assert not is_steeper(*map(float, first), *map(float, second))


@pytest.mark.parametrize("weight", [SMALL, LARGE])
@given(data=st.data())
def test_cells_are_sorted_by_slope_and_ties_stand_as_they_stood(weight, data):
    pairs = data.draw(cells(weight, max_size=20))
    order = np.arange(len(pairs))
    sort_by_slope(*arrays(pairs), order, np.empty_like(order))
    slope = [Fraction(p, n) if n else Fraction(2**60) for p, n in pairs]
    assert order.tolist() == sorted(range(len(pairs)), key=lambda i: -slope[i])


@given(cells(SMALL), st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=5))
def test_sums_of_cross_products_are_those_of_a_loop(others, asked):
    others = sorted(others, key=lambda cell: cell[1] / (cell[0] + cell[1]))
    columns = arrays(others)
    before = [np.append(0, np.cumsum(column)) for column in columns]
    out = np.empty(len(asked))
    sum_of_cross_products(*arrays(asked), *columns, *before, out)
    assert out.tolist() == [sum(abs(cross(cell, other)) for other in others) for cell in asked]


def knots_of(pairs):
    return np.concatenate(([[0, 0]], np.cumsum(pairs, axis=0))).astype(int).tolist()


@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=9).filter(lambda pairs: any(map(any, pairs))))
def test_the_hull_bends_at_the_knots_that_stand_above_all_chords(pairs):
    knots = knots_of(pairs)
    hull = np.empty(len(knots), np.int64)
    found = hull[: upper_hull(*arrays(knots), hull)].tolist()

    def is_above(i):
        """Strictly above every chord between a knot before and one behind, those at its own place aside."""
        return all(
            (knots[i][0] - a[0]) * (b[1] - a[1]) > (b[0] - a[0]) * (knots[i][1] - a[1])
            for a in knots[:i]
            for b in knots[i + 1 :]
            if knots[i] not in (a, b)
        )

    last_at_place = [i for i in range(len(knots)) if knots[i] not in knots[i + 1 :]]
    corners = [i for i in last_at_place if 0 < i < len(knots) - 1 and knots[i] != knots[0] and is_above(i)]
    assert found == [0, *corners, len(knots) - 1]


def chain_area(knots, chain):
    return sum(cross(knots[i], knots[j]) for i, j in pairwise(chain))


@given(cells(SMALL, min_size=1, max_size=8))
@example([(1, 0), (3, 1), (2, 1), (1, 1), (1, 2), (1, 3), (0, 1)])
def test_best_chains_are_those_of_enumeration(pairs):
    """On a concave curve, collinear knots included; of equals the chain whose last knot but one comes first."""
    pairs.sort(key=lambda cell: cell[1] / (cell[0] + cell[1]))
    knots, n = knots_of(pairs), len(pairs)
    for n_rows in (1, n):
        area, start = np.empty(n), np.full((n_rows, n + 1), -1, np.int32)
        best_chains(*arrays(knots), n, area, start)
        for m in range(1, n + 1):
            chains = [(0, *inner, n) for inner in combinations(range(1, n), m - 1)]
            areas = [chain_area(knots, chain) for chain in chains]
            assert area[m - 1] == max(areas)
            if n_rows == n:
                chain = [n]
                for row in start[m - 1 :: -1]:
                    chain.append(int(row[chain[-1]]))
                best = [c for c, value in zip(chains, areas, strict=True) if value == max(areas)]
                assert tuple(chain[::-1]) == min(best, key=lambda c: c[::-1])
