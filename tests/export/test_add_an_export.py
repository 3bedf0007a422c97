"""How to add an export: one walk over the tree, one condition per question. Nothing in the package is touched."""

import math

import numpy as np
import pandas as pd
import pytest

from toprank import MetaAP, RankingTree, TreeRank
from toprank.explain import TreeWalk, side_condition

# --- the export: about twenty lines ------------------------------------------------------------------------------


def to_python(model) -> str:
    """Nested ifs: a function per block, which scores one row, a dictionary by column name with None for missing."""
    walk, lines = TreeWalk(model.tree_), []
    for head, number in walk.number.items():
        lines.append(f"def block_{number}(row):")
        for visit in walk.block(head):
            indent = "    " * (visit.level + 1)
            if visit.answer is False:
                lines.append(f"{indent[4:]}else:")
            if visit.is_open:
                lines.append(f"{indent}if {asked(side_condition(model.tree_, model.columns_, visit.node))}:")
            elif visit.block is not None:
                lines.append(f"{indent}return block_{visit.block}(row)")
            else:
                lines.append(f"{indent}return {float(model.tree_.score[visit.node])!r}")
    return "\n".join(lines)


def asked(condition) -> str:
    value = condition.to_dict()
    if condition.is_sum:
        terms = " + ".join(f"term(row, **{term!r})" for term in value["terms"])
        return f"is_in(0.0 + {terms}, **{bounds(value)!r})"
    return f"is_in(row[{value['column']!r}], **{bounds(value)!r})"


def bounds(value) -> dict:
    return {name: value[name] for name in ("high", "categories", "missing", "only_missing")}


# --- what the exported text calls --------------------------------------------------------------------------------


def is_in(value, high, categories, missing, only_missing) -> bool:
    if value is None or math.isnan(value if categories is None else 0.0):
        return missing
    if categories is not None:
        return value in categories
    return not only_missing and (high is None or value <= high)


def term(row, column, weight, category, fill) -> float:
    value = row[column]
    if category is not None:
        return weight * (value in category)
    return weight * ((math.nan if fill is None else fill) if value is None else value)


# --- the proof ---------------------------------------------------------------------------------------------------


def table(n=500, seed=0):
    generator = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": generator.integers(0, 40, n).astype(float),
            "gap": generator.normal(size=n).round(2),
            "sector": generator.choice(["bar", "shop", "farm", "bank"], n),
        }
    )
    y = (X["gap"] + (X["sector"] == "bar") - X["age"] / 20 + generator.normal(size=n) > 0.5).astype(int)
    X.loc[generator.random(n) < 0.1, "age"] = np.nan
    X.loc[generator.random(n) < 0.1, "sector"] = None
    return X, y


@pytest.mark.parametrize(
    "model",
    [
        RankingTree(max_depth=4, cv=0),
        MetaAP(max_depth=3, leaf_score="constant", cv=0),
        TreeRank(max_depth=2, leaf_ranker="oblique", leaf_score="constant", cv=0),
    ],
    ids=["plain", "shared", "oblique"],
)
def test_the_exported_text_scores_rows_exactly_as_the_model_does(model):
    X, y = table()
    model.fit(X, y)
    text = to_python(model)
    names = {"is_in": is_in, "term": term}
    exec(text, names)
    rows = X.astype(object).where(X.notna(), None).to_dict("records")
    assert [names["block_0"](row) for row in rows] == model.decision_function(X).tolist()
    if isinstance(model, MetaAP):
        assert "return block_1(row)" in text  # a node with several parents is written once
