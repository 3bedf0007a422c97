"""Points of rules: which rules hold for a row, and their sum."""

import numpy as np

from toprank._core.jit import kernel


@kernel
def meets(x, is_categorical, low, high, missing, bits):
    """Return whether a value meets a condition: low < x <= high, one of the categories, or missing where that counts.

    Pre:  bits uint64 (4,): the categories; codes outside 0 to 255 count as missing.
    """
    if np.isnan(x):
        return missing
    if is_categorical:
        if x < 0.0 or x >= 256.0:
            return missing
        code = np.int64(x)
        return (bits[code >> 6] >> np.uint64(code & 63)) & np.uint64(1) != 0
    return low < x and x <= high


@kernel
def write_holds(block, condition_at, feature, is_categorical, low, high, missing, bits, out):
    """Write which rules hold for each row.

    Pre:  block float64 (n, n_features), C order; condition_at int64 (n_rules + 1,); the other arrays have one entry per
          condition.
    Post: out bool (n, n_rules).
    """
    for i in range(block.shape[0]):
        for r in range(condition_at.shape[0] - 1):
            holds = True
            for c in range(condition_at[r], condition_at[r + 1]):
                if not meets(block[i, feature[c]], is_categorical[c], low[c], high[c], missing[c], bits[c]):
                    holds = False
                    break
            out[i, r] = holds


@kernel
def add_rule_points(block, condition_at, feature, is_categorical, low, high, missing, bits, points, out):
    """Add the points of the rules that hold for each row to `out`, in the order of the rules.

    Pre:  as in `write_holds`; points float64 (n_rules,); out float64 (n,).
    """
    for i in range(block.shape[0]):
        total = out[i]
        for r in range(condition_at.shape[0] - 1):
            holds = True
            for c in range(condition_at[r], condition_at[r + 1]):
                if not meets(block[i, feature[c]], is_categorical[c], low[c], high[c], missing[c], bits[c]):
                    holds = False
                    break
            if holds:
                total += points[r]
        out[i] = total
