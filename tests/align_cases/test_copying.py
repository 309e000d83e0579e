"""copy_parameters on ports whose right side has other weights: each becomes what a loader by hand gives it."""

import pytest
import torch
from torch import nn

import nbkit
from tests.align_cases.faults import FAULTS
from tests.align_cases.ports import PORTS
from tests.align_cases.ports.port import Port

MODULES = [name for name in PORTS if "decompositions" not in name]
# What is missing in the right one, and how many parameters therefore cannot be placed.
UNPLACED = {
    "norm_behind_attention": 1,
    "bias_of_a_network_missing": 0,
    "mask_shows_the_next": 0,
    "epsilon_of_activations": 0,
}


def forgotten(model: nn.Module) -> dict[str, torch.Tensor]:
    """Gives a model other weights and returns those that it had."""
    had = {name: value.clone() for name, value in model.state_dict().items()}
    generator = torch.Generator().manual_seed(99)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return had


def copied(port: Port) -> tuple[nbkit.Trace, dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Returns the trace, what the right model had, and what it has."""
    had = forgotten(port.right)
    trace = nbkit.opalign(port.left, port.right, inputs=port.inputs, copy_parameters=True)
    return trace, had, port.right.state_dict()


@pytest.mark.parametrize("name", MODULES)
def test_each_parameter_of_a_port_is_placed(name):
    pytest.importorskip("transformers")
    trace, had, has = copied(PORTS[name]())
    assert [key for key in had if not torch.equal(has[key], had[key])] == []
    assert trace.meta["not_copied"] == [] and trace.meta["first_divergence"] is None


@pytest.mark.parametrize("name", UNPLACED)
def test_a_fault_hides_no_place_and_is_found_as_before(name):
    pytest.importorskip("transformers")
    trace, had, has = copied(FAULTS[name].build())
    placed = {one["right"] for one in trace.meta["copied"]}
    assert [key for key in placed if not torch.equal(has[key], had[key])] == []
    assert len(had) - len(placed) == UNPLACED[name]
    assert trace.meta["first_divergence"] is not None


def test_an_order_of_parts_that_makes_the_outputs_agree_is_taken():
    pytest.importorskip("transformers")
    trace, _, _ = copied(FAULTS["gate_and_up_swapped"].build())
    (swapped,) = [one for one in trace.meta["copied"] if one["right"] == "h.0.mlp.gate_up.weight"]
    assert [name.split(".")[-2] for name in swapped["left"]] == ["up_proj", "gate_proj"]
    assert trace.meta["first_divergence"] is None
