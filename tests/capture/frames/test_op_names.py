import pytest
import torch
import torch.nn.functional as F

from nbkit.capture.frames.op_names import op_name


def own():
    """A function of nobody's API."""


@pytest.mark.parametrize(
    ("func", "name"),
    [
        ("step", "step"),
        (torch.ops.aten.add.Tensor, "aten.add.Tensor"),
        (torch.ops.higher_order.cond, "higher_order.cond"),
        (torch.mm, "torch.mm"),
        (torch.spmm, "torch.mm"),
        (F.linear, "torch.nn.functional.linear"),
        (torch.Tensor.add_, "torch.Tensor.add_"),
        (own, f"{__name__}.own"),
    ],
)
def test_a_function_is_called_as_its_users_write_it(func, name):
    assert op_name(func) == name
