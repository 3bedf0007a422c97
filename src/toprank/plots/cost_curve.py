"""`CostOptimalCurveDisplay`: classifiers for several costs as points, their hull, and ROC curves beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputError, InputTypeError
from toprank.metrics.checks import is_int
from toprank.metrics.operating_points import OperatingPoints
from toprank.metrics.roc import RocCurve, roc_curve
from toprank.plots.display import Display
from toprank.plots.inputs import check_dictionary, check_objects
from toprank.plots.lines import check_naming, write_axis_labels
from toprank.plots.operating_points import (
    SIDE,
    add_legend,
    alerts_of_rates,
    check_limits,
    draw_points,
    draw_ring,
    label_ratios,
    make_room_below,
    prepare_alerts,
    prepare_zoom,
    signs,
)
from toprank.plots.roc import RATES, axes_row, draw_curve, prepare_rates
from toprank.plots.style import (
    INK,
    TEXT_SIZE,
    MethodStyle,
    complete_styles,
    house_style,
    percent,
    settle_layout,
    short_names,
    write_title,
)
from toprank.tree.structure import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROC_LINE = (0, (1.3, 1.3))  # different from the lines that join points
TRAINING, TEST = "training cases", "test cases"
CURVE, BASE = "cost-optimal curve", "ROC of the base tree"
WITH_RATIOS = ("auto", "direct")  # label modes that write cost ratios beside points
IN_TRAINING, IN_TEST = "training", "test"
WORDS_OF = {"cross-validation": "out of fold"}
"""Names of points by their data, where they differ from the name of the data."""
X_AXES = ("false_positive_rate", "alerts")
RATIOS_NOTE = "Small figures: cost of a false alarm in misses"


@dataclass(frozen=True, eq=False, repr=False)
class CostOptimalCurveDisplay(Display):
    """Classifiers in the plane of their two error rates: points, their hulls, and ROC curves.

    A point is one classifier, a ROC curve one score with a moving threshold. Points dominated by another one of their
    set are hollow; the others are joined. The hull, reached by choosing at random between classifiers, is a thin dashed
    line.

    Parameters
    ----------
    points : dict of str to OperatingPoints
        By method.
    curves : dict of str to RocCurve, optional
        ROC curves of the same cases, by method.
    test_points, test_curves : dicts, optional
        The same for new cases: drawn in a panel of their own.
    selected : dict of str to int, optional
        Position of the chosen point, by method.
    title : str, optional
        Replaces the title; "" leaves it out.
    sources : dict of str to str, optional
        A short name of the cases behind `points` and `curves`, by method, for the legend: "training", "out of fold".
    cuts : dict of str to pair of float, optional
        False and true positive rate of a selection that takes only the first alerts of its point, by method.

    References
    ----------
    Gabidolla, Zharmagambetov, Carreira-Perpiñán. Beyond the ROC curve: classification trees using cost-optimal curves,
    with application to imbalanced datasets. ICML 2024. Figures 1, 2 and 4.

    Examples
    --------
    >>> from toprank.metrics import OperatingPoints
    >>> trees = OperatingPoints([0.1, 0.5, 2.0], [4, 1, 0], [0, 1, 3], positives=4, negatives=10)
    >>> display = CostOptimalCurveDisplay.from_points({"trees": trees}, {"score": trees.hull()})
    >>> display
    <CostOptimalCurveDisplay of 2 methods: trees, score>
    >>> [text.get_text() for text in display.plot().ax_.get_legend().get_texts()]
    ['hull 0.913  trees', 'AUC 0.913  score', 'hull of the points']
    """

    points: Mapping[str, OperatingPoints]
    curves: Mapping[str, RocCurve] | None = None
    test_points: Mapping[str, OperatingPoints] | None = None
    test_curves: Mapping[str, RocCurve] | None = None
    selected: Mapping[str, int] | None = None
    title: str | None = None
    sources: Mapping[str, str] | None = None
    cuts: Mapping[str, tuple[float, float]] | None = None

    def __post_init__(self) -> None:
        caller = type(self).__name__
        checked: dict[str, Any] = {}
        for name in ("points", "test_points", "curves", "test_curves"):
            kind = OperatingPoints if name.endswith("points") else RocCurve
            given = getattr(self, name)
            checked[name] = {} if given is None else check_objects(given, kind, name, caller=caller)
        for points, curves in (("points", "curves"), ("test_points", "test_curves")):
            twice = [name for name in checked[points] if name in checked[curves]]
            if twice:
                raise InputError(
                    f"{caller} has both points and a ROC curve named {twice[0]!r}. Hint: use different names."
                )
        hint = " Hint: to draw only ROC curves, use RocDisplay."
        check_dictionary(checked["points"], "points", "OperatingPoints for every method", caller=caller, hint=hint)
        check_selected(self.selected or {}, checked["points"], checked["test_points"], caller)
        self._set(**checked, selected=dict(self.selected or {}), sources=dict(self.sources or {}),
                  cuts=dict(self.cuts or {}))  # fmt: skip

    @classmethod
    def from_points(
        cls,
        points: Mapping[str, OperatingPoints],
        curves: Mapping[str, RocCurve] | None = None,
        *,
        test_points: Mapping[str, OperatingPoints] | None = None,
        test_curves: Mapping[str, RocCurve] | None = None,
        selected: Mapping[str, int] | None = None,
        title: str | None = None,
    ) -> CostOptimalCurveDisplay:
        """Display of given points and curves; parameters as in the class."""
        return cls(points, curves, test_points, test_curves, selected, title)

    @classmethod
    def from_curve(
        cls,
        curve: Any,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        others: Mapping[str, Any] | None = None,
        title: str | None = None,
    ) -> CostOptimalCurveDisplay:
        """Display of a fitted `CostOptimalCurve`: training cases, and test cases if given.

        It shows the points on the training cases and out of fold, out of bag or on the validation data, the ROC curve
        of the base tree (leaves by their rate, as in the paper; a forest has none), and the selected point, if any.

        Parameters
        ----------
        curve : CostOptimalCurve or CostOptimalForest
        X, y : optional
            Test cases.
        sample_weight : array-like of shape (n,), optional
            Weights of the test cases.
        others : dict, optional
            Further models, by name: OperatingPoints or a RocCurve of the test cases (of the training cases if there are
            none), or models to evaluate on the test cases, with `points(X, y)`, such as another curve, or with scores,
            such as any ranker or classifier.
        title : str, optional

        Examples
        --------
        >>> from toprank import CostOptimalCurve
        >>> from toprank.datasets import make_audit
        >>> train, test = make_audit(1500, random_state=0).split()
        >>> curve = CostOptimalCurve(depths=[1], alphas=[3], cv=0).fit(train.X, train.y)
        >>> display = CostOptimalCurveDisplay.from_curve(curve, test.X, test.y)
        >>> display.methods, sorted(set(display.columns()["sample"]))
        (['cost-optimal curve', 'ROC of the base tree'], ['test cases', 'training cases'])
        """
        caller = f"{cls.__name__}.from_curve"
        check_test_cases(curve, X, y, caller)
        positive = curve.classes_[curve.positive_index_]
        tree = curve.path_[curve.base_point_].tree
        seen: dict[str, Any] = {CURVE: with_costs(curve, curve.points_)}
        sources = {CURVE: IN_TRAINING}
        if curve.held_out_points_ is not None:
            words = WORDS_OF.get(curve.held_out_by_, curve.held_out_by_)
            seen[f"{CURVE}, {words}"] = with_costs(curve, curve.held_out_points_)
            sources[f"{CURVE}, {words}"] = words
        chosen = curve.selected_
        selected = {} if chosen is None else dict.fromkeys(seen, chosen.position)
        cuts: dict[str, tuple[float, float]] = {}
        if chosen is not None and chosen.cut is not None:  # known for the cases it was evaluated on
            name = list(seen)[-1]
            selected = {name: chosen.position}
            cuts = {name: (chosen.false_positive_rate.value, chosen.recall.value)}
        fresh: dict[str, Any] = {} if X is None else {CURVE: with_costs(curve, curve.points(X, y, sample_weight))}
        if hasattr(tree, "tree_"):  # a bag of trees has no leaves to order
            seen[BASE], sources[BASE] = roc_of_leaves(tree.tree_), IN_TRAINING
            if X is not None:
                score = -tree.tree_.leaf[tree.apply(X)]
                fresh[BASE] = roc_curve(y, score, sample_weight=sample_weight, pos_label=positive)
        for name in others or {}:
            if str(name) in {**seen, **fresh}:
                raise InputError(
                    f"'others' of {caller} has a model named {name!r}, which is the name of a line of the curve "
                    "itself. Hint: give it another name."
                )
        target = seen if X is None else fresh
        for name, model in (others or {}).items():
            target[str(name)] = judged(model, str(name), X, y, sample_weight, positive, caller)
        (points, curves), (test_points, test_curves) = _separated(seen), _separated(fresh)
        return cls(points, curves, test_points, test_curves, selected, title, sources, cuts)

    @property
    def methods(self) -> list[str]:
        """Names of the methods: points first, then ROC curves, in the order given."""
        parts = (self.points, self.test_points, self.curves, self.test_curves)
        return list(dict.fromkeys(name for part in parts for name in part or {}))

    def _panels(self) -> dict[str, tuple[Mapping[str, OperatingPoints], Mapping[str, RocCurve]]]:
        """Points and curves by sample, with test cases if there are any."""
        panels: dict[str, Any] = {TRAINING: (self.points, self.curves)}
        if self.test_points or self.test_curves:
            panels[TEST] = (self.test_points, self.test_curves)
        return panels

    def columns(self) -> dict[str, Any]:
        """The data, one row per point and knot.

        Columns sample, method, kind ("point", "hull" or "curve"), cost_ratio (NaN except for points), alpha, beta,
        is_dominated and is_selected.
        """
        rows = list(self._rows())
        texts = [row[:3] for row in rows for _ in row[3]]
        arrays = [np.concatenate(parts) for parts in zip(*(row[3:] for row in rows), strict=True)]
        names = ("alpha", "beta", "cost_ratio", "is_dominated", "is_selected")
        columns: dict[str, Any] = {
            name: [text[place] for text in texts] for place, name in enumerate(("sample", "method", "kind"))
        }
        return columns | dict(zip(names, arrays, strict=True))

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        """Sample, method and kind of everything drawn, with its arrays."""
        for sample, (points, curves) in self._panels().items():
            for name, what in points.items():
                is_selected = np.arange(len(what)) == (self.selected or {}).get(name, -1)
                rates = what.false_positive_rate, what.true_positive_rate
                yield sample, name, "point", *rates, what.cost_ratio, what.is_dominated, is_selected
            lines = [(name, "hull", what.hull()) for name, what in points.items()]
            for name, kind, line in [*lines, *((name, "curve", curve) for name, curve in curves.items())]:
                no, unknown = np.zeros(len(line.alpha), bool), np.full(len(line.alpha), np.nan)
                yield sample, name, kind, line.alpha, line.beta, unknown, no, no

    def plot(
        self,
        ax: Any = None,
        *,
        styles: Mapping[str, MethodStyle] | None = None,
        labels: str = "auto",
        x: str = "false_positive_rate",
        xlim: tuple[float, float] | None = None,
    ) -> CostOptimalCurveDisplay:
        """Draw the points with their hulls, and the ROC curves; training and test cases side by side.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or pair of them, optional
            A pair if there are test cases. By default the display makes its own figure, `figure_`; `ax_` is the
            axes, or the pair.
        styles : dict of str to MethodStyle, optional
            From `method_styles`, so that a method looks the same in all plots.
        labels : {"auto", "direct", "legend", "none"}
            All but "none" write a legend with the areas; "auto" and "direct" also the cost ratio of a few points of the
            first method, where there is room.
        x : {"false_positive_rate", "alerts"}
            What the x-axis shows: the share of the negatives flagged, or the number of cases flagged, which a budget
            limits.
        xlim : pair of float, optional
            False positive rates to show, such as (0, 0.1), or numbers of alerts, such as (0, 500).

        Examples
        --------
        >>> from toprank.metrics import OperatingPoints
        >>> trees = OperatingPoints([0.1, 0.5, 2.0], [4, 1, 0], [0, 1, 3], positives=4, negatives=10)
        >>> display = CostOptimalCurveDisplay.from_points({"trees": trees}).plot(x="alerts")
        >>> display.ax_.get_xlabel().splitlines()[0]
        'Alerts among 14 cases'
        """
        caller = type(self).__name__
        check_naming(labels, caller=f"{caller}.plot")
        if x not in X_AXES:
            raise InputError(f"The 'x' parameter of {caller}.plot must be one of {X_AXES}. Got {x!r} instead.")
        limits = check_limits(xlim, f"{caller}.plot", highest=np.inf if x == "alerts" else 1.0)
        panels, chosen = self._panels(), complete_styles(self.methods, styles)
        with house_style(f"{caller}.plot"):
            n, size = len(panels), (len(panels) * SIDE + (0.4 if len(panels) == 1 else -0.2), SIDE + 0.4)
            wanted = "a pair of axes, for training and test cases" if n == 2 else "one axes"
            axes = axes_row(ax, n, size, wanted, "figure.subplots(1, 2) makes a pair", caller)
            shapes: list[Any] = []
            for each, (sample, (points, curves)) in zip(axes, panels.items(), strict=True):
                shapes.append(self._prepare(each, points, x, limits))
                handles = self._draw_panel(each, points, curves, chosen, shapes[-1])
                if len(panels) > 1:
                    each.set_title(sample, loc="left", fontsize=TEXT_SIZE, color=INK)
                if labels != "none":
                    known = self.sources or {}
                    sources = known if sample == TRAINING else dict.fromkeys(known, IN_TEST)
                    entries = self._entries(handles, points, curves, sources, x, is_alone=len(panels) == 1)
                    add_legend(each, entries, is_own=ax is None, is_zoomed=limits is not None)
            if ax is None or n == 1:
                write_title(axes[0], "Cost-optimal curve" if self.title is None else self.title, is_own=ax is None)
            firsts = [list(points.items())[:1] for points, _ in panels.values()] if labels in WITH_RATIOS else []
            labelled = [
                (each, first, (self.selected or {}).get(name), shape)
                for each, some, shape in zip(axes, firsts, shapes, strict=False)
                for name, first in some if np.isfinite(first.cost_ratio).any()
            ]  # fmt: skip
            for each, (points, _) in zip(axes, panels.values(), strict=True):
                write_axis_labels(each, *_axis_titles(x, points), RATIOS_NOTE if labelled else "")
            for each in axes[1:]:
                each.set_ylabel("")
            if ax is None:
                make_room_below(axes[0].figure.figure)
            settle_layout(axes[0].figure.figure)
            for each, first, position, shape in labelled:
                label_ratios(each, first, position, shape)
        self._keep(axes[0])
        self._set(ax_=axes[0] if len(axes) == 1 else tuple(axes))
        return self

    def _prepare(
        self, ax: Axes, points: Mapping[str, OperatingPoints], x: str, limits: tuple[float, float] | None
    ) -> Any:
        """Set up the axes of a panel; return the transform from rates, in %, to positions."""
        if x == "alerts":
            panel = list((points or self.points).values())
            prepare_alerts(ax, panel, limits)
            return alerts_of_rates(ax, panel[0])
        if limits is None:
            prepare_rates(ax)
        else:
            prepare_zoom(ax, limits)
        return ax.transData

    def _draw_panel(
        self,
        ax: Axes,
        points: Mapping[str, OperatingPoints],
        curves: Mapping[str, RocCurve],
        styles: Mapping[str, MethodStyle],
        transform: Any,
    ) -> dict[str, Any]:
        """Draw one panel; return the handle of every method, and those of selected points by name."""
        handles: dict[str, Any] = {}
        for position, (name, curve) in enumerate(curves.items()):
            look: dict[str, Any] = {"color": styles[name].colour, "zorder": 2.6 - position / 100, "linewidth": 2.0}
            look |= {"linestyle": ROC_LINE, "gid": f"method: {name}", "transform": transform}
            handles[name] = draw_curve(ax, curve, **look)
        for position, (name, what) in enumerate(points.items()):
            handles[name] = draw_points(ax, what, styles[name], name, 3 - position / 100, transform)
        for name in self.selected or {}:
            if name in points:
                place = self._selected_place(points[name], name)
                handles[f"selected: {name}"] = draw_ring(ax, place, styles[name], name, transform)
        return handles

    def _selected_place(self, points: OperatingPoints, name: str) -> tuple[float, float]:
        """False and true positive rate of the selection."""
        position = (self.selected or {})[name]
        rates = float(points.false_positive_rate[position]), float(points.true_positive_rate[position])
        return (self.cuts or {}).get(name, rates)

    def _entries(
        self,
        handles: Mapping[str, Any],
        points: Mapping[str, OperatingPoints],
        curves: Mapping[str, RocCurve],
        sources: Mapping[str, str],
        x: str,
        *,
        is_alone: bool,
    ) -> list[tuple[Any, str]]:
        """Handles and texts of a legend: names and areas in the order given, the selection, then how to read them.

        A single panel has no title, so its names say which training cases they show.
        """
        short = short_names([*points, *curves])
        for name, source in sources.items():
            if is_alone and name in short and source == IN_TRAINING:
                short[name] += f", {source}"
        entries = [(handles[name], f"hull {what.hull_area:.3f}  {short[name]}") for name, what in points.items()]
        entries += [(handles[name], f"AUC {what.area:.3f}  {short[name]}") for name, what in curves.items()]
        for name, what in points.items():
            if f"selected: {name}" in handles:
                text = _selected_in_words(self._selected_place(what, name), what, sources.get(name, ""), x)
                entries.append((handles[f"selected: {name}"], text))
        return entries + list(signs(points))


def _separated(mixed: Mapping[str, Any]) -> tuple[dict[str, OperatingPoints], dict[str, RocCurve]]:
    """Points and ROC curves, separated."""
    points = {name: what for name, what in mixed.items() if isinstance(what, OperatingPoints)}
    return points, {name: what for name, what in mixed.items() if name not in points}


def _selected_in_words(place: tuple[float, float], points: OperatingPoints, source: str, x: str) -> str:
    alarms, found = place
    where = f", {source}" if source else ""
    if x == "alerts":
        alerts = alarms * points.negatives + found * points.positives
        return f"selected{where}: {alerts:,.0f} alerts, {percent(found)} found"
    return f"selected{where}: {percent(found)} found, {percent(alarms)} false alarms"


def _axis_titles(x: str, points: Mapping[str, OperatingPoints]) -> tuple[str, str]:
    if x != "alerts":
        return RATES
    first = next(iter(points.values()), None)
    among = "" if first is None else f" among {first.positives + first.negatives:,.0f} cases"
    return f"Alerts{among}", "Positives found (%)"


def check_selected(
    selected: Any, points: Mapping[str, OperatingPoints], test_points: Mapping[str, OperatingPoints], caller: str
) -> None:
    """Raise unless the selected points belong to the given methods."""
    if not isinstance(selected, Mapping):
        raise InputTypeError(
            f"'selected' of {caller} must be a dictionary of positions. Got {type(selected).__name__} instead."
        )
    for name, position in selected.items():
        sizes = [len(part[name]) for part in (points, test_points) if name in part]
        if not sizes:
            raise InputError(
                f"'selected' of {caller} names {name!r}, which is not one of the methods with points. "
                f"Hint: they are {', '.join({**points, **test_points})}."
            )
        if not is_int(position) or not 0 <= position < min(sizes):
            raise InputError(
                f"'selected[{name!r}]' of {caller} must be a position from 0 to {min(sizes) - 1}. Got {position!r} "
                "instead."
            )


def check_test_cases(curve: Any, X: Any, y: Any, caller: str) -> None:
    """Raise unless `curve` is a fitted cost-optimal curve and the test cases have outcomes."""
    if not hasattr(curve, "path_") or not hasattr(curve, "points_"):
        raise InputTypeError(
            f"{caller} needs a fitted CostOptimalCurve. Got {type(curve).__name__} instead. "
            "Hint: call fit first; from_points draws any other points."
        )
    if (X is None) != (y is None):
        given, lacking = ("X", "y") if y is None else ("y", "X")
        raise InputError(f"{caller} got {given} but no {lacking}. Hint: pass both, or neither.")


def with_costs(curve: Any, points: OperatingPoints) -> OperatingPoints:
    """The points of a curve; those between two costs have no cost to write beside them."""
    is_between = np.array([point.is_between for point in curve.path_])
    return replace(points, cost_ratio=np.where(is_between, np.nan, points.cost_ratio))


def judged(model: Any, name: str, X: Any, y: Any, sample_weight: Any, positive: Any, caller: str) -> Any:
    """Points of a model with several classifiers, else the ROC curve of its score, on test cases.

    OperatingPoints and a RocCurve are returned as they are; X is None if there are no test cases.
    """
    if isinstance(model, OperatingPoints | RocCurve):
        return model
    is_scorer = hasattr(model, "decision_function") or hasattr(model, "predict_proba")
    if not is_scorer and not hasattr(model, "points"):
        raise InputTypeError(
            f"'others[{name!r}]' of {caller} must be OperatingPoints, a RocCurve or a fitted model. "
            f"Got {type(model).__name__} instead."
        )
    if X is None:
        raise InputError(f"'others[{name!r}]' of {caller} is a model, which needs test cases. Hint: pass X and y.")
    if hasattr(model, "points"):
        return model.points(X, y, sample_weight)
    return roc_curve(y, _scores(model, X, positive), sample_weight=sample_weight, pos_label=positive)


def roc_of_leaves(tree: Tree) -> RocCurve:
    """ROC curve of a tree on its training cases: a threshold on the rate of a leaf (section 3.1 of the paper)."""
    ends = np.flatnonzero(tree.is_leaf)
    positive, negative = (np.bincount(tree.leaf[ends], part[ends]) for part in (tree.positive, tree.negative))
    return RocCurve.from_cells(positive, negative)


def _scores(model: Any, X: Any, positive: Any) -> np.ndarray:
    """A score that is larger for cases more likely to have the positive label."""
    from toprank.metrics.scorers import ranker_of

    classes = list(getattr(model, "classes_", []))
    if not hasattr(model, "decision_function"):
        return np.asarray(model.predict_proba(X))[:, classes.index(positive) if positive in classes else -1]
    score = np.asarray(model.decision_function(X))
    # scikit-learn's classifiers score the larger label; the rankers of this package score their positive label.
    is_turned = ranker_of(model) is None and len(classes) == 2 and classes[0] == positive
    return -score if is_turned else score
