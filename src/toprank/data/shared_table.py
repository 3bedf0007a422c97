"""`SharedTable`: a table that several models are fitted on, or score, and that is prepared once for all of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from operator import is_
from typing import Any

TABLES_KEPT = 2
"""Number of preparations that a `SharedTable` keeps, for training and for scoring each."""


@dataclass
class _Shelf:
    """A small cache of values made from given objects, which are compared by identity."""

    entries: list[tuple[tuple[Any, ...], Hashable, Any]] = field(default_factory=list)

    def find(self, objects: tuple[Any, ...], settings: Hashable) -> Any:
        """The value cached for these objects and equal settings; None if there is none."""
        for i, (others, same, value) in enumerate(self.entries):
            if settings == same and len(objects) == len(others) and all(map(is_, objects, others)):
                self.entries.append(self.entries.pop(i))
                return value
        return None

    def keep(self, objects: tuple[Any, ...], settings: Hashable, value: Any) -> None:
        """Cache a value and its objects, so that no other object can get the same identity; drop the oldest entry."""
        self.entries.append((objects, settings, value))
        del self.entries[:-TABLES_KEPT]


class SharedTable:
    """A table for several fits, in place of X: it is read, encoded, and binned or sorted once.

    A fit with the same objects y and sample_weight and equal `splitter`, `max_bins`, `categorical_features`,
    `keep_columns` and `pos_label` as one of the last two reuses what that one prepared, and with it the linear score
    inside leaves for the same `logistic_C`. In place of X in `decision_function`, `predict` and the like, the table is
    encoded once for all models of one training table. Models and scores are the same, bit for bit; warnings about a
    table's content are issued once.

    Objects are compared by identity: do not change X, y or sample_weight as long as the table is in use. It is meant
    for one thread. Copies in other processes start without what is prepared.

    Parameters
    ----------
    X : array or data frame of shape (n, n_features)
    leaf_depths : iterable of int
        Values of `leaf_depth` with which `MetaAP` will be fitted on it, with equal other parameters. On a small table
        the first fit grows all these trees at once, which is cheaper than one after the other; None and other values
        are grown in their own fit. List only values that will be fitted.

    Examples
    --------
    >>> from toprank import MetaAP, SharedTable
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(1000, random_state=0)
    >>> table = SharedTable(data.X, leaf_depths=[1, 2, 3])
    >>> models = [MetaAP(max_depth=3, leaf_depth=depth).fit(table, data.y) for depth in (1, 2, 3)]
    >>> [model.n_leaves_ for model in models]
    [5, 4, 4]
    """

    def __init__(self, X: Any, leaf_depths: Iterable[int | None] = ()):
        self.X = X
        self.leaf_depths = tuple(sorted({depth for depth in leaf_depths if depth is not None}))
        self.training, self.encoded = _Shelf(), _Shelf()

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedTable, (self.X, self.leaf_depths)


def plain_table(X: Any) -> Any:
    """The table itself, of a `SharedTable` or not."""
    return X.X if isinstance(X, SharedTable) else X
