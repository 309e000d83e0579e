"""Rules of the batch hold: rows of another batch are, but for rounding, the rows of the batch as it was."""

import pytest
import torch
import torch.nn.functional as F

from nbkit.capture.operators.stable.batches import ALONG, IMAGES, RULES, batch_of, changed
from nbkit.capture.replay.op_traits import traits_of

aten = torch.ops.aten
X, W, B3 = torch.randn(5, 6), torch.randn(6, 4), torch.randn(5, 4, 6)
IMAGE, KERNEL = torch.randn(5, 3, 8, 8), torch.randn(4, 3, 3, 3)
CONVOLVED = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
MEAN, RSTD = X.mean(1, keepdim=True), X.std(1, keepdim=True)
Q = torch.randn(5, 2, 4, 8)
FLASH = aten._scaled_dot_product_flash_attention_for_cpu.default(Q, Q + 1, Q - 1)
CALLS = {
    "mm": (aten.mm.default, (X, W)),
    "mm of itself": (aten.mm.default, (torch.eye(5) + 1,) * 2),
    "addmm": (aten.addmm.default, (torch.randn(4), X, W)),
    "addmm of rows": (aten.addmm.default, (torch.randn(5, 4), X, W)),
    "addmm of one row": (aten.addmm.default, (torch.randn(1, 4), X, W)),
    "bmm": (aten.bmm.default, (B3, B3.mT)),
    "baddbmm": (aten.baddbmm.default, (torch.randn(5, 4, 4), B3, B3.mT)),
    "mv": (aten.mv.default, (X, torch.randn(6))),
    "convolution": (aten.convolution.default, (IMAGE, KERNEL, torch.randn(4), *CONVOLVED)),
    "convolution_backward": (
        aten.convolution_backward.default,
        (torch.randn(5, 4, 8, 8), IMAGE, KERNEL, [4], *CONVOLVED, [True, True, True]),
    ),
    "native_layer_norm": (aten.native_layer_norm.default, (X, [6], torch.randn(6), torch.randn(6), 1e-5)),
    "native_layer_norm_backward": (
        aten.native_layer_norm_backward.default,
        (X + 1, X, [6], MEAN, RSTD, torch.randn(6), torch.randn(6), [True, True, True]),
    ),
    "embedding": (aten.embedding.default, (W, torch.tensor([[0, 2], [1, 1], [5, 3]]))),
    "flash attention": (aten._scaled_dot_product_flash_attention_for_cpu.default, (Q, Q + 1, Q - 1)),
    "its backward": (
        aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
        (Q, Q, Q + 1, Q - 1, *FLASH, 0.0, False),
    ),
    "_to_copy": (aten._to_copy.default, (X,)),
    "clone": (aten.clone.default, (X,)),
    "sum": (aten.sum.dim_IntList, (B3, [1, 2])),
    "mean": (aten.mean.dim, (B3, [-1], True)),
    "max": (aten.max.dim, (B3, 1)),
    "var_mean": (aten.var_mean.correction, (B3, [1])),
    "logsumexp": (aten.logsumexp.default, (X, [1])),
    "norm": (aten.linalg_vector_norm.default, (B3, 2, [1, 2])),
    "cumsum": (aten.cumsum.default, (X, 1)),
    "sort": (aten.sort.default, (X, 1)),
    "topk": (aten.topk.default, (X, 2)),
    "_softmax": (aten._softmax.default, (X, -1, False)),
    "_log_softmax_backward_data": (aten._log_softmax_backward_data.default, (X, F.log_softmax(X, 1), 1, X.dtype)),
    "glu": (aten.glu.default, (X, 1)),
    "max_pool2d": (aten.max_pool2d_with_indices.default, (IMAGE, [2, 2])),
    "upsample": (aten.upsample_nearest2d.default, (IMAGE, [16, 16])),
    "broadcast": (aten.add.Tensor, (B3, torch.randn(6))),
    "broadcast by one": (aten.mul.Tensor, (torch.randn(1, 6), X)),
    "where": (aten.where.self, (X > 0, X, torch.tensor(0.5))),
}


@pytest.mark.parametrize("name", CALLS)
def test_rows_of_another_batch_are_those_of_the_batch(name):
    func, args = CALLS[name]
    traits, out = traits_of(func), func(*args)
    batch = batch_of(traits, args, {}, out)
    assert batch is not None
    variants = list(batch.variants())
    assert [what for what, _, _ in variants] == ["one-row", "permuted and padded"]
    for _, rows, compared in variants:
        other_args, other_kwargs = changed(traits, args, {}, batch.arguments, rows)
        others = func(*other_args, **other_kwargs)
        for index in batch.results:
            before, after = (of if isinstance(of, torch.Tensor) else of[index] for of in (out, others))
            after = compared(after)
            torch.testing.assert_close(after, before[: len(after)])


@pytest.mark.parametrize(
    ("func", "args"),
    [
        (aten.sum.dim_IntList, (X, [0])),
        (aten.sum.default, (X,)),
        (aten.cumsum.default, (X, -2)),
        (aten._softmax.default, (X, 0, False)),
        (aten.native_layer_norm.default, (X[0], [6], None, None, 1e-5)),
        (aten.native_batch_norm.default, (IMAGE, None, None, None, None, True, 0.1, 1e-5)),
        (aten.cat.default, ([X, X],)),
        (aten.dot.default, (X[0], X[0])),
        (aten._foreach_add.Scalar, ([X, X], 1)),
    ],
)
def test_where_rows_depend_on_each_other_there_is_no_batch(func, args):
    assert batch_of(traits_of(func), args, {}, func(*args)) is None


def test_every_rule_names_arguments_that_its_ops_have():
    for name in (*RULES, *ALONG, *IMAGES):
        packet = getattr(aten, name, None)
        if packet is None:  # of another version of torch
            continue
        wanted = set(RULES[name].arguments if name in RULES else ALONG.get(name, ("self",)))
        found = [{a.name for a in getattr(packet, one)._schema.arguments} for one in packet.overloads()]
        assert any(wanted <= names for names in found), name
