import json

import numpy as np
import pytest

from toprank.tree.scoring import KINDS, Scoring

LINEAR = {
    "kind": "linear", "center": [0.5, 0.0], "weight": [2.0, 0.0], "missing": [0.25, -1.0],
    "points_at": [0, 0, 3], "points": [0.1, -0.2, 0.3],
}  # fmt: skip
EXAMPLES = [{}, {"kind": "margin", "scale": [1.0, 2.0]}, {"kind": "confusion", "confusion": 0.3}, LINEAR]


@pytest.mark.parametrize("values", EXAMPLES)
def test_a_dictionary_gives_an_equal_scoring_back(values):
    scoring = Scoring(**values)
    scoring.check(2)
    assert Scoring(**json.loads(json.dumps(scoring.to_dict()))) == scoring
    for other in EXAMPLES:
        assert (Scoring(**other) == scoring) == (other == values)
    assert scoring != "a scoring"


def test_every_kind_has_an_example():
    assert sorted(Scoring(**values).kind for values in EXAMPLES) == sorted(KINDS)


def test_a_scoring_is_frozen_and_owns_its_arrays():
    scale = np.ones(2)
    scoring = Scoring("margin", scale=scale)
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
        ({"kind": "confusion", "confusion": 1.5}, "confusion factor"),
        ({"kind": "confusion", "confusion": -0.1}, "confusion factor"),
        ({"kind": "confusion", "confusion": np.nan}, "confusion factor"),
        (LINEAR | {"center": [0.0]}, "as wide"),
        (LINEAR | {"weight": [[0.0, 0.0]]}, "as wide"),
        (LINEAR | {"missing": [0.0, np.nan]}, "finite"),
        (LINEAR | {"points": [0.0, np.nan, 0.0]}, "finite"),
        (LINEAR | {"points": [0.0]}, "points for categories"),
        (LINEAR | {"points_at": [0, 3]}, "points for categories"),
        (LINEAR | {"points_at": [1, 0, 3]}, "points for categories"),
        (LINEAR | {"points_at": [0, 4, 3]}, "points for categories"),
    ],
)
def test_a_broken_scoring_is_refused_with_a_sentence(values, sentence):
    with pytest.raises(ValueError, match=f"Not a valid tree: its scoring is not .*{sentence}"):
        Scoring(**values).check(2)
