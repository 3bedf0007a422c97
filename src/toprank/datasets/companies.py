"""The companies of a simulated audit campaign: what an auditor sees before any check.

Owns the column names, the levels of the categorical columns, how values are drawn and which of them are
hidden. Knows nothing about fraud: outcomes are computed from the finished columns in ``pockets``.
"""

from __future__ import annotations

import numpy as np

# Levels with their share among all companies. Their order is part of the simulation: changing it changes
# every data set made with a given seed.
SECTORS = {
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
}
REGIONS = {
    "capital": 0.24,
    "north": 0.14,
    "east": 0.12,
    "south-east": 0.16,
    "south-west": 0.12,
    "west": 0.12,
    "centre": 0.07,
    "islands": 0.03,
}
LEGAL_FORMS = {
    "limited company": 0.52,
    "sole trader": 0.30,
    "partnership": 0.10,
    "public company": 0.03,
    "cooperative": 0.05,
}
ACCOUNTANTS = {"firm": 0.58, "in-house": 0.16, "online platform": 0.12, "no accountant": 0.14}
BANKS = {"national": 0.74, "online": 0.15, "foreign": 0.11}
FILINGS = {"portal": 0.55, "software": 0.35, "paper": 0.10}

LEVELS = {
    "sector": tuple(SECTORS),
    "region": tuple(REGIONS),
    "legal_form": tuple(LEGAL_FORMS),
    "accountant": tuple(ACCOUNTANTS),
    "bank": tuple(BANKS),
    "filing": tuple(FILINGS),
}

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


def draw_companies(rng, progress, price_level):
    """Return the columns of companies without missing values, in the order shown to users.

    Parameters
    ----------
    rng : numpy.random.Generator
    progress : ndarray of shape (n,), float64
        0 in the first year, 1 in the last: online banks and accountants gain customers over time.
    price_level : ndarray of shape (n,), float64
        Factor on every amount in euro.

    Returns
    -------
    columns : dict of str to ndarray of shape (n,)
        float64 for numbers, object (str) for categories.
    """
    n = progress.shape[0]
    normal = rng.standard_normal
    codes = {
        "sector": _draw_codes(rng, SECTORS, n),
        "region": _draw_codes(rng, REGIONS, n),
        "legal_form": _draw_codes(rng, LEGAL_FORMS, n),
        "accountant": _draw_codes(rng, ACCOUNTANTS, n),
        "bank": _draw_codes(rng, BANKS, n),
        "filing": _draw_codes(rng, FILINGS, n),
    }
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

    Parameters
    ----------
    rng : numpy.random.Generator
    columns : dict of str to ndarray of shape (n,)
    missing_rate : float
        Share of missing cells in columns that lose values at random; about the same in the informative ones.

    Returns
    -------
    observed : dict of str to ndarray of shape (n,)
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


def _draw_codes(rng, shares, n):
    """Return level numbers 0, 1, ... drawn with the given shares (which sum to one)."""
    upper = np.cumsum(list(shares.values()))[:-1]
    return np.searchsorted(upper, rng.random(n), side="right")


def _share(logit):
    """Return a share between 0 and 1 from its logit."""
    return 1.0 / (1.0 + np.exp(-logit))
