"""Explanations of rows as text."""

import pytest

from toprank.explain.rows import Step, VoteExplanation


@pytest.mark.parametrize(
    ("rest", "line"), [((0.002, -0.004), "+0.00  2 other columns"), ((0.004,) * 3, "+0.01  3 other columns")]
)
def test_columns_that_add_next_to_nothing_have_no_minus_sign(rest, line):
    """The last line read "-0.00  2 other columns"."""
    steps = (Step("age", 3, 1.5, "age = 3"), *(Step(str(i), 0, value, "") for i, value in enumerate(rest)))
    text = str(VoteExplanation(10, steps, "sum of 10 trees", 0.5, score=2.0, rate=0.5, lift=2.0, is_for_new_cases=True))
    assert line in text.splitlines()[-2]
