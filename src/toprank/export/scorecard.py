"""The scorecard that orders the rows inside leaves: as a table, as text, and what the text leaves out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toprank.errors import InputError
from toprank.tree.columns import Category, Column
from toprank.tree.scoring import LeafScorecard, Scoring
from toprank.words.counts import plural
from toprank.words.numbers import value_text
from toprank.words.wording import EXACT, SHORT, WEIGHT_DIGITS, Detail, is_cut, is_rounded, one_line
from toprank.words.wrapping import GLUE, wrapped

WIDTH = 100
"""Width of texts for reading."""

CARD_TITLE = "Inside a leaf, cases with more points come first"
CARD_CATEGORIES = 12
"""Most categories of a column to list with points; the others, with fewer points, are counted."""

FEW_CATEGORIES = 3
"""The same in a short scorecard."""

CARD_NAMES = 5

MAIN_COLUMNS = 5
"""Most columns that the summary of a model names; its description names a few more."""

SMALL_WEIGHT = 1e-3
"""Smaller points per unit are shown per 1,000 units, or more."""


def scorecard_features(scoring: Scoring, spread: np.ndarray | None = None) -> list[int]:
    """Return the features with points in a scorecard, by falling spread of their points, else in model order."""
    card = scoring.card
    if card is None:
        return []
    used = (card.weight != 0) | (card.missing != 0) | (np.diff(card.step_at) > 0)
    for feature in np.flatnonzero(np.diff(card.points_at)).tolist():
        used[feature] |= bool(_category_points(card, feature).any())
    features = np.flatnonzero(used)
    if spread is not None:
        features = features[np.argsort(-spread[features], kind="stable")]
    return [int(feature) for feature in features]


def scorecard_table(
    scoring: Scoring, columns: Sequence[Column], spread: np.ndarray | None = None
) -> dict[str, list[Any]]:
    """Return the columns of a table with one row per item of a scorecard that has points, by importance of the column.

    Columns are column, category (None except in rows of categories), counts ("per unit", "above", "category" or
    "missing"), points, center (NaN except in rows of numbers): a number x gets points * (x - center) per unit, and the
    points of each row "above" whose center is below x. `spread` is the standard deviation of each column's points; None
    keeps the order of the model.

    Examples
    --------
    >>> points = {"points_at": [0, 0, 2], "category_points": [0, 1]}
    >>> card = LeafScorecard(center=[2, 0], weight=[0.5, 0], missing=[-0.1, 0], **points)
    >>> table = scorecard_table(card, [Column("age"), Column("sector", ("retail", "catering"))])
    >>> for row in zip(*table.values()):
    ...     print(*row)
    age None per unit 0.5 2.0
    age None missing -0.1 nan
    sector catering category 1.0 nan
    """
    rows: list[tuple[str, str | None, str, float, float]] = []
    for feature in scorecard_features(scoring, spread):
        card, name = scoring.card, columns[feature].name
        assert card is not None
        if card.weight[feature]:
            rows.append((name, None, "per unit", float(card.weight[feature]), float(card.center[feature])))
        rows += [(name, None, "above", points, edge) for edge, points in _steps(card, feature)]
        for labels, points in _category_parts(card, columns[feature], feature):
            rows += [(name, one_line(label), "category", points, math.nan) for label in labels]
        if card.missing[feature]:
            rows.append((name, None, "missing", float(card.missing[feature]), math.nan))
    names = ("column", "category", "counts", "points", "center")
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def scorecard_lines(
    scoring: Scoring,
    columns: Sequence[Column],
    spread: np.ndarray | None = None,
    width: int = WIDTH,
    detail: Detail = SHORT,
    max_columns: int | None = None,
) -> list[str]:
    r"""Return a scorecard in words, indented, one line per column with points; none without a scorecard.

    Exact lines do not wrap, follow the order in which the model adds points, and name every category. Short ones begin
    with the largest `spread`; `max_columns` lists only this many, with at most 3 categories each, and counts the
    others.

    Examples
    --------
    >>> points = {"points_at": [0, 0, 2], "category_points": [0, 1]}
    >>> card = LeafScorecard(center=[2, 0], weight=[0.5, 0], missing=[-0.1, 0], **points)
    >>> print(*scorecard_lines(card, [Column("age"), Column("sector", ("retail", "catering"))]), sep="\n")
      +0.5 per unit of age above 2; missing: -0.1
      sector = catering +1
    >>> lines = scorecard_lines(card, [Column("age"), Column("sector", ("retail", "catering"))], detail=EXACT)
    >>> print(*lines, sep="\n")
      +0.5 per unit of age above 2.0; missing: -0.1
      sector = retail +0.0, catering +1.0; missing: +0.0
    """
    card = scoring.card
    if card is None:
        return []
    if detail.is_exact:
        return [f"  {_exact_card_line(card, columns[f], f)}" for f in scorecard_features(card)]
    features = scorecard_features(card, spread)
    most = CARD_CATEGORIES if max_columns is None else FEW_CATEGORIES
    listed = [_card_line(card, columns[feature], feature, most) for feature in features[:max_columns]]
    if len(features) > len(listed):
        n_others = len(features) - len(listed)
        listed.append(f"and {plural(n_others, 'column')} that count{'s' if n_others == 1 else ''} less")
    return [line for text in listed for line in wrapped(text, width, "  ", " " * 6)]


def scorecard_summary(scoring: Scoring, columns: Sequence[Column], spread: np.ndarray | None = None) -> str:
    """Return the columns of a scorecard in words: scorecard of 2 columns: age, sector. Empty without a scorecard."""
    if scoring.card is None:
        return ""
    names = [one_line(columns[feature].name) for feature in scorecard_features(scoring, spread)]
    if not names:
        return "scorecard without points: cases of a leaf tie"
    listed = ", ".join(names[:CARD_NAMES])
    rest = f" and {len(names) - CARD_NAMES:,} more" if len(names) > CARD_NAMES else ""
    return f"scorecard of {len(names):,} column{'' if len(names) == 1 else 's'}: {listed}{rest}"


def no_split_text(n_leaves: int, summary: str, ccp_alpha: object) -> str:
    """Return a sentence for a tree without splits whose only leaf has a scorecard; empty for other trees.

    `summary` is that of `scorecard_summary`; `ccp_alpha` is "cv" if held-out cases chose the size of the tree.

    Examples
    --------
    >>> no_split_text(1, "scorecard of 2 columns: age, sector", "cv")
    'No split helped on held-out cases, so this model is a scorecard without a tree.'
    """
    if n_leaves != 1 or not summary:
        return ""
    why = "No split helped on held-out cases" if ccp_alpha == "cv" else "The tree has no split"
    return f"{why}, so this model is a scorecard without a tree."


def scorecard_shares(scoring: Scoring, spread: np.ndarray | None) -> list[float] | None:
    """Return the share of each column in the spread of a scorecard's points, 0 to 1; None without a card or its spread.

    The spread of a number's points is its standardised weight.

    Examples
    --------
    >>> card = LeafScorecard(center=[2, 0], weight=[0.5, 0.1], missing=[0, 0], points_at=[0, 0, 0], category_points=[])
    >>> scorecard_shares(card, np.array([0.6, 0.2]))
    [0.75, 0.25]
    """
    if scoring.card is None or spread is None or not spread.sum() > 0:
        return None
    return [round(float(share), 12) for share in spread / spread.sum()]


def main_columns(
    names: Sequence[str],
    importances: Sequence[float],
    card_shares: Sequence[float] | None = None,
    most: int = MAIN_COLUMNS,
) -> str:
    """Return the columns with the largest shares of the gain; those of the scorecard if there is no gain.

    `card_shares` is the result of `scorecard_shares`; at most `most` columns are named. Empty if no column counts.

    Examples
    --------
    >>> main_columns(["age", "sector"], [0.25, 0.75])
    'sector 75 %, age 25 %'
    >>> main_columns(["age", "sector"], [0.0, 0.0], [1.0, 0.0])
    'of the scorecard, as there are no conditions: age 100 %'
    """
    if card_shares is not None and not any(importances):
        return f"of the scorecard, as there are no conditions: {main_columns(names, card_shares, most=most)}"
    ranked = sorted(zip(names, importances, strict=True), key=lambda item: -item[1])
    used = [f"{name} {_whole_percent(share)}" for name, share in ranked if share > 0]
    n_others = len(used) - most
    others = f" and {n_others:,} other{'' if n_others == 1 else 's'}" if n_others > 0 else ""
    return f"{', '.join(used[:most])}{others}"


def _whole_percent(share: float) -> str:
    """Return a share above 0 in whole percent."""
    return f"{100 * share:.0f} %" if share >= 0.005 else "under 1 %"


def checked_spread(spread: np.ndarray | None, n_features: int) -> np.ndarray | None:
    """Return the spread of a scorecard's points from a file as float64; ValueError if it is invalid."""
    if spread is None:
        return None
    array = np.asarray(spread, np.float64)
    if array.shape != (n_features,) or not np.all(np.isfinite(array) & (array >= 0)):
        raise InputError(f"The spread of the scorecard's points is not {n_features} numbers of at least 0.")
    return array


def _category_points(scoring: LeafScorecard, feature: int) -> np.ndarray:
    return scoring.category_points[scoring.points_at[feature] : scoring.points_at[feature + 1]]


def _category_parts(scoring: LeafScorecard, column: Column, feature: int) -> list[tuple[tuple[Category, ...], float]]:
    """Return the categories with points, most points first; those that share a code are together."""
    points = _category_points(scoring, feature)
    return [
        (column.labels(int(code)), float(points[code])) for code in np.argsort(-points, kind="stable") if points[code]
    ]


def _exact_card_line(scoring: LeafScorecard, column: Column, feature: int) -> str:
    """Return the points of one column in words, with every category and the missing value."""
    points, name = _category_points(scoring, feature), EXACT.name(column.name)
    if len(points):
        parts = [(label, float(points[code])) for code in range(len(points)) for label in column.labels(code)]
        words = f"{name} = {', '.join(f'{EXACT.label(label)} {_signed(each, EXACT)}' for label, each in parts)}"
    else:
        weight, center = float(scoring.weight[feature]), float(scoring.center[feature])
        words = f"{_signed(weight, EXACT)} per unit of {name} above {EXACT.number(center)}"
        for edge, each in _steps(scoring, feature):
            words += f", {_signed(each, EXACT)} above {EXACT.number(edge)}"
    return f"{words}; missing: {_signed(float(scoring.missing[feature]), EXACT)}"


def hides_points(scoring: LeafScorecard, column: Column, feature: int) -> bool:
    """Return True if the short line of a column rounds its points or leaves some out."""
    parts = _category_parts(scoring, column, feature)
    steps = [each for _, each in _steps(scoring, feature)]
    points = [float(scoring.weight[feature]), float(scoring.missing[feature]), *(each for _, each in parts), *steps]
    return (
        max(len(parts), len(steps)) > CARD_CATEGORIES
        or any(len(labels) > 1 or is_cut(labels) for labels, _ in parts)
        or any(is_rounded(each, WEIGHT_DIGITS) for each in points)
        or is_rounded(float(scoring.center[feature]))
        or any(is_rounded(edge) for edge, _ in _steps(scoring, feature))
    )


def _card_line(scoring: LeafScorecard, column: Column, feature: int, most: int = CARD_CATEGORIES) -> str:
    """Return the points of one column in words."""
    name, weight, missing = one_line(column.name), float(scoring.weight[feature]), float(scoring.missing[feature])
    parts, steps = _category_parts(scoring, column, feature), _step_texts(scoring, column, feature, most)
    if weight:
        slope = f"{_weight_text(weight)} of {name} above {_center_text(column, float(scoring.center[feature]))}"
        words = ", ".join((slope, *steps))
    elif steps:
        words = f"{name}: {', '.join(steps)}"
    elif parts:
        least = sorted((abs(points) for _, points in parts), reverse=True)[:most][-1]
        largest = [part for part in parts if abs(part[1]) >= least][:most]
        listed = [f"{_labels_text(labels)} {_signed(points)}".replace(" ", GLUE) for labels, points in largest]
        words = f"{name} = {', '.join(listed)}"
        if len(parts) > len(largest):
            words += f" and {len(parts) - len(largest):,} more"
    else:
        return f"{name} missing:{GLUE}{_signed(missing)}"
    return f"{words}; missing:{GLUE}{_signed(missing)}" if missing else words


def _steps(scoring: LeafScorecard, feature: int) -> list[tuple[float, float]]:
    """Return the values at which the points of a number change, ascending, and by how much."""
    own = slice(scoring.step_at[feature], scoring.step_at[feature + 1])
    return list(zip(scoring.step_above[own].tolist(), scoring.step_points[own].tolist(), strict=True))


def _step_texts(scoring: LeafScorecard, column: Column, feature: int, most: int) -> list[str]:
    """Return the largest steps of a number in words, in the order of its values, and a count of the others."""
    steps = _steps(scoring, feature)
    largest = sorted(steps, key=lambda step: -abs(step[1]))[:most]
    texts = [
        f"{_signed(points)} above {_center_text(column, edge)}".replace(" ", GLUE) for edge, points in sorted(largest)
    ]
    n_others = len(steps) - len(largest)
    if n_others:
        texts[-1] += f" and {n_others:,} smaller step{'' if n_others == 1 else 's'}"
    return texts


def _center_text(column: Column, center: float) -> str:
    return column.bound_text(center) if column.is_date else value_text(center)


def _weight_text(weight: float) -> str:
    """Return points per unit: +0.8 per unit; if these are small, per a round number of units: -0.12 per 10,000."""
    if abs(weight) >= SMALL_WEIGHT:
        return f"{_signed(weight)} per unit"
    zeros = min(-math.floor(math.log10(abs(weight))) - 1, 300)
    return f"{_signed(weight * 10.0**zeros)} per {value_text(10.0**zeros)}"


def _labels_text(labels: Sequence[Category]) -> str:
    """Return a category, or the first of those that share a code and a count of the others."""
    first, n_others = SHORT.label(labels[0]), len(labels) - 1
    return f"{first} and {n_others:,} rare other{'' if n_others == 1 else 's'}" if n_others else first


def _signed(points: float, detail: Detail = SHORT) -> str:
    return f"{'-' if points < 0 else '+'}{detail.number(abs(points), WEIGHT_DIGITS)}"
