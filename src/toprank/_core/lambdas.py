"""Lambda gradients of average precision: sums over pairs of a positive and a negative."""

import numpy as np

from toprank._core.jit import kernel


@kernel
def ap_lambdas(score, weight, is_positive, exact_above, stride, turn, gradient, curvature):
    """Write the lambda gradients of a ranking.

    A pair of a positive at place a and a negative at place b counts by the change of the average precision if the two
    change places, |delta AP|. With c the positive weight and t the total weight down to a place, and s the sum of
    weight / t over the positives down to a place, the change times the positive weight is, in units of one case,

        b above a:  (c_b + 1) / t_b + s between them - c_a / t_a
        a above b:   c_b / t_b - s between them - c_a / t_a.

    Pre:  score, weight float64 (n,), is_positive bool (n,), in descending order of score; weight > 0, of mean 1.
          The first `exact_above` negatives, at least one, meet every positive. Each positive meets every stride-th of
          the others, which then stand for all of them; where it begins depends on the positive and on `turn`.
    Post: gradient and curvature float64 (n,), of the sum of weight_a * weight_b * |delta AP| * log(1 + exp(s_b - s_a)),
          where |delta AP| counts as a constant.
    Cost: positives * (exact_above + other negatives / stride), a division each.
    """
    n = score.shape[0]
    power = np.exp(np.minimum(np.maximum(score - (score[0] + score[n - 1]) / 2, -700.0), 700.0))
    at, from_above, from_below, passed = _places(weight, is_positive)
    n_negatives = at.shape[0]
    negative_power, negative_weight = power[at], weight[at]
    down, bend = np.zeros(n_negatives), np.zeros(n_negatives)
    first = min(exact_above, n_negatives)
    positive = 0.0
    for a in range(n):
        if is_positive[a]:
            positive += weight[a]
    number = 0
    n_above = 0  # negatives above the positive
    total = 0.0
    own_positive = 0.0
    for a in range(n):
        total += weight[a]
        if not is_positive[a]:
            n_above += 1
            gradient[a] = 0.0
            curvature[a] = 0.0
            continue
        own_positive += weight[a]
        here = passed[a] - own_positive / total
        scale = weight[a] / positive
        up = 0.0
        own_bend = 0.0
        begin = first + (number + turn) % stride
        for part in range(4):  # negatives that all positives meet, above and below; others, above and below
            if part == 0:
                start, stop, step, count = 0, min(first, n_above), 1, 1.0
            elif part == 1:
                start, stop, step, count = min(first, n_above), first, 1, 1.0
            elif part == 2:
                start, stop, step, count = begin, n_above, stride, float(stride)
            else:
                skipped = max(n_above - begin + stride - 1, 0) // stride
                start, stop, step, count = begin + skipped * stride, n_negatives, stride, float(stride)
            is_above = part == 0 or part == 2
            change = from_above if is_above else from_below
            offset = here - weight[a] / total if is_above else here
            for k in range(start, stop, step):
                wrong = negative_power[k] / (power[a] + negative_power[k])
                pull = count * scale * negative_weight[k] * abs(change[k] + offset) * wrong
                up += pull
                own_bend += pull * (1.0 - wrong)
                down[k] += pull
                bend[k] += pull * (1.0 - wrong)
        gradient[a] = -up
        curvature[a] = own_bend
        number += 1
    for k in range(n_negatives):
        gradient[at[k]] = down[k]
        curvature[at[k]] = bend[k]


@kernel
def _places(weight, is_positive):
    """Places of the negatives, what each adds to a change from above and from below a positive, and s at all places."""
    n = weight.shape[0]
    n_negatives = 0
    for i in range(n):
        n_negatives += not is_positive[i]
    at = np.empty(n_negatives, np.int64)
    from_above = np.empty(n_negatives)
    from_below = np.empty(n_negatives)
    passed = np.empty(n)
    k = 0
    total = 0.0
    positive = 0.0
    s = 0.0
    for i in range(n):
        total += weight[i]
        if is_positive[i]:
            positive += weight[i]
            s += weight[i] / total
        else:
            at[k] = i
            from_above[k] = (positive + 1.0) / total - s
            from_below[k] = positive / total - s
            k += 1
        passed[i] = s
    return at, from_above, from_below, passed


@kernel
def ap_pair_loss(score, weight, is_positive):
    """Return the sum over all pairs of weight_a * weight_b * |delta AP| * log(1 + exp(s_b - s_a)).

    Pre:  as in `ap_lambdas`.
    Cost: positives * negatives, two transcendental functions each.
    """
    at, from_above, from_below, passed = _places(weight, is_positive)
    loss = 0.0
    total = 0.0
    positive = 0.0
    for a in range(score.shape[0]):
        total += weight[a]
        if not is_positive[a]:
            continue
        positive += weight[a]
        here = passed[a] - positive / total
        for k in range(at.shape[0]):
            b = at[k]
            change = from_above[k] + here - weight[a] / total if b < a else from_below[k] + here
            margin = score[a] - score[b]
            loss += weight[a] * weight[b] * abs(change) * (np.log1p(np.exp(-abs(margin))) + max(-margin, 0.0))
    return loss / positive
