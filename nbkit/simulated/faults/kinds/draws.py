"""Draws random numbers wrongly: too narrow, alike in all rows or calls, at another rate, dropout without its scale.

A dropout is spoiled with the mask that it has drawn, or with another one to which its output fits.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nbkit.simulated.call import Call, NotApplicableError, Results
from nbkit.simulated.faults.kinds.kind import Kind

NORMAL = ("normal", "randn", "randn_like", "normal_functional")
UNIFORM = ("uniform", "rand", "rand_like")
SEED = 3


def unscaled_dropout(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns what a dropout keeps as it is, not 1 / (1 - p) times as large."""
    entered, mask = _dropout(call)
    return [entered * mask, mask]


def repeated_random_row(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns numbers of which each row, along the last axis, is the first one."""
    return _with_draws(call, lambda drawn: drawn.reshape(-1, drawn.shape[-1])[:1].expand(drawn.shape))


def repeated_draws(call: Call, size: None, memory: dict[Any, Any]) -> Results | None:
    """Returns the numbers of the first call of the same op with results of the same sizes; None for that one."""
    key = (call.func, *((tuple(result.shape), result.dtype) for result in call.results))
    drawn = _drawn(call)
    if key not in memory:
        memory[key] = drawn.clone()
        return None
    earlier: Tensor = memory[key]
    return _with_draws(call, lambda now: earlier)


def narrow_draws(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns normal or uniform numbers `size` times as far from their mean."""
    if call.name in NORMAL:
        mean = call.argument("mean")
    elif call.name in UNIFORM:
        mean = sum(call.argument(name) or default for name, default in (("from", 0.0), ("to", 1.0))) / 2
    else:
        raise NotApplicableError(f"{call.func} draws neither normal nor uniform numbers")
    if isinstance(mean, Tensor) or call.results[0].is_complex():
        raise NotApplicableError(f"this {call.func} has no one mean")
    middle = mean or 0.0
    return _with_draws(call, lambda drawn: (drawn - middle) * size + middle)


def uniform_for_normal(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns uniform numbers with the mean and standard deviation that normal ones should have."""
    if call.name not in NORMAL or call.results[0].is_complex():
        raise NotApplicableError(f"{call.func} draws no normal numbers")
    generator = torch.Generator().manual_seed(SEED)
    mean, std = (call.argument(name) for name in ("mean", "std"))
    mean, std = 0.0 if mean is None else mean, 1.0 if std is None else std
    drawn = torch.rand(call.results[0].shape, generator=generator, dtype=torch.float64)
    return _with_draws(call, lambda _: mean + std * (drawn - 0.5) * 12**0.5)


def wrong_rate(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns a dropout or Bernoulli draws in which `size` of the ones have become zeros."""
    if call.name not in ("native_dropout", "bernoulli"):
        raise NotApplicableError(f"{call.func} draws no zeros and ones")
    generator = torch.Generator().manual_seed(SEED)
    return _with_draws(call, lambda drawn: drawn * (torch.rand(drawn.shape, generator=generator) >= size))


def _drawn(call: Call) -> Tensor:
    """Returns the numbers that a call draws: of a dropout its mask."""
    if torch.Tag.nondeterministic_seeded not in call.func.tags or not call.results:
        raise NotApplicableError(f"{call.func} draws no random numbers")
    if call.name == "native_dropout":
        return _dropout(call)[1]
    if len(call.results) != 1 or not call.results[0].dim():
        raise NotApplicableError(f"{call.func} draws more, or less, than one tensor of random numbers")
    return call.results[0]


def _with_draws(call: Call, change: Callable[[Tensor], Tensor]) -> Results:
    drawn = _drawn(call)
    wrong = change(drawn).to(drawn.dtype).clone()
    if call.name != "native_dropout":
        return [wrong]
    entered, _ = _dropout(call)
    return [entered * wrong / (1 - call.argument("p")), wrong]


def _dropout(call: Call) -> tuple[Tensor, Tensor]:
    """Returns what enters a dropout that draws, and the mask that it has drawn."""
    if call.name != "native_dropout" or call.argument("train") is False or call.argument("p") >= 1:
        raise NotApplicableError(f"{call.func} is no dropout that draws")
    return call.argument("input"), call.results[1]


KINDS = (
    Kind("unscaled_dropout", unscaled_dropout, "a dropout does not scale what it keeps"),
    Kind("repeated_random_row", repeated_random_row, "all rows of random numbers, or of a dropout's mask, are alike"),
    Kind(
        "repeated_draws",
        repeated_draws,
        "random numbers are those of the first call of the same op and sizes",
        needs="an earlier call with results of the same sizes",
        remembers=True,
    ),
    Kind("narrow_draws", narrow_draws, "random numbers scatter too little", "the factor", 0.8),
    Kind("uniform_for_normal", uniform_for_normal, "normal numbers are uniform ones with their mean and scatter"),
    Kind("wrong_rate", wrong_rate, "too few random bits are ones", "the share of ones that is lost", 0.25, largest=1.0),
)
