import json
from typing import Any

import numpy as np
import pytest

from toprank.tree.scoring import Margin, Scoring, scoring_from

LINEAR = {
    "kind": "linear", "center": [0.5, 0.0], "weight": [2.0, 0.0], "missing": [0.25, -1.0],
    "points_at": [0, 0, 3], "category_points": [0.1, -0.2, 0.3],
}  # fmt: skip
EXAMPLES: list[dict[str, Any]] = [
    {"kind": "constant"}, {"kind": "margin", "scale": [1.0, 2.0]}, {"kind": "votes", "decay": 0.3}, LINEAR,
]  # fmt: skip


@pytest.mark.parametrize("values", EXAMPLES)
def test_a_dictionary_gives_an_equal_scoring_back(values):
    scoring = scoring_from(values)
    scoring.check(2)
    assert scoring_from(json.loads(json.dumps(scoring.to_dict()))) == scoring
    assert scoring_from(scoring.to_arrays()) == scoring
    for other in EXAMPLES:
        assert (scoring_from(other) == scoring) == (other == values)
    assert scoring != "a scoring"


def test_every_kind_has_an_example():
    assert {values["kind"] for values in EXAMPLES} == {
        each.kind for each in Scoring.__subclasses__() if each.__module__ == Scoring.__module__
    }


def test_a_scoring_is_frozen_and_owns_its_arrays():
    scale = np.ones(2)
    scoring = Margin(scale)
    scale[0] = 7
    assert scoring.scale.tolist() == [1, 1]
    with pytest.raises(ValueError, match="read-only"):
        scoring.scale[0] = 7


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"kind": "magic"}, "known kind"),
        ({"kind": "margin", "scale": [1.0]}, "as wide"),
        ({"kind": "margin", "scale": [1.0, np.inf]}, "finite"),
        ({"kind": "margin", "scale": [1.0, 0.0]}, "positive units"),
        ({"kind": "votes", "decay": 1.5}, "decay of votes"),
        ({"kind": "votes", "decay": -0.1}, "decay of votes"),
        ({"kind": "votes", "decay": np.nan}, "decay of votes"),
        (LINEAR | {"center": [0.0]}, "as wide"),
        (LINEAR | {"weight": [[0.0, 0.0]]}, "as wide"),
        (LINEAR | {"missing": [0.0, np.nan]}, "finite"),
        (LINEAR | {"category_points": [0.0, np.nan, 0.0]}, "finite"),
        (LINEAR | {"category_points": [0.0]}, "points for categories"),
        (LINEAR | {"points_at": [0, 3]}, "points for categories"),
        (LINEAR | {"points_at": [1, 0, 3]}, "points for categories"),
        (LINEAR | {"points_at": [0, 4, 3]}, "points for categories"),
        (LINEAR | {"points_at": [0, 2**31 - 1, -(2**31)]}, "points for categories"),
        (LINEAR | {"step_at": [0, 2**31 - 1, -(2**31)]}, "steps"),
        (LINEAR | {"step_at": [0, 1, 1], "step_above": [0.5], "step_points": []}, "steps"),
    ],
)
def test_a_broken_scoring_is_refused_with_a_sentence(values, sentence):
    with pytest.raises(ValueError, match=f"Not a valid tree: its scoring is not .*{sentence}"):
        scoring_from(values).check(2)


@pytest.mark.parametrize("values", [{"kind": "constant", "scale": [1.0]}, {"kind": "margin"}, LINEAR | {"turn": 0.1}])
def test_a_scoring_with_other_fields_is_refused(values):
    with pytest.raises(ValueError, match="Not a valid tree"):
        scoring_from(values)
