"""Measures how far a fault moved a result, beside what rounding could have done to it."""

from typing import Any

import torch
from torch import Tensor

from nbkit.simulated.call import Call

# Perturbed runs of the op. Of their signs, never the user's generator.
DRAWS = 4
SEED = 11
# Kernels compute in float32 at least, whatever the dtype they are given.
INNER = torch.finfo(torch.float32).eps
WIDE = {
    **dict.fromkeys((torch.float16, torch.bfloat16, torch.float32), torch.float64),
    **dict.fromkeys((torch.complex32, torch.complex64), torch.complex128),
}


def rounding_ratio(call: Call, wrong: list[Tensor]) -> float | None:
    """Returns the largest change of an element over what rounding may do to it; 1 or less is within rounding.

    That is eps |right| for the result and, for its inputs, the largest change that changing each by the eps of float32
    brings about; their root mean square over the tensor is added, so that an element next to zero is not held to its
    own size. inf where integers, NaN or Inf changed; None for ops that draw random numbers, which may be any, but for
    the output of a dropout that does not fit its mask.
    """
    if _is_drawing(call):
        return _dropout_ratio(call, wrong) if call.name == "native_dropout" else None
    spreads = _spreads(call)
    pairs = zip(call.results, wrong, strict=True)
    return max((_ratio(right, spoilt, spreads[n]) for n, (right, spoilt) in enumerate(pairs)), default=0.0)


def _is_drawing(call: Call) -> bool:
    """Returns whether the call draws random numbers: attention without dropout only could."""
    could = torch.Tag.nondeterministic_seeded in call.func.tags
    return could and not any(call.argument(name) in (0, 0.0) for name in ("dropout_p", "dropout"))


def _dropout_ratio(call: Call, wrong: list[Tensor]) -> float | None:
    """Returns how far the output is from what the mask leaves of the input; None if it fits, or nothing is drawn."""
    out, mask = wrong
    if call.argument("train") is False or call.argument("p") >= 1:
        return None
    fitting = call.argument("input").double() * mask / (1 - call.argument("p"))
    ratio = _ratio(fitting.to(out.dtype), out, 0.0)
    return ratio if ratio > 1 else None


def _ratio(right: Tensor, wrong: Tensor, spread: Tensor | float) -> float:
    if not (right.is_floating_point() or right.is_complex()):
        return 0.0 if torch.equal(right, wrong) else torch.inf
    limits = torch.finfo(right.dtype)
    right, wrong = (tensor.to(WIDE.get(tensor.dtype, tensor.dtype)) for tensor in (right, wrong))
    same = (right == wrong) | (right.isnan() & wrong.isnan())
    change = torch.where(same, 0.0, (wrong - right).abs())
    if not change.isfinite().all():
        return torch.inf
    allowed = (limits.eps * right.abs() + spread).nan_to_num(nan=0.0, posinf=0.0)
    allowed = allowed + allowed.pow(2).mean().sqrt() + limits.smallest_normal * limits.eps
    return float((change / allowed).max()) if change.numel() else 0.0


def _spreads(call: Call) -> list[Any]:
    """Returns for each result what changing the inputs by eps does to its elements; 0 where float64 cannot run it."""
    generator = torch.Generator().manual_seed(SEED)
    try:
        center = _wide_run(call, None)
        spreads = [torch.zeros_like(result, dtype=torch.float64) for result in center]
        for _ in range(DRAWS):
            for number, result in enumerate(_wide_run(call, generator)):
                moved = (result - center[number]).abs().double() if result.dtype in WIDE.values() else spreads[number]
                spreads[number] = torch.maximum(spreads[number], moved.nan_to_num(nan=0.0, posinf=0.0))
    except RuntimeError:
        return [0.0] * len(call.results)
    return spreads


def _wide_run(call: Call, generator: torch.Generator | None) -> list[Tensor]:
    """Returns the results in float64, from inputs changed by eps with random signs if there is a generator."""
    args = [_widened(arg, generator) for arg in call.inputs]
    kwargs = {name: _widened(arg, generator) for name, arg in call.named_inputs.items()}
    return call.results_of(args, kwargs, call.func(*args, **kwargs))


def _widened(value: Any, generator: torch.Generator | None) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_widened(item, generator) for item in value)
    if isinstance(value, torch.dtype):
        return WIDE.get(value, value)
    if not isinstance(value, Tensor):
        return value
    wide = value.to(WIDE.get(value.dtype, value.dtype), copy=True)
    if generator is None or not (wide.is_floating_point() or wide.is_complex()):
        return wide
    signs = torch.randint(0, 2, wide.shape, generator=generator) * 2 - 1
    return wide * (1 + INNER * signs)
