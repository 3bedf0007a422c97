"""Where two samples differ: the leaves of a tree, with the share of each sample in them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from toprank.explain import Rule, leaf_rules
from toprank.metrics.comparison import holm
from toprank.rankers.tree_ranker import TreeRanker
from toprank.words.numbers import lift_text, percent_text


@dataclass(frozen=True)
class DriftCell:
    """One leaf of the tree, and the held-out rows of each sample in it.

    Attributes
    ----------
    leaf_rule : Rule
        The leaf as data; its figures are those of the rows that the tree was grown on.
    n_reference, n_new : int
        Held-out rows in the leaf.
    share_reference, share_new : float
        The same as shares of the held-out rows of each sample.
    ratio : float
        share_new / share_reference; infinite if the reference has no row here, NaN if neither has.
    ratio_low, ratio_high : float
        Ends of the interval of the ratio for this cell only.
    p_value : float
        Fisher's exact test, two-sided, for this cell only.
    p_adjusted : float
        The same after Holm's adjustment for the number of leaves.
    """

    leaf_rule: Rule
    n_reference: int
    n_new: int
    share_reference: float
    share_new: float
    ratio: float
    ratio_low: float
    ratio_high: float
    p_value: float
    p_adjusted: float

    @property
    def leaf(self) -> int:
        """Place in the order of the ranker, 1 = where new rows are most frequent."""
        return self.leaf_rule.leaf

    @property
    def rule(self) -> str:
        """The leaf in words."""
        return self.leaf_rule.text()

    @property
    def direction(self) -> str:
        """Words for the direction: "new has more" or "new has fewer"."""
        return "new has more" if self.share_new > self.share_reference else "new has fewer"

    @property
    def figures(self) -> str:
        """Both shares and their ratio, in words."""
        new, reference = percent_text(self.share_new), percent_text(self.share_reference)
        shares = f"{new} of the new rows, {reference} of the reference"
        if np.isnan(self.ratio):
            return shares
        if np.isinf(self.ratio):
            return f"{shares}: at least {lift_text(self.ratio_low)} times"
        return f"{shares}: {lift_text(self.ratio)} times ({lift_text(self.ratio_low)} to {lift_text(self.ratio_high)})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `ways` are lists of conditions, as in `Rule.to_dict`."""
        figures = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "leaf_rule"}
        ways = self.leaf_rule.to_dict()["ways"]
        return {"leaf": self.leaf, "rule": self.rule, "ways": ways} | figures | {"direction": self.direction}


def drift_cells(
    ranker: TreeRanker, leaf: NDArray[np.integer[Any]], is_new: NDArray[np.bool_], *, level: float
) -> list[DriftCell]:
    """All leaves of a tree with their held-out rows, largest differences first.

    The leaves are fixed by the training rows of the tree, so the held-out rows test them fairly; p-values are adjusted
    for the number of leaves. Sorted by the absolute two-sample z-statistic of the shares.

    Parameters
    ----------
    ranker : TreeRanker, fitted
    leaf : int array of shape (n,)
        Leaves of the held-out rows, 0 = the first in the order of the ranker.
    is_new : bool array of shape (n,)
    level : float
        Level of the tests; intervals have the confidence 1 - level.
    """
    new = np.bincount(leaf[is_new], minlength=ranker.tree_.n_leaves)
    reference = np.bincount(leaf[~is_new], minlength=ranker.tree_.n_leaves)
    rules = leaf_rules(ranker.tree_, ranker.columns_, ranker.path_counts_)
    p_value = fisher_p_values(reference, new)
    adjusted = holm(p_value)
    ratio, low, high = share_ratios(reference, new, level)
    order = np.argsort(-np.abs(share_z(reference, new)), kind="stable")
    return [
        DriftCell(
            leaf_rule=rules[i],
            n_reference=int(reference[i]),
            n_new=int(new[i]),
            share_reference=float(reference[i] / reference.sum()),
            share_new=float(new[i] / new.sum()),
            ratio=float(ratio[i]),
            ratio_low=float(low[i]),
            ratio_high=float(high[i]),
            p_value=float(p_value[i]),
            p_adjusted=float(adjusted[i]),
        )
        for i in order
    ]


def share_z(reference: NDArray[np.int64], new: NDArray[np.int64]) -> NDArray[np.float64]:
    """Difference of the shares of new and reference rows in each cell over its pooled standard error."""
    n, m = reference.sum(), new.sum()
    pooled = (reference + new) / (n + m)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    difference = new / m - reference / n
    return np.divide(difference, error, out=np.zeros(len(new)), where=error > 0)


def share_ratios(
    reference: NDArray[np.int64], new: NDArray[np.int64], level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Ratio of the shares in each cell, and the ends of its interval with confidence 1 - level.

    The interval is that of the logarithm of the ratio, with 1/2 added to every count so that it exists for empty cells
    too. It is widened to include the ratio.

    References
    ----------
    S. D. Walter, "The distribution of Levin's measure of attributable risk", Biometrika 62, 1975.

    Examples
    --------
    >>> [ends.round(2).tolist() for ends in share_ratios(np.array([10, 90]), np.array([30, 70]), 0.05)]
    [[3.0, 0.78], [1.52, 0.68], [5.53, 0.9]]
    """
    n, m = int(reference.sum()), int(new.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (new / m) / (reference / n)
    centre = np.log((new + 0.5) / (m + 0.5)) - np.log((reference + 0.5) / (n + 0.5))
    variance = 1 / (new + 0.5) - 1 / (m + 0.5) + 1 / (reference + 0.5) - 1 / (n + 0.5)
    half = NormalDist().inv_cdf(1 - level / 2) * np.sqrt(variance)
    return ratio, np.fmin(np.exp(centre - half), ratio), np.fmax(np.exp(centre + half), ratio)


def fisher_p_values(reference: NDArray[np.int64], new: NDArray[np.int64]) -> NDArray[np.float64]:
    """Fisher's exact test, two-sided, of each cell against all others together."""
    n_new, size = int(new.sum()), reference + new
    return np.array([fisher_by_count(int(s), int(size.sum()), n_new)[k] for s, k in zip(size, new, strict=True)])


def fisher_by_count(size: int, n: int, n_new: int) -> NDArray[np.float64]:
    """p-values of Fisher's test of a cell of `size` among n rows, for 0, 1, 2, ... of the n_new new rows in it.

    Two-sided: the probability of all counts no more likely than the given one. 1 for impossible counts.

    Examples
    --------
    >>> fisher_by_count(2, 5, 2).round(2).tolist()
    [0.4, 1.0, 0.1]
    """
    low, high = max(0, size + n_new - n), min(size, n_new)
    k = np.arange(low, high + 1)
    chance = -gammaln(k + 1) - gammaln(size - k + 1) - gammaln(n_new - k + 1) - gammaln(n - size - n_new + k + 1)
    chance = np.exp(chance - chance.max())
    chance /= chance.sum()
    order = np.sort(chance)
    no_more_likely = np.searchsorted(order, chance * (1 + 1e-7), side="right")  # ties may differ by rounding
    p_value = np.ones(high + 1)
    p_value[low:] = np.minimum(np.cumsum(order)[no_more_likely - 1], 1.0)
    return p_value
