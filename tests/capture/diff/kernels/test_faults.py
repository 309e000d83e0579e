"""A planted fault is the only mismatch: not what comes after it, which computes rightly from wrong inputs."""

import pytest
import torch
import torch.nn.functional as F

from tests.capture.diff.planted import compared, only, scaled, with_fault, wrong
from tests.capture.models import MODELS, train_step

FAULTY = {
    "rwkv4": "mm.default exp.default native_layer_norm.default sigmoid_backward.default maximum.default "
    "native_layer_norm_backward.default addcdiv_.default",
    "llama": "mm.default silu.default _scaled_dot_product_flash_attention_for_cpu.default "
    "_scaled_dot_product_flash_attention_for_cpu_backward.default embedding_dense_backward.default "
    "_log_softmax.default lerp_.Scalar rsqrt.default",
    "conv": "convolution.default convolution_backward.default native_batch_norm.default addmm.default "
    "native_batch_norm_backward.default max_pool2d_with_indices.default",
    "gru": "tanh_.default sigmoid_.default tanh_backward.default addmm.default",
}


@pytest.mark.parametrize(
    ("model", "op"), [(model, f"aten.{op}") for model, ops in FAULTY.items() for op in ops.split()]
)
def test_a_kernel_off_by_a_ten_thousandth_is_the_only_mismatch(model, op):
    trace = with_fault(train_step(model), op, scaled, call=0)
    found = wrong(trace)
    assert set(found["op"]) == {op}
    assert found["op_id"].nunique() == 1
    assert found["noise_ratio"].max() > 20


def test_a_wrong_epsilon_is_found():
    norm, x = torch.nn.LayerNorm(8), torch.randn(4, 8)

    def change(func, args, out):
        return func(*args[:4], 1e-3)

    trace = with_fault(lambda: norm(x), "aten.native_layer_norm.default", change)
    assert set(wrong(trace)["op"]) == {"aten.native_layer_norm.default"}


def test_a_reduction_over_the_wrong_axis_is_found():
    x = torch.randn(6, 6)
    trace = with_fault(lambda: x.sum(0), "aten.sum.dim_IntList", lambda func, args, out: func(args[0], [1]))
    assert only(trace)["status"] == "mismatch"
    assert only(trace)["mismatch_count"] == 6


def test_nan_where_the_reference_has_none_is_named_with_its_place():
    def change(func, args, out):
        out[1, 2] = float("nan")
        return out

    row = only(with_fault(lambda: torch.randn(3, 4).exp(), "aten.exp.default", change, ops="aten.exp"))
    assert (row["status"], row["mismatch_count"], row["actual_nan_count"], row["expected_nan_count"]) == (
        "mismatch",
        1,
        1,
        0,
    )
    what = "the result is right except for 1 element at [1, 2], which is NaN"
    assert row["message"].startswith(f"{what}; 1 NaN, expected 0; worst at [1, 2]: nan, expected ")
    assert row["noise_ratio"] == float("inf")


def test_a_dropped_in_place_write_is_found():
    x = torch.ones(100)
    dropped = lambda func, args, out: out.sub_(1)  # noqa: E731
    row = only(with_fault(lambda: x.add_(1), "aten.add_.Tensor", dropped))
    assert (row["status"], row["max_abs_error"], row["mismatch_fraction"]) == ("mismatch", 1.0, 1.0)


def test_a_wrong_write_to_an_input_that_is_not_returned_is_found():
    """BatchNorm's running statistics: an input the op writes to, and no output."""
    model, x = MODELS["conv"]().norm, torch.randn(2, 4, 3, 3)

    def change(func, args, out):
        args[3].add_(1)
        return out

    found = wrong(with_fault(lambda: model(x), "aten.native_batch_norm.default", change))
    assert found[["role", "position"]].to_numpy().tolist() == [["input", 3]]


def test_a_fault_in_bfloat16_is_found_above_its_rounding():
    x = torch.randn(64, 64, dtype=torch.bfloat16)
    bad = lambda func, args, out: out.mul_(1.25)  # noqa: E731
    row = only(with_fault(lambda: x @ x, "aten.mm.default", bad))
    assert (row["status"], row["dtype"]) == ("mismatch", "bfloat16")
    fine = only(compared(lambda: x @ x))
    assert (fine["status"], fine["noise_ratio"] < 2) == ("ok", True)


def test_the_row_names_op_module_phase_and_shape():
    """Issue 4: grouped under API call and module."""
    trace = with_fault(train_step("llama"), "aten.silu.default", scaled, call=1)
    row = wrong(trace).iloc[0]
    assert (row["module"], row["phase"], row["dtype"], row["role"]) == (
        "model.layers.1.mlp",
        "forward",
        "float32",
        "output",
    )
    parent = trace.ops.iloc[trace.ops["parent_id"].iloc[row["op_id"]]]
    assert parent["op"] == "torch.nn.functional.silu"
    assert trace.ops["op"].iloc[row["op_id"]] == row["op"]


def test_gradients_stand_at_the_op_that_computes_them():
    """Defects B1, B37 and B39: backward ops are compared themselves, not by the order of autograd's nodes."""
    x, w = torch.randn(4, 8, requires_grad=True), torch.randn(3, 8, requires_grad=True)
    step = lambda: F.linear(x, w).sum().backward()  # noqa: E731
    found = wrong(with_fault(step, "aten.mm.default", scaled, call=1))
    assert found[["op", "phase"]].to_numpy().tolist() == [["aten.mm.default", "backward"]]
