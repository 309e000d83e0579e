"""The step under opcheck computes what the bare one computes, to the bit, and healthy steps have no finding."""

import copy

import pytest
import torch

import nbkit
from tests.capture.models import MODELS, OPTIMIZERS, bits, mlp, trained
from tests.capture.test_bit_identity_ways import WAYS


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_three_training_steps_compute_the_same_bits_without_a_finding(model, optimizer):
    bare = bits(trained(model, optimizer))
    with nbkit.opcheck() as trace:
        checked = bits(trained(model, optimizer))
    assert checked == bare
    assert trace.complete
    assert trace.findings.empty, trace.findings.to_string()
    assert trace.meta["checked_tensors"] > 100


@pytest.mark.parametrize("way", WAYS)
def test_a_way_to_train_computes_the_same_bits(way):
    def left(watch):
        model, x = copy.deepcopy(origin), torch.randn(5, 6, generator=torch.Generator().manual_seed(3))
        torch.manual_seed(3)
        with nbkit.opcheck() if watch else torch.enable_grad():
            out = WAYS[way](model, x)
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        return bits([out, x.grad, *grads, *model.parameters(), torch.get_rng_state()])

    origin = mlp()
    assert left(watch=True) == left(watch=False)


@pytest.mark.parametrize("model", ["rwkv4", "llama", "conv"])
def test_a_healthy_step_in_bfloat16_has_no_finding(model):
    with torch.autocast("cpu", torch.bfloat16), nbkit.opcheck() as trace:
        list(trained(model, "adamw", steps=1))
    assert trace.findings.empty, trace.findings.to_string()
