"""Draws a tree: which nodes are shown, the text of each, boxes sized by their texts, laid out, and drawn."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank._core.dtypes import OBLIQUE
from toprank.explain import TreeWalk, side_condition
from toprank.plots.style import FAINT, INK, PALETTE, RESOLUTION, SMALL_SIZE, TEXT_SIZE
from toprank.tree.columns import Column
from toprank.tree.structure import Tree
from toprank.words.counts import plural
from toprank.words.numbers import lift_text, number_text, percent_text
from toprank.words.visible import visible
from toprank.words.wording import sum_terms, term_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL_SIZE = 9.5
QUESTION_LENGTH, ORIGIN_LENGTH, LONGEST_WORD = 26, 38, 44  # characters per line before wrapping
LEAST_WIDTH = 5.4  # of a page
PAD_X, PAD_Y, LINE_GAP, ROUND = 0.1, 0.075, 0.035, 0.06
EDGE, PAPER, BRANCH = "#B0B0B0", "#F6F6F6", "#9A9A9A"
PALE, DARK = "#F1F6FA", PALETTE[0]
JUMP_COLOUR = PALETTE[-1]
SPACING = 1.2
CONDITION, LEAF, MORE, CHIP, JUMP = "condition", "leaf", "more", "chip", "jump"
SIDE_GAP = 0.16  # inches between neighbours
BAR_GAP = 0.13  # between a row of boxes and the bar that its branches start from
LABEL_GAP = 0.06  # above and below the label of a branch
SHEET_GAP = 0.5
SHAPE = 1.5  # width over height of a good page

Outline = list[tuple[float, float]]


# --- what is shown ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Content:
    """The content of one box."""

    kind: str  # "condition", "leaf", "more" (folded nodes), "chip" (a leaf listed below), "jump" (drawn elsewhere)
    node: int
    title: str = ""  # in bold
    lines: tuple[str, ...] = ()
    share: float = float("nan")  # of positives, NaN if it is not shown


class ShownNodes:
    """Nodes of a tree that a plot shows: those with at most `max_depth` conditions above them.

    `max_conditions` limits the conditions of a larger tree: from the root on, to those that most positives reach, upper
    ones first; the rest is folded. `nodes` are all shown ones, parents first. Conditions in `is_open` are shown with
    their branches; the others are ends. `walk` is the order of drawing: conditions that several branches lead to have
    their own blocks. If several branches lead to one leaf, `lists_leaves`.
    """

    def __init__(self, tree: Tree, max_depth: int | None, max_conditions: int | None = None):
        self.tree = tree
        depth = np.full(len(tree), len(tree), np.int64)
        depth[0] = 0
        self.is_open = np.zeros(len(tree), bool)
        for node in np.flatnonzero(~tree.is_leaf):
            if depth[node] < (len(tree) if max_depth is None else max_depth):
                self.is_open[node] = True
                for child in (tree.left[node], tree.right[node]):
                    depth[child] = min(depth[child], depth[node] + 1)
        if max_conditions is not None and self.is_open.sum() > max_conditions:
            self._fold(depth, max_conditions)
        self.walk = TreeWalk(tree, self.is_open, may_head=~tree.is_leaf)
        self.n_parents = self.walk.n_parents
        self.nodes = np.flatnonzero((self.n_parents > 0) | (np.arange(len(tree)) == 0)).tolist()
        shared = [node for node in self.nodes if self.n_parents[node] > 1]
        self.lists_leaves = any(tree.is_leaf[node] for node in shared)
        self.total = tree.positive + tree.negative
        self.base_rate = float(tree.positive[0] / self.total[0]) if self.total[0] > 0 else 0.0

    def _fold(self, depth: np.ndarray, max_conditions: int) -> None:
        """Keep only the main conditions open: those that most positives reach; deeper ones need more."""
        tree, may_open = self.tree, self.is_open
        self.is_open = np.zeros(len(tree), bool)
        queue = [(0.0, 0)]
        while queue and self.is_open.sum() < max_conditions:
            node = heappop(queue)[1]
            if self.is_open[node] or not may_open[node]:
                continue
            self.is_open[node] = True
            for child in (int(tree.left[node]), int(tree.right[node])):
                heappush(queue, (-float(tree.positive[child]) / 2.0 ** float(depth[child]), child))

    @property
    def leaves(self) -> list[int]:
        """Leaves that are shown, best first."""
        leaves = [node for node in self.nodes if self.tree.is_leaf[node]]
        return sorted(leaves, key=lambda node: (self.tree.leaf[node], node))

    @property
    def n_conditions(self) -> int:
        """Conditions that are shown."""
        return int(self.is_open.sum())

    @property
    def is_cut(self) -> bool:
        """True if some nodes are folded."""
        return any(not self.is_open[node] and not self.tree.is_leaf[node] for node in self.nodes)

    def share(self, node: int) -> float:
        """Return the share of positives among the training cases of a node, NaN if it has none."""
        return float(self.tree.positive[node] / self.total[node]) if self.total[node] > 0 else float("nan")

    def lift(self, node: int) -> float:
        """Return the share of positives over that of all cases."""
        return self.share(node) / self.base_rate if self.base_rate > 0 else float("nan")

    def figures(self, node: int) -> tuple[str, ...]:
        """Return the lines on the training cases of a node."""
        if not self.total[node] > 0:
            return ("no training cases",)
        lift = f", lift {lift_text(self.lift(node))}" if self.base_rate > 0 else ""
        held = f"{number_text(self.tree.positive[node])} of {number_text(self.total[node])} positive"
        return held, f"{percent_text(self.share(node))}{lift}"

    def leaf(self, node: int) -> Content:
        """Return a leaf with all its figures."""
        return Content(LEAF, node, f"leaf {self.tree.leaf[node] + 1:,}", self.figures(node), self.share(node))

    def end(self, node: int) -> Content:
        """Return the text of a leaf, or of folded nodes, at the end of a branch."""
        if not self.tree.is_leaf[node]:
            n_hidden = int((self.walk.below(node) & ~self.tree.is_leaf & ~self.is_open).sum())
            lines = plural(n_hidden, "more condition"), *self.figures(node)
            return Content(MORE, node, "…", lines, self.share(node))
        leaf = self.leaf(node)
        if not self.lists_leaves:
            return leaf
        rate = (percent_text(leaf.share),) if self.total[node] > 0 else ()
        return Content(CHIP, node, leaf.title, rate, leaf.share)

    def jump(self, node: int) -> Content:
        """Return a reference to a condition that is drawn under its number."""
        return Content(JUMP, node, f"→ [{self.walk.number[node]}]")

    def origin(self, node: int) -> tuple[str, str]:
        """Return the number of a condition that several branches lead to, and where its cases come from."""
        figures = self.figures(node)
        words = f"{figures[0]} ({figures[1]})" if len(figures) == 2 else figures[0]
        return f"[{self.walk.number[node]}]", f"from {self.n_parents[node]:,} branches: {words}"


def condition_lines(tree: Tree, columns: Sequence[Column], node: int, terms: int) -> list[str]:
    """Return the question of a node; a weighted sum has one term per line."""
    condition = side_condition(tree, columns, node)
    asked = condition.text()
    if not condition.is_sum or not asked.startswith(f"{condition.column.name} "):  # the latter: a sum without a bound
        return [f"{asked}?"]
    lines: list[str] = []
    for term, column in zip(condition.terms[:terms], condition.summands, strict=False):
        sign = ("- " if term.weight < 0 else "") if not lines else ("- " if term.weight < 0 else "+ ")
        lines.append(sign + term_text(column, term))
    if len(condition.terms) > terms:
        lines.append(f"+ {len(condition.terms) - terms:,} smaller")
    return [*(lines or ["0"]), f"{asked.removeprefix(f'{condition.column.name} ')}?"]


def missing_side(tree: Tree, columns: Sequence[Column], node: int) -> str:
    """Return the branch of missing values: "yes" or "no"; "" if training had none, or if they count as values."""
    if tree.kind[node] == OBLIQUE:
        asked = [term.feature for term in sum_terms(tree, node) if term.makes_missing]
    else:
        asked = [int(tree.feature[node])]
    if not any(columns[feature].has_missing for feature in asked):
        return ""
    return "yes" if tree.missing_left[node] else "no"


def branch_labels(tree: Tree, columns: Sequence[Column], node: int) -> tuple[str, str]:
    """Return the labels of a condition's branches; the condition itself says if missing values go with yes."""
    is_said = missing_side(tree, columns, node) != "no" or side_condition(tree, columns, node).text().endswith(
        "not missing"
    )
    return "yes", "no" if is_said else "no, or\nmissing"


# --- layout, in inches, downwards ---------------------------------------------------------------------------
# Within a tree, leaves are side by side and a parent is centred over its children; subtrees are as close as their
# outlines allow. Trees of one figure are packed like sheets of paper.


@dataclass(eq=False)
class Box:
    """A drawn node: its size, its branches, and, after layout, its position."""

    width: float
    height: float
    children: list[Box] = field(default_factory=list)  # none, or two: yes, no
    label: str = ""  # of the branch to it
    label_size: tuple[float, float] = (0.0, 0.0)
    content: Any = None
    x: float = 0.0  # middle of its upper edge
    y: float = 0.0  # upper edge, downwards
    bar: float = 0.0  # height at which its branches split

    def walk(self) -> Iterator[Box]:
        """Yield the box and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


def lay_out(root: Box) -> tuple[float, float]:
    """Lay out all boxes of a tree, the upper left corner at (0, 0); return the total width and height.

    Examples
    --------
    >>> tree = Box(2, 1, [Box(1, 1), Box(1, 1)])
    >>> width, height = lay_out(tree)
    >>> round(width, 2), [round(box.x, 2) for box in tree.walk()]
    (2.16, [1.08, 0.5, 1.66])
    """
    outline = _spread(root)
    left, right = min(low for low, _ in outline), max(high for _, high in outline)
    rows: list[list[Box]] = [[root]]
    root.x = -left
    while rows[-1]:
        for box in rows[-1]:
            for child in box.children:
                child.x += box.x
        rows.append([child for box in rows[-1] for child in box.children])
    top = 0.0
    for row, below in pairwise(rows):
        bottom = top + max(box.height for box in row)
        for box in row:
            box.y, box.bar = top, bottom + BAR_GAP
        if not below:
            return right - left, bottom
        top = bottom + BAR_GAP + 2 * LABEL_GAP + max(box.label_size[1] for box in below)
    raise AssertionError


def _spread(box: Box) -> Outline:
    """Space the children of a box, with `x` relative to it; return the left and right end of each row below."""
    half = max(box.width, box.label_size[0]) / 2
    outline = [(-half, half)]
    if not box.children:
        return outline
    one, other = (_spread(child) for child in box.children)
    apart = max(a[1] - b[0] for a, b in zip(one, other, strict=False)) + SIDE_GAP
    box.children[0].x, box.children[1].x = -apart / 2, apart / 2
    for level in range(max(len(one), len(other))):
        ends = [side[level][0] + shift for side, shift in ((one, -apart / 2), (other, apart / 2)) if level < len(side)]
        stop = [side[level][1] + shift for side, shift in ((one, -apart / 2), (other, apart / 2)) if level < len(side)]
        outline.append((min(ends), max(stop)))
    return outline


def pack(sizes: Sequence[tuple[float, float]]) -> tuple[list[tuple[float, float]], float, float]:
    """Return upper left corners of sheets that do not overlap, roughly in order, and the total width and height.

    Examples
    --------
    >>> places, width, height = pack([(3, 2), (1, 1)])
    >>> places, width, height
    ([(0.0, 0.0), (3.5, 0.0)], 4.5, 2.0)
    """
    widest, total = max(width for width, _ in sizes), sum(width + SHEET_GAP for width, _ in sizes)
    best: tuple[float, Any] | None = None
    for room in np.linspace(widest, max(widest, total), 12):
        places = _shelve(sizes, float(room) + 1e-9)
        width = max(x + size[0] for (x, _), size in zip(places, sizes, strict=True))
        height = max(y + size[1] for (_, y), size in zip(places, sizes, strict=True))
        badness = max(width / SHAPE, height) + 0.02 * (width + height)
        if best is None or badness < best[0] - 1e-9:
            best = badness, (places, width, height)
    assert best is not None
    return best[1]


def _shelve(sizes: Sequence[tuple[float, float]], room: float) -> list[tuple[float, float]]:
    """Place each sheet as high, then as far left, as it fits."""
    taken = np.zeros((0, 4))  # left, top, right, bottom, with the gap
    places = []
    for width, height in sizes:
        corners = [(y, x) for y in {0.0, *taken[:, 3].tolist()} for x in {0.0, *taken[:, 2].tolist()}]
        for y, x in sorted(corners):
            is_beside = (x >= taken[:, 2]) | (taken[:, 0] >= x + width + SHEET_GAP)
            is_below = (y >= taken[:, 3]) | (taken[:, 1] >= y + height + SHEET_GAP)
            if (x == 0 or x + width <= room) and np.all(is_beside | is_below):
                break
        places.append((x, y))
        taken = np.vstack((taken, [x, y, x + width + SHEET_GAP, y + height + SHEET_GAP]))
    return places


# --- the page -----------------------------------------------------------------------------------------------


class TreePage:
    """The plot of a tree in inches, from its upper left corner downwards; `width` and `height` are at full scale."""

    def __init__(self, shown: ShownNodes, columns: Sequence[Column], terms: int):
        self.shown, self.columns, self.terms = shown, columns, terms
        self._size = TextMeasure()
        self.texts: list[tuple[float, float, str, dict[str, Any]]] = []
        self.boxes: list[Box] = []
        self.roots: list[Box] = []
        shares = [shown.share(node) for node in shown.nodes if not shown.is_open[node]]
        self.largest = float(np.nanmax([*shares, 0.0]))
        self._compose()

    # --- sizes --------------------------------------------------------------------------------------------------

    def _box(self, content: Content) -> Box:
        """Return a box sized by its texts."""
        title = self._size(content.title, SMALL_SIZE, "bold")
        body = self._size("\n".join(content.lines), SMALL_SIZE)
        gap = LINE_GAP if content.title and content.lines else 0.0
        pad = PAD_Y * (0.8 if content.kind in (CHIP, JUMP) else 1)
        return Box(max(title[0], body[0]) + 2 * PAD_X, title[1] + body[1] + gap + 2 * pad, content=content)

    def _condition(self, node: int) -> Box:
        lines = condition_lines(self.shown.tree, self.columns, node, self.terms)
        length = QUESTION_LENGTH if len(lines) == 1 else LONGEST_WORD
        wrapped = [part for line in lines for part in broken(line, length)]
        return self._box(Content(CONDITION, node, lines=tuple(wrapped)))

    def _grown(self, head: int) -> Box:
        """Return the box of a node with everything drawn below it, up to nodes that are drawn elsewhere."""
        shown, path = self.shown, list[Box]()
        for visit in shown.walk.block(head):
            if visit.is_open:
                box = self._condition(visit.node)
            else:
                box = self._box(shown.end(visit.node) if visit.block is None else shown.jump(visit.node))
            path[visit.level :] = [box]
            if visit.level:
                parent = path[visit.level - 1]
                parent.children.append(box)
                yes, no = branch_labels(shown.tree, self.columns, parent.content.node)
                box.label = yes if visit.answer else no
                box.label_size = self._size(box.label, LABEL_SIZE)
        return path[0]

    # --- places -------------------------------------------------------------------------------------------------

    def _compose(self) -> None:
        """Lay out the note, the parts of the tree, and the leaves if they are listed."""
        parts = [self._part(head) for head in self.shown.walk.number]
        places, wide, high = pack([size for _, size, _ in parts])
        self.width = max(wide, LEAST_WIDTH)
        note = self._note()
        self.texts.append((0.0, 0.0, note, {"size": SMALL_SIZE, "color": FAINT, "ha": "left", "gid": "note"}))
        top, left = self._size(note, SMALL_SIZE)[1] + 0.3, (self.width - wide) / 2
        for (root, _, texts), (x, y) in zip(parts, places, strict=True):
            for box in root.walk():
                box.x, box.y, box.bar = box.x + x + left, box.y + y + top, box.bar + y + top
                self.boxes.append(box)
            self.roots.append(root)
            self.texts += [(a + x + left, b + y + top, text, look) for a, b, text, look in texts]
        self.height = top + high
        if self.shown.lists_leaves:
            self._list_leaves()
        self.height += 0.05

    def _part(self, head: int) -> tuple[Box, tuple[float, float], list[Any]]:
        """Return a part of the tree, its size, and the texts above it: its number and where its cases come from."""
        root = self._grown(head)
        width, height = lay_out(root)
        if head == 0:
            return root, (width, height), []
        number, origin = self.shown.origin(head)
        origin = "\n".join(broken(origin, ORIGIN_LENGTH))
        (name_width, name_height), (words, lines) = (
            self._size(number, TEXT_SIZE, "bold"),
            self._size(origin, LABEL_SIZE),
        )
        half = max(name_width / 2 + PAD_X, words / 2)
        shift, above = max(0.0, half - root.x), name_height + lines + 3 * PAD_Y + 0.1
        for box in root.walk():
            box.x, box.y, box.bar = box.x + shift, box.y + above, box.bar + above
        plate = {"boxstyle": "round,pad=0.3,rounding_size=0.3", "facecolor": JUMP_COLOUR, "edgecolor": "none"}
        look: dict[str, Any] = {"size": SMALL_SIZE, "weight": "bold", "color": "white", "bbox": plate}
        small = {"size": LABEL_SIZE, "color": FAINT, "gid": f"origin: {number}"}
        texts = [
            (root.x, PAD_Y, number, look | {"gid": f"number: {number}"}),
            (root.x, name_height + 2.2 * PAD_Y, origin, small),
        ]
        return root, (max(width + shift, root.x + half), height + above), texts

    def _note(self) -> str:
        """Return the note on the plot: in one line, or if that is too long, one line per sentence."""
        shown = self.shown
        sentences = [
            f"{number_text(shown.total[0])} training cases, {number_text(shown.tree.positive[0])} positive "
            f"({percent_text(shown.base_rate)}).",
            ("Leaf 1 ranks highest; the darker a leaf" if shown.leaves else "The darker a box")
            + ", the larger its share of positives.",
        ]
        if len(shown.walk.number) > 1:
            sentences.append("A number in brackets stands for the part of the tree that is drawn under it.")
        terms = (term for node in np.flatnonzero(shown.is_open).tolist() for term in sum_terms(shown.tree, node))
        if any(self.columns[term.feature].has_missing for term in terms if term.fill is not None):
            sentences.append("In weighted sums that do not speak of them, missing values count as their column's mean.")
        line = " ".join(sentences)
        if self._size(line, SMALL_SIZE)[0] <= self.width:
            return line
        length = int(self.width / 0.088)  # characters of the note, on average
        return "\n".join(part for sentence in sentences for part in broken(sentence, length))

    def _list_leaves(self) -> None:
        """Put the leaves below the tree, best first, in rows."""
        cards = [self._box(self.shown.leaf(node)) for node in self.shown.leaves]
        wide, high = max(card.width for card in cards), max(card.height for card in cards)
        per_row = max(1, int((self.width + SIDE_GAP) / (wide + SIDE_GAP)))
        per_row = -(-len(cards) // -(-len(cards) // per_row))  # rows of about equal length
        top = self.height + 0.8 * SHEET_GAP
        heading = "The leaves, best first"
        self.texts.append((0.0, top, heading, {"size": SMALL_SIZE, "weight": "bold", "ha": "left", "gid": "heading"}))
        top += self._size(heading, SMALL_SIZE, "bold")[1] + 0.12
        for i, card in enumerate(cards):
            row, place = divmod(i, per_row)
            card.width, card.height = wide, high
            card.x, card.y = wide / 2 + place * (wide + SIDE_GAP), top + row * (high + SIDE_GAP)
        self.boxes += cards
        self.height = cards[-1].y + high

    # --- drawing ------------------------------------------------------------------------------------------------

    def draw(self, ax: Axes, width: float, height: float, scale: float) -> None:
        """Draw on axes of this size in inches, texts at `scale`; centred, from the top."""
        spare = (width / scale - self.width) / 2
        ax.set_xlim(-spare, self.width + spare)
        ax.set_ylim(height / scale, 0)
        for root in self.roots:
            for box in root.walk():
                self._draw_branches(ax, box, scale)
        for box in self.boxes:
            self._draw_box(ax, box, scale)
        for x, y, text, look in self.texts:
            self._write(ax, x, y, text, scale, **look)

    def _write(self, ax: Axes, x: float, y: float, text: str, scale: float, size: float, **look: Any) -> None:
        options: dict[str, Any] = {"ha": "center", "va": "top", "color": INK, "linespacing": SPACING} | look
        ax.text(x, y, visible(text), clip_on=False, fontsize=size * scale, parse_math=False, zorder=4, **options)

    def _draw_branches(self, ax: Axes, box: Box, scale: float) -> None:
        line: dict[str, Any] = {"color": BRANCH, "linewidth": 1.3 * scale, "zorder": 1.5, "clip_on": False}
        line |= {"solid_joinstyle": "round", "solid_capstyle": "round"}
        for child in box.children:
            ax.plot([box.x, box.x, child.x, child.x], [box.y + box.height, box.bar, box.bar, child.y], **line)
            middle = (box.bar + child.y) / 2
            plate = {"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": "none"}
            gid = f"branch: {box.content.node} {child.label.split(',')[0]}"
            look: dict[str, Any] = {"size": LABEL_SIZE, "color": FAINT, "va": "center", "bbox": plate, "gid": gid}
            self._write(ax, child.x, middle, child.label, scale, **look)

    def _draw_box(self, ax: Axes, box: Box, scale: float) -> None:
        from matplotlib.patches import FancyBboxPatch

        content: Content = box.content
        fill, ink = self._colours(content)
        round_by = min(ROUND if content.kind != JUMP else 0.14, box.height / 2)
        ax.add_patch(
            FancyBboxPatch(
                (box.x - box.width / 2, box.y),
                box.width,
                box.height,
                boxstyle=f"round,pad=0,rounding_size={round_by}",
                facecolor=fill,
                edgecolor="none" if content.kind == JUMP else EDGE,
                linestyle=(0, (3, 2)) if content.kind == MORE else "-",
                linewidth=0.9 * scale,
                zorder=2,
                clip_on=False,
                gid=f"box: {content.kind} {content.node}",
            )
        )
        body = "\n".join(content.lines)
        title = self._size(content.title, SMALL_SIZE, "bold")[1]
        below = self._size(body, SMALL_SIZE)[1]
        gap = LINE_GAP if title and below else 0.0
        top = box.y + (box.height - title - below - gap) / 2
        look: dict[str, Any] = {"size": SMALL_SIZE, "color": ink}
        if content.title:
            self._write(ax, box.x, top, content.title, scale, weight="bold", gid=f"title: {content.node}", **look)
        if body:
            align = "left" if content.kind == CONDITION and " x " in content.lines[0] else "center"
            look |= {"multialignment": align, "gid": f"text: {content.node}"}
            self._write(ax, box.x, top + title + gap, body, scale, **look)

    def _colours(self, content: Content) -> tuple[Any, str]:
        """Return the fill and text colour of a box; the square root spreads small shares, which most leaves have."""
        from matplotlib.colors import to_rgb

        if content.kind == JUMP:
            return JUMP_COLOUR, "white"
        if content.kind == CONDITION:
            return PAPER, INK
        strength = np.sqrt(content.share / self.largest) if self.largest > 0 and content.share > 0 else 0.0
        fill = tuple((1 - strength) * np.array(to_rgb(PALE)) + strength * np.array(to_rgb(DARK)))
        linear = np.where(np.array(fill) <= 0.04045, np.array(fill) / 12.92, ((np.array(fill) + 0.055) / 1.055) ** 2.4)
        luminance = float(linear @ [0.2126, 0.7152, 0.0722])
        return fill, "white" if luminance < 0.213 else INK  # whichever has more contrast


class TextMeasure:
    """Sizes of texts in inches, at the resolution of saved files; each is measured once."""

    def __init__(self) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self._figure = Figure(figsize=(1, 1), dpi=RESOLUTION)
        self._renderer = FigureCanvasAgg(self._figure).get_renderer()
        self._known: dict[tuple[str, float, str], tuple[float, float]] = {}

    def __call__(self, text: str, size: float, weight: str = "normal") -> tuple[float, float]:
        """Return the width and height of a text, 0 for an empty one."""
        if not text:
            return 0.0, 0.0
        if (text, size, weight) not in self._known:
            look: dict[str, Any] = {"fontsize": size, "weight": weight, "linespacing": SPACING, "parse_math": False}
            probe = self._figure.text(0, 0, visible(text), **look)
            box = probe.get_window_extent(self._renderer)
            probe.remove()
            self._known[text, size, weight] = box.width / RESOLUTION, box.height / RESOLUTION
        return self._known[text, size, weight]


def broken(text: str, length: int) -> list[str]:
    """Return the text in as few lines of about `length` characters as possible, of similar length; names stay whole.

    Examples
    --------
    >>> broken("subcontracting_share <= 0.4445 or missing?", 26)
    ['subcontracting_share', '<= 0.4445 or missing?']
    """
    text = text.replace("<= ", "<=\0")  # a bound stays with its sign
    least = min(max(map(len, text.split(" "))), LONGEST_WORD)

    def lines_of(letters: int) -> list[str]:
        return textwrap.wrap(text, letters, break_on_hyphens=False)

    letters = max(length, least)
    lines = lines_of(letters)
    while letters > least and len(lines_of(letters - 1)) == len(lines):
        letters -= 1
        lines = lines_of(letters)
    return [line.replace("\0", " ") for line in lines]
