import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate

from toprank import RankingTree
from toprank.datasets import make_audit
from toprank.experiment.prequential import PrequentialSplit
from toprank.metrics import average_precision_scorer

DAYS = np.datetime64("2024-01-01") + np.arange(10)


def naive_folds(time, train, gap, test, *, step=None, delay=0, y=None, groups=None):
    """Folds for whole numbers, row by row; the earliest first."""
    rows, folds = range(len(time)), []
    start = max(time) + 1 - test
    while start - gap - (1 if train == "all" else train) >= min(time):
        known = [row for row in rows if time[row] < start and time[row] + delay <= start]
        caught = set() if groups is None else {groups[row] for row in known if y[row]}
        oldest = min(time) if train == "all" else start - gap - train
        fold = (
            [row for row in known if oldest <= time[row] < start - gap],
            [row for row in rows if start <= time[row] < start + test and not (groups and groups[row] in caught)],
        )
        if fold[0] and fold[1]:
            folds.append(fold)
        start -= step or test
    return folds[::-1]


def as_lists(folds):
    return [(train.tolist(), test.tolist()) for train, test in folds]


@st.composite
def dated_rows(draw, times=None):
    """Unordered times with ties, labels of both classes, entities."""
    time = draw(st.lists(st.integers(-5, 25) if times is None else times, min_size=12, max_size=40))
    n = len(time)
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n).filter(lambda labels: 0 < sum(labels) < n))
    return time, y, draw(st.lists(st.integers(0, 8), min_size=n, max_size=n))


windows = st.fixed_dictionaries(
    {
        "train": st.one_of(st.integers(1, 8), st.just("all")),
        "gap": st.integers(0, 4),
        "test": st.integers(1, 5),
    }
)


def split_or_none(splitter, *arguments):
    """Folds, or None where the windows do not fit into the times."""
    try:
        return list(splitter.split(*arguments))
    except ValueError as error:
        if re.search("need more time than|needs a fold with|have no finer parts", str(error)):
            return None
        raise


# --- laws ---------------------------------------------------------------------------------------------------


@given(dated_rows(), windows, st.sampled_from([None, 1, 2, 7]), st.integers(0, 6), st.booleans())
def test_folds_are_those_of_the_naive_splitter(rows, window, step, delay, drop_caught):
    time, y, groups = rows
    splitter = PrequentialSplit(**window, step=step, times=time, label_delay=delay, drop_caught=drop_caught)
    expected = naive_folds(time, **window, step=step, delay=delay, y=y, groups=groups if drop_caught else None)
    folds = split_or_none(splitter, None, y, groups)
    assert (as_lists(folds) if folds else []) == expected
    if folds:
        assert splitter.get_n_splits(None, y, groups) == len(folds) == len(splitter.windows(None, y, groups))


@given(
    dated_rows(st.floats(-3, 9, allow_subnormal=False)),
    st.floats(0.1, 4),
    st.floats(0, 2),
    st.floats(0.1, 3),
    st.floats(0, 2),
    st.floats(0.05, 3),
)
def test_nothing_is_known_too_early(rows, train, gap, test, delay, step):
    time = np.array(rows[0])
    splitter = PrequentialSplit(train, gap, test, step=step, times=time, label_delay=delay)
    folds = split_or_none(splitter)
    for (train_rows, test_rows), window in zip(folds or [], splitter.windows() if folds else [], strict=True):
        t = window.test_start
        assert time[train_rows].max() <= t - gap + 1e-12
        assert time[train_rows].min() >= t - gap - train - 1e-12
        assert (time[train_rows] + delay <= t + 1e-12).all()
        assert time[test_rows].min() >= t
        assert time[train_rows].max() < time[test_rows].min()
        assert time[test_rows].max() <= t + test + 1e-12
        assert (np.diff(train_rows) > 0).all()
        assert (np.diff(test_rows) > 0).all()
        assert (window.n_train, window.n_test) == (len(train_rows), len(test_rows))


@given(dated_rows(st.floats(-3, 9, allow_subnormal=False)), st.floats(0.05, 3), st.floats(1, 3))
def test_test_windows_are_disjoint_where_the_step_is_not_shorter(rows, test, factor):
    for step in (None, test * factor):
        folds = split_or_none(PrequentialSplit("all", 0, test, step=step, times=rows[0]))
        if folds:
            tested = np.concatenate([test_rows for _, test_rows in folds])
            assert len(np.unique(tested)) == len(tested)
            assert np.argmax(rows[0]) in folds[-1][1]


@given(dated_rows(), windows)
def test_rows_of_equal_time_stay_together(rows, window):
    time = np.array(rows[0])
    for train, test in split_or_none(PrequentialSplit(**window, times=time)) or []:
        for part in (train, test):
            assert np.isin(time, time[part]).sum() == len(part)


@given(dated_rows(), windows, st.integers(0, 3))
def test_caught_entities_are_absent(rows, window, delay):
    time, y, groups = map(np.array, rows)
    splitter = PrequentialSplit(**window, times=time, label_delay=delay, drop_caught=True)
    folds = split_or_none(splitter, None, y, groups) or []
    for (_, test), found in zip(folds, splitter.windows(None, y, groups) if folds else [], strict=True):
        t = found.test_start
        caught = groups[(y == 1) & (time + delay <= t) & (time < t)]
        assert not np.isin(groups[test], caught).any()
        in_window = (time >= t) & (time < found.test_end)
        assert len(test) == (in_window & ~np.isin(groups, caught)).sum()


@given(dated_rows(), windows, st.data())
def test_permuting_the_rows_permutes_the_folds(rows, window, data):
    time, y, groups = map(np.array, rows)
    order = np.array(data.draw(st.permutations(range(len(time)))))
    options = window | {"label_delay": 1, "drop_caught": True}
    folds = split_or_none(PrequentialSplit(**options, times=time), None, y, groups)
    moved = split_or_none(PrequentialSplit(**options, times=time[order]), None, y[order], groups[order])
    assert (folds is None) == (moved is None)
    for fold, other in zip(folds or [], moved or [], strict=True):
        for part, other_part in zip(fold, other, strict=True):
            assert part.tolist() == sorted(order[other_part])


@given(dated_rows(), windows, st.integers(1, 3))
def test_n_splits_are_the_last_folds(rows, window, n_splits):
    every = split_or_none(PrequentialSplit(**window, times=rows[0]))
    last = split_or_none(PrequentialSplit(**window, times=rows[0], n_splits=n_splits))
    assert as_lists(last or []) == as_lists(every or [])[-n_splits:]


# --- gap, delay, alignment -----------------------------------------------------------------------------------


def test_the_last_window_ends_with_the_data_and_windows_say_when():
    splitter = PrequentialSplit("4d", "1d", "2d", times=DAYS)
    assert as_lists(splitter.split()) == [
        ([1, 2, 3, 4], [6, 7]),
        ([3, 4, 5, 6], [8, 9]),
    ]
    last = splitter.windows()[-1]
    assert [str(moment) for moment in last[:4]] == ["2024-01-04", "2024-01-08", "2024-01-09", "2024-01-11"]
    assert last[4:] == (4, 2)
    grown = PrequentialSplit("all", "0d", "2d", times=DAYS, n_splits=1).windows()
    assert str(grown[0].train_start) == "2024-01-01"


def test_a_gap_moves_the_training_window_and_a_delay_shortens_it():
    assert as_lists(PrequentialSplit("3d", "2d", "1d", times=DAYS, n_splits=1).split()) == [([4, 5, 6], [9])]
    delayed = PrequentialSplit("5d", 0, "1d", times=DAYS, n_splits=1, label_delay="3d")
    assert as_lists(delayed.split()) == [([4, 5, 6], [9])]
    both = PrequentialSplit("3d", "2d", "1d", times=DAYS, n_splits=1, label_delay="4d")
    assert as_lists(both.split()) == [([4, 5], [9])]


def test_a_whole_training_window_fits_exactly():
    """Ten days of midnights are ten days long, whatever unit they are kept in."""
    for unit in ("D", "s", "ns"):
        assert PrequentialSplit("8d", 0, "2d", times=DAYS.astype(f"datetime64[{unit}]")).get_n_splits() == 1
        with pytest.raises(ValueError, match=r"need more time than the 10 days of the data"):
            PrequentialSplit("9d", 0, "2d", times=DAYS.astype(f"datetime64[{unit}]")).get_n_splits()


def test_times_within_a_day_count_from_the_last_one():
    times = np.array(["2024-01-01T08:30", "2024-01-02T08:29", "2024-01-02T08:31", "2024-01-03T08:30"], "datetime64[s]")
    assert as_lists(PrequentialSplit("1d", 0, "1d", times=times).split()) == [([1], [2, 3])]


def test_numbers_with_fractions():
    times = [0.0, 0.5, 1.0, 1.5, 2.0]
    assert as_lists(PrequentialSplit(1.0, 0, 0.5, times=times).split()) == [([1, 2], [3]), ([2, 3], [4])]
    assert as_lists(PrequentialSplit(1, 0, 1, times=[2020.0, 2021.0, 2022.0]).split()) == [([0], [1]), ([1], [2])]
    assert PrequentialSplit(1.5, 0, 1, times=[0, 1, 2]).windows()[0].train_start == 0.5


def test_weeks_without_a_row_are_passed_over():
    times = [0, 1, 2, 10, 11, 20]
    assert as_lists(PrequentialSplit("all", 0, 2, times=times).split()) == [
        ([0], [1, 2]),
        ([0, 1, 2], [3]),
        ([0, 1, 2, 3], [4]),
        ([0, 1, 2, 3, 4], [5]),
    ]


def test_an_own_positive_does_not_catch_an_entity_in_its_own_window():
    y, groups = [1, 0, 0, 1, 0], ["a", "b", "a", "b", "c"]
    splitter = PrequentialSplit(1, 0, 2, times=[0, 1, 2, 2, 2], drop_caught=True, label_delay=0)
    assert as_lists(splitter.split(None, y, groups)) == [([0], [1, 3, 4])]
    late = PrequentialSplit("all", 0, 2, times=[0, 1, 2, 2, 2], drop_caught=True, n_splits=1, label_delay=1)
    assert as_lists(late.split(None, y, groups)) == [([0], [1, 3, 4])]


def test_a_positive_of_the_gap_catches_when_its_label_is_known():
    time, y, groups = [0, 1, 2, 3, 4], [0, 0, 0, 1, 0], ["b", "b", "b", "a", "a"]
    known = PrequentialSplit("all", 2, 1, times=time, drop_caught=True, n_splits=1)
    assert as_lists(known.split(None, y, groups)) == [([0], [3])]  # the fold before; the last has nothing to test on
    unknown = PrequentialSplit("all", 2, 1, times=time, drop_caught=True, n_splits=1, label_delay=2)
    assert as_lists(unknown.split(None, y, groups)) == [([0, 1], [4])]


def test_folds_with_one_class_are_left_out_with_a_warning():
    time, y = [0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 0, 0, 0, 1, 1, 0]
    splitter = PrequentialSplit(1, 0, 1, times=time, skip_one_class=True)
    with pytest.warns(UserWarning, match=r"PrequentialSplit left out 2 of 3 folds, which have only one class"):
        assert as_lists(splitter.split(None, y)) == [([4, 5], [6, 7])]
    assert splitter.get_n_splits(None, y) == 1
    with pytest.raises(ValueError, match=r"needs a fold with both classes in train and test, but found none"):
        splitter.split(None, [0] * 8)
    assert PrequentialSplit(1, 0, 1, times=time).get_n_splits(None, [0] * 8) == 3


def test_one_class_is_judged_after_the_caught_are_gone():
    time, y, groups = [0, 0, 1, 1], [1, 0, 1, 0], ["a", "b", "a", "c"]
    splitter = PrequentialSplit(1, 0, 1, times=time, drop_caught=True, skip_one_class=True)
    with pytest.raises(ValueError, match=r"both classes in train and test"):
        splitter.get_n_splits(None, y, groups)


def test_the_positive_label_can_be_named():
    time, groups = [0, 0, 1, 1], ["a", "b", "a", "b"]
    names = ["fraud", "ok", "ok", "ok"]
    kept = PrequentialSplit(1, 0, 1, times=time, drop_caught=True, pos_label="fraud").split(None, names, groups)
    assert as_lists(kept) == [([0, 1], [3])]
    kept = PrequentialSplit(1, 0, 1, times=time, drop_caught=True, pos_label=1).split(None, [0] * 4, groups)
    assert as_lists(kept) == [([0, 1], [2, 3])]


# --- with scikit-learn ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def audit():
    data = make_audit(3_000, years=range(2019, 2025), positive_rate=0.08, random_state=0)
    return data.X.assign(year=data.year), data.y


def test_cross_validate_and_searches_take_it(audit):
    X, y = audit
    cv = PrequentialSplit(train=2, gap=0, test=1, times="year", label_delay=1)
    result = cross_validate(
        RankingTree(max_depth=3, cv=0), X, y, cv=cv, scoring=average_precision_scorer, error_score="raise"
    )
    assert len(result["test_score"]) == 4 == cv.get_n_splits(X)
    assert result["test_score"].mean() > 0.12
    search = GridSearchCV(RankingTree(cv=0), {"max_depth": [1, 2]}, cv=cv, error_score="raise").fit(X, y)
    assert search.n_splits_ == 4
    # Inside an outer fold the years go with their rows.
    nested = cross_validate(search, X, y, cv=PrequentialSplit(4, 0, 1, times="year"), error_score="raise")
    assert len(nested["test_score"]) == 2


def test_groups_reach_it_with_and_without_routing(audit):
    X, y = audit
    groups = np.random.default_rng(0).integers(0, 800, len(y))
    cv = PrequentialSplit("all", 0, 1, times="year", drop_caught=True, n_splits=2)
    model = LogisticRegression(max_iter=1000)
    numbers = X[["year", "turnover"]].fillna(0) / 1e6
    expected = [len(test) for _, test in cv.split(X, y, groups)]
    assert sum(expected) < 2 * 500
    seen = []
    cross_validate(
        model,
        numbers.assign(year=X["year"]),
        y,
        groups=groups,
        cv=cv,
        scoring=lambda *part: seen.append(len(part[2])) or 0.0,
    )
    assert seen == expected
    with sklearn.config_context(enable_metadata_routing=True):
        seen.clear()
        cross_validate(
            model,
            numbers.assign(year=X["year"]),
            y,
            params={"groups": groups},
            cv=cv,
            scoring=lambda *part: seen.append(len(part[2])) or 0.0,
        )
    assert seen == expected


def test_it_prints_and_pickles():
    splitter = PrequentialSplit("26w", "1d", "1w", times="date", n_splits=3, label_delay="2w", drop_caught=True)
    text = "PrequentialSplit('26w', '1d', '1w', times='date', n_splits=3, label_delay='2w', drop_caught=True)"
    assert repr(splitter) == text == repr(pickle.loads(pickle.dumps(splitter)))
    assert repr(PrequentialSplit(1, 0, 1, times=[1, 2])) == "PrequentialSplit(1, 0, 1, times=[...])"


# --- bad input -----------------------------------------------------------------------------------------------


def test_windows_that_do_not_suit_the_times_are_a_sentence():
    numbers = [1, 2, 3, 4]
    with pytest.raises(
        TypeError, match=r"'train' parameter of PrequentialSplit must be a number, as the times are num"
    ):
        PrequentialSplit("1d", 0, 1, times=numbers).split()
    with pytest.raises(
        TypeError, match=r"'test' parameter .* must be a duration such as '180d', as the times are dates"
    ):
        PrequentialSplit("1d", 0, 1, times=DAYS).split()
    with pytest.raises(ValueError, match=r"train 5, gap 0 and test 1, need more time than the 4 of the data\. Hint"):
        PrequentialSplit(5, 0, 1, times=numbers).split()
    with pytest.raises(ValueError, match=r"train 'all', gap 3 and test 1, need more time than the 4 of the data"):
        PrequentialSplit("all", 3, 1, times=numbers).split()
    with pytest.raises(
        ValueError, match=r"'test' parameter .* must be at least 1 day, as the times have no finer parts"
    ):
        PrequentialSplit("1d", 0, "12h", times=DAYS).split()
    with pytest.raises(ValueError, match=r"'step' parameter .* must be at least 1, as"):
        PrequentialSplit(1, 0, 1, step=0.5, times=numbers).split()
    with pytest.raises(ValueError, match=r"would give 31,536,000 folds, one every 1\. Hint: check that the windows"):
        PrequentialSplit(1, 0, 1, times=[0, 86_400 * 365]).split()
    with pytest.raises(ValueError, match=r"rows to train and to test on, but found none\. Hint: .*shorter label_delay"):
        PrequentialSplit(1, 0, 1, times=numbers, label_delay=2).split()


def test_missing_columns_labels_and_groups_are_a_sentence():
    X = pd.DataFrame({"date": DAYS})
    with pytest.raises(ValueError, match=r"reads the column 'dates' of X, which is not among .* did you mean 'date'\?"):
        PrequentialSplit("1d", 0, "1d", times="dates").split(X)
    caught = PrequentialSplit("1d", 0, "1d", times="date", drop_caught=True)
    with pytest.raises(ValueError, match=r"with drop_caught=True needs y, but y is None\. Hint"):
        caught.split(X)
    with pytest.raises(ValueError, match=r"with drop_caught=True needs groups, but groups is None\. Hint"):
        caught.split(X, [0, 1] * 5)
    with pytest.raises(ValueError, match=r"'groups' of PrequentialSplit\.split must have a value for every row"):
        caught.split(X, [0, 1] * 5, [None, *"abcdefghi"])
    with pytest.raises(ValueError, match=r"PrequentialSplit\.split needs both classes in y"):
        caught.split(X, [0] * 10, range(10))
    with pytest.raises(ValueError, match=r"PrequentialSplit\.split needs one label per row"):
        caught.split(X, [0, 1], range(10))
    with pytest.raises(ValueError, match=r"with skip_one_class=True needs y, but y is None"):
        PrequentialSplit("1d", 0, "1d", times="date", skip_one_class=True).get_n_splits(X)
    with pytest.raises(ValueError, match=r"'n_splits' parameter of PrequentialSplit must be an int"):
        PrequentialSplit(1, 0, 1, n_splits=0)


@pytest.mark.slow
def test_the_page_runs():
    page = Path(__file__).resolve().parents[2] / "docs" / "prequential.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/prequential.md", "exec"), names)
    assert len(blocks) >= 4
