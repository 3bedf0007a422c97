import numpy as np
import pytest

from experiment_cases import make_frame
from toprank.experiment.plan import Plan
from toprank.experiment.search import Tuner, groups_of, product_of, scores_of

FRAME = make_frame(150, text=False)
X, Y = FRAME.drop(columns="label"), FRAME.label.to_numpy()
FOLDS = [(np.flatnonzero(np.arange(150) % 3 != i), np.flatnonzero(np.arange(150) % 3 == i)) for i in range(3)]


def tuner_of(entry, **others):
    plan = Plan.from_dict({"name": "p", "data": ["one"], "methods": {"it": entry}})
    return Tuner(plan.methods[0], plan.protocol, **others)


def test_products_and_groups():
    settings = product_of({"a": [1, 2], "b": ["x", "y"]})
    assert settings == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]
    assert groups_of(settings, "a") == [[0, 2], [1, 3]]
    assert groups_of(settings, None) == [[0], [1], [2], [3]]
    assert product_of({}) == [{}]


@pytest.mark.parametrize("method", ["gini-rate", "gini", "metaap-margin", "entropy-forest"])
def test_one_fit_for_all_depths_scores_as_many_fits_would(method):
    space = {"max_depth": [1, 2, 4], "leaf_depth": [2, 3]} if method == "metaap-margin" else {"max_depth": [1, 3, 5]}
    fits = []
    trees = {"n_estimators": 40} if method == "entropy-forest" else {}
    shared = tuner_of({"method": method, "parameters": trees, "search": space}, before_fit=lambda: fits.append(1))
    settings = product_of(space)
    together = shared.cross_validate(settings, X, Y, FOLDS)
    assert len(fits) == 3 * (2 if method == "metaap-margin" else 1)
    alone = np.vstack([shared.cross_validate([setting], X, Y, FOLDS) for setting in settings])
    assert np.array_equal(together, alone) if method != "entropy-forest" else np.allclose(together, alone, atol=0.08)


def test_the_best_setting_wins_and_of_equals_the_first():
    tuner = tuner_of({"method": "gini-rate", "search": {"max_depth": [1, 3, 1]}})
    tuning = tuner.tune(X, Y, FOLDS)
    scores = [score for _, score in tuning.tried]
    assert tuning.score == max(scores)
    assert tuning.setting == tuning.tried[int(np.argmax(scores))][0]


def test_nothing_to_tune():
    fits = []
    tuning = tuner_of({"method": "gini", "search": {}}, before_fit=lambda: fits.append(1)).tune(X, Y, FOLDS)
    assert (tuning.setting, tuning.score, fits) == ({}, None, [])


def test_a_seed_that_the_plan_names_wins_over_that_of_the_trial():
    tuner = tuner_of({"method": "cart", "parameters": {"random_state": 7}}, random_state=3)
    assert tuner.fit({}, X, Y).random_state == 7
    assert tuner_of("cart", random_state=3).fit({}, X, Y).random_state == 3


def test_halving_spends_less_and_ends_with_one_of_the_good():
    space = {"max_depth": [1, 2, 3, 4], "min_samples_leaf": [1, 5]}
    fits, all_fits = [], []
    halving = tuner_of({"method": "tree", "search": space, "tuner": "halving"}, before_fit=lambda: fits.append(1))
    grid = tuner_of({"method": "tree", "search": space}, before_fit=lambda: all_fits.append(1))
    half, full = halving.tune(X, Y, FOLDS), grid.tune(X, Y, FOLDS)
    assert sum(np.isfinite(score) for _, score in half.tried) == 2
    assert {str(s): v for s, v in full.tried}[str(half.setting)] == pytest.approx(half.score)
    assert len(fits) <= len(all_fits)


def test_optuna_searches_ranges_and_repeats_itself():
    optuna = pytest.importorskip("optuna")
    before = optuna.logging.get_verbosity()
    entry = {"method": "tree", "tuner": "optuna", "n_candidates": 6,
             "search": {"max_depth": {"low": 1, "high": 4}, "criterion": ["gini", "ap"],
                        "smoothing_strength": {"low": 0.1, "high": 50.0, "log": True}}}  # fmt: skip
    a, b = (tuner_of(entry).tune(X, Y, FOLDS) for _ in range(2))
    assert a == b
    assert 1 <= a.setting["max_depth"] <= 4
    assert a.score == max(score for _, score in a.tried)
    assert len(a.tried) <= 6
    assert optuna.logging.get_verbosity() == before != optuna.logging.ERROR


def test_out_of_bag_scores_judge_forests():
    fits = []
    entry = {"method": "metaap-forest", "judge": "out-of-bag", "search": {"max_depth": [1, 2]},
             "parameters": {"n_estimators": 10}}  # fmt: skip
    tuning = tuner_of(entry, before_fit=lambda: fits.append(1)).tune(X, Y, FOLDS)
    assert len(fits) == 2
    assert 0 < tuning.score <= 1
    with pytest.raises(ValueError, match="has no out-of-bag score"):
        tuner_of({"method": "gini", "judge": "out-of-bag"}).tune(X, Y, FOLDS)


def test_scores_of_whatever_an_estimator_offers():
    class Proba:
        def predict_proba(self, X):
            return np.column_stack((1 - X[:, 0], X[:, 0]))

    class Plain:
        def predict(self, X):
            return X[:, 0]

    for model in (Proba(), Plain()):
        assert scores_of(model, np.array([[0.25], [0.5]])).tolist() == [0.25, 0.5]


@pytest.mark.parametrize("parameters", [{"ccp_alpha": 0.01}, {"leaf_depth": None}, {"max_leaf_nodes": 4}])
def test_where_depths_do_not_contain_each_other_every_depth_is_fitted(parameters):
    fits = []
    entry = {"method": "tree" if "max_leaf_nodes" in parameters else "metaap", "parameters": parameters,
             "search": {"max_depth": [1, 2, 3]}}  # fmt: skip
    tuning = tuner_of(entry, before_fit=lambda: fits.append(1)).tune(X, Y, FOLDS)
    assert len(fits) == 3 * 3
    assert np.isfinite([score for _, score in tuning.tried]).all()
