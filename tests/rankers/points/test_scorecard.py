"""Scorecards and trees of corrections: laws, limits, monotone columns, noise, files, words."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from page_reader import Page
from ranker_cases import POINTS, Case, cases, fewer, make_cases, scores_of
from toprank import Scorecard, ScorecardTree, load
from toprank.datasets import make_audit
from toprank.metrics import average_precision
from toprank.rankers.points.additive import TOP_LOSS
from toprank.rankers.points.pages import condition_texts
from toprank.rankers.points.points_ranker import pays
from toprank.rankers.points.scorecard import fits_by_alpha


def make_curves(n=3000, seed=0, noise_levels=0):
    """A curve, a step, an interaction, missing values that matter, a category; optionally a column of noise."""
    rng = np.random.default_rng(seed)
    curve, step, one, other = rng.normal(size=(4, n))
    kind = rng.choice(list("abcde"), n)
    logit = -3.2 + np.abs(curve) + 1.5 * (step > 0.8) + np.isin(kind, ["a"]) * 1.0 + 2.5 * (one > 0.5) * (other > 0.5)
    gaps = rng.random(n) < 0.1
    logit += 1.5 * gaps
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    X = pd.DataFrame({"curve": curve, "step": np.where(gaps, np.nan, step), "one": one, "other": other, "kind": kind})
    if noise_levels:
        X["noise"] = rng.choice([f"level {i}" for i in range(noise_levels)], n)
    return X, y


# --- laws ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", POINTS)
@fewer(10)
@given(case=cases(), data=st.data())
def test_a_row_scores_the_same_alone_and_in_another_order(kind, case, data):
    model = clone(POINTS[kind]).fit(case.pandas(), case.y, case.weight)
    score = scores_of(model, case.pandas())
    assert np.isfinite(score).all()
    order = np.array(data.draw(st.permutations(range(len(case)))))
    assert np.array_equal(scores_of(model, case.take(order).polars()), score[order])
    assert scores_of(model, case.take(order[:1]).pandas())[0] == score[order[0]]


@pytest.mark.parametrize("kind", POINTS)
@fewer(8)
@given(case=cases(weights=("whole",)), data=st.data())
def test_the_model_depends_on_the_rows_alone(kind, case, data):
    """Row order changes nothing, weight 2 is the row twice, weight 0 no row."""
    repeated = case.take(np.repeat(np.arange(len(case)), case.weight.astype(int)))
    order = np.array(data.draw(st.permutations(range(len(repeated)))))
    one = clone(POINTS[kind]).fit(case.pandas(), case.y, case.weight)
    plain = Case(repeated.columns, repeated.y, None).take(order)
    other = clone(POINTS[kind]).fit(plain.pandas(), plain.y)
    assert np.array_equal(one.decision_function(plain.pandas()), other.decision_function(plain.pandas()))
    assert one.cutoff_ == other.cutoff_


@pytest.mark.parametrize("kind", POINTS)
def test_one_thread_is_two_threads(kind):
    X, y = make_cases(400)
    weight = np.random.default_rng(0).random(400)
    one, two = (clone(POINTS[kind]).set_params(n_jobs=n).fit(X, y, weight) for n in (1, 2))
    assert one.to_plain() == two.to_plain()
    assert one.cutoff_ == two.cutoff_


# --- what they find -----------------------------------------------------------------------------------------------


def test_a_card_finds_curves_steps_categories_and_gaps():
    X, y = make_curves(6000)
    model = Scorecard(points=None, alpha=10.0, cv=0).fit(X, y)
    card, name = model.card_, [c.name for c in model.columns_]
    at = np.full((3, len(name)), np.nan)
    at[:, name.index("curve")] = [-2.0, 0.0, 2.0]
    low, middle, high = card.contributions(at)[:, name.index("curve")]
    assert low > middle + 1 < high + 1
    at[:, name.index("step")] = [0.0, 2.0, np.nan]
    below, above, missing = card.contributions(at)[:, name.index("step")]
    assert above > below + 0.8
    assert missing > below + 0.8
    shape = card.shape_of(name.index("kind"))
    assert shape is not None
    assert shape.points[0] == shape.points.max() > 0.4


def test_a_tree_finds_what_a_card_cannot_say():
    X, y = make_curves(6000)
    new, outcome = make_curves(6000, seed=1)
    card, tree = (model.fit(X, y) for model in (Scorecard(random_state=0), ScorecardTree(random_state=0)))
    assert tree.n_leaves_ > 1
    assert tree.score(new, outcome) > card.score(new, outcome) + 0.02
    assert {"one", "other"} & set(tree._leaf_names()[0].replace("(", " ").split())


def test_without_interactions_the_tree_is_the_card():
    X, _ = make_curves(2000)
    y = (np.random.default_rng(1).random(2000) < 1 / (1 + np.exp(3 - X["curve"]))).astype(int)
    tree = ScorecardTree(random_state=0).fit(X, y)
    assert tree.n_leaves_ == 1
    card = Scorecard(alpha=tree.alpha_, random_state=0).fit(X, y)
    assert np.array_equal(tree.decision_function(X), card.decision_function(X))


def test_a_noise_column_with_many_categories_costs_nothing():
    (X, y), (new, outcome) = make_curves(4000, noise_levels=250), make_curves(4000, seed=1, noise_levels=250)
    with_noise = Scorecard(cv=0).fit(X, y)
    without = Scorecard(cv=0).fit(X.drop(columns="noise"), y)
    loss = without.score(new.drop(columns="noise"), outcome) - with_noise.score(new, outcome)
    assert loss < 0.01


def test_limits_hold():
    X, y = make_curves()
    model = Scorecard(max_features=2, max_bins_per_feature=4, cv=0).fit(X, y)
    assert len(model.card_) <= 2
    numbers = [shape.n_bins for shape in model.card_.shapes if not shape.is_categorical]
    assert numbers
    assert max(numbers) <= 4
    tree = ScorecardTree(max_depth=1, max_terms=1, cv=0).fit(X, y)
    assert tree.n_leaves_ == 2
    assert all(len(card) <= 1 for card in tree.card_tree_.corrections)


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("ranker", [Scorecard, ScorecardTree])
def test_monotone_columns_never_turn(ranker, direction):
    X, y = make_curves()
    model = ranker(monotonic_cst={"curve": direction, "one": direction}, cv=0).fit(X, y)
    row = pd.concat([X.iloc[[0]]] * 200, ignore_index=True)
    for name in ("curve", "one"):
        score = model.decision_function(row.assign(**{name: np.linspace(-4, 4, 200)}))
        assert np.all(direction * np.diff(score) >= 0)
    free = ranker(cv=0).fit(X, y).decision_function(row.assign(curve=np.linspace(-4, 4, 200)))
    assert np.any(direction * np.diff(free) < 0), "the constraint changed something"
    with pytest.raises(ValueError, match="kind"):
        ranker(monotonic_cst={"kind": 1}, cv=0).fit(X, y)


def test_whole_points_on_a_stated_scale():
    X, y = make_curves()
    whole, exact = Scorecard(points=20, alpha=10.0, cv=0).fit(X, y), Scorecard(points=None, alpha=10.0, cv=0).fit(X, y)
    for shape in whole.card_.shapes:
        assert np.array_equal(np.round(shape.points), shape.points)
        assert np.array_equal(np.round(shape.ends), shape.ends)
    odds = whole.decision_function(X) * np.log(2) / 20
    assert np.abs(odds - exact.decision_function(X)).mean() < 0.15
    assert abs(whole.score(X, y) - exact.score(X, y)) < 0.01
    assert "20 points double the odds" in whole.to_text()
    assert "points are log-odds" in exact.to_text()


# --- words and files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranker", [Scorecard(cv=0), ScorecardTree(max_depth=2, cv=0)], ids=["card", "tree"])
def test_points_of_an_explanation_add_up(ranker):
    X, y = make_curves()
    model = clone(ranker).fit(X, y)
    score = model.decision_function(X[:50])
    for i, row in enumerate(model.explain(X[:50])):
        total = row.base + sum(step.contribution for step in row.steps)
        assert np.isclose(total, score[i], rtol=1e-12)
        assert row.score == score[i]
    assert "points" in str(row)
    assert row.to_dict()["score"] == row.score
    alerts = model.top_k(X, 5)
    assert alerts["reason_1"].notna().all()


@pytest.mark.parametrize("ranker", [Scorecard(cv=0), ScorecardTree(max_depth=2, cv=0)], ids=["card", "tree"])
def test_a_case_is_scored_by_hand_from_the_page(ranker):
    X, y = make_curves()
    model = clone(ranker).fit(X, y)
    read = Page(model.to_text(exact=True), X.columns)
    by_hand = [read.score(case) for case in X[:200].to_dict("records")]
    assert by_hand == pytest.approx(model.decision_function(X[:200]), rel=1e-9)
    if isinstance(ranker, ScorecardTree):
        assert len(read.groups) == 1 + model.n_leaves_ > 2
        assert model.explain(X[:1])[0].place in model._leaf_names()


def test_a_long_card_leaves_out_what_matters_least():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(3000, 40)), columns=[f"c{i}" for i in range(40)])
    y = (
        rng.random(3000) < 1 / (1 + np.exp(3 - X["c0"] - 0.25 * X[[f"c{i}" for i in range(1, 40)]].sum(axis=1)))
    ).astype(int)
    model = Scorecard(cv=0).fit(X, y)
    text, exact = model.to_text(), model.to_text(exact=True)
    ((n, most, names),) = re.findall(r"and (\d+) columns with at most (\d+) points each: ([^.]*?)\n\n", text)
    left_out = [int(name[1:]) for name in names.replace("\n", " ").split(", ")]
    assert len(left_out) == int(n) > 1
    assert max(model.card_.shape_of(f).largest for f in left_out) == int(most)
    share = model.spread_**2 / (model.spread_**2).sum()
    assert share[left_out].max() < 0.01
    assert "Shortened" in text
    assert all(f"c{f} " in exact for f in left_out)


def test_frame_of_points():
    X, y = make_curves()
    model = Scorecard(cv=0).fit(X, y)
    frame = model.scorecard()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == model.card_.n_bins + len(model.card_)
    assert set(frame["column"]) == {model.columns_[f].name for f in model.card_.features}


def test_folds_choose_and_rates_are_of_new_cases():
    X, y = make_curves()
    model = ScorecardTree(random_state=0).fit(X, y)
    assert model.rates_.is_for_new_cases
    results = model.cv_results_
    assert {len(values) for values in results.values()} == {5 + 3}
    assert model.alpha_ in results["alpha"]
    assert not ScorecardTree(cv=0).fit(X, y).cv_results_
    new, outcome = make_curves(seed=1)
    expected = model.predict_proba(new)[:, 1]
    assert abs(expected.mean() - outcome.mean()) < 0.02
    assert average_precision(outcome, expected) > 0.3


DAMAGES = {"feature": 9, "left": 7, "code": 3, "threshold": np.nan}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_tree_is_refused(name):
    X, y = make_curves()
    model = ScorecardTree(max_depth=2, cv=0).fit(X, y)
    arrays = model._to_arrays()
    damaged = arrays[f"split_{name}"].copy()
    damaged[0] = DAMAGES[name]
    with pytest.raises(ValueError, match="Not a valid"):
        model._from_arrays(arrays | {f"split_{name}": damaged})
    with pytest.raises(ValueError, match=name):
        model._from_arrays({key: value for key, value in arrays.items() if key != f"split_{name}"})


def test_a_file_gives_the_same_text(tmp_path):
    X, y = make_curves()
    model = ScorecardTree(max_depth=2, cv=0).fit(X, y)
    model.save(tmp_path / "model.toprank")
    loaded = load(tmp_path / "model.toprank")
    assert loaded.to_text() == model.to_text()
    assert loaded.card_tree_ == model.card_tree_


def rare_curve(shape, n=3000):
    """A number whose log-odds follow a curve, and outcomes."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    return pd.DataFrame({"x": x}), (rng.random(n) < 1 / (1 + np.exp(3 - shape(x)))).astype(int)


@pytest.mark.parametrize("shape", [lambda x: 1.2 * x, lambda x: x**2, lambda x: 2 - x**2], ids=["line", "u", "hump"])
def test_few_bins_follow_the_curve(shape):
    # Bins were once merged without a refit: a U became one bin, and a line of 2 bins claimed three times the rate.
    X, y = rare_curve(shape)
    most = 3 if shape(1.0) == shape(-1.0) else 2
    few = Scorecard(max_bins_per_feature=most, points=None, cv=0).fit(X, y)
    assert few.card_.shapes[0].n_bins == most
    assert few.card_.shapes[0].is_stepped
    rate = 1 / (1 + np.exp(-few.decision_function(X)))
    assert rate.mean() == pytest.approx(y.mean(), rel=0.02)
    assert few.score(X, y) > 1.25 * y.mean()


def test_a_missing_value_that_training_did_not_have_gets_no_points():
    # It once got the points of the lowest value: +41 or -38, depending on how a 0/1 column was coded.
    X, y = rare_curve(lambda x: 1.2 * x)
    for column in (X.x, -X.x, (X.x > 0) * 1.0):
        model = Scorecard(cv=0).fit(pd.DataFrame({"x": column}), y)
        assert model.card_.shapes[0].missing == 0


def test_what_pays_gains_more_than_half_a_standard_error():
    assert pays(np.array([0.1, 0.1]))
    assert pays(np.array([0.02, 0.01, 0.0, 0.01]))
    assert not pays(np.array([0.1, -0.1]))
    assert not pays(np.array([0.3, -0.2, -0.05]))
    assert not pays(np.zeros(5))


def test_fine_tuning_is_taken_where_folds_say_that_it_pays():
    data, how = make_audit(1500, random_state=0), {"alpha": 30.0, "cv": 3, "max_features": 6, "random_state": 0}
    model = Scorecard(fine_tune=True, **how).fit(data.X, data.y)
    tuned, plain = model.cv_results_["mean_test_score"]
    assert model.cv_results_["fine_tuned"].tolist() == [1.0, 0.0]
    assert tuned != plain
    assert model.is_fine_tuned_ <= (tuned > plain)
    without = Scorecard(**how).fit(data.X, data.y)
    is_same = np.array_equal(model.decision_function(data.X), without.decision_function(data.X))
    assert is_same != model.is_fine_tuned_
    assert not Scorecard(fine_tune=True, cv=0).fit(data.X, data.y).is_fine_tuned_


def test_fine_tuning_lowers_the_surrogate_and_keeps_directions():
    data = make_audit(3000, random_state=0)
    parameters = {"alpha": 30.0, "points": None, "cv": 0, "monotonic_cst": {"cash_share": 1}}
    binned = {}

    class Kept(Scorecard):
        def _candidates(self, data, rows, terms, alphas):
            binned["models"] = fits_by_alpha(data, rows, terms, alphas, None, None)
            return super()._candidates(data, rows, terms, alphas)

    Kept(**parameters).fit(data.X, data.y)
    plain = binned["models"][0]
    tuned = plain.tuned()
    is_positive, weight = plain.rows.target > 0, plain.rows.weight
    assert TOP_LOSS.surrogate.value(tuned.z, is_positive, weight) < TOP_LOSS.surrogate.value(
        plain.z, is_positive, weight
    )
    place = next(i for i, term in enumerate(tuned.terms) if data.X.columns[term.feature] == "cash_share")
    curve = tuned.terms[place].design @ tuned.coefficients[place]
    assert np.all(np.diff(curve[:-1]) >= -1e-9)


def test_a_long_page_has_an_overview_and_explain_adds_up_as_the_page_does():
    """The command line printed hundreds of lines; `explain` began with another number than the page."""
    data = make_audit(6000, random_state=0)
    model = ScorecardTree(max_depth=2, cv=0).fit(data.X, data.y)
    text = model._overview("the page", "all digits")
    assert len(model.to_text().splitlines()) > 100
    assert len(text.splitlines()) <= 44
    assert text.splitlines()[-1] == "Shortened: the page has the points of every column and group of cases."
    assert all(condition_texts(model.card_tree_.conditions(leaf, model.columns_))[0] in text for leaf in range(2))
    row = model.explain(data.X[:1])[0]
    head, group, *lines, last = str(row).splitlines()
    start = float(head.split(" = ")[1].split(" + ")[0])
    assert start == model.card_.base
    assert f"its group: {row.place}" in group
    points = [float(line.split()[0]) for line in [group, *lines]]
    assert start + sum(points) == pytest.approx(row.score, abs=0.01 * len(points))
    parts = [re.search(r"\(card (\S+), its group (\S+)\)$", line) for line in lines]
    assert any(parts)
    assert all(sum(map(float, part.groups())) == pytest.approx(point, abs=0.02)
               for part, point in zip(parts, points[1:], strict=True) if part)  # fmt: skip
    assert "decimals" in last


def test_a_short_page_is_its_own_overview():
    data = make_audit(2000, random_state=0)
    model = Scorecard(max_features=2, cv=0).fit(data.X, data.y)
    assert model._overview("the page", "to_text(exact=True)") == model.to_text()
