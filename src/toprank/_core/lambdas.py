"""Lambda gradients of average precision: sums over pairs of a positive and a negative."""

import numpy as np

from toprank._core.jit import kernel


@kernel
def ap_lambdas(score, weight, is_positive, exact_above, stride, turn, gradient, curvature):
    """Write the lambda gradients of a ranking, and return the sum of its pairs' losses.

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
    Cost: positives * (exact_above + other negatives / stride).
    """
    n = score.shape[0]
    precision = np.empty(n)  # c / t at each place
    total = np.empty(n)  # t
    passed = np.empty(n)  # s
    negatives = np.empty(n, np.int64)
    n_negatives = 0
    above = 0.0
    positive = 0.0
    sum_passed = 0.0
    for i in range(n):
        above += weight[i]
        if is_positive[i]:
            positive += weight[i]
            sum_passed += weight[i] / above
        else:
            negatives[n_negatives] = i
            n_negatives += 1
        total[i] = above
        precision[i] = positive / above
        passed[i] = sum_passed
        gradient[i] = 0.0
        curvature[i] = 0.0
    loss = 0.0
    first = min(exact_above, n_negatives)
    number = 0
    for a in range(n):
        if not is_positive[a]:
            continue
        k = 0
        count = 1.0
        while k < n_negatives:
            b = negatives[k]
            if b < a:
                between = passed[a] - weight[a] / total[a] - passed[b]
                change = precision[b] + 1.0 / total[b] + between - precision[a]
            else:
                change = precision[b] - (passed[b] - passed[a]) - precision[a]
            size = count * abs(change) / positive * weight[a] * weight[b]
            margin = score[a] - score[b]
            small = np.exp(-abs(margin))
            wrong = (small if margin > 0 else 1.0) / (1.0 + small)
            gradient[a] -= size * wrong
            gradient[b] += size * wrong
            curvature[a] += size * wrong * (1.0 - wrong)
            curvature[b] += size * wrong * (1.0 - wrong)
            loss += size * (np.log1p(small) + max(-margin, 0.0))
            if k + 1 == first and stride > 1:
                k = first + (number + turn) % stride
                count = stride
            else:
                k += 1 if k < first else stride
        number += 1
    return loss
