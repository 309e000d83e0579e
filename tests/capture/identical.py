"""Defines steps of every kind that must compute the same bits whatever watches them, and all that one run leaves.

A test of a verb reads:

    @each_step
    def test_the_step_computes_the_same_bits(name, dtype):
        assert left_by(name, dtype, nbkit.opdiff()) == left_by(name, dtype)
"""

import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.capture.models import MODELS, OPTIMIZERS, bits, mlp, trained
from tests.capture.recorder.same_bits.test_bit_identity_ways import WAYS

Step = Callable[[torch.dtype], Iterator[Any]]
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# They unpack saved tensors as float32 on purpose.
ONLY_FLOAT32 = frozenset({"saved_tensors_hooks"})


class FusedAttention(nn.Module):
    """Computes one product for queries, keys and values, cut with chunk(3)."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, 8) -> (B, T, 8)
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


def fused_qkv(dtype: torch.dtype, way: Callable[..., Any] | None = None) -> Iterator[Any]:
    model, x = FusedAttention().to(dtype), torch.randn(2, 5, 8, dtype=dtype, requires_grad=True)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        loss = (model(x) if way is None else way(model, x)).pow(2).mean()
        loss.backward()
        optimizer.step()
        yield loss
        yield from (x.grad, *(p.grad for p in model.parameters()))
    yield from (*model.parameters(), *optimizer_state(optimizer))


def autocast_dropouts(dtype: torch.dtype) -> Iterator[Any]:
    """Runs two dropouts under autocast, whose cache of cast weights is shared by both forward calls."""
    model, x = mlp().to(dtype), torch.randn(5, 6, dtype=dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(x).float().pow(2).mean() + model(x).float().abs().mean()
        yield torch.is_autocast_enabled("cpu")
    loss.backward()
    optimizer.step()
    yield from (loss, *(p.grad for p in model.parameters()), *model.parameters(), *optimizer_state(optimizer))


def in_place(dtype: torch.dtype) -> Iterator[Any]:
    """Runs chains, views, slices, indices, a None result."""
    x = torch.rand(3, 4, 5, dtype=dtype, requires_grad=True)
    y = x.clone()
    y[0, 0, 0] = 1.0
    y.add_(1).mul_(2).sub_(0.5).div_(3).pow_(2).sqrt_()
    y = y * 1
    y.view(-1)[2:5].mul_(2)
    y[:, 1:].div_(3)
    y[torch.arange(60).view(3, 4, 5) % 7 == 0] = 0.5
    y.index_add_(1, torch.tensor([0, 0]), torch.ones(3, 2, 5, dtype=dtype))
    y.transpose_(0, 1)
    F.relu(y, inplace=True)
    y.sum().backward()
    yield from (y, x.grad, y._version, x._version, y.is_contiguous())


def out_arguments(dtype: torch.dtype) -> Iterator[Any]:
    """Runs exp(x, out=x), results of another size, of two tensors, into a view."""
    x, z = torch.rand(6, dtype=dtype), torch.zeros(4, 6, dtype=dtype)
    torch.exp(x, out=x)
    torch.mul(x, 2, out=z[1])
    torch.add(x, 1, out=z.t()[0:6, 2])
    values, indices = torch.empty(0, dtype=dtype), torch.empty(0, dtype=torch.int64)
    torch.sort(z, dim=1, out=(values, indices))
    torch.clamp(z, max=1.0, out=torch.ones(2, dtype=dtype))
    yield from (x, z, values, indices, x._version, z._version)


def aliases(dtype: torch.dtype) -> Iterator[Any]:
    """Passes one tensor as several arguments; has results that are an input, data and detached views of a leaf."""
    x, w = torch.randn(4, 4, dtype=dtype), torch.randn(4, 4, dtype=dtype, requires_grad=True)
    same = x.contiguous() is x, x.to(dtype) is x
    x.add_(x).mul_(x.t().clone())
    w.data.mul_(0.5)
    w.detach().add_(1)
    (w @ w * w).sum().backward()
    torch._foreach_add_([x, x[0]], 1.0)
    torch._foreach_mul_([x, w.detach()], [x, x])
    yield from (*same, x, w, w.grad, x._version, w._version)


def random_draws(dtype: torch.dtype) -> Iterator[Any]:
    """Draws from every generator: torch's own, one of the user's, numpy's and Python's."""
    own, x = torch.Generator().manual_seed(11), torch.randn(40, dtype=dtype)
    x = F.dropout(F.dropout(x, 0.5), 0.3)
    yield from (x, torch.randn(3, generator=own), x.bernoulli(0.5), torch.randperm(9), torch.rand_like(x))
    yield from (torch.normal(x, 1.0), x.new_empty(5).uniform_(), torch.multinomial(x.abs().float(), 3))
    yield from (own.get_state(), F.gumbel_softmax(x.float()), np.random.rand(2).tolist(), random.random())


def warned(dtype: torch.dtype) -> Iterator[Any]:
    """Runs steps that torch warns of, in Python and in C++, forward and backward."""
    x = torch.ones(1, dtype=dtype, requires_grad=True)
    torch.add(torch.ones(4), 1, out=torch.ones(2))
    yield torch.ones(1, dtype=dtype).var()
    yield (x * 2).grad
    x.std(dim=0).backward()
    yield from (x.grad, F.softmax(torch.ones(2, 2, dtype=dtype)))


def grad_modes(dtype: torch.dtype) -> Iterator[Any]:
    """Runs with gradients on, off and in inference mode; returns flags as seen between the ops."""
    x = torch.ones(3, dtype=dtype, requires_grad=True)
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        with mode():
            y = (x * 2).add_(1)
            yield from (y.requires_grad, y.is_inference(), torch.is_grad_enabled(), torch.is_inference_mode_enabled())
    yield from (x.requires_grad, x.grad_fn, y.grad_fn.name(), x.mul(2).detach().requires_grad)


def one_way(dtype: torch.dtype, name: str) -> Iterator[Any]:
    model, x = mlp().to(dtype), torch.randn(5, 6, dtype=dtype)
    yield WAYS[name](model, x)
    yield from (x.grad, *(p.grad for p in model.parameters()), *model.parameters())


def models(dtype: torch.dtype, name: str, optimizer: str) -> Iterator[Any]:
    return trained(name, optimizer, steps=2, dtype=dtype)


def optimizer_state(optimizer: torch.optim.Optimizer) -> Iterator[Any]:
    for state in optimizer.state.values():
        yield from state.values()


STEPS: dict[str, Step] = {
    **{f"{name}, {kind}": partial(models, name=name, optimizer=kind) for name in MODELS for kind in OPTIMIZERS},
    **{name: partial(one_way, name=name) for name in WAYS},
    "fused qkv": fused_qkv,
    "fused qkv, checkpoint": partial(fused_qkv, way=partial(checkpoint, use_reentrant=False)),
    "fused qkv, reentrant checkpoint": partial(fused_qkv, way=partial(checkpoint, use_reentrant=True)),
    "autocast, two dropouts": autocast_dropouts,
    "in-place": in_place,
    "out=": out_arguments,
    "aliases": aliases,
    "random draws": random_draws,
    "warnings": warned,
    "grad modes": grad_modes,
}
# torch's fused SGD with momentum reads memory in bfloat16 that nobody has written (2.13, on the CPU), also bare: other
# bits in each run, at times NaN. test_watched_bits.py has a test of it.
NOT_REPEATABLE = frozenset({("SGD fused", "bfloat16")})
CASES = [
    (name, dtype)
    for name in STEPS
    for dtype in DTYPES
    if (dtype == "float32" or name not in ONLY_FLOAT32) and (name, dtype) not in NOT_REPEATABLE
]
each_step = pytest.mark.parametrize(("name", "dtype"), CASES)


def left_by(name: str, dtype: str, watch: AbstractContextManager[Any] | None = None) -> list[Any]:
    """Returns all that one run of a step leaves, under `watch` if there is one: values, generators, warnings, flags."""
    torch.manual_seed(7)
    np.random.seed(7)
    random.seed(7)
    with warned_of() as messages:
        with watch or nullcontext():
            left = list(STEPS[name](DTYPES[dtype]))
        left += [torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()]
    flags = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    return [*bits(left), *flags, *messages]


@contextmanager
def warned_of(action: Any = "always") -> Iterator[list[tuple[str, str]]]:
    """Returns kind and text of the warnings that are shown under a filter, those that torch gives once included."""
    messages: list[tuple[str, str]] = []
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(action)
            yield messages
        messages += [(one.category.__name__, str(one.message)) for one in caught]
    finally:
        torch.set_warn_always(before)
