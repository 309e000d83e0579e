"""The simulated device has no speed of its own, and its tensors no shapes to count a step by: both are said."""

import pytest
import torch
from torch import nn

import nbkit
from nbkit.capture.cost.device_option import current_device


def test_its_step_is_counted_on_the_cpu():
    model, x = nn.Linear(4, 4).to("sim"), torch.ones(2, 4, device="sim")
    with pytest.raises(
        nbkit.CostError, match=r"opcost cannot take a SimulatedTensor on sim:0.*run the step on the CPU"
    ):
        nbkit.opcost().run(lambda: model(x))
    assert model(x).shape == (2, 4)  # runs with real values again


def test_it_is_no_device_to_measure():
    assert torch.accelerator.current_accelerator().type == "sim"
    assert current_device(None) == torch.device("cpu")
    with pytest.raises(nbkit.OptionError, match="device='sim' is not on this machine"):
        nbkit.calibrate(device="sim")
