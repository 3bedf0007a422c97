"""The sweep that finds a node's best condition: criteria, cuts of numbers, levels of categories.

Histogram mode and exact mode share it: both pass the distinct codes present in the node with their positive and total
weight, so both choose the same condition if the bins are the distinct values.

Categories have no natural order, and an order learned from the labels has a gain by chance: the best subset of k levels
of noise gains about 2k/pi units of chi-squared, whereas the best cut of a number gains 8. So the gain of a category is
estimated on other cases than those that ordered its levels (`honest_gain`).
"""

import numpy as np

from toprank._core.dtypes import AP, AUC, ERROR, GINI
from toprank._core.jit import kernel

EXACT_PRODUCT = 2.0**53
"""Products of weights below this are exact in float64."""

FEW_LEVELS = 8
"""Number of levels up to which the best subset of noise gains no more than the best cut of a noisy number, so that no
correction is needed."""

# --- criteria ---------------------------------------------------------------------------------------------------


@kernel
def x_log2_share(part, whole):
    """Return part * log2(part / whole), or 0 if part is 0."""
    if part <= 0.0:
        return 0.0
    return part * np.log2(part / whole)


@kernel
def split_gain(criterion, positive_left, total_left, positive, total, whole_positive, whole_total):
    """Gain of a split over no split; larger is better, in units of weight.

    p is the share of the node's positives that goes left and q the share of its cases; N+ and N- are the classes of the
    whole tree, used only by "error":

    ap       n_l AP_left + n_r AP_right - n AP = n+ (2p - 1)(p - q)      (section 4 of the MetaAP paper)
    auc      |n_l+ n- - n_l- n+|: twice the area that the split adds under the ROC curve, times n+ n- of the root
    gini     decrease of the Gini impurity, times n
    entropy  information gain in bits, times n
    error    |(n_l+ N- - n_l- N+) - (n_r+ N- - n_r- N+)| / 2: the cost saved by labelling one side positive and
             the other negative, over labelling half of each class positive, if both classes of the whole tree cost the
             same. At the root it equals the gain of auc.

    Pre: 0 < positive < total, 0 < total_left < total.
    """
    positive_right = positive - positive_left
    total_right = total - total_left
    if criterion == AP:
        p = positive_left / positive
        return positive * (2.0 * p - 1.0) * (p - total_left / total)
    if criterion == AUC:
        return abs(positive_left * (total - positive) - (total_left - positive_left) * positive)
    if criterion == ERROR:
        whole_negative = whole_total - whole_positive
        left = positive_left * whole_negative - (total_left - positive_left) * whole_positive
        right = positive_right * whole_negative - (total_right - positive_right) * whole_positive
        return 0.5 * abs(left - right)
    if criterion == GINI:
        return 2.0 * (
            positive * (total - positive) / total
            - positive_left * (total_left - positive_left) / total_left
            - positive_right * (total_right - positive_right) / total_right
        )
    return (
        x_log2_share(positive_left, total_left)
        + x_log2_share(total_left - positive_left, total_left)
        + x_log2_share(positive_right, total_right)
        + x_log2_share(total_right - positive_right, total_right)
        - x_log2_share(positive, total)
        - x_log2_share(total - positive, total)
    )


@kernel
def richer_part(criterion, positive_left, total_left, positive, total):
    """Weight of the side richer in positives, with which TreeRank breaks ties between splits (remark 10); else 0."""
    if criterion != AUC and criterion != ERROR:
        return np.int64(0)
    is_left = float(positive_left) * float(total) > float(positive) * float(total_left)
    return total_left if is_left else total - total_left


# --- cuts of one column ------------------------------------------------------------------------------------------


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
def level_order(positive, total, n_levels, smooth):
    """Return the levels by shrunk rate, best first, ties by position: int64 (n_levels,).

    Rates are shrunk towards the rate of all levels by `smooth` units of weight.
    """
    all_positive, all_total = 0.0, 0.0
    for i in range(n_levels):
        all_positive += positive[i]
        all_total += total[i]
    prior = smooth * all_positive / all_total if all_total > 0 else 0.0
    key = np.empty(n_levels)
    for i in range(n_levels):
        mass = total[i] + smooth
        key[i] = -(positive[i] + prior) / mass if mass > 0 else 0.0
    return np.argsort(key, kind="mergesort")


@kernel
def best_level_cut(criterion, order, positive, total, members, all_positive, all_total, whole_positive, whole_total,
                   min_leaf, max_levels):  # fmt: skip
    """Sweep ordered levels for the cut with the largest gain; ties go to the largest `richer_part`, then to the first.

    Pre:  positive, total float64; members float64: the number of categories per level.
    Post: (gain, cut, positive_left, total_left, richer, members_left): levels order[: cut + 1] go left, and one side
          has at most max_levels categories. gain = -inf if no cut does that and leaves min_leaf on both sides.
    """
    n_members = 0.0
    for i in range(order.shape[0]):
        n_members += members[order[i]]
    best_gain, best = -np.inf, -1
    best_positive, best_total, best_richer, best_members = 0.0, 0.0, 0.0, 0.0
    left_positive, left_total, left_members = 0.0, 0.0, 0.0
    for i in range(order.shape[0] - 1):
        left_positive += positive[order[i]]
        left_total += total[order[i]]
        left_members += members[order[i]]
        if min(left_members, n_members - left_members) > max_levels:
            continue
        if left_total < min_leaf or all_total - left_total < min_leaf:
            continue
        gain = split_gain(
            criterion, left_positive, left_total, all_positive, all_total, whole_positive, whole_total
        )  # fmt: skip
        if gain < best_gain:
            continue
        richer = 0.0
        if criterion in (AUC, ERROR):
            is_left = left_positive * all_total > all_positive * left_total
            richer = left_total if is_left else all_total - left_total
        if gain > best_gain or richer > best_richer:
            best_gain, best = gain, i
            best_positive, best_total, best_richer, best_members = left_positive, left_total, richer, left_members
    return best_gain, best, best_positive, best_total, best_richer, best_members


@kernel
def half_of(weight, case, heads):
    """Return the share of a level's weight in the first half: the share of heads among as many coins as it has cases.

    Pre: heads[k] = heads among the first k coins; a normal approximation is used for more cases than coins.
    """
    n_coins = heads.shape[0] - 1
    n_cases = max(np.rint(weight / case), 1.0)
    if n_cases <= n_coins:
        return heads[np.int64(n_cases)] / n_cases
    return 0.5 + (heads[n_coins] - 0.5 * n_coins) / np.sqrt(n_coins * n_cases)


@kernel
def honest_gain(criterion, positive, total, members, n_levels, all_positive, all_total, whole_positive, whole_total,
                min_leaf, smooth, max_levels, case_positive, case_negative, heads):  # fmt: skip
    """Return the gain of the best cut of one half of the node's cases, with levels ordered by the other half.

    The mean over a few random halvings, each used both ways. Each half represents the node: its classes are weighted up
    to the node's. A half without one of the classes gains nothing.

    A halving is drawn from the counts of the levels: a level with n cases has Binomial(n, 1/2) of them in the first
    half, and which ones does not matter. So the gain depends only on the counts, not on the order or copies of the
    rows, on other columns, or on the names of the levels: the levels with the most cases come first and take the first
    coins.

    Pre:  positive, total float64 (n_levels,); case_*: weight of one case of that class;
          heads int16 (n_halvings, 256, 2, n_coins + 1), for half_of, per level and class.
    Cost: 2 * n_halvings sorts and sweeps of the levels.
    """
    by_positive = np.argsort(-positive[:n_levels], kind="mergesort")
    by_size = by_positive[np.argsort(-total[by_positive], kind="mergesort")]
    positive, total, members = positive[by_size], total[by_size], members[by_size]
    half_positive, half_negative = np.empty((2, n_levels)), np.empty((2, n_levels))
    scaled_positive, scaled_total = np.empty(n_levels), np.empty(n_levels)
    whole_gain = 0.0
    for h in range(heads.shape[0]):
        for i in range(n_levels):
            negative = total[i] - positive[i]
            half_positive[0, i] = positive[i] * half_of(positive[i], case_positive, heads[h, i, 0])
            half_negative[0, i] = negative * half_of(negative, case_negative, heads[h, i, 1])
            half_positive[1, i] = positive[i] - half_positive[0, i]
            half_negative[1, i] = negative - half_negative[0, i]
        for judge in range(2):
            judge_positive, judge_negative = 0.0, 0.0
            for i in range(n_levels):
                judge_positive += half_positive[judge, i]
                judge_negative += half_negative[judge, i]
            if judge_positive <= 0.0 or judge_negative <= 0.0:
                continue
            for i in range(n_levels):
                scaled_positive[i] = half_positive[judge, i] * (all_positive / judge_positive)
                negative = half_negative[judge, i] * ((all_total - all_positive) / judge_negative)
                scaled_total[i] = scaled_positive[i] + negative
            guide = half_positive[1 - judge]
            order = level_order(guide, guide + half_negative[1 - judge], n_levels, 0.5 * smooth)
            gain = best_level_cut(
                criterion, order, scaled_positive, scaled_total, members, all_positive, all_total, whole_positive,
                whole_total, min_leaf, max_levels,
            )[0]  # fmt: skip
            whole_gain += max(gain, 0.0)
    return whole_gain / (2 * heads.shape[0])


@kernel
def offer_levels(criterion, feature, code, positive, total, n_codes, missing_code, all_positive, all_total,
                 whole_positive, whole_total, min_leaf, rules, heads, split, goes_left):  # fmt: skip
    """Replace the node's best condition so far if this category has a better one by its honest gain.

    Categories with fewer than `min_data_per_group` cases form one level. The condition is the best cut of all cases,
    ordered by their shrunk rates; it is offered at its own gain or the honest one, whichever is smaller.

    Pre:  as offer_split, with missing values as one of the codes; rules as made by `toprank.tree.categories`.
    """
    smooth_cases, least_cases, max_levels, case_positive, case_negative = rules
    level = np.empty(n_codes, np.int64)
    level_positive, level_total, members = np.zeros(n_codes), np.zeros(n_codes), np.zeros(n_codes)
    n_levels, rare = 0, -1
    for i in range(n_codes):
        n_cases = positive[i] / case_positive + (total[i] - positive[i]) / case_negative
        is_rare = n_cases < least_cases
        if is_rare and rare >= 0:
            level[i] = rare
        else:
            level[i] = n_levels
            rare = n_levels if is_rare else rare
            n_levels += 1
        level_positive[level[i]] += positive[i]
        level_total[level[i]] += total[i]
        members[level[i]] += 1.0
    if n_levels < 2:
        return
    n_positive, n_total = float(all_positive), float(all_total)
    smooth = smooth_cases * n_total / (n_positive / case_positive + (n_total - n_positive) / case_negative)
    order = level_order(level_positive, level_total, n_levels, smooth)
    gain, cut, positive_left, total_left, richer, members_left = best_level_cut(
        criterion, order, level_positive, level_total, members, n_positive, n_total, float(whole_positive),
        float(whole_total), float(min_leaf), max_levels,
    )  # fmt: skip
    if cut < 0 or gain < split["gain"]:
        return
    if n_levels > FEW_LEVELS:
        gain = min(gain, honest_gain(
            criterion, level_positive, level_total, members, n_levels, n_positive, n_total, float(whole_positive),
            float(whole_total), float(min_leaf), smooth, max_levels, case_positive, case_negative, heads,
        ))  # fmt: skip
    if not (gain > split["gain"] or (gain == split["gain"] and richer > split["richer"])):
        return
    split["gain"] = gain
    split["richer"] = np.int64(richer)
    split["feature"] = feature
    split["positive_left"] = np.int64(positive_left)
    split["total_left"] = np.int64(total_left)
    is_left = np.zeros(n_levels, np.uint8)
    is_left[order[: cut + 1]] = 1
    # Categories unseen in this node go to the side whose categories need not be listed, or to the heavier side.
    members_right = n_codes - members_left
    if members_left <= max_levels < members_right:
        goes_left[:] = 0
    elif members_right <= max_levels < members_left:
        goes_left[:] = 1
    else:
        goes_left[:] = 2.0 * total_left >= n_total
    for i in range(n_codes):
        goes_left[code[i]] = is_left[level[i]]
        if is_left[level[i]]:
            split["last_left"] = code[i]
        else:
            split["first_right"] = code[i]
    goes_left[missing_code:] = goes_left[missing_code]  # unseen codes count as missing values
    split["missing_left"] = goes_left[missing_code]


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
