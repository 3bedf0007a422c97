"""Reads the reasons of alerts and says what is wrong with them, knowing the raw tables and nothing of the package."""

import json
import math
import re
from collections import Counter

NUMBER = r"-?(?:[\d,]*\.?\d+(?:e[+-]?\d+)?)"
BOUND = re.compile(rf"(>|<=) ({NUMBER})")


def is_missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


def as_number(text):
    return float(text.replace(",", ""))


class Column:
    """Training values of one column, counted."""

    def __init__(self, values, most_categories=254):
        self.known = [value for value in values if not is_missing(value)]
        self.is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.known)
        self.n, self.counts = len(values), Counter(self.known)
        self.missing_share = 1 - len(self.known) / len(values)
        kept = sorted(self.counts, key=lambda c: (-self.counts[c], c))
        pools = not self.is_number and len(kept) > most_categories
        self.pooled = set(kept[most_categories - 1 :]) if pools else set()

    def share(self, holds):
        return sum(n for value, n in self.counts.items() if holds(value)) / len(self.known)


class ReasonReader:
    """Checks reasons against the case they are given for, and against the training table.

    `train` is a dict of lists; a missing value is None or NaN.
    """

    def __init__(self, train):
        self.columns = {name: Column(values) for name, values in train.items()}
        self.kinds = Counter()  # what was met: a test that meets nothing shows nothing

    def problems(self, text, case):
        """What is untrue about a reason of a case, a dict of raw values: a list of str, empty where all is true."""
        names = [name for name in self.columns if text.startswith((f"{name} = ", f"{name} is missing"))]
        if not names:
            return [f"no column is named in {text!r}"]
        name = max(names, key=len)
        column, value = self.columns[name], case[name]
        rest = text.removeprefix(name)
        if rest.startswith(" is missing"):
            return self.missing_problems(column, value, rest.removeprefix(" is missing"))
        if is_missing(value):
            return [f"the case has no {name}, but {text!r}"]
        check = self.number_problems if column.is_number else self.category_problems
        return [f"{problem}: {text!r} of {value!r}" for problem in check(column, value, rest.removeprefix(" = "))]

    def missing_problems(self, column, value, remark):
        self.kinds["missing"] += 1
        problems = [] if is_missing(value) else [f"{value!r} is not missing"]
        if remark == " (never in training)":
            return problems + (["was missing in training"] if column.missing_share else [])
        share = as_number(re.fullmatch(rf" \(as in ({NUMBER}) % of cases\)", remark)[1])
        return problems + ([] if math.isclose(share / 100, column.missing_share, rel_tol=0.06) else ["wrong share"])

    def number_problems(self, column, value, text):
        shown, remarks = re.fullmatch(rf"({NUMBER}) \((.*)\)", text).groups()
        shown, problems = as_number(shown), []
        if not math.isclose(shown, value, rel_tol=6e-4, abs_tol=1e-12):
            problems.append("another value")
        for sign, bound in BOUND.findall(remarks):
            self.kinds["bound"] += 1
            holds = [x > as_number(bound) if sign == ">" else x <= as_number(bound) for x in (shown, value)]
            # A bound is rounded down: exact values on a finer grid than is shown may lie between the two.
            if not holds[0] or (sign == ">" and not holds[1]):
                problems.append(f"{sign} {bound} does not hold")
        last = remarks.rpartition(", ")[2] if BOUND.search(remarks) else remarks
        if span := re.fullmatch(rf"usually at (least|most) ({NUMBER})", last):
            self.kinds["usual range"] += 1
            end, is_least = as_number(span[2]), span[1] == "least"
            if shown >= end if is_least else shown <= end:
                problems.append("as usual")
            if column.share(lambda x: x >= end if is_least else x <= end) < 0.9:
                problems.append("not usual")
        elif one := re.fullmatch(rf"usually ({NUMBER})", last):
            self.kinds["usual number"] += 1
            usual = as_number(one[1])
            if shown == usual:
                problems.append("as usual")
            if column.share(lambda x: math.isclose(x, usual, rel_tol=6e-4)) < 0.5:
                problems.append("not usual")
        elif middle := re.fullmatch(rf"median ({NUMBER})", last):
            self.kinds["median"] += 1
            slack = 6e-4 * abs(as_number(middle[1]))
            if min(column.share(lambda x: x <= as_number(middle[1]) + slack),
                   column.share(lambda x: x >= as_number(middle[1]) - slack)) < 0.5:  # fmt: skip
                problems.append("not the median")
        else:
            problems += self.share_problems(column, value, last)
        return problems

    def share_problems(self, column, value, remark):
        self.kinds["how often"] += 1
        share = as_number(re.fullmatch(rf"as in ({NUMBER}) % of cases", remark)[1])
        return [] if math.isclose(share / 100, column.counts[value] / column.n, rel_tol=0.06) else ["wrong share"]

    def category_problems(self, column, value, text):
        label, remark = re.fullmatch(r"(.*) \(([^()]*(?:\([^()]*\))?[^()]*)\)", text).groups()
        problems = [] if self.is_label(label, value) else ["another value"]
        if remark == "never seen in training":
            self.kinds["unseen"] += 1
            return problems + (["was seen"] if column.counts[value] else [])
        if not column.counts[value]:
            return [*problems, "was never seen"]
        if pool := re.fullmatch(r"one of ([\d,]+) rare values", remark):
            self.kinds["pooled"] += 1
            is_true = value in column.pooled and as_number(pool[1]) == len(column.pooled)
            return problems + ([] if is_true else ["not pooled"])
        if value in column.pooled:
            return [*problems, "pooled"]
        if other := re.fullmatch(r"(usually|most often) (.*)", remark):
            self.kinds["other category"] += 1
            if (n_pooled := re.fullmatch(r"one of ([\d,]+) rare values", other[2])) is not None:
                return problems + ([] if as_number(n_pooled[1]) == len(column.pooled) else ["wrong pool"])
            common, n = column.counts.most_common(1)[0]
            ties = [c for c in column.counts if column.counts[c] == n]
            if not any(self.is_label(other[2], c) for c in ties):
                problems.append(f"{common!r} is the commonest")
            if (other[1] == "usually") != (n / len(column.known) > 0.5):
                problems.append("wrong word for how often")
            return problems
        return problems + self.share_problems(column, value, remark)

    @staticmethod
    def is_label(label, value):
        """Whether a label stands for a value: as it is on one line, in quotes, or cut off after 37 characters."""
        plain = json.loads(label) if label.startswith('"') else label
        whole = " ".join(str(value).split())
        return plain in (whole, str(value)) or (plain.endswith("...") and whole.startswith(plain[:-3].strip()))


def alert_problems(reader, alert, case, n_reasons):
    """What is untrue about the reasons of an alert, a dict of its columns."""
    texts = [alert[f"reason_{i}"] for i in range(1, n_reasons + 1)]
    strengths = [alert[f"strength_{i}"] for i in range(1, n_reasons + 1)]
    n = sum(text != "" for text in texts)
    problems = [] if all(texts[:n]) else ["a gap between reasons"]
    problems += [] if all(map(is_missing, strengths[n:])) else ["a strength without a reason"]
    if any(is_missing(s) or not s > 1 for s in strengths[:n]) or strengths[:n] != sorted(strengths[:n], reverse=True):
        problems.append(f"strengths {strengths}")
    names = [text.partition(" = ")[0].partition(" is missing")[0] for text in texts[:n]]
    if len(set(names)) < n:
        problems.append(f"two reasons about one column: {names}")
    return problems + [problem for text in texts[:n] for problem in reader.problems(text, case)]
