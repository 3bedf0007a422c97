"""`Column`: name, kind and categories of one column of the matrix that a tree reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Category = str | bool | int | float


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
    """

    name: str
    categories: tuple[Category, ...] | None = None
    shared: tuple[Category, ...] = ()
    has_missing: bool = True

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
        if self.categories is None:
            return out
        out |= {"kind": "category", "categories": list(self.categories)}
        return out | ({"shared": list(self.shared)} if self.shared else {})

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Column:
        """Column of a dictionary that `to_dict` made."""
        if data["kind"] == "number":
            return cls(data["name"], has_missing=data["has_missing"])
        return cls(data["name"], tuple(data["categories"]), tuple(data.get("shared", ())), data["has_missing"])
