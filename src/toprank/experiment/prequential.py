"""`PrequentialSplit`: train on the past, test on what came next, as often as the data allow.

A splitter for scikit-learn's `cross_validate` and searches. It decides which rows are trained and tested on; `timeline`
reads times and lengths, and the measures are in `toprank.metrics`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator

from toprank.errors import InputError
from toprank.experiment.timeline import Length, Timeline, read_length, read_times
from toprank.metrics.checks import check_count
from toprank.metrics.groups import encode_identifiers
from toprank.rankers.validation import check_classes, check_labels, distinct_labels

_CALLER = "PrequentialSplit"
_MAX_FOLDS = 100_000


class Window(NamedTuple):
    """When a fold trains and tests, as returned by `PrequentialSplit.windows`; ends are not included."""

    train_start: Any
    train_end: Any
    test_start: Any
    test_end: Any
    n_train: int
    n_test: int


@dataclass(frozen=True)
class _Fold:
    """A fold as positions among the rows in order of time."""

    start: Fraction  # t, the start of the test window
    train: slice
    test: slice
    n_known: int  # number of first rows whose labels are known at t


@dataclass(frozen=True)
class _Rows:
    """The rows in order of time; arrays have the shape (n,)."""

    timeline: Timeline
    labels: NDArray[Any] | None  # for leaving out folds with one class
    first_caught: NDArray[np.intp] | None  # position of the first positive row of each row's entity; n if none

    def tested(self, fold: _Fold) -> NDArray[np.intp]:
        """Return the positions of the test rows."""
        places = np.arange(fold.test.start, fold.test.stop)
        return places if self.first_caught is None else places[self.first_caught[fold.test] >= fold.n_known]


class PrequentialSplit(BaseCrossValidator):
    """Folds in time: train on the past, leave a gap, test on what follows, move on.

        |<---------- train ---------->|<-- gap -->|<-- test -->|
        t - gap - train               t - gap     t            t + test
        --- step --->|<---------- train ---------->|<-- gap -->|<-- test -->|    the next fold

    Training rows have a time in [t - gap - train, t - gap), test rows in [t, t + test). The last test window ends with
    the data: t + test is the first moment after the last time (a day later if all times are whole days apart, the next
    number if they are whole numbers). Earlier folds are `step` apart, as far back as a whole training window fits; with
    "all", as long as there is a row to train on. Rows with the same time are never split.

    Gap and delay differ. Nothing in the **gap** is used: it is the time to train, approve and install a model, or to
    enter cases into the system. It moves the training window back and keeps its length. With a **label delay** the
    cases are there, but their labels are known only later, after the check or the complaint: rows with ``time +
    label_delay > t`` are left out of the training window, which does not move and becomes shorter. Labels that arrive
    after d are never used too early with either ``label_delay=d`` or ``gap=d``.

    Parameters
    ----------
    train : length of time or "all"
        A number if the times are numbers; if they are dates, a numpy.timedelta64, a datetime.timedelta or a string
        such as "180d" or "26w" (w, d, h, min, s). "all" trains on everything before the gap: the window grows.
    gap : length of time
        0 is no gap.
    test : length of time
    step : length of time, default=None
        From one fold to the next; None means `test`, so that every row is tested at most once.
    n_splits : int, default=None
        Number of folds, the last ones; None means all.
    times : str or array-like of shape (n,)
        The name of a column of X, which must then be a data frame, or one time per row: numbers or dates, in any order.
        Dates with a time zone are compared in UTC. For windows that start at midnight, pass days without the hours.
    label_delay : length of time, default=None
        How long after its time the label of a row becomes known; None means at once.
    drop_caught : bool, default=False
        Leave out test rows of entities (`groups`) that have been caught: one of their rows before t is positive and its
        label is known, ``time + label_delay <= t``. Needs y and groups.
    skip_one_class : bool, default=False
        Leave out folds with only one class in the training or test rows, with a warning that gives their number. Needs
        y. A week without a positive is then not counted at all, which makes precision optimistic; the scorers of
        `toprank.experiment.column_scorers` count it as 0 and do not need both classes in the test rows.
    pos_label : default=None
        The positive label, for `drop_caught`; by default that of a usual pair, such as yes of yes/no, else the larger.

    Notes
    -----
    Windows without training or test rows are skipped. Groups are used only with `drop_caught`.

    References
    ----------
    A. P. Dawid, "Statistical theory: the prequential approach", Journal of the Royal Statistical Society A 147, 1984.
    A. Dal Pozzolo, G. Boracchi, O. Caelen, C. Alippi, G. Bontempi, "Credit card fraud detection: a realistic
    modeling and a novel learning strategy", IEEE Transactions on Neural Networks and Learning Systems 29(8), 2018.

    Examples
    --------
    >>> year = [2020, 2020, 2021, 2022, 2023, 2023, 2024]
    >>> for train, test in PrequentialSplit(train=2, gap=0, test=1, times=year).split():
    ...     print(train, test)
    [0 1 2] [3]
    [2 3] [4 5]
    [3 4 5] [6]

    Labels known two years later:

    >>> for train, test in PrequentialSplit("all", 0, 1, times=year, label_delay=2).split():
    ...     print(train, test)
    [0 1] [3]
    [0 1 2] [4 5]
    [0 1 2 3] [6]
    """

    # scikit-learn's way to say that `groups` are routed to this splitter when metadata routing is on.
    __metadata_request__split = {"groups": True}

    def __init__(
        self,
        train: Any,
        gap: Any,
        test: Any,
        *,
        step: Any = None,
        n_splits: int | None = None,
        times: Any = None,
        label_delay: Any = None,
        drop_caught: bool = False,
        skip_one_class: bool = False,
        pos_label: Any = None,
    ) -> None:
        self.train = train
        self.gap = gap
        self.test = test
        self.step = step
        self.n_splits = n_splits
        self.times = times
        self.label_delay = label_delay
        self.drop_caught = drop_caught
        self.skip_one_class = skip_one_class
        self.pos_label = pos_label
        self._lengths()
        if n_splits is not None:
            check_count(n_splits, "n_splits", caller=_CALLER)

    def __repr__(self) -> str:
        shown = [repr(getattr(self, name)) for name in ("train", "gap", "test")]
        if self.times is not None:
            shown.append(f"times={self.times!r}" if isinstance(self.times, str) else "times=[...]")
        for name in ("step", "n_splits", "label_delay", "drop_caught", "skip_one_class", "pos_label"):
            value = getattr(self, name)
            if value is not None and value is not False:
                shown.append(f"{name}={value!r}")
        return f"{_CALLER}({', '.join(shown)})"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds, for the same arguments as `split`; unused ones may be None."""
        rows = self._rows(X, y, groups)
        return len(self._folds(rows)[0])

    def split(
        self, X: Any = None, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Pairs of positions of training and test rows, ascending; the earliest fold first.

        Parameters
        ----------
        X : array-like or data frame with n rows
            May be None if `times` is an array.
        y : array-like of shape (n,), optional
            Labels, for `drop_caught` and `skip_one_class`.
        groups : array-like of shape (n,), optional
            The entity of each row, for `drop_caught`.
        """
        rows = self._rows(X, y, groups)
        folds, n_skipped = self._folds(rows)
        if n_skipped:
            warnings.warn(
                f"{_CALLER} left out {n_skipped} of {n_skipped + len(folds)} folds, which have only one class in the "
                "training or test rows. Hint: longer windows have more positives.",
                stacklevel=2,
            )
        order = rows.timeline.order
        return ((np.sort(order[fold.train]), np.sort(order[rows.tested(fold)])) for fold in folds)

    def windows(self, X: Any = None, y: Any = None, groups: Any = None) -> list[Window]:
        """When each fold of `split` trains and tests, and on how many rows, to show beside its scores.

        Parameters are those of `split`.

        Examples
        --------
        >>> year = [2021, 2022, 2023, 2024]
        >>> PrequentialSplit(2, 0, 1, times=year, n_splits=1).windows()
        [Window(train_start=2022, train_end=2024, test_start=2024, test_end=2025, n_train=2, n_test=1)]
        """
        rows = self._rows(X, y, groups)
        timeline = rows.timeline
        train, gap, test = self._measured(timeline)[:3]
        found = []
        for fold in self._folds(rows)[0]:
            end = fold.start - gap
            first = timeline.start if train is None else end - train
            window = Window(
                train_start=timeline.moment(first),
                train_end=timeline.moment(end),
                test_start=timeline.moment(fold.start),
                test_end=timeline.moment(fold.start + test),
                n_train=fold.train.stop - fold.train.start,
                n_test=len(rows.tested(fold)),
            )
            found.append(window)
        return found

    def _lengths(self) -> dict[str, Length | None]:
        """Return the windows as lengths by name; None means "all" for train, and the default for the others."""
        lengths: dict[str, Length | None] = {}
        for name in ("train", "gap", "test", "step", "label_delay"):
            given, may_be_zero = getattr(self, name), name in ("gap", "label_delay")
            is_default = isinstance(given, str) and given == "all" if name == "train" else given is None
            if is_default and name not in ("gap", "test"):
                lengths[name] = None
            else:
                lengths[name] = read_length(given, name, may_be_zero=may_be_zero, caller=_CALLER)
        return lengths

    def _measured(self, timeline: Timeline) -> tuple[Fraction | None, Fraction, Fraction, Fraction, Fraction]:
        """Return train, gap, test, step and delay in the unit of the times; None for train means everything."""
        measured = {
            name: None if length is None else timeline.measure(length, name, caller=_CALLER)
            for name, length in self._lengths().items()
        }
        for name in ("test", "step"):
            length = measured[name]
            if length is not None and length < timeline.tick:
                raise InputError(
                    f"The '{name}' parameter of {_CALLER} must be at least {timeline.say(timeline.tick)}, as the times "
                    f"have no finer parts. Got {getattr(self, name)!r} instead."
                )
        test, zero = measured["test"] or Fraction(), Fraction()
        gap, delay = measured["gap"] or zero, measured["label_delay"] or zero
        return measured["train"], gap, test, measured["step"] or test, delay

    def _rows(self, X: Any, y: Any, groups: Any) -> _Rows:
        timeline = read_times(self.times, X, caller=_CALLER)
        order = timeline.order
        labels = first_caught = None
        if self.drop_caught or self.skip_one_class:
            option = "drop_caught" if self.drop_caught else "skip_one_class"
            labels = check_labels(self._needed(y, "y", option), len(order), f"{_CALLER}.split")[order]
        if self.drop_caught and labels is not None:
            groups = self._needed(groups, "groups", "drop_caught")
            codes, distinct = encode_identifiers(groups, "groups", len(order), caller=f"{_CALLER}.split")
            if self.pos_label is not None and len(distinct_labels(labels)) == 1:
                positive = self.pos_label
            else:
                classes, position = check_classes(labels, self.pos_label, f"{_CALLER}.split")
                positive = classes[position]
            places = np.flatnonzero(labels == positive)
            first = np.full(len(distinct), len(order))
            np.minimum.at(first, codes[order][places], places)
            first_caught = first[codes[order]]
        return _Rows(timeline, labels if self.skip_one_class else None, first_caught)

    @staticmethod
    def _needed(values: Any, name: str, option: str) -> Any:
        if values is None:
            raise InputError(
                f"{_CALLER} with {option}=True needs {name}, but {name} is None. Hint: pass split(X, y, groups), or "
                f"cross_validate(..., groups=...)."
            )
        return values

    def _folds(self, rows: _Rows) -> tuple[list[_Fold], int]:
        """Return the folds, the earliest first, and how many were left out because they have one class."""
        folds: list[_Fold] = []
        n_skipped = 0
        for fold in self._all_folds(rows.timeline):
            if fold.train.start >= fold.train.stop or not len(rows.tested(fold)):
                continue
            sides = () if rows.labels is None else (rows.labels[fold.train], rows.labels[rows.tested(fold)])
            if any(bool((side == side[0]).all()) for side in sides):
                n_skipped += 1
                continue
            folds.append(fold)
            if len(folds) == self.n_splits:
                break
        if not folds:
            what = "both classes in train and test" if n_skipped else "rows to train and to test on"
            hint = "use longer windows" if self.label_delay is None else "use longer windows or a shorter label_delay"
            raise InputError(f"{_CALLER} needs a fold with {what}, but found none. Hint: {hint}.")
        return folds[::-1], n_skipped

    def _all_folds(self, timeline: Timeline) -> Iterator[_Fold]:
        """Yield the folds, the latest first."""
        train, gap, test, step, delay = self._measured(timeline)
        spare = timeline.end - timeline.start - (train or timeline.tick) - gap - test
        if spare < 0:
            raise InputError(
                f"The windows of {_CALLER}, train {self.train!r}, gap {self.gap!r} and test {self.test!r}, need more "
                f"time than the {timeline.say(timeline.end - timeline.start)} of the data. Hint: use shorter windows."
            )
        n_folds = spare // step + 1
        if n_folds > _MAX_FOLDS:
            raise InputError(
                f"The windows of {_CALLER} would give {n_folds:,} folds, one every {timeline.say(step)}. Hint: check "
                "that the windows are in the unit of the times, or use a longer step."
            )
        for fold in range(n_folds):
            start = timeline.end - test - fold * step
            before_test = timeline.count_before(start)
            n_known = min(before_test, timeline.count_through(start - delay))
            first = 0 if train is None else timeline.count_before(start - gap - train)
            last = min(n_known, timeline.count_before(start - gap))
            yield _Fold(start, slice(first, last), slice(before_test, timeline.count_before(start + test)), n_known)
