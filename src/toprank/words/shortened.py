"""What short texts leave out, for the last line that says so."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from toprank._core.dtypes import CATEGORY, OBLIQUE
from toprank.tree.columns import Category, Column
from toprank.tree.structure import Tree
from toprank.words.counts import plural
from toprank.words.numbers import bound_decimal, rounded
from toprank.words.wording import EXACT, SHORT, WEIGHT_DIGITS, Term, category_sides, sum_terms


def is_rounded(value: float, digits: int = SHORT.digits) -> bool:
    """Return True if a short text shows a rounded number.

    Examples
    --------
    >>> is_rounded(0.25), is_rounded(0.123456)
    (False, True)
    """
    return bool(np.isfinite(value)) and rounded(value, digits) != Decimal(repr(float(value)))


def is_cut(labels: Sequence[Category]) -> bool:
    """Return True if a short text cuts this list or some of its names."""
    return len(labels) > len(labels[: SHORT.names]) or any(
        isinstance(label, str) and SHORT.label(label) not in (label, EXACT.label(label)) for label in labels
    )


def shortenings(tree: Tree, columns: Sequence[Column], nodes: Sequence[int]) -> list[str]:
    """Return what the short questions of these nodes leave out, in words: 3 lists, 2 sums, 1 number, missing values."""
    n_lists = n_sums = n_numbers = 0
    hides_missing = False
    for node in nodes:
        threshold = float(tree.threshold[node])
        threshold_is_rounded = bool(np.isfinite(threshold)) and bound_decimal(threshold) != Decimal(repr(threshold))
        if tree.kind[node] == OBLIQUE:
            n_sums += threshold_is_rounded or _is_short(columns, sum_terms(tree, node))
            continue
        column = columns[tree.feature[node]]
        hides_missing |= not column.has_missing
        if tree.kind[node] == CATEGORY:
            n_lists += is_cut(min(category_sides(column, tree.categories_left(node).tolist()), key=len))
        else:
            n_numbers += threshold_is_rounded and not column.is_date
    counted = [(n_lists, "list"), (n_sums, "sum"), (n_numbers, "number")]
    words = [plural(n, noun) for n, noun in counted if n]
    return [*words, "missing values"] if hides_missing else words


def _is_short(columns: Sequence[Column], terms: Sequence[Term]) -> bool:
    """Return True if a sum has unlisted terms, rounded weights, or fills for missing values."""
    return len(terms) > len(terms[: SHORT.names]) or any(
        is_rounded(term.weight, WEIGHT_DIGITS)
        or term.fill is not None
        or (term.code is not None and is_cut(columns[term.feature].labels(term.code)))
        for term in terms
    )


def shortened_lines(parts: Sequence[str]) -> list[str]:
    """Return the last lines of a short text: what it leaves out, and how to get it; none if nothing is left out.

    Examples
    --------
    >>> shortened_lines(["3 lists", "missing values"])
    ['', 'Shortened: 3 lists, missing values; use to_text(exact=True) for the full text.']
    """
    return ["", f"Shortened: {', '.join(parts)}; use to_text(exact=True) for the full text."] if parts else []
