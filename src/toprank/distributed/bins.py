"""Bins of a table whose rows are on workers: the same that XGBoost finds when it has all rows.

XGBoost's own sketch over workers gives other bins than on one machine. Here each column is sent as a whole to one
worker, a few columns at a time, and XGBoost finds its cuts there. All workers then bin their rows like a small table
whose distinct values are the cuts.
"""

from __future__ import annotations

import numpy as np

from toprank.distributed.partitions import Part, PartitionedCases
from toprank.rankers.boosting.rounds import import_xgboost, single_precision

CELLS = 2**24
"""Values that are sent to a worker at once."""


def reference_rows(data: PartitionedCases, types: list[str], max_bin: int) -> np.ndarray:
    """A small table in which XGBoost finds the bins of the whole one: float32 (n_rows, n_features)."""
    client, n_features = data.parts.client, len(types)
    step = max(1, CELLS // max(len(data.is_positive), 1))
    found = []
    for start in range(0, n_features, step):
        columns = slice(start, min(start + step, n_features))
        pieces = data.parts.map(values_of_part, columns=columns).futures
        found.append(client.submit(cut_values, pieces, types[columns], max_bin, pure=False))
    values = [each for some in client.gather(found) for each in some]
    reference = np.full((max([len(each) for each in values] + [1]), n_features), np.nan, np.float32)
    for f, each in enumerate(values):
        reference[:, f] = np.resize(each, len(reference)) if len(each) else np.nan
    return reference


def values_of_part(part: Part, columns: slice) -> np.ndarray:
    """Some columns of the rows with weight, float32."""
    return single_precision(part.X[part.kept, columns])


def cut_values(pieces: list[np.ndarray], types: list[str], max_bin: int) -> list[np.ndarray]:
    """Values, of each column, in which XGBoost finds the same bins: float32 arrays, empty for one without values.

    The cuts of a column are all of its values but the smallest or, of more than max_bin, some of them; XGBoost adds one
    above the largest. So the smallest, the cuts between and the largest are enough.
    """
    X = np.concatenate(pieces)
    table = import_xgboost().QuantileDMatrix(
        X, feature_types=types, enable_categorical=True, max_bin=max_bin, nthread=1
    )
    starts, cuts = table.get_quantile_cut()
    out = []
    for f, kind in enumerate(types):
        known = X[:, f][~np.isnan(X[:, f])]
        if len(known) == 0 or kind == "c":
            out.append(np.unique(known))
        else:
            between = cuts[int(starts[f]) + 1 : int(starts[f + 1]) - 1]
            out.append(np.unique(np.concatenate((between, [known.min(), known.max()])).astype(np.float32)))
    return out
