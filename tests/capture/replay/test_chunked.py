import pytest
import torch

from nbkit.capture.replay.chunked import PIECE, Pieces, is_done_in_pieces
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


def test_pieces_are_widened_one_by_one_and_what_stands_by_whole():
    large = torch.arange(2.0 * PIECE).view(2, PIECE)
    args, half = (large, torch.tensor(3.0)), {"alpha": 0.5}
    pieces = Pieces(traits_of(aten.add.Tensor), args, half, torch.Tensor.double)
    assert torch.equal(pieces.result(1), large[1].double() + 1.5)
    assert torch.equal(pieces.whole(), large.double() + 1.5)
