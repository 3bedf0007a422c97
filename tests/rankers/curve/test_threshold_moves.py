"""Trees between those of two costs: where they stand, what they promise, and what stays as it was without them."""

import math
from copy import copy
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

from ranker_cases import make_cases
from toprank import CostOptimalCurve, TAOTree, load
from toprank._core.threads import Threads
from toprank.metrics import OperatingPoints
from toprank.rankers.curve.path import CurvePoint, ThresholdMove, votes_of
from toprank.rankers.curve.threshold_moves import SLACK, DensePath, Place, ThresholdMoves
from toprank.tree.structure import Tree
from toprank.tree.tao.moves import with_threshold
from toprank.words.wording import range_text

SMALL = CostOptimalCurve(TAOTree(max_depth=2), cv=3, cost_factor=3.0, depths=None, alphas=None)


@pytest.fixture(scope="module", params=["numbers and categories", "weights", "single columns"])
def case(request):
    X, y = make_cases(250)
    weight = np.random.default_rng(0).integers(1, 4, len(y)) / 4 if request.param == "weights" else None
    base = TAOTree(max_depth=2, split="axis" if request.param == "single columns" else "oblique", cv=0)
    model = clone(SMALL).set_params(base=base).fit(X, y, weight)
    return model, X, y, np.ones(len(y)) if weight is None else weight


def path_on(X, y, **settings):
    """The trees of a path, and what finds others between them."""
    seen = []

    class Watched(CostOptimalCurve):
        def _fitter(self, data, threads):
            seen.append(data)
            return super()._fitter(data, threads)

    parameters = SMALL.get_params(deep=False) | {"base": TAOTree(**settings), "max_point_gap": None, "cv": 0}
    model = Watched(**parameters).fit(X, y)
    return ThresholdMoves.from_trees([point.tree for point in model.path_], seen[0], Threads())


@pytest.fixture(scope="module")
def between():
    return path_on(*make_cases(400), max_depth=2)


def test_trees_between_two_costs_make_the_mistakes_they_are_said_to_make(case):
    model, X, y, weight = case
    assert 0 < sum(point.is_between for point in model.path_) < len(model.path_)
    for point in model.path_:
        called = point.tree.predict(X)
        assert weight[(called == 1) & (y == 0)].sum() == point.false_positives == point.tree.n_fp_
        assert weight[(called == 0) & (y == 1)].sum() == point.false_negatives == point.tree.n_fn_
        assert point.tree.fp_cost_ == point.cost_ratio


def test_they_stand_between_their_neighbours(case):
    model, *_ = case
    assert (np.diff([point.cost_ratio for point in model.path_]) > 0).all()
    ends = [i for i, point in enumerate(model.path_) if not point.is_between]
    for low, high in pairwise(ends):
        many, few = model.path_[low], model.path_[high]
        for point in model.path_[low + 1 : high]:
            assert point.false_positives < many.false_positives
            assert point.false_negatives < few.false_negatives


@pytest.mark.parametrize("max_point_gap", [0.3, 0.05, 0.02, 1e-3, 1e-300])
def test_a_tree_misses_the_fewest_positives_at_so_many_false_positives(between, max_point_gap):
    """Of all moves of one threshold of either neighbour, for every part of every gap."""
    n_found, (positives, negatives) = 0, between._classes
    for after, (many, few) in enumerate(pairwise(moves.now for moves in between.moves)):
        known = {
            move.mistakes
            for moves in between.moves[after : after + 2]
            for move in map(moves.__getitem__, range(len(moves)))
        }
        known = {each for each in known if each[0] < many[0] and each[1] < few[1]}
        width = many.false_positives - few.false_positives
        gap = max(Fraction(width, negatives), Fraction(few.false_negatives - many.false_negatives, positives))
        n_parts = min(math.ceil(gap / Fraction(max_point_gap) - Fraction(SLACK)), 2**40)
        # More ends than false positives: all numbers of them are ends.
        ends = range(1, n_parts) if n_parts <= width else (Fraction(i * n_parts, width) for i in range(1, width))
        limits = [few.false_positives + Fraction(width, n_parts) * end for end in ends] if n_parts > 1 else []
        limits += [few.false_positives] * (n_parts > width)
        wanted = {min((each for each in known if each[0] <= limit), key=lambda each: each[::-1], default=None)
                  for limit in limits} - {None}  # fmt: skip
        found = between.fill(after, max_point_gap)
        assert [each.move.mistakes for each in found] == sorted(wanted, reverse=True)
        n_found += len(found)
    assert (n_found > 10) == (max_point_gap < 0.3)


def test_out_of_fold_the_tree_that_would_be_kept_is_asked():
    """On rows not seen: branches that no training row takes are gone from a tree, as from the one that is kept."""
    X, y = make_cases(120)
    paths, differs = path_on(X, y, max_depth=4, alpha=0.0, split="axis"), False
    rows, _ = make_cases(3000, seed=5)
    matrix = paths.models[0]._encode(rows)
    for after in range(len(paths.models) - 1):
        for found in paths.fill(after, 0.005):
            place = paths.place(after, found)
            assert paths.find(place) == found
            model = paths.fitted(found, 1.0)
            votes = paths.votes(place, matrix)
            assert np.array_equal(votes, model.predict(rows) == model.classes_[1])
            whole = with_threshold(paths.trees[found.at], found.move.node, found.move.threshold)
            differs |= not np.array_equal(votes, whole.labels_of(matrix) == 1)
    assert differs  # else pruning decides nothing here


def test_where_no_tree_makes_so_few_false_positives_the_next_one_speaks(between):
    matrix = between.data.X
    place = Place(0, -1.0)
    assert between.find(place) is None
    assert np.array_equal(between.votes(place, matrix), votes_of(between.models[1], matrix, Threads()))


def test_the_ranking_does_not_depend_on_them(case):
    model, X, y, weight = case
    plain = clone(model).set_params(max_point_gap=None).fit(X, y, weight)
    assert not any(point.is_between for point in plain.path_)
    assert plain.trees_ == model.trees_
    assert np.array_equal(plain.decision_function(X), model.decision_function(X))
    at_costs = np.array([not point.is_between for point in model.path_])
    for name in ("points_", "held_out_points_"):
        mine, theirs = getattr(model, name), getattr(plain, name)
        assert np.array_equal(mine.false_positives[at_costs], theirs.false_positives)
        assert np.array_equal(mine.false_negatives[at_costs], theirs.false_negatives)
    assert model.points_.hull_area >= plain.points_.hull_area
    assert model.path_[model.base_point_].cost_ratio == plain.path_[plain.base_point_].cost_ratio


def test_threads_and_files_change_nothing(case, tmp_path):
    model, X, y, weight = case
    again = clone(model).set_params(n_jobs=2).fit(X, y, weight)
    model.save(tmp_path / "curve.toprank")
    for other in (again, load(tmp_path / "curve.toprank")):
        assert [point.tree.tree_ for point in other.path_] == [point.tree.tree_ for point in model.path_]
        assert [point.moved for point in other.path_] == [point.moved for point in model.path_]
        assert other.frame().equals(model.frame())


def test_a_choice_says_that_a_threshold_was_moved(case):
    model, X, *_ = case
    judged = model.held_out_points_.false_positive_rate
    at = next(i for i, point in enumerate(model.path_) if point.is_between and 0 < judged[i] < 1)
    selection = model.select(max_fpr=float(judged[at]))
    assert selection.point.is_between
    moved, node = selection.point.moved, selection.tree.tree_
    told = str(moved)
    assert told.startswith(f"the tree of point {moved.point} with a threshold moved from ")
    assert told in str(selection)
    chosen = model.with_choice(selection)
    assert told in chosen.to_text()
    assert moved.before in model.path_[moved.point].tree.tree_.threshold
    assert moved.after in node.threshold
    assert not model.path_[moved.point].is_between
    assert chosen.predict(X).tolist() == selection.tree.predict(X).tolist()


def test_a_moved_threshold_reads_as_in_the_rules():
    """The move said -0.07492, the rule below it <= -0.07493: thresholds are rounded down."""
    after = -0.0749256781234567
    told = str(ThresholdMove(3, 0.5, after))
    assert told == "the tree of point 3 with a threshold moved from 0.5 to -0.07493"
    assert range_text("x", -np.inf, after, False) == "x <= -0.07493"
    assert str(ThresholdMove(3, 0.3333333333333333, 0.3333444444444444)).endswith("moved from 0.33333 to 0.33334")


def test_of_points_that_are_equally_good_one_of_a_cost_is_taken(case):
    model, *_ = case
    points = OperatingPoints([0.1, 0.2, 0.3], [5, 5, 5], [1, 1, 1], 10, 100)
    tree = model.path_[model.base_point_].tree
    path = [CurvePoint(0.1 * i, tree, 5, 1, moved=None if i == 2 else ThresholdMove(1, 0.0, 1.0)) for i in (1, 2, 3)]
    curve = copy(model)
    curve.path_, curve.points_, curve.held_out_points_, curve.n_cases_ = path, points, None, 110.0
    curve.base_point_ = 1
    assert curve.select(max_fpr=0.5).position == 1


def test_plain_values_hold_all_trees_and_the_choice(case):
    model, *_ = case
    chosen = model.select(max_fpr=0.3)
    plain = model.with_choice(chosen).to_plain()
    assert (len(plain["trees"]), len(plain["points"])) == (len(model.trees_), len(model.path_))
    assert Tree.from_dict(plain["points"][chosen.position]["tree"]) == chosen.tree.tree_
    assert plain["selected"] == chosen.position
    assert [each["moved"] is not None for each in plain["points"]] == [point.is_between for point in model.path_]
    positive = plain["points"][chosen.position]["positive_nodes"]
    assert np.array_equal(positive, np.flatnonzero(chosen.tree._label == 1))
    assert model.to_plain()["selected"] is None


def test_a_file_with_moves_that_do_not_fit_its_points_is_refused(case):
    model, X, *_ = case
    plain = clone(model).set_params(max_point_gap=None, cv=0).fit(X, case[2])
    arrays, again = plain._to_arrays(), copy(plain)
    for wrong in (np.full((2, 3), np.nan), np.full((len(plain.path_), 3), 99.0)):
        with pytest.raises(ValueError, match="do not fit together"):
            again._from_arrays(arrays | {"moved": wrong})


def test_a_path_of_one_tree_has_nothing_between(between):
    alone = DensePath.from_trees(between.models[:1], np.array([0.5]), between.data, 0.02, Threads())
    assert (len(alone.trees), alone.places, alone.moved) == (1, [], [None])


@pytest.mark.parametrize("wrong", [0, -0.1, "wide"])
def test_a_gap_is_a_number_above_0(wrong):
    with pytest.raises(ValueError, match="'max_point_gap' parameter of CostOptimalCurve must be"):
        clone(SMALL).set_params(max_point_gap=wrong).fit(*make_cases(60))
