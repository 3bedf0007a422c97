"""A tree as text, even if nodes have several parents, and the scorecard inside its leaves; the rules of a tree as text.

Two degrees of detail: short, for reading, and exact, for applying the text to a row.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence

import numpy as np

from toprank.explain.conditions import side_condition
from toprank.explain.rules import LeafRule, Rule
from toprank.explain.walk import TreeWalk, Visit, passed_up
from toprank.export.scorecard import CARD_TITLE, WIDTH, hides_points, scorecard_features, scorecard_lines
from toprank.tree.columns import Column
from toprank.tree.structure import Tree
from toprank.words.counts import count, plural
from toprank.words.numbers import hit_rate_text, lift_text, number_text, percent_text
from toprank.words.wording import EXACT, SHORT, Detail, hits_text, shortened_lines, shortenings
from toprank.words.wrapping import wrapped

INDENT = "|   "
ANSWERS = {None: "", True: "yes: ", False: "no:  "}
MAX_NESTING = 10
"""Levels to nest; deeper nodes get a numbered block of their own, so that lines stay short."""

RULE_LINES = 20
"""Default length of a list of rules: as many lines as a person reads at once."""

RULE_INDENT = 5


def to_text(
    tree: Tree,
    columns: Sequence[Column],
    title: str | None = None,
    max_leaves: int | None = None,
    spread: np.ndarray | None = None,
    exact: bool = False,
) -> str:
    """Return a tree as text: in 100 columns for reading, or exact for applying.

    Conditions are questions with a yes and a no branch. A node with several parents is numbered and printed
    once, in a block of its own below; branches refer to it as `-> [2]`. Leaves with several parents are
    listed at the end; branches refer to them as `-> leaf 3`. If a scorecard orders the rows inside leaves, it
    follows. The last line of a short text says what was shortened.

    Parameters
    ----------
    tree : Tree
    columns : sequence of Column, one per feature of the tree
    title : str or None
        First line.
    max_leaves : int or None
        Show only the branches to the best leaves, and the rest in one line per branch. None shows all.
    spread : float array of shape (n_features,) or None
        Standard deviation of each column's points; orders the lines of the scorecard.
    exact : bool, default False
        One line per node, with nothing left out: all digits, all terms of a sum with what a missing value counts as,
        all categories by their full names, in quotes as in JSON if a name is ambiguous, and where missing values go,
        even if training had none. Answering the questions for a row leads to its leaf. An unknown category counts as
        missing; a sum is undefined if huge terms overflow both ways. Leaves show their score; the scorecard follows the
        order in which the model adds points, with all categories. Figures of training cases stay rounded.

    Notes
    -----
    An exact text gives `Tree.decision_function` to the last bit if leaves are constant, and if a scorecard orders
    their rows: of L leaves, one with "score up to u" gives a row of p points u - (1 - s) / L, s = 0.5 +
    0.499 p / (1 + |p|).

    Examples
    --------
    >>> from toprank import RankingTree
    >>> model = RankingTree(max_depth=1, min_samples_leaf=1).fit([[0.1234566], [0.2], [0.3], [0.4]], [0, 1, 1, 1])
    >>> print(to_text(model.tree_, [Column("gap")]))
    4 training cases, 3 positive (75 %); 2 leaves; leaf 1 ranks highest
    <BLANKLINE>
    gap <= 0.16?
    |   yes: leaf 2: 0 of 1 positive (0 %, lift 0)
    |   no:  leaf 1: 3 of 3 positive (100 %, lift 1.33)
    >>> print(to_text(model.tree_, [Column("gap")], exact=True).splitlines()[2])
    gap <= 0.16 and not missing?
    """
    detail = EXACT if exact else SHORT
    drawing = _Drawing(tree, columns, max_leaves, detail)
    lines = drawing.lines(title)
    card = scorecard_lines(tree.scoring, columns, spread, WIDTH, detail)
    if card:
        lines += ["", f"{CARD_TITLE}:", *card]
    if exact:
        decay = tree.scoring.vote_decay
        if decay is not None:
            weight = f"{EXACT.number(decay)} to the power of the conditions broken"
            lines += ["", f"A score is the mean rate of all leaves; a leaf weighs {weight}."]
        return "\n".join(lines)
    asked = np.flatnonzero(~tree.is_leaf & drawing.is_shown).tolist()
    own = tree.scoring.card
    is_card_cut = own is not None and any(hides_points(own, columns[f], f) for f in scorecard_features(own))
    parts = [*shortenings(tree, columns, asked), *(["scorecard"] if is_card_cut else [])]
    return "\n".join([*lines, *shortened_lines(parts)])


class _Drawing:
    """State of writing one tree: which nodes are shown, and which of them in their own blocks."""

    def __init__(self, tree: Tree, columns: Sequence[Column], max_leaves: int | None, detail: Detail):
        self.tree, self.columns, self.detail = tree, columns, detail
        self.total = tree.positive + tree.negative
        self.base_rate = float(tree.positive[0] / self.total[0]) if self.total[0] > 0 else 0.0
        self.n_shown = tree.n_leaves if max_leaves is None else min(max(max_leaves, 1), tree.n_leaves)
        self.is_shown = passed_up(tree, tree.is_leaf & (tree.leaf < self.n_shown))
        self.n_nodes_at = np.bincount(tree.leaf[tree.is_leaf], minlength=tree.n_leaves)
        self.walk = TreeWalk(tree, ~tree.is_leaf & self.is_shown, max_level=MAX_NESTING)
        self.n_parents = self.walk.n_parents

    def is_shared_leaf(self, node: int) -> bool:
        """Return True if a leaf is listed at the end: it has several branches or several nodes."""
        return bool(self.n_parents[node] > 1 or self.n_nodes_at[self.tree.leaf[node]] > 1)

    def lines(self, title: str | None) -> list[str]:
        """Return all lines."""
        tree, n_leaves, out = self.tree, self.tree.n_leaves, []
        if title is not None:
            out += [*(part for line in title.splitlines() for part in wrapped(line, WIDTH)), ""]
        n_nodes = int(tree.is_leaf.sum())
        shown = "" if self.n_shown == n_leaves else f", the best {self.n_shown:,} shown"
        places = f" at {plural(n_leaves, 'place')} in the ranking" if n_nodes > n_leaves else ""
        size = (
            f"{number_text(self.total[0])} training cases, {number_text(tree.positive[0])} positive "
            f"({percent_text(self.base_rate)}); {self.detail.count(n_nodes)} "
            f"{'leaf' if n_nodes == 1 else 'leaves'}{places}{shown}; leaf 1 ranks highest"
        )
        out += [size] if self.detail.is_exact else wrapped(size, WIDTH)
        for node, number in self.walk.number.items():
            out.append("")
            if node:
                hits = hits_text(tree.positive[node], self.total[node], self.base_rate)
                n_parents = int(self.n_parents[node])
                origin = "one branch" if n_parents == 1 else f"{n_parents:,} branches"
                out.append(f"[{number}] from {origin}: {hits}")
            out += block_lines(self.walk, node, self.text_of, self.detail)
        return out + self.leaf_lines()

    def text_of(self, visit: Visit) -> str:
        """Return the text of a node's own line."""
        tree, node = self.tree, visit.node
        if not self.is_shown[node]:
            name = f"below leaf {self.n_shown:,}"
            if self.n_parents[node] > 1:  # the node's figures are not those of this branch
                return f"-> {name}"
            return f"{name}: {hits_text(tree.positive[node], self.total[node], self.base_rate)}"
        if tree.is_leaf[node]:
            if not self.is_shared_leaf(node):
                return self.leaf_text(np.array([node]))
            name = f"-> leaf {self.detail.count(tree.leaf[node] + 1)}"
            if self.n_parents[node] > 1 or self.detail.is_exact:
                return name
            return f"{name}, here {hits_text(tree.positive[node], self.total[node], self.base_rate)}"
        if not visit.is_open:
            return f"-> [{visit.block}]"
        return question(tree, self.columns, node, self.detail)

    def leaf_text(self, nodes: np.ndarray) -> str:
        """Return a leaf of one or several nodes in words: leaf 3: 2 of 900 positive (0.22 %, lift 0.11)."""
        tree, first = self.tree, nodes[0]
        hits = hits_text(tree.positive[nodes].sum(), self.total[nodes].sum(), self.base_rate)
        name = f"leaf {self.detail.count(tree.leaf[first] + 1)}"
        if not self.detail.is_exact:
            return f"{name}: {hits}"
        what = tree.scoring.shown
        value = tree.rate[first] if what == "rate" else tree.score[first]
        return f"{name}: {what} {self.detail.number(value)}, {hits}"

    def leaf_lines(self) -> list[str]:
        """List the leaves that branches refer to, best first, then all that are not shown together."""
        tree = self.tree
        ends = [node for node in np.flatnonzero(tree.is_leaf & self.is_shown).tolist() if self.is_shared_leaf(node)]
        out: list[str] = []
        for leaf in sorted({int(tree.leaf[node]) for node in ends}):
            out.append(self.leaf_text(np.flatnonzero(tree.leaf == leaf)))
        rest = tree.is_leaf & ~self.is_shown
        if rest.any():
            hits = hits_text(tree.positive[rest].sum(), self.total[rest].sum(), self.base_rate)
            out.append(f"all below leaf {self.n_shown:,}: {hits}")
        return ["", *out] if out else []


def question(tree: Tree, columns: Sequence[Column], node: int, detail: Detail) -> str:
    """Return the question of an inner node; rows that answer yes go left."""
    return f"{side_condition(tree, columns, node).text(detail=detail)}?"


def block_lines(walk: TreeWalk, head: int, text_of: Callable[[Visit], str], detail: Detail) -> list[str]:
    """Return the lines of a node and everything nested in it; short lines wrap at the width and keep the bars."""
    out: list[str] = []
    for visit in walk.block(head):
        prefix, text = INDENT * visit.level + ANSWERS[visit.answer], text_of(visit)
        if detail.is_exact:
            out.append(prefix + text)
            continue
        first, *rest = textwrap.wrap(text, max(WIDTH - len(prefix), 20), break_on_hyphens=False) or [""]
        bars = prefix[: prefix.rfind("|") + 1].ljust(len(prefix))
        out += [prefix + first, *(bars + line for line in rest)]
    return out


def fit_text(coverage: float, precision: float) -> str:
    """Return how well a short rule fits its leaf, in words; empty if it selects exactly the leaf's training cases.

    Examples
    --------
    >>> fit_text(0.934, 0.972)
    'covers 93 % of this group; 97 % of what it selects belongs to it'
    >>> fit_text(0.9999, 1.0), fit_text(1.0, 1.0)
    ('covers 99 % of this group and nothing else', '')
    """
    if math.isnan(coverage) or math.isnan(precision) or (coverage >= 1 and precision >= 1):
        return ""
    covers = f"covers {'all' if coverage >= 1 else _whole(coverage)} of this group"
    if precision >= 1:
        return f"{covers} and nothing else"
    return f"{covers}; {_whole(precision)} of what it selects belongs to it"


def _whole(share: float) -> str:
    """Return a share below 1 in whole percent, never 100 % or 0 %."""
    percent = min(round(100 * share), 99)
    return f"{percent} %" if percent >= 1 else "less than 1 %"


def rule_lines(rule: LeafRule, width: int) -> list[str]:
    r"""Return the lines below a leaf's figures: one paragraph per way, and how well the rule fits.

    Examples
    --------
    >>> from toprank.explain import Condition, Way
    >>> from toprank.tree.columns import Column
    >>> young = Condition(0, Column("age"), high=3.0, missing=False)
    >>> north = Condition(1, Column("region", ("north", "south")), missing=False, codes=(0,))
    >>> figures = {"lift": 2.0, "n": 9, "positives": 3, "training_rate": 0.3, "score": 1.0}
    >>> rule = Rule(leaf=1, ways=(Way((young,)), Way((north,))), coverage=0.9, precision=1.0, **figures)
    >>> print(*rule_lines(rule, 60), sep="\n")
         age <= 3
         or region is north
         (covers 90 % of this group and nothing else)
    """
    paragraphs = [f"{'or ' if i else ''}{way}" for i, way in enumerate(rule.way_texts())]
    fit = fit_text(rule.coverage, rule.precision) if isinstance(rule, Rule) and not rule.n_other_ways else ""
    paragraphs += [f"({fit})"] if fit else []
    return [line for text in paragraphs for line in wrapped(text, width, " " * RULE_INDENT)]


def fitting_rules(rules: Sequence[Rule], width: int, max_rules: int | None) -> int:
    """Return how many rules to show: `max_rules`, or as many as fit in 20 lines, at least one."""
    if max_rules is not None:
        return min(max_rules, len(rules))
    n_lines = 0
    for i, rule in enumerate(rules):
        n_lines += 1 + len(rule_lines(rule, width))
        if n_lines > RULE_LINES and i > 0:
            return i
    return len(rules)


def rule_figures(rule: Rule) -> str:
    """Return the expected hit rate of a leaf with its interval and lift, and its training figures.

    Examples
    --------
    >>> figures = {"coverage": 1.0, "precision": 1.0, "n": 57, "positives": 57, "training_rate": 1.0, "score": 1.0}
    >>> rule_figures(Rule(leaf=1, ways=(), lift=4.05, **figures))
    'training rate 100 %, lift 4.05x; in training 57 of 57 positive'
    >>> rule_figures(Rule(leaf=1, ways=(), hit_rate=0.281, hit_rate_low=0.17, hit_rate_high=0.41, lift=1.14, **figures))
    'hit rate 28.1 % (17 % to 41 %), lift 1.14x; in training 57 of 57 positive'
    """
    lift, training = lift_text(rule.lift), f"in training {count(rule.positives)} of {count(rule.n)} positive"
    if rule.hit_rate is None or rule.hit_rate_low is None or rule.hit_rate_high is None:
        return f"training rate {percent_text(rule.training_rate)}, lift {lift}x; {training}"
    interval = f"{percent_text(rule.hit_rate_low)} to {percent_text(rule.hit_rate_high)}"
    return f"hit rate {hit_rate_text(rule.hit_rate)} ({interval}), lift {lift}x; {training}"


def rules_text(rules: Sequence[Rule], n_leaves: int, width: int, max_rules: int | None) -> list[str]:
    """Return all lines of a list of rules, best first, and a line that counts those left out.

    `rules` may be only the first of the tree's `n_leaves`; `max_rules=None` shows as many as fit in 20 lines.
    """
    n_shown, lines = fitting_rules(rules, width, max_rules), []
    for rule in rules[:n_shown]:
        lines.append(f"{rule.leaf}. {rule_figures(rule)}")
        lines += rule_lines(rule, width)
    if n_shown < n_leaves:
        lines.append(f"and {plural(n_leaves - n_shown, 'more rule')}; max_rules={n_leaves} shows all")
    return lines
