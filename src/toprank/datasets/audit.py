"""`make_audit`: a simulated audit campaign whose best possible ranking is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from toprank.errors import InputError
from toprank.metrics.checks import check_choice, check_count, is_int
from toprank.words.counts import every, plural

from .frames import BACKENDS, build_frame, is_missing
from .populations import check_number, check_random_state

PRICE_RISE = 0.08  # yearly rise of every amount in euro at drift = 1
STREAM = 20_240_117  # any constant, never changed

# Levels with their share among all companies. Their order is part of the simulation: changing it changes
# every data set made with a given seed.
SHARES = {
    "sector": {
        "construction": 0.15,
        "hospitality": 0.13,
        "import-export": 0.10,
        "retail": 0.16,
        "transport": 0.08,
        "manufacturing": 0.10,
        "it services": 0.09,
        "professional services": 0.11,
        "health": 0.05,
        "agriculture": 0.03,
    },
    "region": {
        "capital": 0.24,
        "north": 0.14,
        "east": 0.12,
        "south-east": 0.16,
        "south-west": 0.12,
        "west": 0.12,
        "centre": 0.07,
        "islands": 0.03,
    },
    "legal_form": {
        "limited company": 0.52,
        "sole trader": 0.30,
        "partnership": 0.10,
        "public company": 0.03,
        "cooperative": 0.05,
    },
    "accountant": {"firm": 0.58, "in-house": 0.16, "online platform": 0.12, "no accountant": 0.14},
    "bank": {"national": 0.74, "online": 0.15, "foreign": 0.11},
    "filing": {"portal": 0.55, "software": 0.35, "paper": 0.10},
}
LEVELS = {name: tuple(shares) for name, shares in SHARES.items()}

# One row per sector: the centre of each quantity on its own scale (log euro, log staff, logit, share).
#                          turnover  staff  payroll  subcontr.  cash  foreign  refund  margin
_BY_SECTOR = np.array(
    [
        [12.9, 1.2, -1.4, -0.4, -2.4, -2.6, -2.2, 0.07],  # construction
        [12.4, 1.3, -0.9, -2.6, -0.3, -2.8, -2.4, 0.06],  # hospitality
        [13.8, 1.1, -2.2, -2.0, -2.6, -0.1, -0.6, 0.05],  # import-export
        [12.7, 1.0, -1.8, -2.6, -0.8, -2.0, -1.9, 0.05],  # retail
        [12.8, 1.3, -1.1, -0.9, -2.6, -1.0, -1.6, 0.05],  # transport
        [13.9, 1.9, -1.2, -1.6, -3.2, -0.8, -1.2, 0.08],  # manufacturing
        [12.5, 0.9, -0.6, -1.0, -4.0, -1.2, -2.0, 0.12],  # it services
        [12.2, 0.8, -0.5, -1.5, -3.6, -2.2, -2.6, 0.14],  # professional services
        [12.3, 1.0, -0.4, -2.8, -2.4, -3.6, -3.0, 0.12],  # health
        [12.3, 0.7, -1.4, -1.8, -2.2, -1.6, -0.9, 0.07],  # agriculture
    ]
)

EDGE_SHARPNESS = 8.0  # slope of the probability of fraud across the edge of a pocket, per unit of depth
CERTAIN = 2.0  # depth of a category that matches; its negative otherwise. The largest depth.
SHIFT_RANGE = 8.0  # how far the edges may move to meet the positive rate


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
    rng = check_random_state(random_state, caller="make_audit", stream=STREAM)
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
    check_count(n_cases, "n_cases", caller="make_audit")
    listed = list(years) if np.iterable(years) and not isinstance(years, str) else []
    if not listed or not all(map(is_int, listed)) or any(a >= b for a, b in pairwise(listed)):
        raise InputError(
            "The 'years' parameter of make_audit must be a non-empty sequence of ascending ints. "
            f"Got {years!r} instead."
        )
    check_number(positive_rate, "positive_rate", "(0.0, 0.5]", caller="make_audit")
    check_number(drift, "drift", "[0.0, 1.0]", caller="make_audit")
    check_number(missing_rate, "missing_rate", "[0.0, 0.5]", caller="make_audit")
    check_number(mimicry, "mimicry", "[0.0, 0.9]", caller="make_audit")
    check_choice(as_frame, "as_frame", BACKENDS, caller="make_audit")


# --- the companies: what an auditor sees before any check; knows nothing about fraud --------------------------


def draw_companies(rng, progress, price_level):
    """Return the columns of companies without missing values, in the order shown to users.

    `progress` is 0 in the first year and 1 in the last: online banks and accountants gain customers over time.
    `price_level` is a factor on every amount in euro.
    """
    n = progress.shape[0]
    normal = rng.standard_normal
    uppers = {name: np.cumsum(list(shares.values()))[:-1] for name, shares in SHARES.items()}
    codes = {name: np.searchsorted(upper, rng.random(n), side="right") for name, upper in uppers.items()}
    moves_online = rng.random(n) < 0.15 * progress
    codes["bank"][moves_online] = LEVELS["bank"].index("online")
    codes["accountant"][moves_online] = LEVELS["accountant"].index("online platform")

    centres = _BY_SECTOR[codes["sector"]].T
    log_turnover, log_staff, payroll, subcontracting, cash, foreign, refund, margin = centres
    size, informal, abroad = normal(n), normal(n), normal(n)  # shared by correlated columns
    age = 9.0 * rng.standard_exponential(n)
    turnover = np.exp(log_turnover + 1.2 * size + 0.3 * np.tanh(age / 10.0)) * price_level
    employees = np.floor(np.exp(log_staff + 0.8 * size + 0.5 * normal(n)))
    cash_share = _share(cash + 0.5 * informal + 1.0 * normal(n))
    terminals = rng.poisson(np.exp(-0.4 + 0.35 * size + 1.6 * _share(cash + 1.0)))
    account_months = np.minimum(36.0 * rng.standard_exponential(n), 12.0 * age)

    numbers = {
        "turnover": np.maximum(np.round(turnover, -2), 1000.0),
        "employees": employees,
        "age_years": np.round(age, 1),
        "margin": np.round(margin + 0.08 * normal(n), 3),
        "charges_ratio": np.round(_share(0.8 - 4.0 * margin + 0.5 * normal(n)), 3),
        "payroll_share": np.round(_share(payroll + 0.2 * size + 0.7 * normal(n)), 3),
        "subcontracting_share": np.round(_share(subcontracting + 1.1 * normal(n)), 3),
        "cash_share": np.round(cash_share, 3),
        "card_terminals": terminals.astype(np.float64),
        "foreign_share": np.round(_share(foreign + 0.8 * abroad + 0.9 * normal(n)), 3),
        "vat_refund_share": np.round(_share(refund + 0.4 * abroad + 1.0 * normal(n)), 3),
        "vat_gap": np.round(0.01 * informal + 0.04 * normal(n), 3),
        "bank_account_months": np.round(account_months),
        "director_mandates": 1.0 + rng.poisson(np.exp(-0.3 + 0.8 * normal(n))),
        "late_filings": rng.poisson(np.exp(-1.0 + 0.6 * informal)).astype(np.float64),
        "address_changes": rng.poisson(0.45, n).astype(np.float64),
    }
    categories = {name: np.array(LEVELS[name], dtype=object)[code] for name, code in codes.items()}
    return categories | numbers


def hide_values(rng, columns, missing_rate):
    """Return the same columns with some values missing (NaN, or None in a category): what a learner sees.

    Six columns lose values at random. In four others missing values are informative: small employers leave out the
    payroll, cash businesses the card terminals, late filers the VAT gap, companies without an accountant the charges.

    `missing_rate` is the share of missing cells in columns that lose values at random; about the same in the others.
    """
    n = columns["turnover"].shape[0]
    chance = {
        "region": 1.0,
        "accountant": 1.0,
        "bank": 1.0,
        "margin": 1.0,
        "foreign_share": 1.0,
        "director_mandates": 1.0,
        "payroll_share": np.where(columns["employees"] < 3.0, 2.0, 0.5),
        "card_terminals": 0.4 + 3.0 * columns["cash_share"],
        "vat_gap": 0.5 + np.minimum(columns["late_filings"], 4.0),
        "charges_ratio": np.where(columns["accountant"] == "no accountant", 3.0, 0.6),
    }
    observed = dict(columns)
    for name, factor in chance.items():
        hidden = rng.random(n) < np.minimum(missing_rate * factor, 0.95)
        values = columns[name].copy()
        values[hidden] = None if name in LEVELS else np.nan
        observed[name] = values
    return observed


def _share(logit):
    """Return a share between 0 and 1 from its logit."""
    return 1.0 / (1.0 + np.exp(-logit))


# --- the pockets: where fraud hides, and its exact probability for every row ---------------------------------
# A pocket is a box: a few conditions that hold together. Its depth says how far inside the box a row is, by its least
# satisfied condition; the probability of fraud rises from 0 to a ceiling across the edge of the box. Every number here
# is a function of the columns as observed, with missing values, so that the result is exactly P(y = 1 | row).


@dataclass(frozen=True)
class Condition:
    """One side of a pocket.

    ``kind`` is "above", "below" (of ``value``), "near" (within ``scale`` of ``value``) or "is" (the category
    ``value``). ``scale`` is the change of the column that counts as one unit of depth, ``if_missing`` the
    depth of a row with a missing value: positive if hiding the value is itself suspicious.
    """

    column: str
    kind: str
    value: float | str
    scale: float = 1.0
    if_missing: float = -0.5

    def depth(self, columns):
        """Return how well each row satisfies the condition: ndarray of shape (n,), positive inside."""
        column = columns[self.column]
        if self.kind == "is":
            inside = np.where(column == self.value, CERTAIN, -CERTAIN)
        else:
            above = (column - self.value) / self.scale
            inside = {"above": above, "below": -above, "near": 1.0 - np.abs(above)}[self.kind]
        return np.where(is_missing(column), self.if_missing, inside)


@dataclass(frozen=True)
class Pocket:
    """A kind of fraud.

    ``trend`` is "fades", "grows" or "stays" over the years; ``stake`` multiplies the amount at stake.
    """

    name: str
    trend: str
    stake: float
    conditions: tuple[Condition, ...]

    def depth(self, columns):
        """Return how far inside the pocket each row is, by its least satisfied condition: shape (n,)."""
        return np.min([condition.depth(columns) for condition in self.conditions], axis=0)

    def strength(self, progress, drift):
        """Return the factor in [0, 1] on the probability of fraud; progress runs from 0 (first year) to 1."""
        lost = {"fades": progress, "grows": 1.0 - progress, "stays": 0.0 * progress}[self.trend]
        return 1.0 - drift * lost


POCKETS = (
    Pocket(
        "undeclared labour",
        "stays",
        1.5,
        (
            Condition("sector", "is", "construction"),
            Condition("age_years", "below", 5.0, scale=3.0),
            Condition("subcontracting_share", "above", 0.40, scale=0.20),
            Condition("payroll_share", "below", 0.18, scale=0.08, if_missing=0.3),
        ),
    ),
    Pocket(
        "false VAT refund",
        "grows",
        4.0,
        (
            Condition("sector", "is", "import-export"),
            Condition("vat_refund_share", "above", 0.34, scale=0.15),
            Condition("bank_account_months", "below", 20.0, scale=12.0),
            Condition("foreign_share", "above", 0.35, scale=0.20),
        ),
    ),
    Pocket(
        "hidden takings",
        "fades",
        0.6,
        (
            Condition("sector", "is", "hospitality"),
            Condition("cash_share", "above", 0.45, scale=0.15),
            Condition("card_terminals", "below", 1.5, scale=1.0, if_missing=0.4),
            Condition("employees", "above", 3.5, scale=2.0),
        ),
    ),
    Pocket(
        "shell company",
        "grows",
        3.0,
        (
            Condition("director_mandates", "above", 3.0, scale=1.0),
            Condition("margin", "near", 0.02, scale=0.05),
            Condition("accountant", "is", "no accountant", if_missing=0.2),
            Condition("legal_form", "is", "limited company"),
        ),
    ),
    Pocket(
        "phoenix company",
        "fades",
        2.0,
        (
            Condition("age_years", "below", 3.5, scale=2.0),
            Condition("address_changes", "above", 1.5, scale=1.0),
            Condition("turnover", "above", 4.0e5, scale=2.0e5),
            Condition("charges_ratio", "above", 0.60, scale=0.06, if_missing=0.3),
        ),
    ),
)


def pocket_depths(columns):
    """Return how far inside each of POCKETS every row is: shape (n_pockets, n), positive inside."""
    return np.clip([pocket.depth(columns) for pocket in POCKETS], -CERTAIN, CERTAIN)


def background_risk(columns):
    """Return the relative probability of fraud that looks normal: mild, with mean one over the rows."""
    vat_gap, late, age = columns["vat_gap"], columns["late_filings"], columns["age_years"]
    vat_gap = np.where(is_missing(vat_gap), 0.05, vat_gap)  # hiding the gap counts as a bad one
    log_risk = 0.25 * np.minimum(late, 4.0) + 5.0 * vat_gap - 0.02 * np.minimum(age, 30.0)
    log_risk += 0.4 * (columns["filing"] == "paper")
    risk = np.exp(log_risk)
    return risk / risk.mean()


def fraud_probability(columns, depths, progress, *, positive_rate, drift, mimicry):
    """Return P(y = 1 | row), with mean ``positive_rate``.

    A share ``mimicry`` of the positives is spread over all companies by ``background_risk``; the others come
    from the pockets, in which a share ``mimicry`` of the companies is honest. The edges of the pockets
    are shifted together, by bisection on the given rows, until the mean is right.
    """
    background = np.minimum(mimicry * positive_rate * background_risk(columns), 0.95)
    strengths = [pocket.strength(progress, drift) for pocket in POCKETS]
    odds_outside = np.exp(-EDGE_SHARPNESS * depths)  # computed once: shifting the edges multiplies it by a constant

    def probability_at(shift):
        factor = np.exp(-EDGE_SHARPNESS * shift)
        honest = np.ones_like(progress)
        for odds, strength in zip(odds_outside, strengths, strict=True):
            honest *= 1.0 - strength / (1.0 + factor * odds)
        return background + (1.0 - background) * (1.0 - mimicry) * (1.0 - honest)

    low, high = -SHIFT_RANGE, SHIFT_RANGE
    for _ in range(30):
        middle = 0.5 * (low + high)
        if probability_at(middle).mean() < positive_rate:
            low = middle
        else:
            high = middle
    return probability_at(0.5 * (low + high))
