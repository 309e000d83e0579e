"""A compared tensor beside its reference, and the values of both as numpy takes them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nbkit.capture.replay.copies import tensors_in
from nbkit.capture.replay.reference import CPU, Call, Results
from nbkit.numerics.noise_ratio import growth, summed
from nbkit.numerics.precision import Array, Precision

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
    def factor(self) -> float:
        """What accumulation may add to the noise of rounding."""
        return allowed_growth(self.call, self.position, len(self.results.all), len(self.expected))

    @property
    def summed(self) -> float:
        """Of how many numbers an element is made."""
        return 1.0 if self.call.traits.is_pointwise else summed(self._input_numels, len(self.expected))

    @property
    def _input_numels(self) -> list[int]:
        return input_numels(self.call, self.position, len(self.results.all))


def allowed_growth(call: Call, index: int, count: int, numel: int) -> float:
    """What accumulation may add to the noise of rounding in the result at a place, one of `count`."""
    return 1.0 if call.traits.is_pointwise else growth(input_numels(call, index, count), numel)


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
