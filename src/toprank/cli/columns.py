"""Columns of a table: the label, the features to fit on, the columns that a model needs."""

from __future__ import annotations

import math
import shlex
import warnings
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.cli.reading import as_numbers
from toprank.cli.terminal import Terminal
from toprank.data.number_text import NEARLY_ALL, NumberForm, commonest_form, numbers_of
from toprank.errors import InputError
from toprank.metrics.labels import usual_positive
from toprank.tree.columns import NUMBER_FORMS, TEXT_FORMS
from toprank.words.counts import every, plural, row_text
from toprank.words.nearest import column_hint, did_you_mean
from toprank.words.visible import quoted

if TYPE_CHECKING:
    import polars

    from toprank.tree.columns import Column

FEWEST_KEYS = 20
"""A column that identifies persons or companies names at least this many."""

STRAY_SHARE = 0.5
"""A text column with at least this share of numbers was probably meant to be numeric."""

COLUMNS_NAMED = 10
"""Most columns that a note names."""

CELLS_TRIED = 100
"""Cells among which such a note looks for an example."""


def as_labels(model: Any, is_positive: np.ndarray) -> np.ndarray:
    """Return outcomes as the labels of the training."""
    positive = model.positive_index_
    return np.where(is_positive, model.classes_[positive], model.classes_[1 - positive])


def label_values(frame: polars.DataFrame, label: str, file: str) -> np.ndarray:
    """Return the outcomes, none of them missing."""
    if label not in frame.columns:
        raise InputError(
            f"The label column {label!r} is missing from {file} ({plural(frame.width, 'column')} read)."
            + column_hint(label, frame.columns)
        )
    column = frame[label]
    if column.dtype.is_float():
        column = column.fill_nan(None)
    if column.null_count():
        row = int(np.argmax(column.is_null().to_numpy()))
        raise InputError(
            f"The label column {label!r} of {file} must have a value in every row, but {column.null_count():,} of "
            f"{len(column):,} {'is' if column.null_count() == 1 else 'are'} missing, the first in {row_text(row)}. "
            "Hint: drop the cases whose outcome is not known."
        )
    if column.dtype.is_temporal() or column.dtype.is_nested():
        raise InputError(
            f"The label column {label!r} of {file} must hold yes or no, found {kind_in_words(column.dtype)}."
        )
    values = column.to_numpy() if column.dtype.is_numeric() else np.array(column.to_list())
    whole = values.dtype.kind == "f" and bool(((values == np.rint(values)) & (np.abs(values) < 2**53)).all())
    return values.astype(np.int64) if whole else values


def outcomes(values: np.ndarray, label: str, file: str) -> list[Any]:
    """Return both values of a label column, the rarer one last."""
    distinct, counts = np.unique(values, return_counts=True)
    found = distinct[np.argsort(-counts, kind="stable")].tolist()
    where = f"The label column {label!r} of {file} must have two values"
    if len(found) == 1:
        raise InputError(
            f"{where}, but {every(len(values), 'row holds', 'rows hold')} {found[0]!r}. Hint: check that the "
            "file has cases of both kinds."
        )
    by_spelling: dict[str, list[str]] = {}
    for value in found:
        if isinstance(value, str):
            by_spelling.setdefault(" ".join(value.split()).casefold(), []).append(value)
    for alike in by_spelling.values():
        if len(alike) > 1:
            raise InputError(
                f"{where}, but {' and '.join(map(quoted, sorted(alike)))} differ only in spaces or capitals. "
                "Hint: write each outcome in one way."
            )
    if len(found) > 2:
        shown = ", ".join(map(repr, found[:4])) + (" and more" if len(found) > 4 else "")
        raise InputError(
            f"{where}, found {len(found):,}: {shown}. Hint: is it the right column, or should one outcome be marked 1?"
        )
    return found


def choose_positive(found: Sequence[Any], wanted: str | None, label: str, file: str, trained: Any = None) -> Any:
    """Return the positive outcome: from --positive, as in training, or that of a usual pair (1, true, yes)."""
    both = f"{found[0]!r} and {found[1]!r}"
    key = {text_of(value): value for value in found}
    if wanted is not None:
        match = [value for text, value in key.items() if text == text_of(wanted) or str(value) == wanted]
        if not match:
            raise InputError(
                f"--positive is {wanted!r}, but the label column {label!r} of {file} holds {both}."
                + did_you_mean(wanted, map(str, found))
            )
        return match[0]
    if trained is not None and text_of(trained) in key:
        return key[text_of(trained)]
    usual = usual_positive(list(key))
    if usual is None:
        raise InputError(
            f"The label column {label!r} of {file} holds {both}, and it is not clear which one is positive. "
            f"Hint: choose with --positive {shlex.quote(str(found[1]))}."
        )
    return key[usual]


def known_outcomes(frame: polars.DataFrame, label: str, positive: str | None, model: Any, file: str) -> np.ndarray:
    """Return which cases of a table are positive, in the sense of a model, unless `positive` names the outcome."""
    values = label_values(frame, label, file)
    found = outcomes(values, label, file)
    classes, place = model.classes_.tolist(), model.positive_index_
    is_positive = values == choose_positive(found, positive, label, file, trained=classes[place])
    if positive is None:
        check_outcomes(found, (classes[1 - place], classes[place]), label, file)
    return is_positive


def check_outcomes(found: Sequence[Any], trained: tuple[Any, Any], label: str, file: str) -> None:
    """Raise InputError if outcomes neither equal those of the training (positive one last) nor mean the same.

    Known pairs mean the same: yes and no for 1 and 0.
    """
    known = [text_of(value) for value in trained]
    texts = [text_of(value) for value in found]
    strange = [value for value, text in zip(found, texts, strict=True) if text not in known]
    if strange and (usual_positive(texts) is None or usual_positive(known) != known[1]):
        raise InputError(
            f"The label column {label!r} of {file} holds {strange[0]!r}, but the outcomes in training were "
            f"{trained[0]!r} and {trained[1]!r}.{did_you_mean(str(strange[0]), known) or ' Hint: use the same labels.'}"
        )


def text_of(value: Any) -> str:
    """Return an outcome as text, the same for 1, 1.0 and "1"."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return str(int(number)) if number.is_integer() else str(number)


def can_be_feature(dtype: polars.DataType) -> bool:
    """Return whether models can learn from columns of this type: numbers, categories, dates and text."""
    return kind_in_words(dtype) in ("numbers", "text", "dates", "true or false")


def training_features(
    frame: polars.DataFrame, left_out: Sequence[str], file: str, terminal: Terminal, categories: Collection[Any] = ()
) -> polars.DataFrame:
    """Return the feature columns, with notes on those that look like a mistake; `categories` as in `typed_columns`."""
    import polars as pl

    names = [name for name in frame.columns if name not in left_out]
    if not names:
        raise InputError(
            f"{file} has no feature column left: each of its {plural(frame.width, 'column')} is the label, an id "
            "or dropped. Hint: drop fewer columns."
        )
    with terminal.working(f"Reading {file}"):
        features = typed_columns(frame.select(names), file, categories)
    for column in features:
        if column.dtype == pl.String:
            _note_stray_words(column, file, terminal)
        elif column.dtype.is_integer():
            _note_many_values(column, file, terminal)
        elif not can_be_feature(column.dtype):
            raise InputError(
                f"Column {column.name!r} of {file} holds values of type {column.dtype}, expected numbers, categories "
                f"or dates. Hint: leave it out with --drop {shlex.quote(column.name)}."
            )
    check_finite(features, file)
    return features


def typed_columns(features: polars.DataFrame, file: str, categories: Collection[Any] = ()) -> polars.DataFrame:
    """Return a table with the text columns as numbers that only a few words keep from being numbers, with a warning.

    In a text file, 0, 1, 2 and n/a are numbers, as 0, 1 and 2 alone are; in Parquet, text is text. `categories` are the
    names or positions of columns that stay text.
    """
    import polars as pl

    from toprank.data.column_roles import learn_numbers
    from toprank.data.encoding import numbers_among_words
    from toprank.data.table import read_table
    from toprank.tree.columns import Column

    if file.lower().endswith(".parquet"):
        return features
    found = []
    for i, column in enumerate(features):
        if column.dtype != pl.String or column.name in categories or i in categories:
            continue
        table = read_table(column.to_frame())
        if learn_numbers(table.coded(0)) is None and learn_numbers(table.coded(0), may_be_few=True) is not None:
            found.append(pl.Series(column.name, numbers_among_words(table, 0, Column(column.name)), nan_to_null=True))
    return features.with_columns(found)


def _note_many_values(column: polars.Series, file: str, terminal: Terminal) -> None:
    """Add a note on whole numbers that may be ids, but not clearly enough to be left out."""
    from toprank.data.column_roles import names_rows

    name = column.name
    is_unique = len(column) >= 100 and column.null_count() == 0 and column.n_unique() == len(column)
    if is_unique and not names_rows(name, column.to_numpy()):
        terminal.note(
            f"Column {name!r} of {file} has a different value in every row; if it identifies the case, leave it out "
            f"with --id {shlex.quote(name)}.",
            column=name,
        )


def note_constants(model: Any, features: polars.DataFrame, terminal: Terminal) -> None:
    """Add a note if no column that a fitted model learned from varies."""
    names = list(dict.fromkeys(column.input_name for column in model.columns_))
    if any(features[name].n_unique() > 1 for name in names):
        return
    more = f" and {len(names) - COLUMNS_NAMED:,} more" if len(names) > COLUMNS_NAMED else ""
    listed = f"{', '.join(map(repr, names[:COLUMNS_NAMED]))}{more}"
    terminal.note(
        f"No column varies ({listed}), so every case gets the same score and nothing is ranked. Hint: the file needs "
        "columns that differ between cases."
    )


def note_other_dates(model: Any, features: Any, file: str, terminal: Terminal) -> None:
    """Add a note on dates that a model learned from if nearly all of a file are beyond nearly all of the training."""
    import polars as pl

    from toprank.data.encoding import CHECKED_ROWS, encode
    from toprank.data.table import read_table

    if not isinstance(features, pl.DataFrame):
        return
    importances = model._importances()
    for column, importance in zip(model.columns_, importances.tolist(), strict=True):
        usual = column.usual
        if not column.is_date or usual is None or usual.is_one_value or (importances.any() and not importance):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scoring has warned already
            days = encode(read_table(features.select(column.name)), [column])[:, 0]
        days = days[np.isfinite(days)]
        for is_beyond, limit, where in (
            (days > usual.high, usual.high, "later"),
            (days < usual.low, usual.low, "earlier"),
        ):
            n = int(is_beyond.sum())
            if len(days) >= CHECKED_ROWS and n >= NEARLY_ALL * len(days):
                which = f"All {n:,}" if n == len(days) else f"{n:,} of {len(days):,}"
                terminal.note(
                    f"{which} dates of column {column.name!r} of {file} are {where} than {column.date_text(limit)}; in "
                    "training, only 10 % were. What the model learned of dates may not hold for them. "
                    f"Hint: fit without the column: --drop {shlex.quote(column.name)}."
                )


def note_readings(model: Any, features: polars.DataFrame, terminal: Terminal) -> None:
    """Add a note on text columns read as dates or numbers, with an example of a number."""
    read = [column for column in model.columns_ if column.form in TEXT_FORMS and not column.source]
    if read:
        listed = ", ".join(
            f"{column.name!r} ({column.reading_text}{_example_of(column, features[column.name])})"
            for column in read[:COLUMNS_NAMED]
        )
        more = f" and {len(read) - COLUMNS_NAMED:,} more" if len(read) > COLUMNS_NAMED else ""
        terminal.note(f"Read from text: {listed}{more}; --set categorical_features=NAME keeps a column as categories.")


def _example_of(column: Column, texts: polars.Series) -> str:
    """Return how the first number that looks different as text is read, such as ": '0,225' = 0.225"."""
    if column.form not in NUMBER_FORMS:
        return ""
    form = NumberForm.from_column(column)
    for text in texts.drop_nulls().head(CELLS_TRIED).to_list():
        value = numbers_of([text], form)[0]
        if not math.isnan(value) and (number := f"{value:.15g}") != text.strip():
            return f": {text.strip()!r} = {number}"
    return ""


def note_lone_column(model: Any, features: polars.DataFrame, is_positive: np.ndarray, terminal: Terminal) -> None:
    """Add a note if the main column of a fitted model, alone, ranks the cases almost perfectly."""
    from toprank.workflow import check_main_column

    if terminal.quiet and not terminal.as_json:
        return  # nobody would see the note
    with terminal.working("Checking the main column for leakage"):
        column = check_main_column(model, features, as_labels(model, is_positive))
    if column is not None and column.gives_outcome_away:
        terminal.note(
            f"Column {column.name!r} may give the outcome away: on its own it ranks held-out cases with an area under "
            f"the ROC curve of {column.area:.3f}. Such columns are often filled in after the outcome is known. "
            "Hint: if it is not known in time for new cases, leave it out with --drop "
            f"{shlex.quote(column.name)}."
        )


def _note_stray_words(column: polars.Series, file: str, terminal: Terminal) -> None:
    """Add a note on number columns that became categories because too many cells hold words."""
    import polars as pl

    from toprank.data.column_roles import learn_numbers
    from toprank.data.table import read_table

    if learn_numbers(read_table(column.to_frame()).coded(0), may_be_few=True) is not None:
        return
    numbers = as_numbers(column)
    is_word = column.is_not_null() & numbers.is_null()
    n_words, n_values = int(is_word.sum()), len(column) - column.null_count()
    if n_words and n_values - n_words >= STRAY_SHARE * n_values:
        row = int(np.argmax(is_word.to_numpy()))
        word = column.cast(pl.String)[row]
        terminal.note(
            f"Column {column.name!r} of {file} is read as categories because {n_words:,} of {n_values:,} cells "
            f"{'holds' if n_words == 1 else 'hold'} no number, such as {quoted(word)} in {row_text(row)}; leave such "
            "cells empty to get numbers with missing values."
        )


def check_finite(features: polars.DataFrame, file: str) -> None:
    """Raise InputError at the first infinite number."""
    for column in features:
        if column.dtype.is_float() and (is_infinite := column.is_infinite().fill_null(False)).any():
            row = int(np.argmax(is_infinite.to_numpy()))
            raise InputError(
                f"Column {column.name!r} of {file} holds an infinite number, or one beyond 1.8e308, in "
                f"{row_text(row)}, expected finite numbers. Hint: leave the cell empty to mark it missing."
            )


def text_columns(columns: Sequence[Column]) -> list[str]:
    """Names of the columns that a model reads as text: categories, and dates and numbers written as text."""
    return [
        column.input_name
        for column in columns
        if column.form in TEXT_FORMS or (column.categories and isinstance(column.categories[0], str))
    ]


def model_features(frame: polars.DataFrame, model: Any, file: str) -> Any:
    """Return the columns that a model was trained on, in its order and of the right kinds.

    Columns that training left out are included if the file has them.
    """
    features = select_columns(frame, model.columns_, file)
    frame = frame.with_columns(features)
    if not hasattr(model, "feature_names_in_"):
        return frame.select(model._input_names).to_numpy() if model.left_out_ else features.to_numpy()
    return frame.select(name for name in model.feature_names_in_ if name in features.columns or name in frame.columns)


def select_columns(frame: polars.DataFrame, columns: Sequence[Column], file: str) -> polars.DataFrame:
    """Return the columns of the training, in its order; raise InputError if some are missing or of another kind.

    A few words among numbers count as missing, with a warning.
    """
    import polars as pl

    from toprank.rankers.validation import missing_columns_text

    names = list(dict.fromkeys(column.input_name for column in columns))
    present = set(frame.columns)
    missing = [name for name in names if name not in present]
    if missing:
        raise InputError(missing_columns_text(missing, frame.columns, file))
    for column in columns:
        if column.form:
            continue  # dates and text that is converted: the model reads them itself
        values = frame[column.name]
        if not column.is_categorical and not values.dtype.is_numeric():
            frame = frame.with_columns(_numbers_of(values, column, file))
        if column.categories is not None and values.null_count() < len(values):
            trained_text, is_number = isinstance(column.categories[0], str), values.dtype.is_numeric()
            if trained_text and (is_number or values.dtype == pl.Boolean):
                raise InputError(
                    f"Column {column.name!r} held text in training but holds values of type {values.dtype} "
                    f"in {file}. "
                    "Hint: convert it to text before saving."
                )
    features = frame.select(names)
    check_finite(features, file)
    return features


def _numbers_of(values: polars.Series, column: Column, file: str) -> polars.Series:
    """Return the numbers of a column that is not stored as numbers; raise InputError if most of a file are words."""
    import polars as pl

    from toprank.data.encoding import CHECKED_ROWS, numbers_among_words
    from toprank.data.table import read_table

    start = f"Column {values.name!r} held numbers in training but holds"
    if values.dtype in (pl.Categorical, pl.Enum):
        values = values.cast(pl.String)
    if values.dtype != pl.String:
        kind = kind_in_words(values.dtype)
        raise InputError(f"{start} {kind} in {file}. Hint: convert it to numbers before saving.")
    found = numbers_among_words(read_table(values.to_frame()), 0, column, CHECKED_ROWS)
    if found is not None:
        return pl.Series(values.name, found)
    is_text = (values.is_not_null() & as_numbers(values).is_null()).to_numpy()
    texts = values.filter(is_text)
    best = commonest_form(texts.unique().to_list())
    if best is not None and 2 * best[1] > texts.n_unique():
        is_text[is_text] = ~np.isnan(numbers_of(texts.to_list(), best[0]))
        row, form = int(np.argmax(is_text)), best[0].as_written
        raise InputError(
            f"{start} numbers written as {form} in {file}: {values[row]!r} in {row_text(row)}. Hint: write them with a "
            "decimal point and without a unit."
        )
    row = int(np.argmax(is_text))
    raise InputError(
        f"{start} text in {file}: {values[row]!r} in {row_text(row)}. Hint: is it another column? Only a few words "
        "among numbers count as missing."
    )


def find_groups(
    frame: polars.DataFrame, chosen: Sequence[str], ids: Sequence[str], features: Sequence[str], terminal: Terminal
) -> np.ndarray | None:
    """Return who each case belongs to, or None if every case stands alone.

    That is the column `chosen`, or the identifier with the most values among `ids`, if its values repeat; a note says
    so. Another note names a feature that looks like an identifier that repeats.
    """
    from toprank.data.column_roles import is_id_name

    n = frame.height
    n_values = {name: frame[name].drop_nulls().n_unique() for name in (*chosen, *ids)}
    if not chosen and ids:
        most = max(ids, key=lambda name: n_values[name])
        if FEWEST_KEYS <= n_values[most] < n - frame[most].null_count():
            chosen = [most]
            terminal.note(
                f"{most!r} repeats ({plural(n_values[most], 'value')} in {plural(n, 'row')}): rows that share one stay "
                "in the same fold, so that hit rates are for persons or companies not seen in training."
            )
    if chosen:
        return np.array(frame[chosen[0]].to_list(), object)
    for name in features:
        if not is_id_name(name) or frame[name].dtype.is_float():
            continue
        n_keys = frame[name].drop_nulls().n_unique()
        if FEWEST_KEYS <= n_keys <= n / 1.5 and n_keys >= n / 100:
            terminal.note(
                f"{name!r} looks like an identifier that repeats ({plural(n_keys, 'value')} in {plural(n, 'row')}). If "
                f"rows that share one belong together, as the visits of a person do, add --group {shlex.quote(name)}: "
                "hit rates are then for persons not seen in training."
            )
            break
    return None


def kind_in_words(dtype: polars.DataType) -> str:
    """Return what a column of a table holds, in plain words: text, dates, true or false."""
    import polars as pl

    if dtype.is_nested():
        return "lists"
    if dtype.is_temporal():
        return "dates" if dtype in (pl.Date, pl.Datetime) else "times"
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return "text"
    return "true or false" if dtype == pl.Boolean else "numbers" if dtype.is_numeric() else f"values of type {dtype}"
