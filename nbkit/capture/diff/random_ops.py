"""Random ops: never run again, but checked by what their distribution allows."""

from collections import Counter
from collections.abc import Callable
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.diff.judge import Judge
from nbkit.capture.replay.op_traits import OpTraits, bound
from nbkit.capture.replay.reference import CPU, Call, Results

# Standard deviations that a statistic may be off: one right op in 500 million is called wrong.
SIGMAS = 6.0
PROBABILITIES = ("dropout_p", "dropout")
Check = Callable[[dict[str, Any], list[Tensor]], str | None]


def is_drawing(call: Call) -> bool:
    """Whether the call draws numbers: an attention op without dropout does not."""
    return draws(call.traits, call.args, call.kwargs)


def draws(traits: OpTraits, args: Any, kwargs: Any) -> bool:
    """The same of a call that is not copied."""
    arguments = bound(traits.func, args, kwargs)
    return not any(arguments.get(name) in (0, 0.0) for name in PROBABILITIES)


def check_random(judge: Judge, slot: int, call: Call, actual: Results, skipped: Counter[str]) -> None:
    """A row with the verdict of the op's statistics; ops without one are counted."""
    check = CHECKS.get(call.traits.packet.removesuffix("_"))
    if check is None:
        skipped["random ops without a statistic"] += 1
        return
    skipped["random ops, checked by statistics"] += 1
    first = actual.all[0]
    # The device may be wrong in the very ops that the statistics need.
    arguments = {name: _on_cpu(value) for name, value in bound(call.traits.func, call.args, call.kwargs).items()}
    wrong = check(arguments, [_on_cpu(tensor) for tensor in actual.all]) if first.numel() else None
    message = wrong or "random: checked by statistics"
    judge.add_row(slot, call.traits, "output", 0, first, status="mismatch" if wrong else "ok", message=message)


def _on_cpu(value: Any) -> Any:
    return value.detach().to(CPU) if isinstance(value, Tensor) else value


def _bernoulli(arguments: dict[str, Any], tensors: list[Tensor]) -> str | None:
    out = tensors[0].double()
    p = arguments.get("p")
    wanted = p if p is not None else arguments["self"]
    probability = wanted.double() if isinstance(wanted, Tensor) else torch.full_like(out, float(wanted))
    if bool(((out != 0) & (out != 1)).any()):
        return "random: values other than 0 and 1"
    variance = float((probability * (1 - probability)).sum())
    return _off("ones", float(out.sum()), float(probability.expand_as(out).sum()), sqrt(variance))


def _dropout(arguments: dict[str, Any], tensors: list[Tensor]) -> str | None:
    p = float(arguments["p"])
    kept = tensors[1].double()
    if arguments.get("train") is False:
        return None
    out, entered = (one.to(torch.promote_types(one.dtype, torch.float64)) for one in (tensors[0], arguments["input"]))
    scaled = entered * kept * (1 / (1 - p) if p < 1 else 0.0)
    if not torch.allclose(
        out, scaled.to(out.device), rtol=2 * torch.finfo(tensors[0].dtype).eps, atol=0.0, equal_nan=True
    ):
        return "random: the output is not the kept inputs, scaled"
    count = kept.numel()
    return _off("kept elements", float(kept.sum()), count * (1 - p), sqrt(count * p * (1 - p)))


def _uniform(arguments: dict[str, Any], tensors: list[Tensor]) -> str | None:
    low, high = float(arguments.get("from", 0.0)), float(arguments.get("to", 1.0))
    out = _numbers(tensors[0])
    # Rounding to a narrow dtype can reach the open end.
    if float(out.min()) < low or float(out.max()) > high:
        return f"random: values outside [{low}, {high}): from {float(out.min()):.6g} to {float(out.max()):.6g}"
    return _off(
        "mean", float(out.mean()), (low + high) / 2, (high - low) / sqrt(12 * out.numel()) + _rounding(tensors[0], high)
    )


def _normal(arguments: dict[str, Any], tensors: list[Tensor]) -> str | None:
    mean, std = arguments.get("mean", 0.0), arguments.get("std", 1.0)
    out = _numbers(tensors[0])
    if tensors[0].is_complex():  # each part has half of the variance
        std = std / sqrt(2)
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        scaled = (out - (mean.double() if isinstance(mean, Tensor) else mean)) / (
            std.double() if isinstance(std, Tensor) else std
        )
        out, mean, std = scaled, 0.0, 1.0
    if not bool(torch.isfinite(out).all()):
        return "random: values that are not finite"
    mean, std, count = float(mean), float(std), out.numel()
    if wrong := _off("mean", float(out.mean()), mean, std / sqrt(count) + _rounding(tensors[0], mean)):
        return wrong
    if count < 100:
        return None
    return _off("standard deviation", float(out.std()), std, std / sqrt(2 * count) + _rounding(tensors[0], std))


def _exponential(arguments: dict[str, Any], tensors: list[Tensor]) -> str | None:
    rate, out = float(arguments.get("lambd", 1.0)), tensors[0].double()
    if float(out.min()) < 0:
        return f"random: values below 0, the smallest {float(out.min()):.6g}"
    return _off("mean", float(out.mean()), 1 / rate, 1 / rate / sqrt(out.numel()) + _rounding(tensors[0], 1 / rate))


def _integers(arguments: dict[str, Any], tensors: list[Tensor]) -> str | None:
    low, high, out = int(arguments.get("low", 0)), int(arguments["high"]), tensors[0].double()
    if float(out.min()) < low or float(out.max()) >= high:
        return f"random: values outside [{low}, {high}): from {float(out.min()):.0f} to {float(out.max()):.0f}"
    deviation = sqrt(((high - low) ** 2 - 1) / 12 / out.numel())
    return _off("mean", float(out.mean()), (low + high - 1) / 2, deviation)


def _permutation(arguments: dict[str, Any], tensors: list[Tensor]) -> str | None:
    out = tensors[0].long().sort().values
    return None if torch.equal(out, torch.arange(len(out), device=out.device)) else "random: not a permutation"


def _multinomial(arguments: dict[str, Any], tensors: list[Tensor]) -> str | None:
    weights, out = arguments["self"], tensors[0]
    if int(out.min()) < 0 or int(out.max()) >= weights.shape[-1]:
        return "random: indices outside the weights"
    drawn = weights.gather(-1, out.to(weights.device))
    return None if bool((drawn > 0).all()) else "random: draws of weight 0"


def _numbers(tensor: Tensor) -> Tensor:
    """Values in float64, complex ones as their two parts."""
    return (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor).double()


def _rounding(tensor: Tensor, size: float) -> float:
    """What rounding to the dtype may shift a mean by; in standard deviations it counts once."""
    is_inexact = tensor.is_floating_point() or tensor.is_complex()
    return torch.finfo(tensor.dtype).eps * abs(size) / SIGMAS if is_inexact else 0.0


def _off(what: str, actual: float, wanted: float, deviation: float) -> str | None:
    if abs(actual - wanted) <= SIGMAS * deviation + 1e-9 * abs(wanted):
        return None
    distance = (
        f"{abs(actual - wanted) / deviation:.0f} standard deviations off" if deviation else "no scatter is possible"
    )
    return f"random: {what} {actual:.6g}, expected {wanted:.6g}: {distance}"


CHECKS: dict[str, Check] = {
    "bernoulli": _bernoulli,
    "native_dropout": _dropout,
    "uniform": _uniform,
    "rand": _uniform,
    "rand_like": _uniform,
    "normal": _normal,
    "normal_functional": _normal,
    "randn": _normal,
    "randn_like": _normal,
    "exponential": _exponential,
    "randint": _integers,
    "randint_like": _integers,
    "randperm": _permutation,
    "multinomial": _multinomial,
}
