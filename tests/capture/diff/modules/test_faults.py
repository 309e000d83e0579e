"""A fault inside one module is named at that module and nowhere else, forward and backward."""

import pytest
import torch
from torch import nn

import nbkit
from tests.capture.diff.planted import Planted, compared, scaled, with_fault, wrong
from tests.capture.models import MODELS, loss_of


def layers():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))


def places(trace):
    return {(row.op, row.module, row.phase) for row in wrong(trace).itertuples()}


FAULTS = {
    "aten.gelu.default": {("GELU", "2", "forward")},
    # Its backward op reads the result.
    "aten.tanh.default": {("Tanh", "4", "forward"), ("Tanh", "4", "backward")},
    "aten.gelu_backward.default": {("GELU", "2", "backward")},
    "aten.native_layer_norm_backward.default": {("LayerNorm", "1", "backward")},
}


@pytest.mark.parametrize("op", FAULTS)
def test_a_planted_fault_is_at_its_module_and_nowhere_else(op):
    model, x = layers(), torch.randn(5, 6, requires_grad=True)
    trace = with_fault(lambda: model(x).square().sum().backward(), op, scaled, level="module")
    assert places(trace) == FAULTS[op]
    found = trace.findings
    assert {*zip(found["op"], found["module"], found["phase"], strict=True)} == FAULTS[op]
    assert found["advice"].iloc[0].startswith("Compare the ops in the module")


@pytest.mark.parametrize("number", range(3))
def test_of_three_like_layers_the_one_at_fault_is_named(number):
    model, x = layers(), torch.randn(5, 6)
    trace = with_fault(lambda: model(x), "aten.addmm.default", scaled, number, level="module")
    assert places(trace) == {("Linear", "035"[number], "forward")}


def test_a_fault_is_in_each_module_around_it_and_in_none_beside_it():
    model, x = (
        nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 4))),
        torch.randn(3, 4),
    )
    trace = with_fault(lambda: model(x), "aten.tanh.default", scaled, level="module", modules="*")
    assert {module for _, module, _ in places(trace)} == {"", "0", "0.1"}


def test_a_gradient_that_one_module_passes_on_wrongly_is_named_by_its_parameter():
    def weight_off(func, args, out):
        with torch.no_grad():
            out[1].mul_(1.001)
        return out

    model, x = layers(), torch.randn(5, 6)
    op = "aten.native_layer_norm_backward.default"
    trace = with_fault(lambda: model(x).square().sum().backward(), op, weight_off, level="module")
    assert wrong(trace)["message"].str.startswith("gradient of weight; ").tolist() == [True]
    assert trace.findings["message"].iloc[0].startswith("gradient of weight is ")


def test_a_buffer_that_is_not_updated_is_a_mismatch():
    def forgetful(func, args, out):
        args[3].copy_(before)
        return out

    model, x = nn.BatchNorm1d(4), torch.randn(8, 4)
    before = model.running_mean.clone()
    trace = with_fault(lambda: model(x), "aten.native_batch_norm.default", forgetful, level="module")
    assert wrong(trace)[["role", "position"]].to_numpy().tolist() == [["buffer", 0]]
    assert trace.findings["message"].iloc[0].startswith("buffer running_mean ")


@pytest.mark.parametrize("name", ["rwkv4", "llama"])
def test_a_fault_of_the_simulated_device_is_at_one_layer(name):
    device = nbkit.SimulatedDevice()
    model = MODELS[name]().to(device.torch_device)
    ids = torch.randint(0, 96, (2, 5)).to(device.torch_device)
    with device.planted(nbkit.Fault("aten.mm", "relative_error", size=0.001, nth_call=4)) as plan:
        trace = compared(lambda: model(ids[:, :-1], ids[:, 1:]).backward(), level="module")
    assert plan.report()["fired"].tolist() == [1]
    ((op, module, phase),) = places(trace)
    mm = trace.ops[(trace.ops["op"] == "aten.mm.default") & (trace.ops["phase"] == phase)]
    assert (op, module) == ("Linear", mm["module"].iloc[3])


def test_a_clean_step_of_the_simulated_device_has_none():
    device = nbkit.SimulatedDevice()
    model = MODELS["llama"]().to(device.torch_device)
    ids = torch.randint(0, 96, (2, 5)).to(device.torch_device)
    trace = compared(lambda: model(ids[:, :-1], ids[:, 1:]).backward(), level="module")
    assert wrong(trace).empty and len(trace.diffs) > 50


def test_beside_another_run_local_and_propagated_errors_are_told_apart():
    """A fault of one layer is propagated in those after it, local in its own, and absent in those before."""
    model, x = layers(), torch.randn(5, 6)
    step = lambda: model(x)  # noqa: E731
    trace = with_fault(step, "aten.gelu.default", scaled, level="module", against="cpu:float64")
    errors = trace.diffs.set_index("module")[["local_error", "propagated_error", "total_error"]]
    assert errors.loc["2", "local_error"] == pytest.approx(1e-4, rel=0.01)
    assert (errors.loc[["0", "1"]] < 1e-6).all(axis=None)
    assert (errors.loc[["3", "4", "5"], "propagated_error"] > 1e-5).all()
    assert (errors.loc[["3", "4", "5"], "local_error"] < 1e-6).all()
    assert trace.meta["against"] == "cpu:float64"


def test_beside_another_run_gradients_have_local_and_propagated_errors_too():
    """A fault of one layer's backward is local there, and propagated in what the layers before it are given."""
    model, x = layers(), torch.randn(5, 6)
    step = lambda: model(x).square().sum().backward()  # noqa: E731
    trace = with_fault(step, "aten.gelu_backward.default", scaled, level="module", against="cpu:float64")
    gradients = trace.diffs[trace.diffs["phase"] == "backward"]
    errors = gradients.groupby("module")[["local_error", "propagated_error", "total_error"]].max()
    assert errors.loc["2", "local_error"] == pytest.approx(1e-4, rel=0.01)
    assert (errors.loc[["3", "4", "5"]] < 1e-6).all(axis=None)
    assert (errors.loc[["0", "1"], "propagated_error"] > 1e-5).all()
    assert (errors.loc[["0", "1"], "local_error"] < 1e-6).all()


def test_a_fault_on_a_gradient_of_the_step_is_found_in_training():
    """Whole steps: loss, optimizer and checkpoints around the modules."""
    model = MODELS["conv"]()
    step = lambda: loss_of(model, "conv").backward()  # noqa: E731
    with Planted("aten.convolution_backward.default", scaled) as fault:
        trace = compared(step, level="module")
    assert fault.seen == 1
    assert {module for _, module, _ in places(trace)} <= {"conv"}
