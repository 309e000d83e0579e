"""A planted fault is where the runs part; what comes after it has propagated its error, however small it is."""

import pytest
import torch
import torch.nn.functional as F

import nbkit
from tests.capture.diff.planted import scaled, with_fault
from tests.capture.diff.shadow.runs import against
from tests.capture.diff.test_clean_steps import DTYPES, steps
from tests.capture.models import MODELS, train_step

FAULTY = {
    "rwkv4": "mm.default native_layer_norm_backward.default addcdiv_.default",
    "llama": "silu.default _scaled_dot_product_flash_attention_for_cpu_backward.default lerp_.Scalar",
    "conv": "convolution.default native_batch_norm_backward.default",
    "gru": "tanh_.default tanh_backward.default",
}


@pytest.mark.parametrize(
    ("model", "op"), [(model, f"aten.{op}") for model, ops in FAULTY.items() for op in ops.split()]
)
def test_a_fault_of_a_ten_thousandth_is_where_the_runs_part(model, op):
    trace = with_fault(train_step(model), op, scaled, against="cpu:float64")
    first, diffs = trace.meta["first_divergence"], trace.diffs
    assert first["op"] == op
    assert first["local_error"] == pytest.approx(1e-4, rel=0.05)
    assert set(diffs["error_class"].dropna()) <= {"clean", "propagated", "local"}
    assert set(diffs["op_id"][diffs["error_class"] == "local"]) == {first["op_id"]}
    assert set(diffs["origin_op_id"].dropna()) == {first["op_id"]}
    assert (diffs["op_id"][diffs["error_class"] == "propagated"] > first["op_id"]).all()


def test_errors_of_what_follows_are_inherited_and_not_injected():
    x, w = torch.rand(4, 8), torch.rand(8, 8)
    trace = with_fault(lambda: ((x @ w).exp() @ w).sum(), "aten.mm.default", scaled, against="cpu:float64")
    diffs = trace.diffs
    assert diffs["error_class"].tolist() == ["local", "propagated", "propagated", "propagated"]
    assert (diffs["local_error"][1:] < 1e-6).all()
    assert (diffs["propagated_error"][1:] > 5e-5).all()
    assert diffs["total_error"].iloc[0] == pytest.approx(1e-4, rel=0.01)
    assert trace.ops["op"].iloc[diffs["origin_op_id"].iloc[-1]] == "aten.mm.default"


def test_two_faults_have_an_origin_each_and_the_second_has_both_errors():
    x = torch.rand(4, 8)
    device = nbkit.SimulatedDevice()
    y = x.to(device.torch_device)
    faults = nbkit.Fault("exp", "relative_error", 1e-3), nbkit.Fault("sin", "relative_error", 1e-1)
    with device.planted(*faults), nbkit.opdiff(against="cpu:float64") as trace:
        y.exp().sqrt().sin().neg()
    assert trace.diffs["error_class"].tolist() == ["local", "propagated", "both", "propagated"]
    exp, _, sin, _ = trace.diffs["op_id"]
    assert trace.diffs["origin_op_id"].tolist() == [exp, exp, sin, sin]
    assert trace.meta["first_divergence"]["op_id"] == exp


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("model", MODELS)
def test_clean_steps_do_not_part(model, dtype):
    trace = against(steps(model, DTYPES[dtype]))
    assert trace.meta["first_divergence"] is None
    assert set(trace.diffs["error_class"].dropna()) == {"clean"}
    assert trace.diffs["origin_op_id"].isna().all()
    assert trace.meta["followed_ops"] > 50


def test_nan_in_one_run_only_is_an_error_without_bound():
    def broken(func, args, out):
        out[0] = float("nan")
        return out

    trace = with_fault(lambda: torch.ones(4).exp() * 2, "aten.exp.default", broken, against="cpu:float64")
    exp, mul = trace.diffs.iloc[-2], trace.diffs.iloc[-1]
    assert (exp["total_error"], mul["propagated_error"]) == (float("inf"), float("inf"))
    assert (exp["error_class"], mul["error_class"]) == ("local", "propagated")


def test_growth_and_lost_digits_name_the_op_that_cancels():
    x = torch.rand(100).add_(1000)
    trace = against(lambda: F.relu(x * 1.1 - x * 1.0999).exp())
    assert trace.meta["first_divergence"] is None
    assert trace.meta["largest_growth"]["op"] == trace.meta["half_precision_lost_at"]["op"] == "aten.sub.Tensor"
    lost = trace.meta["half_precision_lost_at"]
    assert lost["total_error"] > lost["level"] == pytest.approx(2**-11.5)


def test_what_is_zero_but_for_rounding_loses_no_digits():
    """The gradient of a bias before a BatchNorm: its total error is huge, and says nothing."""
    trace = against(train_step("conv", "sgd"))
    backward = trace.diffs[trace.diffs["op"] == "aten.convolution_backward.default"]
    assert backward["total_error"].max() > 1
    assert trace.meta["half_precision_lost_at"] is None
