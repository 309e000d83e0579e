"""Tests operands that are read wrongly, against torch's own op on the operands that are read instead."""

import pytest
import torch
import torch.nn.functional as F

from nbkit import Fault
from tests.simulated.faults.spoilt import obstacle, spoilt

SQUARE, OTHER = torch.randn(5, 5), torch.randn(5, 5)


@pytest.mark.parametrize(
    ("op", "kind", "compute", "instead", "inputs"),
    [
        ("mm", "transposed_operand", torch.mm, lambda a, b: a @ b.T, (SQUARE, OTHER)),
        ("bmm", "transposed_operand", torch.bmm, lambda a, b: a @ b.mT, (SQUARE[None], OTHER[None])),
        ("sub", "swapped_operands", torch.sub, lambda a, b: b - a, (SQUARE, OTHER)),
        ("mm", "swapped_operands", torch.mm, lambda a, b: b @ a, (SQUARE, OTHER)),
        ("exp", "ignored_stride", lambda x: x.T.exp(), torch.exp, (SQUARE,)),
        ("sub", "ignored_stride", lambda a, b: a - b.T, torch.sub, (SQUARE, OTHER)),
        ("bmm", "first_batch", torch.bmm, lambda a, b: a @ b[:1], (torch.randn(3, 2, 4), torch.randn(3, 4, 2))),
        ("addmm", "dropped_bias", torch.addmm, lambda c, a, b: a @ b, (SQUARE[0], SQUARE, OTHER)),
        ("native_layer_norm", "dropped_bias", lambda x, b: F.layer_norm(x, (5,), b, b),
         lambda x, b: F.layer_norm(x, (5,), b), (SQUARE, OTHER[0])),
    ],
)  # fmt: skip
def test_other_operands_are_read(device, op, kind, compute, instead, inputs):
    _, actual = spoilt(device, Fault(op, kind), compute, *inputs)
    torch.testing.assert_close(actual, instead(*inputs))


def test_each_index_but_the_largest_is_one_too_large(device):
    table, index = torch.arange(6.0), torch.tensor([0, 3, 5, 3])
    for op, compute in (
        ("index_select", lambda table, index: table.index_select(0, index)),
        ("gather", lambda table, index: table.gather(0, index)),
        ("index", lambda table, index: table[index]),
        ("embedding", lambda table, index: F.embedding(index, table[:, None])[:, 0]),
    ):
        _, actual = spoilt(device, Fault(op, "off_by_one_index"), compute, table, index)
        assert actual.tolist() == [1, 4, 5, 4]


def test_a_mask_beside_an_index_stays_as_it_is(device):
    x, mask, index = torch.arange(6.0).view(2, 3), torch.tensor([True, True]), torch.tensor([0, 2])
    _, actual = spoilt(device, Fault("index", "off_by_one_index"), lambda x, *at: x[at], x, mask, index)
    assert actual.tolist() == [1, 5]


@pytest.mark.parametrize(
    ("op", "compute"),
    [
        ("index_put", lambda x, at: torch.zeros(3, 2).to(x.device).index_put((at,), x, accumulate=True)),
        ("index_add", lambda x, at: torch.zeros(3, 2).to(x.device).index_add(0, at, x)),
        ("embedding_dense_backward", lambda x, at: torch.ops.aten.embedding_dense_backward(x, at, 3, -1, False)),
    ],
)
def test_the_last_of_what_is_accumulated_counts(device, op, compute):
    added = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    expected, actual = spoilt(device, Fault(op, "lost_duplicates"), compute, added, torch.tensor([1, 2, 1]))
    assert expected.tolist() == [[0, 0], [6, 8], [3, 4]]
    assert actual.tolist() == [[0, 0], [5, 6], [3, 4]]


def test_kernel_and_border_of_a_convolution(device):
    image, weight = torch.arange(1.0, 4.0).view(1, 1, 3), torch.tensor([[[1.0, 10.0, 100.0]]])

    def convolved(image, weight):
        return F.conv1d(image, weight, padding=1)

    expected, flipped = spoilt(device, Fault("convolution", "flipped_kernel"), convolved, image, weight)
    assert expected.flatten().tolist() == [210, 321, 32]
    assert flipped.flatten().tolist() == [12, 123, 230]
    _, replicated = spoilt(device, Fault("convolution", "replicated_border"), convolved, image, weight)
    assert replicated.flatten().tolist() == [211, 321, 332]


def test_what_they_cannot_befall(device):
    for kind, reason in (
        ("transposed_operand", "is no matrix product"),
        ("swapped_operands", "has no two operands"),
        ("first_batch", "is no product of batches"),
        ("off_by_one_index", "takes no indices"),
        ("lost_duplicates", "accumulates nothing at indices"),
        ("dropped_bias", "has no bias"),
        ("flipped_kernel", "is no convolution"),
    ):
        assert reason in obstacle(device, "exp", kind, torch.exp, SQUARE)
