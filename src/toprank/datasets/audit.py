"""`make_audit`: a simulated audit campaign whose best possible ranking is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from toprank.errors import InputError
from toprank.words.counts import every, plural

from .companies import LEVELS, draw_companies, hide_values
from .frames import BACKENDS, build_frame
from .pockets import POCKETS, fraud_probability, pocket_depths

PRICE_RISE = 0.08  # yearly rise of every amount in euro at drift = 1

STREAM = 20_240_117  # any constant, never changed


@dataclass(frozen=True, eq=False, repr=False)
class AuditData:
    """Cases of an audit campaign, as made by `make_audit`.

    Attributes
    ----------
    columns : dict of str to ndarray of shape (n,)
        The features as a learner sees them: float64 with NaN for missing, or object arrays of str with None.
    y : ndarray of shape (n,), int8
        1 = fraud found.
    amount : ndarray of shape (n,), float64
        Euro at stake. Not a feature. Given the columns it is independent of y, so adding it to the features
        changes nothing in ``probability``.
    year : ndarray of shape (n,), int64
        Not a feature; ascending.
    probability : ndarray of shape (n,), float64
        The true P(y = 1 | columns, year).
    case_id : ndarray of shape (n,), int64
        1, 2, ... in the order of `make_audit`.
    as_frame : {"pandas", "polars", "pyarrow"}
        Type of `X`, and the default of `frame`.
    """

    columns: dict[str, np.ndarray]
    y: np.ndarray
    amount: np.ndarray
    year: np.ndarray
    probability: np.ndarray
    case_id: np.ndarray
    as_frame: str = "pandas"

    def __len__(self) -> int:
        return self.y.shape[0]

    def __repr__(self) -> str:
        years = np.unique(self.year).tolist()
        return (
            f"<AuditData: {plural(len(self), 'case')}, {plural(len(self.columns), 'feature')}, "
            f"{int(self.y.sum()):,} positive, {'year' if len(years) == 1 else 'years'} {', '.join(map(str, years))}>"
        )

    @property
    def X(self) -> Any:
        """The features as a data frame of the kind `as_frame` names, rebuilt on each access."""
        return build_frame(self.columns, self.as_frame, owner="AuditData.X")

    @property
    def categorical_features(self) -> list[str]:
        """Names of the categorical columns."""
        return [name for name in self.columns if name in LEVELS]

    def frame(self, backend: str | None = None) -> Any:
        """Return the table in the form of a case file: case_id, year, features, amount and, last, y as label.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default=None
            Defaults to the ``as_frame`` given to `make_audit`.

        Returns
        -------
        frame : pandas.DataFrame, polars.DataFrame or pyarrow.Table
            Without ``probability``, which case files do not have.
        """
        before = {"case_id": self.case_id, "year": self.year}
        after = {"amount": self.amount, "label": self.y}
        backend = self.as_frame if backend is None else backend
        return build_frame(before | self.columns | after, backend, owner="AuditData.frame")

    def take(self, rows: Any) -> AuditData:
        """Return the cases picked by an index array, a boolean mask or a slice, as `AuditData`."""
        vectors = ("y", "amount", "year", "probability", "case_id")
        return replace(
            self,
            columns={name: values[rows] for name, values in self.columns.items()},
            **{name: getattr(self, name)[rows] for name in vectors},
        )

    def split(self, test_year: int | None = None) -> tuple[AuditData, AuditData]:
        """Return the cases before a year and those of that year.

        Later cases, unknown at the time, are left out.

        Parameters
        ----------
        test_year : int, default=None
            Defaults to the last year.

        Returns
        -------
        train, test : AuditData
        """
        years = np.unique(self.year).tolist()
        if len(years) < 2:
            found = every(len(self), "case is", "cases are")
            raise InputError(f"AuditData.split needs at least two years, but {found} of {years}.")
        test_year = years[-1] if test_year is None else test_year
        if test_year not in years[1:]:
            raise InputError(
                f"The 'test_year' parameter of AuditData.split must be one of {years[1:]}, "
                f"the years that have earlier cases to learn from. Got {test_year!r} instead."
            )
        return self.take(self.year < test_year), self.take(self.year == test_year)


def make_audit(
    n_cases: int = 20_000,
    *,
    years: Sequence[int] = (2022, 2023, 2024),
    positive_rate: float = 0.02,
    drift: float = 0.5,
    missing_rate: float = 0.05,
    mimicry: float = 0.2,
    random_state: int | np.random.Generator | None = 0,
    as_frame: str = "pandas",
) -> AuditData:
    """Simulate an audit campaign: companies, the outcome of their audit, and its true probability.

    Fraud hides in five pockets, each an interaction of a few columns: young construction companies with much
    subcontracting and little payroll; importers with VAT refunds, foreign customers and a new bank account;
    restaurants with staff and cash but hardly a card terminal; directors of many companies with a margin near
    zero and no accountant; young companies with turnover, high charges and changing addresses. Some
    fraudsters look normal, and some honest companies are in the pockets. Values are missing, some of them
    because there is something to hide.

    The features, missing values included, are drawn first; ``probability`` is computed only from them and the year, and
    y is drawn with it. So it is exactly what the best learner could know, and `optimal_average_precision` and
    `optimal_roc` are limits that a model can exceed only by luck.

    Parameters
    ----------
    n_cases : int, default=20_000
        Number of companies, spread evenly over the years.
    years : sequence of int, default=(2022, 2023, 2024)
        Ascending.
    positive_rate : float in (0, 0.5], default=0.02
        Mean of ``probability``; the share of positives varies around it by chance.
    drift : float in [0, 1], default=0.5
        How much changes from the first year to the last. At 1, two pockets fade to nothing, two grow from
        nothing, and prices rise by 8 % per year; at 0 nothing changes except a slow move to online banks and
        accountants.
    missing_rate : float in [0, 0.5], default=0.05
        Share of missing cells, in the ten columns with missing values.
    mimicry : float in [0, 0.9], default=0.2
        Share of the positives that look normal, and of the companies inside a pocket that are honest.
    random_state : int, numpy.random.Generator or None, default=0
        The same int gives the same data.
    as_frame : {"pandas", "polars", "pyarrow"}, default="pandas"
        Type of the frames; the package is imported only when a frame is needed.

    Returns
    -------
    data : AuditData
        ``X`` (the features, as a frame), ``y`` (1 = fraud found), ``amount`` (euro at stake), ``year``, ``case_id`` and
        ``probability``; ``split()`` separates the last year from those before it, ``frame()`` is the table in the form
        of a file.

    Examples
    --------
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(1_000, random_state=0)
    >>> train, test = data.split(2024)
    >>> len(train), len(test), len(data.columns)
    (667, 333, 22)
    >>> data.columns["sector"][:2].tolist()
    ['import-export', 'retail']
    """
    _check_parameters(n_cases, years, positive_rate, drift, missing_rate, mimicry, as_frame)
    rng = _check_random_state(random_state)
    calendar = np.array(list(years), dtype=np.int64)
    year_index = np.arange(n_cases) * calendar.size // n_cases
    drift = drift if calendar.size > 1 else 0.0
    progress = np.linspace(0.0, 1.0, calendar.size)[year_index]
    price_level = (1.0 + PRICE_RISE * drift) ** (calendar - calendar[0])[year_index].astype(np.float64)

    complete = draw_companies(rng, progress, price_level)
    columns = hide_values(rng, complete, missing_rate)
    depths = pocket_depths(columns)
    probability = fraud_probability(
        columns, depths, progress, positive_rate=positive_rate, drift=drift, mimicry=mimicry
    )
    return AuditData(
        columns=columns,
        y=(rng.random(n_cases) < probability).astype(np.int8),
        amount=_draw_amount(rng, complete["turnover"], depths),
        year=calendar[year_index],
        probability=probability,
        case_id=np.arange(1, n_cases + 1, dtype=np.int64),
        as_frame=as_frame,
    )


def _draw_amount(rng: np.random.Generator, turnover: np.ndarray, depths: np.ndarray) -> np.ndarray:
    """Euro at stake: a heavy-tailed share of the turnover, larger in the pockets where fraud pays more."""
    stakes = np.array([pocket.stake for pocket in POCKETS])
    factor = np.where(depths > 0.0, stakes[:, None], 0.0).max(axis=0)
    factor[factor == 0.0] = 1.0
    # The stake grows more slowly than the company: a large one cannot hide a tenth of its turnover.
    amount = 0.9 * factor * turnover**0.75 * np.exp(0.9 * rng.standard_normal(turnover.size))
    return np.maximum(np.round(amount, -1), 100.0)


def _check_parameters(
    n_cases: Any, years: Any, positive_rate: Any, drift: Any, missing_rate: Any, mimicry: Any, as_frame: Any
) -> None:
    """Raise ValueError, naming the parameter, if one is out of range."""
    if not _is_int(n_cases) or n_cases < 1:
        raise _bad_parameter("n_cases", "an int in the range [1, inf)", n_cases)
    listed = list(years) if np.iterable(years) and not isinstance(years, str) else []
    whole = all(map(_is_int, listed))
    if not listed or not whole or any(a >= b for a, b in pairwise(listed)):
        raise _bad_parameter("years", "a non-empty sequence of ascending ints", years)
    shares = {
        "positive_rate": (positive_rate, 0.5),
        "drift": (drift, 1.0),
        "missing_rate": (missing_rate, 0.5),
        "mimicry": (mimicry, 0.9),
    }
    for name, (value, largest) in shares.items():
        above_zero = name == "positive_rate"
        is_number = _is_int(value) or isinstance(value, (float, np.floating))
        if not is_number or not 0.0 <= value <= largest or (above_zero and value == 0.0):
            bracket = "(" if above_zero else "["
            raise _bad_parameter(name, f"a float in the range {bracket}0.0, {largest}]", value)
    if as_frame not in BACKENDS:
        raise _bad_parameter("as_frame", "one of " + ", ".join(map(repr, BACKENDS)), as_frame)


def _check_random_state(random_state: Any) -> np.random.Generator:
    """Return a Generator seeded by ``random_state``, or ``random_state`` itself if it is one."""
    if _is_int(random_state) and random_state >= 0:
        # A stream of its own, so that default_rng(0) in a caller's split does not replay our draws.
        return np.random.default_rng([int(random_state), STREAM])
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    raise _bad_parameter("random_state", "an int in the range [0, inf), a numpy.random.Generator or None", random_state)


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _bad_parameter(name: str, expected: str, found: Any) -> ValueError:
    return InputError(f"The {name!r} parameter of make_audit must be {expected}. Got {found!r} instead.")
