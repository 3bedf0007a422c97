"""Groups: rows of one person or company are never on both sides of a fold, so that hit rates are for new ones."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold

from toprank import SGBAP, CostOptimalCurve, GammaKNN, MetaAP, MetaAPForest, RedFlags, ScorecardTree
from toprank.data.binned_cases import BinnedCases
from toprank.data.shared_table import SharedTable
from toprank.errors import InputError
from toprank.rankers.ensemble.forest import draw_bootstrap
from toprank.rankers.unseen import held_out_folds
from toprank.rankers.validation import check_groups, check_split_groups
from toprank.tree.columns import Column


def visits(n_persons=300, n_visits=4, seed=0):
    """Persons whose outcome comes back, with columns that tell persons apart and say nothing of new ones."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_persons), n_visits)
    own = rng.normal(size=(n_persons, 4)).round(3)
    is_bad = rng.random(n_persons) < 0.1
    X = pd.DataFrame(own[person], columns=list("abcd")).assign(amount=rng.normal(size=len(person)).round(2))
    return X, (rng.random(len(person)) < np.where(is_bad, 0.9, 0.01)[person]).astype(int), person


def cases_of(X, y, groups, weight=None):
    data = BinnedCases(X.to_numpy(float), y == 1, weight, [Column(name) for name in X.columns])
    data.groups = groups
    return data


def test_folds_keep_groups_together_and_both_classes_in_proportion():
    X, y, person = visits()
    folds = held_out_folds(cases_of(X, y, person), 5, None)
    assert sorted(np.concatenate([fold.held_out for fold in folds])) == list(range(len(y)))
    for fold in folds:
        assert not np.intersect1d(person[fold.inside], person[fold.held_out]).size
        assert y[fold.held_out].mean() == pytest.approx(y.mean(), abs=0.03)
        assert len(fold.held_out) == pytest.approx(len(y) / 5, rel=0.1)


def test_the_fold_of_a_group_does_not_depend_on_the_order_of_the_rows():
    X, y, person = visits()
    order = np.random.default_rng(1).permutation(len(y))
    one = held_out_folds(cases_of(X, y, person), 5, None)
    other = held_out_folds(cases_of(X.iloc[order], y[order], person[order]), 5, None)
    for a, b in zip(one, other, strict=True):
        assert sorted(a.held_out) == sorted(order[b.held_out])


def test_every_group_may_have_a_positive():
    X, _, person = visits(20)
    y = np.tile([1, 0, 0, 0], 20)
    folds = held_out_folds(cases_of(X, y, person), 5, None)
    assert len(folds) == 5
    assert all(y[fold.held_out].sum() == 4 for fold in folds)


def test_few_groups_may_be_without_a_positive():
    X, _, person = visits(20)
    y = np.tile([1, 0, 0, 0], 20)
    y[person == 7] = 0
    assert len(held_out_folds(cases_of(X, y, person), 5, None)) == 5


def test_rows_without_a_group_do_not_depend_on_their_order():
    X, y, person = visits()
    known = np.where(person < 200, person, np.nan)
    order = np.random.default_rng(1).permutation(len(y))
    one, other = (
        MetaAP(random_state=0).fit(X.iloc[rows], y[rows], groups=known[rows]).rates_
        for rows in (np.arange(len(y)), order)
    )
    assert one.average_precision == other.average_precision


def test_without_two_groups_with_positives_there_are_no_folds():
    X, _, person = visits(20)
    assert held_out_folds(cases_of(X, (person == 3).astype(int), person), 5, None) == []


def test_a_splitter_gets_the_groups():
    X, y, person = visits()
    for fold in held_out_folds(cases_of(X, y, person), GroupKFold(3), None):
        assert not np.intersect1d(person[fold.inside], person[fold.held_out]).size


def test_a_bootstrap_sample_draws_whole_groups():
    X, y, person = visits()
    data = cases_of(X, y, person)
    times = draw_bootstrap(data, None, np.random.default_rng(0))
    assert all(len(np.unique(times[person == each])) == 1 for each in range(300))
    assert 0.3 < (times == 0).mean() < 0.45
    half = draw_bootstrap(data, 0.5, np.random.default_rng(0))
    assert half.sum() == pytest.approx(len(y) / 2, rel=0.01)


@pytest.mark.parametrize(
    "model",
    [
        MetaAP(random_state=0),
        MetaAPForest(n_estimators=15, random_state=0),
        RedFlags(teacher=None, max_rules=4, cv=3, random_state=0),
        ScorecardTree(cv=3, random_state=0),
        SGBAP(n_estimators=30, blend=0.8, cv=3, random_state=0),
        GammaKNN(),
        CostOptimalCurve(depths=[4], alphas=[0.01], cost_factor=16.0, cv=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_with_groups_nothing_is_promised_that_new_persons_do_not_give(model):
    X, y, person = visits()
    alone = model.fit(X, y).rates_
    together = model.fit(X, y, groups=person).rates_
    assert alone.is_for_new_cases
    assert together.is_for_new_cases
    assert alone.average_precision > 2.5 * y.mean()  # it knows the persons again
    assert together.average_precision < 2 * y.mean()
    assert model.cutoff_.hit_rate < 0.25


def test_groups_change_rates_but_not_the_trees_of_a_fit_without_folds():
    X, y, person = visits()
    given = {"ccp_alpha": 0.0, "cv": 0}
    one, other = MetaAP(**given).fit(X, y), MetaAP(**given).fit(X, y, groups=person)
    assert np.array_equal(one.decision_function(X), other.decision_function(X))


def test_a_shared_table_is_prepared_again_for_other_groups():
    X, y, person = visits()
    table = SharedTable(X)
    MetaAP(random_state=0).fit(table, y)
    found = MetaAP(random_state=0).fit(table, y, groups=person).rates_.average_precision
    assert found == MetaAP(random_state=0).fit(X, y, groups=person).rates_.average_precision


@pytest.mark.parametrize(
    "groups",
    [["b", "a", "b", None], np.array([2.0, 1.0, 2.0, np.nan]), pd.Series(["b", "a", "b", pd.NA], dtype="string")],
)
def test_groups_are_numbered_by_value_and_rows_without_one_stand_alone(groups):
    assert check_groups(groups, 4, "fit").tolist() == [1, 0, 1, -1]
    assert check_split_groups(groups, 4, "fit").tolist() == [1, 0, 1, 2]


def test_numbers_that_are_equal_are_one_group():
    assert check_groups(np.array([2, 1, 1.0, None, True], dtype=object), 5, "fit").tolist() == [1, 0, 0, -1, 0]


def test_groups_are_one_column():
    table = pd.DataFrame({"person": [2, 1], "firm": [3, 3]})
    assert check_groups(table[["person"]], 2, "fit").tolist() == [1, 0]
    with pytest.raises(InputError, match=r"'groups' of fit must have one dimension\. Got an array of shape \(2, 2\)"):
        check_groups(table, 2, "fit")


def test_groups_of_another_length_are_refused():
    X, y, person = visits(20)
    with pytest.raises(ValueError, match=r"MetaAP\.fit needs one group per row.*79 values and X 80 rows"):
        MetaAP().fit(X, y, groups=person[1:])
