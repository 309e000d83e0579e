"""Reads operands wrongly: transposed, swapped, with other strides, at other indices, without a bias."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from nbkit.simulated.call import Call, NotApplicableError, Results
from nbkit.simulated.faults.kinds.kind import Kind

# The second factor of each matrix product, by its name in the schema.
SECOND_FACTORS = {"mm": "mat2", "addmm": "mat2", "bmm": "mat2", "baddbmm": "batch2", "matmul": "other", "mv": "self"}
PAIRS = (("self", "other"), ("self", "mat2"), ("self", "end"), ("mat1", "mat2"), ("batch1", "batch2"))
INDICES = ("indices", "index", "target")
# What is added at an index, by the name of the op: the values, and the dimension that the index runs along.
ACCUMULATING = {"embedding_dense_backward": "grad_output", "index_put": "values", "index_add": "source"}


def transposed_operand(call: Call, size: None, memory: dict[Any, Any]) -> Results | None:
    """Returns the product with its second factor read as if it were transposed, where that is square."""
    name = SECOND_FACTORS.get(call.name)
    if name is None:
        raise NotApplicableError(f"{call.func} is no matrix product")
    factor = call.argument(name)
    return call.rerun({name: factor.mT.clone()}) if factor.shape[-1] == factor.shape[-2] else None


def swapped_operands(call: Call, size: None, memory: dict[Any, Any]) -> Results | None:
    """Returns the op with its two operands in each other's place, where they have one shape."""
    for names in PAIRS:
        left, right = map(call.argument, names)
        if isinstance(left, Tensor) and isinstance(right, Tensor):
            if left.shape != right.shape or left.dtype != right.dtype:
                return None
            return call.rerun({names[0]: right.clone(), names[1]: left.clone()})
    raise NotApplicableError(f"{call.func} has no two operands that could change places")


def ignored_stride(call: Call, size: None, memory: dict[Any, Any]) -> Results | None:
    """Returns the op on inputs read from memory in order, whatever their strides are."""

    def in_order(tensor: Tensor) -> Tensor:
        count = tensor.untyped_storage().nbytes() // max(tensor.itemsize, 1) - tensor.storage_offset()
        if tensor.is_contiguous() or count < tensor.numel() or id(tensor) in call.before:
            return tensor
        read: Tensor = tensor.as_strided((tensor.numel(),), (1,)).reshape(tensor.shape)
        return read

    args, kwargs = tree_map_only(Tensor, in_order, (list(call.args), dict(call.kwargs)))
    names = [argument.name for argument in call.func._schema.arguments]
    return call.rerun({**dict(zip(names, args, strict=False)), **kwargs}) if not call.before else None


def first_batch(call: Call, size: None, memory: dict[Any, Any]) -> Results | None:
    """Returns a product of batches, or attention, whose last factor is that of the first batch for all."""
    name = next((name for name in ("mat2", "batch2", "value") if isinstance(call.argument(name), Tensor)), None)
    if name is None or call.argument(name).dim() < 3:
        raise NotApplicableError(f"{call.func} is no product of batches")
    factor = call.argument(name)
    return call.rerun({name: factor[:1].expand_as(factor).clone()})


def off_by_one_index(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns the op with each index one larger; the largest stays, so that all are in range."""

    def next_one(index: Tensor) -> Tensor:
        if index.dtype is not torch.int64 or not index.numel():
            return index
        return torch.where((index < index.max()) & (index >= 0), index + 1, index)

    name = next((name for name in INDICES if call.argument(name) is not None), None)
    if name is None or not call.args:
        raise NotApplicableError(f"{call.func} takes no indices")
    return call.rerun({name: tree_map_only(Tensor, next_one, call.argument(name))})


def lost_duplicates(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns what was accumulated at indices with only the last of what each of them is given."""
    name = ACCUMULATING.get(call.name)
    index = call.argument("indices") if call.argument("indices") is not None else call.argument("index")
    if isinstance(index, list | tuple):
        index = index[0] if len(index) == 1 else None
    if name is None or not isinstance(index, Tensor) or index.dtype is not torch.int64:
        raise NotApplicableError(f"{call.func} accumulates nothing at indices")
    if call.argument("accumulate") is False or call.argument("dim") not in (None, 0):
        raise NotApplicableError(f"this {call.func} does not accumulate along the first dimension")
    places = index.reshape(-1)
    later = places[None, :] == places[:, None]
    is_last = ~later.triu(1).any(1)
    values = call.argument(name)
    return call.rerun({name: values * is_last.reshape(*index.shape, *[1] * (values.dim() - index.dim()))})


def dropped_bias(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns the op without its bias; of addmm and baddbmm that is what the product is added to."""
    name = "self" if call.name in ("addmm", "baddbmm") else "bias"
    bias = call.argument(name)
    if not isinstance(bias, Tensor) or id(call.args[0]) in call.before:
        raise NotApplicableError(f"{call.func} has no bias")
    return call.rerun({name: torch.zeros_like(bias)})


def flipped_kernel(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns a convolution with its kernel turned round, as in mathematics."""
    weight = _convolution_weight(call)
    return call.rerun({"weight": weight.flip(*range(2, weight.dim()))})


def replicated_border(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns a convolution that sees the nearest pixel where its padding should show zeros."""
    weight, padding = _convolution_weight(call), call.argument("padding")
    if call.name != "convolution" or call.argument("transposed") or not any(padding) or weight.dim() > 5:
        raise NotApplicableError(f"this {call.func} pads nothing")
    sides = [side for one in reversed(padding) for side in (one, one)]
    padded = torch.nn.functional.pad(call.argument("input"), sides, mode="replicate")
    return call.rerun({"input": padded, "padding": [0] * len(padding)})


def _convolution_weight(call: Call) -> Tensor:
    weight = call.argument("weight")
    if not call.name.startswith("convolution") or not isinstance(weight, Tensor):
        raise NotApplicableError(f"{call.func} is no convolution")
    return weight


KINDS = (
    Kind(
        "transposed_operand",
        transposed_operand,
        "a product reads its second factor transposed where that is square",
        needs="a square second factor",
    ),
    Kind(
        "swapped_operands",
        swapped_operands,
        "both operands change places, where they have one shape",
        needs="two operands of one shape and dtype",
    ),
    Kind(
        "ignored_stride",
        ignored_stride,
        "inputs are read from memory in order, whatever their strides",
        needs="an op that writes to none of its inputs",
    ),
    Kind("first_batch", first_batch, "a product of batches reads the last factor of the first batch for all"),
    Kind("off_by_one_index", off_by_one_index, "each index but the largest is one too large"),
    Kind("lost_duplicates", lost_duplicates, "of what is accumulated at the same index only the last counts"),
    Kind("dropped_bias", dropped_bias, "the bias is left out"),
    Kind("flipped_kernel", flipped_kernel, "a convolution turns its kernel round"),
    Kind("replicated_border", replicated_border, "the padding of a convolution repeats the border instead of zeros"),
)
