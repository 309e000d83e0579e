import pytest
import torch

from tests.capture.models import record


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_results_that_are_gone_require_a_gradient_if_what_they_are_made_of_does(dtype):
    x, y = torch.ones(2, dtype=dtype, requires_grad=True), torch.ones(2, dtype=dtype)
    trace = record(lambda: (torch.mul(y, y), torch.neg(torch.mul(x, y))))
    outputs = trace.tensors[trace.tensors["role"] == "output"]
    assert outputs["requires_grad"].tolist() == [False, True, True]


def test_integers_require_none():
    x = torch.ones(2, 2, requires_grad=True)
    trace = record(lambda: x.max(0))
    outputs = trace.tensors[trace.tensors["role"] == "output"]
    assert outputs[["dtype", "requires_grad"]].values.tolist() == [["float32", True], ["int64", False]]
