import pytest
import torch

from nbkit.capture.replay.op_traits import A_VIEW, traits_of

aten = torch.ops.aten


@pytest.mark.parametrize(
    ("op", "what"),
    [
        (aten.mul.Tensor, "pointwise"),
        (aten.mm.default, ""),
        (aten.add_.Tensor, "pointwise writing 0"),
        (aten.mm.out, "out writing"),
        (aten.bernoulli.default, "random"),
        (aten.native_batch_norm.default, "writing 3 4"),
        (torch.ops.higher_order.cond, ""),
    ],
)
def test_what_an_op_does(op, what):
    traits = traits_of(op)
    is_so = {"pointwise": traits.is_pointwise, "out": traits.is_out, "random": traits.is_random}
    words = [word for word, it_is in {**is_so, "writing": traits.is_writing}.items() if it_is]
    assert " ".join([*words, *map(str, traits.written)]) == what


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        (aten.mm.default, None),
        (aten.transpose.int, A_VIEW),
        (aten._unsafe_view.default, A_VIEW),
        (aten.empty_like.default, "uninitialized memory (empty, empty_like)"),
        (aten.detach_.default, "ops that change a tensor's metadata only"),
        (aten.is_same_size.default, "ops that return no tensor (item, is_same_size)"),
        (torch.ops.prim.device.default, "metadata ops (no tensor computation)"),
        (torch.ops.higher_order.cond, "higher-order ops: torch runs their parts below"),
    ],
)
def test_what_is_not_compared_has_a_reason(op, reason):
    assert traits_of(op).leave_out == reason
