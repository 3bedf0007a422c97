"""gamma-kNN: algorithm 2.1, exact tuning, the propositions, edge cases, files, reasons."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, balanced_accuracy_score, f1_score
from sklearn.neighbors import KNeighborsClassifier

from ranker_cases import make_cases
from toprank import KNN, MLFP, GammaKNN, InputError, load
from toprank._core.threads import Threads
from toprank.rankers.neighbours import neighbour_ranker
from toprank.rankers.neighbours.known import KnownCases, positions_of
from toprank.rankers.neighbours.tuning import MEASURES, gamma_curve


def vote(x, X, y, k, gamma):
    """Algorithm 2.1, step by step."""
    distance = np.linalg.norm(X - x, axis=1)
    negative = sorted((d, 0) for d in distance[y == 0])[:k]
    positive = sorted((gamma * d, 1) for d in distance[y == 1])[:k]
    nearest = sorted(negative + positive)[:k]
    return sum(label for _, label in nearest) >= k / 2


def blobs(n=200, n_positives=40, seed=0, d=2, shift=1.0):
    rng = np.random.default_rng(seed)
    y = np.zeros(n, int)
    y[:n_positives] = 1
    return rng.normal(size=(n, d)) + shift * y[:, None], y


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("gamma", [0.2, 0.7, 1.0, 1.8])
def test_decisions_are_those_of_algorithm_2_1(k, gamma):
    X, y = blobs()
    new = np.random.default_rng(1).normal(size=(150, 2)) * 1.5
    model = GammaKNN(n_neighbors=k, gamma=gamma, scaling=None).fit(X, y)
    expected = [vote(x, X, y, k, gamma) for x in new]
    assert 0 < np.mean(expected) < 1
    assert np.array_equal(model.predict(new) == 1, expected)


@pytest.mark.parametrize("k", [1, 3, 7])
def test_gamma_1_is_plain_knn(k):
    X, y = blobs(d=4)
    new = np.random.default_rng(1).normal(size=(300, 4)) + 0.5
    ours = GammaKNN(n_neighbors=k, gamma=1.0, scaling=None).fit(X, y).predict(new)
    assert np.array_equal(ours, KNeighborsClassifier(k).fit(X, y).predict(new))


def test_the_boundary_of_two_points_is_the_circle_of_apollonius():
    """Figure 2.2: points whose distances to two points are in a given ratio lie on a circle."""
    positive, negative = np.array([-1.0, 0.3]), np.array([2.0, -0.4])
    for gamma in (0.2, 0.5, 0.8):
        model = GammaKNN(n_neighbors=1, gamma=gamma, scaling=None).fit(np.array([positive, negative]), [1, 0])
        centre = (negative - gamma**2 * positive) / (1 - gamma**2)
        radius = gamma * np.linalg.norm(positive - negative) / (1 - gamma**2)
        angle = np.linspace(0, 2 * np.pi, 200)
        ring = np.column_stack((np.cos(angle), np.sin(angle)))
        assert np.all(model.predict(centre + 0.999 * radius * ring) == 0), "inside: around the negative"
        assert np.all(model.predict(centre + 1.001 * radius * ring) == 1)
        assert model.decision_function(centre + radius * ring) == pytest.approx(gamma / (1 + gamma))


@pytest.mark.parametrize("k", [1, 3])
def test_the_score_is_eta_hat_and_the_line_is_the_cost(k):
    X, y = blobs()
    model = GammaKNN(n_neighbors=k, scaling=None).fit(X, y)
    new = np.random.default_rng(1).normal(size=(100, 2))
    j = (k + 1) // 2 - 1
    near, far = (np.sort(np.linalg.norm(X[y == c] - new[:, None], axis=2))[:, j] for c in (1, 0))
    assert model.decision_function(new) == pytest.approx(far / (near + far))
    assert model.fp_cost_ == pytest.approx(model.gamma_ / (1 + model.gamma_))
    assert model.fp_cost_ + model.fn_cost_ == pytest.approx(1)
    assert np.array_equal(model.predict(new) == 1, model.decision_function(new) > model.fp_cost_)


# Tuning


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 1.0, 1.3, np.inf]), st.booleans()), min_size=2),
    st.sampled_from(sorted(MEASURES)),
)  # fmt: skip
def test_exact_tuning_is_never_worse_than_the_grid_and_counts_right(rows, name):
    ratio, is_positive = np.array([r for r, _ in rows]), np.array([p for _, p in rows])
    curve = gamma_curve(ratio, is_positive, None, MEASURES[name])
    grid = np.arange(11) / 10

    def by_hand(gamma):
        flagged = ratio > gamma
        counts = [np.sum(flagged & is_positive), np.sum(flagged & ~is_positive), np.sum(~flagged & is_positive),
                  np.sum(~flagged & ~is_positive)]  # fmt: skip
        return float(MEASURES[name](*(np.array([float(c)]) for c in counts))[0])

    values = [by_hand(gamma) for gamma in grid]
    assert curve.at(grid) == pytest.approx(values)
    assert 0 <= curve.best <= 1
    assert by_hand(curve.best) == pytest.approx(curve.value.max())
    assert curve.value.max() >= max(values) - 1e-12


def test_measures_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, flagged = rng.random(300) < 0.2, rng.random(300) < 0.3
    counts = [np.array([float(np.sum((flagged == f) & (y == p)))]) for f, p in ((1, 1), (1, 0), (0, 1), (0, 0))]
    value = {name: float(measure(*counts)[0]) for name, measure in MEASURES.items()}
    assert value["f1"] == pytest.approx(f1_score(y, flagged))
    assert value["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, flagged))
    assert value["average_precision"] == pytest.approx(average_precision_score(y, flagged))
    tpr, tnr, precision = flagged[y].mean(), (~flagged)[~y].mean(), y[flagged].mean()
    assert value["g_mean"] == pytest.approx(np.sqrt(tpr * tnr))
    assert value["g_measure"] == pytest.approx(np.sqrt(precision * tpr))


@pytest.mark.parametrize("k", [1, 3])
def test_left_out_rows_are_scored_as_by_a_model_without_them(k):
    X, y = blobs(60, 15)
    model = GammaKNN(n_neighbors=k, scaling=None).fit(X, y)
    assert model.rates_.source == "leave-one-out cross-validation"
    flagged = [vote(X[i], np.delete(X, i, 0), np.delete(y, i), k, model.gamma_) for i in range(60)]
    assert f1_score(y, flagged) == pytest.approx(model.tuned_score_)
    assert model.tuned_score_ == pytest.approx(model.gamma_curve_.value.max())


@pytest.mark.parametrize("is_sampled", [False, True])
def test_gamma_0_flags_all_but_copies_of_negatives(is_sampled):
    from imblearn.over_sampling import RandomOverSampler

    X, y = blobs(60, 15)
    X[20:40] = X[40:60]
    settings = {"sampler": RandomOverSampler(random_state=0), "gamma_synthetic": 0.0} if is_sampled else {}
    model = GammaKNN(n_neighbors=1, gamma=0.0, **settings).fit(X, y)
    assert model.gamma_ == 0
    expected = np.concatenate((np.ones(20), np.zeros(40)))
    if not is_sampled:
        assert model.tuned_score_ == pytest.approx(f1_score(y, expected))
    assert model.predict(X).tolist() == [*np.ones(15), *np.zeros(45)]


def test_folds_tune_as_well_and_their_rows_are_held_out():
    X, y = blobs(300, 60)
    one, folds = GammaKNN().fit(X, y), GammaKNN(cv=10).fit(X, y)
    assert folds.rates_.source == "10-fold cross-validation"
    assert abs(one.tuned_score_ - folds.tuned_score_) < 0.1
    with pytest.raises(InputError, match="cv=5"):
        GammaKNN(cv=5).fit([[0.0], [1.0], [2.0]], [0, 0, 1])


def test_other_measures_and_ranges():
    X, y = blobs(600, 20, shift=0.7)
    models = {name: GammaKNN(scoring=name).fit(X, y) for name in MEASURES}
    assert models["g_mean"].gamma_ < models["f1"].gamma_, "the G-mean cares less about false positives"
    own = GammaKNN(scoring=lambda tp, fp, fn, tn: tp - 0.1 * fp).fit(X, y)
    assert own.gamma_ < 1
    assert "measure" in own.summary()
    never = GammaKNN(scoring=lambda tp, fp, fn, tn: -fp, max_gamma=5.0).fit(X, y)
    assert never.gamma_ > 1
    assert never.predict(X).sum() <= y.sum()


def test_large_tables_are_left_out_by_sample(monkeypatch):
    X, y = make_cases(900)
    whole = GammaKNN().fit(X, y)
    monkeypatch.setattr(neighbour_ranker, "LEFT_OUT_ROWS", 500)
    part = GammaKNN().fit(X, y)
    assert len(part.gamma_curve_.value) < len(whole.gamma_curve_.value)
    assert part.tuned_score_ == pytest.approx(whole.tuned_score_, abs=0.1)
    assert np.array_equal(part.decision_function(X), whole.decision_function(X))
    assert part.cutoff_.threshold == pytest.approx(whole.cutoff_.threshold, abs=0.05)


# Propositions 1 and 2


def test_a_smaller_gamma_misses_less_and_a_larger_one_alarms_less():
    """Propositions 1 and 2: against gamma = 1, on new cases."""
    X, y = blobs(500, 50, d=3)
    new, truth = blobs(1_500, 150, seed=1, d=3)
    missed, alarmed = {}, {}
    for gamma in (0.3, 0.6, 1.0, 1.5):
        flagged = GammaKNN(n_neighbors=1, gamma=gamma).fit(X, y).predict(new)
        missed[gamma], alarmed[gamma] = np.mean(flagged[truth == 1] == 0), np.mean(flagged[truth == 0] == 1)
    assert missed[0.3] < missed[0.6] < missed[1.0] < missed[1.5]
    assert alarmed[0.3] > alarmed[0.6] > alarmed[1.0] > alarmed[1.5]


@pytest.mark.parametrize("gamma", [1.0, 0.5, 0.2])
def test_misses_have_the_probability_of_equation_2_2(gamma):
    """FN = (1 - P(x' within eps / gamma)) ** m+, for a query with its nearest negative at eps.

    Many samples lie side by side on a line, too far apart to be neighbours of each other.
    """
    rng = np.random.default_rng(0)
    eps, m, n_runs = 0.05, 6, 2_000
    query = 10.0 * np.arange(n_runs)
    positive = (query[:, None] + rng.uniform(-1, 1, (n_runs, m))).ravel()
    X, y = np.concatenate((positive, query + eps))[:, None], np.repeat([1, 0], [m * n_runs, n_runs])
    model = GammaKNN(n_neighbors=1, gamma=gamma, scaling=None, cv=0).fit(X, y)
    found, expected = np.mean(model.predict(query[:, None]) == 0), (1 - eps / gamma) ** m
    assert abs(found - expected) < 4 * np.sqrt(expected * (1 - expected) / n_runs)


# Edge cases


def test_one_positive():
    X, y = blobs(30, 1)
    model = GammaKNN(n_neighbors=5).fit(X, y)
    assert model.n_neighbors_ == 1
    assert model.predict(X[:1])[0] == 1, "it lies on the known positive"
    assert model.tuned_score_ == 0, "left out, it has no other positive to be near to"
    assert np.all(model.gamma_curve_.value == 0), "whatever gamma is"
    assert [case.row for case in model.explain(X[5:6])[0].positives] == [0]
    assert model.top_k(X, 3, reasons=3)["reason_1"].tolist() == [""] * 3, "no rate is known to be above that of all"
    new = np.vstack((X[0] + 1e-3, X[0] + 100))
    assert np.argmax(model.decision_function(new)) == 0
    fair = GammaKNN(n_neighbors=5, scoring="balanced_accuracy").fit(X, y).gamma_curve_
    assert np.all(np.diff(fair.value) > 0), "it counts false positives, even if no positive is found"


def test_k_larger_than_the_number_of_positives():
    X, y = blobs(60, 4)
    model = GammaKNN(n_neighbors=99).fit(X, y)
    assert model.n_neighbors_ == 5
    assert np.array_equal(model.decision_function(X), GammaKNN(n_neighbors=5).fit(X, y).decision_function(X))
    assert model.tuned_score_ > 0


def test_duplicates_at_distance_0():
    X = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [2.0]])
    model = GammaKNN(n_neighbors=1, gamma=0.5).fit(X, [1, 0, 0, 0, 0, 1])
    score = model.decision_function(X)
    assert score[0] == 0.5, "as near to a positive as to a negative"
    assert score[3] == 0
    assert score[5] == 1
    assert model.predict(X).tolist() == [1, 1, 1, 0, 0, 1]


def test_constant_features_carry_nothing():
    X, y = blobs()
    more = np.column_stack((X, np.full(len(X), 7.0)))
    new = np.column_stack((X, np.full(len(X), -99.0)))
    assert np.array_equal(GammaKNN().fit(more, y).decision_function(new), GammaKNN().fit(X, y).decision_function(X))
    same = GammaKNN().fit(np.ones((20, 2)), np.arange(20) < 5)
    assert np.all(same.decision_function(np.ones((3, 2))) == 0.5)
    alerts = same.top_k(np.ones((3, 2)), 2)
    assert alerts["hit_rate"].tolist() == [0.25, 0.25]
    assert alerts["reason_1"].tolist() == ["", ""], "nothing speaks for a case at the rate of all cases"


def test_weights_count_as_cases_and_fractions_as_parts_of_one():
    X, y = blobs(80, 20)
    new = np.random.default_rng(5).normal(size=(40, 2))
    tenth = GammaKNN(n_neighbors=3, gamma=0.5).fit(X, y, np.full(80, 0.1))
    assert tenth.n_neighbors_ == 1
    ones = KnownCases.learn(X, y == 1, np.full(80, 0.1))
    found = ones.positives.at_count(new, np.array([1]), Threads(1))[:, 0]
    expected = np.sort(np.linalg.norm(X[y == 1] - new[:, None], axis=2))[:, 9]
    assert found == pytest.approx(expected), "ten cases of weight 0.1 are one case"


def test_positions():
    assert positions_of(np.array([3, 4, 9, 0]), np.array([0, 3, 9])).tolist() == [1, -1, 2, 0]
    assert positions_of(np.array([1]), np.array([], int)).tolist() == [-1]


# A linear map towards the positives


def test_a_linear_map_changes_the_distances_to_positives_alone():
    X, y = blobs()
    components = np.array([[0.5, 0.2]])
    new = np.random.default_rng(1).normal(size=(50, 2))
    model = GammaKNN(n_neighbors=1, metric=components, scaling=None).fit(X, y)
    near = np.abs((X[y == 1] - new[:, None]) @ components[0]).min(axis=1)
    far = np.linalg.norm(X[y == 0] - new[:, None], axis=2).min(axis=1)
    assert model.decision_function(new) == pytest.approx(far / (near + far))
    half = GammaKNN(n_neighbors=3, gamma=1.0, metric=0.5 * np.eye(2), scaling=None).fit(X, y)
    assert np.array_equal(half.predict(new), GammaKNN(n_neighbors=3, gamma=0.5, scaling=None).fit(X, y).predict(new))
    assert model.explain(new[:1])[0].positives[0].differences[0].feature in ("x0", "x1")
    with pytest.raises(InputError, match=r"\(p, 2\)"):
        GammaKNN(metric=np.eye(3)).fit(X, y)


def test_an_object_may_learn_the_metric(tmp_path):
    class Halves:
        def learn_components(self, points, is_positive, weight, threads):
            assert points.shape == (200, 2)
            assert is_positive.sum() == 40
            return 0.5 * np.eye(2)

    X, y = blobs()
    model = GammaKNN(metric=Halves()).fit(X, y)
    assert np.array_equal(model.decision_function(X), GammaKNN(metric=0.5 * np.eye(2)).fit(X, y).decision_function(X))


# Samplers


@pytest.mark.parametrize("k", [1, 3])
def test_synthetic_positives_have_a_gamma_of_their_own(k, tmp_path):
    from imblearn.over_sampling import SMOTE

    X, y = blobs(240, 30)
    model = GammaKNN(n_neighbors=k, sampler=SMOTE(random_state=0)).fit(X, y)
    assert 0 <= model.gamma_ <= 1
    assert 0 <= model.gamma_synthetic_ <= 2
    assert model.rates_.source == "10-fold cross-validation"
    plain = GammaKNN(n_neighbors=k, sampler=SMOTE(random_state=0), gamma=1.0, gamma_synthetic=1.0).fit(X, y)
    assert model.tuned_score_ >= plain.tuned_score_
    scaled = model._space.points(X)
    points, label = SMOTE(random_state=0).fit_resample(scaled, y)
    assert np.array_equal(plain.predict(X), KNeighborsClassifier(k).fit(points, label).predict(scaled))
    off = GammaKNN(n_neighbors=k, sampler=SMOTE(random_state=0), gamma=0.6, gamma_synthetic=1e6).fit(X, y)
    assert np.array_equal(off.predict(X), GammaKNN(n_neighbors=k, gamma=0.6).fit(X, y).predict(X))
    model.save(tmp_path / "model.toprank")
    loaded = load(tmp_path / "model.toprank")
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.gamma_synthetic_ == model.gamma_synthetic_


def test_both_gammas_are_at_least_as_good_as_the_grid():
    from toprank.rankers.neighbours.gamma_knn import joint_ratio, ratio_beside, tune_both

    rng = np.random.default_rng(0)
    n, j = 300, 2
    real, synthetic = np.sort(rng.random((n, j)), axis=1), np.sort(rng.random((n, j)), axis=1)
    negative, is_positive = rng.random(n), rng.random(n) < 0.2
    measure = MEASURES["f1"]
    gamma, other, curve = tune_both((real, synthetic, negative), is_positive, np.ones(n), measure, 1.0, None, None)

    def value(g, s):
        count = (g * real < negative[:, None]).sum(axis=1) + (s * synthetic < negative[:, None]).sum(axis=1)
        return f1_score(is_positive, count >= j)

    best = max(value(g, s) for g in np.arange(11) / 10 for s in np.arange(21) / 10)
    assert value(gamma, other) >= best - 1e-12
    assert value(gamma, other) == pytest.approx(float(curve.at(np.array([gamma]))[0]))
    for g, s in ((0.3, 0.9), (0.8, 0.2), (0.5, 1.7)):
        flagged = joint_ratio(real, synthetic, negative, s / g) > g
        assert np.array_equal(flagged, ratio_beside(real, synthetic, negative, s) > g)
        assert np.array_equal(flagged, ratio_beside(synthetic, real, negative, g) > s)


def test_samplers_that_remove_rows_or_fail():
    from imblearn.combine import SMOTEENN
    from imblearn.over_sampling import SMOTE, RandomOverSampler

    X, y = blobs(200, 30)
    fewer = GammaKNN(sampler=SMOTEENN(random_state=0)).fit(X, y)
    assert len(fewer._known.negatives) < 170
    copies = GammaKNN(sampler=RandomOverSampler(random_state=0)).fit(X, y)
    assert len(copies._known.synthetic) == 0, "copies are the known cases again"
    assert len(copies._known.positives) == 170
    with pytest.raises(InputError, match="SMOTE"):
        GammaKNN(sampler=SMOTE()).fit(*blobs(30, 4))
    with pytest.raises(InputError, match="sample_weight"):
        GammaKNN(sampler=SMOTE()).fit(X, y, np.arange(200.0))


@pytest.mark.parametrize("is_named", [True, False])
def test_made_up_negatives_are_called_synthetic(is_named, tmp_path):
    from imblearn.under_sampling import ClusterCentroids

    X, y = blobs(120, 30)
    frame = pd.DataFrame(X, index=[f"firm {i}" for i in range(120)] if is_named else None)
    frame.columns = frame.columns.astype(str)
    model = GammaKNN(sampler=ClusterCentroids(random_state=0)).fit(frame, y)
    rows = model._known.negatives.rows
    assert np.sum(rows == -1) > 10
    model.save(tmp_path / "model.toprank")
    for each in (model, load(tmp_path / "model.toprank")):
        found = [case for explained in each.explain(frame) for case in explained.negatives]
        assert {case.name for case in found if case.row == -1} == {"synthetic"}
        names = {case.name for case in found if case.row >= 0}
        assert names <= {f"firm {i}" if is_named else f"training row {i}" for i in np.flatnonzero(y == 0)}
        assert all(case.row >= 0 for explained in each.explain(frame) for case in explained.positives)


# Reasons


def test_reasons_name_known_positives_and_what_differs():
    X, y = make_cases(400)
    model = GammaKNN(budget=20).fit(X, y)
    new = X.assign(size=X["size"] + 0.01)
    alerts = model.top_k(new, 5, reasons=2)
    assert alerts["reason_1"].str.startswith("near known positive, training row ").all()
    row = int(alerts["reason_1"].iloc[0].split("row ")[1].split(" ")[0])
    assert y[row] == 1
    near = model.explain(new.iloc[[int(alerts["row"].iloc[0])]])[0]
    assert near.positives[0].row == row
    assert near.positives[0].distance <= near.positives[1].distance
    assert all(y[case.row] == 1 for case in near.positives)
    assert all(y[case.row] == 0 for case in near.negatives)
    first = near.positives[0].differences[0]
    assert first.value == new[first.feature].iloc[int(alerts["row"].iloc[0])]
    assert first.known_value == pytest.approx(X[first.feature].iloc[row])
    assert "nearest known negatives (rows of" in str(near)
    assert json.dumps(near.to_dict())
    gains = np.log(alerts["hit_rate"] / (1 - alerts["hit_rate"])) - np.log(model.base_rate_ / (1 - model.base_rate_))
    strengths = np.log(alerts[["strength_1", "strength_2"]].to_numpy()).sum(axis=1)
    assert strengths == pytest.approx(gains.to_numpy(), rel=1e-3), "strengths multiply to the gain in odds"


@pytest.mark.parametrize("model", [GammaKNN(cv=0), KNN(cv=0), MLFP(cv=0)], ids=str)
def test_without_rates_of_new_cases_strengths_multiply_to_the_gain_of_the_training_rate(model):
    X, y = make_cases(400)
    alerts = model.fit(X, y).top_k(make_cases(400, seed=1)[0], 60, reasons=2)
    rate, base = alerts["training_rate"].to_numpy(), y.mean()
    gain = np.log(rate / (1 - rate)) - np.log(base / (1 - base))
    is_raised = np.all(alerts[["reason_1", "reason_2"]] != "", axis=1).to_numpy() & (gain < 6)
    assert is_raised.sum() > 20
    assert len(np.unique(gain[is_raised].round(6))) > 1
    strengths = np.log(alerts.loc[is_raised, ["strength_1", "strength_2"]].to_numpy(float)).sum(axis=1)
    assert strengths == pytest.approx(gain[is_raised], rel=1e-2)


def test_reasons_use_the_names_of_the_cases(tmp_path):
    X, y = make_cases(200)
    named = X.set_index(pd.Index([f"firm {i}" for i in range(200)]))
    model = GammaKNN(budget=5).fit(named, y)
    text = model.top_k(named + {"size": 0.01, "age": 0, "place": ""}, 3)["reason_1"]
    assert text.str.startswith("near known positive firm ").all()
    model.save(tmp_path / "model.toprank")
    loaded = load(tmp_path / "model.toprank")
    assert str(loaded.explain(named.head(1))[0]) == str(model.explain(named.head(1))[0])


def test_a_case_equal_to_a_known_one_says_so():
    X, y = make_cases(200)
    model = GammaKNN(budget=5).fit(X, y)
    at = np.flatnonzero(y)[0]
    reasons = model.top_k(X.iloc[[at]], 1)
    assert reasons["reason_1"].iloc[0] == f"near known positive, training row {at} (distance 0); equal in all columns"


# Files


def test_damaged_files_are_refused(tmp_path):
    from files.fuzz_models import packed, parts, write
    from toprank.files.model_file import ModelFileError

    X, y = make_cases(200)
    model = GammaKNN().fit(X, y)
    path = tmp_path / "model.toprank"
    model.save(path)
    info, arrays = parts(path)
    bad = [
        ("positive_places", arrays["positive_places"] * np.nan), ("positive_places", arrays["positive_places"][:, :2]),
        ("positive_rows", arrays["positive_rows"][::-1].copy()), ("positive_rows", arrays["positive_rows"] - 500),
        ("negative_weight", np.array([-1.0])), ("negative_graph", np.zeros((3, 2), np.int32)),
        ("space_scale", -arrays["space_scale"]), ("neighbours", np.array([0.0, 1.0])),
        ("neighbours", np.array([99.0, 1.0])), ("gamma", np.array([-1.0, 0.5])), ("gamma", np.array([np.nan, 0.5])),
        ("curve_start", arrays["curve_start"][::-1].copy()), ("curve_value", arrays["curve_value"][:1]),
        ("case_names", np.frombuffer(b'["a"]', np.uint8)), ("case_names", np.frombuffer(b"\xff", np.uint8)),
    ]  # fmt: skip
    for name, array in bad:
        write(tmp_path / "bad.toprank", info, packed(arrays | {name: array}))
        with pytest.raises(ModelFileError):
            load(tmp_path / "bad.toprank")
    for name in ("positive_places", "space_scale", "gamma"):
        write(tmp_path / "bad.toprank", info, packed({k: v for k, v in arrays.items() if k != name}))
        with pytest.raises(ModelFileError):
            load(tmp_path / "bad.toprank")


@pytest.mark.parametrize("model", [GammaKNN(), KNN(), KNN(rule="krnn")])
def test_a_file_with_more_neighbours_than_cases_is_refused(model, tmp_path):
    from files.fuzz_models import packed, parts, write
    from toprank.files.model_file import ModelFileError

    path = tmp_path / "model.toprank"
    model.fit(*blobs(60, 10)).save(path)
    info, arrays = parts(path)
    info["parameters"]["n_neighbors"] = 100_000
    write(path, info, packed(arrays))
    assert load(path).n_neighbors_ == 3
    for k in (61, 1e5):
        write(path, info, packed(arrays | {"neighbours": np.array([k, 1.0])}))
        with pytest.raises(ModelFileError, match="number of neighbours"):
            load(path)
    info["parameters"]["n_neighbors"] = 10**11
    write(path, info, packed(arrays | {"neighbours": np.array([1e11, 1.0])}))
    with pytest.raises(ModelFileError, match=r"\[1, 100000\]"):
        load(path)


def test_k_fits_the_cases_that_a_sampler_leaves(tmp_path):
    from imblearn.under_sampling import EditedNearestNeighbours

    X, y = blobs(200, 60, shift=0.3)
    cleaner = EditedNearestNeighbours(sampling_strategy="all", kind_sel="mode")
    model = GammaKNN(n_neighbors=99, sampler=cleaner, cv=2).fit(X, y)
    assert len(model._known.positives) < 40
    assert model.n_neighbors_ == 2 * len(model._known.positives) - 3
    model.save(tmp_path / "model.toprank")
    assert np.array_equal(load(tmp_path / "model.toprank").decision_function(X), model.decision_function(X))


def test_bad_parameters_are_refused():
    X, y = blobs(50, 10)
    for bad in ({"n_neighbors": 0}, {"gamma": -0.1}, {"gamma": "best"}, {"scoring": "accuracy"}, {"max_gamma": 0.0},
                {"metric": "cosine"}, {"algorithm": "magic"}, {"scaling": "robust"}, {"sampler": "smote"},
                {"category_distance": -1.0}, {"gamma_synthetic": "x"}, {"cv": 1}):  # fmt: skip
        with pytest.raises(ValueError, match=next(iter(bad))):
            GammaKNN(**bad).fit(X, y)
