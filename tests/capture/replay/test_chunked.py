import pytest
import torch

from nbkit.capture.replay.chunked import PIECE, is_done_in_pieces
from nbkit.capture.replay.op_traits import traits_of

aten = torch.ops.aten
LARGE = torch.ones(2, PIECE)


@pytest.mark.parametrize(
    ("op", "args", "is_done"),
    [
        (aten.mul.Tensor, (LARGE, LARGE), True),
        (aten.mul.Tensor, (LARGE, torch.tensor(2.0)), True),
        (aten.neg.default, (LARGE,), True),
        (aten.neg.default, (torch.ones(PIECE),), False),
        (aten.neg.default, (torch.ones(()),), False),
        (aten.mul.Tensor, (LARGE, torch.ones(PIECE)), False),
        (aten.neg.default, (LARGE.T,), False),
        (aten.cumsum.default, (LARGE, 0), False),
        (aten._foreach_neg.default, ([LARGE],), False),
    ],
)
def test_large_pointwise_ops_on_tensors_of_one_shape_in_order_are_done_in_pieces(op, args, is_done):
    assert is_done_in_pieces(traits_of(op), args, {}) is is_done
