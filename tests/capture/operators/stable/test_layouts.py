"""Inputs get other strides and keep their values."""

import pytest
import torch

from nbkit.capture.operators.stable.layouts import restrided, with_other_strides
from nbkit.capture.replay.op_traits import traits_of

TENSORS = {
    "vector": torch.arange(5.0),
    "matrix": torch.randn(3, 4),
    "transposed": torch.randn(3, 4).t(),
    "one row": torch.randn(1, 4),
    "expanded": torch.randn(3, 1).expand(3, 4),
    "image": torch.randn(2, 3, 4, 4),
    "channels last": torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last),
    "one channel": torch.randn(2, 1, 4, 4),
    "conjugate": torch.randn(3, 4, dtype=torch.complex64).conj(),
    "integers": torch.arange(6).reshape(2, 3),
}


@pytest.mark.parametrize("name", TENSORS)
def test_strides_are_others_and_values_the_same(name):
    tensor = TENSORS[name]
    other = restrided(tensor)
    assert torch.equal(other, tensor.resolve_conj())
    assert other.stride() != tensor.stride()
    assert other.untyped_storage()._cdata != tensor.untyped_storage()._cdata


def test_dtypes_and_devices_stay():
    full_like, options = torch.ops.aten.full_like.default, {"dtype": torch.float64, "device": torch.device("cpu")}
    args, kwargs = with_other_strides(traits_of(full_like), (torch.randn(3, 4), 2.0), options)
    assert (args[0].stride(), args[1], kwargs) == ((1, 3), 2.0, options)


@pytest.mark.parametrize(
    ("func", "args"),
    [
        (torch.ops.aten.as_strided_copy.default, (torch.randn(4), (2, 2), (2, 1))),
        (torch.ops.aten.exp.default, (torch.tensor(1.0),)),
        (torch.ops.aten.arange.default, (4,)),
    ],
)
def test_ops_about_strides_and_without_any_are_left_alone(func, args):
    assert with_other_strides(traits_of(func), args, {}) is None
