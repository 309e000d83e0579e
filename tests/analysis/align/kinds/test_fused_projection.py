"""Queries, keys and values that are cut from a fused projection in two ways, and attention over the wrong axis."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit

HEADS, SIZE = 4, 16
X = torch.randn(2, 6, SIZE, generator=torch.Generator().manual_seed(0))


def thirds(y):
    return [part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in y.chunk(3, -1)]


def by_head(y):
    return y.unflatten(-1, (HEADS, -1)).transpose(1, 2).chunk(3, -1)


def by_element(y):
    return [y.unflatten(-1, (HEADS, -1, 3))[..., part].transpose(1, 2) for part in range(3)]


def unturned(y):
    return [part.unflatten(-1, (HEADS, -1)) for part in y.chunk(3, -1)]


class Attention(nn.Module):
    def __init__(self, cut):
        super().__init__()
        torch.manual_seed(1)
        self.qkv, self.out, self.cut = nn.Linear(SIZE, 3 * SIZE), nn.Linear(SIZE, SIZE), cut

    def forward(self, x):
        result = F.scaled_dot_product_attention(*self.cut(self.qkv(x)))
        return self.out((result if self.cut is unturned else result.transpose(1, 2)).flatten(2))


def first_of(left, right):
    return nbkit.opalign(Attention(left), Attention(right), inputs=(X,)).meta["first_divergence"]


WAYS = {thirds: "thirds of its last axis", by_head: "thirds of each of 4 heads", by_element: "every third element"}


@pytest.mark.parametrize(("left", "right"), [(a, b) for a in WAYS for b in WAYS if a is not b])
def test_another_order_of_a_fused_projection_is_named(left, right):
    first = first_of(left, right)
    assert first["kind"] == "fused_order"
    # Of what each head has, as both of them cut it, they are thirds.
    words = WAYS if thirds in (left, right) else {**WAYS, by_head: WAYS[thirds]}
    assert f" as {words[left]}, the right one as {words[right]}" in first["message"]


@pytest.mark.parametrize("cut", WAYS)
def test_the_same_order_is_no_difference(cut):
    assert first_of(cut, cut) is None


def test_attention_over_heads_is_named():
    first = first_of(thirds, unturned)
    assert first["kind"] == "attention_axis" and "over the axis of 6, the right one over that of 4" in first["message"]
    first = first_of(unturned, thirds)
    assert first["kind"] == "attention_axis" and "over the axis of 4, the right one over that of 6" in first["message"]


def test_several_arguments_of_a_convolution_are_named():
    x, weight = torch.randn(1, 3, 9, 9), torch.randn(4, 3, 3, 3)
    left, right = (lambda x, by=by: F.conv2d(x, weight, padding=by, dilation=by).relu() for by in (1, 2))
    first = nbkit.opalign(left, right, inputs=(x,)).meta["first_divergence"]
    assert first["kind"] == "argument"
    assert "padding is [1, 1] on the left, [2, 2] on the right; dilation is [1, 1]" in first["message"]
