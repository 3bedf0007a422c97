"""Roles of columns, learned from the training table: number, category, date, or left out.

Identifiers, free text and constants are left out; dates and numbers are recognised in text. A table of fewer than 50
rows is too small to decide: all of its columns are kept.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from toprank.data.dates import (
    NAMES,
    days_of_series,
    days_of_values,
    learn_date_form,
    part_codes,
    useful_parts,
)
from toprank.data.encoding import ManyCategoriesWarning, read_days
from toprank.data.number_text import (
    NEARLY_ALL,
    NOTHING,
    NumberForm,
    learn_number_form,
    numbers_of,
    ordered_bands,
    why_no_numbers,
)
from toprank.data.table import Coded, Table, kind_of_values
from toprank.errors import InputError, InputTypeError, warn_caller
from toprank.metrics.checks import is_int
from toprank.tree.columns import Column
from toprank.words.counts import plural

MAX_CATEGORIES = 254
"""Largest number of categories per column; beyond that the rarest share one code."""

MIN_ROWS = 50
"""Smallest number of rows for leaving out a column."""

ROWS_CHECKED = 1_000
"""Rows checked first for repeated numbers."""

MIN_WORDS, MIN_DISTINCT_SHARE = 4, 0.5
"""Free text has this many words on average, and at least this share of distinct values."""

FILLED_SHARE = 0.5
"""Distinct integers that fill this share of their range count the rows."""

ID_WORDS = frozenset({"id", "ids", "key", "uuid", "guid", "index", "idx", "nr", "no", "num", "number", "serial", "row"})
"""Last words in the names of columns that identify the case: customer_id, customerId, invoice no."""
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

DIGIT = re.compile(r"\d")

IDENTIFIER = "identifier"
FREE_TEXT = "free text"
CONSTANT = "constant"
EMPTY = "no values"


class LeftOutWarning(UserWarning):
    """Columns of a training table are left out; `columns` has their names."""

    def __init__(self, message: str, columns: Sequence[str]) -> None:
        super().__init__(message)
        self.columns = tuple(columns)


class LearnedColumns(NamedTuple):
    """Result of learning the columns of a training table.

    Attributes
    ----------
    columns : list of Column
        Columns of the encoded matrix, in the order of the table; a date may become several.
    left_out : dict
        Names of the columns left out, and why.
    """

    columns: list[Column]
    left_out: dict[str, str]


def learn_columns(table: Table, categorical_features: Any = None, keep_columns: Any = None) -> LearnedColumns:
    """Columns to train on: the roles of `column_roles`, but a table of constants keeps them.

    Raises ValueError if no column remains; warns of columns left out. The rest is as in `column_roles`.
    """
    columns, left_out = column_roles(table, categorical_features, keep_columns)
    if not columns:
        keep = [name for name, reason in left_out.items() if reason in (CONSTANT, EMPTY)]
        if not keep:
            raise InputError(
                f"X has no column to learn from: {_listed(left_out)}. "
                f"Hint: keep_columns=[{next(iter(left_out))!r}] keeps a column."
            )
        # They carry no information, but a table of nothing else is not the caller's mistake.
        columns = [_learn_kept(table, table.position[name]) for name in keep]
        left_out = {name: reason for name, reason in left_out.items() if name not in keep}
    if left_out:
        names = list(left_out)
        warn_caller(
            LeftOutWarning(
                f"{plural(len(names), 'column')} of X {'is' if len(names) == 1 else 'are'} left out: "
                f"{_listed(left_out)}. Hint: keep_columns=[{names[0]!r}] keeps a column; drop the others to "
                "silence this.",
                names,
            )
        )
    return LearnedColumns(columns, left_out)


def column_roles(table: Table, categorical_features: Any = None, keep_columns: Any = None) -> LearnedColumns:
    """Role of each column: its name, kind, categories and form, or why it is left out.

    Parameters
    ----------
    table : Table
    categorical_features : list of names or positions, or mask
        Columns to treat as categories, whatever they look like.
    keep_columns : list of names or positions, mask, or "all"
        Columns to keep, whatever they look like.

    Raises TypeError for columns of mixed or unsupported types; warns of dates that can be read in two ways, and if rare
    categories have to share a code.
    """
    chosen = chosen_columns(categorical_features, table.names, "categorical_features")
    everything = isinstance(keep_columns, str) and keep_columns == "all"
    kept = set(range(len(table.names))) if everything else chosen_columns(keep_columns, table.names, "keep_columns")
    judged = set() if len(table) < MIN_ROWS else set(range(len(table.names))) - kept - chosen
    reasons = _numbers_left_out(table, judged)
    columns: list[Column] = []
    taken = set(table.names)
    for i, name in enumerate(table.names):
        if i in reasons:
            continue
        if table.is_numeric(i) and i not in chosen:
            columns.append(Column(name))
            continue
        found = _learn_values(table, i, i in chosen, i in judged)
        if isinstance(found, str):
            reasons[i] = found
        else:
            columns += _with_free_names(found, taken)
    return LearnedColumns(columns, {table.names[i]: reasons[i] for i in sorted(reasons)})


def chosen_columns(chosen: Any, names: Sequence[str], parameter: str) -> set[int]:
    """Positions of the columns given by the user, by name, position or mask."""
    if chosen is None:
        return set()
    chosen = list(chosen)
    if len(chosen) == len(names) and all(isinstance(c, bool | np.bool_) for c in chosen):
        return set(np.flatnonzero(chosen).tolist())
    position = {name: i for i, name in enumerate(names)}
    positions = set()
    for c in chosen:
        place = position[c] if isinstance(c, str) and c in position else c
        if not is_int(place) or not 0 <= place < len(names):
            raise InputError(
                f"{parameter} names {c!r}, but X has no such column (its {len(names)} columns begin with "
                f"{', '.join(map(repr, names[:5]))}). Hint: use column names, positions from 0, or a mask."
            )
        positions.add(int(place))
    return positions


# --- columns left out -----------------------------------------------------------------------------------------


def _learn_kept(table: Table, i: int) -> Column:
    """Column of a constant that is kept."""
    if table.is_numeric(i):
        return Column(table.names[i])
    found = _learn_values(table, i, False, False)
    assert not isinstance(found, str)
    return found[0]


def _listed(left_out: dict[str, str]) -> str:
    """Names with reasons, at most ten per reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        by_reason.setdefault(reason, []).append(repr(name))
    texts = []
    for reason, names in by_reason.items():
        more = f" and {len(names) - 10:,} more" if len(names) > 10 else ""
        texts.append(f"{', '.join(names[:10])}{more} ({reason})")
    return "; ".join(texts)


def _numbers_left_out(table: Table, judged: set[int]) -> dict[int, str]:
    """Columns of numbers in a data frame that are constant, or count or identify the rows. Arrays keep all columns."""
    if table.frame is None:
        return {}
    positions = [i for i in sorted(judged) if table.is_numeric(i)]
    if not positions:
        return {}
    head = table.head(positions, ROWS_CHECKED).astype(np.float64)
    with np.errstate(invalid="ignore"):
        same = np.all((head == head[0]) | np.isnan(head) & np.isnan(head[0]), axis=0)
        whole = np.all(head == np.floor(head), axis=0)
    ordered = np.sort(head[:, whole], axis=0)
    different = np.flatnonzero(whole)[np.all(ordered[1:] != ordered[:-1], axis=0)]
    reasons: dict[int, str] = {}
    for place in np.flatnonzero(same).tolist():
        column = table.numbers(positions[place])
        if np.all(np.isnan(column)):
            reasons[positions[place]] = EMPTY
        elif np.isfinite(column[0]) and np.all(column == column[0]):  # infinite values are an error elsewhere
            reasons[positions[place]] = CONSTANT
    for place in different.tolist():
        if names_rows(table.names[positions[place]], table.numbers(positions[place])):
            reasons[positions[place]] = IDENTIFIER
    return reasons


def names_rows(name: str, values: np.ndarray) -> bool:
    """Whether integers identify the rows: all distinct, and they fill their range or are named like an ID."""
    low, high = float(values.min()), float(values.max())
    fills = len(values) >= FILLED_SHARE * (high - low + 1)
    is_called = is_id_name(name)
    if math.isnan(low) or not (fills or is_called) or not np.all(values == np.floor(values)):
        return False
    return len(np.unique(values)) == len(values)


def is_id_name(name: str) -> bool:
    """Whether the name of a column suggests that it identifies the case.

    Examples
    --------
    >>> [is_id_name(name) for name in ("id", "customer_id", "customerId", "invoice no", "paid", "amount")]
    [True, True, True, True, False, False]
    """
    words = WORD.findall(name)
    return bool(words) and words[-1].lower() in ID_WORDS


def _text_left_out(coded: Coded) -> str | None:
    """Why a column of text is left out; None if it is kept."""
    texts, n_known = coded.distinct, int(np.count_nonzero(coded.codes >= 0))
    n_missing = len(coded.codes) - n_known
    if len(texts) <= 1 and (not texts or n_missing == 0):
        return CONSTANT if texts else EMPTY
    if n_known < MIN_ROWS or not all(isinstance(text, str) for text in texts):
        return None
    if len(texts) >= MIN_DISTINCT_SHARE * n_known and sum(len(text.split()) for text in texts) >= MIN_WORDS * len(
        texts
    ):
        return FREE_TEXT
    if len(texts) < NEARLY_ALL * n_known:
        return None
    return why_no_numbers(texts, coded.counts.tolist()) or IDENTIFIER


# --- columns not stored as numbers --------------------------------------------------------------------------


def _learn_values(table: Table, i: int, is_chosen: bool, is_judged: bool) -> list[Column] | str:
    """Columns made from the values of column i, or why it is left out."""
    name, dtype = table.names[i], table.dtype(i)
    if dtype is not None and dtype.is_temporal():
        if is_chosen or dtype not in (nw.Date, nw.Datetime):
            raise InputTypeError(
                f"Column {name!r} holds values of type {dtype}, expected numbers, categories or dates. "
                "Hint: convert it to numbers, such as hours, or to text."
            )
        return _date_columns(name, "date", days_of_series(table.series(i)), is_judged)
    kind = kind_of_values(table, i)
    distinct = table.coded(i).distinct
    if kind == "date":
        return _date_columns(name, "date", np.array(days_of_values(table.cells(i))), is_judged)
    if kind == "number" and not is_chosen:
        return [Column(name)]
    is_declared = is_chosen or dtype in (nw.Categorical, nw.Enum)
    if kind == "category" and distinct and isinstance(distinct[0], str):
        read = partial(read_days, table, i)
        if not is_declared and (dates := learn_date_form(distinct, read)) is not None:
            if dates.is_ambiguous:
                warn_caller(
                    f"Column {name!r} holds dates that could be day first or month first; they are read as day first. "
                    "Hint: write them as 2024-12-31, or pass a column of a date type."
                )
            return _date_columns(name, dates.form, table.coded(i).mapped(read(dates.form)), is_judged)
        if not is_declared and (form := learn_numbers(table.coded(i))) is not None:
            return [Column(name, form=form.form, unit=form.unit)]
    if is_judged:
        reason = _text_left_out(table.coded(i))
        if reason is not None:
            return reason
    column = _learn_categories(name, table.counts(i))
    return [column if is_declared else _in_order(column)]


def learn_numbers(coded: Coded, may_be_few: bool = False) -> NumberForm | None:
    """Return how the numbers of a column of text are written; None if it holds categories.

    Nearly all distinct values must be numbers, or nearly all cells, as in scoring. The other cells must then be words
    that stand for no number, unlike "10+" and "none". Words do not change what the numbers are: codes stay categories,
    as in `learn_number_form`; `may_be_few` is for tables without types, where a few whole numbers are no codes.

    Examples
    --------
    >>> column = Coded(np.repeat([0, 1, 2], [20, 20, 1]), ["0", "1", "n/a"])
    >>> learn_numbers(column)
    >>> learn_numbers(column, may_be_few=True)
    NumberForm(form='1,234.56', unit='', zero_groups=False)
    """
    form = learn_number_form(coded.distinct, may_be_few)
    if form is not None:
        return form
    texts, counts = [text.strip() for text in coded.distinct], coded.counts
    has_digit = np.array([DIGIT.search(text) is not None for text in texts], bool)
    n_numbers, n_cells = int(counts[has_digit].sum()), int(counts[np.array(texts, object) != ""].sum())
    is_stray = NOTHING.isdisjoint(text.lower() for text in texts) and NEARLY_ALL * n_cells <= n_numbers < n_cells
    numbers = [text for text, may_be in zip(texts, has_digit.tolist(), strict=True) if may_be]
    if not is_stray or len(numbers) < 2:
        return None
    form = learn_number_form(numbers, may_be_few)
    return form if form is not None and not np.isnan(numbers_of(numbers, form)).any() else None


def _date_columns(name: str, form: str, days: np.ndarray, is_judged: bool) -> list[Column] | str:
    """Column of a date, and of its month and weekday if they may help."""
    known = days[np.isfinite(days)]
    if is_judged and (len(known) == 0 or (len(known) == len(days) and np.all(known == known[0]))):
        return CONSTANT if len(known) else EMPTY
    has_time = bool(np.any(known != np.floor(known)))
    columns = [Column(name, form=form, has_time=has_time)]
    for part in useful_parts(days):
        codes = part_codes(days, part)
        seen = tuple(NAMES[part][int(code)] for code in np.unique(codes[np.isfinite(codes)]))
        columns.append(Column(f"{name} ({part})", seen, source=name, form=form, part=part))
    return columns


def _with_free_names(columns: list[Column], taken: set[str]) -> list[Column]:
    """Columns with unique names for the derived ones."""
    out = columns[:1]
    for column in columns[1:]:
        name, k = column.name, 2
        while name in taken:
            name, k = f"{column.name[:-1]} {k})", k + 1
        taken.add(name)
        out.append(replace(column, name=name))
    return out


def _in_order(column: Column) -> Column:
    """Column with categories in ascending order if they are bands, such as 15-19 and 20-24."""
    names = column.categories or ()
    if column.shared or not names or not isinstance(names[0], str):
        return column
    ordered = ordered_bands([str(name) for name in names])
    return column if ordered is None else replace(column, categories=ordered, is_ordered=True)


def _learn_categories(name: str, counts: Counter[Any]) -> Column:
    """Column with its categories in sorted order; if there are many, the rarest share the last code."""
    if any(isinstance(c, float) and math.isinf(c) for c in counts):
        raise InputError(
            f"Column {name!r} holds infinite values, expected finite numbers or categories. "
            "Hint: replace them with NaN for missing."
        )
    counts = Counter({c.item() if isinstance(c, np.generic) else c: n for c, n in counts.items()})
    if len(counts) <= MAX_CATEGORIES:
        return Column(name, tuple(sorted(counts)))
    by_count = sorted(counts, key=lambda c: (-counts[c], c))
    kept, rare = sorted(by_count[: MAX_CATEGORIES - 1]), sorted(by_count[MAX_CATEGORIES - 1 :])
    message = f"Column {name!r} has {len(counts):,} categories; the {len(rare):,} rarest share one bin."
    warn_caller(
        ManyCategoriesWarning(f"{message} Hint: drop the column if it is an identifier, or group its values.", name)
    )
    return Column(name, (*kept, rare[0]), tuple(rare[1:]))
