"""What explanations call the rate of a case, and how small rates are written."""

import numpy as np
import pytest

from toprank import KNN, SGBAP, MetaAPForest, RankingTree, RedFlags, Scorecard, StackedRanker

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = X[:, 0] + 0.3 * RNG.normal(size=400) > 1.2


@pytest.mark.parametrize(
    "model",
    [
        RankingTree(max_depth=3),
        SGBAP(n_estimators=10, blend=1.0, random_state=0),
        MetaAPForest(n_estimators=3, random_state=0),
        RedFlags(teacher=None),
        Scorecard(),
        StackedRanker([RankingTree(max_depth=2), RankingTree(max_depth=3)]),
        KNN(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_model_says_whose_rate_it_is(model):
    """Boosters, forests and stacks once said "such past cases" of estimates for new cases, and of training rates."""
    for cv, words in ((3, "expected hit rate "), (0, "training rate ")):
        if cv == 0 and isinstance(model, MetaAPForest):
            continue  # rates are out of bag
        name = "cv" if "cv" in model.get_params() else None
        fitted = model.set_params(**({} if name is None else {name: cv})).fit(X, Y)
        text = str(fitted.explain(X[:1])[0]).splitlines()
        said = " ".join(text[:3])
        assert words in said
        assert " times that of all cases" in said
        assert ("hit rate" in said) == (cv > 0)
        assert fitted.explain(X[:1])[0].to_dict()["is_for_new_cases"] is (cv > 0)


def test_tiny_rates_are_bounded():
    """A hit rate of 1.7e-20 % was printed with all its zeros."""
    fitted = SGBAP(n_estimators=60, blend=1.0, cv=0, random_state=0, learning_rate=1.0).fit(X, Y)
    least = fitted.explain(X)[int(np.argmin(fitted.decision_function(X)))]
    assert 0 < least.rate < 1e-3
    assert "training rate < 0.1 %, less than 0.01 times that of all cases" in str(least)
