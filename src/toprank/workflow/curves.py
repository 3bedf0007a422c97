"""The points of a cost-optimal curve as a table, and its chosen point, in plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from toprank.words.plain import plain

if TYPE_CHECKING:
    from toprank.metrics import OperatingPoints
    from toprank.rankers.curve.cost_curve import CostOptimalCurve
    from toprank.rankers.curve.path import ThresholdMove
    from toprank.rankers.curve.selection import Selection


@dataclass(frozen=True)
class Counts:
    """The alerts of a point; found and false alarms add up to them."""

    alerts: float
    found: float
    false_alarms: float


@dataclass(frozen=True)
class CurveRow:
    """One point of a curve.

    Attributes
    ----------
    point : int
        Position in `path_`.
    cost_ratio : float
        Cost of a false alarm if a missed positive costs 1.
    leaves : int
    counts : Counts
        On the cases used for choosing: held-out cases if there are any.
    recall, false_positive_rate : float
    precision : float or None
        None if there are no alerts.
    training : Counts
        Of the training cases.
    moved : ThresholdMove or None
        How a tree between two costs is derived from another one.
    is_dominated : bool
        On the training cases.
    held_out_is_dominated : bool or None
        On the held-out cases.
    """

    point: int
    cost_ratio: float
    leaves: int
    counts: Counts
    recall: float
    false_positive_rate: float
    precision: float | None
    training: Counts
    moved: ThresholdMove | None
    is_dominated: bool
    held_out_is_dominated: bool | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with alerts, found and false alarms at the top level."""
        out: dict[str, Any] = {}
        for name, value in asdict(self).items():
            out |= value if name == "counts" else {name: value}
        return out | {"moved": None if self.moved is None else self.moved._asdict()}


@dataclass(frozen=True)
class CurveTable:
    """The trees of a curve, from many alerts to few.

    Attributes
    ----------
    judged_by : str
        The cases behind the figures: "validation data", "cross-validation" or "training data".
    n_cases, n_positives : float
        Weight of those cases.
    hull_area : float
        Area under the hull of the curve; 0.5 = no better than chance.
    base_point : int
        The point at which both classes have the same weight.
    rows : tuple of CurveRow
    chosen : dict or None
        The chosen point with its intervals.
    """

    judged_by: str
    n_cases: float
    n_positives: float
    hull_area: float
    base_point: int
    rows: tuple[CurveRow, ...]
    chosen: dict[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        out = vars(self) | {"points": [row.to_dict() for row in self.rows]}
        return {name: out[name] for name in ("judged_by", "n_cases", "n_positives", "hull_area", "base_point", "points",
                                             "chosen")}  # fmt: skip


def curve_table(curve: CostOptimalCurve) -> CurveTable:
    """The points of a fitted curve as a table.

    Examples
    --------
    >>> from toprank import CostOptimalCurve
    >>> from toprank.datasets import make_audit
    >>> from toprank.workflow import curve_table
    >>> data = make_audit(400, positive_rate=0.2, random_state=0)
    >>> curve = CostOptimalCurve(depths=[1], alphas=[1.0], cv=0, random_state=0).fit(data.X, data.y)
    >>> table = curve_table(curve)
    >>> table.judged_by, len(table.rows) == len(curve.path_)
    ('training data', True)
    >>> row = table.rows[0]
    >>> row.counts.alerts == row.counts.found + row.counts.false_alarms
    True
    """
    points = curve.judged_points_
    found = [_counts(points, i) for i in range(len(curve.path_))]
    rows = tuple(
        CurveRow(
            point=i,
            cost_ratio=point.cost_ratio,
            leaves=point.tree.n_leaves_,
            counts=counts,
            recall=float(points.true_positive_rate[i]),
            false_positive_rate=float(points.false_positive_rate[i]),
            precision=counts.found / counts.alerts if counts.alerts > 0 else None,
            training=_counts(curve.points_, i),
            moved=point.moved,
            is_dominated=point.is_dominated,
            held_out_is_dominated=point.held_out_is_dominated,
        )
        for i, (point, counts) in enumerate(zip(curve.path_, found, strict=True))
    )
    return CurveTable(
        judged_by=curve.held_out_by_,
        n_cases=float(points.positives + points.negatives),
        n_positives=float(points.positives),
        hull_area=points.hull_area,
        base_point=curve.base_point_,
        rows=rows,
        chosen=choice_dict(curve.selected_),
    )


def _counts(points: OperatingPoints, i: int) -> Counts:
    false_alarms, found = float(points.false_positives[i]), points.positives - float(points.false_negatives[i])
    return Counts(found + false_alarms, found, false_alarms)


def choice_dict(selection: Selection | None) -> dict[str, Any] | None:
    """A choice as plain values; None for no choice."""
    if selection is None:
        return None
    names = ("false_positive_rate", "recall", "precision", "alerts", "cost")
    figures = {name: getattr(selection, name) for name in names}
    return {
        "point": selection.position,
        "target": selection.target,
        "judged_by": selection.judged_by,
        "cost_ratio": selection.point.cost_ratio,
        "moved": None if selection.point.moved is None else selection.point.moved._asdict(),
        "leaves": selection.tree.n_leaves_,
        "cut": None if selection.cut is None else plain(asdict(selection.cut)),
    } | {name: {"value": each.value, "low": each.low, "high": each.high} for name, each in figures.items()}
