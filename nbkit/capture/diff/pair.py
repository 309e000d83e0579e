"""A compared tensor beside its reference, and the values of both as numpy takes them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nbkit.capture.replay.copies import tensors_in
from nbkit.capture.replay.op_traits import bound
from nbkit.capture.replay.reference import CPU, Call, Results
from nbkit.numerics.noise_ratio import Allowance, allowance, growth, summed
from nbkit.numerics.precision import Array, Precision
from nbkit.ops.families import LOG_SOFTMAX, SOFTMAX
from nbkit.ops.rounding import ROUNDED_ONCE, SHARED_SUMS

Row = dict[str, Any]


class Pair(NamedTuple):
    """A tensor and its reference, flat, in float64, complex128 or integers."""

    row: Row
    source: Any  # the actual tensor itself, where it is judged at once, or its values
    expected: Array
    precision: Precision | None
    call: Call
    results: Results
    position: int  # of the tensor among the results
    piece_noise: Array | None = None  # as in Measured

    @property
    def actual(self) -> Array:
        """Values of the actual tensor."""
        return flat(self.source) if isinstance(self.source, Tensor) else self.source

    def actual_parts(self) -> Callable[[int, int], Array]:
        """What gives these values between two places, cast only then."""
        source = self.source
        return pieces_of(source.to(CPU)) if isinstance(source, Tensor) else lambda start, end: source[start:end]

    @property
    def allowed(self) -> Allowance:
        """How many times the noise of rounding it may be off."""
        assert self.precision is not None
        return allowance_of(self.call, self.precision, (self.position, len(self.results.all)), len(self.expected))

    @property
    def summed(self) -> float:
        """Of how many numbers an element is made."""
        return summed_at(self.call, (self.position, len(self.results.all)), len(self.expected))


def allowance_of(call: Call, precision: Precision, place: tuple[int, int], numel: int) -> Allowance:
    """How many times the noise of rounding the result at a place, one of so many, may be off."""
    factor = growth(summed_at(call, place, numel))
    return allowance(precision, factor, call.traits.packet in ROUNDED_ONCE and call.rounds_once)


def summed_at(call: Call, place: tuple[int, int], numel: int) -> float:
    """Of how many numbers an element of the result at a place, one of so many, is made."""
    if call.length is not None:
        return call.length
    if call.traits.is_pointwise:
        return 1.0
    packet = call.traits.packet
    if packet in SHARED_SUMS and place[0] == 0:
        return _normalized_over(call) / SHARED_SUMS[packet]
    return summed(input_numels(call, *place), numel)


def _normalized_over(call: Call) -> float:
    """How many numbers share the sum that each of them is divided by, or the mean that is taken from them."""
    arguments = bound(call.traits.func, call.args, call.kwargs)
    values = call.tensors()[0]
    if not values.dim():
        return 1.0
    count = values.numel()
    if "dim" not in arguments:
        return count / max(values.shape[1], 1)
    along: int = values.shape[arguments["dim"]]
    return along if call.traits.packet in SOFTMAX | LOG_SOFTMAX else count / max(along, 1)


def rounds_once(tensor: Tensor) -> bool:
    """Whether a product in half precision, if this is one, is accumulated in float32 to its end.

    cuBLAS may split a long sum and add its parts in half precision, unless these flags of torch forbid it.
    """
    flags = {
        torch.bfloat16: "allow_bf16_reduced_precision_reduction",
        torch.float16: "allow_fp16_reduced_precision_reduction",
    }
    flag = flags.get(tensor.dtype)
    return flag is None or not tensor.is_cuda or not getattr(torch.backends.cuda.matmul, flag)


def pieces_of(tensor: Tensor) -> Callable[[int, int], Array]:
    """What gives a part of a tensor's values, cast only then."""
    if tensor.layout is not torch.strided or tensor.is_quantized:
        values = flat(tensor)
        return lambda start, end: values[start:end]
    line = tensor.detach().reshape(-1)
    return lambda start, end: flat(line[start:end], copy=False)


def flat(tensor: Tensor, *, copy: bool = True) -> Array:
    """A tensor's values as a flat array: float64, complex128 or integers; its own memory if `copy`."""
    tensor = tensor.detach()
    if tensor._is_zerotensor():  # zeros without memory
        tensor = tensor.clone()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_floating_point():
        dtype = torch.float64
    elif tensor.is_complex():
        dtype = torch.complex128
        tensor = tensor.resolve_conj()
    else:
        dtype = torch.uint64 if tensor.dtype is torch.uint64 else torch.int64
    values: Array = tensor.to(CPU, dtype, copy=copy).reshape(-1).resolve_neg().numpy()
    return values


def input_numels(call: Call, index: int, count: int) -> list[int]:
    """Counts the elements of each tensor that the result at a place, one of `count`, is made of.

    Of an op on lists of tensors these are the ones that stand where the result stands.
    """
    values = [*call.args, *call.kwargs.values()]
    lists = [list(tensors_in(value)) for value in values if isinstance(value, list | tuple)]
    lengths = {len(tensors) for tensors in lists if tensors}
    each = lengths.pop() if len(lengths) == 1 else 0
    if each and count % each == 0:
        lists = [tensors[index % each : index % each + 1] for tensors in lists]
    single = [tensor for value in values if not isinstance(value, list | tuple) for tensor in tensors_in(value)]
    return [tensor.numel() for tensor in (*single, *(tensor for tensors in lists for tensor in tensors))]
