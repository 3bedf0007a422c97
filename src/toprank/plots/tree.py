"""`TreeDisplay`: a plot of one fitted tree, with its conditions in words and its leaves by rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputError, InputTypeError
from toprank.metrics.checks import is_int
from toprank.plots.display import Display
from toprank.plots.style import TITLE_SIZE, drawing, settle_layout, wrap, write_title
from toprank.plots.tree_drawing import LEAST_WIDTH, ShownNodes, TreePage, condition_lines, missing_side
from toprank.tree.columns import Column
from toprank.tree.structure import Tree
from toprank.words.counts import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CONDITIONS = 31  # nobody reads more in one plot
MOST_ASKED = 80  # most conditions drawn with max_depth
MAIN_CONDITIONS = 15  # conditions drawn of a larger tree
BORDER = 0.09  # inches beside the tree
LEAST_SCALE = 0.4  # of the texts on small given axes


@dataclass(frozen=True, eq=False, repr=False)
class TreeDisplay(Display):
    """One tree: conditions with their yes and no branches, and leaves with their place in the ranking.

    A leaf shows its place, its training cases, the share of positives among them and the lift; the larger that share,
    the darker the leaf. If the value of a condition may be missing, the condition or its "no" says where missing values
    go; a note says if weighted sums use the mean instead. A node that several branches lead to, as in trees of `MetaAP`
    and `TreeRank`, is drawn once: branches refer to its number, and the tree continues under that number; leaves are
    then listed below, best first.

    Parameters
    ----------
    tree : Tree
    schema : sequence of Column
        One per feature of the tree: `columns_` of its ranker.
    max_depth : int, optional
        Most conditions drawn on a path; deeper nodes are folded into one box. By default, a tree of more than 31
        conditions shows the 15 main ones: from the root on, those that most positives reach.
    terms : int, default=3
        Most terms of a weighted sum to show; the rest is counted.
    name : str, default="tree"
        Name of the tree in the title.
    title : str, optional
        Replaces the title; "" leaves it out.

    Examples
    --------
    >>> from toprank import RankingTree
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(2000, random_state=0)
    >>> display = TreeDisplay.from_estimator(RankingTree(max_depth=2).fit(data.X, data.y))
    >>> display
    <TreeDisplay of RankingTree: 4 leaves, 3 conditions>
    >>> display.columns()["kind"]
    ['condition', 'condition', 'condition', 'leaf', 'leaf', 'leaf', 'leaf']
    >>> display.plot().figure_ is not None
    True
    """

    tree: Tree
    schema: Sequence[Column]
    max_depth: int | None = None
    terms: int = 3
    name: str = "tree"
    title: str | None = None

    def __post_init__(self) -> None:
        caller = type(self).__name__
        if not isinstance(self.tree, Tree):
            raise InputTypeError(
                f"'tree' of {caller} must be a Tree. Got {type(self.tree).__name__} instead. "
                "Hint: from_estimator takes a fitted ranker."
            )
        if len(self.schema) != self.tree.n_features:
            raise InputError(
                f"'schema' of {caller} must have a Column for each of the {self.tree.n_features} features of the tree. "
                f"Got {len(self.schema)} instead. Hint: pass `columns_` of the ranker."
            )
        _check_count(self.terms, "terms", caller)
        if self.max_depth is not None:
            _check_count(self.max_depth, "max_depth", caller)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        max_depth: int | None = None,
        terms: int = 3,
        ax: Axes | None = None,
        *,
        title: str | None = None,
    ) -> TreeDisplay:
        """Return the display of a single-tree ranker; of a `CostOptimalCurve`, its selected tree, else the base tree.

        Parameters
        ----------
        model : fitted ranker
            `MetaAP`, `RankingTree`, `TreeRank`, `TAOTree`, `CostTree` or `CostOptimalCurve`.
        max_depth, terms, title
            As in the class.
        ax : matplotlib.axes.Axes, optional
            Draw on these axes at once; without, `plot` draws.
        """
        tree, name = _tree_of(model, f"{cls.__name__}.from_estimator")
        display = cls(tree, model.columns_, max_depth, terms, name, title)
        return display if ax is None else display.plot(ax)

    def _shown(self) -> ShownNodes:
        """Return what to draw: all conditions, or the main ones if there are too many."""
        shown = ShownNodes(self.tree, self.max_depth)
        if shown.n_conditions <= (MOST_CONDITIONS if self.max_depth is None else MOST_ASKED):
            return shown
        return ShownNodes(self.tree, self.max_depth, MAIN_CONDITIONS)

    @property
    def methods(self) -> list[str]:
        """The name of the tree."""
        return [self.name]

    def columns(self) -> dict[str, Any]:
        """Return the data, one row per drawn node, parents first.

        Columns node, kind ("condition", "leaf" or "more"), condition (in words, None at ends), yes, no (nodes, -1 at
        ends), missing (the branch that missing values take, "" if there are none or they count as the mean), leaf
        (place in the ranking, 0 if not a leaf), cases, positives, share and lift.
        """
        tree, shown = self.tree, self._shown()
        nodes, is_open = shown.nodes, shown.is_open
        kinds = ["condition" if is_open[node] else "leaf" if tree.is_leaf[node] else "more" for node in nodes]
        asks = [" ".join(condition_lines(tree, self.schema, n, self.terms)) if is_open[n] else None for n in nodes]
        return {
            "node": nodes,
            "kind": kinds,
            "condition": asks,
            "yes": np.where(is_open, tree.left, -1)[nodes],
            "no": np.where(is_open, tree.right, -1)[nodes],
            "missing": [missing_side(tree, self.schema, node) if is_open[node] else "" for node in nodes],
            "leaf": tree.leaf[nodes] + 1,
            "cases": shown.total[nodes],
            "positives": tree.positive[nodes],
            "share": np.array([shown.share(node) for node in nodes]),
            "lift": np.array([shown.lift(node) for node in nodes]),
        }

    def plot(self, ax: Axes | None = None) -> TreeDisplay:
        """Draw the tree.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Texts shrink if the tree does not fit. Without, the display makes its own figure, as large as the tree
            needs.
        """
        with drawing(ax, (LEAST_WIDTH, 4.0), type(self).__name__) as axes:
            page = TreePage(self._shown(), self.schema, self.terms)
            axes.set_axis_off()
            if ax is None:
                figure, title = axes.figure.figure, self._title()  # as large as the tree and the title need
                figure.set_figwidth(page.width + 2 * BORDER)
                if title:
                    look: dict[str, Any] = {"fontsize": TITLE_SIZE, "weight": "bold", "parse_math": False}
                    title = wrap(figure, title, page.width, TITLE_SIZE, "bold")
                    figure.suptitle(title, x=BORDER / figure.get_figwidth(), ha="left", **look)
                for _ in range(2):  # rounding to whole pixels
                    width, height = _axes_size(axes)
                    sides = figure.get_figwidth() + page.width - width, figure.get_figheight() + page.height - height
                    figure.set_size_inches(*sides)
            else:
                write_title(axes, self._title(), is_own=False)
            width, height = _axes_size(axes)
            scale = min(1.0, width / page.width, height / page.height)
            if scale < LEAST_SCALE:
                raise InputError(
                    f"The 'ax' parameter of {type(self).__name__}.plot must have room for a tree of {page.width:.1f} x "
                    f"{page.height:.1f} inches. Got axes of {width:.1f} x {height:.1f} instead. "
                    "Hint: use larger axes or a smaller max_depth."
                )
            page.draw(axes, width, height, scale)
        return self._keep(axes)

    def _title(self) -> str:
        return f"{self.name}: {self._size_in_words()}" if self.title is None else self.title

    def _size_in_words(self) -> str:
        n_leaves, n_conditions = int(self.tree.is_leaf.sum()), int((~self.tree.is_leaf).sum())
        shown, words = self._shown(), f"{plural(n_leaves, 'leaf', 'leaves')}, {plural(n_conditions, 'condition')}"
        if shown.is_cut:
            is_level = self.max_depth is not None and shown.n_conditions != MAIN_CONDITIONS
            words += f", the first {plural(int(self.max_depth or 0), 'level')}" if is_level else ", the main ones drawn"
        return words

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.name}: {self._size_in_words()}>"


def _axes_size(ax: Axes) -> tuple[float, float]:
    """Return the width and height of axes in inches."""
    figure = ax.figure.figure
    settle_layout(figure)
    box = ax.get_window_extent()
    return box.width / figure.dpi, box.height / figure.dpi


def _check_count(value: Any, name: str, caller: str) -> None:
    if not is_int(value) or value < 1:
        raise InputError(f"The '{name}' parameter of {caller} must be an int of 1 or more. Got {value!r} instead.")


def _tree_of(model: Any, caller: str) -> tuple[Tree, str]:
    """Return the tree of a fitted ranker, and its name."""
    name = type(model).__name__
    holder = model
    if hasattr(model, "path_") and hasattr(model, "base_point_"):
        point = model.path_[model.base_point_] if model.selected_ is None else model.selected_.point
        what = f"tree at a cost ratio of {point.cost_ratio:.3g}" if point.moved is None else str(point.moved)
        holder, name = point.tree, f"{name}, {what}"
    tree = getattr(holder, "tree_", None)
    if tree is None and (hasattr(model, "trees_") or hasattr(model, "path_")):
        hint = (
            " Hint: TreeDisplay(model.trees_[0], model.columns_) draws the first." if hasattr(model, "trees_") else ""
        )
        raise InputTypeError(f"{caller} draws rankers that are one tree, but {type(model).__name__} has many.{hint}")
    if tree is None or not hasattr(model, "columns_"):
        raise InputTypeError(
            f"{caller} needs a fitted ranker that is one tree. Got {type(model).__name__} instead. "
            "Hint: call fit first."
        )
    if not isinstance(tree, Tree):
        raise InputTypeError(
            f"{caller} needs conditions, but this {name} is split by classifiers, which have none. "
            "Hint: use leaf_ranker='tree' or 'oblique'."
        )
    return tree, name
