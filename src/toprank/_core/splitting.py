"""The sweep that finds a node's best condition.

Histogram mode and exact mode share it: both pass the distinct codes present in the node with their positive and total
weight, so both choose the same condition if the bins are the distinct values.
"""

import numpy as np

from toprank._core.criteria import richer_part, split_gain
from toprank._core.dtypes import AUC
from toprank._core.jit import kernel
from toprank._core.levels import offer_levels

EXACT_PRODUCT = 2.0**53
"""Products of weights below this are exact in float64."""


@kernel
def best_cut(criterion, positive, total, n_codes, missing_positive, missing_total, all_positive, all_total,
             whole_positive, whole_total, min_leaf, direction):  # fmt: skip
    """Sweep ordered codes for the cut with the largest gain; ties go to the largest `richer_part`, then to the first.

    Direction 1 skips cuts with the higher positive rate on the left, -1 those with the higher rate on the right; 0
    skips none. The cut between values and missing values has no direction.

    Pre:  positive, total int64, entries 0..n_codes-1 all with total > 0; all_* include the missing weight.
    Post: (gain, cut, missing_left, positive_left, total_left, richer): codes 0..cut go left; cut = n_codes - 1
          separates the values from the missing ones. gain = -inf if no cut leaves min_leaf on both sides. Without
          missing values in the node, missing_left points to the heavier child.
    Cost: n_codes gains, twice that with missing values.
    """
    best_gain = -np.inf
    best = -1
    best_missing_left = False
    best_positive = np.int64(0)
    best_total = np.int64(0)
    best_richer = np.int64(0)
    all_positive_f = float(all_positive)
    all_total_f = float(all_total)
    whole_positive_f = float(whole_positive)
    whole_total_f = float(whole_total)
    for missing_left in range(2 if missing_total > 0 else 1):
        left_positive = np.int64(missing_positive * missing_left)
        left_total = np.int64(missing_total * missing_left)
        last = n_codes if missing_total > 0 and missing_left == 0 else n_codes - 1
        for i in range(last):
            left_positive += positive[i]
            left_total += total[i]
            if left_total < min_leaf:
                continue
            if all_total - left_total < min_leaf:
                break
            gain = split_gain(
                criterion, float(left_positive), float(left_total), all_positive_f, all_total_f, whole_positive_f,
                whole_total_f,
            )  # fmt: skip
            if gain < best_gain:
                continue
            if direction != 0 and i + 1 < n_codes:
                rest_positive, rest_total = float(all_positive - left_positive), float(all_total - left_total)
                if direction * (float(left_positive) * rest_total - rest_positive * float(left_total)) > 0.0:
                    continue
            richer = richer_part(criterion, left_positive, left_total, all_positive, all_total)
            if gain > best_gain or richer > best_richer:
                best_gain = gain
                best_richer = richer
                best = i
                best_missing_left = missing_left == 1
                best_positive = left_positive
                best_total = left_total
    if missing_total == 0:
        best_missing_left = 2 * best_total >= all_total
    return best_gain, best, best_missing_left, best_positive, best_total, best_richer


@kernel
def order_by_rate(code, positive, total, n_codes):
    """Sort the first n_codes entries by positive rate, best first; ties by code. Insertion sort: codes are few."""
    for i in range(1, n_codes):
        c = code[i]
        p = positive[i]
        t = total[i]
        j = i - 1
        while j >= 0 and positive[j] * float(t) < p * float(total[j]):
            code[j + 1] = code[j]
            positive[j + 1] = positive[j]
            total[j + 1] = total[j]
            j -= 1
        code[j + 1] = c
        positive[j + 1] = p
        total[j + 1] = t


@kernel
def offer_split(criterion, feature, categorical, code, positive, total, n_codes, missing_code, missing_positive,
                missing_total, all_positive, all_total, whole_positive, whole_total, min_leaf, rules, heads, direction,
                split, goes_left):  # fmt: skip
    """Replace the node's best condition so far if this feature has a better one.

    Pre:  code, positive, total hold the codes present in the node in ascending order (room for one more entry);
          rules say how categories are searched, case_positive = 0: by their training rates, as for numbers;
          direction as in best_cut, 0 for categories;
          split is the node's SPLIT record, goes_left its uint8 (256,) sides of categories.
    Post: code, positive, total are scratch.
    """
    if categorical:
        if missing_total > 0:  # a missing category is one more category
            code[n_codes] = missing_code
            positive[n_codes] = missing_positive
            total[n_codes] = missing_total
            n_codes += 1
        if rules[3] > 0.0:
            offer_levels(
                criterion, feature, code, positive, total, n_codes, missing_code, all_positive, all_total,
                whole_positive, whole_total, min_leaf, rules, heads, split, goes_left,
            )  # fmt: skip
            return
        order_by_rate(code, positive, total, n_codes)
        missing_positive = np.int64(0)
        missing_total = np.int64(0)
    gain, cut, missing_left, positive_left, total_left, richer = best_cut(
        criterion, positive, total, n_codes, missing_positive, missing_total, all_positive, all_total, whole_positive,
        whole_total, min_leaf, direction,
    )  # fmt: skip
    if not (gain > split["gain"] or (gain == split["gain"] and richer > split["richer"])):
        return
    split["gain"] = gain
    split["richer"] = richer
    split["feature"] = feature
    split["positive_left"] = positive_left
    split["total_left"] = total_left
    split["last_left"] = code[cut]
    split["first_right"] = code[cut + 1] if cut + 1 < n_codes else -1
    if categorical:
        goes_left[:] = missing_left  # categories unseen in this node go to the heavier child
        for i in range(n_codes):
            goes_left[code[i]] = i <= cut
        missing_left = goes_left[missing_code] == 1
        goes_left[missing_code:] = missing_left  # unseen codes count as missing values
    split["missing_left"] = missing_left


@kernel
def most_auc_gain(histogram, first, missing, categorical, all_positive, all_total):
    """Return an upper bound of the AUC gain of the cuts of one feature: the largest gain without min_leaf.

    A code adds n n_c+ - n+ n_c to n_l+ n- - n_l- n+. Over ordered codes this is a walk, and the gain of a cut is its
    distance from 0; missing values on the left shift the whole walk. For categories the best cut takes all codes that
    add a positive amount.

    Pre:  histogram int64 (total_bins, 2): the feature's bins at first..missing-1, then its missing values. Indices are
          unsigned, to avoid the test for negative ones. all_positive * all_total < EXACT_PRODUCT.
    Cost: 1 ns per bin, no branch.
    """
    moved = all_total * histogram[missing, 0] - all_positive * histogram[missing, 1]
    excess, highest, lowest = np.int64(0), np.int64(0), np.int64(0)
    if categorical:
        highest = max(moved, lowest)
        for b in range(first, missing):
            highest += max(all_total * histogram[b, 0] - all_positive * histogram[b, 1], lowest)
        return highest
    for b in range(first, missing):
        excess += all_total * histogram[b, 0] - all_positive * histogram[b, 1]
        highest = max(highest, excess)
        lowest = min(lowest, excess)
    return max(highest, -lowest) + abs(moved)


@kernel
def histogram_splits(criterion, histograms, slot, offsets, n_bins, is_categorical, allowed, first_feature, last_feature,
                     all_positive, all_total, whole_positive, whole_total, min_leaf, rules, heads, direction,
                     splits, goes_left):  # fmt: skip
    """Find each node's best condition among features first_feature..last_feature-1 from its histogram.

    Pre:  histograms[slot[node]] int64 (total_bins, 2); feature f's bins start at offsets[f], its missing bin is
          n_bins[f]; allowed uint8 (n_nodes, n_features); splits SPLIT (n_nodes,) with gain = -inf, feature = -1;
          all_* int64 (n_nodes,): weights of the node; whole_*: of the root of its tree;
          direction int8 (n_features,), as in best_cut.
    Cost: n_nodes * total_bins gains; for AUC, one walk over the bins of a feature that cannot win.
    """
    code = np.empty(257, np.int32)
    positive = np.empty(257, np.int64)
    total = np.empty(257, np.int64)
    for node in range(slot.shape[0]):
        histogram = histograms[slot[node]]
        has_bound = criterion == AUC and float(all_positive[node]) * float(all_total[node]) < EXACT_PRODUCT
        for f in range(first_feature, last_feature):
            if not allowed[node, f]:
                continue
            first, missing = offsets[f], offsets[f] + np.uintp(n_bins[f])
            if has_bound and splits[node]["gain"] > most_auc_gain(
                histogram, first, missing, is_categorical[f], all_positive[node], all_total[node]
            ):
                continue
            n_codes = 0
            base = np.int64(first)
            for b in range(n_bins[f]):
                if histogram[base + b, 1] > 0:
                    code[n_codes] = b
                    positive[n_codes] = histogram[base + b, 0]
                    total[n_codes] = histogram[base + b, 1]
                    n_codes += 1
            offer_split(
                criterion, f, is_categorical[f], code, positive, total, n_codes, n_bins[f], histogram[missing, 0],
                histogram[missing, 1], all_positive[node], all_total[node], whole_positive[node], whole_total[node],
                min_leaf, rules, heads, direction[f], splits[node], goes_left[node],
            )  # fmt: skip


@kernel
def exact_splits(criterion, codes, sorted_rows, start, stop, positive_weight, total_weight, n_codes, is_categorical,
                 allowed, first_feature, last_feature, all_positive, all_total, whole_positive, whole_total, min_leaf,
                 rules, heads, direction, splits, goes_left):  # fmt: skip
    """Find each node's best condition from rows sorted by value: the same sweep over the distinct values.

    Pre:  codes int32 (n_features, n_rows): dense ranks, missing = n_codes[f]; sorted_rows int32, same shape: each
          feature's rows in code order, a node's rows at start[node]:stop[node] in every feature.
    Cost: rows of the nodes * features.
    """
    longest = 0
    for node in range(start.shape[0]):
        longest = max(longest, stop[node] - start[node])
    code = np.empty(longest + 2, np.int32)
    positive = np.empty(longest + 2, np.int64)
    total = np.empty(longest + 2, np.int64)
    for node in range(start.shape[0]):
        for f in range(first_feature, last_feature):
            if not allowed[node, f]:
                continue
            n = -1
            missing_positive = np.int64(0)
            missing_total = np.int64(0)
            for i in range(start[node], stop[node]):
                row = sorted_rows[f, i]
                c = codes[f, row]
                if c == n_codes[f]:
                    missing_positive += positive_weight[row]
                    missing_total += total_weight[row]
                    continue
                if n < 0 or code[n] != c:
                    n += 1
                    code[n] = c
                    positive[n] = 0
                    total[n] = 0
                positive[n] += positive_weight[row]
                total[n] += total_weight[row]
            offer_split(
                criterion, f, is_categorical[f], code, positive, total, n + 1, n_codes[f], missing_positive,
                missing_total, all_positive[node], all_total[node], whole_positive[node], whole_total[node], min_leaf,
                rules, heads, direction[f], splits[node], goes_left[node],
            )  # fmt: skip
