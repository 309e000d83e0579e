"""Gives numbers that are wrong by themselves: cut, saturated, flushed, noisy, with a bit or the sign flipped."""

from collections.abc import Callable
from math import log2
from typing import Any

import torch
from torch import Tensor

from nbkit.simulated.call import Call, NotApplicableError, Results
from nbkit.simulated.faults.kinds.kind import Kind
from nbkit.simulated.faults.kinds.values import each_real, require_floats

INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
NOISE_SEED = 5


def truncated_mantissa(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns results of which only `size` mantissa bits are kept, the others cut off."""
    return each_real(call, by_parts(lambda result: truncated(result.double(), int(size)).to(result.dtype)))


def approximate_reciprocal(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns a quotient or a root made with a reciprocal of `size` mantissa bits, without a step of Newton's."""
    if call.name not in RECIPROCALS:
        raise NotApplicableError(f"{call.func} needs no reciprocal; {', '.join(sorted(RECIPROCALS))} do")
    require_floats(call)
    if not isinstance(call.inputs[0], Tensor) or call.inputs[0].is_complex():
        raise NotApplicableError(f"this {call.func} has no tensor of real numbers to divide")
    quotient = RECIPROCALS[call.name](call, int(size))
    return [quotient.to(call.results[0].dtype).expand_as(call.results[0]).clone(), *call.results[1:]]


def saturated_result(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns numbers that end at `size` times the root mean square of the result."""
    return _relative(call, lambda result, scale: result.clamp(-size * scale, size * scale))


def lost_infinity(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns the dtype's largest number in place of Inf."""
    return each_real(call, by_parts(lambda result: result.nan_to_num(nan=torch.nan)))


def flushed_small(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns zero in place of numbers below `size` times the root mean square of the result."""
    return _relative(call, lambda result, scale: torch.where(result.abs() < size * scale, 0.0, result))


def flipped_bit(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns the middle element with one bit of its mantissa flipped: 1 is the highest."""

    def flip(result: Tensor) -> Tensor:
        wrong = result.contiguous().clone()
        place = -int(log2(torch.finfo(result.dtype).eps)) - int(size)
        if place >= 0 and wrong.numel():
            bits = wrong.view(-1).view(INTEGERS[wrong.itemsize])
            bits[len(bits) // 2] ^= 1 << place
        return wrong

    return each_real(call, by_parts(flip))


def added_noise(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns numbers with noise of `size` times the root mean square of the result."""
    generator = torch.Generator().manual_seed(NOISE_SEED)

    def noisy(result: Tensor, scale: Tensor) -> Tensor:
        return result + size * scale * torch.randn(result.shape, generator=generator, dtype=result.dtype)

    return _relative(call, noisy)


def constant_offset(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns numbers too large by `size` times the root mean square of the result."""
    return _relative(call, lambda result, scale: result + size * scale)


def wrong_sign(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns every number with the other sign."""
    return each_real(call, torch.neg)


def truncated(values: Tensor, bits: int) -> Tensor:
    """Returns numbers of float64 cut to so many mantissa bits after the leading one; NaN and Inf stay."""
    mantissa, exponent = torch.frexp(values)
    near = torch.ldexp((mantissa * 2.0 ** (bits + 1)).trunc(), exponent - bits - 1)
    return torch.where(values.isfinite(), near, values)


def by_parts(change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Returns what changes real numbers, and both parts of complex ones."""

    def changed(result: Tensor) -> Tensor:
        if result.is_complex():
            return torch.view_as_complex(change(torch.view_as_real(result.resolve_conj())))
        return change(result)

    return changed


def _relative(call: Call, change: Callable[[Tensor, Tensor], Tensor]) -> Results:
    """Returns results changed in float64 with what their finite numbers have as root mean square."""

    def changed(result: Tensor) -> Tensor:
        wide = result.double()
        finite = wide[wide.isfinite()]
        scale = finite.square().mean().sqrt() if len(finite) else torch.zeros(())
        return change(wide, scale).to(result.dtype)

    return each_real(call, by_parts(changed))


def _reciprocal(values: Tensor, bits: int) -> Tensor:
    return truncated(values.double().reciprocal(), bits)


def _quotient(call: Call, bits: int) -> Tensor:
    below = call.argument("other")
    if call.argument("rounding_mode") is not None:
        raise NotApplicableError(f"this {call.func} rounds its quotient to a whole number")
    below = below if isinstance(below, Tensor) else torch.tensor(float(below))
    above: Tensor = call.inputs[0].double()
    return above * _reciprocal(below, bits)


RECIPROCALS: dict[str, Callable[[Call, int], Tensor]] = {
    "div": _quotient,
    "reciprocal": lambda call, bits: _reciprocal(call.inputs[0], bits),
    "rsqrt": lambda call, bits: truncated(call.inputs[0].double().rsqrt(), bits),
    "sqrt": lambda call, bits: call.inputs[0].double() * truncated(call.inputs[0].double().rsqrt(), bits),
}
KINDS = (
    Kind(
        "truncated_mantissa",
        truncated_mantissa,
        "the result keeps few mantissa bits, the others are cut off",
        "how many bits are kept",
        7,
        smallest=0,
        largest=52,
    ),
    Kind(
        "approximate_reciprocal",
        approximate_reciprocal,
        "a quotient or root is made with a reciprocal of few bits",
        "the mantissa bits of the reciprocal",
        12,
        smallest=1,
        largest=52,
    ),
    Kind(
        "saturated_result",
        saturated_result,
        "numbers end at a multiple of the result's root mean square",
        "the multiple",
        2.0,
    ),
    Kind("lost_infinity", lost_infinity, "Inf becomes the dtype's largest number"),
    Kind(
        "flushed_small",
        flushed_small,
        "numbers below a share of the result's root mean square become zero",
        "the share",
        1e-3,
    ),
    Kind(
        "flipped_bit",
        flipped_bit,
        "one bit of the mantissa of one element is flipped",
        "which bit, 1 is the highest",
        1,
        smallest=1,
        largest=52,
    ),
    Kind(
        "added_noise",
        added_noise,
        "noise is added, as a share of the result's root mean square",
        "the share",
        1e-2,
    ),
    Kind(
        "constant_offset",
        constant_offset,
        "every element is too large by a share of the result's root mean square",
        "the share",
        1e-2,
        smallest=-1e6,
        largest=1e6,
    ),
    Kind("wrong_sign", wrong_sign, "every element has the other sign"),
)
