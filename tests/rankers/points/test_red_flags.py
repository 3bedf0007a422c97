"""RedFlags: its limits hold, its points add up, it finds planted pockets, and noise gets no rule."""

import copy
import datetime
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import average_precision_score
from sklearn.neighbors import KNeighborsClassifier

from page_reader import Page
from ranker_cases import cases, fewer, make_cases, scores_of
from toprank import InputError, RankingTree, RedFlags, StackedRanker, load
from toprank.datasets import make_audit
from toprank.explain.conditions import Condition
from toprank.rankers.points import red_flags
from toprank.rankers.points.flags import TOP, Flag, Flags, written_conditions
from toprank.rankers.points.points_ranker import PointsExplanation
from toprank.tree.columns import Column

PLAIN = {"teacher": None, "cv": 0}


@pytest.fixture(scope="module")
def campaign():
    return make_audit(12_000, random_state=3)


@pytest.fixture(scope="module")
def model(campaign):
    return RedFlags(teacher=None, cv=2, random_state=0).fit(campaign.X, campaign.y)


@pytest.fixture(scope="module")
def matrix(model, campaign):
    return model._encode(campaign.X)


# What it finds


def test_planted_pockets_are_found(model, matrix, campaign):
    """Each of the three large pockets has a rule that holds for most of its frauds and for little else."""
    columns = campaign.columns
    pockets = {
        "construction": (columns["sector"] == "construction") & (columns["subcontracting_share"] > 0.5)
        & (columns["payroll_share"] < 0.15) & (columns["age_years"] < 4),
        "importers": (columns["sector"] == "import-export") & (columns["vat_refund_share"] > 0.4)
        & (columns["foreign_share"] > 0.5) & (columns["bank_account_months"] < 12),
        "restaurants": (columns["sector"] == "hospitality") & (columns["cash_share"] > 0.5)
        & (columns["card_terminals"] <= 1) & (columns["employees"] > 3),
    }  # fmt: skip
    holds = model.flags_.holds(matrix)
    for name, pocket in pockets.items():
        overlap = [(held & pocket).sum() / pocket.sum() for held in holds.T]
        best = int(np.argmax(overlap))
        assert overlap[best] > 0.75, name
        assert model.flags_[best].points > 20, name
        assert campaign.y[holds[:, best]].mean() > 8 * campaign.y.mean(), name


def test_it_ranks_new_cases_better_than_its_card_alone(model, campaign):
    new = make_audit(8_000, random_state=4)
    card = RedFlags(**PLAIN, max_rules=0).fit(campaign.X, campaign.y)
    assert len(card.flags_) == 0
    precision = [average_precision_score(new.y, each.decision_function(new.X)) for each in (model, card)]
    assert precision[0] > precision[1] + 0.05


@pytest.mark.parametrize("seed", range(2))
def test_shuffled_labels_get_no_rule(seed):
    data = make_audit(3_000, random_state=seed)
    y = np.random.default_rng(seed).permutation(data.y)
    assert len(RedFlags(cv=0, teacher=None, random_state=seed, max_features=0).fit(data.X, y).flags_) == 0


def test_rates_of_new_cases_are_claimed_honestly(model):
    new = make_audit(12_000, random_state=5)
    top = np.argsort(-model.decision_function(new.X), kind="stable")[:240]
    claimed = model.predict_proba(new.X)[top, 1].mean()
    assert model.rates_.is_for_new_cases
    assert abs(claimed - new.y[top].mean()) < 0.12


def test_a_teacher_is_asked_about_cases_that_it_has_not_seen(campaign):
    """A teacher that remembers its cases adds nothing but the base rate about others: no leak of the labels."""

    class Parrot(RandomForestClassifier):
        def predict_proba(self, X):
            seen = {row.tobytes() for row in self.known}
            assert not any(row.tobytes() in seen for row in np.ascontiguousarray(X))
            return super().predict_proba(X)

        def fit(self, X, y, sample_weight=None):
            self.known = np.ascontiguousarray(X)
            return super().fit(np.nan_to_num(X), y, sample_weight)

    part = campaign.take(slice(0, 1000))
    teacher = Parrot(n_estimators=3, random_state=0)
    taught = RedFlags(teacher=teacher, cv=2, max_rules=4, max_features=2, random_state=0).fit(part.X, part.y)
    assert taught.rates_.is_for_new_cases


# Limits


@pytest.mark.parametrize("limits", [(3, 2, 5, 2, 3), (20, 4, 12, 4, 4), (0, 1, 1, 3, 2), (4, 3, 40, 0, 5)])
def test_limits_hold_strictly(campaign, limits):
    rules, conditions, total, features, bins = limits
    part = campaign.take(slice(0, 4000))
    model = RedFlags(
        **PLAIN, max_rules=rules, max_conditions=conditions, max_total_conditions=total, max_features=features,
        max_bins_per_feature=bins,
    ).fit(part.X, part.y)  # fmt: skip
    assert len(model.flags_) <= rules
    assert all(flag.n_conditions <= conditions for flag in model.flags_)
    assert model.flags_.n_conditions <= total
    assert len(model.card_) <= features
    for shape in model.card_.shapes:
        assert len({*shape.points.tolist(), shape.missing}) <= bins
    assert all(len(c.codes) <= 3 for flag in model.flags_ for c in flag.conditions if c.codes is not None)


@pytest.mark.parametrize("search_rows", [100_000, 500])
def test_values_without_training_cases_have_no_points(search_rows, monkeypatch):
    """They joined the largest group, which whole points may merge with others into a larger one without points."""
    monkeypatch.setattr(red_flags, "SEARCH_ROWS", search_rows)
    rng = np.random.default_rng(1)
    place, size = rng.choice(5, 1500, p=[0.34, 0.2, 0.18, 0.15, 0.13]), rng.normal(size=1500)
    logit = np.array([0.5, 0.0, -0.1, 0.1, -0.2])[place] + 1.2 * (rng.normal(size=1500) > 1) + 0.6 * size - 2
    X = pd.DataFrame({"place": pd.Series(list("abcde"))[place].to_numpy(), "size": size})
    y = rng.random(1500) < 1 / (1 + np.exp(-logit))
    model = RedFlags(**PLAIN, points=5, max_rules=0).fit(X, y)
    assert {shape.missing for shape in model.card_.shapes} == {0.0}
    assert model.card_.shape_of(0).points[0] > 0  # that of the largest group
    gaps = X.assign(size=np.where(np.arange(1500) % 10 == 0, np.nan, size))
    assert RedFlags(**PLAIN, points=5, max_rules=0).fit(gaps, y | gaps["size"].isna()).card_.shape_of(1).missing > 0


def test_a_case_without_points_is_explained(campaign):
    part = campaign.take(slice(0, 2000))
    model = RedFlags(**PLAIN, max_features=0).fit(part.X, part.y)
    bare = [each for each in model.explain(part.X) if not each.steps]
    assert bare
    start = f"score {model.card_.base:.0f}, where all cases start: "
    assert str(bare[0]).startswith(f"{start}no red flag holds, and no value of this case has points; training rate ")
    of_card = PointsExplanation(score=5.0, rate=0.1, lift=1.0, is_for_new_cases=True, base=5.0, steps=())
    assert str(of_card).startswith("score 5, where all cases start: no value of this case has points; expected hit")


def test_a_rule_without_a_miss_is_not_found_twice():
    """Its penalty holds points back, which the same rule would get a second time."""
    place, amount = np.arange(300) % 3, np.arange(300) * 37 % 200
    X = np.column_stack((place, amount)).astype(float)
    model = RedFlags(**PLAIN, max_features=0).fit(X, (place == 1) & (amount > 150))
    holds = model.flags_.holds(X)
    assert len({held.tobytes() for held in holds.T}) == len(model.flags_) > 0


def test_points_are_whole_numbers_on_the_stated_scale(campaign):
    part = campaign.take(slice(0, 3000))
    whole, exact = (RedFlags(**PLAIN, max_rules=5, points=points).fit(part.X, part.y) for points in (10, None))
    assert np.array_equal(whole.decision_function(part.X), np.round(whole.decision_function(part.X)))
    assert (whole.card_.scale, exact.card_.scale) == (10, 1)
    assert [flag.points for flag in whole.flags_] == [round(10 * flag.points) for flag in exact.flags_]


def test_monotone_columns_never_go_the_other_way(campaign):
    part = campaign.take(slice(0, 4000))
    directions = {"cash_share": 1, "age_years": -1, "vat_refund_share": 1}
    model = RedFlags(**PLAIN, monotonic_cst=directions).fit(part.X, part.y)
    matrix = model._encode(part.X)[:300]
    for name, direction in directions.items():
        feature = [column.name for column in model.columns_].index(name)
        grid = np.linspace(*np.nanquantile(matrix[:, feature], [0, 1]), 40)
        rows = np.repeat(matrix, len(grid), axis=0)
        rows[:, feature] = np.tile(grid, len(matrix))
        score = (model.flags_.decision_function(rows) + model.card_.decision_function(rows)).reshape(len(matrix), -1)
        assert np.all(np.diff(score, axis=1) * direction >= 0), name


# Laws


ODD = {"max_rules": 4, "max_features": 3}


@fewer(6)
@given(case=cases(), data=st.data())
def test_the_order_of_rows_changes_nothing_nor_do_copies(case, data):
    order = np.array(data.draw(st.permutations(range(len(case)))))
    first = RedFlags(**PLAIN, **ODD).fit(case.pandas(), case.y, case.weight)
    frame = case.pandas()
    score = scores_of(first, frame)
    moved = case.take(order)
    other = RedFlags(**PLAIN, **ODD).fit(moved.pandas(), moved.y, moved.weight)
    assert np.array_equal(scores_of(other, frame), score)
    assert np.array_equal(scores_of(first, frame.iloc[order]), score[order])
    twice = case.take(np.repeat(np.arange(len(case)), 2))
    weight = np.ones(len(case)) if case.weight is None else case.weight
    doubled = RedFlags(**PLAIN, **ODD).fit(frame, case.y, 2 * weight)
    copied = RedFlags(**PLAIN, **ODD).fit(twice.pandas(), twice.y, twice.weight)
    assert np.array_equal(scores_of(doubled, frame), scores_of(copied, frame))


def test_threads_and_a_teacher_change_no_bit():
    X, y = make_cases(250)
    one, two = (RedFlags(cv=0, max_rules=4, max_features=2, n_jobs=n, random_state=0).fit(X, y) for n in (1, 2))
    assert np.array_equal(one.decision_function(X), two.decision_function(X))
    assert one.to_text() == two.to_text()
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))


def test_a_row_scores_the_same_alone(model, campaign):
    frame = campaign.X.iloc[:50]
    score = model.decision_function(frame)
    assert [model.decision_function(frame.iloc[[i]])[0] for i in range(50)] == score.tolist()


@pytest.mark.parametrize("n", [900, 300])
def test_points_of_a_sample_are_fitted_on_all_rows(monkeypatch, n):
    X, y = make_cases(900)
    whole = RedFlags(**PLAIN, points=None).fit(X, y)
    monkeypatch.setattr(red_flags, "SEARCH_ROWS", n)
    sampled = RedFlags(**PLAIN, points=None).fit(X, y)
    assert abs(np.average(sampled.predict_proba(X)[:, 1]) - y.mean()) < 0.02
    assert np.corrcoef(sampled.decision_function(X), whole.decision_function(X))[0, 1] > 0.7


# Reading it


def test_points_of_an_explanation_add_up_to_the_score(model, campaign):
    rows = campaign.X.iloc[:30]
    for each, score in zip(model.explain(rows), model.decision_function(rows), strict=True):
        assert each.base + sum(step.contribution for step in each.steps) == score
        assert each.score == score


def test_a_case_is_scored_by_hand_from_the_page(model, campaign):
    text = model.to_text()
    read = Page(text, campaign.X.columns)
    assert len(read.flags) == len(model.flags_)
    rows = np.r_[:200, np.flatnonzero(campaign.y)[:200]]
    by_hand = [read.score(case) for case in campaign.X.iloc[rows].to_dict("records")]
    assert by_hand == model.decision_function(campaign.X.iloc[rows]).tolist()
    assert len(text.splitlines()) <= 60
    assert max(map(len, text.splitlines())) <= 100


def test_alerts_name_the_rules_that_hold(model, campaign):
    alerts = model.top_k(campaign.X, 10, reasons=2)
    assert (alerts["strength_1"] >= alerts["strength_2"].fillna(0)).all()
    assert alerts["reason_1"].str.contains("sector = ").any()
    assert alerts["hit_rate"].is_monotonic_decreasing


@pytest.fixture(scope="module")
def corrected():
    """A flag on the rate, inside it one on a higher rate, one on the sector, and one that changes nothing."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"rate": rng.uniform(5, 30, 3000).round(2), "sector": rng.choice(["bar", "bank"], 3000)})
    y = rng.random(3000) < 0.02 + 0.2 * (X["rate"] > 15)
    model = RedFlags(**PLAIN, max_rules=0, max_features=0).fit(X, y)
    rate, sector = model.columns_
    high, higher = (Condition(0, rate, low=low, missing=False) for low in (15.0, 20.0))
    bar = Condition(1, sector, missing=False, codes=(list(sector.categories).index("bar"),))
    model.flags_ = Flags(
        (Flag((high,), 5.0), Flag((higher,), 3.0, 0), Flag((high, bar), 2.0, 0), Flag((high, bar), 0.0, 0)), 2
    )
    return model


@pytest.mark.parametrize(
    ("rate", "sector", "text", "points"),
    [
        (18.99, "bank", "rate = 18.99 (> 15)", 5),
        (21.97, "bank", "rate = 21.97 (> 20)", 8),
        (18.99, "bar", "rate = 18.99 (> 15); sector = bar", 7),
        (21.97, "bar", "rate = 21.97 (> 20); sector = bar", 10),
    ],
)
def test_a_reason_names_all_conditions_that_its_strength_counts(corrected, rate, sector, text, points):
    alert = corrected.top_k(pd.DataFrame({"rate": [rate], "sector": [sector]}), 1).iloc[0]
    assert alert["reason_1"] == text
    assert alert["strength_1"] == pytest.approx(np.exp(points / 10), rel=1e-3)
    assert alert["reason_2"] == ""


def test_a_rule_of_hardly_any_points_is_no_reason(corrected):
    model = copy.copy(corrected)
    model.flags_ = corrected.flags_.with_points([0.03, 0.0, 0.0, 0.0])  # a factor of 1.003
    alert = model.top_k(pd.DataFrame({"rate": [18.99], "sector": ["bank"]}), 1).iloc[0]
    assert alert["reason_1"] == ""


@pytest.mark.parametrize("whole", [10, None])
@pytest.mark.parametrize("seed", range(3))
def test_what_most_cases_have_gets_no_points(seed, whole):
    """Positives are where few cases are, so the largest share of the log-likelihood is not with most cases."""
    rng = np.random.default_rng(seed)
    n = 4000
    X = pd.DataFrame({
        "kind": rng.choice(["usual", "b", "c", "d"], n, p=[0.8, 0.1, 0.05, 0.05]),
        "size": np.where(rng.random(n) < 0.75, 1.0, rng.integers(2, 9, n)),
        "other": rng.normal(size=n),
    })  # fmt: skip
    y = rng.random(n) < 0.004 + 0.4 * (X["kind"] != "usual") + 0.15 * (X["size"] > 3)
    weight = rng.integers(1, 3, n).astype(float)
    model = RedFlags(**PLAIN, points=whole, max_rules=0).fit(X, y, sample_weight=weight)
    points = model.card_.contributions(model._encode(X))
    assert {shape.feature for shape in model.card_.shapes} >= {0, 1}
    for shape in model.card_.shapes:
        distinct, which = np.unique(points[:, shape.feature], return_inverse=True)
        assert distinct[np.argmax(np.bincount(which, weight))] == 0
    refitted = model.with_rule({"size": (">", 6)}, X[::2], y[::2], refit_on=(X, y)).model
    for before, after in zip(model.card_.shapes, refitted.card_.shapes, strict=True):
        assert (after.points[before.points == 0] == 0).all()


def test_whole_points_of_an_explanation_have_no_decimals(model, campaign):
    lines = str(model.explain(campaign.X)[int(np.argmax(model.decision_function(campaign.X)))]).splitlines()[1:]
    assert lines
    assert not [line for line in lines if re.match(r" +[+-]\d+\.\d", line)]


def test_rules_as_a_frame(model, campaign):
    rules = model.rules()
    assert [*rules.columns[:4]] == ["number", "rule", "points", "inside"]
    assert [*rules.columns[4:]] == ["hit_rate", "n", "positives", "training_rate"]
    assert np.array_equal(rules["training_rate"], rules["positives"] / rules["n"])
    assert rules["hit_rate"].between(0, 1).all()
    untested = RedFlags(**PLAIN, max_rules=3, max_features=0).fit(campaign.X, campaign.y).rules()
    assert "hit_rate" not in untested
    assert untested["training_rate"].between(0, 1).all()


def test_fit_scores_the_training_rows_once(campaign, monkeypatch):
    scored = []
    own = RedFlags._score_rows
    monkeypatch.setattr(RedFlags, "_score_rows", lambda *given: scored.append(len(given[1])) or own(*given))
    model = RedFlags(teacher=None, cv=2, max_rules=3, max_features=0).fit(campaign.X[:1500], campaign.y[:1500])
    assert model.rates_.is_for_new_cases
    assert scored == [1500]


def test_a_flag_inside_another_is_printed_below_it():
    X, y = make_cases(1500)
    x, z = X["size"].to_numpy(), np.nan_to_num(X["age"].to_numpy())
    rng = np.random.default_rng(0)
    y = (rng.random(len(x)) < np.where(x > 1, np.where(z > 20, 0.15, 0.8), 0.02)).astype(int)
    model = RedFlags(**PLAIN, max_features=0).fit(X, y)
    inside = [flag for flag in model.flags_ if flag.inside != TOP]
    for place, flag in enumerate(model.flags_):
        assert flag.inside < place
    assert ("holds, also add" in model.to_text()) == bool(inside)
    assert average_precision_score(y, model.decision_function(X)) > 0.6


# Files and bad input


def test_a_file_keeps_everything(model, campaign, tmp_path):
    model.save(tmp_path / "flags.toprank")
    again = load(tmp_path / "flags.toprank")
    assert again.to_text() == model.to_text()
    assert again.flags_.flags == model.flags_.flags
    assert np.array_equal(again.decision_function(campaign.X), model.decision_function(campaign.X))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("condition_at", lambda a: a[::-1].copy()),
        ("feature", lambda a: a + 1000),
        ("feature", lambda a: a - 1000),
        ("bits", lambda a: ~a),
        ("low", lambda a: np.full_like(a, np.nan)),
        ("points", lambda a: np.full_like(a, np.inf)),
        ("inside", lambda a: np.full_like(a, 99)),
        ("missing", lambda a: a + 7),
        ("is_categorical", lambda a: 1 - a),
        ("hit_rate", lambda a: a[:-1]),
    ],
)
def test_damaged_arrays_are_refused(model, name, change):
    arrays = model.flags_.to_arrays()
    arrays[name] = change(arrays[name])
    with pytest.raises(InputError, match="red flags"):
        Flags.from_arrays(arrays, model.columns_)


def test_a_teacher_without_rates_is_refused():
    class Loud(RandomForestClassifier):
        def predict_proba(self, X):
            return 3 + super().predict_proba(np.nan_to_num(X))

        def fit(self, X, y, sample_weight=None):
            return super().fit(np.nan_to_num(X), y, sample_weight)

    with pytest.raises(InputError, match="Loud"):
        RedFlags(teacher=Loud(n_estimators=2), cv=0).fit(*make_cases(200))


def test_an_empty_rule_is_refused():
    with pytest.raises(InputError, match="asks for columns"):
        Flags((Flag((), 3.0),), 2)


@pytest.mark.parametrize("y", [[1] + [0] * 39, [1, 1] + [0] * 38, [0, 1] * 20])
def test_very_few_positives_make_a_model(y):
    X = pd.DataFrame({"a": np.arange(40.0), "b": ["x", "y"] * 20, "c": np.nan})
    model = RedFlags().fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


# Changes by hand


@pytest.fixture(scope="module")
def new():
    return make_audit(8_000, random_state=9)


def test_a_dropped_rule_costs_what_the_change_says(model, new):
    change = model.without_rule(1, new.X, new.y)
    n_dropped = 1 + sum(flag.inside == 0 for flag in model.flags_)
    assert len(change.model.flags_) == len(model.flags_) - n_dropped
    assert change.before == pytest.approx(average_precision_score(new.y, model.decision_function(new.X)))
    assert change.after == pytest.approx(average_precision_score(new.y, change.model.decision_function(new.X)))
    value, low, high = change.difference
    assert low <= value <= high < 0
    assert change.hits_after < change.hits_before
    assert change.model.rates_.source == red_flags.JUDGED
    assert "dropped rule 1: " in str(change)
    assert len(model.flags_) == len(model.rules())  # the model itself stays


@pytest.mark.parametrize(
    "change",
    [
        lambda model, X, y: model.without_rule(1, X, y),
        lambda model, X, y: model.with_points(1, 5, X, y),
        lambda model, X, y: model.with_rule({"age_years": ("<=", 2)}, X, y, points=5),
    ],
)
def test_a_change_judged_on_training_cases_has_training_rates(model, campaign, change):
    with pytest.warns(UserWarning, match="trained on these very cases"):
        changed = change(model, campaign.X, campaign.y).model
    assert not changed.rates_.is_for_new_cases
    assert np.isnan([flag.hit_rate for flag in changed.flags_]).all()
    assert "training rate at this score" in changed.to_text()
    assert "hit rate at this score" not in changed.to_text()


def test_a_change_judged_on_the_cases_that_it_is_fitted_on_has_training_rates(model, new):
    with pytest.warns(UserWarning, match="trained on these very cases"):
        changed = model.without_rule(1, new.X, new.y, refit_on=(new.X, new.y)).model
    assert not changed.rates_.is_for_new_cases


def test_a_change_keeps_the_budget_of_the_fit(model, new):
    later = copy.copy(model).set_params(budget=7)
    change, expected = (each.without_rule(1, new.X, new.y) for each in (later, model))
    assert str(change) == str(expected)
    assert change.model.summary() == expected.model.summary()


def test_points_that_are_fitted_again_make_up_for_a_dropped_rule(model, campaign, new):
    kept = model.without_rule(1, new.X, new.y)
    again = model.without_rule(1, new.X, new.y, refit_on=(campaign.X, campaign.y))
    assert again.after > kept.after - 0.005
    assert any(a.points != b.points for a, b in zip(kept.model.flags_, again.model.flags_, strict=True))
    assert np.array_equal(again.model.decision_function(new.X), np.round(again.model.decision_function(new.X)))


def test_other_points_move_the_cases_of_a_rule_alone(model, matrix, campaign, new):
    old = model.flags_[0].points
    change = model.with_points(1, old + 3, new.X, new.y)
    moved = change.model.decision_function(campaign.X) - model.decision_function(campaign.X)
    assert np.array_equal(moved, 3.0 * model.flags_[0].holds(matrix))


def test_an_expert_adds_a_rule(model, campaign, new):
    rule = {"sector": ["construction", "hospitality"], "age_years": (1, 5), "vat_gap": None}
    change = model.with_rule(rule, new.X, new.y, points=4)
    added = change.model.flags_[-1]
    assert added.text() == "sector is construction or hospitality; 1 < age_years <= 5; vat_gap is missing"
    fitted = model.with_rule({"vat_refund_share": (">", 0.5)}, new.X, new.y, refit_on=(campaign.X, campaign.y))
    assert fitted.model.flags_[-1].points != 0
    assert fitted.model.flags_[-1].n > 0


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (("<=", "2024-03-01"), "day <= 2024-03-01"),
        (("<=", "1.3.2024"), "day <= 2024-03-01"),  # as in the cells of the table
        ((">", pd.Timestamp("2024-03-01")), "day > 2024-03-01"),
        ((datetime.date(2024, 1, 31), "2024-03-01"), "2024-01-31 < day <= 2024-03-01"),
        (("<=", 19783), "day <= 2024-03-01"),
    ],
)
def test_an_expert_writes_dates_as_dates(wanted, text):
    columns = [Column("day", form="dmy", has_missing=False)]
    assert [each.text() for each in written_conditions({"day": wanted}, columns)] == [text]


@pytest.mark.parametrize("kind", [np.array, pd.Series, tuple, set])
def test_an_expert_lists_categories_in_any_container(kind):
    columns = [Column("sector", ("bar", "bank", "shop"), has_missing=False)]
    (condition,) = written_conditions({"sector": kind(["bank", "bar"])}, columns)
    assert condition.codes == (0, 1)


@pytest.mark.parametrize("wanted", [("<=", "soon"), ("2024-03-01", "2024-01-31"), ("<=", pd.NaT)])
def test_a_rule_on_dates_that_makes_no_sense_is_refused(wanted):
    with pytest.raises(InputError, match="must have bounds"):
        written_conditions({"day": wanted}, [Column("day", form="date")])


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"sektor": "x"}, "did you mean 'sector'"),
        ({"sector": "builders"}, "no category 'builders'"),
        ({"age_years": "young"}, "must have bounds"),
        ({"age_years": (5, 2)}, "must have bounds"),
        ({"age_years": ("<", 2)}, "must have bounds"),
        ({}, "must be a dict"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(model, new, conditions, words):
    with pytest.raises(InputError, match=words):
        model.with_rule(conditions, new.X, new.y, points=1)


def test_points_beside_cases_to_refit_on_are_refused(model, campaign, new):
    with pytest.raises(InputError, match="points or refit_on, got both"):
        model.with_rule({"age_years": (">", 3)}, new.X, new.y, points=50, refit_on=(campaign.X, campaign.y))


def test_a_rule_without_points_or_a_wrong_number_is_refused(model, new):
    with pytest.raises(InputError, match="points"):
        model.with_rule({"age_years": (">", 3)}, new.X, new.y)
    for number in (0, 99, True, "1"):
        with pytest.raises(InputError, match="number must be"):
            model.without_rule(number, new.X, new.y)


def test_a_changed_model_is_saved_and_printed_like_any_other(model, new, tmp_path):
    changed = model.with_rule({"age_years": ("<=", 2)}, new.X, new.y, points=5).model
    changed.save(tmp_path / "changed.toprank")
    again = load(tmp_path / "changed.toprank")
    assert again.to_text() == changed.to_text()
    assert "nan" not in changed.to_text()
    assert changed.feature_importances_.sum() == pytest.approx(1)


def test_refitted_log_odds_are_not_rounded(campaign, new):
    exact = RedFlags(**PLAIN, points=None, max_features=0, max_rules=3).fit(campaign.X, campaign.y)
    changed = exact.without_rule(1, new.X, new.y, refit_on=(campaign.X, campaign.y)).model
    assert any(flag.points != round(flag.points) for flag in changed.flags_)


@pytest.mark.parametrize("refit_on", ["table", (1, 2, 3)])
def test_a_wrong_pair_to_refit_on_is_refused(model, new, refit_on):
    with pytest.raises(InputError, match="refit_on"):
        model.without_rule(1, new.X, new.y, refit_on=refit_on)


@pytest.mark.parametrize("points", [np.nan, np.inf, "10", True])
def test_points_that_are_no_number_are_refused(model, new, points):
    with pytest.raises(InputError, match="points must be"):
        model.with_points(1, points, new.X, new.y)


# What a review found


def test_large_weights_come_to_an_end():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 30, 800).astype(str), "b": rng.integers(0, 25, 800).astype(str)})
    y = (rng.random(800) < 0.1).astype(int)
    model = RedFlags(**PLAIN, categorical_features=["a", "b"]).fit(X, y, sample_weight=1e9 * (0.5 + rng.random(800)))
    assert np.isfinite(model.decision_function(X)).all()


def test_a_stack_learns_from_scores_of_the_right_rows():
    data = make_audit(800, random_state=0)
    flags = RedFlags(teacher=None, cv=2, max_rules=2, max_features=2)
    stack = StackedRanker([flags, RankingTree(max_depth=1, cv=0)], cv=2).fit(data.X, data.y)
    alone = flags.fit(data.X, data.y)
    found = [average_precision_score(data.y, each.decision_function(data.X)) for each in (stack, alone)]
    assert found[0] > 0.7 * found[1]


def test_monotone_columns_stay_so_where_points_are_fitted_on_more_rows(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 3))
    y = (rng.random(3000) < 1 / (1 + np.exp(3 - X[:, 0] + 0.8 * np.sin(3 * X[:, 0])))).astype(int)
    monkeypatch.setattr(red_flags, "SEARCH_ROWS", 500)
    model = RedFlags(**PLAIN, monotonic_cst=[1, -1, 0]).fit(X, y)
    for feature, direction in ((0, 1), (1, -1)):
        rows = np.zeros((200, 3))
        rows[:, feature] = np.linspace(-3, 3, 200)
        assert np.all(np.diff(model.decision_function(rows)) * direction >= 0)
    assert all(flag.points > 0 for flag in model.flags_ if flag.inside == TOP)


def test_a_teacher_that_takes_no_weights_is_refused_where_cases_are_merged():
    X, y = make_cases(200)
    twice = pd.concat([X, X[:50]])
    with pytest.raises(InputError, match="sample_weight"):
        RedFlags(teacher=KNeighborsClassifier(), cv=0).fit(twice, np.append(y, y[:50]))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_handful_of_positives_that_stand_out_are_ranked_first(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(600, 6)), np.zeros(600, bool)
    y[:8], X[:8, 0] = True, rng.uniform(2.5, 4, 8)
    train = np.arange(600) % 2 == 0  # four positives
    model = RedFlags(cv=0).fit(X[train], y[train])
    assert average_precision_score(y[~train], model.decision_function(X[~train])) > 0.5
