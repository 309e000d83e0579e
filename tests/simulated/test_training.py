"""Without faults, training on the simulated device gives the bits of training on the CPU."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import nbkit
from tests.capture.models import MODELS
from tests.simulated.steps import OPTIMIZERS, trained


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", MODELS)
def test_three_steps_leave_the_bits_of_the_cpu(name, dtype):
    assert trained(name, "sim", dtype) == trained(name, "cpu", dtype)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_leaves_the_bits_of_the_cpu(optimizer):
    assert trained("conv", "sim", optimizer=optimizer) == trained("conv", "cpu", optimizer=optimizer)


@pytest.mark.parametrize("name", ["rwkv4", "llama", "mlp", "conv"])
def test_autocast_leaves_the_bits_of_the_cpu(name):
    assert trained(name, "sim", autocast=True) == trained(name, "cpu", autocast=True)


def test_the_comparison_can_fail(device):
    with device.planted(nbkit.Fault("aten._log_softmax_backward_data", size=1e-6)):
        assert trained("mlp", "sim") != trained("mlp", "cpu")


def gradient(device, checkpointed):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1)).to(device)
    x = torch.ones(6, 4).to(device)
    (checkpoint(model, x, use_reentrant=False) if checkpointed else model(x)).sum().backward()
    return model[0].weight.grad.cpu()


def test_checkpointing_draws_the_same_dropout_again():
    assert torch.equal(gradient("sim", checkpointed=True), gradient("cpu", checkpointed=False))


def test_an_eval_model_in_inference_mode_gives_the_bits_of_the_cpu(device):
    model, ids = MODELS["llama"]().eval(), torch.arange(8).view(2, 4)
    with torch.inference_mode():
        expected = model(ids)
        assert torch.equal(model.to("sim")(ids.to("sim")).cpu(), expected)


def test_a_scaled_and_clipped_step(device):
    weights = []
    for kind in ("cpu", "sim"):
        model = nn.Linear(3, 2, bias=False)
        nn.init.ones_(model.weight)
        model.to(kind)
        scaler, updates = torch.amp.GradScaler(kind, init_scale=8.0), torch.optim.SGD(model.parameters(), lr=0.1)
        scaler.scale(model(torch.ones(1, 3).to(kind)).sum()).backward()
        scaler.unscale_(updates)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(updates)
        weights.append(model.weight.detach().cpu())
    assert torch.equal(*weights)
