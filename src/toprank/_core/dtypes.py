"""Fixed-width types of all arrays shared by kernels, each with its reason."""

import numpy as np

BIN = np.uint8
"""A bin code: 255 value bins plus one for missing values fit into one byte; a row of bins fits into few cache lines."""

ROW = np.int32
"""A row index: half the memory traffic of 64 bits; `MAX_ROWS` guards the range."""

NODE = np.int32
"""A node, feature or bin position inside one tree."""

WEIGHT = np.int64
"""A sum of weights. Weights are integers (fixed point when they have fractions), so sums do not depend on order."""

VALUE = np.float64
"""A feature value, threshold or score. Narrower inputs are widened exactly before any comparison."""

MAX_BINS = 255
"""Value bins of one column; code `n_bins` is the bin of missing values."""

MAX_ROWS = 2**31 - 1

PACKED_LIMIT = 2**31
"""Total weight below which positive and total weight fit into the two halves of one int64."""

SPLIT = np.dtype(
    [
        ("gain", np.float64),
        ("positive_left", np.int64),
        ("total_left", np.int64),
        ("richer", np.int64),
        ("feature", np.int32),
        ("last_left", np.int32),
        ("first_right", np.int32),
        ("missing_left", np.uint8),
    ],
    align=True,
)
"""The best condition of a node. `last_left` and `first_right` are the codes on both sides of a numeric cut (first_right
= -1: only missing values go right); `richer` breaks ties between equal gains; feature = -1: no condition splits the
node."""

CONDITION = np.dtype(
    [
        ("threshold", np.float64),
        ("feature", np.int32),
        ("left", np.int32),
        ("right", np.int32),
        ("category_at", np.int32),
        ("kind", np.uint8),
        ("missing_left", np.uint8),
    ],
    align=True,
)
"""A node as traversal reads it: half a cache line, so that one step down costs one lookup."""

# Kinds of conditions, as stored in a tree.
LEAF = 0
NUMERIC = 1
CATEGORY = 2
OBLIQUE = 3

# Split criteria.
AP = 0
AUC = 1
GINI = 2
ENTROPY = 3
ERROR = 4
CRITERIA = {"ap": AP, "auc": AUC, "gini": GINI, "entropy": ENTROPY, "error": ERROR}
