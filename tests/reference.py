"""Slow, obvious versions of the kernels, the growers and the scores: loops, sets and fractions, no tricks.

Weights are whole numbers and gains are fractions wherever the criterion allows it, so little is rounded here.
A row is a position in the table, a node the list of its rows, a condition the set of rows it sends left.
"""

import math
from fractions import Fraction
from itertools import combinations, pairwise

LEAF, NUMERIC, CATEGORY, OBLIQUE = 0, 1, 2, 3


# Criteria


def average_precision(points):
    """Equation (2) of the MetaAP paper: sum of (R_t - R_{t-1}) P_t over (recall, precision) points."""
    return sum((r - r0) * p for (r0, _), (r, p) in pairwise(points))


def two_leaf_average_precision(first_positive, first_total, positive, total):
    """AP of section 4: the first leaf is called positive (t1), then all rows are (t2)."""
    t0 = (Fraction(0), Fraction(1))
    t1 = (Fraction(first_positive, positive), Fraction(first_positive, first_total))
    t2 = (Fraction(1), Fraction(positive, total))
    return average_precision([t0, t1, t2])


def area_under_roc(groups):
    """Share of (positive, negative) pairs in the right order, half for ties; groups best first."""
    pairs, won = 0, Fraction(0)
    for i, (positive, _) in enumerate(groups):
        for j, (_, negative) in enumerate(groups):
            pairs += positive * negative
            won += positive * negative * (Fraction(1) if i < j else Fraction(1, 2) if i == j else 0)
    return won / pairs


def gini(positive, total):
    return 1 - Fraction(positive, total) ** 2 - Fraction(total - positive, total) ** 2


def entropy(positive, total):
    shares = [positive / total, (total - positive) / total]
    return -sum(f * math.log2(f) for f in shares if f > 0)


def gain(criterion, left_positive, left_total, positive, total, whole=None):
    """Gain of a split from the definition of its criterion, in units of weight.

    `whole` is (positive, total) of the root, where the classes are weighed; None: those of the node.
    """
    right_positive, right_total = positive - left_positive, total - left_total
    if criterion == "ap":
        left = left_total * two_leaf_average_precision(left_positive, left_total, positive, total)
        right = right_total * two_leaf_average_precision(right_positive, right_total, positive, total)
        return left + right - total * Fraction(positive, total)
    if criterion == "auc":
        negative = total - positive
        sides = [(left_positive, left_total - left_positive), (right_positive, right_total - right_positive)]
        return 2 * positive * negative * abs(area_under_roc(sides) - Fraction(1, 2))
    if criterion == "error":
        all_positive, all_total = whole or (positive, total)
        miss, false_alarm = all_total - all_positive, all_positive  # costs: both classes of the whole cost the same
        mistakes = min(
            miss * missed + false_alarm * (rest - found)
            for missed, found, rest in (
                (right_positive, left_positive, left_total),
                (left_positive, right_positive, right_total),
            )
        )
        return Fraction(miss * positive + false_alarm * (total - positive), 2) - mistakes
    impurity = {"gini": gini, "entropy": entropy}[criterion]
    return (
        total * impurity(positive, total)
        - left_total * impurity(left_positive, left_total)
        - right_total * impurity(right_positive, right_total)
    )


# Binning and histograms


def greedy_cuts(mass, max_bins):
    """Ends of the runs, the last one left out; every step adds up the mass still to come again."""
    ends, first = [], 0
    for i in range(len(mass) - 1):
        bins_left = max_bins - len(ends)
        share = sum(mass[first:]) / bins_left
        if bins_left > 1 and (sum(mass[first : i + 1]) >= share or (mass[i + 1] >= share and bins_left > 2)):
            ends.append(i)
            first = i + 1
    return ends


def bin_of(value, edges):
    """Number of edges below the value."""
    return sum(1 for edge in edges if edge < value)


def histogram(binned, rows, positive, total, n_bins):
    """For each feature, [positive, total] weight of each bin, the missing bin last."""
    out = [[[0, 0] for _ in range(n + 1)] for n in n_bins]
    for row in rows:
        for f, code in enumerate(binned[row]):
            out[f][code][0] += int(positive[row])
            out[f][code][1] += int(total[row])
    return out


def stable_partition(rows, goes_left):
    """Rows that go left, then the others, each in their order."""
    return [row for row in rows if goes_left(row)] + [row for row in rows if not goes_left(row)]


# Splits: a table here is (columns, is_categorical, positive, total), columns[f][row], missing = NaN


def weight_of(rows, weights):
    return sum(int(weights[row]) for row in rows)


def conditions(column, categorical, rows):
    """Every set of rows that a condition can send left: every cut or subset, missing values either way."""
    missing = frozenset(row for row in rows if math.isnan(column[row]))
    groups = {}
    for row in rows:
        if row not in missing:
            groups.setdefault(float(column[row]), set()).add(row)
    if categorical:
        levels = [frozenset(groups[value]) for value in groups] + ([missing] if missing else [])
        for size in range(1, len(levels)):
            for chosen in combinations(levels, size):
                yield frozenset().union(*chosen)
        return
    left = frozenset()
    values = sorted(groups)
    for value in values[:-1]:
        left |= groups[value]
        yield left
        if missing:
            yield left | missing
    if missing and values:
        yield left | groups[values[-1]]


def best_split(table, rows, criterion, min_leaf=1, whole=None):
    """Largest gain over all conditions, and (feature, left rows) of every condition that reaches it.

    None where no condition leaves min_leaf on both sides.
    """
    columns, is_categorical, positive, total = table
    all_positive, all_total = weight_of(rows, positive), weight_of(rows, total)
    found = []
    for f, column in enumerate(columns):
        for left in conditions(column, is_categorical[f], rows):
            left_total = weight_of(left, total)
            if min(left_total, all_total - left_total) < max(min_leaf, 1):
                continue
            value = gain(criterion, weight_of(left, positive), left_total, all_positive, all_total, whole)
            found.append((float(value), f, left))
    if not found:
        return None
    best = max(value for value, _, _ in found)
    return best, [(f, left) for value, f, left in found if math.isclose(value, best, rel_tol=1e-9, abs_tol=1e-9)]


def greedy_leaves(table, rows, criterion, depth, min_leaf=1, min_split=2, whole=None, carried=None):
    """Leaves of the greedy tree, as lists of rows; raises where partitions tie for the best.

    With the stopping rule of MetaAP `carried` is the AP that the condition above gave this side; None: without it.
    """
    _, _, positive, total = table
    n_positive, n = weight_of(rows, positive), weight_of(rows, total)
    if depth == 0 or n_positive in (0, n) or n < max(min_split, 2 * min_leaf):
        return [rows]
    whole = whole or (n_positive, n)
    found = best_split(table, rows, criterion, min_leaf, whole)
    if found is None:
        return [rows]
    left = found[1][0][1]
    partition = {left, frozenset(rows) - left}
    if any({other, frozenset(rows) - other} != partition for _, other in found[1]):
        raise ArithmeticError("The best split is tied: this table has several greedy trees.")
    parts = [row for row in rows if row in left], [row for row in rows if row not in left]
    sides = [None, None]
    if carried is not None:
        sides = side_average_precisions(table, parts)
        if sum(weight_of(part, total) * side for part, side in zip(parts, sides, strict=True)) < n * carried:
            return [rows]
    return [
        leaf
        for part, side in zip(parts, sides, strict=True)
        for leaf in greedy_leaves(table, part, criterion, depth - 1, min_leaf, min_split, whole, side)
    ]


def side_average_precisions(table, parts):
    """AP_left and AP_right of section 4 of the MetaAP paper: each side in turn is called positive."""
    _, _, positive, total = table
    counts = [(weight_of(part, positive), weight_of(part, total)) for part in parts]
    both = [sum(pair) for pair in zip(*counts, strict=True)]
    return [two_leaf_average_precision(*count, *both) for count in counts]


# Categories: levels are (positive, negative) counts of cases


def level_order(levels, smooth):
    """Levels by shrunk rate, best first; rounded as any program would, so that ties are the same ones."""
    positive, total = sum(p for p, _ in levels), sum(p + n for p, n in levels)
    prior = smooth * positive / total if total else 0.0
    return sorted(range(len(levels)), key=lambda i: -_ratio(levels[i][0] + prior, sum(levels[i]) + smooth))


def _ratio(part, whole):
    return part / whole if whole > 0 else 0.0


def best_level_cut(criterion, levels, order, members, min_leaf, max_levels, whole=None):
    """(gain, number of levels on the left) of the best cut of ordered levels; None where no cut is allowed."""
    positive, total = sum(p for p, _ in levels), sum(p + n for p, n in levels)
    found = []
    for cut in range(1, len(order)):
        left = order[:cut]
        left_positive, left_total = sum(levels[i][0] for i in left), sum(sum(levels[i]) for i in left)
        named = sum(members[i] for i in left)
        if min(left_total, total - left_total) >= min_leaf and min(named, sum(members) - named) <= max_levels:
            found.append((gain(criterion, left_positive, left_total, positive, total, whole), cut))
    return max(found, key=lambda pair: pair[0], default=None)


def honest_gain(criterion, levels, members, heads, smooth, min_leaf, max_levels, whole=None):
    """Mean gain of the best cut of one half of the cases in the order of the other half, which a coin a case chooses.

    The largest level comes first; heads[h][place][class][k] = heads among the first k coins of the level's cases.
    """
    everything = [sum(level[kind] for level in levels) for kind in (0, 1)]
    by_size = sorted(range(len(levels)), key=lambda i: (-sum(levels[i]), -levels[i][0]))
    levels, members = [levels[i] for i in by_size], [members[i] for i in by_size]
    gains = []
    for tossed in heads:
        halves = [[[0, 0] for _ in levels] for _ in (0, 1)]
        for place, level in enumerate(levels):
            for kind in (0, 1):
                for case in range(level[kind]):
                    is_head = tossed[place][kind][case + 1] - tossed[place][kind][case]
                    halves[0 if is_head else 1][place][kind] += 1
        for guide, judge in (halves, halves[::-1]):
            sums = [sum(level[kind] for level in judge) for kind in (0, 1)]
            if 0 in sums:
                gains.append(0.0)
                continue
            scaled = [tuple(Fraction(level[k] * everything[k], sums[k]) for k in (0, 1)) for level in judge]
            order = level_order(guide, smooth / 2)
            found = best_level_cut(criterion, scaled, order, members, min_leaf, max_levels, whole)
            gains.append(max(float(found[0]), 0.0) if found else 0.0)
    return sum(gains) / len(gains)


def category_split(criterion, counts, heads, rules, min_leaf, few):
    """(gain, codes on the left) of the condition offered on a category; None where there is none.

    counts: (positive, negative) cases by code; rules: cat_smooth, min_data_per_group, max_cat_threshold.
    """
    smooth, least, most = rules
    rare = [code for code in sorted(counts) if sum(counts[code]) < least]
    groups = []
    for code in sorted(counts):
        if code not in rare:
            groups.append([code])
        elif code == rare[0]:
            groups.append(rare)
    levels = [tuple(sum(counts[code][kind] for code in group) for kind in (0, 1)) for group in groups]
    members = [len(group) for group in groups]
    order = level_order(levels, smooth)
    found = best_level_cut(criterion, levels, order, members, min_leaf, most)
    if found is None:
        return None
    value, cut = float(found[0]), found[1]
    if len(groups) > few:
        value = min(value, honest_gain(criterion, levels, members, heads, smooth, min_leaf, most))
    return value, {code for i in order[:cut] for code in groups[i]}


# Meta-trees


def meta_order(cells, positive, total):
    """Cells by (1 - precision) / recall; ties: more positives first; cells without positives last."""
    all_positive = sum(weight_of(cell, positive) for cell in cells)

    def key(cell):
        found = weight_of(cell, positive)
        if found == 0:
            return (1, Fraction(0), 0)
        precision = Fraction(found, weight_of(cell, total))
        return (0, (1 - precision) / Fraction(found, all_positive), -found)

    return sorted(cells, key=key)


def meta_cut(ordered, positive, total):
    """(number of cells on the left, AP of the left part) where that AP is largest; the first of equals."""
    rows = [row for cell in ordered for row in cell]
    n_positive, n = weight_of(rows, positive), weight_of(rows, total)
    values = []
    for k in range(1, len(ordered)):
        left = [row for cell in ordered[:k] for row in cell]
        values.append(two_leaf_average_precision(weight_of(left, positive), weight_of(left, total), n_positive, n))
    return values.index(max(values)) + 1, max(values)


def meta_leaves(table, rows, max_depth, inner_depth, min_leaf=1):
    """Leaves of the MetaAP tree, best first: inner tree, order of its cells, cut, the same on both parts."""
    _, _, positive, total = table
    if max_depth == 0:
        return [rows]
    cells = greedy_leaves(table, rows, "ap", inner_depth, min_leaf)
    if len(cells) == 1:
        return [rows]
    ordered = meta_order(cells, positive, total)
    cut, _ = meta_cut(ordered, positive, total)
    out = []
    for part in (ordered[:cut], ordered[cut:]):
        members = sorted(row for cell in part for row in cell)
        out += meta_leaves(table, members, max_depth - 1, inner_depth, min_leaf)
    return out


def inner_leaf(trees, table, node, row):
    """Cell that a row reaches from the given root of an inner tree."""
    while trees.feature[node] >= 0:
        value = table.X[row, trees.feature[node]]
        if math.isnan(value):
            left = trees.missing_left[node]
        elif table.is_categorical[trees.feature[node]]:
            left = trees.goes_left[node, int(value)]
        else:
            left = value <= trees.threshold[node]
        node = trees.left[node] if left else trees.right[node]
    return int(node)


def meta_cells(meta, table, node, rows):
    """Rows of each cell of a meta-node's inner tree."""
    inner = meta.inner[node]
    cells = {}
    for row in rows:
        cells.setdefault(inner_leaf(inner.nodes, table, inner.index[0], row), []).append(row)
    return cells


def meta_members(meta, table):
    """Rows of every meta-node, by walking the inner trees."""
    rows = {0: table.rows}
    for node in meta.preorder():
        if meta.left[node] >= 0:
            cells, is_left = meta_cells(meta, table, node, rows[node]), meta.inner[node].is_left
            for child, side in ((meta.left[node], True), (meta.right[node], False)):
                rows[int(child)] = sorted(row for cell, own in cells.items() if is_left[cell] == side for row in own)
    return rows


# Traversal and scores: one row at a time


def goes_left(tree, node, row):
    """Whether a row (list of floats) satisfies the condition of a node."""
    kind = tree.kind[node]
    if kind == CATEGORY:
        value = row[tree.feature[node]]
        if math.isnan(value) or value < 0 or value >= 256:
            return bool(tree.missing_left[node])
        bits = tree.category_bits[tree.category_at[node]]
        return int(value) in {64 * word + bit for word in range(4) for bit in range(64) if int(bits[word]) >> bit & 1}
    value = row[tree.feature[node]] if kind == NUMERIC else weighted_sum(tree, node, row)
    return bool(tree.missing_left[node]) if math.isnan(value) else bool(value <= tree.threshold[node])


def weighted_sum(tree, node, row):
    """What an oblique condition looks at."""
    total = 0.0
    for i in range(tree.oblique_at[node], tree.oblique_at[node + 1]):
        value, code = row[tree.oblique_feature[i]], tree.oblique_code[i]
        if code >= 0:
            value = 1.0 if value == code else 0.0
        total += tree.oblique_weight[i] * (tree.oblique_fill[i] if math.isnan(value) else value)
    return total


def path(tree, row):
    """Nodes from the root to the leaf."""
    nodes = [0]
    while tree.kind[nodes[-1]] != LEAF:
        node = nodes[-1]
        nodes.append(int(tree.left[node] if goes_left(tree, node, row) else tree.right[node]))
    return nodes


def margin(tree, row, scale):
    """Distance to the nearest threshold on the way, in units of scale, of sums in their own; 0 where there is none."""
    return _nearest(tree, row, scale, path(tree, row)[:-1])


def _nearest(tree, row, scale, nodes):
    distances = []
    for node in nodes:
        f = tree.feature[node]
        if tree.kind[node] == NUMERIC and not math.isnan(row[f]) and math.isfinite(tree.threshold[node]):
            distances.append(abs(row[f] - tree.threshold[node]) / scale[f])
        elif tree.kind[node] == OBLIQUE and math.isfinite(weighted_sum(tree, node, row) - tree.threshold[node]):
            distances.append(abs(weighted_sum(tree, node, row) - tree.threshold[node]))
    return min(distances, default=0.0)


def stages(tree, row, part_at, n_stages, scale):
    """Part that a row is in after 1, 2, ... stages, and its margin up to there; a stage ends where a part begins."""
    nodes = path(tree, row)
    begun = [i for i, node in enumerate(nodes) if part_at[node] >= 0]
    ends = [begun[min(stage, len(begun) - 1)] for stage in range(1, n_stages + 1)]
    return [part_at[nodes[i]] for i in ends], [_nearest(tree, row, scale, nodes[:i]) for i in ends]


def scorecard(row, scoring):
    """Points of a row."""
    points = 0.0
    for f, value in enumerate(row):
        own = list(scoring.category_points[scoring.points_at[f] : scoring.points_at[f + 1]])
        if own:
            points += own[int(value)] if not math.isnan(value) and 0 <= value < len(own) else scoring.missing[f]
        elif math.isnan(value):
            points += scoring.missing[f]
        else:
            points += scoring.weight[f] * (value - scoring.center[f])
    return points


def confusion_score(tree, row, confusion):
    """Mean leaf rate, a leaf weighing confusion ** (conditions broken on the way to it); every path."""
    votes = list(_votes(tree, row, confusion, 0, 1.0))
    return sum(weight * rate for weight, rate in votes) / sum(weight for weight, _ in votes)


def _votes(tree, row, confusion, node, factor):
    if tree.kind[node] == LEAF:
        yield factor, tree.rate[node]
        return
    left = goes_left(tree, node, row)
    yield from _votes(tree, row, confusion, tree.left[node], factor * (1.0 if left else confusion))
    yield from _votes(tree, row, confusion, tree.right[node], factor * (confusion if left else 1.0))


def score(tree, row):
    """Score of a row from its leaf and the tree's scoring, from the definitions."""
    scoring, leaf = tree.scoring, path(tree, row)[-1]
    if scoring.kind == "constant":
        return tree.score[leaf]
    if scoring.kind == "votes":
        return confusion_score(tree, row, scoring.decay)
    if scoring.kind == "linear":
        place = scorecard(row, scoring)
    else:
        rich = tree.positive[leaf] / (tree.positive[leaf] + tree.negative[leaf])
        turn = scoring.turn or tree.positive[0] / (tree.positive[0] + tree.negative[0])
        place = margin(tree, row, scoring.scale) * (1 if rich > turn else -1)
    return tree.score[leaf] - (0.5 - 0.499 * place / (1 + abs(place))) / (max(tree.leaf) + 1)


def average_precision_at(groups, k):
    """AP@k of groups of (positive, total), best first: as AP, of the part of the ranking within the first k cases.

    Cases of a group are in random order, so the part of a group within k has its share of the positives. The sum over
    the parts of positives times the precision at the end of the part, divided by min(positives, k).
    """
    k, value = Fraction(k), Fraction(0)
    positives, cases = Fraction(0), Fraction(0)
    for positive, total in groups:
        part = min(Fraction(total), k - cases)
        if part <= 0:
            break
        found = Fraction(positive) * part / total
        positives, cases = positives + found, cases + part
        value += found * positives / cases
    return value / min(Fraction(sum(positive for positive, _ in groups)), k)
