"""MLFP: the ranker, its prediction, its bounds, and what it does with odd tables."""

import math
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from toprank import MLFP, GammaKNN, InputError, load
from toprank._core.threads import Threads
from toprank.experiment.metric_tuning import tune_mlfp
from toprank.rankers.neighbours.known import DecidingCounts, KnownCases, ratios
from toprank.rankers.neighbours.mlfp import evaluate_bound


def make_rare(n=240, n_positive=30, d=5, seed=0):
    """Positives are shifted along the first column; the others are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (np.arange(n) < n_positive).astype(int)
    X[y == 1, 0] += 2.0
    order = rng.permutation(n)
    return X[order], y[order]


def plain_score(X, y, matrix, X_new, k):
    """d- / (d+ + d-) with the distances that decide the vote of k, by plain loops."""
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    X, X_new = (X - mean) / deviation, (X_new - mean) / deviation
    out = []
    for x in X_new:
        near = sorted((x - p) @ matrix @ (x - p) for p in X[y == 1])[(k + 1) // 2 - 1]
        far = sorted((x - p) @ (x - p) for p in X[y == 0])[k - (k + 1) // 2]
        out.append(math.sqrt(far) / (math.sqrt(far) + math.sqrt(near)))
    return np.array(out)


@pytest.mark.parametrize("form", ["diagonal", "full", "low_rank"])
@pytest.mark.parametrize("k", [1, 3])
def test_the_learned_distance_is_used_towards_positives_only(form, k):
    X, y = make_rare()
    new = np.random.default_rng(1).normal(size=(40, 5))
    model = MLFP(n_neighbors=k, form=form, cv=0).fit(X, y)
    expected = plain_score(X, y, model.get_mahalanobis_matrix(), new, k)
    assert model.decision_function(new) == pytest.approx(expected, rel=1e-9)
    assert np.array_equal(model.predict(new) == 1, expected > 0.5)


def test_columns_of_noise_shrink_most():
    X, y = make_rare(600, 60)
    weights = np.diag(MLFP(mu=1e-3, cv=0).fit(X, y).get_mahalanobis_matrix())
    assert np.all(weights <= 1.0)
    assert weights[0] > weights[1:].max() + 0.1


def test_transform_has_the_learned_distances():
    X, y = make_rare()
    model = MLFP(form="full", cv=0).fit(X, y)
    image, scaled = model.transform(X), (X - X.mean(axis=0)) / X.std(axis=0)
    gap = scaled[3] - scaled[7]
    assert np.sum((image[3] - image[7]) ** 2) == pytest.approx(gap @ model.get_mahalanobis_matrix() @ gap)
    assert model.components_.T @ model.components_ == pytest.approx(model.get_mahalanobis_matrix())


def test_the_constraint_never_adds_misses():
    """Proposition 3: with no eigenvalue above 1, the nearest positive only moves nearer (k = 1)."""
    X, y = make_rare(400, 60)
    plain = MLFP(n_neighbors=1, mu=1e9, cv=0).fit(X[:300], y[:300])
    learned = MLFP(n_neighbors=1, mu=1e-3, cv=0).fit(X[:300], y[:300])
    assert np.all(learned.decision_function(X[300:]) >= plain.decision_function(X[300:]) - 1e-9)
    missed = [np.sum((model.predict(X[300:]) == 0) & (y[300:] == 1)) for model in (learned, plain)]
    assert missed[0] < missed[1]


def random_metric(rng, d, largest):
    """L of a matrix M = L'L with the given largest eigenvalue."""
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    eigenvalues = np.append(largest, rng.uniform(0.05, largest, d - 1))
    return np.sqrt(eigenvalues)[:, None] * turn


def test_no_eigenvalue_above_1_misses_less_and_alarms_more():
    """Proposition 3, over samples of a population, with the metrics of MLFP and any others that it could find.

    FN_M(x) <= FN(x) and FP_M(x) >= FP(x) hold for every query, not on average alone. With an eigenvalue above 1 they do
    not: the constraint is what the proposition rests on.
    """
    rng = np.random.default_rng(0)
    d, n_runs = 3, 60
    queries = rng.normal(size=(50, d)) * 0.7 + 0.5
    X, y = make_rare(300, 40, d)
    learned = MLFP(form="full", mu=1e-3, cv=0).fit(X, y).components_
    inside = [learned, *(random_metric(rng, d, 1.0) for _ in range(4))]
    outside = random_metric(rng, d, 4.0)
    alarmed = np.zeros((7, len(queries)))  # a positive query is missed in all other runs
    for _ in range(n_runs):
        y = np.repeat([1, 0], [8, 80])
        X = rng.normal(size=(88, d)) + y[:, None]
        for at, components in enumerate([np.eye(d), *inside, outside]):
            known = KnownCases.learn(X, y == 1, None, components=components)
            alarmed[at] += ratios(*known.distances(queries, DecidingCounts.from_k(1), Threads(1))) > 1.0
    plain, others, wide = alarmed[0], alarmed[1:-1], alarmed[-1]
    assert np.all(others >= plain), "FP rises and FN falls, query by query"
    assert np.all(others.sum(axis=1) > 1.1 * plain.sum())
    assert np.any(wide < plain), "not so with an eigenvalue above 1"


def test_misses_have_the_probability_of_equation_3_2():
    """FN_M = (1 - P(x' in the ellipsoid)) ** m+, for a query at 0 whose nearest negative is at eps."""
    rng = np.random.default_rng(0)
    eps, m, n_runs = 0.1, 6, 20_000
    axes = np.array([1.0, 0.25])  # eigenvalues; the area of the ellipse is pi eps^2 / sqrt(their product)
    positives = rng.uniform(-1, 1, (n_runs, m, 2))
    missed = []
    for eigenvalues in (axes, np.ones(2)):
        nearest = np.sqrt((positives**2 @ eigenvalues).min(axis=1))
        found = np.mean(ratios(nearest, np.full(n_runs, eps)) <= 1.0)
        expected = (1 - np.pi * eps**2 / np.sqrt(eigenvalues.prod()) / 4) ** m
        assert abs(found - expected) < 4 * np.sqrt(expected * (1 - expected) / n_runs)
        missed.append(found)
    assert missed[0] < missed[1]


def test_it_is_a_metric_of_gamma_knn():
    X, y = make_rare()
    model = MLFP(cv=0).fit(X, y)
    by_object = GammaKNN(metric=MLFP(), scaling="standard", gamma=1.0).fit(X, y)
    by_array = GammaKNN(metric=model.components_, scaling="standard", gamma=1.0).fit(X, y)
    assert np.array_equal(by_object.decision_function(X), model.decision_function(X))
    assert np.array_equal(by_array.decision_function(X), model.decision_function(X))


def test_rates_come_from_folds_whose_metric_has_not_seen_the_rows():
    X, y = make_rare(seed=5)
    noise = np.random.default_rng(0).permutation(y)
    model = MLFP(cv=4, mu=1e-4, max_iter=2000).fit(X, noise)
    assert model.rates_.is_for_new_cases
    assert "4-fold" in model.rates_.source
    assert model.vote_f1_ < 0.4, "labels are noise"
    assert not MLFP(cv=0).fit(X, y).rates_.is_for_new_cases


def test_all_and_sampled_triplets_agree_roughly_with_one_another():
    X, y = make_rare(300, 40)
    every = MLFP(triplets="all", mu=1e-3, cv=0).fit(X, y)
    some = MLFP(triplets="sampled", n_sampled=60, mu=1e-3, cv=0).fit(X, y)
    assert every.n_triplets_ == 40 * 260 * 300 == pytest.approx(some.n_triplets_)
    assert np.diag(some.get_mahalanobis_matrix()) == pytest.approx(np.diag(every.get_mahalanobis_matrix()), abs=0.15)
    other = MLFP(triplets="sampled", n_sampled=60, mu=1e-3, cv=0, random_state=1).fit(X, y)
    assert not np.array_equal(other.components_, some.components_)


def test_all_triplets_of_too_many_rows_are_refused(monkeypatch):
    from toprank.rankers.neighbours import triplets

    monkeypatch.setattr(triplets, "MAX_RIVALS", 1000)
    with pytest.raises(InputError, match="sampled"):
        MLFP(triplets="all", cv=0).fit(*make_rare())


def test_too_few_iterations_are_reported():
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        model = MLFP(max_iter=1, mu=1e-5, cv=0).fit(*make_rare())
    assert model.gap_ > 1e-3 * model.objective_[0]


def test_rounding_is_reported_as_such():
    X = np.array([[-0.5, 1.0], [-0.4, 0.0], [1e100, 1.0], [-0.6, 0.0]])
    with pytest.warns(ConvergenceWarning, match="rounding"):
        model = MLFP(scaling=None, n_neighbors=1, mu=0.1, cv=0).fit(X, [0, 0, 0, 1], [1, 1, 1, 3])
    assert model.n_iter_ < 10
    assert model.gap_ > 1e-3 * model.objective_[0]


# --- bounds -----------------------------------------------------------------------------------------------------


def test_the_constants_of_the_theorems():
    bound = evaluate_bound(delta=0.05, empirical_risk=0.2, m=99, alpha=0.1, mu=0.5, c=0.0, radius=2.0, why_not="")
    root = math.sqrt(math.log(40) / (2 * 99))
    sigma, stated = 0.9 * (1 + 16), 12 / 0.5 * (0.9 * 4) ** 2
    kappa = 6 / 0.5 * (4 * 0.9 * 4) ** 2  # theorem 5
    assert bound.worst == pytest.approx(sigma)
    assert bound.stability == pytest.approx(kappa) == pytest.approx(8 * stated)
    assert bound.risk == pytest.approx(0.2 + 2 * kappa / 99 + (2 * kappa + 2 * sigma) * root)
    assert bound.stated[0] == pytest.approx(0.2 + 2 * stated / 99 + (2 * stated + 2 * sigma) * root)
    more = 0.99**3 * 0.2 + (1 - 0.99**3) * sigma
    inside = more + 2 * kappa / 100 + (2 * kappa + 2 * sigma) * math.sqrt(math.log(40) / 200)
    assert bound.fp_rate == pytest.approx(inside / 0.1)
    assert bound.fn_rate == pytest.approx(inside / 0.9)
    half = evaluate_bound(delta=0.05, empirical_risk=0.2, m=99, alpha=0.1, mu=0.5, c=0.5, radius=0.0, why_not="")
    assert half.fn_rate == pytest.approx((more_of(0.2, 0.9 * 0.5) + 0.9 * math.sqrt(math.log(40) / 200)) / 0.9 / 0.5)


def more_of(risk, worst):
    return 0.99**3 * risk + (1 - 0.99**3) * worst


def test_replacing_a_case_changes_no_loss_by_more_than_the_stability_allows():
    """Theorem 5 on a small example: the metric of a table with one case replaced."""
    X, y = make_rare(40, 10, 2)
    X = X / np.abs(X).max()
    settings = {"triplets": "all", "normalization": "cases", "mu": 0.5, "c": 0.0, "scaling": None, "tol": 1e-7, "cv": 0}
    model = MLFP(**settings).fit(X, y)
    bound = model.bound()
    assert bound.applies
    changed = X.copy()
    changed[np.flatnonzero(y)[0]] = -changed[np.flatnonzero(y)[0]]
    other = MLFP(**settings).fit(changed, y)
    away = np.linalg.norm(model.get_mahalanobis_matrix() - other.get_mahalanobis_matrix())
    lipschitz = 4 * (1 - y.mean()) * bound.radius**2
    assert 0 < lipschitz * away <= bound.stability / bound.m


def test_bounds_say_when_they_do_not_apply():
    X, y = make_rare()
    for settings, word in (({}, "nearest"), ({"triplets": "all", "form": "low_rank"}, "low_rank"),
                           ({"triplets": "all", "mu": 0.0, "max_iter": 2000}, "mu")):  # fmt: skip
        bound = MLFP(cv=0, **settings).fit(X, y).bound()
        assert not bound.applies
        assert word in bound.why_not
    good = MLFP(cv=0, triplets="all").fit(X, y)
    assert good.bound(0.2).risk < good.bound(0.01).risk
    assert good.bound().empirical_risk < good.bound().risk
    for delta in (0, 1, -0.1, "a"):
        with pytest.raises(InputError, match="delta"):
            good.bound(delta)


# --- odd tables -------------------------------------------------------------------------------------------------


def test_one_positive():
    X, y = make_rare(60, 1)
    model = MLFP(n_neighbors=3).fit(X, y)
    assert not model.rates_.is_for_new_cases
    assert model.n_neighbors_ == 1
    assert model.top_k(X, 1)["row"][0] == np.flatnonzero(y)[0]


def test_fewer_positives_than_neighbours():
    X, y = make_rare(60, 3)
    model = MLFP(n_neighbors=15, cv=0).fit(X, y)
    assert model.n_neighbors_ == 3
    assert np.all(np.isfinite(model.decision_function(X)))


def test_copies_across_classes_and_constant_columns():
    X, y = make_rare(60, 10)
    X[:, 1] = 4.0
    X[np.flatnonzero(y)[0]] = X[np.flatnonzero(y == 0)[0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a constant column is left out
        model = MLFP(cv=0).fit(X, y)
    assert model.components_.shape == (4, 4)
    assert np.all(np.isfinite(model.decision_function(X)))


def test_categories_and_missing_values():
    X, y = make_rare(120, 20)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(kind=np.where(X[:, 1] > 0, "up", "down"))
    frame.loc[::7, "b"] = np.nan
    model = MLFP(cv=0).fit(frame, y)
    assert model.components_.shape[1] == 5 + 2 + 1  # one coordinate per category, one for "b is missing"
    assert "near known positive" in model.top_k(frame, 1, reasons=1)["reason_1"].iloc[0]


def test_a_file_with_a_broken_metric_is_refused(tmp_path):
    X, y = make_rare()
    model = MLFP(cv=0).fit(X, y)
    path = tmp_path / "model.toprank"
    model.save(path)
    back = load(path)
    assert back.bound() == model.bound()
    assert np.array_equal(back.objective_, model.objective_)
    assert (back.gap_, back.n_iter_, back.vote_f1_) == (model.gap_, model.n_iter_, model.vote_f1_)
    model._known.components[0, 0] = 1.5
    model.save(path)
    with pytest.raises(InputError, match="singular value"):
        load(path)


# --- tuning -----------------------------------------------------------------------------------------------------


def test_tuning_agrees_with_fits_and_can_be_resumed(tmp_path):
    X, y = make_rare(160, 30)
    folds = [(np.arange(80, 160), np.arange(80)), (np.arange(80), np.arange(80, 160))]
    whole = tune_mlfp(MLFP(), X, y, n_calls=6, cv=folds)
    votes = np.zeros(160)
    for inside, held_out in folds:
        votes[held_out] = MLFP(mu=whole.mu, c=whole.c, cv=0).fit(X[inside], y[inside]).predict(X[held_out])
    hits = np.sum((votes == 1) & (y == 1))
    assert whole.score == pytest.approx(2 * hits / (np.sum(votes) + np.sum(y)))
    assert whole.tried[0][:2] == pytest.approx((0.01, 0.5))
    part = tune_mlfp(MLFP(), X, y, n_calls=3, cv=folds, storage=tmp_path / "trials.log")
    rest = tune_mlfp(MLFP(), X, y, n_calls=6, cv=folds, storage=tmp_path / "trials.log")
    assert part.tried == whole.tried[:3]
    assert rest.tried == whole.tried
    assert (rest.model.mu, rest.model.c) == (whole.mu, whole.c)
    with pytest.raises(TypeError, match="GammaKNN"):
        tune_mlfp(GammaKNN(), X, y)
    with pytest.raises(InputError, match="scoring"):
        tune_mlfp(MLFP(), X, y, scoring="accuracy")


def test_a_file_of_trials_belongs_to_one_search(tmp_path):
    X, y = make_rare(60, 16)
    kept = {"n_calls": 2, "cv": 2, "storage": tmp_path / "trials.log"}
    first = tune_mlfp(MLFP(), X, y, **kept)
    other = X.copy()
    other[0, 0] += 1e-6
    for what, model, table, more in (
        ("data", MLFP(), other, {}), ("parameters", MLFP(n_neighbors=1), X, {}), ("cv", MLFP(), X, {"cv": 3}),
        ("scoring", MLFP(), X, {"scoring": "g_mean"}), ("cv, random_state", MLFP(), X, {"random_state": 1}),
    ):  # fmt: skip
        with pytest.raises(InputError, match=rf"trials.log'? has the trials of another search: its {what} differ"):
            tune_mlfp(model, table, y, **kept | more)
    assert tune_mlfp(MLFP(n_jobs=2), X, y, **kept | {"n_calls": 3}).tried[:2] == first.tried


def test_tuning_leaves_the_log_of_optuna_as_it_was(monkeypatch):
    import optuna

    before = optuna.logging.get_verbosity()
    try:
        optuna.logging.set_verbosity(optuna.logging.DEBUG)
        tune_mlfp(MLFP(), *make_rare(60, 16), n_calls=1, cv=2)
        assert optuna.logging.get_verbosity() == optuna.logging.DEBUG
    finally:
        optuna.logging.set_verbosity(before)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"optuna.*toprank\[experiment\]"):
        tune_mlfp(MLFP(), *make_rare(60, 16))


def test_the_progress_line_counts_trials(capsys):
    tune_mlfp(MLFP(), *make_rare(80, 20), n_calls=2, cv=2, progress=True)
    assert "2/2" in capsys.readouterr().err


def test_scikit_learn_can_tune_it_too():
    X, y = make_rare()
    search = GridSearchCV(MLFP(cv=0), {"mu": [0.001, 0.1], "c": [0.0, 0.9]}, scoring="f1", cv=3).fit(X, y)
    assert set(search.best_params_) == {"mu", "c"}
