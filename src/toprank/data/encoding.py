"""Tables to matrices: the float matrix that trees read, made from a table with the columns learned in training.

Numbers stay numbers; dates become days since 1970-01-01; strings, booleans and category columns become codes; missing
values become NaN. numpy arrays of numbers are not copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from toprank.data.dates import NAMES, ORDERS, days_of_series, days_of_values, part_codes, read_dates
from toprank.data.number_text import NEARLY_ALL, NumberForm, commonest_form, numbers_of
from toprank.data.table import Coded, Table, is_missing, kind_of_value, kind_of_values
from toprank.errors import InputError, InputTypeError, warn_caller
from toprank.tree.columns import NUMBER_FORMS, TEXT_FORMS, Column
from toprank.words.counts import plural
from toprank.words.numbers import value_text
from toprank.words.visible import quoted

CHECKED_ROWS, MOSTLY_MISSING = 10, 0.5
"""Rows from which a column without values is worth a warning, unless this share of its training values was missing."""

SHIFT_FACTOR, SHIFT_ROWS = 10.0, 1_000
"""A column of numbers is worth a warning if nearly all values are outside the usual range, and their median is at least
so many times as large as that range or as small as the usual value; checked on so many rows."""


class ManyCategoriesWarning(UserWarning):
    """A column has more categories than a tree can distinguish; `column` is its name."""

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


class ChangedColumnWarning(UserWarning):
    """A column seems to be written in another format than in training, or most of its cells cannot be read.

    Attributes
    ----------
    column : str
        Its name.
    refusal : str
        The message for a caller who does not score such a table.
    """

    def __init__(self, column: str, fault: str, effect: str, hint: str) -> None:
        super().__init__(column, fault, effect, hint)  # so that it can be pickled, as workers do
        self.column = column
        self.refusal = f"{fault}. Hint: {hint}."

    def __str__(self) -> str:
        _, fault, effect, hint = self.args
        return f"{fault}. {effect} Hint: {hint}."


class UnreadCellsWarning(UserWarning):
    """Cells of a column hold no number or date, and count as missing.

    Attributes
    ----------
    cells : str
        Column, number of cells and an example, for a caller who says it of several columns at once.
    """

    def __init__(self, column: str, what: str, n: int, example: str) -> None:
        super().__init__(column, what, n, example)  # so that it can be pickled, as workers do
        self.cells = f"{column!r} ({n:,}, such as {quoted(example)})"

    def __str__(self) -> str:
        column, what, n, example = self.args
        fault = f"{'holds' if n == 1 else 'hold'} none, such as {quoted(example)}"
        return _unread_text(column, what, n, fault, "fix such cells, or leave them empty")


def _unread_text(column: str, what: str, n: int, fault: str, hint: str) -> str:
    """What is wrong with some cells of a column, in words."""
    return (
        f"Column {column!r} is read as {what}, but {plural(n, 'cell')} {fault}; "
        f"{'it counts' if n == 1 else 'they count'} as missing. Hint: {hint}."
    )


def encode(table: Table, columns: Sequence[Column]) -> np.ndarray:
    """Float matrix of a table: NaN = missing, unseen category, or unreadable cell.

    Columns of the table that no Column uses are ignored. Raises TypeError if a column changed its kind. How a text is
    read never depends on other cells; what the table shows as a whole is a warning: categories unseen in training,
    unreadable cells, dates and numbers in another format or on another scale than in training, and columns that lost
    all their values.
    """
    positions = [table.position[column.input_name] for column in columns]
    plain: list[int] = []
    others: list[int] = []
    for place, column in enumerate(columns):
        is_plain = column.categories is None and column.form == "" and table.is_numeric(positions[place])
        (plain if is_plain else others).append(place)
    if plain and not others:
        matrix = table.block(positions)
        _warn_of_changes(table, positions, columns, matrix)
        return matrix
    matrix = np.empty((len(table), len(columns)), np.float64, order="F")
    table.write_numbers([positions[place] for place in plain], matrix, plain)
    labels = {positions[place]: _text_labels(columns[place]) for place in others}
    found = table.places_among({i: list(codes) for i, codes in labels.items() if codes})
    days: dict[int, np.ndarray] = {}
    for place in others:
        i = positions[place]
        if i in found:
            matrix[:, place] = _at_places(found[i], np.array(list(labels[i].values())))
        else:
            matrix[:, place] = _encode_column(table, i, columns[place], days)
    _warn_of_changes(table, positions, columns, matrix)
    return matrix


def _text_labels(column: Column) -> dict[str, float]:
    """Code of each category of a column of text; empty for other columns."""
    if column.categories is None or column.form:
        return {}
    codes = {label: float(k) for k in range(len(column.categories)) for label in column.labels(k)}
    return codes if all(isinstance(label, str) for label in codes) else {}  # type: ignore[return-value]


def _at_places(places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values at places, which are integers, or floats with NaN for missing."""
    if places.dtype.kind == "f":
        return np.append(values, np.nan)[np.where(np.isnan(places), len(values), places).astype(np.intp)]
    return values[places]


def _warn_of_changes(table: Table, positions: Sequence[int], columns: Sequence[Column], matrix: np.ndarray) -> None:
    """Warn of columns that differ from training in a way that suggests a mistake; a few rows show nothing."""
    if len(table) >= CHECKED_ROWS:
        _warn_of_empty(table, positions, columns, matrix)
        _warn_of_other_scales(columns, matrix)


def _warn_of_other_scales(columns: Sequence[Column], matrix: np.ndarray) -> None:
    """Warn of numbers nearly all outside the usual range, by a factor: a unit or a decimal mark may have changed."""
    sample = matrix[:: max(1, len(matrix) // SHIFT_ROWS)]
    for place, column in enumerate(columns):
        usual = column.usual
        if column.kind != "number" or usual is None or usual.is_one_value:
            continue
        values = sample[:, place]
        values = values[np.isfinite(values)]
        is_outside = (values < usual.low) | (values > usual.high)
        if len(values) < CHECKED_ROWS or is_outside.sum() < NEARLY_ALL * len(values):
            continue
        middle = float(np.median(values))
        is_larger = abs(middle) >= SHIFT_FACTOR * max(abs(usual.low), abs(usual.high))
        if is_larger or abs(usual.value) >= SHIFT_FACTOR * abs(middle):
            warn_caller(
                f"Column {column.name!r} has other values than in training: its median is {value_text(middle)}, in "
                f"training it was {value_text(usual.value)}, and most values were from {value_text(usual.low)} to "
                f"{value_text(usual.high)}. Hint: has its unit or its decimal mark changed?"
            )


def _warn_of_empty(table: Table, positions: Sequence[int], columns: Sequence[Column], matrix: np.ndarray) -> None:
    """Warn of columns without any value that most training cases had; a join may have failed."""
    names: list[str] = []
    for place in np.flatnonzero(np.isnan(matrix[0])).tolist():
        column, i = columns[place], positions[place]
        if not _had_values(column) or column.input_name in names or not np.isnan(matrix[:, place]).all():
            continue
        if table.is_numeric(i) or not any(str(value).strip() for value in table.coded(i).distinct):
            names.append(column.input_name)
    if names:
        listed = f"{', '.join(map(repr, names[:-1]))} and {names[-1]!r}" if len(names) > 1 else repr(names[0])
        warn_caller(
            f"{'Column' if len(names) == 1 else 'Columns'} {listed} {'is' if len(names) == 1 else 'are'} empty in all "
            f"{len(table):,} rows, but had values in training. Hint: was {'it' if len(names) == 1 else 'each of them'} "
            "lost in a join or an export?"
        )


def _had_values(column: Column) -> bool:
    """Whether most training cases are known to have had a value."""
    return column.usual is not None and column.usual.missing < MOSTLY_MISSING


def _encode_column(table: Table, i: int, column: Column, days: dict[int, np.ndarray]) -> np.ndarray:
    """Values of one column; `days` caches dates that are used several times."""
    if column.form in NUMBER_FORMS:
        return _number_text(table, i, column)
    if column.form:
        if i not in days:
            days[i] = _source_days(table, i, column)
        if not column.part:
            return days[i] if column.has_time else np.floor(days[i])
        return _part_of_date(column, days[i])
    if column.categories is None:
        return _numbers(table, i, column)
    coded = table.coded(i)
    _check_same_kind(column, coded.distinct)
    return _category_codes(column, coded)


def _category_codes(column: Column, coded: Coded) -> np.ndarray:
    """Codes of categories; warns of those unseen in training."""
    assert column.categories is not None
    code: dict[Any, float] = {c: float(k) for k in range(len(column.categories)) for c in column.labels(k)}
    found = np.array([code.get(value, math.nan) for value in coded.distinct], np.float64)
    is_unseen = np.isnan(found)
    if is_unseen.any():
        unseen = [value for value, new in zip(coded.distinct, is_unseen.tolist(), strict=True) if new]
        example = min(unseen, key=str)
        like = [known for known in code if _spelling(known) == _spelling(example)]
        remark = f" (it saw {quoted(like[0])}: check spaces and capitals)" if like else ""
        warn_caller(
            f"Column {column.name!r} holds {plural(len(unseen), 'category', 'categories')} in "
            f"{plural(int(coded.counts[is_unseen].sum()), 'row')} that training never saw, such as "
            f"{quoted(example)}{remark}; {'it is' if len(unseen) == 1 else 'they are'} scored like "
            f"{'a missing value' if len(unseen) == 1 else 'missing values'}."
        )
    return coded.mapped(found)


def _spelling(category: Any) -> str:
    """A category without what distinguishes only its spelling: spaces, of any kind, and capitals."""
    return " ".join(str(category).split()).casefold()


def _numbers(table: Table, i: int, column: Column) -> np.ndarray:
    """Numbers of a column not stored as numbers: Python's own, those in text, or all missing."""
    dtype = table.dtype(i)
    is_date = dtype is not None and dtype.is_temporal()
    if not is_date and (not table.coded(i).distinct or kind_of_values(table, i) == "number"):
        return table.coded(i).mapped([_as_float(value, column.name) for value in table.coded(i).distinct])
    if not is_date and _kinds(table, i) == {"strings"}:
        coded = table.coded(i)
        return coded.mapped(_read_text(column, coded, _number_readings(coded), "numbers"))
    raise InputTypeError(
        f"Column {column.name!r} was a number in training but holds {'dates' if is_date else 'categories'} now. "
        "Hint: convert it to numbers."
    )


def numbers_among_words(table: Table, i: int, column: Column, min_cells: int = 0) -> np.ndarray | None:
    """Numbers of a column of text that held numbers in training; None if they should not be read as such.

    As in `fit`, 90 % of the distinct values must be numbers; or 90 % of the cells, as a column may have few distinct
    numbers; and the decimal mark must be a point. Words become NaN, with a warning. Columns with fewer than `min_cells`
    cells are read in any case.
    """
    if _kinds(table, i) != {"strings"}:
        return None
    coded = table.coded(i)
    read, read_other = _number_readings(coded).values()
    values = read()
    if _has_unread(coded, values):
        unread = _Unread.from_readings(coded, values, [read_other()])
        is_known = unread.is_unread | ~np.isnan(values)
        is_text = unread.is_changed or not _are_nearly_all(~np.isnan(values), is_known, coded.counts)
        if is_text and unread.n_cells >= min_cells:
            return None
        _warn_of_unread(column, coded, unread.is_unread, "numbers")
    return coded.mapped(values)


def _number_readings(coded: Coded) -> dict[str, Callable[[], np.ndarray]]:
    """How texts of a column that was a number in training are read: with a decimal point; the other way is a comma."""
    point, comma = (NumberForm(mark, "") for mark in NUMBER_FORMS)
    return {
        f"as {point.form}": lambda: np.array([_number_with_point(text, point) for text in coded.distinct], np.float64),
        f"as {comma.form}": lambda: np.array(numbers_of(coded.distinct, comma), np.float64),
    }


def _are_nearly_all(is_number: np.ndarray, is_known: np.ndarray, counts: np.ndarray) -> bool:
    """True if nearly all of the known distinct values, or of the known cells, are numbers."""
    of_distinct, of_cells = int(is_known.sum()), int(counts[is_known].sum())
    n_cells = int(counts[is_number].sum())
    return bool(is_number.sum() >= NEARLY_ALL * of_distinct or n_cells >= NEARLY_ALL * of_cells) and n_cells > 0


def _number_with_point(text: str, point: NumberForm) -> float:
    """The number in a text as Python writes it, or with groups of thousands; NaN if there is none."""
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return numbers_of([text], point)[0]


def _as_float(value: Any, name: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise InputError(
            f"Column {name!r} holds an integer of {len(str(abs(value))):,} digits, more than a float can hold, "
            "expected numbers up to 1.8e308. Hint: convert the column to text if it holds codes."
        ) from None


def _number_text(table: Table, i: int, column: Column) -> np.ndarray:
    """Numbers of a column that was text in training; also if it is stored as numbers now."""
    if table.is_numeric(i):
        return table.numbers(i)
    dtype = table.dtype(i)
    kinds = {"dates"} if dtype is not None and dtype.is_temporal() else _kinds(table, i)
    if not kinds <= {"strings"} and not kinds <= {"numbers"}:
        raise InputTypeError(
            f"Column {column.name!r} held numbers written as text in training, but holds {' and '.join(sorted(kinds))} "
            "now. Hint: convert the column to the type it was trained with."
        )
    coded = table.coded(i)
    if not kinds <= {"strings"}:
        return _numbers(table, i, column)
    trained = NumberForm.from_column(column)
    forms = [trained, *(NumberForm(mark, trained.unit) for mark in NUMBER_FORMS if mark != trained.form)]
    readings = {_as_form(form): partial(_read_numbers, table, i, form) for form in forms}
    return coded.mapped(_read_text(column, coded, readings, "numbers"))


def _read_numbers(table: Table, i: int, form: NumberForm) -> np.ndarray:
    """Number in each distinct value of a column of text, NaN if it has another form or unit."""
    return table.read_distinct(i, str(form), lambda texts: numbers_of(texts, form))


def _source_days(table: Table, i: int, column: Column) -> np.ndarray:
    """Days since 1970-01-01 of a column that held dates in training; warns of cells without a date."""
    dtype = table.dtype(i)
    if dtype is not None and dtype.is_temporal():
        return days_of_series(table.series(i))
    if table.is_numeric(i) and np.isnan(table.numbers(i)).all():
        return np.full(len(table), np.nan)
    kinds = {"numbers"} if table.is_numeric(i) else _kinds(table, i)
    if not kinds <= {"strings"} and not kinds <= {"dates"}:
        raise InputTypeError(
            f"Column {column.input_name!r} held dates in training, but holds {' and '.join(sorted(kinds))} now. "
            "Hint: convert the column to dates, or to text written as in training."
        )
    if kinds == {"dates"}:
        return np.array(days_of_values(table.cells(i)))
    coded = table.coded(i)
    trained = "ymd" if column.form == "date" else column.form
    forms = (trained, *(form for form in ORDERS if form != trained))
    readings = {ORDERS[form]: partial(read_days, table, i, form) for form in forms}
    return coded.mapped(_read_text(column, coded, readings, "dates"))


def read_days(table: Table, i: int, form: str) -> np.ndarray:
    """Days since 1970-01-01 in each distinct value of a column of text, NaN if it is not a date of that form."""
    return table.read_distinct(i, form, lambda texts: read_dates(texts, form))


def _kinds(table: Table, i: int) -> set[str]:
    return {"strings"} if table.dtype(i) == nw.String else {kind_of_value(value) for value in table.coded(i).distinct}


def _read_text(column: Column, coded: Coded, readings: Mapping[str, Callable[[], np.ndarray]], what: str) -> np.ndarray:
    """Number or date in each distinct cell of a column of text, NaN if there is none.

    `readings` are by format in words; the first is that of the training, and the only one that is used: how a cell is
    read never depends on other cells. Warns of cells that cannot be read, and if they are most or show that the table
    has another format, in which other cells may be misread.
    """
    (trained, read), *others = readings.items()
    values = read()
    if _has_unread(coded, values):
        unread = _Unread.from_readings(coded, values, [read_other() for _, read_other in others])
        if what == "numbers" and not unread.is_other.any():
            unread, others = _in_any_form(coded, values, unread) or (unread, others)
        is_suspect = unread.is_changed or (_had_values(column) and unread.are_most)
        if is_suspect and unread.n_cells >= CHECKED_ROWS:
            fitting = " or ".join(others[place][0] for place in unread.fitting)
            _warn_of_change(column, coded, unread, f"{what} written {trained}", fitting)
        else:
            _warn_of_unread(column, coded, unread.is_unread, what, unread.is_other, trained)
    return values


def _has_unread(coded: Coded, values: np.ndarray) -> bool:
    """Whether a text that is not blank has no value."""
    return any(coded.distinct[place].strip() for place in np.flatnonzero(np.isnan(values)).tolist())


class _Unread(NamedTuple):
    """Distinct texts that cannot be read as in training, and what they show of the column as a whole.

    Attributes
    ----------
    is_unread : bool array of shape (n_distinct,)
    is_other : bool array of shape (n_distinct,)
        Those of them that can be read in another format.
    fitting : list of int
        Other formats, by position, that the whole column fits, apart from texts that no format can read.
    is_changed : bool
        Whether the column seems to be written in another format, in which cells mean something else, or too many of its
        cells are. One cell shows it if the whole column fits another format, in which some cells mean something else.
    are_most : bool
        Whether most cells, and most distinct ones, are unread.
    n_cells : int
        Cells of the column that are not blank.
    """

    is_unread: np.ndarray
    is_other: np.ndarray
    fitting: list[int]
    is_changed: bool
    are_most: bool
    n_cells: int

    @classmethod
    def from_readings(cls, coded: Coded, values: np.ndarray, others: Sequence[np.ndarray]) -> _Unread:
        """What the values read in training's format, and those in others, show."""
        is_read, is_known = ~np.isnan(values), np.array([bool(text.strip()) for text in coded.distinct], bool)
        is_unread = is_known & ~is_read
        is_other = is_unread & ~np.isnan(others).all(axis=0)
        fitting = [place for place, each in enumerate(others) if not np.isnan(each[is_read | is_other]).any()]
        differing = [place for place, each in enumerate(others) if (is_read & ~np.isnan(each) & (each != values)).any()]
        is_much = not _are_nearly_all(is_read, is_read | is_other, coded.counts)
        is_changed = bool(set(differing) & set(fitting)) or (is_much and bool(fitting or differing))
        n_cells, n_unread = int(coded.counts[is_known].sum()), int(coded.counts[is_unread].sum())
        are_most = 2 * n_unread > n_cells and 2 * int(is_unread.sum()) > int(is_known.sum())
        return cls(is_unread, is_other, fitting, bool(is_other.any()) and is_changed, are_most, n_cells)


def _in_any_form(
    coded: Coded, values: np.ndarray, unread: _Unread
) -> tuple[_Unread, list[tuple[str, Callable[[], np.ndarray]]]] | None:
    """The same with the unread numbers of another unit, or without one, marked as such, and their format; or None.

    Without the unit they would mean something else, but no cell that is read would: the column is not `is_changed`.
    """
    best = commonest_form([coded.distinct[place] for place in np.flatnonzero(unread.is_unread).tolist()])
    if best is None:
        return None
    found = np.array(numbers_of(coded.distinct, best[0]), np.float64)
    in_form = _Unread.from_readings(coded, values, [found])._replace(is_changed=unread.is_changed)
    return in_form, [(_as_form(best[0]), lambda: found)]


def _as_form(form: NumberForm) -> str:
    """A format of numbers in words: as 1,234.56 EUR."""
    return f"as {form.as_written}"


def _commonest(coded: Coded, among: np.ndarray) -> str:
    """The most frequent of some distinct texts; ties go to the first in the alphabet."""
    counts = coded.counts
    return str(coded.distinct[min(np.flatnonzero(among), key=lambda k: (-counts[k], coded.distinct[k]))])


def _warn_of_change(column: Column, coded: Coded, unread: _Unread, written: str, fitting: str) -> None:
    """Warn of a column that seems to have another format, in words, or most of whose cells cannot be read."""
    if column.form in TEXT_FORMS:
        trained, wanted, hint = f"held {written}", "so", "write them as in training"
    else:
        kind, stored = ("of a date type", "dates") if column.form else ("a number", "numbers")
        trained, wanted = f"was {kind}", f"as {written}"
        hint = f"convert the column to {stored}, or use {written}"
    n_unread = int(coded.counts[unread.is_unread].sum())
    shown, why = unread.is_unread, ""
    if unread.is_other.any():
        shown = unread.is_other
        why = f"; the whole column can be read {fitting}" if fitting else "; no single format fits the column"
    warn_caller(
        ChangedColumnWarning(
            column.input_name,
            f"Column {column.input_name!r} {trained} in training, but {n_unread:,} of {plural(unread.n_cells, 'cell')} "
            f"cannot be read {wanted}, such as {quoted(_commonest(coded, shown))}{why}",
            f"Such cells count as missing{', and others may be misread' if unread.is_changed else ''}.",
            hint,
        )
    )


def _warn_of_unread(
    column: Column,
    coded: Coded,
    is_unread: np.ndarray,
    what: str,
    is_other: np.ndarray | None = None,
    trained: str = "",
) -> None:
    """Warn of texts that hold no number or date, or hold it in another format than in training."""
    n = int(coded.counts[is_unread].sum())
    if is_other is None or not is_other.any():
        warn_caller(UnreadCellsWarning(column.input_name, what, n, _commonest(coded, is_unread)))
        return
    hint = f"write them {'as in training' if column.form in TEXT_FORMS else trained}"
    fault = f"{'is' if n == 1 else 'are'} not written {trained}, such as {quoted(_commonest(coded, is_other))}"
    warn_caller(_unread_text(column.input_name, what, n, fault, hint))


def _part_of_date(column: Column, days: np.ndarray) -> np.ndarray:
    """Codes of months or weekdays."""
    assert column.categories is not None
    names = NAMES[column.part]
    codes = part_codes(days, column.part)
    known = codes[np.isfinite(codes)].astype(np.int64)
    coded = Coded(np.where(np.isfinite(codes), codes, -1).astype(np.int64), list(names))
    seen = np.bincount(known, minlength=len(names)) > 0
    if not all(name in column.categories for name, is_here in zip(names, seen.tolist(), strict=True) if is_here):
        return _category_codes(column, _only(coded, seen))
    place = {name: float(k) for k, name in enumerate(column.categories)}
    return coded.mapped([place.get(str(name), math.nan) for name in names])


def _only(coded: Coded, seen: np.ndarray) -> Coded:
    """Values without those that do not occur."""
    place = np.append(np.cumsum(seen) - 1, -1)
    return Coded(place[coded.codes], [value for value, is_here in zip(coded.distinct, seen, strict=True) if is_here])


def _check_same_kind(column: Column, values: Iterable[Any]) -> None:
    """Raise TypeError if strings became numbers or vice versa."""
    assert column.categories is not None
    trained = {kind_of_value(c) for c in column.categories}
    now = {kind_of_value(v) for v in values}
    if trained and now - trained and not (trained | now) <= {"numbers", "booleans"}:
        raise InputTypeError(
            f"Column {column.name!r} held categories that are {' and '.join(sorted(trained))} in training, but holds "
            f"{' and '.join(sorted(now))} now. Hint: convert the column to the type it was trained with."
        )


def original_values(X: Any, names: Sequence[str], rows: np.ndarray | None = None) -> Callable[[str], list[Any] | None]:
    """Look up the values of a column of X by its name, as the caller gave them; optionally for some rows, in order.

    `names` are those of the training table: a table that has none of them is read by position. Missing values are None.
    Columns are read on request. None for a column that X does not have because it was derived while reading.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    is_frame = isinstance(frame, nw.DataFrame)
    own = [str(name) for name in frame.columns] if is_frame else list(names)
    known = list(names) if len(own) == len(names) and not set(own) & set(names) else own

    def values(name: str) -> list[Any] | None:
        if name not in known:
            return None
        if is_frame:
            column = frame[:, known.index(name)]
            given = (column if rows is None else column[rows.tolist()]).to_list()
        else:
            array = np.asarray(X, dtype=None if isinstance(X, np.ndarray) else object)
            given = array[slice(None) if rows is None else rows, known.index(name)].tolist()
        return [None if is_missing(value) else value for value in given]

    return values
