"""Tests the verbs that look for faults, on the simulated device: the planted op is the one they name."""

import pytest
import torch
from torch import nn

import nbkit
from nbkit.capture.executions.parameters import on_device_of
from tests.capture.models import MODELS, SHAPES


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 1))


def compared(device, *faults, **options):
    model, x = net().to(device.torch_device), torch.randn(4, 8).to(device.torch_device)
    with device.planted(*faults), nbkit.opdiff(**options) as trace:
        model(x).sum().backward()
    return trace


@pytest.fixture(scope="module")
def device():
    return nbkit.SimulatedDevice()


def test_a_clean_device_has_no_mismatch(device):
    diffs = compared(device).diffs
    assert set(diffs["status"]) == {"ok"}, diffs.to_string()
    assert diffs["status"].notna().all()


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("native_layer_norm", "wrong_epsilon"),
        ("addmm", "low_precision_accumulation"),
        ("native_layer_norm_backward", "relative_error"),
        ("sum", "relative_error"),
    ],
)
def test_the_planted_op_is_the_only_mismatch(device, op, kind):
    diffs = compared(device, nbkit.Fault(op, kind)).diffs
    wrong = set(diffs.loc[diffs["status"] != "ok", "op"])
    assert wrong and all(name.startswith(f"aten.{op}.") for name in wrong), diffs.to_string()


def test_the_planted_op_is_where_the_runs_diverge_and_later_ones_propagate(device):
    trace = compared(device, nbkit.Fault("native_layer_norm", "wrong_epsilon"), against="cpu:float64")
    first, diffs = trace.meta["first_divergence"], trace.diffs.set_index("op_id")
    assert (first["op"], first["module"], first["phase"]) == ("aten.native_layer_norm.default", "1", "forward")
    assert "test_verbs.py:" in first["source"]
    assert set(diffs.index[diffs["error_class"] == "local"]) == {first["op_id"]}
    propagated = diffs[diffs["error_class"] == "propagated"]
    assert len(propagated) and (propagated.index > first["op_id"]).all() and (propagated["local_error"] < 1e-6).all()


def test_a_fault_of_the_other_run_is_no_fault_of_the_step_and_half_lost_names_it(device):
    fault = nbkit.Fault("native_layer_norm", "relative_error", 1e-2)
    meta = compared(device, fault, against="sim:same").meta
    assert meta["first_divergence"]["op"] == "aten.native_layer_norm.default"  # both runs have it
    model, x = net(), torch.randn(4, 8)
    with device.planted(fault), nbkit.opdiff(against="sim:same") as trace:
        model(x).sum()
    assert trace.meta["first_divergence"] is None
    assert trace.meta["half_precision_lost_at"]["op"] == "aten.native_layer_norm.default"
    assert trace.meta["half_precision_lost_at"]["propagated_error"] == pytest.approx(1e-2, rel=0.05)


@pytest.mark.parametrize("name", ["conv", "mlp"])
def test_clean_models_have_no_mismatch(device, name):
    torch.manual_seed(0)
    model, x = MODELS[name]().to(device.torch_device), torch.randn(SHAPES[name]).to(device.torch_device)
    with nbkit.opdiff() as trace:
        model(x).pow(2).mean().backward()
    assert set(trace.diffs["status"]) <= {"ok", "skipped"}, trace.diffs.to_string()


def test_opcheck_finds_the_rows_that_a_mask_broke(device):
    fault = nbkit.Fault("_softmax", "nan_masked_rows")
    scores, mask = torch.randn(3, 3).to(device.torch_device), (torch.ones(3, 3).triu(1) > 0).to(device.torch_device)
    with device.planted(fault), nbkit.opcheck() as trace:
        scores.masked_fill(mask, -torch.inf).softmax(-1).sum()
    assert trace.findings[["op", "rule"]].to_numpy().tolist() == [["aten._softmax.default", "nan"]]


def test_the_statistics_of_random_ops_are_taken_off_the_device(device):
    x = torch.ones(64).to("sim")
    with device.planted(nbkit.Fault("aten.mul.Tensor", size=0.0)) as planted, nbkit.opdiff() as trace:
        nn.functional.dropout(x, 0.5)
    # Dropout itself multiplies once; so would the statistics of its bernoulli_.
    assert planted.report()["calls"].item() == 1
    assert set(trace.diffs["status"]) == {"ok"}


def test_opalign_sets_a_model_beside_itself_on_the_device_and_names_the_op_that_differs(device):
    """The inputs go where the right model is: nobody has to say so."""
    torch.manual_seed(0)
    model, x = net(), torch.randn(4, 8)
    copied = net().to(device.torch_device)
    clean = nbkit.opalign(model, copied, inputs=(x,), backward=True)
    assert clean.meta["error"] is None
    assert clean.meta["first_divergence"] is None
    with device.planted(nbkit.Fault("native_layer_norm", "relative_error", size=0.1)):
        first = nbkit.opalign(model, copied, inputs={"input": x}).meta["first_divergence"]
    assert (first["right"]["module"], first["right"]["op"]) == ("1", "aten.native_layer_norm.default")


def test_inputs_of_several_devices_stay_where_they_are(device):
    on_device, here = torch.ones(2, device=device.torch_device), torch.ones(3)
    assert on_device_of(net().to(device.torch_device), (here, on_device))[0] is here
    moved = on_device_of(net().to(device.torch_device), {"x": here.requires_grad_(), "k": 2})
    assert (moved["x"].device, moved["x"].requires_grad, moved["x"].is_leaf) == (device.torch_device, True, True)
    assert moved["k"] == 2
    assert on_device_of(torch.relu, (here,))[0] is here


def test_an_audit_on_the_device_tells_what_the_same_step_on_the_cpu_has(device):
    def audited(place):
        model, x = net().to(place), torch.linspace(-1, 1, 32).view(4, 8).to(place)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with device.planted(nbkit.Fault("count_nonzero", "relative_error")), nbkit.opaudit() as trace:
            for _ in range(2):  # without zero_grad()
                model(x).pow(2).sum().backward()
                optimizer.step()
        return trace

    there, here = audited(device.torch_device), audited("cpu")
    for column in ("gradient_norm", "gradient_zero_fraction", "changed_fraction", "update_fraction"):
        assert there.parameters[column].tolist() == pytest.approx(
            here.parameters[column].tolist(), rel=1e-5, nan_ok=True
        )
    assert there.parameters["gradient"].tolist() == ["finite"] * 6
    assert here.findings["rule"].tolist() == there.findings["rule"].tolist() == ["accumulated_gradient"]
    assert "6 parameters of Sequential: all got a gradient and moved." in there.brief()
