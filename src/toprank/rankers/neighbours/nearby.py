"""Reasons by neighbours: the known cases near a row, how far they are, and what differs most, in words and as data."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from toprank.errors import InputError
from toprank.explain.reasons import LEAST_STRENGTH, MOST_STRENGTH, Reason
from toprank.explain.rows import ScoreExplanation
from toprank.explain.values import Originals, originals_by_feature, value_of, value_text
from toprank.rankers.neighbours.known import CaseSet
from toprank.rankers.neighbours.search import Neighbours
from toprank.rankers.neighbours.space import Space
from toprank.tree.columns import Category, Column
from toprank.words.counts import plural
from toprank.words.numbers import number_text
from toprank.words.plain import plain
from toprank.words.wording import SHORT

DIFFERENCES = 3
"""Most differences that an explanation lists per known case."""


@dataclass(frozen=True)
class Nearby:
    """The nearest known cases of one class, `found` among `cases`, for a batch of rows, `points` of the space.

    `names` are those of the training rows, None if they are only numbered.
    """

    found: Neighbours
    cases: CaseSet
    points: np.ndarray
    space: Space
    names: list[str] | None

    def name_of(self, row: int) -> str:
        """Return the name of a training row, or its number; "synthetic" for a case that a sampler made up (row -1)."""
        if row < 0:
            return "synthetic"
        return f"training row {row:,}" if self.names is None else self.names[row]


@dataclass(frozen=True)
class NeighbourReason(Reason):
    """A known positive that a case lies near.

    `feature` and `value` are the column in which the two differ most, and the value of the case in it.
    """

    row: int = -1  # of the known case in the training table
    distance: float = math.inf


@dataclass(frozen=True)
class Difference:
    """One column in which a case and a known case differ, and the share of the squared distance that comes from it."""

    feature: str
    value: Category | None
    known_value: Category | None
    share: float
    text: str


@dataclass(frozen=True)
class NearbyCase:
    """One known case near a row.

    Attributes
    ----------
    name : str
        Its name, or "training row 17", counted from 0; "synthetic" for a negative that a sampler made up.
    row : int
        -1 for a synthetic case.
    distance : float
    differences : tuple of Difference
        Largest first; none if the two are equal.
    """

    name: str
    row: int
    distance: float
    differences: tuple[Difference, ...]

    def __str__(self) -> str:
        words = "; ".join(each.text for each in self.differences) or "equal in all columns"
        return f"{self.name}, distance {number_text(self.distance)}: {words}"


@dataclass(frozen=True)
class NeighbourExplanation(ScoreExplanation):
    """Why one row has its score: the known positives and negatives nearest to it.

    Attributes
    ----------
    score, rate, lift : float
        As in all explanations; `is_for_new_cases` says which rate it is.
    positives, negatives : tuple of NearbyCase
        Nearest first.
    """

    positives: tuple[NearbyCase, ...]
    negatives: tuple[NearbyCase, ...]

    def __str__(self) -> str:
        lines = [f"score {number_text(self.score, 6)}, {self.rate_text}"]
        for title, cases in (
            ("nearest known positives", self.positives),
            ("nearest known negatives", self.negatives),
        ):
            is_by_row = any(case.name == f"training row {case.row:,}" for case in cases)
            counted = " (rows of the training table, counted from 0)" if is_by_row else ""
            lines += [f"{title}{counted}:", *(f"  {case}" for case in cases)]
        return "\n".join(lines)


@dataclass(frozen=True)
class ClassVote:
    """The votes for one class.

    Attributes
    ----------
    label : label of the class
    votes : int
    gamma : float
        What the distances of its cases are multiplied by.
    cases : tuple of NearbyCase
        Its nearest cases, nearest first, whose weights add up to its votes; at most n_neighbors of them.
    """

    label: Any
    votes: int
    gamma: float
    cases: tuple[NearbyCase, ...]


@dataclass(frozen=True)
class ClassExplanation:
    """Why a class was predicted for a row: the known cases that vote.

    Attributes
    ----------
    label : label of the class
    classes : tuple of ClassVote
        The class that wins first, then by votes; classes without a vote are left out.
    """

    label: Any
    classes: tuple[ClassVote, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; non-finite numbers become None."""
        return plain(asdict(self))

    def __str__(self) -> str:
        total = sum(each.votes for each in self.classes)
        lines = [f"class {SHORT.label(self.label)}, {self.classes[0].votes} of {plural(total, 'vote')}"]
        for each in self.classes:
            factor = "" if each.gamma == 1 else f"; distances count {number_text(each.gamma)} times"
            lines.append(f"class {SHORT.label(each.label)}, {plural(each.votes, 'vote')}{factor}:")
            lines += [f"  {case}" for case in each.cases]
        return "\n".join(lines)


def neighbour_reasons(
    near: Nearby, columns: Sequence[Column], X: np.ndarray, originals: Originals | None, gain: np.ndarray
) -> list[list[NeighbourReason]]:
    """Return the nearest known positives of each row as reasons, nearest first.

    The row's gain in log-odds (its hit rate against that of all cases) is shared by its reasons: a positive half as far
    away gets twice the share. So the strengths of a row multiply to the factor by which its odds are raised.
    """
    closeness = np.where(near.found.position >= 0, 1.0 / np.maximum(near.found.distance, 1e-9), 0.0)
    share = closeness / closeness.sum(axis=1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        strength = np.exp(np.minimum(np.clip(gain, -700, 700)[:, None] * share, math.log(MOST_STRENGTH)))
    found = nearby_cases(near, columns, X, originals, 1)
    out = []
    for i, cases in enumerate(found):
        reasons = []
        for place, case in enumerate(cases):
            if strength[i, place] < LEAST_STRENGTH:
                continue
            known = f"known positive{'' if near.names else ','} {case.name}"
            text = f"near {known} (distance {number_text(case.distance)}); "
            most = case.differences[0] if case.differences else None
            text += "equal in all columns" if most is None else f"differs most in {most.text}"
            feature, value = (columns[0].name, None) if most is None else (most.feature, most.value)
            reasons.append(
                NeighbourReason(feature, value, float(strength[i, place]), text, row=case.row, distance=case.distance)
            )
        out.append(reasons)
    return out


def nearby_cases(
    near: Nearby, columns: Sequence[Column], X: np.ndarray, originals: Originals | None, n_differences: int
) -> list[tuple[NearbyCase, ...]]:
    """Return the known cases of each row, nearest first, with the columns in which they differ most."""
    out: list[list[NearbyCase]] = [[] for _ in range(len(X))]
    named = originals_by_feature(columns, X, np.ones(X.shape, bool), originals)
    for place in range(near.found.position.shape[1]):
        at = near.found.position[:, place]
        there = near.cases.places[np.maximum(at, 0)]
        by_column = near.space.by_column(near.points - there)
        values = near.space.values(there)
        total = by_column.sum(axis=1)
        order = np.argsort(-by_column, axis=1, kind="stable")[:, :n_differences]
        for i in np.flatnonzero(at >= 0).tolist():
            differences = tuple(
                _difference(columns[f], float(X[i, f]), float(values[i, f]), named[f][i] if f in named else None,
                            float(by_column[i, f] / total[i]))
                for f in order[i].tolist() if by_column[i, f] > 0
            )  # fmt: skip
            row = int(near.cases.rows[at[i]])
            out[i].append(NearbyCase(near.name_of(row), row, float(near.found.distance[i, place]), differences))
    return [tuple(cases) for cases in out]


def _difference(column: Column, value: float, known: float, original: Any, share: float) -> Difference:
    """Return a difference in words: size = 3.2 instead of 2.9."""
    name = SHORT.name(column.name)
    own, other = (
        value_text(column, each, given, with_usual=False) for each, given in ((value, original), (known, None))
    )
    bare = other.removeprefix(f"{name} = ") if other.startswith(f"{name} = ") else "missing"
    text = own if own == other else f"{own} instead of {bare}"
    return Difference(column.name, value_of(column, value, original), value_of(column, known), share, text)


def index_names(X: Any) -> list[str] | None:
    """Return the names of the rows of a pandas frame; None if they are only numbered, or if X has no index."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or not hasattr(X, "iloc"):
        return None
    names = [str(name) for name in index]
    return None if names == [str(i) for i in range(len(names))] else names


def names_to_array(names: list[str] | None) -> np.ndarray:
    """Return names of cases as bytes for a file, uint8 (n,)."""
    return np.frombuffer(b"" if names is None else json.dumps(names).encode(), np.uint8)


def names_from_array(raw: np.ndarray, last_row: int) -> list[str] | None:
    """Return the names of cases from a file, checked."""
    if len(raw) == 0:
        return None
    names = json.loads(raw.tobytes().decode())
    if not isinstance(names, list) or len(names) <= last_row or not all(isinstance(name, str) for name in names):
        raise InputError("The model's names of cases do not fit its known cases.")
    return names
