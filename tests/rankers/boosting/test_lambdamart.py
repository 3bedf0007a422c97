"""Lambda gradients against pairs that really change places, and the pairs that are drawn of a long list."""

import numpy as np
import pytest

from toprank import LambdaMART
from toprank.datasets import make_audit
from toprank.metrics import average_precision
from toprank.rankers.boosting.lambdamart import LambdaAP


def make_scores(n=40, n_positives=9, seed=0):
    rng = np.random.default_rng(seed)
    is_positive = np.zeros(n, bool)
    is_positive[rng.choice(n, n_positives, replace=False)] = True
    return rng.normal(size=n) + 0.5 * is_positive, is_positive


def brute_force(score, is_positive):
    """Loss, gradient and curvature pair by pair: the two really swap scores, and AP is computed anew."""
    before = average_precision(is_positive, score)
    loss, gradient, curvature = 0.0, np.zeros(len(score)), np.zeros(len(score))
    for i in np.flatnonzero(is_positive):
        for j in np.flatnonzero(~is_positive):
            swapped = score.copy()
            swapped[[i, j]] = score[[j, i]]
            change = abs(average_precision(is_positive, swapped) - before)
            wrong = 1 / (1 + np.exp(score[i] - score[j]))
            loss += change * np.log1p(np.exp(score[j] - score[i]))
            gradient[i] -= change * wrong
            gradient[j] += change * wrong
            curvature[[i, j]] += change * wrong * (1 - wrong)
    return loss, gradient, curvature


@pytest.mark.parametrize("seed", range(5))
def test_lambdas_are_those_of_pairs_that_swap(seed):
    score, is_positive = make_scores(seed=seed)
    weight = np.ones(len(score))
    loss, gradient, curvature = brute_force(score, is_positive)
    assert LambdaAP().value(score, is_positive, weight) == pytest.approx(loss, rel=1e-12)
    slopes = LambdaAP().slopes(score, is_positive, weight)
    scale = weight.sum() / curvature.sum()
    np.testing.assert_allclose(slopes.gradient, scale * gradient, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(slopes.curvature, scale * curvature, rtol=1e-6, atol=1e-6)


def test_the_gradient_is_that_of_the_value_while_the_order_stays():
    score, is_positive = make_scores()
    weight = np.random.default_rng(1).uniform(0.5, 3.0, len(score))
    slopes, step = LambdaAP().slopes(score, is_positive, weight), 1e-6
    numeric = np.empty(len(score))
    for i in range(len(score)):
        sides = [score.copy(), score.copy()]
        sides[0][i] -= step
        sides[1][i] += step
        assert np.array_equal(np.argsort(sides[0]), np.argsort(sides[1]))
        low, high = (LambdaAP().value(side, is_positive, weight) for side in sides)
        numeric[i] = (high - low) / (2 * step)
    np.testing.assert_allclose(
        slopes.gradient / np.abs(slopes.gradient).sum(), numeric / np.abs(numeric).sum(), atol=1e-8
    )


def test_all_weights_doubled_change_the_scale_alone():
    score, is_positive = make_scores()
    one, two = (LambdaAP().slopes(score, is_positive, np.full(40, w)) for w in (1.0, 2.0))
    np.testing.assert_allclose(two.gradient, 2 * one.gradient, rtol=1e-12)


def test_rows_without_weight_do_not_count():
    score, is_positive = make_scores()
    weight = np.ones(40)
    weight[::3] = 0
    some, kept = LambdaAP().slopes(score, is_positive, weight), weight > 0
    alone = LambdaAP().slopes(score[kept], is_positive[kept], weight[kept])
    np.testing.assert_allclose(some.gradient[kept], alone.gradient, rtol=1e-12)
    assert not some.gradient[~kept].any()
    assert not some.curvature[~kept].any()


def test_ties_do_not_know_the_labels():
    """With all scores equal, positives that come first in the table are not taken for well ranked."""
    first, last = np.arange(400) < 20, np.arange(400) >= 380
    steps = [LambdaAP().slopes(np.zeros(400), labels, np.ones(400)).gradient for labels in (first, last)]
    sizes = [np.abs(step[labels]).sum() for step, labels in zip(steps, (first, last), strict=True)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.3)
    assert np.all(steps[0][first] < 0)


def test_drawn_pairs_agree_with_all_pairs_on_average():
    score, is_positive = make_scores(2000, 40, 3)
    weight = np.ones(2000)
    whole = LambdaAP()._lambdas(score, is_positive, weight)[0]
    exact, stride = LambdaAP(0, 8000)._design(40, 1960)
    assert (exact, stride) == (100, 19)
    parts = [LambdaAP(turn, 8000)._lambdas(score, is_positive, weight)[0] for turn in range(stride)]
    np.testing.assert_allclose(np.mean(parts, axis=0), whole, rtol=1e-9, atol=1e-12)
    assert not np.allclose(parts[0], whole, rtol=1e-3)


@pytest.mark.parametrize("counts", [(10, 100), (1, 10**7), (10**6, 10**6), (3 * 10**6, 50), (2000, 1001)], ids=str)
def test_a_round_meets_at_most_the_pairs_it_can_afford(counts):
    n_positives, n_negatives = counts
    exact, stride = LambdaAP()._design(n_positives, n_negatives)
    met = exact + -(-(n_negatives - exact) // stride)
    assert exact >= 1
    assert n_positives * met <= max(2_000_000, 64 * n_positives) + n_positives


def test_one_class_has_no_slopes():
    slopes = LambdaAP().slopes(np.arange(5.0), np.zeros(5, bool), np.ones(5))
    assert not slopes.gradient.any()


def test_it_ranks_new_cases():
    data, new = make_audit(3000, random_state=0), make_audit(4000, random_state=5)
    model = LambdaMART(n_estimators=40, cv=0, random_state=0).fit(data.X, data.y)
    assert model.score(new.X, new.y) > 4 * np.mean(new.y)
