"""The result of a comparison: the recommended method, why, and the estimator to continue with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toprank.errors import InputError
from toprank.experiment.registry import find_method

if TYPE_CHECKING:
    from toprank.experiment.leaderboard import BoardEntry, Leaderboard


@dataclass(frozen=True)
class Recommendation:
    """The recommended method, and why.

    Attributes
    ----------
    entry : BoardEntry or None
        The recommended method; None if there are too few splits to tell.
    text : str
        The recommendation in words.
    candidates : tuple of BoardEntry
        Methods to continue with, in order of preference: the recommended one, readable ones that are level with the
        best, the others that are level with it, then the rest, best first. If the recommended one is readable, readable
        ones come first among the rest. Empty if nothing is recommended.
    """

    entry: BoardEntry | None
    text: str
    candidates: tuple[BoardEntry, ...]

    def make_estimator(self) -> Any:
        """An unfitted estimator of the recommended method, with the setting that most splits chose."""
        if self.entry is None:
            raise InputError(f"No method is recommended: {self.text}")
        return find_method(self.entry.name).make(**self.entry.setting)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        entry = self.entry
        return {
            "recommended": None if entry is None else entry.name,
            "title": None if entry is None else entry.title,
            "setting": None if entry is None else dict(entry.setting),
            "recommendation": self.text,
            "candidates": [each.name for each in self.candidates],
        }


def recommend(board: Leaderboard) -> Recommendation:
    """The method to use from a leaderboard: the smallest readable one that is level with the best.

    Parameters
    ----------
    board : Leaderboard
        What `compare` returns.

    Examples
    --------
    >>> from toprank.datasets import make_audit
    >>> from toprank.workflow import compare, recommend
    >>> data = make_audit(600, positive_rate=0.1, random_state=0)
    >>> board = compare(data.X, data.y, methods=["tree", "gini-rate"], n_splits=3, n_workers=1)
    >>> advice = recommend(board)
    >>> advice.to_dict()["recommended"] == advice.entry.name
    True
    >>> type(advice.make_estimator()).__name__
    'RankingTree'
    """
    best = board.recommended
    ordered = []
    if best is not None:
        level = [entry for entry in board.entries if board.verdict(entry) in ("best", "level")]
        rest = sorted(board.entries, key=lambda entry: best.is_readable and not entry.is_readable)  # else best first
        ordered = [best, *board.level_readable, *level, *rest]
    unique = {entry.name: entry for entry in ordered}
    return Recommendation(best, board.recommendation(), tuple(unique.values()))
