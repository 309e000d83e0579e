"""Random ops: never run again, but checked by what their distribution allows."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.diff.judge import Judge
from nbkit.capture.diff.random_repeats import Repeats
from nbkit.capture.diff.random_statistics import (
    IN_BIN,
    MOST_BINS,
    SIGMAS,
    bins_off,
    chi_square_sigmas,
    count_off,
    off,
    rows_alike,
    scatter_off,
    shape_off,
)
from nbkit.capture.replay.op_traits import bound
from nbkit.capture.replay.reference import CPU, Call, Results
from nbkit.ops.names import base_of

# Shorter ones come twice by chance.
FEWEST_OF_A_PERMUTATION = 16
Check = Callable[[dict[str, Any], list[Tensor]], str | None]


@dataclass
class DrawHistory:
    """What a recording has seen of random ops: counts, the last draws of each; and the generator's state just now."""

    skipped: Counter[str]
    repeats: Repeats = field(default_factory=Repeats)
    generator_state: bytes | None = None


def check_random(judge: Judge, slot: int, call: Call, actual: Results, history: DrawHistory) -> None:
    """A row with the verdict of the op's statistics; ops without one are counted."""
    packet = base_of(call.traits.packet)
    check = CHECKS.get(packet)
    if check is None:
        history.skipped["random ops without a statistic"] += 1
        return
    history.skipped["random ops, checked by statistics"] += 1
    first = actual.all[0]
    # The device may be wrong in the very ops that the statistics need.
    arguments = {name: _on_cpu(value) for name, value in bound(call.traits.func, call.args, call.kwargs).items()}
    tensors = [_on_cpu(tensor) for tensor in actual.all]
    wrong = None
    if first.numel():
        wrong = check(arguments, tensors) or _not_new(call, arguments, tensors, history)
    message = wrong or "random: checked by statistics"
    judge.add_row(slot, call.traits, "output", 0, first, status="mismatch" if wrong else "ok", message=message)


def _not_new(call: Call, arguments: dict[str, Any], tensors: list[Tensor], history: DrawHistory) -> str | None:
    """What is wrong with draws that are alike in all rows, or those of the last such call."""
    packet, out = base_of(call.traits.packet), tensors[0]
    out = torch.view_as_real(out.resolve_conj()) if out.is_complex() else out
    if packet == "randperm" and out.numel() < FEWEST_OF_A_PERMUTATION:
        return None
    chance: float | Tensor | None = None
    if packet == "bernoulli":
        chance = arguments["self"] if arguments.get("p") is None else arguments["p"]
    elif packet == "native_dropout":
        if arguments.get("train") is False:
            return None
        out, chance = tensors[1], 1 - arguments["p"]
    if wrong := rows_alike(out, chance):
        return wrong
    before, after = call.generator_state, history.generator_state
    if before is None or after is None:
        return None
    numbers = tuple(value for value in call.args if isinstance(value, int | float))
    return history.repeats.found((call.traits.func, out.shape, out.dtype, numbers), out, chance, (before, after))


def _on_cpu(value: Any) -> Any:
    return value.detach().to(CPU) if isinstance(value, Tensor) else value


def _bernoulli(arguments: dict[str, Any], tensors: list[Tensor]) -> str | None:
    out = tensors[0].double()
    p = arguments.get("p")
    wanted = p if p is not None else arguments["self"]
    probability = wanted.double() if isinstance(wanted, Tensor) else torch.full_like(out, float(wanted))
    if bool(((out != 0) & (out != 1)).any()):
        return "random: values other than 0 and 1"
    probability = probability.expand_as(out)
    variance = float((probability * (1 - probability)).sum())
    return count_off("ones", float(out.sum()), float(probability.sum()), variance)


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
    return count_off("kept elements", float(kept.sum()), count * (1 - p), count * p * (1 - p))


def _uniform(arguments: dict[str, Any], tensors: list[Tensor]) -> str | None:
    low, high = float(arguments.get("from", 0.0)), float(arguments.get("to", 1.0))
    out, width = _numbers(tensors[0]), high - low
    # Rounding to a narrow dtype can reach the open end.
    if float(out.min()) < low or float(out.max()) > high:
        return f"random: values outside [{low}, {high}): from {float(out.min()):.6g} to {float(out.max()):.6g}"
    spread = width / sqrt(12 * out.numel()) + _rounding(tensors[0], max(abs(low), abs(high)))
    if wrong := off("mean", float(out.mean()), (low + high) / 2, spread):
        return wrong
    if not width:
        return None
    return shape_off(
        out, lambda x: ((x - low) / width).clamp(0, 1), lambda share: low + share * width, _smallest(tensors[0])
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
    if wrong := off("mean", float(out.mean()), mean, std / sqrt(count) + _rounding(tensors[0], mean)):
        return wrong
    rounding = _rounding(tensors[0], abs(mean) + std)
    if wrong := scatter_off(out, mean, std, rounding):
        return wrong
    if not std or not isinstance(arguments.get("mean", 0.0), float) or not isinstance(arguments.get("std", 1.0), float):
        return None
    ndtr, ndtri = torch.special.ndtr, torch.special.ndtri
    return shape_off(
        out, lambda x: ndtr((x - mean) / std), lambda share: mean + std * ndtri(share), _smallest(tensors[0])
    )


def _exponential(arguments: dict[str, Any], tensors: list[Tensor]) -> str | None:
    rate, out = float(arguments.get("lambd", 1.0)), tensors[0].double()
    if float(out.min()) < 0:
        return f"random: values below 0, the smallest {float(out.min()):.6g}"
    wanted, mean = 1 / rate, float(out.mean())
    # A sum of exponential numbers has a chi-square distribution.
    bounds = [max(mean + sign * SIGMAS * _rounding(tensors[0], wanted), 0.0) for sign in (-1, 1)]
    low, high = (chi_square_sigmas(2 * out.numel() * bound * rate, 2 * out.numel()) for bound in bounds)
    if low > SIGMAS or high < -SIGMAS:
        return f"random: mean {mean:.6g}, expected {wanted:.6g}"
    return shape_off(
        out, lambda x: -torch.expm1(-rate * x), lambda share: -torch.log1p(-share) / rate, _smallest(tensors[0])
    )


def _integers(arguments: dict[str, Any], tensors: list[Tensor]) -> str | None:
    low, high, out = int(arguments.get("low", 0)), int(arguments["high"]), tensors[0].double()
    if float(out.min()) < low or float(out.max()) >= high:
        return f"random: values outside [{low}, {high}): from {float(out.min()):.0f} to {float(out.max()):.0f}"
    deviation = sqrt(((high - low) ** 2 - 1) / 12 / out.numel())
    if wrong := off("mean", float(out.mean()), (low + high - 1) / 2, deviation):
        return wrong
    bins = min(high - low, MOST_BINS, out.numel() // IN_BIN)
    if bins < 2 or tensors[0].is_floating_point():
        return None
    edges = torch.tensor([-(-number * (high - low) // bins) for number in range(bins + 1)], dtype=torch.float64)
    places = torch.bucketize(out.reshape(-1) - low, edges, right=True) - 1
    counts, sizes = places.bincount(minlength=bins).double(), edges[1:] - edges[:-1]
    return bins_off(counts, out.numel() * sizes / (high - low), torch.zeros(bins + 1))


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


def _smallest(tensor: Tensor) -> tuple[float, float]:
    """Eps of a dtype, and its smallest number."""
    limits = torch.finfo(tensor.dtype)
    return limits.eps, limits.smallest_normal * limits.eps


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
