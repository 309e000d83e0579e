"""The compared step computes what the bare one computes, to the bit, and leaves the generator where it would be."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.capture.diff.planted import compared, wrong
from tests.capture.models import MODELS, OPTIMIZERS, bits, mlp, trained
from tests.capture.test_bit_identity_ways import WAYS

OPTIONS = {
    "default": {},
    "float32": {"reference": "cpu:float32", "sample": 2},
    "function": {"reference": lambda op, a, k: op(*a, **k)},
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_three_training_steps_compute_the_same_bits(model, optimizer, options):
    """Test case 27, defects B2, B7, B8: two dropouts, AdamW and SGD, BatchNorm, GRU; under every kind of reference."""
    bare, traced = bits(trained(model, optimizer)), []
    trace = compared(lambda: traced.extend(bits(trained(model, optimizer))), **OPTIONS[options])
    assert traced == bare
    assert trace.complete
    assert wrong(trace).empty


def left_by(way, model, run):
    torch.manual_seed(3)
    torch.nn.utils.vector_to_parameters(
        torch.linspace(-1, 1, sum(p.numel() for p in model.parameters())), model.parameters()
    )
    model.zero_grad()
    x, out = torch.randn(5, 6), []
    trace = run(lambda: out.append(way(model, x)))
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    return bits([*out, x.grad, *grads, *model.parameters(), torch.get_rng_state()]), trace


@pytest.mark.parametrize("way", WAYS)
def test_a_way_to_train_computes_the_same_bits(way):
    """Defects B1, B2, B7, B8 and B9: autocast, checkpoints, scalers, saved-tensor hooks, closures, fused optimizers."""
    bare, _ = left_by(WAYS[way], mlp(), lambda step: step())
    traced, trace = left_by(WAYS[way], mlp(), compared)
    assert traced == bare
    assert trace.complete
    assert wrong(trace).empty


class FusedAttention(nn.Module):
    """One product for queries, keys and values, cut with chunk(3)."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


@pytest.mark.parametrize("checkpointed", [False, True])
def test_fused_qkv_chunk_forward_and_backward(checkpointed):
    """Test case 35, defects B1 and B9."""
    model, x = FusedAttention(), torch.randn(2, 5, 8, requires_grad=True)

    def step():
        x.grad = None
        model.zero_grad()
        (checkpoint(model, x, use_reentrant=False) if checkpointed else model(x)).pow(2).mean().backward()
        return bits([x.grad, *(p.grad for p in model.parameters())])

    bare, traced = step(), []
    trace = compared(lambda: traced.append(step()))
    assert traced[0] == bare
    assert wrong(trace).empty


def test_in_place_ops_and_out_arguments_happen_once():
    """Test cases 23, 24 and 26, defect B8."""

    def step():
        torch.manual_seed(1)
        x = torch.rand(3, 4, 5, requires_grad=True)
        y = x.clone()
        y[0, 0, 0] = 1.0
        y.add_(1).mul_(2).sub_(0.5).div_(3).pow_(2).sqrt_()
        y = y * 1
        y.view(-1)[2:5].mul_(2)
        y.sum().backward()
        z = torch.rand(6)
        torch.exp(z, out=z)
        z.add_(z)
        return bits([x.grad, y, z])

    bare, traced = step(), []
    trace = compared(lambda: traced.append(step()))
    assert traced[0] == bare
    assert wrong(trace).empty


def test_grad_flags_and_versions_are_left_alone():
    x = torch.randn(4, requires_grad=True)
    versions = []

    def step():
        y = x * 2
        y.add_(1)
        versions.append((y._version, y.requires_grad, x._version, x.is_leaf, torch.is_grad_enabled()))

    step()
    compared(step)
    assert versions[0] == versions[1]
