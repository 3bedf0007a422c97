"""Local gamma-kNN: both versions of section 2.5.4."""

import numpy as np
import pytest

from toprank import GammaKNN, InputError, LocalGammaKNN, load
from toprank._core.threads import Threads
from toprank.rankers.neighbours.local_gamma_knn import nearest_centre
from toprank.rankers.neighbours.tuning import MEASURES, decision_counts, gamma_curve, tune_regions


def two_regions(n=400, seed=0):
    """Two islands: on the first, positives are rare and mixed in; on the second they are apart and common."""
    rng = np.random.default_rng(seed)
    rare, common = rng.random(n) < 0.05, rng.random(n) < 0.4
    first = rng.normal(size=(n, 2)) + 0.8 * rare[:, None]
    second = rng.normal(size=(n, 2)) + 20 + 3 * common[:, None]
    return np.concatenate((first, second)), np.concatenate((rare, common)).astype(int)


@pytest.mark.parametrize("version", [1, 2])
def test_regions_have_gammas_of_their_own(version):
    X, y = two_regions()
    settings = {"n_clusters": 2, "version": version, "scoring": "g_mean", "random_state": 0,
                "measured_on": "cluster"}  # fmt: skip
    model = LocalGammaKNN(min_positives=1, **settings).fit(X, y)
    cluster = nearest_centre(model._space_points(X), model.centres_, Threads(1))
    assert len(np.unique(cluster[:400])) == len(np.unique(cluster[400:])) == 1
    assert model.gammas_[cluster[0]] < model.gammas_[cluster[-1]], "positives are rarer in the first region"
    score = model.decision_function(X)
    assert np.array_equal(model.predict(X) == 1, score > 0.5)
    alone = GammaKNN(gamma=float(model.gammas_[cluster[0]])).fit(X, y)
    assert np.array_equal(model.predict(X[:400]), alone.predict(X[:400])), "neighbours are searched among all cases"


def test_one_cluster_of_version_1_is_gamma_knn():
    X, y = two_regions(100)
    local, plain = LocalGammaKNN(n_clusters=1, version=1).fit(X, y), GammaKNN().fit(X, y)
    assert local.gammas_.tolist() == [plain.gamma_]
    assert np.array_equal(local.predict(X), plain.predict(X))


def test_version_2_is_the_mean_of_what_the_folds_say(monkeypatch):
    """With one cluster: ten gammas of ten folds, each by plain distances; a row has the mean of those it trained."""
    folds, compare = [], LocalGammaKNN._compare_fold

    def spy(model, fold, *rest):
        folds.append(fold)
        return compare(model, fold, *rest)

    monkeypatch.setattr(LocalGammaKNN, "_compare_fold", spy)
    X, y = two_regions(100)
    model = LocalGammaKNN(n_clusters=1, version=2, min_positives=1, measured_on="cluster", cv=0).fit(X, y)
    points, sums, counts = model._space_points(X), np.zeros(200), np.zeros(200)
    assert len(folds) == 10
    for fold in folds:
        inside, out = points[fold.inside], points[fold.held_out]
        near, far = (np.sort(np.linalg.norm(inside[y[fold.inside] == c] - out[:, None], axis=2))[:, 1] for c in (1, 0))
        sums[fold.inside] += gamma_curve(far / near, y[fold.held_out] == 1, None, MEASURES["f1"]).best
        counts[fold.inside] += 1
    assert np.all(counts == 9)
    assert model.gammas_ == pytest.approx([np.mean(sums / counts)])


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_gammas_measured_on_all_cases_cannot_be_improved_one_by_one(name):
    rng = np.random.default_rng(3)
    region, is_positive = rng.integers(0, 4, 120), rng.random(120) < 0.3
    ratio = rng.gamma(2.0, 0.3, 120) * np.where(is_positive, 1.4, 1.0) + 0.1 * region
    weight = rng.integers(1, 3, 120).astype(float)
    common = gamma_curve(ratio, is_positive, weight, MEASURES[name]).best

    def value(gammas):
        return float(MEASURES[name](*decision_counts(ratio > gammas[region], is_positive, weight))[0])

    start = np.full(4, common)
    gammas = tune_regions(ratio, is_positive, weight, region, start, [0, 1, 3], MEASURES[name])
    assert gammas[2] == common
    assert value(gammas) > value(start)
    cuts = np.unique([0.0, *ratio[ratio < 1], 1.0])
    for c in (0, 1, 3):
        for middle in (cuts[1:] + cuts[:-1]) / 2:
            other = gammas.copy()
            other[c] = middle
            assert value(other) <= value(gammas) + 1e-12


def test_gammas_measured_on_all_cases_are_better_together_than_those_of_clusters_alone():
    X, y = two_regions()
    value = {}
    for how in ("all", "cluster"):
        model = LocalGammaKNN(n_clusters=2, version=1, measured_on=how, random_state=0, cv=0).fit(X, y)
        points = model._space_points(X)
        (ratio,) = model._evidence(model._known, points, Threads(1), np.arange(len(X)))
        counts = decision_counts(model._flags_of((ratio,), points), y == 1, np.ones(len(y)))
        value[how] = float(MEASURES["f1"](*counts)[0])
    assert value["all"] > value["cluster"]
    assert value["all"] > GammaKNN().fit(X, y).tuned_score_ - 1e-12


def test_regions_without_positives_take_the_common_gamma():
    X, y = two_regions(100)
    y[100:] = 0
    model = LocalGammaKNN(n_clusters=2, version=1, random_state=0).fit(X, y)
    cluster = nearest_centre(model._space_points(X), model.centres_, Threads(1))
    assert model.gammas_[cluster[-1]] == model.gamma_


@pytest.mark.parametrize("version", [1, 2])
def test_regions_with_few_positives_take_the_common_gamma(version):
    X, y = two_regions(100)
    model = LocalGammaKNN(n_clusters=2, version=version, min_positives=1000).fit(X, y)
    assert model.gammas_ == pytest.approx([model.gamma_] * 2)


def test_rates_come_from_refits():
    X, y = two_regions(150)
    model = LocalGammaKNN(n_clusters=2).fit(X, y)
    assert model.rates_.source == "5-fold cross-validation"
    assert not LocalGammaKNN(n_clusters=2, cv=0).fit(X, y).rates_.is_for_new_cases


def test_more_clusters_than_cases_and_constant_columns():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), [0, 1, 0, 1]
    assert len(LocalGammaKNN(n_clusters=9, cv=0).fit(X, y).gammas_) == 2
    same = LocalGammaKNN(cv=0).fit(np.ones((9, 1)), np.arange(9) < 3)
    assert same.gammas_.shape == (1,)
    assert same.gamma_ == 0.5
    assert same.decision_function(np.ones((4, 1))) == pytest.approx([1 / (1 + same.gamma_)] * 4)  # flagged, as any case
    assert same.predict(np.ones((4, 1))).tolist() == [True] * 4
    assert GammaKNN(cv=0).fit(np.ones((9, 1)), np.arange(9) < 3).decision_function([[1.0]]) == 0.5


def test_damaged_clusters_are_refused(tmp_path):
    from files.fuzz_models import packed, parts, write
    from toprank.files.model_file import ModelFileError

    X, y = two_regions(60)
    path = tmp_path / "model.toprank"
    LocalGammaKNN(n_clusters=3, cv=0).fit(X, y).save(path)
    info, arrays = parts(path)
    for name, array in (("gammas", arrays["gammas"][:1]), ("gammas", -arrays["gammas"]), ("gammas", np.zeros(0)),
                        ("centres", arrays["centres"] * np.nan), ("centres", arrays["centres"][:, :1])):  # fmt: skip
        write(tmp_path / "bad.toprank", info, packed(arrays | {name: array}))
        with pytest.raises(ModelFileError):
            load(tmp_path / "bad.toprank")


def test_bad_parameters_are_refused():
    X, y = two_regions(30)
    for bad in (
        {"n_clusters": 0},
        {"version": 3},
        {"measured_on": "both"},
        {"min_positives": 0},
        {"scoring": "accuracy"},
    ):
        with pytest.raises(ValueError, match=next(iter(bad))):
            LocalGammaKNN(**bad).fit(X, y)
    with pytest.raises(InputError, match="both classes"):
        LocalGammaKNN().fit(X, np.zeros(60))
