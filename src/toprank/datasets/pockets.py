"""Where fraud hides in a simulated audit campaign, and its exact probability for every row.

A pocket is a box: a few conditions that hold together. ``depth`` says how far inside the box a row is, by its least
satisfied condition; the probability of fraud rises from 0 to a ceiling across the edge of the box. Every number here is
a function of the columns *as observed*, with missing values, so that the result is exactly P(y = 1 | row).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .frames import is_missing

EDGE_SHARPNESS = 8.0  # slope of the probability of fraud across the edge of a pocket, per unit of depth
CERTAIN = 2.0  # depth of a category that matches; its negative otherwise. The largest depth.
SHIFT_RANGE = 8.0  # how far the edges may move to meet the positive rate


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
        depth = self.conditions[0].depth(columns)
        for condition in self.conditions[1:]:
            np.minimum(depth, condition.depth(columns), out=depth)
        return depth

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
    """Return how far inside each pocket every row is.

    Parameters
    ----------
    columns : dict of str to ndarray of shape (n,)
        The columns as observed.

    Returns
    -------
    depths : ndarray of shape (n_pockets, n), float64
        In the order of ``POCKETS``; positive inside.
    """
    return np.clip([pocket.depth(columns) for pocket in POCKETS], -CERTAIN, CERTAIN)


def background_risk(columns):
    """Return the relative probability of fraud that looks normal: mild, with mean one over the rows.

    Parameters
    ----------
    columns : dict of str to ndarray of shape (n,)

    Returns
    -------
    risk : ndarray of shape (n,), float64
    """
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

    Parameters
    ----------
    columns : dict of str to ndarray of shape (n,)
    depths : ndarray of shape (n_pockets, n)
    progress : ndarray of shape (n,)
        0 in the first year, 1 in the last.
    positive_rate, drift, mimicry : float

    Returns
    -------
    probability : ndarray of shape (n,), float64
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
