"""Models that fit on a page, as the commands show them: the page, its red flags alone, and all of it as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toprank.register import entry_of
from toprank.words.counts import plural

if TYPE_CHECKING:
    import numpy as np

    from toprank.metrics import HitRates
    from toprank.rankers.points.card import Card
    from toprank.rankers.points.flags import Flags
    from toprank.tree.columns import Column


@dataclass(frozen=True)
class Page:
    """A model on a page.

    Attributes
    ----------
    text : str
        All of it.
    card : Card
    columns : sequence of Column
    rates : HitRates
    flags : Flags or None
        Rules with points; None for models that have none.
    """

    text: str
    card: Card
    columns: Sequence[Column]
    rates: HitRates
    flags: Flags | None = None

    @classmethod
    def from_model(cls, model: Any) -> Page:
        """Return the page of a fitted model."""
        return cls(model.to_text(), model.card_, model.columns_, model.rates_, getattr(model, "flags_", None))

    @classmethod
    def from_file(cls, path: Path, info: dict[str, Any], arrays: dict[str, np.ndarray]) -> Page:
        """Return the page of the model in a file; red flags are read without scikit-learn, which is faster."""
        from toprank.files.model_file import damage_in, load, without_prefix
        from toprank.metrics.hit_rates import HitRates
        from toprank.rankers.points.card import Card
        from toprank.rankers.points.flag_text import page
        from toprank.rankers.points.flags import Flags
        from toprank.tree.columns import Column

        if "flags_points" not in arrays:
            return cls.from_model(load(path))
        with damage_in(path):
            columns = [Column.from_dict(column) for column in info["columns"]]
            rates = HitRates.from_arrays(without_prefix(arrays, "hit_rates_"))
            flags = Flags.from_arrays(without_prefix(arrays, "flags_"), columns)
            card = Card.from_arrays(without_prefix(arrays, "card_"), columns)
        return cls(page(flags, card, columns, rates), card, columns, rates, flags)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: a score is the base, plus the points of rules that hold, plus those of values."""
        from toprank.rankers.points.card_text import card_columns

        table = card_columns(self.card, self.columns, [shape.feature for shape in self.card.shapes])
        return {
            "base": self.card.base,
            "rules": [flag.to_dict() for flag in self.flags or ()],
            "scorecard": [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)],
            "page": self.text,
        }

    def shown(self, max_rules: int | None = None) -> tuple[str, str]:
        """Return a title and the page, with at most `max_rules` red flags."""
        if self.flags is None or max_rules is None or max_rules >= len(self.flags):
            return "The model", self.text
        from toprank.rankers.points.flag_text import page

        title = f"The model, with the first {max_rules:,} of {plural(len(self.flags), 'red flag')}"
        return title, page(self.flags.take(range(max_rules)), self.card, self.columns, self.rates)

    def flags_alone(self) -> tuple[str, str]:
        """Return a title and the red flags without the card; the page if there are none."""
        if not self.flags:
            return self.shown()
        from toprank.rankers.points.flag_text import flag_lines

        n = len(self.flags)
        title = "The red flag of the model" if n == 1 else f"The {n} red flags of the model"
        return title, "\n".join(flag_lines(self.flags, self.rates.is_for_new_cases))


def page_of(model: Any) -> Page | None:
    """Return the page of a fitted model; None for models that do not fit on one."""
    return Page.from_model(model) if entry_of(model).has_page else None
