"""The guarantees of MLFP: theorems 2 and 3 of chapter 3, evaluated for a fitted metric.

With kappa from theorem 5 and its proof: the printed theorems 2 and 6 have 12 / mu where the proof gives
6 * 4 ** 2 / mu = 96 / mu (4 (1 - alpha) K^2, the Lipschitz constant of lemma 3, enters squared; in the last lines
of the proof its factor 4 is lost). The larger constant is used; `stated` has the bounds with the printed one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

PROVED, STATED = 96.0, 12.0
"""kappa * mu / ((1 - alpha) K^2)^2, by the proof of theorem 5 and as printed in theorem 2."""


@dataclass(frozen=True)
class MetricBound:
    """Bounds on what a learned metric does to new cases, each true with probability 1 - delta.

    A bound above 1 (`fp_rate`, `fn_rate`) or above `worst` (`risk`) says nothing.

    Attributes
    ----------
    delta : float
    empirical_risk : float
        R_S: mean loss of all m^3 triplets of training cases.
    risk : float
        Theorem 2: bound on the expected loss of a triplet of new cases.
    fp_rate, fn_rate : float
        Theorem 3: bounds on the share of cases that are negative and flagged, or positive and missed, by the nearest
        positive and the nearest negative (k = 1).
    worst : float
        sigma: the largest loss that a triplet can have.
    stability : float
        kappa: replacing one case changes no loss by more than kappa / m.
    radius : float
        K: largest norm of a training point.
    m : float
        Number of training cases.
    applies : bool
        False if a condition of the theorems does not hold; then the figures are not bounds, and `why_not` says why.
    why_not : str
    stated : tuple of float
        risk, fp_rate and fn_rate with the constant that theorem 2 prints, an eighth of the proved one.
    """

    delta: float
    empirical_risk: float
    risk: float
    fp_rate: float
    fn_rate: float
    worst: float
    stability: float
    radius: float
    m: float
    applies: bool
    why_not: str
    stated: tuple[float, float, float]


def evaluate_bound(
    *, delta: float, empirical_risk: float, m: float, alpha: float, mu: float, c: float, radius: float, why_not: str
) -> MetricBound:
    """Return the bounds of theorems 2 and 3 for m training cases with a share alpha of positives.

    `empirical_risk` is R_S, `radius` K, and mu the weight of the penalty where the losses are divided by m^3. Theorem 3
    is for c = 0; a margin 1 - c below 1 bounds the share of mistakes by the loss / (1 - c). `why_not` says which
    condition does not hold; empty if all do.
    """
    worst = (1.0 - alpha) * (1.0 - c + 4.0 * radius**2)

    def rates(constant: float) -> tuple[float, float, float, float]:
        scale = constant * ((1.0 - alpha) * radius**2) ** 2
        kappa = scale / mu if mu > 0.0 else (math.inf if scale else 0.0)

        def slack(n: float) -> float:
            return 2.0 * kappa / n + (2.0 * kappa + 2.0 * worst) * math.sqrt(math.log(2.0 / delta) / (2.0 * n))

        # Theorem 3 has one case more, whose triplets lose at most `worst` each.
        old = (m / (m + 1.0)) ** 3
        risk = old * empirical_risk + (1.0 - old) * worst + slack(m + 1.0)
        scaled = risk / (1.0 - c) if c < 1.0 else math.inf
        return empirical_risk + slack(m), scaled / alpha, scaled / (1.0 - alpha), kappa

    risk, fp_rate, fn_rate, kappa = rates(PROVED)
    return MetricBound(delta, empirical_risk, risk, fp_rate, fn_rate, worst, kappa, radius, m, not why_not, why_not,
                       rates(STATED)[:3])  # fmt: skip
