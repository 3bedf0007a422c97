"""Search for rules on bins, against slow and obvious versions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank._core.points import add_rule_points, write_holds
from toprank._core.rule_search import (
    IS_KNOWN,
    IS_MISSING,
    SLOTS,
    add_rule_sums,
    best_conditions,
    keep_rows,
    likelihood_gain,
)

LIMITS = np.array([2.0, 1.0])


@st.composite
def binned(draw):
    """Codes of a number and of a category with missing values, and the four channels of each row."""
    n = draw(st.integers(4, 30))
    bins = np.array([draw(st.integers(1, 5)), draw(st.integers(1, 5))])
    codes = np.column_stack([[draw(st.integers(0, int(b))) for _ in range(n)] for b in bins]).astype(np.uint8)
    target = np.array([draw(st.integers(0, 4)) for _ in range(n)]) / 4
    expected = np.array([draw(st.integers(1, 7)) for _ in range(n)]) / 8
    values = np.column_stack((target, expected, np.ones(n), target > 0.5)) * 8
    return codes, bins, values.astype(np.int64)


def gain(values, rows, either_sign):
    """Gain of some rows by the definition; -inf if they are too few or have too little."""
    target, expected, weight, positive = values[rows].sum(axis=0) / 8
    if weight < LIMITS[0] or (target > expected and positive < LIMITS[1]) or (target <= expected and not either_sign):
        return -math.inf
    if expected >= weight:
        return 0.0
    parts = [(target, expected), (weight - target, weight - expected)]
    return sum(a * math.log(a / b) for a, b in parts if a > 0)


def searched(codes, bins, values, either_sign, allowed=None):
    at = np.append(0, np.cumsum(bins + 1))
    sums = np.zeros((at[-1], 4), np.int64)
    add_rule_sums(codes, np.arange(len(codes), dtype=np.int32), values, at, sums)
    gains, cuts = np.zeros((2, SLOTS)), np.zeros((2, SLOTS), np.int64)
    sums_of, named = np.zeros((2, SLOTS, 4), np.int64), np.full((2, 3), -1)
    allowed = np.ones((2, 2), np.uint8) if allowed is None else allowed
    best_conditions(sums, at, np.array([0, 1], np.uint8), 1 / 8, LIMITS, either_sign, allowed, 3, gains, cuts, sums_of,
                    named)  # fmt: skip
    return sums, gains, cuts, sums_of, named


@given(table=binned(), either_sign=st.booleans())
def test_thresholds_are_the_best_of_all(table, either_sign):
    codes, bins, values = table
    _, gains, cuts, sums_of, _ = searched(codes, bins, values, either_sign)
    column, missing = codes[:, 0], codes[:, 0] == bins[0]
    for slot in range(4):
        sets = {}
        for cut in range(int(bins[0]) - 1):
            known = (column <= cut) if slot % 2 == 0 else (column > cut) & ~missing
            has_both = 0 < ((column <= cut) & ~missing).sum() < (~missing).sum()
            if has_both and (slot < 2 or missing.any()):
                sets[cut] = known | (missing if slot > 1 else False)
        best = max((gain(values, rows, either_sign) for rows in sets.values()), default=-math.inf)
        assert gains[0, slot] == pytest.approx(best)
        if np.isfinite(best):
            rows = sets[int(cuts[0, slot])]
            assert gain(values, rows, either_sign) == pytest.approx(best)
            assert np.array_equal(sums_of[0, slot], values[rows].sum(axis=0))


@given(table=binned(), either_sign=st.booleans())
def test_one_category_is_the_best_of_all_and_sets_grow_from_it(table, either_sign):
    codes, bins, values = table
    _, gains, _, sums_of, named = searched(codes, bins, values, either_sign)
    column = codes[:, 1]
    present = [c for c in range(int(bins[1])) if (column == c).any()]
    for slot in range(min(3, len(present) - 1)):
        chosen = named[1, : slot + 1]
        if chosen[-1] < 0:
            assert gains[1, slot] == -math.inf
            continue
        assert len(set(chosen.tolist())) == slot + 1
        rows = np.isin(column, chosen)
        assert np.array_equal(sums_of[1, slot], values[rows].sum(axis=0))
        assert gains[1, slot] == pytest.approx(gain(values, rows, either_sign))


@given(table=binned(), either_sign=st.booleans())
def test_missing_and_known_are_conditions_too(table, either_sign):
    codes, bins, values = table
    _, gains, *_ = searched(codes, bins, values, either_sign)
    for f in range(2):
        missing = codes[:, f] == bins[f]
        is_both = missing.any() and not missing.all()
        for slot, rows in ((IS_MISSING, missing), (IS_KNOWN, ~missing)):
            wanted = gain(values, rows, either_sign) if is_both else -math.inf
            assert gains[f, slot] == pytest.approx(wanted)


def test_directions_that_are_not_allowed_are_not_offered():
    codes = np.array([[0, 0], [1, 0], [2, 1], [2, 1], [0, 1], [1, 0]], np.uint8)
    values = np.tile([8, 1, 8, 8], (6, 1)).astype(np.int64)
    allowed = np.array([[0, 1], [1, 1]], np.uint8)
    _, gains, *_ = searched(codes, np.array([3, 2]), values, False, allowed)
    assert gains[0, 0] == -math.inf
    assert np.isfinite(gains[0, 1])


@given(st.floats(0.1, 50), st.floats(0.1, 50), st.floats(60, 100))
def test_the_gain_is_never_negative_and_zero_without_a_difference(target, expected, weight):
    assert likelihood_gain(target, expected, weight) >= -1e-12
    assert likelihood_gain(expected, expected, weight) == pytest.approx(0, abs=1e-12)
    assert likelihood_gain(target, 0.0, weight) == 0


def test_rows_are_kept_in_order():
    codes = np.array([[0], [2], [1], [2], [0]], np.uint8)
    out = np.empty(5, np.int32)
    n = keep_rows(codes, np.arange(5, dtype=np.int32), 0, np.array([1, 0, 1], np.uint8), out)
    assert out[:n].tolist() == [0, 1, 3, 4]


@given(st.data())
def test_rules_hold_where_all_conditions_do(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    block = np.column_stack((rng.integers(-3, 4, 12).astype(float), rng.integers(0, 70, 12).astype(float)))
    block[rng.random(block.shape) < 0.2] = np.nan
    codes = rng.choice(70, 20, replace=False)
    bits = np.zeros((3, 4), np.uint64)
    for code in codes:
        bits[1, code >> 6] |= np.uint64(1) << np.uint64(code & 63)
    arrays = (np.array([0, 2, 3]), np.array([0, 1, 0], np.int32), np.array([0, 1, 0], np.uint8),
              np.array([-1.0, 0, -np.inf]), np.array([2.0, 0, 0.0]), np.array([1, 0, 0], np.uint8), bits)  # fmt: skip
    number, category = block.T
    is_between = np.where(np.isnan(number), True, (number > -1) & (number <= 2))
    first = is_between & np.isin(category, codes)
    second = number <= 0
    out = np.zeros((12, 2), bool)
    write_holds(block, *arrays, out)
    assert np.array_equal(out, np.column_stack((first, second)))
    total = np.ones(12)
    add_rule_points(block, *arrays, np.array([10.0, -3.0]), total)
    assert np.array_equal(total, 1.0 + 10.0 * first - 3.0 * second)
