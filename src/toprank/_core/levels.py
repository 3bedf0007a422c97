"""Conditions on categories: levels ordered by rate, and evaluated on other cases than those that ordered them.

Categories have no natural order, and an order learned from the labels has a gain by chance: the best subset of k levels
of noise gains about 2k/pi units of chi-squared, whereas the best cut of a number gains 8. So the gain of a category is
estimated on other cases than those that ordered its levels (`honest_gain`).
"""

import numpy as np

from toprank._core.criteria import split_gain
from toprank._core.dtypes import AUC, ERROR
from toprank._core.jit import kernel

FEW_LEVELS = 8
"""Number of levels up to which the best subset of noise gains no more than the best cut of a noisy number, so that no
correction is needed."""


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
