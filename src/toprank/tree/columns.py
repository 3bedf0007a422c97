"""`Column`: name, kind and categories of one column of the matrix that a tree reads."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from typing import Any

Category = str | bool | int | float

USUAL_SHARE = 0.5
"""A value that more than this share of the cases have is the usual one."""


@dataclass(frozen=True)
class Usual:
    """What the values of a column usually were in training, missing ones aside.

    Attributes
    ----------
    value : float
        The median, which is the value that more than half of the cases have, if any; of categories the commonest code.
    low, high : float
        The middle 80 % of a number; both are `value` where one value is the usual one, and of categories.
    share : float
        Share of the known values that equal `value`.
    missing : float
        Share of missing values among all.
    """

    value: float
    low: float
    high: float
    share: float
    missing: float

    def __post_init__(self) -> None:
        numbers = astuple(self)
        if not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
            raise ValueError(f"What is usual of a column must be five finite numbers, got {numbers}.")
        if not self.low <= self.value <= self.high or not 0 <= self.share <= 1 or not 0 <= self.missing <= 1:
            raise ValueError(f"What is usual of a column must lie between its bounds, got {numbers}.")

    @property
    def is_one_value(self) -> bool:
        """True where more than half of the cases have the same value."""
        return self.share > USUAL_SHARE


@dataclass(frozen=True)
class Column:
    """One column: a number, or a category held as a code.

    Attributes
    ----------
    name : str
    categories : tuple or None
        None for a numeric column. Otherwise code i stands for categories[i].
    shared : tuple
        Rare categories that share the last code, beside categories[-1].
    has_missing : bool
        False where training saw no missing value; then short texts do not speak of missing values.
    usual : Usual or None
        What is usual in training; None where that is not known.
    """

    name: str
    categories: tuple[Category, ...] | None = None
    shared: tuple[Category, ...] = ()
    has_missing: bool = True
    usual: Usual | None = None

    @property
    def is_categorical(self) -> bool:
        """True where the column holds category codes."""
        return self.categories is not None

    def labels(self, code: int) -> tuple[Category, ...]:
        """Categories that a code stands for."""
        assert self.categories is not None
        last = code == len(self.categories) - 1
        return (self.categories[code], *self.shared) if last else (self.categories[code],)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `from_dict` gives an equal column back."""
        out: dict[str, Any] = {"name": self.name, "kind": "number", "has_missing": self.has_missing}
        if self.usual is not None:
            out["usual"] = list(astuple(self.usual))
        if self.categories is None:
            return out
        out |= {"kind": "category", "categories": list(self.categories)}
        return out | ({"shared": list(self.shared)} if self.shared else {})

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Column:
        """Column of a dictionary that `to_dict` made."""
        usual = None if data.get("usual") is None else Usual(*data["usual"])
        if data["kind"] == "number":
            return cls(data["name"], has_missing=data["has_missing"], usual=usual)
        categories = tuple(data["categories"])
        if usual is not None and usual.value not in range(len(categories)):
            raise ValueError(f"The commonest category of column {data['name']!r} is none of its categories.")
        return cls(data["name"], categories, tuple(data.get("shared", ())), data["has_missing"], usual)
