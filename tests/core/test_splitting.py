from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import reference
from toprank._core.dtypes import CRITERIA, SPLIT
from toprank._core.splitting import (
    FEW_LEVELS,
    best_cut,
    exact_splits,
    histogram_splits,
    honest_gain,
    most_auc_gain,
    order_by_rate,
    split_gain,
)
from toprank.tree.categories import N_COINS, PLAIN, coins

criteria = st.sampled_from(sorted(CRITERIA))


@st.composite
def groups(draw, min_size=1, max_size=6, largest=9):
    """(positive, total) of some groups of rows, each with weight."""
    totals = draw(st.lists(st.integers(1, largest), min_size=min_size, max_size=max_size))
    return [(draw(st.integers(0, total)), total) for total in totals]


def is_impure(pairs):
    positive, total = sum(p for p, _ in pairs), sum(t for _, t in pairs)
    return 0 < positive < total


@given(criteria, groups(2, 2, 10**6), groups(0, 2, 10**6))
@example("entropy", [(0, 3), (3, 3)], [])
@example("gini", [(1, 2), (0, 7)], [])
@example("error", [(1, 2), (0, 7)], [(5, 6)])
def test_gain_is_the_one_from_first_principles(criterion, pairs, elsewhere):
    assume(is_impure(pairs))
    (left_positive, left_total), (right_positive, right_total) = pairs
    positive, total = left_positive + right_positive, left_total + right_total
    whole = positive + sum(p for p, _ in elsewhere), total + sum(t for _, t in elsewhere)
    weights = left_positive, left_total, positive, total
    found = split_gain(CRITERIA[criterion], *map(float, weights), *map(float, whole))
    expected = float(reference.gain(criterion, *weights, whole))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9 * total)


@given(groups(2, 2, 10**6))
def test_at_the_root_error_and_area_are_the_same(pairs):
    assume(is_impure(pairs))
    everything = [float(sum(values)) for values in zip(*pairs, strict=True)]
    area, error = (
        split_gain(CRITERIA[name], *map(float, pairs[0]), *everything, *everything) for name in ("auc", "error")
    )
    assert area == error


def test_gain_of_the_papers_two_leaves():
    """4 positives of 10; 3 of them among 4 on the left: 4 * AP_left + 6 * AP_right - 10 * 0.4."""
    left, right = 3 / 4 * 3 / 4 + 1 / 4 * 4 / 10, 1 / 4 * 1 / 6 + 3 / 4 * 4 / 10
    expected = 4 * left + 6 * right - 4
    assert split_gain(CRITERIA["ap"], 3.0, 4.0, 4.0, 10.0, 4.0, 10.0) == pytest.approx(expected)


def cut(criterion, pairs, missing, min_leaf=1):
    positive = np.array([p for p, _ in pairs], np.int64)
    total = np.array([t for _, t in pairs], np.int64)
    everything = positive.sum() + missing[0], total.sum() + missing[1]
    missing = np.array(missing, np.int64)
    return best_cut(CRITERIA[criterion], positive, total, len(pairs), *missing, *everything, *everything, min_leaf, 0)


def cuts_by_enumeration(criterion, pairs, missing, min_leaf):
    """(gain, cut, missing_left) of every cut that leaves min_leaf on both sides."""
    positive, total = sum(p for p, _ in pairs) + missing[0], sum(t for _, t in pairs) + missing[1]
    for missing_left in (False, True) if missing[1] else (False,):
        for last in range(len(pairs)):
            left = pairs[: last + 1] + ([missing] if missing_left else [])
            left_positive, left_total = sum(p for p, _ in left), sum(t for _, t in left)
            if min_leaf <= left_total <= total - min_leaf and 0 < left_total < total:
                yield (
                    float(reference.gain(criterion, left_positive, left_total, positive, total)),
                    last,
                    missing_left,
                )


@given(criteria, groups(), st.one_of(st.just([(0, 0)]), groups(1, 1)), st.integers(1, 6))
def test_best_cut_is_the_best_of_all_cuts(criterion, pairs, missing, min_leaf):
    assume(is_impure(pairs + missing))
    found, at, missing_left, left_positive, left_total, richer = cut(criterion, pairs, missing[0], min_leaf)
    every = list(cuts_by_enumeration(criterion, pairs, missing[0], min_leaf))
    if not every:
        assert found == -np.inf
        return
    assert found == pytest.approx(max(every)[0], rel=1e-9, abs=1e-9), (found, at, missing_left, sorted(every))
    left = pairs[: at + 1] + (missing if missing_left and missing[0][1] else [])
    assert (left_positive, left_total) == (sum(p for p, _ in left), sum(t for _, t in left))
    assert richer == (richer_weight(left, pairs + missing) if criterion in ("auc", "error") else 0)
    if missing[0][1]:
        assert (pytest.approx(found), at, missing_left) in every
    else:
        assert missing_left == (2 * left_total >= sum(t for _, t in pairs))


def test_the_first_of_equal_cuts_wins():
    assert cut("gini", [(1, 1), (0, 1), (1, 1)], (0, 0))[1] == 0


def richer_weight(left, everything):
    """Weight of the side with the larger share of positives; the right one where both have the same."""
    (positive, total), (all_positive, all_total) = (
        tuple(map(sum, zip(*part, strict=True))) for part in (left, everything)
    )
    is_left = Fraction(positive, total) > Fraction(all_positive, all_total)
    return total if is_left else all_total - total


@given(groups(), st.one_of(st.just([(0, 0)]), groups(1, 1)))
def test_of_cuts_that_add_the_same_area_the_larger_set_of_rich_cases_is_taken(pairs, missing):
    """Remark 10 of the TreeRank paper."""
    assume(is_impure(pairs + missing))
    gain, *_, richer = cut("auc", pairs, missing[0])
    for value, at, missing_left in cuts_by_enumeration("auc", pairs, missing[0], 1):
        left = pairs[: at + 1] + (missing if missing_left else [])
        assert value < gain or richer_weight(left, pairs + missing) <= richer


@given(groups(1, 12))
def test_order_by_rate_is_a_stable_sort(pairs):
    code = np.arange(len(pairs), dtype=np.int32)
    positive, total = np.array([p for p, _ in pairs]), np.array([t for _, t in pairs])
    order_by_rate(code, positive, total, len(pairs))
    assert code.tolist() == sorted(range(len(pairs)), key=lambda i: -Fraction(*pairs[i]))
    assert list(zip(positive.tolist(), total.tolist(), strict=True)) == [pairs[c] for c in code]


@st.composite
def coded_tables(draw, kinds=(0, 1), max_codes=5):
    """Columns of codes with missing values, positive and total weight, and a cut of the rows into nodes."""
    n, d = draw(st.integers(2, 24)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_codes = rng.integers(0, max_codes + 1, d).astype(np.int32)
    codes = np.array([rng.integers(0, count + 1, n) for count in n_codes], np.int32)
    total = rng.choice([1, 1, 2, 7], n).astype(np.int64)
    positive = np.where(rng.random(n) < rng.choice([0.2, 0.5]), total, 0)
    is_categorical = np.where(n_codes > 0, rng.choice(kinds, d), 0).astype(np.uint8)
    return codes, n_codes, is_categorical, positive, total


def empty_splits(n_nodes):
    splits = np.zeros(n_nodes, SPLIT)
    splits["gain"], splits["feature"] = -np.inf, -1
    return splits, np.zeros((n_nodes, 256), np.uint8)


def find_splits(mode, data, criterion, min_leaf, nodes, allowed=None, features=None, rules=PLAIN, direction=None):
    """Best splits of the nodes (lists of rows of one tree) from histograms or from sorted rows."""
    codes, n_codes, is_categorical, positive, total = data
    d = len(codes)
    allowed = np.ones((len(nodes), d), np.uint8) if allowed is None else allowed
    direction = np.zeros(d, np.int8) if direction is None else direction
    first, last = features or (0, d)
    all_positive = np.array([positive[node].sum() for node in nodes])
    all_total = np.array([total[node].sum() for node in nodes])
    whole = np.full(len(nodes), positive.sum()), np.full(len(nodes), total.sum())
    splits, goes_left = empty_splits(len(nodes))
    if mode == "histogram":
        sizes = n_codes.astype(np.uintp) + np.uintp(1)
        histograms = [reference.histogram(codes.T, node, positive, total, n_codes) for node in nodes]
        flat = np.array([[cell for feature in h for cell in feature] for h in histograms], np.int64)
        slot = np.arange(len(nodes), dtype=np.int32)[::-1].copy()
        histogram_splits(CRITERIA[criterion], flat[::-1].copy(), slot, np.cumsum(sizes) - sizes, n_codes,
                         is_categorical, allowed, first, last, all_positive, all_total, *whole, min_leaf, rules,
                         coins(), direction, splits, goes_left)  # fmt: skip
    else:
        stop = np.cumsum([len(node) for node in nodes])
        start = stop - [len(node) for node in nodes]
        order = [[row for node in nodes for row in sorted(node, key=lambda r: codes[f, r])] for f in range(d)]
        exact_splits(CRITERIA[criterion], codes, np.array(order, np.int32), start, stop, positive, total,
                     n_codes, is_categorical, allowed, first, last, all_positive, all_total, *whole, min_leaf, rules,
                     coins(), direction, splits, goes_left)  # fmt: skip
    return splits, goes_left


def as_values(data):
    """The table as the reference takes it: codes as values, missing = NaN."""
    codes, n_codes, is_categorical, positive, total = data
    columns = [np.where(column == n, np.nan, column) for column, n in zip(codes, n_codes, strict=True)]
    return columns, is_categorical, positive, total


def sent_left(data, split, goes_left, rows):
    """Rows that a found split sends left."""
    codes, n_codes, is_categorical, _, _ = data
    f = int(split["feature"])
    if is_categorical[f]:
        return {row for row in rows if goes_left[codes[f, row]]}
    return {
        row
        for row in rows
        if (split["missing_left"] if codes[f, row] == n_codes[f] else codes[f, row] <= split["last_left"])
    }


def in_rate_order(data, rows, criterion, min_leaf):
    """Best gain where category subsets are taken in order of positive rate only."""
    columns, is_categorical, positive, total = as_values(data)
    ordered = []
    for column, categorical in zip(columns, is_categorical, strict=True):
        if categorical:
            level = np.where(np.isnan(column), 99, column)
            members = {v: [row for row in rows if level[row] == v] for v in set(level[rows])}
            rate = {
                v: Fraction(reference.weight_of(own, positive), reference.weight_of(own, total))
                for v, own in members.items()
            }
            place = {v: i for i, v in enumerate(sorted(rate, key=lambda v: (-rate[v], v)))}
            column = np.array([place.get(v, 0) for v in level], float)
        ordered.append(column)
    table = ordered, [0] * len(ordered), positive, total
    return reference.best_split(table, rows, criterion, min_leaf, weights_of_all(data))


def weights_of_all(data):
    """Positive and total weight of the whole table."""
    return int(data[3].sum()), int(data[4].sum())


@given(st.sampled_from(["histogram", "exact"]), coded_tables(), criteria, st.integers(1, 4), st.data())
def test_splits_are_the_best_of_all(mode, data, criterion, min_leaf, draw):
    """Every cut, missing direction and subset; subsets in rate order where that is not known to be enough."""
    n = data[0].shape[1]
    middle = draw.draw(st.integers(1, n - 1))
    nodes = [
        node for node in (np.arange(middle), np.arange(middle, n)) if 0 < data[3][node].sum() < data[4][node].sum()
    ]
    assume(nodes)
    splits, goes_left = find_splits(mode, data, criterion, min_leaf, nodes)
    subsets_in_order = data[2].any() and (criterion == "ap" or min_leaf > 1)
    for node, split, left in zip(nodes, splits, goes_left, strict=True):
        positive, total = data[3][node].sum(), data[4][node].sum()
        if subsets_in_order:
            expected = in_rate_order(data, node, criterion, min_leaf)
        else:
            whole = weights_of_all(data)
            expected = reference.best_split(as_values(data), node.tolist(), criterion, min_leaf, whole)
        if expected is None:
            assert split["feature"] == -1
            continue
        assert split["gain"] == pytest.approx(expected[0], rel=1e-9, abs=1e-9), (split, expected)
        rows = sent_left(data, split, left, node.tolist())
        assert split["total_left"] == data[4][list(rows)].sum()
        assert split["positive_left"] == data[3][list(rows)].sum()
        found = reference.gain(
            criterion,
            *(int(weight) for weight in (split["positive_left"], split["total_left"], positive, total)),
            weights_of_all(data),
        )
        assert float(found) == pytest.approx(expected[0], rel=1e-9, abs=1e-9), (split, expected)


@given(coded_tables(kinds=(1,), max_codes=6), st.sampled_from(["gini", "entropy", "auc", "error"]))
def test_category_subsets_in_rate_order_are_the_best_of_all_subsets(data, criterion):
    rows = np.arange(data[0].shape[1])
    assume(0 < data[3].sum() < data[4].sum())
    (split,), _ = find_splits("histogram", data, criterion, 1, [rows])
    expected = reference.best_split(as_values(data), rows.tolist(), criterion)
    assert (split["gain"] if split["feature"] >= 0 else None) == (expected and pytest.approx(expected[0], abs=1e-9))


def test_the_ap_criterion_can_miss_the_best_subset():
    """n+ (2p - 1)(p - q) is not convex in (p, q): a subset out of rate order may win. Known and accepted."""
    pairs = [(1, 1), (1, 2), (1, 3), (4, 9)]
    codes = np.array([[c for c, _ in enumerate(pairs) for _ in range(2)]], np.int32)
    positive = np.array([w for p, _ in pairs for w in (p, 0)], np.int64)
    total = np.array([w for p, t in pairs for w in (p, t - p)], np.int64)
    data = codes, np.array([len(pairs)], np.int32), np.ones(1, np.uint8), positive, total
    rows = np.arange(codes.shape[1])
    (split,), _ = find_splits("histogram", data, "ap", 1, [rows])
    best, _ = reference.best_split(as_values(data), rows.tolist(), "ap")
    assert split["gain"] == pytest.approx(in_rate_order(data, rows, "ap", 1)[0])
    assert split["gain"] < best


@given(coded_tables(), criteria, st.integers(1, 3))
def test_histogram_and_exact_splits_are_equal_to_the_last_bit(data, criterion, min_leaf):
    nodes = [np.arange(data[0].shape[1])]
    assume(0 < data[3].sum() < data[4].sum())
    (one, left), (other, left_too) = (find_splits(m, data, criterion, min_leaf, nodes) for m in ("histogram", "exact"))
    assert one == other
    if one["feature"] >= 0 and data[2][one["feature"][0]]:
        assert np.array_equal(left, left_too)


@given(coded_tables(), st.integers(1, 3), st.integers(0, 45))
@example(([[0, 0, 1, 1], [0, 1, 0, 1]], [2, 2], [0, 1], [1, 1, 0, 0], [1, 1, 1, 1]), 1, 26)  # the second adds nothing
@example(([[0, 1, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1]], [2, 2], [0, 0], [1, 1, 0, 0, 0, 0], [1] * 6), 1, 0)  # as much
def test_features_passed_over_do_not_change_the_best_auc_split(data, min_leaf, doublings):
    """Whatever the weights: from a certain size on products are rounded, and no feature is passed over."""
    codes, n_codes, is_categorical, positive, total = (np.asarray(part) for part in data)
    codes, n_codes = codes.astype(np.int32), n_codes.astype(np.int32)
    assume(0 < positive.sum() < total.sum())
    heavy = codes, n_codes, is_categorical.astype(np.uint8), positive << doublings, total << doublings
    nodes = [np.arange(codes.shape[1])]
    (one, _), (other, _) = (
        find_splits(mode, heavy, "auc", min_leaf << doublings, nodes) for mode in ("histogram", "exact")
    )
    assert one == other


@given(groups(), groups(1, 1), st.sampled_from([0, 1]))
@example([(3, 4), (0, 2)], [(0, 0)], 0)
@example([(0, 2), (1, 9), (3, 4)], [(0, 0)], 1)
def test_no_cut_gains_more_than_the_most_that_a_feature_could(pairs, missing, categorical):
    assume(is_impure(pairs + missing))
    histogram = np.array([(7, 7), *pairs, *missing], np.int64)  # the first bin is another feature's
    everything = histogram[1:].sum(axis=0)
    bound = most_auc_gain(histogram, np.uintp(1), np.uintp(len(pairs) + 1), categorical, *everything)
    if categorical:
        present = sorted((pair for pair in pairs + missing if pair[1]), key=lambda pair: -Fraction(*pair))
        assert bound == max(cut("auc", present, (0, 0))[0], 0)
    else:
        found = cut("auc", pairs, missing[0])[0]
        assert found == bound if missing[0][1] == 0 and len(pairs) > 1 else found <= bound


@pytest.mark.parametrize("mode", ["histogram", "exact"])
def test_only_allowed_features_in_range_are_used(mode):
    column = np.arange(4, dtype=np.int32)
    data = (
        np.array([column, column, column]),
        np.full(3, 4, np.int32),
        np.zeros(3, np.uint8),
        column // 2,
        column * 0 + 1,
    )
    data = (*data[:3], data[3].astype(np.int64), data[4].astype(np.int64))
    nodes = [np.arange(4)] * 2
    allowed = np.array([[0, 1, 1], [0, 0, 1]], np.uint8)
    if mode == "histogram":
        assert find_splits(mode, data, "gini", 1, nodes, allowed)[0]["feature"].tolist() == [1, 2]
    assert find_splits(mode, data, "gini", 1, nodes[:1], allowed[:1])[0]["feature"].tolist() == [1]
    assert find_splits(mode, data, "gini", 1, nodes[:1], allowed[:1], (2, 3))[0]["feature"].tolist() == [2]
    assert find_splits(mode, data, "gini", 1, nodes[:1], allowed[:1], (0, 1))[0]["feature"].tolist() == [-1]


def test_categories_without_rows_go_with_the_heavier_child_and_unknown_codes_with_the_missing_ones():
    codes = np.array([[0, 0, 1, 1, 1, 4]], np.int32)  # category 2 and 3 are absent, code 4 is missing
    total = np.ones(6, np.int64)
    positive = np.array([1, 1, 0, 0, 0, 1], np.int64)
    data = (
        codes,
        np.array([4], np.int32),
        np.ones(1, np.uint8),
        positive,
        total * np.array([1, 1, 9, 9, 9, 1]),
    )
    _, (goes_left,) = find_splits("histogram", data, "gini", 1, [np.arange(6)])
    assert goes_left[:5].tolist() == [1, 0, 0, 0, 1]
    assert goes_left[5:].all(), "codes beyond the known ones are missing values"


# Categories


@st.composite
def level_counts(draw, min_size=3, max_size=9, largest=5):
    """(positive, negative) cases of some levels, each with a case; both classes are there."""
    pair = st.tuples(st.integers(0, largest), st.integers(0, largest)).filter(any)
    levels = draw(st.lists(pair, min_size=min_size, max_size=max_size))
    assume(any(p for p, _ in levels) and any(n for _, n in levels))
    return levels


smoothings = st.sampled_from([0.0, 1.0, 10.0])
most_levels = st.sampled_from([1, 3, np.inf])
leaf_weights = st.sampled_from([0.8765, 1.8765, 2.8765, 3.8765])
"""Least weights of a leaf that no sum of scaled cases equals: where one does, rounding decides."""


def honest(criterion, levels, weights=(1, 1), members=None, smooth=10.0, most=np.inf, min_leaf=1.0):
    """The honest gain of levels whose positive and negative cases have these weights."""
    positive = np.array([p * weights[0] for p, _ in levels], float)
    total = positive + [n * weights[1] for _, n in levels]
    members = np.ones(len(levels)) if members is None else np.array(members, float)
    both = positive.sum(), total.sum()
    return honest_gain(CRITERIA[criterion], positive, total, members, len(levels), *both, *both, min_leaf, smooth,
                       float(most), float(weights[0]), float(weights[1]), coins())  # fmt: skip


@given(criteria, level_counts(), smoothings, most_levels, leaf_weights, st.data())
def test_the_honest_gain_is_that_of_halves_of_the_cases(criterion, levels, smooth, most, min_leaf, data):
    members = data.draw(st.lists(st.integers(1, 3), min_size=len(levels), max_size=len(levels)))
    found = honest(criterion, levels, members=members, smooth=smooth, most=most, min_leaf=min_leaf)
    expected = reference.honest_gain(criterion, levels, members, coins(), smooth, min_leaf, most)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(criteria, level_counts())
def test_the_honest_gain_knows_no_names_and_grows_with_a_common_weight(criterion, levels):
    found = honest(criterion, levels, smooth=0.0)
    assert honest(criterion, levels[::-1], smooth=0.0) == pytest.approx(found, rel=1e-9, abs=1e-9)
    factor = 16.0 if criterion in ("auc", "error") else 4.0  # these two are products of weights
    assert honest(criterion, levels, weights=(4, 4), smooth=0.0, min_leaf=4.0) == pytest.approx(factor * found)


def test_more_cases_than_coins_are_halved_with_the_spread_of_as_many():
    rng = np.random.default_rng(0)
    sizes = np.full(200, 40 * N_COINS)
    levels = list(zip(rng.binomial(sizes, 0.2).tolist(), (sizes * 0.8).astype(int).tolist(), strict=True))
    noise, best = honest("gini", levels), np.sum(levels)
    # 200 levels of noise: the honest gain is far below the 2k/pi units of chi-squared of the best subset.
    unit = 2 * 0.16
    assert 0 < noise / unit < 25 < 2 * len(levels) / np.pi
    assert best > 10**6


@given(criteria, level_counts(2, 12), smoothings, most_levels, st.integers(1, 4), st.sampled_from([1, 4, 9]))
@example("gini", [(5, 1), (0, 3), (1, 1), (0, 2), (4, 4)], 1.0, 1, 1, 4)  # three rare levels go together
def test_the_condition_on_a_category_is_the_one_of_the_reference(criterion, levels, smooth, most, min_leaf, least):
    codes = np.array([[code for code, (p, n) in enumerate(levels) for _ in range(p + n)]], np.int32)
    positive = np.array([i < p for p, n in levels for i in range(p + n)], np.int64)
    data = codes, np.array([len(levels) - 1], np.int32), np.ones(1, np.uint8), positive, np.ones_like(positive)
    rules = (smooth, float(least), float(most), 1.0, 1.0)
    expected = reference.category_split(
        criterion, dict(enumerate(levels)), coins(), (smooth, least, most), min_leaf, FEW_LEVELS
    )
    for mode in ("histogram", "exact"):  # the last code is the one of missing values
        splits, goes_left = find_splits(mode, data, criterion, min_leaf, [np.arange(len(positive))], rules=rules)
        if expected is None:
            assert splits["feature"][0] == -1
            continue
        gain, left = expected
        assert splits["gain"][0] == pytest.approx(gain, rel=1e-9, abs=1e-9)
        sent_left = {code for code in range(len(levels)) if goes_left[0, code]}
        assert splits["total_left"][0] == sum(sum(levels[code]) for code in sent_left)
        assert splits["positive_left"][0] == sum(levels[code][0] for code in sent_left)
        if criterion not in ("auc", "error"):  # of equal gains these take the larger of the richer sides
            assert sent_left == left


@given(coded_tables(kinds=(1,), max_codes=14), criteria, st.integers(1, 3), smoothings, most_levels)
def test_regularised_splits_of_histograms_and_of_rows_are_equal_to_the_last_bit(data, criterion, least, smooth, most):
    nodes = [np.arange(data[0].shape[1])]
    assume(0 < data[3].sum() < data[4].sum())
    rules = (smooth, float(least), float(most), 1.0, 1.0)
    found = [find_splits(mode, data, criterion, 1, nodes, rules=rules) for mode in ("histogram", "exact")]
    assert found[0][0] == found[1][0]
    assert np.array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize(("most", "unnamed_goes_left"), [(2.0, 0), (np.inf, 1)])
def test_categories_that_a_node_never_saw_go_with_the_side_that_is_not_named(most, unnamed_goes_left):
    # Two heavy levels of many positives, four light ones of none; code 6 is in no row.
    counts = {0: (60, 10), 1: (50, 10), 2: (0, 9), 3: (0, 8), 4: (0, 9), 5: (0, 8)}
    codes = np.array([[c for c, pair in counts.items() for _ in range(sum(pair))]], np.int32)
    positive = np.array([i < p for p, n in counts.values() for i in range(p + n)], np.int64)
    data = codes, np.array([7], np.int32), np.ones(1, np.uint8), positive, np.ones_like(positive)
    _, goes_left = find_splits(
        "histogram", data, "gini", 1, [np.arange(len(positive))], rules=(1.0, 1.0, most, 1.0, 1.0)
    )
    assert goes_left[0, :6].tolist() == [1, 1, 0, 0, 0, 0]
    assert goes_left[0, 6] == goes_left[0, 7] == unnamed_goes_left


def test_noise_with_many_levels_gains_little_more_than_a_noisy_number_and_a_real_category_keeps_its_gain():
    """The simulation that the correction was made for: 14,700 rows, 22 % positives, gain in Gini, mean of 5."""
    rng, n, plain, regularised = np.random.default_rng(0), 14_700, PLAIN, (10.0, 1.0, np.inf, 1.0, 1.0)

    def mean_gain(n_levels, spread, rules, kind=1):
        gains = []
        for _ in range(5):
            code, effect = rng.integers(0, n_levels, n), rng.normal(0, 1, n_levels) * spread
            positive = (rng.random(n) < 1 / (1 + np.exp(1.27 - effect[code]))).astype(np.int64)
            column = code[None].astype(np.int32), np.array([n_levels], np.int32), np.full(1, kind, np.uint8)
            found = find_splits(
                "histogram", (*column, positive, np.ones(n, int)), "gini", 1, [np.arange(n)], rules=rules
            )
            gains.append(found[0]["gain"][0] / (2 * n))
        return np.mean(gains)

    assert mean_gain(250, 0, plain) > 0.0015
    assert mean_gain(250, 0, plain, kind=0) < 0.0001  # a number
    assert mean_gain(250, 0, regularised) < 0.0002
    assert mean_gain(100, 0, regularised) < 0.0002
    assert mean_gain(100, 0.5, regularised) > 0.7 * mean_gain(100, 0.5, plain)
    assert mean_gain(250, 0.5, regularised) > 0.45 * mean_gain(250, 0.5, plain)


# Directions


@given(coded_tables(kinds=(0,)), criteria, st.integers(1, 3), st.sampled_from([-1, 1]))
def test_a_direction_leaves_out_the_cuts_that_go_the_other_way(data, criterion, min_leaf, towards):
    rows = np.arange(data[0].shape[1])
    columns, _, positive, total = as_values(data)
    assume(0 < positive.sum() < total.sum())
    whole = int(positive.sum()), int(total.sum())
    best = -np.inf
    for column in columns:
        missing = frozenset(np.flatnonzero(np.isnan(column)).tolist())
        for left in reference.conditions(column, False, rows.tolist()):
            counts = reference.weight_of(left, positive), reference.weight_of(left, total)
            rest = whole[0] - counts[0], whole[1] - counts[1]
            rises = Fraction(*rest) - Fraction(*counts)
            is_between_values = frozenset(rows.tolist()) - left != missing
            if min(counts[1], rest[1]) >= min_leaf and not (is_between_values and rises * towards < 0):
                best = max(best, float(reference.gain(criterion, *counts, *whole)))
    direction = np.full(len(columns), towards, np.int8)
    for mode in ("histogram", "exact"):
        splits, _ = find_splits(mode, data, criterion, min_leaf, [rows], direction=direction)
        assert splits["gain"][0] == pytest.approx(best, rel=1e-9, abs=1e-9)
