import pytest
import torch

from nbkit.capture.diff.pair import flat, pieces_of, summed_at
from nbkit.capture.replay.op_traits import traits_of
from nbkit.capture.replay.reference import Reference

aten = torch.ops.aten
ONES = torch.ones


@pytest.mark.parametrize(
    ("op", "args", "count", "summed"),
    [
        (aten._softmax.default, (ONES(2, 640), 1, False), 1, 10.0),
        (aten._log_softmax.default, (ONES(640, 2), 0, False), 1, 10.0),
        (aten._softmax.default, (ONES(()), 0, False), 1, 1 / 64),
        (aten.native_batch_norm.default, (ONES(4, 3, 5), None, None, None, None, True, 0.1, 1e-5), 3, 20.0),
        (aten._weight_norm_interface.default, (ONES(4, 6), ONES(4, 1), 0), 2, 6.0),
        (aten.mul.Tensor, (ONES(8), ONES(8)), 1, 1.0),
    ],
)
def test_an_element_is_made_of_so_many_numbers(op, args, count, summed):
    call = Reference("cpu:float64").copy(traits_of(op), args, {})
    assert summed_at(call, (0, count), args[0].numel()) == summed


QUANTIZED = torch.quantize_per_tensor(torch.tensor([0.5, -1.0]), 0.5, 0, torch.qint8)
PARTS = torch.tensor([1 + 2j, 3 - 4j], requires_grad=True)


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize(
    ("tensor", "values"),
    [
        (torch.eye(2, dtype=torch.float64, requires_grad=True), [1, 0, 0, 1]),
        (torch.eye(2).to_sparse().requires_grad_(), [1, 0, 0, 1]),
        (PARTS.conj(), [1 - 2j, 3 + 4j]),
        (PARTS.conj().imag, [-2, 4]),
        (torch._efficientzerotensor(2), [0, 0]),
        (torch.tensor([2**64 - 1], dtype=torch.uint64), [2**64 - 1]),
        (QUANTIZED, [0.5, -1]),
    ],
)
def test_values_of_any_tensor_are_a_flat_array(tensor, values, copy):
    assert flat(tensor, copy=copy).tolist() == values
    assert pieces_of(tensor)(1, 4).tolist() == values[1:4]
