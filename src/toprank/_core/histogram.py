"""Two-channel histograms: positive and total weight per (node, feature, bin)."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from toprank._core.jit import kernel

PREFETCH_ROWS = 32
"""How many rows ahead bins and weights are prefetched: the rows of a small node are far apart in memory."""


@intrinsic
def _prefetch(typing_context: Any, array: Any, indices: Any) -> Any:
    """Compile to LLVM's prefetch of array[indices]; indices is a tuple of int64, not negative.

    A hint to fetch the cache line of an element that will be read soon: it changes no result, and does not wait for the
    value as a load would. Growing a tree of depth 8 on 1,000,000 rows of 30 columns takes a quarter less processor time
    with it (0.09 s instead of 0.12 s), the histograms of small nodes half.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        view = context.make_array(array_type)(context, builder, arguments[0])
        index = cgutils.unpack_tuple(builder, arguments[1])
        pointer = cgutils.get_item_pointer(context, builder, array_type, view, index, wraparound=False)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        hint = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, hint, "llvm.prefetch.p0")
        to_read, keep_close, is_data = (ir.Constant(number, value) for value in (0, 3, 1))
        builder.call(function, [builder.bitcast(pointer, byte), to_read, keep_close, is_data])
        return context.get_dummy_value()

    return types.void(array, indices), generate


def _nothing(array: Any, indices: Any) -> None:
    """The hint does nothing if kernels run as plain Python."""


prefetch = _nothing if getattr(config, "DISABLE_JIT", False) else _prefetch


@kernel
def fetch_row(binned, packed, row):
    """Prefetch a row's bins, every cache line of them, and its weight."""
    prefetch(packed, (row,))
    for f in range(0, binned.shape[1], 64):
        prefetch(binned, (row, np.int64(f)))
    prefetch(binned, (row, np.int64(binned.shape[1] - 1)))


@kernel
def packed_histograms(binned, rows, chunks, offsets, packed, scratch, first_node, shared, out):
    """Add up both channels of each chunk's node, packed into one int64 per bin.

    The first node of a run of chunks may be shared with another thread: its sums go to `shared`, the others to `out`.

    Pre:  chunks int64 (m, 3): node, start, stop into rows; ordered by node. packed int64 (n_rows,) holds
          positive weight * 2**32 + total weight. scratch int64 (total_bins,). first_node = chunks[0, 0].
          shared and out[node] are zeroed, (total_bins, 2). Indices are unsigned, to avoid the test for negative ones.
    Cost: rows * n_features additions, 0.5 to 1 ns each.
    """
    n_features = binned.shape[1]
    c = 0
    while c < chunks.shape[0]:
        node = chunks[c, 0]
        scratch[:] = 0
        while c < chunks.shape[0] and chunks[c, 0] == node:
            start, stop = chunks[c, 1], chunks[c, 2]
            last = stop - (stop - start) % 4
            for i in range(start, last, 4):  # four rows at a time: their additions overlap
                ahead = min(i + PREFETCH_ROWS, last - 4)
                for k in range(4):
                    fetch_row(binned, packed, np.int64(rows[ahead + k]))
                row, second, third, fourth = (
                    np.uintp(rows[i]), np.uintp(rows[i + 1]), np.uintp(rows[i + 2]), np.uintp(rows[i + 3])
                )  # fmt: skip
                weight, second_weight, third_weight, fourth_weight = (
                    packed[row], packed[second], packed[third], packed[fourth]
                )  # fmt: skip
                for f in range(n_features):
                    offset, column = offsets[f], np.uintp(f)
                    scratch[offset + np.uintp(binned[row, column])] += weight
                    scratch[offset + np.uintp(binned[second, column])] += second_weight
                    scratch[offset + np.uintp(binned[third, column])] += third_weight
                    scratch[offset + np.uintp(binned[fourth, column])] += fourth_weight
            for i in range(last, stop):
                row = np.uintp(rows[i])
                for f in range(n_features):
                    scratch[offsets[f] + np.uintp(binned[row, np.uintp(f)])] += packed[row]
            c += 1
        target = shared if node == first_node else out[node]
        for b in range(scratch.shape[0]):
            target[b, 0] += scratch[b] >> 32
            target[b, 1] += scratch[b] & 0xFFFFFFFF


@kernel
def wide_histograms(binned, rows, chunks, offsets, positive, total, first_node, shared, out):
    """Add up both channels in an int64 each, for weights too large to share one.

    Pre:  as packed_histograms, with separate positive and total weights, int64 (n_rows,).
    Cost: 2 * rows * n_features additions.
    """
    n_features = binned.shape[1]
    for c in range(chunks.shape[0]):
        node = chunks[c, 0]
        target = shared if node == first_node else out[node]
        for i in range(chunks[c, 1], chunks[c, 2]):
            row = rows[i]
            for f in range(n_features):
                b = offsets[f] + binned[row, f]
                target[b, 0] += positive[row]
                target[b, 1] += total[row]
