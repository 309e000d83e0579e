"""A mismatch says with which strides of which input the op is wrong, where a contiguous copy of it makes it right."""

import pytest
import torch
import torch.nn.functional as F

import nbkit


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


IMAGES, WEIGHTS = normal(2, 4, 8, 8), normal(8, 4, 3, 3, 3)


def told(fault, step, *tensors):
    """The one finding about an op of a step that is planted wrong."""
    device = nbkit.SimulatedDevice([fault])
    given = [tensor.to(device.torch_device) for tensor in tensors]
    with nbkit.opdiff() as trace:
        step(*given)
    [finding] = trace.findings.to_dict("records")
    return finding


def sliced(images, weights):
    return F.conv2d(images, weights[:, :, 1], padding=1)


def multiplied_into(x, y):
    z = x.t()
    return z.addcmul_(y, y)


def test_strides_of_a_weight_are_told():
    fault = nbkit.Fault("convolution", "ignored_stride", where=lambda tensors: not tensors[1].is_contiguous())
    finding = told(fault, sliced, IMAGES, WEIGHTS)
    assert "it is right with a contiguous copy of weight, whose strides are [108, 27, 3, 1]" in finding["message"]
    assert finding["advice"].endswith("give it a contiguous copy: .contiguous().")
    assert '"strides": {"weight": [108, 27, 3, 1]}' in finding["evidence"]


def test_strides_of_what_an_op_writes_to_are_told_with_what_it_looks_like():
    fault = nbkit.Fault("addcmul_", "dropped_write", where=lambda tensors: not tensors[0].is_contiguous())
    finding = told(fault, multiplied_into, normal(6, 4), normal(4, 6))
    assert "output 0 is as it was before the op" in finding["message"]
    assert finding["message"].endswith("it is right with a contiguous copy of self, whose strides are [1, 4]")


def test_two_inputs_that_must_both_be_contiguous_are_told_together():
    where = lambda tensors: not all(tensor.is_contiguous() for tensor in tensors)  # noqa: E731
    fault = nbkit.Fault("mul", "relative_error", 0.1, where=where)
    finding = told(fault, lambda x, y: x.t() * y.t(), normal(5, 3), normal(5, 3))
    assert finding["message"].endswith(
        "with contiguous copies of self, whose strides are [1, 3], and other, whose strides are [1, 3]"
    )


@pytest.mark.parametrize("step", [sliced, lambda images, weights: F.conv2d(images, weights[:, :, 1].contiguous())])
def test_of_an_op_that_is_wrong_with_any_strides_none_are_told(step):
    finding = told(nbkit.Fault("convolution", "relative_error", 0.1), step, IMAGES, WEIGHTS)
    assert finding["rule"] == "mismatch" and "contiguous" not in finding["message"] + finding["evidence"]


def test_of_a_result_that_is_no_number_with_other_strides_they_are_told():
    fault = nbkit.Fault("exp", "relative_error", 1e6, where=lambda tensors: not tensors[0].is_contiguous())
    finding = told(fault, lambda x: x.t().exp(), normal(5, 3) + 83)
    assert "NaN, Inf" in finding["message"]
    assert finding["message"].endswith("it is right with a contiguous copy of self, whose strides are [1, 3]")


def test_of_an_op_that_is_right_when_it_runs_again_none_are_told():
    calls = []
    fault = nbkit.Fault("mul", "relative_error", 0.1, where=lambda tensors: not calls and not calls.append(1))
    finding = told(fault, lambda x: x.t() * 2, normal(5, 3))
    assert finding["rule"] == "mismatch" and "contiguous" not in finding["message"]
