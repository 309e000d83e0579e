import pytest

from nbkit.timeline import names


@pytest.mark.parametrize(
    ("name", "overload", "expected"),
    [
        ("aten::mm", "", ("aten.mm.default", "aten")),
        ("aten::add_", "Tensor", ("aten.add_.Tensor", "aten")),
        ("aten::mm", None, ("aten.mm", "aten")),
        ("c10d::allreduce_", "", ("c10d.allreduce_.default", "aten")),
        ("Optimizer.step#AdamW.step", "", ("torch.optim.AdamW.step", "api")),
        ("Optimizer.zero_grad#SGD.zero_grad", None, ("torch.optim.SGD.zero_grad", "api")),
        ("torch.autograd.backward", "", ("torch.autograd.backward", "api")),
        ("MulBackward0", "", ("MulBackward0", "range")),
        ("torch::autograd::AccumulateGrad", "", ("torch::autograd::AccumulateGrad", "range")),
        ("autograd::engine::evaluate_function: MulBackward0", "", (names.BACKWARD_NODE + "MulBackward0", "range")),
        ("torch.distributed.ddp.reducer::copy", "", ("torch.distributed.ddp.reducer::copy", "range")),
        ("my block", "", ("my block", "range")),
        ("graph_0_cpp_fused_add_gelu_3", "", ("graph_0_cpp_fused_add_gelu_3", "aten")),
        ("Torch-Compiled Region: 0/0", "", ("Torch-Compiled Region: 0/0", "range")),
    ],
)
def test_names_and_levels(name, overload, expected):
    assert names.op_and_level(name, overload) == expected
