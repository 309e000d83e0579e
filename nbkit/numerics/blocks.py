"""Reads arrays block by block: what is made of a block stays in a core's cache, and no whole array is widened."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
# So short that a BLAS does not wake its threads for an inner product.
BLOCK = 1 << 13


def blocks(arrays: Sequence[Array], dtype: Any, length: int = BLOCK) -> Iterator[tuple[Array, ...]]:
    """Yields the elements of arrays of one shape in C order, as flat blocks of a dtype; none is to be kept, or written.

    Views are read as they lie: no copy of them is made as a whole.
    """
    if arrays[0].size <= length:
        yield tuple(array.astype(dtype).reshape(-1) for array in arrays)
        return
    found = np.nditer(
        tuple(arrays),
        flags=["external_loop", "buffered"],
        op_flags=[["readonly"]] * len(arrays),
        op_dtypes=[np.dtype(dtype)] * len(arrays),
        order="C",
        casting="unsafe",
        buffersize=length,
    )
    with found:
        for block in found:
            yield block if len(arrays) > 1 else (block,)  # type: ignore[misc]


def inner_product(left: Array, right: Array) -> float:
    """Returns the sum of products of two flat arrays, block by block; of complex ones the real part."""
    whole = len(left) - len(left) % BLOCK
    if "c" in (left.dtype.kind, right.dtype.kind):
        found = [np.vdot(left[at : at + BLOCK], right[at : at + BLOCK]).real for at in range(0, whole, BLOCK)]
    else:
        found = np.matmul(left[:whole].reshape(-1, 1, BLOCK), right[:whole].reshape(-1, BLOCK, 1)).ravel()
    return float(sum(found) + np.vdot(left[whole:], right[whole:]).real)


def same_bits(left: Array, right: Array) -> bool:
    """Returns whether two arrays of one shape and dtype have the same bits; false of views that are not in order."""
    if left.dtype != right.dtype or not (left.flags.c_contiguous and right.flags.c_contiguous):
        return False
    size = left.nbytes
    word = np.uint64 if size % 8 == 0 else np.uint8
    one, other = left.reshape(-1).view(word), right.reshape(-1).view(word)
    return all(
        np.array_equal(one[start : start + BLOCK], other[start : start + BLOCK]) for start in range(0, len(one), BLOCK)
    )
