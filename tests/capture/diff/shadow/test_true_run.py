"""The shadow of a step is the step in float64: equal to that of the same model, widened and run by itself."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from tests.capture.diff.shadow.runs import same, shadowed, widened
from tests.capture.models import MODELS, OPTIMIZERS, SHAPES, ConvNet


class EveryFloatIsDouble(TorchDispatchMode):
    """Dtypes that the code names are float64 too, as they are in the shadow."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        named = {name: torch.float64 if one is torch.float32 else one for name, one in (kwargs or {}).items()}
        return func(*args, **named)


def trained(model, name, optimizer, batch, seen):
    """Two steps with dropout draws from one seed; `seen` is given all that they leave."""
    updates = OPTIMIZERS[optimizer](model.parameters())
    for _ in range(2):
        updates.zero_grad()
        torch.manual_seed(3)
        loss = model(*batch) if name in ("rwkv4", "llama") else F.cross_entropy(model(batch[0]), batch[1])
        loss.backward()
        updates.step()
    state = [value for one in updates.state.values() for value in one.values()]
    left = [loss, *model.parameters(), *model.buffers(), *(one.grad for one in model.parameters()), *state]
    return [seen(one) for one in left if one.is_floating_point()]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_two_training_steps(name, optimizer):
    """Two dropouts, BatchNorm statistics, AdamW's state, a GRU: loss, parameters, buffers, gradients and state."""
    model = MODELS[name]()
    ids = torch.randint(0, 96, (2, 5))
    batch = (ids[:, :-1], ids[:, 1:]) if name in ("rwkv4", "llama") else ()
    batch = batch or (torch.randn(*SHAPES[name]), torch.randint(0, 3, (5,)))
    true_batch = [one.double() if one.is_floating_point() else one for one in batch]
    with EveryFloatIsDouble():
        true = trained(widened(model), name, optimizer, true_batch, lambda one: one.detach().clone())
    with shadowed() as shadow_of:
        shadows = trained(model, name, optimizer, batch, shadow_of)
    assert len(shadows) == len(true) > 10
    assert all(same(*pair) for pair in zip(shadows, true, strict=True))


class FusedAttention(nn.Module):
    """One product for queries, keys and values, cut with chunk(3), in place where that is allowed."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return torch.softmax((q @ k.transpose(-1, -2)).mul_(0.5), -1) @ v


def attended(model, x, use):
    out = use(model, x)
    out.pow(2).mean().backward()
    return [out, x.grad, *(one.grad for one in model.parameters())]


def autocast(model, x):
    with torch.autocast("cpu", torch.bfloat16):
        return model(x).float()


WAYS = {
    "plain": lambda model, x: model(x),
    "checkpoint": lambda model, x: checkpoint(model, x, use_reentrant=False),
    "reentrant": lambda model, x: checkpoint(model, x, use_reentrant=True),
    "autocast": autocast,
}


@pytest.mark.parametrize("way", WAYS)
def test_fused_attention(way):
    """Under autocast the true run is without it: the shadow is in float64 throughout."""
    model, x = FusedAttention(), torch.randn(2, 5, 8, requires_grad=True)
    true_x = x.detach().double().requires_grad_()
    true = attended(widened(model), true_x, WAYS["plain" if way == "autocast" else way])
    with shadowed() as shadow_of:
        shadows = [shadow_of(one) for one in attended(model, x, WAYS[way])]
    assert all(same(*pair) for pair in zip(shadows, true, strict=True))


def written_in_place(x):
    """Views, writes through them, out=, strides, broadcasts, lists of tensors."""
    y = x.clone()
    y[0, 0] = 1.0
    y.add_(1).mul_(2).div_(3).sqrt_()
    y.t()[1:3, ::2].mul_(1.7)
    z = torch.empty_like(y)
    torch.exp(y, out=z)
    z.view(-1)[3:9].copy_(y.reshape(-1)[:6])
    torch._foreach_mul_([y, z], 1.1)
    z += y.sum(0, keepdim=True).expand_as(z).flip(0) / 3
    low, high = torch.aminmax(z)
    return [y, z, z.detach()[1:], low + high, torch.stack([y, z]).unbind(1)[2], y.sort(0).values.cumsum(1)]


def test_in_place_chains_and_views():
    x = torch.rand(4, 6)
    true = written_in_place(x.double())
    with shadowed() as shadow_of:
        shadows = [shadow_of(one) for one in written_in_place(x)]
    assert all(same(*pair) for pair in zip(shadows, true, strict=True))


def test_the_step_in_bfloat16_has_the_same_shadow():
    model, x = ConvNet().bfloat16(), torch.randn(5, 2, 4, 4).bfloat16()
    true = widened(model)(x.double())
    with shadowed() as shadow_of:
        out = model(x)
        assert same(shadow_of(out), true)
    assert not torch.allclose(out.double(), true, rtol=1e-4)


def test_complex_numbers_and_their_parts():
    def step(x):
        spectrum = torch.fft.rfft(x)
        parts = torch.view_as_real(spectrum)
        parts[..., 1].mul_(0.3)
        pairs = torch.view_as_complex(x.exp().view(3, 4, 2))
        return [spectrum, parts, spectrum.conj() * 2, torch.fft.irfft(spectrum.conj()), spectrum.imag, pairs * 1j]

    x = torch.randn(3, 8)
    true = step(x.double())
    with shadowed() as shadow_of:
        shadows = [shadow_of(one) for one in step(x)]
    for shadow, one in zip(shadows, true, strict=True):
        assert torch.allclose(shadow.resolve_conj(), one.resolve_conj(), rtol=1e-12)


def test_inference_mode_and_what_is_written_outside_of_it():
    x = torch.rand(5)
    with shadowed() as shadow_of:
        with torch.inference_mode():
            y = x.exp()
        z = y * 3
        assert same(shadow_of(z), x.double().exp() * 3)
        with torch.inference_mode():
            y.add_(1)
        assert same(shadow_of(y), x.double().exp() + 1)


def test_float32_and_the_steps_own_dtypes():
    x = torch.rand(64, 64).bfloat16()
    for other, dtype in (("cpu:float32", torch.float32), ("cpu:same", torch.bfloat16)):
        with shadowed(other) as shadow_of:
            y = (x @ x).exp()
            shadow = shadow_of(y)
        assert shadow.dtype is dtype
        assert torch.equal(shadow, (x.to(dtype) @ x.to(dtype)).exp())
