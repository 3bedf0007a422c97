"""Pages of points: whoever sees nothing but the page can score a case by hand, and knows what the score means."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from page_reader import Page
from toprank import RankingTree, RedFlags, Scorecard
from toprank.budget import Cutoff
from toprank.explain.conditions import Condition
from toprank.metrics.hit_rates import HitRates
from toprank.rankers.points.card import Card, Shape
from toprank.rankers.points.flags import Flag, Flags
from toprank.rankers.points.pages import (
    flags_page,
    rate_lines,
    rate_text,
    round_steps,
    share_of_cases_text,
    shown_scores,
)
from toprank.rankers.unseen import HeldOut, Unseen, rates_of_training
from toprank.tree.columns import Column

MAKES = tuple(f"{name} {i}" for name in ("Alfa", "Ford", "Seat") for i in range(9))
COLUMNS = [
    Column("age"),
    Column("sector", ("retail", "catering", "transport", "fish, chips"), has_missing=False),
    Column("make", MAKES, shared=("Rare 1", "Rare 2")),
    Column("share", has_missing=False),
    Column("day", ("Mo", "Tu", "We", "Th", "Fr")),
]
MAKE_POINTS = np.r_[np.full(9, 4.0), np.zeros(14), np.full(4, -3.0)]


def number(feature, low=-np.inf, high=np.inf, missing=False):
    return Condition(feature, COLUMNS[feature], low=low, high=high, missing=missing)


def category(feature, *codes, missing=False):
    return Condition(feature, COLUMNS[feature], missing=missing, codes=codes)


OLD = number(0, 10, 60.5)
FLAGS = Flags(
    (
        Flag((OLD, category(1, 0, 3)), 30.0, n=22, positives=22, hit_rate=0.51),
        Flag((OLD, category(1, 0, 3), number(3, high=0.25, missing=True)), -11.0, inside=0, n=418, positives=6),
        Flag((OLD, category(1, 0, 3), category(4, 0, 1, 3)), 4.0, inside=0, n=9, positives=2, hit_rate=0.0634),
        Flag((category(1, 0, 1, 2), number(3, low=-0.5)), 7.0, n=1200, positives=80, hit_rate=0.0004),
        Flag((number(0, np.inf, -np.inf, missing=True), category(2, 3, 26, missing=True)), 2.0),
    ),
    5,
)
CARD = Card(
    (
        Shape(0, np.array([2.0, 10.0, 12000.0]), np.array([8.0, 3.0, 0.0, -2.0]), missing=1.0),
        Shape(2, np.zeros(0), MAKE_POINTS, missing=0.0, is_categorical=True),
        Shape(4, np.zeros(0), np.array([-1.0, -1, -1, -1, 2]), missing=-4.0, is_categorical=True),
        Shape(3, np.array([0.5]), np.array([0.0, 5.0])),
    ),
    base=-20.0,
    scale=10.0,
)
RATES = HitRates(
    np.array([-30, -10, 25]), np.array([0.001, 0.05, 0.6]), np.array([1000, 100, 10]), 2.0, "out of bag", 0.3, np.nan
)
CUTOFF = Cutoff(50, 52, 12.0, 0.5, 0.3, 0.2, 0.4)


def page(flags, card, columns, *, rates=RATES, cutoff=CUTOFF, exact=False):
    """The page of a model with these rules and points."""
    model = SimpleNamespace(
        flags_=flags, card_=card, columns_=columns, rates_=rates, cutoff_=cutoff, n_cases_=10_000, n_positives_=120,
        classes_=["fair", "fraud"], positive_index_=1,
    )  # fmt: skip
    return flags_page(model, exact=exact)


def make_rows(n=600, seed=0):
    """Encoded rows with missing values and values on edges, and the same as a person sees them."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, len(column.categories or ()) or 1, n).astype(float) for column in COLUMNS]
    codes[0] = rng.choice([-1, 2, 2.5, 10, 10.5, 60.5, 61, 12000, 12001], n)
    codes[3] = rng.choice([-0.5, -0.4, 0.25, 0.3, 0.5, 0.6], n)
    X = np.column_stack(codes)
    X[rng.random(X.shape) < 0.15] = np.nan
    cases = []
    for row in X:
        case = {}
        for column, value in zip(COLUMNS, row, strict=True):
            if np.isnan(value):
                case[column.name] = None if column.categories is None or rng.random() < 0.5 else "never seen"
            else:
                case[column.name] = value if column.categories is None else column.labels(int(value))[-1]
        cases.append(case)
    return X, cases


@pytest.mark.parametrize("exact", [False, True])
def test_a_case_is_scored_by_hand_as_by_the_model(exact):
    X, cases = make_rows()
    score = CARD.decision_function(X) + FLAGS.decision_function(X)
    read = Page(page(FLAGS, CARD, COLUMNS, exact=exact), [column.name for column in COLUMNS])
    assert [read.score(case) for case in cases] == score.tolist()


PAGE = """\
A case starts at -20 and gets the points of every red flag that holds and of each of its values.
The sum is its score; in training about 7 points double the odds (hit = fraud: 120 of 10,000).

  score                                 -30     -10      25
  hit rate at this score, new cases   0.1 %   5.0 %  60.0 %
  cases with this score or more       100 %  10.0 %   1.0 %
Flagged: a score of 12 or more, 0.5 % of cases; expect 30.0 % hits among them, 1.2 % overall.

    points   red flag (all its conditions must hold)                         cases   hits   hit rate
 1     +30   10 < age <= 60.5; sector is retail or "fish, chips"                22     22     51.0 %
             Where 1 holds, also add the points of each of these that holds:
 2     -11     share <= 0.25 or missing                                        418      6
 3      +4     day is neither We nor Fr                                          9      2      6.3 %
 4      +7   sector is not "fish, chips"; share > -0.5                       1,200     80    < 0.1 %
 5      +2   age is missing;
             make is Alfa 3, Seat 8, Rare 1, Rare 2 or missing
cases, hits: past cases for which all its conditions hold, and hits among them. hit rate: estimate
for new cases; it differs from hits / cases, as the rules were chosen on those cases, and counts all
points that such cases have.

Points of values: each case gets one entry per column. An unknown category counts as missing;
missing values get 0 points unless listed, and meet a condition only if it says so. 'to 10' means
above the value before it, up to and including 10.
  age             <= 2   to 10   to 12,000   > 12,000
    missing: +1     +8      +3           0         -2
  make            Alfa 0, Alfa 1, Alfa 2, Alfa 3, Alfa 4, Alfa 5, Alfa 6, Alfa 7 or Alfa 8: +4
                  Seat 5, Seat 6, Seat 7, Seat 8, Rare 1 or Rare 2: -3   all others: 0
  day             Fr: +2   all others: -1   missing: -4
  share           <= 0.5   > 0.5
                       0      +5"""


def test_the_whole_page():
    text = page(FLAGS, CARD, COLUMNS)
    assert text == PAGE
    assert max(map(len, text.splitlines())) <= 100


def test_corrections_are_not_counted_as_red_flags():
    assert FLAGS.size_text == "3 red flags, 2 corrections"
    assert Flags((FLAGS[0],), 5).size_text == "1 red flag"
    lowering = Flags((Flag((OLD,), -3.0),), 5)
    assert lowering.size_text == "0 red flags, 1 correction"
    assert [flag.kind for flag in FLAGS] == ["red flag", "correction", "correction", "red flag", "red flag"]


def test_a_long_list_of_categories_says_what_it_leaves_out():
    town = Column("town", tuple(f"town {i}" for i in range(60)))
    points = np.repeat([3.0, 1.0, 0.0], [15, 20, 25])
    card = Card((Shape(0, np.zeros(0), points, is_categorical=True),))
    text = page(Flags((), 1), card, [town])
    assert "one of 15 (town 0, " in text
    assert re.sub(r"\s+", " ", text).count("town 11, ...): +3") == 1
    assert "all others: 0" in text
    assert text.endswith("Shortened: to_text(exact=True) has every column and category, with all digits.")
    exact = page(Flags((), 1), card, [town], exact=True)
    assert "Shortened" not in exact
    assert all(f'"town {i}": ' in exact or f"town {i}: " in exact for i in range(60))


def test_a_page_without_rates_of_new_cases_says_so():
    rates = HitRates([-30, 25], [0.001, 0.6], [1000, 10], 2.0, "training", np.nan, np.nan)
    text = re.sub(r"\s+", " ", page(FLAGS, CARD, COLUMNS, rates=rates, cutoff=Cutoff(50, 52, 12.0, 0.5)))
    assert "training rate at this score" in text
    assert "in training 50.0 % were hits, 1.2 % overall; expect fewer." in text
    assert "training rate: hits / cases" in text
    assert "estimate for new cases" not in text


def test_a_model_without_rules_and_points():
    text = page(Flags((), 2), Card((), -3.0), COLUMNS)
    assert text.startswith("A case starts at -3 and gets nothing else")


@pytest.mark.parametrize(
    ("usual", "top", "expected"),
    [
        (-43, 3, [-50, -40, -30, -20, -10, 0]),
        (-4.1, 1.2, [-5, -4, -3, -2, -1, 0, 1]),
        (-150, 2, [-150, -125, -100, -75, -50, -25, 0]),
        (-160, 30, [-200, -150, -100, -50, 0]),
        (7.0, 7.0, [7]),
    ],
)
def test_steps_between_scores_are_round(usual, top, expected):
    assert round_steps(usual, top)[0].tolist() == expected


def test_the_table_shows_only_scores_that_cases_have_with_true_counts():
    """Between -49 and 15 there is no case: the table once had 62 % of the cases, and 42 % hits, at -20 or more."""
    score = np.repeat([-49.0, 15.0, 36.0], [331, 3, 66])
    is_positive = np.arange(400) >= 340
    rates = rates_of_training(score, is_positive, np.ones(400))
    assert shown_scores(rates)[0].tolist() == [-49, 15, 36]
    lines = rate_lines(rates)
    assert lines[0].split() == ["score", "-49", "15", "36"]
    assert lines[2].split("more")[1].split() == ["100", "%", "17.2", "%", "16.5", "%"]


def test_counts_of_the_table_are_those_of_the_final_model():
    """Held-out cases are put on the scale of the final model between its scores; the table counts its own cases."""
    final = np.repeat([-49.0, 15.0, 36.0], [331, 3, 66])
    fold = np.repeat([-40.0, 3.0, 10.0, 20.0], [300, 20, 20, 60])
    is_positive = np.arange(400) >= 340
    unseen = Unseen([HeldOut(fold, is_positive, np.ones(400), fold, np.ones(400))], "2 folds")
    rates = unseen.hit_rates(final, np.ones(400))
    assert set(shown_scores(rates)[0].tolist()) <= set(final.tolist())
    for score, share in zip(rates.score, rates.share, strict=True):
        assert share == np.mean(final >= score)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_share_in_the_table_of_a_fitted_model_is_a_count():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (600, 3)).astype(float)
    y = rng.random(600) < 0.02 + 0.6 * (X[:, 0] == 2) * (X[:, 1] > 0)
    model = RedFlags(teacher=None, cv=3).fit(X, y)
    score = model.decision_function(X)
    shown, found = shown_scores(model.rates_)
    assert set(found.tolist()) <= set(score.tolist())
    assert (found - shown <= 5).all()
    at = np.searchsorted(model.rates_.score, found)
    assert model.rates_.share[at].tolist() == [np.mean(score >= s) for s in shown]


def test_scores_in_the_table_are_round_where_cases_are_near():
    score = np.linspace(-101.3, 20.7, 2000)
    rates = rates_of_training(score, np.arange(2000) > 1800, np.ones(2000))
    assert shown_scores(rates)[0].tolist() == [-50, -40, -30, -20, -10, 0, 10, 20]


def test_rates_are_rounded_in_one_way():
    assert [rate_text(x) for x in (0.48, 0.319, 0.0634, 1.0, 0.0, 1e-9)] == [
        "48.0 %", "31.9 %", "6.3 %", "> 99 %", "0.0 %", "< 0.1 %",
    ]  # fmt: skip
    assert share_of_cases_text(1.0) == rate_text(1.0, is_for_new_cases=False) == "100 %"


@pytest.mark.parametrize(
    "model",
    [RedFlags(teacher=None, cv=0), RedFlags(teacher=None, cv=0, max_rules=0), Scorecard(cv=0), RankingTree(cv=0)],
)
def test_limits_of_dates_with_times_select_the_same_cases_by_hand(model):
    """Nearly all cases are of one day, so limits are times of that day; pages once showed the day alone."""
    rng = np.random.default_rng(0)
    minutes = rng.integers(0, 2 * 24 * 60, 3000)
    at = np.datetime64("2012-01-13T00:00") + minutes.astype("timedelta64[m]")
    y = rng.random(3000) < np.where(minutes > 19 * 60 + 12, 0.3, 0.02)
    model.fit(pd.DataFrame({"at": at.astype("datetime64[ms]"), "noise": rng.normal(size=3000)}), y)
    text = model.to_text()
    limits = sorted(set(re.findall(r"2012-01-1\d(?: \d\d:\d\d(?::\d\d(?:\.\d+)?)?)?", text)))
    assert limits
    assert all(":" in limit for limit in limits)  # a day alone could mean its beginning or its end
    if hasattr(model, "tree_"):
        days = model.tree_.threshold[(model.tree_.feature == 0) & (model.tree_.left >= 0)]
    else:
        shapes = [shape.edges for shape in model.card_.shapes if shape.feature == 0]
        conditions = [c for flag in getattr(model, "flags_", ()) for c in flag.conditions if c.feature == 0]
        bounds = [bound for each in conditions for bound in (each.low, each.high)]
        days = np.concatenate([*shapes, bounds])
    days = np.unique(days[np.isfinite(days)])
    by_hand = {tuple(at <= np.datetime64(limit.replace(" ", "T"))) for limit in limits}
    values = model._encode(pd.DataFrame({"at": at.astype("datetime64[ms]"), "noise": np.zeros(3000)}))[:, 0]
    assert by_hand <= {tuple(values <= day) for day in days}
    assert "Shortened" not in text or "number" not in text.split("Shortened")[1]
