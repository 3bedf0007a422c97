"""A reader of exact texts of trees that knows nothing of the package: it answers the questions for a row.

A row is a dictionary from column names to numbers, strings, booleans or None (missing).
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|<=|[(),;:?]|[^\s(),;:?"]+')
ENDS = {"<=", "is", "=", "+", "-", "x", "or", "and", "nor", "above", "of", "(", ")", ",", ";", ":", "?"}
"""Tokens that end a name that is not quoted."""


def found(match: re.Match[str] | None) -> re.Match[str]:
    """The match of a pattern that must be there."""
    assert match is not None
    return match


@dataclass
class Leaf:
    """A leaf as the text tells it; `score` is the upper end of its range where `is_range`."""

    number: int
    score: float = math.nan
    is_range: bool = False
    label: Any = None


@dataclass
class Question:
    """A node: what it asks, and where yes and no lead: to a node, a block ("[2]") or a leaf ("leaf 3")."""

    is_yes: Callable[[Row], bool]
    branches: dict[str, Any] = field(default_factory=dict)


class TextTree:
    """A tree read off its exact text."""

    def __init__(self, text: str):
        self.blocks: dict[int, Any] = {}
        self.leaves: dict[int, Leaf] = {}
        self.card: list[Callable[[Row], float]] = []
        self.confusion = math.nan
        parts = [part.split("\n") for part in text.split("\n\n")]
        headers = [i for i, part in enumerate(parts) if part[-1].endswith("; leaf 1 ranks highest")]
        first = headers[0] if headers else 0  # trees of classes have their summary alone
        for part in parts[first + 1 :]:
            self._read_part(part)

    def leaf(self, row: Row) -> Leaf:
        """The leaf that a row ends in."""
        at = self.blocks[0]
        while not isinstance(at, Leaf):
            at = self._resolved(at.branches["yes" if at.is_yes(row) else "no"])
        return at

    def points(self, row: Row) -> float:
        """Points of the scorecard inside leaves."""
        total = 0.0
        for points_of in self.card:
            total += points_of(row)
        return total

    def vote(self, row: Row) -> float:
        """Mean rate of all leaves, each weighed by the conditions that a row breaks on the way to it."""
        votes, weight = self._votes(row, self.blocks[0])
        return votes / weight

    def _votes(self, row: Row, at: Any) -> tuple[float, float]:
        at = self._resolved(at)
        if isinstance(at, Leaf):
            return at.score, 1.0
        kept, broken = ("yes", "no") if at.is_yes(row) else ("no", "yes")
        mine, others = self._votes(row, at.branches[kept]), self._votes(row, at.branches[broken])
        return mine[0] + self.confusion * others[0], mine[1] + self.confusion * others[1]

    def _resolved(self, at: Any) -> Any:
        """The node or leaf itself, where a branch refers to one by its number."""
        if not isinstance(at, str):
            return at
        kind, number = found(re.fullmatch(r"(leaf |\[)(\d+)\]?", at)).groups()
        return (self.blocks if kind == "[" else self.leaves)[int(number)]

    # --- lines ----------------------------------------------------------------------------------------------

    def _read_part(self, lines: list[str]) -> None:
        head = re.match(r"\[(\d+)\] from ", lines[0])
        if head or not self.blocks:
            self.blocks[int(head[1]) if head else 0] = self._read_block(lines[1:] if head else lines)
        elif lines[0] == "Inside a leaf, cases with more points come first:":
            self.card = [Words(line.removeprefix("  ")).card_line() for line in lines[1:]]
        elif lines[0].startswith("A score is the mean rate of all leaves"):
            self.confusion = float(found(re.search(r"weighs (\S+) to the power", lines[0]))[1])
        else:
            for line in lines:
                self._read_node(line)

    def _read_block(self, lines: list[str]) -> Any:
        """The node at the top of a block; every line is one node."""
        root = self._read_node(lines[0])
        path = [root]
        for line in lines[1:]:
            bars, answer, words = found(re.fullmatch(r"((?:\|   )+)(yes|no): +(.*)", line)).groups()
            level = len(bars) // 4
            node = self._read_node(words)
            path[level - 1].branches[answer] = node
            path[level:] = [node]
        return root

    def _read_node(self, words: str) -> Any:
        if words.startswith("-> "):
            return words.removeprefix("-> ")
        leaf = re.match(r"leaf (\d+): (.*)", words)
        if not leaf:
            return Question(Words(words).question())
        found = Leaf(int(leaf[1]))
        score = re.match(r"(?:score|rate) (up to )?(\S+), ", leaf[2])
        if score:
            found.score, found.is_range = float(score[2]), bool(score[1])
        else:
            found.label = Words(leaf[2].removeprefix("class ")).label()
        self.leaves[found.number] = found
        return found


class Words:
    """The words of one line, read from the left."""

    def __init__(self, line: str):
        self.line = line
        self.tokens = TOKEN.findall(line)
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        token = self.peek()
        assert not expected or token in expected, f"{self.line!r}: {expected} expected, {token!r} found"
        self.at += 1
        return token

    def starts(self, *words: str) -> bool:
        """Take these words if they come next."""
        if any(self.peek(i) != word for i, word in enumerate(words)):
            return False
        self.at += len(words)
        return True

    def number(self) -> float:
        return float(self.take())

    def name(self) -> str:
        """Read a name: quoted, or words up to one that ends it."""
        if self.peek().startswith('"'):
            return json.loads(self.take())
        words = [self.take()]
        while self.peek() and self.peek() not in ENDS and self.peek()[0] not in '"+-':
            words.append(self.take())
        return " ".join(words)

    def label(self) -> Any:
        """Read a category: a quoted name or words is a string, the rest what Python reads."""
        is_quoted = self.peek().startswith('"')
        name = self.name()
        if is_quoted:
            return name
        for read in (int, float, {"True": True, "False": False}.__getitem__):
            try:
                return read(name)
            except (ValueError, KeyError):
                pass
        return name

    def labels(self, last: str) -> list[Any]:
        """Read a list: a, b or c."""
        found = [self.label()]
        while self.peek() == "," and self.peek(1) != "or":
            self.take(",")
            found.append(self.label())
        if self.starts(last):
            found.append(self.label())
        return found

    # --- questions ------------------------------------------------------------------------------------------

    def question(self) -> Callable[[Row], bool]:
        if self.starts("any"):
            return lambda row: True
        if self.starts("no"):
            return lambda row: False
        is_sum = self.peek() == "0" or self.peek(1) == "x"
        value = self.weighted_sum() if is_sum else self.value(self.name())
        answer = self.bounded(value) if self.starts("<=") else self.chosen(value)
        self.take("?")
        assert not self.peek(), f"{self.line!r} goes on after its question"
        return answer

    @staticmethod
    def value(name: str) -> Callable[[Row], Any]:
        return lambda row: row[name]

    def bounded(self, value: Callable[[Row], Any]) -> Callable[[Row], bool]:
        high = self.number()
        missing = self.starts("or", "missing") or self.starts("or", "undefined")
        _ = missing or self.starts("and", "not", "missing")

        def is_yes(row: Row) -> bool:
            number = value(row)
            return missing if number is None else float(number) <= high

        return is_yes

    def chosen(self, value: Callable[[Row], Any]) -> Callable[[Row], bool]:
        self.take("is")
        if self.starts("not", "missing"):
            return lambda row: value(row) is not None
        if self.starts("missing"):
            return lambda row: value(row) is None
        if self.peek() not in ("not", "neither", "none"):
            inside = self.labels("or")
            return lambda row: value(row) in inside
        word = self.take()
        if word == "none":
            self.take("of")
        outside = self.labels({"not": "", "neither": "nor", "none": "and"}[word])
        for token in (",", "or", "is", "missing"):
            self.take(token)
        return lambda row: value(row) not in outside

    def weighted_sum(self) -> Callable[[Row], float | None]:
        terms = [] if self.starts("0") else [self.term(1.0)]
        while self.peek() in ("+", "-"):
            terms.append(self.term(1.0 if self.take() == "+" else -1.0))

        def total(row: Row) -> float | None:
            found = 0.0
            for weight, value in terms:
                found += weight * value(row)
            return None if math.isnan(found) else found

        return total

    def term(self, sign: float) -> tuple[float, Callable[[Row], float]]:
        weight = sign * self.number()
        self.take("x")
        if self.starts("("):
            name = self.name()
            self.take("is")
            labels = self.labels("or")
            self.take(")")
            return weight, lambda row: float(row[name] in labels)
        name, fill = self.name(), math.nan
        if self.starts("(", "missing", ":"):
            fill = self.number()
            self.take(")")
        return weight, lambda row: fill if row[name] is None else float(row[name])

    # --- scorecards -----------------------------------------------------------------------------------------

    def card_line(self) -> Callable[[Row], float]:
        if self.peek()[0] in "+-":
            weight = self.number()
            for token in ("per", "unit", "of"):
                self.take(token)
            name = self.name()
            self.take("above")
            center = self.number()
            steps: list[tuple[float, float]] = []
            while self.starts(","):
                more = self.number()
                self.take("above")
                steps.append((more, self.number()))
            missing = self.missing_points()

            def worth(row: Row) -> float:
                if row[name] is None:
                    return missing
                total = weight * (float(row[name]) - center)
                for each, above in steps:
                    if float(row[name]) > above:
                        total += each
                return total

            return worth
        name = self.name()
        self.take("=")
        points = [(self.label(), self.number())]
        while self.starts(","):
            points.append((self.label(), self.number()))
        missing = self.missing_points()
        return lambda row: next((each for label, each in points if label == row[name]), missing)

    def missing_points(self) -> float:
        for token in (";", "missing", ":"):
            self.take(token)
        return self.number()
