"""Modules move to the simulated device and back with their parameters."""

import copy
import io

import pytest
import torch
from torch import nn


@pytest.fixture
def model():
    tied = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3))
    tied[2].weight = tied[0].weight
    return tied


def devices(model):
    return {str(tensor.device) for tensor in (*model.parameters(), *model.buffers())}


@pytest.mark.parametrize("way", [lambda m: m.to("cpu"), lambda m: m.cpu(), lambda m: m.to("cpu", torch.bfloat16)])
def test_parameters_stay_the_same_objects_both_ways(model, way):
    weight, values = model[0].weight, model[0].weight.tolist()
    model.to("sim")
    assert devices(model) == {"sim:0"}
    assert isinstance(weight, nn.Parameter)
    assert model[0].weight is model[2].weight is weight
    assert weight.tolist() == values
    way(model)
    assert devices(model) == {"cpu"}
    assert type(weight) is nn.Parameter
    assert model[0].weight is model[2].weight is weight


def test_an_optimizer_made_before_the_move_trains_the_moved_model(model):
    updates = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model[0].weight.tolist()
    model.to("sim")
    model(torch.randn(4, 3).to("sim")).sum().backward()
    updates.step()
    assert model[0].weight.tolist() != before


def test_gradients_move_along(model):
    model.to("sim")
    model(torch.randn(4, 3).to("sim")).sum().backward()
    expected = model[0].weight.grad.tolist()
    model.cpu()
    assert model[0].weight.grad.device.type == "cpu"
    assert model[0].weight.grad.tolist() == expected


@pytest.mark.parametrize("flag", [False, True])
def test_torchs_swap_flag_is_as_before(model, flag):
    torch.__future__.set_swap_module_params_on_conversion(flag)
    try:
        model.to("sim").cpu()
        assert torch.__future__.get_swap_module_params_on_conversion() is flag
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


def test_a_state_dict_goes_through_a_file(model):
    file = io.BytesIO()
    torch.save(model.to("sim").state_dict(), file)
    file.seek(0)
    expected = model[0].weight.tolist()
    nn.init.zeros_(model[0].weight)
    model.load_state_dict(torch.load(file))
    assert devices(model) == {"sim:0"}
    assert model[0].weight.tolist() == expected


def test_a_module_with_a_graph_alive_says_what_to_do(model):
    expected = model(torch.randn(4, 3))
    with pytest.raises(
        RuntimeError, match=r"could not be moved whole, as Linear.weight is in use: .* \(or detach\(\) them\)"
    ):
        model.to("sim")
    assert devices(copy.deepcopy(model).to("sim")) == {"sim:0"}
    expected = expected.detach()
    assert devices(model.to("sim")) == {"sim:0"}
