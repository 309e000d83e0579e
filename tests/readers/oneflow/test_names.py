"""Tests what the names of ops tell."""

import pytest

from nbkit.readers.oneflow.names import base_of, inserted_by, op_type, split_name
from nbkit.readers.oneflow.rows.phases import first_gradient


def test_names_of_ops():
    assert split_name("model.blocks.0.att-broadcast_mul-12") == ("model.blocks.0.att", "broadcast_mul", 12)
    assert split_name("scalar_add-350") == ("", "scalar_add", 350)
    assert split_name("model.fc.weight") is None
    assert split_name("model.fc.weight-m") is None


@pytest.mark.parametrize(
    ("name", "reason", "op", "base"),
    [
        ("m.fc.weight-out-cast_f2h", "amp", "cast", "m.fc.weight"),
        ("m.fc-matmul-0-out_0-cast_h2f", "amp", "cast", "m.fc-matmul-0"),
        ("m.fc-matmul-0_out_0_pinned_identity-out_0-cast_h2f", "amp", "cast", "m.fc-matmul-0"),
        ("m.fc-matmul-0_out_0_pinned_identity", "pinned identity", "identity", "m.fc-matmul-0"),
        ("m.fc.weight-m", "optimizer", None, "m.fc.weight"),
        ("m.fc.weight-momentum", "optimizer", None, "m.fc.weight"),
        ("m.fc.weight_optimizer", "optimizer", "optimizer", "m.fc.weight"),
        ("m.fc.weightadam_bias_correction_factor1", "optimizer", "adam_bias_correction_factor", "m.fc.weight"),
        ("m.fc-matmul-0_grad", "autograd", None, "m.fc-matmul-0"),
        ("System-AutoGrad-m.fc-matmul-0-FilterGrad", "autograd", "filter_grad", None),
        ("System-Boxing-Identity-7", "boxing", "boxing_identity", None),
        ("System-Train-TrainStep-ScalarAdd", "optimizer", "scalar_add", None),
        ("System-DynamicLossScale-Schedule", "amp", "schedule", None),
        ("Sys-GradAcc-VarRepeat-7", "gradient accumulation", "var_repeat", None),
        ("m.fc-fused-9", None, "fused", None),
    ],
)
def test_what_passes_added(name, reason, op, base):
    known = {"m.fc.weight", "m.fc-matmul-0"}
    assert (inserted_by(name, {"m.fc.weight"}), op_type(name), base_of(name, known)) == (reason, op, base)


def test_backward_begins_with_the_gradient_of_the_loss():
    inside = [("m-ones_like-0", "ones_like"), ("m-mul-1", "mul")]
    assert first_gradient([*inside, ("ones_like-2", "ones_like")]) == "ones_like-2"
    assert first_gradient([*inside, ("m-relu_grad-2", "relu_grad")]) == "m-ones_like-0"
    assert first_gradient(inside) is None
