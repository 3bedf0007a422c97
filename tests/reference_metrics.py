"""Slow, obvious versions of the measures, and the small tables they are compared on."""

from itertools import permutations, product

import numpy as np
from hypothesis import strategies as st


def tie_orders(score):
    """Yield every order of the rows, best score first, that the ties leave open."""
    groups = [[row for row in range(len(score)) if score[row] == value] for value in sorted(set(score), reverse=True)]
    for choice in product(*(permutations(group) for group in groups)):
        yield [row for group in choice for row in group]


def over_tie_orders(measure, score, ties):
    """Mean, largest or smallest value of `measure(order)` over all tie orders."""
    values = [measure(order) for order in tie_orders(score)]
    return {"expected": sum(values) / len(values), "best": max(values), "worst": min(values)}[ties]


def average_precision_of_order(y, order):
    found, precisions = 0, []
    for rank, row in enumerate(order, start=1):
        if y[row]:
            found += 1
            precisions.append(found / rank)
    return sum(precisions) / len(precisions)


def found_in_order(y, order, k, amount=None):
    return sum((1 if amount is None else amount[row]) for row in order[:k] if y[row])


def grouped_average_precision(y, score, weight):
    """Equation (2) of the MetaAP paper, one threshold at a time."""
    total, recall_before, value = sum(w for label, w in zip(y, weight, strict=True) if label), 0.0, 0.0
    for threshold in sorted(set(score), reverse=True):
        called = [(label, w) for label, s, w in zip(y, score, weight, strict=True) if s >= threshold]
        tp = sum(w for label, w in called if label)
        recall = tp / total
        if recall > recall_before:
            value += (recall - recall_before) * tp / sum(w for _, w in called)
        recall_before = recall
    return value


def auc_over_pairs(y, score, weight):
    won = weighed = 0.0
    for i, j in product(range(len(y)), repeat=2):
        if y[i] and not y[j]:
            won += weight[i] * weight[j] * ((score[i] > score[j]) + 0.5 * (score[i] == score[j]))
            weighed += weight[i] * weight[j]
    return won / weighed


def pos_at_top_of(y, score):
    best_negative = max(s for label, s in zip(y, score, strict=True) if not label)
    return sum(s > best_negative for label, s in zip(y, score, strict=True) if label) / sum(y)


def depth_of_share(percent, whole):
    """The ceiling of percent * whole / 100, in whole numbers only; at least 1."""
    return max(1, -(-percent * whole // 100))


def wilson(positives, n, z):
    """The two shares p with (x/n - p)^2 = z^2 p (1 - p) / n: roots of a quadratic."""
    share = positives / n
    return sorted(np.roots([1 + z**2 / n, -2 * share - z**2 / n, share**2]).real)


@st.composite
def ranked_cases(draw, max_size=6, n_scores=3):
    """Labels with both classes and scores with many ties, as lists."""
    n = draw(st.integers(2, max_size))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n).filter(lambda labels: 0 < sum(labels) < n))
    score = draw(st.lists(st.integers(0, n_scores - 1), min_size=n, max_size=n))
    return y, score


@st.composite
def weighted_cases(draw, max_size=12, weights=None):
    """Labels, scores with ties, and weights of which both classes have a positive one."""
    if weights is None:
        weights = st.integers(0, 3)
    y, score = draw(ranked_cases(max_size=max_size, n_scores=4))
    weight = draw(st.lists(weights, min_size=len(y), max_size=len(y)))
    for label in (0, 1):
        weight[y.index(label)] = max(weight[y.index(label)], 1)
    return y, score, weight


def repeat_rows(weight, *columns):
    """Return the columns with every row as often as its weight says."""
    return [np.repeat(column, weight) for column in columns]


def tied_table(n=400, seed=0, n_levels=30):
    """A larger table with a rare class, ties and weights: (y, score, weight)."""
    generator = np.random.default_rng(seed)
    y = (generator.random(n) < 0.1).astype(int)
    score = np.floor(n_levels * (generator.random(n) + 0.3 * y)) / n_levels
    return y, score, generator.integers(1, 5, n) / 2
