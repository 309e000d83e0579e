"""Runs what a step is made of beside the op of torch that could take its place, on tensors of the same shapes."""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from nbkit.capture.native.library import own_work
from nbkit.capture.replay.isolated import isolated
from nbkit.findings.time.cases import AttentionCase, Case, LossCase, Measured, NormCase, OptimizerCase, Place

# One round warms up. So many follow, and so long: one at least.
ROUNDS, MOST_S = 25, 0.5
MOST_BYTES = 2**30  # of the largest tensor of attention or a norm, of all that optimizers keep
Work = Callable[[], object]


def measure(case: Case) -> Measured | None:
    """Returns the fastest alternative of a case; None where it cannot be run here, or takes too much memory.

    Its fraction is the upper quartile of those of all rounds: what it takes at most, but for noise.
    The random generators stay as they are; no recording sees what runs.
    """
    device = torch.device(case.place.device)
    others = {"devices": [device.index or 0], "device_type": device.type} if device.type != "cpu" else {"devices": []}
    try:
        with own_work(), isolated(), torch.inference_mode(False), torch.random.fork_rng(**others):
            torch._C._set_grad_enabled(case.place.is_training)
            now, alternatives = WORKS[type(case)](case)
            fractions = _fractions(now, [*alternatives.values()], _synchronize(device))
    except RuntimeError:  # the device has not the op, or not the memory
        return None
    return min(map(Measured, alternatives, fractions), key=lambda measured: measured.fraction)


def _fractions(now: Work, alternatives: Sequence[Work], synchronize: Work) -> list[float]:
    """Returns what fraction of the time of `now` each alternative takes; each round begins with another of them."""
    works = [now, *alternatives]
    rounds: list[list[float]] = []
    began = perf_counter()
    while len(rounds) < 2 or (len(rounds) <= ROUNDS and perf_counter() - began < MOST_S):
        first = len(rounds) % len(works)
        times = {place: _once(works[place], synchronize) for place in (*range(first, len(works)), *range(first))}
        rounds.append([times[place] / times[0] for place in range(1, len(works))])
    return [sorted(some)[3 * len(some) // 4] for some in zip(*rounds[1:], strict=True)]


def _once(work: Work, synchronize: Work) -> float:
    began = perf_counter()
    work()
    synchronize()
    return perf_counter() - began


def _synchronize(device: torch.device) -> Work:
    module = getattr(torch, device.type, None)
    return module.synchronize if device.type != "cpu" and module is not None else lambda: None


def _check_size(shape: Sequence[int], place: Place, copies: int = 1) -> None:
    """Raises RuntimeError, as torch does where memory is short."""
    if copies * prod(shape) * getattr(torch, place.dtype).itemsize > MOST_BYTES:
        raise RuntimeError(f"A tensor of shape {[*shape]} takes too much memory to be made once more.")


def _tensor(place: Place, dtype: str, *shape: int) -> Tensor:
    """Returns values between -0.5 and 0.5 that take no number from a generator of the user's."""
    generator = torch.Generator().manual_seed(0)
    values = torch.rand(shape, generator=generator, device="cpu", dtype=torch.float32) - 0.5
    values = values.to(device=place.device, dtype=getattr(torch, dtype))
    return values.requires_grad_(place.is_training)


def _trained(work: Callable[[], Tensor], inputs: Sequence[Tensor], place: Place) -> Work:
    """Returns the work with its backward pass, where the step has one."""
    if not place.is_training:
        return work
    gradient = torch.ones_like(work())
    return lambda: torch.autograd.grad(work(), inputs, gradient)


def _attention(case: AttentionCase) -> tuple[Work, dict[str, Work]]:
    make = partial(_tensor, case.place, case.place.dtype, 1, case.heads)
    _check_size((case.heads, case.queries, case.keys), case.place)
    query, key = make(case.queries, case.width), make(case.keys, case.width)
    value, scale = make(case.keys, case.value_width), case.width**-0.5
    shown = torch.ones(case.queries, case.keys, dtype=torch.bool, device=query.device)
    shown = shown.tril(max(case.keys - case.queries, 0))
    hidden, dropout = shown.logical_not(), 0.1 if case.has_dropout else 0.0

    def single() -> Tensor:
        scores = query @ key.transpose(-2, -1) * scale
        if case.is_masked:
            scores = scores.masked_fill(hidden, float("-inf"))
        weights = scores.softmax(-1)
        return (functional.dropout(weights, dropout) if dropout else weights) @ value

    def fused() -> Tensor:
        mask = shown if case.is_masked else None
        return functional.scaled_dot_product_attention(query, key, value, mask, dropout)

    inputs = (query, key, value)
    return _trained(single, inputs, case.place), {
        "scaled_dot_product_attention": _trained(fused, inputs, case.place),
    }


def _norm(case: NormCase) -> tuple[Work, dict[str, Work]]:
    computed, sizes = getattr(torch, case.place.dtype), case.shape[-case.dims :]
    _check_size(case.shape, case.place)
    x = _tensor(case.place, case.dtype, *case.shape)
    weight, dims, eps = _tensor(case.place, case.dtype, *sizes), [*range(-case.dims, 0)], 1e-6

    def single() -> Tensor:
        y = x.to(computed)
        if case.is_centred:
            y = y - y.mean(dims, keepdim=True)
        y = y * torch.rsqrt(y.pow(2).mean(dims, keepdim=True) + eps)
        return y.to(x.dtype) * weight

    def fused() -> Tensor:
        norm = functional.layer_norm if case.is_centred else functional.rms_norm
        return norm(x, sizes, weight, eps=eps)

    name = "layer_norm" if case.is_centred else "rms_norm"
    return _trained(single, (x, weight), case.place), {name: _trained(fused, (x, weight), case.place)}


def _loss(case: LossCase) -> tuple[Work, dict[str, Work]]:
    _check_size((case.rows, case.classes), case.place)
    logits = _tensor(case.place, case.place.dtype, case.rows, case.classes)
    targets = torch.arange(case.rows, device=logits.device) % case.classes

    def single() -> Tensor:
        logs = logits.softmax(-1).log() if case.has_log else logits.log_softmax(-1)
        if case.is_one_hot:
            return -(logs * functional.one_hot(targets, case.classes)).sum(-1).mean()
        return -logs.gather(-1, targets[:, None]).mean()

    def fused() -> Tensor:
        return functional.cross_entropy(logits, targets)

    return _trained(single, (logits,), case.place), {"cross_entropy": _trained(fused, (logits,), case.place)}


def _optimizer(case: OptimizerCase) -> tuple[Work, dict[str, Work]]:
    # Three optimizers with parameters, gradients and two tensors of state.
    _check_size([sum(map(prod, case.shapes))], case.place, copies=12)

    def step(**how: bool) -> Work:
        parameters = [_tensor(case.place, case.place.dtype, *shape) for shape in case.shapes]
        for parameter in parameters:
            parameter.grad = torch.full_like(parameter, 1e-3)
        work: Work = getattr(torch.optim, case.kind)(parameters, lr=1e-4, **how).step
        return work

    return step(foreach=False), {f"{name}=True": step(**{name: True}) for name in ("foreach", "fused")}


WORKS: dict[type, Callable[[Any], tuple[Work, dict[str, Work]]]] = {
    AttentionCase: _attention,
    NormCase: _norm,
    LossCase: _loss,
    OptimizerCase: _optimizer,
}
