"""Tensors that share memory: copies of them do not, so that a write to one of them is not seen in the others."""

from itertools import pairwise

from torch import Tensor

from nbkit.trace.captured_values import extent


def overlap(tensors: list[Tensor]) -> bool:
    """Whether the memory of different tensors may overlap: that of two interleaved views, too, is said to."""
    different = {id(one): one for one in tensors}.values()
    if len(different) < 2:
        return False
    # A wrapper around another tensor has no address.
    ranges = sorted(_range(one) for one in different if one.numel() and one.data_ptr())
    return any(before[1] > after[0] for before, after in pairwise(ranges))


def _range(tensor: Tensor) -> tuple[int, int]:
    """First byte, and the one behind the last."""
    start = tensor.data_ptr()
    return start, start + extent(tensor.shape, tensor.stride()) * tensor.element_size()
