"""Scores a case by hand from the page of a model with points, knowing nothing but the page.

What the page says in words is what is done here: start, red flags and corrections, one entry per column, the group.
"""

import re


def number(text):
    return float(text.replace(",", ""))


def is_missing(value):
    return value is None or value != value


def split_names(text):
    """Names of a list: a, b or c; neither a nor b; a, b and "c, d"."""
    found = re.split(r', | or | nor | and |("[^"]*")', re.sub(r" +", " ", text))
    return [each.strip('"') for each in found if each]


class Page:
    """A page, read once; `score` adds up one case, a dict of values by column."""

    def __init__(self, text, columns):
        self.names = "|".join(re.escape(name) for name in sorted(columns, key=len, reverse=True))
        lines = text.splitlines()
        self.base = number(re.search(r"starts at (\S+) and", text)[1])
        self.flags = self._read_flags(lines)
        self.groups = [([], 0.0, {})]  # conditions, points, tables; the first group is all cases
        start = next((i for i, line in enumerate(lines) if line.startswith("Points of values")), len(lines))
        self._read_tables(lines[start:])

    def score(self, case):
        total, held = self.base, []
        for points, conditions, around in self.flags:
            held.append((around is None or held[around]) and all(self.holds(each, case) for each in conditions))
            total += points * held[-1]
        fitting = [group for group in self.groups[1:] if all(self.holds(each, case) for each in group[0])]
        assert len(fitting) == bool(self.groups[1:]), "a case is in one group"
        for _, points, tables in self.groups[:1] + fitting:
            total += points + sum(self.points(table, case[name]) for name, table in tables.items())
        return total

    # --- red flags --------------------------------------------------------------------------------------------------

    def _read_flags(self, lines):
        heads = [i for i, line in enumerate(lines) if re.match(r" +points +red flag", line)]
        if not heads:
            return []
        found, around = [], None
        for line in lines[heads[0] + 1 :]:
            if line.startswith("cases, hits:"):
                break
            new = re.match(r" ?(\d+) +([+-]\S+|0)   ( *)(.*)", line)
            if where := re.match(r" +Where (\d+) holds", line):
                around = int(where[1]) - 1
            elif new:
                assert int(new[1]) == len(found) + 1
                rule = re.sub(r"(   +[\d,.]+){2}(   +[<\d. ]+%)?$", "", new[4])
                found.append([number(new[2]), rule, around if new[3] else None])
            else:
                found[-1][1] += " " + line.strip()
        return [(points, rule.split("; "), around) for points, rule, around in found]

    def holds(self, condition, case):
        name, low, high, told, missing = self._range(condition)
        if name:
            value = case[name]
            return missing if is_missing(value) else low < value <= high
        name, told = re.match(rf"({self.names}) is (.*)", condition).groups()
        value = case[name]
        if told in ("missing", "not missing"):
            return is_missing(value) == (told == "missing")
        missing = told.endswith((" or missing", ", or is missing"))
        told = told.removesuffix(" or missing").removesuffix(", or is missing")
        excluded = re.match(r"(not |neither |none of )(.*)", told)
        listed = split_names(excluded[2] if excluded else told)
        if is_missing(value) or value == "never seen":
            return missing
        return (value in listed) != bool(excluded)

    def _range(self, condition):
        words = condition.removesuffix(" and not missing")
        told = words.removesuffix(" or missing")
        both = re.fullmatch(rf"(\S+) < ({self.names}) <= (\S+)", told)
        one = re.fullmatch(rf"({self.names}) (<=|>) (\S+)", told)
        if both:
            return both[2], number(both[1]), number(both[3]), told, told != words
        if one:
            bound = number(one[3])
            low, high = (bound, float("inf")) if one[2] == ">" else (-float("inf"), bound)
            return one[1], low, high, told, told != words
        return None, 0, 0, told, False

    # --- tables -----------------------------------------------------------------------------------------------------

    def _read_tables(self, lines):
        name, rows = "", []
        for line in [*lines, "end"]:
            new = re.match(rf" *({self.names})   +(.*)", line)
            if line.startswith(" ") and rows and not new:
                rows.append(line)
                continue
            if rows:
                self.groups[-1][2][name] = self._table(rows)
            rows = []
            if new:
                name, rows = new[1], [new[2]]
            if line.startswith("Cases where"):
                whole = " ".join(each.strip() for each in [line, *self._following(lines, line)])
                told = re.match(r"Cases where (.*): ([+-]\S+?|0)(, and)?$", whole)
                self.groups.append((told[1].split("; "), number(told[2]), {}))

    def _following(self, lines, line):
        """The lines on which a long condition of a group goes on."""
        for each in lines[lines.index(line) + 1 :]:
            if not each.startswith("  ") or re.match(rf" *({self.names})   ", each):
                return
            yield each

    def _table(self, rows):
        if not rows[0].startswith(("<= ", "any")):
            cells = re.findall(r"(\S.*?): ([+-]?[\d.]+(?:e-?\d+)?)(?: {3}|$)", "   ".join(row.strip() for row in rows))
            points = {}
            for names, value in cells:
                points |= dict.fromkeys(split_names(names), number(value))
            return points
        heads, points, missing = [], [], 0.0
        for i, row in enumerate(rows):
            if i % 2 and (told := re.match(r" *missing: (\S+)(?= )", row)):
                missing, row = number(told[1]), row[told.end() :]
            (points if i % 2 else heads).extend(re.split(r" {2,}", row.strip()))
        if heads[-1] == "missing":
            missing = number(points.pop())
            heads.pop()
        ranges, low = [], -float("inf")
        for head, value in zip(heads, points, strict=True):
            high = number(head.split()[-1]) if head.startswith(("<=", "to")) else float("inf")
            first, _, last = value.partition(" to ")
            ranges.append((low, high, number(first), number(last or first)))
            low = high
        return ranges, missing

    def points(self, table, value):
        if isinstance(table, dict):
            if is_missing(value) or value == "never seen":
                return table.get("missing", 0.0)
            return table[value] if value in table else table["all others"]
        ranges, missing = table
        if is_missing(value):
            return missing
        low, high, first, last = next(each for each in ranges if each[0] < value <= each[1])
        return first if first == last else first + (last - first) * (value - low) / (high - low)
